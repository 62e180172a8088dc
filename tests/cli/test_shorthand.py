"""`owner/repo` looks like `source/skill`: a typing error must not fetch from a stranger."""

import json

import pytest

from registry.errors import SkillGone, SkillNotFound, UsageProblem
from tests.conftest import open_with, write_skill
from tests.remotes.upstream import Upstream


@pytest.fixture(autouse=True)
def git_log(tmp_path, monkeypatch):
    """The file that each git process writes to; there is none while no git process ran."""
    log = tmp_path / "git-log"
    monkeypatch.setenv("GIT_TRACE", str(log))
    return log


@pytest.fixture(autouse=True)
def hosts(tmp_path):
    """Let `github:` lead to repositories of this machine: office/nosuch, team/skills."""
    upstream = Upstream(tmp_path / "github")
    upstream.skill("skills/alpha", description="Sorts letters.")
    upstream.commit()
    (tmp_path / "github" / "team" / "skills").symlink_to("skills.git")
    (tmp_path / "github" / "office").symlink_to("team")
    (tmp_path / "github" / "office" / "nosuch").symlink_to("skills.git")
    address = f"file://{tmp_path}/github/"
    (tmp_path / "config.yaml").write_text(f"hosts:\n  github: {address}\n")
    return address


@pytest.fixture
def cli(cli, tmp_path, git_log, root):
    """Run commands with a source `office` that has the skill `brag-sheet`."""
    write_skill(root / "brag-sheet")
    config = str(tmp_path / "config.yaml")

    def run(*typed):
        return cli("--config", config, *typed)

    assert run("sync", str(root), "--name", "office").exit_code == 0
    git_log.unlink(missing_ok=True)
    return run


@pytest.fixture
def office(cli, database, hosts):
    """The same source, in Python."""
    with open_with(database, hosts={"github": hosts}) as registry:
        yield registry


def sources(cli):
    return [one["name"] for one in json.loads(cli("source", "list", "--json").stdout)]


WAYS = [
    ("pull", "{}", "--to", "there"),
    ("pull", "{}", "--to", "there", "--dry-run"),
    ("pull", "{}", "--to", "there", "--check"),
    ("pull", "{}", "--all", "-a", "claude-code"),
    ("sync", "{}"),
    ("sync", "{}", "--dry-run"),
    ("source", "add", "{}"),
    ("import", "{}", "--all"),
    ("export", "{}", "--well-known", "there"),
]


@pytest.mark.parametrize("yes", [[], ["--yes"]], ids=["", "yes"])
@pytest.mark.parametrize("way", WAYS, ids=" ".join)
@pytest.mark.parametrize(
    "slip",
    ["office/nosuch", "Office/nosuch", "ofice/nosuch", "officer/nosuch", "office/x/y@z#v1"],
)
def test_a_slip_near_a_source_is_an_unknown_skill_and_nothing_is_fetched(
    cli, tmp_path, monkeypatch, git_log, way, yes, slip
):
    monkeypatch.chdir(tmp_path)
    ran = cli(*(one.format(slip) for one in way), *yes)
    assert (ran.exit_code, ran.stdout) == (1, "")
    assert f"No skill named '{slip}'." in ran.stderr
    assert f"For the repository, write 'github:{slip}'." in ran.stderr
    assert not git_log.exists()
    assert sources(cli) == ["office"]
    assert not (tmp_path / "there").exists()


def test_a_slip_in_a_skill_gets_the_right_name_as_a_suggestion(cli, git_log):
    ran = cli("pull", "office/brag-sheett", "-a", "claude-code")
    assert "Did you mean 'brag-sheet'?" in ran.stderr
    assert not git_log.exists()


@pytest.mark.parametrize("command", ["sync", "import"])
def test_a_skill_is_not_an_address(cli, git_log, command):
    ran = cli(command, "office/brag-sheet", "--yes")
    assert ran.exit_code != 0
    assert "office/brag-sheet is a skill of the source office" in ran.stderr
    assert not git_log.exists()


def test_a_deleted_skill_is_not_an_address(cli, git_log):
    cli("delete", "brag-sheet")
    ran = cli("pull", "office/brag-sheet", "--to", "there", "--yes")
    assert (ran.exit_code, "restore" in ran.stderr) == (1, True)
    assert not git_log.exists()


@pytest.mark.parametrize("way", [one for one in WAYS if not {"--dry-run", "--check"} & {*one}])
def test_another_shorthand_is_shown_in_full_and_needs_yes(
    cli, tmp_path, monkeypatch, git_log, hosts, way
):
    monkeypatch.chdir(tmp_path)
    typed = [one.format("team/skills") for one in way]
    ran = cli(*typed)
    assert (ran.exit_code, ran.stdout) == (1, "")
    assert f"team/skills means {hosts}team/skills\n" in ran.stderr
    assert "Error: Not a terminal; pass --yes to confirm.\n" in ran.stderr
    assert not git_log.exists()
    assert sources(cli) == ["office"]
    ran = cli(*typed, "--yes")
    assert ran.exit_code == 0, ran.output
    assert f"team/skills means {hosts}team/skills\n" in ran.stderr
    assert git_log.exists()


def test_the_explicit_form_and_a_url_do_not_ask(cli, tmp_path, hosts):
    assert cli("pull", "github:office/nosuch", "--to", str(tmp_path / "there")).exit_code == 0
    assert cli("sync", f"{hosts}team/skills").exit_code == 0
    assert cli("source", "add", "github:team/skills@alpha").exit_code == 0


def test_a_registered_shorthand_does_not_ask(cli, tmp_path, hosts):
    assert cli("sync", "team/skills", "--yes").exit_code == 0
    assert cli("sync", "team/skills").exit_code == 0
    ran = cli("pull", "team/skills@alpha", "--to", str(tmp_path / "there"))
    assert ran.exit_code == 0
    assert "means" not in ran.stderr
    assert len(sources(cli)) == 2


def test_on_a_terminal_it_asks_and_a_no_fetches_nothing(cli, terminal, tmp_path, git_log):
    typed = ("--config", str(tmp_path / "config.yaml"), "sync", "team/skills")
    ran = terminal(*typed, typed=b"n\n")
    assert (ran.status, "Fetch from this address? [y/N]" in ran.out) == (1, True)
    assert "Aborted." in ran.out
    assert not git_log.exists()
    ran = terminal(*typed, typed=b"y\n")
    assert ran.status == 0
    assert git_log.exists()


def test_what_was_pulled_is_named_with_its_source_or_its_address_and_commit(cli, tmp_path, hosts):
    there = str(tmp_path / "there")
    assert "From the source office: brag-sheet\n" in cli("pull", "brag-sheet", "--to", there).stderr
    ran = cli("pull", "github:team/skills", "--to", there)
    (row,) = [one for one in json.loads(cli("list", "--json").stdout) if one["name"] == "alpha"]
    commit = row["origin"]["commit"][:10]
    assert f"From {hosts}team/skills at {commit}: alpha\n" in ran.stderr
    assert "From " not in cli("pull", "--to", there).stderr


@pytest.mark.parametrize("slip", ["office/nosuch", "ofice/nosuch"])
def test_a_program_gets_an_error_for_a_slip_and_nothing_is_fetched(office, git_log, slip):
    for way in (office.sync, office.add_source, office.skills_at, office.import_skills):
        with pytest.raises(SkillNotFound) as caught:
            way(slip)
        assert (caught.value.source, caught.value.address) == ("office", f"github:{slip}")
    with pytest.raises(SkillNotFound):
        office.sync("github:team/skills", slip)
    assert not git_log.exists()


def test_a_program_gets_an_error_for_a_skill_that_is_or_was(office, git_log):
    with pytest.raises(UsageProblem, match="is a skill of the source office"):
        office.sync("office/brag-sheet")
    office.delete("brag-sheet")
    with pytest.raises(SkillGone):
        office.sync("office/brag-sheet")
    assert not git_log.exists()


def test_another_shorthand_is_an_address_for_a_program(office):
    assert office.sync("team/skills").added == ("alpha",)


def test_a_look_alike_that_is_pulled_is_warned_of(cli, tmp_path):
    write_skill(tmp_path / "other" / "x", name="br\u0430g-sheet")
    write_skill(tmp_path / "third" / "y", name="plain")
    cli("sync", str(tmp_path / "other"), str(tmp_path / "third"))
    ran = cli("pull", "br\u0430g-sheet", "plain", "--to", str(tmp_path / "there"))
    assert ran.exit_code == 0
    assert "looks like another skill: office/brag-sheet\n" in ran.stderr
    assert ran.stderr.count("looks like") == 1
