"""What both lanes to a PostgreSQL server agree on: its address, its revision and its errors."""

import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote

from registry.db.interface import State
from registry.errors import (
    DatabaseBusy,
    DatabaseMissing,
    DatabaseProblem,
    DatabaseRefused,
    DatabaseUnreachable,
)
from registry.text import Fact

if TYPE_CHECKING:
    from sqlalchemy import URL

SCHEMES: Final = ("postgresql+psycopg", "postgresql", "postgres")
"""How an address may begin; all mean psycopg 3."""

DRIVER: Final = "postgresql+psycopg"

_HIDDEN: Final = re.compile(r"@|pass(?:word|wd)?\s*=|pwd\s*=", re.IGNORECASE)
"""What no part of an address that is shown has, but between the user and the host."""

_BEFORE_AT: Final = re.compile(r"[&;\s]\w*pass\w*\s*=.*@", re.IGNORECASE | re.DOTALL)

OLDEST_SERVER: Final = 130000

CONNECT_SECONDS: Final = 10

CONNECT_ARGS: Final = {"prepare_threshold": None}
"""For psycopg: a statement that is planned once for all values is planned badly for many, and one
that is kept on the server would be missed behind a pooler."""

# The first of the two numbers of an advisory lock; the second tells schemas (and hosts) apart.
WRITING: Final = 0x736B7731
SYNCING: Final = 0x736B7332
UPGRADING: Final = 0x736B7533

LOST: Final = frozenset("57P01 57P02 57P03 57P05 25P03 25P04 08000 08003 08006 08001 08004".split())
"""SQLSTATEs of a connection that broke, or that the server ended (also for idling) or did not take.
"""

BUSY: Final = frozenset({"55P03", "40P01"})
"""SQLSTATEs of a lock that was not to be had."""

REFUSING: Final = frozenset({"28P01", "28000"})
"""SQLSTATEs of a server that does not let this user in."""

_REFUSALS: Final[Mapping[str, str]] = {
    'password authentication failed for user "(?P<user>.*)"': (
        "its server does not take this password for the user {user:q}"
    ),
    'role "(?P<unknown>.*)" does not exist': "its server knows no user {unknown:q}",
    'permission denied for database "(?P<name>.*)"': (
        "this user may not connect to the database {name:q}"
    ),
    "(?P<user>)no password supplied": "its server asks for a password, and none was given",
    'pg_hba.conf.* user "(?P<name>.*?)"': (
        "its server admits no user {name:q} from this machine, or not in this way (pg_hba.conf)"
    ),
}
_SILENCES: Final[Mapping[str, str]] = {
    r'server at "(?P<host>.*?)".*, port (?P<port>\d+) failed: Connection refused': (
        "nothing listens on {host}, port {port}"
    ),
    "failed to resolve host '(?P<host>.*?)'": "no host named {host:q} is known",
    'on socket "(?P<socket>.*?)" failed: No such file': "no server runs here: there is no {socket}",
    "timeout expired": "its server did not answer in time",
}
"""What stands in the error where no connection was made, and what that means.

libpq hands no SQLSTATE over while it connects: the English words have to do. What a server says in
another language is shown as it is.
"""

_NO_DATABASE: Final = 'database "(?P<name>.*)" does not exist'


def parse_url(given: str) -> "URL":
    """Return the address as SQLAlchemy has it. Raises `DatabaseProblem` for what is none.

    Nothing of an address that can't be told apart into its parts is shown, or kept in the chain of
    errors: any of it may be the password.
    """
    from sqlalchemy import make_url
    from sqlalchemy.exc import ArgumentError

    scheme = given.split("://", maxsplit=1)[0]
    reason, url = None, None
    if given.count("@") > 1 or "@" in given.partition("?")[2] or _BEFORE_AT.search(given):
        # One inside a password would make the rest of it a part of the host, shown to everybody.
        reason = "write an @ inside a password, or another part, as %40"
    elif given.isprintable():
        with suppress(ArgumentError, ValueError):
            url = make_url(given)
    if url is not None and ("%" in (url.host or "") or ("@" in given and url.username is None)):
        url = None  # what is taken for the host may be a user and a password
    if url is not None:
        query = {"connect_timeout": url.query.get("connect_timeout", str(CONNECT_SECONDS))}
        url = url.set(drivername=DRIVER).update_query_dict(query)
        shown = unquote(redacted_url(url)).removeprefix(f"{DRIVER}://{url.username}@")
        if ":" not in f"{url.username}{url.database}" and not _HIDDEN.search(shown):
            return url
    reason = reason or f"it is not an address: {DRIVER}://USER@HOST/DATABASE"
    raise DatabaseProblem(path=f"{scheme}://", reason=reason)


def redacted_url(url: "URL") -> str:
    """Return the address as it is shown: without the password, and what is nobody's business.

    ``options`` stay: they may choose the schema, and two schemas are two registries.
    """
    from sqlalchemy import URL

    options = url.query.get("options")
    return URL.create(
        url.drivername,
        username=url.username,
        host=url.host,
        port=url.port,
        database=url.database,
        query={"options": options} if options else {},
    ).render_as_string()


def load_driver(url: "URL") -> None:
    """Make sure that psycopg is there, and knows the options of an address.

    Raises `DatabaseProblem` with what to install; of an unknown option not even the name is shown,
    since it may be what followed an & in a password.
    """
    path = redacted_url(url)
    try:
        from psycopg import pq
    except ImportError as error:
        reason = "its driver is not installed: pip install 'skill-registry[postgres]'"
        raise DatabaseProblem(path=path, reason=reason) from error
    if not set(url.query) <= {option.keyword.decode() for option in pq.Conninfo.get_defaults()}:
        reason = "an option after the ? in its address is unknown; write an & in a value as %26"
        raise DatabaseProblem(path=path, reason=reason)


def schema_state(one: Callable[[str], Any], path: str) -> State:
    """Read the revision of a database; ``one`` returns the first value of a SELECT.

    Raises `DatabaseTooNew` for a revision that this program doesn't know and `DatabaseProblem` for
    a server that can't be used.
    """
    if int(one("SELECT current_setting('server_version_num')")) < OLDEST_SERVER:
        reason = f"PostgreSQL {one('SHOW server_version')} is too old, 13 is needed"
        raise DatabaseProblem(path=path, reason=reason)
    encoding = one("SHOW server_encoding")
    if encoding != "UTF8":
        reason = f"its encoding is {encoding}; make one with ENCODING 'UTF8' TEMPLATE template0"
        raise DatabaseProblem(path=path, reason=reason)
    if one("SELECT to_regclass('alembic_version')") is None:
        return State.EMPTY
    found = one("SELECT max(version_num) FROM alembic_version")
    if found is None:
        return State.EMPTY
    if one("SELECT to_regclass('skills')") is None:
        raise DatabaseProblem(path=path, reason="it is the database of another program")
    return State.of(found, path)


def translate(error: Exception, path: str, seconds: float) -> DatabaseProblem:
    """Turn an error of psycopg, or of SQLAlchemy around it, into ours.

    ``seconds``: how long a lock was waited for.
    """
    import psycopg

    origin = getattr(error, "orig", None) or error
    state = getattr(origin, "sqlstate", None)
    lines = str(origin).strip().splitlines()
    reason = lines[0].strip() if lines else type(origin).__name__
    if state in BUSY:
        return DatabaseBusy(path=path, seconds=seconds)
    is_unsaid = state is None and isinstance(origin, psycopg.OperationalError)
    if is_unsaid or state == "3D000":
        found = re.search(_NO_DATABASE, str(origin))
        if found is not None:
            return DatabaseMissing(path=path, name=found["name"])
    if state in REFUSING or is_unsaid:
        for kind, meanings in ((DatabaseRefused, _REFUSALS), (DatabaseUnreachable, _SILENCES)):
            for pattern, meaning in meanings.items():
                if found := re.search(pattern, str(origin)):
                    facts = found.groupdict()
                    said = meaning.format_map({key: Fact(value) for key, value in facts.items()})
                    return kind(path=path, reason=said, **facts)
    if state in REFUSING:
        return DatabaseRefused(path=path, reason=reason)
    if state in LOST or is_unsaid:
        return DatabaseUnreachable(path=path, reason=reason)
    return DatabaseProblem(path=path, reason=reason)


@lru_cache(maxsize=500)
def to_pyformat(sql: str) -> str:
    """Return ``sql`` with its values marked as psycopg wants it."""
    return sql.replace("%", "%%").replace("?", "%s")
