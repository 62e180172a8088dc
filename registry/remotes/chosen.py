"""Which files of a tree a source asks for: those of its skills, and no others."""

import os
from collections.abc import Iterable, Iterator, Sequence

from registry.disk.paths import ROOT
from registry.document.parse import parse_document
from registry.errors import RemoteInvalid, RemoteTooLarge
from registry.model import DOCUMENT_NAMES, Remote
from registry.remotes.kinds import REPOSITORIES
from registry.remotes.places import manifests, skill_folders
from registry.remotes.tree import Blob, Bounds, Tree


def wanted_files(
    tree: Tree, remote: Remote, bounds: Bounds, *, may_be_none: bool = False
) -> tuple[dict[str, Blob], list[str]]:
    """Return the files of the skills in a tree that a source asks for, and what is to be known.

    Raises `RemoteInvalid` where there is no such skill, unless there ``may_be_none``;
    `RemoteTooLarge`.
    """
    notices: list[str] = []
    if remote.kind in REPOSITORIES:
        manifest = dict(tree.read(manifests(tree.files, remote.part)))
        found = skill_folders(tree.files, remote.part, manifest.__getitem__)
        folders, notices = list(found.folders), list(found.notices)
    else:
        folders = skills_of(tree.files)
    if remote.only:
        folders = _named(tree, folders, remote.only)
    if not folders and not may_be_none:
        where = f" in {remote.part}" if remote.part else ""
        what = f" of the name {' or '.join(remote.only)}" if remote.only else ""
        left = "".join(f", and {notice}" for notice in tree.notices[:1])
        raise RemoteInvalid(url=remote.url, reason=f"it holds no skill{what}{where}{left}")
    chosen = set(folders)
    wanted = {path: one for path, one in tree.files.items() if not chosen.isdisjoint(_above(path))}
    if len(wanted) > bounds.files:
        reason = f"its skills have more than {bounds.files} files"
        raise RemoteTooLarge(url=remote.url, reason=reason)
    return wanted, notices


def _above(path: str) -> Iterator[str]:
    """Yield the folders that a file lies in, the source's root last."""
    while path:
        path = path.rpartition("/")[0]
        yield path or ROOT


def skills_of(files: Iterable[str]) -> list[str]:
    """Return the folders among some files that hold a skill file, none inside another."""
    folders = {next(_above(one)) for one in files if os.path.basename(one) in DOCUMENT_NAMES}
    return [one for one in sorted(folders) if one == ROOT or folders.isdisjoint(_above(one))]


def by_skill(files: Iterable[str]) -> dict[str, dict[str, str]]:
    """Return the files of each skill, by its folder and by their paths in it."""
    known = list(files)
    found: dict[str, dict[str, str]] = {folder: {} for folder in skills_of(known)}
    for path in known:
        home = next((one for one in _above(path) if one in found), None)
        if home is not None:
            found[home][path if home == ROOT else path[len(home) + 1 :]] = path
    return found


def below(files: Iterable[str], folder: str) -> dict[str, str]:
    """Return the files below a folder, by their paths in it."""
    begin = "" if folder == ROOT else f"{folder}/"
    return {path[len(begin) :]: path for path in files if path.startswith(begin)}


def _named(tree: Tree, folders: Sequence[str], names: Sequence[str]) -> list[str]:
    """Return the folders of skills with one of these names: their own, else their documents'."""
    wanted = {name.casefold() for name in names}
    found = [one for one in folders if os.path.basename(one).casefold() in wanted]
    if len({os.path.basename(one).casefold() for one in found}) == len(wanted):
        return found
    documents = {
        path: folder
        for folder in folders
        for name in DOCUMENT_NAMES
        if (path := name if folder == ROOT else f"{folder}/{name}") in tree.files
    }
    for path, data in tree.read(list(documents)):
        parsed = parse_document(data, folder_name=os.path.basename(documents[path]))
        if parsed.name.casefold() in wanted:
            found.append(documents[path])
    return sorted(set(found))
