"""The edges of a walk: exact limits, what can't be looked at, how deep it sees, odd names."""

import os
import socket
from collections.abc import Iterator

import pytest

from registry.disk.walk import DEPTH_SEEN, Walk
from tests.conftest import write_skill
from tests.disk.test_walk import codes
from tests.disk.test_walk import walk as walked
from tests.refusing import meant


def told(walk: Walk) -> list[tuple[str, str, bool]]:
    return [(one.folder, one.diagnostic.code, one.lost) for one in walk.notices]


def test_a_skill_that_fills_its_limits_exactly_is_whole(root):
    folder = write_skill(root / "a")
    (folder / "data").write_bytes(b"x" * 100)
    size = sum(path.stat().st_size for path in folder.iterdir())
    assert codes(walked(root, files=2, skill_bytes=size)[0]["a"]) == []
    over = walked(root, files=1, skill_bytes=size - 1)[0]["a"]
    assert codes(over) == ["too-many-files", "skill-too-large"]
    assert [problem.message for problem in over.problems] == [
        "the folder holds 2 files, 1 are allowed",
        f"the files have {size} bytes in total, {size - 1} are allowed",
    ]


def test_a_skill_one_folder_too_deep_is_named_with_its_depth_alone_or_in_a_walk(root):
    write_skill(root / "a" / "b")
    write_skill(root / "a" / "b" / "c")
    found, walk = walked(root, depth=2)
    assert {folder: codes(one) for folder, one in found.items()} == {
        "a/b": [],
        "a/b/c": ["too-deep"],
    }
    assert "is 3 folders below its source; the limit is 2" in found["a/b/c"].problems[0].message
    assert [walk.one("a/b"), walk.one("a/b/c")] == [found["a/b"], found["a/b/c"]]


def test_a_skill_at_the_root_is_at_no_depth_and_has_the_roots_name(root):
    write_skill(root)
    write_skill(root / "writing" / "haiku")
    found, walk = walked(root, depth=0)
    assert [(one.name, codes(one)) for one in found.values()] == [
        ("haiku", ["too-deep"]),
        ("skills", []),
    ]
    assert walk.one(".") == found["."]


def deep(root, levels):
    return root.joinpath(*(["d"] * levels))


def test_skills_are_looked_for_to_a_depth_and_no_further(root):
    write_skill(deep(root, DEPTH_SEEN))
    write_skill(deep(root, DEPTH_SEEN + 1))
    found, _ = walked(root)
    assert [one.folder.count("/") + 1 for one in found.values()] == [DEPTH_SEEN]


def test_a_link_to_a_foreign_skill_is_seen_as_deep_as_a_skill(root, tmp_path):
    foreign = write_skill(tmp_path / "foreign")
    deep(root, DEPTH_SEEN).mkdir(parents=True)
    for level in (DEPTH_SEEN - 1, DEPTH_SEEN):
        (deep(root, level) / "link").symlink_to(foreign)
    found, walk = walked(root)
    linked = "/".join(["d"] * (DEPTH_SEEN - 1)) + "/link"
    assert {folder: codes(one) for folder, one in found.items()} == {linked: ["link-outside"]}
    assert walk.one(linked) == found[linked]
    deeper = "/".join(["d"] * DEPTH_SEEN) + "/link"
    assert told(walk)[0] == (deeper, "link-outside", False)
    assert walk.one(deeper) is None


def test_an_error_in_a_file_leaves_the_document_to_be_read(root):
    folder = write_skill(root / "a")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(folder / "s"))
        found = walked(root)[0]["a"]
    assert (found.document, codes(found)) == ("SKILL.md", ["special-file"])
    assert found.problems[0].path == "s"


def test_of_several_spellings_the_usual_one_counts_whatever_comes_first(root):
    folder = write_skill(root / "a")
    for name in ("SKILL.MD", "skill.md"):
        (folder / name).write_text("other")
    found = walked(root)[0]["a"]
    assert (found.document, codes(found)) == ("SKILL.md", ["second-document"])


def test_a_backslash_in_a_folders_name_is_refused(root):
    write_skill(root / "back\\slash")
    write_skill(root / "fine")
    found, _ = walked(root)
    assert {folder: codes(one) for folder, one in found.items()} == {
        "back\\slash": ["path-unsafe"],
        "fine": [],
    }


def test_two_spellings_of_one_name_collide_and_a_drive_is_unsafe(root):
    folder = write_skill(root / "a")
    for name in ("caf\u00e9.md", "cafe\u0301.md", "C:notes.md"):
        (folder / name).write_text("")
    problems = walked(root)[0]["a"].problems
    assert [(one.code, one.path) for one in problems] == [
        ("path-unsafe", "C:notes.md"),
        ("path-collision", "caf\u00e9.md"),
    ]


def test_only_folders_at_the_top_can_be_empty_ones(root):
    (root / "a" / "b").mkdir(parents=True)
    write_skill(root / "c" / "d")
    (root / "file.txt").write_text("")
    found, _ = walked(root)
    assert {folder: one.is_skill for folder, one in found.items()} == {"a": False, "c/d": True}


class TestLinks:
    def test_a_link_beside_skills_is_told_only_where_it_is_about_skills(self, root, tmp_path):
        for place in ("file", "folder/file"):
            (tmp_path / place).parent.mkdir(exist_ok=True)
            (tmp_path / place).write_text("")
        (root / "to-file").symlink_to(tmp_path / "file")
        (root / "to-folder").symlink_to(tmp_path / "folder")
        write_skill(root / "a")
        (root / "to-known-file").symlink_to(root / "a" / "SKILL.md")
        (root / "to-known").symlink_to(root / "a")
        found, walk = walked(root)
        assert list(found) == ["a"]
        assert told(walk) == [
            ("to-folder", "link-outside", False),
            ("to-known", "link-known", False),
        ]

    def test_a_link_to_a_folder_of_the_same_skill_is_no_problem(self, root):
        folder = write_skill(root / "a")
        (folder / "real").mkdir()
        (folder / "real" / "x").write_text("")
        (folder / "same").symlink_to("real")
        found = walked(root)[0]["a"]
        assert codes(found) == []
        assert [file.path for file in found.files] == ["SKILL.md", "real/x"]

    def test_a_supporting_file_linked_from_another_source_makes_a_skill_invalid(
        self, root, tmp_path
    ):
        other = write_skill(tmp_path / "other" / "x")
        folder = write_skill(root / "a")
        (folder / "data").symlink_to(other / "SKILL.md")
        found = walked(root, tmp_path / "other")[0]["a"]
        assert [(one.code, one.severity, one.path) for one in found.problems] == [
            ("link-outside", "error", "data")
        ]

    def test_a_second_document_that_is_another_skills_is_counted_there(self, root):
        write_skill(root / "real")
        folder = write_skill(root / "a")
        (folder / "skill.md").symlink_to("../real/SKILL.md")
        found, walk = walked(root)
        assert (found["a"].document, codes(found["a"])) == ("SKILL.md", [])
        assert told(walk) == [("a", "link-known", False)]

    def test_a_dead_link_beside_the_files_is_a_warning_and_as_the_document_an_error(self, root):
        folder = write_skill(root / "a")
        (folder / "dead").symlink_to("nowhere")
        (root / "b").mkdir()
        (root / "b" / "SKILL.md").symlink_to("nowhere")
        found, _ = walked(root)
        assert [one.severity for one in found["a"].problems] == ["warning"]
        assert [one.severity for one in found["b"].problems] == ["error"]
        assert (found["a"].document, found["b"].document) == ("SKILL.md", None)


class Entry:
    """An entry of a folder whose facts can't be had."""

    def __init__(self, entry, error):
        self.name, self.path, self._entry, self._error = entry.name, entry.path, entry, error

    def is_symlink(self):
        return self._entry.is_symlink()

    def is_dir(self, *, follow_symlinks):
        return self._entry.is_dir(follow_symlinks=follow_symlinks)

    def stat(self, *, follow_symlinks):
        raise self._error


class Listing:
    def __init__(self, listing, wrap):
        self._listing, self._wrap = listing, wrap

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self._listing.close()

    def __iter__(self) -> Iterator[object]:
        return map(self._wrap, self._listing)


@pytest.fixture
def closed(monkeypatch):
    """Let what has this name not be looked at, whoever runs the tests."""

    def close(name, error=None):
        error = error or PermissionError(13, "Permission denied")
        real = os.scandir

        def scandir(path):
            if os.path.basename(meant(path)) == name:
                raise error
            return Listing(real(path), lambda e: Entry(e, error) if e.name == name else e)

        monkeypatch.setattr(os, "scandir", scandir)

    return close


class TestClosed:
    def test_a_closed_folder_between_skills_is_lost_and_the_others_are_found(self, root, closed):
        write_skill(root / "open")
        write_skill(root / "shut" / "x")
        closed("shut")
        found, walk = walked(root)
        assert [folder for folder, one in found.items() if one.is_skill] == ["open"]
        assert told(walk) == [("shut", "unreadable", True)]
        assert walk.notices[0].diagnostic.message == "it can't be read: Permission denied"

    def test_a_closed_folder_of_a_skill_is_a_finding_of_the_skill(self, root, closed):
        folder = write_skill(root / "a")
        (folder / "shut").mkdir()
        closed("shut")
        found, walk = walked(root)
        assert [(one.code, one.path) for one in found["a"].problems] == [("unreadable", "shut")]
        assert told(walk) == [("a/shut", "unreadable", True)]

    def test_a_closed_file_of_a_skill_is_a_finding_of_the_skill(self, root, closed):
        folder = write_skill(root / "a")
        (folder / "inner").mkdir()
        (folder / "inner" / "shut").write_text("")
        closed("shut")
        found, walk = walked(root)
        assert [(one.code, one.path) for one in found["a"].problems] == [
            ("unreadable", "inner/shut")
        ]
        assert told(walk) == [("a/inner", "unreadable", True)]

    def test_what_vanishes_during_the_walk_was_never_there(self, root, closed):
        folder = write_skill(root / "a")
        (folder / "gone").write_text("")
        write_skill(root / "b")
        closed("gone", FileNotFoundError(2, "No such file or directory"))
        found, walk = walked(root)
        assert {name: codes(one) for name, one in found.items()} == {"a": [], "b": []}
        assert told(walk) == []


def test_a_document_that_is_a_link_to_another_spelling_of_it_stays_with_its_skill(root):
    folder = write_skill(root / "a")
    (folder / "SKILL.md").rename(folder / "skill.md")
    (folder / "SKILL.md").symlink_to("skill.md")
    found, walk = walked(root)
    assert (found["a"].document, codes(found["a"])) == ("SKILL.md", ["second-document"])
    assert told(walk) == []
