"""Errors of sources, remotes, installs and archives."""

from collections.abc import Sequence

from registry.errors.base import Conflict, Invalid, NotFound, RegistryError, Unavailable
from registry.text import MAX_CHOICES, escaped


class SourceUnclear(RegistryError):
    """No source was named, and the registry has none or several: ``known``.

    If there are only remote sources, ``foreign`` lists them. ``elsewhere`` is True if all sources
    belong to other machines. ``to_read`` is True if the request only reads.
    """

    sentence = ""

    known: Sequence[str]
    foreign: Sequence[str]
    elsewhere: bool
    to_read: bool

    def __init__(
        self,
        known: Sequence[str],
        foreign: Sequence[str] = (),
        *,
        elsewhere: bool = False,
        to_read: bool = False,
    ) -> None:
        super().__init__(known=known, foreign=foreign, elsewhere=elsewhere, to_read=to_read)
        if not (known or foreign or elsewhere):
            self.add_note("To register a folder, call registry.sync(FOLDER).")

    def _details(self) -> str:
        if self.facts["foreign"]:
            return "All sources are remote, so they can't be changed here."
        if self.facts["known"]:
            done = "read" if self.facts["to_read"] else "written to"
            return self.fill(f"Several sources could be {done}: {{known:or}}.")
        if self.facts["elsewhere"]:
            return "All sources are on other machines. Change them there."
        return "No sources are registered yet."


class SourceNotFound(NotFound):
    """No source has this name or path (details: ``name``, ``known``, and ``similar`` names)."""

    sentence = "{name:q} is neither a source nor a folder."

    name: str
    known: Sequence[str]
    similar: Sequence[str]

    def __init__(self, name: str, known: Sequence[str]) -> None:
        from difflib import get_close_matches

        super().__init__(name=name, known=known, similar=get_close_matches(name, known, n=3))

    def _details(self) -> str:
        if self.facts.get("known"):
            return self.fill(" Registered: {known:or}.")
        return " No sources are registered yet."


class SourceElsewhere(RegistryError):
    """The source belongs to another machine.

    Details: ``name``, ``host`` (the name of that machine).
    """

    sentence = "The source {name:q} is on {host:q}. Sync and change it there."

    name: str
    host: str


class SourceNotAdopted(SourceElsewhere):
    """The source has this host's name, but this user did not add it: ``name``, ``host``.

    If the user added it while the registry had another address, ``formerly`` is that address, and
    ``address`` is the current one.
    """

    sentence = ""

    formerly: str | None = None
    address: str | None = None

    def _details(self) -> str:
        if self.facts.get("formerly"):
            return self.fill(
                "The source {name:q} is not synced. You added it when the address of the registry"
                " was {formerly}; now it is {address}."
            )
        return self.fill(
            "The source {name:q} was added from another machine or by another user under this"
            " host's name ({host:q}), so its folder is not read, synced or changed here."
        )


class SourceNotYours(RegistryError):
    """Only the owner of a source, on its machine, or an admin may do this."""

    sentence = (
        "The source {name:q} belongs to {owner:q} on {host:q}. Only this role on that machine,"
        " or an admin, may do this."
    )

    name: str
    owner: str
    host: str


class AdminNeeded(RegistryError):
    """Only an admin of the registry may do this (details: ``path`` of the database)."""

    sentence = (
        "Only an admin of the registry {path} may do this. Admins are the role that owns its"
        " tables, and the members of that role."
    )

    path: str


class RoleNotFound(NotFound):
    """The server has no role of this ``name``."""

    sentence = "The server has no role {name:q}."

    name: str


class HostTaken(Conflict):
    """Another role of the server uses this machine's name already."""

    sentence = "The host name {host:q} is already used by the role {role:q}: choose another one."

    host: str
    role: str


class SourceExists(Conflict):
    """A source with this name or path is already registered.

    ``path`` is empty if another team's source has the name, because this user must not see that
    source.
    """

    sentence = "A source {name:q} already exists"

    name: str
    path: str

    def _details(self) -> str:
        return self.fill(", at {path}.") if self.path else "; give it another name."


class SourceInvalid(Invalid):
    """The folder can't be a source."""

    sentence = "{path:q} can't be a source: {reason}."

    path: str
    reason: str


class TrustOutdated(Conflict):
    """The quarantined skills of a source changed after the user looked at them."""

    sentence = (
        "No skill of {name:q} was trusted: the quarantined skills have changed since their errors"
        " were printed."
    )

    name: str


class SyncRunning(Unavailable):
    """Another process syncs this registry."""

    sentence = "Another sync of this registry is running: {owner}."

    owner: str


class ArchiveRefused(RegistryError):
    """An archive has no skill that can be imported."""

    sentence = "{path:q} can't be used: {reason}."

    path: str
    reason: str


class NoUpstream(NotFound):
    """The skill has no known remote source from which it came."""

    sentence = "{name:q} can't be compared with upstream: {reason}."

    name: str
    reason: str

    def __init__(self, name: str, reason: str = "no remote source has a skill of its name") -> None:
        super().__init__(name=name, reason=reason)


class SeveralSkills(RegistryError):
    """The address has several skills, and the user chose none.

    ``held`` lists the skills that are quarantined until the user trusts the source ``source``.
    """

    sentence = "{path:q} holds {count} skills:"

    path: str
    names: tuple[str, ...]
    held: tuple[str, ...]
    source: str | None
    count: int

    def __init__(
        self, path: str, names: Sequence[str], held: Sequence[str] = (), source: str | None = None
    ) -> None:
        facts = {"names": tuple(names), "held": tuple(held), "source": source}
        super().__init__(path=path, **facts, count=len(names))

    def _details(self) -> str:
        held = self.facts["held"]
        listed = ", ".join(
            f"{escaped(name)} (quarantined)" if name in held else escaped(name)
            for name in self.facts["names"][:MAX_CHOICES]
        )
        more = self.facts["count"] - MAX_CHOICES
        return f" {listed}" + (f" and {more} more." if more > 0 else ".")


class ExportRefused(RegistryError):
    """A folder to publish into can't be written."""

    sentence = "{path:q} can't be written: {reason}."

    path: str
    reason: str


class LockFileInvalid(RegistryError):
    """The lock file of pulled skills can't be used."""

    sentence = (
        "The lock file {path} can't be used ({reason}). Restore it or remove it. If you "
        "remove it, 'pull' treats the skills in it as skills that it did not install."
    )

    path: str
    reason: str


class LockMissing(NotFound):
    """Nothing was pulled into this folder (details: ``path`` of the missing lock file)."""

    sentence = "No lock file at {path}: no skill was installed there."

    path: str


class LockNotMet(Conflict):
    """The skills in a lock file can't be installed in the locked state.

    ``missing`` gives the reasons.
    """

    sentence = "The content of {path} is not available, and nothing was changed: {missing:list}."

    path: str
    missing: Sequence[str]


class LockEdited(LockNotMet):
    """Installed skills were edited after the lock was written.

    ``missing`` gives the reasons, as in `LockNotMet`.
    """

    code = "lock_not_met"
    sentence = "Skills of {path} were edited here, and nothing was changed: {missing:list}."


class NotPulled(NotFound):
    """No skill was pulled under this name.

    Details: ``name``, ``path`` of the lock file, ``similar``.
    """

    sentence = "{path} does not list {name:q}."

    name: str
    path: str
    similar: Sequence[str]


class PullClash(Conflict):
    """Two skills would be pulled into the same folder.

    Details: ``folder``, ``refs`` of the skills.
    """

    sentence = "The folder {folder:q} can hold only one skill: {refs:or}. Use different folders."

    folder: str
    refs: Sequence[str]


class PullRefused(RegistryError):
    """A folder to pull into can't be written."""

    sentence = "{path:q} can't be written: {reason}."

    path: str
    reason: str


class RemoteProblem(RegistryError):
    """A remote can't be fetched (details: ``url``, without a password)."""

    sentence = "{url:q} can't be read."

    url: str


class RemoteUnreachable(RemoteProblem, Unavailable):
    """The server doesn't answer, or its answer is incomplete."""

    sentence = "{url:q} can't be reached: {reason}."

    reason: str


class RemoteRefused(RemoteProblem):
    """The server refuses the request."""

    sentence = "The server refuses {url:q} (HTTP status {status})."

    status: int


class RemoteInvalid(RemoteProblem):
    """The received data is invalid."""

    sentence = "{url:q} can't be used: {reason}."

    reason: str


class PinMoved(RemoteProblem):
    """The pin of a source now points to another version.

    ``way`` is the command with which the user accepts the new version. ``commit`` is the new
    version.
    """

    sentence = "{url:q} was not fetched: {reason}. To accept this, run: {way}"

    reason: str
    way: str
    commit: str


class RemoteTooLarge(RemoteProblem):
    """The data exceeds a size limit."""

    sentence = "{url:q} is too large: {reason}."

    reason: str


class AddressInvalid(Invalid):
    """Skills can't be fetched from this address."""

    sentence = "Skills can't be fetched from {address:q}: {reason}."

    address: str
    reason: str


class SourceReadOnly(RegistryError):
    """The source is a checkout of a remote."""

    sentence = "The source {name:q} is a read-only checkout of {url}."

    name: str
    url: str


class SourceKindUnusable(RegistryError):
    """The kind of a source is unusable."""

    sentence = "The kind of source {name:q} can't be used: {reason}."

    name: str
    reason: str
