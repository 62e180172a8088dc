"""A source that is one archive, at an address or on this disk."""

import io
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import IO

from registry.disk.files import digest, read_file
from registry.errors import (
    FileChanging,
    FileTooLarge,
    RemoteInvalid,
    RemoteTooLarge,
    RemoteUnreachable,
    SkillInaccessible,
)
from registry.remotes.address import redacted
from registry.remotes.artifacts import ArtifactCache, Held, Packed, Part, made_at, open_cache
from registry.remotes.http import Client
from registry.remotes.snapshot import Bounds, Notices, Snapshot
from registry.remotes.unpacking import BadArchive, Room, TooMuch


@contextmanager
def open_archive(
    url_or_file: str, state: str, known: str | None, bounds: Bounds
) -> Iterator[Snapshot | None]:
    """Open the files of a zip or tar archive; yields None if its SHA-256 is still ``known``."""
    if "://" not in url_or_file:
        data, changed = _local(url_or_file, bounds.bytes)
        version = digest(data)
        if version == known:
            yield None
        else:
            yield _tree(url_or_file, version, changed, lambda: io.BytesIO(data), bounds)
        return
    client = Client(url_or_file, bounds)
    with open_cache(state) as cache:
        cache.keep_only(())
        found, answer = cache.renewed(client, client.url, bounds.bytes, _asking(cache, known))
        version = f"sha256:{found}"
        if found is None or version == known:
            yield None
        else:
            opened = partial(cache.open, found)
            yield _tree(redacted(client.url), version, made_at(answer), opened, bounds)
        if found is not None:  # the checkout has the files already
            seen = {"etag": answer.get("ETag"), "modified": answer.get("Last-Modified")}
            cache.note({"version": version, **seen})
            cache.keep_only(())


def _asking(cache: ArtifactCache, known: str | None) -> dict[str, str]:
    """Return the headers by which a server tells whether it still has the known version."""
    noted = {"If-None-Match": "etag", "If-Modified-Since": "modified"}
    if known is None or cache.notes.get("version") != known:
        return {}
    said = {header: cache.notes.get(key) for header, key in noted.items()}
    return {header: value for header, value in said.items() if isinstance(value, str)}


def _local(path: str, most: int) -> tuple[bytes, int]:
    try:
        content = read_file(os.path.realpath(os.path.expanduser(path)), most)
    except FileNotFoundError:
        raise RemoteUnreachable(url=path, reason="there is no such file") from None
    except FileTooLarge as error:
        reason = f"it has {error.facts['size']} bytes, and {most} are taken"
        raise RemoteTooLarge(url=path, reason=reason) from error
    except FileChanging as error:
        raise RemoteUnreachable(url=path, reason="it kept changing") from error
    except SkillInaccessible as error:
        raise RemoteUnreachable(url=path, reason=str(error.facts["reason"])) from error
    return content.data, int(content.facts.st_mtime)


def _tree(
    shown: str, version: str, changed: int | None, opened: Callable[[], IO[bytes]], bounds: Bounds
) -> Held:
    notices = Notices()
    room = Room(bounds.files, bounds.bytes, bounds.artifact_bytes, "a source")
    try:
        part = Packed(opened, room, notices.refuse)
    except TooMuch as error:
        raise RemoteTooLarge(url=shown, reason=str(error)) from error
    except BadArchive as error:
        raise RemoteInvalid(url=shown, reason=str(error)) from error
    if not part.blobs:
        said = "; ".join(notices.said()[:1])
        reason = f"it holds no files{f': {said}' if said else ''}"
        raise RemoteInvalid(url=shown, reason=reason)
    parts: dict[str, Part] = {"": part}
    return Held(version, changed, parts, notices.said())
