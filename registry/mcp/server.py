"""The registry's toolsets and skills as an MCP server, with the official SDK.

A server supports two generations of the protocol: the version 2026-07-28, and earlier versions with
a handshake.
"""

import asyncio
import base64
import json
import logging
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast
from urllib.parse import unquote, urlsplit

import anyio
import mcp_types as types
from mcp.server.lowlevel import NotificationOptions, Server
from mcp.server.subscriptions import (
    InMemorySubscriptionBus,
    ListenHandler,
    ResourcesListChanged,
    ResourceUpdated,
    ToolsListChanged,
)
from mcp.shared.exceptions import MCPError

from registry import __version__
from registry.db.audit_context import audit_context
from registry.errors import DatabaseProblem, UsageProblem
from registry.mcp.fairness import FairThreads, Unsent
from registry.mcp.resources import MAX_COMPLETIONS, TEMPLATE, SkillResources, page_of
from registry.sync.watch import Changes, Watcher
from registry.toolsets.base import Context, Toolset, shown
from registry.toolsets.schemas import Json, is_error
from registry.toolsets.view import View

if TYPE_CHECKING:
    from registry.api import SkillRegistry


log = logging.getLogger(__name__)

MAX_SUBSCRIPTIONS: Final = 1000
"""Maximum number of resources to which one session or one stream can subscribe."""

NOTICE_SECONDS: Final = 5.0
"""Maximum time to wait for a client that doesn't read notifications, in seconds."""


class ChangeNotices:
    """Collects events from any thread, and sends notifications from the event loop.

    Clients of version 2026-07-28 listen on a subscription stream of the SDK. Each session of an
    older client gets a separate notification.
    """

    def __init__(self) -> None:
        self._bus = InMemorySubscriptionBus()
        self.listen = ListenHandler(self._bus)
        self._sessions: dict[int, tuple[Any, set[str]]] = {}
        self._waiting: dict[Any, None] = {}
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._wake: asyncio.Event | None = None

    def publish(self, *events: Any) -> None:
        """Send notifications of events soon; equal events are merged.

        Any thread may call this method.
        """
        with self._lock:
            self._waiting.update(dict.fromkeys(events))
            loop, wake = self._loop, self._wake
        if loop is not None and wake is not None:
            with suppress(RuntimeError):  # the loop may be closed already
                loop.call_soon_threadsafe(wake.set)

    async def run(self, *, task_status: Any = anyio.TASK_STATUS_IGNORED) -> None:
        """Send notifications until this task is cancelled."""
        with self._lock:
            self._loop, self._wake = asyncio.get_running_loop(), asyncio.Event()
        wake = self._wake
        task_status.started()
        try:
            while True:
                await wake.wait()
                wake.clear()
                with self._lock:
                    events, self._waiting = list(self._waiting), {}
                for event in events:
                    await self._bus.publish(event)
                async with anyio.create_task_group() as sending:
                    for session, uris in list(self._sessions.values()):
                        sending.start_soon(_send, session, frozenset(uris), events)
        finally:
            with self._lock:
                self._loop = self._wake = None

    def subscriptions(self, context: Any) -> set[str]:
        """Return the URIs to which this session has subscribed; the caller may change the set."""
        connection = context.session._connection  # noqa: SLF001  # the SDK has no public name
        key = id(connection)
        if key not in self._sessions:
            self._sessions[key] = (context.session, set())
            connection.exit_stack.callback(self._sessions.pop, key, None)
        return self._sessions[key][1]

    async def on_initialized(self, context: Any, _params: types.NotificationParams | None) -> None:
        """Record the session of an older client, so that it gets notifications."""
        self.subscriptions(context)


async def _send(session: Any, uris: frozenset[str], events: list[Any]) -> None:
    with anyio.move_on_after(NOTICE_SECONDS):
        for event in events:
            try:
                if isinstance(event, ToolsListChanged):
                    await session.send_tool_list_changed()
                elif isinstance(event, ResourcesListChanged):
                    await session.send_resource_list_changed()
                elif isinstance(event, ResourceUpdated) and event.uri in uris:
                    await session.send_resource_updated(event.uri)
            except Exception:  # if a client has left, the others still get notifications
                log.debug("a notice was not delivered", exc_info=True)


T = TypeVar("T")

SKILLS: Final = "io.modelcontextprotocol/skills"
"""The extension for skills (SEP-2640)."""

SETTINGS: Final = {"directoryRead": True}
"""The value with which the server declares the extension for skills."""


class BothGenerations(Server[Any]):
    """A server that also notifies older clients (with the handshake) of changed lists."""

    def create_initialization_options(
        self,
        notification_options: NotificationOptions | None = None,
        *rest: Any,
        **named: Any,
    ) -> Any:
        """Return the options of a session with an older client."""
        options = notification_options or NotificationOptions(
            tools_changed=True, resources_changed=True
        )
        return super().create_initialization_options(options, *rest, **named)


Handler = Callable[[Any, Any], Awaitable[T]]


def guarded(handler: Handler[T]) -> Handler[T]:
    """Wrap a handler: log an unexpected error, and don't send the error's text to the client.

    The text may contain paths of this machine.
    """

    async def safe(context: Any, params: Any) -> T:
        try:
            return await handler(context, params)
        except MCPError:
            raise
        except Exception:
            log.exception("a request failed")
            message = "Internal error; see the server's log"
            raise MCPError(types.INTERNAL_ERROR, message) from None

    return safe


async def advertise(context: Any, following: Callable[[Any], Awaitable[Any]]) -> Any:
    """Declare the extension for skills to older clients, because the SDK leaves it out for them."""
    result = await following(context)
    if context.method == "initialize" and isinstance(result, dict):
        result["capabilities"].setdefault("extensions", {})[SKILLS] = SETTINGS
    return result


def no_resource(uri: str, kind: str = "resource") -> MCPError:
    """Return the protocol's error for a URI without a resource."""
    return MCPError(types.INVALID_PARAMS, f"No {kind} {shown(uri)}", {"uri": uri})


def failure(text: str) -> types.CallToolResult:
    """Return an error as the result of a tool call, if no toolset has answered the call."""
    return types.CallToolResult(content=[types.TextContent(text=text)], is_error=True)


ROOTS_SECONDS: Final = 5.0
"""Maximum time to wait for a client's answer with its roots, in seconds."""

MAX_ROOTS: Final = 100


async def roots_of(session: Any) -> list[str]:
    """Return the folders that a client reports as its roots.

    Only older clients get this request. Since 2026-07-28, the protocol has no roots.
    """
    capabilities = session.client_capabilities
    if capabilities is None or capabilities.roots is None:
        return []
    try:
        answer = await session.send_request(
            types.ListRootsRequest(),
            types.ListRootsResult,
            request_read_timeout_seconds=ROOTS_SECONDS,
        )
    except Exception:  # if the client doesn't answer, serve it without roots
        log.info("the client did not name its roots", exc_info=True)
        return []
    return folders([str(root.uri) for root in answer.roots])


def folders(uris: Sequence[str]) -> list[str]:
    """Return the roots of a client that are folders of this machine."""
    found = []
    for uri in uris[:MAX_ROOTS]:
        try:
            scheme, host, path, *_ = urlsplit(uri)
        except ValueError:
            continue
        path = unquote(path)
        if scheme == "file" and host in {"", "localhost"} and path[:1] == "/" and "\0" not in path:
            found.append(path)
    return found


FRESH: Final = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}
"""Fields that the extension requires in each result.

The ttl is 0, because files on disk can change at any time.
"""


class SkillParams(types.RequestParams):
    """Parameters of `skills/get`."""

    uri: str


class DirectoryParams(types.PaginatedRequestParams):
    """Parameters of `resources/directory/read`."""

    uri: str


def _page(key: str, found: list[Json], cursor: str | None) -> Json:
    return {key: found, **({} if cursor is None else {"nextCursor": cursor}), **FRESH}


WORKERS: Final = 3
"""Number of threads that answer requests; each has a connection to the database."""

INSTRUCTIONS: Final = (
    "This server offers skills: instructions for particular tasks. Before a task, look for a "
    "matching skill{search}. If there is one, read all of it{read} and follow it. Read its "
    "supporting files one at a time, by the paths that it names."
)


@dataclass(frozen=True, slots=True)
class ServerOptions:
    """The toolsets to serve, by name, with the limits in the fields of `Context`.

    ``workdir`` is the folder that decides which projects are visible; the default is the
    registry's. If ``roots``, ask the client for its roots, because it is the only client and on
    this machine.
    """

    toolsets: Sequence[str] = ("native",)
    limits: dict[str, Any] = field(default_factory=dict)
    workdir: str | None = None
    roots: bool = False
    watch: bool = True


class SkillServer:
    """One registry for all clients of a server.

    ``on_change`` is called with each change in the watched folders; by default, it notifies the
    clients of this server. Raises `UsageProblem` if two toolsets have a tool with the same name,
    and the errors of toolsets.
    """

    def __init__(
        self, registry: "SkillRegistry", serving: ServerOptions, unsent: Unsent | None = None
    ) -> None:
        self.notices = ChangeNotices()
        self.on_change: Callable[[Changes], None] = self.tell
        self._registry = registry
        self._serving = serving
        self._knows_roots = not serving.roots
        self._asking = anyio.Lock()
        self._watcher: Watcher | None = None
        self._look_from(())
        self._turns = FairThreads(WORKERS, "tool", unsent)

    @property
    def unsent(self) -> Unsent:
        """The counter of unsent bytes."""
        return self._turns.unsent

    def _look_from(self, roots: Sequence[str]) -> None:
        """Serve the skills that are visible from the client's roots.

        Without roots, serve the skills that are visible from ``workdir``.
        """
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
        first = self._after_roots
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
        server.extensions[SKILLS] = SETTINGS
        for method, params, handler in (
            ("skills/list", types.PaginatedRequestParams, self._list_skills),
            ("skills/get", SkillParams, self._get_skill),
            ("resources/directory/read", DirectoryParams, self._read_directory),
        ):
            server.add_request_handler(method, params, first(handler))
        server.add_notification_handler(
            "notifications/roots/list_changed", types.NotificationParams, self._on_roots_changed
        )
        server.add_notification_handler(
            "notifications/initialized", types.NotificationParams, self.notices.on_initialized
        )
        return server

    def _after_roots(self, handler: Handler[T]) -> Handler[T]:
        """Wrap a handler: if the client's roots are unknown, first ask the client for them."""

        async def answer(context: Any, params: Any) -> T:
            async with self._asking:
                if not self._knows_roots:
                    self._knows_roots = True
                    await self._run(self._look_from, await roots_of(context.session))
            return await handler(context, params)

        return guarded(answer)

    def close(self) -> None:
        """Store usage counts and close the database, so that the process can end quickly."""
        self._registry.close()

    def _assign(self) -> dict[str, Toolset]:
        homes: dict[str, Toolset] = {}
        for toolset in self._toolsets:
            for tool in toolset.tools():
                if tool.name in homes:
                    message = (
                        f"The toolsets {homes[tool.name].name} and {toolset.name} both have a tool "
                        f"{tool.name}. Serve them as two servers."
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
        """Notify clients of changes.

        Only the tool of the toolset wave has a description that lists skills.
        """
        events: list[Any] = []
        if "wave" in self._serving.toolsets:
            events.append(ToolsListChanged())
        # A client of a limited view gets notifications only about skills in this view, so that it
        # can't learn about other skills.
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
            message = f"No tool '{shown(params.name)}'. Available: {', '.join(self._homes)}."
            raise MCPError(types.INVALID_PARAMS, message)
        arguments = params.arguments or {}
        try:
            what = toolset, params.name, arguments
            answer, text = await self._run(self._answer, _client(context), *what)
        except DatabaseProblem as error:
            return failure(str(error))
        except Exception:
            log.exception("%s failed", params.name)
            return failure(f"Internal error in {params.name}; see the log.")
        return types.CallToolResult(
            content=[types.TextContent(text=text)],
            structured_content=answer,
            is_error=is_error(answer),
        )

    async def _on_roots_changed(self, _context: Any, _params: Any) -> None:
        if self._serving.roots:
            self._knows_roots = False
            self.notices.publish(ToolsListChanged(), ResourcesListChanged())

    def _answer(
        self, client: str | None, toolset: Toolset, tool: str, arguments: Any
    ) -> tuple[Json, str]:
        with audit_context(client=client), self._registry.core.explained():
            answer = toolset.call(tool, arguments)
            return answer, json.dumps(answer, ensure_ascii=False, separators=(",", ":"))

    async def _list_prompts(self, _context: Any, _params: Any) -> types.ListPromptsResult:
        """Answer with an empty list, because some clients treat an error as a server failure."""
        return types.ListPromptsResult(prompts=[])

    async def _get_prompt(
        self, _context: Any, params: types.GetPromptRequestParams
    ) -> types.GetPromptResult:
        raise MCPError(types.INVALID_PARAMS, f"No prompt '{shown(params.name)}'.")

    async def _paged(
        self,
        work: Callable[[str | None], tuple[list[Json], str | None]],
        params: types.PaginatedRequestParams | None,
    ) -> tuple[list[Json], str | None]:
        """Return the requested page, and the cursor of the next page.

        Raises `MCPError` if the cursor is invalid.
        """
        cursor = None if params is None else params.cursor
        try:
            return await self._run(work, cursor)
        except ValueError:
            raise MCPError(types.INVALID_PARAMS, f"Unknown cursor {shown(cursor)}") from None

    async def _list_skills(
        self, _context: Any, params: types.PaginatedRequestParams | None
    ) -> Json:
        return _page("skills", *await self._paged(self._resources.skills, params))

    async def _get_skill(self, _context: Any, params: SkillParams) -> Json:
        found = await self._run(self._resources.skill, params.uri)
        if found is None:
            raise no_resource(params.uri, "skill")
        return {"skill": found, **FRESH}

    async def _read_directory(self, _context: Any, params: DirectoryParams) -> Json:
        found = await self._run(self._resources.directory, params.uri)
        if found is None:
            raise no_resource(params.uri, "directory")
        return _page("resources", *await self._paged(partial(page_of, found), params))

    async def _list_resources(
        self, _context: Any, params: types.PaginatedRequestParams | None
    ) -> types.ListResourcesResult:
        found, cursor = await self._paged(self._resources.page, params)
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
        mime_type, data = found
        part: types.TextResourceContents | types.BlobResourceContents
        try:
            part = types.TextResourceContents(uri=uri, mime_type=mime_type, text=data.decode())
        except UnicodeDecodeError:
            blob = base64.b64encode(data).decode()
            part = types.BlobResourceContents(uri=uri, mime_type=mime_type, blob=blob)
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
        """Raise `MCPError` if there are too many subscriptions, or if a URI isn't served."""
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
    """Return the name and version that a client reports."""
    said = context.session.client_params
    return None if said is None else f"{said.client_info.name} {said.client_info.version}".strip()
