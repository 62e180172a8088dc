"""A source whose server is slow holds up no other source."""

import sqlite3
import threading
from contextlib import closing

import pytest

from registry.remotes import fetch
from tests.conftest import write_skill
from tests.remotes.conftest import document
from tests.remotes.packed import zipped


@pytest.fixture
def slow(make_server):
    """A server that begins an answer, and goes on with it when it is told to."""
    server = make_server()
    server.go_on = threading.Event()
    server.begun = threading.Event()
    data = zipped({"slow/SKILL.md": document("slow", "New.")})

    def answer(handler):
        handler.wfile.write(b"HTTP/1.0 200 OK\r\n\r\n" + data[:10])
        server.begun.set()
        server.go_on.wait()
        handler.wfile.write(data[10:])

    server.put("/slow.zip", zipped({"slow/SKILL.md": document("slow")}))
    server.start = lambda: server.routes.__setitem__("/slow.zip", answer)
    yield server
    server.go_on.set()


@pytest.mark.parametrize("named", [True, False])
def test_the_others_are_stored_while_it_is_still_fetched(
    registry, root, server, slow, monkeypatch, named
):
    monkeypatch.setattr(fetch, "TOGETHER", 0.05)
    server.put("/fast.zip", zipped({"fast/SKILL.md": document("fast")}))
    write_skill(root / "mine")
    registry.sync(str(root), name="own")
    for url in (f"{server.url}/fast.zip", f"{slow.url}/slow.zip"):
        registry.sync(url)
    slow.start()
    server.put("/fast.zip", zipped({"fast/SKILL.md": document("fast", "New.")}))
    write_skill(root / "mine", description="New.")
    reports = []
    targets = ["slow", "own", "fast"] if named else []
    work = threading.Thread(target=lambda: reports.append(registry.sync(*targets)))
    work.start()
    try:
        assert slow.begun.wait(30)
        with closing(sqlite3.connect(registry.path)) as connection:
            for _ in range(3000):
                rows = connection.execute("SELECT name, count(*) FROM revisions GROUP BY name")
                if dict(rows) == {"fast": 2, "mine": 2, "slow": 1}:
                    break
                threading.Event().wait(0.01)
            else:
                pytest.fail("the others were not stored")
        assert reports == []
    finally:
        slow.go_on.set()
        work.join()
    (report,) = reports
    assert report.complete
    assert report.updated == ("fast", "mine", "slow")
    assert sorted(one.name for one in report.sources) == ["fast", "own", "slow"]
    assert len(registry.history("slow")) == 2


def test_where_storing_fails_the_slow_one_is_left(registry, server, slow, monkeypatch):
    from registry.remotes import sources

    monkeypatch.setattr(fetch, "TOGETHER", 0.05)
    server.put("/fast.zip", zipped({"fast/SKILL.md": document("fast")}))
    for url in (f"{server.url}/fast.zip", f"{slow.url}/slow.zip"):
        registry.sync(url)
    slow.start()
    failed = []

    def fail(*args, **kwargs):
        failed.append(args)
        slow.go_on.set()
        raise KeyboardInterrupt

    monkeypatch.setattr(sources, "sync_folders", fail)
    with pytest.raises(KeyboardInterrupt):
        registry.sync()
    assert failed
