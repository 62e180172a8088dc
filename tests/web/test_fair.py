"""One client that asks for much, reads slowly or goes away leaves the others their answers."""

import asyncio
import ipaddress
import os
import select
import socket
import threading
import time
from contextlib import ExitStack
from urllib.parse import urlencode

import pytest

from registry.mcp import fairness
from registry.mcp.fairness import FairRequests, Unsent
from registry.mcp.http import ClientLimits
from registry.web import diffs, markdown
from registry.web.auth import Trusted
from registry.web.repositories import Address, Repositories
from registry.web.state import RECEIVED, WORKERS
from tests.conftest import write_skill
from tests.remotes.packed import zipped
from tests.web.conftest import serving

OTHER = "127.0.0.2"
PROXY = Trusted("X-User", [ipaddress.ip_network("127.0.0.0/8")])
FORM = {"Content-Type": "application/x-www-form-urlencoded"}


@pytest.fixture
def stuck(monkeypatch):
    """Let every comparison of two contents wait; count those that have begun."""
    real = diffs.compare

    class Stuck:
        begun, times, go_on = threading.Semaphore(0), 0, threading.Event()

        def compare(self, *arguments):
            self.times += 1
            self.begun.release()
            assert self.go_on.wait(60)
            return real(*arguments)

    made = Stuck()
    monkeypatch.setattr(diffs, "compare", made.compare)
    yield made
    made.go_on.set()


def send(site, path, *, size=None, **headers):
    """Ask for a page and read nothing."""
    connection = socket.socket()
    if size is not None:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, size)
    connection.settimeout(30)
    connection.connect(("127.0.0.1", site.port))
    given = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in headers.items())
    head = f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{site.port}\r\n{given}\r\n"
    connection.sendall(head.encode())
    return connection


def wait_until(condition):
    for _ in range(6000):
        if condition():
            return
        time.sleep(0.01)
    pytest.fail("it never came true")


def burst(site, stack, stuck, **headers):
    """Ask 100 times for a comparison; return the connections once one client's threads are busy."""
    asked = [stack.enter_context(send(site, "/history/sums", **headers)) for _ in range(100)]
    for _ in range(WORKERS):
        assert stuck.begun.acquire(timeout=60)
    return asked


def test_another_address_is_answered_while_a_burst_of_one_is_under_way(registry, changed, stuck):
    _, shown = registry.tokens().create("anna")
    with serving(registry) as site, ExitStack() as stack:
        for one in burst(site, stack, stuck):
            one.close()
        for path in ("/skills/sums", "/index.json?q=sums", "/download/sums.skill"):
            assert site.ask(path, address=OTHER).status == 200
        body = urlencode({"token": shown})
        assert site.ask("/login", "POST", body, address=OTHER, **FORM).status == 303
        assert stuck.times == WORKERS
        stuck.go_on.set()


def test_work_that_waits_is_dropped_when_its_client_has_gone(registry, changed, stuck):
    with serving(registry) as site, ExitStack() as stack:
        for one in burst(site, stack, stuck):
            one.close()
        for _ in range(50):
            assert site.ask("/skills/sums", address=OTHER).status == 200
        stuck.go_on.set()
        assert site.ask("/history/sums").status == 200
        assert stuck.times == WORKERS + 1


def test_work_under_way_stops_when_its_client_has_gone(registry, changed, monkeypatch):
    begun, ended = threading.Event(), threading.Event()

    def endless(*_arguments):
        begun.set()
        try:
            while True:
                fairness.check_client()
                time.sleep(0.001)
        except fairness.ClientGone:
            ended.set()
            raise

    monkeypatch.setattr(diffs, "compare", endless)
    with serving(registry) as site:
        asked = send(site, "/history/sums")
        assert begun.wait(30)
        asked.close()
        assert ended.wait(30)


def test_turns_are_counted_by_token_first(registry, changed, stuck):
    tokens = [f"Bearer {registry.tokens().create(name)[1]}" for name in ("anna", "ben")]
    with serving(registry, host="0.0.0.0") as site, ExitStack() as stack:
        burst(site, stack, stuck, Authorization=tokens[0])
        assert site.ask("/skills/sums", Authorization=tokens[1]).status == 200
        assert site.ask("/index.json").status == 401
        assert stuck.times == WORKERS
        stuck.go_on.set()


def test_behind_a_trusted_proxy_turns_are_counted_by_the_forwarded_address(
    registry, changed, stuck
):
    with serving(registry, trusted=PROXY) as site, ExitStack() as stack:
        far = "192.0.2.1"
        # A stranger may have sent all addresses but the last.
        forged = f"198.51.100.7, {far}"
        burst(site, stack, stuck, X_User="anna", X_Forwarded_For=forged)
        with send(site, "/skills/sums", X_User="anna", X_Forwarded_For=far) as waiting:
            other = site.ask("/skills/sums", X_User="anna", X_Forwarded_For="192.0.2.2")
            assert other.status == 200
            assert select.select([waiting], [], [], 0)[0] == []
            stuck.go_on.set()
            assert waiting.recv(12) == b"HTTP/1.1 200"


@pytest.fixture
def large(registry, root):
    """A catalogue with a file of 2 MB."""
    folder = write_skill(root / "large", name="large")
    (folder / "data.bin").write_bytes(os.urandom(2_000_000))
    registry.sync(str(root), name="mine")


def test_a_slow_client_gets_all_of_a_long_download(registry, large, root):
    """The download takes longer than a request may: it is no request that never becomes whole."""
    size = 9_000_000  # more than the system keeps for a connection
    (root / "large" / "data.bin").write_bytes(os.urandom(size))
    registry.sync()
    with serving(registry, bounds=ClientLimits(request_seconds=1.0)) as site:
        got = 0
        with send(site, "/raw/large?path=data.bin", size=1 << 15) as slow:
            while got < size and (part := slow.recv(1 << 15)):
                got += len(part)
                select.select([], [], [], 0.01)
    assert got >= size


def test_a_client_that_takes_nothing_is_ended(registry, large):
    with serving(registry, bounds=ClientLimits(part_seconds=0.3)) as site, ExitStack() as stack:
        unsent = site.state.turns.unsent
        stuck = [
            stack.enter_context(send(site, "/raw/large?path=data.bin", size=8192)) for _ in range(3)
        ]
        wait_until(lambda: unsent.total)
        while unsent.total:  # however often one of them takes a byte
            for one in stuck:
                assert len(one.recv(1)) == 1
            select.select([], [], [], 0.01)
        for one in stuck:
            assert got_of(one) < 2_000_000


def got_of(connection):
    got = 0
    try:
        while part := connection.recv(1 << 16):
            got += len(part)
    except ConnectionResetError:
        pass
    return got


def test_bytes_that_wait_for_one_client_are_bounded_and_others_are_answered(
    registry, large, monkeypatch
):
    monkeypatch.setattr(fairness, "UNSENT_TO_ONE", 4_000_000)
    # And the answers that are being made, or just were; 60 MB without a bound.
    most = 4_000_000 + 2 * WORKERS * 2_000_000 + 2_000_000
    with serving(registry) as site, ExitStack() as stack:
        unsent = site.state.turns.unsent
        asked = [
            stack.enter_context(send(site, "/raw/large?path=data.bin", size=8192))
            for _ in range(30)
        ]
        wait_until(lambda: unsent.is_much("127.0.0.1"))
        assert site.ask("/raw/large?path=data.bin", address=OTHER).status == 200
        assert unsent.total <= most
        for one in asked:  # all of them are answered in the end
            one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
        for one in asked:
            got = 0
            while got < 2_000_000:
                got += len(one.recv(1 << 16))
                assert unsent.total <= most


def test_a_page_compares_no_more_than_it_can_show(registry, root):
    folder = write_skill(root / "many", name="many")
    for turn in range(2):
        for number in range(30):
            lines = (f"{turn} {place}\n" for place in range(2000))
            (folder / f"f{number}.txt").write_text("".join(lines))
        registry.sync(str(root), name="mine")
    with serving(registry) as site:
        found = site.get("/history/many.json").json["diffs"]
        notes = [one["note"] for one in found]
        assert (notes[0], notes[-1]) == ("", diffs.NO_ROOM)
        assert sum(len(one["rows"]) for one in found) <= diffs.ROWS * 2
        assert len(site.get("/history/many").body) < 4_000_000


def test_texts_that_take_long_to_compare_are_given_up(monkeypatch):
    monkeypatch.setattr(diffs, "SECONDS", 0.0)
    assert diffs.compare("x", b"a\nb\n", b"b\na\n").note == diffs.NO_ROOM


def test_a_document_whose_html_would_be_far_larger_than_itself_is_not_rendered():
    long = "[a]: http://example.org/" + "x" * 5000
    assert markdown.rendered(f"{long}\n\n" + "[a] " * 20, "x", []) is not None
    assert markdown.rendered(f"{long}\n\n" + "[a] " * 20_000, "x", []) is None
    assert markdown.rendered("[a](x.py)" * 10_000, "r" * 4000, ["x.py"]) is None


def test_a_client_that_asks_for_many_repositories_leaves_others_their_turn():
    built, repositories = [], Repositories()

    async def run(_build, _see, address, _edition):
        built.append(address.name)
        await asyncio.sleep(0)

    async def app(scope, _receive, _send):
        address = Address("skill", scope["path"], None, None)
        await repositories.get(run, None, address, "1")

    async def ask(client, name):
        scope = {"type": "http", "method": "POST", "path": name, "client": (client, 1)}
        await FairRequests(app, Unsent())(scope, None, None)

    async def ask_all():
        many = [ask("127.0.0.1", str(number)) for number in range(50)]
        await asyncio.gather(*many, ask(OTHER, "other"))

    asyncio.run(ask_all())
    assert len(built) == 51
    assert built.index("other") <= 1


def test_a_client_that_sends_archives_slowly_leaves_others_room_for_theirs(mine):
    tokens = [mine.tokens().create(name, publish=True)[1] for name in ("anna", "ben")]
    head = "PUT /api/skills/haiku HTTP/1.1\r\nHost: 127.0.0.1:{}\r\nAuthorization: Bearer {}\r\n"
    head += "Content-Type: application/zip\r\nContent-Length: 999\r\n\r\nPK"
    with serving(mine, bounds=ClientLimits(request_seconds=600.0)) as site, ExitStack() as stack:
        for _ in range(2 * RECEIVED):
            one = stack.enter_context(socket.create_connection(("127.0.0.1", site.port)))
            one.sendall(head.format(site.port, tokens[0]).encode())
        document = b"---\nname: haiku\ndescription: Writes poems.\n---\n"
        given = {"Content_Type": "application/zip", "Authorization": f"Bearer {tokens[1]}"}
        packed = zipped({"SKILL.md": document})
        assert site.ask("/api/skills/haiku", "PUT", packed, address=OTHER, **given).status == 201
