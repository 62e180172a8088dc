"""Revisions: what a skill was like, back to it, and the bytes that they need."""

import os
import shutil

import pytest
from sqlalchemy import Engine, event

from registry.api import SkillRegistry
from registry.errors import ContentMissing, RevisionNotFound, SkillInvalid, SkillNotFound
from registry.settings import Settings
from registry.sync import contents
from tests.conftest import write_skill


@pytest.fixture
def alpha(registry, root, skill):
    folder = skill("alpha", description="One.")
    (folder / "scripts").mkdir()
    (folder / "scripts" / "run.sh").write_bytes(b"echo 1\n")
    (folder / "logo.png").write_bytes(b"\x89PNG\xff\x00" * 50)
    registry.sync(str(root), name="mine")
    return folder


def edit(folder, text):
    with (folder / "SKILL.md").open("a") as document:
        document.write(text)


def numbers(registry, name="alpha"):
    return [one.number for one in registry.history(name)]


def test_the_first_sync_makes_the_first_revision_with_all_its_bytes(registry, alpha):
    (one,) = registry.history("alpha")
    assert (one.number, one.current, one.complete) == (1, True, True)
    assert [file.path for file in one.files] == ["SKILL.md", "logo.png", "scripts/run.sh"]
    for file in one.files:
        assert registry.read_revision("alpha", 1, file.path) == (alpha / file.path).read_bytes()


def test_each_distinct_content_is_a_revision_and_none_comes_twice(registry, alpha):
    first = (alpha / "SKILL.md").read_bytes()
    edit(alpha, "More.\n")
    registry.sync()
    (alpha / "SKILL.md").write_bytes(first)
    registry.sync()
    assert [(one.number, one.current) for one in registry.history("alpha")] == [
        (2, False),
        (1, True),
    ]
    registry.sync(verify=True)
    assert numbers(registry) == [2, 1]


def test_what_is_on_disk_now_is_part_of_the_history_without_a_sync(registry, alpha):
    edit(alpha, "By hand.\n")
    assert numbers(registry) == [2, 1]
    assert registry.read_revision("alpha", 2).endswith(b"By hand.\n")


def test_what_a_read_finds_on_disk_is_stored_with_all_its_bytes_in_one_transaction(registry, alpha):
    """Who is killed between two would leave a revision that nobody can read."""
    (alpha / "more.txt").write_text("x")
    commits = []
    note = commits.append
    event.listen(Engine, "commit", note)
    try:
        assert registry.read_file("alpha", "more.txt") == b"x"
    finally:
        event.remove(Engine, "commit", note)
    assert len(commits) == 1
    assert registry.history("alpha")[0].complete


def test_a_change_by_the_registry_is_a_revision(registry, alpha):
    registry.update("alpha", description="Two.", files={"scripts/run.sh": b"echo 2\n"})
    assert numbers(registry) == [2, 1]
    assert registry.read_revision("alpha", 1, "scripts/run.sh") == b"echo 1\n"
    assert registry.read_revision("alpha", 2, "scripts/run.sh") == b"echo 2\n"


def test_a_moved_skill_keeps_its_history(registry, root, alpha):
    edit(alpha, "More.\n")
    registry.sync()
    (root / "new").mkdir()
    shutil.move(alpha, root / "new" / "alpha")
    registry.sync()
    assert numbers(registry) == [2, 1]


def test_a_deleted_and_restored_skill_keeps_its_history(registry, alpha):
    registry.update("alpha", description="Two.")
    registry.delete("alpha")
    registry.restore("alpha")
    assert numbers(registry) == [2, 1]


def test_going_back_makes_every_file_what_it_was_and_forgets_nothing(registry, alpha):
    before = {p: (alpha / p).read_bytes() for p in ("SKILL.md", "logo.png", "scripts/run.sh")}
    edit(alpha, "More.\n")
    (alpha / "scripts" / "run.sh").unlink()
    (alpha / "extra.txt").write_text("new")
    by_hand = (alpha / "SKILL.md").read_bytes()
    assert registry.restore_revision("alpha", 1).content_hash
    assert {p: (alpha / p).read_bytes() for p in before} == before
    assert not (alpha / "extra.txt").exists()
    assert registry.read_revision("alpha", 2) == by_hand
    assert registry.read_revision("alpha", 2, "extra.txt") == b"new"
    report = registry.sync(verify=True)
    assert (report.added, report.updated, report.removed) == ((), (), ())


def test_going_back_to_what_is_there_changes_nothing(registry, alpha):
    before = os.stat(alpha / "SKILL.md")
    registry.restore_revision("alpha", 1)
    assert os.stat(alpha / "SKILL.md").st_mtime_ns == before.st_mtime_ns
    assert numbers(registry) == [1]


def test_a_diff_shows_the_last_change_or_that_between_two_revisions(registry, alpha):
    assert registry.diff("alpha") == ""
    edit(alpha, "More.\n")
    registry.sync()
    edit(alpha, "Even more.")
    (alpha / "logo.png").write_bytes(b"\xff\x00")
    registry.sync()
    assert registry.diff("alpha", 1, 2).splitlines() == [
        "--- SKILL.md (revision 1)",
        "+++ SKILL.md (revision 2)",
        "@@ -6,3 +6,4 @@",
        " # How",
        " ",
        " Step by step.",
        "+More.",
    ]
    last = registry.diff("alpha")
    assert "+Even more.\n\\ No newline at end of file\n" in last
    assert "Binary files logo.png of revision 2 and revision 3 differ\n" in last
    assert "+More.\n+Even more." in registry.diff("alpha", 1)


def test_what_is_not_there_is_said(registry, alpha):
    with pytest.raises(RevisionNotFound, match="no revision 7; it has 1"):
        registry.read_revision("alpha", 7)
    with pytest.raises(RevisionNotFound):
        registry.restore_revision("alpha", 7)
    with pytest.raises(RevisionNotFound):
        registry.diff("alpha", 3, 4)
    with pytest.raises(ContentMissing):
        registry.read_revision("alpha", 1, "nothing.txt")
    with pytest.raises(SkillNotFound):
        registry.history("beta")


def test_of_a_folder_without_a_document_it_is_said_what_is_missing(registry, root, alpha):
    (root / "bare").mkdir()
    (root / "bare" / "notes.txt").write_text("No document.\n")
    (alpha / "SKILL.md").unlink()
    registry.sync()
    assert registry.history("bare") == []
    for name in ("alpha", "bare"):  # one had a content, one never did
        with pytest.raises(SkillInvalid, match=r"holds no SKILL\.md"):
            registry.diff(name)
    with pytest.raises(RevisionNotFound, match="no revision 1; no revision of it"):
        registry.read_revision("bare", 1)


def test_pruning_keeps_the_newest_and_the_current_one(registry, alpha):
    first = (alpha / "SKILL.md").read_bytes()
    for number in range(4):
        edit(alpha, f"{number}\n")
        registry.sync()
    (alpha / "SKILL.md").write_bytes(first)
    registry.sync()
    assert registry.prune(keep=2) == (2, 2)
    assert [(one.number, one.current) for one in registry.history("alpha")] == [
        (5, False),
        (4, False),
        (1, True),
    ]
    assert registry.read_revision("alpha", 1) == first
    assert registry.prune(keep=0, before="2000-01-01T00:00:00Z") == (0, 0)
    assert registry.prune(keep=0) == (2, 2)
    assert all(one.complete for one in registry.history("alpha"))
    assert registry.check_database() == []


def test_equal_contents_are_stored_once(registry, root, skill):
    for name in ("a", "b", "c"):
        (skill(name) / "same.txt").write_bytes(b"same" * 1000)
    registry.sync(str(root))
    rows = registry.core.reader.rows("SELECT count(*), sum(size), sum(length(data)) FROM contents")
    ((count, size, stored),) = rows
    assert (count, size) == (1, 4000)
    assert stored < 100


@pytest.mark.parametrize(
    "data",
    [
        b"\xef\xbb\xbf---\nname: alpha\ndescription: D.\n---\nText.\n",
        b"---\r\nname: alpha\r\ndescription: D.\r\n---\r\nText.\r\n",
        b"---\nname: alpha\ndescription: D.\n---\nNUL: \0.\n",
        "---\nname: alpha\ndescription: D.\n---\n\u5929\u6c14 \u2028 \U0001f600".encode(),
        b"\xff\xfe broken",
    ],
)
def test_a_document_comes_back_byte_for_byte_while_it_is_there_and_after(
    registry, root, skill, data
):
    folder = skill("alpha")
    (folder / "SKILL.md").write_bytes(data)
    registry.sync(str(root))
    assert registry.read_revision("alpha", 1) == data
    write_skill(folder, description="Another.")
    registry.sync()
    assert registry.read_revision("alpha", 1) == data
    registry.delete("alpha")
    registry.restore("alpha")
    assert registry.read_revision("alpha", 1) == data


def test_supporting_files_are_not_kept_where_the_settings_say_so(database, root, skill):
    (skill("alpha") / "more.txt").write_text("x")
    with SkillRegistry.open(database, settings=Settings(store_files=False)) as registry:
        registry.sync(str(root))
        (one,) = registry.history("alpha")
        assert not one.complete
        assert registry.read_revision("alpha", 1).startswith(b"---")
        with pytest.raises(ContentMissing, match="is not stored"):
            registry.read_revision("alpha", 1, "more.txt")


def test_what_was_synced_without_its_bytes_is_completed_by_a_verifying_sync(database, root, skill):
    (skill("alpha") / "more.txt").write_text("x")
    with SkillRegistry.open(database, settings=Settings(store_files=False)) as registry:
        registry.sync(str(root))
    with SkillRegistry.open(database, settings=Settings()) as registry:
        registry.sync()
        assert not registry.history("alpha")[0].complete
        registry.sync(verify=True)
        assert registry.history("alpha")[0].complete


def test_a_file_that_cannot_be_kept_leaves_the_rest(database, root, skill, monkeypatch):
    folder = skill("alpha")
    (folder / "gone.txt").write_text("x")
    with SkillRegistry.open(database, settings=Settings(store_files=False)) as registry:
        registry.sync(str(root))
    whole = contents.read_inside

    def read(home, path, *rest):
        if path.endswith("gone.txt"):
            raise FileNotFoundError(path)
        return whole(home, path, *rest)

    monkeypatch.setattr(contents, "read_inside", read)
    with SkillRegistry.open(database, settings=Settings()) as registry:
        registry.sync(verify=True)
        assert not registry.history("alpha")[0].complete
        assert registry.read_revision("alpha", 1).startswith(b"---")


def test_two_registries_at_once_keep_all_revisions(database, root, skill, registry):
    folder = write_skill(root / "alpha")
    registry.sync(str(root))
    with SkillRegistry.open(database, settings=Settings()) as other:
        for turn in range(4):
            edit(folder, f"{turn}\n")
            (registry if turn % 2 else other).get("alpha")
    assert numbers(registry) == [5, 4, 3, 2, 1]


def test_a_diff_after_an_undo_compares_with_the_files_that_were_there(registry, alpha):
    registry.update("alpha", description="Two.")
    registry.undo()
    undone = registry.diff("alpha").splitlines()
    assert undone[:2] == ["--- SKILL.md (revision 2)", "+++ SKILL.md (revision 1)"]
    edit(alpha, "By hand.\n")
    registry.sync()
    assert [one.number for one in registry.history("alpha") if one.current] == [4]
    last = registry.diff("alpha")
    assert last.splitlines()[:2] == ["--- SKILL.md (revision 1)", "+++ SKILL.md (revision 4)"]
    assert "+By hand." in last
    assert "description" not in "".join(line for line in last.splitlines() if line[0] in "+-")
    shutil.rmtree(alpha)
    registry.sync()
    assert registry.diff("alpha") == last


def test_a_restored_revision_has_the_permissions_it_had(registry, root, skill):
    folder = skill("alpha")
    script = folder / "run.sh"
    script.write_text("echo\n")
    script.chmod(0o755)
    registry.sync(str(root))
    script.chmod(0o644)
    registry.sync()
    assert len(registry.history("alpha")) == 2
    registry.restore_revision("alpha", 1)
    assert script.stat().st_mode & 0o777 == 0o755
    assert script.read_text() == "echo\n"
    registry.restore_revision("alpha", 2)
    assert script.stat().st_mode & 0o111 == 0
