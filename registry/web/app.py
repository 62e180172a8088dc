"""The catalogue as an ASGI application, and the server that runs it at an address."""

import os
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from dataclasses import dataclass
from importlib.util import find_spec
from ipaddress import ip_network
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote, urlsplit

from starlette.applications import Starlette
from starlette.datastructures import MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route

from registry.errors import UsageProblem
from registry.mcp.fairness import FairRequests
from registry.mcp.http import ClientLimits, RequestFilter, allowed_hosts, run_app
from registry.remotes.address import is_loopback
from registry.web import (
    addresses,
    audit,
    changes,
    clawhub,
    clawhub_publishing,
    compare,
    git,
    lists,
    openapi,
    pages,
    publishing,
    skill_pages,
    well_known,
)
from registry.web.answers import compressed, failed, page
from registry.web.auth import Auth, Trusted
from registry.web.mcp import McpMount
from registry.web.query_params import PARAMETERS
from registry.web.rendering import STATIC, refused, static
from registry.web.state import AppState, Visitor

if TYPE_CHECKING:
    from registry.api import SkillRegistry


POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
"""Content security policy of the catalogue's pages.

The pages load scripts and styles only from this server.
"""

ALWAYS: Final = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
}


class Headers:
    """ASGI middleware that adds the headers `ALWAYS` to responses that don't have them."""

    def __init__(self, app: Any) -> None:
        self._app = app

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Add the headers to the response to one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def adding(message: Any) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in ALWAYS.items():
                    headers.setdefault(name, value)
            await send(message)

        await self._app(scope, receive, adding)


class BelowPath:
    """ASGI middleware that serves the application below a path, such as ``/skills``.

    The application gets requests without this path. The middleware adds the path to redirects and
    cookies.
    """

    def __init__(self, app: Any, path: str) -> None:
        self._app = app
        self._path = path

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer one request; other paths of the host have no pages here."""
        if scope["type"] != "http" or not self._path:
            await self._app(scope, receive, send)
            return
        path = self._path
        if scope["path"] == path:
            await RedirectResponse(f"{path}/")(scope, receive, send)
            return
        if not scope["path"].startswith(f"{path}/"):
            message = f"The catalogue is at {path}/.\n"
            await PlainTextResponse(message, 404)(scope, receive, send)
            return
        raw = scope["raw_path"].decode("latin-1")
        if not raw.startswith(f"{path}/"):  # the path is percent-encoded differently
            raw = f"{path}{quote(scope['path'].removeprefix(path))}"
        inner = {
            **scope,
            "path": scope["path"].removeprefix(path),
            "raw_path": raw.removeprefix(path).encode("latin-1"),
        }

        async def below(message: Any) -> None:
            if message["type"] == "http.response.start":
                message = {**message, "headers": [*map(self._moved, message["headers"])]}
            await send(message)

        token = addresses.BELOW.set(path)
        try:
            await self._app(inner, receive, below)
        finally:
            addresses.BELOW.reset(token)

    def _moved(self, header: tuple[bytes, bytes]) -> tuple[bytes, bytes]:
        """Return a header with the path added to the paths in it."""
        name, value = header
        if name == b"location" and value.startswith(b"/"):
            return name, self._path.encode() + value
        if name == b"set-cookie":
            return name, value.replace(b"Path=/;", f"Path={self._path}/;".encode())
        return header


CHANGES: Final = "days day kind source page"
"""Query parameters of the changes."""

FOREVER: Final = "public, max-age=31536000, immutable"


def build(state: AppState, mcp: McpMount | None = None) -> Starlette:
    """Return the catalogue's application.

    Each request must have a ``visitor`` in its ASGI scope.
    """
    app = Starlette(
        routes=[
            *both("/", "/index.json", page(pages.start, " ".join(PARAMETERS))),
            *both("/tags", "/tags.json", page(lists.tags, "q page")),
            *both("/copies", "/copies.json", page(lists.copies, "relation page")),
            *both("/compare", "/compare.json", page(compare.side_by_side, "ref", of_disk=True)),
            *both("/install", "/install.json", page(compare.together, "ref")),
            Route("/skills", _all_skills),
            Route("/skills.json", pages.every_skill),
            Route("/skills/{ref:path}", page(skill_pages.skill, "", of_disk=True)),
            Route("/files/{ref:path}", page(skill_pages.file, "path revision", of_disk=True)),
            Route("/history/{ref:path}", page(skill_pages.history, "old new", of_disk=True)),
            Route("/copies/{ref:path}", page(skill_pages.near, "")),
            *both("/why", "/why.json", page(skill_pages.why, "q personality", of_disk=True)),
            *both("/sources", "/sources.json", page(pages.sources, "", of_use=True)),
            *both("/findings", "/findings.json", page(pages.findings, "code severity page")),
            *both("/changes", "/changes.json", page(changes.changes, CHANGES)),
            *both("/stats", "/stats.json", page(pages.stats, "", of_use=True)),
            *both("/personalities", "/personalities.json", page(pages.personalities, "")),
            Route("/personalities/{name:path}", page(pages.personality, "rule page")),
            Route("/changes.atom", page(changes.feed, CHANGES)),
            Route("/raw/{ref:path}", page(skill_pages.raw, "path", of_disk=True)),
            Route("/download/{ref:path}", page(skill_pages.download, of_disk=True)),
            Route("/static/{name}", _static),
            Route("/artifacts/{ref:path}", page(well_known.fetch, of_disk=True)),
            Route(well_known.END, well_known.index),
            Route(f"/s/{{ref:path}}{well_known.END}", well_known.index),
            *_clawhub(),
            Route("/info/refs", git.root),
            Route(f"{git.PREFIX}{{path:path}}", git.endpoint, methods=["GET", "POST"]),
            Route("/api/skills/{name}", publishing.put, methods=["PUT"]),
            Route(f"{git.OLDER}/index.json", git.older_index),
            Route(f"{git.OLDER}/{{name}}/{{path:path}}", git.older_file),
            *both("/proposals", "/proposals.json", page(publishing.proposed, "all", of_disk=True)),
            Route("/proposals/{number}", publishing.decide, methods=["POST"]),
            Route("/proposals/{number}", page(publishing.proposal, of_disk=True)),
            Route("/audit", page(audit.audit, of_disk=True)),
            Route("/openapi.json", openapi.openapi),
            Route("/healthz", _health),
            Route("/robots.txt", _robots),
            Route("/favicon.ico", _icon),
            *([] if mcp is None else [Route("/mcp", mcp, methods=None)]),
        ],
        lifespan=_closing(state, mcp),
        exception_handlers={
            404: failed("page_not_found", "No page at this address."),
            405: failed("method_not_allowed", "This address does not accept this method."),
            500: failed("failed", "Internal error; see the server's log."),
        },
    )
    app.router.redirect_slashes = False  # `failed` redirects these addresses
    app.state.catalogue = state
    return app


def _clawhub() -> list[Route]:
    answer, publishes, api = clawhub.endpoint, clawhub_publishing.endpoint, "/api/v1"
    return [
        Route("/.well-known/clawhub.json", answer(clawhub.discovery)),
        Route("/.well-known/clawdhub.json", answer(clawhub.discovery)),
        Route(f"{api}/search", answer(clawhub.search)),
        Route(f"{api}/skills", publishes(clawhub_publishing.publish), methods=["POST"]),
        Route(
            f"{api}/skills/-/upload-url", publishes(clawhub_publishing.announce), methods=["POST"]
        ),
        Route(f"{api}/uploads/{{ticket}}", publishes(clawhub_publishing.upload), methods=["POST"]),
        Route(f"{api}/whoami", publishes(clawhub_publishing.whoami, writes=False)),
        Route(f"{api}/skills", answer(clawhub.skills)),
        Route(f"{api}/skills/{{slug}}", answer(clawhub.skill)),
        Route(f"{api}/skills/{{slug}}/versions", answer(clawhub.versions)),
        Route(f"{api}/skills/{{slug}}/versions/{{version}}", answer(clawhub.version)),
        Route(f"{api}/skills/{{slug}}/file", answer(clawhub.file)),
        Route(f"{api}/resolve", answer(clawhub.resolve)),
        Route(f"{api}/download", answer(clawhub.download)),
        Route("/api/cli/telemetry/install", answer(clawhub.telemetry), methods=["POST"]),
    ]


def both(path: str, json_path: str, endpoint: Callable[[Request], Any]) -> list[Route]:
    """Return the routes of a page and of its JSON."""
    return [Route(path, endpoint), Route(json_path, endpoint)]


async def _all_skills(request: Request) -> Response:
    """Redirect the request to the start page, which lists all skills."""
    query = request.url.query
    return RedirectResponse(f"/?{query}" if query else "/")


async def _static(request: Request) -> Response:
    name = request.path_params["name"]
    if name not in STATIC:
        raise HTTPException(404)
    return compressed(request, static(name), STATIC[name], {"cache-control": FOREVER})


async def _icon(request: Request) -> Response:
    """Send the icon to programs that request it at its usual address."""
    return compressed(request, static("icon.svg"), STATIC["icon.svg"], {"cache-control": FOREVER})


async def _health(_request: Request) -> Response:
    """Answer a health check, without reading the database."""
    return PlainTextResponse("ok\n", headers={"cache-control": "no-store"})


async def _robots(_request: Request) -> Response:
    """Tell search engines not to index the catalogue."""
    return PlainTextResponse("User-agent: *\nDisallow: /\n")


def _closing(
    state: AppState, mcp: McpMount | None
) -> Callable[[Any], AbstractAsyncContextManager[None]]:
    @asynccontextmanager
    async def lifespan(_app: Any) -> AsyncIterator[None]:
        try:
            if mcp is not None and mcp.watches:
                # This starts the server that watches the folders; it also notifies MCP clients of
                # changes.
                await mcp.app_of(Visitor("local", is_local=True))
            yield
        finally:
            if mcp is not None:
                await mcp.close()
            state.close()

    return lifespan


LOOPBACK: Final = (ip_network("127.0.0.0/8"), ip_network("::1"))
"""Addresses of the proxies, if there is a public URL but the user named no proxies."""

TURN: Final = 0.001
"""Time after which a running thread lets other threads run, in seconds.

With Python's default of 5 ms, a finished page spent two thirds of its time waiting for other
threads.
"""


@dataclass(frozen=True, slots=True)
class Address:
    """The address at which the server listens, and at which users reach it.

    ``public`` is the URL of a proxy, or of a name of this machine. ``tls`` is the certificate and
    the key.
    """

    host: str = "127.0.0.1"
    port: int = 8765
    public: str | None = None
    tls: tuple[str, str] | None = None

    @property
    def url(self) -> str:
        """The URL that users open."""
        return self.public or self.own

    @property
    def own(self) -> str:
        """The URL at which the server listens; a proxy forwards requests to this URL."""
        host = f"[{self.host.strip('[]')}]" if ":" in self.host else self.host
        return f"{'https' if self.tls else 'http'}://{host}:{self.port}"

    @property
    def path(self) -> str:
        """The path of the public URL, without a final slash; empty if it has none."""
        return urlsplit(self.public or "").path.rstrip("/")

    @property
    def origin(self) -> str | None:
        """The public URL without its path."""
        return self.public and self.public.removesuffix(self.path)

    @property
    def is_open(self) -> bool:
        """Whether requests need no token, because only this machine can reach the server."""
        public = urlsplit(self.public or "http://localhost").hostname or ""
        return is_loopback(self.host) and is_loopback(public)

    @property
    def is_unencrypted(self) -> bool:
        """Whether other machines use plain http to reach the server, with no proxy for HTTPS."""
        return not self.is_open and urlsplit(self.url).scheme == "http"

    @property
    def hosts(self) -> Sequence[str] | None:
        """Allowed values of the Host header; None if all values are allowed."""
        own = allowed_hosts(self.host, self.port)
        if own is None:
            return None
        usual = {80: False, 443: True}.get(self.port) is bool(self.tls)
        bare = [one.rpartition(":")[0] for one in own] if usual else []
        return [*own, *bare, *([urlsplit(self.public).netloc] if self.public else [])]


def guarded(
    state: AppState, address: Address, mcp: McpMount | None, trusted: Trusted | None = None
) -> Headers:
    """Return the whole application with its middleware: limits, filter, authentication."""
    if mcp is not None:
        mcp.unsent = state.turns.unsent
    secure = address.url.startswith("https:")
    app: Any = build(state, mcp)
    app = Auth(app, state, is_open=address.is_open, trusted=trusted, secure=secure)
    origins = [address.origin] if address.origin else []
    app = RequestFilter(
        app,
        hosts=address.hosts,
        origins=origins,
        refuse=refused,
        most=publishing.most(state.registry.settings.limits),
    )
    proxies = trusted.networks if trusted else () if address.is_open else LOOPBACK
    return Headers(BelowPath(FairRequests(app, state.turns.unsent, proxies), address.path))


def serve(
    registry: "SkillRegistry",
    address: Address,
    *,
    trusted: Trusted | None = None,
    watch: bool = True,
    on_start: Callable[[], object] = lambda: None,
) -> None:
    """Serve the catalogue until a signal ends the server.

    Raises `UsageProblem` if the address can't be used. Also raises it if other machines can reach
    the address, but there is neither a token nor a proxy that names the user. Raises
    `PersonalityNotFound`.
    """
    if trusted is not None:
        registry.browse(trusted.personality)
    if registry.core.reader.empty:
        registry.create_database()  # with a database, the server notices writes of other processes
    tokens = registry.tokens()
    if not is_loopback(address.host) and trusted is None and not tokens.list():
        message = (
            f"Other machines can reach {address.host}, and no valid token exists. To create one, "
            "run: skill-registry token create NAME --read. To serve only this machine, add: "
            "--host 127.0.0.1"
        )
        raise UsageProblem(message=message)
    if address.tls is not None:
        for path in address.tls:
            if not os.access(path, os.R_OK):
                raise UsageProblem(message=f"{path} can't be read")
    sys.setswitchinterval(TURN)
    bounds = ClientLimits()
    state = AppState(registry, address.public)
    # the extra `mcp` is optional
    mcp = McpMount(registry, bounds, watch=watch) if find_spec("mcp") else None
    tls: dict[str, Any] = {}
    if address.tls is not None:
        tls = {"ssl_certfile": address.tls[0], "ssl_keyfile": address.tls[1]}
    with registry.watch(_ignored) if watch and mcp is None else nullcontext():
        run_app(
            guarded(state, address, mcp, trusted),
            address.host,
            address.port,
            bounds=bounds,
            option="--port or --host",
            on_start=on_start,
            on_stop=(lambda: None) if mcp is None else mcp.stop_listening,
            proxy_headers=False,
            **tls,
        )


def _ignored(_report: object) -> None:
    """Ignore a change, because each request creates its page from the current data."""
