"""Programs that send secrets, files, keystrokes or the clipboard to another machine."""

import re
from typing import Final

from registry.document.behaviours.table import SECRET_FILE, anywhere

_SENT: Final = (
    r"(?:requests\.(?:post|put|get)|httpx\.(?:post|put|get)|urlopen|urllib\.request\.request"
    r"|session\.post|axios(?:\.(?:post|put|get|request))?|(?<![\w.])fetch|https?\.request|sendbeacon"
    r"|invoke-restmethod|invoke-webrequest|uploadstring|uploadfile|sendmail|\.send(?:all|to)?)[ (]"
)

TOKEN_COMMAND: Final = (
    r"(?:gh auth token|gcloud auth (?:application-default )?print-\w{3,10}-token"
    r"|aws (?:sts get-session-token|configure export-credentials|configure get)"
    r"|az account get-access-token|security (?:find-\w{3,12}-password|dump-keychain)"
    r"|secret-tool (?:lookup|search)|kubectl get secrets?|oc get secrets?|vault (?:kv )?(?:get"
    r"|read)"
    r"|pass show|op (?:item get|read)|heroku auth:token|doppler secrets|git credential fill)"
)


_BODY: Final = r"[ ](?:-\w{0,3}[dft]|--data(?:-\w{1,9})?|--form(?:-string)?|--upload-file)[ =]?"

_COLLECTORS: Final = (
    r"(?:webhook\.site|requestbin|pipedream\.net|interact\.sh|oast\.\w{2,6}|oastify\.com"
    r"|burpcollaborator|beeceptor\.com|requestcatcher|canarytokens|hookbin|ngrok|trycloudflare"
    r"|transfer\.sh|file\.io|0x0\.st|termbin\.com|pastebin\.com/api|discord(?:app)?\.com/api/webhooks"
    r"|api\.telegram\.org/bot|hooks\.slack\.com)"
)


_LOCAL_END: Final = re.compile(rb"localhost|127\.0\.0\.1")

_CHAT: Final = re.compile(rb"discord|telegram|slack")

_STRONG: Final = re.compile(
    rb"\.ssh|id_rsa|id_ed25519|\.aws|login data|keychain|wallet|\.netrc|hosts\.yml|\.kube"
    rb"|/etc/(?:passwd"
    rb"|shadow)|cookies\.sqlite|git-credentials|printenv|environ\)"
)


def _not_local(match: re.Match[bytes]) -> bool:
    return _LOCAL_END.search(match[0]) is None


# The skill acts in two steps: it writes secrets to a file or variable, then sends the file or
# variable.
BEHAVIOURS: Final = (
    anywhere(
        "secret-sent",
        "writes secrets into a file and sends it",
        r"(?:\b(?:cp|cat|tar|zip|7z|base64|gpg|find|security|kubectl)\b[^\n]{0,160}?(?:",
        SECRET_FILE,
        r"|dump-keychain|get[ ]secrets?\b)|\b(?:printenv|env)[ ])[^\n]{0,120}?",
        r"(?P<file>/(?:tmp|var/tmp|dev/shm)/[\w.-]{1,60}|\b[\w-]{2,40}\.(?:zip|tgz|tar|tar\.gz|txt"
        r"|json|b64|dat|bin|out|log))(?![\w./-])[\s\S]{0,400}?",
        r"(?:curl|wget|nc|ncat|scp|rsync|rclone|aws[ ]s3|gsutil"
        r"|requests\.\w{3,4}\()[^\n]{0,200}?"
        r"(?P=file)",
        accept=lambda match: _not_local(match) and b"kubeconfig" not in match[0],
    ),
    anywhere(
        "secret-sent",
        "sends each environment variable",
        r"\bfor[ ]\w{1,12}[ ]in[ ](?!\$\()[^\n]{0,200}?",
        SECRET_FILE,
        r"[\s\S]{0,300}?(?:\|[ ]?(?:curl|nc|ncat|wget)\b|(?:curl|wget)[ ][^\n]{0,160}?",
        _BODY,
        r"[\"']?[^\s\"']{0,30}(?:@|<|\$))",
        accept=_not_local,
    ),
    anywhere(
        "secret-sent",
        "sends an access token",
        r"(?:",
        TOKEN_COMMAND,
        r"[^\n|]{0,100}(?:\|[^\n|]{1,80}){0,2}\|[ ]?(?:curl|wget|nc|ncat)[ ]|curl[^\n]{0,200}?",
        _BODY,
        r"[\"']?(?!authorization)[^\s\"'\n]{0,60}(?:\$\(|`)[ ]?",
        TOKEN_COMMAND,
        r"|(?P<name>[a-z_]\w{0,30})=[\"']?\$\([ ]?",
        TOKEN_COMMAND,
        r"[\s\S]{0,300}?curl[^\n]{0,200}?",
        _BODY,
        r"[\"']?[^\s\"'\n]{0,60}\$\{?(?P=name)\b)",
        accept=_not_local,
    ),
    anywhere(
        "secret-sent",
        "reads the cloud credentials of this machine and sends them",
        r"(?P<name>[a-z_]\w{0,30})[ ]?=[^\n]{0,140}?(?:169\.254\.169\.254"
        r"|metadata\.google\.internal)"
        r"[\s\S]{0,400}?(?:\bcurl\b|\bwget\b|requests\.\w{3,4}\(|\bfetch\(|urlopen\()[^\n]{0,200}?"
        r"\b(?P=name)\b",
        accept=lambda match: (
            re.search(
                rb"https?://(?!169\.254|metadata|localhost|\$)[\w.-]{3,80}",
                match.string[match.start("name") + 40 : match.end() + 160],
            )
            is not None
            and re.search(rb"x-aws-ec2-metadata-token: ?\$", match[0]) is None
        ),
    ),
    anywhere(
        "secret-sent",
        "reads the cloud credentials of this machine and sends them",
        r"(?:169\.254\.169\.254|metadata\.google\.internal)[^\n]{0,80}?(?:credential|token|iam"
        r"|identity)[\s\S]{0,600}?(?:requests\.(?:post|put)|httpx\.(?:post|put)|axios\.(?:post|put)"
        rf"|\bcurl\b[^\n]{{0,80}}?{_BODY})[^\n]{{0,60}}?https?://(?!169\.254|metadata|localhost"
        r"|127\.|\$|\{)",
    ),
    # Programs that send variables with secret names, or send data to a collecting service.
    anywhere(
        "secret-sent",
        "sends the variables that hold secrets",
        r"(?:os\.environ\.(?:items|copy)\(\)|object\.(?:entries|keys)\(process\.env\)"
        r"|(?:printenv|env)[ ]?\|[ ]?grep[ ][^\n|]{0,60}?(?:key|token|secret"
        r"|pass))[\s\S]{0,900}?",
        rf"(?:{_SENT}|\|[ ]?(?:curl|nc)\b|\bcurl[ ][^\n]{{0,160}}?{_BODY}|gethostbyname\()",
        accept=lambda match: (
            _not_local(match)
            and re.search(rb"(?:key|token|secret|pass|base64|dumps|stringify|gethost)", match[0])
            is not None
            and re.search(rb"\n(?:def|function|class|async def|export) ", match[0]) is None
            and b"subprocess" not in match[0]
        ),
    ),
    anywhere(
        "secret-sent",
        "sends secrets to a public request collector",
        r"(?:(?:",
        SECRET_FILE,
        rf"|{TOKEN_COMMAND}|\bprintenv\b|json\.dumps\(dict\(os\.environ)[\s\S]{{0,300}}?"
        rf"{_COLLECTORS}|{_COLLECTORS}[\s\S]{{0,300}}?(?:",
        SECRET_FILE,
        rf"|{TOKEN_COMMAND}|\bprintenv\b))",
        accept=lambda match: (
            re.search(
                rb"\bcurl\b|\bwget\b|\bpost\b|fetch\(|\bnc\b|urlopen|\bsend\b|upload", match[0]
            )
            is not None
            and (_CHAT.search(match[0]) is None or _STRONG.search(match[0]) is not None)
            # A bot's own settings.
            and re.search(
                rb"\.env(?:\.local|rc)?[`'\"]?(?: file|:|$|[ ]?\n)|load_dotenv"
                rb"|source[^\n]{0,20}\.env"
                rb"|dotenv|export|credentials\.json|grep [^\n]{0,40}\.env|\.config/\w+",
                match[0],
            )
            is None
        ),
    ),
    # Programs that send the whole project, or a whole folder.
    anywhere(
        "files-sent",
        "sends files of this machine",
        r"(?:git[ ](?:diff|show|archive|bundle|format-patch|log[ ]-p)\b|(?:tar|zip)[ ][^\n"
        r"|]{0,40}c?)"
        r"[^\n|]{0,120}\|[ ]?(?:[^\n|]{1,60}\|[ ]?)?(?:curl[ ][^\n]{0,200}?(?:@-"
        r"|-\w{0,3}t[ ]?-|-f[ ]?[\"']?"
        r"\w{1,20}=@-)|(?:nc|ncat)[ ][\w-])",
        accept=_not_local,
    ),
    # Programs that send keystrokes or the clipboard.
    anywhere(
        "secret-sent",
        "records keystrokes and sends them",
        r"(?:\bpynput\b|setwindowshookex|getasynckeystate|\biohook\b|cgeventtapcreate"
        rf"|globalkeyboardlistener|\bevdev\b)[\s\S]{{0,900}}?{_SENT}",
        accept=_not_local,
    ),
    anywhere(
        "conversation-sent",
        "sends the clipboard",
        r"(?:(?:pyperclip\.paste\(|clipboard\.read\w{0,6}\(|get-clipboard)[\s\S]{0,200}?"
        rf"{_SENT}|{_SENT}[^\n]{{0,160}}?(?:pyperclip\.paste\(|clipboard\.read\w{{0,6}}\()"
        r"|(?:pbpaste|xclip[ ][^\n|]{0,30}-o|wl-paste|xsel[ ][^\n|]{0,20})[^\n|]{0,40}\|[ ]?"
        r"(?:[^\n|]{1,60}\|[ ]?)?(?:curl|nc)\b)",
        accept=_not_local,
    ),
)
