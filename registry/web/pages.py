"""The pages about all skills: start, sources, findings, changes, statistics, personalities."""

import json
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import islice
from operator import attrgetter
from typing import Any, Final, TypeVar
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from registry.catalog.search.rank import FITS
from registry.catalog.visibility.rules import Decision
from registry.core import UNEXPECTED
from registry.db.read.listing import MOST, Facet, Facets, Filters
from registry.db.read.recent import RecentChange
from registry.db.read.signs import Signs
from registry.db.read.summary import SourceCount, Stats
from registry.db.read.usage import UsageCount
from registry.errors import FindingUnknown, PersonalityNotFound, RegistryError, UsageProblem
from registry.model import SEVERITIES, Found, Skill, Source, record
from registry.publish.git.clients import lines, repository_url
from registry.web import charts
from registry.web.answers import (
    VARY,
    PageContent,
    Visit,
    beyond,
    check_parameters,
    refusal,
    takes_gzip,
    visit_of,
    without_places,
)
from registry.web.query_params import PAGE, PARAMETERS, Order, PageQuery, number_of

FACETS: Final = (
    ("tag", "Tags", "tags"),
    ("security", "Security", "security"),
    ("kind", "Kinds", "kinds"),
    ("category", "Categories", "categories"),
    ("source", "Sources", "sources"),
    ("scope", "Scopes", "scopes"),
    ("status", "Status", "statuses"),
)
SHOWN: Final = 12
"""Number of facet values that a page shows at first; a click shows the others."""

PAGED: Final = ("q", "limit", "page")
"""Query parameters that only /index.json accepts."""

STREAMED: Final = 500
"""Number of skills that a stream writes in one step."""


def start(visit: Visit) -> PageContent:
    """Show the skills that match the query, and facets to refine it."""
    params = PageQuery.of(visit.request.query_params)
    view, filters = visit.view, params.filters
    # Requests with higher limits are not cached, because they would fill the cache.
    kept = visit.cached if params.limit <= PAGE else _uncached
    has_use = visit.cached(("has use",), lambda: bool(view.most_read(1)))
    order: Order = params.sort or ("used" if has_use else "updated")
    if params.queries:
        found = kept(
            ("search", params),
            lambda: _search(visit, params),
        )
    else:
        found = kept(
            ("list", params),
            lambda: view.page(
                filters,
                sort=order,
                reverse=params.reverse,
                limit=params.limit,
                offset=params.offset,
            ),
        )
    counts: Facets = visit.cached(
        ("facets", params.queries, filters), lambda: view.facets(params.queries, filters)
    )
    broken = visit.cached(("broken",), lambda: _broken(visit))
    home = _home(visit, counts) if params.is_start and not visit.as_json else None
    brief = [] if home is None else [one for _, one in (*home["recent"], *home["used"])]
    signs = kept(("signs", params, visit.as_json), lambda: view.signs([*found, *brief]))
    # Each skill has exactly one status, so the counts of the facet "status" give the total.
    total = found.total if params.queries else sum(one.count for one in counts.statuses)
    pages = -(-total // params.limit)
    said: dict[str, Any] = {"total": total, "page": params.page, "pages": pages}
    if params.queries:
        said |= {"confidence": found.confidence, "missing": list(found.missing)}
    return PageContent(
        "start.html",
        lambda: {
            "title": ", ".join(params.queries) or "Skills",
            "home": home,
            "params": params,
            "found": found,
            "signs": signs,
            "has_use": has_use,
            "order": params.sort or ("relevance" if params.queries else order),
            "total": total,
            "missing": found.missing if params.queries else (),
            "shorter": found.shorter if params.queries else (),
            "respelled": found.respelled if params.queries else (),
            "fits": not params.queries or found.confidence >= FITS,
            "pages": pages,
            "facets": list(_facets(counts, params)),
            "months": [
                (key, title, charts.months(getattr(counts, key)), getattr(params, key))
                for key, title in (("updated", "Updated"), ("created", "Created"))
            ],
            "shown": SHOWN,
            "broken": broken,
        },
        lambda: (
            said
            | {"skills": [_with_security(one, signs) for one in found], "facets": record(counts)}
        ),
        status=beyond(params.page, pages),
    )


SORTED: Final = 200
"""Maximum number of hits that a page can sort by anything other than relevance.

The page sorts the best hits.
"""


def _search(visit: Visit, params: PageQuery) -> Found:
    """Return a page of hits by relevance, or the best hits in another order."""
    view, filters = visit.view, params.filters
    limit, offset = (params.limit, params.offset) if params.sort is None else (SORTED, 0)
    found: Found = view.search(params.queries, filters, limit=limit, offset=offset)
    if params.sort is None:
        return found
    down = (params.sort != "name") != params.reverse
    hits = sorted(found, key=lambda one: one.name.casefold())
    if params.sort == "name":
        hits = hits[::-1] if down else hits
    elif params.sort == "used":
        signs = view.signs(hits)
        hits.sort(key=lambda one: signs[one.source, one.folder].read, reverse=down)
    else:
        hits.sort(key=attrgetter(f"{params.sort}_at"), reverse=down)
    page = tuple(hits[params.offset : params.offset + params.limit])
    return replace(found, items=page, total=min(found.total, SORTED))


FEW: Final = 6
"""Maximum number of skills in each short list of the start page."""

COLLECTIONS: Final = 18
"""Maximum number of tags on the start page."""


def _home(visit: Visit, counts: Facets) -> dict[str, Any]:
    """Return the data for the start page: the latest changes, the most used skills, tags."""
    view = visit.view
    recent = visit.cached(("recent", FEW), lambda: _listed(visit, _latest(visit)))
    used = visit.cached(("used", FEW), lambda: _listed(visit, view.most_read(FEW)))
    return {
        "sources": len(counts.sources) if len(counts.sources) < MOST else len(_sources(visit)),
        "recent": recent,
        "used": used,
        "tags": counts.tags[:COLLECTIONS],
    }


def _latest(visit: Visit) -> list[RecentChange]:
    """Return the latest changes of skills that still exist, each skill once."""
    skills: dict[str, RecentChange] = {}
    for one in visit.view.recent(limit=FEW * 4):
        if one.kind != "removed":
            skills.setdefault(one.ref, one)
    return list(skills.values())


R = TypeVar("R", RecentChange, UsageCount)


def _listed(visit: Visit, some: Iterable[R]) -> list[tuple[R, Skill]]:
    """Return the first of these facts that are about listed skills, each with its skill."""
    found: list[tuple[R, Skill]] = []
    for one in some:
        with suppress(RegistryError):
            stored = visit.view.locate(one.ref)
            if stored.is_visible or not visit.view.is_whole:
                found.append((one, stored.skill))
        if len(found) == FEW:
            break
    return found


def _with_security(one: Skill, signs: Mapping[tuple[str, str], Signs]) -> dict[str, Any]:
    """Return a skill as JSON, with the numbers of its security errors and warnings.

    ``deprecated`` is the warning that its version is deprecated, or null.
    """
    its = signs.get((one.source, one.folder), Signs())
    security = {"errors": its.errors, "warnings": its.warnings}
    return {**one.to_dict(), "security": security, "deprecated": its.deprecated}


def _facets(counts: Facets, params: PageQuery) -> Iterator[tuple[str, str, list[Facet], bool, Any]]:
    """Yield each facet: key, title, values to add, whether more values exist, and active value."""
    for key, title, name in FACETS:
        values: Sequence[Facet] = getattr(counts, name)
        # A visitor can choose several tags; each tag further limits the list.
        further = [one for one in values if key != "tag" or one.value not in params.tags]
        yield key, title, further, len(values) == MOST, getattr(params, key, None)


def _uncached(_what: object, load: Callable[[], Any]) -> Any:
    return load()


def _broken(visit: Visit) -> int:
    filters = visit.view.filters(Filters(status="invalid"))
    return visit.state.registry.list(filters, limit=0).total


async def every_skill(request: Request) -> Response:
    """Stream all skills that match the query, as a JSON array."""
    state = request.app.state.catalogue
    visit = visit_of(request)
    try:
        check_parameters(request, PARAMETERS)
        params = PageQuery.of(request.query_params)
        if params.sort == "used" or any(request.query_params.get(one) for one in PAGED):
            keys = ", ".join((*PAGED, "sort=used"))
            message = f"this address returns all skills; for {keys}, use /index.json"
            raise UsageProblem(message=message)
        filters = await state.run(visit.view.filters, params.filters)
        found = state.registry.iter(filters, sort=params.sort or "name", reverse=params.reverse)
        skills = map(visit.view.localized, found)
        first = await state.run(_some, visit, skills)
    except (RegistryError, *UNEXPECTED) as error:
        content = await state.run(refusal, error, visit)
        body = json.dumps(content.record()).encode()
        return Response(body, content.status, media_type="application/json")

    # With 31 as window size, zlib also writes the header and the trailer of gzip.
    packed = zlib.compressobj(4, wbits=31) if takes_gzip(request) else None

    async def write() -> Any:
        part, mark = first, b"["
        while part:
            yield packed.compress(mark + part) if packed else mark + part
            mark = b",\n"
            part = await state.run(_some, visit, skills)
        end = b"]\n" if mark != b"[" else b"[]\n"
        yield packed.compress(end) + packed.flush() if packed else end

    headers = {"cache-control": "private, no-cache", "vary": VARY}
    if packed is not None:
        headers["content-encoding"] = "gzip"
    return StreamingResponse(write(), media_type="application/json", headers=headers)


def _some(visit: Visit, skills: Iterator[Any]) -> bytes:
    """Return the next skills as JSON, without the brackets of the array.

    At the end, empty bytes.
    """
    facts = (one.to_dict() for one in islice(skills, STREAMED))
    shown = facts if visit.visitor.is_local else map(without_places, facts)
    lines = [json.dumps(one) for one in shown]
    return ",\n".join(lines).encode()


ROWS_PER_PAGE: Final = 50
FREQUENT: Final = 5000
"""If a code has more findings than this, its page is read in the order of the skills' names."""

READ: Final = 20
"""Maximum number of skills for which the page shows usage."""


def sources(visit: Visit) -> PageContent:
    """List the sources."""
    found = _sources(visit)
    rows = [one.to_dict() for one in found]
    if not visit.visitor.is_local:
        for one in rows:
            del one["path"]
    counts = visit.cached(("source counts",), visit.view.source_counts)
    for one in rows:
        of = counts.get(one["name"], SourceCount(0, 0, 0, 0, 0))
        one.update({state: count for state, count in of._asdict().items() if state != "skills"})
        one["git"] = repository_url(visit.base, f"source/{quote(one['name'], safe='')}")
    facts = {
        "title": "Sources",
        "sources": found,
        "counts": counts,
        "clients": list(lines(repository_url(visit.base))),
        "repositories": [(one["name"], one["git"]) for one in rows],
    }
    return PageContent("sources.html", lambda: facts, lambda: {"sources": rows})


def _sources(visit: Visit) -> Sequence[Source]:
    found: Sequence[Source] = visit.cached(("sources",), visit.view.sources, of_use=True)
    return found


def findings(visit: Visit) -> PageContent:
    """Count all findings by code, or list the findings with one code."""
    counts = visit.cached(("counts",), visit.view.counts)
    code = visit.request.query_params.get("code") or None
    severity = visit.request.query_params.get("severity") or None
    if severity is not None and severity not in SEVERITIES:
        raise UsageProblem(message=f"severity must be one of: {', '.join(SEVERITIES)}")
    page = number_of(visit.request.query_params, "page") or 1
    facts: dict[str, Any] = {"title": "Findings", "counts": counts, "code": code, "page": page}
    if code is None:
        return PageContent("findings.html", lambda: facts, lambda: {"counts": record(counts)})
    known = [one for one in counts if one.code == code]
    if not known:
        similar = sorted({one.code for one in counts})[:READ]
        raise FindingUnknown(name=code, similar=(), known=similar)
    total = sum(one.findings for one in known if severity in {None, one.severity})
    found = visit.cached(
        ("findings", code, severity, page),
        lambda: visit.view.findings(
            code,
            limit=ROWS_PER_PAGE,
            offset=min((page - 1) * ROWS_PER_PAGE, 1_000_000),
            severity=severity or (known[0].severity if len(known) == 1 else None),
            frequent=total > FREQUENT,
        ),
    )
    pages = -(-total // ROWS_PER_PAGE)
    facts |= {"title": f"Findings: {code}", "total": total, "found": found, "pages": pages}
    facts |= {"severity": severity, "known": known}
    said = {"code": code, "total": total, "page": page, "pages": pages}
    return PageContent(
        "finding.html",
        lambda: facts,
        lambda: said | {"findings": record(found)},
        beyond(page, pages),
    )


def stats(visit: Visit) -> PageContent:
    """Show statistics and charts."""
    view = visit.view
    counts: Facets = visit.cached(("facets", (), Filters()), lambda: view.facets((), Filters()))
    sizes = visit.cached(("sizes",), view.sizes)
    read = visit.cached(("read",), lambda: view.most_read(READ), of_use=True)
    unread = visit.cached(("unread",), view.count_unread, of_use=True)
    total = sum(one.skills for one in sizes)
    totals = _totals(visit) if view.is_whole else None
    tables = [
        ("Sources", "source", counts.sources),
        ("Tags", "tag", counts.tags[:READ]),
        ("Kinds", "kind", counts.kinds[:READ]),
        ("Categories", "category", counts.categories[:READ]),
        ("Scopes", "scope", counts.scopes),
    ]
    return PageContent(
        "stats.html",
        lambda: {
            "title": "Statistics",
            "total": total,
            "stats": totals,
            "growth": charts.growth(counts.created),
            "months": charts.months(counts.updated),
            "tables": [(title, key, values) for title, key, values in tables if values],
            "sizes": sizes,
            "read": read,
            "unread": unread,
        },
        lambda: {
            "total": total,
            "facets": record(counts),
            "sizes": record(sizes),
            "most_read": record(read),
            "never_read": unread,
            "stats": record(totals),
        },
    )


def _totals(visit: Visit) -> Stats:
    """Return all counts of the statistics page, without the time of the last sync."""
    counted: Stats = visit.cached(("stats",), visit.state.registry.stats)
    synced = sorted(one.last_sync_at for one in _sources(visit) if one.last_sync_at)
    oldest, newest = (synced[0], synced[-1]) if synced else (None, None)
    return replace(counted, oldest_sync=oldest, newest_sync=newest)


def personalities(visit: Visit) -> PageContent:
    """List the personalities in the settings; a limited visitor sees none."""
    known = _known(visit)
    rows = [
        {
            "name": one.name,
            "team": one.team,
            "toolset": sorted(one.toolset),
            "mode": one.global_ingest.mode,
        }
        for one in known.values()
    ]
    facts = {"title": "Personalities", "personalities": rows}
    return PageContent("personalities.html", lambda: facts, lambda: {"personalities": rows})


def personality(visit: Visit) -> PageContent:
    """List the skills that a personality sees, and the number of skills that each rule decided."""
    name = visit.path.removeprefix("/personalities/")
    known = _known(visit)
    if name not in known:
        raise PersonalityNotFound(name=name, similar=(), known=sorted(known))
    page = number_of(visit.request.query_params, "page") or 1
    rule = visit.request.query_params.get("rule") or None
    decided = visit.cached(("decided", name), lambda: visit.view.decided(name))
    rules = [{"rule": one, "sees": sees, "skills": count} for one, sees, count in decided.rules()]
    offset = min((page - 1) * ROWS_PER_PAGE, 1_000_000)
    found = _decided(visit, decided.page(rule, ROWS_PER_PAGE, offset))
    total = sum(one["skills"] for one in rules if rule is None or one["rule"] == rule)
    pages = -(-total // ROWS_PER_PAGE)
    facts = {
        "title": f"What {name} sees",
        "name": name,
        "rules": rules,
        "rule": rule,
        "found": found,
        "page": page,
        "pages": pages,
    }
    said = {"name": name, "rules": rules, "page": page, "pages": pages, "skills": found}
    return PageContent("personality.html", lambda: facts, lambda: said, beyond(page, pages))


def _known(visit: Visit) -> dict[str, Any]:
    """Return the personalities that a visitor may see; for a limited visitor, this is none."""
    return dict(visit.state.registry.settings.personalities) if visit.view.is_whole else {}


def _decided(visit: Visit, page: Sequence[tuple[int, Decision]]) -> list[dict[str, Any]]:
    skills = {one.id: one.skill for one in visit.view.by_ids([version for version, _ in page])}
    return [
        {"ref": skill.ref, "name": skill.name, "sees": choice.visible, "reason": choice.reason}
        for version, choice in page
        if (skill := skills.get(version)) is not None
    ]
