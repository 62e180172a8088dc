"""The one engine for putting a folder in the place of another: its table, end by end.

A place holds one of the texts "base", "new" and "edit", or nothing.
"""

import os
from pathlib import Path

import pytest

from registry.disk import atomic, swap
from registry.disk.atomic import Place, digest_of, open_named
from registry.disk.swap import Swap

KINDS = {"create": (None, "new"), "update": ("base", "new"), "delete": ("base", None)}


class Disk:
    """A source and a state folder with a change that is staged; `has` says what is where."""

    def __init__(self, root, source, state):
        self.live, self.staged = Place(source, "skill"), Place(state, "tree")
        self.places = {
            "live": self.live,
            "staged": self.staged,
            "old": Place(state, "tree.old"),
            "aside": Place(state, "tree.new"),
        }
        self.conflict = []
        self.digests = {None: None}
        for text in ("base", "new", "edit"):
            place = Place(source, text)
            self.write(place, text)
            self.digests[text] = digest_of(place)
            atomic.remove_tree(place)

    @staticmethod
    def write(place, text):
        with atomic.make_folder(place) as folder:
            atomic.write_file(Place(folder, "SKILL.md"), text.encode())

    def put(self, **texts):
        for name, text in texts.items():
            if text is not None:
                self.write(self.places[name], text)

    def swap(self, kind):
        base, new = KINDS[kind]
        return Swap(self.live, self.staged, self.digests[base], self.digests[new])

    def set_aside(self, place):
        self.conflict.append(self.text(place))
        atomic.remove_tree(place)

    @staticmethod
    def text(place):
        path = Path(place.path, "SKILL.md")
        return path.read_text() if path.exists() else None

    @property
    def has(self):
        return {name: text for name, one in self.places.items() if (text := self.text(one))}


@pytest.fixture
def disk(tmp_path):
    (tmp_path / "source").mkdir()
    (tmp_path / "state").mkdir()
    with open_named(str(tmp_path / "source")) as source, open_named(str(tmp_path / "state")) as st:
        yield Disk(tmp_path, source, st)


@pytest.fixture
def two_renames(monkeypatch):
    monkeypatch.setattr(atomic, "renameat2", lambda: None)


@pytest.mark.parametrize(
    ("kind", "before", "after", "displaced"),
    [
        ("create", {"staged": "new"}, {"live": "new"}, None),
        ("update", {"live": "base", "staged": "new"}, {"live": "new", "staged": "base"}, "base"),
        ("delete", {"live": "base"}, {"staged": "base"}, "base"),
    ],
)
def test_publishing_is_one_step_and_says_where_the_displaced_is(
    disk, kind, before, after, displaced
):
    disk.put(**before)
    found = disk.swap(kind).publish()
    assert disk.has == after
    assert (None if found is None else disk.text(found)) == displaced
    assert disk.swap(kind).is_done()
    assert disk.swap(kind).unknown() == []


def test_without_an_exchange_the_displaced_is_beside_the_staged(disk, two_renames):
    disk.put(live="base", staged="new")
    found = disk.swap("update").publish()
    assert found == disk.places["old"]
    assert disk.has == {"live": "new", "old": "base"}
    assert not swap.is_exchanged(disk.staged)


@pytest.mark.parametrize("kind", ["create", "update", "delete"])
def test_whoever_was_faster_is_left_alone(disk, kind):
    if kind == "create":
        disk.put(live="edit", staged="new")
        with pytest.raises(FileExistsError):
            disk.swap(kind).publish()
        assert disk.has == {"live": "edit", "staged": "new"}
    else:
        disk.put(staged="new" if kind == "update" else None)
        before = disk.has
        with pytest.raises(FileNotFoundError):
            disk.swap(kind).publish()
        assert disk.has == before
    assert disk.swap(kind).is_done() == (kind == "delete")


SETTLED = [
    # kind, what is there, what is there afterwards, what is set aside
    ("create", {"staged": "new"}, {"staged": "new"}, []),
    ("create", {"live": "new"}, {"live": "new"}, []),
    ("create", {"live": "edit", "staged": "new"}, {"live": "edit", "staged": "new"}, []),
    ("create", {"live": "new", "staged": "edit"}, {"live": "new", "staged": "edit"}, []),
    ("delete", {"live": "base"}, {"live": "base"}, []),
    ("delete", {"staged": "base"}, {"staged": "base"}, []),
    ("delete", {"live": "edit", "staged": "base"}, {"live": "edit", "staged": "base"}, []),
    ("delete", {"staged": "edit"}, {"live": "edit"}, []),
    ("delete", {"live": "new", "staged": "edit"}, {"live": "new"}, ["edit"]),
    ("update", {"live": "base", "staged": "new"}, {"live": "base", "staged": "new"}, []),
    ("update", {"live": "new", "staged": "base"}, {"live": "new", "staged": "base"}, []),
    ("update", {"live": "new", "staged": "edit"}, {"live": "edit", "staged": "new"}, []),
    ("update", {"live": "base", "staged": "edit"}, {"live": "base"}, ["edit"]),
    ("update", {"staged": "edit"}, {}, ["edit"]),
    ("update", {"live": "edit"}, {"live": "edit"}, []),
    # by two renames
    ("update", {"old": "base", "staged": "new"}, {"live": "new", "old": None}, []),
    ("update", {"old": "base"}, {"live": "base"}, []),
    ("update", {"old": "edit", "staged": "new"}, {"live": "edit", "staged": "new"}, []),
    ("update", {"live": "new", "old": "edit"}, {"live": "edit", "aside": "new"}, []),
    ("update", {"live": "new", "old": "base"}, {"live": "new", "old": "base"}, []),
    ("update", {"live": "base", "old": "edit"}, {"live": "base", "old": "edit"}, []),
    ("update", {"live": "edit", "aside": "new"}, {"live": "edit", "aside": "new"}, []),
]


@pytest.mark.parametrize(("kind", "before", "after", "aside"), SETTLED)
def test_whatever_a_dead_process_left_is_brought_to_one_of_both_ends(
    disk, kind, before, after, aside
):
    disk.put(**before)
    expected = {name: text for name, text in after.items() if text}
    if after.get("old", "") is None:  # the old content waits there to be removed
        expected["old"] = "base"
    for _ in range(2):  # and again, if that process is killed
        disk.swap(kind).finish(disk.set_aside)
        assert disk.has == expected
        assert disk.conflict == aside


def test_what_has_nowhere_to_go_back_to_is_set_aside(disk):
    for name, kind in (("staged", "delete"), ("old", "update")):
        disk.put(**{name: "edit"})
        one = disk.swap(kind)
        Swap(None, one.staged, one.base, one.new).finish(disk.set_aside)
    assert disk.conflict == ["edit", "edit"]
    assert disk.has == {}
    for base, new in (None, "x"), ("x", "y"), ("x", None):
        Swap(disk.live, None, base, new).finish(disk.set_aside)


FORWARD = [
    ("create", {"staged": "new"}, {"live": "new"}),
    ("create", {"live": "edit", "staged": "new"}, {"live": "edit", "staged": "new"}),
    ("create", {"staged": "edit"}, {"staged": "edit"}),
    ("delete", {"live": "base"}, {"staged": "base"}),
    ("delete", {"live": "edit"}, {"live": "edit"}),
    ("delete", {"live": "base", "staged": "base"}, {"live": "base", "staged": "base"}),
    ("update", {"live": "base", "staged": "new"}, {"live": "new", "staged": "base"}),
    ("update", {"live": "edit", "staged": "new"}, {"live": "edit", "staged": "new"}),
    ("update", {"live": "base", "staged": "edit"}, {"live": "base", "staged": "edit"}),
    ("update", {"live": "base", "aside": "new"}, {"live": "base", "aside": "new"}),
]


@pytest.mark.parametrize(("kind", "before", "after"), FORWARD)
def test_rolling_forward_publishes_unless_somebody_edited_a_place(disk, kind, before, after):
    disk.put(**before)
    disk.swap(kind).roll_forward()
    assert disk.has == after


def test_rolling_forward_without_an_exchange_is_ended_by_settling(disk, two_renames):
    disk.put(live="base", staged="new")
    disk.swap("update").roll_forward()
    assert disk.has == {"staged": "new", "old": "base"}
    disk.swap("update").finish(disk.set_aside)
    assert disk.has == {"live": "new", "old": "base"}


BACK = [
    ("create", {"live": "new"}, {"staged": "new"}),
    ("create", {"live": "edit"}, {"live": "edit"}),
    ("create", {"live": "new", "staged": "new"}, {"live": "new", "staged": "new"}),
    ("delete", {"staged": "base"}, {"live": "base"}),
    ("delete", {"live": "edit", "staged": "base"}, {"live": "edit", "staged": "base"}),
    ("delete", {"live": "base"}, {"live": "base"}),
    ("update", {"live": "new", "staged": "base"}, {"live": "base", "staged": "new"}),
    ("update", {"live": "edit", "staged": "base"}, {"live": "edit", "staged": "base"}),
    ("update", {"live": "new", "staged": "edit"}, {"live": "new", "staged": "edit"}),
    # by two renames
    ("update", {"live": "new", "old": "base"}, {"live": "base", "staged": "new"}),
    ("update", {"staged": "new", "old": "base"}, {"live": "base", "staged": "new"}),
    ("update", {"live": "edit", "old": "base"}, {"live": "edit", "old": "base"}),
    ("update", {"live": "edit", "aside": "new"}, {"live": "edit", "aside": "new"}),
]


@pytest.mark.parametrize(("kind", "before", "after"), BACK)
def test_rolling_back_undoes_what_nobody_edited_since(disk, kind, before, after):
    disk.put(**before)
    disk.swap(kind).roll_back()
    assert disk.has == after


def test_an_edit_in_the_moment_of_rolling_back_stays_where_it_is(disk, monkeypatch):
    disk.put(live="new")
    real = swap.rename_new

    def edited_first(source, target):
        if source == disk.live:
            atomic.remove_tree(disk.live)
            disk.put(live="edit")
        real(source, target)

    monkeypatch.setattr(swap, "rename_new", edited_first)
    disk.swap("create").roll_back()
    assert disk.has == {"live": "edit"}


@pytest.mark.parametrize("name", ["roll_forward", "roll_back"])
def test_where_a_folder_on_the_way_is_gone_nothing_moves(disk, name):
    disk.put(live="base", staged="new")
    one = disk.swap("update")
    for live, staged in ((None, one.staged), (one.live, None)):
        getattr(Swap(live, staged, one.base, one.new), name)()
    assert disk.has == {"live": "base", "staged": "new"}
    assert not Swap(None, one.staged, one.base, one.new).is_done()
    assert Swap(None, one.staged, one.base, None).is_done()


def test_what_is_neither_of_both_ends_is_known_as_perhaps_an_edit(disk):
    disk.put(staged="base", old="edit", aside="new")
    assert disk.swap("update").unknown() == [disk.places["old"]]
    assert disk.swap("create").unknown() == [disk.staged, disk.places["old"]]
    assert Swap(disk.live, None, None, None).unknown() == []


def test_names_are_made_durable_first_where_they_are_to_stay(disk):
    assert disk.swap("create").in_order == [disk.live, disk.staged]
    assert disk.swap("update").in_order == [disk.live, disk.staged]
    assert disk.swap("delete").in_order == [disk.staged, disk.live]
    assert Swap(None, disk.staged, None, "x").in_order == [disk.staged]


def test_files_are_staged_with_their_modes(disk):
    digest = swap.stage_files(disk.staged, {"SKILL.md": (b"new", False), "bin/run": (b"x", True)})
    assert digest == digest_of(disk.staged)
    root = Path(disk.staged.path)
    assert (root / "SKILL.md").stat().st_mode & 0o777 == 0o644
    assert (root / "bin" / "run").stat().st_mode & 0o777 == 0o755
    assert (root / "bin" / "run").read_bytes() == b"x"


def test_a_file_is_replaced_whole_or_not_at_all(disk, tmp_path, monkeypatch):
    place = Place(disk.live.folder, "index.json")
    swap.replace_file(place, b"one")
    swap.replace_file(place, b"two")
    path = tmp_path / "source" / "index.json"
    assert path.read_bytes() == b"two"

    def fail(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(swap, "replace", fail)
    with pytest.raises(OSError, match="No space"):
        swap.replace_file(place, b"three")
    assert [one.name for one in path.parent.iterdir()] == ["index.json"]
    assert path.read_bytes() == b"two"


def test_a_replaced_file_is_on_the_disk_before_its_name_and_the_name_at_the_end(disk, monkeypatch):
    place, steps = Place(disk.live.folder, "index.json"), []
    flush, rename = os.fsync, swap.replace

    def fsync(descriptor):
        steps.append(os.fstat(descriptor).st_ino)
        flush(descriptor)

    def replace(one, other):
        steps.append("renamed")
        rename(one, other)

    monkeypatch.setattr(os, "fsync", fsync)
    monkeypatch.setattr(swap, "replace", replace)
    swap.replace_file(place, b"one")
    file, folder = os.stat(place.path).st_ino, os.fstat(place.folder.fd).st_ino
    assert steps == [file, "renamed", folder]


@pytest.mark.parametrize("kind", ["update", "create"])
def test_only_known_content_is_cleared(disk, kind):
    disk.put(staged="new", old="base" if kind == "update" else None, aside="edit")
    disk.swap(kind).clear()
    assert disk.has == {"aside": "edit"}
    Swap(disk.live, None, None, None).clear()
    assert disk.has == {"aside": "edit"}
