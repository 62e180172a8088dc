"""Open remote sources of all kinds; packages can add kinds with entry points.

An entry point of the group `GROUP` has the name of the kind. It is a function ``fetch(url, into,
known)`` that writes the files of skills into ``into``, an empty folder (`pathlib.Path`). It returns
the version of these files, a string. ``known`` is the version of the last fetch, or None. If the
version is still ``known``, the function writes nothing and returns None.

Only kinds in the setting ``source_kinds`` are loaded. The written files are not trusted: links are
skipped, paths are checked, and sizes are limited.
"""

import difflib
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Final, Literal, TypeAlias
from urllib.parse import urlsplit

from registry.disk.files import digest, read_file
from registry.errors import (
    RegistryError,
    RemoteInvalid,
    RemoteProblem,
    RemoteRefused,
    RemoteTooLarge,
    RemoteUnreachable,
    SourceKindUnusable,
)
from registry.model import Remote
from registry.remotes.address import check_file_host, file_path_of, is_archive, redacted
from registry.remotes.git import open_git
from registry.remotes.snapshot import Blob, FetchLimits, Paths, Snapshot
from registry.text import in_one_line

GROUP: Final = "skill_registry.sources"


MAX_REASON: Final = 500
"""Maximum number of characters that messages show from a package's error."""

Fetch: TypeAlias = Callable[[str, Path, str | None], str | None]


def open_remote(
    remote: Remote,
    state: str,
    known: str | None,
    bounds: FetchLimits,
    kinds: Sequence[str],
    *,
    commit: str | None = None,
) -> AbstractContextManager[Snapshot | None]:
    """Open the current snapshot of a remote source; yield None if its version is still ``known``.

    ``state`` is a folder for the data of the source's kind. ``kinds`` are the kinds in the
    settings. ``commit`` is the commit of a git pin, if the server has already reported it. Raises
    `RemoteProblem`, `AddressInvalid`, `SourceKindUnusable`.
    """
    match remote.kind:
        case "git":
            url, ref, part = remote.url, remote.ref, remote.part
            return open_git(url, ref, state, known, bounds, part=part, commit=commit)
        case "archive":
            from registry.remotes.artifacts import open_archive

            if (path := file_path_of(remote.url)) is not None:
                check_file_host(remote.url, remote.url)
            return open_archive(path or remote.url, state, known, bounds)
        case "site":
            from registry.remotes.site import open_site

            return open_site(remote.url, state, known, bounds)
        case "hub":
            from registry.remotes.hub import open_hub

            return open_hub(remote.url, state, known, bounds)
        case kind:
            return _open_added(load_kind(kind, kinds), remote.url, state, known, bounds)


def load_kind(name: str, kinds: Sequence[str]) -> Fetch:
    """Return the ``fetch`` function of a kind that a package adds. Raises `SourceKindUnusable`."""
    from importlib.metadata import entry_points

    if name not in kinds:
        raise SourceKindUnusable(name=name, reason="it is not enabled in the setting source_kinds")
    offered = {point.name: point for point in entry_points(group=GROUP)}
    if name not in offered:
        near = difflib.get_close_matches(name, offered, n=1)
        hint = f"; did you mean {near[0]}?" if near else ""
        raise SourceKindUnusable(name=name, reason=f"no installed package provides it{hint}")
    try:
        fetch: Fetch = offered[name].load()
    except Exception as error:  # importing a package may raise any exception
        raise SourceKindUnusable(name=name, reason=in_one_line(error)[:MAX_REASON]) from error
    if not callable(fetch):
        raise SourceKindUnusable(name=name, reason=f"{offered[name].value} is not a function")
    return fetch


@contextmanager
def _open_added(
    fetch: Fetch, url: str, state: str, known: str | None, bounds: FetchLimits
) -> Iterator[Snapshot | None]:
    into = Path(tempfile.mkdtemp(dir=state))
    try:
        try:
            version = fetch(url, into, known)
        except (OSError, RegistryError) as error:
            raise RemoteUnreachable(url=url, reason=in_one_line(error)[:MAX_REASON]) from error
        except Exception as error:  # a package's function may raise any exception
            raise RemoteInvalid(url=url, reason=in_one_line(error)[:MAX_REASON]) from error
        if version is None and known is not None:
            yield None
            return
        if not isinstance(version, str) or not version or not version.isprintable():
            raise RemoteInvalid(url=url, reason="the package of its kind returned no version")
        yield _written(into, version, url, bounds)
    finally:
        shutil.rmtree(into, ignore_errors=True)


def _written(into: Path, version: str, url: str, bounds: FetchLimits) -> Snapshot:
    files: dict[str, Blob] = {}
    notices, paths, room = [], Paths(), bounds.bytes
    for holder, _folders, names in os.walk(into):
        for name in sorted(names):
            file = Path(holder, name)
            path = file.relative_to(into).as_posix()
            if file.is_symlink() or not file.is_file():
                notices.append(f"{path!r} is not a plain file, and was left out")
            elif reason := paths.add(path):
                notices.append(f"{path!r} is left out: it {reason}")
            else:
                facts = file.stat()
                room -= facts.st_size
                if room < 0 or len(files) >= bounds.files:
                    reason = f"more than {bounds.bytes} bytes, or {bounds.files} files"
                    raise RemoteTooLarge(url=url, reason=reason)
                data = read_file(str(file), bounds.artifact_bytes).data
                is_program = bool(facts.st_mode & 0o100)
                files[path] = Blob(digest(data), is_program, facts.st_size)

    def read(paths: Sequence[str]) -> Iterator[tuple[str, bytes]]:
        for path in paths:
            yield path, read_file(str(into / path), bounds.artifact_bytes).data

    return Snapshot(version, None, files, notices, read)


Kind: TypeAlias = Literal["archive", "site", "hub"]

TAR_MAGIC: Final = 257
"""Offset of the text ``ustar`` in a tar file (POSIX), in bytes."""


def detect_kind(url: str, bounds: FetchLimits) -> Kind:
    """Return whether an http or https address is an archive, a site or a hub.

    Raises `RemoteProblem`.
    """
    from registry.remotes.http import NOT_FOUND, HttpClient
    from registry.remotes.hub import SKILLS, find_base, page_of
    from registry.remotes.site import NEW, WELL_KNOWN, find_index
    from registry.remotes.unpacking import GZIP

    def begins_as_archive() -> bool:
        start = client.begins(client.url, TAR_MAGIC + len("ustar"))
        magics = ((0, GZIP), (0, b"PK\x03\x04"), (TAR_MAGIC, b"ustar"))
        return any(start[at:].startswith(magic) for at, magic in magics)

    client = HttpClient(url, bounds)
    if is_archive(urlsplit(client.url).path):
        return "archive"
    answers: dict[Kind, Callable[[], bool]] = {
        "archive": begins_as_archive,
        "site": lambda: bool(find_index(client)),
        "hub": lambda: bool(page_of(client, find_base(client), 1)),
    }
    refused: list[RemoteProblem] = []
    for kind, answer in answers.items():
        try:
            if answer():
                return kind
        except RemoteInvalid:
            continue
        except RemoteRefused as problem:
            if problem.status != NOT_FOUND:
                refused.append(problem)
    if refused:
        raise refused[0]
    reason = (
        f"it is not an archive, and has neither an index of skills ({WELL_KNOWN}{NEW}) nor a "
        f"list of skills ({SKILLS})"
    )
    raise RemoteInvalid(url=redacted(client.url), reason=reason)
