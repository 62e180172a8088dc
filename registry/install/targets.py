"""Where skills are installed (a folder, a project's agents, or those of all projects), and how."""

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
"""The label of the folder that has the lock."""

_ALONE: Final = "eve"
"""The agent that is given copies, as it reads no links."""


class InstallPath(NamedTuple):
    """The place of a skill: the label of a folder, its path without links, and its link target.

    ``link`` is empty for the folder that links lead to; ``is_link``: the place is a link.
    """

    label: str
    path: str
    link: str
    is_link: bool
    named: str

    def path_of(self, folder: str) -> str:
        """Return the path of a skill's folder in it, for messages: as its users know it."""
        return os.path.join(self.named, folder)


@dataclass(frozen=True, slots=True)
class Target:
    """The folder of a lock, as an absolute path.

    Its other folders have labels that mean the same on every machine: paths below it, or for all
    projects (``is_global``) paths from the table of agents.
    """

    path: str
    is_global: bool = False

    @classmethod
    def folder(cls, path: str) -> Self:
        """Return a folder that a user named."""
        return cls(os.path.abspath(os.path.expanduser(path)))

    @classmethod
    def everywhere(cls) -> Self:
        """Return where the agents of this user look in all projects."""
        return cls(str(data_folder()), is_global=True)

    @classmethod
    def project(cls, folder: str) -> Self:
        """Return the project around ``folder``: its git checkout, or else the folder itself.

        Another user's checkout does not count, nor the home folder unless it is ``folder`` itself.
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
        """Return the places of a skill's folder ``name`` for agents; the link target comes first.

        Labels that lead to the same folder count once. Raises `UsageProblem`, `PullRefused`.
        """
        labels = self.labels(ids) or [LOCK_DIR]
        copied = set(labels)
        if mode == "link" and labels != [LOCK_DIR]:
            labels = [self.shared, *(label for label in labels if label != self.shared)]
            copied = {self.shared, agents()[_ALONE].project}
        found: dict[str, InstallPath] = {}
        shared = real_path(self.path if labels[0] == LOCK_DIR else self.path_of(self.shared))
        for label in labels:
            named = self.path_of(label)
            path = self._real(label, named)
            link = os.path.join(os.path.relpath(shared, path), name) if path != shared else ""
            is_link = label not in copied and bool(link)
            found.setdefault(path, InstallPath(label, path, link, is_link, named))
        return list(found.values())

    def labels(self, ids: Iterable[str]) -> list[str]:
        """Return the labels of the folders of agents, the shared one first."""
        found = set()
        for one in map(find_agent, ids):
            label = one.personal if self.is_global else one.project
            if not label or (self.is_global and expand(label) is None):
                raise UsageProblem(message=f"{one.name} has skills in projects only")
            found.add(label)
        return sorted(found, key=lambda label: (label != self.shared, label))

    def known_labels(self) -> set[str]:
        """Return all labels that can be opened."""
        found = {one.personal if self.is_global else one.project for one in agents().values()}
        return (found - {""}) | {LOCK_DIR}

    def usual_mode(self, ids: Sequence[str]) -> Mode:
        """Return the default mode: links, or a copy if there is only one folder."""
        return "link" if len(self.labels(ids)) > 1 else "copy"

    def path_of(self, label: str) -> str:
        """Return the path of a folder by its label, which a stranger may have written.

        Raises `PullRefused`.
        """
        if label == LOCK_DIR:
            return self.path
        path = None
        if label in self.known_labels():
            path = expand(label) if self.is_global else os.path.join(self.path, label)
        if path is None:
            raise PullRefused(path=label, reason="no agent has its skills there")
        return path

    def open(self, label: str, anchor: Folder | None, *, make: bool) -> Folder:
        """Open the folder of a label; if missing and ``make``, create it.

        Raises `PullRefused`, OSError.

        In a project, links on the way must not lead out of it: strangers may have written them.
        """
        path = self.path_of(label)
        if self.is_global or label == LOCK_DIR or anchor is None:
            if make:
                make_path(path)
            return open_named(path)
        below = os.path.relpath(self._real(label, path), real_path(self.path))
        return make_folders(anchor, below) if make else anchor.folder(below)

    def _real(self, label: str, path: str) -> str:
        """Return the path of a folder without links. Raises `PullRefused`."""
        real, root = real_path(path), real_path(self.path)
        is_inside = is_below(real, root) and real != root
        if label != LOCK_DIR and not self.is_global and not is_inside:
            raise PullRefused(path=path, reason=f"its path has a link to {real}")
        return real

    @property
    def shared(self) -> str:
        """The label of the folder that most agents look into."""
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
    """The result for one skill, or with ``check`` the expected result: ``path`` is its folder.

    ``edited``: it was changed there, or not made by a pull, and was left unchanged; ``gone``: the
    registry no longer has it; ``failed``: it is not available. ``reason`` gives the cause, the
    edits, or the files lost with a replacement or removal. A skill whose address is not a source
    here is compared only with the lock, and ``reason`` reports this.
    """

    ref: str
    path: str
    state: State
    reason: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class InstallOptions:
    """Options of a pull.

    ``agents``: the ids of additional agents; ``mode``: links to one copy, or copies; None: as
    installed, or the default. ``force``: also replace folders that no pull made; ``theirs``:
    replace edits of installed skills; ``keep``: keep them, and let the lock say that they are edits
    of the registry's version; ``adopt``: record folders that no pull made as installed if
    their files are equal. ``dry_run``: nothing is written. ``offline``: for remote sources, only
    use files that were fetched before. ``progress`` is called with the progress.
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
        """Yield the names of what is pulled, and tell how far it is."""
        for number, name in enumerate(names):
            if self.progress is not None:
                self.progress("pulling", number, len(names))
            yield name


PLAIN: Final = InstallOptions()
