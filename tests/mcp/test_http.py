"""What the network may not do."""

import asyncio
import http.client
import json
import os
import signal
import socket
import subprocess
import sys
from urllib.parse import urlsplit

import pytest

from registry.errors import UsageProblem
from registry.mcp.http import MAX_BYTES, RequestFilter, allowed_hosts, serve_http
from registry.remotes.address import is_loopback
from tests import program
from tests.conftest import hearing_interrupts
from tests.program import INITIALIZE


def ask(url, body=INITIALIZE, **headers):
    place = urlsplit(url)
    connection = http.client.HTTPConnection(place.hostname, place.port, timeout=10)
    given = {
        "Content-Type": "application/json",
        "Accept": "application/json, text/event-stream",
        **{name.replace("_", "-"): value for name, value in headers.items()},
    }
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    connection.request("POST", place.path, data, given)
    answer = connection.getresponse()
    text = answer.read().decode()
    connection.close()
    return answer.status, text


def test_requests_for_another_host_or_from_another_origin_are_turned_away(serve, library):
    url, _ = serve()
    assert ask(url)[0] == 200
    assert ask(url, Host="evil.example")[0] == 421
    assert ask(url, Origin="http://evil.example")[0] == 403
    assert ask(url, Origin=url.removesuffix("/mcp"))[0] == 200
    place = urlsplit(url)
    assert ask(url, Host=f"localhost:{place.port}")[0] == 200


def test_a_token_is_asked_for_where_there_is_one(serve, library):
    url, _ = serve(SKILL_REGISTRY_TOKEN="s3cret")
    assert ask(url)[0] == 401
    assert ask(url, Authorization="Bearer wrong")[0] == 401
    assert "A bearer token is required" in str(ask(url))
    assert "The token is not valid" in str(ask(url, Authorization="Bearer wrong"))
    assert ask(url, Authorization="Basic s3cret")[0] == 401
    assert ask(url, Authorization="Bearer s3cret")[0] == 200


def test_a_body_that_is_too_large_is_refused_and_the_server_goes_on(serve, library):
    url, process = serve()
    status, text = ask(url, b"x" * (MAX_BYTES + 1))
    assert status == 413
    assert "too large" in text
    assert ask(url)[0] == 200
    assert process.is_alive()


@pytest.mark.parametrize("host", ["0.0.0.0", "192.0.2.1", "example.org", "[::]"])
def test_an_address_that_others_reach_needs_a_token(host):
    with pytest.raises(UsageProblem, match="SKILL_REGISTRY_TOKEN"):
        serve_http(None, host, 1, None)


def test_the_command_says_so_in_words(environment, library):
    ran = program.run(["mcp", "--http", "0.0.0.0:1"], environ=environment)
    assert ran.status != 0
    assert "Other machines can reach" in ran.err
    assert "Traceback" not in ran.err


def test_an_address_that_is_taken_is_said(environment, library):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        ran = program.run(["mcp", "--http", f"127.0.0.1:{port}"], environ=environment)
    assert "another program uses this port" in ran.err
    assert "Traceback" not in ran.err
    assert "Errno" not in ran.err


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_the_server_at_once_and_well(serve, library, number):
    url, process = serve()
    assert ask(url)[0] == 200
    os.kill(process.pid, number)
    process.join(60)
    assert process.exitcode == 0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, None])
def test_over_stdio_a_signal_or_the_end_of_input_ends_it(environment, library, registry, number):
    """What was counted until then is written down."""
    process = subprocess.Popen(
        [sys.executable, "-m", "registry", "mcp"],
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        preexec_fn=hearing_interrupts,  # noqa: PLW1509  # it takes no lock
    )
    with process:
        speak_and_end(process, number)
        process.kill()
    assert [(one.name, one.read) for one in registry.usage_counts()] == [("skill-1", 1)]


def speak_and_end(process, number):
    process.stdin.write(json.dumps(INITIALIZE).encode() + b"\n")
    process.stdin.flush()
    assert b"skill-registry" in process.stdout.readline()
    call = {"name": "read_skill", "arguments": {"name": "skill-1"}}
    for message in (
        {"method": "notifications/initialized"},
        {"id": 2, "method": "tools/call", "params": call},
    ):
        process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
    process.stdin.flush()
    assert b'"id":2' in process.stdout.readline()
    if number is None:
        process.stdin.close()
    else:
        process.send_signal(number)
    assert process.wait(60) == 0
    assert process.stderr.read() == b""
    process.stdout.close()
    process.stderr.close()
    process.stdin.close()


class TestGuard:
    def ask(self, guard, **headers):
        """Return the status that a guard answers with; 200 is the application behind it."""
        sent = []

        async def receive():
            return {"type": "http.request", "body": b"", "more_body": False}

        async def send(message):
            sent.append(message)

        given = {"host": "127.0.0.1:1", **headers}
        scope = {
            "type": "http",
            "client": ("127.0.0.1", 5),
            "headers": [(k.replace("_", "-").encode(), v.encode()) for k, v in given.items()],
        }
        asyncio.run(guard(scope, receive, send))
        return sent[0]["status"]

    async def app(self, scope, receive, send):
        await send({"type": "http.response.start", "status": 200, "headers": []})

    def guard(self, **settings):
        return RequestFilter(self.app, **{"hosts": allowed_hosts("127.0.0.1", 1), **settings})

    def test_too_many_requests_have_to_wait(self):
        guard = self.guard(rate=0.001, burst=3)
        assert [self.ask(guard) for _ in range(5)] == [200, 200, 200, 429, 429]

    def test_a_length_that_is_no_number_is_refused(self):
        assert self.ask(self.guard(), content_length="-1") == 413

    def test_an_address_that_stands_for_all_answers_to_any_name_but_to_no_foreign_page(self):
        guard = self.guard(hosts=allowed_hosts("0.0.0.0", 1), token="t")
        assert self.ask(guard, host="me.lan:1", authorization="Bearer t") == 200
        assert self.ask(guard, host="me.lan:1") == 401
        evil = self.ask(guard, host="me.lan:1", origin="http://evil", authorization="Bearer t")
        assert evil == 403

    def test_loopback_is_told_from_the_rest(self):
        assert all(map(is_loopback, ["127.0.0.1", "localhost", "::1", "[::1]", "127.9.9.9"]))
        assert not any(map(is_loopback, ["0.0.0.0", "::", "10.0.0.1", "example.org", ""]))
        assert allowed_hosts("example.org", 80) == ["example.org:80"]
        assert allowed_hosts("2001:db8::1", 80) == ["[2001:db8::1]:80"]
