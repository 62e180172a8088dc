"""What a skill was like: its revisions, what is different between two, and back to one."""

import difflib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from registry.catalog.reading import CurrentSkill
from registry.core import Core
from registry.db.queries import revisions as stored_revisions
from registry.db.queries.revisions import Revision
from registry.db.queries.skills import StoredSkill
from registry.errors import ContentMissing, RevisionNotFound, SkillNotFound
from registry.model import SkillFile

if TYPE_CHECKING:
    from registry.changes.copied import Which


@dataclass(frozen=True, slots=True)
class History:
    """The contents that a skill had, the newest first; what is on disk now included."""

    core: Core
    stored: StoredSkill
    revisions: Sequence[Revision]

    @classmethod
    def of(cls, core: Core, handle: str) -> Self:
        """Return the history of a skill. Raises as `CurrentSkill.of`."""
        stored = CurrentSkill.of(core, handle).stored
        return cls(core, stored, stored_revisions.revisions(core.reader, stored.uid))

    def revision(self, number: int) -> Revision:
        """Return one revision. Raises `RevisionNotFound`."""
        known = {one.number: one for one in self.revisions}
        if number not in known:
            raise RevisionNotFound(name=self.stored.skill.ref, number=number, known=list(known))
        return known[number]

    @property
    def current(self) -> Revision:
        """The content that the skill has now."""
        for one in self.revisions:
            if one.current:
                return one
        raise SkillNotFound(self.stored.skill.ref)

    def read(self, number: int, path: str | None = None) -> bytes:
        """Return the bytes of one file of a revision, the skill file by default.

        Raises `RevisionNotFound`, `ContentMissing`, `ContentDamaged`.
        """
        chosen = self.revision(number)
        path = path or chosen.document
        for file in chosen.files:
            if file.path == path:
                return self._content(chosen, file)
        name = self.stored.skill.ref
        raise ContentMissing(name=name, number=number, path=path or "SKILL.md")

    def diff(self, old: int | None = None, new: int | None = None) -> str:
        """Return a unified diff of all files: of the revision before the current one, or of two.

        ``old`` alone is compared with the current one. Empty: nothing is different, or there is
        but one revision. Raises `RevisionNotFound`, `ContentMissing`, `ContentDamaged`.
        """
        after = self.revision(new) if new is not None else self.current
        if old is not None:
            before = self.revision(old)
        else:
            earlier = [one for one in self.revisions if one.number < after.number]
            if not earlier:
                return ""
            before = earlier[0]
        return "".join(self._differences(before, after))

    def restore(self, number: int, copies: "Which | None" = None) -> StoredSkill:
        """Make a skill what it was, as one change; files that it did not have then are removed.

        ``copies``: which of its copies become the same, too. Raises `RevisionNotFound`,
        `ContentMissing`, `ContentDamaged`, and as `update.update_files`.
        """
        wanted = self.revision(number)
        had = {file.path: (file.hash, file.executable) for file in self.current.files}
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

    def _content(self, of: Revision, file: SkillFile) -> bytes:
        """Return a file's bytes. Raises `ContentMissing`, `ContentDamaged`, `FileTooLarge`."""
        data = None
        if file.hash is not None:
            limit = self.core.settings.limits.skill_bytes
            data = stored_revisions.content(self.core.reader, of.uid, file, limit)
        if data is None:
            raise ContentMissing(name=self.stored.skill.ref, number=of.number, path=file.path)
        return data

    def _differences(self, before: Revision, after: Revision) -> Iterator[str]:
        old = {file.path: file for file in before.files}
        new = {file.path: file for file in after.files}
        for path in sorted(old | new):
            one, other = old.get(path), new.get(path)
            if one is not None and other is not None and one.hash == other.hash:
                continue
            contents = [
                b"" if file is None else self._content(of, file)
                for of, file in ((before, one), (after, other))
            ]
            try:
                was, now = [data.decode().splitlines(keepends=True) for data in contents]
            except UnicodeDecodeError:
                yield f"Binary files {path} of {before.number} and {after.number} differ\n"
                continue
            head, below = (f"{path} (revision {of.number})" for of in (before, after))
            for line in difflib.unified_diff(was, now, head, below):
                yield line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n"
