"""Pages that list all tags, and all names that several skills have."""

from typing import Any, Final

from registry.model import record
from registry.web.answers import PageContent, Visit, beyond
from registry.web.query_params import number_of

TAGS: Final = 300
"""Number of tags on one page."""

NAMES: Final = 100
"""Number of names on one page."""

MAX_PART: Final = 100


def tags(visit: Visit) -> PageContent:
    """List all tags of listed skills, or those that contain a text."""
    part = visit.request.query_params.get("q", "").strip()[:MAX_PART]
    page = number_of(visit.request.query_params, "page") or 1
    offset = min((page - 1) * TAGS, 1_000_000)
    found, total = visit.cached(
        ("tags", part, page), lambda: visit.view.tags(part, limit=TAGS, offset=offset)
    )
    pages = -(-total // TAGS)
    facts: dict[str, Any] = {"total": total, "page": page, "pages": pages}
    return PageContent(
        "tags.html",
        lambda: {**facts, "title": "Tags", "tags": found, "part": part},
        lambda: {**facts, "tags": record(list(found))},
        status=beyond(page, pages),
    )


def copies(visit: Visit) -> PageContent:
    """List the names that several skills share."""
    page = number_of(visit.request.query_params, "page") or 1
    offset = min((page - 1) * NAMES, 1_000_000)
    found, total = visit.cached(
        ("names", page), lambda: visit.view.same_names(limit=NAMES, offset=offset)
    )
    pages = -(-total // NAMES)
    facts: dict[str, Any] = {"total": total, "page": page, "pages": pages}
    return PageContent(
        "names.html",
        lambda: {**facts, "title": "Copies", "names": found},
        lambda: {**facts, "names": record(list(found))},
        status=beyond(page, pages),
    )
