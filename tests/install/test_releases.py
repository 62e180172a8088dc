"""A version that this registry never saw is fetched from the remote of its source."""

import shutil

import pytest

from registry import SkillRegistry
from registry.errors import RemoteUnreachable, VersionNotFound
from registry.install.lockfile import read_lock
from registry.install.releases import at_label
from tests.cli.conftest import run
from tests.conftest import write_skill
from tests.remotes.conftest import SHELL, _two_skills, upstream  # fixtures
from tests.web.conftest import serving

__all__ = ["_two_skills", "upstream"]


def pull(registry, *arguments):
    return run("--db", registry.path, "pull", *arguments)


def tagged(upstream, tag, text, version=None):
    extra = "" if version is None else f"metadata:\n  version: '{version}'\n"
    front = f"name: alpha\ndescription: Sorts letters.\n{extra}"
    upstream.write("skills/alpha/SKILL.md", f"---\n{front}---\n\n{text}")
    upstream.commit()
    upstream.git("tag", tag)
    upstream.git("push", "-q", "--tags", str(upstream.url.removeprefix("file://")))


@pytest.fixture
def released(registry, upstream):
    """A source whose remote has the versions 1.0.0 and 2.0.0; only the second one was synced."""
    tagged(upstream, "v1.0.0", "One.\n", "1.0.0")
    tagged(upstream, "v2.0.0", "Two.\n", "2.0.0")
    registry.sync(upstream.url, name="team")
    return registry


@pytest.mark.parametrize("path", ["git/catalogue.git", "git/source/mine.git", ""])
def test_an_earlier_version_of_a_served_catalogue_is_pulled(mine, root, tmp_path, path):
    def release(version):
        extra = f"metadata:\n  version: '{version}'\n"
        write_skill(root / "notes", extra=extra, body=f"Text {version}.\n", age=None)
        mine.sync()

    release("1.0.0")
    release("2.0.0")
    with (
        serving(mine) as site,
        SkillRegistry.open(tmp_path / "ann.db", workdir=tmp_path) as ann,
    ):
        ann.sync(f"{site.base}/{path}", name="team")
        to = ("--to", str(tmp_path / "project"))
        done = pull(ann, "team/notes@1.0.0", *to)
        assert done.exit_code == 0, done.output
        assert "2.0.0 is available" in done.stderr
        text = (tmp_path / "project" / "notes" / "SKILL.md").read_text()
        assert text.endswith("Text 1.0.0.\n")
        entry = read_lock(to[1])["notes"]
        assert entry.pin == "1.0.0"
        assert entry.origin["url"] == f"{site.base}/git/skill/notes.git"
        assert entry.origin["ref"] == "notes/1.0.0"
        shutil.rmtree(tmp_path / "project" / "notes")
        assert pull(ann, *to).stdout.startswith("added")
        assert pull(ann, "notes", *to).stdout.startswith("updated")  # it follows the source again
        missing = pull(ann, "team/notes@9.0", *to)
        assert missing.exit_code == 1
        assert "it has 2.0.0, 1.0.0" in missing.stderr
        mine.yank_version("notes@2.0.0", reason="bad")
        ann.sync()
        other = ("--to", str(tmp_path / "other"))
        assert pull(ann, "team/notes@1.0.0", *other).exit_code == 0
        refused = pull(ann, "team/notes@2.0.0", *other)
        assert "was yanked: bad" in refused.stderr


def test_a_tag_of_a_git_repository_is_a_version(released, upstream, tmp_path):
    to = ("--to", str(tmp_path / "project"))
    done = pull(released, "team/alpha@1.0.0", *to)
    assert done.exit_code == 0, done.output
    assert (tmp_path / "project" / "alpha" / "SKILL.md").read_text().endswith("One.\n")
    commit = upstream.git("rev-parse", "v1.0.0").strip()
    origin = read_lock(to[1])["alpha"].origin
    assert origin == {
        "url": upstream.url,
        "ref": "v1.0.0",
        "commit": commit,
        "path": "skills/alpha",
    }
    assert pull(released, "--check", *to).exit_code == 0
    assert len(released.sources()) == 1


def test_a_tag_of_the_repository_is_no_version_of_a_skill_that_names_another(released, upstream):
    tagged(upstream, "v3.0.0", "Three.\n", "2.5.0")
    with pytest.raises(VersionNotFound) as raised:
        at_label(released.core, released.get("alpha"), "3.0.0")
    assert list(raised.value.facts["known"]) == ["3.0.0", "2.0.0", "1.0.0"]


def test_an_error_names_only_some_of_many_versions(released, upstream):
    for n in range(30):
        upstream.git("tag", f"alpha/0.0.{n}")
    upstream.git("push", "-q", "--tags", str(upstream.url.removeprefix("file://")))
    with pytest.raises(VersionNotFound) as raised:
        at_label(released.core, released.get("alpha"), "9.0")
    assert len(raised.value.facts["known"]) == 20


def test_a_fetched_version_with_security_errors_is_refused(registry, upstream, tmp_path):
    tagged(upstream, "v1.0.0", SHELL)
    tagged(upstream, "v2.0.0", "Harmless.\n")
    registry.sync(upstream.url, name="team")
    done = pull(registry, "team/alpha@1.0.0", "--to", str(tmp_path / "project"))
    assert done.exit_code == 1
    assert "reverse-shell" in done.stderr or "security errors" in done.stderr
    assert not (tmp_path / "project" / "alpha").exists()


def test_a_remote_that_is_away_is_reported(released, upstream):
    shutil.rmtree(upstream.url.removeprefix("file://"))
    with pytest.raises((RemoteUnreachable, VersionNotFound)):
        at_label(released.core, released.get("alpha"), "1.0.0")


def test_a_local_skill_asks_no_remote(mine, root):
    write_skill(root / "tea")
    mine.sync()
    with pytest.raises(VersionNotFound):
        at_label(mine.core, mine.get("tea"), "1.0.0")


@pytest.mark.parametrize("pin", ["", "#v1.0.0"])
def test_an_address_with_another_tag_pins_the_installed_skill_and_adds_no_source(
    registry, upstream, tmp_path, pin
):
    tagged(upstream, "v1.0.0", "One.\n")
    tagged(upstream, "v2.0.0", "Two.\n")
    tagged(upstream, "v3.0.0", "Three.\n")
    registry.sync(f"{upstream.url}{pin}", name="team")
    to = ("--to", str(tmp_path / "project"))
    done = pull(registry, f"{upstream.url}#v2.0.0", "--skill", "alpha", *to)
    assert done.exit_code == 0, done.output
    assert (tmp_path / "project" / "alpha" / "SKILL.md").read_text().endswith("Two.\n")
    assert read_lock(to[1])["alpha"].pin == "v2.0.0"
    assert [one.name for one in registry.sources()] == ["team"]
    assert pull(registry, *to).stdout.startswith("unchanged")


def test_an_address_with_a_branch_is_a_second_source_and_the_command_says_so(
    registry, upstream, tmp_path
):
    registry.sync(upstream.url, name="team")
    upstream.git("branch", "next")
    upstream.git("push", "-q", str(upstream.url.removeprefix("file://")), "next")
    to = ("--to", str(tmp_path / "project"))
    done = pull(registry, f"{upstream.url}#next", "--skill", "alpha", *to)
    assert done.exit_code == 0, done.output
    assert "is a second source of" in done.stderr
    assert "skill-registry source remove" in done.stderr
