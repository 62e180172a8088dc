"""What a skill was like: its revisions, what is different between two, and back to one."""

import difflib
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from registry.catalog import resolve
from registry.catalog.reading import locate
from registry.changes import changing
from registry.db.queries import revisions as stored
from registry.db.queries.detail import version
from registry.db.queries.revisions import Revision
from registry.errors import ContentMissing, RevisionNotFound, SkillNotFound
from registry.model import Skill, SkillFile

if TYPE_CHECKING:
    from registry.api import SkillRegistry


def history(registry: "SkillRegistry", name: str) -> list[Revision]:
    """Return the contents that a skill had, the newest first; what is on disk now included.

    Raises as `SkillRegistry.get`.
    """
    locate(registry, name)
    return stored.revisions(registry.reader, _uid(registry, name))


def revision(registry: "SkillRegistry", name: str, number: int) -> Revision:
    """Return one revision. Raises `RevisionNotFound`, and as `SkillRegistry.get`."""
    found = history(registry, name)
    for one in found:
        if one.number == number:
            return one
    raise RevisionNotFound(name=name, number=number, known=[one.number for one in found])


def read(registry: "SkillRegistry", name: str, number: int, path: str | None = None) -> bytes:
    """Return the bytes of one file of a revision, the skill file by default.

    Raises `RevisionNotFound`, `ContentMissing`.
    """
    chosen = revision(registry, name, number)
    path = path or chosen.document
    for file in chosen.files:
        if file.path == path:
            return content(registry, name, chosen, file)
    raise ContentMissing(name=name, number=number, path=path or "SKILL.md")


def diff(
    registry: "SkillRegistry", name: str, old: int | None = None, new: int | None = None
) -> str:
    """Return a unified diff of all files: of the revision before the current one, or of two.

    ``old`` alone is compared with the current one. Empty: nothing is different, or there is but
    one revision.
    """
    found = history(registry, name)
    after = _chosen(found, name, new) if new is not None else _current(found, name)
    if old is not None:
        before = _chosen(found, name, old)
    else:
        earlier = [one for one in found if one.number < after.number]
        if not earlier:
            return ""
        before = earlier[0]
    return "".join(_differences(registry, name, before, after))


def restore_revision(registry: "SkillRegistry", name: str, number: int) -> Skill:
    """Make a skill what it was, as one change; files that it did not have then are removed.

    Raises `RevisionNotFound`, `ContentMissing`, and as `SkillRegistry.update`.
    """
    wanted = revision(registry, name, number)
    current = _current(history(registry, name), name)
    had = {file.path: (file.hash, file.executable) for file in current.files}
    edits: dict[str, bytes | None] = {
        file.path: content(registry, name, wanted, file)
        for file in wanted.files
        if had.get(file.path) != (file.hash, file.executable)
    }
    kept = {file.path for file in wanted.files}
    edits.update({path: None for path in had if path not in kept})
    if not edits:
        return registry.resolve(name)
    executable = {file.path: file.executable for file in wanted.files}
    return changing.update(registry, name, edits, executable=executable)


def prune(registry: "SkillRegistry", *, keep: int, before: str | None) -> tuple[int, int]:
    """Forget old revisions; see `store.revisions.prune`. Returns revisions and contents gone."""
    from registry.db.writes import revisions as writing

    with registry.writer.transaction() as connection:
        return writing.prune(connection, keep=keep, before=before)


def _uid(registry: "SkillRegistry", name: str) -> str:
    found = version(registry.reader, resolve.find(registry.reader, name)[0])
    if found is None:
        raise SkillNotFound(name)
    return found.uid


def _chosen(found: Sequence[Revision], name: str, number: int) -> Revision:
    for one in found:
        if one.number == number:
            return one
    raise RevisionNotFound(name=name, number=number, known=[one.number for one in found])


def _current(found: Sequence[Revision], name: str) -> Revision:
    for one in found:
        if one.current:
            return one
    raise SkillNotFound(name)


def content(registry: "SkillRegistry", name: str, of: Revision, file: SkillFile) -> bytes:
    """Return the bytes of a revision's file. Raises `ContentMissing`."""
    data = None
    if file.hash is not None:
        data = stored.content(registry.reader, of.uid, file.hash)
    if data is None:
        raise ContentMissing(name=name, number=of.number, path=file.path)
    return data


def _differences(
    registry: "SkillRegistry", name: str, before: Revision, after: Revision
) -> Iterator[str]:
    old = {file.path: file for file in before.files}
    new = {file.path: file for file in after.files}
    for path in sorted(old | new):
        one, other = old.get(path), new.get(path)
        if one is not None and other is not None and one.hash == other.hash:
            continue
        texts = [
            "" if file is None else _text(content(registry, name, of, file))
            for of, file in ((before, one), (after, other))
        ]
        if None in texts:
            yield f"Binary files {path} of {before.number} and {after.number} differ\n"
            continue
        was, now = [(text or "").splitlines(keepends=True) for text in texts]
        head, below = (f"{path} (revision {of.number})" for of in (before, after))
        for line in difflib.unified_diff(was, now, head, below):
            yield line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n"


def _text(data: bytes) -> str | None:
    try:
        return data.decode()
    except UnicodeDecodeError:
        return None
