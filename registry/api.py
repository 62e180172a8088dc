"""The class `SkillRegistry`: the public Python interface, with a method for each operation."""

import os
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import wraps
from types import FunctionType, MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Self, TypeVar, Unpack

from registry.catalog.listing import chosen, iterate, listed, searched
from registry.core import UNEXPECTED, Core
from registry.db.read import listing, summary
from registry.db.read.journal import has_entries
from registry.db.read.listing import FilterArguments, Filters
from registry.db.read.proposals import has_approved
from registry.db.read.skills import Sort
from registry.db.read.sources import list_sources
from registry.errors import RegistryError, UsageProblem
from registry.model import Found, Page, Parameter, Scope, Skill, SkillDetail, SkillVersion, Source
from registry.settings import Settings, load_settings
from registry.text import is_encodable

if TYPE_CHECKING:
    from registry.catalog.browse import Browse
    from registry.catalog.check import Checked
    from registry.catalog.copies import Copies
    from registry.catalog.evals import Evaluation
    from registry.catalog.prompt import PromptText, Style
    from registry.catalog.search.explain import Placed
    from registry.catalog.visibility.rules import Decision
    from registry.catalog.why import Explanation, LinkTo
    from registry.changes.fix import Fix
    from registry.changes.history import History
    from registry.changes.tokens import Tokens
    from registry.changes.trashed import Trashed
    from registry.db.interface import DatabaseInfo
    from registry.db.read.history import RecordedChange, Revision
    from registry.db.read.skills import StoredSkill
    from registry.db.read.usage import UsageCount
    from registry.install.export import Export, ZippedSkill
    from registry.install.targets import InstallResult
    from registry.publish.git.export import GitExport
    from registry.remotes.sources import Choose, SourceChange
    from registry.sync.report import Progress, SyncReport
    from registry.sync.sources import Discovered
    from registry.sync.watch import Watching
    from registry.toolsets.base import Toolset

# Each method imports the code of its operation only when it is called, because a listing needs only
# a small part of the code.

MAX_NUMBER: Final = 1 << 63
"""Smallest integer that is too large for the database (2 to the power of 63)."""

C = TypeVar("C")


def _guarded(facade: type[C]) -> type[C]:
    """Wrap all public methods of the class ``facade`` with `_guard`."""
    for name, method in list(vars(facade).items()):
        if isinstance(method, FunctionType) and not name.startswith("_") and name != "close":
            setattr(facade, name, _guard(method))
    return facade


def _guard(method: FunctionType) -> Callable[..., Any]:
    """Wrap a method: check its arguments, and explain failures.

    The wrapper refuses calls on a closed registry, and converts paths to text.

    The wrapper raises `UsageProblem` if an argument is a text in place of a list, or can't be
    stored. It raises `DatabaseProblem` if the database is damaged.
    """
    code = method.__code__
    positions = code.co_varnames[1 : code.co_argcount]
    lists = {
        name
        for name, kind in method.__annotations__.items()
        if str(kind).startswith("collections.abc.Sequence")
    }

    @wraps(method)
    def call(registry: Any, *arguments: Any, **named: Any) -> Any:
        registry.core.check_open()
        for name, value in (*zip(positions, arguments, strict=False), *named.items()):
            if name in lists and isinstance(value, str | bytes | os.PathLike):
                raise UsageProblem(message=f"{name} must be a list")
        arguments = tuple(map(_as_text, arguments))
        named = {name: _as_text(value) for name, value in named.items()}
        try:
            return method(registry, *arguments, **named)
        except RegistryError:
            raise
        except UNEXPECTED as error:
            problem: RegistryError | None = registry.core.damage()
            if not all(map(_is_storable, (*arguments, *named.values()))):
                problem = UsageProblem(message="an argument has half characters, or is too large")
            if problem is None:
                raise
            raise problem from error

    return call


def _as_text(value: Any) -> Any:
    """Return a path, or the paths in a list, as text; return other values unchanged."""
    if isinstance(value, list | tuple):
        return [_as_text(one) for one in value]
    return os.fspath(value) if isinstance(value, os.PathLike) else value


def _is_storable(value: Any) -> bool:
    if isinstance(value, list):
        return all(map(_is_storable, value))
    if isinstance(value, int):
        return -MAX_NUMBER <= value < MAX_NUMBER
    return not isinstance(value, str) or is_encodable(value)


@_guarded
class SkillRegistry:
    """A catalogue of the skills of all registered sources.

    Open it with `SkillRegistry.open`. Several threads may share an object, and several processes
    may share a database. Methods raise only subclasses of `registry.errors.RegistryError`, unless
    an argument has a wrong type.
    """

    def __init__(self, core: Core) -> None:
        self.core = core

    @classmethod
    def open(
        cls,
        path_or_url: str | os.PathLike[str] | None = None,
        *,
        settings: Settings | None = None,
        workdir: str | os.PathLike[str] | None = None,
        upgrade: bool = False,
    ) -> Self:
        """Open the registry at a path or URL; None means the platform's default path."""
        settings = settings or load_settings(None)
        registry = cls(Core.open(path_or_url, settings, workdir, upgrade=upgrade))
        try:
            with registry.core.explained():
                if has_entries(registry.core.reader) and registry.core.backend.writable:
                    registry.finish_changes()
        except BaseException:
            registry.core.backend.close()
            raise
        return registry

    def seen_from(self, *folders: str) -> Self:
        """Return this registry with ``folders`` as the user's working folders.

        If you close one of the two registry objects, the other is also closed.

        If skills of two projects have the same name, only the skill of the first folder's project
        is visible.
        """
        return type(self)(self.core.seen_from(*folders))

    def answering_others(self) -> Self:
        """Return this registry for a server that answers other users.

        If you close one of the two registry objects, the other is also closed.

        The returned registry hides yanked skills from all users, even from the owner of their
        source.
        """
        return type(self)(self.core.answering_others())

    def close(self) -> None:
        """Store usage counts and close all connections."""
        self.core.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def settings(self) -> Settings:
        """The settings with which the registry was opened."""
        return self.core.settings

    @property
    def path(self) -> str:
        """The path of the database file, or the address of the server without the password."""
        return self.core.backend.path

    # Read the catalogue

    def list(
        self,
        filters: Filters | None = None,
        *,
        sort: Sort = "name",
        reverse: bool = False,
        limit: int | None = None,
        offset: int = 0,
        **wanted: Unpack[FilterArguments],
    ) -> Page[Skill]:
        """Return a page of skills, sorted by name.

        You can also sort by ``created`` or ``updated`` (the newest first).

        Give `Filters`, or their fields as keywords: ``list(tags=["office"])``.
        """
        self.core.warn_if_empty()
        return listed(
            self.core, filters, wanted, sort=sort, reverse=reverse, limit=limit, offset=offset
        )

    def iter(
        self,
        filters: Filters | None = None,
        *,
        sort: Sort = "name",
        reverse: bool = False,
        **wanted: Unpack[FilterArguments],
    ) -> Iterator[Skill]:
        """Yield the skills of `list`; they are read in batches of some hundred.

        If a skill is renamed during the iteration, it may be repeated or missed. In a sort by time,
        this may also happen to a skill that changes.
        """
        self.core.warn_if_empty()
        return iterate(self.core, filters, wanted, sort=sort, reverse=reverse)

    def left_out(self, filters: Filters | None = None) -> int:
        """Return how many skills `list` leaves out because they belong to other projects.

        A project counts as another project if it contains no working folder of this registry.
        """
        return listing.count_in_other_projects(self.core.reader, chosen(self.core, filters, {}))

    def search(
        self,
        query: str | Sequence[str] = (),
        filters: Filters | None = None,
        *,
        queries: Sequence[str] = (),
        limit: int = 20,
        offset: int = 0,
        **wanted: Unpack[FilterArguments],
    ) -> Found:
        """Return a page of search results, the best first.

        Filters have the same form as for `list`. If you give several queries (at most 5), their
        results alternate, and each skill is returned once.
        """
        self.core.warn_if_empty()
        asked = [*([query] if isinstance(query, str) else query), *queries]
        return searched(self.core, asked, filters, wanted, limit=limit, offset=offset)

    def copies(self, name: str | None = None) -> "Sequence[Copies]":
        """Return skills with copies in several folders, and near-duplicates under other names.

        If ``name`` is given, return only the copies of this skill. Raises `SkillNotFound`,
        `SkillAmbiguous`.
        """
        from registry.catalog.copies import copies

        return copies(self.core.reader, name)

    def get(self, name: str) -> SkillDetail:
        """Return all details of a skill, from its current files on disk.

        Raises `SkillNotFound`, `SkillAmbiguous`, `SkillMissing`.
        """
        from registry.catalog.reading import get

        return get(self.core, name)

    def read(self, name: str) -> str:
        """Return the current text of a skill's SKILL.md on disk.

        Raises `SkillInvalid`, `SkillInaccessible`, `FileTooLarge`, `NotUtf8`, and the errors of
        `get`.
        """
        from registry.catalog.reading import located, read_text

        return read_text(self.core, located(self.core, name))

    def read_bytes(self, name: str) -> bytes:
        """Return the bytes of a skill's SKILL.md, even if the skill is invalid.

        Raises the errors of `read`, except `NotUtf8`.
        """
        from registry.catalog.reading import located, read_bytes

        return read_bytes(self.core, located(self.core, name))

    def read_file(self, name: str, path: str) -> bytes:
        """Return the bytes of a supporting file, by its path relative to the skill's folder.

        Raises `OutsideSkill`, `FileNotFoundInSkill`, `FileTooLarge`, and the errors of `get`.
        """
        from registry.catalog.reading import check_path, located, read_file

        check_path(path)
        return read_file(self.core, located(self.core, name), path)

    def resolve(self, name: str) -> Skill:
        """Return the stored skill with this name or ref, without reading its folder.

        For ``NAME@LABEL``, return this version of the skill, which you can then install or export.
        """
        from registry.catalog.reading import chosen

        return chosen(self.core, name)

    def links(self, name: str) -> "Sequence[LinkTo]":
        """Return the links in this machine's sources that lead to a skill, sorted by path.

        Raises `SkillNotFound`, `SkillAmbiguous`.
        """
        from registry.catalog.why import links_to

        return links_to(self.core, self._stored(name))

    def why(self, subject: str, personality: str | None = None) -> "Sequence[Explanation]":
        """Explain why a skill (by name, ref or path) is listed or not listed for a personality.

        Raises `SkillNotFound`, `PersonalityNotFound`.
        """
        from registry.catalog.why import explain, judged

        return judged(self.core, explain(self.core, subject), personality)

    def why_found(
        self,
        subject: str,
        query: str,
        filters: Filters | None = None,
        personality: str | None = None,
        **wanted: Unpack[FilterArguments],
    ) -> "Sequence[Placed]":
        """Return a skill's rank for a query, and the words of the query that it doesn't contain.

        Raises the errors of `why` and `search`.
        """
        from registry.catalog.search.explain import placed

        return placed(self.core, subject, query, filters, wanted, personality)

    def evaluate(
        self,
        names: Sequence[str] = (),
        filters: Filters | None = None,
        **wanted: Unpack[FilterArguments],
    ) -> "Evaluation":
        """Search with the test prompts that skills contain.

        Return how often the prompts find each skill.
        """
        from registry.catalog.evals import evaluate

        return evaluate(self.core, names, filters, wanted)

    def check(
        self, targets: Sequence[str] = (), *, select: Sequence[str] = (), ignore: Sequence[str] = ()
    ) -> "Sequence[Checked]":
        """Check folders, or registered skills by name, ref or source; by default, all sources.

        If ``select`` is given, report only findings with these codes. Leave out findings with codes
        in ``ignore``. A code that ends with a hyphen, such as ``link-``, means all codes with this
        prefix. Raises `SkillNotFound`, `FolderMissing`, `SourceInvalid`, `SourceElsewhere`,
        `FindingUnknown`.
        """
        from registry.catalog.check import check

        return list(check(self.core, targets, select=select, ignore=ignore))

    def fixes(
        self, targets: Sequence[str] = (), *, select: Sequence[str] = (), ignore: Sequence[str] = ()
    ) -> "Sequence[Fix]":
        """Return the fixes that need no judgement, without changing files.

        Raises the errors of `check`.
        """
        from registry.changes.fix import fixes

        return fixes(self.core, targets, select=select, ignore=ignore)

    def fix(self, one: "Fix") -> None:
        """Apply a fix from `fixes`, without changing other bytes; `restore_revision` undoes it.

        Raises `SkillChangedOnDisk` if the file has changed since `fixes` read it, and the errors of
        `update`.
        """
        from registry.changes.fix import apply

        apply(self.core, one)

    def tags(self) -> Sequence[listing.Facet]:
        """Return the number of visible skills for each tag."""
        return listing.facet(self.core.reader, "tag")

    def kinds(self) -> Sequence[listing.Facet]:
        """Return the number of visible skills for each kind."""
        return listing.facet(self.core.reader, "kind")

    def categories(self) -> Sequence[listing.Facet]:
        """Return the number of visible skills for each category."""
        return listing.facet(self.core.reader, "category")

    def stats(self) -> summary.Stats:
        """Return counts, sizes and times of the registry."""
        return summary.stats(self.core.reader)

    def browse(self, personality: str | None = None, source: str | None = None) -> "Browse":
        """Return a view of the catalogue: of a personality, of a source, or of all skills.

        Raises `PersonalityNotFound`, `SourceNotFound`.
        """
        from registry.catalog.browse import Browse

        return Browse(self.core, personality, source)

    def usage_counts(self) -> "Sequence[UsageCount]":
        """Return how often tools listed, found and read each skill, the most read first."""
        from registry.db.read.usage import usage

        return usage(self.core.reader)

    def _stored(self, name: str) -> "StoredSkill":
        from registry.catalog.resolve import resolve

        return resolve(self.core.reader, name)

    # Changes: either disk and database change together, or neither changes

    def create(
        self,
        name: str,
        *,
        description: str,
        body: str = "",
        tags: Sequence[str] = (),
        kind: str | None = None,
        parameters: Sequence[Parameter] = (),
        source: str | None = None,
        files: Mapping[str, bytes] = MappingProxyType({}),
    ) -> SkillDetail:
        """Create a skill in a folder with its name, with supporting ``files`` (bytes by path).

        Raises `InvalidName`, `SkillExists`, `SourceUnclear`, `SourceNotFound`, `ChangeRefused`.
        """
        from registry.changes.create import create_skill

        return create_skill(
            self.core,
            name,
            description=description,
            body=body,
            tags=tags,
            kind=kind,
            parameters=parameters,
            source=source,
            files=files,
        )

    def update(
        self,
        name: str,
        *,
        description: str | None = None,
        body: str | None = None,
        tags: Sequence[str] | None = None,
        kind: str | None = None,
        parameters: Sequence[Parameter] | None = None,
        files: Mapping[str, bytes | None] = MappingProxyType({}),
        if_hash: str | None = None,
        force: bool = False,
        copies: bool = False,
    ) -> SkillDetail:
        """Change the given fields of a skill; every other byte stays unchanged.

        In ``files``, the value None removes a file. If ``copies``, the skill's copies on this
        machine also change, all or none. Raises `SkillChangedOnDisk` if the SKILL.md doesn't have
        the hash ``if_hash``, by default its hash at the last sync. With ``force``, a changed
        SKILL.md is not an error. Also raises the errors of `get` and `create`.
        """
        from registry.changes.update import update_skill

        return update_skill(
            self.core,
            self._stored(name),
            description=description,
            body=body,
            tags=tags,
            kind=kind,
            parameters=parameters,
            files=files,
            if_hash=if_hash,
            force=force,
            copies=_every(copies),
        )

    def rename(self, name: str, new_name: str, *, if_hash: str | None = None) -> SkillDetail:
        """Rename a skill in its SKILL.md and on disk; the skill keeps its history.

        Copies of the skill keep their name. Raises `InvalidName`, `SkillExists`,
        `SkillChangedOnDisk`, `ChangeRefused`, and the errors of `get`.
        """
        from registry.changes.update import rename_skill

        return rename_skill(self.core, self._stored(name), new_name, if_hash=if_hash)

    def delete(
        self, name: str, *, if_hash: str | None = None, force: bool = False, copies: bool = False
    ) -> "Trashed":
        """Move a skill to the trash; with ``copies``, also its copies.

        Raises the errors of `update`.
        """
        from registry.changes.trash import delete

        stored = self._stored(name)
        return delete(self.core, stored, if_hash=if_hash, force=force, copies=_every(copies))

    def restore(self, name: str, *, source: str | None = None) -> SkillDetail:
        """Restore the skill that was deleted last with this name, trash id, or source/folder.

        If the folder or source of a skill was removed without the registry, the skill is written
        from the database into ``source`` (default: its former source). Raises `NotInTrash` if no
        deleted skill matches, `SkillExists` if its folder exists again, `NotAllKept` if some files
        aren't stored, and `SourceUnclear`.
        """
        from registry.changes.create import detail_after
        from registry.changes.trash import restore_named

        return detail_after(self.core, restore_named(self.core, name, source=source))

    def trash(self) -> "Sequence[Trashed]":
        """Return the deleted skills in the trash, the latest first."""
        from registry.changes.trashed import list_trash

        return list_trash(self.core)

    def empty_trash(self, chosen: "Sequence[Trashed] | None" = None) -> int:
        """Remove deleted skills permanently, and return how many.

        ``chosen`` has the skills to remove; None means all skills in the trash.
        """
        from registry.changes.trash import empty_trash

        return empty_trash(self.core, chosen)

    def undo(self) -> "Sequence[RecordedChange]":
        """Undo the last command or call that changed skills; return its changes, the latest first.

        The ``kind`` and ``name`` of a returned change describe the change that was undone. Raises
        `NothingToUndo` if there is no such command. Raises `ChangeNotUndone` if a skill has changed
        since the command.
        """
        from registry.install.undo import last_change

        last = last_change(self.core)
        last.carry_out()
        return last.changes

    def finish_changes(self) -> int:
        """Finish or undo the unfinished changes of ended processes; return the number of changes.

        `open` also does this.
        """
        from registry.changes.unfinished import recover_all

        return recover_all(self.core)

    # Earlier versions of skills

    def history(self, name: str) -> "Sequence[Revision]":
        """Return the revisions of a skill, which may be removed, the newest first.

        Raises the errors of `get`.
        """
        return self._history(name).revisions

    def read_revision(self, name: str, number: int, path: str | None = None) -> bytes:
        """Return the bytes of a file in a revision; the default is the SKILL.md.

        Raises `RevisionNotFound`, `ContentMissing`, and the errors of `get`.
        """
        return self._history(name).read(number, path)

    def diff(self, name: str, old: int | None = None, new: int | None = None) -> str:
        """Return the diff between two revisions of a skill; see `History.diff`.

        ``NAME@LABEL`` compares this version with the current files.
        """
        from registry.catalog.resolve import split_label
        from registry.changes.history import compare

        parts = split_label(self.core.reader, name) if old is None and new is None else None
        if parts is not None:
            return compare(self.core, name, parts[0])
        return self._history(name).diff(old, new)

    def compare(self, name: str, other: str) -> str:
        """Return the diff between all files of two skills, such as two copies or versions."""
        from registry.changes.history import compare

        return compare(self.core, name, other)

    def restore_revision(self, name: str, number: int, *, copies: bool = False) -> SkillDetail:
        """Restore the files of a revision; see `History.restore`, and `update` for ``copies``."""
        from registry.changes.create import detail_after

        return detail_after(self.core, self._history(name).restore(number, copies=_every(copies)))

    def _history(self, name: str) -> "History":
        from registry.changes.history import History

        return History.of(self.core, name)

    def prune(
        self, *, keep: int = 20, before: str | None = None, as_admin: bool = False
    ) -> tuple[int, int]:
        """Delete all revisions of each skill except the newest ``keep`` ones.

        See `changes.history.prune`.
        """
        from registry.changes.history import prune

        return prune(self.core, keep=keep, before=before, as_admin=as_admin)

    # Versions: labels for the files that a skill had

    def versions(self, name: str) -> Sequence[SkillVersion]:
        """Return the versions of a skill, the newest first. Raises the errors of `resolve`."""
        from registry.db.read.labels import versions

        return versions(self.core.reader, self._stored(name).uid)

    def add_version(self, name: str, label: str) -> SkillVersion:
        """Give the current files of a skill a label, such as ``1.2``.

        If these files have the label already, nothing changes. Raises `VersionExists` if other
        files have the label, `VersionInvalid`, `SourceNotYours`, and the errors of `get`.
        """
        from registry.publish.versions import add_version

        return add_version(self.core, name, label)

    def deprecate_version(
        self, handle: str, reason: str, *, replacement: str | None = None, as_admin: bool = False
    ) -> SkillVersion:
        """Mark the version ``NAME@LABEL`` as deprecated; it stays in use, with a warning.

        Raises `VersionNotFound`, `SourceNotYours`, and the errors of `resolve`.
        """
        from registry.publish.versions import set_state

        return set_state(
            self.core,
            handle,
            "deprecated",
            reason=reason,
            replacement=replacement,
            as_admin=as_admin,
        )

    def yank_version(
        self, handle: str, reason: str, *, replacement: str | None = None, as_admin: bool = False
    ) -> SkillVersion:
        """Withdraw the version ``NAME@LABEL``.

        The version is installed only if a lock file lists it. If the skill has the files of this
        version now, only the owner of its source still finds the skill. Raises the errors of
        `deprecate_version`.
        """
        from registry.publish.versions import set_state

        return set_state(
            self.core, handle, "yanked", reason=reason, replacement=replacement, as_admin=as_admin
        )

    def reactivate_version(self, handle: str, *, as_admin: bool = False) -> SkillVersion:
        """Undo `deprecate_version` or `yank_version`. Raises the errors of `deprecate_version`."""
        from registry.publish.versions import set_state

        return set_state(self.core, handle, "active", as_admin=as_admin)

    # Install, export and import

    def pull(
        self, skills: Sequence[Skill], to: str, *, force: bool = False, agents: Sequence[str] = ()
    ) -> "Sequence[InstallResult]":
        """Install skills in the folder ``to``; each gets a folder with its name.

        If ``agents`` are given, ``to`` is a project, and the skills are installed into the
        project's folders for these agents.
        """
        from registry.install.pull import pull
        from registry.install.targets import InstallOptions, InstallTarget

        return pull(
            self.core, skills, InstallTarget.folder(to), InstallOptions(force=force, agents=agents)
        )

    def update_pulled(self, to: str) -> "Sequence[InstallResult]":
        """Update all skills that `pull` installed into the folder ``to``."""
        from registry.install.pull import update
        from registry.install.targets import InstallTarget

        return update(self.core, InstallTarget.folder(to))

    def remove_pulled(self, to: str, names: Sequence[str]) -> "Sequence[InstallResult]":
        """Remove the installed skills with these names from the folder ``to``."""
        from registry.install.pull import folders_of, remove
        from registry.install.targets import InstallTarget

        return remove(
            self.core, InstallTarget.folder(to), [*folders_of(InstallTarget.folder(to), names)]
        )

    def check_pulled(
        self, to: str, skills: Sequence[Skill] | None = None
    ) -> "Sequence[InstallResult]":
        """Compare the skills that are installed in a folder with ``skills``.

        If ``skills`` is None, compare all installed skills with the registry.
        """
        from registry.install.pull import check
        from registry.install.targets import InstallTarget

        return check(self.core, skills, InstallTarget.folder(to))

    def export(self, skills: Sequence[Skill], to: str) -> "Export":
        """Export skills for agent skill discovery (RFC 0.2.0) into the folder ``to``.

        The export has an index and, for each skill, its SKILL.md or an archive.
        """
        from registry.install.export import export

        return export(self.core, skills, to)

    def export_zip(
        self, name: str, to: str | None = None, *, overwrite: bool = False
    ) -> "ZippedSkill":
        """Export a skill, or the version NAME@LABEL, to the zip file ``to``.

        The default is NAME.zip in the current folder. The archive contains one folder with the
        skill's name. `import_skills` reads it. If the file exists, ``overwrite`` is required.
        Raises `ExportRefused` and the errors of `resolve`.
        """
        from registry.install.export import export_zip

        return export_zip(self.core, self.resolve(name), to, overwrite=overwrite)

    def export_git(
        self, to: str, kind: str = "catalogue", name: str = "", personality: str | None = None
    ) -> "GitExport":
        """Write a git repository, from which agents' own clients install, to the folder ``to``.

        ``kind`` and ``name`` choose the repository as in the addresses of the web catalogue:
        ``catalogue``, ``source``, ``tag``, ``personality`` or ``skill``.
        """
        from registry.publish.git.export import export_git
        from registry.publish.git.repository import build

        view = self.browse(name if kind == "personality" else personality)
        return export_git(build(view, kind, name), to)

    def is_address(self, name: str) -> bool:
        """Tell whether a name is a remote address, and not the name of a known skill or source."""
        from registry.remotes.sources import is_address

        return is_address(self.core, name)

    def skills_at(
        self,
        address: str,
        *,
        skills: Sequence[str] = (),
        every: bool = False,
        dry_run: bool = False,
        choose: "Choose | None" = None,
    ) -> Sequence[Skill]:
        """Register an address as a source, and return the selected skills of this source.

        ``skills`` are the names of the skills to select. If ``skills`` is empty and ``every`` is
        True, all skills are selected. Otherwise the source's only skill is selected; if there are
        several, the function ``choose`` selects some of them.
        """
        from registry.install.releases import skills_at

        return skills_at(
            self.core, address, skills=skills, every=every, dry_run=dry_run, choose=choose
        )

    def diff_upstream(self, name: str) -> str:
        """Return the diff between a skill and its upstream skill in a remote source.

        ``name`` is the name of a skill or of an installed copy.
        """
        from registry.install.upstream import diff_upstream

        return diff_upstream(self.core, name).text

    def import_archive(
        self, path: str, *, source: str | None = None, name: str | None = None
    ) -> SkillDetail:
        """Create a skill from an archive with a single skill, and return it."""
        from registry.install.imports import import_archive

        return import_archive(self.core, path, source=source, name=name)

    def import_skills(
        self,
        target: str,
        *,
        skills: Sequence[str] = (),
        every: bool = False,
        source: str | None = None,
        name: str | None = None,
        trust: bool = False,
    ) -> Sequence[SkillDetail]:
        """Create copies of the skills in an archive or at an address, and return them."""
        from registry.install.imports import import_skills

        return import_skills(
            self.core, target, skills=skills, every=every, source=source, name=name, trust=trust
        )

    # Prompts and tools for agents

    def toolset(
        self,
        name: str,
        *,
        source: str | None = None,
        scope: Scope | None = None,
        personality: str | None = None,
        workdir: str | None = None,
        read_only: bool = False,
        person: str | None = None,
        token: str | None = None,
    ) -> "Toolset":
        """Return a toolset: ``native``, ``basic``, ``miniclaw``, ``ethos`` or ``wave``.

        It is limited to the given source, scope or personality, and to the projects that contain
        ``workdir`` (default: the registry's). If ``read_only``, it has no tools that change skills.
        ``person`` and ``token`` name the user of a token, who becomes the author of proposals.
        Raises `ToolsetNotFound`, `SourceUnclear`, `SourceNotFound`, `PersonalityNotFound`.
        """
        from registry.toolsets.base import Context
        from registry.toolsets.open import open_toolset

        core = self.core if workdir is None else self.core.seen_from(workdir)
        limits = Context(
            core, source, scope, personality, read_only=read_only, person=person, token=token
        )
        return open_toolset(name, limits)

    def prompt(
        self,
        personality: str | None = None,
        *,
        style: "Style" = "xml",
        max_chars: int | None = None,
    ) -> "PromptText":
        """Return the list of skills for a system prompt, as XML or Markdown.

        The list has at most ``max_chars`` characters. Raises `PersonalityNotFound`.
        """
        from registry.catalog.prompt import prompt

        return prompt(self.core, personality, style=style, max_chars=max_chars)

    def decisions(self, personality: str | None = None) -> "Sequence[tuple[Skill, Decision]]":
        """Return all visible skills by name; each has a decision whether a personality sees it.

        A decision contains its reason. Raises `PersonalityNotFound`.
        """
        from registry.catalog.visibility import decisions as of

        named = None if personality is None else of.personality(self.core.settings, personality)
        return [(skill, choice) for _, skill, choice in of.decisions(self.core.reader, named)]

    def seen_by(self, personality: str, filters: Filters | None = None) -> Filters:
        """Return filters for `list` and `search` that select the skills that a personality sees.

        Raises `PersonalityNotFound`.
        """
        from registry.catalog.visibility.decisions import seen_by

        return seen_by(self.core, personality, filters or Filters())

    # Sources and sync

    def sources(self, *, counted: bool = True) -> Sequence[Source]:
        """Return all sources in order of precedence, the highest first.

        If ``counted``, each source has the number of its skills.
        """
        return list_sources(self.core.reader, counted=counted)

    def own_sources(self) -> Sequence[Source]:
        """Return the sources whose folders are on this machine, without counting their skills."""
        from registry.sync.sources import own_sources

        return own_sources(self.core)

    def add_source(
        self,
        path: str,
        *,
        name: str | None = None,
        scope: Scope | None = None,
        priority: int = 0,
    ) -> Source:
        """Register a folder, or fetch a remote address and register its checkout.

        The default scope is personal for a folder, and community for a remote source. Raises
        `SourceInvalid`, `SourceExists`, `AddressInvalid`, `RemoteProblem`.
        """
        from registry.remotes.sources import add

        return add(self.core, path, name=name, scope=scope, priority=priority)

    def update_source(self, name: str, **change: Unpack["SourceChange"]) -> Source:
        """Change the name, scope, priority, folder, pinned version, team or owner of a source.

        ``ref`` pins a repository to a branch, tag or commit; "" removes the pin. ``folder`` is the
        new folder of a local source; its skills keep their history.

        The files of the new pin are fetched and synced at once; if they can't be fetched, the pin
        doesn't change, and this raises `RemoteProblem`. On a server, only the members of ``team``
        see the source; if it is empty, all roles see it. An admin can set another ``owner``. Raises
        `SourceNotFound`, `SourceExists`, `AddressInvalid`, `SourceNotYours`. Raises `AdminNeeded`
        if ``as_admin`` is given and the role isn't an admin.
        """
        from registry.remotes.sources import update

        return update(self.core, name, **change)[0]

    def trust_source(
        self,
        name: str,
        *,
        revoke: bool = False,
        as_admin: bool = False,
        shown: Collection[str | None] | None = None,
        refs: Collection[str] | None = None,
    ) -> int:
        """Trust the quarantined skills of a remote source, and return the number of these skills.

        The trust is for the current files of the skills. If a later version of a skill has other
        files and security errors, the skill is quarantined again. If ``refs`` is given, only these
        skills are trusted. If ``shown`` is given, the skills are trusted only if ``shown`` has
        exactly their tree hashes. If ``revoke``, the method instead quarantines the skills with
        security errors again. Raises `SourceNotFound`. Raises
        `TrustOutdated` if the skills have other hashes than ``shown``.
        """
        from registry.remotes.sources import trust

        return trust(self.core, name, revoke=revoke, as_admin=as_admin, shown=shown, refs=refs)

    def sources_asked(self, sources: Sequence[Source]) -> Sequence[Source]:
        """Query remote sources for newer versions; return the sources with ``behind`` set.

        ``behind`` tells whether the remote source has a newer version.
        """
        from registry.remotes.sources import asked

        return asked(self.core, sources)

    def adopt_source(self, name: str, *, as_admin: bool = False) -> Source:
        """Adopt a source that another machine added under this host's name.

        Afterwards, this machine syncs the source.

        Sources need to be adopted only on a server, and in a database from another machine: there,
        a remote source gets a new checkout. If ``as_admin``, you can also adopt a source of another
        role. Raises `SourceNotFound`, `SourceElsewhere`, `SourceNotYours`, `AdminNeeded`.
        """
        from registry.remotes.sources import adopt

        return adopt(self.core, name, as_admin=as_admin)

    def remove_source(self, name: str, *, as_admin: bool = False) -> Source:
        """Remove a source and its skills from the registry.

        Folders on disk stay, except the checkout of a remote source. Raises `SourceNotFound`,
        `SourceNotYours`, `AdminNeeded`.
        """
        from registry.remotes.sources import remove

        return remove(self.core, name, as_admin=as_admin)

    def discover(self, home: str, project: str | None = None) -> "Sequence[Discovered]":
        """Return the well-known skill folders that exist in ``home`` and ``project``."""
        from registry.sync.sources import discover

        return list(discover(self.core, home, project))

    def sync(
        self,
        *targets: str,
        scope: Scope | None = None,
        name: str | None = None,
        dry_run: bool = False,
        verify: bool = False,
        allow_prune: bool = False,
        wait: bool = False,
        progress: "Progress | None" = None,
    ) -> "SyncReport":
        """Sync the targets (names or folders of sources), or all sources, with the database.

        Remote sources are fetched first. A new folder or address becomes a source. Raises
        `SourceNotFound` and `SourceInvalid`. Raises `SourceExists` if ``name`` is given and the
        source has another name. Raises `AddressInvalid` and `RemoteProblem` for a new address.
        Raises `SyncRunning` if another sync runs and ``wait`` is False.
        """
        from registry.install.pull_records import interrupted_targets
        from registry.remotes.sources import fetch_and_sync
        from registry.sync.plan import SyncOptions

        if not dry_run and interrupted_targets():
            from registry.install.pull import finish_interrupted_pulls

            finish_interrupted_pulls(self.core)
        options = SyncOptions(dry_run=dry_run, verify=verify, allow_prune=allow_prune)
        report = fetch_and_sync(
            self.core, targets, options, scope=scope, name=name, wait=wait, progress=progress
        )
        if not dry_run and has_approved(self.core.reader):
            from registry.publish.proposals import finish_approvals

            finish_approvals(self.core)
        if not dry_run and self.core.settings.semantic:
            from registry.catalog.search.meaning import store

            store(self.core, progress)
        return report

    def watch(self, on_change: "Callable[[SyncReport], object]") -> "Watching":
        """Sync in a thread whenever files change, and call ``on_change`` with each report.

        The watch ends at the end of its ``with`` block, which raises an error of ``on_change``, if
        any. See `Watching`.
        """
        from registry.sync.watch import Watching

        return Watching(self.core, on_change)

    # Manage the database itself

    def tokens(self) -> "Tokens":
        """Return the tokens for the web catalogue; see `changes.tokens`."""
        from registry.changes.tokens import Tokens

        return Tokens(self.core)

    def create_database(self) -> None:
        """Create the database or upgrade its schema, without waiting for the first write."""
        self.core.create_database()

    def database_info(self) -> "DatabaseInfo":
        """Return the database's path, size, schema revision and row counts."""
        return self.core.backend.info()

    def check_database(self, *, contents: bool = True) -> Sequence[str]:
        """Return descriptions of damage in the database, and of unfinished changes of other users.

        If there are none and ``contents`` is True, also look for stored files that don't match
        their hashes.
        """
        from registry.changes.unfinished import foreign_changes
        from registry.db.read.corruption import find_corruption, hash_mismatches

        found = [*self.core.backend.check(), *foreign_changes(self.core)]
        # Leave out the stored texts and bytes, because `hash_mismatches` checks them, and a sync
        # can store them again.
        rest = None if found else find_corruption(self.core.reader, {"contents", "documents"})
        found += [rest] if rest else []
        limits = self.core.settings.limits
        return found if found or not contents else list(hash_mismatches(self.core.reader, limits))

    def backup(self, target: str, *, overwrite: bool = False) -> None:
        """Write a consistent copy of the database to the file ``target``.

        The file must not exist, unless ``overwrite``.
        """
        from registry.db.open import file_path

        self.core.backend.backup(file_path(target), overwrite=overwrite)

    def restore_backup(self, file: str, *, overwrite: bool = False) -> str | None:
        """Replace the content of this database file by a backup of a registry.

        If this database contains a registry already, ``overwrite`` is required. It is first copied
        to a file beside it; the path of the copy is returned. Remote sources that have no checkout
        on this machine get an empty one, and the next sync fetches their files. Raises
        `UsageProblem`, `DatabaseProblem`.
        """
        from registry.remotes.restoring import restore

        return restore(self.core, file, overwrite=overwrite)


def _every(copies: bool) -> Callable[[object], bool] | None:
    return (lambda _copy: True) if copies else None
