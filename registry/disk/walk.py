"""Walk a source: yield each skill folder with the stat results of its files, in a fixed order.

A walk reads no file, and follows no link that leads out of the sources. Each folder is opened
relative to its open parent folder. So another process can't redirect the walk by renaming folders.
Children come before their parent, in the order of `paths.position`. So the result can be merged
with the rows of the database.
"""

import errno
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from operator import attrgetter
from stat import S_ISLNK, S_ISREG
from typing import Final, NamedTuple, Self, TypeAlias

from registry.disk.beneath import FOLDER, GONE, PASS, Folder, reason_of
from registry.disk.links import Leads, Link, finding, follow, known
from registry.disk.paths import (
    ROOT,
    called_on_disk,
    check_path,
    entry_order,
    is_below,
    is_ignored,
    is_safe_relative,
    join,
    storable,
)
from registry.errors import SkillInaccessible
from registry.model import DOCUMENT_NAMES, Diagnostic, Severity
from registry.settings import Limits
from registry.text import folded, is_encodable

WALK_CODES: Final = frozenset(
    "link-broken link-inside link-loop link-outside path-collision path-not-utf8 path-unsafe "
    "second-document skill-too-large special-file too-deep too-many-files unreadable".split()
)
"""Codes of the findings that a walk makes before any file is read."""

UNREADABLE: Final = "unreadable"
"""Code of the finding about an unreadable file or folder of a skill.

This finding doesn't prove that the file or folder was removed.
"""
_SAYING: Final = "it can't be read: "


def is_long(folder: str) -> bool:
    """Tell whether a path below a source is longer than `PATH_SEEN`."""
    return len(folder) > PATH_SEEN // 4 and len(os.fsencode(folder)) > PATH_SEEN


def unreadable(reason: str, path: str | None, severity: Severity = "warning") -> Diagnostic:
    """Return the finding that ``path`` can't be read, with the reason."""
    return Diagnostic(UNREADABLE, severity, _SAYING + reason, fix="grant read access", path=path)


def inaccessible(home: str, finding: Diagnostic) -> SkillInaccessible:
    """Return the error for reading a skill with this `unreadable` finding."""
    path = f"{home}/{finding.path}" if finding.path else home
    return SkillInaccessible(path=path, reason=finding.message.removeprefix(_SAYING))


_RENAME: Final = "rename the file"


class FileStat(NamedTuple):
    """The stat result of a file; ``path`` is relative to the skill's folder."""

    path: str
    mode: int
    size: int
    mtime_ns: int
    ctime_ns: int
    inode: int


_FILE: Final = f"FileStat({', '.join(f'{name}=%r' for name in FileStat._fields)})"


@dataclass(frozen=True, slots=True)
class ScannedFolder:
    """A folder that contains a skill, or a top-level folder without a skill.

    ``document`` is the name of the skill file; None if it is missing or must not be read. ``name``
    is the last part of the folder's path. ``problems`` are the findings of the walk.
    """

    folder: str
    document: str | None
    files: Sequence[FileStat] = ()
    problems: Sequence[Diagnostic] = ()
    name: str = ""

    @property
    def is_skill(self) -> bool:
        """Whether the folder contains a skill file, even if this file can't be read."""
        return self.document is not None or bool(self.problems)

    @property
    def unread(self) -> list[Diagnostic]:
        """The findings about unreadable files and folders.

        If there are any, ``files`` is incomplete.
        """
        return [problem for problem in self.problems if problem.code == UNREADABLE]

    def with_unread(self, findings: Iterable[Diagnostic]) -> Self:
        """Return a copy with additional findings about unreadable files."""
        return replace(
            self, problems=[*self.problems, *(f for f in findings if f not in self.problems)]
        )

    @property
    def fingerprint(self) -> str:
        """A digest of the files' stat results and of the findings' codes.

        If it is unchanged, a sync need not read the skill again.
        """
        # This text equals the repr of all these values, but is created in a third of the time.
        files = ", ".join([_FILE % file for file in self.files])
        listed = f"[{files}]" if files else repr(self.files)
        codes = [problem.code for problem in self.problems]
        facts = f"({self.document!r}, {listed}, {codes!r})"
        return blake2b(facts.encode("utf-8", "surrogateescape"), digest_size=16).hexdigest()

    @property
    def newest_ns(self) -> int:
        """The time of the latest change of any file or its mode, in nanoseconds.

        0 without files.
        """
        return max((max(file.mtime_ns, file.ctime_ns) for file in self.files), default=0)


@dataclass(frozen=True, slots=True)
class Notice:
    """A finding about a path that isn't a skill.

    ``lost`` is True if the contents of the folder could not be listed.
    """

    folder: str
    diagnostic: Diagnostic
    lost: bool = False


class RootGone(Exception):
    """The root of a source doesn't exist."""


class RootUnreadable(Exception):
    """The root of a source can't be listed; the exception's argument is the reason."""


class Collector:
    """Collects the files of one skill, and checks the limits for skills."""

    def __init__(self, folder: str, limits: Limits) -> None:
        self.folder = folder
        self.files: list[FileStat] = []
        self.problems: list[Diagnostic] = []
        self._limits = limits
        self._count = self._bytes = 0

    def note(self, code: str, message: str, fix: str, path: str | None = None) -> None:
        """Add a finding of severity ``error``, which makes the skill unusable."""
        self.problems.append(Diagnostic(code, "error", message, fix=fix, path=path))

    def add(self, path: str, facts: os.stat_result) -> None:
        """Add a file; if it isn't a regular file, add only a finding."""
        if not S_ISREG(facts.st_mode):
            message = "a skill can't contain a pipe, a socket or a device"
            self.note("special-file", message, "remove it", path)
            return
        self._count += 1
        self._bytes += facts.st_size
        if self._count <= self._limits.files:
            times = (facts.st_mtime_ns, facts.st_ctime_ns)
            file = FileStat(path, facts.st_mode, facts.st_size, *times, facts.st_ino)
            self.files.append(file)

    def finish(self) -> None:
        """Add findings about exceeded limits, and about names that some file systems refuse."""
        self._check_names()
        most = self._limits
        if self._count > most.files:
            message = f"the folder holds {self._count} files, {most.files} are allowed"
            fix = "move files that the skill does not need to another folder, or raise limits.files"
            self.note("too-many-files", message, fix)
        if self._bytes > most.skill_bytes:
            message = f"the files have {self._bytes} bytes in total, {most.skill_bytes} are allowed"
            fix = "move large files to another folder, or raise limits.skill_bytes"
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
                self.note("path-collision", message, "rename one of the two files", path)

    def _note_name(self, path: str, reason: str) -> None:
        if not is_encodable(called_on_disk(path)):
            self.note("path-not-utf8", "the file's name is not UTF-8 text", _RENAME, path)
        elif not is_safe_relative(path):
            message = "on Windows, a backslash or drive in the name leads to another folder"
            self.note("path-unsafe", message, _RENAME, path)
        else:
            message = f"the skill can't be pulled or exported: of this path, {reason}"
            warning = Diagnostic("path-unsafe", "warning", message, fix=_RENAME, path=path)
            self.problems.append(warning)


DEPTH_SEEN: Final = 32
"""Maximum depth of folders that the walk visits.

The limit for skills is lower, so that the walk can report skills that are too deep.
"""

PATH_SEEN: Final = 700
"""Maximum length of a folder's path below the source, in bytes.

An index of PostgreSQL holds at most 2,704 bytes for each row.
"""

Entry: TypeAlias = "os.DirEntry[str]"

_DOCUMENTS: Final = frozenset(DOCUMENT_NAMES)
_NAME: Final = attrgetter("name")


def _order(entry: Entry) -> str:
    return entry_order(entry.name)


class Walk:
    """A walk of the source at ``root``, an absolute path without links.

    ``roots`` are the real paths of all sources. If a link leads into one of them, its target is
    listed only at the target's real path. A source inside this source is skipped, because its own
    walk lists it. If ``nested``, it isn't skipped. The iteration raises `RootGone` or
    `RootUnreadable`. ``notices`` are complete after the iteration.
    """

    def __init__(
        self, root: str, limits: Limits, roots: Sequence[str] = (), *, nested: bool = False
    ) -> None:
        self.root = root
        self.limits = limits
        self.notices: list[Notice] = []
        self._roots = tuple({root, *roots})
        others = (one for one in roots if not nested and one != root and is_below(one, root))
        self._others = frozenset(os.path.relpath(one, root) for one in others)
        self._lost = 0

    def leaves(self, folder: str) -> bool:
        """Tell whether a folder exists but is skipped, because another source's walk lists it."""
        is_theirs = any(is_below(folder, one) for one in self._others)
        return is_theirs and os.path.isdir(join(self.root, folder))

    def __iter__(self) -> Iterator[ScannedFolder]:
        try:
            root = Folder.open(self.root)
        except OSError as error:
            if error.errno in GONE:
                raise RootGone(self.root) from error
            raise RootUnreadable(reason_of(error)) from error
        with root:
            try:
                os.scandir(root.fd).close()
            except OSError as error:
                raise RootUnreadable(reason_of(error)) from error
            yield from self._visit(root.fd, ROOT, ROOT, 0, None, "")

    def one(self, folder: str) -> ScannedFolder | None:
        """Return the skill in one folder; None if the folder is missing or has no skill."""
        return next((found for found in self.below(folder) if found.folder == folder), None)

    def below(self, folder: str) -> Iterator[ScannedFolder]:
        """Yield the skills in a folder and its subfolders, in the same way as a whole walk."""
        folder = called_on_disk(folder)
        level = 0 if folder == ROOT else folder.count("/") + 1
        above, _, name = folder.rpartition("/")
        try:
            with Folder.passing(self.root) as root, root.folder(above, PASS) as holder:
                if level and S_ISLNK(holder.lstat(name).st_mode):
                    yield from self._alone(holder, name, above or ROOT, level)
                else:
                    yield from self._visit(holder.fd, name, folder, level, None, "")
        except OSError as error:
            if error.errno == errno.ELOOP and not os.path.islink(self.root):
                return  # the walk reads nothing through a link
            self._unreadable(folder, None, "", error)

    def _alone(self, holder: Folder, name: str, above: str, level: int) -> Iterator[ScannedFolder]:
        with holder.folder(ROOT) as listed, os.scandir(listed.fd) as listing:
            for entry in listing:
                if entry.name == name:
                    found = self._link(entry, above, level - 1, None, name, [])
                    if found is not None:
                        yield found

    def _visit(  # noqa: C901, PLR0912  # a flat loop, because it runs for every entry on disk
        self,
        above: int,
        called: str,
        folder: str,
        level: int,
        outer: Collector | None,
        below: str,
    ) -> Iterator[ScannedFolder]:
        """Visit the folder with the name ``called`` in the open folder ``above``.

        If the folder is inside a skill, ``outer`` collects the skill's files, and ``below`` is the
        folder's path in that skill, with a slash at the end.
        """
        try:
            here = os.open(called, FOLDER, dir_fd=above)
        except OSError as error:
            self._unreadable(folder, outer, below.rstrip("/"), error)
            return
        try:
            try:
                with os.scandir(here) as listing:
                    entries = list(listing)
            except OSError as error:
                self._unreadable(folder, outer, below.rstrip("/"), error)
                return
            if len(entries) > 1:
                names = "".join([entry.name for entry in entries])
                plain = names.isprintable() and "\\" not in names
                entries.sort(key=_NAME if plain else _order)
            collector = outer
            documents = [entry for entry in entries if entry.name in _DOCUMENTS]
            if documents and (documents := self._own_documents(documents, folder)):
                collector, below = Collector(folder, self.limits), ""
            skills, lost = 0, self._lost
            for entry in entries:
                name = entry.name
                try:
                    if entry.is_symlink():
                        found = self._link(entry, folder, level, collector, below + name, documents)
                        if found:
                            skills += 1
                            yield found
                    elif entry.is_dir(follow_symlinks=False):
                        child = name if folder == ROOT else f"{folder}/{name}"
                        if is_ignored(name) or child in self._others:
                            continue
                        if level >= DEPTH_SEEN or is_long(child):
                            self._too_deep(child, collector, below + name)
                            continue
                        inner = f"{below}{name}/" if collector else ""
                        for found in self._visit(here, name, child, level + 1, collector, inner):
                            skills += 1
                            yield found
                    elif (
                        collector is not None and name != ".git"
                    ):  # but not the .git file of a submodule or work tree
                        collector.add(storable(below + name), entry.stat(follow_symlinks=False))
                except OSError as error:
                    # If another process removed the file after the listing, the next sync handles
                    # this.
                    self._unreadable(folder, collector, below + name, error)
        finally:
            os.close(here)
        if documents and collector:
            yield self._skill(folder, level, documents, collector)
        elif level == 1 and not skills and lost == self._lost:
            yield ScannedFolder(storable(folder), None, name=storable(folder))

    def _own_documents(self, named: list[Entry], folder: str) -> list[Entry]:
        """Return the skill files among ``named``, the preferred name first.

        A link to another skill's file is left out, because that skill is listed at its real path.
        """
        documents = []
        for entry in named:
            if entry.is_dir(follow_symlinks=False):
                continue
            if entry.is_symlink():
                home = join(self.root, folder)
                link = follow(join(home, entry.name), home, self._roots)
                if link.leads is Leads.KNOWN and os.path.basename(link.target) in DOCUMENT_NAMES:
                    self._elsewhere(folder, link.target)
                    continue
            documents.append(entry)
        if len(documents) > 1:
            documents.sort(key=lambda entry: DOCUMENT_NAMES.index(entry.name))
        return documents

    def _skill(
        self, folder: str, level: int, documents: list[Entry], collector: Collector
    ) -> ScannedFolder:
        collector.finish()
        problems = collector.problems
        document: str | None = documents[0].name
        for problem in problems:
            if problem.path == document and problem.severity == "error":
                document = None
                break
        if level > self.limits.depth:
            message = f"it is {level} folders below its source; the limit is {self.limits.depth}"
            fix = "register a folder nearer to it as a source, or raise limits.depth"
            problems.append(Diagnostic("too-deep", "error", message, fix=fix))
        if len(documents) > 1:
            others = ", ".join(entry.name for entry in documents[1:])
            message = f"{documents[0].name} counts, but the folder also holds {others}"
            fix = "keep only one of the two files; a disk that ignores case can't store both"
            problems.append(Diagnostic("second-document", "warning", message, fix=fix))
        shown = storable(folder)
        if "\\" in folder:
            message = "on Windows, a backslash in the folder's name leads to another folder"
            problems.append(Diagnostic("path-unsafe", "error", message, fix="rename the folder"))
        if not is_encodable(folder):
            message = "the folder's name is not UTF-8 text"
            problems.append(Diagnostic("path-not-utf8", "error", message, fix="rename the folder"))
        if shown != folder:
            document, collector.files = (
                None,
                [],
            )  # the stored name isn't the name on disk
        name = os.path.basename(self.root) if folder == ROOT else folder.rpartition("/")[2]
        return ScannedFolder(shown, document, collector.files, problems, storable(name))

    def _link(
        self,
        entry: Entry,
        folder: str,
        level: int,
        collector: Collector | None,
        where: str,
        documents: list[Entry],
    ) -> ScannedFolder | None:
        """Add the file to which a link in ``folder`` leads, or a finding about the link.

        ``where`` is the link's path in the skill whose files ``collector`` collects.
        """
        home = join(self.root, collector.folder) if collector else None
        link = follow(join(join(self.root, folder), entry.name), home, self._roots)
        if collector is None:
            return self._outer_link(entry, folder, level, link)
        document = entry in documents
        usable = link.leads is Leads.INSIDE or (document and link.leads is Leads.KNOWN)
        if usable and link.facts is not None and not link.is_folder:
            collector.add(storable(where), link.facts)
        elif link.leads is Leads.INSIDE and link.is_folder:
            pass  # the target is listed at its real path
        elif link.leads is Leads.CLOSED and link.target:
            self._lose(folder, collector, where, "its target can't be read")
        elif entry.name not in DOCUMENT_NAMES or document:
            collector.problems.append(finding(link, storable(where), fatal=document))
        return None

    def _outer_link(
        self, entry: Entry, folder: str, level: int, link: Link
    ) -> ScannedFolder | None:
        child = entry.name if folder == ROOT else f"{folder}/{entry.name}"
        if link.leads is Leads.KNOWN:
            if link.is_folder:
                self._elsewhere(child, link.target)
            return None
        if link.leads is Leads.OUTSIDE and not link.is_folder:
            return None
        shared = self._shared() if link.leads is Leads.OUTSIDE else None
        if shared is not None and is_below(link.target, shared):
            # a pull for several agents creates such links
            notice = known(storable(link.target), storable(shared), in_project=self._in_project)
            self.notices.append(Notice(storable(child), notice))
            return None
        problem = finding(link, None, fatal=False)
        holds_skill = link.leads is Leads.OUTSIDE and any(
            os.path.lexists(f"{link.target}/{name}") for name in DOCUMENT_NAMES
        )
        if holds_skill and level + 1 <= DEPTH_SEEN:
            return ScannedFolder(storable(child), None, (), [problem], storable(entry.name))
        self.notices.append(Notice(storable(child), problem))
        return None

    @property
    def _in_project(self) -> bool:
        from registry.disk.agents import personal_folders

        return self.root not in personal_folders(os.path.expanduser("~"))

    def _shared(self) -> str | None:
        """Return the real path of the folder to which links in this agent's folder lead.

        Returns None if this source isn't the folder of an agent.
        """
        from registry.disk.agents import shared_folder

        shared = shared_folder(self.root)
        return None if shared is None else os.path.realpath(shared)

    def _elsewhere(self, folder: str, target: str) -> None:
        self.notices.append(Notice(storable(folder), known(storable(target))))

    def _too_deep(self, folder: str, collector: Collector | None, where: str) -> None:
        message = f"folders deeper than {DEPTH_SEEN} levels below the source are not searched"
        if is_long(folder):
            message = f"folders with a path of more than {PATH_SEEN:,} bytes are not searched"
        fix = "move the skill up, or register a folder nearer to it as a source"
        if collector is not None:
            collector.note("too-deep", message, fix, storable(where))
        else:
            problem = Diagnostic("too-deep", "warning", message, fix=fix)
            self.notices.append(Notice(storable(folder), problem))

    def _unreadable(
        self, folder: str, collector: Collector | None, where: str, error: OSError
    ) -> None:
        if error.errno not in GONE:
            self._lose(folder, collector, where, reason_of(error))

    def _lose(self, folder: str, collector: Collector | None, where: str, reason: str) -> None:
        problem = unreadable(reason, storable(where) or None)
        if collector is not None:
            collector.problems.append(problem)
        self._lost += 1
        self.notices.append(Notice(storable(folder), problem, lost=True))
