"""However much one client holds of a server, others are answered."""

import http.client
import json
import os
import resource
import select
import socket
from contextlib import ExitStack, contextmanager
from itertools import cycle
from urllib.parse import urlsplit

import pytest
from mcp.client import Client
from mcp.shared.exceptions import MCPError

from registry.mcp.http import Admission, ClientLimits
from registry.mcp.server import MAX_SUBSCRIPTIONS
from tests import program
from tests.mcp.bounded import serve, with_few_files
from tests.mcp.test_http import INITIALIZE, ask

OLDER = {"MCP-Protocol-Version": "2025-06-18"}


@pytest.fixture(autouse=True)
def _many_files():
    """Let the test itself hold as many connections as it opens."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(max(soft, 4096), hard), hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.fixture
def within(environment, library):
    """Serve within these bounds, in a process that may open 1,024 files; return the URL."""

    @contextmanager
    def run(bounds):
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        reading, writing = os.pipe()
        with open(reading) as said:
            with open(os.devnull, "r+b") as nothing, open(writing, "wb") as errors:
                process = program.start(
                    [str(port), repr(bounds)],
                    environ=environment,
                    streams=(nothing.fileno(), nothing.fileno(), errors.fileno()),
                    before=with_few_files,
                    main=serve,
                )
            try:
                assert said.readline() == "Serving\n"
                yield f"http://127.0.0.1:{port}/mcp"
            finally:
                process.terminate()
                process.join()

    with ExitStack() as stack:
        yield lambda bounds: stack.enter_context(run(bounds))


def connect(url):
    place = urlsplit(url)
    return socket.create_connection((place.hostname, place.port), timeout=30)


HEAD = b"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\n"
BODY = HEAD + b"Content-Length: 1000\r\nContent-Type: application/json\r\n\r\n{"
HALVES = {"nothing": b"", "half a line": b"POST /m", "half a head": HEAD, "half a body": BODY}


def ended(connections):
    """Return how many of these connections the server has ended."""
    asked = select.poll()
    for one in connections:
        asked.register(one, select.POLLIN | select.POLLHUP)
    return len(asked.poll(0))


def test_a_client_is_answered_whatever_a_thousand_connections_of_its_address_do(within):
    url = within(ClientLimits(request_seconds=600))
    with ExitStack() as stack:
        held = []
        for number, sent in zip(range(1100), cycle(HALVES.values()), strict=False):
            one = stack.enter_context(connect(url))
            one.sendall(sent)
            held.append(one)
            if number % 100 == 0:
                assert ask(url)[0] == 200
        assert ask(url)[0] == 200
        assert ended(held) >= 500  # half of what this process could hold is left to others
        assert ended(held[-100:]) == 0


@pytest.mark.parametrize("sent", HALVES.values(), ids=HALVES)
def test_a_request_that_does_not_become_whole_is_ended(within, sent):
    url = within(ClientLimits(request_seconds=0.3))
    with connect(url) as waiting:
        waiting.sendall(sent)
        assert read_to_the_end(waiting) == b""
    assert ask(url)[0] == 200


def read_to_the_end(connection):
    try:
        return connection.recv(1000)
    except ConnectionResetError:
        return b""


def trickle(connection):
    """Send one byte more; return whether the server still waits for others."""
    try:
        connection.sendall(b" ")
        answered = select.select([connection], [], [], 0.01)[0]
        return not answered or connection.recv(10) != b""
    except (BrokenPipeError, ConnectionResetError):
        return False


def test_a_body_that_trickles_in_does_not_put_the_end_off(within):
    url = within(ClientLimits(request_seconds=0.5))
    with connect(url) as waiting:
        waiting.sendall(BODY)
        sent, is_open = 0, True
        while is_open:  # until the server ends it, for all the bytes that come
            is_open = trickle(waiting)
            sent += 1
            assert sent < 900
    assert sent > 1


def test_an_answer_may_take_longer_than_a_request(within):
    """A stream of notices is no request that does not become whole."""
    url = within(ClientLimits(request_seconds=0.3))
    place = urlsplit(url)
    session = opened(url)
    stream = http.client.HTTPConnection(place.hostname, place.port, timeout=30)
    stream.request("GET", place.path, headers={"Accept": "text/event-stream", **session, **OLDER})
    answer = stream.getresponse()
    assert answer.status == 200
    with connect(url) as waiting:  # which is ended after as long
        assert read_to_the_end(waiting) == b""
    assert ended([stream.sock or answer.fp.raw._sock]) == 0
    stream.close()


def opened(url):
    place = urlsplit(url)
    connection = http.client.HTTPConnection(place.hostname, place.port, timeout=30)
    headers = {
        "Content-Type": "application/json",
        "Accept": "application/json, text/event-stream",
    }
    connection.request("POST", place.path, json.dumps(INITIALIZE), headers)
    answer = connection.getresponse()
    answer.read()
    connection.close()
    assert answer.status == 200
    return {"Mcp-Session-Id": answer.headers["mcp-session-id"]}


def ping(url, session):
    body = {"jsonrpc": "2.0", "id": 2, "method": "ping"}
    return ask(url, body, **session, **OLDER)[0]


def test_the_session_that_is_unused_for_longest_leaves_for_a_new_one(within):
    url = within(ClientLimits(sessions=5))
    used, unused = opened(url), opened(url)
    for _ in range(20):
        opened(url)
        assert ping(url, used) == 200
    assert ping(url, unused) == 404
    assert ping(url, opened(url)) == 200


def test_a_session_that_nobody_uses_ends(within):
    url = within(ClientLimits(session_seconds=0.2, request_seconds=1.0))
    session = opened(url)
    assert ping(url, session) == 200
    with connect(url) as waiting:  # which takes longer
        assert read_to_the_end(waiting) == b""
    assert ping(url, session) == 404


def test_of_several_addresses_the_one_that_holds_most_gives_way():
    places = Admission(4, 3)
    assert [places.enter(name, "many") for name in ("a", "b", "c")] == [None] * 3
    assert places.enter("d", "many") == "a"  # no more than three of one
    assert places.enter("x", "one") is None
    places.use("b")
    assert places.enter("y", "two") == "c"  # who is busy leaves last
    places.rest("b")
    assert places.enter("z", "three") == "d"
    assert "x" in places
    assert "b" in places


@pytest.mark.filterwarnings("ignore:resources/subscribe is removed")
@pytest.mark.parametrize("transport", ["stdio", "http"])
def test_only_what_is_served_can_be_subscribed_to(talk, library, transport):
    async def conversation(client):
        await client.subscribe_resource("skill://mine/skill-0/SKILL.md")
        for uri in ("skill://mine/nothing/SKILL.md", "http://example.org/", "x" * 100_000):
            with pytest.raises(MCPError, match="No resource"):
                await client.subscribe_resource(uri)

    talk(conversation, (transport, "legacy"))


@pytest.mark.parametrize("transport", ["stdio", "http"])
def test_no_stream_listens_for_what_is_not_served_or_for_too_much(talk, library, transport):
    served = "skill://mine/skill-0/SKILL.md"
    too_many = [served] * (MAX_SUBSCRIPTIONS + 1)

    async def listen(client: Client, uris):
        async with client.listen(resource_subscriptions=uris):
            pass

    async def conversation(client):
        await listen(client, [served])
        with pytest.raises(MCPError, match="No resource"):
            await listen(client, [served, "skill://mine/nothing/SKILL.md"])
        with pytest.raises(MCPError, match="At most"):
            await listen(client, too_many)

    talk(conversation, (transport, "auto"))
