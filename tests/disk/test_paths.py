from hypothesis import given
from hypothesis import strategies as st

from registry.disk.paths import (
    called_on_disk,
    entry_order,
    is_ignored,
    is_safe_relative,
    position,
    storable,
)

names = st.text(
    st.characters(exclude_characters="/\0", exclude_categories=["Cs"]), min_size=1
).filter(lambda name: name not in {".", ".."})
raw = st.text(st.sampled_from("\udcff\udce9\\x5cf9é"), min_size=1)
control = st.text(st.sampled_from("a-\x01\x02\x03 .b"), min_size=1, max_size=3)


def test_children_come_before_their_parent_and_before_its_longer_namesakes():
    folders = [".", "a", "a-b", "a/b", "a/b/c", "ab"]
    assert sorted(folders, key=position) == ["a/b/c", "a/b", "a", "a-b", "ab", "."]


@given(st.lists(names | raw, min_size=2, max_size=2, unique=True), st.lists(names, max_size=2))
def test_the_order_of_entries_is_the_order_of_everything_below_them(pair, below):
    first, second = sorted(pair, key=entry_order)
    if entry_order(first) != entry_order(second):
        inside, alone = storable("/".join([first, *below])), storable(first)
        assert position(inside) < position(storable(second))
        assert position(alone) < position(storable("/".join([second, *below])))


def test_bytes_that_are_no_utf8_are_stored_as_escapes():
    assert storable("caf\udce9") == "caf\\xe9"


@given(raw)
def test_each_path_is_stored_as_one_that_leads_back_to_it(path):
    assert called_on_disk(storable(path)) == path


def test_only_the_folders_of_tools_are_ignored():
    assert is_ignored(".git")
    assert is_ignored(".skills.skill-registry")
    assert not is_ignored(".claude")
    assert not is_ignored("my.skill-registry")


def test_paths_that_could_lead_outside_are_refused():
    bad = ["", "/etc/passwd", "../x", "a/../../x", "a\\b", "C:x", "a\0b"]
    assert not any(map(is_safe_relative, bad))
    assert all(map(is_safe_relative, ["a", "a/b.md", "..a", "scripts/run.py"]))
