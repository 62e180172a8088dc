"""Paths that a database, an archive or a disk may hold, and no skill brings anywhere."""

import errno
import io
import os
import tarfile

import pytest

from registry.disk.files import tree_digest
from registry.errors import ArchiveRefused, PullClash

DOCUMENT = b"---\nname: packed\ndescription: Came in a box.\n---\n\n# Packed\n"

STRANGE = {
    "dot": ".",
    "dots": "..",
    "a dot on the way": "a/./b",
    "nothing on the way": "a//b",
    "a folder": "a/",
    "outside": "a/../../b",
    "absolute": "/tmp/b",
    "below a file": "SKILL.md/x",
    "below a file, in capitals": "skill.MD/x",
    "the document in other letters": "skill.md",
    "the same in other letters": "MORE.txt",
    "the same, composed": "cafe\u0301.txt",
    "the same with what is ignored": "mo\u200cre.txt",
    "long name": "n" * 300,
    "long in bytes": "\u00e9" * 200,
    "long": "/".join(["n" * 200] * 6),
    "line feed": "a\nb",
    "escape": "a\x1b[31mb",
    "delete": "a\x7f",
    "C1": "a\x9b",
    "git": ".git/config",
    "git below": "a/b/.git/hooks/pre-commit",
    "a git file": "sub/.git",
    "GIT": ".GIT/config",
    "git and a space": ".git /config",
    "git and a dot": ".git./config",
    "git and both": ".Git . ./config",
    "git's short name": "GIT~1/config",
    "git's second short name": "git~2",
    "git as a stream": ".git::$INDEX_ALLOCATION/config",
    "git with a joiner": ".g\u200cit/config",
    "git with a mark": ".git\ufeff/config",
    "mercurial": ".HG/hgrc",
    "subversion": ".svn/wc.db",
    "ignored": "node_modules/x.js",
    "state": ".skills.skill-registry/trash/x",
}

FINE = ["a b.txt", "scripts/.gitignore", ".github/workflows/x.yml", "gitfoo", "..a", "x.git",
        "\u0646\u0645\u06cc\u200c\u062f\u0627\u0646\u0645.md", "git~", "ab:c", "caf\u00e9/caf\u00e9"]  # fmt: skip


@pytest.fixture
def abroad(registry, root, skill):
    """Two skills whose folders are, for the database, on another machine."""
    for name in ("data.bin", "more.txt", "caf\u00e9.txt"):
        (skill("alpha") / name).write_bytes(b"all of it\n")
    skill("beta")
    registry.sync(str(root), name="mine")
    write(registry, "UPDATE sources SET host = 'elsewhere'")
    return registry


def write(registry, sql, *values):
    with registry.core.writer.transaction() as connection:
        assert connection.exec_driver_sql(sql, values).rowcount > 0


def rename(registry, path, before="data.bin"):
    """Call a stored file otherwise, and make the hash over all files right again."""
    write(registry, "UPDATE skill_files SET path = ? WHERE path = ?", path, before)
    files = [(one.path, one.executable, one.hash) for one in registry.get("alpha").files]
    write(registry, "UPDATE skills SET tree_hash = ? WHERE name = 'alpha'", tree_digest(files))


def test_a_skill_with_a_strange_path_stays_where_it_is_and_the_others_come(abroad, tmp_path):
    before = "data.bin"
    for kind, path in STRANGE.items():
        rename(abroad, path, before)
        before, to = path, tmp_path / kind.replace("/", "-")
        pulled = abroad.pull(abroad.list().items, str(to / "pulled"))
        states = [(one.ref, one.state) for one in pulled]
        assert states == [("alpha", "failed"), ("beta", "added")], kind
        assert "can't be a file of a skill: " in pulled[0].reason, kind
        found = sorted(path.name for path in (to / "pulled").iterdir())
        assert found == ["beta", "skills.lock.json"], kind
        exported = abroad.export(abroad.list().items, str(to / "site"))
        assert [one.name for one in exported.skills] == ["beta"], kind
        assert dict(exported.left_out)["alpha"] == pulled[0].reason, kind


@pytest.mark.parametrize("path", FINE)
def test_an_unusual_path_is_no_strange_one(abroad, tmp_path, path):
    rename(abroad, path)
    pulled = abroad.pull(abroad.list().items, str(tmp_path / "pulled"))
    assert [one.state for one in pulled] == ["added", "added"]
    assert (tmp_path / "pulled" / "alpha" / path).read_bytes() == b"all of it\n"


IN_MORE_WORDS = {".", "a/", "a/./b", "a//b"}
"""Paths that archives may write so."""


@pytest.mark.parametrize("path", [path for path in STRANGE.values() if path not in IN_MORE_WORDS])
def test_an_archive_with_a_strange_path_is_refused(registry, root, skill, tmp_path, path):
    skill("alpha")
    registry.sync(str(root), name="mine")
    files = {"SKILL.md": DOCUMENT, "more.txt": b"", "caf\u00e9.txt": b"", path: b"x"}
    archive = tmp_path / "a.tar.gz"
    with tarfile.open(archive, "w:gz") as tar:
        for name, data in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(data)
            tar.addfile(member, io.BytesIO(data))
    with pytest.raises(ArchiveRefused):
        registry.import_archive(str(archive))
    assert [folder.name for folder in root.iterdir()] == ["alpha"]


@pytest.mark.parametrize(
    ("name", "folder"),
    [
        (".github", ".github"),
        ("n" * 300, "n" * 300),
        ("..", ".."),
        ("a\nb", "a\x7f"),
        ("\u200c.github", ".git"),
        ("CON", "nul.txt"),
        ("\u200d", "x/\u200c"),
        ("", "../.."),
    ],
)
def test_a_skill_that_no_folder_can_hold_keeps_no_other_from_coming(abroad, tmp_path, name, folder):
    write(abroad, "UPDATE skills SET name = ?, folder = ? WHERE name = 'alpha'", name, folder)
    pulled = abroad.pull(abroad.list().items, str(tmp_path / "pulled"))
    states = {one.state: one for one in pulled}
    assert set(states) == {"added", "failed"}
    assert "can be the name of a folder" in states["failed"].reason
    found = sorted(path.name for path in (tmp_path / "pulled").iterdir())
    assert found == ["beta", "skills.lock.json"]
    checked = abroad.check_pulled(str(tmp_path / "pulled"), abroad.list().items)
    assert {one.state for one in checked} == {"unchanged", "failed"}


def test_of_skills_that_would_have_one_folder_none_comes_and_all_others_do(
    registry, root, skill, tmp_path
):
    skill("one/same")
    skill("two/Same", name="Same")
    skill("alpha")
    registry.sync(str(root))
    to = tmp_path / "pulled"
    pulled = {one.ref: one for one in registry.pull(registry.list().items, str(to))}
    states = {ref: one.state for ref, one in pulled.items()}
    assert states == {"alpha": "added", "same": "failed", "Same": "failed"}
    assert "can hold only one skill" in pulled["same"].reason
    assert sorted(path.name for path in to.iterdir()) == ["alpha", "skills.lock.json"]
    both = [registry.resolve("same"), registry.resolve("Same")]
    with pytest.raises(PullClash):
        registry.pull(both, str(to))


def test_a_name_that_the_disk_does_not_take_keeps_no_other_from_coming(
    registry, root, skill, tmp_path, monkeypatch
):
    skill("beta")
    (skill("alpha") / "what?.txt").write_text("x")
    registry.sync(str(root))
    real, refused = os.open, []

    def picky(path, flags, *more, **named):
        if flags & os.O_CREAT and str(path).endswith("?.txt"):
            refused.append(path)
            raise OSError(errno.EINVAL, os.strerror(errno.EINVAL), path)
        return real(path, flags, *more, **named)

    monkeypatch.setattr(os, "open", picky)
    pulled = registry.pull(registry.list().items, str(tmp_path / "to"))
    assert refused
    assert [(one.ref, one.state) for one in pulled] == [("alpha", "failed"), ("beta", "added")]
    assert "Invalid argument" in pulled[0].reason


def test_a_folder_deeper_than_a_path_can_say_is_pulled_into_by_its_handle(
    registry, root, skill, tmp_path
):
    skill("alpha")
    to = tmp_path.joinpath(*["deep" * 50] * 19)
    while len(str(to)) < 4096 - 80:
        to = to / ("n" * min(200, 4096 - 80 - len(str(to))))
    (root / "alpha" / ("long" * 30)).write_text("x")
    registry.sync(str(root))
    (pulled,) = registry.pull(registry.list().items, str(to))
    assert (pulled.ref, pulled.state) == ("alpha", "added")
    assert len(f"{pulled.path}/{'long' * 30}") > 4096


def test_a_sync_keeps_a_skill_with_a_strange_path_and_says_that_it_cannot_leave(
    registry, root, skill, tmp_path
):
    (skill("alpha") / ".GIT").mkdir()
    (root / "alpha" / ".GIT" / "config").write_text("[core]")
    (skill("beta") / "a\nb").write_text("x")
    registry.sync(str(root))
    for name, path in (("alpha", ".GIT/config"), ("beta", "a\nb")):
        found = registry.get(name)
        assert found.status == "warning"
        finding = next(one for one in found.diagnostics if one.code == "path-unsafe")
        assert (finding.path, finding.severity) == (path, "warning")
    pulled = registry.pull(registry.list().items, str(tmp_path / "pulled"))
    assert {one.state for one in pulled} == {"failed"}


def test_the_git_file_of_a_submodule_belongs_to_no_skill(registry, root, skill, tmp_path):
    (skill("alpha") / ".git").write_text("gitdir: ../.git/modules/alpha\n")
    registry.sync(str(root))
    assert registry.get("alpha").status == "ok"
    assert [one.path for one in registry.get("alpha").files] == ["SKILL.md"]
    registry.pull(registry.list().items, str(tmp_path / "pulled"))
    assert not (tmp_path / "pulled" / "alpha" / ".git").exists()
    registry.update("alpha", description="New.")
    assert (root / "alpha" / ".git").exists()


def test_the_command_brings_the_others_and_fails(abroad, tmp_path, monkeypatch, capfd):
    from registry.cli.app import root as program

    rename(abroad, "SKILL.md/x")
    monkeypatch.setenv("SKILL_REGISTRY_DB", str(abroad.path))
    with pytest.raises(SystemExit) as end:
        program.main(["pull", "--all", "--to", str(tmp_path / "pulled")], "skill-registry")
    assert end.value.code == 1
    assert (
        "alpha was not installed: 'SKILL.md/x' can't be a file of a skill" in capfd.readouterr().err
    )
    assert (tmp_path / "pulled" / "beta" / "SKILL.md").exists()
