"""Programs that send secrets or conversations away, or receive instructions."""

import re
from typing import Final

from registry.document.behaviours.table import SECRET_FILE, anywhere

_SENT: Final = (
    r"(?:requests\.(?:post|put|patch|get|request)|httpx\.(?:post|put|get)|urlopen"
    r"|urllib\.request\.request"
    r"|session\.post|client\.post|axios(?:\.(?:post|put|get|request))?|(?<![\w.])fetch|got\.post"
    r"|http\.post|https?\.request"
    r"|net::http\.post\w{0,8}|sendbeacon|invoke-restmethod|invoke-webrequest|uploadstring"
    r"|uploadfile|aiohttp\.\w{0,20}post)"
)
_STRONG_FILE: Final = (
    r"(?:\.ssh[/\\'\"]|\bid_(?:rsa|ed25519|ecdsa)\b|\.aws[/\\]credentials|\.aws['\"]|\.netrc"
    r"|\.git-credentials|\.gnupg|\.config[/\\]solana"
    r"|\.config/gcloud|login data|cookies\.sqlite|logins\.json|wallet\.dat"
    r"|\.claude[/\\]\.credentials|auth-profiles\.json|\.openclaw[/\\](?:openclaw\.json"
    r"|credentials|\.env)"
    r"|\.clawdbot[/\\](?:\.env|clawdbot\.json)|/etc/shadow|/etc/passwd|\.bash_history"
    r"|\.zsh_history|\.electrum|\.kube[/\\]config|\.docker[/\\]config|keychain-db|exodus[/\\]"
    r"|solana[/\\]id\.json|default[/\\]{1,2}(?:network[/\\]{1,2})?cookies)"
)
_VENDORS: Final = (
    r"(?P<vendor>openai|anthropic|claude|aws|github|gh|gitlab|npm|pypi|stripe|slack|google|gemini"
    r"|hf|huggingface|openrouter|telegram|discord|azure|twilio|sendgrid|digitalocean|cloudflare"
    r"|vercel|supabase|notion|linear)"
)
_ALIASES: Final = {
    b"gh": (b"github",),
    b"hf": (b"huggingface", b"hf.co"),
    b"gemini": (b"google",),
    b"claude": (b"anthropic", b"claude"),
    b"npm": (b"npmjs",),
    b"aws": (b"amazon", b"aws"),
    b"azure": (b"azure", b"microsoft"),
    b"pypi": (b"pypi",),
}
_HOST = re.compile(rb"https?://(?:[^\s/@\"']{1,60}@)?([\w.-]{3,100})")


def _of_a_stranger(match: re.Match[bytes]) -> bool:
    """Return True if a key is sent to a host that doesn't belong to the vendor of the key."""
    begin = match.string.rfind(b"\n", 0, match.start()) + 1
    line = match.string[max(begin, match.start() - 300) : match.end() + 200]
    vendor = match["vendor"]
    hosts = _HOST.findall(line)
    names = _ALIASES.get(vendor, (vendor,))
    return bool(hosts) and not any(
        name in host or b"localhost" in host or host.startswith(b"127.")
        for host in hosts
        for name in names
    )


BEHAVIOURS: Final = (
    # Shell commands that send a secret file as the body of a request.
    anywhere(
        "secret-sent",
        "sends a file that holds secrets",
        r"(?:curl|wget|http|httpie)\b[^\n]{0,250}?(?:[ ](?:-\w{0,4}[dft]|--data(?:-\w{1,9})?"
        r"|--form(?:-string)?|--upload-file|--post-file"
        r"|--body-file)[ =]?[\"']?[^\s\"']{0,60}?(?:@|<|\$\(\s{0,2}(?:cat|base64|tar|gzip"
        r"|head)[^)\n]{0,60})?|[ ][\w-]{1,20}@)",
        rf"[^\n\"';|]{{0,60}}?{SECRET_FILE}",
        accept=lambda match: (
            re.search(rb"(?:@|\$\(|-t |upload-file|post-file|<)[^@<]{0,120}$", match[0]) is not None
            and b"localhost" not in match[0]
        ),
    ),
    anywhere(
        "secret-sent",
        "sends secrets",
        r"(?:(?:cat|tar|zip|base64|gzip|head|tail|grep|find|openssl|xxd)[ ][^\n|]{0,160}?",
        SECRET_FILE,
        r"[^\n|]{0,120}|(?:^|[\n;&(`\"' ])(?:printenv|env|export -p|set"
        r"|declare -x\w?)[ ]?)(?:\|[^\n|]{1,80}){0,2}\|[ ]?(?:curl|wget|nc|ncat|netcat"
        r"|http)[ ][^\n]{3,160}",
        accept=lambda match: b"localhost" not in match[0] and b"127.0.0.1" not in match[0],
    ),
    anywhere(
        "secret-sent",
        "sends secrets",
        r"(?:curl|wget|nc)\b[^\n]{0,250}?(?:\$\(|`)[ ]?(?:env|printenv(?!\s{1,20}\w)|export -p"
        r"|(?:cat|base64|head|tar)[^)`\n]{0,80}",
        SECRET_FILE,
        r")",
        accept=lambda match: b"localhost" not in match[0] and b"127.0.0.1" not in match[0],
    ),
    anywhere(
        "secret-sent",
        "sends a file that holds secrets",
        r"(?:scp|rsync)[ ](?:-\w{1,8}[ ]){0,3}(?!-i)[^\n]{0,60}?",
        SECRET_FILE,
        r"[^\s]{0,40}[ ][\"']?[\w.$@{}-]{3,80}:",
        accept=lambda match: re.search(rb" -(?:i|e) ", match[0]) is None,
    ),
    anywhere(
        "secret-sent",
        "sends a key to an unknown host",
        r"(?:curl|wget)\b[^\n]{0,300}?\$\{?",
        _VENDORS,
        r"_[a-z_]{0,30}(?:key|token|secret|pat)\b",
        accept=_of_a_stranger,
    ),
    # Programs that send a secret file as the body of a request.
    anywhere(
        "secret-sent",
        "sends all environment variables",
        _SENT,
        r"\([^;]{0,250}?(?:(?:dict\(|str\(|dumps\(|repr\()?os\.environ(?![\w.\[]|\s{0,20}\.)"
        r"|(?<![\w.])process\.env(?![\w.\[?]))",
        accept=lambda match: (
            re.search(rb"\n[ ]{0,4}(?:def|function|class|const|export) ", match[0]) is None
            and b"subprocess" not in match[0]
            and b"getenv" not in match[0]
        ),
    ),
    anywhere(
        "secret-sent",
        "sends all environment variables",
        r"(?P<name>[a-z_]\w{0,30})[ ]?=[ ]?[^\n=]{0,60}?(?:os\.environ(?![\w.\[]|\s{0,20}\.)"
        r"|(?<![\w.])process\.env(?![\w.\[?]))[\s\S]{0,400}?",
        _SENT,
        r"\([^;]{0,200}?\b(?P=name)\b(?![\w.\[(]|[ ]?=)",
        accept=lambda match: re.search(rb"\n(?:def|function|class) ", match[0]) is None,
    ),
    anywhere(
        "secret-sent",
        "sends a file that holds secrets",
        _SENT,
        r"\([^;]{0,300}?",
        _STRONG_FILE,
        accept=lambda match: (
            re.search(rb"\n[ ]{0,4}(?:def|function|class) |169\.254", match[0]) is None
        ),
    ),
    anywhere(
        "secret-sent",
        "reads a file that holds secrets, and sends data",
        r"(?:open|readfilesync|readfile|read_text|read_bytes|cat |file\.read|path|join"
        r"|get-content|expanduser|homedir|\.home|\.env\.(?:local)?appdata"
        r"|\.env\.home)[ (+][^\n]{0,100}?",
        _STRONG_FILE,
        r"[\s\S]{0,500}?(?:",
        _SENT,
        r"|['\"]https?['\"]\)\.request)[ (]",
        accept=lambda match: (
            re.search(rb"(?:^|\n)[ ]{0,2}(?:def|function|class|async def)\b", match[0]) is None
            and b"```\n" not in match[0]
        ),
    ),
)
