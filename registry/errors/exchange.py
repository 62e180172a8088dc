"""What can go wrong where skills leave a registry or come into one."""

from collections.abc import Sequence

from registry.errors.base import Conflict, Invalid, NotFound, RegistryError, Unavailable
from registry.text import MAX_CHOICES, escaped


class ArchiveRefused(RegistryError):
    """An archive holds no skill that can be brought in: ``path``, ``reason``."""

    sentence = "{path:q} was not imported: {reason}."

    path: str
    reason: str


class NoUpstream(NotFound):
    """Nothing is known that it comes from: ``name``."""

    sentence = "{name:q} comes from no remote source, and none has a skill of its name."

    name: str


class SeveralSkills(RegistryError):
    """There are several skills, of which none was chosen: ``path``, ``names``.

    ``held``: those of them that are quarantined until the source ``source`` is trusted.
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
    """A folder to publish into can't be written: ``path``, ``reason``."""

    sentence = "{path:q} can't be written: {reason}."

    path: str
    reason: str


class LockFileInvalid(RegistryError):
    """The lock file of pulled skills can't be used: ``path``, ``reason``."""

    sentence = (
        "The lock file {path} can't be used ({reason}). Restore it, or remove it: then "
        "folders that are there already count as made by somebody else."
    )

    path: str
    reason: str


class LockMissing(NotFound):
    """Nothing was pulled where it was asked for: ``path`` of the lock file that is not there."""

    sentence = "There is no {path}: nothing was pulled there."

    path: str


class LockNotMet(Conflict):
    """What a lock file says can't be put in place: ``path``, ``missing`` with the reasons."""

    sentence = "What {path} says can't be had, and nothing was changed: {missing:list}."

    path: str
    missing: Sequence[str]


class NotPulled(NotFound):
    """No skill was pulled under this name: ``name``, ``path`` of the lock file, ``similar``."""

    sentence = "{path} lists no {name:q}."

    name: str
    path: str
    similar: Sequence[str]


class PullClash(Conflict):
    """Two skills would be pulled into one folder: ``folder``, ``refs``."""

    sentence = "{refs:or} would both get the folder {folder:q}: pull them apart."

    folder: str
    refs: Sequence[str]


class PullRefused(RegistryError):
    """A folder to pull into can't be written: ``path``, ``reason``."""

    sentence = "{path:q} can't be written: {reason}."

    path: str
    reason: str


class RemoteProblem(RegistryError):
    """What lies elsewhere can't be had: ``url``, which is shown without a password in it."""

    sentence = "{url:q} can't be read."

    url: str


class RemoteUnreachable(RemoteProblem, Unavailable):
    """Nobody answers, or not to the end: ``url``, ``reason``."""

    sentence = "{url:q} can't be reached: {reason}."

    reason: str


class RemoteRefused(RemoteProblem):
    """The server answers that it won't, or that there is no such thing: ``url``, ``status``."""

    sentence = "The server refuses {url:q} (HTTP status {status})."

    status: int


class RemoteInvalid(RemoteProblem):
    """What was sent is not what it should be: ``url``, ``reason``."""

    sentence = "{url:q} can't be used: {reason}."

    reason: str


class PinMoved(RemoteProblem):
    """The pin of a source means something else now: ``url``, ``reason``.

    ``way``: the command that accepts that; ``commit``: what the pin means now.
    """

    sentence = "{url:q} is not followed: {reason}. If that is right, run: {way}"

    reason: str
    way: str
    commit: str


class RemoteTooLarge(RemoteProblem):
    """It has more than is taken: ``url``, ``reason``."""

    sentence = "{url:q} is too large: {reason}."

    reason: str


class AddressInvalid(Invalid):
    """Skills can't be fetched from there: ``address``, ``reason``."""

    sentence = "{address:q} is no address that skills can be fetched from: {reason}."

    address: str
    reason: str


class SourceReadOnly(RegistryError):
    """The source is a checkout of what lies elsewhere: ``name``, ``url``."""

    sentence = "The source {name:q} is a checkout of {url}, and is not changed here."

    name: str
    url: str


class SourceKindUnusable(RegistryError):
    """The kind of a source can't be read: ``name``, ``reason``."""

    sentence = "The kind of source {name:q} can't be used: {reason}."

    name: str
    reason: str
