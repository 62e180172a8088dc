"""The address of a server: parse it, show it without secrets, arguments for the driver."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final
from urllib.parse import parse_qsl, quote, quote_plus, unquote

from registry.errors import DatabaseProblem

SCHEMES: Final = ("postgresql+psycopg", "postgresql", "postgres")
"""Schemes of an address; all mean psycopg 3."""

DRIVER: Final = "postgresql+psycopg"

CONNECT_SECONDS: Final = 10

_PARTS: Final = re.compile(
    r"[\w+]+://"
    r"(?:(?P<username>[^:/]*)(?::(?P<password>[^@]*))?@)?"
    r"(?:(?:\[(?P<ipv6>[^/?]+)\]|(?P<name>[^/:?]+))?(?::(?P<port>[^/?]*))?)?"
    r"(?:/(?P<database>[^?]*))?(?:\?(?P<query>.*))?"
)

_HIDDEN: Final = re.compile(r"@|pass(?:word|wd)?\s*=|pwd\s*=", re.IGNORECASE)
"""Signs of a password in a part of an address."""

_BEFORE_AT: Final = re.compile(r"[&;\s]\w*pass\w*\s*=.*@", re.IGNORECASE | re.DOTALL)

_SETTING: Final = re.compile(r"(?:^|(?<=\s))(?:-c\s*|--)(search_path)=([^\s\\]+)(?=\s|$)")
"""An option that can be set for each transaction instead of the connection."""


@dataclass(frozen=True, slots=True)
class Address:
    """Where a database is, and as whom it is opened; ``query``: further options of libpq."""

    username: str | None
    password: str | None = field(repr=False)
    host: str | None
    port: int | None
    database: str | None
    query: Mapping[str, str] = field(repr=False)

    @property
    def shown(self) -> str:
        """The address without the password and other secrets.

        ``options`` stay: they may choose the schema, and two schemas are two registries.
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
        options = self.query.get("options")
        return f"{text}?options={quote_plus(options)}" if options else text

    @property
    def settings(self) -> dict[str, str]:
        """Settings for each transaction, if ``options`` holds only such.

        The schema, that is; poolers take no options, or would lose them.
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
    """Parse an address. Raises `DatabaseProblem` if it is invalid.

    No part of an invalid address is shown, or kept in the chain of errors: any may be the password.
    """
    scheme = given.split("://", maxsplit=1)[0]
    reason, found = None, None
    if given.count("@") > 1 or "@" in given.partition("?")[2] or _BEFORE_AT.search(given):
        # One inside a password would make the rest of it a part of the host, shown to everybody.
        reason = "write an @ inside a password, or another part, as %40"
    elif given.isprintable():
        found = _parts(given)
    if found is not None and (
        "%" in (found.host or "") or ("@" in given and found.username is None)
    ):
        found = None  # what is taken for the host may be a user and a password
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
        return None  # it may be the rest of a password that has a question mark
    several: dict[str, list[str]] = {}
    for key, value in parse_qsl(found["query"] or ""):
        several.setdefault(key, []).append(value)
    query |= {key: ",".join(values) for key, values in several.items()}
    database = None if found["database"] is None else unquote(found["database"])
    host = found["name"] or found["ipv6"]
    return _hosts(Address(username, password, host, port, database, query))


def _hosts(address: Address) -> Address:
    """Return the address with the ports of ``?host=ONE:5432,OTHER:5433`` where libpq wants them."""
    hosts = address.query.get("host", "")
    if ":" not in hosts or "port" in address.query:
        return address
    pairs = [one.rpartition(":") if ":" in one else (one, "", "") for one in hosts.split(",")]
    where = {"host": ",".join(pair[0] for pair in pairs), "port": ",".join(p[2] for p in pairs)}
    return replace(address, query={**address.query, **where})
