"""Words as PostgreSQL's full-text indexes know them, and how much a text says of them.

The server says where and how often a word stands in a text (``ts_rank``). What tells more is added
here: how rare the word is among all texts, and that a word says less in a longer text.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple

from registry.db.asked import Pattern, Place
from registry.text import MAX_LEXEME, fold, split


class Column(NamedTuple):
    """Where words are; ``weights`` of what stands in its parts, as PostgreSQL has them from D to A.

    ``enough``: the rank of a word that is worth half of the most it can be, in a text of ``usual``
    distinct words: a little more than once, as with BM25's usual k1 of 1.2.
    """

    name: str
    weights: str
    enough: float
    usual: int


COLUMNS: Final[dict[Place, Column]] = {
    "heads": Column("head", "{0.1, 0.25, 0.5, 1.0}", 0.1, 30),
    "bodies": Column("body", "{0.1, 0.4, 0.6, 1.0}", 0.073, 200),
}

RANKED: Final = 200
"""So many matches are ranked exactly; all others by how many words they have, and how rare ones."""

QUERY: Final = "to_tsquery('stems', ?)"

# Of those that have the most, how much their texts say of what was asked. To put two vectors
# together makes one that is in memory, and is read once for all words.
RANK: Final = f"""CASE WHEN f.place <= {RANKED} THEN (SELECT {{ranks}} FROM (
    SELECT {{column}} || CAST('' AS tsvector) AS words FROM search_texts WHERE skill_id = f.id
    OFFSET 0
) x) END"""


def worth(column: Column, query: str) -> str:
    """Return the SQL of how much a text ``x`` says of a query, from 0 to 1."""
    enough = f"{column.enough} * (0.25 + 0.75 * length(x.words) / {column.usual}.0)"
    rank = f"ts_rank('{column.weights}', x.words, {query})"
    return f"(1 - {enough} / ({enough} + {rank}))"


def single(patterns: Sequence[Pattern]) -> set[str]:
    """Return the patterns that are single words."""
    single = (one.words[0] for one in patterns if len(one.words) == 1 and not one.prefix)
    return {fold(word) for word in single if split(fold(word)) == [fold(word)]}


def text_query(pattern: Pattern) -> str:
    """Return the text of a ``tsquery``; words are quoted, so none is an operator. Empty: none."""
    found = [part for word in pattern.words for part in split(fold(word))]
    if not found or max(map(len, found)) > MAX_LEXEME:
        return ""
    phrase = " <-> ".join(f"'{lexeme}'" for lexeme in found)
    return f"({phrase}:*)" if pattern.prefix else f"({phrase})"
