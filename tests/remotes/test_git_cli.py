"""What the command line says of repositories as sources."""

import json
import re
import shutil

import pytest

from registry.model import Skill
from tests.conftest import write_skill
from tests.remotes.upstream import all_checkouts, files_of

FOUND = "evil: error reverse-shell: opens a network connection from a shell: `/dev/tcp/192.0.2.1/4`"


@pytest.fixture
def synced(cli, evil):
    """A repository with a skill that is held back, synced."""
    done = cli("sync", evil.url)
    assert done.exit_code == 0, done.output
    return done


def test_findings_are_told_at_the_first_sync_and_how_to_trust(cli, synced):
    assert "evil: error reverse-shell" in synced.stderr
    assert "1 skill of team with security errors is quarantined" in synced.stderr
    assert "skill-registry source trust team" in synced.stderr
    assert "reverse-shell" not in cli("sync").stderr
    done = cli("source", "trust", "team", "--yes")
    assert done.stdout == "1 skill is listed now.\n"
    assert done.stderr == f"{FOUND}\n"
    assert json.loads(cli("source", "trust", "team", "--json", "--yes").stdout) == {"trusted": 0}


def test_a_remote_source_is_never_under_review(cli, synced):
    done = cli("source", "update", "team", "--review", "required", "--priority", "7")
    assert done.exit_code != 0
    assert "read-only" in done.stderr
    (source,) = json.loads(cli("source", "list", "--json").stdout)
    assert (source["review"], source["priority"] == 7) == (False, False)


def test_list_says_which_skills_of_a_source_are_quarantined(cli, synced):
    every = cli("list", "--source", "team", "--all", "--format", "table").stdout.splitlines()
    assert every[0].split()[:2] == ["SKILL", "STATUS"]
    assert [line.split()[:2] for line in every[1:]] == [
        ["alpha", "ok"],
        ["beta", "ok"],
        ["evil", "quarantined"],
    ]
    told = "1 skill of team is quarantined. To see which, run: skill-registry list --source team "
    assert cli("list", "--source", "team").stderr == f"{told}--all --format table\n"
    told = "1 skill is quarantined. To see which, run: skill-registry list --all --format table\n"
    assert cli("list").stderr == told
    assert cli("search", "letters").stderr.startswith(told)
    assert "1 that is quarantined would match; --all finds it." in cli("search", "evil").stderr
    assert cli("list", "--tag", "none").stderr.count("quarantined") == 0
    assert cli("list", "--all").stderr == "1 skill is quarantined. It is: evil\n"
    listed = json.loads(cli("list", "--all", "--json").stdout)
    assert [one["name"] for one in listed if one["quarantined"]] == ["evil"]
    assert list(listed[0]) == [*Skill.KEYS, "quarantined", "yanked"]
    stats = json.loads(cli("stats", "--json").stdout)
    assert (stats["by_status"], stats["skills"]) == ({"ok": 2, "quarantined": 1}, 3)
    assert "\nquarantined\t1 (" in cli("stats").stdout
    cli("source", "trust", "team", "--yes")
    assert cli("list", "--source", "team").stderr == ""
    assert "STATUS" not in cli("list", "--all", "--format", "table").stdout


def test_show_reports_that_a_skill_is_quarantined(cli, synced):
    assert json.loads(cli("show", "evil", "--json").stdout)["quarantined"] is True
    assert json.loads(cli("show", "alpha", "--json").stdout)["quarantined"] is False
    told = (
        "quarantined (hidden from agents; to trust it, run: skill-registry source trust team evil)"
    )
    assert f"Status      {told}" in cli("show", "evil").stdout
    assert "quarantined" not in cli("show", "alpha").stdout
    cli("source", "trust", "team", "--yes")
    trusted = cli("show", "evil").stdout
    assert "quarantined" not in trusted
    assert re.search(r"^Status      warning, trusted 20\d\d-", trusted, re.MULTILINE)
    assert "trusted" not in cli("show", "alpha").stdout
    assert json.loads(cli("show", "evil", "--json").stdout)["quarantined"] is False


def test_show_names_the_installed_copy_of_a_skill_whose_trust_was_taken_back(
    cli, synced, tmp_path, monkeypatch
):
    (tmp_path / "project").mkdir()
    monkeypatch.chdir(tmp_path / "project")
    cli("source", "trust", "team", "--yes")
    assert cli("pull", "evil", "-a", "claude-code").exit_code == 0
    assert "Installed" not in cli("show", "evil").stdout
    cli("source", "trust", "team", "--revoke")
    place = tmp_path / "project/.claude/skills/evil"
    way = f"skill-registry pull --remove evil --to {tmp_path / 'project'}"
    told = f"\nInstalled   {place} (agents still see this copy; to remove it, run: {way})\n"
    assert told in cli("show", "evil").stdout
    assert cli(*way.split()[1:]).exit_code == 0
    assert not place.exists()
    assert "Installed" not in cli("show", "evil").stdout


def test_a_source_that_can_not_be_added_is_exit_status_1(cli, upstream):
    done = cli("source", "add", f"file://{upstream.bare}-gone")
    assert done.exit_code == 1
    assert all_checkouts() == []
    assert cli("source", "add", "ext::sh -c x").exit_code == 1


def test_origin_and_commit_are_shown(cli, synced, upstream):
    commit = upstream.head()
    (alpha,) = [one for one in json.loads(cli("list", "--json").stdout) if one["name"] == "alpha"]
    told = {"url": upstream.url, "ref": None, "commit": commit, "path": "skills/alpha"}
    assert alpha["origin"] == told
    assert json.loads(cli("show", "alpha", "--json").stdout)["origin"] == told
    assert commit[:7] in cli("show", "alpha").stdout
    (revision,) = json.loads(cli("history", "alpha", "--json").stdout)
    assert revision["origin"] == told


def test_source_list_tells_the_remotes_where_it_is_asked_to(cli, synced, upstream):
    (source,) = json.loads(cli("source", "list", "--json").stdout)
    assert source["remote"]["behind"] is None
    (source,) = json.loads(cli("source", "list", "--remote", "--json").stdout)
    assert source["remote"]["behind"] is False
    upstream.skill("skills/gamma")
    upstream.commit()
    (source,) = json.loads(cli("source", "list", "--remote", "--json").stdout)
    assert source["remote"]["behind"] is True


@pytest.mark.parametrize(
    ("change", "way"),
    [
        (("create", "new", "--description", "New.", "--source", "team"), "own with --source."),
        (("update", "alpha", "--description", "Other."), "skill-registry pull NAME --to DIR"),
        (("delete", "alpha"), "skill-registry source remove team"),
        (("delete", "alpha", "beta"), "skill-registry source remove team"),
        (
            ("rename", "team/alpha", "mine"),
            " --skill alpha --source SOURCE && skill-registry rename SOURCE/alpha mine",
        ),
    ],
    ids=lambda change: change[0],
)
def test_a_change_is_refused_with_the_way_to_do_it(cli, synced, change, way):
    (home,) = all_checkouts()
    held = files_of(home)
    done = cli(*change)
    assert done.exit_code == 1
    assert "is a read-only checkout" in done.stderr
    assert f"{way}\n" in done.stderr
    assert files_of(home) == held


def test_what_a_refused_rename_names_works(cli, synced, root):
    assert cli("sync", str(root), "--name", "own").exit_code == 0
    way = cli("rename", "alpha", "mine").stderr.partition("run: skill-registry ")[2]
    for command in way.split(" && skill-registry "):
        done = cli(*command.split())
        assert done.exit_code == 0, done.stderr
    assert json.loads(cli("show", "mine", "--json").stdout)["source"] == "own"


def test_an_editor_is_not_opened_for_it(cli, synced, tmp_path, monkeypatch):
    monkeypatch.setenv("VISUAL", f"touch {tmp_path / 'opened'}; true")
    done = cli("edit", "alpha")
    assert done.exit_code == 1
    assert not (tmp_path / "opened").exists()


def test_a_fix_writes_nothing_there(cli, upstream):
    upstream.write("skills/alpha/SKILL.md", "---\nname: alpha\ndescription: Use when: x\n---\n")
    upstream.commit()
    cli("sync", upstream.url)
    (home,) = all_checkouts()
    held = files_of(home)
    done = cli("check", "--fix", "--yes")
    assert done.exit_code == 0
    assert done.stdout == ""
    assert "is not fixed: it is in a remote source" in done.stderr
    assert "Nothing to fix." in done.stderr
    assert files_of(home) == held


def test_an_archive_is_not_brought_into_it(cli, synced, root, tmp_path):
    write_skill(root / "packed")
    archive = tmp_path / "packed.zip"
    shutil.make_archive(str(archive.with_suffix("")), "zip", root)
    (home,) = all_checkouts()
    held = files_of(home)
    done = cli("import", str(archive), "--source", "team")
    assert done.exit_code == 1
    assert "is a read-only checkout" in done.stderr
    assert files_of(home) == held


def test_removing_says_that_the_checkout_went(cli, synced):
    done = cli("source", "remove", "team")
    assert "its checkout is removed" in done.stdout
    assert all_checkouts() == []


def test_a_new_name_and_a_pin_are_taken_by_update(cli, synced):
    assert cli("source", "update", "team", "--name", "theirs", "--ref", "main").exit_code == 0
    (source,) = json.loads(cli("source", "list", "--json").stdout)
    assert (source["name"], source["remote"]["ref"]) == ("theirs", "main")
    done = cli("source", "update", "theirs", "--ref", "a..b")
    assert done.exit_code == 1
    assert cli("sync").exit_code == 0


def test_delete_names_the_skill_that_answers_to_the_name_now(cli, upstream, root):
    write_skill(root / "alpha", description="My own.")
    write_skill(root / "single", description="Nobody else has one.")
    cli("sync", str(root), "--name", "mine")
    cli("sync", upstream.url)
    assert "My own." in cli("show", "alpha").stdout
    assert "now refers to" not in cli("delete", "single").stderr
    done = cli("delete", "alpha", "--json")
    assert (
        f"'alpha' now refers to team/skills/alpha (source team, community), which comes from "
        f"{upstream.url}." in done.stderr
    )
    assert json.loads(done.stdout)["source"] == "mine"
    shown = cli("show", "alpha").stdout
    facts = [line.split()[0] for line in shown.split("\n\n")[1].splitlines()]
    assert facts[:3] == ["Ref", "Source", "Origin"]


def test_delete_of_a_skill_that_was_shadowed_or_shadows_a_quarantined_one_names_none(
    cli, synced, root, tmp_path
):
    write_skill(root / "evil", description="My own.")
    write_skill(tmp_path / "other" / "evil", description="A weaker one of mine.")
    cli("sync", str(root), "--name", "mine")
    cli("sync", str(tmp_path / "other"), "--name", "weak", "--scope", "community")
    assert "now refers to" not in cli("delete", "weak/evil").stderr
    assert "now refers to" not in cli("delete", "evil").stderr


def test_a_remote_source_gets_no_other_folder_and_is_told_how_to_read_one(
    cli, upstream, synced, tmp_path
):
    for folder in (tmp_path, tmp_path / "not-yet", "skills/alpha"):
        refused = cli("source", "update", "team", "--folder", str(folder))
        assert refused.exit_code == 2
        assert f"the files of team are fetched from {upstream.url}" in refused.stderr
        assert "sync its address with the folder at its end" in refused.stderr
    assert cli("sync", f"{upstream.url}/skills/alpha", "--name", "one").exit_code == 0
    assert cli("source", "remove", "team").exit_code == 0
    assert cli("list", "--format", "names").stdout == "alpha\n"


def test_a_yank_of_a_remote_skill_says_that_others_are_not_affected(cli, upstream):
    cli("sync", upstream.url)
    cli("version", "add", "alpha", "1.0")
    yanked = cli("version", "yank", "alpha@1.0", "--reason", "It is wrong.")
    assert yanked.stderr.startswith(
        f"This is only in this registry: alpha comes from {upstream.url}. To change it for "
        "all users, the owner of the skill must run this command there.\n"
    )
    cli("version", "add", "beta", "1.0")
    deprecated = cli("version", "deprecate", "beta@1.0", "--reason", "It is old.")
    assert "only in this registry" in deprecated.stderr
