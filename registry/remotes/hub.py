"""Read sources that are registries with version 1 of ClawHub's HTTP API."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, Final, NamedTuple, cast
from urllib.parse import quote, urlencode

from registry.document.names import check_folder_name
from registry.errors import RemoteInvalid, RemoteRefused, RemoteTooLarge
from registry.remotes.address import redacted, resolved
from registry.remotes.artifacts import (
    ArtifactCache,
    Removed,
    Stored,
    fetch_skills,
    files_of,
    is_stored,
    open_cache,
    past,
    version_of,
)
from registry.remotes.http import NOT_FOUND, HttpClient
from registry.remotes.snapshot import FetchLimits, Paths, SkipNotices, Snapshot

SKILLS: Final = "/api/v1/skills"
PAGE: Final = 200
"""Number of skills on a page (`limit` of the ClawHub API v1)."""

BLOCKED: Final = "the hub blocks it as malware"

GONE: Final = frozenset({NOT_FOUND, 410, 451})
"""HTTP statuses of a version that was withdrawn."""


class _Item(NamedTuple):
    """A skill in a hub's list; ``updated`` is a time in milliseconds since 1970."""

    slug: str
    owner: str | None
    version: str
    updated: int
    is_blocked: bool

    @property
    def folder(self) -> str:
        return f"{self.owner}/{self.slug}" if self.owner else self.slug

    def query(self, **more: str) -> str:
        """Return the query string of a request about this skill.

        The query has the skill's owner and the parameters ``more``.
        """
        owner = {"ownerHandle": self.owner} if self.owner else {}
        return f"?{urlencode(more | owner)}" if more or owner else ""


@contextmanager
def open_hub(
    url: str, state: str, known: str | None, bounds: FetchLimits
) -> Iterator[Snapshot | None]:
    """Open the newest version of each skill of a hub, in folders ``slug`` or ``owner/slug``.

    Yields None if all these versions equal ``known``. The function assumes that a downloaded
    version never changes.
    """
    client = HttpClient(url, bounds)
    base = find_base(client)
    notices = SkipNotices()
    with open_cache(state) as cache:
        items = _items(client, base, bounds, notices)
        before = cache.noted("skills")
        same = {item.folder: before[item.folder] for item in items if _is_known(cache, item)}
        if len(same) == len(items) and version_of(same) == known:
            yield None
            return
        cache.keep_only(files_of(before.values()))
        wanted = {item.folder: partial(_bring, client, base, cache, item, bounds) for item in items}
        gathered = fetch_skills(cache, wanted, before, known, bounds, notices, url=base)
        yield gathered.tree(past(max((item.updated for item in items), default=0) // 1000))
        versions = {
            item.folder: [item.version, item.updated]
            for item in items
            if item.folder not in gathered.failed
        }
        cache.note({"skills": gathered.stored, "versions": versions})
        cache.keep_only(files_of(gathered.stored.values()))


def find_base(client: HttpClient) -> str:
    """Return the base address of a hub's API, from its well-known file or the given address."""
    for path in ("/.well-known/clawhub.json", "/.well-known/clawdhub.json"):
        try:
            said, answer = client.json(resolved(client.url, path))
        except (RemoteRefused, RemoteInvalid):
            continue
        named = said.get("apiBase") or said.get("registry") if isinstance(said, dict) else None
        if isinstance(named, str):
            return resolved(answer.url, named).rstrip("/")
    return client.url.partition("?")[0].rstrip("/")


def page_of(client: HttpClient, base: str, limit: int, cursor: str | None = None) -> Any:
    """Return a page of a hub's list of skills: a mapping with ``items``."""
    url = f"{base}{SKILLS}?{urlencode({'limit': limit} | ({'cursor': cursor} if cursor else {}))}"
    page, _ = client.json(url)
    if not isinstance(page, dict) or not isinstance(page.get("items"), list):
        raise RemoteInvalid(url=redacted(url), reason="it is not a list of skills")
    return page


def _items(client: HttpClient, base: str, bounds: FetchLimits, notices: SkipNotices) -> list[_Item]:
    found: dict[str, _Item] = {}
    paths = Paths()
    cursor: str | None = None
    seen = set()
    while True:
        page = page_of(client, base, PAGE, cursor)
        for given in page["items"]:
            item = _item(given, notices)
            if item is None or item.folder in found:  # the same skill may be on two pages
                continue
            if (reason := paths.add(item.folder)) is not None:
                notices.refuse(item.folder, reason)
            elif item.is_blocked:
                notices.leave_out(item.folder, BLOCKED)
            else:
                found[item.folder] = item
        if len(found) > bounds.files:
            reason = f"it lists more than {bounds.files} skills"
            raise RemoteTooLarge(url=redacted(base), reason=reason)
        cursor = page.get("nextCursor")
        if not isinstance(cursor, str) or not cursor:
            return list(found.values())
        if cursor in seen or not page["items"]:
            raise RemoteInvalid(url=redacted(base), reason="its list of skills has no end")
        seen.add(cursor)


def _item(given: Any, notices: SkipNotices) -> _Item | None:
    if not isinstance(given, dict) or not isinstance(given.get("slug"), str):
        notices.leave_out("a skill without a name", "it is not a valid entry of a list of skills")
        return None
    owner, _, slug = given["slug"].removeprefix("@").rpartition("/")
    owner = _text(given, "ownerHandle") or _text(given.get("owner"), "handle") or owner or None
    reason = check_folder_name(slug) or (owner and check_folder_name(owner))
    version = _text(given.get("latestVersion"), "version")
    if reason or version is None:
        notices.leave_out(given["slug"], reason or "it has no version")
        return None
    updated = given.get("updatedAt")
    is_blocked = _is_blocked(given)
    return _Item(slug, owner, version, updated if type(updated) is int else 0, is_blocked)


def _text(mapping: Any, key: str) -> str | None:
    value = mapping.get(key) if isinstance(mapping, dict) else None
    return value if isinstance(value, str) and value else None


def _is_blocked(said: Any) -> bool:
    moderation = said.get("moderation")
    return isinstance(moderation, dict) and moderation.get("isMalwareBlocked") is True


def _is_known(cache: ArtifactCache, item: _Item, *, any_time: bool = False) -> bool:
    """Tell whether this version is in the cache, and the hub's data about it are unchanged."""
    stored = cache.noted("skills").get(item.folder)
    version = cache.noted("versions").get(item.folder)
    noted = [item.version, item.updated]
    if any_time and isinstance(version, list):
        version, noted = version[:1], noted[:1]
    return version == noted and is_stored(stored) and isinstance(stored, str) and cache.has(stored)


def _bring(
    client: HttpClient, base: str, cache: ArtifactCache, item: _Item, bounds: FetchLimits
) -> Stored:
    if _is_known(cache, item):
        return cast("Stored", cache.noted("skills")[item.folder])
    try:
        said, _ = client.json(f"{base}{SKILLS}/{quote(item.slug, safe='')}{item.query()}")
        if not isinstance(said, dict) or said.get("skill", said) is None:
            raise Removed("the hub lists it, but reports that it does not exist")
        if _is_blocked(said):
            raise Removed(BLOCKED)
        if _is_known(cache, item, any_time=True):
            return cast("Stored", cache.noted("skills")[item.folder])
        query = item.query(slug=item.slug, version=item.version)
        return cache.download(client, f"{base}/api/v1/download{query}", bounds.artifact_bytes)
    except RemoteRefused as problem:
        if problem.status in GONE:
            raise Removed(str(problem)) from problem
        raise
