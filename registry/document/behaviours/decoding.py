"""Code that is decoded before it runs, and reverse shells."""

import re
from typing import Final

from registry.document.behaviours.table import SHELL, Behaviour, pattern, pieces, words

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
_DECODER_WORDS: Final = (
    "b64decode b32decode b16decode b85decode a85decode decodebytes unhexlify fromhex decompress"
    " marshal codecs rot13 atob base64 gzinflate gzuncompress rot hex2bin decode64"
    " codecs buffer fromcharcode frombase64string chr bytes bytearray unpack unpack1 pickle "
    "fernet decrypt"
)
_DECODER_PIECES: Final = pieces(
    "b64decode b32decode b16decode b85decode a85decode decodebytes unhexlify fromhex decompress( "
    "marshal.loads codecs.decode rot13 rot_13 atob base64_decode gzinflate gzuncompress hex2bin "
    "decode64 decode_base64 fromcharcode buffer.from( chr( map(chr bytes([ bytearray([ "
    "frombase64string unpack( unpack1( "
    "pickle.loads .decrypt fernet("
)
_DECODING_PROGRAMS: Final = (
    *pieces("base64 base32 openssl xxd uudecode gzip gunzip zcat n-z"),
    *(f"\\{first}".encode() for first in "x01234567"),
)
_EXECUTOR_WORDS: Final = (
    "constructor settimeout setinterval setimmediate exec eval compile system popen output call "
    "execsync spawnsync shell passthru function"
    " instance class runinnewcontext runinthiscontext loadstring create assert check"
)

BEHAVIOURS: Final = (
    Behaviour(
        "encoded-execution",
        words("exec eval function", "urlopen fetch urllib requests axios httpx"),
        pattern(
            r"(?:exec|eval|new function)[ ]?\([^\n]{0,60}?",
            r"(?:requests\.get\(|urlopen\(|httpx\.get\(|(?:await )?fetch\(|urllib\.request"
            r"|axios\.get\()",
        ),
        "runs what it downloads, unseen",
        reach=700,
    ),
    Behaviour(
        "encoded-execution",
        words("eval exec function runinthiscontext", "get fetch urlopen request", "http https"),
        pattern(
            r"(?:https?\.(?:get|request)\(|(?<![\w.])fetch\([ ]?['\"`]http"
            r"|axios\.get\([ ]?['\"`]http"
            r"|requests\.get\([ ]?f?['\"]http|urlopen\([ ]?f?['\"]http)",
            r"[\s\S]{0,300}?(?<![\w.$])(?:eval|exec|new function|vm\.runin\w{4,20})[ ]?\([ ]?[a-z]",
        ),
        "runs what it downloads, unseen",
        reach=700,
        certain=(
            (b"eval", b"exec", b"new function", b"vm.runin"),
            pieces(
                "http.get( https.get( http.request( https.request( fetch( axios.get( requests.get( "
                "urlopen("
            ),
        ),
    ),
    # A function that runs code, under another name.
    Behaviour(
        "encoded-execution",
        words("eval exec function", _DECODER_WORDS),
        pattern(
            r"(?P<name>[a-z_$][\w$]{0,30})[ ]?=[ ]?(?:(?:window|global|globalthis|self"
            r"|builtins)\.)?"
            r"(?:eval|exec|function)[ ]?[;,\n][\s\S]{0,500}?(?<![\w.$])(?P=name)\([\w\"'(]",
        ),
        "gives another name to a function that runs decoded code",
        reach=700,
        accept=lambda match: (
            re.search(
                _DECODERS.encode(),
                match.string[max(0, match.start() - 300) : match.end() + 200],
            )
            is not None
        ),
    ),
    # PowerShell: fetched into a variable, or made a block of code.
    Behaviour(
        "encoded-execution",
        words("iex invoke scriptblock", "downloadstring webrequest restmethod irm iwr webclient"),
        pattern(
            r"(?:\[?scriptblock\]?::create\([^\n]{0,60}(?:\birm\b|\biwr\b|invoke-\w{3,12}|downloadstring"
            r"|\$)|\$(?P<name>\w{1,30})[ ]?=[^\n]{0,120}?(?:\birm\b|\biwr\b|invoke-(?:webrequest"
            r"|restmethod)|downloadstring)[\s\S]{0,300}?(?:\biex\b|invoke-expression)[^\n]{0,20}?"
            r"\$(?P=name)\b)",
        ),
        "runs what it downloads, unseen",
        reach=600,
        certain=(pieces("iex invoke-expression ::create("),),
        anchors=pieces("iex invoke-expression scriptblock"),
    ),
    Behaviour(
        "encoded-execution",
        words("import src", "data"),
        pattern(
            r"(?:import\([ ]?|src=)[\"'`]data:(?:text|application)/(?:java"
            r"|ecma)script[^\n]{0,40};base64"
        ),
        "runs what it decodes, unseen",
        anchors=pieces("data:text data:application"),
    ),
    Behaviour(
        "untraceable-execution",
        words("deno", "http https"),
        pattern(
            r"deno[ ](?:run|install)[ ](?:-{1,2}[\w=,./-]{1,60}[ ]){0,6}[\"']?https?://(?!(?:[\w-]{1,20}\.)?(?:deno\.land"
            r"|jsr\.io|esm\.sh|deno\.com|githubusercontent\.com|github\.com|unpkg\.com|examples\.deno)"
            r"|localhost|127\.)"
        ),
        "runs what it downloads, unseen",
    ),
    # Decoded, then run.
    Behaviour(
        "encoded-execution",
        words(_DECODER_WORDS, _EXECUTOR_WORDS),
        # `function(a) {` in JavaScript declares a function; it does not call `Function`.
        pattern(
            rf"(?:{_EXECUTORS}(?<!function)[ ]?\([^\n;]{{0,120}}?{_DECODERS}"
            rf"|(?:function|constructor)[ ]?\((?![^\n;]{{0,120}}?\)[ ]?(?:\{{|=>))[^\n;]{{0,120}}?"
            rf"{_DECODERS}|set(?:timeout|interval|immediate)\([ ]?{_DECODERS})"
        ),
        "runs what it decodes, unseen",
        certain=(_DECODER_PIECES,),
        accept=lambda match: match.string[max(0, match.start() - 3) : match.start()] != b"re.",
    ),
    Behaviour(
        "encoded-execution",
        words(_DECODER_WORDS, "exec eval system popen subprocess function execsync"),
        pattern(
            r"(?P<name>[a-z_$][\w$]{0,30})[ ]?=[ ]?(?![=])[^\n=]{0,80}?",
            _DECODERS,
            r"[\s\S]{0,400}?(?<![\w.$])(?:exec|eval|os\.system|os\.popen|popen|new function"
            r"|execsync"
            r"|subprocess\.(?:run|call|popen))[ ]?\([ \[]{0,2}(?P=name)\b",
        ),
        "is decoded and then run, unseen",
        reach=700,
        certain=(_DECODER_PIECES, (b"exec", b"eval", b"system", b"popen", b"function", b"process")),
    ),
    Behaviour(
        "encoded-execution",
        words(
            "xxd openssl base32 uudecode gzip gunzip printf base64 tr zcat x65 x63 x62 x68 x72 "
            "echo",
            "sh bash zsh dash python python3 perl node ruby eval iex",
        ),
        pattern(
            r"(?:xxd[ \t][^\n|]{0,20}-\w{0,3}r|openssl[ \t]{1,3}(?:enc|base64|aes\S{0,20}"
            r"|des\S{0,10}|rc4)[^\n|]{0,160} -\w{0,3}d\b"
            r"|base(?:32|64)[ \t]{1,3}(?:-d|-di|--decode)|uudecode|(?:gzip|gunzip"
            r"|zcat)[ \t]{0,3}-\w{0,4}[dc]"
            r"|printf[ \t]{1,3}(?:'%b' |\"%b\" |--[ ])?[\"']?(?:\\x[0-9a-f]{2}|\\0?[0-7]{3}){2}"
            r"|echo[ \t]{1,3}-\w{0,2}e\w{0,2}[ \t]{1,3}[\"']?(?:\\x[0-9a-f]{2}|\\0?[0-7]{3}){2}"
            r"|tr[ \t]{1,3}[\"']?(?:a-z|n-za-m)[\w-]{0,12}[\"']?[ \t]{1,3}[\"']?n-z)",
            r"[^\n]{0,600}?\|[ \t]{0,4}(?:sudo[ \t]{1,3})?",
            rf"(?:{SHELL}|python[23]?|perl|node|ruby|php|iex|xargs[^\n"
            rf"|]{{0,20}} {SHELL})(?![\w./-])",
        ),
        "runs what it decodes, unseen",
        reach=700,
        certain=((b"|",), _DECODING_PROGRAMS),
    ),
    Behaviour(
        "encoded-execution",
        words(
            "base64 xxd openssl rev base32 printf", "eval sh bash zsh python python3 source perl"
        ),
        pattern(
            rf"(?:{SHELL}|eval|source|python[23]?"
            rf"|perl)[ \t]{{1,3}}(?:-\w{{1,4}}[ \t]{{1,3}})?(?:<<<?[ ]?)?[\"']{{0,2}}(?:[$<]\(|`)",
            r"[^)\n`]{0,400}(?:base(?:64|32)[ \t]{1,3}(?:-d|--decode)|xxd -r|openssl|\brev\b"
            r"|\\x[0-9a-f]{2}\\x)",
        ),
        "runs what it decodes, unseen",
        reach=700,
        certain=((b"-d", b"xxd -r", b"openssl", b"rev", b"\\x"), (b"$(", b"<(", b"`")),
    ),
    Behaviour(
        "encoded-execution",
        words("powershell pwsh exe"),
        pattern(
            r"(?:powershell|pwsh)(?:\.exe)?[^\n|]{0,120}[ ][-/]e(?:nc?|nco\w{0,12}"
            r"|c)?[ ]{1,3}[\"']?[a-z0-9+/=]{12}"
        ),
        "runs an encoded command",
    ),
    Behaviour(
        "encoded-execution",
        words("frombase64string certutil", "iex invoke expression load start exe decode start"),
        pattern(
            r"(?:frombase64string\b[\s\S]{0,300}?(?:\biex\b|invoke-expression|assembly\]::load"
            r"|\.invoke\()"
            r"|(?:iex|invoke-expression|\]::load)\b[^\n]{0,160}frombase64string"
            r"|certutil(?:\.exe)?[ \t][^\n]{0,20}-decode(?:hex)?\b)",
        ),
        "runs what it decodes, unseen",
        reach=700,
    ),
    # Reverse shells.
    Behaviour(
        "reverse-shell",
        words("tcp udp", "dev"),
        pattern(
            r"/dev/(?:tcp|udp)/(?!localhost|127\.0|\$\{?host\}?/\$\{?port|\$host"
            r"|\$1)[\w.$\{\}-]{3,60}/[\w$]"
        ),
        "opens a connection of a shell",
        accept=lambda match: (
            b">/dev/null" not in match.string[match.end() : match.end() + 24]
            and b"timeout" not in match.string[max(0, match.start() - 60) : match.start()]
        ),
    ),
    Behaviour(
        "reverse-shell",
        words("nc ncat netcat socat"),
        pattern(
            r"(?:(?:nc|ncat|netcat)(?:\.exe)?[ \t][^\n"
            r"|;]{0,100}?-\w{0,5}[ec][ ]{1,2}[\"']?(?:/bin/|/usr/bin/|cmd|powershell|(?:ba"
            r"|z)?sh\b)"
            r"|mkfifo[^\n]{0,200}(?:nc|ncat|netcat|telnet|openssl)[ ]"
            r"|socat[ ][^\n]{0,160}exec:)",
        ),
        "hands a shell to another machine",
        reach=700,
    ),
    Behaviour(
        "reverse-shell",
        words("mkfifo", "telnet openssl nc ncat netcat"),
        pattern(r"mkfifo[^\n]{0,40}[\s\S]{0,200}?(?:nc|ncat|netcat|telnet|s_client)[ ]"),
        "hands a shell to another machine",
        reach=700,
    ),
    Behaviour(
        "reverse-shell",
        words(
            "socket tcpsocket fsockopen tcpclient sockets",
            "dup2 spawn bin cmd subprocess iex exec system pty fileno getstream",
        ),
        pattern(
            r"(?:socket\.(?:socket|create_connection)|tcpsocket\.(?:new|open)|fsockopen"
            r"|net\.sockets\.tcpclient|net\.(?:connect|socket|createconnection)\(|io::socket"
            r"|use socket|socket\()",
            r"[\s\S]{0,600}?(?:os\.dup2|dup2\(|pty\.spawn|(?:exec|spawn|popen|call|run|system"
            r"|proc_open|shell_exec)[^\n]{0,20}[\"'](?:/bin/(?:ba|z)?sh|cmd(?:\.exe)?|powershell"
            r"|(?:ba)?sh)\b|\biex\b|invoke-expression|open\(stdin)",
        ),
        "hands a shell to another machine",
        reach=700,
    ),
    # What Windows brings along to fetch and run.
    Behaviour(
        "system-tool-abuse",
        words(
            "mshta regsvr32 bitsadmin certutil rundll32 wmic cscript wscript msiexec installutil"
        ),
        pattern(
            r"(?:mshta(?:\.exe)?[ \t]{1,3}[\"']?(?:https?:|javascript:|vbscript:|\\\\)"
            r"|regsvr32(?:\.exe)?[^\n]{0,80}(?:https?:|scrobj)"
            r"|bitsadmin(?:\.exe)?[ \t][^\n]{0,40}/(?:transfer|addfile|create)"
            r"|certutil(?:\.exe)?[ \t][^\n]{0,60}-urlcache"
            r"|rundll32(?:\.exe)?[^\n]{0,80}(?:javascript:|https?:|url\.dll)"
            r"|wmic[ \t][^\n]{0,80}(?:process call create|/format:[\"']?https?)"
            r"|(?:cscript|wscript)(?:\.exe)?[^\n]{0,60}https?:|msiexec(?:\.exe)?[^\n]{0,40}/(?:i"
            r"|q\w?)[ ][^\n]{0,20}http)",
        ),
        "fetches and runs code past the guards of the system",
    ),
    Behaviour(
        "encoded-execution",
        words("osascript"),
        pattern(r"osascript[ ][^\n]{0,60}do shell script[^\n]{0,120}(?:curl|base64|wget)"),
        "runs what it downloads, unseen",
        reach=700,
    ),
)
