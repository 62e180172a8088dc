from hypothesis import given
from hypothesis import strategies as st

from registry.db.queries.known import StoredFingerprint
from registry.disk.found import Found
from registry.disk.paths import position
from registry.sync.plan import compare, pair_moves

folders = st.lists(
    st.lists(st.sampled_from(["a", "a-b", "b", "c.d", "\u00e9"]), min_size=1, max_size=3).map(
        "/".join
    ),
    unique=True,
)


def found(folder, document="SKILL.md"):
    return Found(folder, document)


def row(folder, number=1, *, fingerprint=None, racy=0):
    return StoredFingerprint(
        position(folder), number, folder, fingerprint or found(folder).fingerprint, racy, "ok"
    )


@given(folders, folders)
def test_every_folder_comes_out_exactly_once_as_what_it_is(on_disk, stored):
    on_disk.sort(key=position)
    stored.sort(key=position)
    seen = {}
    for kind, scanned, known in compare(map(found, on_disk), map(row, stored), verify=False):
        seen[(scanned or known).folder] = kind
    expected = dict.fromkeys(stored, "gone")
    for folder in on_disk:
        expected[folder] = "same" if folder in stored else "new"
    assert seen == expected


def kinds(scanned, known, *, verify=False):
    return [difference.kind for difference in compare(scanned, known, verify=verify)]


def test_another_fingerprint_makes_a_folder_suspect():
    assert kinds([found("a")], [row("a", fingerprint="x")]) == ["suspect"]


def test_an_equal_fingerprint_taken_too_early_proves_nothing():
    assert kinds([found("a")], [row("a", racy=1)]) == ["suspect"]


def test_verify_trusts_no_fingerprint():
    assert kinds([found("a")], [row("a")], verify=True) == ["suspect"]


def test_a_move_is_a_new_folder_with_the_content_of_one_that_is_gone():
    assert pair_moves([(1, "new", "h")], [(7, "old", "h")]) == {(1, "new"): 7}
    assert pair_moves([(1, "new", "h")], [(7, "old", "other")]) == {}


def test_among_copies_the_folder_of_the_same_name_is_the_one_that_moved():
    gone = [(1, "x/one", "h"), (2, "x/two", "h")]
    assert pair_moves([(9, "y/two", "h")], gone) == {(9, "y/two"): 2}


def test_each_gone_skill_moves_to_one_place_only():
    assert len(pair_moves([(1, "a", "h"), (1, "b", "h")], [(7, "old", "h")])) == 1
