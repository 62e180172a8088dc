"""Connections to servers and proxies, and what goes wrong with them, in our words."""

import base64
import http.client
import netrc
import os
import shlex
import socket
import ssl
from contextlib import suppress
from stat import S_ISREG
from typing import Final
from urllib.parse import SplitResult, unquote

from registry.errors import RemoteInvalid
from registry.remotes.urls import PORTS, redacted

OTHERS: Final = 0o077
"""Permission bits of the group and of all other users."""


def reason_of(error: Exception) -> str | None:
    """Return what went wrong on the way to a server, None where the server is to blame."""
    match error:
        case ssl.SSLCertVerificationError():
            return f"its certificate can't be trusted: {error.verify_message}"
        case TimeoutError():
            return "it does not answer in time"
        case ConnectionResetError() | http.client.IncompleteRead() | ssl.SSLEOFError():
            return "the connection broke off"
        case socket.gaierror():
            return "no host of this name is known"
        case OSError():
            return error.strerror or str(error)
        case _:
            return None


def login_of(parts: SplitResult) -> str | None:
    """Return the value of the header that names the user of an address, if it names one."""
    if parts.username is None:
        return None
    return _basic(unquote(parts.username), unquote(parts.password or ""))


def login_at(parts: SplitResult) -> str | None:
    """Return the value of the header for an address: by its own user, else by ``~/.netrc``.

    ``NETRC`` names another file, as for curl. A file that can't be read is as if it were not there:
    public addresses need none. Raises `RemoteInvalid` if it has a password for this host, and other
    users can read or change the file.
    """
    own = login_of(parts)
    if own is not None or parts.hostname is None:
        return own
    path = os.environ.get("NETRC") or os.path.expanduser("~/.netrc")
    found = facts = None
    with suppress(OSError, ValueError, netrc.NetrcParseError):
        facts = os.stat(path)
        found = netrc.netrc(path).hosts.get(parts.hostname) if S_ISREG(facts.st_mode) else None
    if facts is None or found is None or not found[2]:
        return None
    if facts.st_mode & OTHERS or facts.st_uid != os.geteuid():
        reason = f"{path} has its password, and other users can read or change that file"
        command = f"chmod 600 {shlex.quote(path)}"
        raise RemoteInvalid(url=redacted(parts.geturl()), reason=f"{reason}: {command}")
    return _basic(found[0], found[2])


def _basic(user: str, password: str) -> str:
    return f"Basic {base64.b64encode(f'{user}:{password}'.encode()).decode()}"


def tunnel(proxy: SplitResult, host: str, port: int, seconds: float) -> socket.socket:
    """Connect to a host through a proxy. Raises OSError where it won't."""
    connection = http.client.HTTPConnection(
        proxy.hostname or "", proxy.port or PORTS["http"], timeout=seconds
    )
    login = login_of(proxy)
    connection.set_tunnel(host, port, {"Proxy-Authorization": login} if login else {})
    connection.connect()
    return connection.sock


def cut_off(held: list[socket.socket]) -> None:
    """End a connection that another thread waits for; of TLS, without its words of farewell."""
    with suppress(OSError):
        socket.socket.shutdown(held[0], socket.SHUT_RDWR)
