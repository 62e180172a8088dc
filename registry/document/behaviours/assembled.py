"""Commands and names that are assembled from parts, so that a reader doesn't see them."""

import re
from typing import Final

from registry.document.behaviours.table import Behaviour, pattern, pieces, words

_BEGUN: Final = "cu cur wg wge bas ncat eva pyt pyth pytho powe powersh pow ncat sys subpro"
"""Beginnings of the names of commands."""

_DANGEROUS: Final = frozenset(
    b"curl wget bash eval exec system popen os subprocess child_process execsync spawn powershell"
    b" iex invoke-expression function constructor fromcharcode atob b64decode base64 compile"
    b" __import__ import builtins __builtins__ /bin/sh /bin/bash netcat python node mshta".split()
)
_CODES: Final = words(
    " ".join(f"x{code:x} {code:o}" for code in (*range(0x61, 0x7B), 0x20, 0x2F)) + " 057 040"
)
"""Codes of lower-case letters, in hexadecimal and octal."""

_PART: Final = re.compile(rb"[\"']([^\"'\n]{0,60})[\"']")
_LETTER_CODE: Final = r"(?:\\x[2-7][0-9a-f]|\\0?(?:1[0-7]{2}|[4-7][0-7])(?![0-7]))"


def _is_dangerous(match: re.Match[bytes]) -> bool:
    """Return True if the parts of a string are the name of something that runs code."""
    parts = _PART.findall(match["parts"])
    word = b"".join(parts).split(None, 1)[:1]
    return bool(word) and word[0] in _DANGEROUS and len(parts[0].split(None, 1)[0]) < len(word[0])


BEHAVIOURS: Final = (
    # a=cu; b=rl; $a$b
    Behaviour(
        "assembled-command",
        words(_BEGUN),
        pattern(
            r"(?<![\w$.])(?P<name>[a-z_]\w{0,20})=[\"']?(?:cu|cur|wg|wge|bas|nca|eva|pyt|pyth|pytho"
            r"|pow|powe|powersh)[\"']?(?=[\s;&])[\s\S]{0,400}?",
            r"(?:\$\{?(?P=name)\}?[\"']{0,2}\$\{?[a-z_]|\$\{(?P=name)\}[a-z]|(?<!\w)(?P=name)\+=)",
        ),
        "is a part of a command that is put together",
        reach=500,
    ),
    Behaviour(
        "assembled-command",
        words("eval"),
        pattern(r"\beval[ \t]{1,3}[\"']?(?:\$\{?[a-z_]\w{0,30}\}?){2,9}(?![\w])"),
        "runs a command that is put together from parts",
        reach=200,
        certain=((b"eval ", b"eval\t"), (b"$",)),
    ),
    Behaviour(
        "assembled-command",
        (*words("printf echo"), *_CODES),
        pattern(
            r"(?:\$\(|`)[ ]?(?:printf|echo)[ ](?:-\w{1,3}[ ]|--[ ]|'?%b'?[ ]){0,2}[\"']?",
            rf"{_LETTER_CODE}{{3}}",
        ),
        "is a command that is written in numbers",
        certain=((b"\\x", b"\\0", b"\\1", b"\\4", b"\\5", b"\\6", b"\\7"),),
    ),
    Behaviour(
        "assembled-command",
        _CODES,
        pattern(rf"(?:^|[\s;|&(`=\"])\$'{_LETTER_CODE}{{3}}"),
        "is a command that is written in numbers",
        anchors=(b"$'\\",),
        reach=40,
    ),
    Behaviour(
        "assembled-command",
        words("ifs"),
        pattern(r"(?<=[\w|])\$(?:\{ifs(?:%\?\?)?\}|ifs\$\d)[\w~/.$|-]"),
        "puts a command together without spaces",
        reach=40,
    ),
    Behaviour(
        "assembled-command",
        words("curl wget nc bash"),
        pattern(r"(?:^|[\s;|&(`])\{(?:curl|wget|nc|bash),[^{}\s]{3,200}\}"),
        "puts a command together without spaces",
        anchors=pieces("{curl {wget {nc {bash"),
        reach=40,
    ),
    Behaviour(
        "assembled-command",
        words("b n c sh at ash ba bas nc cat bash ca"),
        pattern(
            r"(?:^|[\s;|&(`\"'=])/(?:\?{3}/[\w?/]{1,16}[\w?]"
            r"|bin/(?:b\?sh|ba\?h|bas\?|c\?t|ca\?|s\?))(?=[\s\"'`;|&)]|$)"
        ),
        "names a program by wildcards",
        anchors=pieces("/???/ /bin/b?sh /bin/ba?h /bin/bas? /bin/c?t"),
        reach=60,
    ),
    # 'ev' + 'al'
    Behaviour(
        "assembled-command",
        words(
            "global globalthis window getattr require exec eval constructor builtins dict system "
            "popen subprocess execsync spawn"
        ),
        pattern(r"(?P<parts>[\"'][\w./-]{1,12}[\"'](?:[ ]?\+[ ]?[\"'][^\"'\n]{1,60}[\"']){1,8})"),
        "is a name that is put together from parts",
        anchors=(b"'+'", b'"+"', b"' + '", b'" + "'),
        reach=140,
        accept=_is_dangerous,
    ),
    Behaviour(
        "assembled-command",
        words("import getattr exec eval globals dict reverse system"),
        pattern(
            r"(?:(?:__import__|getattr|exec|eval|import_module)\([^\n]{0,60}?"
            r"|(?:__dict__|globals\(\))\[[ ]?)[\"'][\w .()'\"+-]{1,80}[\"']\[::-1\]"
        ),
        "is a name that is written backwards",
        anchors=(b"[::-1]",),
        reach=160,
    ),
    Behaviour(
        "assembled-command",
        words("eval require function exec constructor", "reverse"),
        pattern(
            r"(?:eval|require|function|exec|execsync|constructor|global(?:this)?\[|window\[)[ ]?\(?"
            r"[^\n;{}]{0,120}?\.reverse\(\)\.join\("
        ),
        "is a name that is written backwards",
        certain=((b".reverse()",),),
    ),
    Behaviour(
        "assembled-command",
        words(
            "global globalthis window getattr require exec eval process",
            "x65 x63 x73 x66 x72 x67 x6f x65v x73y",
        ),
        pattern(
            r"(?:global|globalthis|window|getattr|require|process"
            r"|module)[^\n]{0,20}?[\[(,][ ]?[\"']"
            r"(?:\\x[4-7][0-9a-f]){3}"
        ),
        "is a name that is written in numbers",
        certain=((b"\\x",),),
    ),
    # PowerShell's ways.
    Behaviour(
        "assembled-command",
        words("char comspec powershell pwsh ps1 webclient iex downloadstring"),
        pattern(
            r"(?:(?:\[char\][ ]?(?:0x)?\d{2,3}[ ]?\+[ ]?){2}\[char\]|\bcomspec\[[ ]?\d"
            r"|[&.][ ]?\([ ]?[\"'](?:\{\d\}){2,12}[\"'][ ]?-f\b"
            r"|[&.][ ]?\([ ]?[\"']\w{1,8}[\"'][ ]?\+[ ]?[\"']\w|\bi`e`?x\b|\bie`x\b)"
        ),
        "puts a command together from parts",
        anchors=pieces("[char], comspec[, {0}, i`e, ie`x, &(, & ("),
        reach=160,
    ),
)
