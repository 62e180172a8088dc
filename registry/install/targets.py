"""Find the folders into which skills are installed; define options and results of installs.

A target has one lock file: it is a folder, a project, or all projects of the user.
"""

import os
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple, Self, TypeAlias

from registry.disk.agents import SHARED, agents, expand, find_agent
from registry.disk.atomic import make_folders, make_path, open_named
from registry.disk.beneath import Folder
from registry.disk.links import real_path
from registry.disk.paths import is_below
from registry.errors import PullRefused, UsageProblem
from registry.install.lockfile import Mode
from registry.model import Value
from registry.settings import data_folder
from registry.sync.report import Progress

LOCK_DIR: Final = "."
"""The id of the lock file's folder."""

_ALONE: Final = "eve"
"""The id of an agent that gets copies, because it doesn't follow links."""


class InstallPath(NamedTuple):
    """A folder in which a skill is installed: its id, its path, and the skill's link, if any.

    ``path`` is the real path. ``link`` is the path to which a link in this folder leads; it is
    empty for the folder that has the files. ``is_link`` is True if the skill is installed as a
    link. ``named`` is the path in the form that the user knows.
    """

    folder_id: str
    path: str
    link: str
    is_link: bool
    named: str

    def path_of(self, folder: str) -> str:
        """Return the path of a skill's folder for messages, in the form that the user knows."""
        return os.path.join(self.named, folder)


@dataclass(frozen=True, slots=True)
class InstallTarget:
    """The target of an install: the folder of its lock file, as an absolute path.

    Each other folder of the target has an id, which is the same on all machines. In a project, a
    folder id is a path relative to the project. If ``is_global``, it is a path from the table of
    agents.
    """

    path: str
    is_global: bool = False

    @classmethod
    def folder(cls, path: str) -> Self:
        """Return the target for a folder that the user gave."""
        return cls(os.path.abspath(os.path.expanduser(path)))

    @classmethod
    def everywhere(cls) -> Self:
        """Return the target for all projects: the folders that agents read in every project."""
        return cls(str(data_folder()), is_global=True)

    @classmethod
    def project(cls, folder: str) -> Self:
        """Return the project that contains ``folder``: its git checkout, or the folder itself.

        A checkout that another user owns is ignored. The home folder is a project only if it is
        ``folder`` itself.
        """
        here = real_path(folder)
        home, above = real_path(os.path.expanduser("~")), here
        while True:
            if os.path.lexists(os.path.join(above, ".git")) and above != home and _is_own(above):
                return cls(above)
            if os.path.dirname(above) == above:
                return cls(here)
            above = os.path.dirname(above)

    def install_paths(self, ids: Iterable[str], mode: Mode, name: str) -> list[InstallPath]:
        """Return the folders in which these agents get a skill; the target of links comes first.

        ``name`` is the name of the skill's folder. If several ids lead to the same folder, the
        result has one entry. Raises `UsageProblem`, `PullRefused`.
        """
        folder_ids = self.folder_ids(ids) or [LOCK_DIR]
        copied = set(folder_ids)
        if mode == "link" and folder_ids != [LOCK_DIR]:
            folder_ids = [
                self.shared,
                *(folder_id for folder_id in folder_ids if folder_id != self.shared),
            ]
            copied = {self.shared, agents()[_ALONE].project}
        found: dict[str, InstallPath] = {}
        shared = real_path(self.path if folder_ids[0] == LOCK_DIR else self.path_of(self.shared))
        for folder_id in folder_ids:
            named = self.path_of(folder_id)
            path = self._real(folder_id, named)
            link = os.path.join(os.path.relpath(shared, path), name) if path != shared else ""
            is_link = folder_id not in copied and bool(link)
            found.setdefault(path, InstallPath(folder_id, path, link, is_link, named))
        return list(found.values())

    def folder_ids(self, ids: Iterable[str]) -> list[str]:
        """Return the ids of the agents' folders; the id of the shared folder comes first."""
        found = set()
        for one in map(find_agent, ids):
            folder_id = one.personal if self.is_global else one.project
            if not folder_id or (self.is_global and expand(folder_id) is None):
                raise UsageProblem(message=f"{one.name} has skills in projects only")
            found.add(folder_id)
        return sorted(found, key=lambda folder_id: (folder_id != self.shared, folder_id))

    def known_folder_ids(self) -> set[str]:
        """Return all folder ids that a lock file may contain."""
        found = {one.personal if self.is_global else one.project for one in agents().values()}
        return (found - {""}) | {LOCK_DIR}

    def usual_mode(self, ids: Sequence[str]) -> Mode:
        """Return the default mode: links; if the agents read only one folder, a copy."""
        return "link" if len(self.folder_ids(ids)) > 1 else "copy"

    def path_of(self, folder_id: str) -> str:
        """Return the path of the folder with an id from a lock file, which is untrusted.

        Raises `PullRefused` if the id isn't valid here.
        """
        if folder_id == LOCK_DIR:
            return self.path
        path = None
        if folder_id in self.known_folder_ids():
            path = expand(folder_id) if self.is_global else os.path.join(self.path, folder_id)
        if path is None:
            raise PullRefused(path=folder_id, reason="no agent has its skills there")
        return path

    def open(self, folder_id: str, anchor: Folder | None, *, make: bool) -> Folder:
        """Open the folder with an id; if it is missing and ``make``, create it.

        In a project, links in the path must not lead out of the project, because another person may
        have created them. Raises `PullRefused`, OSError.
        """
        path = self.path_of(folder_id)
        if self.is_global or folder_id == LOCK_DIR or anchor is None:
            if make:
                make_path(path)
            return open_named(path)
        below = os.path.relpath(self._real(folder_id, path), real_path(self.path))
        return make_folders(anchor, below) if make else anchor.folder(below)

    def _real(self, folder_id: str, path: str) -> str:
        """Return a folder's real path; raise `PullRefused` if links lead out of the project."""
        real, root = real_path(path), real_path(self.path)
        is_inside = is_below(real, root) and real != root
        if folder_id != LOCK_DIR and not self.is_global and not is_inside:
            raise PullRefused(path=path, reason=f"its path has a link to {real}")
        return real

    @property
    def shared(self) -> str:
        """The id of the folder that most agents read."""
        return f"~/{SHARED}" if self.is_global else SHARED


def _is_own(folder: str) -> bool:
    try:
        return os.stat(folder).st_uid == os.geteuid()
    except OSError:
        return False


State: TypeAlias = Literal[
    "added", "updated", "unchanged", "behind", "missing", "edited", "gone", "failed", "removed"
]


@dataclass(frozen=True, slots=True)
class InstallResult(Value):
    """The result of an install for one skill; for ``check``, the result that an install would have.

    ``path`` is the folder of the skill. ``edited`` means that the folder was edited, or that no
    pull created it, and that it stays unchanged. ``gone`` means that the registry no longer has the
    skill, ``failed`` that the skill isn't available. ``reason`` gives the cause, the edits, or the
    files that were replaced or removed. If the skill's address isn't a source here, the skill is
    compared only with the lock file, and ``reason`` reports this.

    ``pin`` is the version that the lock file pins, and ``newer`` is the newest version after it.
    ``warning`` tells that the installed version is deprecated or yanked. ``yanked`` tells that
    it is yanked.
    """

    ref: str
    path: str
    state: State
    reason: str | None = None
    pin: str | None = None
    newer: str | None = None
    warning: str | None = None
    yanked: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class InstallOptions:
    """The options of a pull.

    ``agents`` are the ids of additional agents. ``mode`` is links to one copy, or copies; None
    means the mode of the installed skill, or else the default. ``force`` also replaces folders that
    no pull created. ``theirs`` replaces edits of installed skills. ``keep`` keeps edits, and
    records in the lock file that they are edits of the registry's version. ``adopt`` records
    folders that no pull created as installed, if their files are equal. ``dry_run`` writes nothing.
    ``offline`` uses only files from earlier fetches of remote sources. ``progress`` is called with
    the progress.
    """

    agents: Sequence[str] = ()
    mode: Mode | None = None
    force: bool = False
    theirs: bool = False
    keep: bool = False
    adopt: bool = False
    dry_run: bool = False
    offline: bool = False
    progress: Progress | None = None

    def with_progress(self, names: Collection[str]) -> Iterator[str]:
        """Yield the names of the skills to install, and report the progress."""
        for number, name in enumerate(names):
            if self.progress is not None:
                self.progress("pulling", number, len(names))
            yield name


PLAIN: Final = InstallOptions()
