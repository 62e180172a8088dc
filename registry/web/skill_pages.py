"""The pages of one skill: SKILL.md, files, raw bytes, history, findings and copies."""

import json
import posixpath
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from shlex import join, quote
from typing import Any, Final, NamedTuple
from urllib.parse import quote as url_quote
from urllib.parse import urlsplit

from starlette.responses import Response

from registry.catalog.reading import CurrentSkill, pinned, read_bytes, read_file
from registry.changes.history import History
from registry.db.read.history import Revision, latest_tombstone
from registry.db.read.skills import StoredSkill
from registry.disk.agents import agents
from registry.disk.files import digest
from registry.errors import (
    FileNotFoundInSkill,
    FileTooLarge,
    RegistryError,
    RevisionNotFound,
    SkillMissing,
    SkillNotFound,
)
from registry.install.content import content_of, tree_hash
from registry.install.export import zipped
from registry.model import SkillDetail, record
from registry.publish.git.clients import lines, repository_url
from registry.publish.git.names import claims_known_to, entry_names
from registry.publish.git.repository import is_tag, marketplace_of
from registry.remotes.address import is_loopback
from registry.web import addresses, markdown
from registry.web.answers import PageContent, Visit, is_known, public_explanation, refusal
from registry.web.audit import record_download
from registry.web.diffs import FileDiff, diffs
from registry.web.markdown import numbered
from registry.web.query_params import number_of
from registry.web.rendering import is_place, named

SHOWN_FILES: Final = 200
"""Maximum number of files that a page lists; the JSON of the page lists all files."""

SHOWN_COPIES: Final = 200
"""Maximum number of copies that a page compares; the newest copies come first."""

SHOWN_TEXT: Final = 400_000
"""Maximum number of characters of a file that a page shows; the raw address has the whole file."""

SHOWN_LINES: Final = 20_000
"""Maximum number of lines of a file that a page shows."""

HEADINGS: Final = 100
"""Maximum number of headings in the table of contents."""

IMAGE_ENDINGS: Final = (".png", ".jpg", ".jpeg", ".gif", ".webp")
MARKDOWN: Final = (".md", ".markdown")

AGENTS: Final = "claude-code codex cursor gemini-cli github-copilot opencode".split()
"""Agents for which the page shows an install command; ``pull`` knows many more agents."""


def ref_in(visit: Visit, prefix: str) -> str:
    """Return the ref in the requested path, after ``prefix``."""
    return addresses.ref_of(visit.path.removeprefix(prefix))


def located(visit: Visit, prefix: str) -> StoredSkill:
    """Return the requested skill. Raises the errors of `Browse.locate`."""
    stored: StoredSkill = visit.view.locate(ref_in(visit, prefix))
    return stored


def skill(visit: Visit) -> PageContent:
    """Show a skill, or a version of it."""
    view = visit.view
    try:
        current, label = view.located(ref_in(visit, "/skills/"))
    except (SkillMissing, SkillNotFound) as error:
        return _deleted(visit, error)
    stored, detail = current.stored, view.detail(current)
    (why,) = _explained(visit, [view.why(stored)])
    security = [
        one for one in detail.diagnostics if one.category == "security" and one.severity != "info"
    ]
    findings = [one for one in detail.diagnostics if one not in security]
    errors = sum(one.severity == "error" for one in security)
    usage = view.usage_of(stored)
    origin = getattr(detail, "origin", None)
    if origin is not None and not visit.visitor.is_local and is_place(origin.url):
        origin = None
    revisions = visit.state.registry.history(stored.place)
    is_offered = detail.status in {"ok", "warning"} and not stored.quarantined
    shown = labelled(detail, label)
    git = in_git(visit, stored) if is_offered and why.listed else None
    name = pull_name(visit, shown.ref, git, label) if is_offered else None
    install = list(pull_lines(visit, [name] if name else []))
    clients: list[Mapping[str, str]] = []
    if is_offered and label is None:  # only `pull` can install a version
        command = f"npx skills add {visit.base}/s/{addresses.of_ref(detail.ref)}"
        install.append({"agent": "npx skills", "command": command})
        clients = list(client_lines(git))
    return PageContent(
        "skill.html",
        lambda: {
            "title": named(detail.name, detail.ref, detail.source),
            "skill": shown,
            "current_ref": detail.ref,
            "label": label,
            "is_current": current.version is None,
            "about": detail.description[:300],
            "copies": detail.copies,
            "body": (body := None if detail.body is None else as_html(visit, detail.body, shown)),
            "contents": markdown.headings(body or "")[:HEADINGS],
            "front": list(front_matter(detail.front_matter)),
            "files": detail.files[:SHOWN_FILES],
            "more_files": len(detail.files) - SHOWN_FILES,
            "bytes": sum(file.size for file in detail.files),
            "security": security,
            "errors": errors,
            "warnings": len(security) - errors,
            "findings": findings,
            # The page shows each finding once, below the heading for findings.
            "reasons": [one for one in why.reasons if one not in detail.diagnostics],
            "listed": why.listed,
            "usage": usage,
            "origin": record(origin),
            "revisions": revisions,
            "is_offered": is_offered,
            "install": install,
            "login": login(visit),
            "clients": clients,
            "mcp": mcp_snippet(visit.base),
        },
        lambda: {
            **detail.to_dict(),
            "origin": record(origin),
            "listed": why.listed,
            "reasons": record(why.reasons),
            "usage": record(usage),
            "install": install,
            "clients": clients,
            "revisions": [
                {"number": one.number, "seen_at": one.seen_at, "tree_hash": one.tree_hash}
                for one in revisions
            ],
        },
    )


def labelled(detail: SkillDetail, label: str | None) -> SkillDetail:
    """Return a version with a ref of the form NAME@LABEL, which leads to this version."""
    return detail if label is None else replace(detail, ref=f"{detail.ref}@{label}")


def _deleted(visit: Visit, error: RegistryError) -> PageContent:
    """Return the page of a deleted skill, with a link to its history.

    Raises the error if there is no such skill, or if the visitor must not see that it existed.
    """
    ref = ref_in(visit, "/skills/")
    view = visit.view
    tombstone = latest_tombstone(view.core.reader, ref) if view.is_whole else None
    if tombstone is None:
        raise error
    page = refusal(error, visit)
    facts = {
        "name": tombstone.name,
        "ref": tombstone.place or tombstone.uid,
        "source": tombstone.source,
    }
    return replace(
        page,
        template="deleted.html",
        facts=lambda: {
            "title": f"{named(**facts)}: deleted",
            "skill": facts,
            "at": tombstone.since,
            "restore": f"skill-registry restore {quote(tombstone.place or tombstone.name)}",
        },
    )


def _explained(visit: Visit, found: Sequence[Any]) -> Sequence[Any]:
    if visit.visitor.is_local:
        return found
    sources = visit.state.registry.sources()
    return [public_explanation(one, sources) for one in found]


def as_html(visit: Visit, text: str, detail: SkillDetail, folder: str = "") -> str | None:
    """Return Markdown as safe HTML (see `markdown.rendered`), from the cache if possible."""
    paths = sorted(file.path for file in detail.files)
    key = _digest("md", detail.ref, folder, *paths, text)
    return visit.state.texts.get_or_make(
        key, lambda: markdown.rendered(text, detail.ref, paths, folder)
    )


def _digest(*texts: str) -> str:
    return digest("\0".join(texts).encode("utf-8", "surrogatepass"))


def front_matter(given: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the keys of the front matter, with their values as text."""
    for key, value in given.items():
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        yield str(key), text


class InGit(NamedTuple):
    """The address of a skill's git repository, its marketplace, and its entry in there."""

    url: str
    entry: str
    marketplace: str


def in_git(visit: Visit, stored: StoredSkill) -> InGit | None:
    """Return the git repository of a listed skill.

    Its address names the source, so it never leads to a skill of the same name in another source.
    Returns None if no repository has the skill, because the last sync could not read its files.
    """
    name = stored.skill.name
    entry = entry_names(claims_known_to(visit.view, name)).get((stored.uid, name))
    if entry is None or stored.skill.tree_hash is None:
        return None
    url = repository_url(visit.base, f"skill/{addresses.of_ref(stored.place)}")
    return InGit(url, entry.name, marketplace_of(name))


def is_for_this_machine(visit: Visit) -> bool:
    """Tell whether the visitor uses an address of this machine, so that it knows this catalogue."""
    return is_loopback(urlsplit(visit.base).hostname)


def pull_name(visit: Visit, ref: str, git: InGit | None, label: str | None = None) -> str | None:
    """Return the name or address with which `pull` installs a skill on the visitor's machine.

    Returns None if there is none, or if it has characters that a terminal interprets.
    """
    if is_for_this_machine(visit):
        return ref if ref.isprintable() else None
    if git is None or (label is not None and not is_tag(label)):
        return None
    return git.url if label is None else f"{git.url}#{git.entry}/{label}"


def pull_lines(visit: Visit, names: Sequence[str]) -> Iterator[Mapping[str, str]]:
    """Yield the names of some agents, each with the command that installs skills for the agent.

    On the server's own machine, the command names the database. So it also works for a visitor with
    another home folder or another registry.
    """
    path = visit.state.registry.path
    is_named = visit.visitor.is_local and is_for_this_machine(visit) and "***" not in path
    program = ["skill-registry", *(("--db", path) if is_named and path.isprintable() else ())]
    end = ["--"] if any(name.startswith("-") for name in names) else []
    for agent in AGENTS if names else ():
        command = join([*program, "pull", "--global", "--agent", agent, *end, *names])
        yield {"agent": agents()[agent].name, "command": command}


def login(visit: Visit) -> str | None:
    """Return the line for ``~/.netrc`` with which `pull` and git log in; None if none is needed."""
    if visit.visitor.token is None or is_for_this_machine(visit):
        return None
    return f"machine {urlsplit(visit.base).hostname} login git password YOUR-TOKEN"


def client_lines(git: InGit | None) -> Iterator[Mapping[str, str]]:
    """Yield the names of agents' own clients, each with its command for a skill's repository."""
    if git is not None:
        for client, command in lines(git.url, git.entry, git.marketplace):
            yield {"client": client, "command": command}


def mcp_snippet(base: str) -> str:
    """Return the lines for this server in an MCP client's configuration file."""
    entry = {"mcpServers": {"skills": {"type": "http", "url": f"{base}/mcp"}}}
    return json.dumps(entry, indent=2)


def file(visit: Visit) -> PageContent:
    """Show a file of a skill: its current content, or its content in a version or revision."""
    revision = number_of(visit.request.query_params, "revision")
    if revision is not None:
        return _file_of_revision(visit, revision)
    current, label = visit.view.located(ref_in(visit, "/files/"))
    path = visit.request.query_params.get("path", "")
    detail = labelled(visit.view.detail(current), label)
    listed = next((one for one in detail.files if one.path == path), None)
    if listed is None:
        raise FileNotFoundInSkill(name=detail.ref, path=path)
    text = _text_of(bytes_of(visit, current, detail, path))
    return PageContent(
        "file.html",
        lambda: {
            "title": f"{path} · {named(detail.name, detail.ref, detail.source)}",
            "skill": detail,
            "file": listed,
            "revision": None,
            "is_image": path.lower().endswith(IMAGE_ENDINGS),
            **_shown(visit, detail, path, text),
        },
        lambda: {**record(listed), "ref": detail.ref, "text": text},
    )


def _text_of(data: bytes) -> str | None:
    """Return the text of a file; None if it is binary, or too long for a page."""
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return None
    return None if "\0" in text or len(text) > SHOWN_TEXT else text


def _file_of_revision(visit: Visit, number: int) -> PageContent:
    """Show a file of a revision; the skill may be removed."""
    handle, facts = _subject(visit, "/files/")
    path = visit.request.query_params.get("path", "")
    revision = _revision(facts["ref"], visit.state.registry.history(handle), number)
    listed = next((one for one in revision.files if one.path == path), None)
    if listed is None:
        raise FileNotFoundInSkill(name=facts["ref"], path=path)
    text = _text_of(_content_of(visit, handle, revision, path))
    is_long = text is None or text.count("\n") > SHOWN_LINES
    return PageContent(
        "file.html",
        lambda: {
            "title": f"{path} · {named(**facts)} · revision {number}",
            "skill": facts,
            "file": listed,
            "revision": number,
            "is_image": False,
            "source": None if text is None or is_long else numbered(text, path),
            "rendered": None,
        },
        lambda: {**record(listed), "ref": facts["ref"], "revision": number, "text": text},
    )


def _shown(visit: Visit, detail: SkillDetail, path: str, text: str | None) -> dict[str, str | None]:
    """Return the text of a file as HTML.

    ``source`` is the highlighted text. If the file is Markdown, ``rendered`` is the HTML of the
    Markdown.
    """
    if text is None or text.count("\n") > SHOWN_LINES:
        return {"source": None, "rendered": None}
    folder, _, name = path.rpartition("/")
    is_rendered = name.lower().endswith(MARKDOWN) and path not in _documents(detail)
    return {
        "source": visit.state.texts.get_or_make(
            _digest("lines", name, text), lambda: numbered(text, name)
        ),
        "rendered": as_html(visit, text, detail, folder) if is_rendered else None,
    }


def bytes_of(visit: Visit, current: CurrentSkill, detail: SkillDetail, path: str) -> bytes:
    """Return the bytes of a file in the skill's list of files.

    Raises the errors of `SkillRegistry.read_file`.
    """
    registry, place = visit.state.registry, current.stored.place
    if path in _documents(detail):
        return read_bytes(registry.core, current)
    try:
        return read_file(registry.core, current, path)
    except FileTooLarge:  # too large for models, but the database may have it
        if current.version is not None:
            return registry.read_revision(place, current.version.revision.number, path)
        now = next((one.number for one in registry.history(place) if one.current), None)
        if now is None:
            raise
        return registry.read_revision(place, now, path)


def _documents(detail: SkillDetail) -> Sequence[str]:
    return [detail.location.removeprefix(f"{detail.path}/")]


def near(visit: Visit) -> PageContent:
    """List the copies and near-duplicates of a skill."""
    stored = located(visit, "/copies/")
    groups = visit.cached(("copies", stored.place), lambda: _copies(visit, stored))
    shown = [one for group in groups for one in group.skills]
    return PageContent(
        "copies.html",
        lambda: {
            "title": f"Copies of {named(stored.skill.name, stored.skill.ref, stored.skill.source)}",
            "skill": stored.skill,
            "groups": groups,
            "signs": visit.view.signs(shown),
        },
        lambda: {"ref": stored.skill.ref, "copies": record(groups)},
    )


def _copies(visit: Visit, stored: StoredSkill) -> list[Any]:
    found = visit.view.copies(stored)
    return [replace(group, skills=group.skills[:SHOWN_COPIES]) for group in found]


def why(visit: Visit) -> PageContent:
    """Explain why a skill is, or isn't, listed.

    Only the local user may ask about folders.
    """
    subject = visit.request.query_params.get("q", "")[:4096]
    personality = visit.request.query_params.get("personality") or None
    registry, visitor = visit.state.registry, visit.visitor
    found: Sequence[Any] = ()
    problem = None
    if subject:
        try:
            if visitor.is_local:
                found = registry.why(subject, personality)
            else:
                found = _explained(visit, visit.view.explain(subject, personality))
        except RegistryError as error:
            problem = str(refusal(error, visit).record()["error"]["message"])
    return PageContent(
        "why.html",
        lambda: {
            "title": "Check a skill",
            "subject": subject,
            "found": found,
            "problem": problem,
            "personality": personality,
            "personalities": sorted(registry.settings.personalities) if visit.view.is_whole else (),
        },
        lambda: {"subject": subject, "explanations": record(list(found)), "problem": problem},
    )


def _subject(visit: Visit, prefix: str) -> tuple[str, dict[str, str]]:
    """Return the handle of the requested skill, and its name, ref and source.

    A removed skill is found only if the visitor sees all skills.
    """
    ref = ref_in(visit, prefix)
    try:
        skill = visit.view.locate(ref).skill
    except (SkillMissing, SkillNotFound):
        if not visit.view.is_whole:
            raise
        return ref, {"name": ref, "ref": ref, "source": ref.partition("/")[0]}
    facts = {"name": skill.name, "ref": skill.ref, "source": skill.source}
    return f"{skill.source}/{skill.folder}", facts


def history(visit: Visit) -> PageContent:
    """Show the revisions of a skill, and compare two of them.

    A removed skill is shown only if the visitor sees all skills.
    """
    handle, facts = _subject(visit, "/history/")
    past = History.of(visit.state.registry.core, handle)
    revisions = past.revisions
    query = visit.request.query_params
    new = number_of(query, "new") or next(
        (one.number for one in revisions if one.current),
        revisions[0].number if revisions else None,
    )
    old, changes = number_of(query, "old"), []
    if new is not None or old is not None:
        after = _revision(facts["ref"], revisions, new)
        before = past.before(after.number)
        if old is not None:
            before = _revision(facts["ref"], revisions, old)
        if before is not None:
            old, changes = before.number, list(_diffs(visit, handle, before, after))
    return PageContent(
        "history.html",
        lambda: {
            "title": f"History of {named(**facts)}",
            "skill": facts,
            "revisions": revisions,
            "old": old,
            "new": new,
            "diffs": changes,
        },
        lambda: {
            "name": facts["name"],
            "ref": facts["ref"],
            "revisions": record(list(revisions)),
            "old": old,
            "new": new,
            "diffs": record(changes),
        },
    )


def _revision(ref: str, revisions: Sequence[Revision], number: int | None) -> Revision:
    for one in revisions:
        if one.number == number:
            return one
    raise RevisionNotFound(name=ref, number=number, known=[one.number for one in revisions])


def _diffs(visit: Visit, handle: str, old: Revision, new: Revision) -> Iterator[FileDiff]:
    was, now = (
        {
            file.path: (file.hash, partial(_content_of, visit, handle, one, file.path))
            for file in one.files
        }
        for one in (old, new)
    )
    return diffs(was, now)


def _content_of(visit: Visit, handle: str, of: Revision, path: str) -> bytes:
    return visit.state.registry.read_revision(handle, of.number, path)


POLICY: Final = "sandbox; default-src 'none'; style-src 'unsafe-inline'"
"""Content security policy of untrusted files: they can't load data or run scripts.

Untrusted files also have no access to this server's cookies.
"""

OCTETS: Final = "application/octet-stream"

IMAGES: Final = {
    ".png": "image/png",
    ".jpg": "image/jpeg",
    ".jpeg": "image/jpeg",
    ".gif": "image/gif",
    ".webp": "image/webp",
    ".avif": "image/avif",
    ".svg": "image/svg+xml",
}
RUN: Final = frozenset(
    ".htm .html .js .mht .mhtml .mjs .pdf .shtml .svg .svgz .swf .wasm .xht .xhtml .xml "
    ".xsl".split()
)
"""File name endings of files that a browser may execute.

Browsers must save such files and not show them.
"""


def raw(visit: Visit) -> Response:
    """Send a file of a skill, or of a version of it."""
    current, _ = visit.view.located(ref_in(visit, "/raw/"))
    path = visit.request.query_params.get("path", "")
    detail = visit.view.detail(current)
    if all(file.path != path for file in detail.files):
        raise FileNotFoundInSkill(name=detail.ref, path=path)
    data = bytes_of(visit, current, detail, path)
    ending = posixpath.splitext(path)[1].lower()
    kind = IMAGES.get(ending) or ("text/plain; charset=utf-8" if _is_text(data) else OCTETS)
    shown = ending not in RUN and kind != OCTETS
    return sent(visit, data, kind, posixpath.basename(path), shown=shown)


def download(visit: Visit) -> Response:
    """Send a skill, or a version of it, as an archive.

    The archive contains a folder with the skill's name.
    """
    path = visit.request.scope["path"].removesuffix(".skill")
    core = visit.state.registry.core
    stored, label = visit.view.versioned(addresses.ref_of(path.removeprefix("/download/")))
    wanted = stored.skill if label is None else pinned(core, stored, label)
    entries = content_of(core, wanted)
    folder = posixpath.basename(stored.skill.name.rstrip("/")) or "skill"
    data = zipped(entries, "skill" if folder in {".", ".."} else folder)
    record_download(visit, stored.place, tree_hash(entries))
    return sent(visit, data, "application/zip", f"{folder}.skill", shown=False)


def sent(
    visit: Visit,
    data: bytes,
    kind: str,
    name: str,
    *,
    shown: bool,
    headers: Mapping[str, str] | None = None,
) -> Response:
    """Return untrusted bytes as a response that browsers don't execute."""
    tag = digest(data).removeprefix("sha256:")
    given = {
        "content-security-policy": POLICY,
        "content-disposition": f"{'inline' if shown else 'attachment'}; filename*=UTF-8''"
        + url_quote(name, safe="", errors="replace"),
        "cache-control": "private, no-cache",
        "etag": f'"{tag}"',
        **(headers or {}),
    }
    if is_known(visit.request, tag):
        return Response(status_code=304, headers=given)
    return Response(data, headers={**given, "content-type": kind})


def _is_text(data: bytes) -> bool:
    try:
        return "\0" not in data.decode()
    except UnicodeDecodeError:
        return False
