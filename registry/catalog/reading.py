"""Read a skill from disk, so that results are never older than its folder."""

import json
import os
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Final, NamedTuple, Self

from registry.catalog.resolve import resolve, split_label, version_of
from registry.core import Core
from registry.db.interface import Reader
from registry.db.read import skills
from registry.db.read.history import Revision, content, revision_with
from registry.db.read.labels import select_with_files, versions, versions_of
from registry.db.read.search import same_files_as
from registry.db.read.skills import StoredSkill
from registry.disk.files import IsLink, open_home, read_inside
from registry.disk.paths import ROOT, is_safe_relative
from registry.disk.walk import ScannedFolder, inaccessible
from registry.errors import (
    FileNotFoundInSkill,
    NotUtf8,
    OutsideSkill,
    RegistryError,
    SkillHeld,
    SkillInaccessible,
    SkillInvalid,
    SkillMissing,
    SkillNotFound,
    VersionNotStored,
    VersionYanked,
)
from registry.model import (
    Diagnostic,
    Document,
    Parameter,
    PinnedSkill,
    Skill,
    SkillDetail,
    SkillVersion,
    Status,
)
from registry.sync.refresh import refresh
from registry.sync.sources import is_here

TRIES: Final = 3
"""Maximum number of attempts to find a skill while other processes replace it."""

NO_DOCUMENT: Final = Diagnostic(
    "no-document", "error", "the folder holds no SKILL.md", fix="add a SKILL.md to the folder"
)


@dataclass(frozen=True, slots=True)
class CurrentSkill:
    """A skill after a comparison of its stored version with the files on disk.

    ``found`` is the scanned folder; None if the folder is on another machine, so that only the
    stored values are known. If ``is_behind``, the stored version is out of date: the database can't
    be written, or a part of the folder can't be read. If ``is_edited``, the files on disk had
    changed, and the database now has them.

    ``version`` is the requested version of the skill; None means the current files. The files of a
    version are read from the database.
    """

    stored: StoredSkill
    found: ScannedFolder | None
    is_behind: bool = False
    version: "VersionContent | None" = None
    is_edited: bool = False

    @classmethod
    def of(cls, core: Core, handle: str) -> Self:
        """Find a skill by name or ref, and update its stored version from disk.

        Raises `SkillNotFound`, `SkillAmbiguous`, `SkillMissing`, `SkillInaccessible`.
        """
        for _ in range(TRIES):
            stored = resolve(core.reader, handle)
            try:
                current = cls._compared(core, stored)
            except SkillMissing:
                current = cls._copy(core, stored, handle)
                if current is None:
                    raise
            if current is not None:
                return current
        raise SkillNotFound(handle)

    @classmethod
    def _copy(cls, core: Core, missing: StoredSkill, handle: str) -> Self | None:
        """If a skill's folder is missing, return a copy of the skill if the user gave only a name.

        A name without a source means any copy of the skill, but a ref means one particular copy.
        """
        if handle != missing.skill.name:
            return None
        for copy in same_files_as(core.reader, missing):
            if is_here(core, copy.host, copy.root):
                with suppress(SkillMissing):
                    return cls._compared(core, copy)
        return None

    @classmethod
    def of_stored(cls, core: Core, stored: StoredSkill) -> Self:
        """Update the stored version of a skill that the caller has already found.

        Raises the errors of `of`.
        """
        return cls._compared(core, stored) or cls.of(core, stored.place)

    def check_whole(self) -> None:
        """Raise `SkillInaccessible` for the first part of the folder that can't be read, if any."""
        for finding in self.found.unread if self.found is not None else ():
            raise inaccessible(self.stored.path, finding)

    @classmethod
    def _compared(cls, core: Core, stored: StoredSkill) -> Self | None:
        if not is_here(core, stored.host, stored.root):
            return cls(stored, None)
        fresh = refresh(core, stored)
        if fresh is None:
            return None
        is_edited = stored.skill.tree_hash not in {None, fresh[0].skill.tree_hash}
        return cls(*fresh, is_edited=is_edited)


class VersionContent(NamedTuple):
    """A version of a skill, and the revision that has its files."""

    version: SkillVersion
    revision: Revision


def located(core: Core, handle: str) -> CurrentSkill:
    """Find a skill as `CurrentSkill.of` does; ``NAME@LABEL`` means a version of the skill.

    Raises the errors of `CurrentSkill.of` and `at_version`.
    """
    parts = split_label(core.reader, handle)
    if parts is None:
        return CurrentSkill.of(core, handle)
    return at_version(core, CurrentSkill.of(core, parts[0]), parts[1])


def at_version(
    core: Core, current: CurrentSkill, label: str, *, yanked: bool = True
) -> CurrentSkill:
    """Return a version of a skill; its files are on disk or in the database.

    Raises `VersionNotFound`, `VersionYanked` (see `version_of`), `VersionNotStored`.
    """
    stored = current.stored
    wanted = version_of(core.reader, stored, label, yanked=yanked)
    if stored.skill.tree_hash == wanted.tree_hash and not current.is_behind:
        return current
    return replace(current, version=VersionContent(wanted, revision_of(core, stored, wanted)))


def revision_of(core: Core, stored: StoredSkill, wanted: SkillVersion) -> Revision:
    """Return the revision with the files of a version. Raises `VersionNotStored`."""
    found = revision_with(core.reader, wanted.uid, wanted.tree_hash)
    if found is None:
        raise VersionNotStored(name=stored.skill.ref, label=wanted.label)
    return found


def chosen(core: Core, handle: str) -> Skill:
    """Return the stored skill that a handle means, without reading its folder.

    ``NAME@LABEL`` means a version. Raises the errors of `resolve`, `VersionNotFound`,
    `VersionYanked`, `VersionNotStored`.
    """
    parts = split_label(core.reader, handle)
    if parts is None:
        return resolve(core.reader, handle).skill
    return pinned(core, resolve(core.reader, parts[0]), parts[1])


def pinned(core: Core, stored: StoredSkill, label: str) -> PinnedSkill:
    """Return a version of a skill. Raises the errors of `chosen`."""
    wanted = version_of(core.reader, stored, label, yanked=False)
    revision = revision_of(core, stored, wanted)
    facts = {
        **vars(stored.skill),
        "tree_hash": revision.tree_hash,
        "content_hash": revision.content_hash,
        "origin": revision.origin or stored.skill.origin,
    }
    return PinnedSkill(**facts, pin=label)


def get(core: Core, handle: str) -> SkillDetail:
    """Return all facts about a skill. Raises the errors of `located`."""
    return current_detail(core, located(core, handle))


def current_detail(core: Core, current: CurrentSkill) -> SkillDetail:
    """Return all facts about a skill, from its files on disk.

    If the stored version can't be updated, the result has the SKILL.md from disk and its findings,
    even if this SKILL.md is invalid. The result then also names the parts of the folder that can't
    be read. Raises `SkillNotFound`.
    """
    if current.version is not None:
        return _version_detail(core, current, current.version)
    known = detail(core, current.stored)
    if not current.is_behind or current.found is None:
        return known
    try:
        document = document_now(core, current)
    except RegistryError as error:
        told = error.facts.get("problems") or (Diagnostic(error.code, "error", str(error)),)
        status: Status = "no_document" if current.found.document is None else "invalid"
        return replace(known, status=status, body=None, front_matter={}, diagnostics=tuple(told))
    unread = [one for one in current.found.unread if one not in known.diagnostics]
    told = known.diagnostics if document.usable else document.diagnostics
    return replace(
        known,
        status=known.status if document.usable else "invalid",
        description=document.description,
        body=document.body,
        front_matter=document.front_matter,
        diagnostics=(*told, *unread),
    )


def _version_detail(core: Core, current: CurrentSkill, content: VersionContent) -> SkillDetail:
    """Return the facts about a version, from its stored SKILL.md. Raises `SkillInvalid`."""
    stored, (version, revision) = current.stored, content
    document = document_now(core, current)
    facts = {
        key: getattr(document, key)
        for key in "description kind category tags version license author".split()
    }
    known = replace(
        stored.skill,
        **facts,
        updated_at=revision.seen_at,
        content_hash=revision.content_hash,
        tree_hash=revision.tree_hash,
        status="warning"
        if any(one.severity == "warning" for one in document.diagnostics)
        else "ok",
        origin=revision.origin,
    )
    with_files = (
        one for one in versions(core.reader, version.uid) if one.tree_hash == revision.tree_hash
    )
    return SkillDetail(
        **vars(known),
        body=document.body,
        front_matter=document.front_matter,
        files=revision.files,
        diagnostics=document.diagnostics,
        compatibility=document.compatibility,
        required_tools=document.required_tools,
        parameters=document.parameters,
        location=f"{stored.path}/{revision.document}",
        quarantined=stored.quarantined,
        versions=tuple(with_files),
    )


def document_now(core: Core, current: CurrentSkill) -> Document:
    """Parse the current SKILL.md on disk. Raises the errors of `read_bytes`."""
    from registry.document.parse import parse_document

    name = os.path.basename(current.stored.path)
    return parse_document(read_bytes(core, current), folder_name=name)


def detail(core: Core, stored: StoredSkill) -> SkillDetail:
    """Return all stored facts about a skill.

    If another process has just replaced the version, return the facts about the new version. Raises
    `SkillNotFound` if the skill was removed.
    """
    reader = core.reader
    document, files, findings, (labelled,) = skills.load_content(
        reader, stored.id, select_with_files(stored.id)
    )
    if not files and stored.skill.tree_hash is not None:
        newer = skills.by_place(reader, stored.source_id, stored.folder)
        if newer is None or newer.id == stored.id:
            raise SkillNotFound(stored.skill.ref)
        return detail(core, newer)
    text, body_start, front_matter = document or (None, 0, {})
    return SkillDetail(
        **vars(stored.skill),
        body=None if text is None else text[body_start:],
        front_matter=front_matter,
        files=files,
        diagnostics=findings,
        compatibility=stored.compatibility,
        required_tools=tuple(json.loads(stored.required_tools)),
        parameters=tuple(Parameter(**entry) for entry in json.loads(stored.parameters)),
        location=f"{stored.path}/{stored.document}" if stored.document else stored.path,
        quarantined=stored.quarantined,
        versions=versions_of(labelled),
    )


def read_bytes(core: Core, current: CurrentSkill) -> bytes:
    """Return the bytes of SKILL.md, even if it can't be parsed.

    Raises `SkillInvalid`, `SkillInaccessible`, `SkillMissing`, `FileTooLarge`, `FileChanging`.
    """
    stored, found = current.stored, current.found
    if current.version is not None:
        revision = current.version.revision
        return _revision_bytes(core, stored, revision, revision.document or "SKILL.md")
    if found is None:
        return _stored_bytes(core, stored, stored.document)
    return read_document(core, stored, found.document, found.problems)


def read_document(
    core: Core, stored: StoredSkill, name: str | None, problems: Sequence[Diagnostic] = ()
) -> bytes:
    """Return the bytes of a SKILL.md from disk.

    ``name`` is the file name of the SKILL.md; None if the file is missing or unreadable. If
    ``name`` is None, this raises an error with the stored findings or, without any, with
    ``problems``. Raises the errors of `read_bytes`.
    """
    if name is None:
        raise unusable(core.reader, stored, stored.skill.ref, problems)
    try:
        with open_home(stored.root, stored.folder) as home:
            limit = core.settings.limits.document_bytes
            return read_inside(home, name, limit, stored.root).data
    except FileNotFoundError:
        raise SkillMissing(name=stored.skill.ref, path=f"{stored.path}/{name}") from None


def unusable(
    reader: Reader, stored: StoredSkill, handle: str, noticed: Sequence[Diagnostic] = ()
) -> SkillInvalid | SkillHeld | VersionYanked:
    """Return the error for an unusable skill that the user requested by ``handle``.

    The error always has a reason: from the stored findings, or else from the findings ``noticed``.
    """
    if stored.quarantined and stored.skill.status in {"ok", "warning"}:
        return SkillHeld(handle, stored.skill.source)
    if stored.yanked and stored.skill.status in {"ok", "warning"}:
        rows = reader.rows(*select_with_files(stored.id))
        for one in versions_of(rows):
            if one.state == "yanked":
                return VersionYanked(handle, one.label, one.reason, one.replacement)
    problems = skills.findings(reader, stored.id) or tuple(noticed)
    if all(problem.severity != "error" for problem in problems):
        problems = (NO_DOCUMENT, *problems)
    return SkillInvalid(name=handle, problems=problems, path=stored.path)


def read_text(core: Core, current: CurrentSkill) -> str:
    """Return the text of SKILL.md. Raises the errors of `read_bytes`, and `NotUtf8`."""
    data = read_bytes(core, current)
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        path = f"{current.stored.path}/{current.stored.document}"
        raise NotUtf8(path=path, offset=error.start) from None


def read_file(core: Core, current: CurrentSkill, path: str) -> bytes:
    """Return the bytes of a supporting file; ``path`` is relative to the skill's folder.

    Raises `OutsideSkill`, `FileNotFoundInSkill`, `SkillInaccessible`, `FileTooLarge`.
    """
    check_path(path)
    stored = current.stored
    if current.version is not None:
        return _revision_bytes(core, stored, current.version.revision, os.path.normpath(path))
    if current.found is None:
        return _stored_bytes(core, stored, path)
    if stored.folder == ROOT and path == ROOT:
        raise FileNotFoundInSkill(name=stored.skill.ref, path=path)
    limit = core.settings.limits.document_bytes
    try:
        with open_home(stored.root, stored.folder) as home:
            try:
                return read_inside(home, os.path.normpath(path), limit).data
            except IsLink:
                raise OutsideSkill(path=path) from None
    except (FileNotFoundError, UnicodeEncodeError):  # a file name can't contain surrogates
        raise FileNotFoundInSkill(name=stored.skill.ref, path=path) from None


def check_path(path: str) -> None:
    """Raise `OutsideSkill` if ``path`` isn't a valid relative path of a file in a skill."""
    if not is_safe_relative(path):
        raise OutsideSkill(path=path)


def _revision_bytes(core: Core, stored: StoredSkill, revision: Revision, path: str) -> bytes:
    """Return the stored bytes of a file of a version. Raises the errors of `read_file`."""
    file = next((one for one in revision.files if one.path == path), None)
    if file is None or file.hash is None:
        raise FileNotFoundInSkill(name=stored.skill.ref, path=path)
    data = content(core.reader, stored.uid, file, core.settings.limits.document_bytes)
    if data is None:
        raise SkillInaccessible(path=path, reason="its bytes are not in the database")
    return data


def _stored_bytes(core: Core, stored: StoredSkill, path: str | None) -> bytes:
    """Return the stored bytes of a skill's file, if the skill's folder is on another machine.

    Raises the errors of `read_file`, and `ContentDamaged`.
    """
    if path is None:
        return read_document(core, stored, None)
    file = next((one for one in skills.files(core.reader, stored.id) if one.path == path), None)
    if file is None:
        raise FileNotFoundInSkill(name=stored.skill.ref, path=path)
    limit = core.settings.limits.document_bytes
    data = None if file.hash is None else content(core.reader, stored.uid, file, limit)
    if data is None:
        where = f"{stored.host}:{stored.path}/{path}"
        reason = "its folder is on another machine, and its bytes are not in the database"
        raise SkillInaccessible(path=where, reason=reason)
    return data
