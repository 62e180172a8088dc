"""Filters of listings and searches, as values and as SQL."""

import json
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any, Final, Literal, TypeAlias, TypedDict, get_args

from registry.db.interface import Reader
from registry.db.sight import USABLE, Sight
from registry.db.storable import MAX_INTEGER
from registry.errors import UsageProblem
from registry.model import SCOPES, STATUSES
from registry.text import tag_key

Sort = Literal["name", "created", "updated"]
SORTS: Final[tuple[Sort, ...]] = get_args(Sort)

Time: TypeAlias = str | date | timedelta
"""A moment: a timestamp, a day, or an age (`registry.document.dates.moment`)."""

_TIMES: Final = ("created_since", "created_until", "updated_since", "updated_until", "unused_since")
_CHOICES: Final = (("scope", SCOPES), ("status", STATUSES))

MAX_TAGS: Final = 100
"""Tags that one listing can be narrowed to."""

NO_LIMIT: Final = MAX_INTEGER
"""As a LIMIT: all rows."""

FROM: Final = "skills s JOIN sources src ON src.id = s.source_id"

# Dates are most useful newest first; a name comes in its alphabet's order.
ORDER: Final = {
    "name": ("s.name_key ASC", "s.name ASC", "s.source_id ASC", "s.position ASC"),
    "created": ("s.created_at DESC", "s.name_key ASC", "s.source_id ASC", "s.position ASC"),
    "updated": ("s.updated_at DESC", "s.name_key ASC", "s.source_id ASC", "s.position ASC"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Filters:
    """What a listing shows.

    Times may be given in any of the ways people write them, as a `datetime` or a `date`, or as an
    age (``"30d"``, a `timedelta`); they are kept as UTC, ISO 8601 with Z. Both ends are included,
    and of a day that ends a time its last second.

    ``tags`` must all be there, of ``any_tags`` one. ``unused_since``: what no tool has read since
    then. ``offered`` leaves out what hides itself from models. ``all`` adds shadowed and invalid
    skills, and those of projects elsewhere; a ``status`` shows just those. ``ids`` are the versions
    among which to choose; they alone say what is shadowed.

    Raises `UsageProblem` for what is no such value.
    """

    tags: Sequence[str] = ()
    any_tags: Sequence[str] = ()
    kind: str | None = None
    category: str | None = None
    scope: str | None = None
    source: str | None = None
    status: str | None = None
    created_since: Time | None = None
    created_until: Time | None = None
    updated_since: Time | None = None
    updated_until: Time | None = None
    unused_since: Time | None = None
    offered: bool = False
    ids: Collection[int] | None = None
    all: bool = False

    def __post_init__(self) -> None:
        """Check the values, and bring times into their one form."""
        for key in ("tags", "any_tags"):
            _check_texts(key, getattr(self, key))
        if self.ids is not None and isinstance(self.ids, str | bytes):
            raise UsageProblem(message="ids must be a list of numbers")
        for key in ("kind", "category", "scope", "source", "status"):
            value = getattr(self, key)
            if value is not None and not isinstance(value, str):
                raise UsageProblem(message=f"{key} must be text, not {value!r:.60}")
        for key, choices in _CHOICES:
            value = getattr(self, key)
            if value is not None and value not in choices:
                known = ", ".join(choices)
                raise UsageProblem(message=f"{key} can't be {value!r:.60}; it is one of: {known}")
        for key in _TIMES:
            value = getattr(self, key)
            if value is not None:
                object.__setattr__(self, key, _moment(key, value))


class Wanted(TypedDict, total=False):
    """The values of `Filters` as keywords of a method."""

    tags: Sequence[str]
    any_tags: Sequence[str]
    kind: str | None
    category: str | None
    scope: str | None
    source: str | None
    status: str | None
    created_since: Time | None
    created_until: Time | None
    updated_since: Time | None
    updated_until: Time | None
    unused_since: Time | None
    offered: bool
    ids: Collection[int] | None
    all: bool


def filters_of(filters: Filters | None, wanted: Wanted) -> Filters:
    """Return what was given as one value or as keywords. Raises `UsageProblem` for both at once."""
    if filters is not None:
        if wanted:
            given = ", ".join(wanted)
            raise UsageProblem(message=f"give {given} within the filters, not beside them")
        return filters
    if unknown := wanted.keys() - Wanted.__annotations__.keys():
        known = ", ".join(Wanted.__annotations__)
        raise UsageProblem(message=f"there is no filter {min(unknown)}; there are: {known}")
    return Filters(**wanted)


def check_page(sort: str, limit: int | None, offset: int) -> None:
    """Raise `UsageProblem` for a page that there can't be."""
    if sort not in SORTS:
        known = ", ".join(SORTS)
        raise UsageProblem(message=f"sort can't be {sort!r:.60}; it is one of: {known}")
    for name, number in (("limit", limit), ("offset", offset)):
        if number is None and name == "limit":
            continue
        if not isinstance(number, int) or number < 0:
            raise UsageProblem(message=f"{name} must be a number from 0, not {number!r:.60}")


def _moment(key: str, value: Time) -> str:
    from registry.document.dates import moment

    try:
        return moment(value, end=key.endswith("_until"))
    except ValueError as error:
        raise UsageProblem(message=f"{key}: {error}") from error


def _check_texts(key: str, value: object) -> None:
    """Raise `UsageProblem` for anything but a list of texts, and for too many of them."""
    if not isinstance(value, Collection) or isinstance(value, str | bytes):
        raise UsageProblem(message=f"{key} must be a list of texts, not {value!r:.60}")
    if len(value) > MAX_TAGS:
        raise UsageProblem(message=f"give at most {MAX_TAGS} {key}, not {len(value)}")
    if not all(isinstance(one, str) for one in value):
        raise UsageProblem(message=f"{key} must be a list of texts, not {value!r:.60}")


def where(
    reader: Reader, filters: Filters, sight: Sight, *, elsewhere: bool = False, ids: bool = True
) -> tuple[str, list[object]]:
    """Return the condition on ``s`` (skills) and ``src`` (sources) and its parameters.

    ``sight`` is the reader's. ``elsewhere``: of those skills of projects that it does not show.
    ``ids``: with the ids of the filters; without them the caller has to check these.
    """
    clauses: list[str] = ["s.live = 1", "src.enabled = 1"]
    values: list[object] = []
    if filters.status is not None:
        clauses.append("s.status = ?")
        values.append(filters.status)
    else:
        clauses.append("s.status <> 'no_document'" if filters.all else USABLE)
    if filters.ids is not None and ids:
        clauses.append(f"s.id {reader.in_json_array}")
        values.append(json.dumps(list(filters.ids)))
    elif filters.ids is None and not filters.all:
        clauses += [f"{sight.shadowed} = 0", sight.beyond if elsewhere else sight.within]
    if filters.offered:
        clauses.append("s.hidden = 0")
    if filters.unused_since is not None:
        clauses.append("s.uid NOT IN (SELECT uid FROM usage WHERE last_read_at >= ?)")
        values.append(filters.unused_since)
    for tag in filters.tags:
        clauses.append("s.id IN (SELECT skill_id FROM skill_tags WHERE tag = ?)")
        values.append(tag_key(tag))
    if filters.any_tags:
        marks = ", ".join("?" * len(filters.any_tags))
        clauses.append(f"s.id IN (SELECT skill_id FROM skill_tags WHERE tag IN ({marks}))")
        values.extend(map(tag_key, filters.any_tags))
    for column, operator, value in (
        ("lower(s.kind)", "=", filters.kind and filters.kind.lower()),
        ("lower(s.category)", "=", filters.category and filters.category.lower()),
        ("src.scope", "=", filters.scope),
        ("src.name", "=", filters.source),
        ("s.created_at", ">=", filters.created_since),
        ("s.created_at", "<=", filters.created_until),
        ("s.updated_at", ">=", filters.updated_since),
        ("s.updated_at", "<=", filters.updated_until),
    ):
        if value is not None:
            clauses.append(f"{column} {operator} ?")
            values.append(value)
    return " AND ".join(clauses), values


def keys(sort: Sort) -> list[str]:
    """Return the columns that tell the place of a skill in a sort."""
    return [term.split()[0] for term in ORDER[sort]]


def behind(sort: Sort, place: Sequence[Any], *, reverse: bool) -> tuple[str, list[Any]]:
    """Return the condition that a skill comes behind a place (`keys`), and its parameters.

    Only the first column of an order may go another way than all others.
    """
    down = [term.endswith("DESC") != reverse for term in ORDER[sort]]
    columns, first, rest = keys(sort), "<" if down[0] else ">", "<" if down[-1] else ">"
    if first == rest:
        marks = ", ".join("?" * len(columns))
        return f"({', '.join(columns)}) {first} ({marks})", list(place)
    tail, marks = ", ".join(columns[1:]), ", ".join("?" * len(columns[1:]))
    condition = f"{columns[0]} {first}= ? AND ({columns[0]} {first} ? OR ({tail}) {rest} ({marks}))"
    return condition, [place[0], *place]


def order(sort: Sort, *, reverse: bool) -> str:
    """Return the ORDER BY list of a sort; every order is total, so that pages fit together."""
    terms = ORDER[sort]
    if not reverse:
        return ", ".join(terms)
    flipped = {"ASC": "DESC", "DESC": "ASC"}
    return ", ".join(f"{term.split()[0]} {flipped[term.split()[1]]}" for term in terms)
