"""What tools do with each skill is counted, without slowing or failing anything."""

import shutil
import threading
import time

import pytest

from registry.api import SkillRegistry
from registry.db.read.listing import Filters
from registry.db.write import usage as counting
from registry.disk.locks import FileLock
from registry.settings import Settings
from tests.conftest import write_skill
from tests.program import Script


@pytest.fixture
def library(registry, root, skill):
    for name in ("alpha", "beta"):
        skill(name, description=f"About {name}.")
    registry.sync(str(root), name="mine")
    return registry


def counts(registry):
    return {one.ref: (one.listed, one.found, one.read) for one in registry.usage_counts()}


def test_listings_hits_and_reads_by_tools_are_counted_each(library):
    native = library.toolset("native")
    native.call("list_skills", {})
    native.call("search_skills", {"query": "alpha"})
    native.call("read_skill", {"name": "alpha"})
    native.call("read_skill_file", {"name": "alpha", "path": "SKILL.md"})
    library.core.usage.write()
    assert counts(library) == {"alpha": (1, 1, 2), "beta": (1, 0, 0)}
    alpha = library.usage_counts()[0]
    assert alpha.last_read_at.endswith("Z")
    assert library.usage_counts()[1].last_read_at is None


@pytest.mark.parametrize(
    ("toolset", "listing", "reading"),
    [
        ("basic", ("list_skills", {}), ("get_skill", {"skill_name": "alpha"})),
        ("miniclaw", ("list_skills", {}), ("read_skill", {"name": "alpha"})),
        ("ethos", ("skills_list", {}), ("skill_view", {"name": "alpha"})),
        ("wave", None, ("Skill", {"skill_name": "alpha"})),
    ],
)
def test_every_toolset_counts(library, toolset, listing, reading):
    tools = library.toolset(toolset)
    if listing is None:
        tools.tools()
    else:
        tools.call(*listing)
    tools.call(*reading)
    library.core.usage.write()
    assert counts(library) == {"alpha": (1, 0, 1), "beta": (1, 0, 0)}


def test_a_read_that_fails_and_what_people_do_are_not_counted(library):
    library.toolset("native").call("read_skill", {"name": "nothing"})
    library.list()
    library.get("alpha")
    library.core.usage.write()
    assert counts(library) == {}


def test_nothing_is_counted_where_the_settings_say_so(database, root, skill):
    skill("alpha")
    with SkillRegistry.open(database, settings=Settings(usage=False)) as registry:
        registry.sync(str(root))
        registry.toolset("native").call("read_skill", {"name": "alpha"})
    with SkillRegistry.open(database, settings=Settings()) as registry:
        assert registry.usage_counts() == []


def test_counts_are_written_when_the_registry_is_closed(library, database):
    library.toolset("native").call("read_skill", {"name": "alpha"})
    library.close()
    with SkillRegistry.open(database, settings=Settings()) as again:
        assert counts(again) == {"alpha": (0, 0, 1)}


def test_counts_are_written_after_a_while(library, monkeypatch):
    monkeypatch.setattr(counting, "WRITE_AFTER", 0.05)
    library.toolset("native").call("read_skill", {"name": "alpha"})
    for _ in range(100):
        if counts(library):
            break
        time.sleep(0.05)
    assert counts(library) == {"alpha": (0, 0, 1)}


def test_many_threads_lose_no_count(library):
    native = library.toolset("native")

    def work():
        for _ in range(25):
            native.call("read_skill", {"name": "alpha"})
            library.core.usage.write()

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    library.core.usage.write()
    assert counts(library)["alpha"] == (0, 0, 100)


def test_two_processes_lose_no_count(library, database):
    script = (
        "import sys; from registry import SkillRegistry, Settings\n"
        "with SkillRegistry.open(sys.argv[1], settings=Settings()) as registry:\n"
        "    for _ in range(20):\n"
        "        registry.toolset('native').call('read_skill', {'name': 'alpha'})\n"
        "        registry.core.usage.write()\n"
    )
    children = [Script(script, database) for _ in range(2)]
    assert [child.end().status for child in children] == [0, 0]
    assert counts(library)["alpha"] == (0, 0, 40)


@pytest.mark.file
def test_a_busy_database_fails_no_read_and_the_counts_wait(library, monkeypatch):
    monkeypatch.setattr(counting, "WAIT", 0.05)
    native = library.toolset("native")
    lock = FileLock(f"{library.path}.lock")
    assert lock.acquire(1)
    with lock:
        assert "body" in native.call("read_skill", {"name": "alpha"})
        library.core.usage.write()
        assert counts(library) == {}
        native.call("read_skill", {"name": "alpha"})
    library.core.usage.write()
    assert counts(library) == {"alpha": (0, 0, 2)}


def test_counts_survive_edits_moves_and_deletion(library, root):
    native = library.toolset("native")
    native.call("read_skill", {"name": "alpha"})
    library.core.usage.write()
    write_skill(root / "alpha", body="Edited.\n")
    library.sync()
    (root / "new").mkdir()
    shutil.move(root / "alpha", root / "new" / "alpha")
    library.sync()
    library.delete("alpha")
    assert counts(library) == {}
    library.restore("alpha")
    assert counts(library) == {"alpha": (0, 0, 1)}


def test_what_no_tool_has_read_is_found(library):
    library.toolset("native").call("read_skill", {"name": "alpha"})
    library.core.usage.write()
    unused = library.list(Filters(unused_since="2000-01-01T00:00:00Z"))
    assert [skill.ref for skill in unused] == ["beta"]
    assert library.list(Filters(unused_since="2999-01-01T00:00:00Z")).total == 2
