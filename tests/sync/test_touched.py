"""Which skills an event is about: those whose own files were touched, else the whole source."""

import pytest

from registry.sync import watch
from registry.sync.watch import touched_skills


@pytest.fixture
def about(registry, root, skill):
    """Return which folders have to be read anew for events about these paths; None: all."""
    skill("alpha")
    skill("alpha/inner")
    skill("nested/beta")
    registry.sync(str(root))
    (source,) = registry.sources()

    def look(*paths):
        given = [str(root / path) for path in paths]
        return touched_skills(registry.core.reader, source, given)

    return look


def test_a_supporting_file_that_came_or_went_is_about_its_skill_alone(about, root):
    (root / "alpha" / "new.txt").write_text("")
    assert about("alpha/new.txt") == ["alpha"]
    assert about("alpha/gone.txt") == ["alpha"]
    assert about("alpha/gone/with/its/folder.txt") == ["alpha"]
    assert about("alpha/inner/x", "nested/beta/SKILL.md", "alpha/inner/y") == [
        "alpha/inner",
        "nested/beta",
    ]


def test_a_folder_or_a_link_in_a_skill_may_hold_others(about, root):
    (root / "alpha" / "folder").mkdir()
    (root / "alpha" / "link").symlink_to("SKILL.md")
    (root / "alpha" / "folder" / "skill.md").write_text("")
    for path in ("alpha/folder", "alpha/link", "alpha/folder/skill.md"):
        assert about(path) is None


def test_a_second_document_of_a_skill_is_about_that_skill(about, root):
    (root / "alpha" / "skill.md").write_text("")
    assert about("alpha/skill.md") == ["alpha"]


def test_a_document_or_a_folder_with_skills_that_went_is_about_the_source(about, root):
    for path in ("alpha/SKILL.md", "alpha/folder/SKILL.md"):
        (root / path).unlink(missing_ok=True)
        assert about(path) is None
    (root / "alpha" / "inner").rename(root.with_name("inner"))
    assert about("alpha/inner") is None


def test_what_lies_in_no_skill_is_about_the_source(about):
    assert about("nested/readme.txt") is None
    assert about("readme.txt") is None
    assert about("alpha/x", "nested/readme.txt") is None


def test_so_many_skills_are_looked_at_one_by_one_and_more_by_a_walk(about, monkeypatch):
    paths = ("alpha/x", "alpha/inner/x")
    monkeypatch.setattr(watch, "MAX_SKILLS", 2)
    assert about(*paths) == ["alpha", "alpha/inner"]
    monkeypatch.setattr(watch, "MAX_SKILLS", 1)
    assert about(*paths) is None


def test_a_skill_at_the_root_holds_what_no_other_holds(registry, root, skill):
    skill(".", name="whole")
    skill("alpha")
    registry.sync(str(root))
    (source,) = registry.sources()
    reader = registry.core.reader
    (root / "notes.txt").write_text("")
    for path, folder in (("notes.txt", "."), ("SKILL.md", "."), ("alpha/x", "alpha")):
        assert touched_skills(reader, source, [str(root / path)]) == [folder]
