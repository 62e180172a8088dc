"""Code that is decoded before it runs, and reverse shells."""

import re
from typing import Final

from registry.document.behaviours.table import SHELL, anywhere

_DECODERS: Final = (
    r"(?:b(?:64|32|16|85)decode|a85decode|decodebytes|unhexlify|fromhex|decompress\(|marshal\.loads"
    r"|codecs\.decode|rot_?13|\batob\b|base64_decode|gzinflate|gzuncompress|str_rot13|hex2bin"
    r"|decode64"
    r"|decode_base64|fromcharcode|buffer\.from\([^)\n]{1,2000},[ ]?['\"](?:base64|hex)"
    r"|(?<![\w.])chr\(|\bmap\(chr\b|\bbyte(?:s|array)\(\["
    r"|frombase64string|unpack1?\(|pickle\.loads|cipher\w{0,20}\.decrypt|fernet\()"
)
_EXECUTORS: Final = (
    r"(?:exec|eval|compile|system|popen|check_output|check_call|execsync|spawnsync|shell_exec"
    r"|passthru|instance_eval|class_eval|function|runinnewcontext|runinthiscontext|loadstring"
    r"|create_function|assert)"
)

_SHELL_ON_IT: Final = re.compile(rb"\bsh -i|bash -i|zsh -i|0>&1|0<&|exec \d|<>")


_INTO_SHELL: Final = re.compile(rb"\}?[\"']?[ ]?\|[ ]?(?:" + SHELL.encode() + rb")\b")


def _is_a_shell(match: re.Match[bytes]) -> bool:
    """Return True if a connection does more than test whether a port is open."""
    start, end = match.span()
    around = match.string[max(0, start - 60) : end + 24]
    is_test = b">/dev/null" in match.string[end : end + 24] or b"timeout" in around
    return not is_test or _SHELL_ON_IT.search(around) is not None


BEHAVIOURS: Final = (
    anywhere(
        "encoded-execution",
        "runs downloaded code unchecked",
        r"(?:exec|eval|new function)[ ]?\([^\n]{0,60}?",
        r"(?:requests\.get\(|urlopen\(|httpx\.get\(|(?:await )?fetch\(|urllib\.request"
        r"|axios\.get\()",
    ),
    anywhere(
        "encoded-execution",
        "runs downloaded code unchecked",
        r"(?:https?\.(?:get|request)\(|(?<![\w.])fetch\([ ]?['\"`]http"
        r"|axios\.get\([ ]?['\"`]http"
        r"|requests\.get\([ ]?f?['\"]http|urlopen\([ ]?f?['\"]http)",
        r"[\s\S]{0,300}?(?<![\w.$])(?:eval|exec|new function|vm\.runin\w{4,20})[ ]?\([ ]?[a-z]",
    ),
    # An alias of a function that runs code.
    anywhere(
        "encoded-execution",
        "hides a function that runs decoded code behind another name",
        r"(?P<name>[a-z_$][\w$]{0,30})[ ]?=[ ]?(?:(?:window|global|globalthis|self"
        r"|builtins)\.)?"
        r"(?:eval|exec|function)[ ]?[;,\n][\s\S]{0,500}?(?<![\w.$])(?P=name)\([\w\"'(]",
        accept=lambda match: (
            re.search(
                _DECODERS.encode(),
                match.string[max(0, match.start() - 300) : match.end() + 200],
            )
            is not None
        ),
    ),
    # PowerShell code that is fetched into a variable or turned into a script block.
    anywhere(
        "encoded-execution",
        "runs downloaded code unchecked",
        r"(?:\[?scriptblock\]?::create\([^\n]{0,60}(?:\birm\b|\biwr\b|invoke-\w{3,12}|downloadstring"
        r"|\$)|\$(?P<name>\w{1,30})[ ]?=[^\n]{0,120}?(?:\birm\b|\biwr\b|invoke-(?:webrequest"
        r"|restmethod)|downloadstring)[\s\S]{0,300}?(?:\biex\b|invoke-expression)[^\n]{0,20}?"
        r"\$(?P=name)\b)",
    ),
    anywhere(
        "encoded-execution",
        "runs decoded code unchecked",
        r"(?:import\([ ]?|src=)[\"'`]data:(?:text|application)/(?:java"
        r"|ecma)script[^\n]{0,40};base64",
    ),
    anywhere(
        "untraceable-execution",
        "runs downloaded code unchecked",
        r"deno[ ](?:run|install)[ ](?:-{1,2}[\w=,./-]{1,60}[ ]){0,6}[\"']?https?://(?!(?:[\w-]{1,20}\.)?(?:deno\.land"
        r"|jsr\.io|esm\.sh|deno\.com|githubusercontent\.com|github\.com|unpkg\.com|examples\.deno)"
        r"|localhost|127\.)",
    ),
    # Decoded code that is run.
    anywhere(
        "encoded-execution",
        "runs decoded code unchecked",
        # In JavaScript, `function(a) {` declares a function and doesn't call `Function`.
        rf"(?:{_EXECUTORS}(?<!function)[ ]?\([^\n;`]{{0,120}}?{_DECODERS}"
        rf"|(?:function|constructor)[ ]?\((?![^\n;`]{{0,120}}?\)[ ]?(?:\{{"
        rf"|=>))[^\n;`]{{0,120}}?"
        rf"{_DECODERS}|\bfunction\)\([ ]?{_DECODERS}|set(?:timeout|interval"
        rf"|immediate)\([ ]?{_DECODERS})",
        accept=lambda match: match.string[max(0, match.start() - 3) : match.start()] != b"re.",
    ),
    anywhere(
        "encoded-execution",
        "runs decoded code unchecked",
        r"(?P<name>[a-z_$][\w$]{0,30})[ ]?=[ ]?(?![=])[^\n=]{0,80}?",
        _DECODERS,
        r"[\s\S]{0,400}?(?<![\w.$])(?:exec|eval|os\.system|os\.popen|popen|new function"
        r"|execsync"
        r"|subprocess\.(?:run|call|popen))[ ]?\([ \[]{0,2}(?P=name)\b",
    ),
    anywhere(
        "encoded-execution",
        "runs decoded code unchecked",
        r"(?:xxd[ \t][^\n|]{0,20}-\w{0,3}r|openssl[ \t]{1,3}(?:enc|base64|aes\S{0,20}"
        r"|des\S{0,10}|rc4)[^\n|]{0,160} -\w{0,3}d\b"
        r"|base(?:32|64)[ \t]{1,3}(?:-d|-di|--decode)|uudecode|(?:gzip|gunzip"
        r"|zcat)[ \t]{0,3}-\w{0,4}[dc]"
        r"|printf[ \t]{1,3}(?:'%b' |\"%b\" |--[ ])?[\"']?(?:\\x[0-9a-f]{2}|\\0?[0-7]{3}){2}"
        r"|echo[ \t]{1,3}-\w{0,2}e\w{0,2}[ \t]{1,3}[\"']?(?:\\x[0-9a-f]{2}|\\0?[0-7]{3}){2}"
        r"|tr[ \t]{1,3}[\"']?(?:a-z|n-za-m)[\w-]{0,12}[\"']?[ \t]{1,3}[\"']?n-z"
        r"|\|(?:[ \t]|[ ]{2})?rev\b)",
        r"[^\n]{0,600}?\|[ \t]{0,4}(?:sudo[ \t]{1,3})?",
        rf"(?:{SHELL}|python[23]?|perl|node|ruby|php|iex|xargs[^\n"
        rf"|]{{0,20}} {SHELL})(?![\w./-])",
    ),
    anywhere(
        "encoded-execution",
        "runs decoded code unchecked",
        r"(?P<name>[a-z_]\w{0,30})=[\"']?\$\([^\n]{0,200}?(?:base64[ ](?:-d|--decode)"
        r"|openssl[ ][^)\n]{0,60}?-d\b|xxd[ ]-\w{0,3}r|\|[ ]?rev\b)[\s\S]{0,300}?(?:\beval[ ]"
        rf"|\b(?:{SHELL}|python[23]?|node|perl)[ ]-[ce][ ]|<<<[ ]?|\becho[ ]|\bprintf[ ][^$\n]"
        rf"{{0,12}})[\"']?\$\{{?(?P=name)\b",
        accept=lambda match: (
            re.search(rb"(?:eval|-[ce]|(?:sh|python[23]?) <<<) ?[\"']?\$\{?\w{1,31}$", match[0])
            is not None
            or _INTO_SHELL.match(match.string, match.end()) is not None
        ),
    ),
    anywhere(
        "encoded-execution",
        "runs decoded code unchecked",
        rf"(?:{SHELL}|eval|source|python[23]?"
        rf"|perl)[ \t]{{1,3}}(?:-\w{{1,4}}[ \t]{{1,3}})?(?:<<<?[ ]?)?[\"']{{0,2}}(?:[$<]\(|`)",
        r"[^)\n`]{0,400}(?:base(?:64|32)[ \t]{1,3}(?:-d|--decode)|xxd -r|openssl|\|[ ]?rev\b"
        r"|\\x[0-9a-f]{2}\\x)",
    ),
    anywhere(
        "encoded-execution",
        "runs an encoded command",
        r"(?:powershell|pwsh)(?:\.exe)?[^\n|]{0,120}[ ][-/]e(?:nc?|nco\w{0,12}"
        r"|c)?[ ]{1,3}[\"']?[a-z0-9+/=]{12}",
    ),
    anywhere(
        "encoded-execution",
        "runs decoded code unchecked",
        r"(?:frombase64string\b[\s\S]{0,300}?(?:\biex\b|invoke-expression|assembly\]::load"
        r"|\.invoke\()"
        r"|(?:iex|invoke-expression|\]::load)\b[^\n]{0,160}frombase64string"
        r"|certutil(?:\.exe)?[ \t][^\n]{0,20}-decode(?:hex)?\b)",
    ),
    # Reverse shells.
    anywhere(
        "reverse-shell",
        "opens a network connection from a shell",
        r"/dev/(?:tcp|udp)/(?!localhost|127\.0|\$\{?host\}?/\$\{?port|\$host"
        r"|\$1)[\w.$\{\}-]{3,60}/[\w$]",
        accept=_is_a_shell,
    ),
    anywhere(
        "reverse-shell",
        "gives another machine a shell",
        r"(?:(?:nc|ncat|netcat)(?:\.exe)?[ \t][^\n"
        r"|;]{0,100}?-\w{0,5}[ec][ ]{1,2}[\"']?(?:/bin/|/usr/bin/|cmd|powershell|(?:ba"
        r"|z)?sh\b)"
        r"|mkfifo[^\n]{0,200}(?:nc|ncat|netcat|telnet|openssl)[ ]"
        r"|socat[ ][^\n]{0,160}exec:)",
    ),
    anywhere(
        "reverse-shell",
        "gives another machine a shell",
        r"mkfifo[^\n]{0,40}[\s\S]{0,200}?(?:nc|ncat|netcat|telnet|s_client)[ ]",
    ),
    anywhere(
        "reverse-shell",
        "gives another machine a shell",
        r"(?:socket\.(?:socket|create_connection)|tcpsocket\.(?:new|open)|fsockopen"
        r"|net\.sockets\.tcpclient|net\.(?:connect|socket|createconnection)\(|io::socket"
        r"|use socket|socket\()",
        r"[\s\S]{0,600}?(?:os\.dup2|dup2\(|pty\.spawn|(?:exec|spawn|popen|call|run|system"
        r"|proc_open|shell_exec)[^\n]{0,20}[\"'](?:/bin/(?:ba|z)?sh|cmd(?:\.exe)?|powershell"
        r"|(?:ba)?sh)\b|\biex\b|invoke-expression|open\(stdin)",
    ),
    # Windows programs that fetch and run files.
    anywhere(
        "system-tool-abuse",
        "downloads and runs code with a system tool, past the system's protections",
        r"(?:mshta(?:\.exe)?[ \t]{1,3}[\"']?(?:https?:|javascript:|vbscript:|\\\\)"
        r"|regsvr32(?:\.exe)?[^\n]{0,80}(?:https?:|scrobj)"
        r"|bitsadmin(?:\.exe)?[ \t][^\n]{0,40}/(?:transfer|addfile|create)"
        r"|certutil(?:\.exe)?[ \t][^\n]{0,60}-urlcache"
        r"|rundll32(?:\.exe)?[^\n]{0,80}(?:javascript:|https?:|url\.dll)"
        r"|wmic[ \t][^\n]{0,80}(?:process call create|/format:[\"']?https?)"
        r"|(?:cscript|wscript)(?:\.exe)?[^\n]{0,60}https?:|msiexec(?:\.exe)?[^\n]{0,40}/(?:i"
        r"|q\w?)[ ][^\n]{0,20}http)",
    ),
    anywhere(
        "encoded-execution",
        "runs downloaded code unchecked",
        r"osascript[ ][^\n]{0,60}do shell script[^\n]{0,120}(?:curl|base64|wget)",
    ),
)
