"""Listings, counts and facets."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

from registry.db.interface import Reader, Select
from registry.db.queries.filters import FROM, NO_LIMIT, Filters, Sort, behind, keys, order, where
from registry.db.queries.rows import columns, skill_of
from registry.db.sight import Sight
from registry.model import Page, Skill


@dataclass(frozen=True, slots=True)
class Listing(Iterable[Skill]):
    """The skills that pass some filters, in order: asked for anew each time they are gone through.

    Within a snapshot of the reader they are the same each time. ``items`` and ``counted`` are kept
    by one that was `held`.
    """

    reader: Reader
    columns: str
    condition: str
    values: Sequence[object]
    order: str
    limit: int | None = None
    offset: int = 0
    items: tuple[Skill, ...] | None = None
    counted: int | None = None

    def __iter__(self) -> Iterator[Skill]:
        """Yield the skills."""
        if self.items is not None:
            return iter(self.items)
        return map(skill_of, self.reader.stream(*self.question))

    @property
    def question(self) -> Select:
        """What asks for them."""
        sql = f"SELECT {self.columns} FROM {FROM} WHERE {self.condition} ORDER BY {self.order}"
        if self.is_whole:
            return sql, self.values
        bounds = [*self.values, NO_LIMIT if self.limit is None else self.limit, self.offset]
        return f"{sql} LIMIT ? OFFSET ?", bounds

    @property
    def is_whole(self) -> bool:
        """Whether it is all that pass the filters."""
        return self.limit is None and self.offset == 0

    @property
    def total(self) -> int:
        """How many pass the filters; one statement."""
        if self.counted is not None:
            return self.counted
        return _count(self.reader, self.condition, self.values)

    def held(self) -> Self:
        """Return the same with nothing left to be read."""
        items = tuple(self)
        return replace(self, items=items, counted=len(items) if self.is_whole else self.total)


def listing_of(
    reader: Reader,
    filters: Filters,
    *,
    sort: Sort = "name",
    reverse: bool = False,
    limit: int | None = None,
    offset: int = 0,
) -> Listing:
    """Return the skills that pass the filters, not asked for yet."""
    return _listing(reader, filters, reader.sight, order(sort, reverse=reverse), limit, offset)


def _listing(
    reader: Reader, filters: Filters, sight: Sight, ordered: str, limit: int | None, offset: int
) -> Listing:
    what = columns(sight), *where(reader, filters, sight), ordered
    return Listing(reader, *what, limit, offset)


def list_skills(
    reader: Reader,
    filters: Filters,
    *,
    sort: Sort = "name",
    reverse: bool = False,
    limit: int | None = None,
    offset: int = 0,
) -> Page[Skill]:
    """Return one page of the skills that pass the filters, with the true total."""

    def asked(sight: Sight) -> Listing:
        return _listing(reader, filters, sight, order(sort, reverse=reverse), limit, offset)

    def with_count(sight: Sight) -> tuple[Select, Select]:
        found = asked(sight)
        return found.question, _counting(found.condition, found.values)

    if limit is None and offset == 0:
        items = tuple(map(skill_of, reader.streamed(lambda sight: asked(sight).question)))
        return Page(items, len(items))
    rows, total = reader.paged(with_count)
    return Page(tuple(map(skill_of, rows)), total)


def next_skills(
    reader: Reader,
    filters: Filters,
    place: Sequence[Any] | None,
    *,
    sort: Sort,
    reverse: bool,
    limit: int,
) -> list[tuple[Sequence[Any], Skill]]:
    """Return the skills behind a place in a listing (None: from its beginning), each with its own.

    What was deleted or added since then moves nothing, as it would with an offset.
    """
    sight = reader.sight
    condition, values = where(reader, filters, sight)
    if place is not None:
        further, more = behind(sort, place, reverse=reverse)
        condition, values = f"{condition} AND {further}", [*values, *more]
    places = keys(sort)
    rows = reader.rows(
        f"SELECT {', '.join(places)}, {columns(sight)} FROM {FROM} WHERE {condition} "
        f"ORDER BY {order(sort, reverse=reverse)} LIMIT ?",
        [*values, limit],
    )
    return [(row[: len(places)], skill_of(row[len(places) :])) for row in rows]


def left_out(reader: Reader, filters: Filters) -> int:
    """Return how many skills would pass the filters, were they not of projects elsewhere."""
    sight = reader.sight
    if filters.all or filters.ids is not None or not sight.knows_projects:
        return 0
    return _count(reader, *where(reader, filters, sight, elsewhere=True))


def _count(reader: Reader, condition: str, values: Sequence[object]) -> int:
    """Return how many skills meet a condition; the answer is kept until the database changes."""

    def load(reader: Reader) -> int:
        rows = reader.rows(*_counting(condition, values))
        return int(rows[0][0]) if rows else 0

    return reader.remembered(f"count {condition} {list(values)}", load)


def _counting(condition: str, values: Sequence[object]) -> Select:
    return f"SELECT count(*) FROM {FROM} WHERE {condition}", values


@dataclass(frozen=True, slots=True)
class Facet:
    """One value of a facet, and how many visible skills have it."""

    value: str
    count: int


def tags(reader: Reader) -> list[Facet]:
    """Count the visible skills of each tag, the most frequent first."""
    return _facet(reader, "t.tag", f"{FROM} JOIN skill_tags t ON t.skill_id = s.id")


def kinds(reader: Reader) -> list[Facet]:
    """Count the visible skills of each kind."""
    return _facet(reader, "s.kind", FROM)


def categories(reader: Reader) -> list[Facet]:
    """Count the visible skills of each category."""
    return _facet(reader, "s.category", FROM)


def _facet(reader: Reader, column: str, tables: str) -> list[Facet]:
    sql = (
        f"SELECT {column}, count(*) FROM {tables} "
        f"WHERE {reader.sight.visible} AND {column} IS NOT NULL "
        f"GROUP BY {column} ORDER BY count(*) DESC, {column}"
    )
    return [Facet(*row) for row in reader.rows(sql)]
