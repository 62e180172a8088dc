"""Serve the catalogue at an address."""

import os
import sys
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from importlib.util import find_spec
from ipaddress import ip_network
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from registry.errors import NotFound, UsageProblem
from registry.mcp.fairness import Fair
from registry.mcp.http import Bounds, Guard, allowed_hosts, run_app
from registry.remotes.address import is_loopback
from registry.web.app import build
from registry.web.bare import refused, sign_in
from registry.web.desk import Desk, Visitor
from registry.web.door import Door, Trusted
from registry.web.headers import Headers
from registry.web.mcp_door import McpDoor

if TYPE_CHECKING:
    from registry.api import SkillRegistry


LOOPBACK: Final = (ip_network("127.0.0.0/8"), ip_network("::1"))
"""Where a proxy is expected if others use a URL of its own."""

TURN: Final = 0.001
"""Seconds after which a thread that works gives way: those that only pass something on wait for
each of several at every step, and by Python's own 5 ms a page that is ready took a third of one."""


@dataclass(frozen=True, slots=True)
class Address:
    """Where it is served. ``public``: the URL by which others know it; ``tls``: (certificate, key).

    ``public`` is that of a proxy, or of a name of this machine.
    """

    host: str = "127.0.0.1"
    port: int = 8765
    public: str | None = None
    tls: tuple[str, str] | None = None

    @property
    def url(self) -> str:
        """The URL to open."""
        return self.public or self.own

    @property
    def own(self) -> str:
        """The URL at which it listens, which a proxy forwards requests to."""
        host = f"[{self.host.strip('[]')}]" if ":" in self.host else self.host
        return f"{'https' if self.tls else 'http'}://{host}:{self.port}"

    @property
    def is_open(self) -> bool:
        """Whether requests from this machine need no token: nothing says that others are served."""
        public = urlsplit(self.public or "http://localhost").hostname or ""
        return is_loopback(self.host) and is_loopback(public)

    @property
    def hosts(self) -> Sequence[str] | None:
        """What the Host header of a request may say; None: anything."""
        own = allowed_hosts(self.host, self.port)
        if own is None:
            return None
        usual = {80: False, 443: True}.get(self.port) is bool(self.tls)
        bare = [one.rpartition(":")[0] for one in own] if usual else []
        return [*own, *bare, *([urlsplit(self.public).netloc] if self.public else [])]


def guarded(
    desk: Desk, address: Address, mcp: McpDoor | None, trusted: Trusted | None = None
) -> Headers:
    """Return the whole application: what turns strangers away, and all that stands behind it."""
    tokens = desk.registry.tokens()
    if mcp is not None:
        mcp.unsent = desk.turns.unsent

    def visitor(shown: str) -> Visitor | None:
        token = tokens.known(shown)
        if token is None:
            return None
        try:
            desk.registry.browse(token.personality, token.source)
        except NotFound:  # it was renamed, or went; what else there is is no answer
            return None
        return Visitor(token.name, token.personality, token.source, token.write)

    async def known(shown: str) -> Visitor | None:
        return await desk.run(visitor, shown)

    door = Door(
        build(desk, mcp),
        known=known,
        sign_in=sign_in,
        is_open=address.is_open,
        trusted=trusted,
        secure=address.url.startswith("https:"),
    )
    origins = [address.public] if address.public else []
    guard = Guard(door, hosts=address.hosts, origins=origins, refuse=refused)
    proxies = trusted.networks if trusted else () if address.is_open else LOOPBACK
    return Headers(Fair(guard, desk.turns.unsent, proxies))


def serve(
    registry: "SkillRegistry",
    address: Address,
    *,
    trusted: Trusted | None = None,
    watch: bool = True,
    on_start: Callable[[], object] = lambda: None,
) -> None:
    """Serve until a signal ends it.

    Raises `UsageProblem` for an address that can't be had, or that others reach while there is
    neither a token nor a proxy that says who asks, and `PersonalityNotFound`.
    """
    if trusted is not None:
        registry.browse(trusted.personality)
    if registry.core.reader.empty:
        registry.create_database()  # what others fill later is seen then
    tokens = registry.tokens()
    if not is_loopback(address.host) and trusted is None and not tokens.list():
        message = (
            f"{address.host} can be reached from other machines: make a token first "
            "(skill-registry token create NAME --read), or serve 127.0.0.1."
        )
        raise UsageProblem(message=message)
    if address.tls is not None:
        for path in address.tls:
            if not os.access(path, os.R_OK):
                raise UsageProblem(message=f"{path} can't be read")
    sys.setswitchinterval(TURN)
    bounds = Bounds()
    desk = Desk(registry, address.public)
    mcp = McpDoor(registry, bounds, watch=watch) if find_spec("mcp") else None  # an extra
    tls: dict[str, Any] = {}
    if address.tls is not None:
        tls = {"ssl_certfile": address.tls[0], "ssl_keyfile": address.tls[1]}
    with registry.watch(_ignored) if watch and mcp is None else nullcontext():
        run_app(
            guarded(desk, address, mcp, trusted),
            address.host,
            address.port,
            bounds=bounds,
            on_start=on_start,
            on_stop=(lambda: None) if mcp is None else mcp.stop_listening,
            proxy_headers=False,
            **tls,
        )


def _ignored(_report: object) -> None:
    """Pages are made when they are asked for; nobody is told."""
