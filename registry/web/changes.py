"""The changes of skills as a page, as JSON and as a feed."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta
from itertools import groupby
from typing import Any, Final, cast
from urllib.parse import urlencode
from xml.etree import ElementTree as ET

from starlette.datastructures import QueryParams
from starlette.responses import Response

from registry.db.read.recent import HAPPENED, ChangeFilters, ChangeGroup, Happened, RecentChange
from registry.errors import SourceNotFound, UsageProblem
from registry.model import record
from registry.text import utc_now
from registry.web import addresses
from registry.web.answers import OK, PageContent, Visit, beyond, compressed
from registry.web.query_params import number_of

MAX_DAYS: Final = 3660

LATEST: Final = 200
"""Number of changes in the JSON."""

ROWS: Final = 100
"""Number of changes on a page of one day."""

GROUPS: Final = 30
"""Number of groups of changes on a page."""

FEW: Final = 8
"""Maximum number of changes in a group that the page lists one by one.

For a larger group, such as an import, the page has one line with a link to the list of its changes.
"""

_DAY: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangesQuery:
    """The query parameters of the changes."""

    days: int | None = None
    day: str | None = None
    kind: Happened | None = None
    source: str | None = None
    page: int = 1

    @classmethod
    def of(cls, given: QueryParams, sources: Sequence[str]) -> "ChangesQuery":
        """Parse a query string.

        Raises `UsageProblem` if a parameter is invalid, and `SourceNotFound`.
        """
        days, day = number_of(given, "days"), given.get("day") or None
        kind, source = given.get("kind") or None, given.get("source") or None
        if days is not None and days > MAX_DAYS:
            raise UsageProblem(message=f"days must be a number up to {MAX_DAYS}")
        if day is not None and not _is_day(day):
            raise UsageProblem(message=f"day must be a date such as 2026-11-24, not {day!r:.60}")
        if kind is not None and kind not in HAPPENED:
            raise UsageProblem(message=f"kind must be one of: {', '.join(HAPPENED)}")
        if source is not None and source not in sources:
            raise SourceNotFound(name=source, known=sources)
        page = number_of(given, "page") or 1
        return cls(days=days, day=day, kind=cast("Happened", kind), source=source, page=page)

    @property
    def filters(self) -> ChangeFilters:
        """The filters of the changes."""
        since = self.day
        if self.days is not None:
            begin = date.fromisoformat(utc_now()[:10]) - timedelta(days=self.days - 1)
            since = max(begin.isoformat(), self.day or "")
        return ChangeFilters(since=since, until=self.day, kind=self.kind, source=self.source)

    def url(self, path: str = "/changes", **changes: Any) -> str:
        """Return the URL of the page with some parameters changed."""
        query = replace(self, **{"page": 1, **changes})
        given = [(key, getattr(query, key)) for key in ("days", "day", "kind", "source", "page")]
        shown = [(key, value) for key, value in given if value and (key, value) != ("page", 1)]
        return addresses.at(f"{path}?{urlencode(shown)}" if shown else path)


def _is_day(text: str) -> bool:
    try:
        return bool(_DAY.fullmatch(text) and date.fromisoformat(text) < date.max)
    except ValueError:
        return False


def changes(visit: Visit) -> PageContent:
    """List the changes by day; a large group of changes, such as an import, is one line."""
    query, names = _query(visit)
    filters, view = query.filters, visit.view
    groups = visit.cached(("changes", filters), lambda: view.change_groups(filters))
    total = sum(one.count for one in groups) if query.day else len(groups)
    size = ROWS if query.day else GROUPS
    offset = min((query.page - 1) * size, 1_000_000)
    shown = visit.cached(
        ("changes", query),
        lambda: (
            [(None, list(view.recent(filters, limit=size, offset=offset)))]
            if query.day
            else list(_with_changes(visit, groups[offset : offset + size]))
        ),
    )

    def latest() -> dict[str, Any]:
        found = view.recent(filters, limit=LATEST, offset=min((query.page - 1) * LATEST, 1_000_000))
        count = sum(one.count for one in groups)
        return {
            "changes": record(found),
            "more": count > query.page * LATEST,
            "groups": record(groups[offset : offset + size]),
            "page": query.page,
        }

    return PageContent(
        "changes.html",
        lambda: {
            "title": "Changes" if query.source is None else f"Changes · {query.source}",
            "query": query,
            "days": [
                (day, list(some))
                for day, some in groupby(shown, key=lambda pair: pair[0].day if pair[0] else None)
            ],
            "pages": -(-total // size),
            "total": total,
            "sources": names,
            "kinds": HAPPENED,
        },
        latest,
        status=OK if visit.as_json else beyond(query.page, -(-total // size)),
    )


def _query(visit: Visit) -> tuple[ChangesQuery, Sequence[str]]:
    names = visit.cached(("source names",), lambda: [one.name for one in visit.view.sources()])
    return ChangesQuery.of(visit.request.query_params, names), names


def _with_changes(
    visit: Visit, groups: Sequence[ChangeGroup]
) -> Iterator[tuple[ChangeGroup, Sequence[RecentChange]]]:
    """Yield each group; if it has few changes, with its changes."""
    for group in groups:
        few = group.count <= FEW
        yield group, list(visit.view.recent(group.filters, limit=FEW)) if few else ()


ATOM: Final = "http://www.w3.org/2005/Atom"
_NOT_IN_XML = dict.fromkeys((*range(9), 11, 12, *range(14, 32), *range(55296, 57344), 65534, 65535))


def feed(visit: Visit) -> Response:
    """Return the latest changes as an Atom feed.

    A large group of changes, such as an import, is one entry.
    """
    query, _ = _query(visit)
    groups = visit.view.change_groups(query.filters)[:GROUPS]
    root = ET.Element("feed", {"xmlns": ATOM})
    _add(root, "title", "Changed skills" + (f" of {query.source}" if query.source else ""))
    _add(root, "id", f"{visit.origin}{query.url()}")
    ET.SubElement(root, "link", {"href": f"{visit.origin}{query.url()}"})
    ET.SubElement(
        root, "link", {"rel": "self", "href": f"{visit.origin}{query.url('/changes.atom')}"}
    )
    _add(root, "updated", max((one.at for one in groups), default="1970-01-01T00:00:00Z"))
    author = ET.SubElement(root, "author")
    _add(author, "name", "Skill registry")
    for group, some in _with_changes(visit, groups):
        for change in some:
            root.append(_entry(visit, change))
        if not some:
            root.append(_summary(visit, group))
    body = ET.tostring(root, encoding="utf-8", xml_declaration=True)
    return compressed(visit.request, body, "application/atom+xml; charset=utf-8", {})


def _entry(visit: Visit, change: RecentChange) -> ET.Element:
    entry = ET.Element("entry")
    _add(entry, "title", f"{change.name}: {change.kind}")
    # The id contains the number of the revision; for a removal, it contains the time.
    _add(entry, "id", f"urn:skill-registry:{change.uid}:{change.revision or change.at}")
    _add(entry, "updated", change.at)
    path = addresses.history(change.ref) if change.kind != "added" else addresses.skill(change.ref)
    ET.SubElement(entry, "link", {"href": f"{visit.origin}{path}"})
    _add(entry, "summary", change.description or change.ref)
    return entry


def _summary(visit: Visit, group: ChangeGroup) -> ET.Element:
    """Return one feed entry for a large group of changes."""
    entry = ET.Element("entry")
    title = f"{group.count:,} skills {group.kind}" + (f" in {group.source}" if group.source else "")
    _add(entry, "title", title)
    _add(entry, "id", f"urn:skill-registry:{group.day}:{group.kind}:{group.source}")
    _add(entry, "updated", group.at)
    query = ChangesQuery(day=group.day, kind=group.kind, source=group.source or None)
    ET.SubElement(entry, "link", {"href": f"{visit.origin}{query.url()}"})
    _add(entry, "summary", title)
    return entry


def _add(parent: ET.Element, tag: str, text: str) -> None:
    ET.SubElement(parent, tag).text = text.translate(_NOT_IN_XML)
