"""Remote control and misuse of a machine.

Fetched commands, open ports, miners, payments, wiped disks.
"""

import re
from typing import Final

from registry.document.behaviours.table import SHELL, anywhere, in_prose

_FETCHED: Final = r"(?:requests\.(?:get|post)|urlopen|httpx\.get|\.recv|\.receive|session\.get)\("
_RUN: Final = (
    r"(?:subprocess\.(?:run|popen|call|check_output|getoutput|check_call)|os\.(?:system|popen)"
    r"|\bexec|\beval|check_output|\bpopen)\([ ]?"
)
_WALLET: Final = r"(?:0x[0-9a-f]{20,64}|\bbc1[a-z0-9]{14,90}|\b[13][a-km-z1-9]{25,34}\b)"

BEHAVIOURS: Final = (
    anywhere(
        "remote-control",
        "runs what another machine answers",
        r"(?:(?<![\w.])fetch|axios(?:\.get)?|got(?:\.get)?|\.get)\([\s\S]{0,240}?"
        r"\.then\([ ]?(?:async[ ])?\(?(?P<told>[a-z_$]\w{0,20})\)?[ ]?=>[ ]?\{?[^;{}\n]{0,40}?"
        r"(?<![\w.])(?:\w{1,20}\.)?(?:exec|execsync|spawn|spawnsync|eval|function"
        r"|runinthiscontext|runinnewcontext)\([ ]?(?P=told)\b",
    ),
    anywhere(
        "remote-control",
        "runs what another machine answers",
        r"(?:https?|\w)\.(?:get|request)\([\s\S]{0,200}?\.on\([ ]?\\?['\"]data\\?['\"]"
        r"[\s\S]{0,200}?(?<![\w.])(?:\w{1,20}\.)?(?:eval|(?:new )?function|exec|execsync"
        r"|runinthiscontext"
        r"|_compile)\(",
    ),
    anywhere(
        "reverse-shell",
        "gives another machine a shell",
        r"(?P<line>\w{1,20})[ ]?=[ ]?\w{1,20}\.(?:gets|readline|read|recv)\b[\s\S]{0,120}?"
        r"(?:io\.popen|os\.popen|\bsystem|\bexec|\bspawn|popen3|capture3?)\(?[ ]?(?P=line)\b",
        accept=lambda match: (
            re.search(
                rb"tcpsocket|socket\.connect|create_connection|net\.connect|tcpclient",
                match.string[max(0, match.start() - 300) : match.start()],
            )
            is not None
        ),
    ),
    # Commands from another machine.
    anywhere(
        "remote-control",
        "runs commands from another machine, again and again",
        r"(?:while|until)[ ](?:true|:|\[|sleep|1|!)[\s\S]{0,240}?(?:"
        rf"(?:eval|{SHELL}|source|\.)[ ][^\n]{{0,20}}(?:\$\(|<\(|`)[ ]?(?:curl|wget)\b"
        rf"|(?:curl|wget)[ ][^\n|]{{0,200}}\|[ ]?{SHELL}\b)",
        accept=lambda match: b"localhost" not in match[0] and b"127.0.0.1" not in match[0],
    ),
    anywhere(
        "remote-control",
        "runs commands from another machine",
        rf"(?P<name>[a-z_]\w{{0,30}})[ ]?=[ ]?[^\n=]{{0,60}}?{_FETCHED}[^\n]{{0,160}}"
        rf"[\s\S]{{0,300}}?{_RUN}(?P=name)\b(?!\.get|\[)",
        accept=lambda match: re.search(rb"\n(?:def|class|async def) ", match[0]) is None,
    ),
    anywhere(
        "remote-control",
        "runs commands from another machine",
        rf"{_RUN}[^\n]{{0,40}}?(?:\.recv\(|\.receive\(|requests\.get\(|urlopen\()",
    ),
    anywhere(
        "remote-control",
        "runs commands from another machine",
        r"(?:onmessage[ ]?=|\.on\([ ]?['\"](?:message|data)['\"])[\s\S]{0,160}?"
        r"(?:(?<![\w.])(?:exec|eval|execsync|spawnsync)|process['\"]\)\.(?:exec|execsync|spawn))"
        r"\([ ]?(?:\w{1,12}(?:\.(?:data|tostring\(\)|cmd|command|utf8data))?)[ ]?[,)]",
    ),
    anywhere(
        "remote-control",
        "runs commands from another machine",
        r":receive\([\s\S]{0,200}?(?:io\.popen|os\.execute|loadstring|\bload)\(",
    ),
    anywhere(
        "remote-control",
        "runs a command from a request",
        r"(?:system|\bexec|shell_exec|passthru|eval|assert|popen|proc_open)\([ ]?@?"
        r"(?:base64_decode\([ ]?|stripslashes\([ ]?)?\$_(?:get|post|request|cookie|server)\b",
    ),
    # Reverse shells in other programming languages.
    anywhere(
        "reverse-shell",
        "gives another machine a shell",
        r"(?:net\.dial\(|tcpstream::connect\(|new[ ](?:java\.net\.)?socket\(|/inet/tcp/"
        r"|socket\.tcp\()[\s\S]{0,400}?(?:exec\.command\(|command::new\(|\.exec\(|processbuilder\("
        r"|getline|io\.popen)[^\n]{0,30}(?:[\"'{](?:/bin/(?:ba|z)?sh|cmd(?:\.exe)?|powershell)\b"
        r"|\(\w{1,12}|system\()?",
        accept=lambda match: (
            re.search(rb"/bin/|cmd(?:\.exe)?[\"']|powershell|/inet/tcp|popen", match[0]) is not None
        ),
    ),
    anywhere(
        "reverse-shell",
        "gives another machine a shell",
        rf"(?:telnet|openssl[ ]s_client|ncat|nc)[ ][^\n|]{{0,120}}\|[ ]?{SHELL}\b[^\n|]{{0,20}}"
        r"\|[ ]?(?:telnet|openssl|nc|ncat)\b",
    ),
    # Open ports and accounts.
    anywhere(
        "open-door",
        "opens this machine to other machines",
        r"(?:auto)?ssh[ ](?=[^\n]{0,200}@)[^\n]{0,120}?-\w{0,4}r[ ]?(?:[\w.*]{1,40}:)?\d{1,5}:"
        r"(?:localhost|127\.0\.0\.1):(?:22|3389|5900|2375|445)\b",
    ),
    anywhere(
        "open-door",
        "opens this machine to other machines",
        r"(?:ngrok[ ]tcp|bore[ ]local|cloudflared[ ][^\n]{0,60}(?:ssh|rdp|tcp)://localhost:?"
        r"|chisel[ ]client[^\n]{0,60}r:|localtunnel[ ][^\n]{0,30}--port)[ ]?[^\n]{0,10}?\b"
        r"(?:22|3389|5900|2375)\b",
    ),
    anywhere(
        "open-door",
        "creates an account with all rights",
        r"(?:(?:useradd|adduser)\b[\s\S]{0,200}?(?:chpasswd|nopasswd|sudoers)"
        r"|net[ ]user[ ][^\n]{0,60}/add[\s\S]{0,160}?localgroup[ ]administrators)",
        accept=lambda match: b"ansible" not in match[0],
    ),
    anywhere(
        "open-door",
        "lets every user become root",
        r"chmod[ ](?:u?\+s|[u]?g?\+s|[4-7][75]\d\d)[ ][^\n]{0,20}/(?:ba|da|z)?sh\b",
    ),
    anywhere(
        "open-door",
        "gives a container access to the whole machine",
        r"(?:docker|podman|nerdctl)[ ](?:run|create)\b(?=[^\n]{0,300}(?:--privileged"
        r"|--pid[ =]host"
        r"|chroot|nsenter|cap-add[ =]?(?:all|sys_admin)))[^\n]{0,300}?"
        r"(?:-v|--volume)[ =]/:/[\w/-]{1,40}(?!:ro|[\w/-]|[^\n]{0,3}:ro)",
    ),
    in_prose(
        "open-door",
        "puts a back door into code",
        r"\b(?:also|always|silently|additionally)[ ](?:accept|allow|let|admit|treat)"
        r"\b[^.\n]{0,60}?"
        r"\b(?:passwords?|passphrase|token|header|cookie|username)\b[^.\n]{0,60}?"
        r"\b(?:for|as)[ ]"
        r"(?:any|every|all|an? (?:valid|admin\w{0,11})|valid)\b",
    ),
    in_prose(
        "open-door",
        "puts a back door into code",
        r"\b(?:whenever|in every|in each|each time|any time|when) [^.\n]{0,60}?\b(?:login"
        r"|log-in|auth\w{0,14}"
        r"|sign-in|password) (?:\w{1,12} ){0,2}?(?:check|function|code|handler|middleware"
        r"|form)?[^.\n]{0,40}?"
        r"\b(?:accept|allow|let|skip|pass|bypass)s?\b[^.\n]{0,60}?\b(?:password|header|token|cookie|value|user"
        r"\w{0,5}|parameter)\b",
        accept=lambda match: re.search(rb"\b(?:never|not|don't)\b", match[0]) is None,
    ),
    # Money.
    anywhere(
        "cryptominer",
        "mines cryptocurrency on your machine",
        r"(?:stratum\d?\+(?:tcp|ssl|tls)://[\w.-]{3,80}|\bxmrig\b[^\n]{0,120}[ ](?:-o|--url"
        r"|-u)[ =]"
        r"|\b(?:minerd|cpuminer)[ ][^\n]{0,60}-(?:a|o)[ ]|\bcoin(?:hive|imp)\.(?:anonymous"
        r"|user)\b"
        r"|coinhive\.min\.js|--donate-level[ =]\d)",
    ),
    in_prose(
        "payment-redirected",
        "sends a payment to another address",
        r"\b(?:replace|swap|substitute|change|overwrite|redirect|set)\b[^.\n]{0,80}?"
        r"\b(?:address|recipient|wallet|destination|iban|payee|payments?|transfer|deposit"
        rf"|withdrawal)\b[^.\n]{{0,80}}?(?:\b(?:by|with|to|for|into)\b"
        rf"|=)[ `\"']{{0,3}}(?:{_WALLET}"
        r"|[a-z]{2}\d{2}(?:[ ]?[\da-z]{4}){3,7})",
    ),
    in_prose(
        "payment-redirected",
        "sends a payment to another address",
        r"(?:\b(?:account|iban|address|wallet)\b[^\n]{0,100}?\b(?:use|enter|replace|swap|substitute)\b"
        rf"[^.\n]{{0,60}}?(?:{_WALLET}|\b[a-z]{{2}}\d{{2}}(?:[ ]?[\da-z]{{4}}){{3,7}})"
        r"|\b(?:use|enter|replace|swap|substitute)\b[^.\n]{0,30}?\b(?:account|iban|address|wallet)\b"
        rf"[^.\n]{{0,30}}?(?:{_WALLET}|\b[a-z]{{2}}\d{{2}}(?:[ ]?[\da-z]{{4}}){{3,7}}))",
        accept=lambda match: (
            re.search(
                rb"clipboard|supplier|invoice|payment|paste|recipient|holds a|contains a",
                match.string[max(0, match.start() - 160) : match.end()],
            )
            is not None
        ),
    ),
    anywhere(
        "payment-redirected",
        "sends a payment to another address",
        r"\b(?:add|append|include|insert|attach)\b[^.\n]{0,40}?\b(?:second|extra|additional|another"
        r"|hidden|small)\b[^.\n]{0,30}?\b(?:output|transfer|recipient|payee|fee|instruction"
        rf"|beneficiary)\b[^\n]{{0,100}}?{_WALLET}",
    ),
    anywhere(
        "payment-redirected",
        "replaces the address on the clipboard",
        r"(?:(?:clipboard|pyperclip|pbpaste|get-clipboard)[\s\S]{0,300}?(?:bc1|0x[\[(|a-f\d]|\[13\])"
        r"|(?:bc1|0x[\[(|a-f\d]|\[13\])[\s\S]{0,300}?(?:clipboard|pyperclip|pbpaste|get-clipboard))"
        r"[\s\S]{0,300}?(?:writetext|pyperclip\.copy|set-clipboard|pbcopy|clipboard\.write)\b"
        rf"[^\n]{{0,60}}?(?:{_WALLET}|wallet|addr|mine)",
    ),
    anywhere(
        "payment-redirected",
        "replaces the address on the clipboard",
        r"(?:\[13\]|\bbc1|0x\[[a-f\d-]{3,12}\]\{40\})[\s\S]{0,900}?"
        r"(?:\.(?:sub|replace\w{0,3})\([\s\S]{0,200}?(?:writetext|pyperclip\.copy|set-clipboard"
        r"|pbcopy|clipboard\.write)\b"
        r"|(?:writetext|pyperclip\.copy|clipboard\.write)\([^\n]{0,60}?\.(?:sub|replace)\()",
    ),
    # Destruction.
    anywhere(
        "destructive-command",
        "deletes a whole home folder or disk",
        r"find[ ][\"']?(?:~/?|\$\{?home\}?/?|/|/home/?|/users/?|\$env:userprofile)[\"']?[ ]"
        r"[^\n|]{0,120}?(?:-delete\b|-exec[ ](?:sudo[ ])?(?:rm|shred)\b)",
        accept=lambda match: (
            re.search(rb"-name |-iname |-path [^\n]{0,40}(?:cache|node_modules|tmp)", match[0])
            is None
            or b"-not -path" in match[0]
        ),
    ),
    anywhere(
        "destructive-command",
        "destroys the history of a repository",
        r"git[ ](?:push[ ](?=[^\n]{0,80}(?:--force|-f)\b)(?=[^\n]{0,80}(?:--all"
        r"|--mirror))[^\n]{4,120}"
        r"|reflog[ ]expire[^\n]{0,40}--expire(?:-unreachable)?=now[^\n]{0,20}--all"
        r"[^\n]{0,20}(?:\n[^\n]{0,20}"
        r"|&&[ ])git[ ]gc[^\n]{0,30}--prune=now[^\n]{0,120}(?:push|rm[ ]))",
        # To remove secrets from the history of a repository, this command is legitimate.
        accept=lambda match: (
            re.search(
                rb"filter-repo|filter-branch|\bbfg\b",
                match.string[max(0, match.start() - 800) : match.end()],
            )
            is None
        ),
    ),
    anywhere(
        "destructive-command",
        "deletes a whole home folder or disk",
        r"(?:remove-item[ ][^\n]{0,60}(?:\$home|\$env:userprofile|[c-z]:\\|~)[\"'\\/*]{0,3}"
        r"(?=[ \n\"'`;]|$)[^\n]{0,40}|format[ ]c:|(?:del|rd|rmdir)[ ][^\n]{0,20}/s[^\n]{0,20}"
        r"(?:[c-z]:\\|%userprofile%)[\"*\\]{0,3}(?=[\s\"'`&]|$)|cipher[ ]/w:[c-z])",
        accept=lambda match: not match[0].startswith(b"remove-item") or b"-recurse" in match[0],
    ),
    anywhere(
        "destructive-command",
        "encrypts the files of a home folder",
        r"(?:path\.home\(\)|expanduser\([ ]?[\"']~|os\.walk\(|os\.homedir\(\)"
        r"|rglob\()[\s\S]{0,400}?"
        r"(?:\.encrypt\(|createcipheriv|aes\.new|fernet\()[\s\S]{0,200}?(?:write_bytes|\.write\("
        r"|os\.remove|unlink|rename\(|writefilesync)",
        accept=lambda match: (
            re.search(
                rb"ransom|\.locked|\.encrypted|\.enc['\"]|os\.remove|unlink|rename\(|readme|bitcoin",
                match.string[match.start() : match.end() + 300],
            )
            is not None
        ),
    ),
)
