"""What can go wrong where skills leave a registry or come into one."""

from collections.abc import Sequence

from registry.errors.base import Conflict, RegistryError


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
