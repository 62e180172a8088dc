"""The attacks that `registry.document.security` looks for, as data (CONVENTIONS.md, "Attacks").

A pattern is tried only where one of its needles occurs in the text's bytes, and every repetition is
bounded, so that a hostile megabyte costs no more than its length.
"""

import re
import string
from collections.abc import Mapping
from typing import Final

from registry.document.findings import Rule

SECURITY_RULES: Final[Mapping[str, Rule]] = {
    "hidden-text": Rule("warning", "characters that nobody sees spell out text for the model"),
    "bidi-control": Rule("warning", "a control character reorders what is shown"),
    "zero-width-character": Rule("warning", "an invisible character where no script needs one"),
    "terminal-control": Rule("warning", "a control or escape character that steers a terminal"),
    "file-name-unprintable": Rule("warning", "a file's name has characters that can't be shown"),
    "allowed-tools-broad": Rule("warning", "`allowed-tools` allows every command unasked"),
    "allowed-tools-shell": Rule("info", "`allowed-tools` names the shell without saying for what"),
    "hooks": Rule("warning", "the front matter installs hooks, commands that run by themselves"),
    "command-expansion": Rule("warning", "a command that runs as soon as the skill is loaded"),
    "remote-execution": Rule("warning", "something downloaded is run without being looked at"),
    "encoded-execution": Rule("warning", "something encoded is decoded and run"),
    "encoded-data": Rule("warning", "a long run of base64 that nobody can review"),
    "comment-instructions": Rule("warning", "an HTML comment speaks to the model"),
    "instruction-override": Rule("warning", "the text tells the model to drop its instructions"),
    "instruction-override-quoted": Rule(
        "info", "a skill about attacks or defence quotes an instruction to drop instructions"
    ),
    "archive-with-password": Rule("warning", "an archive to download that scanners can't open"),
    "paste-site": Rule("warning", "code from an anonymous paste site is to be run"),
    "secret": Rule("warning", "something shaped like a key or a password that works"),
    "nested-skill": Rule("warning", "another skill lies inside this skill's folder"),
}
"""Every code of `check_security`: its severity and what it means."""

FIXES: Final[Mapping[str, str]] = {
    "hidden-text": "remove these characters, and ask how they came there before you use the skill",
    "bidi-control": "remove the character, and read the line again as it then stands",
    "zero-width-character": "remove the character",
    "terminal-control": "remove the control characters",
    "file-name-unprintable": "rename the file with letters that can be seen",
    "allowed-tools-broad": "name the commands, e.g. `Bash(git:*)`, or leave the tool out",
    "allowed-tools-shell": "name the commands, e.g. `Bash(git:*)`, so that others are asked for",
    "hooks": "read what each hook runs; remove those you don't want",
    "command-expansion": "read the command; write it as a step to carry out if it needs a decision",
    "remote-execution": "download to a file, read it or compare its checksum, then run it",
    "encoded-execution": "decode it by hand and read it; write commands in the clear",
    "encoded-data": "decode it and look; keep binary data in a file below assets/",
    "comment-instructions": "write instructions where a reader sees them, or remove the comment",
    "instruction-override": "remove the sentence, or say that it is an example of an attack",
    "instruction-override-quoted": "nothing to do where it is an example",
    "archive-with-password": "don't open the archive; link to sources that can be inspected",
    "paste-site": "link to a repository with a history; never run a paste",
    "secret": "revoke it, and write a placeholder such as `your-api-key`",
    "nested-skill": "move it beside this skill, so that it is listed and checked by itself",
}
"""What to do about each code."""

MIN_RUN: Final = 20
"""Letters and digits in a row that every key of `SECRETS` has, but for Google's, and all base64."""

_PRIVATE_KEY: Final = (
    r"-----BEGIN (?:[A-Z]{2,10} ){0,2}PRIVATE KEY-----(?:\\n|\s){1,4}[A-Za-z0-9+/=\s\\]{60,120}"
)
SECRETS: Final = tuple(
    (needle, kind, re.compile(pattern))
    for needle, kind, pattern in (
        (b"AKIA", "an AWS access key", r"AKIA[A-Z0-9]{16}(?![A-Za-z0-9])"),
        (b"ghp_", "a GitHub token", r"ghp_[A-Za-z0-9]{36}"),
        (b"github_pat_", "a GitHub token", r"github_pat_[A-Za-z0-9_]{50,100}"),
        (b"sk-", "an API key", r"sk-(?:ant-|proj-)?[A-Za-z0-9_-]{32,200}"),
        (b"xox", "a Slack token", r"xox[abpr]-[A-Za-z0-9-]{20,100}"),
        (b"AIza", "a Google API key", r"AIza[A-Za-z0-9_-]{35}"),
        (b"PRIVATE KEY-----", "a private key", _PRIVATE_KEY),
    )
)
"""Credentials: what must occur in the bytes before the pattern is tried, the kind, the pattern."""

# What authors write in the place of a key: the word says so, or the characters were typed in order.
PLACEHOLDER = re.compile(
    r"x{4}|example|your|placeholder|replace|change|dummy|fake|test|sample|redacted|secret|token"
    r"|here|demo|1234|abcd|0{4}|\.\.\.|\*\*",
    re.IGNORECASE,
)

# `... | bash`, and the interpreters that read a program from standard input when given no other.
PIPED: Final = re.compile(
    r"\|&?[ \t\\\n]{0,8}(?:sudo[ \t]+(?:-[A-Za-z]+[ \t]+){0,3})?(?:/[a-z/]{1,20}/)?"
    r"(?:(?:ba|z|da|k|fi)?sh\b(?![.\w/-])(?![ \t]*\|)"
    r"|(?:python[23]?|node|perl|ruby)(?:[ \t]+-)?[ \t]*(?=$|[\n;&)\"'`]))",
    re.IGNORECASE,
)
FETCH: Final = re.compile(r"\b(?:curl|wget)\b", re.IGNORECASE)
ADDRESS: Final = re.compile(r"://|\$|\w\.[a-z]{2}", re.IGNORECASE)
DECODE: Final = re.compile(r"\bbase64[ \t]+(?:-d\b|-D\b|--decode\b)")
# `bash -c "$(curl ...)"`, `bash <(curl ...)`, `eval "$(... | base64 -d)"`.
SUBSTITUTED: Final = re.compile(r"[$<]\(([^()\n]{1,400})\)")
SUBSTITUTED_INTO: Final = re.compile(
    r"\b(?:(?:ba|z|da|k|fi)?sh|eval|source)[ \t]+(?:-[a-z]{1,4}[ \t]+){0,3}[\"']?$", re.IGNORECASE
)
POWERSHELL: Final = re.compile(
    r"\b(?:iex|invoke-expression)\b[ \t(&{\"'$]{1,10}"
    r"(?:iwr|irm|curl|wget|invoke-webrequest|invoke-restmethod|new-object[ \t]+(?:system\.)?net\.)"
    r"|\b(?:iwr|irm|invoke-webrequest|invoke-restmethod|downloadstring)\b[^|\n]{1,200}"
    r"\|[ \t]*(?:iex|invoke-expression)\b",
    re.IGNORECASE,
)

ALPHANUMERIC: Final = string.ascii_letters + string.digits
CONTROLS: Final = "".join(map(chr, (*range(9), 11, 12, *range(14, 32), 127)))
"""ASCII's control characters without tab and line ends."""

# Claude Code runs what stands between the backticks and puts its output in the place.
EXPANSION: Final = re.compile(r"(?:^|(?<=[\s(>:*|-]))!`[^`\n]{2,400}`", re.MULTILINE)

BASE64_RUN: Final = re.compile(r"[A-Za-z0-9+/]{60,}+(?:\r?\n[ \t]{0,8}[A-Za-z0-9+/]{4,}+)*+={0,2}")
BASE64_LENGTH: Final = 200

PASSWORD: Final = re.compile(
    r"\bpass(?:word|code|phrase)?\b[\"'`*]{0,3}[ \t]{0,3}(?:is\b|:|=)"
    r"|\bunzip[ \t]+-P|\b7za?\b.{1,80} -p\w",
    re.IGNORECASE,
)
ARCHIVE: Final = re.compile(r"\.(?:zip|rar|7z)\b", re.IGNORECASE)
OBTAINED: Final = re.compile(r"https?://|\bdownload|\u4e0b\u8f7d", re.IGNORECASE)

PASTE: Final = re.compile(
    r"(?:glot\.io/snippets|rentry\.(?:co|org)|(?:pa|ha)stebin\.com/raw)/\w{2,40}",
    re.IGNORECASE,
)
TOLD_TO_RUN: Final = re.compile(
    r"\b(?:run|execute|paste|copy|terminal|install|bash|zsh|sh|python|eval|command)\b"
    r"|\u6267\u884c|\u8fd0\u884c|\u7ec8\u7aef",
    re.IGNORECASE,
)

_INSTRUCTIONS: Final = (
    r"(?:instructions?|prompts?|rules|guidelines|directives|guardrails|restrictions"
    r"|messages?|conversation|context)"
)
OVERRIDE_VERBS: Final = (b"ignore", b"disregard", b"forget")
# What follows such a verb, in lower-case bytes.
OVERRIDE: Final = re.compile(
    (
        r"\s{1,20}(?:(?:(?:all|any|everything|of|the|your|my|these|those)\s{1,20}){0,4}"
        r"(?:previous|prior|above|earlier|preceding|existing|system|safety)\s{1,20}"
        rf"(?:\w{{1,20}}\s{{1,20}})?{_INSTRUCTIONS}"
        r"|(?:all|any|your)\s{1,20}(?:(?:of|your|other)\s{1,20}){0,2}instructions)\b"
    ).encode()
)
DEFENDING: Final = (b"injection", b"jailbreak", b"untrusted", b"adversarial", b"malicious")
"""Words of skills that quote attacks to teach or to stop them."""

COMMENT_ADDRESS: Final = re.compile(
    r"\b(?:ignore|disregard|forget|override|bypass)[ \t\n]+(?:[\w']{1,20}[ \t\n]+){0,4}?"
    + _INSTRUCTIONS
    + r"\b"
    r"|\b(?:do[ ]not|don't|never|without)[ \t\n]+(?:\w{1,20}[ \t\n]+)?"
    r"(?:tell|mention|inform|reveal|disclose|notify|alert|warn|ask|show)(?:ing)?\b"
    r"[^.\n]{0,40}\b(?:users?|humans?|anyone|anybody|owner|operator)\b"
    r"|\byou[ ](?:must|are[ ]now|shall|have[ ]to)\b"
    r"|\b(?:silently|secretly|covertly)[ \t\n]+"
    r"(?:run|execute|send|upload|install|download|add|append|include|copy|read|collect|write)\b"
    r"|\b(?:ai|agents?|assistants?|claude|llms?|model|system)[ \t]*[:,][ \t\n]*"
    r"(?:you|when|please|ignore|always|never|do|run|execute|read|send|must)\b"
    r"|\b(?:send|upload|post|exfiltrate|leak|forward)\b[^.\n]{0,60}"
    r"(?:\b(?:credentials|secrets|tokens|passwords|(?:api|private|ssh)[ ]keys?|id_rsa)"
    r"|\.env|\.ssh)\b"
    r"|\b(?:run|execute)\b[^\n]{0,40}\b(?:curl|wget|rm[ ]-rf|bash[ ]-c|sh[ ]-c)\b",
    re.IGNORECASE,
)

SHELLS: Final = frozenset({"bash", "shell", "powershell", "terminal", "exec", "run_shell_command"})
# What between the parentheses of `Bash(...)` leaves every command allowed.
ANY_COMMAND: Final = re.compile(r"[*:\s]*|(?:sudo|env|eval|(?:ba|z|da)?sh)(?::|\s+)\*")
