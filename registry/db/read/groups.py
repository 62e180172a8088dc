"""Count skills by tag and by name; the results are pages."""

from collections.abc import Sequence
from dataclasses import dataclass

from registry.db.interface import Condition, Reader
from registry.db.read.listing import Facet
from registry.db.read.skills import FROM
from registry.model import Value
from registry.text import tag_key


def tags(
    reader: Reader, condition: Condition, part: str = "", *, limit: int, offset: int
) -> tuple[list[Facet], int]:
    """Return a page of the tags of skills that meet a condition, and the number of all such tags.

    The most frequent tag comes first. If ``part`` is given, only tags that contain this text are
    returned. The counts are cached until the database changes.
    """

    def load(reader: Reader) -> list[tuple[str, int]]:
        return reader.rows(
            f"SELECT t.tag, count(*) FROM {FROM} JOIN skill_tags t ON t.skill_id = s.id "
            f"WHERE {condition[0]} GROUP BY t.tag ORDER BY count(*) DESC, t.tag",
            list(condition[1]),
        )

    text = tag_key(part)
    counts = reader.remembered(f"tags {condition[0]} {list(condition[1])}", load)
    found = [Facet(*row) for row in counts if text in row[0]]
    return found[offset : offset + limit], len(found)


@dataclass(frozen=True, slots=True)
class SameName(Value):
    """A name that several skills share, and the number of their different contents.

    ``handle`` is ``source/folder`` of one of these skills.
    """

    name: str
    skills: int
    contents: int
    handle: str


def names(reader: Reader, condition: Condition) -> list[str]:
    """Return the names that several skills share, the most frequent first."""
    rows = reader.rows(
        f"SELECT s.name FROM {FROM} WHERE {condition[0]} GROUP BY s.name HAVING count(*) > 1 "
        "ORDER BY count(*) DESC, s.name",
        list(condition[1]),
    )
    return [name for (name,) in rows]


def named(reader: Reader, condition: Condition, names: Sequence[str]) -> list[SameName]:
    """Count the skills with each of these names that meet a condition, in the order of names."""
    if not names:
        return []
    marks = ", ".join("?" * len(names))
    rows = reader.rows(
        "SELECT s.name, count(*), count(DISTINCT s.tree_hash), min(src.name || '/' || s.folder) "
        f"FROM {FROM} WHERE s.name IN ({marks}) AND {condition[0]} GROUP BY s.name",
        [*names, *condition[1]],
    )
    found = {row[0]: SameName(*row) for row in rows}
    return [found[name] for name in names if name in found]
