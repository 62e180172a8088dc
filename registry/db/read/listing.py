"""Listings, counts, facets, and the list of skills for models; filters become SQL conditions."""

import json
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta
from functools import partial
from heapq import nsmallest
from typing import Any, Final, Literal, NamedTuple, Self, TypeAlias, TypedDict

from registry.db.interface import MAX_INTEGER, Condition, Reader, Select
from registry.db.read.findings import LEVELS, WITH_SECURITY
from registry.db.read.skills import (
    BY_NAME,
    DESCRIPTION,
    FROM,
    ORDER,
    PATH,
    SORTS,
    Sort,
    columns,
    order,
    shown,
    skill_of,
)
from registry.db.visibility import IMPORTED, OFFERABLE, USABLE, Visibility
from registry.errors import UsageProblem
from registry.model import SCOPES, SECURITY_LEVELS, STATUSES, Page, Scope, Skill, Value
from registry.text import tag_key

Time: TypeAlias = str | date | timedelta
"""A point in time: a timestamp, a day, or an age (see `registry.document.dates.moment`)."""

_TIMES: Final = ("created_since", "created_until", "updated_since", "updated_until", "unused_since")

_CHOICES: Final = (("scope", SCOPES), ("status", STATUSES), ("security", SECURITY_LEVELS))

MAX_TAGS: Final = 100
"""Maximum number of tags in the filters of one listing."""

NO_LIMIT: Final = MAX_INTEGER
"""A LIMIT that returns all rows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Filters:
    """The filters of a listing.

    Times may be text in the usual formats, a `datetime`, a `date`, or an age (``"30d"``, a
    `timedelta`). They are stored as UTC in ISO 8601 with Z. Both ends of a range are included; if
    the end is a day, the whole day is included.

    A skill must have all ``tags``, and at least one of ``any_tags``. ``unused_since`` selects
    skills that no tool has read since that time. ``offered`` leaves out skills whose front matter
    hides them from models. ``security`` selects skills whose worst security finding has this
    severity.

    ``all`` adds shadowed and invalid skills, and skills of other projects. ``status`` selects
    skills with this status, even if listings leave them out by default. ``ids`` selects only these
    versions, including shadowed versions.

    Raises `UsageProblem` for invalid values.
    """

    tags: Sequence[str] = ()
    any_tags: Sequence[str] = ()
    kind: str | None = None
    category: str | None = None
    scope: str | None = None
    source: str | None = None
    status: str | None = None
    security: str | None = None
    created_since: Time | None = None
    created_until: Time | None = None
    updated_since: Time | None = None
    updated_until: Time | None = None
    unused_since: Time | None = None
    offered: bool = False
    ids: Collection[int] | None = None
    all: bool = False

    def __post_init__(self) -> None:
        """Check the values, and convert times to text."""
        for key in ("tags", "any_tags"):
            _check_texts(key, getattr(self, key))
        if self.ids is not None and isinstance(self.ids, str | bytes):
            raise UsageProblem(message="ids must be a list of numbers")
        for key in ("kind", "category", "scope", "source", "status", "security"):
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


class FilterArguments(TypedDict, total=False):
    """The fields of `Filters` as keyword arguments of a method."""

    tags: Sequence[str]
    any_tags: Sequence[str]
    kind: str | None
    category: str | None
    scope: str | None
    source: str | None
    status: str | None
    security: str | None
    created_since: Time | None
    created_until: Time | None
    updated_since: Time | None
    updated_until: Time | None
    unused_since: Time | None
    offered: bool
    ids: Collection[int] | None
    all: bool


def filters_of(filters: Filters | None, wanted: FilterArguments) -> Filters:
    """Return the filters of the caller, who gave one `Filters` value or separate keyword arguments.

    Raises `UsageProblem` if the caller gave both.
    """
    if filters is not None:
        if wanted:
            given = ", ".join(wanted)
            raise UsageProblem(message=f"give {given} within the filters, not beside them")
        return filters
    if unknown := wanted.keys() - FilterArguments.__annotations__.keys():
        known = ", ".join(FilterArguments.__annotations__)
        raise UsageProblem(message=f"there is no filter {min(unknown)}; there are: {known}")
    return Filters(**wanted)


def check_page(sort: str, limit: int | None, offset: int) -> None:
    """Raise `UsageProblem` if the sort, the limit or the offset is invalid."""
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
    """Raise `UsageProblem` if the value is not a list of texts, or if the list is too long."""
    if not isinstance(value, Collection) or isinstance(value, str | bytes):
        raise UsageProblem(message=f"{key} must be a list of texts, not {value!r:.60}")
    if len(value) > MAX_TAGS:
        raise UsageProblem(message=f"give at most {MAX_TAGS} {key}, not {len(value)}")
    if not all(isinstance(one, str) for one in value):
        raise UsageProblem(message=f"{key} must be a list of texts, not {value!r:.60}")


def where(
    reader: Reader,
    filters: Filters,
    visibility: Visibility,
    *,
    elsewhere: bool = False,
    ids: bool = True,
    counts: bool = False,
) -> tuple[str, list[object]]:
    """Return the SQL condition on ``s`` (skills) and ``src`` (sources), and its values.

    If ``elsewhere``, it selects only skills of projects that the ``visibility`` doesn't show. If
    ``ids``, it also checks the ids of the filters; otherwise the caller must check them. If
    ``counts``, the condition is for a statement that counts many skills.
    """
    clauses: list[str] = ["s.live = 1", "src.enabled = 1"]
    values: list[object] = []
    every = f"s.status <> 'no_document' AND {shown(reader)}"
    if filters.status is None:
        clauses.append(every if filters.all else USABLE)
    else:
        clauses.append(shown(reader))
    if filters.ids is not None and ids:
        clauses.append(f"s.id {reader.in_json_array}")
        values.append(json.dumps(list(filters.ids)))
    elif filters.ids is None and not filters.all:
        clauses += [
            f"{visibility.shadowed} = 0",
            visibility.beyond if elsewhere else visibility.within,
        ]
    if filters.security is not None:
        clauses.append(WITH_SECURITY[filters.security])
    if filters.offered:
        clauses.append("s.hidden = 0")
    if filters.tags:
        tagged = ["SELECT skill_id FROM skill_tags WHERE tag = ?"] * len(filters.tags)
        clauses.append(f"s.id IN ({' INTERSECT '.join(tagged)})")
        values.extend(map(tag_key, filters.tags))
    if filters.any_tags:
        marks = ", ".join("?" * len(filters.any_tags))
        clauses.append(f"s.id IN (SELECT skill_id FROM skill_tags WHERE tag IN ({marks}))")
        values.extend(map(tag_key, filters.any_tags))
    time = reader.counted if counts else "{}"
    for clause, value in (
        ("lower(s.kind) = ?", filters.kind and filters.kind.lower()),
        ("lower(s.category) = ?", filters.category and filters.category.lower()),
        ("s.status = ?", filters.status),
        ("src.scope = ?", filters.scope),
        ("src.name = ?", filters.source),
        (f"{time.format('s.created_at')} >= ?", filters.created_since),
        (f"{time.format('s.created_at')} <= ?", filters.created_until),
        (f"{time.format('s.updated_at')} >= ?", filters.updated_since),
        (f"{time.format('s.updated_at')} <= ?", filters.updated_until),
        ("s.uid NOT IN (SELECT uid FROM usage WHERE last_read_at >= ?)", filters.unused_since),
    ):
        if value is not None:
            clauses.append(clause)
            values.append(value)
    return " AND ".join(clauses), values


def keys(sort: Sort) -> list[str]:
    """Return the columns that determine the position of a skill in a sort order."""
    return [term.split()[0] for term in ORDER[sort]]


def behind(sort: Sort, place: Sequence[Any], *, reverse: bool) -> tuple[str, list[Any]]:
    """Return the condition that a skill comes after a position in a sort order, and its values.

    ``place`` is the position, given as the values of `keys`. All columns except the first must have
    the same direction.
    """
    down = [term.endswith("DESC") != reverse for term in ORDER[sort]]
    columns, first, rest = keys(sort), "<" if down[0] else ">", "<" if down[-1] else ">"
    if first == rest:
        marks = ", ".join("?" * len(columns))
        return f"({', '.join(columns)}) {first} ({marks})", list(place)
    tail, marks = ", ".join(columns[1:]), ", ".join("?" * len(columns[1:]))
    condition = f"{columns[0]} {first}= ? AND ({columns[0]} {first} ? OR ({tail}) {rest} ({marks}))"
    return condition, [place[0], *place]


@dataclass(frozen=True, slots=True)
class Listing(Iterable[Skill]):
    """The skills that match some filters, in order; each iteration runs the query again.

    Within a snapshot of the reader, each iteration returns equal results. `loaded` fills ``items``
    with the skills and ``counted`` with their total.
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
        """The SELECT of the listing."""
        sql = f"SELECT {self.columns} FROM {FROM} WHERE {self.condition} ORDER BY {self.order}"
        if self.is_whole:
            return sql, self.values
        bounds = [*self.values, NO_LIMIT if self.limit is None else self.limit, self.offset]
        return f"{sql} LIMIT ? OFFSET ?", bounds

    @property
    def is_whole(self) -> bool:
        """Whether the listing has all matching skills: it has no limit and no offset."""
        return self.limit is None and self.offset == 0

    @property
    def total(self) -> int:
        """The number of skills that match the filters; one statement reads it."""
        if self.counted is not None:
            return self.counted
        return _count(self.reader, self.condition, self.values)

    def loaded(self) -> Self:
        """Return a copy of the listing with all its skills in memory."""
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
    visibility: Visibility | None = None,
) -> Listing:
    """Return a listing of the skills that match the filters; nothing is read yet."""
    seen = reader.visibility if visibility is None else visibility
    what = columns(seen), *where(reader, filters, seen), order(sort, reverse=reverse)
    return Listing(reader, *what, limit, offset)


def by_use(
    reader: Reader, filters: Filters, *, reverse: bool, limit: int, offset: int
) -> list[Skill]:
    """Return a page of the skills that match the filters, the most read first.

    Skills that no tool has read come last, sorted by their latest update. A second query reads them
    with an index. One query that sorts all skills by use would take longer.
    """
    seen = reader.visibility
    condition, values = where(reader, filters, seen)
    rest = order("updated", reverse=reverse)
    most = f"(SELECT u.read FROM usage u WHERE u.uid = s.uid) {'ASC' if reverse else 'DESC'}, "
    parts = [("", f"{most}{rest}"), ("NOT ", rest)]
    found: list[Skill] = []
    for negation, by in parts[::-1] if reverse else parts:
        which = f"{condition} AND s.uid {negation}IN (SELECT uid FROM usage WHERE read > 0)"
        listing = Listing(reader, columns(seen), which, values, by, limit - len(found), offset)
        found += listing
        if len(found) == limit:
            break
        offset = max(0, offset - listing.total)
    return found


def list_skills(
    reader: Reader,
    filters: Filters,
    *,
    sort: Sort = "name",
    reverse: bool = False,
    limit: int | None = None,
    offset: int = 0,
) -> Page[Skill]:
    """Return one page of the skills that match the filters, and their total number."""
    listing = partial(
        listing_of, reader, filters, sort=sort, reverse=reverse, limit=limit, offset=offset
    )

    def with_count(visibility: Visibility) -> tuple[Select, Select]:
        found = listing(visibility=visibility)
        if reader.listed is not None and filters == Filters() and not visibility.sources:
            return found.question, (f"{reader.listed} AND {visibility.within}", ())
        return found.question, _counting(found.condition, found.values)

    if limit is None and offset == 0:
        rows = reader.stream_visible(lambda visibility: listing(visibility=visibility).question)
        items = tuple(map(skill_of, rows))
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
    """Return the skills after a position in a listing, each with its own position.

    If ``place`` is None, start at the beginning of the listing. Unlike an offset, a position stays
    valid if skills are deleted or added in the meantime.
    """
    visibility = reader.visibility
    condition, values = where(reader, filters, visibility)
    if place is not None:
        further, more = behind(sort, place, reverse=reverse)
        condition, values = f"{condition} AND {further}", [*values, *more]
    places = keys(sort)
    rows = reader.rows(
        f"SELECT {', '.join(places)}, {columns(visibility)} FROM {FROM} WHERE {condition} "
        f"ORDER BY {order(sort, reverse=reverse)} LIMIT ?",
        [*values, limit],
    )
    return [(row[: len(places)], skill_of(row[len(places) :])) for row in rows]


def count_in_other_projects(reader: Reader, filters: Filters) -> int:
    """Count the skills that match the filters but belong to projects that aren't shown."""
    visibility = reader.visibility
    if filters.all or filters.ids is not None or not visibility.knows_projects:
        return 0
    return _count(reader, *where(reader, filters, visibility, elsewhere=True))


def _count(reader: Reader, condition: str, values: Sequence[object]) -> int:
    """Return the number of skills that meet a condition.

    The number is cached until the database changes.
    """

    def load(reader: Reader) -> int:
        rows = reader.rows(*_counting(condition, values))
        return int(rows[0][0]) if rows else 0

    return reader.remembered(f"count {condition} {list(values)}", load)


def _counting(condition: str, values: Sequence[object]) -> Select:
    return f"SELECT count(*) FROM {FROM} WHERE {condition}", values


@dataclass(frozen=True, slots=True)
class Facet:
    """One value of a facet (such as one tag), and how many visible skills have it."""

    value: str
    count: int


def facet(reader: Reader, name: Literal["tag", "kind", "category"]) -> list[Facet]:
    """Count the visible skills for each value of a facet, the most frequent value first."""
    column, tables = f"s.{name}", FROM
    if name == "tag":
        column, tables = "t.tag", f"{FROM} JOIN skill_tags t ON t.skill_id = s.id"
    sql = (
        f"SELECT {column}, count(*) FROM {tables} "
        f"WHERE {reader.visibility.visible} AND {column} IS NOT NULL "
        f"GROUP BY {column} ORDER BY count(*) DESC, {column}"
    )
    return [Facet(*row) for row in reader.rows(sql)]


MOST: Final = 40
"""Maximum number of values that a facet returns.

A facet returns its most frequent values. For months, a facet returns all values.
"""

# The rows of skills have many columns, so the statement reads them once, and counts only the
# columns that it needs.
_COUNTED: Final = (
    "WITH m AS MATERIALIZED (SELECT s.id, s.kind AS kinds, s.category AS categories, s.source_id, "
    "s.status, substr(s.created_at, 1, 7) AS created, substr(s.updated_at, 1, 7) AS updated "
    "FROM {tables} WHERE {condition}) "
    "SELECT 'tags', t.tag, count(*), NULL, NULL FROM m JOIN skill_tags t ON t.skill_id = m.id "
    "GROUP BY t.tag UNION ALL SELECT 'places', p.name, m.number, p.scope, m.status FROM "
    "(SELECT source_id, status, count(*) AS number FROM m GROUP BY source_id, status) m "
    "JOIN sources p ON p.id = m.source_id UNION ALL SELECT 'security', level, count(*), NULL, NULL "
    f"FROM ({LEVELS}) l JOIN m ON m.id = l.skill_id GROUP BY level"
)


@dataclass(frozen=True, slots=True)
class Facets(Value):
    """Counts of skills by value, the most frequent value first, in the order of the catalogue.

    ``created`` and ``updated`` count by month, in order of time. ``security`` counts by the
    severity of the worst security finding.
    """

    tags: tuple[Facet, ...] = ()
    security: tuple[Facet, ...] = ()
    kinds: tuple[Facet, ...] = ()
    categories: tuple[Facet, ...] = ()
    sources: tuple[Facet, ...] = ()
    scopes: tuple[Facet, ...] = ()
    statuses: tuple[Facet, ...] = ()
    updated: tuple[Facet, ...] = ()
    created: tuple[Facet, ...] = ()


def facets(reader: Reader, condition: Condition) -> Facets:
    """Count the skills that meet a condition, for all facets at once.

    The result is cached until the database changes.
    """

    def load(reader: Reader) -> Facets:
        return _facets(reader, condition)

    return reader.remembered(f"facets {condition[0]} {list(condition[1])}", load)


def among(reader: Reader, ids: Sequence[int]) -> Condition:
    """Return the SQL condition that selects the versions with these ids."""
    return f"s.id {reader.in_json_array}", [json.dumps(list(ids))]


def few(reader: Reader, condition: Condition, most: int) -> Sequence[int] | None:
    """Return the ids of the versions that meet a condition.

    Returns None if there are more than ``most`` versions. The result is cached until the database
    changes.
    """

    def load(reader: Reader) -> Sequence[int] | None:
        sql = f"SELECT s.id FROM {FROM} WHERE {condition[0]} LIMIT ?"
        rows = reader.rows(sql, [*condition[1], most + 1])
        return None if len(rows) > most else tuple(version for (version,) in rows)

    return reader.remembered(f"few {most} {condition[0]} {list(condition[1])}", load)


def _facets(reader: Reader, condition: Condition) -> Facets:
    sql = _COUNTED.format(tables=FROM, condition=condition[0]) + "".join(
        f" UNION ALL SELECT '{name}', {name}, count(*), NULL, NULL FROM m "
        f"WHERE {name} IS NOT NULL GROUP BY {name}"
        for name in ("kinds", "categories", "created", "updated")
    )
    found: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for facet, value, number, scope, status in reader.rows(sql, list(condition[1])):
        if facet == "places":
            for name, part in (("sources", value), ("scopes", scope), ("statuses", status)):
                found[name][part] += number
        else:
            found[facet][value] = number
    levels = found["security"]
    levels["none"] = found["statuses"].total() - levels.total()
    found["security"] = +levels
    return Facets(**{name: _ordered(name, counts) for name, counts in found.items()})


def _ordered(name: str, counts: Mapping[str, int]) -> tuple[Facet, ...]:
    if name == "security":
        some = sorted(counts.items(), key=lambda one: SECURITY_LEVELS.index(one[0]))
    elif name in {"created", "updated"}:
        some = sorted(counts.items())
    else:
        some = nsmallest(MOST, counts.items(), key=lambda one: (-one[1], one[0]))
    return tuple(Facet(*one) for one in some)


class Rank(NamedTuple):
    """The precedence of a skill among the skills with its name; the lowest rank shadows the others.

    ``project`` is the number of the skill's project; a lower number has a higher precedence. Skills
    without a project have the highest number. ``precedence`` is the negative of the number that an
    admin set.

    ``strength`` is the scope and priority of the source as one number. This number compares only
    sources of the same ``owner``. ``team`` is the team whose members see the source.
    """

    project: int
    precedence: int
    owner: str
    strength: int
    source_id: int
    position: int
    team: str


class Candidate(NamedTuple):
    """A skill that a policy allows or forbids; ``required_tools`` and ``needs`` are JSON.

    ``needs`` is the front matter, or None if it names no requirements. ``usable`` is 0 if the skill
    is invalid or quarantined, or if its source is disabled. ``tags`` holds one tag per line.
    ``rest`` is the row from which `skill` is made; it is empty if `candidates` was not asked for
    whole skills.
    """

    id: int
    hidden: int
    required_tools: str
    needs: str | None
    usable: int
    ref: str
    name: str
    source: str
    folder: str
    scope: Scope
    tags: str
    tree_hash: str | None
    shadowed: int
    rank: Rank
    rest: Sequence[Any]

    @property
    def skill(self) -> Skill:
        """The skill as listings show it."""
        return skill_of(self.rest)


_BEFORE_RANK: Final = Candidate._fields.index("rank")
_RANKED: Final = _BEFORE_RANK + len(Rank._fields)


def candidates(
    reader: Reader,
    *,
    judged: bool,
    name: str | None = None,
    source_id: int | None = None,
    source: str | None = None,
    scope: str | None = None,
    unusable: bool = False,
    whole: bool = True,
) -> Iterator[Candidate]:
    """Yield the usable skills that are visible from the working folder, by name.

    If ``judged``, the result includes shadowed skills, because a policy will decide about them.
    ``name``, ``source_id``, ``source`` and ``scope`` limit the result. If ``unusable``, the result
    includes skills that can't be used. If not ``whole``, read only the facts that a policy needs,
    which takes less time and memory.
    """
    visibility = reader.visibility
    condition = f"{OFFERABLE} AND {visibility.within}" if judged else visibility.visible
    if unusable:
        condition = f"s.live = 1 AND {IMPORTED} AND {visibility.within}"
    values: list[object] = []
    for column, value in (
        ("s.source_id", source_id),
        ("s.name", name),
        ("src.name", source),
        ("src.scope", scope),
    ):
        if value is not None:
            condition += f" AND {column} = ?"
            values.append(value)
    rest = f", {columns(visibility)}" if whole else ""
    rows = reader.stream(
        "SELECT s.id, s.hidden, s.required_tools, s.needs, "
        f"CASE WHEN {OFFERABLE} THEN 1 ELSE 0 END, {visibility.ref}, s.name, src.name, s.folder, "
        f"src.scope, s.tags, s.tree_hash, {visibility.shadowed}, "
        f"{visibility.project}, -src.precedence, coalesce(src.owner, ''), src.strength, "
        f"s.source_id, s.position, coalesce(src.team, ''){rest} FROM {FROM} "
        f"WHERE {condition} ORDER BY {BY_NAME}",
        values,
    )
    return (
        Candidate._make((*row[:_BEFORE_RANK], Rank._make(row[_BEFORE_RANK:_RANKED]), row[_RANKED:]))
        for row in rows
    )


class Offer(NamedTuple):
    """The line of one skill in a list for models, and the source and folder of the skill."""

    ref: str
    scope: Scope
    description: str
    source: str
    folder: str


class CatalogEntry(NamedTuple):
    """One skill in a list for models; ``location`` is the absolute path of its SKILL.md."""

    ref: str
    name: str
    description: str
    scope: Scope
    location: str


_ORDER: Final = f"ORDER BY {BY_NAME}"

_LOCATION: Final = f"rtrim({PATH}, '/') || '/' || coalesce(s.document, 'SKILL.md')"


def offers(reader: Reader) -> list[Offer]:
    """Return the line of each skill that models see, by name."""
    return list(map(Offer._make, reader.rows(f"{_select(reader.visibility)} {_ORDER}")))


def entries(reader: Reader) -> list[CatalogEntry]:
    """Return all skills that models see, with their paths, by name."""
    visibility = reader.visibility
    rows = reader.stream(
        f"SELECT {visibility.ref}, s.name, {DESCRIPTION}, src.scope, {_LOCATION} FROM {FROM} "
        f"WHERE {_is_offered(visibility)} {_ORDER}",
        (),
    )
    return list(map(CatalogEntry._make, rows))


def some_offers(reader: Reader, first: Sequence[str], most: int) -> tuple[list[Offer], int]:
    """Return the lines of at most ``most`` skills that models see, and the total number of skills.

    Skills with a ref in ``first`` come first. The query reads no other rows.
    """
    visibility = reader.visibility
    select = _select(visibility)
    with reader.snapshot():
        total = reader.rows(f"SELECT count(*) FROM {FROM} WHERE {_is_offered(visibility)}")
        marks = ", ".join("?" * len(first))
        near = (
            reader.rows(f"{select} AND {visibility.ref} IN ({marks})", list(first)) if first else []
        )
        others = reader.rows(f"{select} {_ORDER} LIMIT ?", [most])
    near.sort(key=lambda row: first.index(row[0]))
    rows = [*near, *(row for row in others if row[0] not in first)][:most]
    return list(map(Offer._make, rows)), int(total[0][0]) if total else 0


class TreeHashes:
    """The ref and the tree hash of each skill that models see, as the last reading found them.

    On a server, a reading asks only for the skills that changed since the last reading.
    """

    def __init__(self) -> None:
        self._held: dict[int, tuple[str, str]] = {}
        self._in_projects: dict[int, str] = {}
        self._place: object = None
        self._visibility: Visibility | None = None

    def read(self, reader: Reader) -> tuple[dict[str, str], dict[str, str]]:
        """Read the changes; return the former and the new tree hashes by ref.

        Both results leave out skills that have not changed.
        """
        with reader.snapshot():
            visibility = reader.visibility
            place, changed = reader.changes_since(self._place)
            in_projects = _names_in_projects(reader, visibility)
            if visibility != self._visibility:
                changed = None
            if changed is not None:
                # A skill of a project can shadow another skill with its name.
                names = {
                    known[one]
                    for known in (self._in_projects, in_projects)
                    for one in changed
                    if one in known
                }
                marks = ", ".join("?" * len(names))
                sql = f"SELECT id FROM skills WHERE live = 1 AND name IN ({marks})"
                namesakes = reader.rows(sql, sorted(names)) if names else []
                changed = [*changed, *(one for (one,) in namesakes)]
            reader.finish()
            now = _hashes(reader, visibility, changed)
        before = self._held if changed is None else _taken(self._held, changed)
        if changed is None:
            self._held = now
        else:
            self._held.update(now)
        self._in_projects, self._place, self._visibility = in_projects, place, visibility
        return dict(before.values()), dict(now.values())


def _taken(held: dict[int, tuple[str, str]], ids: Iterable[int]) -> dict[int, tuple[str, str]]:
    """Remove the ids from ``held``, and return their values."""
    return {one: held.pop(one) for one in set(ids) if one in held}


def _names_in_projects(reader: Reader, visibility: Visibility) -> dict[int, str]:
    """Return the names of the skills in the visible projects' sources, by id."""
    marks = ", ".join("?" * len(visibility.sources))
    sql = f"SELECT id, name FROM skills WHERE live = 1 AND source_id IN ({marks})"
    return dict(reader.rows(sql, visibility.sources)) if marks else {}


def _hashes(
    reader: Reader, visibility: Visibility, ids: Sequence[int] | None
) -> dict[int, tuple[str, str]]:
    """Return the ref and the tree hash of each skill that models see, by id.

    If ``ids`` is given, leave out all other skills.
    """
    select = f"SELECT s.id, {visibility.ref}, coalesce(s.tree_hash, '') FROM {FROM} WHERE "
    condition, values = ("1 = 1", []) if ids is None else among(reader, ids)
    rows = reader.rows(f"{select}{condition} AND {_is_offered(visibility)}", values)
    return {one: (ref, found) for one, ref, found in rows}


def _select(visibility: Visibility) -> str:
    return (
        f"SELECT {visibility.ref}, src.scope, {DESCRIPTION}, src.name, s.folder FROM {FROM} "
        f"WHERE {_is_offered(visibility)}"
    )


def _is_offered(visibility: Visibility) -> str:
    return f"{visibility.visible} AND s.hidden = 0"


_NESTED: Final = "JOIN skills c ON c.source_id = p.source_id AND c.live = 1 AND c.id <> p.id "

_FILES: Final = (
    "SELECT skill_id, path, hash, size FROM skill_files WHERE skill_id {chosen} "
    "UNION ALL "
    "SELECT p.id, substr(c.folder, length(p.folder) + 2) || '/' || f.path, f.hash, f.size "
    f"FROM skills p {_NESTED} AND c.folder > p.folder || '/' AND c.folder < p.folder || '0' "
    "JOIN skill_files f ON f.skill_id = c.id WHERE p.id {chosen} AND p.folder <> '.' "
    f"UNION ALL SELECT p.id, c.folder || '/' || f.path, f.hash, f.size FROM skills p {_NESTED} "
    "JOIN skill_files f ON f.skill_id = c.id WHERE p.id {chosen} AND p.folder = '.' "
    "ORDER BY 1, 2"
)
"""SELECT for the files of the chosen skills, including files of skills in subfolders.

The upper bound of a subfolder's paths uses '0', because '0' follows '/' in the sort order of text.
"""


@dataclass(frozen=True, slots=True)
class FileEntry:
    """One file: its path in the skill's folder, the hash of its bytes (``sha256:…``), its size."""

    path: str
    hash: str | None
    size: int


@dataclass(frozen=True, slots=True)
class Manifest:
    """A skill and all files in its folder, including the files of skills in subfolders.

    ``document`` is the path of the skill file, ``text`` is its content.
    """

    ref: str
    name: str
    description: str
    source: str
    folder: str
    document: str
    text: str
    files: tuple[FileEntry, ...]


def manifests(
    reader: Reader, filters: Filters, *, limit: int = NO_LIMIT, offset: int = 0
) -> tuple[Manifest, ...]:
    """Return a page of the skills that match the filters, by name; by default all of them."""
    visibility = reader.visibility
    condition, values = where(reader, filters, visibility)
    with reader.snapshot():
        rows = reader.rows(
            f"SELECT s.id, {visibility.ref}, s.name, {DESCRIPTION}, src.name, s.folder, "
            f"s.document, d.text FROM {FROM} JOIN documents d ON d.skill_id = s.id "
            f"WHERE {condition} ORDER BY {BY_NAME} LIMIT ? OFFSET ?",
            [*values, limit, offset],
        )
        files: dict[int, list[FileEntry]] = {row[0]: [] for row in rows}
        ids = json.dumps(list(files))
        wanted = _FILES.format(chosen=reader.in_json_array)
        for skill_id, *entry in reader.rows(wanted, (ids, ids, ids)):
            files[skill_id].append(FileEntry(*entry))
    facts = [(*row[1:], tuple(files[row[0]])) for row in rows]
    return tuple(Manifest(*each) for each in facts)


def skills_with_files(reader: Reader, filters: Filters, patterns: Sequence[str]) -> list[int]:
    """Return the ids of skills that match the filters and have a matching file, by name.

    ``patterns`` are patterns for SQL LIKE, in lower case. The path of a file must match one of
    them.
    """
    condition, values = where(reader, filters, reader.visibility)
    like = " OR ".join(["lower(f.path) LIKE ?"] * len(patterns))
    rows = reader.rows(
        f"SELECT s.id FROM {FROM} WHERE {condition} AND s.id IN "
        f"(SELECT f.skill_id FROM skill_files f WHERE {like}) "
        f"ORDER BY {BY_NAME}",
        [*values, *patterns],
    )
    return [row[0] for row in rows]
