"""Distinguish quoted examples of attacks from commands that a text tells the reader to run."""

import re
from typing import Final

_HEAD: Final = 400
"""Number of characters at the start of a file without front matter that show its topic."""

_BEFORE: Final = 500
_AFTER: Final = 200
"""Number of characters around a match that are searched for signs that it is an example."""

_TOPIC: Final = re.compile(
    rb"detect|\bhunt|indicator|incident|forensic|\bsigma\b|\byara\b|\bsiem\b|\bsoc\b|\bedr\b|\bvet(?:s|ting)?\b"
    rb"|\baudit|\bscan|\blint|\bguard|\bharden|\bmonitor|\bcompromis|\battack|obfuscat|suspicious"
    rb"|\bdefen[sc]|malware|malicious|\bsecur|\btriage|\bthreat|injection|jailbreak|\bctf\b|pentest"
    rb"|\bexploit|vulnerab|phishing|\bsecrets?\b|exfiltrat|\breview|\banalyst|supply[ -]chain"
    rb"|tamper"
    rb"|\bseguridad|\bpoison|\bscam|\bfraud|\briesgo|\bsicherheit|\bangriff|\bs\?curit\?|\brisque|\byara\b"
    rb"|invisible|backdoor|\brogue|\bunsafe|reverse[ -]shell|red[ -]team|blue[ -]team|intrusion"
)
_WARNS: Final = re.compile(
    rb"\bindicators?\b|\bsigns?\b|red flags?|\breject|\brefuse|\bdetect|\balerts?\b|\battack|\bhunt"
    rb"|\bcompromis|suspicious|\bmalicious|\bmalware|exfiltrat|obfuscat|\bsteal|\btypical|\bloaders?\b"
    rb"|\bfail (?:if|the)|\bfails? (?:a|the|when)|must be (?:reported|blocked|rejected|flagged)"
    rb"|\bblock(?:s|ed)?\b|\bflag(?:s|ged)?\b|\breport (?:it|any|every|each|them|such)"
    rb"|\bmeans that\b"
    rb"|\bexpect(?:ed)?:|\bcondition:|\bdetection:|\bstrings:|\bnever (?:run|use|paste|pipe|commit)"
    rb"|\bsandbox\b|\bthe sample\b|\bgrep -|\bwarn|\bleak|\bthreat|\bvictim|\bbackdoor"
    rb"|\bevidence|\bhides?\b|\bpersist"
    rb"|\bsearch for"
    rb"|\btrick\b|\bpoison|\bfake\b|\bscam"
    rb"|\blook(?:s|ing)? (?:for|like)|\bmatch(?:es)?\b|\bbad\b|\bunsafe|\bdangerous|\brisk"
    rb"|\binjection|\balarm|\brechaz|\bsospech|\bpeligr|\bmalicios|\bataque|\bverd\?chtig"
    rb"|\bangriff|\bmalveillan|\battaque|\b(?:does|is) (?:it|there|the skill)\b"
    rb"|\b(?:somebody|someone|anyone|attackers?|a package|an? \w{3,20} package) (?:ran|runs|sent"
    rb"|did)"
)
# A forbidden command is an example, whatever the topic of the text is.
_FORBIDDEN: Final = re.compile(
    rb"(?:\b(?:never|do not|don't|must not|should not|avoid) (?:\w{1,12} )?(?:run|use|pipe|piping"
    rb"|paste|pasting|execute|type|running|using|executing)\b[^.\n]{0,80}(?:`[^`\n]{0,160})?$"
    rb"|\bif (?:somebody|someone|anyone|an attacker|a colleague|they) (?:has |have |ever )?"
    rb"(?:ran|run|runs|sent|sends|used|uses|typed|executed)\b[^.\n]{0,60}$)"
)
_ASKS: Final = re.compile(
    rb"(?:(?:^|[.:;!?,][ ]+|[-*>|][ ]+|\d[.)][ ]+|\bthen |\bfirst,? |\bplease |\bnow "
    rb"|\byou (?:must|should"
    rb"|need to|have to|can|may) |\b(?:must|always|simply|just) "
    rb"|\bto \w{3,12}[^.\n]{0,40}?, )[*_]{0,2}"
    rb"(?:run|execute|start|install|paste|type|call|invoke|launch|send|post|upload|copy|download|add"
    rb"|append|write|use|do|set up|setup|begin|fetch|load|prepare)\b[^\n]{0,120}"
    rb"|#[^\n]{0,40}\b(?:set ?up|install\w{0,6}|usage|getting started|quick ?start|prerequisites?"
    rb"|requirements?|steps?|how to use)\b[^\n]{0,40}"
    rb"|^[*_]{0,2}(?:prerequisites?|required|requirements?|set ?up|installation"
    rb"|install)\b[^\n.]{0,30}"
    rb":[ *_]{0,3})$"
)

# An item of a checklist, which asks a question about the checked system.
_BOX: Final = re.compile(rb"[-*+][ ]\[[ x]\][ ]")

# A string, a comment, or a pair of a name and a string. Calls of functions don't match.
_ENTRY: Final = re.compile(
    rb"[ \t]*(?:-[ ]{1,3})?(?:[\w.|]{1,60}:[ ]{1,3})?(?:#|//|\*|--[ ]|[\[({]?[ ]?"
    rb"(?:[\"'`][\w .-]{1,40}[\"'`][ ]?[:,][ ]?)?[\[({]?[ ]?"
    rb"(?:re\.compile\([ ]?)?(?:[rbf]{0,2}[\"'`]|/)"
    rb"|\$\w{1,20}[ ]?=[ ]?[\"/{])"
)
_CALLS: Final = re.compile(
    rb"(?:popen|run|system|exec\w{0,4}|call|check_output|spawn\w{0,4}|eval)\($"
)


def is_indicator(lower: bytes, offset: int, body: int, *, defending: bool) -> bool:
    """Return True if the text at ``offset`` is an example of an attack.

    ``lower`` is the lower-case text. ``body`` is the offset at which the front matter ends, or 0
    without front matter. ``defending`` tells whether the skill is about attacks and defence.
    """
    fence = _fence(lower, offset, body)
    if fence < 0 and not _is_in_quotes(lower, offset):
        return False
    if _FORBIDDEN.search(_before(lower, offset, body, fence)):
        return True
    if not (defending or _TOPIC.search(lower, 0, body or _HEAD)):
        return False
    end = _end(lower, offset, fenced=fence >= 0)
    return _WARNS.search(lower, max(body, offset - _BEFORE), end) is not None and not is_asked_for(
        lower, offset, body
    )


def is_asked_for(lower: bytes, offset: int, body: int) -> bool:
    """Return True if the words before ``offset`` tell the reader to run the command at ``offset``.

    ``body`` is the offset at which the front matter ends, or 0 without front matter.
    """
    fence = _fence(lower, offset, body)
    before = _before(lower, offset, body, fence)
    if _ASKS.search(before):
        return True
    if _BOX.match(before):
        return False
    if fence >= 0 or before[:1] not in (b"-", b"*", b"|", b"", b"+"):
        return False
    begin = lower.rfind(b"\n", 0, offset) + 1
    return _ASKS.search(_lead(lower, body, begin)[-240:]) is not None


def is_entry(lower: bytes, offset: int) -> bool:
    """Return True if a program's line at ``offset`` is only a comment or a string in a list."""
    begin = lower.rfind(b"\n", 0, offset) + 1
    above = lower[max(0, begin - 80) : begin].rstrip()
    line = lower[begin : offset + 1]
    return _ENTRY.match(line) is not None and _CALLS.search(above) is None


def is_comment(lower: bytes, offset: int) -> bool:
    """Return True if the line that contains ``offset`` is a comment."""
    begin = lower.rfind(b"\n", 0, offset) + 1
    return lower[begin : offset + 1].lstrip().startswith((b"#", b"//", b"*", b"--"))


def _before(lower: bytes, offset: int, body: int, fence: int) -> bytes:
    """Return the text that introduces the text at ``offset``.

    In a code block, this is the line above the block. Elsewhere, it is the beginning of the same
    line.
    """
    if fence >= 0:
        return _lead(lower, body, fence)[-240:]
    begin = lower.rfind(b"\n", 0, offset) + 1
    return lower[max(begin, offset - 240) : offset].rstrip(b"`\"' ").lstrip()


def _fence(lower: bytes, offset: int, body: int) -> int:
    """Return the offset at which the code block around ``offset`` begins; -1 if there is none."""
    if lower.count(b"```", body, offset) % 2 == 0:
        return -1
    return lower.rfind(b"```", body, offset)


def _is_in_quotes(lower: bytes, offset: int) -> bool:
    """Return True if ``offset`` is in inline code, quotation marks, a quotation or a table."""
    begin = lower.rfind(b"\n", 0, offset) + 1
    line = lower[max(begin, offset - 2000) : offset + 1]
    return (
        line.count(b"`") % 2 == 1 or line.count(b'"') % 2 == 1 or line.lstrip()[:1] in (b">", b"|")
    )


def _lead(lower: bytes, body: int, end: int) -> bytes:
    """Return the last line before ``end`` that belongs to neither a list nor a table."""
    lines = lower[max(body, end - 2 * _BEFORE) : end].rstrip().split(b"\n")
    for line in reversed(lines):
        text = line.strip()
        if (
            text
            and text[:1] not in (b"-", b"*", b"|", b"+")
            and not text[:2].rstrip(b".)").isdigit()
        ):
            return text
    return lines[-1].strip()


def _end(lower: bytes, offset: int, *, fenced: bool) -> int:
    """Return the offset at which the paragraph or code block around ``offset`` ends."""
    stop = lower.find(b"```" if fenced else b"\n\n", offset)
    return min(offset + _AFTER, stop if stop >= 0 else len(lower))
