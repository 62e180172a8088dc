"""How a skill differs from what it comes from."""

import subprocess

import pytest

from registry.errors import NoUpstream
from tests.conftest import write_skill


def git(home, *arguments):
    identity = ("-c", "user.name=a", "-c", "user.email=a@example.org")
    subprocess.run(["git", "-C", str(home), *identity, *arguments], check=True)


@pytest.fixture
def upstream(tmp_path):
    home = tmp_path / "upstream"
    write_skill(home / "skills" / "notes", body="One.\n")
    write_skill(home / "skills" / "other")
    git(home, "init", "-q", "-b", "main")
    git(home, "add", "-A")
    git(home, "commit", "-qm", "one")
    return home


@pytest.fixture
def library(registry, upstream):
    registry.sync(f"file://{upstream}", name="theirs")
    return registry


def test_what_the_next_sync_would_bring_is_shown_and_not_brought(library, upstream):
    assert library.diff_upstream("notes") == ""
    write_skill(upstream / "skills" / "notes", body="Two now.\n")
    (upstream / "skills" / "notes" / "logo.png").write_bytes(bytes(range(256)))
    (upstream / "README.md").write_text("Of no skill.\n")
    git(upstream, "add", "-A")
    git(upstream, "commit", "-qm", "two")
    shown = library.diff_upstream("notes")
    assert "-One.\n+Two now.\n" in shown
    assert "--- SKILL.md (here)\n+++ SKILL.md (upstream)\n" in shown
    assert "Binary files logo.png of here and upstream differ\n" in shown
    assert "README" not in shown
    assert library.diff_upstream("other") == ""
    assert "One." in library.read("notes")
    library.sync()
    assert "Two now." in library.read("notes")
    assert library.diff_upstream("notes") == ""


def test_of_a_copy_of_ones_own_it_shows_what_the_original_has_instead(library, root, skill):
    skill("notes", body="Mine.\n")
    skill("lonely")
    library.sync(str(root), name="mine")
    shown = library.diff_upstream("notes")
    assert "-Mine.\n+One.\n" in shown
    assert "--- SKILL.md (here)\n+++ SKILL.md (theirs/notes)\n" in shown
    with pytest.raises(NoUpstream, match="'lonely' can't be compared with upstream: no"):
        library.diff_upstream("lonely")


def test_statistics_count_what_comes_from_elsewhere(library, upstream):
    assert library.stats().by_origin == {f"file://{upstream}": 2}
