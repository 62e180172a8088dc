"""Code that readers and writers of a PostgreSQL server share: address, driver, revision, errors."""

import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final
from urllib.parse import parse_qsl, quote, unquote, urlencode

from registry.db.interface import State
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
    ServerFull,
)
from registry.text import Fact

SCHEMES: Final = ("postgresql+psycopg", "postgresql", "postgres")
"""Allowed schemes of an address; all of them mean psycopg 3."""

DRIVER: Final = "postgresql+psycopg"

CONNECT_SECONDS: Final = 10

_PARTS: Final = re.compile(
    r"[\w+]+://"
    r"(?:(?P<username>[^:/]*)(?::(?P<password>[^@]*))?@)?"
    r"(?:(?:\[(?P<ipv6>[^/?]+)\]|(?P<name>[^/:?]+))?(?::(?P<port>[^/?]*))?)?"
    r"(?:/(?P<database>[^?]*))?(?:\?(?P<query>.*))?"
)

_HIDDEN: Final = re.compile(r"@|pass(?:word|wd)?\s*=|pwd\s*=", re.IGNORECASE)
"""Matches signs of a password in a part of an address."""

_BEFORE_AT: Final = re.compile(r"[&;\s]\w*pass\w*\s*=.*@", re.IGNORECASE | re.DOTALL)

_SETTING: Final = re.compile(r"(?:^|(?<=\s))(?:-c\s*|--)(search_path)=([^\s\\]+)(?=\s|$)")
"""Matches the option search_path, which each transaction can set instead of the connection."""


@dataclass(frozen=True, slots=True)
class Address:
    """The location of a database and the user's name; ``query`` holds other options of libpq."""

    username: str | None
    password: str | None = field(repr=False)
    host: str | None
    port: int | None
    database: str | None
    query: Mapping[str, str] = field(repr=False)

    @property
    def shown(self) -> str:
        """The address without the password and other secrets, for messages.

        The address includes ``options``, because they may choose the schema, and each schema is a
        separate registry. It includes the name of a service, because an address may consist only of
        this name.
        """
        text = f"{DRIVER}://"
        if self.username is not None:
            text += f"{quote(self.username, safe=' +')}@"
        if self.host is not None:
            text += f"[{self.host}]" if ":" in self.host else self.host
        if self.port is not None:
            text += f":{self.port}"
        if self.database is not None:
            text += f"/{quote(self.database, safe=' +/')}"
        shown = {key: self.query[key] for key in ("service", "options") if self.query.get(key)}
        if self.host is None and self.database is None and "PGSERVICE" in os.environ:
            shown = {"service": os.environ["PGSERVICE"]} | shown
        return f"{text}?{urlencode(shown)}" if shown else text

    @property
    def settings(self) -> dict[str, str]:
        """Settings for each transaction; empty if ``options`` holds more than ``search_path``.

        Transactions set these options, because connection poolers reject or lose options of the
        connection.
        """
        found = _SETTING.findall(self.query.get("options", ""))
        return dict(found) if self._is_settled else {}

    @property
    def _is_settled(self) -> bool:
        return not _SETTING.sub("", self.query.get("options", "")).strip()

    @property
    def parameters(self) -> dict[str, Any]:
        """Arguments for psycopg.connect()."""
        given = {
            "user": self.username,
            "password": self.password,
            "host": self.host,
            "port": self.port,
            "dbname": self.database,
        }
        further = dict(self.query)
        if self._is_settled:
            further.pop("options", None)
        return {key: value for key, value in given.items() if value} | further


def parse_url(given: str) -> Address:
    """Parse the address of a database on a server.

    Raises `DatabaseProblem` if the address is invalid. The error and its causes show no part of the
    invalid address, because any part may be the password.
    """
    scheme = given.split("://", maxsplit=1)[0]
    reason, found = None, None
    if given.count("@") > 1 or "@" in given.partition("?")[2] or _BEFORE_AT.search(given):
        # If a password contains an unescaped @, the parser takes the rest of the password as the
        # host. Messages show the host, so refuse an address with such a host.
        reason = "write an @ inside a password, or another part, as %40"
    elif given.isprintable():
        found = _parts(given)
    if found is not None and (
        "%" in (found.host or "") or ("@" in given and found.username is None)
    ):
        found = None  # the parsed host may contain a user and a password
    if found is not None:
        shown = unquote(found.shown).removeprefix(f"{DRIVER}://{found.username}@")
        if ":" not in f"{found.username}{found.database}" and not _HIDDEN.search(shown):
            return found
    reason = reason or f"it is not an address: {DRIVER}://USER@HOST/DATABASE"
    raise DatabaseProblem(path=f"{scheme}://", reason=reason)


def _parts(given: str) -> Address | None:
    found = _PARTS.match(given)
    if found is None:
        return None
    port: int | None = None
    if found["port"] is not None:
        if not re.fullmatch(r"[0-9]{1,5}", found["port"]):
            return None
        port = int(found["port"])
    named = (found[part] for part in ("username", "password"))
    username, password = (None if part is None else unquote(part) for part in named)
    query = {"connect_timeout": str(CONNECT_SECONDS)}
    if any("=" not in one for one in (found["query"] or "").split("&") if one):
        return None  # this may be the end of a password that contains a question mark
    several: dict[str, list[str]] = {}
    for key, value in parse_qsl(found["query"] or ""):
        several.setdefault(key, []).append(value)
    query |= {key: ",".join(values) for key, values in several.items()}
    database = None if found["database"] is None else unquote(found["database"])
    host = found["name"] or found["ipv6"]
    return _hosts(Address(username, password, host, port, database, query))


def _hosts(address: Address) -> Address:
    """Return an address with several hosts in the form that libpq expects.

    For example, split the parameter ``?host=ONE:5432,OTHER:5433`` into hosts and ports.
    """
    hosts = address.query.get("host", "")
    if ":" not in hosts or "port" in address.query:
        return address
    pairs = [one.rpartition(":") if ":" in one else (one, "", "") for one in hosts.split(",")]
    where = {"host": ",".join(pair[0] for pair in pairs), "port": ",".join(p[2] for p in pairs)}
    return replace(address, query={**address.query, **where})


OLDEST_SERVER: Final = 130000

LOST: Final = frozenset(
    "57P01 57P02 57P03 57P05 25P03 25P04 08000 08003 08006 08001 08004 08P01".split()
)
"""SQLSTATEs of a broken or refused connection.

PgBouncer sends 08P01 if it lost its connection to the server, or can't open a connection.
"""

BUSY: Final = frozenset({"55P03", "40P01"})
"""SQLSTATEs of a lock that was not available, and of a deadlock."""

REFUSING: Final = frozenset({"28P01", "28000"})
"""SQLSTATEs of a refused login."""

NO_DATABASE: Final = "3D000"

TOO_MANY: Final = "53300"
"""SQLSTATE of the error that no connection is free."""

HOST_TAKEN: Final = "SR001"

READ_ONLY: Final = "25006"
"""SQLSTATE of a write to a replica or in a read-only session."""

FORBIDDING: Final = frozenset({"42501", "SR002", "SR003"})
"""SQLSTATEs of missing rights; migration 0015 raises SR002 and SR003."""

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
"""Patterns of connection errors, and their meanings.

libpq returns no SQLSTATE while it connects, so the English messages are matched. A message in
another language is shown unchanged.
"""

_FULL: Final[Mapping[str, str]] = {
    "too many clients already|remaining connection slots are reserved": (
        "all that max_connections allows are in use"
    ),
    'too many connections for role "(?P<role>.*)"': "the role {role:q} has used up its own limit",
    'too many connections for database "(?P<name>.*)"': (
        "the database {name:q} has used up its own limit"
    ),
    "no more connections allowed": "its pooler allows no more clients (max_client_conn)",
}

_NOT_OF_TEAM: Final = "^this role is not of the team (?P<team>.*)"
"""Matches an error that migration 0015 raises."""

_MEANINGS: Final = (
    (DatabaseRefused, _REFUSALS),
    (ServerFull, _FULL),
    (DatabaseUnreachable, _SILENCES),
)

_NO_DATABASE: Final = 'database "(?P<name>.*)" does not exist'


def load_driver(url: Address) -> None:
    """Check that psycopg is installed, and that it supports the options in the address.

    Raises `DatabaseProblem`, which names the package to install. If an option is unknown, the error
    doesn't show its name, because it may be the part of a password after an &.
    """
    path = url.shown
    try:
        from psycopg import pq
    except ImportError as error:
        reason = "its driver is not installed; run in the checkout: pip install '.[postgres]'"
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
"""The SELECTs for `schema_state`.

Run `REVISION` only if `FACTS` reports that its table exists.
"""


def schema_state(facts: Sequence[Any], revision: str | None, path: str) -> State:
    """Return the `State` of a schema from the rows of `FACTS` and `REVISION`.

    Raises `DatabaseTooNew` or `DatabaseTooOld` if this program doesn't know the revision. Raises
    `DatabaseProblem` if the program can't use the server.
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
    """Turn an error of psycopg, or of SQLAlchemy with such a cause, into an error of this project.

    ``seconds`` is the time for which the program waited for a lock.
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
        # Only writers use SQLAlchemy, so an error that SQLAlchemy raised comes from a write.
        facts = {"path": path, "reason": reason, "writing": error is not origin}
        found = re.search(_NOT_OF_TEAM, reason)
        return RightMissing(**facts, **(found.groupdict() if found else {}))
    return (DatabaseRefused if state in REFUSING else kind)(path=path, reason=reason)


def _unconnected(
    said: str, state: str | None, path: str, *, is_unsaid: bool
) -> DatabaseProblem | None:
    """Return the error for a failed connection; None if the reason is unknown."""
    if is_unsaid or state == NO_DATABASE:
        found = re.search(_NO_DATABASE, said)
        if found is not None:
            return DatabaseMissing(path=path, name=found["name"])
    if state in REFUSING or state == TOO_MANY or is_unsaid:
        for kind, meanings in _MEANINGS:
            for pattern, meaning in meanings.items():
                if found := re.search(pattern, said):
                    facts = found.groupdict()
                    told = meaning.format_map({key: Fact(value) for key, value in facts.items()})
                    return kind(path=path, reason=told, **facts)
    return None


def to_pyformat(sql: str) -> str:
    """Replace each ``?`` in ``sql`` with psycopg's placeholder ``%s``."""
    return sql.replace("%", "%%").replace("?", "%s")
