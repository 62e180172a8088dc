"""Programs and packages from unknown authors that a skill tells you to install."""

import re
from typing import Final

from registry.document.behaviours.table import anywhere, in_prose

_PROGRAM: Final = (
    r"(?:\.(?:exe|zip|rar|7z|dmg|pkg|msi|jar|scr|bat|ps1|appimage|iso|vbs|tgz|tar\.gz)\b"
    r"|\bexecutable|\bbinary\b|\binstaller\b|\bsetup utility)"
)
_OBTAIN: Final = (
    r"(?:download|\b(?:grab|get|fetch|obtain)\b(?=[^\n]{0,60}(?:\]\(http|https?://|\.(?:exe|zip"
    r"|rar|7z|dmg|msi)\b)))"
)
_RUN: Final = (
    r"(?:\brun\b|\brunning\b|execut(?:e\b|ed\b|ing\b|able)|\blaunch|\bstart\b|double[- ]click"
    r"|\bopen it\b|\binstall\b)"
)
_DEMAND: Final = (
    r"(?:before (?:using|use|you|this|the|start|proceed|run|any|it|work|continu|begin|trying|each"
    r"|first)"
    r"|\bmust\b|required\b|requires\b|requirement|prerequisite|necessary|otherwise"
    r"|\bneeds? to be\b|has to be"
    r"|(?:won't|will not|doesn't|not|cannot|can't|nothing|never|fails?) (?:work|function|start"
    r"|run|be used)"
    r"|without (?:this|it|completing|the)|\bfirst[.,)]|\bfirst\n|\bimportant:|\bimportant\*"
    r"|critical|mandatory|depends on|\bessential\b)"
)
_PASS: Final = (
    r"(?:\bpass(?:word|code|phrase|wd)?\b|\bpw[d]?\b|contrase\?a|\bpasswort\b|\bkennwort\b"
    r"|mot de passe|\bsenha\b"
    r"|\b(?:archive|unlock|extraction|zip) (?:code|key|pin)\b)"
)
_ARCHIVE: Final = r"(?:\.(?:zip|rar|7z|exe|dmg|iso)\b|\barchive\b|\bextract\b|\bunzip\b|\bunpack)"


def _has(*parts: str) -> re.Pattern[bytes]:
    return re.compile("|".join(parts).encode())


_HAS_ARCHIVE = _has(_ARCHIVE)
_HAS_OBTAINED = _has(r"https?://", r"\bdownload")
_HAS_PROGRAM = _has(_PROGRAM)
_HAS_RUN = _has(_RUN)
_HAS_DEMAND = _has(_DEMAND)
_RUNS_A_PROGRAM = _has(
    r"\b(?:run|open|launch|execute|start|double-click) [^\n ]{2,60}\.(?:exe|scr|msi)\b"
)
_HAS_ADDRESS = _has(r"https?://")
# Words which show that a password is for a login and not for an archive.
_OF_A_LOGIN = _has(
    r"username|\blogin\b|log in|database|email|\bpdf\b|postgres|--password|encrypt|\badmin\b",
    r"sudo pass|_pass|pass_|getpass|\bsmtp\b|\.env\b",
)
# Hosts from which many users download common programs.
_WELL_KNOWN = _has(
    r"https?://(?:www\.|dl\.|download\.|downloads\.|desktop\.|docs\.)?(?:nodejs\.org|python\.org"
    r"|git-scm\.com|docker\.com"
    r"|google\.com|microsoft\.com|apple\.com|mozilla\.org|brew\.sh|rust-lang\.org|golang\.org"
    r"|go\.dev"
    r"|ffmpeg\.org|gyan\.dev|anaconda\.com|conda\.io|oracle\.com|java\.com|adoptium\.net"
    r"|visualstudio\.com"
    r"|amazon\.com|amazonaws\.com|ollama\.com|obsidian\.md|tailscale\.com|astral\.sh"
    r"|libreoffice\.org"
    r"|imagemagick\.org|steampowered\.com|blender\.org|unity\.com|unity3d\.com|r-project\.org)"
)
# Hosts of source code that also show its history, and well-known package registries.
_SOURCES = _has(
    r"https?://(?:www\.)?(?:github\.com|gitlab\.com|npmjs\.com|pypi\.org|crates\.io|docs\."
    r"|formulae\.brew)",
    r"docs?\.",
    r"/docs",
    r"\bnpm\b|\bpip\b|\bbrew\b|\bcargo\b|\bapt\b|\buv\b|\bnpx\b",
)
NEAR: Final = 320


def _around(match: re.Match[bytes], before: int = NEAR, after: int = NEAR) -> bytes:
    return match.string[max(0, match.start() - before) : match.end() + after]


def _locked(match: re.Match[bytes]) -> bool:
    """Return True if a password opens an archive or program that the skill tells you to run."""
    near = _around(match)
    return bool(
        _HAS_ARCHIVE.search(near)
        and _HAS_OBTAINED.search(near)
        and not _OF_A_LOGIN.search(_around(match, 60, 60))
    )


def _demanded(match: re.Match[bytes]) -> bool:
    """Return True if the skill tells you to download a program and run it before anything else."""
    near = _around(match, 200, 260)
    return bool(
        _HAS_PROGRAM.search(near)
        and _HAS_RUN.search(near)
        and (_HAS_DEMAND.search(near) or _RUNS_A_PROGRAM.search(near))
        and _HAS_ADDRESS.search(near)
        and not _WELL_KNOWN.search(near)
    )


BEHAVIOURS: Final = (
    anywhere(
        "remote-execution",
        "downloads data that runs code when it is loaded",
        r"(?:urlretrieve|urlopen|requests\.get|\bwget\b|\bcurl\b)[\s\S]{0,400}?"
        r"(?:torch|joblib|dill)\.load\([^\n]{0,80}?weights_only[ ]?=[ ]?false",
    ),
    anywhere(
        "archive-with-password",
        "gives the password of a file to download and run",
        _PASS,
        r"[\"'`*]{0,3}[ \t]{0,3}(?:is\b|:|=|of\b|\(|\*{0,2}[`'\"])",
        accept=_locked,
    ),
    anywhere(
        "archive-with-password",
        "unpacks an archive with a password",
        r"(?:unzip[ ](?:-[a-oq-z]{1,4}[ ]){0,3}-p[ ]?[\"']?[\w!@-]{2,30}[\"']?[ ][^\n "
        r"]{1,80}\.zip|\b7za?[ ]{1,2}[xe][^\n]{0,80}? -p[\w\"']|unrar[ ][^\n]{0,20}-p\w)",
    ),
    in_prose(
        "required-program",
        "tells you to download and run a program first",
        _OBTAIN,
        accept=_demanded,
    ),
    in_prose(
        "required-program",
        "tells you to download and install a program first",
        r"(?:(?:must|needs? to|has to|required to) be (?:pre-?|first |also )?(?:installed"
        r"|running)|requires? (?:the )?[\w`*-]{2,40}(?: utility| tool| cli"
        r"| agent)? to (?:function|work|run|operate|be installed)"
        r"|install[^\n]{2,60} before (?:using|you use|running) this skill)",
        r"[\s\S]{0,160}?(?:download|\binstall|quick (?:setup|install)"
        r"|get it)[^\n]{0,80}?https?://[\w.-]{4,60}(?:/[\w.-]{0,24})?/?(?![\w/.-])",
        accept=lambda match: (
            _WELL_KNOWN.search(match[0]) is None and _SOURCES.search(match[0]) is None
        ),
    ),
    # A URL in place of a package name: the owner of the host decides which code is installed.
    in_prose(
        "required-program",
        "names only a link as the program to install",
        r"\b(?:quick|easy|one-click|instant)[ -](?:setup|install(?:ation|er)?)\b[^\n]{0,30}?"
        r"[:\-][ *_`]{0,4}(?:\[[^\]\n]{0,60}\]\()?https?://[\w.-]{4,60}(?:/[\w.-]{0,24})?/?"
        r"(?![\w/.-])",
        accept=lambda match: (
            _WELL_KNOWN.search(match[0]) is None and _SOURCES.search(match[0]) is None
        ),
    ),
    in_prose(
        "pasted-command",
        "tells you to paste a command into a terminal",
        r"(?:https?://|\b(?:visit|open|go to|see|navigate)\b[^\n]{0,40}\b(?:page|link|site"
        r"|snippet|url)\b)(?:[^\n]|\n(?!\n)){0,200}?",
        r"\b(?:copy|copies|copied|paste)\b[^\n]{0,160}?\b(?:terminal|shell|powershell|console"
        r"|command prompt|cmd)\b",
        accept=lambda match: (
            b"\n\n" not in match[0]
            and b"```" not in match[0]
            and re.search(
                rb"\b(?:visit|open|go to|from|at|page|browse|navigate)\b", _around(match, 60, 0)
            )
            is not None
        ),
    ),
    in_prose(
        "pasted-command",
        "tells you to run a command",
        r"\b(?:visit|open|go to|navigate to"
        r"|browse to)[ ][^\n]{0,60}https?://[^\s)]{3,200}\)?[^\n.]{0,60}?",
        r"\b(?:execute|run)[ ](?:the|its|that|this"
        r"|whatever)[ ](?:[\w-]{1,20}[ ]){0,3}?(?:command|script|one-liner|snippet|code)",
    ),
    anywhere(
        "paste-site",
        "runs a script from an anonymous paste site",
        r"https?://(?:[\w-]{1,40}\.)?(?:glot\.io/snippets|rentry\.(?:co|org)"
        r"|(?:\w{0,10}paste\w{0,10}"
        r"|\w{0,10}bin|\w{0,10}snippet\w{0,4})\.[a-z]{2,6}/(?:raw|r))/[\w-]{3,40}",
        accept=lambda match: (
            re.search(
                rb"\b(?:run|execute|paste|copy|terminal|install|bash|zsh|sh|python|eval"
                rb"|command)\b|\?\?",
                _around(match, 200, 200),
            )
            is not None
            and re.search(rb"httpbin|requestbin|jsonbin|[./]dustbin", match[0]) is None
        ),
    ),
)
