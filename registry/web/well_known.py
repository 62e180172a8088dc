"""Agent Skills discovery (RFC 0.2.0): an index of all skills, or of one skill, source or tag.

If versions are deprecated or yanked, the key ``versions`` tells another registry which ones, and
why.

An artifact is a skill in the form that clients download. A client downloads every artifact of an
index. So in a large catalogue, only the small indexes are useful.
"""

import json
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse

from registry.core import UNEXPECTED
from registry.db.read.listing import Filters
from registry.disk.files import digest
from registry.document.names import check_new_name
from registry.errors import NotFound, RegistryError, SkillAmbiguous
from registry.install.content import FileContent, content_of
from registry.install.export import FOLDER, INDEX, archive
from registry.model import Skill
from registry.publish.git.states import states_of
from registry.remotes.site import SCHEMA
from registry.remotes.states import KEY, as_json
from registry.web import addresses
from registry.web.answers import Visit, refusal, uncached_text, visit_of
from registry.web.audit import record_download
from registry.web.clawhub import DOCUMENT, renamed
from registry.web.skill_pages import sent

END: Final = f"/{FOLDER}/{INDEX}"
MAX_DESCRIPTION: Final = 1024
STEP: Final = 20
"""Number of skills whose index data are computed in one step."""


async def index(request: Request) -> Response:
    """Stream the index of all skills, or of the skills in the path."""
    visit = visit_of(request)
    state = visit.state
    try:
        skills, states = await state.run(_requested, visit)
    except (RegistryError, *UNEXPECTED) as error:
        problem = await state.run(refusal, error, visit)
        message = problem.record()["error"]["message"]
        return uncached_text(problem.status, f"{message}\n")

    async def write() -> AsyncIterator[bytes]:
        yield f'{{"$schema": {json.dumps(SCHEMA)}, "skills": ['.encode()
        mark = b"\n"
        while (some := await state.run(_entries, visit, skills)) is not None:
            for entry in some:
                yield mark + json.dumps(entry, ensure_ascii=True).encode()
                mark = b",\n"
        yield f'\n], "{KEY}": {json.dumps(states)}}}\n'.encode() if states else b"\n]}\n"

    headers = {"cache-control": "private, no-cache"}
    return StreamingResponse(write(), media_type="application/json", headers=headers)


def fetch(visit: Visit) -> Response:
    """Send an artifact: a single SKILL.md, or an archive if the skill has more files."""
    path = visit.request.scope["path"].removeprefix("/artifacts/")
    ref, _, name = path.rpartition("/")
    stored = visit.view.locate(addresses.ref_of(ref))
    entries = entries_of(visit, stored.skill, stored.document)
    is_document = len(entries) == 1
    if name != (DOCUMENT if is_document else "skill.tar.gz"):
        return PlainTextResponse("No such artifact.\n", 404)
    kind = "text/markdown; charset=utf-8" if is_document else "application/gzip"
    record_download(visit, stored.place, stored.skill.tree_hash)
    return sent(visit, artifact(entries), kind, name, shown=False)


def entries_of(visit: Visit, skill: Skill, document: str | None) -> list[FileContent]:
    """Return the files of a skill, with the skill file under the name that all clients know."""
    return renamed(content_of(visit.state.registry.core, skill), document)


def artifact(entries: list[FileContent]) -> bytes:
    """Return the bytes that a client downloads for a skill's files.

    For the same files, the bytes are always the same.
    """
    return entries[0].data if len(entries) == 1 else archive(entries)


def _requested(visit: Visit) -> tuple[Iterator[Skill], list[dict[str, Any]]]:
    """Return the skills that a path names, and the states of their versions.

    The path is first interpreted as a ref, then as a source, then as a tag. Raises `NotFound`.
    """
    path: str = visit.request.scope["path"]
    name = path.removeprefix("/s/").removesuffix(END) if path.startswith("/s/") else None
    registry, view = visit.state.registry, visit.view

    def states(kind: str, name: str) -> list[dict[str, Any]]:
        return as_json(states_of(view, kind, name, lambda one: one.name))

    if name is None:
        skills = _with_unique_names(visit, view.filters(Filters()))
        return skills, states("catalogue", "")
    try:
        found = view.locate(addresses.ref_of(name))
    except (NotFound, SkillAmbiguous) as error:
        problem = error
    else:
        return iter([found.skill]), states("skill", found.uid)
    if any(source.name == name for source in view.sources()):
        skills = _with_unique_names(visit, view.filters(Filters(source=name)))
        return skills, states("source", name)
    tagged = view.filters(Filters(tags=[name]))
    if not registry.list(tagged, limit=0).total:
        raise NotFound if not isinstance(problem, NotFound) else problem
    return _with_unique_names(visit, tagged), states("tag", name)


def _with_unique_names(visit: Visit, filters: Filters) -> Iterator[Skill]:
    """Return the skills with unique names.

    If several skills have the same name, a client would use only the first.
    """
    registry, view = visit.state.registry, visit.view
    times = Counter(one.name for one in registry.iter(filters))
    return (view.localized(one) for one in registry.iter(filters) if times[one.name] == 1)


def _entries(visit: Visit, skills: Iterator[Skill]) -> list[dict[str, Any]] | None:
    """Return the index data of the next skills; None if there are no more skills."""
    found, seen = [], 0
    for skill in skills:
        seen += 1
        entry = _entry(visit, skill)
        if entry is not None:
            found.append(entry)
        if seen >= STEP:
            break
    return found if seen else None


def _entry(visit: Visit, skill: Skill) -> dict[str, Any] | None:
    """Return the index data of a skill; None if clients don't accept this skill."""
    if check_new_name(skill.name) is not None or not skill.description.strip():
        return None
    try:
        # If a skill was edited after the sync, its digest changes, and clients would drop the
        # skill. So compute the digest from the files on disk.
        stored = visit.view.locate(f"{skill.source}/{skill.folder}")
        stored = visit.view.current(stored).stored
        skill = stored.skill
        if stored.file_count == 1 and skill.content_hash is not None:
            kind, name, hashed = "skill-md", DOCUMENT, skill.content_hash
        else:
            kind, name = "archive", "skill.tar.gz"
            hashed = visit.state.digests.get_or_make(
                (skill.tree_hash, stored.document),
                lambda: digest(artifact(entries_of(visit, skill, stored.document))),
            )
    except RegistryError:
        return None
    return {
        "name": skill.name,
        "type": kind,
        "description": skill.description[:MAX_DESCRIPTION],
        "url": addresses.at(f"/artifacts/{addresses.of_ref(skill.ref)}/{name}"),
        "digest": hashed,
    }
