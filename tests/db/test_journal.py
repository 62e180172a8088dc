"""The journal, and the bytes that revisions need: what is written down is found again, as it was."""

from dataclasses import fields, replace

import pytest

from registry.api import SkillRegistry
from registry.db.read.journal import JournalEntry, has_entries, is_journalled, unfinished_changes
from registry.db.write.journal import add_entry, drop_entry, has_entry
from registry.errors import ContentMissing
from registry.settings import Settings
from tests.conftest import write_skill


def entry_of(source, **facts):
    """Return an entry with something in each column."""
    made = JournalEntry(
        id="b",
        host=source.host,
        source_id=source.id,
        root=source.path,
        kind="update",
        folder="alpha",
        target="alpha/SKILL.md",
        staged="ops/b/tree",
        base="1",
        new="2",
        uid="u",
        created_at="c",
        started_at="2026-01-02",
    )
    return replace(made, **facts)


def test_the_journal_holds_what_was_written_down_until_it_is_struck_out(registry, root):
    registry.sync(str(root), name="mine")
    (source,) = registry.sources()
    one = entry_of(source)
    none = replace(one, id="c", base=None, new=None, uid=None, created_at=None)
    reader = registry.core.reader
    assert not has_entries(reader)
    with registry.core.writer.transaction() as connection:
        add_entry(connection, one)
        add_entry(connection, none)
        assert (has_entry(connection, "b"), has_entry(connection, "x")) == (True, False)
    assert has_entries(reader)
    assert is_journalled(reader, one)
    assert is_journalled(reader, none)
    assert unfinished_changes(reader, source.host) == [("b", source.id), ("c", source.id)]
    assert unfinished_changes(reader, "another machine") == []
    with registry.core.writer.transaction() as connection:
        drop_entry(connection, one)
        drop_entry(connection, none)
        assert not has_entry(connection, "b")
    assert not has_entries(reader)
    assert not is_journalled(reader, one)


def test_the_journal_agrees_with_nothing_that_differs_in_any_column(registry, root):
    registry.sync(str(root), name="mine")
    (source,) = registry.sources()
    one = entry_of(source)
    with registry.core.writer.transaction() as connection:
        add_entry(connection, one)
    for field in fields(JournalEntry):
        other = -1 if field.name == "source_id" else "other"
        assert not is_journalled(registry.core.reader, replace(one, **{field.name: other})), (
            field.name
        )
    assert not is_journalled(registry.core.reader, replace(one, base=None))


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
