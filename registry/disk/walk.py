"""Walk a source: every skill folder with what stat says of its files, in a stable order.

A walk reads no file and follows no link out of the sources: each folder is opened from the handle
of the one above it, and is what it was when it was opened, whatever its name stands for by now. It
yields children before their
parent, in the order of `paths.position`, so that it can be merged with the database's rows.
"""

import errno
import os
from collections.abc import Iterator, Sequence
from operator import attrgetter
from stat import S_ISLNK
from typing import Final, TypeAlias

from registry.disk.beneath import FOLDER, GONE, PASS, Folder, reason_of
from registry.disk.links import Leads, Link, finding, follow, known
from registry.disk.paths import (
    ROOT,
    called_on_disk,
    entry_order,
    is_below,
    is_ignored,
    join,
    storable,
)
from registry.disk.scanned import (
    Collector,
    Notice,
    RootMissing,
    RootUnreadable,
    ScannedFolder,
    unreadable,
)
from registry.model import DOCUMENT_NAMES, Diagnostic
from registry.settings import Limits
from registry.text import is_encodable

DEPTH_SEEN: Final = 32
"""How deep the walk looks for skills that lie too deep, so that it can name them."""

Entry: TypeAlias = "os.DirEntry[str]"

_DOCUMENTS: Final = frozenset(DOCUMENT_NAMES)
_NAME: Final = attrgetter("name")


def _order(entry: Entry) -> str:
    return entry_order(entry.name)


class Walk:
    """One walk of the source at ``root`` (absolute, resolved).

    ``roots`` are the resolved roots of all sources: links that lead below one of them are counted
    there, and another source's root inside this one is left to that source unless ``nested``.
    Iterating raises `RootMissing` or `RootUnreadable`; ``notices`` are complete when it has ended.
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
        """Tell whether a folder is there, and left to another source inside this one."""
        is_theirs = any(is_below(folder, one) for one in self._others)
        return is_theirs and os.path.isdir(join(self.root, folder))

    def __iter__(self) -> Iterator[ScannedFolder]:
        try:
            root = Folder.open(self.root)
        except OSError as error:
            if error.errno in GONE:
                raise RootMissing(self.root) from error
            raise RootUnreadable(reason_of(error)) from error
        with root:
            try:
                os.scandir(root.fd).close()
            except OSError as error:
                raise RootUnreadable(reason_of(error)) from error
            yield from self._visit(root.fd, ROOT, ROOT, 0, None, "")

    def one(self, folder: str) -> ScannedFolder | None:
        """Look at one folder alone; None: it is gone, or holds no skill any more."""
        return next((found for found in self.below(folder) if found.folder == folder), None)

    def below(self, folder: str) -> Iterator[ScannedFolder]:
        """Look at one folder and everything in it, no other way than a whole walk would."""
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
                return  # below a link nothing is looked at
            self._unreadable(folder, None, "", error)

    def _alone(self, holder: Folder, name: str, above: str, level: int) -> Iterator[ScannedFolder]:
        with holder.folder(ROOT) as listed, os.scandir(listed.fd) as listing:
            for entry in listing:
                if entry.name == name:
                    found = self._link(entry, above, level - 1, None, name, [])
                    if found is not None:
                        yield found

    def _visit(  # noqa: C901, PLR0912  # one flat loop: it runs for every entry on disk
        self,
        above: int,
        called: str,
        folder: str,
        level: int,
        outer: Collector | None,
        below: str,
    ) -> Iterator[ScannedFolder]:
        """Visit the folder ``called`` so in the open folder ``above``.

        ``below`` is its path (with a slash) in the skill of ``outer``.
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
                        if level >= DEPTH_SEEN:
                            self._too_deep(child, collector, below + name)
                            continue
                        inner = f"{below}{name}/" if collector else ""
                        for found in self._visit(here, name, child, level + 1, collector, inner):
                            skills += 1
                            yield found
                    elif collector is not None and name != ".git":  # of a submodule or work tree
                        collector.add(storable(below + name), entry.stat(follow_symlinks=False))
                except OSError as error:
                    # What vanished since the listing is seen to by the next sync.
                    self._unreadable(folder, collector, below + name, error)
        finally:
            os.close(here)
        if documents and collector:
            yield self._skill(folder, level, documents, collector)
        elif level == 1 and not skills and lost == self._lost:
            yield ScannedFolder(storable(folder), None, name=storable(folder))

    def _own_documents(self, named: list[Entry], folder: str) -> list[Entry]:
        """Return the skill files among ``named``, the one that counts first.

        A link to another skill's file makes no skill: that one is counted where it really lies.
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
            message = f"it lies {level} folders below its source, {self.limits.depth} are searched"
            fix = "register a folder nearer to it as a source, or raise limits.depth"
            problems.append(Diagnostic("too-deep", "error", message, fix=fix))
        if len(documents) > 1:
            others = ", ".join(entry.name for entry in documents[1:])
            message = f"{documents[0].name} counts, but the folder also holds {others}"
            fix = "keep one of them: on a disk that ignores case only one can exist"
            problems.append(Diagnostic("second-document", "warning", message, fix=fix))
        shown = storable(folder)
        if "\\" in folder:
            message = "a backslash in a folder's name means another place elsewhere"
            problems.append(Diagnostic("path-unsafe", "error", message, fix="rename the folder"))
        if not is_encodable(folder):
            message = "the folder's name is not UTF-8 text"
            problems.append(Diagnostic("path-not-utf8", "error", message, fix="rename the folder"))
        if shown != folder:
            document, collector.files = None, []  # by what is stored nobody finds them
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
        """Take in a link in ``folder``; ``where`` is its place in the skill of ``collector``."""
        home = join(self.root, collector.folder) if collector else None
        link = follow(join(join(self.root, folder), entry.name), home, self._roots)
        if collector is None:
            return self._outer_link(entry, folder, level, link)
        document = entry in documents
        usable = link.leads is Leads.INSIDE or (document and link.leads is Leads.KNOWN)
        if usable and link.facts is not None and not link.is_folder:
            collector.add(storable(where), link.facts)
        elif link.leads is Leads.INSIDE and link.is_folder:
            pass  # what it leads to is counted where it really lies
        elif link.leads is Leads.CLOSED and link.target:
            self._lose(folder, collector, where, "its target can't be looked at")
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
            # As a pull for several agents makes it.
            notice = known(storable(link.target), storable(shared))
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

    def _shared(self) -> str | None:
        """Return the real path of the folder that the links of this agent's folder lead to."""
        from registry.disk.agents import shared_folder

        shared = shared_folder(self.root)
        return None if shared is None else os.path.realpath(shared)

    def _elsewhere(self, folder: str, target: str) -> None:
        self.notices.append(Notice(storable(folder), known(storable(target))))

    def _too_deep(self, folder: str, collector: Collector | None, where: str) -> None:
        message = f"nothing is looked for deeper than {DEPTH_SEEN} folders below the source"
        fix = "move it up, or register a folder nearer to it as a source"
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
