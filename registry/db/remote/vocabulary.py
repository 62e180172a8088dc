"""The words of heads, to find those that are spelt like one that no skill has."""

from bisect import bisect_left
from collections.abc import Sequence
from typing import Final, NamedTuple

from registry.db.interface import Reader

_XIDS: Final = 1 << 32

# What was committed since then, and from when on that may be so the next time. To go through all
# heads takes long, and others change something all the time.
_WORDS: Final = """
SELECT CAST(pg_snapshot_xmin(pg_current_snapshot()) AS text), NULL
UNION ALL
SELECT NULL, word FROM ts_stat('SELECT head FROM search_texts{since}')
"""
_SINCE: Final = " WHERE age(xmin) <= age(CAST(''{}'' AS xid))"


class _Known(NamedTuple):
    """Words in order, of the texts that were written before the transaction ``since``."""

    words: Sequence[str]
    since: int
    version: int | None


class Vocabulary:
    """Words of heads as the index holds them; those that were there once stay."""

    def __init__(self) -> None:
        self._known: _Known | None = None  # whole in one value, since threads share it

    def beginning(self, reader: Reader, text: str) -> list[str]:
        """Return the words that begin so, in order."""
        version, known = reader.version(), self._known
        if known is None or known.version != version:
            known = self._known = _learnt(reader, known, version)
        start, end = (bisect_left(known.words, one) for one in (text, f"{text}\U0010ffff"))
        return list(known.words[start:end])


def _learnt(reader: Reader, known: _Known | None, version: int | None) -> _Known:
    since = _SINCE.format(known.since % _XIDS) if known else ""
    rows = reader.rows(_WORDS.format(since=since))
    number = next((int(number) for number, _ in rows if number is not None), 0)
    words = {word for _, word in rows if word is not None}
    return _Known(sorted(words.union(known.words if known else ())), number, version)
