"""Answer ClawHub's clients (docs/reference/http.md): version 1 of their API, reading only."""

import hashlib
import mimetypes
import posixpath
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, Final, TypeVar

from starlette.requests import Request
from starlette.responses import Response

from registry.catalog import hub
from registry.catalog.hub import Offered, StoredState
from registry.changes.untrusted import check_untrusted
from registry.core import UNEXPECTED
from registry.db.read.listing import Filters
from registry.db.read.skills import Sort
from registry.errors import ContentMissing, NotFound, RegistryError, UsageProblem
from registry.install.content import FileContent, content_of
from registry.install.export import zipped
from registry.model import SkillFile
from registry.web import addresses
from registry.web.answers import Visit, refusal, uncached_json, uncached_text, visit_of
from registry.web.audit import record_download
from registry.web.query_params import number_of
from registry.web.skill_pages import sent
from registry.web.state import AppState

DOCUMENT: Final = "SKILL.md"
"""The name of the skill file for ClawHub's clients; its name on disk may be different."""


F = TypeVar("F", FileContent, SkillFile)


def offered_files(kept: StoredState) -> list[SkillFile]:
    """Return the files of a revision that ClawHub's clients get."""
    return renamed(kept.revision.files, kept.revision.document)


def renamed(files: Sequence[F], document: str | None) -> list[F]:
    """Return the files, with the skill file under the name that all clients know."""
    return [replace(one, path=DOCUMENT) if one.path == document else one for one in files]


def choices_json(base: str, slug: str, found: Sequence[Offered]) -> dict[str, Any]:
    """Return the answer for a slug that skills of several owners have."""
    return {
        "code": "AMBIGUOUS_SKILL_SLUG",
        "message": f"Several owners have a skill {slug}; choose an owner.",
        "slug": slug,
        "matches": [
            {
                "ownerHandle": one.owner,
                "slug": one.slug,
                "ref": f"@{one.owner}/{one.slug}",
                "url": f"{base}{addresses.skill(one.stored.skill.ref)}",
            }
            for one in found
        ],
    }


def item_json(one: Offered) -> dict[str, Any]:
    """Return a skill in the form that ClawHub's API uses in listings."""
    skill = one.stored.skill
    return {
        "slug": one.slug,
        "displayName": skill.name,
        "summary": skill.description,
        "topics": list(skill.tags),
        "tags": tags_json(one),
        "stats": {},
        "createdAt": _ms(skill.created_at),
        "updatedAt": _ms(skill.updated_at),
        "latestVersion": {
            "version": one.version,
            "createdAt": _ms(skill.updated_at),
            "changelog": "",
        },
        "ownerHandle": one.owner,
    }


def summary_json(one: Offered) -> dict[str, Any]:
    """Return a skill in the form that ClawHub's API uses in search results, without its score."""
    skill = one.stored.skill
    return {
        "slug": one.slug,
        "displayName": skill.name,
        "summary": skill.description,
        "version": one.version,
        "updatedAt": _ms(skill.updated_at),
        "ownerHandle": one.owner,
        "owner": owner_json(one),
    }


def owner_json(one: Offered) -> dict[str, Any]:
    """Return the owner of a skill: its source."""
    return {"handle": one.owner, "displayName": one.stored.skill.source}


def tags_json(one: Offered) -> dict[str, str]:
    """Return the map from tags to versions; the skill's own version is also a tag."""
    declared = one.stored.skill.version
    tags = {"latest": one.version}
    return {**tags, f"declared-{declared}": one.version} if declared else tags


def version_json(kept: StoredState) -> dict[str, Any]:
    """Return a revision in the form that ClawHub's API uses in lists of versions."""
    return {"version": kept.version, "createdAt": _ms(kept.seen_at), "changelog": ""}


def file_json(one: SkillFile) -> dict[str, Any]:
    """Return a file in the form that ClawHub's API uses in versions."""
    kind = mimetypes.guess_type(one.path)[0] or "application/octet-stream"
    hashed = (one.hash or "").removeprefix("sha256:")
    return {"path": one.path, "size": one.size, "sha256": hashed, "contentType": kind}


def _ms(time: str) -> int:
    """Return a time as milliseconds since 1970, or 0 if the time is invalid."""
    try:
        return int(datetime.fromisoformat(time).timestamp() * 1000)
    except ValueError:
        return 0


_ORDER: Final = " _-,;:!?.'\"()[]{}@*/\\&#%`^+<=>|~$0123456789abcdefghijklmnopqrstuvwxyz"
_WEIGHTS: Final = {character: weight for weight, character in enumerate(_ORDER)}

_IGNORING: Final = frozenset({".gitignore", ".clawhubignore", ".clawdhubignore"})


def fingerprint(files: Sequence[SkillFile]) -> str | None:
    """Return the fingerprint by which ClawHub's clients identify files; None if there is none.

    The fingerprint can't be computed in two cases: a name has characters outside ASCII, because
    their order depends on the language, or clients may ignore one of the files.
    """
    lines = []
    for file in files:
        if file.path in _IGNORING or file.hash is None:
            return None
        parts = file.path.split("/")
        if any(part.startswith(".") or part == "node_modules" for part in parts):
            continue
        if not (file.path.isascii() and file.path.isprintable()):
            return None
        lines.append((file.path, file.hash.removeprefix("sha256:")))
    lines.sort(key=lambda line: locale_key(line[0]))
    text = "\n".join(f"{path}:{hashed}" for path, hashed in lines)
    return hashlib.sha256(text.encode()).hexdigest()


def locale_key(path: str) -> tuple[list[int], list[bool]]:
    """Return the key by which JavaScript's ``localeCompare`` orders printable ASCII.

    `localeCompare` first compares the weights of all characters. If they are equal, lower-case
    letters come before capitals.
    """
    weights = [_WEIGHTS[character] for character in path.lower()]
    return weights, [character.isupper() for character in path]


MOST: Final = 200
USUAL: Final = 25
MAX_FILE: Final = 10 << 20

_SORTS: Final[Mapping[str, Sort]] = {"createdAt": "created"}
"""Sort orders that clients may request.

For any other value, the skill with the latest change comes first.
"""


class _Refused(Exception):
    """The request is refused with a status and one sentence, which the client prints."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status
        self.text = text


class _Ambiguous(Exception):
    """Several sources have a skill with the requested slug."""

    def __init__(self, slug: str, found: Sequence[Offered]) -> None:
        super().__init__(slug)
        self.slug = slug
        self.found = found


Handler = Callable[[Visit], dict[str, Any] | Response]


def endpoint(handler: Handler) -> Callable[[Request], Any]:
    """Return a Starlette endpoint; its answer to an error is one sentence of plain text."""

    async def answer(request: Request) -> Response:
        state: AppState = request.app.state.catalogue
        return await state.run(_answer, handler, visit_of(request))

    return answer


def _answer(handler: Handler, visit: Visit) -> Response:
    try:
        content = handler(visit)
    except _Refused as refused:
        return uncached_text(refused.status, refused.text)
    except _Ambiguous as ambiguous:
        content = choices_json(visit.base, ambiguous.slug, ambiguous.found)
        return uncached_json(visit.request, content, 409)
    except NotFound:
        return uncached_text(404, "Skill not found")
    except (RegistryError, *UNEXPECTED) as error:
        problem = refusal(error, visit)
        return uncached_text(problem.status, problem.record()["error"]["message"])
    return content if isinstance(content, Response) else uncached_json(visit.request, content)


def discovery(visit: Visit) -> dict[str, Any]:
    """Return the address of the API; clients request it first."""
    return {"apiBase": visit.base}


def search(visit: Visit) -> dict[str, Any]:
    """Answer ``/search``: skills that match a query."""
    query = visit.request.query_params
    text, limit = " ".join(query.get("q", "")[:500].split()), _limit(visit)
    if query.get("mode") == "exact":
        found = [(one, 1.0) for one in hub.find(visit.view, text)][:limit]
    elif text:
        hits = visit.view.search([text], Filters(), limit=limit, offset=0)
        places = [visit.view.locate(f"{hit.source}/{hit.folder}") for hit in hits]
        scores = [hit.score for hit in hits]
        found = list(zip(hub.offered(visit.view, places), scores, strict=True))
    else:
        found = []
    return {"results": [{**summary_json(one), "score": score} for one, score in found]}


def skills(visit: Visit) -> dict[str, Any]:
    """Answer ``/skills``: a page of the list of skills."""
    query = visit.request.query_params
    limit = _limit(visit)
    cursor = query.get("cursor", "")
    offset = int(cursor) if cursor.isascii() and cursor.isdecimal() and len(cursor) < 8 else 0  # noqa: PLR2004
    found, has_more = hub.page(
        visit.view,
        prefix=query.get("prefix", "")[:500],
        sort=_SORTS.get(query.get("sort", ""), "updated"),
        limit=limit,
        offset=offset,
    )
    return {
        "items": [item_json(one) for one in found],
        "nextCursor": str(offset + limit) if has_more else None,
    }


def skill(visit: Visit) -> dict[str, Any]:
    """Answer ``/skills/{slug}``: the facts about one skill."""
    one = _found(visit)
    item = item_json(one)
    latest = item.pop("latestVersion")
    return {"skill": item, "latestVersion": latest, "owner": owner_json(one), "metadata": None}


def versions(visit: Visit) -> dict[str, Any]:
    """Answer ``/skills/{slug}/versions``: the list of a skill's versions."""
    found = hub.contents(visit.view, _found(visit))[: _limit(visit)]
    return {"items": [version_json(each) for each in found], "nextCursor": None}


def version(visit: Visit) -> dict[str, Any]:
    """Answer ``/skills/{slug}/versions/{version}``: one version with its files."""
    one = _found(visit)
    wanted = _content(visit, one, visit.request.path_params["version"])
    files = [file_json(file) for file in offered_files(wanted)]
    named = {"slug": one.slug, "displayName": one.stored.skill.name}
    return {"version": {**version_json(wanted), "files": files}, "skill": named}


def file(visit: Visit) -> Response:
    """Answer ``/skills/{slug}/file``: the bytes of one file."""
    one = _found(visit)
    wanted = _chosen(visit, one)
    path = visit.request.query_params.get("path", "")
    document = wanted.revision.document
    stored = document if path == DOCUMENT and document is not None else path
    listed = next((each for each in wanted.revision.files if each.path == stored), None)
    if listed is None:
        raise _Refused(404, "File not found")
    if listed.size > MAX_FILE:
        raise _Refused(413, "File is too large")
    if wanted.revision.current or wanted.revision.origin is None:
        data = _read(visit, one, wanted, stored)
    else:
        data = next(each.data for each in _earlier(visit, one, wanted) if each.path == stored)
    hashed = (listed.hash or "").removeprefix("sha256:")
    name = posixpath.basename(path)
    headers = {"x-content-sha256": hashed}
    return sent(visit, data, "application/octet-stream", name, shown=False, headers=headers)


def download(visit: Visit) -> Response:
    """Answer ``/download``: a zip with the skill's files at its root.

    For the same files, the zip is always the same.
    """
    one = _of(visit, visit.request.query_params.get("slug", ""))
    wanted = _chosen(visit, one)
    if wanted.revision.current:
        entries = content_of(visit.state.registry.core, one.stored.skill)
    else:
        entries = _earlier(visit, one, wanted)
    data = zipped(renamed(entries, wanted.revision.document))
    record_download(visit, one.stored.place, wanted.revision.tree_hash)
    return sent(visit, data, "application/zip", f"{one.slug}.zip", shown=False)


def resolve(visit: Visit) -> dict[str, Any]:
    """Answer ``/resolve``: the version whose files have the given fingerprint."""
    query = visit.request.query_params
    one = _of(visit, query.get("slug", ""))
    hashed = query.get("hash", "").lower()
    match = next(
        (
            {"version": each.version}
            for each in hub.contents(visit.view, one)
            if hashed and fingerprint(offered_files(each)) == hashed
        ),
        None,
    )
    return {"match": match, "latestVersion": {"version": one.version}}


def telemetry(_visit: Visit) -> dict[str, Any]:
    """Accept telemetry from clients, but store nothing."""
    return {"ok": True}


def _found(visit: Visit) -> Offered:
    return _of(visit, visit.request.path_params["slug"])


def _of(visit: Visit, slug: str) -> Offered:
    owner = visit.request.query_params.get("ownerHandle") or None
    found = hub.find(visit.view, slug, owner)
    if not found:
        raise _Refused(404, "Skill not found")
    if len(found) > 1:
        raise _Ambiguous(slug, found)
    # If a skill was edited since the last sync, it has another hash and therefore another version.
    before = found[0].stored
    stored = visit.view.current(before).stored
    return found[0] if stored.id == before.id else hub.offered(visit.view, [stored])[0]


def _chosen(visit: Visit, one: Offered) -> StoredState:
    query = visit.request.query_params
    wanted = query.get("version") or None
    tag = query.get("tag") or None
    if wanted is None and tag is not None:
        wanted = tags_json(one).get(tag)
        if wanted is None:
            raise _Refused(404, "Tag not found")
    return _content(visit, one, wanted or one.version)


def _content(visit: Visit, one: Offered, wanted: str) -> StoredState:
    for each in hub.contents(visit.view, one):
        if each.version == wanted:
            return each
    raise _Refused(404, "Version not found")


def _read(visit: Visit, one: Offered, kept: StoredState, path: str) -> bytes:
    """Return the bytes of a file of a version, from disk or from the database."""
    registry, place = visit.state.registry, one.stored.place
    try:
        return registry.read_revision(place, kept.revision.number, path)
    except ContentMissing:
        if not kept.revision.current:
            raise
    entries = content_of(registry.core, one.stored.skill)
    return next(entry.data for entry in entries if entry.path == path)


def _earlier(visit: Visit, one: Offered, kept: StoredState) -> list[FileContent]:
    """Return the files of an earlier version.

    Raises `SkillHeld` if a sync would quarantine them.
    """
    revision = kept.revision
    entries = [
        FileContent(each.path, _read(visit, one, kept, each.path), each.executable)
        for each in revision.files
    ]
    if revision.origin is not None:
        files = {each.path: each.data for each in entries}
        runs = {each.path for each in entries if each.executable}
        check_untrusted(visit.state.registry.core, one.stored.skill.name, files, runs)
    return entries


def _limit(visit: Visit) -> int:
    try:
        return min(number_of(visit.request.query_params, "limit") or USUAL, MOST)
    except UsageProblem as error:
        raise _Refused(400, str(error)) from None
