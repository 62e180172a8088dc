"""Versions: labels that never change, for the files that a skill had."""

import json

import pytest

from registry.api import SkillRegistry
from registry.db.read.listing import Filters
from registry.document.labels import is_label, ordered
from registry.errors import (
    RegistryError,
    SkillNotFound,
    UsageProblem,
    VersionExists,
    VersionInvalid,
    VersionNotFound,
    VersionYanked,
)
from registry.settings import Settings
from tests.cli.conftest import run
from tests.conftest import write_skill


def write(root, text, version=None, name="tea", **more):
    """Write a skill with a version in its front matter, as an editor does."""
    extra = f"metadata:\n  version: '{version}'\n" if version else ""
    return write_skill(root / name, body=f"{text}\n", extra=extra, age=None, **more)


@pytest.fixture
def tea(mine, root):
    """A registry with a skill that had the versions 1.9 and 1.10, and then changed."""
    for version in ("1.9", "1.10", None):
        folder = write(root, f"Brew {version}.", version)
        (folder / "pot.txt").write_text(f"pot {version}")
        mine.sync()
    return mine


def labels(registry, name="tea"):
    return [one.label for one in registry.versions(name)]


def names(registry, **wanted):
    return [one.name for one in registry.list(Filters(**wanted))]


def test_a_sync_records_the_versions_that_the_front_matter_names(tea):
    found = tea.versions("tea")
    assert [(one.label, one.current, one.state) for one in found] == [
        ("1.10", False, "active"),
        ("1.9", False, "active"),
    ]
    assert len({one.tree_hash for one in found}) == 2
    assert all(one.history[0].tool is None and one.uid for one in found)


def test_a_label_keeps_its_files_and_other_files_with_it_are_a_finding(mine, root):
    write(root, "First.", "1.0")
    mine.sync()
    first = mine.versions("tea")
    write(root, "Second.", "1.0")
    mine.sync()
    again = mine.versions("tea")
    assert [one.tree_hash for one in again] == [one.tree_hash for one in first]
    assert [one.current for one in again] == [False]
    for findings in (mine.get("tea").diagnostics, mine.check(["tea"])[0].findings):
        assert "version-reused" in {one.code for one in findings}
    assert mine.get("tea").status == "ok"


def test_a_check_reads_the_files_and_finds_a_label_that_was_used_before(mine, root):
    write(root, "First.", "1.0")
    mine.sync()
    write(root, "Second.", "1.0")  # not synced
    assert "version-reused" in {one.code for one in mine.check(["tea"])[0].findings}
    write(root, "Second.", "1.1")
    assert "version-reused" not in {one.code for one in mine.check(["tea"])[0].findings}


@pytest.mark.parametrize("version", ["1.0 beta", "-1", "x" * 65, "a/b", "ü1"])
def test_a_version_that_can_not_be_a_label_is_a_finding_and_no_version(mine, root, version):
    write(root, "First.", version)
    mine.sync()
    assert labels(mine) == []
    assert "version-format" in {one.code for one in mine.get("tea").diagnostics}
    with pytest.raises(VersionInvalid):
        mine.add_version("tea", version)


@pytest.mark.parametrize("version", ["1", "v1.0", "1.10", "2024-05-01", "a.b_c+d-e", "x" * 64])
def test_a_label_is_taken_as_it_is_written(mine, root, version):
    assert is_label(version)
    write(root, "First.", version)
    mine.sync()
    assert labels(mine) == [version]


def test_labels_sort_as_semver_else_as_pep_440_else_by_time():
    def sort(*some):
        return [one for _, one in ordered(list(enumerate(some)), lambda x: x[1], lambda x: x[0])]

    semver = ["1.0.0-alpha", "1.0.0-alpha.1", "1.0.0-rc.2", "1.0.0", "1.9.0", "1.10.0+build"]
    assert sort(*reversed(semver)) == semver
    pep = ["1.0.dev1", "1.0a1", "1.0", "1.0.post1", "1.9", "1.10", "1!0.1"]
    assert sort(*reversed(pep)) == pep
    assert sort("late", "1.0", "early") == ["late", "1.0", "early"]


def test_a_version_can_be_added_for_the_files_that_are_on_disk_now(tea, root):
    write(root, "Edited.")
    added = tea.add_version("tea", "2.0")
    assert added.current
    assert labels(tea) == ["2.0", "1.10", "1.9"]
    assert tea.add_version("tea", "2.0") == added  # again
    write(root, "Edited again.")
    with pytest.raises(VersionExists):
        tea.add_version("tea", "2.0")
    assert tea.versions("tea")[0].tree_hash == added.tree_hash


def test_a_version_is_read_with_all_its_files(tea):
    assert "Brew None." in tea.read("tea")
    assert "Brew 1.9." in tea.read("tea@1.9")
    assert tea.read_bytes("mine/tea@1.10").endswith(b"Brew 1.10.\n")
    assert tea.read_file("tea@1.9", "pot.txt") == b"pot 1.9"
    detail = tea.get("tea@1.9")
    assert (detail.version, detail.ref, detail.body.strip()) == ("1.9", "tea", "Brew 1.9.")
    assert {one.path for one in detail.files} == {"SKILL.md", "pot.txt"}
    assert [one.label for one in detail.versions] == ["1.9"]
    assert detail.tree_hash == tea.versions("tea")[1].tree_hash
    with pytest.raises(RegistryError):
        tea.read_file("tea@1.9", "../beside.txt")
    with pytest.raises(VersionNotFound, match=r"no version '3'; it has 1\.10, 1\.9"):
        tea.get("tea@3")
    with pytest.raises(SkillNotFound, match="No skill named 'coffee'"):
        tea.get("coffee@1.9")


def test_two_versions_are_compared(tea):
    assert "+Brew 1.10." in tea.compare("tea@1.9", "tea@1.10")
    assert "+pot None" in tea.diff("tea@1.9")
    assert "tea@1.9" in tea.compare("tea@1.9", "tea")


def test_a_skill_whose_name_has_a_label_comes_before_the_version(mine, root):
    write(root, "Brew.", "1.0")
    write_skill(root / "other", name="tea@1.0", body="The other.\n")
    mine.sync()
    assert "The other." in mine.read("tea@1.0")
    assert "The other." in mine.read("mine/tea@1.0")
    assert "Brew." in mine.read("mine/tea")


def test_changing_tools_and_commands_take_no_version(tea):
    for change in (
        lambda: tea.delete("tea@1.9"),
        lambda: tea.update("tea@1.9", body="No."),
        lambda: tea.rename("tea@1.9", "chai"),
    ):
        with pytest.raises(SkillNotFound):
            change()


def test_agents_read_a_version(tea):
    native, wave = tea.toolset("native"), tea.toolset("wave")
    answer = native.call("read_skill", {"name": "tea@1.9"})
    assert answer["body"].strip() == "Brew 1.9."
    assert (answer["skill"]["version"], answer["skill"]["deprecated"]) == ("1.9", None)
    file = native.call("read_skill_file", {"name": "tea@1.9", "path": "pot.txt"})
    assert file["content"] == "pot 1.9"
    assert "Brew 1.10." in json.dumps(wave.call("Skill", {"skill_name": "tea@1.10"}))
    assert native.call("read_skill", {"name": "tea@5"})["error"]["code"] == "version_not_found"


def test_a_deprecated_version_is_shown_with_reason_and_replacement(tea):
    tea.add_version("tea", "2.0")
    told = tea.deprecate_version("tea@2.0", "too  strong\n", replacement="tea@1.10")
    assert (told.state, told.reason, told.replacement) == ("deprecated", "too strong", "tea@1.10")
    warning = "Version 2.0 is deprecated: too strong. Use tea@1.10 instead."
    assert [one.warning for one in tea.get("tea").versions] == [warning]
    answer = tea.toolset("native").call("read_skill", {"name": "tea"})
    assert answer["skill"]["deprecated"] == warning
    assert names(tea) == ["tea"]
    tea.reactivate_version("tea@2.0")
    found = tea.versions("tea")[0]
    assert found.state == "active"
    assert [one.state for one in found.history] == ["active", "deprecated", "active"]


@pytest.mark.both
def test_lists_and_searches_mark_a_skill_whose_current_version_is_deprecated(tea, database, root):
    write(root, "Another.", name="mate")
    tea.sync()
    tea.deprecate_version("tea@1.10", "an older version")
    tea.add_version("tea", "2.0")

    def cli(*arguments):
        return run("--db", str(database), *arguments).stdout

    def marked(*arguments):
        return {
            one["name"]: one.get("deprecated", False)
            for one in json.loads(cli(*arguments, "--json"))
        }

    def rows(*arguments):
        return {one.split()[0]: "deprecated" in one for one in cli(*arguments).splitlines()}

    def tool(called, **arguments):
        found = tea.toolset("native").call(called, arguments)["skills"]
        return {one["name"]: one.get("deprecated") for one in found}

    asked = ("list",), ("list", "--all"), ("search", "tea mate")
    for one in asked:
        assert marked(*one) == {"tea": False, "mate": False}
    assert not rows("list", "--format", "table")["tea"]
    assert tool("list_skills") == {"tea": None, "mate": None}
    tea.deprecate_version("tea@2.0", "too strong", replacement="tea@1.9")
    for one in asked:
        assert marked(*one) == {"tea": True, "mate": False}
        shown = rows(*one, "--format", "table")
        assert (shown["tea"], shown["mate"]) == (True, False)
    warning = "Version 2.0 is deprecated: too strong. Use tea@1.9 instead."
    assert tool("list_skills") == {"tea": warning, "mate": None}
    assert tool("search_skills", query="tea mate") == {"tea": warning, "mate": None}
    tea.reactivate_version("tea@2.0")
    assert marked("list") == {"tea": False, "mate": False}
    write(root, "Changed.")
    tea.sync()
    assert tool("list_skills")["tea"] is None


def test_a_yanked_version_that_is_current_is_seen_by_its_owner_only(tea):
    tea.add_version("tea", "2.0")
    tea.yank_version("tea@2.0", "sends files away", replacement="tea@1.10")
    assert names(tea) == []
    assert not tea.search("tea").total
    assert names(tea, all=True) == ["tea"]
    assert tea.get("tea").versions[0].state == "yanked"
    assert [one.reasons[0].code for one in tea.why("tea")] == ["yanked"]
    others = tea.answering_others()
    assert names(others, all=True) == [] == names(others, status="ok")
    for handle in ("tea", "mine/tea", "tea@2.0", "tea@1.10"):
        with pytest.raises(SkillNotFound):
            others.get(handle)
    assert tea.toolset("native").call("list_skills", {})["total"] == 0
    assert "error" in tea.toolset("native").call("read_skill", {"name": "tea"})
    tea.reactivate_version("tea@2.0")
    assert names(tea) == names(others) == ["tea"]


def test_after_another_change_a_yanked_skill_is_listed_again(tea, root):
    tea.add_version("tea", "2.0")
    before = tea.read("tea")
    tea.yank_version("tea@2.0", "wrong")
    write(root, "Better.")
    tea.sync()
    assert names(tea) == ["tea"]
    with pytest.raises(VersionYanked, match=r"Version 2\.0 of 'tea' was yanked: wrong\."):
        tea.answering_others().get("tea@2.0")
    assert tea.get("tea@2.0").body.strip() == "Brew None."
    answer = tea.toolset("native").call("read_skill", {"name": "tea@2.0"})
    assert answer["error"]["code"] == "version_yanked"
    (root / "tea" / "SKILL.md").write_text(before)  # the yanked files come back
    (root / "tea" / "pot.txt").write_text("pot None")
    tea.sync()
    assert names(tea) == []


def test_a_yanked_skill_shadows_no_other(mine, root, tmp_path):
    write(root, "Strong.", "1.0")
    other = tmp_path / "weak"
    write_skill(other / "tea", body="Weak.\n")
    mine.sync()
    mine.sync(str(other), name="weak", scope="community")
    assert [one.source for one in mine.list()] == ["mine"]
    mine.yank_version("tea@1.0", "bad")
    assert [one.source for one in mine.list()] == ["weak"]
    mine.reactivate_version("mine/tea@1.0")
    assert [one.source for one in mine.list()] == ["mine"]


def test_a_state_needs_a_version_and_a_reason(tea):
    with pytest.raises(UsageProblem, match="NAME@LABEL"):
        tea.yank_version("tea", "bad")
    with pytest.raises(UsageProblem, match="reason"):
        tea.yank_version("tea@1.9", " ")
    with pytest.raises(UsageProblem):
        tea.deprecate_version("tea@1.9", "x" * 1001)
    with pytest.raises(VersionNotFound):
        tea.yank_version("tea@3", "bad")


def test_the_audit_log_has_each_change_of_a_state(tea):
    from registry.db.read.access import audit_records

    tea.yank_version("tea@1.9", "bad", replacement="tea@1.10")
    tea.reactivate_version("tea@1.9")
    found = audit_records(tea.core.reader, 2)
    assert [(one.what, one.subject) for one in found] == [
        ("version active again", "mine/tea@1.9"),
        ("version yanked", "mine/tea@1.9"),
    ]
    assert found[1].detail == {"reason": "bad", "replacement": "tea@1.10"}


def test_prune_keeps_the_content_of_versions(tea, root):
    write(root, "Last.")
    tea.sync()
    pruned, _ = tea.prune(keep=1)
    assert pruned == 1  # the files without a version
    assert "Brew 1.9." in tea.read("tea@1.9")
    assert tea.read_file("tea@1.10", "pot.txt") == b"pot 1.10"


def test_a_skill_that_is_gone_for_good_takes_its_versions_with_it(tea):
    tea.delete("tea")
    tea.prune(keep=1)
    assert tea.core.reader.rows("SELECT count(*) FROM labels") == [(2,)]
    tea.restore("tea")
    assert "Brew 1.9." in tea.read("tea@1.9")
    tea.delete("tea")
    tea.empty_trash()
    tea.prune(keep=1)
    assert tea.core.reader.rows("SELECT count(*) FROM labels") == [(0,)]


def test_a_moved_or_renamed_skill_keeps_its_versions(tea):
    tea.rename("tea", "chai")
    assert labels(tea, "chai") == ["1.10", "1.9"]
    assert "Brew 1.9." in tea.read("chai@1.9")


def test_without_stored_files_only_the_skill_file_of_a_version_is_kept(database, root):
    with SkillRegistry.open(database, settings=Settings(store_files=False)) as registry:
        registry.sync(str(root), name="mine")
        for version in ("1.0", "1.1"):
            folder = write(root, f"Brew {version}.", version)
            (folder / "pot.txt").write_text(f"pot {version}")
            registry.sync()
        assert "Brew 1.0." in registry.read("tea@1.0")
        with pytest.raises(RegistryError, match="not in the database"):
            registry.read_file("tea@1.0", "pot.txt")


@pytest.mark.server
def test_a_server_refuses_to_change_rows_of_versions(tea):
    with pytest.raises(RegistryError), tea.core.writer.transaction() as connection:
        connection.exec_driver_sql("UPDATE labels SET tree_hash = 'sha256:0'")


def test_the_history_has_the_versions_of_each_revision(tea):
    tea.deprecate_version("tea@1.9", "old")
    found = [[(v.label, v.state) for v in one.versions] for one in tea.history("tea")]
    assert found == [[], [("1.10", "active")], [("1.9", "deprecated")]]
