"""What the disk does not give out proves nothing: a skill stays as it was, and no copy lacks it."""

import errno
import json
import os
import shutil

import pytest

from registry.api import SkillRegistry
from registry.errors import SkillInaccessible
from registry.settings import Settings
from tests import program
from tests.conftest import OLD, write_skill
from tests.refusing import refuse

CLOSED = {
    "a folder": "ref",
    "a folder in a folder": "ref/deep",
    "a file": "ref/deep/notes.md",
    "a file beside the document": "data.txt",
}


SOME = ["a folder", "a file"]


@pytest.fixture
def alpha(registry, root):
    """A skill with parts, beside another one, both synced."""
    folder = write_skill(root / "alpha")
    (folder / "ref" / "deep").mkdir(parents=True)
    for path in ("ref/deep/notes.md", "ref/more.md", "data.txt"):
        (folder / path).write_text(path)
        os.utime(folder / path, (OLD, OLD))
    write_skill(root / "beta")
    registry.sync(str(root), name="mine")
    yield folder
    for path in CLOSED.values():
        if os.path.lexists(folder / path):
            (folder / path).chmod(0o755)


@pytest.fixture
def run(database):
    """Run the program where permissions hold, and return its status, answer and complaints."""

    def call(*arguments):
        ran = program.run(
            ["--db", str(database), *arguments],
            environ=os.environ,
            before=program.without_rights if os.geteuid() == 0 else None,
        )
        assert "Internal error" not in ran.err
        assert "Traceback" not in ran.err
        return ran

    return call


def known(registry):
    """Return what the database has of alpha: its row and its files."""
    rows = registry.core.reader.rows
    columns = "s.id, s.tree_hash, s.content_hash, s.file_count, s.status, s.fingerprint"
    return rows(
        f"SELECT {columns}, f.path, f.hash, f.size FROM skills s "
        "JOIN skill_files f ON f.skill_id = s.id WHERE s.live = 1 AND s.folder = 'alpha' "
        "ORDER BY f.path"
    )


def unreadable(registry):
    """Return the paths of alpha that the database knows to be closed."""
    sql = (
        "SELECT path FROM diagnostics WHERE skill_id IS NOT NULL AND code = 'unreadable' "
        "AND folder = 'alpha' ORDER BY path"
    )
    return [path for (path,) in registry.core.reader.rows(sql)]


@pytest.mark.parametrize("part", CLOSED)
def test_what_was_known_of_a_skill_stays_and_a_finding_says_why(registry, alpha, run, part):
    before = known(registry)
    assert len(before) == 4
    (alpha / CLOSED[part]).chmod(0)
    write_skill(alpha, description="Newer.", age=OLD + 5)
    for arguments in (["sync"], ["sync", "--verify"], ["sync"]):
        done = run(*arguments, "--json")
        assert done.status == 0, done.err
        (source,) = json.loads(done.out)["sources"]
        said = [one for one in source["notices"] if one["code"] == "unreadable"]
        assert len(said) == 1
        assert said[0]["folder"].startswith("alpha")
        assert "Permission denied" in said[0]["message"]
        assert known(registry) == before
        assert unreadable(registry) == [CLOSED[part]]
    if part.startswith("a folder"):
        assert "Permission denied" in run("why", "mine/alpha").out
    (alpha / CLOSED[part]).chmod(0o755)
    assert registry.sync().updated == ("alpha",)
    assert unreadable(registry) == []
    assert registry.get("alpha").description == "Newer."
    assert len(known(registry)) == 4


@pytest.mark.parametrize("part", SOME)
def test_reading_gives_the_newest_text_and_says_what_is_closed(registry, alpha, run, part):
    before = known(registry)
    (alpha / CLOSED[part]).chmod(0)
    write_skill(alpha, description="Newer.", age=OLD + 5)
    assert "description: Newer." in run("show", "alpha", "--raw").out
    shown = json.loads(run("show", "alpha", "--json").out)
    assert shown["description"] == "Newer."
    assert [one["path"] for one in shown["diagnostics"] if one["code"] == "unreadable"] == [
        CLOSED[part]
    ]
    assert len(shown["files"]) == 4
    assert known(registry) == before


@pytest.mark.parametrize("synced", [False, True])
@pytest.mark.parametrize("part", SOME)
def test_a_copy_is_whole_or_refused_by_name_and_the_others_still_come(
    registry, alpha, run, tmp_path, part, synced
):
    to, site = tmp_path / "to", tmp_path / "site"
    assert run("pull", "--all", "--to", str(to)).status == 0
    assert run("export", "--all", "--well-known", str(site)).status == 0
    whole = sorted(str(path.relative_to(to)) for path in to.rglob("*"))
    (alpha / CLOSED[part]).chmod(0)
    write_skill(alpha, description="Newer.", age=OLD + 5)
    write_skill(alpha.parent / "beta", description="Newer, too.", age=OLD + 5)
    if synced:
        assert run("sync").status == 0
    for command in (
        ["pull", "--all", "--to", str(to)],
        ["export", "--all", "--well-known", str(site)],
    ):
        done = run(*command)
        assert done.status == 1
        assert str(alpha / CLOSED[part]) in " ".join((done.out + done.err).split())
        assert "Permission denied" in done.out + done.err
    assert sorted(str(path.relative_to(to)) for path in to.rglob("*")) == whole
    assert "Does one thing well." in (to / "alpha" / "SKILL.md").read_text()
    assert "Newer, too." in (to / "beta" / "SKILL.md").read_text()
    states = json.loads(run("pull", "--check", "--to", str(to), "--json").out)
    assert {one["ref"]: one["state"] for one in states} == {
        "alpha": "unchanged",
        "beta": "unchanged",
    }


@pytest.mark.parametrize("part", SOME)
def test_a_new_skill_that_is_not_whole_is_listed_with_its_finding_and_never_copied(
    registry, root, alpha, run, tmp_path, part
):
    shutil.move(alpha, alpha.parent.parent / "aside")
    registry.sync(allow_prune=True)
    shutil.move(alpha.parent.parent / "aside", alpha)
    (alpha / CLOSED[part]).chmod(0)
    assert run("sync").status == 0
    assert unreadable(registry) == [CLOSED[part]]
    found = registry.resolve("alpha")
    assert (found.status, found.tree_hash) == ("warning", None)
    done = run("pull", "alpha", "--to", str(tmp_path / "to"))
    assert done.status == 1
    assert str(alpha / CLOSED[part]) in " ".join((done.out + done.err).split())
    assert not (tmp_path / "to" / "alpha").exists()
    (alpha / CLOSED[part]).chmod(0o755)
    assert registry.sync().updated == ("alpha",)
    assert registry.resolve("alpha").status == "ok"
    assert run("pull", "alpha", "--to", str(tmp_path / "to")).status == 0


@pytest.mark.parametrize("force", [[], ["--force"]])
@pytest.mark.parametrize("part", SOME)
def test_a_skill_that_is_not_whole_is_not_changed(registry, alpha, run, part, force):
    before, text = known(registry), (alpha / "SKILL.md").read_bytes()
    (alpha / CLOSED[part]).chmod(0)
    done = run("update", "alpha", "--description", "Changed.", *force)
    assert done.status == 1
    assert "Permission denied" in done.err
    assert (alpha / "SKILL.md").read_bytes() == text
    assert known(registry) == before
    assert registry.core.reader.rows("SELECT count(*) FROM journal") == [(0,)]


def test_a_category_that_is_half_closed_is_not_called_empty(registry, root, run):
    write_skill(root / "group" / "inner" / "alpha")
    registry.sync(str(root))
    (root / "group" / "inner").chmod(0)
    assert run("sync").status == 0
    (root / "group" / "inner").chmod(0o755)
    rows = registry.core.reader.rows("SELECT folder, status FROM skills WHERE live = 1")
    assert rows == [("group/inner/alpha", "ok")]


@pytest.mark.both
@pytest.mark.parametrize("call", ["scandir", "open"])
def test_a_disk_that_fails_proves_nothing(registry, alpha, database, monkeypatch, tmp_path, call):
    before = known(registry)
    place = {"scandir": "ref", "open": "ref/deep/notes.md"}[call]
    os.utime(alpha / "ref" / "deep" / "notes.md", (OLD + 9, OLD + 9))
    with monkeypatch.context() as patch:
        error = OSError(errno.EIO, os.strerror(errno.EIO))
        refused = refuse(patch, alpha / place, error, call)
        for verify in (False, True):
            report = registry.sync(verify=verify)
            assert (report.updated, report.removed, report.unchanged) == ((), (), 2)
            assert "Input/output error" in str(report.sources[0].notices)
            assert known(registry) == before
        (pulled,) = registry.pull([registry.resolve("alpha")], str(tmp_path / "to"))
        assert pulled.state == "failed"
        assert f"{alpha / place}" in pulled.reason
        with pytest.raises(SkillInaccessible, match="Input/output error"):
            registry.update("alpha", description="Changed.")
        assert refused
    with SkillRegistry.open(database, settings=Settings()) as again:
        assert again.sync().updated == ("alpha",)
        assert unreadable(again) == []
