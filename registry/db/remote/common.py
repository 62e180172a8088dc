"""What a server knows of the commonest words, and how many texts there are."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Final, Self

from registry.db.remote import matching

# What the server knows of the commonest words since it analyzed the table last (migration 0015);
# what it estimates of the number of texts may be long ago. Nothing, where it says what it said.
FACTS: Final = """
SELECT '', '', (SELECT count(*) FROM search_texts) WHERE (SELECT number FROM data_version) <> ?
UNION ALL
SELECT place, word, texts FROM registry_common_words()
WHERE (SELECT number FROM data_version) <> ?
"""

NO_VERSION: Final = -1

_SAME: Final = 3
"""So many letters of a word, at least, its stem begins with, but for few."""


@dataclass(frozen=True)
class Facts:
    """What holds for all texts: about how many have a common word, by column and word; how many.

    ``version``: the state of the database in which that was so.
    """

    version: int
    common: Mapping[tuple[str, str], int]
    texts: int

    @classmethod
    def of(cls, version: int | None, rows: Iterable[tuple[str, str, int]]) -> Self:
        """Return what was said to `FACTS`."""
        said = {(column, word): texts for column, word, texts in rows}
        texts = said.pop(("", ""), 0)
        return cls(NO_VERSION if version is None else version, said, texts)

    def beginning(self, column: str, word: str) -> Mapping[str, int]:
        """Return the stems that a word may have, by its first letters; those of common words."""
        known = self._begun.get((column, word[:_SAME]), ())
        return {stem: texts for stem, texts in known if len(stem) <= len(word)}

    @cached_property
    def _begun(self) -> dict[tuple[str, str], list[tuple[str, int]]]:
        found: dict[tuple[str, str], list[tuple[str, int]]] = {}
        for (column, stem), texts in self.common.items():
            if texts > matching.COMMON:
                found.setdefault((column, stem[:_SAME]), []).append((stem, texts))
        return found
