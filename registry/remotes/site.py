"""Read sources that are web sites with a skill index (discovery RFC 0.2.0, or 0.1.0)."""

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any, Final, NamedTuple
from urllib.parse import quote, urlsplit

from registry.document.names import check_new_name
from registry.errors import RemoteInvalid, RemoteProblem, RemoteRefused, RemoteTooLarge
from registry.model import RemoteState
from registry.remotes.address import redacted, resolved
from registry.remotes.artifacts import (
    ArtifactCache,
    Stored,
    fetch_skills,
    files_of,
    made_at,
    open_cache,
    version_of,
)
from registry.remotes.http import NOT_FOUND, HttpClient, Response
from registry.remotes.snapshot import FetchLimits, Paths, SkipNotices, Snapshot
from registry.remotes.states import KEY, checked
from registry.remotes.unpacking import BadArchive
from registry.text import quoted

SCHEMA: Final = "https://schemas.agentskills.io/discovery/0.2.0/schema.json"
"""The schema URL in the newer form of an index; it is compared, but never fetched."""
DESCRIPTION: Final = 1024
"""Maximum number of characters of a description in the index (discovery RFC 0.2.0)."""

WELL_KNOWN: Final = "/.well-known/"
NEW: Final = "agent-skills/index.json"
OLD: Final = "skills/index.json"

_DIGEST: Final = re.compile(r"sha256:([0-9a-f]{64})")


class Index(NamedTuple):
    """A skill index and its address.

    ``skills`` has the server's data about each skill, before any check. ``states`` are the states
    of versions; see `remotes.states`.
    """

    url: str
    skills: list[Any]
    has_digests: bool
    made_at: int | None
    states: list[RemoteState]


class _IndexEntry(NamedTuple):
    """A skill in the newer form of an index: its cached form, digest and address."""

    stored: Stored
    digest: str
    url: str


@contextmanager
def open_site(
    url: str, state: str, known: str | None, bounds: FetchLimits
) -> Iterator[Snapshot | None]:
    """Open the skills that a site offers; each skill's folder has the name of the skill.

    Yields None if their version is still ``known``.
    """
    client = HttpClient(url, bounds)
    index = find_index(client)
    if len(index.skills) > bounds.files:
        reason = f"it lists {len(index.skills)} skills, and {bounds.files} are taken"
        raise RemoteTooLarge(url=redacted(index.url), reason=reason)
    notices = SkipNotices()
    with open_cache(state) as cache:
        offers: dict[str, Stored] = {}
        if index.has_digests:
            entries = _entries(index, notices)
            offers = {name: entry.stored for name, entry in entries.items()}
            if version_of(offers, index.states) == known:
                yield None
                return
            wanted: dict[str, Callable[[], Stored]] = {
                name: partial(_bring, client, cache, entry, bounds)
                for name, entry in entries.items()
            }
        else:
            wanted = dict(_loose(client, cache, index, bounds, notices))
        before = cache.noted("skills")
        cache.keep_only(files_of([*before.values(), *offers.values()]))
        gathered = fetch_skills(
            cache, wanted, before, known, bounds, notices, url=index.url, states=index.states
        )
        yield gathered.tree(index.made_at)
        cache.note({"skills": gathered.stored})
        cache.keep_only(files_of(gathered.stored.values()))


def find_index(client: HttpClient) -> Index:
    """Return a site's first skill index.

    If there is none, raises the first `RemoteProblem` other than "not found".
    """
    problems: list[RemoteProblem] = []
    for url in _places(client.url):
        try:
            return _index(url, *client.json(url))
        except (RemoteRefused, RemoteInvalid) as problem:
            problems.append(problem)
    gone = [problem for problem in problems if getattr(problem, "status", 0) != NOT_FOUND]
    raise (
        gone[0]
        if gone
        else RemoteInvalid(
            url=redacted(client.url), reason=f"there is no index of skills at {WELL_KNOWN}{NEW}"
        )
    )


def _places(url: str) -> list[str]:
    parts = urlsplit(url)
    below = parts.path.partition(WELL_KNOWN)[0].rstrip("/")
    paths = [f"{base}{WELL_KNOWN}{name}" for name in (NEW, OLD) for base in (below, "")]
    return [parts._replace(path=path, query="").geturl() for path in dict.fromkeys(paths)]


def _index(url: str, document: Any, answer: Response) -> Index:
    if not isinstance(document, dict) or not isinstance(document.get("skills"), list):
        raise RemoteInvalid(url=redacted(url), reason="it is not an index of skills")
    schema = document.get("$schema")
    if schema not in {None, SCHEMA} if isinstance(schema, str | None) else True:
        said = quoted(schema)
        raise RemoteInvalid(url=redacted(url), reason=f"it is an index of an unknown form, {said}")
    listed = document.get(KEY)
    states = list(checked(listed)) if isinstance(listed, list) else []
    when = made_at(answer.headers)
    return Index(answer.url, document["skills"], schema is not None, when, states)


def _entries(index: Index, notices: SkipNotices) -> dict[str, _IndexEntry]:
    """Return the skills of an index by name; skip invalid skills with a message."""
    found: dict[str, _IndexEntry] = {}
    for entry in index.skills:
        name = _name(entry)
        if name in found:
            notices.refuse(name, "is there twice")
            continue
        try:
            found[name] = _entry(entry, index.url)
        except (BadArchive, RemoteInvalid) as problem:
            notices.leave_out(name, str(problem))
    return found


def _name(entry: Any) -> str:
    name = entry.get("name") if isinstance(entry, dict) else None
    return name if isinstance(name, str) else "a skill without a name"


def _entry(entry: Any, base: str) -> _IndexEntry:
    """Check the data about a skill, and return them.

    Raises `BadArchive` or `RemoteInvalid` if the data break a rule of the index format.
    """
    if (reason := check_new_name(_name(entry))) is not None:
        raise BadArchive(reason)
    kind, description, url, digest = map(entry.get, ("type", "description", "url", "digest"))
    if not isinstance(description, str) or not 0 < len(description) <= DESCRIPTION:
        raise BadArchive(f"its description does not have 1 to {DESCRIPTION} characters")
    known = _DIGEST.fullmatch(digest) if isinstance(digest, str) else None
    if known is None:
        raise BadArchive("its digest is not a SHA-256")
    if not isinstance(url, str) or not url:
        raise BadArchive("it has no address")
    if kind not in ("archive", "skill-md"):
        raise BadArchive(f"it is of an unknown type, {quoted(kind)}")
    stored: Stored = known[1] if kind == "archive" else {"SKILL.md": known[1]}
    return _IndexEntry(stored, known[1], resolved(base, url))


def _bring(
    client: HttpClient, cache: ArtifactCache, entry: _IndexEntry, bounds: FetchLimits
) -> Stored:
    if cache.has(entry.digest):
        return entry.stored
    if cache.download(client, entry.url, bounds.artifact_bytes) != entry.digest:
        raise BadArchive("the file at its address does not match its digest")
    return entry.stored


def _loose(
    client: HttpClient,
    cache: ArtifactCache,
    index: Index,
    bounds: FetchLimits,
    notices: SkipNotices,
) -> Iterator[tuple[str, Callable[[], Stored]]]:
    """Yield the skills in the older form of an index, each with a function that downloads it.

    The files are beside the index, and the index has no digests.
    """
    known = set()
    for entry in index.skills:
        name = _name(entry)
        files = entry.get("files") if isinstance(entry, dict) else None
        reason = "the index lists it twice" if name in known else check_new_name(name)
        reason = reason or _why_not(files, bounds)
        if reason is not None:
            notices.leave_out(name, reason)
            continue
        known.add(name)
        urls = {path: f"{quote(name)}/{quote(path)}" for path in files or ()}
        yield name, partial(_bring_files, client, cache, index.url, urls, bounds)


def _why_not(files: Any, bounds: FetchLimits) -> str | None:
    if not isinstance(files, list) or not all(isinstance(path, str) for path in files):
        return "it lists no files"
    if len(files) > bounds.artifact_files:
        return f"it has more than {bounds.artifact_files} files"
    paths = Paths()
    refused = ((path, paths.add(path)) for path in files)
    return next((f"{quoted(path)} {reason}" for path, reason in refused if reason), None)


def _bring_files(
    client: HttpClient,
    cache: ArtifactCache,
    base: str,
    urls: Mapping[str, str],
    bounds: FetchLimits,
) -> Stored:
    return {
        path: cache.download(client, resolved(base, url), bounds.artifact_bytes)
        for path, url in urls.items()
    }
