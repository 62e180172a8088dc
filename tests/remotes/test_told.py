"""What people are told of remote sources: names, places, what is new, what was left, what helps."""

import json
import shutil
from pathlib import Path

import pytest

from registry.errors import RemoteInvalid, SourceNotFound
from tests.conftest import write_skill
from tests.remotes.conftest import SHELL
from tests.remotes.upstream import all_checkouts, document, files_of


@pytest.fixture
def mended(upstream):
    """A repository with a skill that `check --fix` could mend."""
    upstream.write("skills/alpha/SKILL.md", "---\nname: alpha\ndescription: Use when: x\n---\n")
    upstream.commit()
    return upstream


def empty(upstream):
    upstream.git("rm", "-rq", "skills")
    upstream.write("README.md", "Nothing here any more.\n")
    upstream.commit()


def test_a_remote_without_skills_keeps_them_until_they_may_be_pruned(cli, upstream):
    cli("sync", upstream.url)
    (checkout,) = all_checkouts()
    held = files_of(checkout / "tree")
    empty(upstream)
    kept = cli("sync", "team")
    assert kept.exit_code == 1
    assert "it holds no skill" in kept.stderr
    assert files_of(checkout / "tree") == held
    assert cli("list", "--format", "names").stdout == "alpha\nbeta\n"
    pruned = cli("sync", "team", "--allow-prune")
    assert pruned.exit_code == 0, pruned.output
    assert cli("list", "--format", "names").stdout == ""
    assert cli("sync", "team").exit_code == 0
    upstream.skill("skills/gamma")
    upstream.commit()
    assert cli("sync", "team").exit_code == 0
    assert cli("list", "--format", "names").stdout == "gamma\n"


def test_a_first_sync_names_the_source_and_the_second_does_not(cli, upstream):
    done = cli("sync", upstream.url)
    assert f"team: a new source, fetched from {upstream.url}." in done.stderr
    assert "a new source" not in cli("sync", upstream.url).stderr


def test_an_unknown_source_is_answered_with_the_near_ones(registry, root):
    write_skill(root / "own")
    registry.sync(str(root), name="minutes")
    with pytest.raises(SourceNotFound, match="Did you mean 'minutes'") as refused:
        registry.sync("minute")
    assert refused.value.facts["similar"] == ["minutes"]


def test_a_site_is_named_after_its_host_and_an_archive_after_its_file(
    registry, server, abroad, tmp_path
):
    site = write_skill(tmp_path / "out" / "one")
    registry.sync(str(site.parent), name="own")
    registry.export(registry.list(), str(tmp_path / "public"))
    for file in (tmp_path / "public").rglob("*"):
        if file.is_file():
            server.put("/" + str(file.relative_to(tmp_path / "public")), file.read_bytes())
    added = registry.add_source(f"{server.url}/.well-known/agent-skills/index.json")
    assert added.name == "127.0.0.1"
    packed = shutil.make_archive(str(tmp_path / "office"), "zip", tmp_path / "out")
    assert registry.add_source(packed).name == "office"


def test_a_place_on_a_terminal_shows_folder_pin_and_skill(cli, upstream):
    cli("sync", f"{upstream.url}/skills#main@alpha")
    shown = cli("source", "list", "--format", "table").stdout
    assert "skills.git/skills#main@alpha" in shown


def test_in_a_pipe_remotes_are_two_more_fields(cli, upstream, root):
    write_skill(root / "own")
    cli("sync", str(root), "--name", "mine")
    cli("sync", f"{upstream.url}#main")
    rows = [line.split("\t") for line in cli("source", "list").stdout.splitlines()]
    assert {len(row) for row in rows} == {4}

    def told():
        lines = cli("source", "list", "--remote").stdout.splitlines()
        return {row[0]: row[4:] for row in (line.split("\t") for line in lines)}

    assert told() == {"mine": ["-", "-"], "team": [f"{upstream.url}#main", "current"]}
    upstream.skill("skills/gamma")
    upstream.commit()
    assert told()["team"][1] == "outdated"
    shutil.move(upstream.bare, upstream.bare.with_name("away"))
    assert told()["team"][1] == "unreachable"


def test_a_source_of_a_folder_is_behind_only_where_that_changed(cli, upstream):
    cli("sync", f"{upstream.url}/skills/alpha")

    def behind():
        (source,) = json.loads(cli("source", "list", "--remote", "--json").stdout)
        return source["remote"]["behind"]

    upstream.skill("skills/gamma")
    upstream.commit()
    assert behind() is False
    upstream.skill("skills/alpha", description="Sorts letters, and more.")
    upstream.commit()
    assert behind() is True
    assert cli("sync", "team").exit_code == 0
    assert behind() is False


def test_what_was_asked_is_shown_on_a_narrow_terminal(cli, upstream):
    cli("sync", upstream.url)
    shown = cli("source", "list", "--remote", "--format", "table", env={"COLUMNS": "40"}).stdout
    assert "REMOTE" in shown
    assert "current" in shown


def test_a_checkout_that_stays_is_not_said_to_be_removed(cli, upstream, monkeypatch):
    cli("sync", upstream.url)
    (home,) = all_checkouts()
    asked = json.loads((home / "asked.json").read_text())
    asked["asked"][1] += "-other"  # as of another source
    (home / "asked.json").write_text(json.dumps(asked))
    done = cli("source", "remove", "team")
    assert "is removed" not in done.stdout
    assert f"its checkout could not be removed: {home / 'tree'}" in done.stdout
    assert home.is_dir()


def test_skills_outside_of_the_usual_places_are_named_once(cli, upstream):
    for name in ("a", "b", "c", "d"):
        upstream.skill(f"packages/web/{name}")
    upstream.skill("skills/alpha/parts/inner")
    upstream.commit()
    done = cli("sync", upstream.url)
    (line,) = [one for one in done.stderr.splitlines() if "other folders" in one]
    assert line.startswith(
        "team: 4 more SKILL.md are in other folders: packages/web/a, packages/web/b, "
    )
    assert "packages/web/d" not in line
    assert "sync ADDRESS/FOLDER takes them" in line
    assert "other folders" not in cli("sync").stderr


def test_where_only_other_places_hold_skills_no_notice_names_other_folders(cli, upstream):
    empty(upstream)
    upstream.skill("packages/web/tools")
    upstream.commit()
    done = cli("sync", upstream.url)
    assert "other folders" not in done.stderr
    assert cli("list", "--format", "names").stdout == "tools\n"


def test_a_long_description_is_cut_in_the_index_alone(registry, root, server, tmp_path):
    long = "word " * 400
    write_skill(root / "wordy", description=long)
    registry.sync(str(root), name="mine")
    done = registry.export(registry.list(), str(tmp_path / "public"))
    assert len(done.skills[0].description) <= 1024
    assert done.skills[0].description.endswith("word\N{HORIZONTAL ELLIPSIS}")
    assert long.strip() in (tmp_path / "public" / done.skills[0].url[1:]).read_text()
    for file in filter(Path.is_file, (tmp_path / "public").rglob("*")):
        server.put("/" + str(file.relative_to(tmp_path / "public")), file.read_bytes())
    report = registry.sync(server.url)
    assert [one.outcome for one in report.sources] == ["ok"]
    assert registry.list(source="127.0.0.1", all=True)[0].description == long.strip()


def test_a_site_without_its_artifacts_says_what_the_server_answered(
    registry, root, server, tmp_path
):
    write_skill(root / "one")
    registry.sync(str(root), name="mine")
    done = registry.export(registry.list(), str(tmp_path / "public"))
    index = Path(done.path)
    server.put("/" + str(index.relative_to(tmp_path / "public")), index.read_bytes())
    with pytest.raises(RemoteInvalid, match=r"HTTP status 404 at http://127.0.0.1"):
        registry.add_source(server.url)


def test_a_fetch_of_a_new_address_is_told_before_it_begins(registry, upstream):
    told = []
    registry.sync(upstream.url, progress=lambda *facts: told.append((*facts, all_checkouts())))
    assert told[0] == ("fetching", 0, None, [])


def test_a_fix_of_what_lies_elsewhere_is_not_offered(cli, mended):
    cli("sync", mended.url)
    done = cli("check", "--fix", "--dry-run")
    assert done.stdout == ""
    assert done.stderr.count("is not fixed: it is in a remote source") == 1


def test_a_dry_run_says_that_remotes_were_not_asked(cli, upstream, root):
    write_skill(root / "own")
    cli("sync", str(root), "--name", "mine")
    assert "not asked" not in cli("sync", "--dry-run").stderr
    cli("sync", upstream.url)
    assert "Not checked for updates (dry run): team." in cli("sync", "--dry-run").stderr
    assert "not asked" not in cli("sync").stderr


def test_trust_names_what_it_shows_and_is_taken_back(cli, evil):
    cli("sync", evil.url)
    assert cli("source", "trust", "team", "--yes").stderr.startswith("evil: error reverse-shell: ")
    assert "evil" in cli("list", "--format", "names").stdout
    back = cli("source", "trust", "team", "--revoke")
    assert back.stdout == "1 skill is quarantined now.\n"
    assert back.stderr.startswith("evil: error reverse-shell: ")
    assert "evil" not in cli("list", "--format", "names").stdout
    evil.write("skills/evil/SKILL.md", document("evil", "Other.", body=SHELL))
    evil.commit()
    cli("sync", "team")
    assert "evil" not in cli("list", "--format", "names").stdout
    again = json.loads(cli("source", "trust", "team", "--revoke", "--json").stdout)
    assert again == {"held": 0}


def test_nothing_of_ones_own_is_held_back(cli, root):
    write_skill(root / "own", body=SHELL)
    cli("sync", str(root), "--name", "mine")
    assert cli("source", "trust", "mine", "--revoke").exit_code == 2
    assert "own" in cli("list", "--format", "names").stdout


def test_an_address_that_ends_in_a_skill_and_fails_names_the_option(cli, upstream):
    done = cli("sync", f"{upstream.url}@alpha")
    assert done.exit_code == 1
    assert "--skill NAME" in done.stderr
    assert "--skill" not in cli("sync", f"{upstream.url}-gone").stderr


@pytest.mark.parametrize(
    ("status", "words"),
    [(401, "into ~/.netrc"), (403, "fetched by git"), (404, "Check the address")],
)
def test_a_refusal_says_what_to_do_next(server, cli, status, words):
    server.put("/all.zip", b"", status)
    said = cli("source", "add", f"{server.url}/all.zip")
    assert said.exit_code == 1
    assert f"HTTP status {status}" in said.stderr
    assert words in said.stderr
