"""Our toolsets and skills as an MCP server, on the official SDK.

One server speaks both generations of the protocol: 2026-07-28, and the handshake of before.
"""

import base64
import json
import logging
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

import anyio
import mcp_types as types
from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPError

from registry import __version__
from registry.db.audit_context import acts
from registry.errors import DatabaseProblem, UsageProblem
from registry.mcp.extension import SkillsExtension, paged
from registry.mcp.notices import (
    MAX_SUBSCRIPTIONS,
    Notices,
    ResourcesListChanged,
    ResourceUpdated,
    ToolsListChanged,
)
from registry.mcp.protocol import BothGenerations, advertise, failure, guarded, no_resource
from registry.mcp.resources import MAX_COMPLETIONS, TEMPLATE, SkillResources
from registry.mcp.roots import Roots
from registry.mcp.turns import Turns, Unsent
from registry.sync.watch import Changes, Watcher
from registry.toolsets.base import Context, Toolset, shown
from registry.toolsets.schemas import Json, is_error
from registry.toolsets.view import View

if TYPE_CHECKING:
    from registry.api import SkillRegistry

log = logging.getLogger(__name__)

T = TypeVar("T")

WORKERS: Final = 3
"""Threads that answer: each keeps a connection to the database, and more only wait for another."""

INSTRUCTIONS: Final = (
    "This server holds a catalogue of skills: instructions for particular tasks. Before a task, "
    "look for a skill that fits it{search}, read it whole{read}, and follow it. Supporting files "
    "are read one at a time, by the paths that the skill names."
)


@dataclass(frozen=True, slots=True)
class Serving:
    """What is served: toolsets by name, limited as `Context` has it.

    ``workdir`` is the folder from which projects are seen, by default the registry's. ``roots``:
    the one client is on this machine, and may say where it works.
    """

    toolsets: Sequence[str] = ("native",)
    limits: dict[str, Any] = field(default_factory=dict)
    workdir: str | None = None
    roots: bool = False
    watch: bool = True


class SkillServer:
    """One registry for all clients of one server.

    ``on_change`` is told what changed where it watches, by default to tell its own clients.
    Raises `UsageProblem` where two toolsets have tools of one name, and what toolsets raise.
    """

    def __init__(
        self, registry: "SkillRegistry", serving: Serving, unsent: Unsent | None = None
    ) -> None:
        self.notices = Notices()
        self.on_change: Callable[[Changes], None] = self.tell
        self._registry = registry
        self._serving = serving
        self._roots = Roots(partial(self._run, self._look_from), asked=serving.roots)
        self._watcher: Watcher | None = None
        self._look_from(())
        self._turns = Turns(WORKERS, "tool", unsent)

    @property
    def unsent(self) -> Unsent:
        """The bytes of answers that wait to be sent."""
        return self._turns.unsent

    def _look_from(self, roots: Sequence[str]) -> None:
        """Serve what is seen from a client's roots, or without any from where this was started."""
        serving, registry = self._serving, self._registry
        if roots or serving.workdir is not None:
            registry = registry.seen_from(*(roots or [str(serving.workdir)]))
        self._toolsets = [registry.toolset(name, **serving.limits) for name in serving.toolsets]
        self._homes = self._assign()
        self._core = registry.core
        self._resources = SkillResources(View(Context(self._core, **serving.limits)))
        self._listed = self._resources.listed()
        if self._watcher is not None:
            self._watcher.look_from(self._core)

    def build(self) -> Server[Any]:
        """Return the SDK's server with all handlers."""
        first = self._roots.first
        server = BothGenerations(
            "skill-registry",
            version=__version__,
            instructions=self._instructions(),
            lifespan=self._lifespan,
            on_list_tools=first(self._list_tools),
            on_call_tool=first(self._call_tool),
            on_list_prompts=guarded(self._list_prompts),
            on_get_prompt=guarded(self._get_prompt),
            on_list_resources=first(self._list_resources),
            on_list_resource_templates=guarded(self._list_templates),
            on_read_resource=first(self._read_resource),
            on_subscribe_resource=first(self._subscribe),
            on_unsubscribe_resource=guarded(self._unsubscribe),
            on_completion=first(self._complete),
            on_subscriptions_listen=first(self._listen),
        )
        server.middleware[:] = [cast("Any", advertise)]
        SkillsExtension(self._run, lambda: self._resources).add_to(server, first)
        server.add_notification_handler(
            "notifications/roots/list_changed", types.NotificationParams, self._on_roots_changed
        )
        server.add_notification_handler(
            "notifications/initialized", types.NotificationParams, self.notices.on_initialized
        )
        return server

    def close(self) -> None:
        """Write down what was counted, and give back the database; for an end in a hurry."""
        self._registry.close()

    def _assign(self) -> dict[str, Toolset]:
        homes: dict[str, Toolset] = {}
        for toolset in self._toolsets:
            for tool in toolset.tools():
                if tool.name in homes:
                    message = (
                        f"The toolsets {homes[tool.name].name} and {toolset.name} both have a tool "
                        f"{tool.name}: serve them as two servers."
                    )
                    raise UsageProblem(message=message)
                homes[tool.name] = toolset
        return homes

    def _instructions(self) -> str:
        native = "native" in self._serving.toolsets
        return INSTRUCTIONS.format(
            search=" (search_skills)" if native else "", read=" (read_skill)" if native else ""
        )

    @asynccontextmanager
    async def _lifespan(self, _server: Any) -> AsyncIterator[dict[str, Any]]:
        async with anyio.create_task_group() as tasks:
            await tasks.start(self.notices.run)
            if self._serving.watch:
                self._watcher = Watcher(self._core, on_change=self.on_change, on_note=log.warning)
                self._watcher.start()
            try:
                yield {}
            finally:
                if self._watcher is not None:
                    await anyio.to_thread.run_sync(self._watcher.stop)
                self._turns.close()
                tasks.cancel_scope.cancel()

    def tell(self, changes: Changes) -> None:
        """Send notices of what changed; only the toolset wave describes the skills themselves."""
        events: list[Any] = []
        if "wave" in self._serving.toolsets:
            events.append(ToolsListChanged())
        # A narrowed client gets notices only of skills that it sees, so it learns of no others.
        listed, before = self._resources.listed(), self._listed
        self._listed = listed
        if changes.added or changes.removed if listed is None else listed != before:
            events.append(ResourcesListChanged())
        for ref in changes.updated:
            uri = self._resources.uri_of(ref)
            if uri is not None:
                events.append(ResourceUpdated(uri))
        self.notices.publish(*events)

    async def _run(self, work: Callable[..., T], *arguments: Any) -> T:
        return await self._turns.run(work, *arguments)

    async def _list_tools(self, _context: Any, _params: Any) -> types.ListToolsResult:
        offered = await self._run(
            lambda: [tool for toolset in self._toolsets for tool in toolset.schemas("mcp")]
        )
        return types.ListToolsResult(tools=[types.Tool.model_validate(tool) for tool in offered])

    async def _call_tool(
        self, context: Any, params: types.CallToolRequestParams
    ) -> types.CallToolResult:
        toolset = self._homes.get(params.name)
        if toolset is None:
            message = (
                f"There is no tool '{shown(params.name)}'. There are: {', '.join(self._homes)}."
            )
            raise MCPError(types.INVALID_PARAMS, message)
        arguments = params.arguments or {}
        try:
            what = toolset, params.name, arguments
            answer, text = await self._run(self._answer, _client(context), *what)
        except DatabaseProblem as error:
            return failure(str(error))
        except Exception:
            log.exception("%s failed", params.name)
            return failure(f"{params.name} failed for a reason of its own; the log has it.")
        return types.CallToolResult(
            content=[types.TextContent(text=text)],
            structured_content=answer,
            is_error=is_error(answer),
        )

    async def _on_roots_changed(self, _context: Any, _params: Any) -> None:
        if self._roots.forget():
            self.notices.publish(ToolsListChanged(), ResourcesListChanged())

    def _answer(
        self, client: str | None, toolset: Toolset, tool: str, arguments: Any
    ) -> tuple[Json, str]:
        with acts(client=client), self._registry.core.explained():
            answer = toolset.call(tool, arguments)
            return answer, json.dumps(answer, ensure_ascii=False, separators=(",", ":"))

    async def _list_prompts(self, _context: Any, _params: Any) -> types.ListPromptsResult:
        """Answer that there are none: clients that ask all servers take an error for a failure."""
        return types.ListPromptsResult(prompts=[])

    async def _get_prompt(
        self, _context: Any, params: types.GetPromptRequestParams
    ) -> types.GetPromptResult:
        raise MCPError(types.INVALID_PARAMS, f"There is no prompt '{shown(params.name)}'.")

    async def _list_resources(
        self, _context: Any, params: types.PaginatedRequestParams | None
    ) -> types.ListResourcesResult:
        found, cursor = await paged(self._run, self._resources.page, params)
        listed = [types.Resource(**entry) for entry in found]
        return types.ListResourcesResult(resources=listed, next_cursor=cursor)

    async def _list_templates(
        self, _context: Any, _params: Any
    ) -> types.ListResourceTemplatesResult:
        template = types.ResourceTemplate(
            name="skill-file", uri_template=TEMPLATE, description="A file of a skill"
        )
        return types.ListResourceTemplatesResult(resource_templates=[template])

    async def _read_resource(
        self, _context: Any, params: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult:
        uri = str(params.uri)
        found = await self._run(self._resources.read, uri)
        if found is None:
            raise no_resource(uri)
        part: types.TextResourceContents | types.BlobResourceContents
        try:
            text = found.data.decode()
            part = types.TextResourceContents(uri=uri, mime_type=found.mime_type, text=text)
        except UnicodeDecodeError:
            blob = base64.b64encode(found.data).decode()
            part = types.BlobResourceContents(uri=uri, mime_type=found.mime_type, blob=blob)
        return types.ReadResourceResult(contents=[part])

    async def _subscribe(
        self, context: Any, params: types.SubscribeRequestParams
    ) -> types.EmptyResult:
        uri = str(params.uri)
        subscribed = self.notices.subscriptions(context)
        if uri not in subscribed:
            await self._check_subscriptions([uri], len(subscribed))
            subscribed.add(uri)
        return types.EmptyResult()

    async def _listen(
        self, context: Any, params: types.SubscriptionsListenRequestParams
    ) -> types.SubscriptionsListenResult:
        await self._check_subscriptions(params.notifications.resource_subscriptions or [], 0)
        return await self.notices.listen(context, params)

    async def _check_subscriptions(self, uris: Sequence[str], before: int) -> None:
        """Raise `MCPError` for more than a client may wait for, and for what is not served."""
        if before + len(uris) > MAX_SUBSCRIPTIONS:
            message = f"At most {MAX_SUBSCRIPTIONS} resources can be subscribed to"
            raise MCPError(types.INVALID_PARAMS, message)
        for uri in dict.fromkeys(map(str, uris)):
            if not await self._run(self._resources.is_served, uri):
                raise no_resource(uri)

    async def _unsubscribe(
        self, context: Any, params: types.UnsubscribeRequestParams
    ) -> types.EmptyResult:
        self.notices.subscriptions(context).discard(str(params.uri))
        return types.EmptyResult()

    async def _complete(
        self, _context: Any, params: types.CompleteRequestParams
    ) -> types.CompleteResult:
        values: list[str] = []
        if isinstance(params.ref, types.ResourceTemplateReference):
            given = (params.context.arguments if params.context else None) or {}
            values = await self._run(
                self._resources.complete, params.argument.name, params.argument.value, given
            )
        completion = types.Completion(
            values=values[:MAX_COMPLETIONS],
            total=len(values),
            has_more=len(values) > MAX_COMPLETIONS,
        )
        return types.CompleteResult(completion=completion)


def _client(context: Any) -> str | None:
    """Return what a client calls itself, if it does."""
    said = context.session.client_params
    return None if said is None else f"{said.client_info.name} {said.client_info.version}".strip()
