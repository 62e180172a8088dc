"""What reading and writing a PostgreSQL server share: driver, revision, errors."""

import json
import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, Final

from registry.db.interface import State
from registry.db.postgres.address import Address
from registry.errors import (
    DatabaseBusy,
    DatabaseMissing,
    DatabaseProblem,
    DatabaseRefused,
    DatabaseUnreachable,
    HostTaken,
    NotWritable,
    RegistryError,
    RightMissing,
)
from registry.text import Fact

OLDEST_SERVER: Final = 130000

LOST: Final = frozenset(
    "57P01 57P02 57P03 57P05 25P03 25P04 08000 08003 08006 08001 08004 08P01".split()
)
"""SQLSTATEs of a broken or refused connection.

The last one is how PgBouncer reports a lost connection, or that it gets none.
"""

BUSY: Final = frozenset({"55P03", "40P01"})
"""SQLSTATEs of a lock that was not available."""

REFUSING: Final = frozenset({"28P01", "28000"})
"""SQLSTATEs of a server that does not let this user in."""

NO_DATABASE: Final = "3D000"
HOST_TAKEN: Final = "SR001"
READ_ONLY: Final = "25006"
"""SQLSTATE of a change on a replica, or with read-only transactions by default."""

FORBIDDING: Final = frozenset({"42501", "SR002", "SR003"})
"""SQLSTATEs of a missing right; our own are raised by migration 0015."""

_REFUSALS: Final[Mapping[str, str]] = {
    'password authentication failed for user "(?P<user>.*)"': (
        "its server does not take this password for the user {user:q}"
    ),
    'role "(?P<unknown>.*)" does not exist': "its server knows no user {unknown:q}",
    'role "(?P<name>.*)" is not permitted to log in': (
        "its server lets the role {name:q} not log in"
    ),
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
"""Patterns of errors while connecting, and their meaning.

libpq hands over no SQLSTATE while it connects, so the English words have to do. A message in
another language is shown unchanged.
"""

_NOT_OF_TEAM: Final = "^this role is not of the team (?P<team>.*)"
"""The error that migration 0015 raises."""

_NO_DATABASE: Final = 'database "(?P<name>.*)" does not exist'


def load_driver(url: Address) -> None:
    """Make sure that psycopg is there, and knows the options of an address.

    Raises `DatabaseProblem` with what to install; of an unknown option not even the name is shown,
    since it may be what followed an & in a password.
    """
    path = url.shown
    try:
        from psycopg import pq
    except ImportError as error:
        reason = "its driver is not installed: pip install 'skill-registry[postgres]'"
        raise DatabaseProblem(path=path, reason=reason) from error
    if not set(url.query) <= {option.keyword.decode() for option in pq.Conninfo.get_defaults()}:
        reason = "an option after the ? in its address is unknown; write an & in a value as %26"
        raise DatabaseProblem(path=path, reason=reason)


FACTS: Final = (
    "SELECT current_setting('server_version_num'), current_setting('server_version'), "
    "current_setting('server_encoding'), current_setting('search_path'), current_schema(), "
    "to_regclass('alembic_version') IS NOT NULL, to_regclass('skills') IS NOT NULL"
)
REVISION: Final = "SELECT max(version_num) FROM alembic_version"
"""What `schema_state` is told; the second only where the first says that there is such a table."""


def schema_state(facts: Sequence[Any], revision: str | None, path: str) -> State:
    """Say how a schema relates to this program, by the answers to `FACTS` and `REVISION`.

    Raises `DatabaseTooNew` or `DatabaseTooOld` for an unknown revision and `DatabaseProblem` for
    a server that can't be used.
    """
    number, version, encoding, search_path, schema, is_migrated, has_skills = facts
    reason = None
    if int(number) < OLDEST_SERVER:
        reason = f"PostgreSQL {version} is too old, 13 is needed"
    elif encoding != "UTF8":
        reason = f"its encoding is {encoding}; make one with ENCODING 'UTF8' TEMPLATE template0"
    elif schema is None:
        reason = (
            f"this user sees no schema of its search_path ({search_path}): there is none, or "
            "the right to it (GRANT USAGE ON SCHEMA) is missing"
        )
    elif is_migrated and revision is not None and not has_skills:
        reason = "it is the database of another program"
    if reason is not None:
        raise DatabaseProblem(path=path, reason=reason)
    return State.of(revision, path)


def translate(error: Exception, path: str, seconds: float) -> RegistryError:
    """Turn an error of psycopg, or of SQLAlchemy around it, into ours.

    ``seconds``: how long a lock was waited for.
    """
    import psycopg

    origin: Any = getattr(error, "orig", None) or error
    state = getattr(origin, "sqlstate", None)
    if state in BUSY:
        return DatabaseBusy(path=path, seconds=seconds)
    if state == HOST_TAKEN:
        return HostTaken(**json.loads(origin.diag.message_detail))
    if state == READ_ONLY:
        reason = "its server only reads, as a replica does; what is written goes to the primary one"
        return NotWritable(path=path, reason=reason)
    is_unsaid = state is None and isinstance(origin, psycopg.OperationalError)
    unconnected = _unconnected(str(origin), state, path, is_unsaid=is_unsaid)
    if unconnected is not None:
        return unconnected
    lines = str(origin).strip().splitlines()
    reason = lines[0].strip() if lines else type(origin).__name__
    kind = DatabaseUnreachable if state in LOST or is_unsaid else DatabaseProblem
    if state in FORBIDDING:
        # Writers alone use SQLAlchemy.
        facts = {"path": path, "reason": reason, "writing": error is not origin}
        found = re.search(_NOT_OF_TEAM, reason)
        return RightMissing(**facts, **(found.groupdict() if found else {}))
    return (DatabaseRefused if state in REFUSING else kind)(path=path, reason=reason)


def _unconnected(
    said: str, state: str | None, path: str, *, is_unsaid: bool
) -> DatabaseProblem | None:
    """Return what it means that no connection was made; None: that is not known."""
    if is_unsaid or state == NO_DATABASE:
        found = re.search(_NO_DATABASE, said)
        if found is not None:
            return DatabaseMissing(path=path, name=found["name"])
    if state in REFUSING or is_unsaid:
        for kind, meanings in ((DatabaseRefused, _REFUSALS), (DatabaseUnreachable, _SILENCES)):
            for pattern, meaning in meanings.items():
                if found := re.search(pattern, said):
                    facts = found.groupdict()
                    told = meaning.format_map({key: Fact(value) for key, value in facts.items()})
                    return kind(path=path, reason=told, **facts)
    return None


@lru_cache(maxsize=500)
def to_pyformat(sql: str) -> str:
    """Return ``sql`` with its values marked as psycopg wants it."""
    return sql.replace("%", "%%").replace("?", "%s")
