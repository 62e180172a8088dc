"""The values of the registry, as frozen dataclasses.

The packages that import this module pass them to each other and to the user.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from datetime import datetime
from operator import attrgetter
from typing import (
    Any,
    ClassVar,
    Final,
    Generic,
    Literal,
    NamedTuple,
    TypeAlias,
    TypeVar,
    get_args,
    overload,
)


class Value:
    """The base class of all public values, which converts them to JSON.

    If a class has ``KEYS``, its JSON has only these attributes. Otherwise its JSON has all fields
    of the class.
    """

    __slots__ = ()

    KEYS: ClassVar[Sequence[str]] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return the value as JSON, as the command line's ``--json`` prints it."""
        made: dict[str, Any] = record(self)
        return made


def record(value: object) -> Any:
    """Return ``value`` as JSON; a dataclass becomes an object, with null for unknown values.

    The keys of the object are the fields in declared order, or the ``KEYS`` of the class.
    """
    if isinstance(value, list | tuple):
        return [record(item) for item in value]
    if not is_dataclass(value):
        return value
    return {key: record(fact) for key, fact in shallow_record(value).items()}


def shallow_record(value: object) -> dict[str, Any]:
    """Return a dataclass as `record` does, without converting the values of its fields.

    This is the ``default`` function of the JSON encoder that writes long listings. Raises TypeError
    if ``value`` isn't a dataclass.
    """
    kind = type(value)
    if kind not in _READERS:
        keys = keys_of(kind)
        _READERS[kind] = (
            keys,
            attrgetter(*keys, keys[0]),
        )  # with two or more keys, attrgetter returns a tuple
    keys, read = _READERS[kind]
    return dict(zip(keys, read(value), strict=False))


def keys_of(kind: type) -> Sequence[str]:
    """Return the keys of a dataclass in JSON. Raises TypeError if ``kind`` isn't a dataclass."""
    declared = fields(kind)
    return getattr(kind, "KEYS", ()) or [entry.name for entry in declared]


_READERS: Final[dict[type, tuple[Sequence[str], Callable[[object], tuple[Any, ...]]]]] = {}


JsonValue: TypeAlias = (
    "bool | int | float | str | Sequence[JsonValue] | Mapping[str, JsonValue] | None"
)
"""A JSON value."""

Scope: TypeAlias = Literal["project", "team", "personal", "community", "bundled"]
SCOPES: Final[tuple[Scope, ...]] = get_args(Scope)
"""All scopes, the one with the highest precedence first.

A skill shadows skills with the same name in scopes of lower precedence.
"""

Severity: TypeAlias = Literal["error", "warning", "info"]
SEVERITIES: Final[tuple[Severity, ...]] = get_args(Severity)

FindingCategory: TypeAlias = Literal["security", "format"]

SECURITY_CODES: Final = frozenset(
    "agent-configuration allowed-tools-broad allowed-tools-shell archive-with-password "
    "assembled-command auto-run bidi-control claimed-approval command-expansion "
    "comment-instructions concealment conversation-sent cryptominer destructive-command "
    "download-then-run encoded-data encoded-execution encoded-instructions fake-turn "
    "file-name-unprintable files-sent hidden-action hidden-text hooks instruction-override "
    "name-look-alike "
    "nested-skill open-door package-from-address package-look-alike paste-site pasted-command "
    "payment-redirected persistence protection-off redirected-endpoint remote-control "
    "remote-execution remote-instructions required-program restrictions-lifted reverse-shell "
    "secret secret-asked secret-sent slow-text stranger-key system-tool-abuse terminal-control "
    "tool-shadowing unchecked-text untraceable-execution zero-width-character".split()
)
"""Codes of security findings, which are about the actions of a skill.

All other codes are about the format of a skill.
"""

SecurityLevel: TypeAlias = Literal["error", "warning", "none"]
SECURITY_LEVELS: Final[tuple[SecurityLevel, ...]] = get_args(SecurityLevel)
"""The severity of the worst security finding in a skill; ``none`` if there is no such finding.

Findings with the severity ``info`` don't count.
"""

Status: TypeAlias = Literal["ok", "warning", "invalid", "no_document"]
STATUSES: Final[tuple[Status, ...]] = get_args(Status)

DOCUMENT_NAMES: Final = ("SKILL.md", "SKILL.MD", "skill.md", "Skill.md")
"""Spellings of the skill file's name; if a folder has several, the first in this list is used."""


@dataclass(frozen=True, slots=True)
class Diagnostic(Value):
    """A finding about a skill.

    ``code`` is in kebab-case, never changes, and decides the ``category``. ``line`` counts from 1
    in ``path``, which is relative to the skill's folder (None means the folder itself). ``fix``
    describes how to repair the problem.
    """

    KEYS: ClassVar = ("code", "severity", "category", "path", "line", "message", "fix")

    code: str
    severity: Severity
    message: str
    line: int | None = None
    fix: str | None = None
    path: str | None = None

    @property
    def category(self) -> FindingCategory:
        """Security (what the skill may do) or format (how it is written)."""
        return "security" if self.code in SECURITY_CODES else "format"

    @property
    def sort_key(self) -> tuple[bool, int, str, int, str, str]:
        """The sort key: security findings first, then by severity, path and line."""
        severity = SEVERITIES.index(self.severity)
        is_format = self.code not in SECURITY_CODES
        return is_format, severity, self.path or "", self.line or 0, self.code, self.message


@dataclass(frozen=True, slots=True)
class Parameter(Value):
    """A parameter that a skill declares; ``default`` is None if it has no default."""

    name: str
    type: str
    description: str
    required: bool
    default: Any = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """A parsed SKILL.md, with its values in canonical fields.

    ``text`` is the whole decoded file without its byte order mark. ``body`` is the Markdown after
    the front matter, and ``body_line`` is its first line (counted from 1). ``front_matter`` has
    every scalar as text. If the file has no name, ``name`` is the folder's name. Times are UTC, ISO
    8601, ending in ``Z``. ``usable`` is False if any diagnostic is an error.
    """

    text: str
    body: str
    body_line: int
    front_matter: Mapping[str, JsonValue]
    name: str
    description: str
    kind: str | None = None
    category: str | None = None
    version: str | None = None
    license: str | None = None
    author: str | None = None
    compatibility: str | None = None
    tags: tuple[str, ...] = ()
    created: str | None = None
    required_tools: tuple[str, ...] = ()
    allowed_tools: tuple[str, ...] = ()
    parameters: tuple[Parameter, ...] = ()
    hidden: bool = False
    diagnostics: tuple[Diagnostic, ...] = ()

    @property
    def usable(self) -> bool:
        """Whether agents may see this skill."""
        return all(finding.severity != "error" for finding in self.diagnostics)


@dataclass(frozen=True, slots=True)
class Origin(Value):
    """The remote source from which a skill comes.

    ``ref`` is the pin of the source; None means the default branch. ``commit`` is the version that
    was read last (a digest if the source isn't a git repository). ``path`` is the skill's folder in
    the remote source.
    """

    url: str
    ref: str | None
    commit: str | None
    path: str


@dataclass(frozen=True, slots=True)
class Remote(Value):
    """The address behind a source whose folder is a checkout.

    ``kind`` is its protocol: git, archive, site, hub, or a kind that a package adds. If ``part`` is
    given, only this folder is read. If ``only`` is given, only skills with these names are read.
    ``version`` is the version that was fetched last (a commit, for git), and ``fetched_at`` is the
    time of this fetch. ``behind`` tells whether there is a newer version; None if this is unknown.
    """

    kind: str
    url: str
    ref: str | None = None
    part: str | None = None
    only: tuple[str, ...] = ()
    version: str | None = None
    fetched_at: str | None = None
    behind: bool | None = None


@dataclass(frozen=True, slots=True)
class Source(Value):
    """A registered folder that contains skills.

    If two sources of the same scope have a skill with the same name, the higher ``priority`` wins.
    ``host`` is the machine that has the folder. ``host`` is empty in a SQLite file, because all
    folders are on this machine. If the folder is a checkout, ``remote`` is its remote source, and
    the source is read-only. ``held`` is the number of its quarantined skills.

    On a server, ``owner`` is the role that may change the source, ``own`` is True if the current
    role is the owner, and ``team`` is the team that sees the source (None means all roles). If
    ``review``, changes that are published or made through tools need approval. ``precedence`` is
    the number with which an admin ranks the source among the sources of all owners.
    """

    KEYS: ClassVar = tuple(
        "name path scope priority enabled skills last_sync_at last_result host remote held owner "
        "team review".split()
    )

    id: int
    name: str
    path: str
    scope: Scope
    priority: int
    enabled: bool
    last_sync_at: str | None
    last_result: str | None
    skills: int = 0
    host: str = ""
    remote: Remote | None = None
    held: int = 0
    owner: str | None = None
    team: str | None = None
    own: bool = True
    precedence: int = 0
    review: bool = False

    @property
    def last_sync(self) -> datetime | None:
        """``last_sync_at`` as a datetime with a time zone; None if the source was never synced.

        Raises ValueError if the database contains an invalid time.
        """
        return None if self.last_sync_at is None else datetime.fromisoformat(self.last_sync_at)


@dataclass(frozen=True)
class Skill(Value):
    """A skill as listings show it; its source and folder identify it.

    ``ref`` is the shortest text (a name, or source/name) that finds exactly this skill. ``folder``
    is the folder relative to the source's root (``.`` is the root itself), and ``path`` is its
    absolute path. ``copies`` are the refs of other skills with the same name and the same files;
    only one of them is listed. The class has no slots: `db.read.skills` fills ``__dict__``
    directly, which makes a long listing three times faster.
    """

    KEYS: ClassVar = tuple(
        "ref name description kind category tags scope source path version license author "
        "created_at updated_at content_hash tree_hash status shadowed copies origin".split()
    )

    ref: str
    name: str
    description: str
    kind: str | None
    category: str | None
    tags: tuple[str, ...]
    scope: Scope
    source: str
    folder: str
    path: str
    version: str | None
    license: str | None
    author: str | None
    created_at: str
    updated_at: str
    content_hash: str | None
    tree_hash: str | None
    status: Status
    shadowed: bool
    copies: tuple[str, ...]
    origin: Origin | None

    @property
    def created(self) -> datetime:
        """``created_at`` as a datetime with a time zone.

        Raises ValueError if the database contains an invalid time. Listings may print an invalid
        time, but calculations must not use it.
        """
        return datetime.fromisoformat(self.created_at)

    @property
    def updated(self) -> datetime:
        """``updated_at`` as a datetime with a time zone. Raises ValueError as `created` does."""
        return datetime.fromisoformat(self.updated_at)


@dataclass(frozen=True)
class PinnedSkill(Skill):
    """A version of a skill, ``NAME@LABEL``, to install or export; ``pin`` is the label.

    The hashes come from the version, and all other values from the current skill.
    """

    pin: str


@dataclass(frozen=True)
class SearchHit(Skill):
    """A skill that a search found; a higher ``score`` is a better match.

    ``confidence`` is the share of the query that the skill's name, tags and description contain,
    from 0 to 1. ``alike`` has the refs of copies and near-duplicates that also match the query, but
    aren't listed.
    """

    KEYS: ClassVar = (*Skill.KEYS, "score", "snippet", "confidence", "alike")

    score: float
    snippet: str
    confidence: float
    alike: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SkillFile(Value):
    """One file of a skill.

    ``path`` is relative to the skill's folder, ``size`` is in bytes.
    """

    path: str
    size: int
    hash: str | None
    executable: bool


VersionState: TypeAlias = Literal["active", "deprecated", "yanked"]
"""The state of a version: in use, still available with a warning, or withdrawn."""

VERSION_STATES: Final[tuple[VersionState, ...]] = get_args(VersionState)


@dataclass(frozen=True, slots=True)
class VersionChange(Value):
    """The creation of a version, or a change of its state: time, reason and author.

    ``replacement`` names an alternative. A server itself records ``role``. The client reports
    ``host``, ``tool`` and ``client``.
    """

    state: VersionState
    at: str
    reason: str | None
    replacement: str | None
    role: str | None
    host: str | None
    tool: str | None
    client: str | None


@dataclass(frozen=True, slots=True)
class SkillVersion(Value):
    """A version of a skill: a label for one set of files, which never changes.

    ``current`` tells whether the skill has these files now. ``history`` has the creation of the
    version and all changes of its state, the oldest first.
    """

    KEYS: ClassVar = tuple(
        "label tree_hash created_at author current state reason replacement history".split()
    )

    uid: str
    label: str
    tree_hash: str
    current: bool
    history: tuple[VersionChange, ...]

    @property
    def created_at(self) -> str:
        """When the version was created."""
        return self.history[0].at

    @property
    def author(self) -> str | None:
        """The role of a server that created the version; for a file, the client."""
        return self.history[0].role or self.history[0].client

    @property
    def state(self) -> VersionState:
        """Whether the version is active, deprecated or yanked."""
        return self.history[-1].state

    @property
    def reason(self) -> str | None:
        """Why the version is deprecated or yanked."""
        return self.history[-1].reason

    @property
    def replacement(self) -> str | None:
        """The alternative to a deprecated or yanked version."""
        return self.history[-1].replacement

    @property
    def warning(self) -> str | None:
        """The sentences that warn of a deprecated or yanked version; None if it is active."""
        if self.state == "active":
            return None
        instead = f" Use {self.replacement} instead." if self.replacement else ""
        reason = (self.reason or "no reason is recorded").rstrip(".")
        return f"Version {self.label} is {self.state}: {reason}.{instead}"


BY_REMOTE: Final = "remote"
"""Value of `VersionChange.tool` if the state comes from the remote source of the skill."""


class RemoteState(NamedTuple):
    """The state of a version, deprecated or yanked, of the skill in a folder of the source."""

    folder: str
    label: str
    tree_hash: str
    state: VersionState
    reason: str | None
    replacement: str | None


@dataclass(frozen=True)
class SkillDetail(Skill):
    """A skill with all known facts.

    If ``quarantined``, agents don't see the skill until a user trusts its source. ``versions`` are
    the versions with exactly these files, usually one or none.
    """

    KEYS: ClassVar = (
        *Skill.KEYS,
        *"quarantined compatibility required_tools parameters location front_matter".split(),
        *("files", "diagnostics", "body", "versions"),
    )

    body: str | None
    files: tuple[SkillFile, ...]
    diagnostics: tuple[Diagnostic, ...]
    front_matter: Mapping[str, Any]
    compatibility: str | None
    required_tools: tuple[str, ...]
    parameters: tuple[Parameter, ...]
    location: str
    """The absolute path of the skill file; if there is none, of the folder."""
    quarantined: bool = False
    versions: tuple[SkillVersion, ...] = ()


S_co = TypeVar("S_co", bound=Skill, covariant=True)


@dataclass(frozen=True, slots=True)
class Page(Sequence[S_co], Generic[S_co]):
    """Some skills of a listing or a search.

    ``total`` is the number of all matching skills, without a limit.
    """

    items: tuple[S_co, ...]
    total: int

    def __len__(self) -> int:
        return len(self.items)

    def __iter__(self) -> Iterator[S_co]:
        return iter(self.items)

    @overload
    def __getitem__(self, index: int) -> S_co: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[S_co, ...]: ...
    def __getitem__(self, index: int | slice) -> S_co | tuple[S_co, ...]:
        return self.items[index]


@dataclass(frozen=True, slots=True)
class Found(Page[SearchHit]):
    """A page of search hits; in ``total``, a skill and its near-duplicates count once.

    ``confidence`` is the highest confidence of the best hits. If it is so low that probably no
    skill fits, ``missing`` has the words of the query that no hit contains, and ``shorter`` has
    shorter queries to try. Otherwise both are empty. ``respelled`` has pairs: a typed word, and the
    word that was searched for instead.
    """

    confidence: float
    missing: tuple[str, ...]
    shorter: tuple[str, ...] = ()
    respelled: tuple[tuple[str, str], ...] = ()
