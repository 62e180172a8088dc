"""On the command line one is where the shell is."""

import json

import pytest

from tests.conftest import write_skill


@pytest.fixture
def project(cli, tmp_path, monkeypatch):
    """A user's skill, and a project that hides it; the shell is beside the project."""
    write_skill(tmp_path / "user" / "review", description="The user's own.")
    home = tmp_path / "app" / ".claude" / "skills"
    write_skill(home / "review", description="The app's.")
    write_skill(home / "release", description="Of the app, too.", extra="kind: rare\n")
    assert cli("sync", str(tmp_path / "user"), "--name", "user").exit_code == 0
    assert cli("sync", str(home), "--name", "app", "--scope", "project").exit_code == 0
    monkeypatch.chdir(tmp_path)
    yield tmp_path / "app"
    monkeypatch.chdir(tmp_path)


LEFT_OUT = "2 skills of other projects are left out; --all lists them.\n"


def test_a_listing_says_in_one_line_what_it_leaves_out(cli, project):
    result = cli("list")
    assert (result.stdout, result.stderr) == ("review\tThe user's own.\n", LEFT_OUT)
    result = cli("list", "--json")
    assert [one["ref"] for one in json.loads(result.stdout)] == ["review"]
    assert result.stderr == LEFT_OUT
    result = cli("list", "--kind", "rare")
    assert result.stdout == ""
    assert "1 skill of other projects is left out; --all lists it.\n" in result.stderr


def test_a_search_that_finds_nothing_says_what_it_finds_with_all(cli, project):
    assert cli("search", "release").stderr.splitlines()[-1] == (
        "No skills match. 1 that is of other projects would match; --all finds it."
    )
    for more in ([], ["--all"]):
        assert cli("search", "zzz", *more).stderr.splitlines()[-1] == "No skills match."
    assert cli("search", "release", "--kind", "none").stderr.count("--all") == 0
    assert cli("search", "release", "--all").stdout.startswith("release")


def test_stats_count_what_is_left_out(cli, project):
    told = cli("stats").stdout
    assert "listed\t1\n" in told
    assert "left out\t2 of other projects\n" in told


def test_where_all_is_left_out_nothing_is_called_unusable(cli, project):
    cli("source", "remove", "user")
    assert cli("list").stderr == LEFT_OUT


def test_copies_of_projects_elsewhere_are_not_called_listed(cli, project, terminal, database):
    shown = terminal("--db", str(database), "copies", "review").out
    assert "of another project" in shown
    assert shown.count("listed") == 1


@pytest.mark.parametrize(
    "options", [["--source", "user"], ["--scope", "personal"], ["--all"], ["--tag", "none"]]
)
def test_what_the_filters_exclude_is_not_said_to_be_left_out(cli, project, options):
    assert "left out" not in cli("list", *options).stderr


def test_in_the_project_its_skills_are_listed_found_and_shown_and_nothing_is_left_out(
    cli, project, monkeypatch
):
    (project / "src").mkdir()
    monkeypatch.chdir(project / "src")
    result = cli("list")
    assert result.stdout == "release\tOf the app, too.\nreview\tThe app's.\n"
    assert result.stderr == ""
    assert "The app's." in cli("show", "review").stdout
    assert cli("search", "own").stdout == ""
    assert "app/.claude/skills/release" in cli("search", "release", "--json").stdout
    assert "**review** (project)" in cli("tools", "schema", "--toolset", "wave").stdout
    assert "The app&#x27;s." in cli("prompt").stdout or "The app's." in cli("prompt").stdout


def test_elsewhere_its_skills_are_reached_by_all_by_their_source_and_by_why(cli, project):
    listed = cli("list", "--all", "--format", "names").stdout.split()
    assert listed == ["release", "review", "app/review"]
    assert "The app's." in cli("show", "app/review").stdout
    assert "The user's own." in cli("show", "review").stdout
    (told,) = json.loads(cli("why", "release", "--json").stdout)
    (reason,) = (one for one in told["reasons"] if one["code"] == "project")
    assert reason["message"] == f"it belongs to the project {project}; it is seen there"
    assert told["listed"] is False


def test_in_the_project_why_names_what_hides_the_users_skill(cli, project, monkeypatch):
    monkeypatch.chdir(project)
    told = {one["ref"]: one for one in json.loads(cli("why", "review", "--json").stdout)}
    assert told["review"]["listed"]
    assert not told["user/review"]["listed"]
    (reason,) = (one for one in told["user/review"]["reasons"] if one["code"] == "shadowed")
    assert "shadows it: review" in reason["message"]


def test_a_tool_is_called_for_the_folder_that_is_named(cli, project):
    call = ("tools", "call", "--toolset", "wave", "Skill", '{"skill_name": "release"}')
    assert cli(*call).exit_code == 1
    assert cli(*call[:2], "--workdir", str(project), *call[2:]).exit_code == 0


def test_a_checkouts_folder_that_becomes_a_source_for_everywhere_is_named(cli, tmp_path):
    home = tmp_path / "app" / ".claude" / "skills"
    (tmp_path / "app" / ".git").mkdir(parents=True)
    write_skill(home / "release")
    said = cli("sync", str(home)).stderr
    assert f"{home} is in the git checkout {tmp_path / 'app'}" in said
    change = "skill-registry source update claude --scope project"
    assert change in said
    assert "checkout" not in cli("sync", str(home)).stderr  # it is a source by now
    refused = cli("sync", str(home), "--scope", "project")
    assert (refused.exit_code, refused.stdout) == (2, "")
    assert (
        f"The source claude has the scope personal; to change it, run: {change}" in refused.stderr
    )
    assert cli("list", "--format", "names").stdout == "release\n"
    assert cli(*change.split()[1:]).exit_code == 0
    assert cli("list").stdout == ""


def test_sync_of_a_whole_checkout_offers_the_folders_of_its_agents(cli, tmp_path, monkeypatch):
    app = tmp_path / "app"
    (app / ".git").mkdir(parents=True)
    write_skill(app / ".claude" / "skills" / "release")
    (app / ".roo").mkdir()
    (app / ".roo" / "skills").symlink_to(app / ".claude" / "skills")
    monkeypatch.chdir(app)
    said = cli("sync", ".").stderr
    offer = "skill-registry sync .claude/skills --scope project"
    assert said.count("is a git checkout") == 1
    assert f"in .claude/skills only in this project, run: {offer}\n" in said
    assert cli(*offer.split()[1:]).exit_code == 0
    assert cli("sync").exit_code == 0
    assert "checkout" not in cli("sync", ".").stderr
    assert cli("list", "--format", "names").stdout == "release\n"
    monkeypatch.chdir(tmp_path)
    assert cli("list").stdout == ""


@pytest.mark.parametrize(
    "agent", [".opencode/skills", ".roo/skills", ".kilo/skill", ".claude/skills"]
)
def test_whichever_agents_folder_it_is_the_project_is_what_holds_it(
    cli, tmp_path, agent, monkeypatch
):
    write_skill(tmp_path / "app" / agent / "release")
    assert cli("sync", str(tmp_path / "app" / agent), "--scope", "project").exit_code == 0
    monkeypatch.chdir(tmp_path / "app")
    assert cli("list", "--format", "names").stdout == "release\n"


def test_a_list_that_is_empty_counts_the_copies_that_it_leaves_out(cli, tmp_path):
    for source in ("one", "two"):
        write_skill(tmp_path / source / "review")
        cli("sync", str(tmp_path / source))
    result = cli("list", "--source", "two")
    assert (result.exit_code, result.stdout) == (0, "")
    assert result.stderr == ("No skills match. 1 that is shadowed would match; --all lists it.\n")
