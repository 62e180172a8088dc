"""The start page: search and facets; and the whole listing as JSON, streamed."""

import json
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from registry.catalog.search.fit import FITS
from registry.core import UNEXPECTED
from registry.db.read.listing import MOST, Facet, Facets, Filters
from registry.errors import RegistryError, UsageProblem
from registry.model.values import record
from registry.web import charts
from registry.web.answers import Told, Visit, refusal, visit_of
from registry.web.asked import PAGE, Asked
from registry.web.outside import without_places

FACETS: Final = (
    ("tag", "Tags", "tags"),
    ("kind", "Kinds", "kinds"),
    ("category", "Categories", "categories"),
    ("source", "Sources", "sources"),
    ("scope", "Scopes", "scopes"),
    ("status", "Status", "statuses"),
)
SHOWN: Final = 12
"""Values of a facet that stand there at once; the others are unfolded."""

PAGED: Final = ("q", "limit", "page")
"""What only a page can be asked for."""

STREAMED: Final = 500
"""Skills that are written at once."""


def start(visit: Visit) -> Told:
    """Say what fits what is asked, and what it can be narrowed by."""
    asked = Asked.of(visit.request.query_params)
    look, filters = visit.look, asked.filters
    # What is kept must not grow with what is asked.
    kept = visit.kept if asked.limit <= PAGE else _made
    if asked.queries:
        found = kept(
            ("search", asked),
            lambda: look.search(asked.queries, filters, limit=asked.limit, offset=asked.offset),
        )
    else:
        found = kept(
            ("list", asked),
            lambda: look.page(
                filters,
                sort=asked.sort,
                reverse=asked.reverse,
                limit=asked.limit,
                offset=asked.offset,
            ),
        )
    counts: Facets = visit.kept(
        ("facets", asked.queries, filters), lambda: look.facets(asked.queries, filters)
    )
    broken = visit.kept(("broken",), lambda: _broken(visit))
    # Each skill has one status: what is counted by it need not be counted again.
    total = found.total if asked.queries else sum(one.count for one in counts.statuses)
    pages = -(-total // asked.limit)
    said: dict[str, Any] = {"total": total, "page": asked.page, "pages": pages}
    if asked.queries:
        said |= {"confidence": found.confidence, "missing": list(found.missing)}
    return Told(
        "start.html",
        lambda: {
            "title": ", ".join(asked.queries) or "Skills",
            "asked": asked,
            "found": found,
            "total": total,
            "missing": found.missing if asked.queries else (),
            "fits": not asked.queries or found.confidence >= FITS,
            "pages": pages,
            "facets": list(_facets(counts, asked)),
            "months": [
                (key, title, charts.months(getattr(counts, key)), getattr(asked, key))
                for key, title in (("updated", "Last changed"), ("created", "Made"))
            ],
            "shown": SHOWN,
            "broken": broken,
        },
        lambda: said | {"skills": [one.to_dict() for one in found], "facets": record(counts)},
    )


def _facets(counts: Facets, asked: Asked) -> Iterator[tuple[str, str, list[Facet], bool, Any]]:
    """Yield each facet: what narrows further, whether there is more of it, and what is chosen."""
    for key, title, name in FACETS:
        values: Sequence[Facet] = getattr(counts, name)
        # Of tags several can be chosen; those that are narrow no further.
        further = [one for one in values if key != "tag" or one.value not in asked.tags]
        yield key, title, further, len(values) == MOST, getattr(asked, key, None)


def _made(_what: object, load: Callable[[], Any]) -> Any:
    return load()


def _broken(visit: Visit) -> int:
    filters = visit.look.filters(Filters(status="invalid"))
    return visit.desk.registry.list(filters, limit=0).total


async def every_skill(request: Request) -> Response:
    """Stream all skills that fit what is asked, as a JSON array."""
    desk = request.app.state.desk
    visit = visit_of(request)
    try:
        asked = Asked.of(request.query_params)
        if any(request.query_params.get(one) for one in PAGED):
            message = f"this is the whole listing: {', '.join(PAGED)} are asked of /index.json"
            raise UsageProblem(message=message)
        filters = await desk.run(visit.look.filters, asked.filters)
        found = desk.registry.iter(filters, sort=asked.sort, reverse=asked.reverse)
        skills = map(visit.look.localized, found)
        first = await desk.run(_some, visit, skills)
    except (RegistryError, *UNEXPECTED) as error:
        told = await desk.run(refusal, error, visit)
        body = json.dumps(told.record()).encode()
        return Response(body, told.status, media_type="application/json")

    async def write() -> Any:
        yield b"["
        part, mark = first, b""
        while part:
            yield mark + part
            mark = b",\n"
            part = await desk.run(_some, visit, skills)
        yield b"]\n"

    headers = {"cache-control": "private, no-cache"}
    return StreamingResponse(write(), media_type="application/json", headers=headers)


def _some(visit: Visit, skills: Iterator[Any]) -> bytes:
    """Return the next skills as JSON, without the brackets of their array; empty at the end."""
    facts = (one.to_dict() for one in islice(skills, STREAMED))
    shown = facts if visit.visitor.is_local else map(without_places, facts)
    lines = [json.dumps(one) for one in shown]
    return ",\n".join(lines).encode()
