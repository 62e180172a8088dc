"""List skills that match filters: a page, the hits of a search, or all skills in batches."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Final

from registry.core import Core
from registry.db.read.listing import (
    FilterArguments,
    Filters,
    Listing,
    check_page,
    filters_of,
    list_skills,
    listing_of,
    next_skills,
)
from registry.db.read.skills import Sort
from registry.model import Found, Page, Skill

STEP: Final = 500
"""Maximum number of skills in memory at the same time."""


def chosen(core: Core, filters: Filters | None, wanted: FilterArguments) -> Filters:
    """Return the given filters, with the name of the source in its stored spelling.

    Raises `SourceNotFound`. Raises `UsageProblem` if filters are given both as an object and as
    keywords.
    """
    found = filters_of(filters, wanted)
    if found.source is None:
        return found
    from registry.sync.sources import find

    return replace(found, source=find(core, found.source).name)


def listed(
    core: Core,
    filters: Filters | None,
    wanted: FilterArguments,
    *,
    sort: Sort,
    reverse: bool,
    limit: int | None,
    offset: int,
) -> Page[Skill]:
    """Return a page of skills; see `SkillRegistry.list`."""
    check_page(sort, limit, offset)
    found = chosen(core, filters, wanted)
    return list_skills(core.reader, found, sort=sort, reverse=reverse, limit=limit, offset=offset)


@contextmanager
def opened(
    core: Core,
    filters: Filters | None = None,
    *,
    sort: Sort,
    reverse: bool,
    limit: int | None,
    offset: int,
) -> Iterator[Listing]:
    """Open a page of skills, which is read from the database during the iteration.

    Each iteration gives the same skills. If a read would block other processes that write, the page
    is read at once and kept in memory. Otherwise a caller that waits for a user, such as a pager,
    could block these processes for long. Raises the errors of `listed`.
    """
    check_page(sort, limit, offset)
    wanted = chosen(core, filters, {})
    with core.reader.snapshot():
        found = listing_of(
            core.reader, wanted, sort=sort, reverse=reverse, limit=limit, offset=offset
        )
        if not core.reader.keeps_writers_out:
            yield found
            return
        found = found.loaded()
    yield found


def searched(
    core: Core,
    queries: Sequence[str],
    filters: Filters | None,
    wanted: FilterArguments,
    *,
    limit: int,
    offset: int,
) -> Found:
    """Return a page of hits; see `SkillRegistry.search`."""
    # imported here, because only this function needs the search
    from registry.catalog.search.find import search

    check_page("name", limit, offset)
    found = chosen(core, filters, wanted)
    return search(core.reader, queries, found, limit=limit, offset=offset)


def iterate(
    core: Core, filters: Filters | None, wanted: FilterArguments, *, sort: Sort, reverse: bool
) -> Iterator[Skill]:
    """Yield the skills of a listing; see `SkillRegistry.iter`.

    The call itself raises errors, not the iteration.
    """
    check_page(sort, None, 0)
    return _stepwise(core, chosen(core, filters, wanted), sort, reverse=reverse)


def _stepwise(core: Core, filters: Filters, sort: Sort, *, reverse: bool) -> Iterator[Skill]:
    place: Sequence[Any] | None = None
    while True:
        core.check_open()
        with core.explained():
            found = next_skills(core.reader, filters, place, sort=sort, reverse=reverse, limit=STEP)
        yield from (skill for _, skill in found)
        if len(found) < STEP:
            return
        place = found[-1][0]
