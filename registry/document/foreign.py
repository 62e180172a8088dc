"""Look for behaviours in languages without ASCII: Chinese, Japanese, Korean, Russian."""

from collections.abc import Iterator
from typing import Final

from registry.document.behaviours import FOREIGN
from registry.document.findings import NEAR, SHOWN, Place, printable
from registry.document.patience import Patience

_ASCII: Final = frozenset(map(chr, range(128)))
_LETTERS: Final = frozenset("".join(need for one in FOREIGN for need in one.needs)) - _ASCII
"""Of the scripts that `FOREIGN` is written in, the letters that its pieces have."""


def find_foreign(text: str, beyond: str, patience: Patience) -> Iterator[Place]:
    """Yield what is found of the behaviours that are written in scripts of their own.

    ``beyond``: the text without ASCII (`text.beyond_ascii`); ``patience``: how long it may take.
    """
    letters = {letter for letter in _LETTERS if letter in beyond}
    if not letters:
        return
    letters |= _ASCII
    for foreign in FOREIGN:
        done = 0
        present = [need for need in foreign.needs if letters.issuperset(need)]
        for offset in sorted(offset for need in present for offset in _letters_at(text, need)):
            begin, end = max(done, offset - NEAR), offset + NEAR
            for match in patience.find(foreign.pattern, text, begin, min(end, len(text))):
                shown = printable(match[0][:SHOWN])
                yield Place(foreign.code, match.start(), f"`{shown}` {foreign.says}")
                done = match.end()


def _letters_at(text: str, piece: str) -> Iterator[int]:
    offset = text.find(piece)
    while offset >= 0:
        yield offset
        offset = text.find(piece, offset + NEAR // 4)
