"""Write a repository as a folder that web servers can serve and that git can push."""

import os
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from typing import ClassVar, Final

from registry.disk.atomic import Place, make_folders, make_path, open_named, replace
from registry.disk.beneath import WRITE_NEW, Folder
from registry.disk.swap import draft_name, replace_file
from registry.errors import ExportRefused
from registry.install.staging import where
from registry.model import Value
from registry.publish.git.repository import BRANCH, Repository

_MARK: Final = b"Skills of a skill-registry, written by its command export.\n"
"""The text of the file ``description``; a later export recognises the folder by this text."""

_CONFIG: Final = b"[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = true\n"


@dataclass(frozen=True, slots=True)
class GitExport(Value):
    """A written repository: its path, its commit, and the name of the plugin of each skill.

    ``skills`` has a plugin name and a ref for each skill. ``left_out`` has a ref and a reason for
    each skipped skill.
    """

    KEYS: ClassVar = ("path", "commit", "skills", "left_out")

    path: str
    commit: str
    skills: tuple[tuple[str, str], ...]
    left_out: tuple[tuple[str, str], ...]


def export_git(repository: Repository, to: str) -> GitExport:
    """Write a bare repository to the folder ``to``, and replace one from an earlier export.

    Git's clients can read the folder at any time. Raises `ExportRefused` if the folder has other
    files or can't be written.
    """
    to = os.path.abspath(os.path.expanduser(to))
    try:
        make_path(to)
        with open_named(to) as root:
            _check_ours(root, to)
            _write(root, repository)
    except OSError as error:
        reason = error.strerror or str(error)
        raise ExportRefused(path=where(to, error), reason=reason) from error
    return GitExport(
        to, repository.head.hex(), tuple(repository.entries), tuple(repository.left_out)
    )


def _check_ours(root: Folder, path: str) -> None:
    if not root.entries():
        replace_file(Place(root, "description"), _MARK)
        return
    mark = b""
    with suppress(OSError), os.fdopen(root.open_file("description"), "rb") as file:
        mark = file.read(len(_MARK) + 1)
    if mark != _MARK:
        reason = "it has other files; choose a new folder"
        raise ExportRefused(path=path, reason=reason)


def _write(root: Folder, repository: Repository) -> None:
    pack = repository.pack
    with make_folders(root, "objects/pack") as packs, make_folders(root, "objects/info") as info:
        before = {entry.name for entry in packs.entries()}
        # Clients look for the index first, so write the index after the pack.
        _write_parts(Place(packs, f"{pack.name}.pack"), pack.stream())
        _write_parts(Place(packs, f"{pack.name}.idx"), [pack.index()])
        replace_file(Place(info, "packs"), f"P {pack.name}.pack\n\n".encode())
        replace_file(Place(root, "config"), _CONFIG)
        lines = [f"{oid.hex()} {name}\n" for name, oid in sorted(repository.refs.items())]
        tags = "".join(line for line in lines if not line.endswith(f" {BRANCH}\n"))
        head = "# pack-refs with: peeled fully-peeled sorted \n"
        replace_file(Place(root, "packed-refs"), f"{head}{tags}".encode())
        with make_folders(root, os.path.dirname(BRANCH)) as heads:
            name = os.path.basename(BRANCH)
            replace_file(Place(heads, name), f"{repository.head.hex()}\n".encode())
        replace_file(Place(root, "HEAD"), f"ref: {BRANCH}\n".encode())
        with make_folders(root, "info") as served:
            said = "".join(lines).replace(" ", "\t")
            replace_file(Place(served, "refs"), said.encode())
        for name in before - {f"{pack.name}.pack", f"{pack.name}.idx"}:
            os.unlink(name, dir_fd=packs.fd)


def _write_parts(place: Place, parts: Iterable[bytes]) -> None:
    """Write a file durably, and then rename it to its final name."""
    new = Place(place.folder, draft_name())
    descriptor = os.open(new.name, WRITE_NEW, 0o644, dir_fd=new.folder.fd)
    try:
        with os.fdopen(descriptor, "wb") as file:
            for part in parts:
                file.write(part)
            file.flush()
            os.fsync(file.fileno())
        replace(new, place)
    except BaseException:
        with suppress(OSError):
            os.unlink(new.name, dir_fd=new.folder.fd)
        raise
    place.folder.sync()
