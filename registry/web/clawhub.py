"""What ClawHub's clients ask, to the letter of ``contracts/clawhub-api.md`` (read side)."""

import posixpath
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from registry.catalog import hub
from registry.catalog.hub import Kept, Offered
from registry.core import UNEXPECTED
from registry.db.read.listing import Filters
from registry.db.read.skills import Sort
from registry.errors import ContentMissing, NotFound, RegistryError, UsageProblem
from registry.install.content import Entry, content_of
from registry.install.export import zipped
from registry.web import clawhub_shapes as shapes
from registry.web.answers import Visit, as_json, compressed, refusal, visit_of
from registry.web.asked import number_of
from registry.web.desk import Desk
from registry.web.fingerprint import fingerprint
from registry.web.raw import sent

MOST: Final = 200
USUAL: Final = 25
MAX_FILE: Final = 10 << 20

_SORTS: Final[Mapping[str, Sort]] = {"createdAt": "created"}
"""Orders that clients ask for; by all others what changed last comes first."""


class _Refused(Exception):
    """A request that is answered by a status and one sentence, which the client prints."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status
        self.text = text


class _Ambiguous(Exception):
    """Several owners have a skill of this slug."""

    def __init__(self, slug: str, found: Sequence[Offered]) -> None:
        super().__init__(slug)
        self.slug = slug
        self.found = found


Handler = Callable[[Visit], dict[str, Any] | Response]


def endpoint(handler: Handler) -> Callable[[Request], Any]:
    """Return an endpoint of Starlette; errors are plain text, a sentence each."""

    async def answer(request: Request) -> Response:
        desk: Desk = request.app.state.desk
        return await desk.run(_answer, handler, visit_of(request))

    return answer


def _answer(handler: Handler, visit: Visit) -> Response:
    try:
        told = handler(visit)
    except _Refused as refused:
        return _plain(refused.status, refused.text)
    except _Ambiguous as ambiguous:
        told = shapes.choices(visit.base, ambiguous.slug, ambiguous.found)
        return _json(visit, told, 409)
    except NotFound:
        return _plain(404, "Skill not found")
    except (RegistryError, *UNEXPECTED) as error:
        problem = refusal(error, visit)
        return _plain(problem.status, problem.record()["error"]["message"])
    return told if isinstance(told, Response) else _json(visit, told)


def discovery(visit: Visit) -> dict[str, Any]:
    """Say where the API is."""
    return {"apiBase": visit.base}


def search(visit: Visit) -> dict[str, Any]:
    """Answer ``/search``."""
    query = visit.request.query_params
    text, limit = " ".join(query.get("q", "")[:500].split()), _limit(visit, USUAL)
    if query.get("mode") == "exact":
        found = [(one, 1.0) for one in hub.find(visit.look, text)][:limit]
    elif text:
        hits = visit.look.search([text], Filters(), limit=limit, offset=0)
        places = [visit.look.locate(f"{hit.source}/{hit.folder}") for hit in hits]
        scores = [hit.score for hit in hits]
        found = list(zip(hub.offered(visit.look, places), scores, strict=True))
    else:
        found = []
    return {"results": [{**shapes.summary(one), "score": score} for one, score in found]}


def skills(visit: Visit) -> dict[str, Any]:
    """Answer ``/skills``."""
    query = visit.request.query_params
    limit = _limit(visit, USUAL)
    cursor = query.get("cursor", "")
    offset = int(cursor) if cursor.isascii() and cursor.isdecimal() and len(cursor) < 8 else 0  # noqa: PLR2004
    found, has_more = hub.page(
        visit.look,
        prefix=query.get("prefix", "")[:500],
        sort=_SORTS.get(query.get("sort", ""), "updated"),
        limit=limit,
        offset=offset,
    )
    return {
        "items": [shapes.item(one) for one in found],
        "nextCursor": str(offset + limit) if has_more else None,
    }


def skill(visit: Visit) -> dict[str, Any]:
    """Answer ``/skills/{slug}``."""
    one = _found(visit)
    item = shapes.item(one)
    latest = item.pop("latestVersion")
    return {"skill": item, "latestVersion": latest, "owner": shapes.owner(one), "metadata": None}


def versions(visit: Visit) -> dict[str, Any]:
    """Answer ``/skills/{slug}/versions``."""
    found = hub.contents(visit.look, _found(visit))[: _limit(visit, USUAL)]
    return {"items": [shapes.version(each) for each in found], "nextCursor": None}


def version(visit: Visit) -> dict[str, Any]:
    """Answer ``/skills/{slug}/versions/{version}``."""
    one = _found(visit)
    wanted = _content(visit, one, visit.request.path_params["version"])
    files = [shapes.file(file) for file in shapes.offered_files(wanted)]
    named = {"slug": one.slug, "displayName": one.stored.skill.name}
    return {"version": {**shapes.version(wanted), "files": files}, "skill": named}


def file(visit: Visit) -> Response:
    """Answer ``/skills/{slug}/file``."""
    one = _found(visit)
    wanted = _chosen(visit, one)
    path = visit.request.query_params.get("path", "")
    document = wanted.revision.document
    stored = document if path == shapes.DOCUMENT and document is not None else path
    listed = next((each for each in wanted.revision.files if each.path == stored), None)
    if listed is None:
        raise _Refused(404, "File not found")
    if listed.size > MAX_FILE:
        raise _Refused(413, "File is too large")
    data = _read(visit, one, wanted, stored)
    hashed = (listed.hash or "").removeprefix("sha256:")
    name = posixpath.basename(path)
    headers = {"x-content-sha256": hashed}
    return sent(visit, data, "application/octet-stream", name, shown=False, headers=headers)


def download(visit: Visit) -> Response:
    """Answer ``/download``: a zip with the files at its root, the same bytes each time."""
    one = _of(visit, visit.request.query_params.get("slug", ""))
    wanted = _chosen(visit, one)
    if wanted.revision.current:
        entries = content_of(visit.desk.registry.core, one.stored.skill)
    else:
        entries = [
            Entry(each.path, _read(visit, one, wanted, each.path), each.executable)
            for each in wanted.revision.files
        ]
    data = zipped(shapes.renamed(entries, wanted.revision.document))
    return sent(visit, data, "application/zip", f"{one.slug}.zip", shown=False)


def resolve(visit: Visit) -> dict[str, Any]:
    """Answer ``/resolve``: which version a folder with this fingerprint is."""
    query = visit.request.query_params
    one = _of(visit, query.get("slug", ""))
    hashed = query.get("hash", "").lower()
    match = next(
        (
            {"version": each.version}
            for each in hub.contents(visit.look, one)
            if hashed and fingerprint(shapes.offered_files(each)) == hashed
        ),
        None,
    )
    return {"match": match, "latestVersion": {"version": one.version}}


def telemetry(_visit: Visit) -> dict[str, Any]:
    """Take note of nothing."""
    return {"ok": True}


def _found(visit: Visit) -> Offered:
    return _of(visit, visit.request.path_params["slug"])


def _of(visit: Visit, slug: str) -> Offered:
    owner = visit.request.query_params.get("ownerHandle") or None
    found = hub.find(visit.look, slug, owner)
    if not found:
        raise _Refused(404, "Skill not found")
    if len(found) > 1:
        raise _Ambiguous(slug, found)
    # What was edited since the last sync is another content, and has a version of its own.
    before = found[0].stored
    stored = visit.look.current(before).stored
    return found[0] if stored.id == before.id else hub.offered(visit.look, [stored])[0]


def _chosen(visit: Visit, one: Offered) -> Kept:
    query = visit.request.query_params
    wanted = query.get("version") or None
    tag = query.get("tag") or None
    if wanted is None and tag is not None:
        wanted = shapes.tags(one).get(tag)
        if wanted is None:
            raise _Refused(404, "Tag not found")
    return _content(visit, one, wanted or one.version)


def _content(visit: Visit, one: Offered, wanted: str) -> Kept:
    for each in hub.contents(visit.look, one):
        if each.version == wanted:
            return each
    raise _Refused(404, "Version not found")


def _read(visit: Visit, one: Offered, kept: Kept, path: str) -> bytes:
    """Return the bytes of a file of a content, from wherever they are to be had."""
    registry, place = visit.desk.registry, one.stored.place
    try:
        return registry.read_revision(place, kept.revision.number, path)
    except ContentMissing:
        if not kept.revision.current:
            raise
    entries = content_of(registry.core, one.stored.skill)
    return next(entry.data for entry in entries if entry.path == path)


def _limit(visit: Visit, usual: int) -> int:
    try:
        return min(number_of(visit.request.query_params, "limit") or usual, MOST)
    except UsageProblem as error:
        raise _Refused(400, str(error)) from None


def _plain(status: int, text: str) -> Response:
    return PlainTextResponse(text, status, {"cache-control": "no-store"})


def _json(visit: Visit, told: dict[str, Any], status: int = 200) -> Response:
    headers = {"cache-control": "no-store"}
    return compressed(visit.request, as_json(told), "application/json", headers, status)
