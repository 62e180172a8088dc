"""Everything that can go wrong, as values: each error has a stable code and carries its facts.

Faces put them into words: `registry.wording` for people, a toolset for its contract.
"""

from collections.abc import Sequence
from typing import ClassVar


class RegistryError(Exception):
    """Something the registry was asked for can't be done; ``facts`` say what and where."""

    code: ClassVar[str] = "registry_error"

    def __init__(self, **facts: object) -> None:
        super().__init__(*facts.values())
        self.facts = facts

    def __str__(self) -> str:
        from registry.wording import describe

        return describe(self)


class UsageProblem(RegistryError):
    """A request that can't be understood: ``message`` says why."""

    code = "usage"


class SettingsProblem(RegistryError):
    """The settings file can't be used: ``path`` and ``message``."""

    code = "settings_invalid"


class PersonalityNotFound(RegistryError):
    """The settings know no personality of this name: ``name``, ``similar``, ``known``."""

    code = "personality_not_found"


class ToolsetNotFound(RegistryError):
    """There is no toolset of this name: ``name``, ``similar``, ``known``."""

    code = "toolset_not_found"


class SkillNotFound(RegistryError):
    """No visible skill has this name."""

    code = "skill_not_found"

    def __init__(self, name: str, similar: Sequence[str] = ()) -> None:
        super().__init__(name=name, similar=tuple(similar))


class NotInTrash(SkillNotFound):
    """The trash holds no skill of this name."""


class RevisionNotFound(RegistryError):
    """The skill has no such revision: ``name``, ``number``, ``known`` (numbers)."""

    code = "revision_not_found"


class ContentMissing(RegistryError):
    """A file of a revision is not stored: ``name``, ``number``, ``path``."""

    code = "content_missing"


class ArchiveRefused(RegistryError):
    """An archive holds no skill that can be brought in: ``path``, ``reason``."""

    code = "archive_refused"


class ExportRefused(RegistryError):
    """A folder to publish into can't be written: ``path``, ``reason``."""

    code = "export_refused"


class LockFileInvalid(RegistryError):
    """The lock file of pulled skills can't be used: ``path``, ``reason``."""

    code = "lock_file_invalid"


class PullClash(RegistryError):
    """Two skills would be pulled into one folder: ``folder``, ``refs``."""

    code = "pull_clash"


class PullRefused(RegistryError):
    """A folder to pull into can't be written: ``path``, ``reason``."""

    code = "pull_refused"


class SkillAmbiguous(RegistryError):
    """Several visible skills have this name; ``refs`` tell them apart."""

    code = "skill_ambiguous"

    def __init__(self, name: str, refs: Sequence[str]) -> None:
        super().__init__(name=name, refs=tuple(refs))


class SkillInvalid(RegistryError):
    """The skill is kept but can't be used: ``name``, ``problems`` (diagnostics)."""

    code = "skill_invalid"


class SkillNotVisible(RegistryError):
    """The skill exists, and is not shown to whoever asks: ``name``, ``rule``, ``reason``."""

    code = "skill_not_visible"


class SkillInaccessible(RegistryError):
    """A file can't be read: ``path``, ``reason``."""

    code = "skill_inaccessible"


class SkillMissing(RegistryError):
    """The skill's folder or file is gone from disk: ``name``, ``path``."""

    code = "skill_missing_on_disk"


class FileTooLarge(RegistryError):
    """A file is over the limit: ``path``, ``size``, ``limit`` in bytes."""

    code = "file_too_large"


class NotUtf8(RegistryError):
    """A file is no UTF-8 text: ``path``, ``offset`` of the first bad byte."""

    code = "not_utf8"


class OutsideSkill(RegistryError):
    """A path leads out of the skill's folder: ``path``."""

    code = "outside_skill"


class FileNotFoundInSkill(RegistryError):
    """The skill has no such file: ``name``, ``path``."""

    code = "file_not_found"


class FileChanging(RegistryError):
    """A file changed each time while it was being read: ``path``."""

    code = "file_changing"


class InvalidName(RegistryError):
    """A new skill can't have this name: ``name``, ``reason``."""

    code = "invalid_name"


class SkillExists(RegistryError):
    """There is a skill or a folder of that name already: ``name``, ``path``."""

    code = "skill_exists"


class SkillChangedOnDisk(RegistryError):
    """The folder is not what the change was based on: ``name``, ``path``."""

    code = "skill_changed_on_disk"


class ChangeRefused(RegistryError):
    """The change can't be made, and nothing happened: ``path``, ``reason``."""

    code = "change_refused"


class ChangePending(RegistryError):
    """The disk may be changed, the database could not be told: the next open finishes it.

    Facts: ``path``, ``reason``.
    """

    code = "change_pending"


class SourceUnclear(RegistryError):
    """Several sources could be meant, or there is none: ``known``."""

    code = "source_unclear"


class SourceNotFound(RegistryError):
    """No source has this name or path: ``name``, ``known``."""

    code = "source_not_found"


class SourceElsewhere(RegistryError):
    """The source belongs to another machine: ``name``, ``host``."""

    code = "source_elsewhere"


class SourceExists(RegistryError):
    """A source of that name or path is registered already: ``name``, ``path``."""

    code = "source_exists"


class SourceInvalid(RegistryError):
    """The folder can't be a source: ``path``, ``reason``."""

    code = "source_invalid"


class SyncRunning(RegistryError):
    """Another process syncs this registry: ``owner``."""

    code = "sync_running"


class DatabaseProblem(RegistryError):
    """The database is unusable: ``path``, ``reason``."""

    code = "database_unusable"


class DatabaseBusy(DatabaseProblem):
    """Another process held the write lock past the wait: ``path``, ``seconds``."""

    code = "database_busy"


class DatabaseTooNew(DatabaseProblem):
    """A newer skill-registry wrote this file: ``path``, ``revision``."""

    code = "database_too_new"


class DatabaseCorrupt(DatabaseProblem):
    """The file is no sound database: ``path``, ``reason``."""

    code = "database_corrupt"


class DatabaseUnreachable(DatabaseProblem):
    """The server does not answer, or ended the connection: ``path``, ``reason``."""

    code = "database_unreachable"
