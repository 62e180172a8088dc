"""The contract of the toolset wave, section by section (docs/contributing/contracts.md)."""

import json
import os
import shutil
import threading

import pytest

from registry.api import SkillRegistry
from registry.errors import FileTooLarge, SkillInaccessible
from registry.settings import Limits, Settings
from registry.toolsets import wave
from registry.toolsets.wave import parse_skill_file
from tests.conftest import open_with, write_skill

HEAD = "Invoke skills based on available skill metadata. Skills: "


@pytest.fixture
def registry(database, tmp_path):
    """A registry that is seen from the project of `places`."""
    work = tmp_path / "work"
    with SkillRegistry.open(database, settings=Settings(), workdir=work) as opened:
        yield opened


@pytest.fixture
def places(registry, tmp_path):
    """The user's skills and a project's, with one name in both."""
    personal, project = (
        tmp_path / "home" / ".wave" / "skills",
        tmp_path / "work" / ".wave" / "skills",
    )
    write_skill(personal / "skill-1", description="Description of skill 1")
    write_skill(personal / "shared", description="The user's own")
    write_skill(project / "skill-2", description="Description of skill 2")
    write_skill(project / "shared", description="The project's")
    registry.sync(str(personal), name="personal")
    registry.sync(str(project), name="project", scope="project")
    return personal, project


@pytest.fixture
def call(registry):
    def run(arguments, **limits):
        answer = registry.toolset("wave", **limits).call("Skill", arguments)
        json.dumps(answer, ensure_ascii=False).encode()
        wanted = {"success", "content", "shortResult"}
        if not answer["success"]:
            wanted = {"success", "content", "error", "errorDetails"}
        assert set(answer) == wanted
        return answer

    return run


@pytest.fixture
def refused(call):
    def run(name):
        answer = call({"skill_name": name})
        assert not answer["success"]
        return answer

    return run


class TestRegistration:
    def test_the_tool_is_called_skill_and_takes_one_name(self, registry, places):
        (tool,) = registry.toolset("wave").tools()
        assert tool.name == "Skill"
        assert tool.parameters == {
            "type": "object",
            "properties": {
                "skill_name": {
                    "type": "string",
                    "description": "Name of the skill to invoke from available skills",
                }
            },
            "required": ["skill_name"],
            "additionalProperties": False,
        }

    def test_without_skills_in_it_the_description_is_the_functions(self):
        assert wave.TOOLS[0].description == (
            "Invoke a skill to apply specialized expertise and capabilities"
        )

    def test_the_description_carries_the_skills_as_they_are_now(self, registry, places):
        toolset = registry.toolset("wave")
        assert toolset.tools()[0].description == HEAD + (
            "\u2022 **shared** (project): The project's\n"
            "\u2022 **skill-1** (personal): Description of skill 1\n"
            "\u2022 **skill-2** (project): Description of skill 2"
        )
        registry.create("fresh", description="Just made.", source="personal")
        registry.delete("skill-1")
        described = toolset.tools()[0].description
        assert "\u2022 **fresh** (personal): Just made.\n" in described
        assert "skill-1" not in described

    def test_without_any_it_says_so(self, registry):
        described = registry.toolset("wave").tools()[0].description
        assert described == f"{HEAD}No skills are currently available."

    def test_a_description_of_many_lines_is_one_entry(self, registry, root, skill):
        skill("multi", description="|\n  One.\n  Two.")
        registry.sync(str(root))
        described = registry.toolset("wave").tools()[0].description
        assert described == f"{HEAD}\u2022 **multi** (personal): One. Two."


class TestBudget:
    """The description of a tool is a part of every request of an agent."""

    @pytest.fixture
    def described(self, database, root):
        """Return the description for so many skills and characters, as (lines, last line)."""

        def run(number, limit, name="skill-{}"):
            for one in range(number):
                write_skill(root / name.format(f"{one:04}"), description="word " * 30)
            settings = Settings(tool_description_chars=limit)
            with SkillRegistry.open(database, settings=settings) as registry:
                registry.sync(str(root), name="mine")
                text = registry.toolset("wave").tools()[0].description
            assert len(text) <= limit
            assert text.startswith(HEAD)
            return text.removeprefix(HEAD).splitlines()

        return run

    def test_by_default_it_is_bounded_whatever_there_is(self, registry, root):
        for number in range(120):
            write_skill(root / f"skill-{number:03}", description="word " * 60)
        registry.sync(str(root))
        text = registry.toolset("wave").tools()[0].description
        assert 14_000 < len(text) <= 15_000
        assert text.count("\u2022 **") == 120

    def test_descriptions_are_shortened_first(self, described):
        *lines, note = described(20, 2000)
        assert len(lines) == 20
        assert all(line.endswith("word\u2026") for line in lines)
        assert note == "(Long descriptions are shortened.)"

    def test_then_only_names_are_listed(self, described):
        *lines, note = described(20, 800)
        assert lines == [f"\u2022 **skill-{n:04}** (personal)" for n in range(20)]
        assert note == "(Only names are listed.)"

    def test_then_names_are_dropped_and_counted(self, described):
        *lines, note = described(60, 800)
        assert lines == [f"\u2022 **skill-{n:04}** (personal)" for n in range(len(lines))]
        missing = 60 - len(lines)
        assert note == f"(Only names are listed, and {missing} more skills not even by name.)"

    def test_the_skills_of_the_project_are_dropped_last(self, registry, tmp_path):
        for source, scope in (("a", "personal"), ("z", "project")):
            for number in range(400):
                write_skill(tmp_path / source / f"{source}-{number:03}")
            registry.sync(str(tmp_path / source), name=source, scope=scope)
        text = registry.toolset("wave").tools()[0].description
        assert text.count("(project)") == 400
        assert 0 < text.count("(personal)") < 400

    def test_what_is_not_listed_can_still_be_invoked(self, described, database):
        described(60, 800)
        with SkillRegistry.open(database, settings=Settings()) as registry:
            assert registry.toolset("wave").call("Skill", {"skill_name": "skill-0059"})["success"]


class TestOutput:
    def test_success_gives_the_path_and_the_whole_text(self, call, places):
        answer = call({"skill_name": "skill-2"})
        folder = places[1] / "skill-2"
        text = (folder / "SKILL.md").read_text()
        assert answer["content"] == f"Skill: skill-2 (Type: project)\nPath: {folder}\n\n{text}"
        assert answer["shortResult"] == "skill-2: Description of skill 2"
        assert "(Type: personal)\n" in call({"skill_name": "skill-1"})["content"]

    def test_the_projects_skill_hides_the_users(self, call, places):
        assert "The project's" in call({"skill_name": "shared"})["content"]

    def test_an_edit_on_disk_is_read_at_once(self, call, places):
        with (places[0] / "skill-1" / "SKILL.md").open("a") as document:
            document.write("Edited.\n")
        assert call({"skill_name": "skill-1"})["content"].endswith("Edited.\n")

    def test_with_a_workdir_only_that_projects_skills_are_shown(self, call, registry, places):
        elsewhere = places[1].parent.parent.parent / "elsewhere"
        elsewhere.mkdir()
        described = registry.toolset("wave", workdir=str(elsewhere)).tools()[0].description
        assert "skill-2" not in described
        assert "skill-1" in described
        here = registry.toolset("wave", workdir=str(places[1].parent.parent))
        assert "skill-2" in here.tools()[0].description
        assert not call({"skill_name": "skill-2"}, workdir=str(elsewhere))["success"]

    def test_the_short_result_is_brief(self, call, registry, root, skill):
        skill("long", description="word " * 100)
        registry.sync(str(root))
        short = call({"skill_name": "long"})["shortResult"]
        assert short.endswith("\u2026")
        assert len(short) <= len("long: ") + wave.BRIEF


class TestNotFound:
    def test_the_text_lists_the_skills_and_says_how_to_create_one(self, refused, places):
        text = (
            "Skill 'skill-9' not found.\n\nAvailable skills:\n"
            "- skill-1: Description of skill 1\n"
            "- skill-2: Description of skill 2\n"
            "- shared: The project's\n\n"
            "To create this skill:\n"
            "1. Create directory ~/.wave/skills/skill-9/\n"
            "2. Add SKILL.md file with proper YAML frontmatter"
        )
        answer = refused("skill-9")
        assert answer["error"] == text
        assert answer["content"] == f"Error invoking skill 'skill-9': {text}"
        assert answer["errorDetails"] == {
            "type": "skill_not_found",
            "skillName": "skill-9",
            "message": "Skill 'skill-9' not found.",
            "suggestions": ["Did you mean 'skill-1'?", "Did you mean 'skill-2'?"],
            "availableSkills": ["skill-1", "skill-2", "shared"],
        }

    def test_what_is_in_the_trash_gets_the_same_answer_as_what_never_was(
        self, refused, registry, places
    ):
        never = refused("skill-3")
        registry.create("skill-3", description="D.", source="personal")
        registry.delete("skill-3")
        assert refused("skill-3") == never
        assert never["errorDetails"]["suggestions"]

    def test_where_there_are_none_the_list_says_so(self, refused):
        assert "Available skills:\nNo skills are currently available." in refused("x")["error"]

    def test_of_very_many_skills_some_are_listed_and_the_rest_counted(
        self, refused, registry, root
    ):
        for number in range(wave.MAX_LISTED + 5):
            write_skill(root / f"skill-{number:03}")
        registry.sync(str(root))
        answer = refused("skill-000x")
        lines = answer["error"].split("\n\n")[1].splitlines()
        assert lines[1].startswith("- skill-000: ")
        assert lines[-1] == "- \u2026 and 5 more"
        assert len(answer["errorDetails"]["availableSkills"]) == wave.MAX_LISTED

    def test_a_name_that_several_have_is_told_apart(self, refused, registry, root, skill):
        skill("a/same")
        skill("b/same", body="Another.")
        registry.sync(str(root), name="mine")
        answer = refused("same")
        assert answer["errorDetails"]["type"] == "skill_not_found"
        assert answer["errorDetails"]["availableSkills"] == ["mine/a/same", "mine/b/same"]
        assert "Skill 'same' is ambiguous." in answer["error"]

    def test_a_missing_or_wrong_name_is_an_error_and_no_crash(self, call, places):
        for arguments in [
            {},
            None,
            [],
            {"skill_name": None},
            {"skill_name": 5},
            {"skill_name": ""},
            "skill-1",
        ]:
            answer = call(arguments)
            assert not answer["success"]
            assert "skill_name" in answer["error"]

    def test_other_arguments_are_refused(self, call, places):
        answer = call({"skill_name": "skill-1", "more": 1})
        assert "Unknown argument 'more'" in answer["error"]

    def test_hostile_names_find_nothing(self, refused, places):
        for name in ["../../etc/passwd", "x" * 10_000, "a\0b", "\ud800", "\u202eabc"]:
            assert refused(name)["errorDetails"]["type"] == "skill_not_found"


class TestOtherErrors:
    def test_a_skill_that_hides_itself_from_models_is_not_available(
        self, refused, registry, root, skill
    ):
        skill("secret", extra="disable-model-invocation: true\n")
        registry.sync(str(root))
        assert "secret" not in registry.toolset("wave").tools()[0].description
        assert refused("secret")["error"] == (
            "Skill 'secret' is not available for model invocation."
        )

    def test_an_invalid_skill_says_what_is_wrong_and_how_to_fix_it(self, refused, registry, root):
        (root / "empty").mkdir()
        (root / "empty" / "SKILL.md").write_text("")
        registry.sync(str(root))
        answer = refused("empty")
        assert answer["error"] == (
            "Skill 'empty' is invalid: the file is empty\n\nFix by:\n"
            "- write the skill, or delete the folder\n\n"
            "Skill will be available after fixing these issues."
        )
        assert answer["errorDetails"]["type"] == "skill_invalid"
        assert answer["content"].startswith(
            "Error invoking skill 'empty': Skill 'empty' is invalid"
        )
        assert "\n\nAvailable skills:\n" in answer["content"]

    def test_front_matter_that_must_not_be_parsed_is_malformed(self, refused, registry, root):
        (root / "bomb").mkdir()
        bomb = "---\nname: bomb\ndescription: &a [x, x]\nmore: [*a, *a]\n---\n"
        (root / "bomb" / "SKILL.md").write_text(bomb)
        registry.sync(str(root))
        assert refused("bomb")["errorDetails"]["type"] == "skill_malformed"

    @pytest.mark.parametrize("front", ["name: [broken", 'name: broken\n  tags: "x', "\tname: x"])
    def test_broken_yaml_without_a_body_is_malformed(self, refused, registry, root, front):
        (root / "broken").mkdir()
        (root / "broken" / "SKILL.md").write_text(f"---\n{front}\n---\n")
        registry.sync(str(root))
        answer = refused("broken")
        assert answer["errorDetails"]["type"] == "skill_malformed"
        assert len(answer["errorDetails"]["suggestions"]) > 1

    def test_front_matter_without_a_description_or_body_is_invalid(self, refused, registry, root):
        for front in ("name: bare\n", ""):
            (root / "bare").mkdir(exist_ok=True)
            (root / "bare" / "SKILL.md").write_text(f"---\n{front}---\n")
            registry.sync(str(root))
            assert refused("bare")["errorDetails"]["type"] == "skill_invalid"

    @pytest.mark.usefixtures("settled")
    def test_a_file_that_cannot_be_read_is_inaccessible(self, refused, registry, root, skill, deny):
        folder = skill("closed")
        registry.sync(str(root))
        denied = deny("SKILL.md")
        answer = refused("closed")
        assert denied
        assert answer["errorDetails"]["type"] == "skill_inaccessible"
        assert str(folder / "SKILL.md") in answer["error"]
        assert "Permission denied" in answer["error"]

    def test_what_is_no_file_is_invalid(self, refused, registry, root, skill):
        folder = skill("closed")
        registry.sync(str(root))
        (folder / "SKILL.md").unlink()
        os.mkfifo(folder / "SKILL.md")
        answer = refused("closed")
        assert answer["errorDetails"]["type"] == "skill_invalid"
        assert "a skill can't contain a pipe, a socket or a device" in answer["error"]

    def test_a_folder_that_is_gone_is_not_found(self, refused, registry, places):
        shutil.rmtree(places[0] / "skill-1")
        for name in ("skill-1", "personal/skill-1"):
            answer = refused(name)
            assert answer["errorDetails"]["type"] == "skill_not_found"
            assert answer["errorDetails"]["availableSkills"] == ["shared", "skill-2"]
            assert "- skill-1:" not in answer["content"]

    @pytest.mark.file
    def test_an_unusable_database_is_a_system_error(self, refused, registry, places):
        registry.core.reader.close()
        for path in registry.path, f"{registry.path}-wal", f"{registry.path}-shm":
            with open(path, "wb") as file:
                file.write(b"garbage" * 1000)
        answer = refused("skill-1")
        assert answer["errorDetails"]["type"] == "system_error"
        assert "damaged" in answer["error"]


class TestAFolderThatExists:
    """Nobody is told to create a folder that is there: what is wrong with it is said."""

    def test_broken_front_matter_that_hides_the_name_is_malformed(self, refused, registry, root):
        (root / "greet").mkdir()
        broken = "---\nname: [greet\ndescription: {x\n---\nText.\n"
        (root / "greet" / "SKILL.md").write_text(broken)
        registry.sync(str(root))
        answer = refused("greet")
        assert answer["errorDetails"]["type"] == "skill_malformed"
        assert answer["error"].startswith(
            "Skill 'greet' is invalid: name must match directory name: '[greet' is not 'greet'; "
        )
        assert "\n\nFix by:\n- " in answer["error"]
        assert "Create directory" not in answer["content"]

    def test_a_name_that_is_not_the_folders_is_invalid(self, refused, registry, root, skill):
        skill("folder", name="other")
        registry.sync(str(root))
        assert refused("folder")["error"] == (
            "Skill 'folder' is invalid: name must match directory name: 'other' is not 'folder'"
            "\n\nFix by:\n- Write `name: folder` in the SKILL.md, or invoke 'other'\n\n"
            "Skill will be available after fixing these issues."
        )
        assert refused("folder")["errorDetails"]["type"] == "skill_invalid"

    def test_one_that_also_has_another_name_and_cannot_be_used_says_why(
        self, refused, registry, root
    ):
        (root / "folder").mkdir()
        bomb = "---\nname: other\ndescription: &a [x]\nmore: *a\n---\n"
        (root / "folder" / "SKILL.md").write_text(bomb)
        registry.sync(str(root))
        answer = refused("folder")
        assert answer["errorDetails"]["type"] == "skill_malformed"
        assert answer["error"].startswith("Skill 'folder' is invalid: the alias")

    @pytest.mark.parametrize("since_the_sync", [False, True])
    def test_a_folder_without_a_document_says_so(
        self, refused, registry, root, skill, since_the_sync
    ):
        folder = skill("van")
        registry.sync(str(root))
        (folder / "SKILL.md").unlink()
        if not since_the_sync:
            registry.sync(allow_prune=True)
        assert refused("van")["error"] == (
            "Skill 'van' is invalid: the folder holds no SKILL.md\n\nFix by:\n"
            "- add a SKILL.md to the folder\n\n"
            "Skill will be available after fixing these issues."
        )

    def test_what_hides_itself_is_not_available_by_its_folder_either(
        self, refused, registry, root, skill
    ):
        skill("folder", name="other", extra="disable-model-invocation: true\n")
        registry.sync(str(root))
        assert refused("folder")["error"] == (
            "Skill 'folder' is not available for model invocation."
        )

    def test_what_the_personality_does_not_see_is_not_told_of(self, database, root, skill):
        coder = {"skills": {"global_ingest": {"deny": ["other"]}}}
        with open_with(database, personalities={"coder": coder}) as registry:
            skill("folder", name="other")
            registry.sync(str(root))
            toolset = registry.toolset("wave", personality="coder")
            answer = toolset.call("Skill", {"skill_name": "folder"})
        assert answer["error"].startswith("Skill 'folder' not found.")
        assert "other" not in answer["content"]


class TestManager:
    def test_discovery_tells_personal_from_project_and_names_what_is_wrong(self, registry, places):
        (places[0] / "broken").mkdir()
        (places[0] / "broken" / "SKILL.md").write_bytes(b"\xff")
        registry.sync()
        found = registry.toolset("wave").skills.initialize()
        assert list(found.personal_skills) == ["skill-1"]
        assert list(found.project_skills) == ["shared", "skill-2"]
        assert found.personal_skills["skill-1"].skill_path == str(places[0] / "skill-1")
        (error,) = found.errors
        assert error.skill_path == str(places[0] / "broken")
        assert "UTF-8" in error.message

    def test_errors_are_those_of_the_skills_that_are_shown(self, registry, places, tmp_path):
        (places[0] / "blank").mkdir()
        (places[1] / "broken").mkdir()
        (places[1] / "broken" / "SKILL.md").write_text("")
        registry.sync()
        found = {
            scope: registry.toolset("wave", scope=scope).skills.initialize().errors
            for scope in ("personal", "project")
        }
        assert [(e.skill_path, e.message) for e in found["personal"]] == [
            (str(places[0] / "blank"), "the folder holds no SKILL.md")
        ]
        assert [(e.skill_path, e.message) for e in found["project"]] == [
            (str(places[1] / "broken"), "the file is empty")
        ]

    def test_loading_gives_the_skill_or_nothing(self, registry, places):
        skills = registry.toolset("wave").skills
        assert skills.load_skill("skill-1").path == str(places[0] / "skill-1")
        assert skills.load_skill("nothing") is None
        assert [one.name for one in skills.available_skills()] == ["shared", "skill-1", "skill-2"]

    def test_many_threads_invoke_skills_while_they_are_edited(self, registry, places):
        toolset = registry.toolset("wave")
        problems, stop = [], threading.Event()

        def invoke():
            while not stop.is_set():
                answer = toolset.call("Skill", {"skill_name": "skill-1"})
                if not answer["success"] or "END" not in answer["content"]:
                    problems.append(answer)
                toolset.tools()

        document = places[0] / "skill-1" / "SKILL.md"

        def write(turn):
            new = document.with_name(".new")
            new.write_text(f"---\nname: skill-1\ndescription: {turn}\n---\n{'x' * turn}\nEND\n")
            new.rename(document)

        write(0)
        threads = [threading.Thread(target=invoke) for _ in range(6)]
        for thread in threads:
            thread.start()
        for turn in range(10):
            write(turn)
            registry.sync(wait=True)
        stop.set()
        for thread in threads:
            thread.join()
        assert problems == []


class TestParsing:
    def write(self, folder, text):
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "SKILL.md").write_text(text)
        return str(folder / "SKILL.md")

    def test_a_file_by_the_contract_is_valid(self, tmp_path):
        text = (
            "---\nname: skill-name\n"
            "description: Brief description of what this skill does and when to use it\n---\n\n"
            "# Skill Content\nMarkdown content with instructions...\n"
        )
        parsed = parse_skill_file(self.write(tmp_path / "skill-name", text))
        assert parsed.is_valid
        assert parsed.validation_errors == ()
        assert parsed.frontmatter["name"] == "skill-name"
        assert parsed.content.startswith("# Skill Content") or "# Skill Content" in parsed.content
        assert parsed.skill_metadata.skill_path == str(tmp_path / "skill-name")

    @pytest.mark.parametrize(
        ("text", "error"),
        [
            ("no front matter", "front matter"),
            ("---\nname: other\ndescription: D.\n---\n", "name must match directory name"),
            (
                "---\nname: Skill_Name\ndescription: D.\n---\n",
                "lowercase letters, numbers, hyphens",
            ),
            ("---\ndescription: D.\n---\n", "name is required"),
            ("---\nname: skill-name\n---\nText.\n", "description is required"),
            ("---\nname: skill-name\ndescription: " + "x" * 1025 + "\n---\n", "1-1024 characters"),
            ("---\nname: skill-name\ndescription: a: b\n---\n", "colon"),
        ],
    )
    def test_each_rule_is_a_validation_error(self, tmp_path, text, error):
        parsed = parse_skill_file(self.write(tmp_path / "skill-name", text))
        assert not parsed.is_valid
        assert error in "; ".join(parsed.validation_errors)

    def test_a_description_of_1024_characters_is_valid(self, tmp_path):
        text = f"---\nname: skill-name\ndescription: {'x' * 1024}\n---\n\nText.\n"
        assert parse_skill_file(self.write(tmp_path / "skill-name", text)).is_valid

    def test_a_projects_file_is_told_from_the_users(self, tmp_path):
        text = "---\nname: a\ndescription: D.\n---\n"
        mine = parse_skill_file(self.write(tmp_path / "home" / ".wave" / "skills" / "a", text))
        theirs = parse_skill_file(self.write(tmp_path / "work" / ".wave" / "skills" / "a", text))
        assert mine.skill_metadata.type == "personal"
        assert theirs.skill_metadata.type == "project"

    def test_what_cannot_be_read_is_raised(self, tmp_path):
        with pytest.raises(SkillInaccessible):
            parse_skill_file(str(tmp_path / "nothing" / "SKILL.md"))
        path = self.write(tmp_path / "large", "x" * 100)
        with pytest.raises(FileTooLarge):
            parse_skill_file(path, Limits(document_bytes=50))


def test_names_of_other_contracts_are_invoked_too(registry, root, call):
    registry.sync(str(root))
    registry.toolset("miniclaw").call(
        "create_skill", {"name": "say_hello", "description": "Hi.", "implementation": "Say it."}
    )
    assert call({"skill_name": "say_hello"})["success"]
