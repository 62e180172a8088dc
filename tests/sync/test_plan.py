from hypothesis import given
from hypothesis import strategies as st

from registry.db.read.skills import RemovedSkill, StoredFingerprint
from registry.disk.paths import position
from registry.disk.walk import ScannedFolder
from registry.sync.plan import compare, pair_moves
from registry.sync.reading import stamp

folders = st.lists(
    st.lists(st.sampled_from(["a", "a-b", "b", "c.d", "\u00e9"]), min_size=1, max_size=3).map(
        "/".join
    ),
    unique=True,
)


def found(folder, document="SKILL.md"):
    return ScannedFolder(folder, document)


def row(folder, number=1, *, fingerprint=None, racy=0):
    return StoredFingerprint(
        position(folder), number, folder, fingerprint or stamp(found(folder)), racy, "ok"
    )


def kind(difference):
    if difference.known is None:
        return "new"
    if difference.found is None:
        return "gone"
    return "same" if difference.same else "suspect"


@given(folders, folders)
def test_every_folder_comes_out_exactly_once_as_what_it_is(on_disk, stored):
    on_disk.sort(key=position)
    stored.sort(key=position)
    seen = {}
    for one in compare(map(found, on_disk), map(row, stored), verify=False):
        folder = (one.found or one.known).folder
        assert folder not in seen
        seen[folder] = kind(one)
    expected = dict.fromkeys(stored, "gone")
    for folder in on_disk:
        expected[folder] = "same" if folder in stored else "new"
    assert seen == expected


def kinds(scanned, known, *, verify=False):
    return list(map(kind, compare(scanned, known, verify=verify)))


def test_another_fingerprint_makes_a_folder_suspect():
    assert kinds([found("a")], [row("a", fingerprint="x")]) == ["suspect"]


def test_an_equal_fingerprint_taken_too_early_proves_nothing():
    assert kinds([found("a")], [row("a", racy=1)]) == ["suspect"]


def test_verify_trusts_no_fingerprint():
    assert kinds([found("a")], [row("a")], verify=True) == ["suspect"]


def gone(number, folder, tree_hash="h"):
    return RemovedSkill(number, folder, folder, folder, tree_hash, 1, 1)


def test_a_move_is_a_new_folder_with_the_content_of_one_that_is_gone():
    old = gone(7, "old")
    assert pair_moves([(1, "new", "h")], [old]) == {(1, "new"): old}
    assert pair_moves([(1, "new", "h")], [gone(7, "old", "other")]) == {}
    assert pair_moves([(1, "new", "h")], [gone(7, "old", None)]) == {}


def test_among_copies_the_folder_of_the_same_name_is_the_one_that_moved():
    one, two = gone(1, "x/one"), gone(2, "x/two")
    assert pair_moves([(9, "y/two", "h")], [one, two]) == {(9, "y/two"): two}


def test_each_gone_skill_moves_to_one_place_only():
    assert len(pair_moves([(1, "a", "h"), (1, "b", "h")], [gone(7, "old")])) == 1
