"""Errors of the database."""

from registry.errors.base import RegistryError, Unavailable


class DatabaseProblem(RegistryError):
    """The database is unusable.

    Details: ``path``, and the ``reason`` if the class doesn't imply it.
    """

    code = "database_unusable"
    sentence = "The database {path} can't be used: {reason}."

    path: str
    reason: str = ""


class DatabaseMissing(DatabaseProblem):
    """The database doesn't exist: ``path``; ``name``: its name on a server, empty for a file."""

    code = "database_missing"
    sentence = ""

    name: str

    def _details(self) -> str:
        if self.facts["name"]:
            return self.fill("The server of {path} has no database {name:q}.")
        return self.fill("There is no database at {path}.")


class NotWritable(DatabaseProblem):
    """The database, or a copy of it, can't be written."""

    code = "database_unusable"
    sentence = "{path} can't be written: {reason}."


class DatabaseRefused(DatabaseProblem):
    """The server refuses the login.

    If the password is wrong, ``user`` is the name of the user. If the user doesn't exist,
    ``unknown`` is the name.
    """

    user: str | None = None
    unknown: str | None = None


class RightMissing(DatabaseProblem):
    """The server doesn't allow this user to do this.

    ``writing`` is True if the request would have changed data. If the reason is a missing team,
    ``team`` is the team to which the user doesn't belong.
    """

    code = "right_missing"
    sentence = "The server does not allow this user to do that in {path}: {reason}."

    writing: bool = False
    team: str | None = None


class DatabaseBusy(DatabaseProblem, Unavailable):
    """Another process held the write lock for longer than the timeout."""

    sentence = "The database {path} was busy for {seconds:g} seconds. Try again."

    seconds: float


class DatabaseTooNew(DatabaseProblem):
    """A newer skill-registry wrote this file."""

    sentence = (
        "The database {path} was written by a newer skill-registry (its schema is {revision})."
    )

    revision: str


class DatabaseTooOld(DatabaseProblem):
    """The database has a schema from before the first release."""

    sentence = (
        "The database {path} can't be used: its schema ({revision}) is from before the first "
        "release, and can't be upgraded."
    )

    revision: str


class DatabaseBehind(DatabaseProblem):
    """A server's database has an older schema, and the caller requested no upgrade."""

    sentence = (
        "The database {path} has the schema of an older skill-registry ({revision}). After an "
        "upgrade, older programs can't use it."
    )

    revision: str | None


class DatabaseCorrupt(DatabaseProblem):
    """The file isn't an undamaged database.

    ``is_row`` is True if only a row is damaged.
    """

    sentence = "The database {path} is damaged ({reason})."

    is_row: bool = False


class DatabaseUnreachable(DatabaseProblem, Unavailable):
    """The server does not answer, or ended the connection."""

    sentence = "The database {path} can't be reached: {reason}. Try again."


class ServerFull(DatabaseUnreachable):
    """The server, or its pooler, has no free connection."""

    sentence = "The server of {path} has no free connection: {reason}. Try again later."
