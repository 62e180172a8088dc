"""The git remote: read-only smart HTTP, from which agents' own clients install skills.

Each visitor gets a repository of the skills that the visitor can see. A repository is built at its
first request, and stays until skills change. No git program is needed.
"""

import asyncio
import json
import zlib
from collections.abc import AsyncIterator, Iterator
from typing import Final

from starlette.requests import ClientDisconnect, Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response, StreamingResponse

from registry.core import UNEXPECTED
from registry.errors import NotFound, RegistryError, SkillAmbiguous
from registry.publish.git.repository import Repository
from registry.publish.git.upload_pack import SERVICE, Malformed, Refused, advertise, answer, error
from registry.web.answers import compressed, refusal, visit_of
from registry.web.repositories import Address, Kept
from registry.web.state import AppState, Visitor

PREFIX: Final = "/git/"
REFS: Final = ".git/info/refs"
PACK: Final = f".git/{SERVICE}"

MAX_BODY: Final = 1 << 20
"""Maximum size of a request, in bytes, both compressed and uncompressed."""

NO_CACHE: Final = {"cache-control": "no-cache, max-age=0, must-revalidate"}
NOT_FOUND: Final = "No repository at this address.\n"


async def endpoint(request: Request) -> Response:
    """Answer a request from git."""
    path: str = request.scope["path"].removeprefix(PREFIX)
    end, method = (PACK, "POST") if path.endswith(PACK) else (REFS, "GET")
    visitor: Visitor = request.scope["visitor"]
    name = path.removesuffix(end)
    address = Address.of(name, visitor.personality, visitor.source) if name != path else None
    if request.method != method:
        return PlainTextResponse("This method is not allowed.\n", 405, {"allow": method})
    if end == REFS and request.query_params.get("service") != SERVICE:
        text = "This server is read-only, and only answers git's smart protocol.\n"
        return PlainTextResponse(text, 403)
    try:
        return await _answer(request, address, is_fetch=end == PACK)
    except Malformed as problem:
        return PlainTextResponse(f"Malformed request: {problem}.\n", 400, NO_CACHE)
    except (NotFound, SkillAmbiguous):
        return PlainTextResponse(NOT_FOUND, 404, NO_CACHE)
    except (RegistryError, *UNEXPECTED) as problem:
        state: AppState = request.app.state.catalogue
        found = await state.run(refusal, problem, visit_of(request))
        return PlainTextResponse(f"{found.record()['error']['message']}\n", found.status, NO_CACHE)


async def root(request: Request) -> Response:
    """If a client clones the server's root address, redirect it to the repository of all skills."""
    return RedirectResponse(f"{PREFIX}catalogue{REFS}?{request.url.query}", 302, NO_CACHE)


async def _answer(request: Request, address: Address | None, *, is_fetch: bool) -> Response:
    if address is None:
        raise NotFound
    version = 2 if "version=2" in request.headers.get("git-protocol", "").split(":") else 0
    body = await _body(request) if is_fetch else b""
    kept = await _kept(request, address)
    if is_fetch:
        return await _fetch(request, kept, body, version)
    kind = f"application/x-{SERVICE}-advertisement"
    return Response(advertise(kept.repository, version), 200, NO_CACHE, media_type=kind)


async def _fetch(request: Request, kept: Kept, body: bytes, version: int) -> Response:
    kind = f"application/x-{SERVICE}-result"
    state: AppState = request.app.state.catalogue
    try:
        parts = await state.run(answer, kept.repository, kept.objects_at, body, version)
    except Refused as problem:
        return Response(error(str(problem)), 200, NO_CACHE, media_type=kind)
    return StreamingResponse(_in_turn(parts), 200, NO_CACHE, media_type=kind)


async def _in_turn(parts: Iterator[bytes]) -> AsyncIterator[bytes]:
    """Yield the parts of a pack; they come from the disk's cache, so no thread is needed."""
    for part in parts:
        yield part
        await asyncio.sleep(0)


async def _body(request: Request) -> bytes:
    """Return the body of a request. Raises `Malformed` if it is too large."""
    if request.headers.get("content-type") != f"application/x-{SERVICE}-request":
        raise Malformed("its content type is not that of git")
    body = b""
    try:
        async for chunk in request.stream():
            body += chunk
            if len(body) > MAX_BODY:
                raise Malformed("it is too large")
    except ClientDisconnect:
        raise Malformed("it has no end") from None
    encoding = request.headers.get("content-encoding", "identity")
    if encoding in {"gzip", "x-gzip"}:
        unpacking = zlib.decompressobj(zlib.MAX_WBITS | 16)
        try:
            body = unpacking.decompress(body, MAX_BODY + 1)
        except zlib.error:
            raise Malformed("its compression is damaged") from None
        if len(body) > MAX_BODY or not unpacking.eof:
            raise Malformed("it is too large")
    elif encoding != "identity":
        raise Malformed("its encoding is unknown")
    return body


OLDER: Final = "/.well-known/skills"


async def older_index(request: Request) -> Response:
    """Answer clients of the older form of skill discovery, such as opencode.

    The index has the name, version and files of each skill. The addresses of the files begin with
    the address of the index.
    """
    kept = await _catalogue(request)
    if kept.index is None:
        state: AppState = request.app.state.catalogue
        kept.index = await state.run(_index, kept.repository)
    return compressed(request, kept.index, "application/json", NO_CACHE)


def _index(repository: Repository) -> bytes:
    skills = [
        {"name": name, "version": version, "files": sorted(repository.files(name))}
        for name, version in repository.versions.items()
    ]
    return json.dumps({"skills": skills}).encode()


async def older_file(request: Request) -> Response:
    """Send a file that `older_index` lists."""
    kept = await _catalogue(request)
    name, path = request.path_params["name"], request.path_params["path"]
    files = kept.repository.files(name) if name in kept.repository.versions else {}
    data = kept.repository.pack.read(files[path]) if path in files else None
    if data is None:
        return PlainTextResponse("No such file.\n", 404, NO_CACHE)
    return Response(data, 200, NO_CACHE, media_type="application/octet-stream")


async def _catalogue(request: Request) -> Kept:
    """Return the repository of all skills that the visitor sees."""
    visitor: Visitor = request.scope["visitor"]
    return await _kept(request, Address("catalogue", "", visitor.personality, visitor.source))


async def _kept(request: Request, address: Address) -> Kept:
    state: AppState = request.app.state.catalogue
    edition = await state.edition()
    return await state.repositories.get(state.run, state.view, address, edition.skills)
