"""Pages about all skills together: sources, findings, changes, statistics, personalities."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from datetime import date, timedelta
from itertools import groupby
from typing import Any, Final

from registry.db.read.history import Change
from registry.db.read.listing import Facets, Filters
from registry.db.read.summary import Stats
from registry.errors import FindingUnknown, PersonalityNotFound, UsageProblem
from registry.model import Source
from registry.model.values import record
from registry.text import utc_now
from registry.web import charts
from registry.web.answers import Told, Visit
from registry.web.asked import number_of

PAGE: Final = 50
CHANGES: Final = 200
MAX_DAYS: Final = 3660
READ: Final = 20
"""Skills of which it is said how often they were read."""


def sources(visit: Visit) -> Told:
    """Say where skills come from."""
    found = _sources(visit)
    told = [one.to_dict() for one in found]
    if not visit.visitor.is_local:
        for one in told:
            del one["path"]
    has_remote = any(one.remote for one in found)
    facts = {"title": "Sources", "sources": found, "has_remote": has_remote}
    return Told("sources.html", lambda: facts, lambda: {"sources": told})


def _sources(visit: Visit) -> Sequence[Source]:
    found: Sequence[Source] = visit.kept(("sources",), visit.look.sources, of_use=True)
    return found


def findings(visit: Visit) -> Told:
    """Count all findings by code, or list those of one."""
    counts = visit.kept(("counts",), visit.look.counts)
    code = visit.request.query_params.get("code") or None
    page = number_of(visit.request.query_params, "page") or 1
    facts: dict[str, Any] = {"title": "Findings", "counts": counts, "code": code, "page": page}
    if code is None:
        return Told("findings.html", lambda: facts, lambda: {"counts": record(counts)})
    known = [one for one in counts if one.code == code]
    if not known:
        similar = sorted({one.code for one in counts})[:READ]
        raise FindingUnknown(name=code, similar=(), known=similar)
    total = sum(one.findings for one in known)
    offset = min((page - 1) * PAGE, 1_000_000)
    found = visit.kept(
        ("findings", code, page), lambda: visit.look.findings(code, limit=PAGE, offset=offset)
    )
    pages = -(-total // PAGE)
    facts |= {"title": f"Findings: {code}", "total": total, "found": found, "pages": pages}
    said = {"code": code, "total": total, "page": page, "pages": pages}
    return Told("finding.html", lambda: facts, lambda: said | {"findings": record(found)})


def changes(visit: Visit) -> Told:
    """Say what came, changed and went lately, by day."""
    days = number_of(visit.request.query_params, "days")
    found = recent(visit, days)
    is_cut = len(found) == CHANGES
    by_day = [
        (day, _gathered(list(some))) for day, some in groupby(found, key=lambda one: one.at[:10])
    ]
    return Told(
        "changes.html",
        lambda: {
            "title": "Changes",
            "days": by_day,
            "asked_days": days,
            "is_cut": is_cut,
        },
        lambda: {"changes": record(found), "more": is_cut},
    )


def recent(visit: Visit, days: int | None) -> list[Change]:
    """Return the last changes, of so many days. Raises `UsageProblem`."""
    since = None
    if days is not None:
        if days > MAX_DAYS:
            raise UsageProblem(message=f"days is a number up to {MAX_DAYS}")
        begin = date.fromisoformat(utc_now()[:10]) - timedelta(days=days - 1)
        since = f"{begin.isoformat()}T00:00:00Z"
    return list(visit.look.recent(limit=CHANGES, since=since))


def _gathered(some: list[Change]) -> list[tuple[str, list[Change]]]:
    """Return the changes of a day by what happened."""
    order = ("added", "changed", "removed")
    kinds = [(kind, [one for one in some if one.kind == kind]) for kind in order]
    return [(kind, found) for kind, found in kinds if found]


def stats(visit: Visit) -> Told:
    """Say what there is in all, and draw it."""
    look = visit.look
    counts: Facets = visit.kept(("facets", (), Filters()), lambda: look.facets((), Filters()))
    sizes = visit.kept(("sizes",), look.sizes)
    read = visit.kept(("read",), lambda: look.most_read(READ), of_use=True)
    unread = visit.kept(("unread",), look.count_unread, of_use=True)
    total = sum(one.skills for one in sizes)
    totals = _totals(visit) if look.is_whole else None
    tables = [
        ("Sources", "source", counts.sources),
        ("Tags", "tag", counts.tags[:READ]),
        ("Kinds", "kind", counts.kinds[:READ]),
        ("Categories", "category", counts.categories[:READ]),
        ("Scopes", "scope", counts.scopes),
    ]
    return Told(
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
    """Return the counts of everything; when it was synced changes while they do not."""
    counted: Stats = visit.kept(("stats",), visit.desk.registry.stats)
    synced = sorted(one.last_sync_at for one in _sources(visit) if one.last_sync_at)
    oldest, newest = (synced[0], synced[-1]) if synced else (None, None)
    return replace(counted, oldest_sync=oldest, newest_sync=newest)


def personalities(visit: Visit) -> Told:
    """Name the personalities of the settings, and what each lets in; not to who is one."""
    known = _known(visit)
    told = [
        {
            "name": one.name,
            "team": one.team,
            "toolset": sorted(one.toolset),
            "mode": one.global_ingest.mode,
        }
        for one in known.values()
    ]
    facts = {"title": "Personalities", "personalities": told}
    return Told("personalities.html", lambda: facts, lambda: {"personalities": told})


def personality(visit: Visit) -> Told:
    """Say which skills a personality sees, and which rule decides about how many."""
    name = visit.path.removeprefix("/personalities/")
    known = _known(visit)
    if name not in known:
        raise PersonalityNotFound(name=name, similar=(), known=sorted(known))
    page = number_of(visit.request.query_params, "page") or 1
    rule = visit.request.query_params.get("rule") or None
    # Two numbers a rule are kept, not a decision a skill.
    rules = visit.kept(("rules", name), lambda: _rules(visit, name))
    offset = min((page - 1) * PAGE, 1_000_000)
    found = visit.kept(("decided", name, rule, page), lambda: _decided(visit, name, rule, offset))
    total = sum(one["skills"] for one in rules if rule is None or one["rule"] == rule)
    pages = -(-total // PAGE)
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
    return Told("personality.html", lambda: facts, lambda: said)


def _known(visit: Visit) -> dict[str, Any]:
    """Return the personalities that may be told of: none to who sees less than all."""
    return dict(visit.desk.registry.settings.personalities) if visit.look.is_whole else {}


def _rules(visit: Visit, name: str) -> list[dict[str, Any]]:
    decided = visit.desk.registry.decisions(name)
    counted = Counter((choice.visible, choice.rule) for _, choice in decided)
    return [
        {"rule": rule, "sees": sees, "skills": count}
        for (sees, rule), count in sorted(counted.items(), key=lambda pair: -pair[1])
    ]


def _decided(visit: Visit, name: str, rule: str | None, offset: int) -> list[dict[str, Any]]:
    found = [
        {"ref": skill.ref, "name": skill.name, "sees": choice.visible, "reason": choice.reason}
        for skill, choice in visit.desk.registry.decisions(name)
        if rule is None or choice.rule == rule
    ]
    return found[offset : offset + PAGE]
