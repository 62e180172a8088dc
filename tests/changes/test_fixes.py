"""Skill files are mended where they lie: as it was shown, or not at all, and to be undone."""

import os

import pytest

from registry.changes import fix as fixing
from registry.disk import atomic
from registry.errors import ChangeRefused, FindingUnknown, SkillChangedOnDisk
from tests.conftest import write_skill

BROKEN = "---\nname: Green Tea\ndescription: Use for: tea\nlicense:  MIT\n---\n\n# Tea  \n"
GOOD = '---\nname: green-tea\ndescription: "Use for: tea"\nlicense:  MIT\n---\n\n# Tea  \n'
CODES = {"name-characters", "name-differs-from-folder", "name-upper-case", "yaml-colon"}


@pytest.fixture
def tea(root):
    """A skill that can be mended, with a supporting file; the path of its SKILL.md."""
    folder = write_skill(root / "green-tea")
    (folder / "notes.txt").write_text("Pour.")
    document = folder / "SKILL.md"
    document.write_bytes(BROKEN.encode())
    document.chmod(0o640)
    return document


def test_what_is_shown_is_done_and_nothing_else(registry, root, tea):
    [fix] = registry.fixes([str(root)])
    assert (fix.name, fix.path, set(fix.codes)) == ("Green Tea", str(tea), CODES)
    assert tea.read_bytes() == BROKEN.encode()
    assert [line for line in fix.diff.splitlines() if line[0] in "+-"] == [
        f"--- {tea}",
        f"+++ {tea}",
        "-name: Green Tea",
        "-description: Use for: tea",
        "+name: green-tea",
        '+description: "Use for: tea"',
    ]
    registry.fix(fix)
    assert tea.read_bytes() == GOOD.encode()
    assert tea.stat().st_mode & 0o777 == 0o640
    assert sorted(os.listdir(tea.parent)) == ["SKILL.md", "notes.txt"]
    assert registry.fixes([str(root)]) == []


@pytest.mark.both
def test_of_a_registered_skill_it_is_a_change_that_can_be_undone(registry, root, tea):
    registry.sync(str(root), name="mine")
    [fix] = registry.fixes()
    registry.fix(fix)
    assert tea.read_bytes() == GOOD.encode()
    assert registry.get("mine/green-tea").description == "Use for: tea"
    assert [one.name for one in registry.list()] == ["green-tea"]
    assert (registry.sync().updated, registry.fixes()) == ((), [])
    assert len(registry.history("green-tea")) == 2
    registry.restore_revision("green-tea", 1)
    assert tea.read_bytes() == BROKEN.encode()
    assert tea.stat().st_mode & 0o777 == 0o640


def test_a_registered_skill_is_one_however_it_is_reached(registry, root, tea):
    registry.sync(str(root), name="mine")
    [fix] = registry.fixes([str(root.parent)])
    registry.fix(fix)
    assert tea.read_bytes() == GOOD.encode()
    assert len(registry.history("mine/green-tea")) == 2
    assert registry.sync().updated == ()


def test_bytes_that_are_no_text_of_the_skill_come_back_too(registry, root, tea):
    tea.write_bytes(b"\xef\xbb\xbf" + GOOD.encode())
    registry.sync(str(root), name="mine")
    [fix] = registry.fixes()
    assert fix.codes == ("byte-order-mark",)
    registry.fix(fix)
    assert tea.read_bytes() == GOOD.encode()
    registry.restore_revision("green-tea", 1)
    assert tea.read_bytes() == b"\xef\xbb\xbf" + GOOD.encode()


def test_an_edit_made_since_the_last_sync_is_mended_with_it(registry, root, tea):
    registry.sync(str(root), name="mine")
    tea.write_bytes(BROKEN.encode() + b"One more line.\n")
    [fix] = registry.fixes()
    registry.fix(fix)
    assert tea.read_bytes() == GOOD.encode() + b"One more line.\n"


@pytest.mark.parametrize("registered", [False, True])
def test_a_file_that_changed_since_it_was_shown_is_left_alone(registry, root, tea, registered):
    if registered:
        registry.sync(str(root), name="mine")
    [fix] = registry.fixes([str(root)])
    tea.write_bytes(b"Something else.\n")
    with pytest.raises(SkillChangedOnDisk):
        registry.fix(fix)
    assert tea.read_bytes() == b"Something else.\n"
    assert sorted(os.listdir(tea.parent)) == ["SKILL.md", "notes.txt"]


@pytest.mark.parametrize("exchanging", [True, False])
@pytest.mark.parametrize("anew", [True, False])
def test_an_edit_in_the_last_moment_stays(registry, root, tea, monkeypatch, exchanging, anew):
    [fix] = registry.fixes([str(root)])
    edited, write = [], fixing.write_file

    def edit_and_write(*arguments, **named):
        write(*arguments, **named)
        if anew:  # as most editors do
            (tea.parent / "new").write_bytes(b"Edited.\n")
            os.replace(tea.parent / "new", tea)
        else:
            tea.write_bytes(b"Edited.\n")
        edited.append(True)

    monkeypatch.setattr(fixing, "write_file", edit_and_write)
    if not exchanging:
        monkeypatch.setattr(atomic, "renameat2", lambda: None)
    with pytest.raises(SkillChangedOnDisk):
        registry.fix(fix)
    assert edited
    assert tea.read_bytes() == b"Edited.\n"
    assert sorted(os.listdir(tea.parent)) == ["SKILL.md", "notes.txt"]


def test_without_an_exchange_of_names_it_is_mended_as_well(registry, root, tea, monkeypatch):
    asked = []
    monkeypatch.setattr(atomic, "renameat2", lambda: asked.append(True))
    [fix] = registry.fixes([str(root)])
    registry.fix(fix)
    assert asked
    assert tea.read_bytes() == GOOD.encode()
    assert sorted(os.listdir(tea.parent)) == ["SKILL.md", "notes.txt"]


def test_a_folder_that_became_a_link_leads_nowhere(registry, root, tea, tmp_path):
    [fix] = registry.fixes([str(root)])
    other = write_skill(tmp_path / "private" / "green-tea")
    (other / "SKILL.md").write_bytes(BROKEN.encode())
    os.rename(tea.parent, root / "moved")
    os.symlink(other, tea.parent)
    with pytest.raises(ChangeRefused):
        registry.fix(fix)
    assert (other / "SKILL.md").read_bytes() == BROKEN.encode()
    assert os.listdir(other) == ["SKILL.md"]


def _shown(registry, root, tea):
    """Return the fix as it was shown when the document was a file, which is a link now."""
    link = os.readlink(tea)
    tea.unlink()
    tea.write_bytes(BROKEN.encode())
    found = registry.fixes([str(root)])
    tea.unlink()
    tea.symlink_to(link)
    return found


def test_a_document_that_is_a_link_is_not_replaced(registry, root, tea):
    (tea.parent / "real.md").write_bytes(BROKEN.encode())
    tea.unlink()
    tea.symlink_to("real.md")
    assert registry.fixes([str(root)]) == []
    [fix] = _shown(registry, root, tea)
    with pytest.raises(ChangeRefused):
        registry.fix(fix)
    assert tea.is_symlink()
    assert (tea.parent / "real.md").read_bytes() == BROKEN.encode()


def test_a_folder_that_may_not_be_written_is_refused(registry, root, tea):
    if os.geteuid() == 0:
        pytest.skip("root may write everywhere")
    [fix] = registry.fixes([str(root)])
    tea.parent.chmod(0o555)
    try:
        with pytest.raises(ChangeRefused):
            registry.fix(fix)
    finally:
        tea.parent.chmod(0o755)
    assert tea.read_bytes() == BROKEN.encode()


def test_only_what_is_selected_is_mended(registry, root, tea):
    [fix] = registry.fixes([str(root)], select=["yaml-"])
    assert fix.codes == ("yaml-colon",)
    [fix] = registry.fixes([str(root)], ignore=["yaml-colon"])
    assert set(fix.codes) == CODES - {"yaml-colon"}
    assert registry.fixes([str(root)], select=["secret"]) == []
    with pytest.raises(FindingUnknown):
        registry.fixes([str(root)], select=["secrets-"])
