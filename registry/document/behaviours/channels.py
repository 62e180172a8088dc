"""Channels that leak secrets without a normal web request: DNS, pictures, mail, git."""

import re
from typing import Final

from registry.document.behaviours.leaks import TOKEN_COMMAND
from registry.document.behaviours.table import SECRET_FILE, anywhere, in_prose

_LOOKUP: Final = r"\b(?:dig|nslookup|drill|ping|resolvectl|getent hosts|resolve-dnsname|host)[ ]"

_LOOKUP_CALL: Final = (
    r"(?:gethostbyname(?:_ex)?|getaddrinfo|dns\.(?:promises\.)?(?:resolve\w{0,5}|lookup|query)"
    r"|\.resolve(?:4|6|any|txt|mx|cname)"
    r"|resolver\.(?:resolve|query)|net\.lookup\w{1,6}|getaddresses|gethostaddresses)\("
)

_SECRET_VARIABLE: Final = r"\w{0,30}(?:_token|_key|_secret|secret_|passw|credential|_pat)\w{0,20}\b"

_ENCODED: Final = (
    r"(?:base64|base32|b64encode|b32encode|hexlify|\bxxd\b|\.hex\(\)|\bod[ ]-|tostring\(['\"]"
    r"(?:hex|base64)|\bfold[ ]|\bbtoa\()"
)

SECRET_NAMED: Final = (
    r"(?:\.env\b(?!\.example)|\.ssh\b|\.aws\b|\bid_rsa\b|\.netrc\b|credentials?\b|secrets?\b"
    r"|passwords?\b|api[ _-]?keys?\b|(?:access|auth|github|session|api)[ _-]?tokens?\b"
    r"|private keys?"
    r"|environment variables?|env vars?|seed phrase|\w{2,20}_(?:api_)?(?:key|token|secret)\b)"
)


# A placeholder in an address that is replaced by a secret.
_FILLED: Final = (
    r"(?:\$\(|\$\{?\w{0,30}(?:key|token|secret|pass|env)|`[ ]?cat|\{\{?[^}\n]{0,40}(?:key|token"
    r"|secret|env\b|pass|cred|contents?)|<[^>\n]{0,40}(?:\benv|key|token|secret|contents?|cred"
    r"|base64|encoded)|\[[^\]\n]{0,40}(?:\benv|key|token|secret|contents?|cred|base64|encoded)"
    r"|%7b|\$env:)"
)

_HONEST: Final = re.compile(
    rb"header|bearer|authorization|x-api-key|\bnever\b|don't|do not |avoid|localhost|oauth|sign in"
    rb"|log ?in|\bcallback"
)


def not_honest(match: re.Match[bytes]) -> bool:
    """Return True if the text around the match doesn't describe an ordinary login or request."""
    return _HONEST.search(match.string[max(0, match.start() - 80) : match.end() + 60]) is None


BEHAVIOURS: Final = (
    # DNS.
    anywhere(
        "secret-sent",
        "sends secrets in DNS queries",
        _LOOKUP,
        r"[^\n]{0,80}?(?:\$\(|`)[^\n]{0,160}?(?:",
        SECRET_FILE,
        rf"|\bprintenv\b|\benv\b|{_ENCODED}|\${_SECRET_VARIABLE})[^\n]{{0,160}}?\.[\w${{-]",
    ),
    anywhere(
        "secret-sent",
        "sends secrets in DNS queries",
        rf"(?:{_ENCODED}|{TOKEN_COMMAND})[\s\S]{{0,300}}?{_LOOKUP}[^\n]{{0,60}}?"
        r"[$%]\{?\w{1,20}[^\s.]{0,12}\.[\w-]{1,40}\.\w",
    ),
    anywhere(
        "secret-sent",
        "sends secrets in DNS queries",
        r"(?:\benviron\b|process\.env|getenv|",
        SECRET_FILE,
        rf"|{_ENCODED})[\s\S]{{0,500}}?{_LOOKUP_CALL}[^\n]{{0,160}}?"
        r"(?:[\"'`]\.[\w.-]{4,80}[\"'`]|\}\.[\w.-]{4,80}[\"'`]|%s?\.[\w.-]{4,80}[\"'`])",
    ),
    in_prose(
        "secret-asked",
        "tells the agent to send secrets in DNS queries",
        r"\b(?:encode|send|resolve|look up|query|put|split|exfiltrate"
        r"|append)\b[^.\n]{0,100}?(?:",
        rf"{SECRET_NAMED}[^\n]{{0,120}}?\b(?:dns|sub-?domains?)\b"
        rf"|\b(?:dns|sub-?domains?)\b[^\n]{{0,80}}?{SECRET_NAMED})",
        accept=lambda match: (
            not_honest(match)
            and re.search(
                rb"encod|base64|hex\b|exfiltrat|\bchunks?\b|label|\bas (?:a |the )?sub-?domain",
                match.string[match.start() : match.end() + 80],
            )
            is not None
        ),
    ),
    # Pictures.
    in_prose(
        "secret-sent",
        "sends secrets in the address of a picture",
        r"(?:!\[[^\]\n]{0,80}\]\([ ]?<?|<(?:img|iframe)\b[^>\n]{0,100}"
        r"(?:src|href)=[\"']?|url\([\"']?)",
        rf"https?://[^)\s\"']{{3,160}}?[?&=/]{_FILLED}",
        accept=lambda match: (
            re.search(
                rb"shields\.io|badge\.fury|codecov|github\.com|githubusercontent|\.css|\.js[\"'?]"
                rb"|googleapis|maps",
                match[0],
            )
            is None
        ),
    ),
    in_prose(
        "secret-sent",
        "puts secrets into the address of a picture",
        r"\b(?:read|take|collect|encode|base64|append|insert|put|embed|fill|contents? of"
        r"|value of)"
        rf"\b[^\n]{{0,100}}?{SECRET_NAMED}[\s\S]{{0,260}}?"
        r"(?:!\[[^\]\n]{0,80}\]\(|<img\b[^>\n]{0,60}src=[\"']?)https?://[^)\s\"']{3,120}"
        r"(?:[?&][\w-]{1,20}=[^)\s\"']{0,60}|/[a-z_<{\[$]{3,40}\.(?:png|gif|svg|jpg))[)\"']",
        accept=lambda match: (
            not_honest(match)
            and re.search(rb"shields\.io|badge\.fury|codecov|github\.com", match[0]) is None
        ),
    ),
    in_prose(
        "secret-sent",
        "sends secrets in an address",
        r"(?:\b(?:image|picture|badge|pixel|img|hyperlink|link)\b[^\n]{0,120}?https?://[^\s\"')]{3,160}"
        r"[\s\S]{0,120}?\b(?:replace|replacing|filled?|where|with|substitut\w{1,4}|append\w{0,3}"
        rf"|followed by|carr(?:ies|ying)|contain(?:s|ing)|is)\b[^\n]{{0,80}}?{SECRET_NAMED})",
        accept=lambda match: (
            not_honest(match)
            and re.search(rb"encod|base64|append|replac|fill|carr|value|contents?", match[0])
            is not None
            and re.search(rb"[?&]\w{1,20}=", match[0]) is not None
        ),
    ),
    in_prose(
        "secret-sent",
        "puts secrets into an address",
        r"(?:<img\b[^>\n]{0,60}src=[\"']?|!\[[^\]\n]{0,80}\]\(|\b(?:logo|icon|image|picture|badge|link)\b"
        r"[^\n]{0,60}?)https?://[^\s)]{3,160}[^\n]{0,80}?(?:\+|\bplus\b|followed by"
        r"|in place of|\bwith\b"
        rf"|\bwhere\b|\breplac\w{{1,4}})[^\n]{{0,60}}?(?:{SECRET_NAMED}|\bsecret\b)",
        accept=lambda match: (
            not_honest(match)
            and re.search(rb"[?&][\w-]{1,20}=|encod|base64|\bhex\b|\+|append|followed by", match[0])
            is not None
            and re.search(rb"shields\.io|badge\.fury|codecov|github\.com", match[0]) is None
        ),
    ),
    # Mail, git and comments.
    anywhere(
        "secret-sent",
        "mails a file that holds secrets",
        r"(?:(?:cat|tar|zip|base64|gpg|printenv|env|head|tail)\b[^\n|]{0,160}?(?:",
        SECRET_FILE,
        r"|(?<=env))[^\n|]{0,120}(?:\|[^\n|]{1,80}){0,2}\|[ ]?(?:mail|mailx|mutt|sendmail|msmtp"
        r"|swaks)\b|(?:mail|mailx|mutt|swaks|mpack)[ ][^\n]{0,160}?(?:<|-a"
        r"|--attach)[ ]?[^\n]{0,60}?",
        SECRET_FILE,
        r")",
    ),
    anywhere(
        "secret-sent",
        "reads a file that holds secrets, and sends mail",
        r"(?:open|read_text|read_bytes|readfilesync|readfile|path|join"
        r"|expanduser)[ (][^\n]{0,100}?",
        SECRET_FILE,
        r"[\s\S]{0,700}?(?:smtplib|nodemailer|sendmail|send_message)",
        accept=lambda match: re.search(rb"load_dotenv|dotenv|```\n", match[0]) is None,
    ),
    anywhere(
        "secret-sent",
        "publishes a file that holds secrets",
        r"(?:git[ ]add[ ][^\n]{0,20}(?:-f|--force)[ ][^\n]{0,60}?",
        SECRET_FILE,
        r"[\s\S]{0,300}?git[ ]push|gh[ ](?:gist[ ]create|issue[ ](?:create|comment)"
        r"|pr[ ]comment"
        r"|release[ ]upload)[^\n]{0,160}?(?:\$\((?:cat|base64|env|printenv)[^\n]{0,60}?)?(?:",
        SECRET_FILE,
        r"|\$\((?:printenv|env)\b))",
    ),
    in_prose(
        "secret-asked",
        "tells the agent to publish a file that holds secrets",
        r"\b(?:make|create|publish|open|post|push|write)\b[^.\n]{0,30}?\b(?:gist|pastebin|paste|public"
        r" (?:repository|repo|link|post|issue|page))\b[^\n]{0,60}?\b(?:contents?|with|of"
        r"|from)\b[^\n]{0,40}?",
        SECRET_FILE,
        accept=not_honest,
    ),
)
