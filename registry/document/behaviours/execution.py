"""Code that runs before a person can check it: downloaded, decoded, or sent by another machine."""

import re
from typing import Final

from registry.document.behaviours.table import ADDRESS, LOCAL, RUNNER, SHELL, anywhere

# A file name, or a variable that contains a file name.
_FILE: Final = r"[\w./~$%{}\\-]{2,80}"
_RUN_FILE: Final = (
    rf"(?:chmod[ \t]{{1,3}}(?:[augo]{{0,3}}\+\w{{0,2}}x|0?[157]\d\d)[ \t]{{1,3}}"
    rf"|\b{RUNNER}[ \t]{{1,3}}(?:-\w{{1,8}}[ \t]{{1,3}})?"
    r"|nohup[ \t]{1,3}|\bstart[ \t]{1,3}|(?:^|[\n;&|])[ \t]{0,8}(?:\./|(?=[/~%$]))"
    r"|start-process[ \t]{1,3}(?:-filepath[ \t]{1,3})?|installer[ \t]{1,3}-pkg[ \t]{1,3})"
    r"[\"']?(?:\./|\.\\)?"
)
_UNTRACEABLE: Final = (
    rf"(?:https?://{ADDRESS}|http://(?!{LOCAL})[^\s\"'`]{{3,200}}"
    r"|https?://[\w.-]{0,60}(?:paste|bin\.|gist\.|snip|rentry|glot\.|ngrok|trycloudflare"
    r"|transfer\.sh"
    r"|0x0\.st|termbin|ix\.io|file\.io|catbox|anonfiles"
    r"|discordapp\.com/attachments)[^\s\"'`]{0,200})"
)
_FETCHERS: Final = r"(?:curl|wget|aria2c|iwr|irm|invoke-webrequest|start-bitstransfer)"


def _not_a_string(match: re.Match[bytes]) -> bool:
    """Return True if a command is on a command line, and not a quoted string in a list."""
    start, end = match.span()
    return match.string[max(0, start - 1) : start] not in (b'"', b"'") and (
        match.string[end : end + 1] not in (b'"', b"'")
        or match.string[end - 1 : end] in (b'"', b"'")
    )


_FETCHED_FROM: Final = (
    ("untraceable-execution", _UNTRACEABLE),
    ("download-then-run", "https://"),
)
"""Codes of findings, and for each code, the beginning of the downloaded addresses."""

BEHAVIOURS: Final = (
    # curl -o F URL; chmod +x F / bash F / ./F
    *(
        anywhere(
            code,
            "downloads a file and runs it",
            rf"{_FETCHERS}\b(?=[^\n]{{0,300}}{address})[^\n]{{0,250}}?",
            r"[ \t](?:-\w{0,8}o|--output(?:-document)?|-outfile|>)[ =\t]{0,3}[\"']?",
            rf"(?P<file>{_FILE})(?=[\s\"'`;&|)])[\"']?[\s\S]{{0,400}}?",
            rf"{_RUN_FILE}(?P=file)(?![\w.-])",
        )
        for code, address in _FETCHED_FROM
    ),
    # wget URL/F; sh F
    *(
        anywhere(
            code,
            "downloads a file and runs it",
            rf"(?:wget|curl[ \t]{{1,3}}-\w{{0,6}}o)\b(?=[^\n]{{0,300}}{address})"
            rf"[^\n]{{0,250}}?://[^\s\"'`]{{1,200}}/",
            r"(?P<file>[\w.-]{2,60})[\"'`]?\s[\s\S]{0,300}?",
            rf"{_RUN_FILE}(?P=file)(?![\w.-])",
        )
        for code, address in _FETCHED_FROM
    ),
    # Downloads that a shell runs without a pipe, such as sh -c "$(curl http://address)".
    anywhere(
        "untraceable-execution",
        "runs downloaded code unchecked",
        rf"{_FETCHERS}\b[^\n|]{{0,200}}{_UNTRACEABLE}[^\n|]{{0,120}}\|[ \t]{{0,4}}",
        rf"(?:tee[^\n|]{{0,60}}\|[ \t]{{0,4}})?(?:sudo[ \t]{{1,3}}(?:-\w[ "
        rf"\t]{{1,3}}){{0,3}})?(?:{RUNNER}|iex)\b",
    ),
    anywhere(
        "untraceable-execution",
        "runs downloaded code unchecked",
        rf"(?:{SHELL}|eval|source|python3?|exec"
        rf"|node)[ \t]{{1,3}}(?:-\w{{1,6}}[ \t]{{1,3}})?[\"']{{0,2}}(?:[$<]\(|`)[ ]?",
        rf"{_FETCHERS}\b[^\n]{{0,160}}{_UNTRACEABLE}",
    ),
    # Python and JavaScript code that is fetched, then run.
    anywhere(
        "download-then-run",
        "downloads a file and runs it",
        r"urlretrieve\([^\n]{0,200}?,[ \t]{0,3}(?:filename[ ]?=[ ]?)?",
        r"(?P<file>['\"]?[\w./~\\-]{2,80}+)[\s\S]{0,500}?",
        r"(?:popen|\brun|call|system|startfile|execv?)\([^\n]{0,120}?(?P=file)['\"]?",
    ),
    # Commands that can't be undone.
    anywhere(
        "destructive-command",
        "deletes a whole home folder or disk",
        r"(?:rm[ ]{1,2}(?:-\w{1,4}[ ]{1,2}|--[\w-]{4,20}[ ]{1,2}){1,3}[\"']?(?:/|~/?|\$home/?"
        r"|\$\{home\}/?|/\*|~/\*|\*|/home|/users)[\"']?(?=[ \n;&|`)]|--|$)(?![ ]{0,2}\.)"
        r"|rmtree\([ ]?(?:os\.path\.expanduser\([\"']~/?[\"']\)|(?:pathlib\.)?path\.home\(\)"
        r"|[\"']/[\"'])[ ]?[,)])",
        accept=_not_a_string,
    ),
    anywhere(
        "destructive-command",
        "destroys data or logs",
        r"(?:dd[ ][^\n]{0,60}of=/dev/(?:sd|nvme|disk|hd|xvd)\w"
        r"|mkfs(?:\.\w{2,6})?[ ][^\n]{0,30}/dev/(?:sd|nvme|hd)\w"
        r"|history[ ]-c\w{0,2}\b(?=[\s;&`])|wipefs[ ][^\n]{0,20}/dev/|vssadmin[ ]delete"
        r"|wevtutil[ ]cl\b)",
    ),
    anywhere(
        "destructive-command",
        "removes logs or the shell history",
        r"(?:(?:rm|shred|truncate|ln)[ ][^\n]{0,40}\.(?:bash|zsh)_history|unset[ ]histfile"
        r"|histfile=/dev/null)",
    ),
)
