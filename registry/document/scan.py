"""Look through one text for what is suspicious: the document's, or that of a supporting file."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from itertools import chain, islice
from typing import Final, NamedTuple

from registry.document import threats
from registry.document.behaviours import BEHAVIOURS
from registry.document.behaviours.quoting import is_asked_for, is_comment, is_entry, is_indicator
from registry.document.behaviours.table import Behaviour
from registry.document.encoded import find_encoded, find_secrets, look
from registry.document.findings import NEAR, SHOWN, Place, printable
from registry.document.foreign import find_foreign
from registry.document.invisible import find_hidden
from registry.document.patience import LONGEST, Patience
from registry.document.prefilter import Hits, Prefilter
from registry.document.unmask import unmask
from registry.text import beyond_ascii

MAX_PLACES: Final = 100
"""Places at which one check stops; a file of nothing but findings is known by then."""

COMMENT_LENGTH: Final = 4000
"""Characters of an HTML comment that are read."""

_LETTER: Final = re.compile(rb"\w")
_DEFENDING: Final = tuple(word.encode() for word in threats.DEFENDING)
_CONTROL: Final = re.compile(f"[{re.escape(threats.CONTROLS)}\x80-\x9f]")

PIECE: Final = 1 << 18
"""Characters that are looked through at once; what is found in them is in one piece each."""

LEAD: Final = 2048
"""Characters before a piece that are read as its context."""


class Kind(NamedTuple):
    """What sort of text is looked through.

    ``prose`` is not a program, ``document`` a SKILL.md, ``defending`` about attacks and defence.
    """

    prose: bool = True
    document: bool = True
    defending: bool = False


def scan(text: str, kind: Kind) -> Iterator[Place]:
    """Yield what is found in ``text``."""
    for begin in range(0, len(text) or 1, PIECE):
        lead = min(begin, LEAD)
        piece = text[begin - lead : begin + PIECE + LONGEST]
        shift = begin - lead
        for place in _scan_piece(piece, kind):
            if lead <= place.offset < lead + PIECE:
                yield place._replace(offset=place.offset + shift)


def _scan_piece(text: str, kind: Kind) -> Iterator[Place]:
    beyond = beyond_ascii(text)
    if beyond:
        yield from islice(find_hidden(text, beyond), MAX_PLACES)
    plain = unmask(text, beyond, prose=kind.prose)
    for place in chain(plain.found, _behaviours(plain.text, beyond, kind)):
        yield place._replace(offset=plain.original(place.offset))
    # One byte a character: offsets are those of the text, and looking for bytes is quick.
    data = text.encode("ascii", "replace")
    control, run = look(data)
    if kind.document and (control or "\x9b" in text):
        yield from islice(_control(text), MAX_PLACES)
    if run:
        yield from islice(find_secrets(text, data), MAX_PLACES)
        if kind.document:
            yield from islice(find_encoded(text, data), MAX_PLACES)


def _behaviours(text: str, beyond: str, kind: Kind) -> Iterator[Place]:
    lower = text.encode("ascii", "replace").lower()
    prefilter = _prefilter(prose=kind.prose)
    hits = prefilter.hits(lower)
    quoted = _Quotes(text, lower, hits, kind)
    patience = Patience(len(text))
    for places in _searches(text, lower, prefilter, hits, patience, prose=kind.prose):
        yield from islice(map(quoted, places), MAX_PLACES)
    if kind.prose and beyond:
        yield from islice(map(quoted, find_foreign(text, beyond, patience)), MAX_PLACES)
    if patience.is_over:
        yield Place("slow-text", 0, "it takes so long to look through that the rest of it was not")


def _searches(
    text: str,
    lower: bytes,
    prefilter: Prefilter[bytes],
    hits: Hits[bytes],
    patience: Patience,
    *,
    prose: bool,
) -> Iterator[Iterator[Place]]:
    """Yield what each check and behaviour finds, if it may find anything."""
    for check, needed, where in _CHECKS:
        if (prose or where == "anywhere") and not hits.keys().isdisjoint(needed):
            yield check(text, lower)
    if prose and b"<!--" in lower:
        yield _comments(text)
    if prose and b"!`" in lower:
        yield _expansion(text)
    for number, stretches in prefilter.find(hits, lower):
        yield _matches(BEHAVIOURS[number], stretches, text, lower, patience)


class _Quotes:
    """Tells which places of a text are examples of an attack, not the attack."""

    def __init__(self, text: str, lower: bytes, hits: Hits[bytes], kind: Kind) -> None:
        self._lower = lower
        self._text = text
        # What the front matter says of the skill introduces no example.
        self._body = max(0, lower.find(b"\n---", 3)) if lower.startswith(b"---") else 0
        self._kind = kind
        # What a skill says that it is about excuses what such skills quote, never what they ask
        # for: programs to install, secrets to send.
        self._excused: frozenset[str] = frozenset()
        if kind.prose and kind.defending:
            self._excused = threats.TALK | threats.EXHIBITS
        elif kind.prose and not hits.keys().isdisjoint(_DEFENDING):
            self._excused = threats.TALK

    def __call__(self, place: Place) -> Place:
        return place._replace(quoted=True) if self._is_quoted(place) else place

    def _is_quoted(self, place: Place) -> bool:
        if place.code in self._excused:
            return True
        # In a program words prove nothing: `payload` is a name like any other.
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
    patience: Patience,
) -> Iterator[Place]:
    accept = behaviour.accept
    for begin, end in stretches:
        for match in patience.find(behaviour.pattern.compiled, lower, begin, end):
            start = match.start()
            if start and _LETTER.match(lower, start) and _LETTER.match(lower, start - 1):
                continue  # the end of a longer word
            if accept is None or accept(match):
                shown = printable(text[start : min(match.end(), start + SHOWN)].strip())
                yield Place(behaviour.code, start, f"`{shown}` {behaviour.says}")


def _control(text: str) -> Iterator[Place]:
    for match in _CONTROL.finditer(text):
        what = f"the control character U+{ord(match[0]):04X}, which terminals obey"
        yield Place("terminal-control", match.start(), what)


def _piped(text: str, _: bytes) -> Iterator[Place]:
    for match in threats.PIPED.finditer(text):
        start = match.start()
        yield from _executed(_statement(text, start), start, match[0])
    for match in threats.SUBSTITUTED.finditer(text):
        start = match.start()
        if threats.SUBSTITUTED_INTO.search(text[max(0, start - 30) : start]):
            yield from _executed(match[1], start, "")


def _statement(text: str, end: int) -> str:
    """Return the shell statement before ``end``: its line, and those that a backslash continues."""
    window = text[max(0, end - NEAR) : end]
    begin = window.rfind("\n")
    while begin > 0 and window[begin - 1] == "\\":
        begin = window.rfind("\n", 0, begin)
    begin = max(begin, window.rfind(";"), window.rfind("&&"))
    return window[begin + 1 :]


def _executed(statement: str, offset: int, into: str) -> Iterator[Place]:
    if "base64" in statement and (decode := threats.DECODE.search(statement)):
        shown = printable(statement[max(0, decode.start() - 40) :].strip() + into)
        yield Place("encoded-execution", offset, f"`{shown}` runs what it decodes, unseen")
        return
    # Without an address it is the pattern that is talked about, not a command.
    fetch = threats.FETCH.search(statement)
    if fetch and threats.ADDRESS.search(statement, fetch.end()):
        shown = printable(statement[fetch.start() :] + into)
        yield Place("remote-execution", offset, f"`{shown}` runs what it downloads, unseen")


def _powershell(text: str, _: bytes) -> Iterator[Place]:
    for match in threats.POWERSHELL.finditer(text):
        command = text[match.start() : match.end() + NEAR].partition("\n")[0]
        what = f"`{printable(command)}` runs what it downloads, unseen"
        yield Place("remote-execution", match.start(), what)


def _expansion(text: str) -> Iterator[Place]:
    for match in threats.EXPANSION.finditer(text):
        what = f"`{printable(match[0][2:-1])}` runs as soon as the skill is loaded"
        yield Place("command-expansion", match.start(), what)


def _comments(text: str) -> Iterator[Place]:
    start = text.find("<!--")
    while start >= 0:
        end = text.find("-->", start)
        stop = end if end >= 0 else len(text)
        if match := threats.COMMENT_ADDRESS.search(text, start, min(stop, start + COMMENT_LENGTH)):
            shown = printable(text[max(start + 4, match.start() - 20) : match.end() + 20].strip())
            yield Place("comment-instructions", match.start(), f"a comment says `{shown}`")
        start = text.find("<!--", end) if end >= 0 else -1


def _unseen(text: str, lower: bytes) -> Iterator[Place]:
    """Find what the rendered page leaves out: link definitions as comments, hidden elements."""
    for match in threats.UNSEEN.finditer(lower):
        said = text[match.end() : match.end() + NEAR].partition("\n\n")[0]
        if told := threats.UNSEEN_ADDRESS.search(said):
            shown = printable(said[max(0, told.start() - 20) : told.end() + 40].strip())
            yield Place("comment-instructions", match.start(), f"unseen text says `{shown}`")


_Check = Callable[[str, bytes], Iterator[Place]]

_CHECKS: Final[Sequence[tuple[_Check, Sequence[bytes], str]]] = (
    (_piped, b"curl wget base64 fetch aria2c lynx".split(), "anywhere"),
    (_powershell, (b"iex", b"invoke-expression"), "anywhere"),
    (_unseen, b"display visibility font opacity color hidden comment".split(), "prose"),
)
"""Each check, the words of which one must occur before it can find anything, and where."""


@cache
def _prefilter(*, prose: bool) -> Prefilter[bytes]:
    wanted = [number for number, one in enumerate(BEHAVIOURS) if prose or one.where == "anywhere"]
    words = [word for _, needed, _ in _CHECKS for word in needed]
    return Prefilter(wanted, [*words, *_DEFENDING], bytes)
