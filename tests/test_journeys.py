"""Three ways through the program, step by step: one person, a team's administrator, a program."""

import json
import logging
import re
import shlex
import shutil
from importlib.util import find_spec

import pytest

from registry import SkillRegistry
from registry.errors import SkillNotFound, UsageProblem
from tests import program
from tests.conftest import REPOSITORY, interpreted
from tests.home import git, make, make_upstream, text, write
from tests.people import Person

pytestmark = [
    pytest.mark.file,
    pytest.mark.skipif(shutil.which("git") is None, reason="there is no git"),
]

NOT_ASKED = "Error: Not a terminal; pass --yes to confirm.\n"


@pytest.fixture
def ann(tmp_path):
    """Somebody with skills for three agents, a project and a repository that others can fetch."""
    person = Person(tmp_path / "ann", VISUAL=str(tmp_path / "editor"))
    (tmp_path / "editor").write_text("#!/bin/sh\necho 'In three lines.' >> \"$1\"\n")
    (tmp_path / "editor").chmod(0o755)
    make(person.home)
    write(person.path("~/.cursor/skills/haiku"), text("haiku", "Writes haikus.", "fun"))
    write(person.path("~/.codex/skills/limerick"), text("limerick", "Writes limericks.", "fun"))
    git(person.path("~/work/shop"), "init", "-q", "-b", "main")
    person.commits("~/work/shop", "The shop")
    make_upstream(person.home)
    git(person.path("~/upstream"), "clone", "-q", "--bare", "office", "office.git")
    return person


@pytest.fixture
def office(ann):
    """The address of the repository."""
    return f"file://{ann.home}/upstream/office.git"


@pytest.fixture
def bob(tmp_path):
    """A colleague, whose home is empty."""
    return Person(tmp_path / "bob")


def publish(ann, line):
    """Publish a new version of the skill ``slides``."""
    with ann.path("~/upstream/office/skills/slides/SKILL.md").open("a") as document:
        document.write(line)
    ann.commits("~/upstream/office", line.strip())
    git(ann.path("~/upstream/office"), "push", "-q", "../office.git", "main")


def states(ran):
    """Return the state of each skill that ``pull`` or ``list --agent`` names."""
    lines = [line.split("\t") for line in ran.out.splitlines() if "\t" in line]
    return {(line[1].split("/")[-1], line[0]) for line in lines}


def shown(person, name):
    return json.loads(person.types(f"show {name} --json").out)


def texts(person, *folders):
    """Return all files of skills in folders."""
    return {
        str(path): path.read_bytes()
        for folder in folders
        for path in sorted(person.path(folder).rglob("SKILL.md"))
    }


# One person with three agents


def test_one_person_with_three_agents_and_a_colleague(ann, bob, office):
    she_registers_the_folders_of_her_agents(ann)
    she_asks_what_an_agent_sees(ann)
    one_command_is_one_undo(ann)
    an_installed_copy_keeps_its_origin(ann, office)
    her_colleague_restores_what_the_lock_names(ann, bob, office)
    a_folder_that_no_pull_made_is_left_alone(ann)


def she_registers_the_folders_of_her_agents(ann):
    said = ann.types("list").err
    assert said.startswith(
        "The registry is empty. To register a folder and read its skills, run: skill-registry sync"
    )
    commands = re.findall(
        r"^  skill-registry (sync .*)$", ann.types("source discover").err, re.MULTILINE
    )
    assert len(commands) == 4
    for command in commands:
        ann.types(command)
    ann.goes_to("~/work/shop")
    said = ann.types("sync .claude/skills --scope project")
    assert said.out.splitlines()[:2] == ["+ deploy-prod", "+ seed-data"]
    said = ann.fails("sync ~/.claude/skills --scope team", 2)
    assert "has the scope personal; to change it, run: skill-registry source update" in said.err
    assert "claude\tpersonal\t25" in ann.types("source list").out


def she_asks_what_an_agent_sees(ann):
    assert ("limerick", "registered") in states(ann.types("list --agent codex"))
    assert "haiku" not in ann.types("list --agent codex").out
    reads = f"Cursor reads it from {ann.home}/.cursor/skills/haiku"
    assert reads in ann.types("why haiku --agent cursor").out
    ann.goes_to("~")
    assert ann.types("why haiku --agent cursor").out.count("Cursor reads it") == 1
    assert ann.types("list --agent cursor").out.count("\thaiku\t") == 1
    ann.goes_to("~/work/shop")
    assert "Codex does not read it" in ann.types("why haiku --agent codex").out
    installed = [line.split("\t")[0] for line in ann.types("agents").out.splitlines()[:3]]
    assert installed == ["claude-code", "codex", "cursor"]
    said = ann.fails("pull haiku --agent nope").err
    assert "No agent named 'nope'. To list all agents, run: skill-registry agents\n" in said
    assert "Did you mean 'cursor'" in ann.fails("pull haiku --agent cursr").err


def one_command_is_one_undo(ann):
    mine = ("~/.claude/skills", "~/.cursor/skills", "~/.codex/skills")
    before = texts(ann, *mine)
    commands = {
        "check --fix --yes": "check --fix colon and 2 more skills",
        "update haiku limerick --add-tag poems": "update haiku and 1 more skill",
        "edit haiku": "edit haiku",
        "rename haiku senryu": "rename senryu",
        "delete senryu limerick changelog": "delete senryu and 2 more skills",
    }
    for command in commands:
        ann.types(command)
    changed = texts(ann, *mine)
    listed = ann.types("undo --list").out.splitlines()
    assert [line.split("\t")[1] for line in listed] == [*reversed(commands.values())]
    assert all(re.match(r"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\dZ\t", line) for line in listed)
    said = ann.fails("undo").err
    assert said.startswith("The last command (delete) changed 3 skills:")
    assert said.endswith(NOT_ASKED)
    assert texts(ann, *mine) == changed != before
    for told in reversed(commands.values()):
        assert ann.types("undo --yes").out == f"Undone: {told}\n"
    assert texts(ann, *mine) == before
    assert ann.fails("undo --yes").err == "Error: There is nothing to undo.\n"


def an_installed_copy_keeps_its_origin(ann, office):
    offered = [line.split("\t")[0] for line in ann.types(f"pull {office} --list").out.splitlines()]
    assert offered == ["mailer", "minutes", "slides"]
    assert "office" not in ann.types("source list").out
    ann.types(f"sync {office}")
    ann.types("pull slides -a claude-code --global")
    ann.types("sync")
    here = shown(ann, "slides")
    assert (here["source"], here["origin"]["url"]) == ("claude", office)
    (listed,) = (one for one in json.loads(ann.types("list --json").out) if one["name"] == "slides")
    assert listed["origin"] == here["origin"]

    # She takes the copy into a project, whose lock is for others.
    ann.types("pull slides minutes -a claude-code -a cursor")
    lock = json.loads(ann.path("skills.lock.json").read_text())["skills"]
    assert lock["slides"]["origin"] == here["origin"]
    assert ann.path(".claude/skills/slides").is_symlink()
    ann.types("sync")
    assert "link" not in ann.types("check .claude/skills").out
    assert "link" not in ann.fails("check").out
    ann.commits("~/work/shop", "Skills")

    # Upstream goes on. A check asks nobody, and names what it compared with.
    publish(ann, "6. Bow.\n")
    checked = ann.types("pull --check")
    assert states(checked) == {("minutes", "unchanged"), ("slides", "unchanged")}
    commit = here["origin"]["commit"][:10]
    assert f"Compared with office at {commit}, fetched on 20" in checked.err
    assert "To fetch newer versions, run: skill-registry sync office\n" in checked.err
    assert ann.types("source list --remote").out.endswith("\toutdated\n")
    assert "~ office/slides" in ann.types("sync office").out
    for line in ("pull --check", "outdated"):
        assert ("slides", "outdated") in states(ann.fails(line))
    assert "+6. Bow." in ann.types("diff slides --upstream").out
    assert "installed copy of it in another version" in ann.types("why office/slides").out
    said = ann.types("why slides --agent claude-code").out.splitlines()
    (personal,) = (line for line in said if line.startswith("slides\t"))
    assert f"reads it from {ann.home}/.claude/skills/slides (outdated)" in personal
    project, place = ann.path(".claude/skills/slides"), f"{ann.home}/.claude/skills/slides"
    assert f"of the same name from {project}; it loads the one in {place}, because" in personal


def her_colleague_restores_what_the_lock_names(ann, bob, office):
    git(bob.home, "clone", "-q", str(ann.path("~/work/shop")), "shop")
    bob.goes_to("~/shop")
    before = texts(bob, ".agents/skills")
    shutil.rmtree(bob.path(".agents"))
    # A folder of a machine, unlike an address of the net, is not fetched because a lock says so.
    (command,) = set(
        re.findall(r"run: skill-registry (sync .*?)\)", bob.fails("pull --frozen").err)
    )
    assert command == f"sync {office}"
    bob.types(command)
    assert states(bob.types("pull --frozen")) == {("minutes", "added"), ("slides", "added")}
    assert texts(bob, ".agents/skills") == before
    assert states(bob.fails("pull --check")) == {("minutes", "unchanged"), ("slides", "outdated")}
    assert ("slides", "updated") in states(bob.types("pull"))
    assert bob.types("undo --yes").out == "Undone: pull slides\n"
    assert texts(bob, ".agents/skills") == before
    assert {("minutes", "installed"), ("slides", "outdated")} <= states(
        bob.types("list --agent claude-code")
    )


def a_folder_that_no_pull_made_is_left_alone(ann):
    own = ann.path(".claude/skills/invoices")
    shutil.copytree(ann.path("~/.claude/skills/invoices"), own)
    lock = ann.path("skills.lock.json").read_bytes()
    failed = ann.fails("pull invoices -a claude-code")
    assert failed.out.startswith("unmanaged\tinvoices\t")
    said = failed.err
    equal = "its files are equal, but it was not installed by pull"
    command = "pull --agent=claude-code --adopt invoices"
    way = f"To take it over, run: skill-registry {command}\n"
    assert said.endswith(f"\ninvoices was not changed: {equal}. {way}")
    assert ann.path("skills.lock.json").read_bytes() == lock
    ann.fails("pull --remove invoices")
    assert own.exists()
    assert states(ann.types(command)) == {("invoices", "adopted")}
    assert states(ann.types("pull --remove invoices")) == {("invoices", "removed")}
    assert not own.exists()
    assert ann.types("undo --yes").out == "Undone: pull --remove invoices\n"
    assert own.exists()


# A team's administrator


def test_an_administrator_of_a_teams_skills(ann, office):
    ann.goes_to("~/team/skills")
    before_anything_is_there_each_command_says_so(ann)
    the_settings_in_force_are_printed(ann)
    the_teams_folder_keeps_its_scope(ann)
    a_skill_is_renamed_for_all(ann)
    a_repository_is_taken_in_with_care(ann, office)
    nothing_is_emptied_or_given_away_unasked(ann)


def before_anything_is_there_each_command_says_so(ann):
    said = ann.fails("import nothere.zip").err
    assert said == "Error: 'nothere.zip' can't be used: there is no such file.\n"
    for line in ("list", "search deploy", "show oncall", "tools call list_skills"):
        said = ann.fails(f"--db typo.db {line}", 3).err
        assert said.startswith(f"Error: There is no database at {ann.folder}/typo.db.")
    assert not ann.path("typo.db").exists()
    for line in ("list", "search deploy", "list --tag team"):
        assert ann.types(line).err.startswith("The registry is empty.")
    ann.path("~/empty").mkdir()
    ann.types("--db ~/empty.db sync ~/empty")
    for line in ("list", "search deploy", "list --tag team"):
        said = ann.types(f"--db ~/empty.db {line}").err
        assert said.startswith("The registered sources have no skills.")


def the_settings_in_force_are_printed(ann):
    ann.path("~/.config/skill-registry").mkdir(parents=True)
    settings = ann.path("~/.config/skill-registry/config.yaml")
    settings.write_text("default_source: team\n")
    printed = dict(line.split("\t", 1) for line in ann.types("config").out.splitlines())
    assert printed["default_source"].split("\t")[0] == "team"
    assert printed["settings_file"].split("\t")[0] == str(settings)
    assert printed["database"].endswith("registry.db\tdefault")


def the_teams_folder_keeps_its_scope(ann):
    ann.types("sync . --scope team --name team")
    said = ann.fails("sync . --scope personal", 2).err
    assert said.endswith("to change it, run: skill-registry source update team --scope personal\n")
    assert json.loads(ann.types("source list --json").out)[0]["scope"] == "team"
    said = ann.types("sync ~/work/shop").err
    told = re.findall(r"run: skill-registry (sync \S+ --scope project)", said)
    ann.types("source remove shop")
    (command,) = told
    ann.goes_to("~/work/shop")
    ann.types(f"{command} --name shop")
    assert json.loads(ann.types("show deploy-prod --json").out)["source"] == "shop"
    ann.goes_to("~/team/skills")
    assert shown(ann, "deploy-prod")["source"] == "team"
    assert "shop/deploy-prod" in ann.types("why deploy-prod").out


def a_skill_is_renamed_for_all(ann):
    before = texts(ann, ".")
    ann.types("rename oncall pager")
    assert ann.path("pager/SKILL.md").exists()
    assert "No skill named 'oncall'" in ann.fails("show oncall").err
    ann.types("update pager style-guide --add-tag read-first")
    assert ann.types("undo --yes").out == "Undone: update pager and 1 more skill\n"
    ann.types("undo --yes")
    assert texts(ann, ".") == before


def a_repository_is_taken_in_with_care(ann, office):
    ann.types(f"sync {office}#v1")
    said = ann.fails("source update office --ref v9").err
    assert "has no branch, tag or commit v9" in said
    assert "secret-sent" in ann.types("source update office --ref main").err
    assert "quarantined" in ann.types("show mailer").out
    assert ("mailer", "failed") in states(ann.fails("pull mailer --to ~/elsewhere"))
    assert "mailer" not in ann.types("list --format names").out
    assert ann.fails("source trust office").err.endswith(NOT_ASKED)
    ann.types("source trust office --yes")
    assert "mailer" in ann.types("list --format names").out


def nothing_is_emptied_or_given_away_unasked(ann):
    before = texts(ann, ".")
    ann.types("delete style-guide oncall")
    for line in ("undo", "trash empty", "mcp install --client claude"):
        assert ann.fails(line).err.endswith(NOT_ASKED)
    assert not ann.path("~/.claude.json").exists()
    assert ann.types("undo --yes").out == "Undone: delete style-guide and 1 more skill\n"
    assert texts(ann, ".") == before
    assert ann.fails("undo --yes").err == "Error: There is nothing to undo.\n"


# A program that embeds the registry


def test_a_program_that_embeds_the_registry(ann, tmp_path, monkeypatch, caplog):
    monkeypatch.setenv("HOME", str(ann.home))
    monkeypatch.chdir(ann.path("~/work/shop"))
    database = str(tmp_path / "program.db")
    a_program_learns_that_there_is_nothing_yet(ann, database, caplog)
    a_program_syncs_searches_and_changes(ann, database)
    a_program_puts_skills_into_a_project(ann, database)
    a_client_of_mcp_finds_what_the_program_made(database, tmp_path)


def a_program_learns_that_there_is_nothing_yet(ann, database, caplog):
    with caplog.at_level(logging.WARNING), SkillRegistry.open(database) as registry:
        assert registry.list().total == 0
        assert caplog.messages == [
            f"No database at {database}, so there are no skills. To create it, sync a folder."
        ]
        found = registry.toolset("native").call("search_skills", {"query": "poems"})
        assert found["note"].startswith("The registry is empty")
        empty = ann.path("~/empty")
        empty.mkdir()
        registry.sync(str(empty))
        found = registry.toolset("native").call("search_skills", {"query": "poems"})
        assert found["note"].startswith("No skills can be searched here")


def a_program_syncs_searches_and_changes(ann, database):
    with SkillRegistry.open(database) as registry:
        for folder in ("~/.cursor/skills", "~/.codex/skills", "~/team/skills"):
            registry.sync(folder, scope="team" if "team" in folder else None)
        assert registry.sync(".claude/skills", scope="project").added == (
            "deploy-prod",
            "seed-data",
        )
        assert registry.get("deploy-prod").scope == "project"
        assert registry.search("writes short poems, haikus")[0].ref == "haiku"
        renamed = registry.rename("haiku", "senryu")
        assert renamed.path == str(ann.path("~/.cursor/skills/senryu"))
        with pytest.raises(SkillNotFound):
            registry.get("haiku")
        tools = registry.toolset("native")
        assert tools.call("read_skill", {"name": "senryu"})["skill"]["name"] == "senryu"
        refused = tools.call("read_skill", {"name": "haiku"})
        assert refused["error"]["code"] == "skill_not_found"
        with pytest.raises(UsageProblem, match="has the scope team; to change it, run"):
            registry.sync("~/team/skills", scope="personal")


def a_program_puts_skills_into_a_project(ann, database):
    project = str(ann.path("~/work/shop"))
    with SkillRegistry.open(database) as registry:
        chosen = [registry.get("senryu"), registry.get("limerick")]
        pulled = registry.pull(chosen, project, agents=["claude-code", "codex"])
        assert {one.state for one in pulled} == {"added"}
        registry.update("senryu", description="Writes senryus.")
        behind = {one.ref: one.state for one in registry.check_pulled(project)}
        assert behind == {"senryu": "behind", "limerick": "unchanged"}
        registry.update_pulled(project)
        assert {one.state for one in registry.check_pulled(project)} == {"unchanged"}
        registry.sync()
        assert not [
            found for one in registry.check() for found in one.findings if "link" in found.code
        ]


def a_client_of_mcp_finds_what_the_program_made(database, tmp_path):
    """The client of the page about agents, in a process of its own; it asks something else."""
    if find_spec("mcp") is None:
        pytest.skip("the extra mcp is not installed")
    place = REPOSITORY / "docs" / "how-to" / "connect-an-agent.md"
    page = place.read_text(encoding="utf-8")
    (snippet,) = re.findall(r"```python\n(import asyncio\n.*?)```", page, re.DOTALL)
    loop = 'for skill in found.structured_content["skills"]:'
    assert snippet.count(loop) == snippet.count("review a pull request") == 1
    client = snippet.replace("review a pull request", "senryus").replace(
        loop, f'print(found.structured_content["note"])\n        {loop}'
    )
    client += (
        f"os.environ['SKILL_REGISTRY_DB'] = {str(tmp_path / 'typo.db')!r}\nasyncio.run(main())\n"
    )
    scripts = tmp_path / "bin"
    scripts.mkdir()
    with program.command() as command:
        script = scripts / "skill-registry"
        script.write_text(f'#!/bin/sh\nexec {shlex.join(command)} "$@"\n')
        script.chmod(0o755)
        ran = interpreted("-c", client, PATH=f"{scripts}:/usr/bin:/bin", SKILL_REGISTRY_DB=database)
    assert ran.returncode == 0, ran.stderr
    *found, note = ran.stdout.splitlines()
    assert found == ["None", "senryu Writes senryus."]
    assert note.startswith("The registry is empty. The user has to")
