"""Pages that list all tags, and all names that several skills have."""

from typing import Any, Final

from registry.errors import UsageProblem
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


GROUPS: Final = 50
"""Number of groups of near-duplicates on a page."""

SHOWN: Final = 4
"""Maximum number of skills that the page lists for each group."""


def copies(visit: Visit) -> PageContent:
    """List the names that several skills share, or the near-duplicates with different names."""
    relation = visit.request.query_params.get("relation") or None
    if relation not in {None, "alike"}:
        raise UsageProblem(message=f"relation can't be {relation!r:.60}; it is: alike")
    page = number_of(visit.request.query_params, "page") or 1
    view, size = visit.view, NAMES if relation is None else GROUPS
    # The pages share one list of all names, or of all groups.
    listed = view.same_names if relation is None else view.near_duplicates
    every = visit.cached(("copies", relation), listed)
    total, some = len(every), every[(page - 1) * size : page * size]
    found = visit.cached(
        ("copies", relation, page),
        lambda: view.named(some) if relation is None else view.alike(some, SHOWN),
    )
    pages = -(-total // size)
    facts: dict[str, Any] = {"total": total, "page": page, "pages": pages}
    title, key = ("Copies", "names") if relation is None else ("Near-duplicates", "groups")
    return PageContent(
        f"{key}.html",
        lambda: {**facts, "title": title, key: found},
        lambda: {**facts, key: record(list(found))},
        status=beyond(page, pages),
    )
