"""Everything that can go wrong: an error owns one sentence, and its facts as attributes.

The sentence says what happened, to what. What to do next is added by the face that shows it, in
its own words (`cli/hints.py`, `toolsets/native.py`): a command for people, a tool for models.
"""

from collections.abc import Sequence

from registry.errors.base import RegistryError as RegistryError
from registry.errors.database import DatabaseBusy as DatabaseBusy
from registry.errors.database import DatabaseCorrupt as DatabaseCorrupt
from registry.errors.database import DatabaseMissing as DatabaseMissing
from registry.errors.database import DatabaseProblem as DatabaseProblem
from registry.errors.database import DatabaseRefused as DatabaseRefused
from registry.errors.database import DatabaseTooNew as DatabaseTooNew
from registry.errors.database import DatabaseUnreachable as DatabaseUnreachable
from registry.errors.database import NotWritable as NotWritable
from registry.errors.past import ChangeNotUndone as ChangeNotUndone
from registry.errors.past import ContentDamaged as ContentDamaged
from registry.errors.past import ContentMissing as ContentMissing
from registry.errors.past import NotAllKept as NotAllKept
from registry.errors.past import NothingToUndo as NothingToUndo
from registry.errors.past import NotInTrash as NotInTrash
from registry.errors.past import RevisionNotFound as RevisionNotFound
from registry.errors.past import SkillGone as SkillGone
from registry.errors.past import SkillInTrash as SkillInTrash
from registry.errors.past import SkillNotDeleted as SkillNotDeleted
from registry.errors.past import SkillNotFound as SkillNotFound
from registry.text import MAX_CHOICES, escaped


class UsageProblem(RegistryError):
    """A request that can't be understood: ``message`` says why."""

    code = "usage"
    sentence = "{message}"


class SettingsProblem(RegistryError):
    """The settings file can't be used: ``path`` and ``message``."""

    code = "settings_invalid"
    sentence = "The settings file {path} can't be used: {message}."


class PersonalityNotFound(RegistryError):
    """The settings know no personality of this name: ``name``, ``similar``, ``known``."""

    sentence = "No personality named {name:q}."

    def _details(self) -> str:
        if self.facts["similar"]:
            return ""
        if self.facts["known"]:
            return self.fill(" The settings have {known:or}.")
        return " The settings have none: add it under personalities."


class ToolsetNotFound(RegistryError):
    """There is no toolset of this name: ``name``, ``similar``, ``known``."""

    sentence = "No toolset named {name:q}. There are {known:list}."


class FindingUnknown(RegistryError):
    """No finding has this code, or a code that begins like this: ``name``, ``similar``."""

    sentence = "There are no findings with the code {name:q}."


class FolderMissing(RegistryError):
    """A path was given, and nothing is there: ``path``."""

    sentence = "There is no folder {path:q}."


class ArchiveRefused(RegistryError):
    """An archive holds no skill that can be brought in: ``path``, ``reason``."""

    sentence = "{path:q} was not imported: {reason}."


class ExportRefused(RegistryError):
    """A folder to publish into can't be written: ``path``, ``reason``."""

    sentence = "{path:q} can't be written: {reason}."


class LockFileInvalid(RegistryError):
    """The lock file of pulled skills can't be used: ``path``, ``reason``."""

    sentence = (
        "The lock file {path} can't be used ({reason}). Restore it, or remove it: then "
        "folders that are there already count as made by somebody else."
    )


class PullClash(RegistryError):
    """Two skills would be pulled into one folder: ``folder``, ``refs``."""

    sentence = "{refs:or} would both get the folder {folder:q}: pull them apart."


class PullRefused(RegistryError):
    """A folder to pull into can't be written: ``path``, ``reason``."""

    sentence = "{path:q} can't be written: {reason}."


class SkillAmbiguous(RegistryError):
    """Several visible skills have this name; ``refs`` tell them apart."""

    sentence = "{name:q} names {count} skills. Choose one of:"

    def __init__(self, name: str, refs: Sequence[str]) -> None:
        super().__init__(name=name, refs=tuple(refs), count=len(refs))

    def _details(self) -> str:
        lines = [f"\n  {escaped(ref)}" for ref in self.facts["refs"][:MAX_CHOICES]]
        more = self.facts["count"] - MAX_CHOICES
        return "".join(lines) + (f"\n  and {more} more" if more > 0 else "")


class SkillInvalid(RegistryError):
    """The skill is kept but can't be used: ``name``, ``problems``, if known its ``path``."""

    sentence = "The skill {name:q} can't be used:"

    def _details(self) -> str:
        return "".join(
            f"\n  {problem.message}" + (f" (fix: {problem.fix})" if problem.fix else "")
            for problem in self.facts["problems"]
            if problem.severity == "error"
        )


class SkillNotVisible(RegistryError):
    """The skill exists, and is not shown to whoever asks: ``name``, ``rule``, ``reason``."""

    sentence = "The skill {name:q} is not shown: {reason}."


class SkillInaccessible(RegistryError):
    """A file can't be read: ``path``, ``reason``."""

    sentence = "{path:q} can't be read: {reason}."


class SkillMissing(RegistryError):
    """The skill's folder or file is gone from disk: ``name``, ``path``."""

    code = "skill_missing_on_disk"
    sentence = "The skill {name:q} is not on disk any more ({path})."


class FileTooLarge(RegistryError):
    """A file is over the limit: ``path``, ``size``, ``limit`` in bytes."""

    sentence = "{path:q} has {size} bytes, {limit} are allowed."


class NotUtf8(RegistryError):
    """A file is not UTF-8 text: ``path``, ``offset`` of the first bad byte."""

    sentence = "{path:q} is not UTF-8 text (byte {offset}). Save it as UTF-8."


class OutsideSkill(RegistryError):
    """A path leads out of the skill's folder: ``path``."""

    sentence = "{path:q} leads out of the skill's folder."


class PathRefused(RegistryError):
    """A file of a skill can't be written anywhere under its path: ``path``, ``reason``."""

    sentence = "{path:q} can't be a file of a skill: {reason}."


class FileNotFoundInSkill(RegistryError):
    """The skill has no such file: ``name``, ``path``."""

    code = "file_not_found"
    sentence = "The skill {name:q} has no file {path:q}."


class FileChanging(RegistryError):
    """A file changed each time while it was being read: ``path``."""

    sentence = "{path:q} kept changing while it was read. Try again when it is finished."


class InvalidName(RegistryError):
    """A new skill can't have this name: ``name``, ``reason``."""

    sentence = "{name:q} can't be a skill's name: {reason}."


class SkillExists(RegistryError):
    """There is a skill or a folder of that name already: ``name``, ``path``."""

    sentence = "There is a skill {name:q} already ({path})."


class SkillChangedOnDisk(RegistryError):
    """The folder is not what the change was based on: ``name``, ``path``."""

    sentence = (
        "The skill {name:q} was changed on disk since it was read ({path}); nothing was done."
        " Look at it again, then repeat the change."
    )


class ChangeRefused(RegistryError):
    """The change can't be made, and nothing happened: ``path``, ``reason``."""

    sentence = "Nothing was changed at {path}: {reason}."


class RootMissing(ChangeRefused):
    """The folder of a source that is to be changed is not there: ``path``, ``reason``."""

    code = "change_refused"


class OwnFileUnusable(RegistryError):
    """A file or folder that must be this user's alone can't be used: ``path``, ``reason``."""

    sentence = "{path:q}, which tells what you did here yourself, can't be used: {reason}."


class ChangePending(RegistryError):
    """The disk may be changed, the database could not be told: the next open finishes it.

    Facts: ``path``, ``reason``.
    """

    sentence = (
        "The change at {path} could not be finished: {reason}. It is finished or undone as a "
        "whole when the registry is opened next."
    )


class SourceUnclear(RegistryError):
    """Several sources could be meant, or there is none: ``known``."""

    sentence = ""

    def _details(self) -> str:
        if self.facts["known"]:
            return self.fill("Several sources could be written to: {known:or}.")
        return "No sources are registered yet."


class SourceNotFound(RegistryError):
    """No source has this name or path: ``name``, ``known``."""

    sentence = "{name:q} is neither a source nor a folder."

    def _details(self) -> str:
        if self.facts.get("known"):
            return self.fill(" Registered are {known:or}.")
        return " No sources are registered yet."


class SourceElsewhere(RegistryError):
    """The source belongs to another machine: ``name``, ``host``."""

    sentence = (
        "The source {name:q} belongs to {host:q}: sync and change it there. What is read here"
        " comes from the database."
    )


class SourceNotAdopted(SourceElsewhere):
    """The source claims to be of this host, and this user did not add it: ``name``, ``host``."""

    sentence = (
        "The source {name:q} was added elsewhere under this host's name ({host:q}): what is in its"
        " folder here is not read, synced or changed."
    )


class SourceExists(RegistryError):
    """A source of that name or path is registered already: ``name``, ``path``."""

    sentence = "There is a source {name:q} already, at {path}."


class SourceInvalid(RegistryError):
    """The folder can't be a source: ``path``, ``reason``."""

    sentence = "{path:q} can't be a source: {reason}."


class SyncRunning(RegistryError):
    """Another process syncs this registry: ``owner``."""

    sentence = "Another sync of this registry is running: {owner}."
