"""The values of the registry as frozen dataclasses.

Packages above this module pass them to each other and to the user.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from datetime import datetime
from operator import attrgetter
from typing import Any, ClassVar, Final, Generic, Literal, TypeAlias, TypeVar, get_args, overload


class Value:
    """The base of all public values. It converts them to JSON.

    If a class lists its ``KEYS``, its JSON has only these attributes. Otherwise its JSON has all
    fields of the class.
    """

    __slots__ = ()

    KEYS: ClassVar[Sequence[str]] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return the value as JSON, as the command line's ``--json`` prints it."""
        made: dict[str, Any] = record(self)
        return made


def record(value: object) -> Any:
    """Return ``value`` as JSON: a dataclass becomes an object, with null for unknown values.

    The keys of the object are the fields in declared order, or the ``KEYS`` of the class.
    """
    if isinstance(value, list | tuple):
        return [record(item) for item in value]
    if not is_dataclass(value):
        return value
    return {key: record(fact) for key, fact in shallow_record(value).items()}


def shallow_record(value: object) -> dict[str, Any]:
    """Return a dataclass as `record` does, without converting the values of its fields.

    It is the ``default`` function of a JSON encoder, which writes long listings this way. Raises
    TypeError if ``value`` is not a dataclass.
    """
    kind = type(value)
    if kind not in _READERS:
        keys = keys_of(kind)
        _READERS[kind] = (
            keys,
            attrgetter(*keys, keys[0]),
        )  # with two or more keys attrgetter returns a tuple
    keys, read = _READERS[kind]
    return dict(zip(keys, read(value), strict=False))


def keys_of(kind: type) -> Sequence[str]:
    """Return the keys of a dataclass in JSON. Raises TypeError if ``kind`` is not a dataclass."""
    declared = fields(kind)
    return getattr(kind, "KEYS", ()) or [entry.name for entry in declared]


_READERS: Final[dict[type, tuple[Sequence[str], Callable[[object], tuple[Any, ...]]]]] = {}


JsonValue: TypeAlias = (
    "bool | int | float | str | Sequence[JsonValue] | Mapping[str, JsonValue] | None"
)
"""A JSON value."""

Scope: TypeAlias = Literal["project", "team", "personal", "community", "bundled"]
SCOPES: Final[tuple[Scope, ...]] = get_args(Scope)
"""All scopes, the strongest first.

A skill shadows skills with the same name in weaker scopes.
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
"""Codes of findings about security: they concern what a skill may do.

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
"""Spellings of the skill file's name.

If a folder has several of them, the first in this list is used.
"""


@dataclass(frozen=True, slots=True)
class Diagnostic(Value):
    """One finding about a skill.

    ``code`` is in kebab-case, never changes, and decides the ``category``. ``line`` counts from 1
    in ``path``, which is relative to the skill's folder (None means the folder itself). ``fix``
    describes the repair.
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
        """The key for sorting: security findings first, then by severity, then by path and line."""
        severity = SEVERITIES.index(self.severity)
        is_format = self.code not in SECURITY_CODES
        return is_format, severity, self.path or "", self.line or 0, self.code, self.message


@dataclass(frozen=True, slots=True)
class Parameter(Value):
    """One parameter that a skill declares.

    ``default`` is None if the parameter has no default.
    """

    name: str
    type: str
    description: str
    required: bool
    default: Any = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """The parsed SKILL.md, with its values in canonical fields.

    ``text`` is the whole decoded file without its byte order mark. ``body`` is the Markdown after
    the front matter, and ``body_line`` the line (from 1) on which it starts. ``front_matter`` has
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
    """The remote from which a skill comes.

    ``ref`` is the pin of the source; None means the remote's default branch. ``commit`` is the
    version that was read last (a digest if the source isn't git). ``path`` is the skill's folder in
    the remote.
    """

    url: str
    ref: str | None
    commit: str | None
    path: str


@dataclass(frozen=True, slots=True)
class Remote(Value):
    """The remote of which a source is a checkout.

    ``kind`` is its protocol: git, archive, site, hub, or a kind that a package adds. ``part``: only
    this folder of the remote is read. ``only``: only skills with these names are read. ``version``
    is the version that was fetched last (a commit, for git), and ``fetched_at`` the time of this
    fetch. ``behind``: whether the remote has a newer version; None if unknown.
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

    If two sources have a skill of the same name, a higher ``priority`` wins. ``host`` is the
    machine that has the folder. It is empty in a SQLite file, because all folders are on this
    machine. ``remote``: the remote of which the folder is a checkout; such a source is read-only.
    ``held``: the number of its quarantined skills.

    On a server, ``owner`` is the role that may change the source, ``own`` is True if the current
    role is the owner, and ``team`` is the team that sees the source (None means all roles).
    ``review``: changes that are published, or made through tools, must be approved first.
    ``precedence``: the number with which an admin ranks the source among the sources of all owners.
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
        """``last_sync_at`` as a datetime with its zone; None if the source was never synced.

        Raises ValueError if the database contains an invalid time.
        """
        return None if self.last_sync_at is None else datetime.fromisoformat(self.last_sync_at)


@dataclass(frozen=True)
class Skill(Value):
    """One skill as listings show it. It is identified by its source and folder.

    ``ref`` is the shortest text (a name, or source/name) that finds exactly this skill. ``folder``
    is the folder below the source's root (``.`` is the root itself), and ``path`` is its absolute
    path. ``copies`` are the refs of other skills with the same name and the same files; only one of
    them is listed. The class has no slots: `db.read.skills` fills ``__dict__`` directly, which
    makes a long listing three times faster.
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
        """``created_at`` as a datetime with its zone.

        Raises ValueError if the database contains an invalid time. Listings may print such a text,
        but calculations must not use it.
        """
        return datetime.fromisoformat(self.created_at)

    @property
    def updated(self) -> datetime:
        """``updated_at`` as a datetime with its zone. Raises ValueError as `created` does."""
        return datetime.fromisoformat(self.updated_at)


@dataclass(frozen=True)
class PinnedSkill(Skill):
    """A version of a skill, ``NAME@LABEL``, to install or export; ``pin`` is the label.

    The hashes are those of the version. The other values are those of the skill now.
    """

    pin: str


@dataclass(frozen=True)
class SearchHit(Skill):
    """A skill that a search found; a higher ``score`` is a better match.

    ``confidence``: the share of the query that the skill's name, tags and description contain, from
    0 to 1. ``alike``: refs of copies and near-duplicates that also match the query, but are not
    listed.
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
"""The state of a version: in use, still offered with a warning, or withdrawn."""

VERSION_STATES: Final[tuple[VersionState, ...]] = get_args(VersionState)


@dataclass(frozen=True, slots=True)
class VersionChange(Value):
    """A change of the state of a version, or its creation: time, reason and author.

    ``replacement`` names what to use instead. ``role`` is recorded by a server itself; ``host``,
    ``tool`` and ``client`` are what the client reported.
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

    ``current`` tells whether the skill has these files now. ``history`` has its creation and all
    changes of its state, the oldest first.
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
        """The role of a server that created the version, or the client that a file recorded."""
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
        """What to use instead of a deprecated or yanked version."""
        return self.history[-1].replacement

    @property
    def warning(self) -> str | None:
        """The sentences that warn of a deprecated or yanked version; None if it is active."""
        if self.state == "active":
            return None
        instead = f" Use {self.replacement} instead." if self.replacement else ""
        reason = (self.reason or "no reason is recorded").rstrip(".")
        return f"Version {self.label} is {self.state}: {reason}.{instead}"


@dataclass(frozen=True)
class SkillDetail(Skill):
    """A skill with all known facts.

    ``quarantined``: agents don't see the skill until a user trusts its source. ``versions`` are the
    versions with exactly these files; usually there is one or none.
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
    """The absolute path of the skill file, or of the folder if there is no skill file."""
    quarantined: bool = False
    versions: tuple[SkillVersion, ...] = ()


S_co = TypeVar("S_co", bound=Skill, covariant=True)


@dataclass(frozen=True, slots=True)
class Page(Sequence[S_co], Generic[S_co]):
    """Some skills of a listing or a search.

    ``total`` is the number of all skills that match, without a limit.
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

    ``confidence``: the highest confidence of the best hits. If it is so low that probably no skill
    fits, ``missing`` are the words of the query that no hit contains, and ``shorter`` are shorter
    queries to try; otherwise both are empty. ``respelled`` has pairs of a typed word and the word
    that was searched instead.
    """

    confidence: float
    missing: tuple[str, ...]
    shorter: tuple[str, ...] = ()
    respelled: tuple[tuple[str, str], ...] = ()
