"""The methods of the extension for skills (SEP-2640)."""

from collections.abc import Awaitable, Callable
from typing import Any, Final

import mcp_types as types
from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPError

from registry.mcp.protocol import SETTINGS, SKILLS, Handler, no_resource
from registry.mcp.resources import SkillResources
from registry.toolsets.base import shown

FRESH: Final = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}
"""What the extension requires of each result; the disk may change at any time."""

Json = dict[str, Any]
Run = Callable[..., Awaitable[Any]]


class SkillParams(types.RequestParams):
    """What `skills/get` is asked with."""

    uri: str


class DirectoryParams(types.PaginatedRequestParams):
    """What `resources/directory/read` is asked with."""

    uri: str


class SkillsExtension:
    """Answers the extension's requests; ``run`` runs what blocks, ``resources`` are those seen."""

    def __init__(self, run: Run, resources: Callable[[], SkillResources]) -> None:
        self._run = run
        self._resources = resources

    def add_to(self, server: Server[Any], first: Callable[[Handler[Any]], Handler[Any]]) -> None:
        """Declare the extension; ``first`` is what is done before any request is answered."""
        server.extensions[SKILLS] = SETTINGS
        for method, params, handler in (
            ("skills/list", types.PaginatedRequestParams, self._list),
            ("skills/get", SkillParams, self._get),
            ("resources/directory/read", DirectoryParams, self._directory),
        ):
            server.add_request_handler(method, params, first(handler))

    async def _list(self, _context: Any, params: types.PaginatedRequestParams | None) -> Json:
        found, cursor = await paged(self._run, self._resources().skills, params)
        return _page("skills", found, cursor)

    async def _get(self, _context: Any, params: SkillParams) -> Json:
        found = await self._run(self._resources().skill, params.uri)
        if found is None:
            raise no_resource(params.uri, "skill")
        return {"skill": found, **FRESH}

    async def _directory(self, _context: Any, params: DirectoryParams) -> Json:
        found = await self._run(self._resources().directory, params.uri)
        if found is None:
            raise no_resource(params.uri, "directory")
        children, cursor = await paged(self._run, found.page, params)
        return _page("resources", children, cursor)


async def paged(
    run: Run,
    work: Callable[[str | None], tuple[list[Json], str | None]],
    params: types.PaginatedRequestParams | None,
) -> tuple[list[Json], str | None]:
    """Return the page that a request asks for, and the cursor of the next.

    Raises `MCPError` for a cursor that ``work`` takes for none of ours (ValueError).
    """
    cursor = None if params is None else params.cursor
    try:
        found: tuple[list[Json], str | None] = await run(work, cursor)
    except ValueError:
        raise MCPError(types.INVALID_PARAMS, f"Unknown cursor {shown(cursor)}") from None
    return found


def _page(key: str, found: list[Json], cursor: str | None) -> Json:
    return {key: found, **({} if cursor is None else {"nextCursor": cursor}), **FRESH}
