"""The catalogue as an ASGI application: which path is answered by what."""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, Final

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route

from registry.web import clawhub, feed, history, openapi, overview, raw, skill, start, well_known
from registry.web.answers import failed, page
from registry.web.desk import Desk, Visitor
from registry.web.mcp_door import McpDoor
from registry.web.rendering import STATIC, static

FOREVER: Final = "public, max-age=31536000, immutable"


def build(desk: Desk, mcp: McpDoor | None = None) -> Starlette:
    """Return the catalogue's application; each request needs a ``visitor`` in its scope."""
    app = Starlette(
        routes=[
            *both("/", "/index.json", page(start.start)),
            Route("/skills", _all_skills),
            Route("/skills.json", start.every_skill),
            Route("/skills/{ref:path}", page(skill.skill, of_disk=True)),
            Route("/files/{ref:path}", page(skill.file, of_disk=True)),
            Route("/history/{ref:path}", page(history.history, of_disk=True)),
            Route("/copies/{ref:path}", page(skill.near)),
            *both("/why", "/why.json", page(skill.why, of_disk=True)),
            *both("/sources", "/sources.json", page(overview.sources, of_use=True)),
            *both("/findings", "/findings.json", page(overview.findings)),
            *both("/changes", "/changes.json", page(overview.changes)),
            *both("/stats", "/stats.json", page(overview.stats, of_use=True)),
            *both("/personalities", "/personalities.json", page(overview.personalities)),
            Route("/personalities/{name:path}", page(overview.personality)),
            Route("/changes.atom", page(feed.feed)),
            Route("/raw/{ref:path}", page(raw.raw, of_disk=True)),
            Route("/download/{ref:path}", page(raw.download, of_disk=True)),
            Route("/static/{name}", _static),
            Route("/artifacts/{ref:path}", page(well_known.fetch, of_disk=True)),
            Route(well_known.END, well_known.index),
            Route(f"/s/{{ref:path}}{well_known.END}", well_known.index),
            *_clawhub(),
            Route("/openapi.json", openapi.openapi),
            Route("/healthz", _health),
            Route("/robots.txt", _robots),
            *([] if mcp is None else [Route("/mcp", mcp, methods=None)]),
        ],
        lifespan=_closing(desk, mcp),
        exception_handlers={
            404: failed("page_not_found", "There is nothing at this address."),
            500: failed("failed", "This failed for a reason of its own; the server's log has it."),
        },
    )
    app.router.redirect_slashes = False  # see `failed`
    app.state.desk = desk
    return app


def _clawhub() -> list[Route]:
    answer, api = clawhub.endpoint, "/api/v1"
    return [
        Route("/.well-known/clawhub.json", answer(clawhub.discovery)),
        Route("/.well-known/clawdhub.json", answer(clawhub.discovery)),
        Route(f"{api}/search", answer(clawhub.search)),
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
    """Return the routes of a page and of the same facts as JSON."""
    return [Route(path, endpoint), Route(json_path, endpoint)]


async def _all_skills(request: Request) -> Response:
    """Lead who cut a skill's address short to where they are listed."""
    query = request.url.query
    return RedirectResponse(f"/?{query}" if query else "/")


async def _static(request: Request) -> Response:
    name = request.path_params["name"]
    if name not in STATIC:
        raise HTTPException(404)
    return Response(static(name), headers={"cache-control": FOREVER, "content-type": STATIC[name]})


async def _health(_request: Request) -> Response:
    """Say that the server lives; it asks no database, which would say whether that does."""
    return PlainTextResponse("ok\n", headers={"cache-control": "no-store"})


async def _robots(_request: Request) -> Response:
    """Ask search engines to leave the catalogue out."""
    return PlainTextResponse("User-agent: *\nDisallow: /\n")


def _closing(desk: Desk, mcp: McpDoor | None) -> Callable[[Any], AbstractAsyncContextManager[None]]:
    @asynccontextmanager
    async def lifespan(_app: Any) -> AsyncIterator[None]:
        try:
            if mcp is not None and mcp.watches:
                # What follows the folders tells MCP's clients what changed.
                await mcp.app_of(Visitor("local", is_local=True))
            yield
        finally:
            if mcp is not None:
                await mcp.close()
            desk.close()

    return lifespan
