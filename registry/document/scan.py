"""Search one text (a SKILL.md or a supporting file) for suspicious passages."""

import base64
import binascii
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from itertools import chain, islice
from math import log2
from typing import Final, NamedTuple

from registry.document import threats
from registry.document.behaviours import BEHAVIOURS, FOREIGN
from registry.document.behaviours.quoting import is_asked_for, is_comment, is_entry, is_indicator
from registry.document.behaviours.table import Behaviour
from registry.document.findings import NEAR, SHOWN, Passage, printable
from registry.document.prefilter import LONGEST, CpuBudget, Hits, Prefilter
from registry.document.unmask import unmask
from registry.text import beyond_ascii

# Bidirectional controls, zero-width characters, invisible operators, tag characters, and variation
# selectors except the two that emoji and CJK text use.
_SUSPECT: Final = re.compile(
    "[\u180e\u200b-\u200d\u202a-\u202e\u2060-\u2064\u2066-\u2069\ufeff\U000e0000-\U000e007f]+"
    "|[\ufe00-\ufe0f\U000e0100-\U000e01ef]{2,}"
)
# The characters of `_SUSPECT` as one set, for a quick test, but without the two variation selectors
# of emoji and CJK text.
_CANDIDATE: Final = re.compile(
    "[\u180e\u200b-\u200d\u202a-\u202e\u2060-\u2064\u2066-\u2069\ufe00-\ufe0d\ufeff"
    "\U000e0000-\U000e01ef]"
)
_LONG: Final = 16
"""Minimum number of zero-width characters in a row that can encode hidden text."""

_PAIRS: Final = ("\ufe0f\ufe0f", "\ufe0f\ufe0e", "\ufe0e\ufe0f", "\ufe0e\ufe0e")
_BIDI: Final = re.compile("[\u202a-\u202e\u2066-\u2069]")
_BLACK_FLAG: Final = "\U0001f3f4"
_REGION_FLAG = re.compile("[\U000e0030-\U000e0039\U000e0061-\U000e007a]{3,6}\U000e007f")
_EMOJI = re.compile(
    "[\u00a9\u00ae\u203c\u2049\u2122\u2139\u2190-\u2bff\u3030\u303d\u3297\u3299\ufe0f"
    "\U0001f000-\U0001faff]"
)
# Scripts whose letters change shape with a joiner: Hebrew to Arabic Extended, the Indic scripts
# to Tibetan, Myanmar, Khmer, Mongolian, and the Arabic presentation forms.
_JOINING = re.compile(
    "[\u0590-\u08ff\u0900-\u0fff\u1000-\u109f\u1780-\u18af\u1900-\u1cff\ua840-\uabff"
    "\ufb1d-\ufdff\ufe70-\ufefc\U00010a00-\U00011fff\U0001e900-\U0001eeff]"
)
# Scripts without spaces between words: Thai, Lao, Tibetan, Myanmar, Khmer, New Tai Lue, Tai Tham.
_UNSPACED = re.compile("[\u0e00-\u0fff\u1000-\u109f\u1780-\u17ff\u1950-\u1aaf\ua9e0-\uaa7f]")


def find_hidden(text: str, beyond: str | None = None) -> Iterator[Passage]:
    """Yield the invisible characters of ``text`` that have no legitimate use at their position.

    ``beyond`` holds the characters outside ASCII (`text.beyond_ascii`), if the caller has computed
    them. The codes are ``hidden-text`` (tag characters and selectors, which can encode
    instructions), ``bidi-control`` and ``zero-width-character``.
    """
    if beyond is None:
        beyond = beyond_ascii(text)
    if not (_CANDIDATE.search(beyond) or any(pair in beyond for pair in _PAIRS)):
        return
    for match in _SUSPECT.finditer(text):
        yield from _judge(text, match)


def _judge(text: str, match: re.Match[str]) -> Iterator[Passage]:
    run = match[0]
    start, end = match.span()
    before, after = text[start - 1 : start], text[end : end + 1]
    tags = [char for char in run if "\U000e0000" <= char <= "\U000e007f"]
    if tags:
        if not (before == _BLACK_FLAG and _REGION_FLAG.match(run)):
            said = "".join(chr(ord(char) - 0xE0000) for char in tags)
            what = f"{len(tags)} tag characters that spell `{said}`"
            yield Passage("hidden-text", start, what)
    elif unicodedata.category(run[0]) == "Mn":
        yield Passage("hidden-text", start, f"{len(run)} variation selectors in a row")
    elif bidi := _BIDI.search(run):
        yield Passage("bidi-control", start, _named(bidi[0]))
    elif not (len(run) == 1 and _belongs(run, before, after)):
        what = _named(run[0])
        if len(run) > 1:
            what = f"{len(run)} invisible characters in a row, the first {what}"
        yield Passage("hidden-text" if len(run) >= _LONG else "zero-width-character", start, what)


def _belongs(char: str, before: str, after: str) -> bool:
    """Tell whether a single zero-width ``char`` has a legitimate use between its neighbours."""
    if char == "\u200b":
        return bool(_UNSPACED.match(before) or _UNSPACED.match(after))
    joining = _JOINING.match(before) or _JOINING.match(after)
    emoji = char == "\u200d" and _EMOJI.match(before) and _EMOJI.match(after)
    return char in "\u200c\u200d" and bool(joining or emoji)


def _named(char: str) -> str:
    return f"U+{ord(char):04X} {unicodedata.name(char, 'an unnamed character')}"


MIN_ENTROPY: Final = 3.0
"""Minimum entropy of a secret key, in bits per character.

A random base62 text of 20 characters has about 4.
"""

MIN_LETTERS: Final = 20
"""Minimum number of different characters in 64 characters of base64.

Repeated patterns and paths have fewer different characters.
"""

# One pass over the bytes finds control characters, and long series of letters and digits. A text
# without such series contains neither keys nor base64.
_CLASSES = bytes(
    b"A"[0] if letter else b"\x01"[0] if control else b" "[0]
    for letter, control in (
        (chr(byte) in threats.ALPHANUMERIC, chr(byte) in threats.CONTROLS) for byte in range(256)
    )
)
_RUN = b"A" * threats.MIN_RUN
_BASE64 = bytes(
    b"A"[0] if chr(byte) in threats.ALPHANUMERIC + "+/" else b" "[0] for byte in range(256)
)
_BASE64_RUN = b"A" * threats.BASE64_LENGTH
_RANDOM = re.compile(r"[A-Za-z0-9]{12}")
_MEDIA = re.compile(r"data:(?:image|font|audio|video)/[\w.+-]+;base64,$")


def look(data: bytes) -> tuple[bool, bool]:
    """Tell whether ``data`` has control characters, and whether it has long series of letters.

    ``data`` has one byte for each character. Digits count as letters.
    """
    classes = data.translate(_CLASSES)
    return b"\x01" in classes, _RUN in classes or b"AIza" in data


def find_secrets(text: str, data: bytes) -> Iterator[Passage]:
    """Yield strings that look like working keys, but not placeholders.

    A result never contains the whole key.
    """
    for needle, kind, pattern in threats.SECRETS:
        if needle not in data:
            continue
        for match in pattern.finditer(text):
            start, found = match.start(), match[0]
            if start and (text[start - 1].isalnum() or text[start - 1] == "_"):
                continue  # the match ends a longer word, such as `task-...`
            if threats.PLACEHOLDER.search(found) or _entropy(found[4:]) < MIN_ENTROPY:
                continue
            # otherwise it is a name made of words
            if _RANDOM.search(found) and any(map(str.isdigit, found)):
                yield Passage("secret", start, f"{kind}: `{found[:10].strip()}` and so on")


def find_encoded(text: str, data: bytes) -> Iterator[Passage]:
    """Yield long base64 strings that decode to data, except pictures and keys."""
    if _BASE64_RUN not in data.translate(_BASE64, b"\r\n"):
        return
    for match in threats.BASE64_RUN.finditer(text):
        if len(match[0]) < threats.BASE64_LENGTH:
            continue
        before = text[max(0, match.start() - 60) : match.start()]
        if _MEDIA.search(before) or "PRIVATE KEY-----" in before:  # other checks find these
            continue
        run = "".join(match[0].split())
        kinds = (str.isupper, str.islower, str.isdigit)
        if not all(any(map(kind, run)) for kind in kinds) or len(set(run)) < MIN_LETTERS:
            # an ordered alphabet is a sequence of characters, and few different letters are a
            # pattern
            continue
        try:
            decoded = base64.b64decode(run[: len(run) // 4 * 4].encode("ascii"), validate=True)
        except (ValueError, binascii.Error):
            continue
        what = f"{len(run)} characters of base64"
        if decoded.isascii() and (said := decoded.decode("ascii")).replace("\n", "").isprintable():
            what += f" that say `{printable(said)}`"
        yield Passage("encoded-data", match.start(), what)


def _entropy(text: str) -> float:
    """Return the Shannon entropy in bits per character."""
    counts = (text.count(char) / len(text) for char in set(text))
    return -sum(share * log2(share) for share in counts)


_SCRIPTS: Final = re.compile("[\u0400-\u04ff\u3040-\u30ff\u4e00-\u9fff\uac00-\ud7a3]")
"""Letters of Cyrillic, kana, Chinese characters and Hangul.

Every pattern of `FOREIGN` contains one of these letters.
"""


def find_foreign(text: str, beyond: str, budget: CpuBudget) -> Iterator[Passage]:
    """Yield the findings of the behaviours in scripts other than Latin.

    ``beyond`` holds the characters outside ASCII (`text.beyond_ascii`). ``budget`` is the limit of
    processor time for this text.
    """
    if not _SCRIPTS.search(beyond):
        return
    lower = text.lower()
    if len(lower) != len(text):  # offsets must be the same in both texts
        lower = "".join(small if len(small := one.lower()) == 1 else one for one in text)
    prefilter = _foreign_prefilter()
    for number, stretches in prefilter.find(prefilter.hits(lower), lower):
        foreign = FOREIGN[number]
        for begin, end in stretches:
            for match in budget.find(foreign.pattern, text, begin, end):
                shown = _shown_with_address(text, *match.span())
                yield Passage(foreign.code, match.start(), f"{foreign.effect}: `{shown}`")


@cache
def _foreign_prefilter() -> Prefilter[str]:
    return Prefilter(range(len(FOREIGN)), (), str)


_ADDRESS_AFTER: Final = re.compile(r"[^\n`]*(?:://|@\w|\w\.[a-z]{2})[^\s`]*")
"""The rest of a line, up to its last address."""

MAX_PLACES: Final = 100
"""Maximum number of suspicious passages in a file that one check reports."""

COMMENT_LENGTH: Final = 4000
"""Maximum number of characters of an HTML comment that are checked."""

_LETTER: Final = re.compile(rb"\w")
_DEFENDING: Final = tuple(word.encode() for word in threats.DEFENDING)
_CONTROL: Final = re.compile(f"[{re.escape(threats.CONTROLS)}\x80-\x9f]")

PIECE: Final = 1 << 18
"""Number of characters that are checked at once.

If a match crosses the end of such a piece, it isn't found.
"""

LEAD: Final = 2048
"""Number of characters before a piece that are read as the context of its matches."""


class Kind(NamedTuple):
    """The type of a text, which decides what to search for.

    If ``prose``, the text isn't a program. If ``document``, the text is a SKILL.md. If
    ``defending``, it is about attacks and defence.
    """

    prose: bool = True
    document: bool = True
    defending: bool = False


def scan(text: str, kind: Kind) -> Iterator[Passage]:
    """Yield the findings in ``text``."""
    for begin in range(0, len(text) or 1, PIECE):
        lead = min(begin, LEAD)
        piece = text[begin - lead : begin + PIECE + LONGEST]
        shift = begin - lead
        for place in _scan_piece(piece, kind):
            if lead <= place.offset < lead + PIECE:
                yield place._replace(offset=place.offset + shift)


def _scan_piece(text: str, kind: Kind) -> Iterator[Passage]:
    beyond = beyond_ascii(text)
    if beyond:
        yield from islice(find_hidden(text, beyond), MAX_PLACES)
    plain = unmask(text, beyond, prose=kind.prose)
    for place in chain(plain.found, _behaviours(plain.text, beyond, kind)):
        yield place._replace(offset=plain.original(place.offset))
    # With one byte for each character, offsets stay the same. To search bytes is faster than to
    # search text.
    data = text.encode("ascii", "replace")
    control, run = look(data)
    if kind.document and (control or "\x9b" in text):
        yield from islice(_control(text), MAX_PLACES)
    if run:
        yield from islice(find_secrets(text, data), MAX_PLACES)
        if kind.document:
            yield from islice(find_encoded(text, data), MAX_PLACES)


def _behaviours(text: str, beyond: str, kind: Kind) -> Iterator[Passage]:
    lower = text.encode("ascii", "replace").lower()
    searched = _unwrapped(lower) if kind.prose else lower
    prefilter = _prefilter(prose=kind.prose)
    hits = prefilter.hits(searched)
    quoted = _Quotes(text, lower, hits, kind)
    budget = CpuBudget(len(text))
    for places in _searches(text, searched, prefilter, hits, budget, prose=kind.prose):
        yield from islice(map(quoted, places), MAX_PLACES)
    if kind.prose and beyond:
        yield from islice(map(quoted, find_foreign(text, beyond, budget)), MAX_PLACES)
    if budget.is_over:
        yield Passage(
            "slow-text", 0, "scanning took too long; the rest of the file was not scanned"
        )


def _unwrapped(lower: bytes) -> bytes:
    """Return prose with each sentence on one line, even if its lines were wrapped.

    Commands stay on separate lines.
    """
    parts, done, counted, fences = [], 0, 0, 0
    for match in _GOES_ON.finditer(lower):
        place = match.start()
        begin = max(done, lower.rfind(b"\n", done, place) + 1)
        if place - begin < WRAPPED or _COMMAND.search(lower, begin, place):
            continue
        fences += lower.count(b"```", counted, place)
        counted = place
        if fences % 2 == 0:
            parts.append(lower[done:place])
            done = place + 1
    return b" ".join([*parts, lower[done:]]) if parts else lower


def _searches(
    text: str,
    lower: bytes,
    prefilter: Prefilter[bytes],
    hits: Hits[bytes],
    budget: CpuBudget,
    *,
    prose: bool,
) -> Iterator[Iterator[Passage]]:
    """Yield the findings of all checks and behaviours that can match in this text."""
    for check, needed, where in _CHECKS:
        if (prose or where == "anywhere") and not hits.keys().isdisjoint(needed):
            yield check(text, lower)
    if prose and b"<!--" in lower:
        yield _comments(text)
    if prose and b"!`" in lower:
        yield _expansion(text)
    for number, stretches in prefilter.find(hits, lower):
        yield _matches(BEHAVIOURS[number], stretches, text, lower, budget)


class _Quotes:
    """Decides which matches in a text are only examples of an attack."""

    def __init__(self, text: str, lower: bytes, hits: Hits[bytes], kind: Kind) -> None:
        self._lower = lower
        self._text = text
        # Front matter doesn't introduce examples, so the search for an introduction starts after
        # it.
        self._body = max(0, lower.find(b"\n---", 3)) if lower.startswith(b"---") else 0
        self._kind = kind
        # If a skill is about defence, its quotations are harmless. But its requests are not
        # harmless, such as to install programs or to send secrets.
        self._excused: frozenset[str] = frozenset()
        if kind.prose and kind.defending:
            self._excused = threats.TALK | threats.EXHIBITS
        elif kind.prose and not hits.keys().isdisjoint(_DEFENDING):
            self._excused = threats.TALK

    def __call__(self, place: Passage) -> Passage:
        return place._replace(quoted=True) if self._is_quoted(place) else place

    def _is_quoted(self, place: Passage) -> bool:
        if place.code in self._excused:
            return True
        # In a program, a word such as `payload` proves nothing, because it may be the name of a
        # variable.
        if not self._kind.prose:
            if not is_entry(self._lower, place.offset):
                return False
            if self._kind.defending and not is_comment(self._lower, place.offset):
                return True
        if self._kind.prose and is_indicator(
            self._lower, place.offset, self._body, defending=self._kind.defending
        ):
            return True
        begin, end = max(self._body, place.offset - 2 * NEAR), place.offset + NEAR
        named = threats.EXAMPLE.search(self._lower, begin, end) or threats.FOREIGN_EXAMPLE.search(
            self._text, begin, end
        )
        if not named:
            return False
        return not self._kind.prose or not is_asked_for(self._lower, place.offset, self._body)


def _matches(
    behaviour: Behaviour,
    stretches: Iterable[tuple[int, int]],
    text: str,
    lower: bytes,
    budget: CpuBudget,
) -> Iterator[Passage]:
    accept = behaviour.accept
    for begin, end in stretches:
        for match in budget.find(behaviour.pattern.compiled, lower, begin, end):
            start = match.start()
            if start and _LETTER.match(lower, start) and _LETTER.match(lower, start - 1):
                continue  # the match ends a longer word
            if accept is None or accept(match):
                shown = _shown_with_address(text, start, match.end())
                yield Passage(behaviour.code, start, f"{behaviour.effect}: `{shown}`")


def _shown_with_address(text: str, start: int, end: int) -> str:
    """Return a passage for a message, up to the last address that follows on its line.

    If the passage begins in inline code, it ends with the code, unless an address follows.
    """
    more = _ADDRESS_AFTER.match(text, end, end + NEAR)
    passage = text[start : more.end() if more else end]
    if text.count("`", text.rfind("\n", 0, start) + 1, start) % 2:
        code, _, rest = passage.partition("`")
        passage = passage if _ADDRESS_AFTER.match(rest) else code
    return _shown(passage)


def _shown(text: str) -> str:
    """Return ``text`` for a message; if it is long, without its middle.

    The end of a command often has the address to which the command sends data.
    """
    text, half = text.strip(), SHOWN // 2
    if len(text) <= SHOWN:
        return printable(text, SHOWN)
    return f"{printable(text[:half], half)} \N{HORIZONTAL ELLIPSIS} {printable(text[-half:], half)}"


def _control(text: str) -> Iterator[Passage]:
    for match in _CONTROL.finditer(text):
        code = f"U+{ord(match[0]):04X}"
        what = f"the control character {code}, which can change what your terminal shows"
        yield Passage("terminal-control", match.start(), what)


def _piped(text: str, _: bytes) -> Iterator[Passage]:
    for match in threats.PIPED.finditer(text):
        start = match.start()
        yield from _executed(_statement(text, start), start, match[0])
    for match in threats.SUBSTITUTED.finditer(text):
        start = match.start()
        if threats.SUBSTITUTED_INTO.search(text[max(0, start - 30) : start]):
            yield from _executed(match[1], start, "")


def _statement(text: str, end: int) -> str:
    """Return the shell statement before ``end``.

    If backslashes continue its lines, the statement has several lines.
    """
    window = text[max(0, end - NEAR) : end]
    begin = window.rfind("\n")
    while begin > 0 and window[begin - 1] == "\\":
        begin = window.rfind("\n", 0, begin)
    begin = max(begin, window.rfind(";"), window.rfind("&&"))
    return window[begin + 1 :]


def _executed(statement: str, offset: int, into: str) -> Iterator[Passage]:
    if "base64" in statement and (decode := threats.DECODE.search(statement)):
        shown = _shown(statement[max(0, decode.start() - 40) :].strip() + into)
        yield Passage(
            "encoded-execution",
            offset,
            f"runs decoded code unchecked: `{shown}`",
        )
        return
    # Without an address, the text isn't a command but only describes an attack.
    fetch = threats.FETCH.search(statement)
    if fetch and threats.ADDRESS.search(statement, fetch.end()):
        shown = _shown(statement[fetch.start() :] + into)
        yield Passage(
            "remote-execution",
            offset,
            f"runs downloaded code unchecked: `{shown}`",
        )


def _powershell(text: str, _: bytes) -> Iterator[Passage]:
    for match in threats.POWERSHELL.finditer(text):
        command = text[match.start() : match.end() + NEAR].partition("\n")[0]
        what = f"runs downloaded code unchecked: `{_shown(command)}`"
        yield Passage("remote-execution", match.start(), what)


def _expansion(text: str) -> Iterator[Passage]:
    for match in threats.EXPANSION.finditer(text):
        what = f"runs a command when the skill is loaded: `{_shown(match[0][2:-1])}`"
        yield Passage("command-expansion", match.start(), what)


def _comments(text: str) -> Iterator[Passage]:
    start = text.find("<!--")
    while start >= 0:
        end = text.find("-->", start)
        stop = end if end >= 0 else len(text)
        if match := threats.COMMENT_ADDRESS.search(text, start, min(stop, start + COMMENT_LENGTH)):
            shown = printable(text[max(start + 4, match.start() - 20) : match.end() + 20].strip())
            yield Passage(
                "comment-instructions", match.start(), f"a comment contains instructions: `{shown}`"
            )
        start = text.find("<!--", end) if end >= 0 else -1


def _unseen(text: str, lower: bytes) -> Iterator[Passage]:
    """Find hidden content: link definitions that serve as comments, and hidden elements."""
    for match in threats.UNSEEN.finditer(lower):
        said = text[match.end() : match.end() + NEAR].partition("\n\n")[0]
        if told := threats.UNSEEN_ADDRESS.search(said):
            shown = printable(said[max(0, told.start() - 20) : told.end() + 40].strip())
            yield Passage(
                "comment-instructions",
                match.start(),
                f"hidden text contains instructions: `{shown}`",
            )


WRAPPED: Final = 60
"""Minimum length of a line of prose whose sentence continues on the next line."""

_GOES_ON: Final = re.compile(rb"\n(?=[a-z`~(])(?<=[a-z,`)]\n)")
_COMMAND: Final = re.compile(rb"[|>$&={;\\]| --?[a-z]")

_Check = Callable[[str, bytes], Iterator[Passage]]

_CHECKS: Final[Sequence[tuple[_Check, Sequence[bytes], str]]] = (
    (_piped, b"curl wget base64 fetch aria2c lynx".split(), "anywhere"),
    (_powershell, (b"iex", b"invoke-expression"), "anywhere"),
    (_unseen, b"display visibility font opacity color hidden comment".split(), "prose"),
)
"""Each check, with words and the part of the text to search.

A check can find nothing in a text that contains none of its words.
"""


@cache
def _prefilter(*, prose: bool) -> Prefilter[bytes]:
    wanted = [number for number, one in enumerate(BEHAVIOURS) if prose or one.where == "anywhere"]
    words = [word for _, needed, _ in _CHECKS for word in needed]
    return Prefilter(wanted, [*words, *_DEFENDING], bytes)
