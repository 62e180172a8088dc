"""What a walk finds, as values: folders with the stat facts of their files, and notices."""

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from stat import S_ISREG
from typing import Final, NamedTuple, Self

from registry.disk.paths import called_on_disk, check_path, is_safe_relative
from registry.errors import SkillInaccessible
from registry.model import DOCUMENT_NAMES, Diagnostic, Severity
from registry.settings import Limits
from registry.text import folded, is_encodable

WALK_CODES: Final = frozenset(
    "link-broken link-inside link-loop link-outside path-collision path-not-utf8 path-unsafe "
    "second-document skill-too-large special-file too-deep too-many-files unreadable".split()
)
"""The findings a walk makes by itself, before any file is read."""

UNREADABLE: Final = "unreadable"
"""The finding about a part of a skill that the disk does not give out, which proves nothing."""
_SAYING: Final = "it can't be read: "


def unreadable(reason: str, path: str | None, severity: Severity = "warning") -> Diagnostic:
    """Return the finding that ``path`` can't be read, and why."""
    return Diagnostic(UNREADABLE, severity, _SAYING + reason, fix="grant read access", path=path)


def inaccessible(home: str, finding: Diagnostic) -> SkillInaccessible:
    """Return the error that an `unreadable` finding of the skill in ``home`` is for its reader."""
    path = f"{home}/{finding.path}" if finding.path else home
    return SkillInaccessible(path=path, reason=finding.message.removeprefix(_SAYING))


_RENAME: Final = "rename the file"


class FileStat(NamedTuple):
    """What stat says of one file; ``path`` is relative to the skill's folder."""

    path: str
    mode: int
    size: int
    mtime_ns: int
    ctime_ns: int
    inode: int


_FILE: Final = f"FileStat({', '.join(f'{name}=%r' for name in FileStat._fields)})"


@dataclass(frozen=True, slots=True)
class ScannedFolder:
    """One folder that holds a skill, or a top-level folder that holds none.

    ``document`` is the skill file's name (None: there is none, or none that may be read),
    ``name`` the folder's own, ``problems`` what the walk itself noticed.
    """

    folder: str
    document: str | None
    files: Sequence[FileStat] = ()
    problems: Sequence[Diagnostic] = ()
    name: str = ""

    @property
    def is_skill(self) -> bool:
        """Whether the folder holds a skill file, readable or not."""
        return self.document is not None or bool(self.problems)

    @property
    def unread(self) -> list[Diagnostic]:
        """What of it could not be looked at, so that the files are not all there are."""
        return [problem for problem in self.problems if problem.code == UNREADABLE]

    def with_unread(self, findings: Iterable[Diagnostic]) -> Self:
        """Return the same with what turned out to be unreadable when its files were read."""
        return replace(
            self, problems=[*self.problems, *(f for f in findings if f not in self.problems)]
        )

    @property
    def fingerprint(self) -> str:
        """A digest of everything stat says of the folder and of what the walk noticed there."""
        # The same text as the repr of all these values, in a third of the time.
        files = ", ".join([_FILE % file for file in self.files])
        listed = f"[{files}]" if files else repr(self.files)
        codes = [problem.code for problem in self.problems]
        facts = f"({self.document!r}, {listed}, {codes!r})"
        return blake2b(facts.encode("utf-8", "surrogateescape"), digest_size=16).hexdigest()

    @property
    def newest_ns(self) -> int:
        """The latest time of any file, changes of its mode included; 0 without files."""
        return max((max(file.mtime_ns, file.ctime_ns) for file in self.files), default=0)


@dataclass(frozen=True, slots=True)
class Notice:
    """Something about a place that is not a skill; ``lost``: what lies there could not be seen."""

    folder: str
    diagnostic: Diagnostic
    lost: bool = False


class RootMissing(Exception):
    """The root of a source is not there."""


class RootUnreadable(Exception):
    """The root of a source can't be listed; the argument says why."""


class Collector:
    """Gathers the files of one skill, within the limits."""

    def __init__(self, folder: str, limits: Limits) -> None:
        self.folder = folder
        self.files: list[FileStat] = []
        self.problems: list[Diagnostic] = []
        self._limits = limits
        self._count = self._bytes = 0

    def note(self, code: str, message: str, fix: str, path: str | None = None) -> None:
        """Note a problem that makes the skill unusable."""
        self.problems.append(Diagnostic(code, "error", message, fix=fix, path=path))

    def add(self, path: str, facts: os.stat_result) -> None:
        """Take one file in, or note that it is not a regular one."""
        if not S_ISREG(facts.st_mode):
            message = "a pipe, socket or device has no place in a skill"
            self.note("special-file", message, "remove it", path)
            return
        self._count += 1
        self._bytes += facts.st_size
        if self._count <= self._limits.files:
            times = (facts.st_mtime_ns, facts.st_ctime_ns)
            file = FileStat(path, facts.st_mode, facts.st_size, *times, facts.st_ino)
            self.files.append(file)

    def finish(self) -> None:
        """Note what is over the limits, and names that not every disk can hold apart, or at all."""
        self._check_names()
        most = self._limits
        if self._count > most.files:
            message = f"the folder holds {self._count} files, {most.files} are allowed"
            fix = "move what is not a part of the skill elsewhere, or raise limits.files"
            self.note("too-many-files", message, fix)
        if self._bytes > most.skill_bytes:
            message = f"the files add up to {self._bytes} bytes, {most.skill_bytes} are allowed"
            fix = "move large files elsewhere, or raise limits.skill_bytes"
            self.note("skill-too-large", message, fix)

    def _check_names(self) -> None:
        seen: dict[str, str] = {}
        for file in self.files:
            path = file.path
            if (reason := check_path(path)) is not None:
                self._note_name(path, reason)
            if len(self.files) == 1:
                continue
            other = seen.setdefault(folded(path), path)
            if other != path and path not in DOCUMENT_NAMES:
                message = f"on a disk that ignores case it is the same file as {other}"
                self.note("path-collision", message, "rename one", path)

    def _note_name(self, path: str, reason: str) -> None:
        if not is_encodable(called_on_disk(path)):
            self.note("path-not-utf8", "the file's name is not UTF-8 text", _RENAME, path)
        elif not is_safe_relative(path):
            message = "a backslash or drive in a file's name means another place elsewhere"
            self.note("path-unsafe", message, _RENAME, path)
        else:
            message = f"the skill can't be pulled or exported: of this path, {reason}"
            warning = Diagnostic("path-unsafe", "warning", message, fix=_RENAME, path=path)
            self.problems.append(warning)
