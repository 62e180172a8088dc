"""Why a change of a skill is not made."""

from registry.errors.base import Conflict, Invalid, RegistryError


class InvalidName(Invalid):
    """A new skill can't have this name: ``name``, ``reason``."""

    sentence = "{name:q} can't be a skill's name: {reason}."

    name: str
    reason: str


class SkillExists(Conflict):
    """There is a skill or a folder of that name already: ``name``, ``path``."""

    sentence = "There is a skill {name:q} already ({path})."

    name: str
    path: str


class SkillChangedOnDisk(Conflict):
    """The folder is not what the change was based on: ``name``, ``path``."""

    sentence = (
        "The skill {name:q} was changed on disk since it was read ({path}); nothing was done."
        " Look at it again, then repeat the change."
    )

    name: str
    path: str


class ChangeRefused(RegistryError):
    """The change can't be made, and nothing happened: ``path``, ``reason``."""

    sentence = "Nothing was changed at {path}: {reason}."

    path: str
    reason: str


class RootMissing(ChangeRefused):
    """The folder of a source that is to be changed is not there: ``path``, ``reason``."""

    code = "change_refused"


class FolderPulled(ChangeRefused):
    """A folder that was pulled is to be renamed: also ``folder``, and where its ``lock`` lies."""

    code = "change_refused"

    lock: str
    folder: str


class OwnFileUnusable(RegistryError):
    """A file or folder that must be this user's alone can't be used: ``path``, ``reason``."""

    sentence = "{path:q}, which tells what you did here yourself, can't be used: {reason}."

    path: str
    reason: str


class ChangePending(RegistryError):
    """The disk may be changed, the database could not be told: the next open finishes it.

    Facts: ``path``, ``reason``.
    """

    sentence = (
        "The change at {path} could not be finished: {reason}. It is finished or undone as a "
        "whole when the registry is opened next."
    )

    path: str
    reason: str
