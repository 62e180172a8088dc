"""List skills that match filters: a page of a list, the hits of a search, or all in batches."""

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
"""Number of skills that are in memory at once."""


def chosen(core: Core, filters: Filters | None, wanted: FilterArguments) -> Filters:
    """Return the given filters; the name of a source is replaced by its stored spelling.

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
    """Open a page of skills that is read from the database while the caller iterates.

    You can iterate several times and get the same skills. If reading blocks other processes that
    write, the page is read at once and kept in memory. Otherwise a caller that waits for a user,
    such as a pager, would block them. Raises the errors of `listed`.
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
    from registry.catalog.search.find import search  # only this function needs it

    check_page("name", limit, offset)
    found = chosen(core, filters, wanted)
    return search(core.reader, queries, found, limit=limit, offset=offset)


def iterate(
    core: Core, filters: Filters | None, wanted: FilterArguments, *, sort: Sort, reverse: bool
) -> Iterator[Skill]:
    """Yield the skills of a listing; see `SkillRegistry.iter`.

    Errors are raised when the function is called, not at the first skill.
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
