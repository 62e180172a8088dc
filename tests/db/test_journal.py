"""The journal, and the bytes that revisions need: what is written down is found again, as it was."""

from dataclasses import replace

import pytest

from registry.api import SkillRegistry
from registry.db.queries.journal import has_entries, waiting_sources
from registry.db.writes.journal import Entry, add_entry, drop_entry, entries, find_entry
from registry.errors import ContentMissing
from registry.settings import Settings
from tests.conftest import write_skill


def test_entries_are_found_by_number_by_source_and_by_host(registry, root, tmp_path):
    (tmp_path / "other").mkdir()
    registry.sync(str(root), name="mine")
    registry.sync(str(tmp_path / "other"), name="other")
    host = registry.core.host
    mine, other = (source.id for source in registry.sources())
    one = Entry(
        id="b",
        host=host,
        source_id=mine,
        root=str(root),
        kind="update",
        folder="alpha",
        target="alpha/SKILL.md",
        staged="/x",
        base="1",
        new="2",
        exchange=0,
        uid="u",
        created_at="c",
        started_at="2026-01-02",
    )
    earlier = replace(one, id="c", started_at="2026-01-01")
    written = [one, earlier, replace(one, id="a"), replace(one, id="d", source_id=other)]
    written.append(replace(one, id="e", host="another machine"))
    with registry.core.writer.transaction() as connection:
        for entry in written:
            add_entry(connection, entry)
        assert [each.id for each in entries(connection, mine, host)] == ["c", "a", "b"]
        assert [each.id for each in entries(connection, mine, "another machine")] == ["e"]
        assert [each.id for each in entries(connection, other, host)] == ["d"]
        assert (find_entry(connection, "b"), find_entry(connection, "x")) == (one, None)
        drop_entry(connection, "b")
        assert find_entry(connection, "b") is None
        assert len(entries(connection, mine, host)) == 2
    reader = registry.core.reader
    assert (has_entries(reader), waiting_sources(reader, host)) == (True, {mine, other})
    assert waiting_sources(reader, "another machine") == {mine}
    with registry.core.writer.transaction() as connection:
        for entry in written:
            drop_entry(connection, entry.id)
    assert (has_entries(reader), waiting_sources(reader, host)) == (False, set())


@pytest.mark.parametrize("mark", [b"\xef\xbb\xbf", b""])
def test_what_is_read_of_a_revision_is_what_it_was_or_is_missing(database, root, mark):
    data = mark + b"---\nname: alpha\ndescription: One.\n---\nText.\n"
    (root / "alpha").mkdir()
    (root / "alpha" / "SKILL.md").write_bytes(data)
    with SkillRegistry.open(database, settings=Settings(store_files=False)) as registry:
        registry.sync(str(root))
        with registry.core.writer.transaction() as connection:
            connection.exec_driver_sql("DELETE FROM contents")
        write_skill(root / "alpha", description="Two.")
        registry.sync()
        revisions = {one.number: one.complete for one in registry.history("alpha")}
        assert revisions == {1: not mark, 2: True}
        if not mark:
            assert registry.read_revision("alpha", 1) == data
            return
        with pytest.raises(ContentMissing):
            registry.read_revision("alpha", 1)
