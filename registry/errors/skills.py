"""Errors of skills, of their changes, and of their history."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from registry.errors.base import Conflict, Invalid, NotFound, RegistryError, Unavailable
from registry.text import MAX_CHOICES, escaped

if TYPE_CHECKING:
    from registry.model import Diagnostic


class SkillAmbiguous(Conflict):
    """Several visible skills have this name; ``refs`` are their refs, which are different."""

    sentence = "{name:q} names {count} skills. Choose one of:"

    name: str
    refs: tuple[str, ...]
    count: int

    def __init__(self, name: str, refs: Sequence[str]) -> None:
        super().__init__(name=name, refs=tuple(refs), count=len(refs))

    def _details(self) -> str:
        lines = [f"\n  {escaped(ref)}" for ref in self.facts["refs"][:MAX_CHOICES]]
        more = self.facts["count"] - MAX_CHOICES
        return "".join(lines) + (f"\n  and {more} more" if more > 0 else "")


class SkillInvalid(RegistryError):
    """The skill is stored but can't be used.

    Details: ``name``, ``problems``, ``path`` if it is known.
    """

    sentence = "The skill {name:q} can't be used:"

    name: str
    problems: "Sequence[Diagnostic]"
    path: str | None = None

    def _details(self) -> str:
        return "".join(
            f"\n  {problem.message}" + (f" (fix: {problem.fix})" if problem.fix else "")
            for problem in self.facts["problems"]
            if problem.severity == "error"
        )


class SkillNotVisible(NotFound):
    """The skill exists but is not visible to the user.

    ``rule`` is the rule that hides the skill.
    """

    sentence = "The skill {name:q} is not shown: {reason}."

    name: str
    rule: str
    reason: str


class SkillInaccessible(RegistryError):
    """A file can't be read."""

    sentence = "{path:q} can't be read: {reason}."

    path: str
    reason: str


class SkillMissing(NotFound):
    """The skill's folder or file no longer exists on disk."""

    code = "skill_missing_on_disk"
    sentence = "The skill {name:q} is no longer on disk ({path})."

    name: str
    path: str


class FileTooLarge(RegistryError):
    """A file exceeds the size limit (details: ``path``, ``size`` and ``limit`` in bytes)."""

    sentence = "{path:q} has {size} bytes, {limit} are allowed."

    path: str
    size: int
    limit: int


class NotUtf8(RegistryError):
    """A file is not UTF-8 text (details: ``path``, ``offset`` of the first invalid byte)."""

    sentence = "{path:q} is not UTF-8 text (byte {offset}). Save it as UTF-8."

    path: str
    offset: int


class OutsideSkill(Invalid):
    """A path leads out of the skill's folder."""

    sentence = "{path:q} leads out of the skill's folder."

    path: str


class PathRefused(Invalid):
    """A file of a skill has a path that can't be written."""

    sentence = "{path:q} can't be a file of a skill: {reason}."

    path: str
    reason: str


class FileNotFoundInSkill(NotFound):
    """The skill has no such file."""

    code = "file_not_found"
    sentence = "The skill {name:q} has no file {path:q}."

    name: str
    path: str


class FileChanging(Unavailable):
    """A file changed during each attempt to read it."""

    sentence = (
        "{path:q} kept changing while it was read. Try again when the other program has finished"
        " writing."
    )

    path: str


class SkillHeld(SkillNotVisible):
    """A skill of a remote source has security errors that no user has accepted.

    ``source`` is the source in which the skill is quarantined. If the source may have been added
    for this request, ``address`` is the requested address. If the skill wasn't imported, ``source``
    is None. In both cases ``problems`` are the findings. If the skill can be pulled from a remote
    source, ``url`` is this source's address.
    """

    sentence = "{name:q} {reason}."

    source: str | None
    address: str | None
    url: str | None
    problems: "Sequence[Diagnostic]"

    def __init__(
        self,
        name: str,
        source: str | None = None,
        *,
        address: str | None = None,
        url: str | None = None,
        problems: "Sequence[Diagnostic]" = (),
    ) -> None:
        reason = "has security errors: it was not imported"
        if source is not None:
            reason = "comes from a remote source and has security errors: it is quarantined"
        facts = {"source": source, "address": address, "url": url, "reason": reason}
        super().__init__(name=name, rule="held", problems=tuple(problems), **facts)

    def _details(self) -> str:
        return "".join(
            f"\n  {one.severity} {one.code}: {one.message}" for one in self.facts["problems"]
        )


class InvalidName(Invalid):
    """A new skill can't have this name."""

    sentence = "{name:q} can't be a skill's name: {reason}."

    name: str
    reason: str


class SkillExists(Conflict):
    """A skill or a folder with this name already exists."""

    sentence = "A skill {name:q} already exists ({path})."

    name: str
    path: str


class PublishRefused(Invalid):
    """The check of a skill to publish found errors."""

    sentence = "The skill {name:q} was not published, because its check found errors:"

    name: str
    problems: "Sequence[Diagnostic]"

    def _details(self) -> str:
        errors = [one for one in self.facts["problems"] if one.severity == "error"]
        return "".join(f"\n  {one.code}: {one.message}" for one in errors)


class HashNeeded(Conflict):
    """A skill exists, and the request doesn't state which version of the skill it replaces.

    Details: ``name``, and ``tree_hash`` of the current version.
    """

    sentence = "The skill {name:q} already exists; its tree hash is {tree_hash}."

    name: str
    tree_hash: str


class HashOutdated(Conflict):
    """The version that a change replaces isn't the current version.

    Details: ``name``, and ``tree_hash`` of the current version (None if the skill doesn't exist).
    """

    sentence = "The skill {name:q} has changed since it was read, so nothing was done."

    name: str
    tree_hash: str | None


class SkillProposed(RegistryError):
    """A change waits for review and was not made.

    ``id`` is the id of the proposal.
    """

    sentence = "The request to {kind} {name:q} waits for review as proposal {id}."

    kind: str
    name: str
    source: str
    id: str


class ProposalNotFound(NotFound):
    """There is no proposal with this id, or it isn't visible to the user."""

    sentence = "There is no proposal {id:q}."

    id: str


class ProposalDecided(Conflict):
    """A proposal was approved or rejected before."""

    sentence = "The proposal {id:q} is {state} already."

    id: str
    state: str


class ApproverNeeded(RegistryError):
    """The role of a server has no right to decide on proposals.

    Details: ``path`` of the database.
    """

    sentence = "This role may not decide on proposals in {path}."

    path: str


class ProposalOwn(RegistryError):
    """A user tried to approve their own proposal."""

    sentence = "You can't approve your own proposal {id:q}; another person has to review it."

    id: str


class SkillChangedOnDisk(Conflict):
    """The folder has changed since the change was prepared."""

    sentence = (
        "The skill {name:q} ({path}) has changed on disk since it was read, so nothing was done."
        " Look at it again, then repeat the change."
    )

    name: str
    path: str


class ChangeRefused(RegistryError):
    """The change can't be made, and nothing has changed."""

    sentence = "Nothing was changed at {path}: {reason}."

    path: str
    reason: str


class RootMissing(ChangeRefused):
    """The folder of a source, which a request would change, doesn't exist."""

    code = "change_refused"


class FolderPulled(ChangeRefused):
    """A pulled folder can't be renamed.

    Details: ``folder``, and ``lock``, the path of its lock file.
    """

    code = "change_refused"

    lock: str
    folder: str


class OwnFileUnusable(RegistryError):
    """A file or folder that must be private to this user can't be used."""

    sentence = "{path:q}, a private file of the registry, can't be used: {reason}."

    path: str
    reason: str


class ChangePending(RegistryError):
    """The files on disk may have changed, but the database has not.

    The next opening of the database finishes the change.
    """

    sentence = (
        "The change at {path} could not be finished: {reason}. The next command finishes it or"
        " undoes it completely."
    )

    path: str
    reason: str


class SkillNotFound(NotFound):
    """No visible skill has this name (details: ``name``, and ``similar`` names)."""

    sentence = "No skill named {name:q}."

    name: str
    similar: tuple[str, ...]

    def __init__(self, name: str, similar: Sequence[str] = ()) -> None:
        super().__init__(name=name, similar=tuple(similar))


class ShorthandUnclear(SkillNotFound):
    """``name`` may be a mistyped ref of a skill, so no repository with this name was fetched.

    ``source`` is the source with the first part of ``name``, or with a similar name. ``address`` is
    an address of the repository that can't be mistaken for a ref.
    """

    code = "skill_not_found"

    source: str
    address: str

    def __init__(self, name: str, similar: Sequence[str], source: str, address: str) -> None:
        facts = {"name": name, "similar": tuple(similar), "source": source, "address": address}
        RegistryError.__init__(self, **facts)

    def _details(self) -> str:
        return self.fill(
            " It looks like a skill of the source {source:q}. "
            "For the repository, write {address:q}."
        )


class SkillGone(SkillNotFound):
    """The skill was removed at the time ``since``, from the folder ``place`` of ``source``.

    ``source`` and ``place`` are empty if they are unknown.
    """

    code = "skill_not_found"
    sentence = "{name:q} has been gone since {since}."

    since: str
    source: str
    place: str

    def __init__(self, name: str, since: str, source: str = "", place: str = "") -> None:
        facts = {"name": name, "since": since, "source": source, "place": place}
        RegistryError.__init__(self, **facts, similar=())

    def _details(self) -> str:
        return self.fill(" It was in {place:q}.") if self.facts["place"] else ""


class SkillInTrash(SkillGone):
    """The skill was deleted, and is in the trash.

    ``since``, ``source`` and ``place`` have the same meaning as in `SkillGone`.
    """

    code = "skill_not_found"
    sentence = "{name:q} is in the trash (deleted {since})."

    def _details(self) -> str:
        return ""


class NotInTrash(SkillNotFound):
    """The trash has no skill of this name."""

    code = "skill_not_found"
    sentence = "The trash has no skill {name:q}."


class SkillNotDeleted(NotInTrash):
    """A skill with this name exists, so there is nothing to restore."""

    code = "skill_not_found"
    sentence = "{name:q} exists and is not in the trash."


class RevisionNotFound(NotFound):
    """The skill has no revision with this number.

    Details: ``name``, ``number``, ``known`` numbers.
    """

    sentence = "The skill {name:q} has no revision {number}"

    name: str
    number: int
    known: Sequence[int]

    def _details(self) -> str:
        return self.fill(
            "; it has {known:list}." if self.facts["known"] else "; no revision of it is stored."
        )


class VersionNotFound(NotFound):
    """The skill has no version with this label (details: ``name``, ``label``, ``known`` labels)."""

    sentence = "The skill {name:q} has no version {label:q}"

    name: str
    label: str
    known: Sequence[str]

    def _details(self) -> str:
        return self.fill("; it has {known:list}." if self.facts["known"] else "; it has none.")


class VersionExists(Conflict):
    """The label is already a version of the skill, with other files."""

    sentence = (
        "The skill {name:q} already has a version {label:q} with other files. "
        "Give the changed files another version (metadata: version in SKILL.md)."
    )

    name: str
    label: str


class VersionInvalid(Invalid):
    """The text can't be the label of a version."""

    sentence = "{label:q} can't be a version: {rule}."

    label: str
    rule: str


class VersionYanked(SkillNotFound):
    """The version was withdrawn.

    Details: ``name``, ``label``, ``reason``, ``replacement`` (or None).
    """

    sentence = "Version {label} of {name:q} was yanked: {reason}."

    label: str
    reason: str
    replacement: str | None

    def __init__(
        self, name: str, label: str, reason: str | None, replacement: str | None = None
    ) -> None:
        told = (reason or "no reason is recorded").rstrip(".")
        facts = {"label": label, "reason": told, "replacement": replacement}
        RegistryError.__init__(self, name=name, **facts, similar=())

    def _details(self) -> str:
        return self.fill(" Use {replacement:q} instead.") if self.facts["replacement"] else ""


class VersionNotStored(NotFound):
    """The bytes of a version's files are not all stored."""

    sentence = "Not all files of version {label} of {name:q} are stored."

    name: str
    label: str


class ContentMissing(NotFound):
    """The bytes of a file of a revision are not stored."""

    sentence = "{path:q} of revision {number} of {name:q} is not stored."

    name: str
    number: int
    path: str


class NotAllKept(RegistryError):
    """A removed skill can't be restored completely.

    ``paths`` are the paths of the missing files.
    """

    sentence = "{name:q} can't be restored: revision {number} lacks {paths:or}."

    name: str
    number: int
    paths: Sequence[str]


class ContentDamaged(RegistryError):
    """The stored bytes of a file don't match their hash."""

    sentence = "The stored content of {path:q} is damaged."

    path: str


class ChangeNotUndone(Conflict):
    """The last change can't be undone, and nothing was changed.

    ``place`` (source/folder) is the place of the skill before the undo. ``revision`` is the number
    of the skill's revision before the change; None if it is unknown or there was no skill.
    """

    sentence = "Can't undo the {kind} of {name:q}: {reason}."

    kind: str
    name: str
    reason: str
    place: str
    revision: int | None


class NothingToUndo(RegistryError):
    """No change by this user is recorded."""

    sentence = "There is nothing to undo."
