"""What can be the matter with sources and their sync."""

from collections.abc import Sequence

from registry.errors.base import Conflict, Invalid, NotFound, RegistryError, Unavailable


class SourceUnclear(RegistryError):
    """Several sources could be meant, or there is none: ``known``.

    ``foreign`` are those that are checkouts of what lies elsewhere, where there are no others;
    ``elsewhere``: there are sources, all of them on other machines. ``to_read``: nothing was to be
    written.
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

    def _details(self) -> str:
        if self.facts["foreign"]:
            return "None of the sources is your own: what lies elsewhere is not written to."
        if self.facts["known"]:
            done = "read" if self.facts["to_read"] else "written to"
            return self.fill(f"Several sources could be {done}: {{known:or}}.")
        if self.facts["elsewhere"]:
            return "All sources are on other machines, which change them."
        return "No sources are registered yet."


class SourceNotFound(NotFound):
    """No source has this name or path: ``name``, ``known``, and what of it is ``similar``."""

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
    """The source belongs to another machine: ``name``, ``host``."""

    sentence = (
        "The source {name:q} belongs to {host:q}: sync and change it there. What is read here"
        " comes from the database."
    )

    name: str
    host: str


class SourceNotAdopted(SourceElsewhere):
    """The source claims to be of this host, and this user did not add it: ``name``, ``host``.

    Or added it when the registry had another address, ``formerly``; now it has the ``address``.
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
            "The source {name:q} was added elsewhere under this host's name ({host:q}): what is in"
            " its folder here is not read, synced or changed."
        )


class SourceNotYours(RegistryError):
    """Only its owner, on its machine, or an admin may do this: ``name``, ``owner``, ``host``."""

    sentence = (
        "The source {name:q} belongs to {owner:q} on {host:q}: only they, there, or an admin of the"
        " registry may do this."
    )

    name: str
    owner: str
    host: str


class AdminNeeded(RegistryError):
    """Only an admin of the registry may do this: ``path`` of the database."""

    sentence = (
        "Only an admin of the registry {path} may do this: the role that owns its tables, or a"
        " member of it."
    )

    path: str


class RoleNotFound(NotFound):
    """The server knows no role of this ``name``."""

    sentence = "The server knows no role {name:q}."

    name: str


class HostTaken(Conflict):
    """Another role used this machine's name first: ``host``, ``role``."""

    sentence = "The host name {host:q} is used by the role {role:q} already; nobody else may."

    host: str
    role: str


class SourceExists(Conflict):
    """A source of that name or path is registered already: ``name``, ``path``.

    ``path`` is empty where this user may not see the source, which is another team's.
    """

    sentence = "There is a source {name:q} already"

    name: str
    path: str

    def _details(self) -> str:
        return self.fill(", at {path}.") if self.path else "; give it another name."


class SourceInvalid(Invalid):
    """The folder can't be a source: ``path``, ``reason``."""

    sentence = "{path:q} can't be a source: {reason}."

    path: str
    reason: str


class TrustOutdated(Conflict):
    """The quarantined skills of a source changed after the user looked at them: ``name``."""

    sentence = "Nothing of {name:q} was trusted: its quarantined skills changed since you looked."

    name: str


class SyncRunning(Unavailable):
    """Another process syncs this registry: ``owner``."""

    sentence = "Another sync of this registry is running: {owner}."

    owner: str
