"""Turn the content of pages into responses: HTML or JSON, compressed, with ETags."""

import gzip
import hashlib
import json
import logging
import os
import posixpath
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from types import MappingProxyType
from typing import Any, Final, cast
from urllib.parse import unquote, urlencode

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response

from registry import errors
from registry.catalog.why import Explanation
from registry.core import UNEXPECTED
from registry.errors import RegistryError
from registry.model import Skill, Source, record
from registry.text import utc_now
from registry.web import addresses
from registry.web.addresses import JSON
from registry.web.rendering import is_place, refused, render, wants_json
from registry.web.state import AppState, Edition, Visitor

PLACES: Final = frozenset({"path", "location", "url"})
"""JSON keys that may hold an absolute path on this machine.

These keys may also hold a relative path in a skill's folder. Only absolute paths are hidden.
"""

STRANGE: Final = frozenset({"front_matter"})
"""Keys with values that the author of a skill wrote; these values are not changed."""


def without_places(value: Any) -> Any:
    """Return a value as JSON, with null in place of absolute paths on this machine."""
    value = record(value)
    if isinstance(value, list | tuple):
        return [without_places(one) for one in value]
    if not isinstance(value, dict):
        return value
    return {
        key: None
        if key in PLACES and is_place(one)
        else one
        if key in STRANGE
        else without_places(one)
        for key, one in value.items()
    }


def public_explanation(found: Explanation, sources: Sequence[Source]) -> Explanation:
    """Return an explanation with names of sources in place of their folders."""

    def named(text: str) -> str:
        for source in sorted(sources, key=lambda one: -len(one.path)):
            text = text.replace(source.path, source.name)
        return text

    reasons = [
        replace(one, message=named(one.message), fix=one.fix and named(one.fix))
        for one in found.reasons
        if one.code != "project"  # the text of this code contains the folder of the project
    ]
    return replace(found, reasons=tuple(reasons))


def public_sentence(error: RegistryError) -> str:
    """Return the first line of an error, with file names in place of absolute paths."""
    text = str(error).partition("\n")[0]
    for fact in error.facts.values():
        if isinstance(fact, str) and os.path.isabs(fact):
            text = text.replace(fact, posixpath.basename(fact))
    return text


log = logging.getLogger(__name__)

OK: Final = 200
NOT_FOUND: Final = 404

COMPRESSED: Final = 1000
"""Minimum size of a compressed response, in bytes; smaller responses are not compressed."""

MAX_ANSWER: Final = 16 << 20
"""Maximum size of a page or of its JSON, in bytes."""

VARY: Final = "Accept-Encoding, Authorization, Cookie"

_NONE: Final[Mapping[str, str]] = MappingProxyType({})

_GZIP: Final = re.compile(r"\bgzip\b(?!\s*;\s*q=0(\.0*)?\s*(,|$))")
_TAG: Final = re.compile(r'(?:W/)?"([^"]*)"')

STATUS: Final[Mapping[type[RegistryError], int]] = {
    errors.SkillAmbiguous: 300,
    errors.UsageProblem: 400,
    errors.NotFound: 404,
    errors.Invalid: 400,
    errors.FileTooLarge: 413,
    errors.Unavailable: 503,
    errors.DatabaseProblem: 503,
    errors.Conflict: 409,
    errors.RegistryError: 422,
}
"""HTTP status of each class of errors; the first matching class counts."""


OF_SKILL: Final = frozenset("skills files history copies raw download artifacts".split())
"""First segments of URL paths that continue with a ref of a skill."""

CHOICES: Final = 20
"""Maximum number of skills that an error page describes."""

TITLES: Final = {300: "Which one?", 404: "Not found", 503: "Temporarily unavailable"}


@dataclass(frozen=True, slots=True)
class PageContent:
    """The content of a page: for HTML, a template and its ``facts``; for JSON, ``record``."""

    template: str
    facts: Callable[[], Mapping[str, Any]]
    record: Callable[[], Any]
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Visit:
    """A request of a visitor; ``path`` is the requested path without ``.json``.

    `cached` values are valid for one ``edition`` of the database. ``edition`` is None if the
    database couldn't be read.
    """

    state: AppState
    request: Request
    visitor: Visitor
    edition: Edition | None
    path: str
    as_json: bool

    @property
    def view(self) -> Any:
        """The part of the registry that the visitor sees; a `Browse`."""
        return self.state.view_of(self.visitor)

    @property
    def base(self) -> str:
        """The address of this server, as the visitor used it, without a final slash."""
        return self.state.base or str(self.request.base_url).rstrip("/")

    @property
    def origin(self) -> str:
        """The address of this server without its path; the addresses of pages are added to it."""
        return self.base.removesuffix(addresses.at(""))

    def cached(self, what: object, load: Callable[[], Any], *, of_use: bool = False) -> Any:
        """Return a cached value; visitors with the same view share it.

        The value is valid until skills or sources change, and at most for a day, so that its usage
        counts are not too old. If ``of_use``, it is valid until any write to the database. ``load``
        computes the value if it isn't cached.
        """
        edition = self.edition and (self.edition.instant if of_use else self.edition.skills)
        limits = self.visitor.personality, self.visitor.source
        return self.state.facts.get_or_make((edition, utc_now()[:10], limits, what), load)


def beyond(page: int, pages: int) -> int:
    """Return the status of a page of a list: 404 if the page is after the last one."""
    return NOT_FOUND if page > max(1, pages) else OK


TRACKING: Final = re.compile(r"utm_\w+|mtm_\w+|[a-z]*clid|_ga|_gl|igshid|mc_[ce]id|ref_src")
"""Matches query parameters that other sites and mail programs add to links."""


def check_parameters(request: Request, accepted: Collection[str]) -> None:
    """Raise `UsageProblem` if the request has a parameter that its page doesn't accept."""
    for name in request.query_params:
        if name not in accepted and not TRACKING.fullmatch(name):
            known = f"this page accepts: {', '.join(accepted)}" if accepted else "it accepts none"
            raise errors.UsageProblem(message=f"there is no parameter {name!r:.60}; {known}")


Handler = Callable[[Visit], PageContent | Response]


def visit_of(request: Request, edition: Edition | None = None) -> Visit:
    """Return the visit of a request."""
    path = request.scope["path"]
    # If a ref itself ends in `.json`, its dot is written differently in the URL (see
    # `addresses.of_ref`).
    as_json = request.scope["raw_path"].endswith(JSON.encode())
    path = path.removesuffix(JSON) if as_json else path
    visitor: Visitor = request.scope["visitor"]
    return Visit(request.app.state.catalogue, request, visitor, edition, path, as_json)


def page(
    handler: Handler, accepted: str | None = None, *, of_disk: bool = False, of_use: bool = False
) -> Callable[[Request], Any]:
    """Return a Starlette endpoint that runs a handler in a thread.

    ``accepted`` are the query parameters of the page, separated by spaces. A request with any other
    parameter is refused, unless ``accepted`` is None.

    If ``of_disk``, the response depends on files, so the server must create it before it knows the
    ETag. If ``of_use``, the response depends on data other than skills and sources.

    In both cases, and for all limited visitors, the ETag is computed from the bytes of the
    response. An ETag from the version of the database would reveal changes that the visitor can't
    see.
    """
    known = None if accepted is None else tuple(accepted.split())

    async def endpoint(request: Request) -> Response:
        state = cast("AppState", request.app.state.catalogue)
        try:
            if known is not None:
                check_parameters(request, known)
            now = await state.edition()
        except RegistryError as error:
            visit = visit_of(request)
            return await state.run(_sent, visit, refusal(error, visit), None)
        visit = visit_of(request, now)
        if of_disk:
            return await state.run(_answer, handler, visit, None)
        named = _cache_key(now.instant if of_use else now.skills, visit)
        tag = None if of_use or visit.visitor.is_narrowed else named
        if tag is not None and is_known(request, tag):
            return Response(status_code=304, headers=_cache_headers(tag))
        key = named, takes_gzip(request)
        answer = state.answers.get(key)
        if answer is None:
            answer = await state.run(_answer, handler, visit, tag)
            if answer.status_code == OK:
                state.answers.put(key, answer)
        elif tag is None and is_known(request, _tag_of(answer)):
            return Response(status_code=304, headers=_cache_headers(_tag_of(answer)))
        return answer

    return endpoint


def _answer(handler: Handler, visit: Visit, tag: str | None) -> Response:
    try:
        content = handler(visit)
        if not isinstance(content, Response):
            return _sent(visit, content, tag)
    except (RegistryError, *UNEXPECTED) as error:
        shorter = _without_slash(visit.request) if isinstance(error, errors.NotFound) else None
        return shorter or _sent(visit, refusal(error, visit), None)
    if content.status_code == OK and "etag" not in content.headers:
        content.headers.update(_cache_headers(tag or _digest(content.body)))
        if tag is None and is_known(visit.request, _tag_of(content)):
            return Response(status_code=304, headers=_cache_headers(_tag_of(content)))
    return content


def answered(handler: Handler, visit: Visit) -> Response:
    """Return the response of a handler to a request that changes data."""
    return _answer(handler, visit, None)


def refusal(error: Exception, visit: Visit) -> PageContent:
    """Return the error page: the message, and skills that the visitor may have meant.

    If the error is a bug and isn't caused by damaged data, raises the error again.
    """
    if not isinstance(error, RegistryError):
        found = visit.state.registry.core.damage()
        if found is None:
            raise error
        error = found
    if isinstance(error, errors.DatabaseCorrupt) and error.is_row:
        return _refused("skill_damaged", _damage(error, visit), 500)
    near = [*error.facts.get("refs", ()), *error.facts.get("similar", ())]
    message = str(error).partition("\n")[0]
    if not visit.visitor.is_local:
        message = public_sentence(error)
        if isinstance(error, errors.DatabaseProblem):
            log.warning("%s", error)
            message = "The database can't be used now; see the server's log."
    page = _refused(error.code, message, status_of(error), near)
    return replace(page, facts=partial(_with_skills, page.facts, near, visit)) if near else page


def _with_skills(
    facts: Callable[[], Mapping[str, Any]], refs: Sequence[str], visit: Visit
) -> Mapping[str, Any]:
    """Return the data of an error page, with the skills from which the user can choose."""
    skills = _named(refs, visit)
    return {**facts(), "skills": skills, "signs": visit.view.signs(skills)}


def _named(refs: Sequence[str], visit: Visit) -> list[Skill]:
    """Return the first skills with these refs, so that the user can choose from them."""
    found: list[Skill] = []
    for ref in refs[:CHOICES]:
        with suppress(RegistryError, *UNEXPECTED):
            found.append(visit.view.locate(ref).skill)
    return found


def _damage(found: errors.DatabaseCorrupt, visit: Visit) -> str:
    """Return a description of the damaged data.

    The description names the damaged row only for visitors who see all skills.
    """
    log.warning("%s", found)
    of, _, ref = visit.path.strip("/").partition("/")
    if of in OF_SKILL and ref:
        what = f"The stored data of {unquote(ref):.200} is damaged"
    elif visit.view.is_whole:
        what = f"The stored data of a skill is damaged: {found.reason}"
    else:
        what = "The stored data of a skill is damaged"
    return f"{what}. To see the damage, run: skill-registry db check"


def failed(code: str, message: str) -> Callable[[Request, Exception], Response]:
    """Return Starlette's handler of an HTTP error; it answers with HTML, JSON or plain text."""

    def answer(request: Request, error: Exception) -> Response:
        status = error.status_code if isinstance(error, HTTPException) else 500
        if status == NOT_FOUND and (shorter := _without_slash(request)) is not None:
            return shorter
        visit = visit_of(request)
        given = {**(getattr(error, "headers", None) or {}), "cache-control": "no-store"}
        is_page = visit.as_json or "text/html" in request.headers.get("accept", "")
        if request.scope["visitor"] is None or not is_page:
            text, as_json = message.removesuffix("."), visit.as_json
            return refused(request.headers, status, text, given, code, as_json=as_json)
        return _sent(visit, replace(_refused(code, message, status), headers=given), None)

    return answer


def _without_slash(request: Request) -> Response | None:
    """Return a redirect to the address without its final slash; None if it has none.

    The redirect is relative, because a proxy may use another host or TLS.
    """
    path, query = request.scope["raw_path"].decode("latin-1"), request.url.query
    if not path.endswith("/") or not path.strip("/"):
        return None
    path = f"/{path.strip('/')}"
    return RedirectResponse(f"{path}?{query}" if query else path)


def _refused(code: str, message: str, status: int, choices: Sequence[str] = ()) -> PageContent:
    return PageContent(
        "error.html",
        lambda: {
            "title": TITLES.get(status, "Request failed"),
            "message": message,
            "choices": choices,
            "skills": (),
        },
        lambda: {"error": {"code": code, "message": message, "choices": choices}},
        status=status,
    )


def status_of(error: RegistryError) -> int:
    """Return the HTTP status of an error."""
    return next(status for kind, status in STATUS.items() if isinstance(error, kind))


def _sent(visit: Visit, content: PageContent, tag: str | None) -> Response:
    if visit.as_json or (content.status != OK and wants_json(visit.request.headers)):
        facts = content.record()
        facts = facts if visit.visitor.is_local else without_places(facts)
        body, kind = as_json(facts), "application/json"
    else:
        surroundings = {
            "visitor": visit.visitor,
            "has_many": len(visit.state.registry.settings.personalities),
            "here": visit.path,
            "about": ABOUT,
            # without a public URL, this may be one of several addresses of the server
            "canonical": visit.state.base
            and f"{visit.origin}{addresses.at(_address(visit.request))}",
            "json_url": addresses.as_json(visit.path, visit.request.url.query),
        }
        html = render(content.template, {**surroundings, **content.facts()})
        body = html.encode("utf-8", "replace")
        kind = "text/html; charset=utf-8"
    if len(body) > MAX_ANSWER:
        message = "This page is too large. Request a part of it, or use the command line."
        return _sent(visit, _refused("page_too_large", message, 413), None)
    if content.status != OK:
        headers = {"cache-control": "no-store", **content.headers}
        return compressed(visit.request, body, kind, headers, content.status)
    tag = tag or _digest(body)
    headers = {**_cache_headers(tag), **content.headers}
    if is_known(visit.request, tag):
        return Response(status_code=304, headers=headers)
    return compressed(visit.request, body, kind, headers)


ABOUT: Final = (
    "Skills for agents such as Claude Code and Codex: find one, check what it does, install it."
)
"""Description of the pages that have no description of their own."""


def _address(request: Request) -> str:
    """Return the path and query of a request, without parameters that track users."""
    path = request.scope["raw_path"].decode("latin-1")
    query = [pair for pair in request.query_params.multi_items() if not TRACKING.fullmatch(pair[0])]
    return f"{path}?{urlencode(query, errors='replace')}" if query else path


def compressed(
    request: Request,
    body: bytes,
    kind: str,
    headers: Mapping[str, str],
    status: int = 200,
) -> Response:
    """Return a response, compressed if it is large enough and the client accepts this."""
    given = {**headers, "content-type": kind}
    given["vary"] = VARY
    if len(body) >= COMPRESSED and takes_gzip(request):
        body = gzip.compress(body, 4, mtime=0)
        given["content-encoding"] = "gzip"
    return Response(body, status, given)


def uncached_json(
    request: Request, content: Any, status: int = 200, headers: Mapping[str, str] = _NONE
) -> Response:
    """Return a value as a JSON response that no cache may store."""
    given = {"cache-control": "no-store", **headers}
    return compressed(request, as_json(content), "application/json", given, status)


def uncached_text(status: int, text: str) -> Response:
    """Return a plain text as a response that no cache may store."""
    headers = {"cache-control": "no-store"}
    if status == 401:  # noqa: PLR2004
        headers["www-authenticate"] = "Bearer"
    return PlainTextResponse(text, status, headers)


def takes_gzip(request: Request) -> bool:
    """Tell whether the client accepts responses that are compressed with gzip."""
    return _GZIP.search(request.headers.get("accept-encoding", "")) is not None


def as_json(value: Any) -> bytes:
    """Return a value as JSON. File names that are not valid Unicode are escaped."""
    plain = record(value) if not isinstance(value, dict) else value
    text = json.dumps(plain, ensure_ascii=False, default=record)
    try:
        return text.encode() + b"\n"
    except UnicodeEncodeError:
        return json.dumps(plain, default=record).encode() + b"\n"


def is_known(request: Request, tag: str) -> bool:
    """Tell whether the client already has the response with this ETag."""
    given = request.headers.get("if-none-match", "")
    return given == "*" or tag in _TAG.findall(given)


def _tag_of(answer: Response) -> str:
    """Return the ETag of a response, without its quotes."""
    return answer.headers["etag"].removeprefix('W/"').removesuffix('"')


def _digest(body: bytes | memoryview) -> str:
    return hashlib.sha256(body).hexdigest()[:32]


def _cache_key(edition: str, visit: Visit) -> str:
    """Return the cache key of a response: database version, day, visitor and URL."""
    said = f"{edition} {utc_now()[:10]} {visit.visitor} {visit.request.url}"
    return hashlib.sha256(said.encode("utf-8", "replace")).hexdigest()[:32]


def _cache_headers(tag: str) -> dict[str, str]:
    return {"etag": f'W/"{tag}"', "cache-control": "private, no-cache", "vary": VARY}
