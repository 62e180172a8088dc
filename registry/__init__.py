"""One SQLite catalogue of all your agent skills, in sync with the folders on disk.

Only the names that this module exports are public: all other modules can change in any version.
``docs/python.md`` shows how to use the exported names.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from registry.api import SkillRegistry
    from registry.db.read.listing import Filters
    from registry.errors import *
    from registry.model import (
        Diagnostic,
        Found,
        Origin,
        Page,
        Parameter,
        Remote,
        SearchHit,
        Skill,
        SkillDetail,
        SkillFile,
        SkillVersion,
        Source,
        VersionChange,
    )
    from registry.settings import Settings
    from registry.sync.report import Moved, SourceReport, SyncReport
    from registry.toolsets.schemas import Tool

__version__ = "0.1.0"

__all__ = [
    "AddressInvalid",
    "AdminNeeded",
    "AgentNotFound",
    "ApproverNeeded",
    "ArchiveRefused",
    "ChangeNotUndone",
    "ChangePending",
    "ChangeRefused",
    "Conflict",
    "ContentDamaged",
    "ContentMissing",
    "DatabaseBehind",
    "DatabaseBusy",
    "DatabaseCorrupt",
    "DatabaseMissing",
    "DatabaseProblem",
    "DatabaseRefused",
    "DatabaseTooNew",
    "DatabaseTooOld",
    "DatabaseUnreachable",
    "Diagnostic",
    "ExportRefused",
    "FileChanging",
    "FileNotFoundInSkill",
    "FileTooLarge",
    "Filters",
    "FindingUnknown",
    "FolderMissing",
    "FolderPulled",
    "Found",
    "HashNeeded",
    "HashOutdated",
    "HostTaken",
    "Invalid",
    "InvalidName",
    "LockEdited",
    "LockFileInvalid",
    "LockMissing",
    "LockNotMet",
    "Moved",
    "NoUpstream",
    "NotAllKept",
    "NotFound",
    "NotInTrash",
    "NotPulled",
    "NotUtf8",
    "NotWritable",
    "NothingToUndo",
    "Origin",
    "OutsideSkill",
    "OwnFileUnusable",
    "Page",
    "Parameter",
    "PathRefused",
    "PersonalityNotFound",
    "PinMoved",
    "ProposalDecided",
    "ProposalNotFound",
    "ProposalOwn",
    "PublishRefused",
    "PullClash",
    "PullRefused",
    "RegistryError",
    "Remote",
    "RemoteInvalid",
    "RemoteProblem",
    "RemoteRefused",
    "RemoteTooLarge",
    "RemoteUnreachable",
    "RevisionNotFound",
    "RightMissing",
    "RoleNotFound",
    "RootMissing",
    "SearchHit",
    "ServerFull",
    "Settings",
    "SettingsProblem",
    "SeveralSkills",
    "ShorthandUnclear",
    "Skill",
    "SkillAmbiguous",
    "SkillChangedOnDisk",
    "SkillDetail",
    "SkillExists",
    "SkillFile",
    "SkillGone",
    "SkillHeld",
    "SkillInTrash",
    "SkillInaccessible",
    "SkillInvalid",
    "SkillMissing",
    "SkillNotDeleted",
    "SkillNotFound",
    "SkillNotVisible",
    "SkillProposed",
    "SkillRegistry",
    "SkillVersion",
    "Source",
    "SourceElsewhere",
    "SourceExists",
    "SourceInvalid",
    "SourceKindUnusable",
    "SourceNotAdopted",
    "SourceNotFound",
    "SourceNotYours",
    "SourceReadOnly",
    "SourceReport",
    "SourceUnclear",
    "SyncReport",
    "SyncRunning",
    "TokenNotFound",
    "Tool",
    "Toolset",
    "ToolsetNotFound",
    "TrustOutdated",
    "Unavailable",
    "UsageProblem",
    "VersionChange",
    "VersionExists",
    "VersionInvalid",
    "VersionNotFound",
    "VersionNotStored",
    "VersionYanked",
    "__version__",
]


def __getattr__(name: str) -> object:
    """Import a public name at its first use.

    So commands such as ``--version``, which need none of the names, start faster.
    """
    if name not in __all__:
        raise AttributeError(f"module 'registry' has no attribute {name!r}")
    value = globals()[name] = _found(name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


def _found(name: str) -> object:
    from registry import errors, model

    for light in (errors, model):
        if hasattr(light, name):
            return getattr(light, name)
    from registry import api
    from registry.sync import report
    from registry.toolsets import base, schemas

    return getattr(next(home for home in (api, report, base, schemas) if hasattr(home, name)), name)
