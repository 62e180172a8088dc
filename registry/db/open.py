"""Open the database at a path or address."""

import os
import platform
import re
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from registry.db.interface import Backend
from registry.errors import DatabaseProblem
from registry.settings import Settings, default_database

if TYPE_CHECKING:
    from sqlalchemy import Engine

_SQLITE: Final = "sqlite:///"

_MEMORY: Final = (":memory:", "sqlite://", "sqlite:///:memory:")
"""The names of a temporary database, the same as in SQLite."""

_FORMS: Final = "a path, sqlite:///PATH, or postgresql+psycopg://USER@HOST/DATABASE"

_SCHEME: Final = re.compile(r"[a-z][a-z0-9+.-]*:(//)?", re.IGNORECASE)

_MANGLED: Final = re.compile(
    r"(?:.*/)?((?:postgres|postgresql|sqlite)(?:\+\w+)?):/(?!/)"
    r"|(postgres(?:ql)?(?:\+\w+)?)/(?:/|[^/]*@)",
    re.IGNORECASE,
)
"""Matches a database URL without its colon or one of its slashes."""

_SECRET: Final = re.compile(r":.*@|pass(?:word|wd)?\s*=|pwd\s*=", re.IGNORECASE | re.DOTALL)
"""Matches signs of a password in an invalid address."""


def open_backend(
    path_or_url: str | os.PathLike[str] | None,
    settings: Settings,
    environ: Mapping[str, str] = os.environ,
) -> Backend:
    """Open the database at a path or address.

    If ``path_or_url`` is None, use the address from the environment, or else the default path. This
    function neither reads nor creates the database. Raises `DatabaseProblem` if the path or address
    is invalid.
    """
    if path_or_url is None:
        path_or_url = environ.get("SKILL_REGISTRY_DB") or default_database()
    if not isinstance(path_or_url, str | os.PathLike):
        raise DatabaseProblem(path=type(path_or_url).__name__, reason=f"give {_FORMS}")
    given = os.fspath(path_or_url)
    if given in _MEMORY:
        return _passing()
    # a database file doesn't need the code for PostgreSQL
    from registry.db.postgres.dialect import SCHEMES

    scheme, separator, _ = given.partition("://")
    if separator and scheme.lower() in SCHEMES:
        from registry.db.postgres.backend import PostgresBackend

        host = environ.get("SKILL_REGISTRY_HOST") or settings.host or platform.node() or "localhost"
        return PostgresBackend(given, host)
    from registry.db.sqlite.backend import SqliteBackend

    return SqliteBackend(file_path(given))


def _passing() -> Backend:
    """Return a temporary database, which is deleted when it is closed or when this process ends.

    The database is a file that only this user can read. A database in memory isn't possible,
    because each connection would get a separate database.
    """
    from shutil import rmtree
    from tempfile import mkdtemp
    from weakref import finalize

    from registry.db.sqlite.backend import SqliteBackend

    folder, maker = mkdtemp(prefix="skill-registry-"), os.getpid()

    def remove() -> None:
        if os.getpid() == maker:  # a forked child must not delete the parent's file
            rmtree(folder, ignore_errors=True)

    backend = SqliteBackend(os.path.join(folder, "registry.db"))
    backend.on_close = finalize(backend, remove)
    return backend


def file_path(given: str) -> str:
    """Return the absolute path of a database file.

    Raises `DatabaseProblem` if ``given`` is an address or a part of an address. An address may
    contain a password, which must not become part of a file name. The function also recognises an
    address after a conversion to `Path`, which removes a slash and may put a folder in front.
    """
    path = given
    if given.startswith(_SQLITE):
        path = given.removeprefix(_SQLITE)
    elif (mangled := _MANGLED.match(given)) is not None:
        reason = f"a part of the address is lost; give {_FORMS}, in Python as text, not as a Path"
        raise DatabaseProblem(path=f"{mangled[1] or mangled[2]}:", reason=reason)
    elif (scheme := _SCHEME.match(given)) is not None:
        reason = f"give {_FORMS}; put ./ before the name of a file that has a colon"
        raise DatabaseProblem(path=scheme[0], reason=reason)
    if _SECRET.search(path):
        reason = f"it may hold a password, and is not shown; give {_FORMS}"
        raise DatabaseProblem(path="***", reason=reason)
    if not path or "\0" in path or not _is_encodable(path):
        raise DatabaseProblem(path=ascii(path), reason="it is not a path")
    whole = Path(path)
    # if the user in ~user doesn't exist, the text is an ordinary file name
    with suppress(RuntimeError):
        whole = whole.expanduser()
    return os.path.abspath(whole)


def _is_encodable(path: str) -> bool:
    try:
        os.fsencode(path)
    except UnicodeEncodeError:
        return False
    return True


def engine_at(url: str) -> "Engine":
    """Return an SQLAlchemy engine for the address in alembic.ini."""
    from registry.db.postgres.dialect import parse_url
    from registry.db.postgres.writer import make_engine as make_server_engine
    from registry.db.sqlite.writer import make_engine

    if url.startswith("sqlite:///"):
        return make_engine(url.removeprefix("sqlite:///"))
    return make_server_engine(parse_url(url))
