"""What can go wrong where skills leave a registry or come into one."""

from collections.abc import Sequence

from registry.errors.base import Conflict, NotFound, RegistryError


class ArchiveRefused(RegistryError):
    """An archive holds no skill that can be brought in: ``path``, ``reason``."""

    sentence = "{path:q} was not imported: {reason}."

    path: str
    reason: str


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
