"""A git repository as a source: what a sync brings, and what it leaves alone."""

import os
import shutil
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from registry.api import SkillRegistry
from registry.disk.locks import FileLock
from registry.errors import DatabaseBusy, RemoteInvalid, RemoteProblem, SourceExists
from registry.settings import Settings
from tests.conftest import write_skill
from tests.remotes.upstream import (
    DAY,
    WHEN,
    Upstream,
    all_checkouts,
    checkout_of,
    document,
    edit_json,
    files_of,
)


def described(registry):
    return {one.name: one.description for one in registry.list()}


def test_a_repository_becomes_a_source_with_the_skills_in_it(registry, upstream):
    report = registry.sync(upstream.url)
    assert report.added == ("alpha", "beta")
    assert described(registry) == {"alpha": "Sorts letters.", "beta": "Counts words."}
    (source,) = registry.sources()
    assert (source.name, source.scope) == ("team", "community")
    tree = checkout_of(registry) / "tree"
    assert sorted(files_of(tree)) == [
        "skills/alpha/SKILL.md",
        "skills/beta/SKILL.md",
        "skills/beta/scripts/run.sh",
    ]
    assert (tree / "skills/beta/scripts/run.sh").stat().st_mode & 0o777 == 0o755
    assert (tree / "skills/alpha/SKILL.md").stat().st_mode & 0o777 == 0o644


def test_of_several_who_add_one_address_at_once_one_makes_the_source(registry, upstream):
    registry.core.create_database()
    at_once = 3
    ready = threading.Barrier(at_once)

    def names(_number):
        with SkillRegistry.open(registry.core.backend.path, settings=Settings()) as another:
            another.sources()
            ready.wait()
            return [one.name for one in another.skills_at(upstream.url, every=True)]

    with ThreadPoolExecutor(at_once) as pool:
        assert list(pool.map(names, range(at_once))) == [["alpha", "beta"]] * at_once
    assert [source.name for source in registry.sources()] == ["team"]
    assert len(all_checkouts()) == 1


def test_of_two_addresses_of_one_name_that_are_added_at_once_both_are_sources(
    tmp_path, registry, upstream
):
    registry.core.create_database()
    other = Upstream(tmp_path / "other", upstream)
    ready = threading.Barrier(2)

    def added(url):
        with SkillRegistry.open(registry.core.backend.path, settings=Settings()) as another:
            another.sources()
            ready.wait()
            return another.add_source(url).name

    with ThreadPoolExecutor(2) as pool:
        names = list(pool.map(added, [upstream.url, other.url]))
    assert len(set(names)) == 2
    assert {source.name for source in registry.sources()} == set(names)


@pytest.mark.parametrize("written", ["{}/", "{}.git"])
def test_an_address_that_is_written_in_another_way_is_the_same_source(registry, upstream, written):
    bare = upstream.url.removesuffix(".git")
    registry.sync(bare if written.endswith(".git") else upstream.url)
    again = registry.sync(written.format(bare if written.endswith(".git") else upstream.url))
    assert (again.added, again.unchanged) == ((), 2)
    assert [source.name for source in registry.sources()] == ["team"]


def test_where_nothing_is_new_the_remote_is_asked_once_and_nothing_is_fetched(
    registry, upstream, traced
):
    registry.sync(upstream.url)
    assert "fetch" in traced()
    report = registry.sync()
    assert (report.complete, report.unchanged, report.updated) == (True, 2, ())
    assert traced() == ["ls-remote"]


def test_an_upstream_change_touches_that_skill_alone(registry, upstream):
    registry.sync(upstream.url)
    tree = checkout_of(registry) / "tree" / "skills"
    before = {name: (tree / name / "SKILL.md").stat() for name in ("alpha", "beta")}
    upstream.skill("skills/alpha", description="Sorts numbers.")
    upstream.commit()
    report = registry.sync()
    assert (report.updated, report.unchanged) == (("alpha",), 1)
    after = {name: (tree / name / "SKILL.md").stat() for name in ("alpha", "beta")}
    assert after["beta"] == before["beta"]
    assert after["alpha"].st_mtime == WHEN + DAY
    assert registry.get("alpha").updated_at == "2023-11-15T22:13:20Z"


def test_a_change_elsewhere_in_the_repository_changes_no_skill_but_the_commit(registry, upstream):
    registry.sync(upstream.url)
    upstream.write("README.md", "Still not a skill.\n")
    commit = upstream.commit()
    assert registry.sync().updated == ()
    assert registry.sources()[0].remote.version == commit
    assert registry.get("alpha").origin.commit == commit


@pytest.mark.parametrize("pin", ["branch", "tag", "annotated", "commit", "feature/x"])
def test_a_pin_is_kept_until_it_is_moved(registry, upstream, pin):
    old = upstream.head()
    upstream.git("tag", "tag")
    upstream.git("tag", "-a", "annotated", "-m", "An annotated one")
    upstream.git("push", "-q", str(upstream.bare), "tag", "annotated", "tag", "tag")
    for branch in ("branch", "feature/x"):
        upstream.publish(branch)
    upstream.skill("skills/alpha", description="Newer.")
    new = upstream.commit()
    registry.sync(f"{upstream.url}#{old if pin == 'commit' else pin}")
    (source,) = registry.sources()
    assert source.remote.version == old
    assert described(registry)["alpha"] == "Sorts letters."
    registry.update_source(source.name, ref="main")
    assert described(registry)["alpha"] == "Newer."
    assert registry.sources()[0].remote.version == new
    registry.update_source(source.name, ref="")
    assert registry.sources()[0].remote.ref is None
    assert registry.sync().complete


def test_for_another_pin_the_remote_is_asked_once(registry, upstream, traced):
    registry.sync(upstream.url)
    upstream.publish("other")
    for ref in ("other", ""):
        traced()
        registry.update_source("team", ref=ref)
        assert traced().count("ls-remote") == 1


def test_a_pin_that_the_remote_does_not_have_is_refused_and_changes_nothing(registry, upstream):
    registry.sync(upstream.url)
    for change in ({}, {"new_name": "other"}):
        with pytest.raises(RemoteInvalid, match="no branch, tag or commit v9"):
            registry.update_source("team", ref="v9", **change)
    assert registry.sources()[0].remote.ref is None
    assert registry.sync().complete


def test_a_pin_that_can_not_be_asked_for_is_refused(registry, upstream):
    registry.sync(upstream.url)
    upstream.bare.rename(upstream.bare.with_name("away"))
    for ref in ("main", ""):
        with pytest.raises(RemoteProblem):
            registry.update_source("team", ref=ref)
    assert registry.sources()[0].remote.ref is None


def test_a_pin_that_went_keeps_what_was_and_says_so(registry, upstream):
    registry.sync(upstream.url)
    upstream.publish("gone")
    registry.update_source("team", ref="gone")
    (upstream.bare / "refs" / "heads" / "gone").unlink()
    report = registry.sync()
    assert not report.complete
    assert "no branch, tag or commit gone" in report.sources[0].message
    assert described(registry).keys() == {"alpha", "beta"}


def test_a_pin_that_can_not_be_written_down_stays_as_it_was(registry, upstream, root, monkeypatch):
    registry.sync(upstream.url)
    registry.add_source(str(root), name="taken")
    with pytest.raises(SourceExists):
        registry.update_source("team", ref="main", new_name="taken")
    assert registry.resolve("alpha").origin.ref is None
    monkeypatch.setattr("registry.db.interface.WRITE_SECONDS", 0.0)
    with FileLock(f"{registry.core.backend.path}.lock") as lock:
        assert lock.acquire(0)
        with pytest.raises(DatabaseBusy):
            registry.update_source("team", ref="main")
    assert registry.sync().complete


def test_where_the_default_branch_is_none_it_is_said_how_to_name_another(registry, upstream):
    (upstream.bare / "HEAD").write_text("ref: refs/heads/trunk\n")
    with pytest.raises(RemoteInvalid, match="it is empty or has no default branch; name a branch"):
        registry.sync(upstream.url)
    assert registry.sync(f"{upstream.url}#main").added == ("alpha", "beta")


def test_a_repository_may_name_its_objects_by_sha_256(registry, upstream, tmp_path):
    home = tmp_path / "longer"
    shutil.copytree(upstream.work / "skills", home / "skills")
    for arguments in (["init", "-q", "--object-format=sha256"], ["add", "-A"]):
        upstream.git(*arguments, at=home)
    upstream.git("commit", "-qm", "One", at=home)
    assert registry.sync(f"file://{home}").added == ("alpha", "beta")
    write_skill(home / "skills" / "gamma")
    upstream.git("add", "-A", at=home)
    upstream.git("commit", "-qm", "Two", at=home)
    assert registry.sync().added == ("gamma",)


def test_a_commit_is_named_by_all_of_its_digits(registry, upstream):
    whole = upstream.head()
    with pytest.raises(RemoteInvalid, match="give all digits of a commit"):
        registry.sync(f"{upstream.url}#{whole[:7]}")
    with pytest.raises(RemoteInvalid, match=r"no branch, tag or commit gone\.$"):
        registry.sync(f"{upstream.url}#gone")


def test_a_rewritten_history_is_told(registry, upstream):
    upstream.commit()
    registry.sync(upstream.url)
    old = upstream.head()
    upstream.skill("skills/alpha", description="Rewritten.")
    upstream.git("commit", "-q", "-a", "--amend", "-m", "Rewritten")
    upstream.publish()
    report = registry.sync()
    assert report.updated == ("alpha",)
    (told,) = report.sources[0].fetched
    assert told == f"its history was rewritten: it no longer contains {old}"
    upstream.skill("skills/alpha", description="And on.")
    upstream.commit()
    assert registry.sync().sources[0].fetched == ()


def test_a_rewritten_history_is_told_also_after_a_fetch_that_was_refused(registry, upstream):
    upstream.commit()
    registry.sync(upstream.url)
    old = upstream.head()
    shutil.rmtree(upstream.work / "skills")
    upstream.commit()
    assert registry.sync().sources[0].outcome == "refused"
    upstream.git("reset", "-q", "--hard", old)
    upstream.skill("skills/alpha", description="Rewritten.")
    upstream.git("commit", "-q", "-a", "--amend", "-m", "Rewritten")
    upstream.publish()
    (told,) = registry.sync().sources[0].fetched
    assert told == f"its history was rewritten: it no longer contains {old}"


@pytest.mark.parametrize("pin", ["", "#main"])
def test_only_a_repository_that_never_had_a_history_may_replace_its_commit(registry, upstream, pin):
    def replaced(*parents):
        tree = upstream.git("write-tree")
        commit = upstream.git("commit-tree", tree, *parents, "-m", "Replaced")
        upstream.git("update-ref", "refs/heads/main", commit)
        upstream.publish()
        return registry.sync().sources[0].fetched

    def edited(text):
        upstream.skill("skills/alpha", description=text)
        upstream.git("add", "--all")

    registry.sync(upstream.url + pin)
    root = upstream.head()
    edited("Two.")
    assert replaced() == ()
    assert registry.get("alpha").description == "Two."
    edited("Three.")
    (told,) = replaced("-p", root)  # it has a history now, of which this sync saw nothing
    assert told.startswith("its history was rewritten")
    edited("Four.")
    (told,) = replaced()  # and its history is gone
    assert told.startswith("its history was rewritten")


@pytest.mark.parametrize("harm", ["packs cut short", "locked"])
def test_a_repository_of_ours_that_is_damaged_is_made_anew(registry, upstream, harm):
    registry.sync(upstream.url)
    kept = checkout_of(registry) / "state" / "git"
    if harm == "locked":
        (kept / "shallow.lock").touch()
    for pack in kept.glob("objects/pack/*.pack") if harm != "locked" else ():
        pack.chmod(0o600)
        pack.write_bytes(pack.read_bytes()[:50])
    for text in ("Newer.", "And on."):
        upstream.skill("skills/alpha", description=text)
        upstream.commit()
        report = registry.sync()
    assert report.updated == ("alpha",)


def test_a_skill_deleted_upstream_goes_with_its_folder(registry, upstream):
    registry.sync(upstream.url)
    shutil.rmtree(upstream.work / "skills/beta")
    upstream.commit()
    assert registry.sync().removed == ("beta",)
    assert not (checkout_of(registry) / "tree/skills/beta").exists()


def test_an_executable_bit_follows_upstream(registry, upstream):
    registry.sync(upstream.url)
    (upstream.work / "skills/beta/scripts/run.sh").chmod(0o644)
    upstream.commit()
    assert registry.sync().updated == ("beta",)
    run = checkout_of(registry) / "tree/skills/beta/scripts/run.sh"
    assert run.stat().st_mode & 0o777 == 0o644


@pytest.mark.parametrize("swap", ["file to folder", "folder to file"])
def test_a_file_may_become_a_folder_and_a_folder_a_file(registry, upstream, swap):
    first, second = ("x", "x/y") if swap == "file to folder" else ("x/y", "x")
    upstream.write(f"skills/alpha/{first}", "one")
    upstream.commit()
    registry.sync(upstream.url)
    shutil.rmtree(upstream.work / "skills/alpha/x", ignore_errors=True)
    (upstream.work / "skills/alpha/x").unlink(missing_ok=True)
    upstream.write(f"skills/alpha/{second}", "two")
    upstream.commit()
    assert registry.sync().updated == ("alpha",)
    assert sorted(files_of(checkout_of(registry) / "tree/skills/alpha")) == ["SKILL.md", second]


def test_names_that_look_like_our_drafts_are_files_like_others(registry, upstream):
    names = ["x", ".x.new", "y", ".y.new", "\U0001d4b3" * 63]
    for number, name in enumerate(names):
        upstream.write(f"skills/alpha/{name}", str(number))
    upstream.commit()
    registry.sync(upstream.url)
    held = files_of(checkout_of(registry) / "tree/skills/alpha")
    assert {name: held.get(name) for name in names} == {
        name: str(number).encode() for number, name in enumerate(names)
    }


def test_verify_mends_what_was_edited_damaged_added_or_lost_in_the_checkout(registry, upstream):
    registry.sync(upstream.url)
    tree = checkout_of(registry) / "tree"
    held = files_of(tree)
    (tree / "skills/alpha/SKILL.md").write_text("edited")
    (tree / "skills/beta/scripts/run.sh").unlink()
    (tree / "skills/beta/scripts/run.sh").mkdir()
    (tree / "skills/beta/new.txt").write_text("new")
    (tree / "skills/beta/link").symlink_to("/etc")
    report = registry.sync(verify=True)
    assert report.complete, report.sources
    assert files_of(tree) == held
    assert described(registry) == {"alpha": "Sorts letters.", "beta": "Counts words."}


def test_after_a_reboot_damaged_files_are_found_and_mended(registry, upstream):
    registry.sync(upstream.url)
    home = checkout_of(registry)
    held = files_of(home / "tree")
    for name in ("manifest.json", "files.json"):
        assert (home / name).exists()
    edit_json(home / "manifest.json", boot="another")
    (home / "tree/skills/alpha/SKILL.md").write_bytes(b"")
    registry.sync()
    assert files_of(home / "tree") == held


def test_a_verify_soon_after_a_fetch_proves_nothing_of_a_later_start(registry, upstream):
    registry.sync(upstream.url)
    home = checkout_of(registry)
    registry.sync(verify=True)  # what it reads may not have reached the disk yet
    assert '"boot": null' not in (home / "manifest.json").read_text()
    edit_json(home / "manifest.json", boot="another")
    registry.sync()
    assert '"boot": null' in (home / "manifest.json").read_text()


def test_a_repository_without_skills_is_no_source_and_leaves_nothing(registry, upstream):
    shutil.rmtree(upstream.work / "skills")
    upstream.commit()
    with pytest.raises(RemoteInvalid, match="it holds no skill"):
        registry.sync(upstream.url)
    assert registry.sources() == []
    assert all_checkouts() == []


def test_two_sources_are_brought_in_line_by_one_sync(registry, upstream, tmp_path):
    registry.sync(upstream.url)
    registry.sync(f"{upstream.url}#main@alpha", name="other")
    upstream.skill("skills/alpha", description="Newer.")
    upstream.commit()
    report = registry.sync()
    assert len(report.updated) == 2
    assert {one.name: one.outcome for one in report.sources} == {"team": "ok", "other": "ok"}


def test_what_is_kept_for_fetching_does_not_grow_for_ever(registry, upstream, monkeypatch):
    from registry.remotes import git

    monkeypatch.setattr(git, "MAX_PACKS", 6)
    registry.sync(upstream.url)
    packs = checkout_of(registry) / "state/git/objects/pack"
    most = 0
    for number in range(8):
        upstream.skill("skills/alpha", description=f"Version {number}.")
        upstream.commit()
        registry.sync()
        most = max(most, len([*packs.glob("*.pack")]))
        assert described(registry)["alpha"] == f"Version {number}."
    assert most == 2 * 6


def test_removing_a_source_removes_its_checkout_and_nothing_else(registry, upstream, root):
    registry.sync(upstream.url)
    registry.sync(f"{upstream.url}#main@alpha", name="other")
    mine, other = checkout_of(registry, "team"), checkout_of(registry, "other")
    held = files_of(other), files_of(upstream.bare)
    registry.remove_source("team")
    assert not mine.exists()
    assert (files_of(other), files_of(upstream.bare)) == held
    assert registry.sync().complete


def test_commit_times_that_no_file_can_have_are_not_taken(registry, upstream):
    tree = upstream.git("rev-parse", "HEAD^{tree}", at=upstream.bare)
    for when in (10**11, 2**62, 253402300799 + DAY, "-5", "x"):
        upstream.point(tree, at=when)
        report = registry.sync(f"{upstream.url}", name=None)
        assert report.complete, (when, report.sources)
        assert os.path.isdir(registry.sources()[0].path)
        assert registry.get("alpha").updated_at < "2100"
        registry.remove_source("team")


def test_of_a_large_repository_little_more_than_its_skills_is_received(registry, upstream):
    lines = ["commit refs/heads/main", f"committer S <s@e> {WHEN} +0000", "data 1", "x"]
    for number in range(10_000):
        data = f"{number:06}" * 200  # 12 MB in all, which pack badly
        lines += [f"M 100644 inline src/{number % 100}/{number}.txt", f"data {len(data)}", data]
    for number in range(50):
        data = document(f"s{number}")
        lines += [f"M 100644 inline skills/s{number}/SKILL.md", f"data {len(data)}", data]
    upstream.git(
        "fast-import", "--quiet", "--force", at=upstream.bare, given="\n".join(lines).encode()
    )
    assert len(registry.sync(upstream.url).added) == 50
    state = files_of(checkout_of(registry) / "state")
    assert sum(map(len, state.values())) < 1 << 20
    assert len(files_of(checkout_of(registry) / "tree")) == 50
