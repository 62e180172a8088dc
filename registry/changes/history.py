"""The history of a skill: list its revisions, compare two revisions, and restore a revision."""

import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from registry.catalog.reading import CurrentSkill, unusable
from registry.catalog.resolve import resolve, split_label, version_of
from registry.changes.untrusted import check_untrusted
from registry.core import Core
from registry.db.read.history import (
    Revision,
    Tombstone,
    content,
    latest_tombstone,
    revisions,
    stored_files,
    turns,
)
from registry.db.read.skills import StoredSkill
from registry.db.read.sources import is_admin
from registry.disk.paths import ROOT, check_paths, join
from registry.document.differing import difference
from registry.errors import (
    ChangeRefused,
    ContentMissing,
    NotAllKept,
    RegistryError,
    RevisionNotFound,
    SkillMissing,
    SkillNotFound,
    VersionNotStored,
)
from registry.model import Origin, SkillFile, Source
from registry.sync.sources import check_admin, check_writable, find, own_sources, target_source

if TYPE_CHECKING:
    from registry.changes.commit import Which


@dataclass(frozen=True, slots=True)
class History:
    """The revisions of a skill, the newest first, including the files on disk now.

    ``name`` is the ref of the skill. ``stored`` is the stored skill, or None if its folder was
    removed. For a removed skill, ``gone`` records its former source and folder. ``gone.since`` is
    None until a sync notices that the folder is missing.
    """

    core: Core
    name: str
    revisions: Sequence[Revision]
    stored: StoredSkill | None
    gone: Tombstone | None = None

    @classmethod
    def of(cls, core: Core, handle: str) -> Self:
        """Return the history of a skill, even if its folder was removed.

        Raises the errors of `CurrentSkill.of`.
        """
        try:
            stored = CurrentSkill.of(core, handle).stored
        except (SkillMissing, SkillNotFound):
            found = cls.of_gone(core, handle)
            if found is None:
                raise
            return found
        return cls(core, stored.skill.ref, revisions(core.reader, stored.uid), stored)

    @classmethod
    def of_gone(
        cls,
        core: Core,
        handle: str,
        *,
        source: str | None = None,
        among: Collection[str] | None = None,
        skipped_uids: Collection[str] = (),
    ) -> Self | None:
        """Return the history of a skill whose folder was removed; None if there is no such skill.

        If several match, a skill of ``source`` comes first. If ``among`` is given, consider only
        skills of these sources. Skip the skills with ``skipped_uids``.
        """
        tombstone = _missing(core, handle)
        if tombstone is not None and tombstone.uid in skipped_uids:
            tombstone = None
        if tombstone is not None and among is not None and tombstone.source not in among:
            return None
        if tombstone is None and source is not None and (among is None or source in among):
            tombstone = latest_tombstone(core.reader, handle, {source}, skipped_uids)
        tombstone = tombstone or latest_tombstone(core.reader, handle, among, skipped_uids)
        found = [] if tombstone is None else revisions(core.reader, tombstone.uid)
        return cls(core, handle, found, None, tombstone) if found else None

    @classmethod
    def of_missing(cls, core: Core, stored: StoredSkill) -> Self | None:
        """Return the history of a skill with a missing folder; None if no revision is stored."""
        found = revisions(core.reader, stored.uid)
        return cls(core, stored.skill.ref, found, None, _tombstone(stored)) if found else None

    def revision(self, number: int) -> Revision:
        """Return the revision with this number. Raises `RevisionNotFound` if there is none."""
        known = {one.number: one for one in self.revisions}
        if number not in known:
            raise RevisionNotFound(name=self.name, number=number, known=list(known))
        return known[number]

    @property
    def current(self) -> Revision:
        """The current revision of a skill; for a removed skill, its last revision.

        Raises `SkillInvalid` if the skill has no current revision.
        """
        for one in self.revisions:
            if one.current or (self.gone is not None and one.tree_hash == self.gone.tree_hash):
                return one
        if self.stored is not None:
            raise unusable(self.core.reader, self.stored, self.name)
        return self.revisions[0]

    def before(self, number: int) -> Revision | None:
        """Return the revision that the skill had before this one; None if there is none.

        A restored revision keeps its number. So the numbers of the two revisions don't always
        follow each other.
        """
        order = turns(self.core.reader, self.revision(number).uid)
        numbers = [one.number for one in sorted(order, key=lambda one: not one.current)]
        known = {one.number: one for one in self.revisions}
        older = numbers[numbers.index(number) + 1 :] if number in numbers else []
        return next((known[one] for one in older if one in known), None)

    def read(self, number: int, path: str | None = None) -> bytes:
        """Return the bytes of a file in a revision; the default is the SKILL.md.

        Raises `RevisionNotFound`, `ContentMissing`.
        """
        chosen = self.revision(number)
        path = path or chosen.document
        for file in chosen.files:
            if file.path == path:
                return self._content(chosen, file)
        raise ContentMissing(name=self.name, number=number, path=path or "SKILL.md")

    def diff(self, old: int | None = None, new: int | None = None, *, named: bool = False) -> str:
        """Return a unified diff of all files: of the last change, or between two revisions.

        If only ``old`` is given, compare it with the current revision. If only ``new`` is given,
        compare it with the revision before it. If there is only one revision, the diff is empty. If
        ``named``, the header of each file contains the skill's name.
        """
        after = self.revision(new) if new is not None else self.current
        if old is not None:
            before: Revision | None = self.revision(old)
        else:
            before = self.before(after.number)
        if before is None:
            return ""
        of = f"{self.name}, " if named else ""
        sides = [f"{of}revision {one.number}" for one in (before, after)]
        return "".join(_differing((self, before, sides[0]), (self, after, sides[1])))

    def restore(
        self,
        number: int | None = None,
        *,
        source: str | None = None,
        copies: "Which | None" = None,
    ) -> StoredSkill:
        """Restore the files of a revision in one change, and remove files that it doesn't have.

        A removed skill is written into ``source`` (default: its former source). Raises
        `RevisionNotFound`, `ContentMissing`, `ContentDamaged`, `SkillHeld`, `SourceReadOnly`,
        `NotAllKept`, `SourceUnclear`, and the errors of `update.update_files` and
        `create.create_files`.
        """
        wanted = self.current if number is None else self.revision(number)
        if self.stored is None:
            return self._write_back(wanted, source)
        check_writable(find(self.core, self.stored.skill.source))
        if wanted.origin is not None:
            files = {file.path: self._content(wanted, file) for file in wanted.files}
            self._check_foreign(wanted, wanted.origin, files)
        had = {file.path: (file.hash, file.executable) for file in self._there(wanted)}
        edits: dict[str, bytes | None] = {
            file.path: self._content(wanted, file)
            for file in wanted.files
            if had.get(file.path) != (file.hash, file.executable)
        }
        kept = {file.path for file in wanted.files}
        edits.update({path: None for path in had if path not in kept})
        if not edits:
            return self.stored
        from registry.changes.update import update_files

        executable = {file.path: file.executable for file in wanted.files}
        return update_files(self.core, self.stored, edits, executable=executable, copies=copies)

    def _there(self, wanted: Revision) -> Sequence[SkillFile]:
        """Return the current files of the skill.

        If the skill has no SKILL.md, return the files of ``wanted`` that exist on disk.
        """
        assert self.stored is not None  # noqa: S101  # `restore` checked this
        if self.stored.skill.status != "no_document":
            return self.current.files
        home = self.stored.path
        return [file for file in wanted.files if os.path.lexists(join(home, file.path))]

    def check_back(self, source: str | None) -> str:
        """Return the path to which `restore` would write a removed skill, without writing it.

        Raises the errors of `restore`.
        """
        home, folder, _ = self._whole(self.current, source)
        return join(home.path, folder)

    def _write_back(self, wanted: Revision, source: str | None) -> StoredSkill:
        from registry.changes.create import create_files

        tombstone = self.gone
        assert tombstone is not None  # noqa: S101  # a skill that isn't stored has a tombstone
        home, folder, whole = self._whole(wanted, source)
        return create_files(
            self.core,
            home,
            folder,
            tombstone.name,
            whole,
            {file.path for file in wanted.files if file.executable},
            uid=tombstone.uid,
            created_at=tombstone.created_at,
        )

    def _whole(
        self, wanted: Revision, source: str | None
    ) -> tuple[Source, str, Mapping[str, bytes]]:
        """Return the source and folder to which a removed skill is restored, and its files."""
        tombstone = self.gone
        assert tombstone is not None  # noqa: S101  # a skill that isn't stored has a tombstone
        # If the skill was in the checkout of a remote source, restore it into the user's own
        # source.
        known = {
            one.name for one in own_sources(self.core) if one.remote is None or not tombstone.since
        }
        home = target_source(
            self.core, source or (tombstone.source if tombstone.source in known else None)
        )
        check_writable(home)
        folder = tombstone.folder or tombstone.name
        # Check the paths, because an untrusted person may have written the skill.
        refused = check_paths([f"{folder}/{file.path}" for file in wanted.files])
        if refused is not None or folder == ROOT:
            reason = f"of {refused[0]!r}, {refused[1]}" if refused else "it was the whole source"
            raise ChangeRefused(path=join(home.path, folder), reason=reason)
        whole = stored_files(self.core.reader, wanted, self.core.settings.limits.skill_bytes)
        if lost := sorted({file.path for file in wanted.files} - whole.keys()):
            raise NotAllKept(name=self.name, number=wanted.number, paths=lost)
        if wanted.origin is not None:
            self._check_foreign(wanted, wanted.origin, whole)
        return home, folder, whole

    def _check_foreign(self, wanted: Revision, origin: Origin, files: Mapping[str, bytes]) -> None:
        """If a revision from a remote source has security errors, raise `SkillHeld`."""
        runs = {file.path for file in wanted.files if file.executable}
        url = f"{origin.url}#{origin.ref}" if origin.ref else origin.url
        check_untrusted(self.core, wanted.name, files, runs, url=url)

    def _content(self, of: Revision, file: SkillFile) -> bytes:
        """Return the bytes of a file of a revision.

        Raises `ContentMissing` if the bytes aren't stored, `ContentDamaged`, and `FileTooLarge`.
        """
        limit = self.core.settings.limits.skill_bytes
        data = None if file.hash is None else content(self.core.reader, of.uid, file, limit)
        if data is None:
            raise ContentMissing(name=self.name, number=of.number, path=file.path)
        return data


def _differing(
    before: tuple[History, Revision, str], after: tuple[History, Revision, str]
) -> Iterator[str]:
    """Yield the lines of a diff of all files of two revisions.

    ``before`` and ``after`` each consist of a history, a revision and a label.
    """
    old, new = ({file.path: file for file in one.files} for _, one, _ in (before, after))
    for path in sorted(old | new):
        files = old.get(path), new.get(path)
        if files[0] is not None and files[1] is not None and files[0].hash == files[1].hash:
            continue
        was, now = [
            b"" if file is None else history._content(of, file)  # noqa: SLF001  # of this module
            for (history, of, _), file in zip((before, after), files, strict=True)
        ]
        yield from difference(path, was, now, before[2], after[2])


def compare(core: Core, name: str, other: str) -> str:
    """Return a unified diff of all files of two skills or versions (``NAME@LABEL``).

    Raises the errors of `History.of`, `VersionNotFound`, `VersionYanked`, `VersionNotStored`.
    """
    return "".join(_differing(chosen(core, name), chosen(core, other)))


def chosen(core: Core, handle: str) -> tuple[History, Revision, str]:
    """Return the history of a skill, the revision for NAME or NAME@LABEL, and the skill's ref.

    Raises the errors of `History.of`, `VersionNotFound`, `VersionYanked`, `VersionNotStored`.
    """
    parts = split_label(core.reader, handle)
    if parts is None:
        found = History.of(core, handle)
        return found, found.current, found.name
    found = History.of(core, parts[0])
    if found.stored is None:
        raise SkillNotFound(handle)
    wanted = version_of(core.reader, found.stored, parts[1])
    revision = next((one for one in found.revisions if one.tree_hash == wanted.tree_hash), None)
    if revision is None:
        raise VersionNotStored(name=found.name, label=wanted.label)
    return found, revision, f"{found.name}@{wanted.label}"


def _missing(core: Core, handle: str) -> Tombstone | None:
    """If the folder of a stored skill is missing, return a tombstone for the skill, else None."""
    try:
        stored = resolve(core.reader, handle)
        CurrentSkill.of_stored(core, stored)
    except SkillMissing:
        return _tombstone(stored)
    except RegistryError:
        return None
    return None


def _tombstone(stored: StoredSkill) -> Tombstone:
    """Return a tombstone for a stored skill with a missing folder."""
    skill = stored.skill
    where = (skill.source, stored.folder, skill.created_at)
    return Tombstone(stored.uid, skill.name, *where, "", skill.tree_hash, None)


def prune(
    core: Core, *, keep: int = 20, before: str | None = None, as_admin: bool = False
) -> tuple[int, int]:
    """Delete old revisions; keep each skill's current revision and its newest ``keep`` revisions.

    If ``before`` is given, also keep revisions from this time or later. On a server, only the
    revisions in this role's sources on this host are deleted. With ``as_admin``, the revisions of
    all sources are deleted (raises `AdminNeeded`). Returns the number of deleted revisions, and the
    number of deleted contents, which no other revision used.
    """
    from registry.db.write.history import prune

    if as_admin:
        check_admin(core)
    host = None if as_admin or not core.host else core.host
    contents_too = host is None or is_admin(core.reader)
    with core.writer.transaction() as connection:
        return prune(connection, keep=keep, before=before, host=host, contents_too=contents_too)
