"""Walk a source: every skill folder with what stat says of its files, in a stable order.

A walk reads no file and follows no link out of the sources. It yields children before their
parent, in the order of `paths.position`, so that it can be merged with the database's rows.
"""

import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from stat import S_ISDIR
from typing import Final, TypeAlias

from registry.disk.links import Leads, Link, finding, follow
from registry.disk.paths import ROOT, entry_order, is_ignored, join, storable
from registry.disk.scanned import Collector, Notice, RootMissing, RootUnreadable, ScannedFolder
from registry.model import DOCUMENT_NAMES, Diagnostic
from registry.settings import Limits

DEPTH_SEEN: Final = 32
"""How deep the walk looks for skills that lie too deep, so that it can name them."""

Entry: TypeAlias = "os.DirEntry[str]"


class Walk:
    """One walk of the source at ``root`` (absolute, resolved).

    ``roots`` are the resolved roots of all sources: links that lead below one of them are counted
    there, and another source's root inside this one is left to that source. Iterating raises
    `RootMissing` or `RootUnreadable`; ``notices`` are complete when it has ended.
    """

    def __init__(self, root: str, limits: Limits, roots: Sequence[str] = ()) -> None:
        self.root = root
        self.limits = limits
        self.notices: list[Notice] = []
        self._roots = tuple({root, *roots})
        self._others = frozenset(roots) - {root}
        self._direct = root

    def __iter__(self) -> Iterator[ScannedFolder]:
        try:
            os.scandir(self.root).close()
        except (FileNotFoundError, NotADirectoryError) as error:
            raise RootMissing(self.root) from error
        except OSError as error:
            raise RootUnreadable(error.strerror or str(error)) from error
        yield from self._visit(self.root, ROOT, 0, None, "")

    def one(self, folder: str) -> ScannedFolder | None:
        """Look at one folder alone; None: it is gone, or holds no skill any more."""
        return next((found for found in self.below(folder) if found.folder == folder), None)

    def below(self, folder: str) -> Iterator[ScannedFolder]:
        """Look at one folder and everything in it, no other way than a whole walk would."""
        path = join(self.root, folder)
        if folder == ROOT:
            return self._visit(path, folder, 0, None, "")
        parent, level = os.path.dirname(path), folder.count("/") + 1
        if parent != self._direct and os.path.realpath(parent) != parent:
            return iter(())
        self._direct = parent  # neighbours are looked at one after the other
        if os.path.islink(path):
            return self._alone(parent, folder, level)
        return self._visit(path, folder, level, None, "")

    def _alone(self, parent: str, folder: str, level: int) -> Iterator[ScannedFolder]:
        with suppress(FileNotFoundError), os.scandir(parent) as listing:
            above, _, name = folder.rpartition("/")
            for entry in listing:
                if entry.name == name:
                    found = self._link(entry, above or ROOT, level - 1, None, name, [])
                    if found is not None:
                        yield found

    def _visit(  # noqa: C901, PLR0912  # one flat loop: it runs once for every entry on disk
        self, path: str, folder: str, level: int, outer: Collector | None, below: str
    ) -> Iterator[ScannedFolder]:
        """Visit a folder; ``below`` is its path (with a slash) in the skill of ``outer``."""
        try:
            with os.scandir(path) as listing:
                entries = list(listing)
        except OSError as error:
            self._unreadable(folder, outer, below.rstrip("/"), error)
            return
        if len(entries) > 1:
            entries.sort(key=lambda entry: entry_order(entry.name))
        collector = outer
        documents = self._documents(entries, path, folder)
        if documents:
            collector, below = Collector(path, self.limits), ""
        skills = 0
        for entry in entries:
            name = entry.name
            try:
                if entry.is_symlink():
                    found = self._link(entry, folder, level, collector, below + name, documents)
                    if found:
                        skills += 1
                        yield found
                elif entry.is_dir(follow_symlinks=False):
                    if is_ignored(name) or level >= DEPTH_SEEN or entry.path in self._others:
                        continue
                    child = name if folder == ROOT else f"{folder}/{name}"
                    inner = f"{below}{name}/" if collector else ""
                    for found in self._visit(entry.path, child, level + 1, collector, inner):
                        skills += 1
                        yield found
                elif collector is not None and name != ".git":  # of a submodule or work tree
                    collector.add(storable(below + name), entry.stat(follow_symlinks=False))
            except FileNotFoundError:
                continue  # vanished between the listing and the look: the next sync sees to it
            except OSError as error:
                self._unreadable(folder, collector, below + name, error)
        if documents and collector:
            yield self._skill(folder, level, documents, collector)
        elif level == 1 and not skills:
            yield ScannedFolder(storable(folder), None, name=storable(folder))

    def _documents(self, entries: list[Entry], path: str, folder: str) -> list[Entry]:
        """Return the skill files among ``entries``, the one that counts first.

        A link to another skill's file makes no skill: that one is counted where it really lies.
        """
        documents = [entry for entry in entries if entry.name in DOCUMENT_NAMES]
        return self._own_documents(documents, path, folder) if documents else documents

    def _own_documents(self, named: list[Entry], path: str, folder: str) -> list[Entry]:
        documents = []
        for entry in named:
            if entry.is_dir(follow_symlinks=False):
                continue
            if entry.is_symlink():
                link = follow(entry.path, path, self._roots)
                if link.leads is Leads.KNOWN and os.path.basename(link.target) in DOCUMENT_NAMES:
                    self._elsewhere(folder, link.target)
                    continue
            documents.append(entry)
        documents.sort(key=lambda entry: DOCUMENT_NAMES.index(entry.name))
        return documents

    def _skill(
        self, folder: str, level: int, documents: list[Entry], collector: Collector
    ) -> ScannedFolder:
        collector.finish()
        problems = collector.problems
        document: str | None = documents[0].name
        if any(problem.path == document and problem.severity == "error" for problem in problems):
            document = None
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
        if shown != folder:
            message = "the folder's name is not UTF-8 text"
            problems.append(Diagnostic("path-not-utf8", "error", message, fix="rename the folder"))
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
        link = follow(entry.path, collector.home if collector else None, self._roots)
        is_folder = link.facts is not None and S_ISDIR(link.facts.st_mode)
        if collector is None:
            return self._outer_link(entry, folder, level, link, is_folder)
        document = entry in documents
        usable = link.leads is Leads.INSIDE or (document and link.leads is Leads.KNOWN)
        if usable and link.facts is not None and not is_folder:
            collector.add(storable(where), link.facts)
        elif link.leads is Leads.INSIDE and is_folder:
            pass  # what it leads to is counted where it really lies
        elif entry.name not in DOCUMENT_NAMES or document:
            collector.problems.append(finding(link, storable(where), fatal=document))
        return None

    def _outer_link(
        self, entry: Entry, folder: str, level: int, link: Link, is_folder: bool
    ) -> ScannedFolder | None:
        child = entry.name if folder == ROOT else f"{folder}/{entry.name}"
        if link.leads is Leads.KNOWN:
            if is_folder:
                self._elsewhere(child, link.target)
            return None
        if link.facts is not None and not is_folder:
            return None
        problem = finding(link, None, fatal=False)
        holds_skill = link.leads is Leads.OUTSIDE and any(
            os.path.lexists(f"{link.target}/{name}") for name in DOCUMENT_NAMES
        )
        if holds_skill and level + 1 <= DEPTH_SEEN:
            return ScannedFolder(storable(child), None, (), [problem], storable(entry.name))
        self.notices.append(Notice(storable(child), problem))
        return None

    def _elsewhere(self, folder: str, target: str) -> None:
        message = f"a link to {storable(target)}; what it holds is counted there"
        self.notices.append(Notice(storable(folder), Diagnostic("link-known", "info", message)))

    def _unreadable(
        self, folder: str, collector: Collector | None, where: str, error: OSError
    ) -> None:
        if isinstance(error, FileNotFoundError | NotADirectoryError):
            return
        message = f"it can't be read: {error.strerror}"
        problem = Diagnostic(
            "unreadable", "warning", message, fix="grant read access", path=storable(where) or None
        )
        if collector is not None:
            collector.problems.append(problem)
        self.notices.append(Notice(storable(folder), problem, lost=True))
