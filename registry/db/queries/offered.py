"""What models are offered when nothing narrows it: the lists of thousands, kept bare."""

from collections.abc import Sequence
from typing import Final, NamedTuple

from registry.db.interface import Reader
from registry.db.queries.filters import FROM, order
from registry.db.queries.rows import DESCRIPTION, PATH
from registry.db.sight import Sight
from registry.model import Scope


class Offer(NamedTuple):
    """One line of a list for models, and where the skill is: (source, folder)."""

    ref: str
    scope: Scope
    description: str
    source: str
    folder: str


class Entry(NamedTuple):
    """One skill of the catalogue; ``location`` is the absolute path of its SKILL.md."""

    ref: str
    name: str
    description: str
    scope: Scope
    location: str


PARTS: Final = 128
"""Of all skills, by the numbers of their versions: what changes is in few of them."""

_ORDER: Final = f"ORDER BY {order('name', reverse=False)}"
_LOCATION: Final = f"rtrim({PATH}, '/') || '/' || coalesce(s.document, 'SKILL.md')"


def offers(reader: Reader) -> list[Offer]:
    """Return all skills that models see, by name."""
    return list(map(Offer._make, reader.rows(f"{_select(reader.sight)} {_ORDER}")))


def entries(reader: Reader) -> list[Entry]:
    """Return all skills that models see as entries of a catalogue, by name."""
    sight = reader.sight
    rows = reader.stream(
        f"SELECT {sight.ref}, s.name, {DESCRIPTION}, src.scope, {_LOCATION} FROM {FROM} "
        f"WHERE {_offered(sight)} {_ORDER}",
        (),
    )
    return list(map(Entry._make, rows))


def some_offers(reader: Reader, first: Sequence[str], most: int) -> tuple[list[Offer], int]:
    """Return at most ``most`` skills, those with a ref of ``first`` first, and how many there are.

    Asks for no more rows than it returns.
    """
    sight = reader.sight
    select = _select(sight)
    with reader.snapshot():
        total = reader.rows(f"SELECT count(*) FROM {FROM} WHERE {_offered(sight)}")
        marks = ", ".join("?" * len(first))
        near = reader.rows(f"{select} AND {sight.ref} IN ({marks})", list(first)) if first else []
        others = reader.rows(f"{select} {_ORDER} LIMIT ?", [most])
    near.sort(key=lambda row: first.index(row[0]))
    rows = [*near, *(row for row in others if row[0] not in first)][:most]
    return list(map(Offer._make, rows)), int(total[0][0]) if total else 0


class TreeHashes:
    """The tree hash of each skill that models see, by its ref, as it was read last.

    A server is asked for digests of parts, and for the parts that are others by now.
    """

    def __init__(self) -> None:
        self._digests: dict[int, str] = {}
        self._parts: dict[int, dict[str, str]] = {}

    def read(self, reader: Reader) -> dict[str, str]:
        """Bring it up to date, and return it."""
        with reader.snapshot():
            sight = reader.sight
            columns = f"{sight.ref}, coalesce(s.tree_hash, '')"
            begin = f"SELECT s.id % {PARTS}, {columns} FROM {FROM} WHERE {_offered(sight)}"
            if reader.digest is None:
                return {ref: found for _, ref, found in reader.rows(begin)}
            digest = reader.digest.format(f"concat_ws(' ', {columns})")
            digests = dict(
                reader.rows(
                    f"SELECT s.id % {PARTS}, {digest} FROM {FROM} WHERE {_offered(sight)} "
                    f"GROUP BY s.id % {PARTS}"
                )
            )
            others = [part for part, now in digests.items() if self._digests.get(part) != now]
            if others:
                read: dict[int, dict[str, str]] = {part: {} for part in others}
                marks = ", ".join("?" * len(others))
                for part, ref, found in reader.rows(
                    f"{begin} AND s.id % {PARTS} IN ({marks})", others
                ):
                    read[part][ref] = found
                self._parts |= read
        self._digests = digests
        self._parts = {part: self._parts[part] for part in digests}
        return {ref: found for part in self._parts.values() for ref, found in part.items()}


def _select(sight: Sight) -> str:
    return (
        f"SELECT {sight.ref}, src.scope, {DESCRIPTION}, src.name, s.folder FROM {FROM} "
        f"WHERE {_offered(sight)}"
    )


def _offered(sight: Sight) -> str:
    return f"{sight.visible} AND s.hidden = 0"
