"""Publish skills over HTTP; each request needs a token with the right to publish."""

import hmac
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any, Final
from urllib.parse import parse_qsl

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from registry import errors
from registry.core import UNEXPECTED
from registry.db.audit_context import audit_context
from registry.db.read.proposals import Proposal
from registry.db.read.skills import same_name
from registry.errors import RegistryError
from registry.install.imports import unpacked
from registry.mcp.http import MAX_BYTES
from registry.model import Source, record
from registry.publish import proposals, publishing
from registry.publish.packages import Package, package
from registry.publish.proposals import PACKING, Person
from registry.publish.publishing import Published
from registry.remotes.unpacking import TooMuch
from registry.settings import Limits
from registry.web.addresses import JSON
from registry.web.answers import (
    PageContent,
    Visit,
    answered,
    public_sentence,
    refusal,
    uncached_json,
    visit_of,
)
from registry.web.auth import COOKIE, MAX_FORM, NEEDED
from registry.web.diffs import ComparedFile, diffs
from registry.web.query_params import flag
from registry.web.rendering import refused, sign_in, wants_json
from registry.web.state import AppState
from registry.web.uploads import Refusal

KINDS: Final = frozenset({"application/zip", "application/gzip", "application/x-gzip"})
"""Content types of archives."""

API: Final = "/api/skills/"
MAX_ID: Final = 64
"""Maximum length of the id of a proposal in an address, in characters."""

CLAWHUB: Final = "/api/v1/skills"
UPLOADS: Final = "/api/v1/uploads/"

STATUS: Final[Mapping[type[RegistryError], int]] = {
    errors.HashNeeded: 428,
    errors.HashOutdated: 412,
    errors.SkillChangedOnDisk: 412,
    errors.SkillMissing: 412,
    errors.SourceReadOnly: 403,
    errors.SourceElsewhere: 403,
    errors.SourceNotYours: 403,
    errors.SourceNotAdopted: 403,
    errors.SourceNotFound: 403,
    errors.SourceUnclear: 400,
    errors.ArchiveRefused: 400,
    errors.SkillAmbiguous: 409,
}
"""HTTP statuses of errors during publishing that differ from those of pages."""

_TAG: Final = re.compile(r'"?([^",\s]+)"?')

FORBIDDEN: Final = "This token may not publish there."
"""The message for all sources that a token may not write.

All sources have the same message, so that it reveals no names.
"""


def most(limits: Limits) -> Callable[[Any], int]:
    """Return a function that returns the maximum number of bytes of a request's body."""

    def allowed(scope: Any) -> int:
        path = scope["path"]
        is_archive = (scope["method"] == "PUT" and path.startswith(API)) or (
            scope["method"] == "POST" and (path == CLAWHUB or path.startswith(UPLOADS))
        )
        return max(MAX_BYTES, limits.skill_bytes + PACKING) if is_archive else MAX_BYTES

    return allowed


async def body_of(request: Request, limit: int) -> bytes:
    """Return the body of a request. Raises `Refusal` if it is larger than ``limit`` bytes."""
    chunks, size = [], 0
    async for chunk in request.stream():
        size += len(chunk)
        if size > limit:
            raise Refusal(413, "too_large", f"The archive has more than {limit} bytes.")
        chunks.append(chunk)
    return b"".join(chunks)


async def put(request: Request) -> Response:
    """Answer ``PUT /api/skills/NAME``: create a skill, or replace a given version of it."""
    state: AppState = request.app.state.catalogue
    visit = visit_of(request)
    try:
        check_right(visit)
        _check_kind(visit)
        async with state.receiving.turn():
            data = await body_of(request, most(state.registry.settings.limits)(request.scope))
            return await state.run(_put, visit, data)
    except Refusal as refused:
        return _refused(visit, refused)


def check_right(visit: Visit) -> None:
    """Raise `Refusal` if the visitor has no token, or its token may not publish."""
    if visit.visitor.token is None:
        message = "Publishing needs a token. On the server, run: skill-registry token create NAME"
        raise Refusal(401, "token_needed", f"{message} --publish")
    if not visit.visitor.publish:
        raise Refusal(403, "right_missing", "This token has no right to publish.")


def _check_kind(visit: Visit) -> None:
    kind = visit.request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind not in KINDS:
        message = "Send a .zip (application/zip) or .tar.gz (application/gzip) archive."
        raise Refusal(415, "unsupported_type", message)


def _check_name(package: Package, name: str) -> None:
    if package.name != name:
        message = f"The SKILL.md in the archive has another name than {name!r}."
        raise Refusal(400, "name_differs", message)


def _put(visit: Visit, data: bytes) -> Response:
    core, name = visit.state.registry.core, visit.request.path_params["name"]
    query = visit.request.query_params
    try:
        files = unpacked(data, "the archive", core.settings.limits)
        wanted = package(core, *files, name=name)
        _check_name(wanted, name)
        done = publish(
            visit,
            wanted,
            source=query.get("source") or None,
            if_match=_matched(visit.request),
            dry_run=_is_dry_run(query.get("dry-run", "0")),
        )
    except Refusal as refused:
        return _refused(visit, refused)
    except (RegistryError, *UNEXPECTED) as error:
        return _failed(visit, error)
    status = {"created": 201, "proposed": 202}.get(done.outcome, 200)
    headers = {"etag": f'"{done.tree_hash}"'}
    return uncached_json(visit.request, record(done), 200 if done.dry_run else status, headers)


def _is_dry_run(given: str) -> bool:
    if given not in {"0", "1", "false", "true"}:
        raise Refusal(400, "bad_dry_run", "dry-run must be 0 or 1.")
    return given in {"1", "true"}


def _matched(request: Request) -> str | None:
    """Return the tree hash in the If-Match header."""
    given = request.headers.get("if-match")
    if given is None:
        return None
    found = _TAG.fullmatch(given.strip().removeprefix("W/"))
    if found is None or found[1] == "*":
        raise Refusal(400, "bad_if_match", "If-Match must be one tree hash.")
    return found[1]


def publish(
    visit: Visit, package: Package, *, source: str | None, if_match: str | None, dry_run: bool
) -> Published:
    """Publish a package into a source that the visitor may write.

    Raises `Refusal`, and the errors of `publishing.publish`.
    """
    core = visit.state.registry.core
    planned = publishing.plan(core, package, target(visit, package.name, source))
    try:
        with by(visit) as person:
            return publishing.publish(core, planned, if_match, dry_run=dry_run, by=person)
    except errors.HashNeeded as error:
        error.add_note(publishing.diff(core, planned))
        raise


@contextmanager
def by(visit: Visit) -> Iterator[str]:
    """In a ``with`` block, record the visitor as the author of changes.

    Yield the visitor's name.
    """
    name, number = visit.visitor.name, visit.visitor.token
    with audit_context(person=name, token=number):
        yield f"token {name} ({number})"


def writable(visit: Visit) -> list[Source]:
    """Return the sources into which the visitor's token may publish."""
    return publishing.publishable(visit.state.registry.core, visit.visitor.source)


def target(visit: Visit, name: str, wanted: str | None) -> Source:
    """Return the source into which to publish: the given one, or the only writable one.

    If no source is given, and a source that the visitor can't write has a skill with this name,
    raises `Refusal`. Otherwise the new skill would shadow that skill, or that skill would shadow
    it.
    """
    core, limit = visit.state.registry.core, visit.visitor.source
    allowed = writable(visit)
    named = wanted or limit
    if named is not None:
        found = next((one for one in allowed if one.name == named), None)
        if found is None:
            raise Refusal(403, "source_forbidden", FORBIDDEN)
        return found
    with_name = {one.skill.source for one in same_name(core.reader, name) if one.skill.name == name}
    here = [one for one in allowed if one.name in with_name]
    if not here and with_name:
        message = (
            f"A skill named {name!r} is in a source that this token can't write. To create "
            "another one, name a source with ?source=NAME."
        )
        raise Refusal(409, "name_taken", message)
    for some in (here, allowed):
        if len(some) == 1:
            return some[0]
    usual = core.settings.default_source
    chosen = next((one for one in here or allowed if one.name == usual), None)
    if chosen is None:
        names = ", ".join(one.name for one in here or allowed)
        message = f"Name a source with ?source=NAME: {names}." if names else FORBIDDEN
        raise Refusal(400 if names else 403, "source_unclear", message)
    return chosen


def _failed(visit: Visit, error: Exception) -> Response:
    if not isinstance(error, RegistryError) or isinstance(error, errors.DatabaseProblem):
        problem = refusal(error, visit)
        return uncached_json(visit.request, problem.record(), problem.status)
    status = next((code for kind, code in STATUS.items() if isinstance(error, kind)), None)
    status = status or refusal(error, visit).status
    if isinstance(error.__cause__, TooMuch):
        status = 413
    message = public_sentence(error)
    if isinstance(error, errors.ArchiveRefused):
        message = f"The archive is refused: {error.reason}."
    content: dict[str, Any] = {"error": {"code": error.code, "message": message}}
    if isinstance(error, errors.PublishRefused):
        content["findings"] = record(tuple(error.problems))
    if isinstance(error, errors.HashNeeded | errors.HashOutdated):
        content["tree_hash"] = error.tree_hash
        content["diff"] = "".join(getattr(error, "__notes__", ()))
    return uncached_json(visit.request, content, status)


def _refused(visit: Visit, refused: Refusal) -> Response:
    content = {"error": {"code": refused.code, "message": refused.message}}
    headers = {"www-authenticate": "Bearer"} if refused.status == 401 else {}  # noqa: PLR2004
    if refused.status == 413:  # noqa: PLR2004  # the rest of the body is not read
        headers["connection"] = "close"
    return uncached_json(visit.request, content, refused.status, headers)


def _check_signed_in(visit: Visit) -> Response | None:
    """Return the page that asks for a token if the visitor has none, even on this machine."""
    if visit.visitor.token is not None:
        return None
    if visit.as_json or visit.request.method != "GET" or wants_json(visit.request.headers):
        return _denied(visit, 401, NEEDED, "token_needed", {"www-authenticate": "Bearer"})
    return sign_in("", visit.path)


def _denied(
    visit: Visit, status: int, text: str, code: str, headers: Mapping[str, str] | None = None
) -> Response:
    return refused(visit.request.headers, status, text, headers or {}, code, as_json=visit.as_json)


def _may_see(visit: Visit, one: Proposal) -> bool:
    """Tell whether the visitor is the author of a proposal, or may decide on it."""
    visitor = visit.visitor
    if visitor.source not in {None, one.source}:
        return False
    return visitor.approve or _is_author(visit, one)


def _is_author(visit: Visit, one: Proposal) -> bool:
    return one.token is not None and one.token == visit.visitor.token


def proposed(visit: Visit) -> PageContent | Response:
    """Show the visitor's own proposals, and those that wait for the visitor's decision.

    With ``?all=1``, also show the decided proposals of other authors.
    """
    if (refused := _check_signed_in(visit)) is not None:
        return refused
    every = flag(visit.request.query_params, "all")
    state = None if every else "pending"
    known = proposals.listed(visit.state.registry.core, state, visit.visitor.token)
    found = [one for one in known if _may_see(visit, one)]
    return PageContent(
        "proposals.html",
        lambda: {"title": "Proposals", "proposals": found, "every": every},
        lambda: record(found),
    )


def _asked(visit: Visit) -> Proposal:
    """Return the proposal in the address.

    Raise `ProposalNotFound` if the visitor may not see it.
    """
    number = visit.request.path_params["number"].removesuffix(JSON)
    one = proposals.get(visit.state.registry.core, number[:MAX_ID])
    if not _may_see(visit, one):
        raise errors.ProposalNotFound(id=number[:MAX_ID])
    return one


def proposal(visit: Visit) -> PageContent | Response:
    """Show a proposal with its diff and, to a visitor who may approve it, two buttons."""
    if (refused := _check_signed_in(visit)) is not None:
        return refused
    core = visit.state.registry.core
    one = _asked(visit)
    wanted = proposals.proposed_package(core, one)
    now = proposals.current(core, one)
    before: Mapping[str, bytes] = {}
    with suppress(RegistryError, OSError):
        before = {} if now is None else proposals.files_on_disk(core, now)[0]
    after: Mapping[str, bytes] = {} if wanted is None else wanted.files
    is_pending = one.state == "pending"
    outdated = is_pending and (None if now is None else now.skill.tree_hash) != one.base
    findings = () if wanted is None else wanted.findings
    findings = tuple(each for each in findings if each.severity != "info")
    is_own = _person(visit).wrote(one)
    changes = list(diffs(_compared(before), _compared(after)))
    return PageContent(
        "proposal.html",
        lambda: {
            "title": f"Proposal: {one.kind} {one.skill}",
            "one": one,
            "outdated": outdated,
            "findings": findings,
            "diffs": changes,
            "can_approve": is_pending and visit.visitor.approve and not is_own and not outdated,
            "can_reject": is_pending and (visit.visitor.approve or _is_author(visit, one)),
            "csrf": _csrf(visit, one),
        },
        lambda: {
            **record(one),
            "findings": record(findings),
            "diff": proposals.diff(core, one),
            "diffs": record(changes),
        },
    )


def _compared(files: Mapping[str, bytes]) -> Mapping[str, ComparedFile]:
    return {path: (data, partial(bytes, data)) for path, data in files.items()}


def _person(visit: Visit) -> Person:
    return Person(visit.visitor.name, visit.visitor.token)


def _csrf(visit: Visit, one: Proposal) -> str:
    """Return a secret value for a proposal; only the pages of this session contain it."""
    secret = visit.request.cookies.get(COOKIE, "")
    told = f"decide {one.id} {one.tree_hash}"
    return hmac.new(secret.encode("utf-8", "replace"), told.encode(), "sha256").hexdigest()


async def decide(request: Request) -> Response:
    """Answer the two buttons: approve or reject exactly the files that the page showed."""
    state: AppState = request.app.state.catalogue
    visit = visit_of(request)
    try:
        body = await body_of(request, MAX_FORM)
    except Refusal as problem:
        return _refused(visit, problem)
    form = dict(parse_qsl(body.decode("utf-8", "replace"), max_num_fields=10))
    return await state.run(answered, partial(_decided, form), visit)


def _decided(form: Mapping[str, str], visit: Visit) -> Response:
    if (refused := _check_signed_in(visit)) is not None:
        return refused
    core, one = visit.state.registry.core, _asked(visit)
    # A browser sends the Basic authorization for a proxy by itself.
    is_program = visit.request.headers.get("authorization", "").lower().startswith("bearer ")
    given = form.get("csrf", "").encode("utf-8", "replace")
    if not is_program and not hmac.compare_digest(given, _csrf(visit, one).encode()):
        text = "This form was not sent from this page. Reload the page"
        return _denied(visit, 403, text, "form_outdated")
    reason, person = form.get("reason") or None, _person(visit)
    decision = form.get("decision")
    if decision == "reject" and (visit.visitor.approve or _is_author(visit, one)):
        proposals.reject(core, one.id, person, reason)
    elif decision == "approve" and visit.visitor.approve:
        proposals.approve(core, one.id, form.get("tree_hash", ""), person, reason=reason)
    else:
        text = "This token has no right to decide about this proposal"
        return _denied(visit, 403, text, "right_missing")
    return RedirectResponse(f"/proposals/{one.id}", 303)
