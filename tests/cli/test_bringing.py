"""`import` of what holds several skills."""

import json
import tarfile

from tests.conftest import write_skill


def test_the_command_says_how_to_choose_and_answers_with_a_list(root, tmp_path, cli):
    cli("sync", str(root), "--name", "mine")
    for name in ("alpha", "beta"):
        write_skill(tmp_path / "repo" / "skills" / name)
    tarball = tmp_path / "repo.tar.gz"
    with tarfile.open(tarball, "w:gz") as tar:
        tar.add(tmp_path / "repo", arcname="repo-main")
    refused = cli("import", str(tarball))
    assert refused.exit_code == 1
    assert "holds 2 skills: alpha, beta. Choose with --skill NAME" in refused.stderr
    done = cli("import", str(tarball), "--skill", "alpha", "--skill", "beta", "--json")
    assert [one["name"] for one in json.loads(done.stdout)] == ["alpha", "beta"]
    assert cli("import", str(tarball), "--all", "--skill", "alpha").exit_code == 2
