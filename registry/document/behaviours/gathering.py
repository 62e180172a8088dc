"""Programs and texts that collect data about a machine or a person, or write to hidden places."""

import re
from typing import Final

from registry.document.behaviours.table import LOCAL, anywhere, in_prose

_KEPT: Final = (
    r"(?:\.npmrc|\.yarnrc|\.git-credentials|\.docker/config\.json|\.netrc|\.pypirc|\.pgpass"
    r"|\.aws/credentials|\.ssh/|id_rsa|id_ed25519|\.kube/config|\.gnupg|\.config/(?:gh|gcloud)/"
    r"|login data|/cookies\b|cookies\.sqlite|logins\.json|key4\.db|\.electrum|\.config/solana"
    r"|wallet\.dat|/exodus|metamask|\.claude/projects|\.claude\.json|\.kdbx|keychain-db|\.gem/credentials"
    r"|/credentials\.toml|\.aws/config|\.ssh/config)"
)
"""Files in which programs keep credentials."""

_SEVERAL: Final = rf"[\"'][^\"'\n]{{0,60}}{_KEPT}[\s\S]{{1,120}}?[\"'][^\"'\n]{{0,60}}{_KEPT}"
"""Two file names from `_KEPT`, as strings near each other."""

_SENDS: Final = (
    r"(?:requests\.(?:post|put)|httpx\.(?:post|put)|urlopen|urllib\.request\.request|axios|fetch"
    r"|https?\.request|sendbeacon|invoke-restmethod|invoke-webrequest|uploadfile|uploadstring"
    r"|sendmail|aiohttp|smtplib|send_message|net::http|http\.post|http\.newrequest|tcpstream"
    r"|http::tiny|urlsession|httpsconnection|storbinary|put_object|upload_file\w{0,3}|sendall)\b"
)

_NEVER: Final = re.compile(
    rb"\b(?:never|not|don't|nobody|no one|shouldn't|mustn't|refuse|avoid|without|scam\w{0,6}|phish"
    rb"\w{0,4}|anyone who|legitimate)\b[^.\n]{0,60}$"
)


def _asked(match: re.Match[bytes]) -> bool:
    """Return True unless the sentence before a match forbids the action."""
    before = match.string[max(0, match.start() - 80) : match.start()]
    return _NEVER.search(before) is None and not re.search(rb"\b(?:never|don't|not)\b", match[0])


BEHAVIOURS: Final = (
    anywhere(
        "secret-sent",
        "reads a file that holds secrets, and sends data",
        rf"{_SEVERAL}[\s\S]{{0,900}}?{_SENDS}",
    ),
    anywhere(
        "secret-sent",
        "sends data, and reads files that hold secrets",
        rf"{_SENDS}[\s\S]{{0,900}}?{_SEVERAL}",
    ),
    anywhere(
        "secret-sent",
        "reads secrets and sends them",
        r"(?:read|open|readfile|readfilesync|read_text|readalltext|get-content|fs::read)[ (]"
        rf"[^\n]{{0,100}}?{_KEPT}[\s\S]{{0,400}}?{_SENDS}",
    ),
    anywhere(
        "secret-sent",
        "reads secrets and sends them",
        r"(?:tcpstream::connect|http\.post|net::http|urlopen|fetch)\([\s\S]{0,400}?"
        rf"(?:read|open|readfile|read_text|fs::read)\([^\n]{{0,100}}?{_KEPT}",
    ),
    anywhere(
        "secret-sent",
        "sends secrets",
        rf"\b(?:cat|tar|base64|gzip)\s[\s\S]{{0,160}}?{_KEPT}[\s\S]{{0,160}}?(?:wget\b[\s\S]"
        r"{0,80}?--post-(?:file|data)|curl\b[\s\S]{0,80}?\s(?:-d|-t|-f|--data\S{0,10}"
        r"|--upload-file)[ =]?@?[-/])",
    ),
    anywhere(
        "secret-sent",
        "sends secrets",
        rf"\bcurl\b[^\n]{{0,200}}?(?:\$\(|`)[^)\n]{{1,80}}?\bcat[ ][^)\n]{{0,40}}?{_KEPT}",
    ),
    anywhere(
        "secret-sent",
        "sends all secrets of a pipeline",
        r"tojson\([ ]?secrets[ ]?\)[\s\S]{0,600}?(?:curl|wget|fetch|invoke-webrequest)\b",
    ),
    in_prose(
        "secret-sent",
        "puts secrets into an address",
        r"\bvalues?[ ]of[ \n][^.\n]{0,80}?_(?:api_)?(?:key|token|secret)\b[\s\S]{0,300}?"
        r"\b(?:parameter|query|url|address|link|image)\b[\s\S]{0,200}?https?://",
        accept=_asked,
    ),
    anywhere(
        "hidden-action",
        "reads secrets and hides that from the user",
        r"\bread\b[^\n]{0,80}?(?:id_rsa|\.ssh/|\.aws/|\.env\b)[\s\S]"
        r"{0,400}?\b(?:do not|don't|never)[ ](?:mention|tell|inform)[ ](?:it|this|that|the user"
        r"|you)\b",
    ),
    anywhere(
        "secret-sent",
        "asks for a password and sends it",
        r"\bread[ ](?:-\w{1,4}[ ]){0,3}-\w{0,3}s\w{0,3}\b[^\n]{0,200}?(?:\n[^\n]{0,200}?)?"
        r"\|[ ]?(?:curl|wget|nc)\b",
    ),
    in_prose(
        "secret-asked",
        "asks for the key or seed phrase of a wallet",
        r"\b(?:ask|request|prompt|collect|obtain|have|get)\b[^.\n]{0,60}?"
        r"\b(?:seed|recovery|mnemonic|backup)[ -]?(?:phrase|words)\b",
        accept=_asked,
    ),
    in_prose(
        "secret-asked",
        "reads the passwords of a password manager",
        r"\b(?:open|read|collect|gather|search|scan|find|copy|look (?:through|into|for))\b"
        r"[^.\n]{0,120}?(?:\.kdbx|1pux|bitwarden|keepass|lastpass|password[- ]manager (?:export"
        r"|vault|database)s?|saved (?:browser )?passwords)",
        accept=_asked,
    ),
    anywhere(
        "persistence",
        "replaces a command that asks for a password",
        r"(?:\balias (?:sudo|ssh|su|passwd)=|(?:^|[\s;])(?:sudo|su|passwd)\(\)[ ]{0,2}\{)"
        r"[\s\S]{0,300}?(?:curl|wget|\bnc\b|script -|\btee\b|read -)",
    ),
    anywhere(
        "files-sent",
        "pushes to another server without the user's knowledge",
        rf"git[ ](?:-c[ ]\S{{1,60}}[ ])?push[ ][^\n]{{0,120}}?https?://(?!{LOCAL})[^\n]{{3,200}}?"
        r"(?:>[ ]?/dev/null|&>|2>&1)",
    ),
    anywhere(
        "files-sent",
        "pushes files to an unknown repository",
        r"git[ ]clone[ ][^\n]{0,120}?https?://[^\n]{3,200}?[;&][ ]?(?:cp|mv)[ ][^\n]{0,200}?"
        r"git[ ][^\n]{0,60}?commit[^\n]{0,100}?push\b",
    ),
    in_prose(
        "conversation-sent",
        "sends the conversation away",
        r"\b(?:pass|include|send|attach|provide|put)\b[^.\n]{0,20}?"
        r"\b(?:full|whole|entire|complete|verbatim)[ ](?:conversation|chat|transcript|dialogue"
        r"|message history|chat history)\b[^.\n]{0,80}?\b(?:argument|parameter|field|every|all"
        r"|context|contents?|standard input|stdin)\b",
        accept=_asked,
    ),
    in_prose(
        "conversation-sent",
        "sends the conversation away",
        r"(?:\buser's messages\b|\byour answers\b|\bwhat was said\b|\bchat so far\b"
        r"|\bwhat (?:the|your) user (?:has |have )?(?:so far )?(?:written|wrote|said|typed"
        r"|asked|told)\b)[^.]{0,120}?"
        r"\b(?:post|send|upload|forward|submit|request|open|fetch|call|visit|load)\b"
        r"[^.]{0,60}?https?://",
        accept=_asked,
    ),
    in_prose(
        "agent-configuration",
        "makes itself a rule of the agent",
        r"\b(?:append|add|write|put)[ ](?:these|the following|this)\b[^.]{0,60}?(?:claude\.md"
        r"|agents\.md|memory\.md|soul\.md|\.cursorrules|memory file)[\s\S]{0,700}?(?:\bskip\b"
        r"|\brather than the public\b|\bput (?:it|them) back\b|\b(?:do not|don't|never)\s"
        r"(?:raise|mention|ask|tell|warn)\b)",
    ),
    # Instructions to ignore earlier instructions, in languages other than English.
    in_prose(
        "instruction-override",
        "tells the model to ignore its instructions",
        r"(?:\bignor(?:a|ar|e|en)[ ](?:todas[ ])?(?:las|tus|sus)[ ]instrucciones"
        r"|\bignore(?:z|r)?[ ](?:toutes[ ])?(?:les|vos|tes)[ ]instructions"
        r"|\bignorier\w{1,3}[ ](?:sie[ ])?(?:alle[ ])?(?:bisherigen|vorherigen|vorigen"
        r"|fr\?heren)"
        r"[ ](?:an)?weisungen|\bignore[ ](?:todas[ ])?as[ ]instru\?\?es"
        r"|\bignora[ ](?:tutte[ ])?le[ ]istruzioni)",
    ),
    in_prose(
        "concealment",
        "hides something from the user",
        r"(?:\bno[ ](?:se[ ])?(?:lo[ ])?(?:digas|cuentes|menciones|informes)[ ]"
        r"[^.\n]{0,20}?usuario"
        r"|\bne[ ](?:le[ ])?dites[ ](?:rien|pas)[^.\n]{0,20}?utilisateur"
        r"|\bsag\w{0,3}[ ](?:es[ ])?de[mr][ ](?:be)?nutzer\w{0,3}[ ]nicht"
        r"|\bn\?o[ ](?:conte|diga|informe)[^.\n]{0,20}?usu\?rio"
        r"|\bnon[ ](?:dire|dirlo)[^.\n]{0,20}?utente)",
    ),
    in_prose(
        "tool-shadowing",
        "tells the model not to use other tools",
        r"\b(?:built-?in|standard|default|native|other)\b[^.\n]{0,80}?\b(?:tools?|skills?)\b"
        r"[^.\n]{0,20}?\bare (?:deprecated|obsolete|broken|disabled|unsafe|outdated)\b",
    ),
    in_prose(
        "remote-instructions",
        "tells the model to follow instructions from another place",
        r"https?://[\s\S]{3,400}?\b(?:follow|do|obey|execute|carry out|apply)[ ](?:whatever"
        r"|what|exactly what|everything(?: that)?|all that)[ ](?:it|the \w{1,20}|they|that)[ ]"
        r"(?:says?|tells?|contains?|instructs?|asks?)\b"
        r"|https?://[\s\S]{3,300}?\b(?:same (?:standing|authority|weight|priority) as|as if"
        r" (?:it|they) (?:were|was|came|had been)(?: written)? (?:in|from|by)) (?:this file"
        r"|the user|the system|me)\b",
        accept=_asked,
    ),
    in_prose(
        "instruction-override",
        "puts another instruction above the user's",
        r"\b(?:prefer|trust|follow|obey)\b[^.\n]{0,60}?\b(?:over|instead of|rather than)[ ]"
        r"(?:anything|everything|whatever|what)[ ](?:that )?(?:the )?(?:user|human|system)\b",
        accept=_asked,
    ),
    in_prose(
        "concealment",
        "hides something from the user",
        r"\b(?:do not|don't|never)[ ](?:mention|show|display|list|include|reveal|print)[ ](?:it"
        r"|this|them|these|the \w{1,20})[ ](?:in|on|to)[ ](?:the|your|any)[ ](?:preview|summary"
        r"|answer|reply|response|report|user)\b[^.\n]{0,200}?\b(?:if|when)[ ]asked\b",
    ),
    in_prose(
        "claimed-approval",
        "claims that the user has agreed",
        r"\b(?:user|owner|customer|operator)s?[ ](?:has|have)[ ](?:already )?(?:agreed"
        r"|consented|approved|accepted|authori[sz]ed|opted in)\b[^.\n]{0,80}?"
        r"\b(?:so|therefore|hence)\b[^.\n]{0,20}?"
        r"\b(?:do not|don't|no need|never|without|skip)\b",
    ),
    anywhere(
        "agent-configuration",
        "changes the MCP servers of agents",
        r"(?:[/\\]mcp(?:_config)?\.json|claude_desktop_config|\.claude\.json)[\s\S]{0,1400}?"
        r"(?:autoapprove|alwaysallow|os\.environ|process\.env|http://\d)[\s\S]{0,800}?"
        r"(?:write_text|json\.dump\b|writefilesync|writefile)\(",
    ),
    in_prose(
        "claimed-approval",
        "acts without asking the user",
        r"\b(?:run|execute|carry out|perform)\b[^.\n]{0,60}?\bcommands?\b[^.\n]{0,30}?"
        r"\bwithout (?:asking|confirm\w{0,6})\b",
        accept=_asked,
    ),
    in_prose(
        "concealment",
        "hides something from the user",
        r"(?:\bno (?:need|reason) to (?:explain|mention|discuss|show|bring up) (?:it|this|them"
        r"|the (?:step|image|call|request|upload|extra \w{1,12}))\b"
        r"|\bno reason to bring (?:it|this|that) up"
        r"|\b(?:leave|keep) (?:it|this|them|the [^.\n]{1,24}?) out of"
        r" (?:(?:the|your|any|all) )?(?:transcript|summar|answer|repl|report|log"
        r"|plan|conversation|comments)"
        r"|\b(?:do not|don't|doesn't|does not) belong (?:in|into|to) (?:the|your|any)[ ]"
        r"(?:transcript|summar|answer|repl|report)[^.\n]{0,20}?(?:\buser\b|\.))",
    ),
    # Code after so many spaces that a reader doesn't scroll to it.
    anywhere(
        "hidden-action",
        "hides code behind many spaces",
        r"[;{}\])][ ]{120,600};?[ ]?\(?(?:async|function|eval|require|import|\(\)|exec|!)",
    ),
    anywhere(
        "download-then-run",
        "downloads a file and runs it",
        r"(?:axios|fetch|got|https?\.get|request|requests|urlopen|httpx)\b[^\n]{0,300}?(?:\bnew"
        r" function\(|\beval\(|\bexec\(|vm\.run\w{0,20}\()[^\n]{0,40}?(?:\.data|\.text|body"
        r"|resp|res\b|\.read|content)",
    ),
    anywhere(
        "download-then-run",
        "writes a file and runs it",
        r">[ ]?(?P<file>/(?:tmp|var/tmp|dev/shm)/[\w.-]{1,40})[ ]?(?:&&|;|\n)[ \t]{0,4}"
        r"(?:\$\{?\w{1,20}\}?|\.|source|(?:ba|z|da)?sh)[ ](?P=file)\b",
    ),
    anywhere(
        "download-then-run",
        "downloads a file and runs it",
        r"\b(?:pickle|marshal|dill|joblib)\.loads?\([^\n]{0,60}?(?:urlopen|requests\.get|httpx\.get)",
    ),
    anywhere(
        "stranger-key",
        "gives an unknown person access",
        r"(?:authorized_keys[\"'][\s\S]{0,80}?[\"']ssh-(?:ed25519|rsa)[ ]aaaa"
        r"|ssh-(?:ed25519|rsa)[ ]aaaa[^\n]{20,400}?[\"'][\s\S]{0,200}?authorized_keys[\"'])",
    ),
    # Numbers and ciphers in place of words.
    anywhere(
        "assembled-command",
        "hides text in numbers",
        r"(?:[\"'](?:\\x[2-7][0-9a-f]){10,400}[\"']|(?:%[2-7][0-9a-f]){14})",
    ),
    anywhere(
        "assembled-command",
        "hides text in numbers",
        r"\[[ \n]{0,4}(?:(?:3[2-9]|[4-9]\d|1[01]\d|12[0-6]),[ \n]{0,2}){20,60}[^\]]{0,900}\]"
        r"[\s\S]{0,300}?(?:fromcharcode|\bchr\(|\bmap\(chr|bytes\(|bytearray\()",
    ),
    anywhere(
        "assembled-command",
        "decodes text with a number",
        r"(?:\bchr\([ ]?\w{1,20}[ ]?\^[ ]?\w|fromcharcode\([^)\n]{1,40}?\^)",
    ),
    anywhere(
        "assembled-command",
        "calls a function by a hidden name",
        r"(?:(?:__import__|getattr)\([^)\n]{0,30}?[\"']\w{1,10}[\"']\s{1,30}[\"']\w"
        r"|\b(?:vars|dir|getattr)\([ ]?__builtins__|getattr\([ ]?\w{1,30}[ ]?,[ ]?(?:codecs"
        r"|base64|bytes|binascii|chr|[\"']{2}\.join)\b)",
    ),
    anywhere(
        "encoded-execution",
        "runs decoded code unchecked",
        r"(?:\b(?:exec|eval)\([ ]?\w{1,20}\([ ]?(?:\w{1,20}\([ ]?)?b?[\"'][a-z0-9+/=]{40}"
        r"|function\)[ ]?\([^\n]{0,60}?fromcharcode"
        r"|(?:globalthis|window|global)\[[^\n]{0,80}?fromcharcode"
        r"|(?:b64decode|decompress|unhexlify|a85decode)\([\s\S]{0,600}?\n[ \t]{0,8}exec\([ ]?\w"
        r"|(?:instance_eval|class_eval|\beval)[ (]{1,2}(?:uri\.open|open-uri|net::http"
        r"|\$\w{1,20}->\{?[\"']?(?:content|body|data)))",
    ),
    anywhere(
        "package-from-address",
        "installs packages from an unknown address",
        rf"[\"']--registry[\"'][ ]?,[ ]?[\"']http://(?!{LOCAL})",
    ),
)
