"""What the model of a power cut lets happen, and what not."""

import itertools
import random

import pytest

from tests.powerloss.model import SECTOR, History
from tests.powerloss.recorder import Call
from tests.powerloss.states import Cut, all_states, states_without
from tests.powerloss.tree import File, Folder, read_tree, write_tree

BASE = "/base"
OLD = File(b"old", 0o644)
DIR = Folder(0o755)


def call(kind, path, other="", **more):
    if kind == "mkdir":
        more["number"] = 0o755
    return Call(kind, f"{BASE}/{path}".rstrip("/"), other and f"{BASE}/{other}", **more)


def after(start, *calls, without=()):
    """Return all trees that the model tries when the power goes after the last call."""
    history = History(BASE, start, calls, without)
    cut, chance = Cut(history, len(calls)), random.Random(1)
    states = itertools.chain(cut.telling(), (cut.by_chance(chance) for _ in range(300)))
    return [state.tree() for state in states]


def contents(trees, path):
    return {tree[path].data for tree in trees if path in tree}


def test_what_was_not_synced_arrives_or_not_or_as_zeros_or_in_part():
    trees = after({"f": OLD}, call("write", "f", number=3, data=b"ab"))
    assert {b"old", b"oldab", b"old\0\0", b"olda\0"} <= contents(trees, "f")


def test_what_was_synced_has_arrived():
    trees = after({"f": OLD}, call("write", "f", number=3, data=b"ab"), call("fdatasync", "f"))
    assert contents(trees, "f") == {b"oldab"}


def test_what_was_written_after_the_sync_may_be_lost():
    trees = after(
        {"f": OLD},
        call("write", "f", data=b"1"),
        call("fsync", "f"),
        call("write", "f", number=1, data=b"2"),
    )
    assert contents(trees, "f") >= {b"1ld", b"12d"}
    assert all(data.startswith(b"1") for data in contents(trees, "f"))


def test_of_several_writes_any_may_arrive_alone():
    writes = [call("write", "f", number=number, data=b"x") for number in range(3)]
    found = contents(after({"f": OLD}, *writes), "f")
    assert found == {bytes(each) for each in itertools.product(b"ox", b"lx", b"dx")}


def test_a_long_write_arrives_by_sectors():
    size = 3 * SECTOR
    start = {"f": File(b"0" * size, 0o644)}
    found = contents(after(start, call("write", "f", data=b"1" * size)), "f")
    middle = b"0" * SECTOR + b"1" * SECTOR + b"0" * SECTOR
    assert middle in found


def test_a_truncation_that_was_not_synced_may_be_lost():
    trees = after({"f": OLD}, call("truncate", "f"), call("write", "f", data=b"n"))
    assert {b"old", b"", b"n", b"nld"} <= contents(trees, "f")


@pytest.mark.parametrize("start", [{"f": OLD}, {"f": Folder(0o644)}], ids=["file", "folder"])
@pytest.mark.parametrize(("sync", "modes"), [("fsync", {0o755}), ("fdatasync", {0o644, 0o755})])
def test_a_mode_is_durable_by_fsync_alone(start, sync, modes):
    trees = after(start, call("chmod", "f", number=0o755), call(sync, "f"))
    assert {tree["f"].mode for tree in trees} == modes


def test_the_sync_of_a_new_file_does_not_make_its_name_durable():
    made = [call("create", "f"), call("write", "f", data=b"1"), call("fsync", "f")]
    assert {"f" in tree for tree in after({}, *made)} == {True, False}
    assert {"f" in tree for tree in after({}, *made, call("fsync", ""))} == {True}


def test_names_in_one_folder_arrive_in_their_order():
    trees = after({}, call("mkdir", "a"), call("mkdir", "b"))
    assert {frozenset(tree) for tree in trees} == {frozenset(), frozenset("a"), frozenset("ab")}


def test_names_in_different_folders_arrive_in_any_order():
    trees = after({"a": DIR, "b": DIR}, call("mkdir", "a/1"), call("mkdir", "b/2"))
    found = {frozenset(tree) - {"a", "b"} for tree in trees}
    assert found == {frozenset(), frozenset({"a/1"}), frozenset({"b/2"}), frozenset({"a/1", "b/2"})}


@pytest.mark.parametrize("synced", ["a", "b", None])
def test_a_rename_arrives_in_both_folders_or_in_neither(synced):
    calls = [call("rename", "a/f", "b/g"), *([call("fsync", synced)] if synced else [])]
    trees = after({"a": DIR, "a/f": OLD, "b": DIR}, *calls)
    found = {frozenset(tree) - {"a", "b"} for tree in trees}
    assert found == {frozenset({"b/g"}), *([] if synced else [frozenset({"a/f"})])}


def test_a_rename_needs_what_happened_in_both_folders_before():
    trees = after(
        {"a": DIR, "b": DIR, "b/f": OLD},
        call("unlink", "b/f"),
        call("mkdir", "a/f"),
        call("rename", "a/f", "b/f"),
        call("fsync", "a"),
    )
    assert trees
    assert all(tree == {"a": DIR, "b": DIR, "b/f": DIR} for tree in trees)


def test_an_exchange_swaps_both_or_neither():
    trees = after({"a": OLD, "b": DIR, "b/c": DIR}, call("exchange", "a", "b/c"))
    before, swapped = {"a": OLD, "b": DIR, "b/c": DIR}, {"a": DIR, "b": DIR, "b/c": OLD}
    assert all(tree in (before, swapped) for tree in trees)
    assert before in trees
    assert swapped in trees


def test_a_folder_whose_name_is_lost_takes_all_in_it_along():
    calls = [call("mkdir", "a"), call("create", "a/f"), call("fsync", "a/f"), call("fsync", "a")]
    assert {frozenset(tree) for tree in after({}, *calls)} == {frozenset(), frozenset({"a", "a/f"})}


def test_a_sync_of_everything_makes_all_durable():
    calls = [
        call("create", "f"),
        call("write", "f", data=b"1"),
        call("mkdir", "a"),
        call("sync", ""),
    ]
    assert {tuple(sorted(tree)) for tree in after({}, *calls)} == {("a", "f")}


def test_a_sync_that_is_left_out_makes_nothing_durable():
    calls = [call("write", "f", data=b"new"), call("fsync", "f")]
    assert contents(after({"f": OLD}, *calls), "f") == {b"new"}
    assert b"old" in contents(after({"f": OLD}, *calls, without={1}), "f")
    without = states_without(History(BASE, {"f": OLD}, calls), {1})
    assert b"old" in contents([state.tree() for state in without], "f")


def test_what_was_acknowledged_before_the_cut_is_known():
    history = History(BASE, {}, [call("mkdir", "a"), call("done", ""), call("mkdir", "b")])
    assert {(state.cut, state.acknowledged) for state in all_states(history)} == {
        (0, 0),
        (1, 0),
        (2, 1),
        (3, 1),
    }


def test_a_state_says_what_was_lost():
    calls = [call("mkdir", "a"), call("create", "f"), call("write", "f", data=b"1")]
    cut = Cut(History(BASE, {}, calls), 3)
    state = cut.state(frozenset({0}), {})
    assert state.describe().splitlines() == [
        "cut after write /base/f 1 bytes at 0",
        "  lost: create /base/f",
        "  lost: write /base/f 1 bytes at 0",
    ]
    assert state.lost == 2
    assert state.ordered


def test_a_tree_is_written_as_it_was_read(tmp_path):
    tree = {"a": DIR, "a/f": File(b"1", 0o755), "a/s": "f", "b": DIR}
    (tmp_path / "base").mkdir()
    write_tree(str(tmp_path / "base"), tree)
    assert read_tree(str(tmp_path / "base")) == tree
