import os
import socket
from hashlib import blake2b
from pathlib import Path

import pytest

from registry.disk.paths import position
from registry.disk.walk import FileStat, RootGone, RootUnreadable, ScannedFolder, Walk
from registry.model import Diagnostic
from registry.settings import Limits
from tests.conftest import write_skill


def walk(root: Path, *roots: Path, **limits: int) -> tuple[dict[str, ScannedFolder], Walk]:
    it = Walk(os.path.realpath(root), Limits(**limits), [os.path.realpath(r) for r in roots])
    return {found.folder: found for found in it}, it


def codes(found: ScannedFolder) -> list[str]:
    return [problem.code for problem in found.problems]


def test_skills_are_found_at_the_root_nested_and_below_another_skill(root):
    write_skill(root)
    write_skill(root / "writing" / "haiku")
    write_skill(root / "writing" / "haiku" / "inner")
    found, _ = walk(root)
    assert list(found) == ["writing/haiku/inner", "writing/haiku", "."]
    assert sorted(found, key=position) == list(found)


def test_files_of_a_nested_skill_belong_to_the_nested_one_alone(root):
    outer = write_skill(root / "outer")
    write_skill(outer / "inner")
    (outer / "scripts").mkdir()
    (outer / "scripts" / "run.sh").write_text("true")
    found, _ = walk(root)
    assert [file.path for file in found["outer"].files] == ["SKILL.md", "scripts/run.sh"]
    assert [file.path for file in found["outer/inner"].files] == ["SKILL.md"]


@pytest.mark.parametrize("name", ["SKILL.md", "SKILL.MD", "skill.md", "Skill.md"])
def test_every_spelling_of_the_file_is_found(root, name):
    (root / "a").mkdir()
    (root / "a" / name).write_text("x")
    assert walk(root)[0]["a"].document == name


def test_of_two_spellings_the_usual_one_counts_and_the_other_is_reported(root):
    folder = write_skill(root / "a")
    (folder / "skill.md").write_text("other")
    found = walk(root)[0]["a"]
    assert found.document == "SKILL.md"
    assert codes(found) == ["second-document"]


def test_folders_of_version_control_and_packages_are_passed_over(root):
    for name in (".git", "node_modules", ".skills.skill-registry"):
        write_skill(root / name / "hidden")
    write_skill(root / ".claude" / "skills" / "shown")
    assert [f for f, found in walk(root)[0].items() if found.is_skill] == [".claude/skills/shown"]


def test_a_folder_without_skills_is_reported_as_such_at_the_top_only(root):
    (root / "empty" / "deeper").mkdir(parents=True)
    found, _ = walk(root)
    assert list(found) == ["empty"]
    assert not found["empty"].is_skill


def test_a_skill_below_the_depth_limit_is_found_and_refused(root):
    write_skill(root / "a" / "b" / "c")
    assert codes(walk(root, depth=2)[0]["a/b/c"]) == ["too-deep"]
    assert codes(walk(root, depth=3)[0]["a/b/c"]) == []


def test_a_pipe_named_like_a_skill_is_never_opened(root):
    (root / "a").mkdir()
    os.mkfifo(root / "a" / "SKILL.md")
    found = walk(root)[0]["a"]
    assert found.document is None
    assert codes(found) == ["special-file"]


def test_a_socket_among_the_files_makes_a_skill_invalid(root):
    folder = write_skill(root / "a")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(folder / "s"))
        assert codes(walk(root)[0]["a"]) == ["special-file"]


def test_a_folder_named_like_a_skill_file_is_a_folder(root):
    (root / "a" / "SKILL.md").mkdir(parents=True)
    assert not walk(root)[0]["a"].is_skill


def test_too_many_files_and_too_many_bytes_are_counted_while_walking(root):
    folder = write_skill(root / "a")
    for number in range(5):
        (folder / f"{number}.txt").write_text("x" * 100)
    found = walk(root, files=3, skill_bytes=300)[0]["a"]
    assert codes(found) == ["too-many-files", "skill-too-large"]
    assert len(found.files) == 3


def test_file_names_that_not_every_disk_can_hold_make_a_skill_invalid(root):
    folder = write_skill(root / "a")
    (folder / "Notes.md").write_text("1")
    (folder / "notes.md").write_text("2")
    (folder / "back\\slash").write_text("3")
    assert sorted(codes(walk(root)[0]["a"])) == ["path-collision", "path-unsafe"]


class TestLinks:
    def test_a_document_that_links_out_of_every_source_is_refused(self, root):
        (root / "a").mkdir()
        (root / "a" / "SKILL.md").symlink_to("/etc/passwd")
        found = walk(root)[0]["a"]
        assert found.document is None
        assert codes(found) == ["link-outside"]

    def test_a_supporting_file_that_links_out_makes_the_skill_invalid(self, root):
        folder = write_skill(root / "a")
        (folder / "data").symlink_to("/etc/hostname")
        found = walk(root)[0]["a"]
        assert [p.severity for p in found.problems] == ["error"]

    def test_a_link_that_stays_inside_counts_as_the_file_it_leads_to(self, root):
        folder = write_skill(root / "a")
        (folder / "copy.md").symlink_to("SKILL.md")
        found = walk(root)[0]["a"]
        assert codes(found) == []
        assert [file.path for file in found.files] == ["SKILL.md", "copy.md"]

    def test_a_linked_skill_of_the_same_source_is_counted_once_where_it_lies(self, root):
        write_skill(root / "real")
        (root / "agent").mkdir()
        (root / "agent" / "real").symlink_to("../real")
        found, it = walk(root)
        assert [f for f in found if found[f].is_skill] == ["real"]
        assert [notice.diagnostic.code for notice in it.notices] == ["link-known"]

    def test_a_linked_skill_of_another_source_is_counted_there(self, root, tmp_path):
        write_skill(tmp_path / "other" / "real")
        (root / "real").symlink_to(tmp_path / "other" / "real")
        assert walk(root, tmp_path / "other")[0] == {}

    def test_a_linked_skill_outside_every_source_is_refused_by_name(self, root, tmp_path):
        write_skill(tmp_path / "other" / "real")
        (root / "real").symlink_to(tmp_path / "other" / "real")
        found = walk(root)[0]["real"]
        assert codes(found) == ["link-outside"]

    def test_a_link_looked_at_alone_is_refused_as_in_a_whole_walk(self, root, tmp_path):
        write_skill(tmp_path / "other" / "real")
        write_skill(tmp_path / "other" / "deeper" / "real")
        (root / "real").symlink_to(tmp_path / "other" / "real")
        (root / "way").symlink_to(tmp_path / "other" / "deeper")
        found, it = walk(root)
        assert it.one("real") == found["real"]
        assert it.one("way/real") is None

    def test_a_linked_document_of_another_skill_makes_no_second_skill(self, root):
        write_skill(root / "real")
        (root / "agent" / "real").mkdir(parents=True)
        (root / "agent" / "real" / "SKILL.md").symlink_to("../../real/SKILL.md")
        assert [f for f, x in walk(root)[0].items() if x.is_skill] == ["real"]

    def test_a_document_linked_to_a_plain_file_of_the_source_is_read_there(self, root):
        write_skill(root / "a")
        (root / "commands").mkdir()
        (root / "commands" / "x.md").write_text("---\nname: x\n---\n")
        (root / "b").mkdir()
        (root / "b" / "SKILL.md").symlink_to("../commands/x.md")
        found = walk(root)[0]["b"]
        assert (found.document, codes(found)) == ("SKILL.md", [])

    def test_loops_and_dead_ends_are_named(self, root):
        folder = write_skill(root / "a")
        (folder / "up").symlink_to("..")
        (folder / "round").symlink_to("round")
        (folder / "dead").symlink_to("nowhere")
        (root / "dead").symlink_to("nowhere")
        (root / "round").symlink_to("round")
        found, it = walk(root)
        assert sorted(codes(found["a"])) == ["link-broken", "link-loop", "link-outside"]
        assert sorted(n.diagnostic.code for n in it.notices) == ["link-broken", "link-loop"]

    def test_the_root_of_another_source_is_left_to_that_source(self, root):
        write_skill(root / "mine")
        write_skill(root / "theirs" / "x")
        assert "theirs/x" not in walk(root, root / "theirs")[0]


def test_a_missing_root_and_a_file_as_root_are_missing(root, tmp_path):
    with pytest.raises(RootGone):
        walk(tmp_path / "nowhere")
    (tmp_path / "file").write_text("")
    with pytest.raises(RootGone):
        walk(tmp_path / "file")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_root_without_permission_is_unreadable_not_missing(root):
    root.chmod(0)
    try:
        with pytest.raises(RootUnreadable):
            walk(root)
    finally:
        root.chmod(0o755)


def test_a_name_that_is_no_utf8_is_found_and_refused(root):
    folder = os.fsencode(root) + b"/caf\xe9"
    os.mkdir(folder)
    with open(folder + b"/SKILL.md", "w") as file:
        file.write("x")
    found, it = walk(root)
    assert codes(found["caf\\xe9"]) == ["path-not-utf8"]
    assert it.one("caf\\xe9") == found["caf\\xe9"]


def test_names_that_are_no_utf8_are_walked_in_the_order_of_what_is_stored(root):
    for name in (b"caf\xe9", b"cafz", b"caf+"):
        os.mkdir(os.fsencode(root) + b"/" + name)
    found = list(Walk(os.path.realpath(root), Limits()))
    assert [one.folder for one in found] == sorted((one.folder for one in found), key=position)


def test_one_folder_can_be_looked_at_alone_with_the_same_result(root):
    write_skill(root / "a")
    write_skill(root / "a" / "inner")
    found, it = walk(root)
    assert it.one("a") == found["a"]
    assert it.one("a/inner") == found["a/inner"]
    assert it.one("gone") is None


def test_the_fingerprint_follows_size_times_mode_and_problems(root):
    folder = write_skill(root / "a")
    seen = {walk(root)[0]["a"].fingerprint}
    os.utime(folder / "SKILL.md", ns=(1, 2))
    seen.add(walk(root)[0]["a"].fingerprint)
    (folder / "SKILL.md").chmod(0o755)
    seen.add(walk(root)[0]["a"].fingerprint)
    (folder / "dead").symlink_to("nowhere")
    seen.add(walk(root)[0]["a"].fingerprint)
    assert len(seen) == 4


def test_a_fingerprint_stays_what_it_was_in_databases_that_are_there():
    files = [
        FileStat("a 'b'\n.md", 33188, 5, 17, 18, 2**63),
        FileStat("c\udcff", 33261, 0, 1, 2, 3),
    ]
    problems = [Diagnostic("too-deep", "error", "it is")]
    for facts in [("SKILL.md", files, problems), (None, (), problems), ("SKILL.md", [], ())]:
        document, some, found = facts
        said = repr((document, some, [problem.code for problem in found]))
        expected = blake2b(said.encode("utf-8", "surrogateescape"), digest_size=16).hexdigest()
        assert ScannedFolder("x", document, some, found).fingerprint == expected
