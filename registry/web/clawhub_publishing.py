"""Publish with ClawHub's clients: newer clients upload files with tickets, older ones send a form.

A client doesn't send a tree hash, but a new version number. This number must be the next one after
the version that the client has seen. So the server knows which version the client replaces.
"""

import json
from collections.abc import Callable, Mapping
from email.message import Message
from email.parser import BytesParser
from email.policy import HTTP
from typing import Any, Final, cast

from starlette.requests import Request
from starlette.responses import Response

from registry.catalog import hub
from registry.core import UNEXPECTED
from registry.disk.paths import check_paths
from registry.errors import PublishRefused, RegistryError
from registry.model import DOCUMENT_NAMES
from registry.publish import packages, publishing
from registry.publish.proposals import files_on_disk
from registry.settings import Limits
from registry.text import slug as slug_of
from registry.web.answers import (
    Visit,
    public_sentence,
    refusal,
    uncached_json,
    uncached_text,
    visit_of,
)
from registry.web.publishing import (
    FORBIDDEN,
    STATUS,
    body_of,
    by,
    check_right,
    most,
    target,
    writable,
)
from registry.web.state import AppState
from registry.web.uploads import Refusal

MAX_JSON: Final = 1 << 20
MAX_HEADERS: Final = 16 << 10
"""Maximum size of the headers of one part of a form, in bytes."""

Handler = Callable[[Visit, bytes], Mapping[str, Any]]


def endpoint(handler: Handler, *, writes: bool = True) -> Callable[[Request], Any]:
    """Return a Starlette endpoint; its answer to an error is one sentence of plain text."""

    async def answer(request: Request) -> Response:
        state = cast("AppState", request.app.state.catalogue)
        visit = visit_of(request)
        if not writes:
            return await state.run(_answer, handler, visit, b"")
        try:
            check_right(visit)
            async with state.receiving.turn():
                limit = most(state.registry.settings.limits)(request.scope)
                body = await body_of(request, limit)
                return await state.run(_answer, handler, visit, body)
        except Refusal as refused:
            return uncached_text(refused.status, refused.message)

    return answer


def _answer(handler: Handler, visit: Visit, body: bytes) -> Response:
    try:
        content = handler(visit, body)
    except Refusal as refused:
        return uncached_text(refused.status, refused.message)
    except (RegistryError, *UNEXPECTED) as error:
        status = next((code for kind, code in STATUS.items() if isinstance(error, kind)), None)
        message = public_sentence(error) if isinstance(error, RegistryError) else ""
        if isinstance(error, PublishRefused):
            found = [one for one in error.problems if one.severity == "error"]
            message += "".join(f" {one.code}: {one.message}." for one in found[:5])
        if status is None:
            problem = refusal(error, visit)
            status, message = problem.status, message or "Internal error; see the server's log."
        return uncached_text(status, message)
    return uncached_json(visit.request, dict(content))


def whoami(visit: Visit, _body: bytes) -> Mapping[str, Any]:
    """Answer ``/whoami``: the owner for which the token publishes, if it is only one.

    For a token without the right to publish, answer the token's name, because clients check a login
    with this request.
    """
    name = visit.visitor.name
    if visit.visitor.token is None:
        raise Refusal(401, "token_needed", "This request needs a token.")
    if not visit.visitor.publish:
        return {"user": {"handle": name, "displayName": name}}
    allowed = writable(visit)
    usual = visit.state.registry.settings.default_source
    chosen = [one for one in allowed if one.name == usual] or allowed
    handle = hub.owner_of(chosen[0].name) if len(chosen) == 1 else None
    return {"user": {"handle": handle, "displayName": name}}


def announce(visit: Visit, body: bytes) -> Mapping[str, Any]:
    """Answer ``/skills/-/upload-url``: the address for the upload of a file, and its ticket."""
    facts = _object(body)
    size, sha256 = facts.get("size"), facts.get("sha256")
    limits = visit.state.registry.settings.limits
    if type(size) is not int or not 0 <= size <= limits.skill_bytes:
        raise Refusal(413, "too_large", "This file is larger than a skill may be.")
    if not isinstance(sha256, str) or len(sha256) != 64:  # noqa: PLR2004  # hex of 256 bits
        raise Refusal(400, "bad_request", "The SHA-256 of the file is missing.")
    uploads = visit.state.uploads
    ticket = uploads.announce(visit.visitor.token or "", sha256.lower(), size, limits)
    return {"uploadUrl": f"{visit.base}/api/v1/uploads/{ticket}", "uploadTicket": ticket}


def upload(visit: Visit, body: bytes) -> Mapping[str, Any]:
    """Answer the upload of one file."""
    ticket = visit.request.path_params["ticket"]
    visit.state.uploads.fill(ticket, visit.visitor.token or "", body)
    return {"storageId": ticket}


def publish(visit: Visit, body: bytes) -> Mapping[str, Any]:
    """Answer ``POST /skills``: publish the uploaded files, or the files in a form."""
    kind = visit.request.headers.get("content-type", "")
    tickets: list[str] = []
    if kind.lower().startswith("multipart/form-data"):
        facts, files = _form(kind, body, visit.state.registry.settings.limits.files)
    else:
        facts, files = _object(body), {}
        for path, ticket in _announced(facts):
            files[path] = visit.state.uploads.take(ticket, visit.visitor.token or "")
            tickets.append(ticket)
    done = _published(visit, facts, files)
    visit.state.uploads.drop(tickets)
    return done


def _published(
    visit: Visit, facts: Mapping[str, Any], files: Mapping[str, bytes]
) -> Mapping[str, Any]:
    core = visit.state.registry.core
    wanted, limits = _text(facts, "slug"), core.settings.limits
    owner = facts.get("ownerHandle")
    _check_files(files, limits)
    sources = [one for one in writable(visit) if owner in {None, hub.owner_of(one.name)}]
    if owner is not None and not sources:
        raise Refusal(403, "source_forbidden", FORBIDDEN)
    named = sources[0].name if len(sources) == 1 else None
    found = [one for one in hub.find(visit.view, wanted) if one.stored.skill.source == named]
    current = found[0] if found else None
    runs = frozenset[str]()
    if current is not None:
        stored = visit.view.current(current.stored).stored
        current = hub.offered(visit.view, [stored])[0]
        _check_version(facts, current)
        # Clients don't send executable bits, so existing files keep their bits.
        runs = frozenset(files_on_disk(core, stored)[1] & files.keys())
    package = packages.package(core, files, runs, name=wanted if current is None else None)
    name = package.name if current is None else current.stored.skill.name
    if package.name != name or (current is None and slug_of(name) != wanted):
        message = f"The SKILL.md has the name {package.name}; publish it with that slug."
        raise Refusal(400, "name_differs", message)
    home = target(visit, package.name, named)
    planned = publishing.plan(core, package, home)
    if current is None and planned.current is not None:
        raise Refusal(409, "name_taken", f"The source has a skill named {package.name}.")
    with by(visit) as person:
        base = None if current is None else current.stored.skill.tree_hash
        done = publishing.publish(core, planned, base, by=person)
    is_waiting = done.outcome == "proposed"
    return {
        "ok": True,
        "skillId": f"{done.source}/{package.folder}",
        "versionId": done.proposal or done.tree_hash,
        "slug": wanted,
        "publicationStatus": "pending" if is_waiting else "published",
    }


def _check_version(facts: Mapping[str, Any], current: hub.Offered) -> None:
    """Raise `Refusal` unless the client's version is the next one after the current version."""
    expected = hub.version_of(current.turn + 1)
    if facts.get("version") != expected:
        message = (
            f"The version here is {current.version}, so the next one is {expected}. Publish "
            "again without --version."
        )
        raise Refusal(409, "version_differs", message)


def _check_files(files: Mapping[str, bytes], limits: Limits) -> None:
    if len(files) > limits.files or sum(map(len, files.values())) > limits.skill_bytes:
        raise Refusal(413, "too_large", "These files are larger than a skill may be.")
    if (bad := check_paths(files)) is not None:
        raise Refusal(400, "path_refused", f"A path is refused: {bad[1]}.")
    documents = [one for one in DOCUMENT_NAMES if one in files]
    if len(documents) != 1 or len(files[documents[0]]) > limits.document_bytes:
        raise Refusal(400, "no_document", "A skill has exactly one SKILL.md of a limited size.")


def _announced(facts: Mapping[str, Any]) -> list[tuple[str, str]]:
    files = facts.get("files")
    if not isinstance(files, list) or not all(isinstance(one, dict) for one in files):
        raise Refusal(400, "bad_request", "The list of files is missing.")
    found = [(_text(one, "path"), _text(one, "storageId")) for one in files]
    if len({path for path, _ in found}) != len(found):
        raise Refusal(400, "bad_request", "A file is there twice.")
    return found


def _object(body: bytes) -> dict[str, Any]:
    try:
        found = json.loads(body) if len(body) <= MAX_JSON else None
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise Refusal(400, "bad_request", "The request is not a JSON object.")
    return found


def _text(facts: Mapping[str, Any], key: str) -> str:
    value = facts.get(key)
    if not isinstance(value, str) or not value or len(value) > MAX_JSON:
        raise Refusal(400, "bad_request", f"{key} is missing.")
    return value


def _form(kind: str, body: bytes, most: int) -> tuple[dict[str, Any], dict[str, bytes]]:
    """Return the payload and the files of a form from an older client.

    The email parser reads only the headers of each part. For a form with a million empty parts, it
    would need a kilobyte of memory for each part.
    """
    boundary = _headers(f"Content-Type: {kind}".encode("latin-1", "replace")).get_boundary()
    line = f"\r\n--{boundary}".encode("latin-1", "replace")
    _, *parts = (b"\r\n" + body).split(line, most + 3)
    if len(parts) > most + 2:  # a form has the payload, the files and its end
        raise Refusal(413, "too_large", "The form has more files than a skill may have.")
    facts: dict[str, Any] | None = None
    files: dict[str, bytes] = {}
    for part in parts[:-1]:
        head, _, data = part.partition(b"\r\n\r\n")
        headers = _headers(head)
        name = headers.get_param("name", header="content-disposition")
        if name == "payload":
            facts = _object(data)
        elif name == "files":
            path = headers.get_filename() or ""
            if path in files:
                raise Refusal(400, "bad_request", "A file is there twice.")
            files[path] = data
    if facts is None:
        raise Refusal(400, "bad_request", "The form has no payload.")
    return facts, files


def _headers(data: bytes) -> Message:
    if len(data) > MAX_HEADERS:
        raise Refusal(413, "too_large", "The headers in the form are too long.")
    return BytesParser(policy=HTTP).parsebytes(data.strip() + b"\r\n\r\n", headersonly=True)
