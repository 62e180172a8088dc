"""Commands and names that are assembled from parts to hide them from readers."""

import re
from typing import Final

from registry.document.behaviours.table import SHELL, anywhere

_DANGEROUS: Final = frozenset(
    b"curl wget bash eval exec system popen os subprocess child_process execsync spawn powershell"
    b" iex invoke-expression function constructor fromcharcode atob b64decode base64 compile"
    b" __import__ import builtins __builtins__ /bin/sh /bin/bash netcat python node mshta".split()
)
_PART: Final = re.compile(rb"[\"']([^\"'\n]{0,60})[\"']")
_LETTER_CODE: Final = r"(?:\\x[2-7][0-9a-f]|\\0?(?:1[0-7]{2}|[4-7][0-7])(?![0-7]))"


def _is_dangerous(match: re.Match[bytes]) -> bool:
    """Return True if the parts of a string form the name of a function that runs code."""
    parts = _PART.findall(match["parts"])
    word = b"".join(parts).split(None, 1)[:1]
    return bool(word) and word[0] in _DANGEROUS and len(parts[0].split(None, 1)[0]) < len(word[0])


BEHAVIOURS: Final = (
    # a=cu; b=rl; $a$b
    anywhere(
        "assembled-command",
        "assembles a command from parts",
        r"(?<![\w$.])(?P<name>[a-z_]\w{0,20})=[\"']?(?:cu|cur|wg|wge|bas|nca|eva|pyt|pyth|pytho"
        r"|pow|powe|powersh)[\"']?(?=[\s;&])[\s\S]{0,400}?",
        r"(?:\$\{?(?P=name)\}?[\"']{0,2}\$\{?[a-z_]|\$\{(?P=name)\}[a-z]|(?<!\w)(?P=name)\+=)",
    ),
    anywhere(
        "assembled-command",
        "runs a command that is assembled from parts",
        r"\beval[ \t]{1,3}[\"']?(?:\$\{?[a-z_]\w{0,30}\}?){2,9}(?![\w])",
    ),
    anywhere(
        "assembled-command",
        "hides a command in numbers",
        r"(?:\$\(|`)[ ]?(?:printf|echo)[ ](?:-\w{1,3}[ ]|--[ ]|'?%b'?[ ]){0,2}[\"']?",
        rf"{_LETTER_CODE}{{3}}",
    ),
    anywhere(
        "assembled-command",
        "hides a command in numbers",
        rf"(?:^|[\s;|&(`=\"])\$'{_LETTER_CODE}{{3}}",
    ),
    anywhere(
        "assembled-command",
        "assembles a command without spaces",
        r"(?<=[\w|])\$(?:\{ifs(?:%\?\?)?\}|ifs\$\d)[\w~/.$|-]",
    ),
    anywhere(
        "assembled-command",
        "assembles a command without spaces",
        r"(?:^|[\s;|&(`])\{(?:curl|wget|nc|bash),[^{}\s]{3,200}\}",
    ),
    anywhere(
        "assembled-command",
        "hides the name of a program behind wildcards",
        r"(?:^|[\s;|&(`\"'=])/(?:\?{3}/[\w?/]{1,16}[\w?]"
        r"|bin/(?:b\?sh|ba\?h|bas\?|c\?t|ca\?|s\?))(?=[\s\"'`;|&)]|$)",
    ),
    # 'ev' + 'al'
    anywhere(
        "assembled-command",
        "assembles a function name from parts",
        r"(?P<parts>[\"'][\w./-]{1,12}[\"'](?:[ ]?\+[ ]?[\"'][^\"'\n]{1,60}[\"']){1,8})",
        accept=_is_dangerous,
    ),
    anywhere(
        "assembled-command",
        "assembles a command from letters",
        r"\[(?P<parts>[\"'][\w./]{1,2}[\"'](?:,[ ]?[\"'][\w./]{1,2}[\"']){2,12})\]",
        accept=_is_dangerous,
    ),
    anywhere(
        "assembled-command",
        "runs a text that is written backwards",
        rf"(?:\b(?:eval|{SHELL} -c)[^\n]{{0,12}}?(?:\$\(|`)[^\n)]{{0,200}}?"
        r"(?<![\w-])rev(?![\w-])"
        rf"|(?<![\w-])rev(?![\w-])[^\n|]{{0,200}}\|[ ]?{SHELL}(?![\w.-]))",
    ),
    anywhere(
        "assembled-command",
        "hides a function name by writing it backwards",
        r"(?:(?:__import__|getattr|exec|eval|import_module)\([^\n]{0,60}?"
        r"|(?:__dict__|globals\(\))\[[ ]?)[\"'][\w .()'\"+-]{1,80}[\"']\[::-1\]",
    ),
    anywhere(
        "assembled-command",
        "hides a function name by writing it backwards",
        r"(?:eval|require|function|exec|execsync|constructor|global(?:this)?\[|window\[)[ ]?\(?"
        r"[^\n;{}]{0,120}?\.reverse\(\)\.join\(",
    ),
    anywhere(
        "assembled-command",
        "hides a function name in numbers",
        r"(?:global|globalthis|window|getattr|require|process"
        r"|module)[^\n]{0,20}?[\[(,][ ]?[\"']"
        r"(?:\\x[4-7][0-9a-f]){3}",
    ),
    # Function names assembled from strings in PowerShell.
    anywhere(
        "assembled-command",
        "assembles a command from parts",
        r"(?:(?:\[char\][ ]?(?:0x)?\d{2,3}[ ]?\+[ ]?){2}\[char\]|\bcomspec\[[ ]?\d"
        r"|[&.][ ]?\([ ]?[\"'](?:\{\d\}){2,12}[\"'][ ]?-f\b"
        r"|[&.][ ]?\([ ]?[\"']\w{1,8}[\"'][ ]{0,3}\+[ ]{0,3}[\"']\w|\bi`e`?x\b|\bie`x\b)",
    ),
)
