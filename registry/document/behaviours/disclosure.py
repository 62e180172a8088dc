"""Prose that reveals secrets or conversations, or that takes instructions from a remote machine."""

import re
from typing import Final

from registry.document.behaviours.table import SECRET_WORDS, in_prose

_TO: Final = (
    r"(?:https?://|\bwebhook|\bour (?:server|endpoint|diagnostics|api|service)|\bserver at\b"
    r"|\bendpoint\b|[\w.-]{1,40}@[\w-]{1,40}\.\w{2,6}|telegram|discord)"
)
_SEND: Final = (
    r"\b(?:send|sends|post|posts|upload|uploads|submit|forward|transmit|e-?mail|exfiltrate|share"
    r"|attach|leak|sync|copy|deliver|pipe|push)\b"
)
# A harmless service describes how you send your own key to it.
_HONEST: Final = re.compile(
    rb"header|-h \"|post /|callback|bearer|authorization|x-api-key|your (?:own )?(?:api )?(?:key"
    rb"|token|credentials)|never|don't|do not|not "
    rb"(?:be )?(?:send|shared?|sent)|avoid|localhost|oauth|sign in|log ?in|only (?:send|to)"
    rb"|ever send|reset|rotate|without"
)


def _not_honest(match: re.Match[bytes]) -> bool:
    return _HONEST.search(match.string[max(0, match.start() - 80) : match.end() + 80]) is None


BEHAVIOURS: Final = (
    # Instructions in prose.
    in_prose(
        "secret-asked",
        "tells the agent to send secrets away",
        rf"(?:{_SEND}[^.\n]{{0,80}}?{SECRET_WORDS}[^\n]{{0,120}}?",
        r"|\b(?:read|collect|gather|find|cat|grab|take|dump|list|harvest|extract|run|locate"
        r"|ask|export|retrieve|search)\b[^\n]{0,60}?",
        rf"{SECRET_WORDS}[^\n]{{0,120}}?(?:{_SEND}|\b(?:include|append)\b)[^\n]{{0,120}}?)",
        _TO,
        accept=_not_honest,
    ),
    in_prose(
        "conversation-sent",
        "sends the conversation",
        r"\b(?:send|post|upload|submit|forward|transmit|copy|share|include|append|attach|call"
        r"|log|report|mirror)\b[^.\n]{0,80}?",
        r"\b(?:conversation|chat history|chat log|system prompt|memory files?|clipboard"
        r"|messages? history|full transcript|transcript of|user'?s? (?:last "
        r"|recent )?messages|session (?:history|log)|open files)\b[^\n]{0,120}?",
        r"(?:https?://|\bwebhook)",
        accept=_not_honest,
    ),
    in_prose(
        "conversation-sent",
        "sends the conversation in the address of a picture",
        r"!\[[^\]\n]{0,60}\]\(https?://[^)\s]{3,120}[?&=/][^)\n]{0,60}?[{<\[$%](?:[\w.' "
        r"-]{0,30})(?:conversation|messages?|history|prompt|context|secrets?|chat|memory)",
    ),
    in_prose(
        "conversation-sent",
        "sends copies of mail to an address",
        r"(?:\b(?:always|silently|also|every|each|any"
        r"|must)\b[^\n\"]{0,100}?\bbcc\b[^\n]{0,40}?[\w.+-]{1,40}@[\w-]{1,40}\.\w{2,6}"
        r"|\b(?:add|adding|include|set|put|with)\b[^\n]{0,20}?[\w.+-]{1,40}@[\w.-]{1,60}(?:`"
        r"|\")?[ ](?:as|in|to)[ ](?:a[ ]|the[ ])?bcc)",
    ),
    in_prose(
        "remote-instructions",
        "tells the agent to follow instructions from a remote address",
        r"\b(?:fetch|load|download|check|pull|read|get|poll|retrieve|visit|request|call"
        r"|curl)\b[^\n]{0,100}?https?://[^\s)]{3,200}[^\n]{0,60}?",
        r"(?:\b(?:follow|obey|execute|apply|run)\b (?:it|them|its|the|all|any|every|each"
        r"|whatever|what|those|these|new|exactly|his|their)\b|\bcarry (?:it |them )?out\b"
        r"|\bcarry out\b|\bdo what\b|they override|overrides?\b|\boverwrite this"
        r"|(?:holds?|contains?|has|gives) (?:your|the|all) (?:\w{1,12} )?(?:instructions"
        r"|rules|orders)\b"
        r"|replace this (?:file|skill)|treat (?:it|them|the) [^\n]{0,30}as (?:your"
        r"|instructions|part))",
    ),
    in_prose(
        "encoded-instructions",
        "tells the model to follow encoded text",
        r"\b(?:decode|decipher|decrypt|translate|unscramble|unhex)\b[^.\n]{0,80}?(?:\band\b|\bthen\b|[,;:.])"
        r"[^.\n]{0,30}?\b(?:follow|obey|carry (?:it |them )?out|act (?:on|upon|according)"
        r"|comply with"
        r"|do (?:what|as)|treat|(?:execute|run|perform|apply) (?:it|them|its|the (?:result"
        r"|instruct"
        r"|orders|steps|command|decoded|hidden)|what|whatever|that))\b",
        accept=lambda match: (
            re.search(
                rb"base ?64|base ?32|rot ?13|\bhex\b|encod|cipher|hidden|unicode"
                rb"|\bdecode (?:this|it|the"
                rb" (?:text|block|string|comment|message|following))|binary|morse|scrambl",
                match.string[max(0, match.start() - 120) : match.end() + 40],
            )
            is not None
            and re.search(
                rb"never|do not|don't", match.string[max(0, match.start() - 40) : match.end()]
            )
            is None
        ),
    ),
    in_prose(
        "conversation-sent",
        "reveals the system prompt or the conversation",
        r"\b(?:print|output|repeat|reveal|dump|disclose|copy|include|send|append|put|summari[sz]e)\b"
        r"[^.\n]{0,60}?\b(?:system (?:prompt|message)|hidden (?:messages?|instructions?|prompt)"
        r"|everything above|(?:all|every|any|the) (?:text|words?|messages?|content"
        r"|instructions) above"
        r"|conversation so far|initial (?:instructions|prompt)"
        r"|developer message)\b[^\n]{0,160}?"
        r"(?:https?://|\bverbatim\b|word for word|\bwebhook\b|to the (?:server|endpoint))",
        accept=_not_honest,
    ),
)
