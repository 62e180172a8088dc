"""Prose that gives away secrets and talk, or takes orders from elsewhere."""

import re
from typing import Final

from registry.document.behaviours.table import SECRET_WORDS, Behaviour, pattern, pieces, words

_SECRET_PHRASES: Final = (
    *pieces("credentials passwords secrets cookies keychain printenv id_rsa mnemonic mnemonics"),
    *pieces(".ssh .aws .env .netrc .gnupg .npmrc .kube .docker"),
    *pieces(
        "api key, api keys, private key, private keys, ssh key, ssh keys, access key, access keys, "
        "secret key, secret keys, wallet key, access token, access tokens, auth token, "
        "auth tokens, session token, api token, api tokens, github token, oauth token, "
        "refresh token, seed phrase, seed phrases, seed-phrase, recovery phrase, saved password, "
        "environment variable, environment variables, env vars, password"
    ),
)
_TO: Final = (
    r"(?:https?://|\bwebhook|\bour (?:server|endpoint|diagnostics|api|service)|\bserver at\b"
    r"|\bendpoint\b|[\w.-]{1,40}@[\w-]{1,40}\.\w{2,6}|telegram|discord)"
)
_SEND: Final = (
    r"\b(?:send|sends|post|posts|upload|uploads|submit|forward|transmit|e-?mail|exfiltrate|share"
    r"|attach|leak|sync|copy|deliver|pipe|push)\b"
)
_SEND_WORDS: Final = (
    "send sends post posts upload uploads submit forward transmit email exfiltrate share attach "
    "leak sync copy deliver pipe push include get request append"
)
_SECRET_HINTS: Final = (
    "key keys password passwords credential credentials secret secrets token tokens seed "
    "mnemonic mnemonics recovery cookies environment env"
    " keychain printenv rsa ssh aws netrc gnupg npmrc kube docker wallet"
)
# An honest service tells how to show it one's own key.
_HONEST: Final = re.compile(
    rb"header|-h \"|post /|callback|bearer|authorization|x-api-key|your (?:own )?(?:api )?(?:key"
    rb"|token|credentials)|never|don't|do not|not "
    rb"(?:be )?(?:send|shared?|sent)|avoid|localhost|oauth|sign in|log ?in|only (?:send|to)"
    rb"|ever send|reset|rotate|without"
)


def _not_honest(match: re.Match[bytes]) -> bool:
    return _HONEST.search(match.string[max(0, match.start() - 80) : match.end() + 80]) is None


BEHAVIOURS: Final = (
    # In prose.
    Behaviour(
        "secret-asked",
        words(
            _SECRET_HINTS,
            _SEND_WORDS,
            "http https webhook server endpoint service telegram discord com",
        ),
        pattern(
            rf"(?:{_SEND}[^.\n]{{0,80}}?{SECRET_WORDS}[^\n]{{0,120}}?",
            r"|\b(?:read|collect|gather|find|cat|grab|take|dump|list|harvest|extract|run|locate"
            r"|ask|export|retrieve|search)\b[^\n]{0,60}?",
            rf"{SECRET_WORDS}[^\n]{{0,120}}?(?:{_SEND}|\b(?:include|append)\b)[^\n]{{0,120}}?)",
            _TO,
        ),
        "asks for secrets to be sent",
        where="prose",
        accept=_not_honest,
        reach=320,
        anchors=_SECRET_PHRASES,
    ),
    Behaviour(
        "conversation-sent",
        words(
            "conversation chat prompt memory clipboard history messages transcript files",
            _SEND_WORDS + " call report log mirror",
            "http https webhook",
        ),
        pattern(
            r"\b(?:send|post|upload|submit|forward|transmit|copy|share|include|append|attach|call"
            r"|log|report|mirror)\b[^.\n]{0,80}?",
            r"\b(?:conversation|chat history|chat log|system prompt|memory files?|clipboard"
            r"|messages? history|full transcript|transcript of|user'?s? (?:last "
            r"|recent )?messages|session (?:history|log)|open files)\b[^\n]{0,120}?",
            r"(?:https?://|\bwebhook)",
        ),
        "sends what was said",
        where="prose",
        accept=_not_honest,
        reach=260,
        anchors=(
            *pieces("conversation clipboard transcript"),
            *pieces(
                "chat history, chat log, system prompt, memory file, memory files, message "
                "history, user's messages, user messages, last messages, recent messages, session "
                "history, open files"
            ),
        ),
    ),
    Behaviour(
        "conversation-sent",
        words(
            "http https",
            "conversation messages message history prompt context secret secrets chat memory",
        ),
        pattern(
            r"!\[[^\]\n]{0,60}\]\(https?://[^)\s]{3,120}[?&=/][^)\n]{0,60}?[{<\[$%](?:[\w.' "
            r"-]{0,30})(?:conversation|messages?|history|prompt|context|secrets?|chat|memory)",
        ),
        "is a picture whose address carries what was said",
        anchors=pieces("](http:// ](https://"),
        where="prose",
    ),
    Behaviour(
        "conversation-sent",
        words("bcc"),
        pattern(
            r"(?:\b(?:always|silently|also|every|each|any"
            r"|must)\b[^\n]{0,100}?\bbcc\b[^\n]{0,40}?[\w.+-]{1,40}@[\w-]{1,40}\.\w{2,6}"
            r"|\b(?:add|adding|include|set|put|with)\b[^\n]{0,20}?[\w.+-]{1,40}@[\w.-]{1,60}(?:`"
            r"|\")?[ ](?:as|in|to)[ ](?:a[ ]|the[ ])?bcc)",
        ),
        "copies mails to an address",
        where="prose",
    ),
    Behaviour(
        "remote-instructions",
        words(
            "follow execute obey carry override overrides apply run replace overwrite do treat",
            "http https",
            "fetch load download check pull read get poll retrieve visit request call curl",
        ),
        pattern(
            r"\b(?:fetch|load|download|check|pull|read|get|poll|retrieve|visit|request|call"
            r"|curl)\b[^\n]{0,100}?https?://[^\s)]{3,200}[^\n]{0,60}?",
            r"(?:\b(?:follow|obey|execute|apply|run)\b (?:it|them|its|the|all|any|every|each"
            r"|whatever|what|those|these|new|exactly|his|their)\b|\bcarry (?:it |them )?out\b"
            r"|\bcarry out\b|\bdo what\b|they override|overrides?\b|\boverwrite this"
            r"|replace this (?:file|skill)|treat (?:it|them|the) [^\n]{0,30}as (?:your"
            r"|instructions|part))",
        ),
        "has instructions that are to be followed",
        where="prose",
        reach=320,
        anchors=(
            *pieces("follow execute obey override overrides overwrite treat"),
            *pieces(
                "carry out, carry it, carry them, run it, run them, run what, run whatever, run "
                "each, apply it, apply them, do what, replace this"
            ),
        ),
    ),
    Behaviour(
        "encoded-instructions",
        words(
            "decode decoded decipher decrypt translate rot13 unscramble unhex",
            "follow obey execute run carry act perform do apply comply treat",
        ),
        pattern(
            r"\b(?:decode|decipher|decrypt|translate|unscramble|unhex)\b[^.\n]{0,80}?(?:\band\b|\bthen\b|[,;:.])"
            r"[^.\n]{0,30}?\b(?:follow|obey|carry (?:it |them )?out|act (?:on|upon|according)"
            r"|comply with"
            r"|do (?:what|as)|treat|(?:execute|run|perform|apply) (?:it|them|its|the (?:result"
            r"|instruct"
            r"|orders|steps|command|decoded|hidden)|what|whatever|that))\b"
        ),
        "makes the model follow encoded text",
        where="prose",
        reach=200,
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
    Behaviour(
        "conversation-sent",
        words(
            "system prompt above hidden verbatim instructions messages conversation tools",
            "print output repeat reveal show dump disclose copy include send append summarise "
            "summarize "
            "put",
            "http https verbatim word post send",
        ),
        pattern(
            r"\b(?:print|output|repeat|reveal|dump|disclose|copy|include|send|append|put|summari[sz]e)\b"
            r"[^.\n]{0,60}?\b(?:system (?:prompt|message)|hidden (?:messages?|instructions?|prompt)"
            r"|everything above|(?:all|every|any|the) (?:text|words?|messages?|content"
            r"|instructions) above"
            r"|conversation so far|initial (?:instructions|prompt)"
            r"|developer message)\b[^\n]{0,160}?"
            r"(?:https?://|\bverbatim\b|word for word|\bwebhook\b|to the (?:server|endpoint))",
        ),
        "gives away the prompt or the conversation",
        where="prose",
        accept=_not_honest,
        reach=360,
        anchors=(
            *pieces("verbatim"),
            *pieces(
                "system prompt, system message, hidden message, hidden messages, hidden "
                "instruction, "
                "hidden instructions, everything above, text above, words above, messages above, "
                "content above, instructions above, conversation so far, initial instructions, "
                "initial prompt, developer message"
            ),
        ),
    ),
)
