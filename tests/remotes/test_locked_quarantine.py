"""A lock is no way around quarantine: files from its addresses are scanned as a sync scans them."""

import json
import shlex
import shutil
from functools import partial

import pytest

from registry.api import SkillRegistry
from registry.errors import LockNotMet
from registry.install.pull import restore_from_lock
from registry.install.targets import InstallOptions, InstallTarget
from registry.settings import Settings
from tests.cli.conftest import run
from tests.conftest import write_skill
from tests.remotes.conftest import SHELL
from tests.remotes.upstream import document

OFFLINE = InstallOptions(offline=True)


@pytest.fixture
def locked(registry, evil, tmp_path):
    """A folder with the lock of a project whose author trusted the skill."""
    evil.write("skills/other/SKILL.md", document("other"))
    evil.commit()
    registry.sync(evil.url)
    registry.trust_source("team")
    registry.pull([registry.resolve("evil")], str(tmp_path / "project"))
    return only_lock(tmp_path)


def know_address(victim, repository):
    """Register the address of a lock, else it is refused at once; only for another skill."""
    victim.sync(f"{repository.url}#main@other", name="other")


def only_lock(tmp_path):
    folder = tmp_path / "clone"
    folder.mkdir()
    shutil.copy(tmp_path / "project" / "skills.lock.json", folder)
    return folder


@pytest.fixture
def victim(tmp_path, monkeypatch):
    """The registry of another user, who has trusted nothing."""
    home = tmp_path / "other-home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    with SkillRegistry.open(home / "registry.db", settings=Settings()) as opened:
        yield opened


def refused(victim, folder, how=InstallOptions()):  # noqa: B008  # a frozen value
    """Return why the lock is refused, after a look that nothing was written."""
    with pytest.raises(LockNotMet) as error:
        restore_from_lock(victim.core, InstallTarget.folder(str(folder)), how)
    assert [one.name for one in folder.iterdir()] == ["skills.lock.json"]
    return str(error.value)


def is_installed(victim, folder):
    (done,) = restore_from_lock(victim.core, InstallTarget.folder(str(folder)))
    return done.state == "added" and SHELL in (folder / "evil" / "SKILL.md").read_text()


def test_without_a_source_a_lock_is_refused_online_and_offline(locked, victim, evil):
    know_address(victim, evil)
    told = refused(victim, locked)
    assert "reverse-shell" in told
    commit = shlex.quote(f"{evil.url}#{evil.head()}")
    assert f"skill-registry sync {commit} --name NAME && skill-registry source trust NAME" in told
    # The refused attempt has fetched the files: they are no better for being here.
    assert "reverse-shell" in refused(victim, locked, OFFLINE)


def test_pull_in_a_clone_refuses_it_too(locked, victim, evil):
    know_address(victim, evil)
    (done,) = victim.update_pulled(str(locked))
    assert done.state == "failed"
    assert "reverse-shell" in done.reason
    assert [one.name for one in locked.iterdir()] == ["skills.lock.json"]


def test_the_named_commands_accept_it(locked, victim, evil):
    cli = partial(run, "--db", victim.path)
    evil.write("skills/evil/SKILL.md", document("evil", body="Harmless by now.\n"))
    evil.commit()
    victim.sync(evil.url)
    shown = cli("pull", "--frozen", "--to", str(locked))
    assert shown.exit_code == 1
    commands = shown.stderr.partition("run: ")[2].split(").")[0].split(" && ")
    first, second = (shlex.split(one)[1:] for one in commands)
    added = cli(*first)
    assert added.exit_code == 0, added.stderr
    (name,) = {one.name for one in victim.sources()} - {"team"}
    assert f"source trust {name}" in added.stderr
    assert cli(*second[:-2], name, second[-1], "--yes").exit_code == 0
    assert is_installed(victim, locked)


def test_with_a_source_its_trust_decides(locked, victim, evil):
    victim.sync(evil.url)
    for how in (InstallOptions(), OFFLINE):
        assert "run: skill-registry source trust team" in refused(victim, locked, how)
    victim.trust_source("team")
    assert is_installed(victim, locked)
    shutil.rmtree(locked / "evil")
    victim.trust_source("team", revoke=True)
    assert "reverse-shell" in refused(victim, locked)


def test_a_kept_revision_that_was_quarantined_is_scanned_again(locked, victim, evil):
    victim.sync(evil.url)
    evil.write("skills/evil/SKILL.md", document("evil", body="Harmless by now.\n"))
    evil.commit()
    victim.sync()
    assert victim.resolve("evil").name == "evil"  # it is listed again
    assert "reverse-shell" in refused(victim, locked, OFFLINE)


def test_a_site_is_no_other_way(registry, victim, server, tmp_path):
    write_skill(tmp_path / "out" / "evil", body=SHELL)
    registry.sync(str(tmp_path / "out"), name="own")
    registry.export(registry.list(), str(tmp_path / "public"))
    for file in (tmp_path / "public").rglob("*"):
        if file.is_file():
            server.put("/" + str(file.relative_to(tmp_path / "public")), file.read_bytes())
    registry.sync(server.url, name="site")
    registry.trust_source("site")
    registry.pull([registry.resolve("site/evil")], str(tmp_path / "project"))
    folder = only_lock(tmp_path)
    assert f"run: skill-registry sync {server.url}" in refused(victim, folder)
    victim.sync(server.url, name="site")
    assert "run: skill-registry source trust site" in refused(victim, folder)
    victim.trust_source("site")
    assert is_installed(victim, folder)


def test_a_skill_file_that_can_t_be_scanned_is_refused(registry, victim, upstream, tmp_path):
    upstream.write("skills/evil/SKILL.md", document("evil"))
    upstream.write("skills/other/SKILL.md", document("other"))
    upstream.commit()
    registry.sync(upstream.url)
    registry.pull([registry.resolve("evil")], str(tmp_path / "project"))
    folder = only_lock(tmp_path)
    know_address(victim, upstream)
    upstream.write("skills/evil/SKILL.md", SHELL.encode() + b"\xff")
    upstream.commit()
    registry.sync()
    (version,) = (one for one in registry.list(all=True) if one.folder == "skills/evil")
    lock = json.loads((folder / "skills.lock.json").read_text())
    entry = lock["skills"]["evil"]
    entry["tree_hash"] = version.tree_hash
    entry["origin"]["commit"] = upstream.head()
    (folder / "skills.lock.json").write_text(json.dumps(lock))
    assert "evil (The skill 'evil' can't be used" in refused(victim, folder)


def test_what_the_user_wrote_is_put_back_whatever_it_does(victim, tmp_path):
    write_skill(tmp_path / "mine" / "evil", body=SHELL)
    victim.sync(str(tmp_path / "mine"))
    victim.pull([victim.resolve("evil")], str(tmp_path / "project"))
    folder = only_lock(tmp_path)
    (tmp_path / "mine" / "evil" / "SKILL.md").write_text(document("evil", body="Changed.\n"))
    victim.sync()
    assert is_installed(victim, folder)
