"""From what people give as the database to what is behind it."""

import os
import platform
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from registry.db.interface import Backend
from registry.db.postgres.dialect import SCHEMES
from registry.errors import DatabaseProblem
from registry.settings import Settings, default_database


def open_backend(
    path_or_url: str | os.PathLike[str] | None,
    settings: Settings,
    environ: Mapping[str, str] = os.environ,
) -> Backend:
    """Return the database that is meant; None: what the environment says, else the default.

    Nothing is read or made yet. Raises `DatabaseProblem` for what can't be a database.
    """
    if path_or_url is None:
        path_or_url = environ.get("SKILL_REGISTRY_DB") or default_database()
    given = os.fspath(path_or_url)
    scheme, separator, _ = given.partition("://")
    if separator and scheme in SCHEMES:
        from registry.db.postgres.backend import PostgresBackend

        host = environ.get("SKILL_REGISTRY_HOST") or settings.host or platform.node() or "localhost"
        return PostgresBackend(given, host)
    from registry.db.sqlite.backend import SqliteBackend

    return SqliteBackend(_file(given))


def _file(given: str) -> str:
    if given.startswith("sqlite:///"):
        given = given.removeprefix("sqlite:///")
    elif "://" in given:
        reason = "give a path, sqlite:///PATH, or postgresql+psycopg://USER@HOST/DATABASE"
        raise DatabaseProblem(path=given.split("://", maxsplit=1)[0] + "://", reason=reason)
    if not given or "\0" in given:
        raise DatabaseProblem(path=given, reason="it is no path")
    path = Path(given)
    with suppress(RuntimeError):  # a ~user that does not exist is an ordinary name
        path = path.expanduser()
    return os.path.abspath(path)
