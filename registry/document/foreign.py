"""Look for behaviours in languages without ASCII: Chinese, Japanese, Korean, Russian."""

from collections.abc import Iterator
from typing import Final

from registry.document.behaviours import FOREIGN
from registry.document.findings import NEAR, SHOWN, Place, printable

_ASCII_BYTES: Final = bytes(range(128))
_ASCII: Final = frozenset(_ASCII_BYTES.decode("ascii"))

_LEADS: Final = (b"\xd0", b"\xe3", b"\xe4", b"\xe5", b"\xe6", b"\xe7", b"\xe8", b"\xec")
"""Bytes with which letters of the scripts begin that `FOREIGN` is written in."""


def find_foreign(text: str) -> Iterator[Place]:
    """Yield what is found of the behaviours that are written in scripts of their own."""
    data = text.encode("utf-8", "surrogatepass")
    if not any(lead in data for lead in _LEADS):
        return
    # Few characters of most texts: much quicker to collect.
    letters = _ASCII.union(data.translate(None, _ASCII_BYTES).decode("utf-8", "surrogatepass"))
    for foreign in FOREIGN:
        done = 0
        present = [need for need in foreign.needs if letters.issuperset(need)]
        for offset in sorted(offset for need in present for offset in _letters_at(text, need)):
            begin, end = max(done, offset - NEAR), offset + NEAR
            for match in foreign.pattern.finditer(text, begin, end) if end > done else ():
                shown = printable(match[0][:SHOWN])
                yield Place(foreign.code, match.start(), f"`{shown}` {foreign.says}")
                done = match.end()


def _letters_at(text: str, piece: str) -> Iterator[int]:
    offset = text.find(piece)
    while offset >= 0:
        yield offset
        offset = text.find(piece, offset + NEAR // 4)
