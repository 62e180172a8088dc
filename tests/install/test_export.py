"""Skills are published for discovery, the same bytes for the same skills."""

import hashlib
import io
import json
import tarfile

import pytest

from registry.errors import ExportRefused
from tests.install.places import tree


@pytest.fixture
def library(registry, root, skill):
    skill("alpha", description="One file.")
    folder = skill("beta", description="Several files.")
    (folder / "bin").mkdir()
    (folder / "bin" / "run").write_text("#!/bin/sh\n")
    (folder / "bin" / "run").chmod(0o755)
    skill("Not_Allowed")
    registry.sync(str(root), name="mine")
    return registry


@pytest.mark.both
def test_the_index_names_each_skill_with_its_artifact_and_digest(library, tmp_path, root):
    done = library.export(list(library.list()), str(tmp_path / "site"))
    assert done.left_out == (
        ("Not_Allowed", "only the letters a-z, digits and hyphens are allowed"),
    )
    home = tmp_path / "site" / ".well-known" / "agent-skills"
    index = json.loads((home / "index.json").read_text())
    assert index["$schema"] == "https://schemas.agentskills.io/discovery/0.2.0/schema.json"
    assert [(one["name"], one["type"]) for one in index["skills"]] == [
        ("alpha", "skill-md"),
        ("beta", "archive"),
    ]
    for one in index["skills"]:
        data = (tmp_path / "site" / one["url"].lstrip("/")).read_bytes()
        assert one["digest"] == f"sha256:{hashlib.sha256(data).hexdigest()}"
    assert (home / "alpha" / "SKILL.md").read_bytes() == (root / "alpha" / "SKILL.md").read_bytes()
    with tarfile.open(fileobj=io.BytesIO((home / "beta.tar.gz").read_bytes())) as tar:
        members = {one.name: (one.mode, one.mtime, one.uid, one.uname) for one in tar}
        assert members == {"SKILL.md": (0o644, 0, 0, ""), "bin/run": (0o755, 0, 0, "")}
        assert tar.extractfile("bin/run").read() == b"#!/bin/sh\n"


def test_the_same_skills_give_the_same_bytes(library, tmp_path):
    skills = list(library.list())
    library.export(skills, str(tmp_path / "one"))
    library.export(skills[::-1], str(tmp_path / "two"))
    assert tree(tmp_path / "one") == tree(tmp_path / "two")


def test_of_two_skills_with_one_name_one_is_published(library, registry, skill, tmp_path):
    skill("nested/alpha")
    registry.sync()
    done = library.export(list(library.list()), str(tmp_path / "site"))
    assert ("mine/nested/alpha", "another skill has the same name") in done.left_out


def test_a_place_that_cannot_be_written_is_said(library, tmp_path):
    (tmp_path / "file").write_text("x")
    with pytest.raises(ExportRefused, match="can't be written"):
        library.export(list(library.list()), str(tmp_path / "file"))


def test_what_is_exported_can_be_imported(library, registry, root, tmp_path):
    library.export([library.resolve("beta")], str(tmp_path / "site"))
    archive = tmp_path / "site" / ".well-known" / "agent-skills" / "beta.tar.gz"
    before = library.resolve("beta").content_hash
    library.delete("beta")
    assert library.import_archive(str(archive)).content_hash == before
    assert (root / "beta" / "bin" / "run").read_text() == "#!/bin/sh\n"


def test_what_is_no_longer_published_goes_and_what_others_put_there_stays(library, tmp_path):
    site = tmp_path / "site"
    home = site / ".well-known" / "agent-skills"
    library.export(list(library.list()), str(site))
    (home / "own.txt").write_text("not ours")
    index = json.loads((home / "index.json").read_text())
    index["skills"].append({"url": "/.well-known/agent-skills/../../outside.txt"})
    (home / "index.json").write_text(json.dumps(index))
    (site / "outside.txt").write_text("stays")
    library.export([skill for skill in library.list() if skill.name == "beta"], str(site))
    assert sorted(path.name for path in home.iterdir()) == ["beta.tar.gz", "index.json", "own.txt"]
    assert (site / "outside.txt").exists()


def test_a_skill_that_can_not_be_read_is_left_out_with_the_reason(library, tmp_path, root):
    import shutil

    skills = list(library.list())
    shutil.rmtree(root / "alpha")
    done = library.export(skills, str(tmp_path / "site"))
    assert [one.name for one in done.skills] == ["beta"]
    assert "no longer on disk" in dict(done.left_out)["alpha"]
