"""Everything that can go wrong: an error owns one sentence, and its facts as attributes.

The sentence says what happened, to what. What to do next is added by the face that shows it, in
its own words (`cli/hints.py`, `toolsets/native.py`): a command for people, a tool for models.
"""

from registry.errors.base import Conflict as Conflict
from registry.errors.base import Invalid as Invalid
from registry.errors.base import NotFound as NotFound
from registry.errors.base import RegistryError as RegistryError
from registry.errors.base import Unavailable as Unavailable
from registry.errors.changes import ChangePending as ChangePending
from registry.errors.changes import ChangeRefused as ChangeRefused
from registry.errors.changes import InvalidName as InvalidName
from registry.errors.changes import OwnFileUnusable as OwnFileUnusable
from registry.errors.changes import RootMissing as RootMissing
from registry.errors.changes import SkillChangedOnDisk as SkillChangedOnDisk
from registry.errors.changes import SkillExists as SkillExists
from registry.errors.database import DatabaseBusy as DatabaseBusy
from registry.errors.database import DatabaseCorrupt as DatabaseCorrupt
from registry.errors.database import DatabaseMissing as DatabaseMissing
from registry.errors.database import DatabaseProblem as DatabaseProblem
from registry.errors.database import DatabaseRefused as DatabaseRefused
from registry.errors.database import DatabaseTooNew as DatabaseTooNew
from registry.errors.database import DatabaseUnreachable as DatabaseUnreachable
from registry.errors.database import NotWritable as NotWritable
from registry.errors.exchange import ArchiveRefused as ArchiveRefused
from registry.errors.exchange import ExportRefused as ExportRefused
from registry.errors.exchange import LockFileInvalid as LockFileInvalid
from registry.errors.exchange import PullClash as PullClash
from registry.errors.exchange import PullRefused as PullRefused
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
from registry.errors.requests import DialectNotFound as DialectNotFound
from registry.errors.requests import DialectUnusable as DialectUnusable
from registry.errors.requests import FindingUnknown as FindingUnknown
from registry.errors.requests import FolderMissing as FolderMissing
from registry.errors.requests import PersonalityNotFound as PersonalityNotFound
from registry.errors.requests import SettingsProblem as SettingsProblem
from registry.errors.requests import ToolsetNotFound as ToolsetNotFound
from registry.errors.requests import UsageProblem as UsageProblem
from registry.errors.skills import FileChanging as FileChanging
from registry.errors.skills import FileNotFoundInSkill as FileNotFoundInSkill
from registry.errors.skills import FileTooLarge as FileTooLarge
from registry.errors.skills import NotUtf8 as NotUtf8
from registry.errors.skills import OutsideSkill as OutsideSkill
from registry.errors.skills import PathRefused as PathRefused
from registry.errors.skills import SkillAmbiguous as SkillAmbiguous
from registry.errors.skills import SkillInaccessible as SkillInaccessible
from registry.errors.skills import SkillInvalid as SkillInvalid
from registry.errors.skills import SkillMissing as SkillMissing
from registry.errors.skills import SkillNotVisible as SkillNotVisible
from registry.errors.sources import SourceElsewhere as SourceElsewhere
from registry.errors.sources import SourceExists as SourceExists
from registry.errors.sources import SourceInvalid as SourceInvalid
from registry.errors.sources import SourceNotAdopted as SourceNotAdopted
from registry.errors.sources import SourceNotFound as SourceNotFound
from registry.errors.sources import SourceUnclear as SourceUnclear
from registry.errors.sources import SyncRunning as SyncRunning
