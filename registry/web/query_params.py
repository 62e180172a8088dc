"""The query parameters of the start page, as a value that has a URL and filters."""

import calendar
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Final, Literal, TypeAlias, cast
from urllib.parse import urlencode

from starlette.datastructures import QueryParams

from registry.db.read.listing import Filters
from registry.db.read.skills import SORTS, Sort
from registry.errors import UsageProblem
from registry.web.addresses import at

PAGE: Final = 30
"""Number of skills on a page."""

MAX_PAGE: Final = 200
MAX_OFFSET: Final = 1_000_000
MAX_QUERY: Final = 500
"""Maximum length of a query, in characters; the rest of a longer query is ignored."""

Order: TypeAlias = Sort | Literal["used"]
"""The sort orders of the start page: those of every list, and the order by use."""

_MONTH: Final = re.compile(r"([0-9]{4})-(0[1-9]|1[0-2])")
_FLAGS: Final = {"1": True, "true": True, "": False, "0": False, "false": False}
_SINGLE: Final = (
    "kind",
    "category",
    "source",
    "scope",
    "status",
    "security",
    "created",
    "updated",
    "unused",
)
PARAMETERS: Final = ("q", "tag", *_SINGLE, "all", "sort", "reverse", "limit", "page")
"""The query parameters of the start page."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PageQuery:
    """The state of the start page: queries, filters and page number.

    ``created`` and ``updated`` are months, such as ``2026-11``. ``unused`` is an age, such as
    ``90d``, and selects skills that no tool has read for this time.
    """

    queries: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    kind: str | None = None
    category: str | None = None
    source: str | None = None
    scope: str | None = None
    status: str | None = None
    security: str | None = None
    created: str | None = None
    updated: str | None = None
    unused: str | None = None
    sort: Order | None = None
    reverse: bool = False
    all: bool = False
    limit: int = PAGE
    page: int = 1

    @classmethod
    def of(cls, given: QueryParams) -> "PageQuery":
        """Parse a query string. Raises `UsageProblem` if a parameter is invalid."""
        for key in (*_SINGLE, "sort", "reverse", "all", "limit", "page"):
            _check_once(given, key)
        single: dict[str, Any] = {key: given.get(key) or None for key in _SINGLE}
        sort = given.get("sort") or None
        if sort is not None and sort not in (*SORTS, "used"):
            known = ", ".join((*SORTS, "used"))
            raise UsageProblem(message=f"sort can't be {sort!r:.60}; it is one of: {known}")
        query = cls(
            queries=_each(" ".join(one[:MAX_QUERY].split()) for one in given.getlist("q")),
            tags=_each(given.getlist("tag")),
            sort=cast("Order | None", sort),
            reverse=flag(given, "reverse"),
            all=flag(given, "all"),
            limit=_number(given, "limit", PAGE, MAX_PAGE),
            page=_number(given, "page", 1, MAX_OFFSET),
            **single,
        )
        for key in ("created", "updated"):
            month = getattr(query, key)
            if month is not None and not _MONTH.fullmatch(month):
                raise UsageProblem(
                    message=f"{key} must be a month such as 2026-11, not {month!r:.60}"
                )
        return query

    @property
    def offset(self) -> int:
        """Number of skills on earlier pages."""
        return min((self.page - 1) * self.limit, MAX_OFFSET)

    @property
    def is_start(self) -> bool:
        """Whether no parameter is set; the page is then the start page itself."""
        return not self.pairs()

    @property
    def filters(self) -> Filters:
        """The filters for the listing. Raises `UsageProblem` if a filter is invalid."""
        return Filters(
            tags=self.tags,
            kind=self.kind,
            category=self.category,
            source=self.source,
            scope=self.scope,
            status=self.status,
            security=self.security,
            all=self.all,
            unused_since=self.unused,
            created_since=self.created and f"{self.created}-01",
            created_until=self.created and _end(self.created),
            updated_since=self.updated and f"{self.updated}-01",
            updated_until=self.updated and _end(self.updated),
        )

    @property
    def chosen(self) -> Iterator[tuple[str, str, str]]:
        """Yield the active filters: facet, value, and the URL without this filter.

        The form has one query. Other queries are also filters.
        """
        for one in self.queries if len(self.queries) > 1 else ():
            yield "query", one, self.url(queries=tuple(q for q in self.queries if q != one))
        for tag in self.tags:
            yield "tag", tag, self.url(tags=tuple(one for one in self.tags if one != tag))
        for key in _SINGLE:
            value = getattr(self, key)
            if value is not None:
                yield key, value, self.url(**dict.fromkeys([key]))
        if self.all:
            yield "all", "overridden and invalid", self.url(all=False)

    def url(self, **changes: Any) -> str:
        """Return the URL of the start page with some parameters changed."""
        query = replace(self, **{"page": 1, **changes}).pairs()
        return at(f"/?{urlencode(query)}" if query else "/")

    def narrowed(self, facet: str, value: str) -> str:
        """Return the URL with an additional filter."""
        if facet == "tag":
            return self.url(tags=(*self.tags, value))
        return self.url(**{facet: value})

    def hidden_fields(self) -> list[tuple[str, str]]:
        """Return the parameters that a search form sends together with the query."""
        return [pair for pair in replace(self, page=1).pairs() if pair[0] != "q"]

    def pairs(self) -> list[tuple[str, str]]:
        """Return the state as the pairs of a query string."""
        pairs = [("q", one) for one in self.queries]
        pairs += [("tag", tag) for tag in self.tags]
        pairs += [(key, value) for key in _SINGLE if (value := getattr(self, key)) is not None]
        if self.sort is not None:
            pairs.append(("sort", self.sort))
        pairs += [(key, "1") for key in ("reverse", "all") if getattr(self, key)]
        if self.limit != PAGE:
            pairs.append(("limit", str(self.limit)))
        if self.page != 1:
            pairs.append(("page", str(self.page)))
        return pairs


def number_of(given: QueryParams, key: str) -> int | None:
    """Return a positive number from a query string; None if it is missing.

    Raises `UsageProblem`.
    """
    text = given.get(key)
    if not text:
        return None
    if not (text.isascii() and text.isdecimal()) or len(text) > 9 or int(text) < 1:  # noqa: PLR2004
        raise UsageProblem(message=f"{key} must be a number from 1, not {text!r:.60}")
    return int(text)


def flag(given: QueryParams, key: str) -> bool:
    """Parse a parameter that is 1, 0, true or false. Raises `UsageProblem` for other values."""
    text = given.get(key, "").lower()
    if text not in _FLAGS:
        raise UsageProblem(message=f"{key} must be 1 or 0, not {text!r:.60}")
    return _FLAGS[text]


def _each(values: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(one for one in values if one))


def _check_once(given: QueryParams, key: str) -> None:
    """Raise `UsageProblem` if a parameter is given several times."""
    if len(several := _each(given.getlist(key))) > 1:
        values = " and as ".join(f"{one!r:.60}" for one in several[:2])
        raise UsageProblem(message=f"give the parameter {key} only once, not as {values}")


def _number(given: QueryParams, key: str, default: int, most: int) -> int:
    return min(number_of(given, key) or default, most)


def _end(month: str) -> str:
    year, number = map(int, month.split("-"))
    if year < 1:
        raise UsageProblem(message=f"there is no month {month}")
    return f"{month}-{calendar.monthrange(year, number)[1]}"
