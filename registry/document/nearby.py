"""Where in a text a behaviour may be: near pieces of text that it can't do without.

Most texts hold few of the words that any behaviour needs. Which they are is found out once, by
looking all words of the text up in one set; what is near none of them is not looked at again.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from registry.document import threats
from registry.document.behaviours import BEHAVIOURS
from registry.document.behaviours.table import Behaviour

_STEP: Final = 16

_WORDS: Final = bytes(
    ord(char.lower()) if char in threats.ALPHANUMERIC else 32 for char in map(chr, range(256))
)

Words = frozenset[bytes]


class _Near(NamedTuple):
    """A piece of text near which a behaviour is looked for, where ``said``, its words, occur.

    ``alone``: it has one word at most.
    """

    number: int
    piece: bytes
    said: Words
    alone: bool


class Nearby:
    """The behaviours of one sort of text, by the words near which they are looked for."""

    def __init__(self, *, prose: bool, also: Iterable[Words]) -> None:
        """``also``: sets of words that others ask for (`words_of`)."""
        numbers = [
            number for number, one in enumerate(BEHAVIOURS) if prose or one.where == "anywhere"
        ]
        near = [one for number in numbers for one in _pieces(number, BEHAVIOURS[number])]
        by_word: dict[bytes, list[_Near]] = {}
        for one in near:
            by_word.setdefault(max(one.said, key=len, default=b""), []).append(one)
        self._always = by_word.pop(b"", [])
        self._by_word: Mapping[bytes, Sequence[_Near]] = by_word
        self._first = frozenset(by_word)
        self._told = frozenset[bytes]().union(
            *(needed for number in numbers for needed in BEHAVIOURS[number].needs),
            *(one.said for one in near),
            *also,
        )

    def words_of(self, lower: bytes) -> Words:
        """Return those words of a text that anything depends on."""
        return self._told.intersection(lower.translate(_WORDS).split())

    def find(
        self, lower: bytes, words: Words
    ) -> Iterator[tuple[Behaviour, Iterator[tuple[int, int]]]]:
        """Yield each behaviour that may be there, and the stretches of the text to look in.

        The stretches are in order, none touching another.
        """
        near: dict[int, list[bytes]] = {}
        for word in words & self._first:
            for number, piece, said, alone in self._by_word[word]:
                if alone or said <= words:
                    near.setdefault(number, []).append(piece)
        for number, piece, _, _ in self._always:
            near.setdefault(number, []).append(piece)
        seen: dict[bytes, list[int]] = {}
        for number in sorted(near):
            behaviour = BEHAVIOURS[number]
            if any(map(words.isdisjoint, behaviour.needs)):
                continue
            found: list[int] = []
            for piece in near[number]:
                offsets = seen.get(piece)
                if offsets is None:
                    offsets = seen[piece] = _offsets(lower, piece)
                found += offsets
            if found:
                found.sort()
                others = [*(words & needed for needed in behaviour.needs[1:]), *behaviour.certain]
                yield behaviour, _stretches(lower, found, behaviour.reach, others)


def _pieces(number: int, behaviour: Behaviour) -> Iterator[_Near]:
    """Yield the pieces of text near which a behaviour is looked for."""
    if not behaviour.anchors:
        yield from (_Near(number, word, frozenset({word}), True) for word in behaviour.needs[0])
    for piece in behaviour.anchors:
        # A number in an address is the beginning of a longer one.
        said = {word for word in piece.translate(_WORDS).split() if not word.isdigit()}
        yield _Near(number, piece, frozenset(said), len(said) <= 1)


def _offsets(lower: bytes, piece: bytes) -> list[int]:
    found = []
    offset = lower.find(piece)
    while offset >= 0:
        found.append(offset)
        # What lies so near is in the same stretch anyway.
        offset = lower.find(piece, offset + _STEP)
    return found


def _stretches(
    lower: bytes, found: Sequence[int], reach: int, others: Sequence[Collection[bytes]]
) -> Iterator[tuple[int, int]]:
    begin, end = max(0, found[0] - reach), found[0] + reach
    for offset in found:
        if offset - reach > end:
            if _holds(lower, begin, end, others):
                yield begin, end
            begin = offset - reach
        end = offset + reach
    if _holds(lower, begin, end, others):
        yield begin, min(end, len(lower))


def _holds(lower: bytes, begin: int, end: int, others: Sequence[Collection[bytes]]) -> bool:
    """Tell whether a stretch holds a piece of each set."""
    if not others:
        return True
    part = lower[begin:end]
    for pieces in others:
        for piece in pieces:
            if piece in part:
                break
        else:
            return False
    return True
