"""Bring the skills that an index names, a few at once, and keep what did not change."""

import hashlib
import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Final, NamedTuple, TypeGuard

from registry.errors import RemoteInvalid, RemoteProblem, RemoteRefused, RemoteUnreachable
from registry.remotes.kept import Kept
from registry.remotes.parts import Held, Part, Stored, part_of
from registry.remotes.paths import Notices
from registry.remotes.tree import Bounds
from registry.remotes.unpacking import BadArchive
from registry.remotes.urls import redacted

_DIGEST: Final = re.compile(r"[0-9a-f]{64}")

AT_ONCE: Final = 4
"""Connections to one server."""


class Withdrawn(Exception):  # as all that is raised here: after what is the case
    """A skill is not to be had any more, nor to be kept; its text says why."""


class Wanted(NamedTuple):
    """A skill that an index names: its folder in the tree, and what brings it.

    ``bring`` raises `RemoteProblem`, `BadArchive` or `Withdrawn`.
    """

    folder: str
    bring: Callable[[], Stored]


@dataclass(frozen=True, slots=True)
class Gathered:
    """The skills of an index by their folders, and as what each of them was brought.

    ``failed``: what did not come as it is offered; some of it is there as it was before.
    ``parts`` is None where all of it is as it was known.
    """

    parts: dict[str, Part] | None
    stored: dict[str, Stored]
    notices: list[str]
    failed: set[str]

    def tree(self, made_at: int | None) -> Held | None:
        """Return the tree of them, None where it is the known one."""
        if self.parts is None:
            return None
        return Held(version_of(self.stored), made_at, self.parts, self.notices)


def files_of(stored: Iterable[object]) -> set[str]:
    """Return the digests of all that was kept of skills; what notes can't say is passed over."""
    found: set[str] = set()
    for one in filter(is_stored, stored):
        found.update([one] if isinstance(one, str) else one.values())
    return found


def version_of(stored: Mapping[str, Stored]) -> str:
    """Return the version of skills that were brought as these, by their folders."""
    said = json.dumps(stored, sort_keys=True).encode()
    return f"sha256:{hashlib.sha256(said).hexdigest()}"


def is_stored(value: object) -> TypeGuard[Stored]:
    """Tell whether this, read from notes, says as what a skill was brought."""
    if isinstance(value, dict):
        return bool(value) and all(map(_is_digest, value.values()))
    return _is_digest(value)


def gather(
    kept: Kept,
    wanted: Sequence[Wanted],
    before: Mapping[str, object],
    known: str | None,
    bounds: Bounds,
    notices: Notices,
    *,
    url: str,
) -> Gathered:
    """Bring skills, in their order, and look into them unless they make the ``known`` version.

    What can't be brought is a notice, and what was there ``before`` is kept. Raises `RemoteProblem`
    where nothing is left.
    """
    pool = ThreadPoolExecutor(AT_ONCE)
    try:
        brought = list(pool.map(_brought, wanted))
    finally:
        pool.shutdown(cancel_futures=True)
    pairs = [(want.folder, one) for want, one in zip(wanted, brought, strict=True)]
    offered = {folder: one for folder, one in pairs if not isinstance(one, Withdrawn)}
    came = {folder: one for folder, one in offered.items() if is_stored(one)}
    if len(came) == len(offered) and version_of(came) == known:
        return Gathered(None, came, [], set())
    parts: dict[str, Part] = {}
    stored: dict[str, Stored] = {}
    files, size = 0, 0
    for folder, one in pairs:
        found = _chosen(kept, folder, one, before.get(folder), bounds, notices)
        if found is None:
            continue
        part, of = found
        files += len(part.blobs)
        size += sum(blob.size or 0 for blob in part.blobs.values())
        if files > bounds.files or size > bounds.bytes:
            notices.leave_out(folder, "there is no room for it among all the others")
            continue
        parts[folder], stored[folder] = part, of
    if wanted and not parts:
        unreachable = next((one for one in brought if isinstance(one, RemoteUnreachable)), None)
        refused = next((one for one in brought if isinstance(one, RemoteRefused)), None)
        cause = notices.said()[0]
        if refused is not None:
            cause = f"HTTP status {refused.status} at {refused.url}"
        reason = f"none of its skills is to be had: {cause}"
        raise unreachable or RemoteInvalid(url=redacted(url), reason=reason)
    failed = {folder for folder, one in offered.items() if stored.get(folder) != one}
    return Gathered(parts, stored, notices.said(), failed)


def _brought(want: Wanted) -> Stored | Exception:
    try:
        return want.bring()
    except (RemoteProblem, BadArchive, Withdrawn) as problem:
        return problem


def _chosen(
    kept: Kept,
    folder: str,
    brought: Stored | Exception,
    old: object,
    bounds: Bounds,
    notices: Notices,
) -> tuple[Part, Stored] | None:
    """Return a skill as it was brought, else as it was before, else None; why is noticed."""
    if isinstance(brought, Withdrawn):
        notices.leave_out(folder, str(brought))
        return None
    reason = str(brought) if isinstance(brought, Exception) else ""
    for stored in (brought, old):
        if not is_stored(stored):
            continue
        try:
            part = part_of(kept, stored, bounds)
        except BadArchive as error:
            reason = reason or str(error)
        except FileNotFoundError:
            reason = reason or "what was kept of it is gone"
        else:
            if reason:
                notices.keep(folder, reason)
            return part, stored
    notices.leave_out(folder, reason)
    return None


def _is_digest(value: object) -> bool:
    return isinstance(value, str) and _DIGEST.fullmatch(value) is not None
