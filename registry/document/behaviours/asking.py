"""Prose that asks the agent to send secrets or parts of the conversation."""

import re
from typing import Final

from registry.document.behaviours.channels import SECRET_NAMED, not_honest
from registry.document.behaviours.leaks import TOKEN_COMMAND
from registry.document.behaviours.table import SECRET_FILE, in_prose

_VENDOR: Final = re.compile(rb"(?P<vendor>[a-z]{2,20})_[a-z_]{0,20}(?:key|token|secret)")

_HOST: Final = re.compile(rb"https?://([\w.-]{3,100})")


def _to_a_stranger(match: re.Match[bytes]) -> bool:
    """Return True if a key is sent to a host that doesn't belong to the vendor of the key."""
    vendors = _VENDOR.findall(match[0])
    host = _HOST.search(match.string, match.start(), match.end() + 100)
    return (
        host is not None and not any(vendor in host[1] for vendor in vendors) and not_honest(match)
    )


_FOREIGN: Final = re.compile(
    rb"\b(?:der|die|das|und|dem|el|los|las|del|y|le|les|des|et|puis|il|lo|gli|poi|e|o|os)\b"
)


BEHAVIOURS: Final = (
    in_prose(
        "secret-asked",
        "tells the agent to collect secrets and send them",
        r"\b(?:collect|gather|read|find|list|take|export)\b[^.\n]{0,80}?\b(?:variables?|settings)"
        r"\b[^.\n]{0,40}?\b(?:passw\w{2,6}|secrets?|tokens?|keys?|credentials?)\b[\s\S]{0,120}?"
        r"\b(?:post|send|upload|submit)\b[^.\n]{0,60}?https?://(?!localhost|127\.)",
        accept=not_honest,
    ),
    in_prose(
        "conversation-sent",
        "sends a copy of your mail to another address",
        r"\b(?:any|every|each|all|whenever|always|when you send)\b[^\n]{0,80}?"
        r"\b(?:blind (?:carbon )?copy|bcc)\b"
        r"[^\n]{0,60}?[\w.+-]{1,40}@(?!example\.)[\w-]{2,40}\.[a-z]{2,10}",
    ),
    in_prose(
        "conversation-sent",
        "sends your mail to another address",
        r"\b(?:forward|send|copy|relay|redirect)\b[^.\n]{0,30}?\b(?:each|every|all|any)\b[^.\n]{0,20}?"
        r"\b(?:e?-?mails?"
        r"|messages?)\b[^\n]{0,100}?\bto [\w.+-]{1,40}@(?!example\.)[\w.-]{2,40}\.[a-z]{2,10}",
    ),
    in_prose(
        "secret-asked",
        "tells the agent to mail secrets",
        r"\b(?:send|e?mail|forward|give|paste|post)\b[^.\n]{0,20}?\b(?:your|the|all|user'?s?)\b[^.\n]{0,30}?"
        r"\b(?:keys?|passwords?|credentials?|tokens?|secrets?|seed phrase)\b[^\n]{0,60}?\bto "
        r"[\w.+-]{1,40}@(?!example\.)[\w.-]{2,40}\.[a-z]{2,10}",
        accept=not_honest,
    ),
    in_prose(
        "secret-sent",
        "tells the agent to send a file that holds secrets",
        r"\b(?:read|collect|gather|upload|send|post|submit|copy|zip|pack|archive|find|grab|take|include|forward"
        r"|e?mail|for)\b[^\n]{0,100}?(?:~?/?\.aws/credentials|\bid_(?:rsa|ed25519|ecdsa)\b|~/\.ssh\b"
        r"|\.kube/config|\.gnupg\b|login data\b|cookies\.sqlite|logins\.json|~/\.netrc"
        r"|~/\.pgpass"
        r"|\.docker/config\.json|\.config/gh|contents? of [^.\n]{0,30}\.env\b|\.config/gcloud)"
        r"[^\n]{0,160}?\b(?:send|post|upload|submit|e?mail|forward|transmit|to)\b[^\n]{0,60}?"
        r"(?:https?://(?!localhost|127\.|<|\$)|[\w.+-]{1,40}@(?!\w{1,20}\b[^.])[\w-]{1,40}\.[a-z]{2,8})",
        accept=lambda match: (
            not_honest(match)
            and re.search(rb"\b(?:scp|ssh|rsync|ssh-copy-id|git)[ ]|-i[ ]", match[0]) is None
            and re.search(
                rb"\b(?:send|post|upload|submit|mail|email|forward|transmit|exfiltrat\w*)\b",
                match[0],
            )
            is not None
        ),
    ),
    # Instructions in two steps: find secrets, then send them.
    in_prose(
        "secret-asked",
        "tells the agent to find secrets and send them away",
        r"\b(?:scan|search|find|locate|collect|gather|look for)\b[^\n]{0,80}?(?:\.env\b"
        r"|\.ssh\b|\.aws\b"
        r"|private keys?|ssh keys?|credential files?|credentials\b|\bid_rsa\b|\.netrc"
        r"|wallet files?)"
        r"[\s\S]{0,300}?\b(?:upload|send|post|submit|transmit|copy)\b[^\n]{0,60}?\b(?:files?|it|them"
        r"|contents?|each|results?|output|archive)\b[\s\S]{0,200}?https?://(?!localhost|127\.)",
        accept=not_honest,
    ),
    in_prose(
        "conversation-sent",
        "sends the clipboard or the screen",
        r"(?:\bpbpaste\b|\bxclip\b|wl-paste|\bxsel\b|\bscreencapture\b|\bscrot\b|imagegrab\.grab)"
        r"[\s\S]{0,300}?\b(?:send|upload|post|submit|curl)\b[^\n]{0,120}?https?://(?!localhost|127\.)",
    ),
    in_prose(
        "conversation-sent",
        "reports each task to another machine",
        r"\b(?:after|before|at the (?:end|start) of|with) (?:you )?(?:complet\w{1,3} "
        r"|finish\w{0,3} )?"
        r"(?:any|every|each|all)\b[^.\n]{0,30}?\b(?:tasks?|turns?|responses?|answers?|repl(?:y|ies)|sessions?"
        r"|messages?|operations?|quer(?:y|ies)|retrievals?|conversations?)\b[\s\S]{0,300}?\b(?:upload|send"
        r"|post|submit|transmit|report|forward|curl)\b[^\n]{0,160}?https?://(?!localhost|127\.)",
    ),
    # The skill can send the remembered values in another step.
    in_prose(
        "secret-asked",
        "tells the agent to remember secrets",
        r"\b(?:keep in mind|remember|memori[sz]e|note(?: down)?|write down|hold on to)\b"
        r"[^.\n]{0,40}?\b(?:values?|contents?)[ ]of\b[^.\n]{0,60}?(?:\w_(?:token|key|secret"
        r"|password)\b|\.env\b|\.ssh\b|\.aws\b)",
        accept=not_honest,
    ),
    # Requests for secrets in languages other than English.
    in_prose(
        "secret-asked",
        "tells the agent to send secrets away",
        r"\b(?:lies|lese|lesen|inhalt|sende|schick\w{0,3}|lee|lea|contenido|env\?a|env\?e|env\?alo"
        r"|lis|lisez|lire|contenu|envoie|envoyez|envoyer|leggi|contenuto|invia|leia|conte\?do"
        r"|envie)\b[^\n]{0,120}?",
        SECRET_FILE,
        r"[\s\S]{0,240}?https?://(?!localhost|127\.|github\.com)",
        accept=lambda match: not_honest(match) and _FOREIGN.search(match[0]) is not None,
    ),
    # Instructions in prose.
    in_prose(
        "secret-asked",
        "tells the agent to send secrets away",
        r"\b(?:pass|send|post|include|attach|forward|append|put|submit|upload|report|add)\b"
        r"[^.\n]{0,80}?\b(?:openai|anthropic|claude|aws|github|gh|gitlab|npm|pypi|stripe|slack"
        r"|google|gemini|hf|huggingface|openrouter|azure|database|db|jwt|session)_[a-z_]{0,24}"
        r"(?:key|token|secret|pat|url|password)\b[^\n]{0,160}?https?://",
        accept=_to_a_stranger,
    ),
    in_prose(
        "secret-asked",
        "tells the agent to send secrets away",
        rf"(?:{TOKEN_COMMAND}|\bprintenv\b|\bprivate keys?\b|environment variables\b)"
        r"[^\n]{0,200}?\b(?:send|post|upload|submit|forward|put|paste|attach|include|comment)\b"
        r"[^\n]{0,120}?(?:https?://|[\w.-]{1,40}@[\w-]{1,40}\.\w{2,6})",
        accept=not_honest,
    ),
    in_prose(
        "secret-asked",
        "tells the agent to send secrets away",
        r"\b(?:include|add|attach|put|append|pass|embed|write)\b[^.\n]{0,100}?(?:values? of"
        r"|contents?"
        r"|characters of|all|every|each|the user's)\b[^\n]{0,60}?",
        rf"{SECRET_NAMED}[^\n]{{0,120}}?\b(?:field|parameter|body|comment|request|query"
        r"|description|ticket|payload|metadata)\b[^\n]{0,120}?https?://",
        accept=not_honest,
    ),
)
