"""The contract of the toolset basic, sentence by sentence."""

import json
import os
import shutil

import pytest

from tests.conftest import open_with, write_skill
from tests.refusing import refuse

MIB = 1 << 20
RULE = "Skill names must not contain '/', '\\', or '..'"


@pytest.fixture
def folder(registry, root):
    """The skills folder of the contract's examples: three skills and a file."""
    for name in ("weather", "calculator", "web_search"):
        (root / name).mkdir()
        (root / name / "SKILL.md").write_text(f"# {name}\n\nNotes.\n")
    (root / "README.txt").write_text("no skill")
    registry.sync(str(root), name="mine")
    return root


@pytest.fixture
def call(registry, folder):
    def run(tool, **arguments):
        answer = registry.toolset("basic", source="mine").call(tool, arguments)
        json.dumps(answer, ensure_ascii=False).encode()
        return answer

    return run


@pytest.fixture
def denied(monkeypatch):
    """Refuse permission to open or scan a path."""

    def deny(path):
        refuse(monkeypatch, path, PermissionError(13, "Permission denied"), "open", "scandir")

    return deny


class TestTheTools:
    def test_are_described_as_the_contracts_say(self, registry, folder):
        listing, getting = registry.toolset("basic").tools()
        assert (listing.name, listing.description) == (
            "list_skills",
            "List all available skills in the skills folder. Returns skill names as a JSON array.",
        )
        assert listing.parameters == {"type": "object", "properties": {}, "required": []}
        assert (getting.name, getting.description) == (
            "get_skill",
            (
                "Read the SKILL.MD documentation for a specific skill. Returns the full text content of "
                "the documentation file."
            ),
        )
        assert getting.parameters == {
            "type": "object",
            "properties": {
                "skill_name": {"type": "string", "description": "Name of the skill (folder name)"}
            },
            "required": ["skill_name"],
        }
        assert listing.read_only
        assert getting.read_only


class TestListSkills:
    def test_example_1_names_in_alphabetical_order(self, call):
        assert call("list_skills") == {"skills": ["calculator", "weather", "web_search"]}

    def test_example_2_an_empty_folder_is_an_empty_list_and_no_error(self, registry, root):
        registry.sync(str(root), name="mine")
        assert registry.toolset("basic").call("list_skills", {}) == {"skills": []}

    def test_example_3_a_folder_that_is_gone_is_named(self, call, folder):
        shutil.rmtree(folder)
        assert call("list_skills") == {"error": f"Skills folder not found at path: {folder}"}

    def test_a_folder_that_cannot_be_read_is_an_error(self, call, folder, denied):
        denied(folder)
        assert call("list_skills") == {"error": "Permission denied reading skills folder"}

    def test_only_names_of_subdirectories_are_returned_not_files(self, call):
        assert "README.txt" not in call("list_skills")["skills"]

    def test_folders_without_a_document_count(self, call, registry, folder):
        (folder / "empty").mkdir()
        registry.sync()
        assert "empty" in call("list_skills")["skills"]

    def test_a_folder_that_only_holds_folders_with_skills_is_not_listed_as_it_is_not_read(
        self, call, registry, folder
    ):
        write_skill(folder / "writing" / "haiku")
        for _ in range(2):
            assert "writing" not in call("list_skills")["skills"]
            assert "SKILL.MD not found" in call("get_skill", skill_name="writing")["error"]
            registry.sync()
        write_skill(folder / "writing")
        assert "writing" in call("list_skills")["skills"]

    def test_what_is_on_disk_now_is_listed_without_a_sync(self, call, folder):
        write_skill(folder / "fresh")
        write_skill(folder / "quiet", extra="disable-model-invocation: true\n")
        (folder / "empty").mkdir()
        (folder / ".git").mkdir()
        (folder / "alias").symlink_to(folder / "weather")
        (folder / "quiet-alias").symlink_to(folder / "quiet")
        os.mkdir(os.fsencode(folder) + b"/caf\xe9")
        shutil.rmtree(folder / "web_search")
        assert call("list_skills") == {
            "skills": ["alias", "calculator", "empty", "fresh", "weather"]
        }

    def test_names_with_two_dots_or_a_backslash_are_excluded(self, call, registry, folder):
        for name in ("a..b", "c\\d", ".hidden"):
            write_skill(folder / name)
        registry.sync()
        assert call("list_skills")["skills"][0] == ".hidden"
        assert len(call("list_skills")["skills"]) == 4

    def test_a_link_to_another_skill_of_the_folder_is_listed_as_it_is_read(
        self, call, registry, folder
    ):
        write_skill(folder / "suite" / "review")
        (folder / "review").symlink_to(folder / "suite" / "review")
        (folder / "gone").symlink_to(folder / "suite" / "nothing")
        registry.sync()
        assert call("list_skills")["skills"] == [
            "calculator",
            "review",
            "weather",
            "web_search",
        ]
        assert "documentation" in call("get_skill", skill_name="review")
        shutil.rmtree(folder / "suite")
        registry.sync()
        assert "review" not in call("list_skills")["skills"]

    def test_a_link_out_of_the_folder_is_not_listed_as_it_is_not_read(
        self, call, registry, folder, tmp_path
    ):
        (folder / "link").symlink_to(write_skill(tmp_path / "outside" / "link"))
        registry.sync()
        assert "link" not in call("list_skills")["skills"]
        registry.sync(str(tmp_path / "outside"), name="other")
        assert "link" not in call("list_skills")["skills"]

    def test_skills_that_cannot_be_parsed_count_too(self, call, registry, folder):
        (folder / "broken").mkdir()
        (folder / "broken" / "SKILL.md").write_bytes(b"\xff\xfe")
        registry.sync()
        assert "broken" in call("list_skills")["skills"]


class TestGetSkill:
    def test_example_1_the_whole_text_is_returned(self, call, folder):
        text = (
            "# Calculator Skill\n\nProvides basic arithmetic operations.\n\n## Usage\n\n"
            "```python\nresult = 2 + 2\nprint(result)\n```"
        )
        (folder / "calculator" / "SKILL.md").write_text(text)
        assert call("get_skill", skill_name="calculator") == {
            "skill_name": "calculator",
            "documentation": text,
        }

    def test_front_matter_is_part_of_it(self, call, registry, folder):
        write_skill(folder / "fronted", description="With front matter.")
        text = call("get_skill", skill_name="fronted")["documentation"]
        assert text == (folder / "fronted" / "SKILL.md").read_text()

    def test_example_2_no_document(self, call, folder):
        (folder / "calculator" / "SKILL.md").unlink()
        error = {"error": "SKILL.MD not found for skill 'calculator'"}
        assert call("get_skill", skill_name="calculator") == error

    def test_example_3_an_invalid_name(self, call):
        error = {"error": f"Invalid skill name: '../../../etc/passwd'. {RULE}"}
        assert call("get_skill", skill_name="../../../etc/passwd") == error

    def test_example_4_no_such_folder(self, call):
        error = {"error": "Skill 'nonexistent' not found in skills folder"}
        assert call("get_skill", skill_name="nonexistent") == error

    def test_names_with_a_slash_a_backslash_or_two_dots_are_invalid(self, call):
        for name in ["a/b", "a\\b", "..", "a..b", "/", "", "/etc"]:
            assert call("get_skill", skill_name=name) == {
                "error": f"Invalid skill name: '{name}'. {RULE}"
            }

    def test_a_name_that_is_no_text_is_invalid(self, call):
        for value in [None, 5, True, ["a"], {"a": 1}, 1.5]:
            assert call("get_skill", skill_name=value)["error"].startswith("Invalid skill name: '")

    def test_a_missing_name_is_invalid(self, call, registry):
        assert call("get_skill") == {"error": f"Invalid skill name: ''. {RULE}"}
        assert "error" in registry.toolset("basic").call("get_skill", None)

    def test_what_is_no_folder_of_a_skill_is_not_found(self, call, folder):
        (folder / ".git").mkdir()
        for name in [".", "README.txt", ".git", "a\0b", "x" * 10_000, "\ud800"]:
            assert call("get_skill", skill_name=name)["error"].endswith(
                "' not found in skills folder"
            )

    def test_a_name_that_no_answer_can_repeat_is_not_found(self, call, folder):
        os.mkdir(os.fsencode(folder) + b"/caf\xe9")
        assert call("get_skill", skill_name=os.fsdecode(b"caf\xe9"))["error"].endswith(
            "' not found in skills folder"
        )

    def test_both_spellings_are_found(self, call, folder):
        document = folder / "weather" / "SKILL.md"
        document.rename(document.with_name("SKILL.MD"))
        assert "documentation" in call("get_skill", skill_name="weather")

    @pytest.mark.parametrize(("more", "read"), [(-1, True), (0, True), (1, False)])
    def test_one_mebibyte_is_read_and_not_a_byte_more(self, call, folder, more, read):
        (folder / "weather" / "SKILL.md").write_bytes(b"x" * (MIB + more))
        answer = call("get_skill", skill_name="weather")
        if read:
            assert len(answer["documentation"]) == MIB + more
        else:
            assert answer == {"error": "SKILL.MD too large (>1MB) for skill 'weather'"}

    def test_a_file_that_is_no_utf8_is_an_error(self, call, folder):
        (folder / "weather" / "SKILL.md").write_bytes(b"caf\xe9")
        error = {"error": "SKILL.MD contains invalid UTF-8 for skill 'weather'"}
        assert call("get_skill", skill_name="weather") == error

    def test_a_file_that_may_not_be_read_is_an_error(self, call, folder, denied):
        denied(folder / "weather" / "SKILL.md")
        error = {"error": "Permission denied reading SKILL.MD for skill 'weather'"}
        assert call("get_skill", skill_name="weather") == error

    def test_line_ends_are_those_of_text(self, call, folder):
        (folder / "weather" / "SKILL.md").write_bytes(b"a\r\nb\rc\n")
        assert call("get_skill", skill_name="weather")["documentation"] == "a\nb\nc\n"

    def test_a_link_to_another_skill_of_the_folder_is_followed(self, call, folder):
        (folder / "alias").symlink_to(folder / "weather")
        assert "# weather" in call("get_skill", skill_name="alias")["documentation"]

    def test_links_out_of_the_folder_are_rejected(self, call, folder, tmp_path):
        outside = write_skill(tmp_path / "outside")
        (folder / "link").symlink_to(outside)
        (folder / "weather" / "SKILL.md").unlink()
        (folder / "weather" / "SKILL.md").symlink_to(outside / "SKILL.md")
        (folder / "loop").symlink_to(folder / "loop")
        for name in ("link", "loop"):
            error = {"error": f"Skill '{name}' not found in skills folder"}
            assert call("get_skill", skill_name=name) == error
        error = {"error": "Permission denied reading SKILL.MD for skill 'weather'"}
        assert call("get_skill", skill_name="weather") == error

    def test_what_is_no_file_is_not_opened(self, call, folder):
        document = folder / "weather" / "SKILL.md"
        document.unlink()
        os.mkfifo(document)
        error = {"error": "Permission denied reading SKILL.MD for skill 'weather'"}
        assert call("get_skill", skill_name="weather") == error

    def test_what_is_on_disk_now_is_read_without_a_sync(self, call, folder):
        (folder / "weather" / "SKILL.md").write_text("New.")
        assert call("get_skill", skill_name="weather")["documentation"] == "New."
        write_skill(folder / "fresh")
        assert "documentation" in call("get_skill", skill_name="fresh")
        shutil.rmtree(folder / "weather")
        assert "not found" in call("get_skill", skill_name="weather")["error"]


def test_a_folder_on_another_machine_is_answered_in_the_same_words(call, registry, folder):
    (folder / "empty").mkdir()
    write_skill(folder / "suite" / "inner")
    for name, data in {
        "latin": b"caf\xe9",
        "full": b"# Full\n\n".ljust(MIB, b"x"),
        "large": b"# Large\n\n".ljust(MIB + 1, b"x"),
    }.items():
        (folder / name).mkdir()
        (folder / name / "SKILL.md").write_bytes(data)
    registry.sync()
    names = call("list_skills")["skills"]
    assert {"empty", "latin", "full", "large"} < set(names)
    here = {name: call("get_skill", skill_name=name) for name in [*names, "suite", "nothing"]}
    with registry.core.writer.transaction() as connection:
        connection.exec_driver_sql("UPDATE sources SET host = 'elsewhere'")
    assert call("list_skills")["skills"] == names
    assert {name: call("get_skill", skill_name=name) for name in here} == here


def test_what_is_neither_here_nor_in_the_database_is_an_error_of_reading(database, root, skill):
    (skill("latin") / "SKILL.md").write_bytes(b"caf\xe9")
    with open_with(database, store_files=False) as registry:
        registry.sync(str(root), name="mine")
        with registry.core.writer.transaction() as connection:
            connection.exec_driver_sql("UPDATE sources SET host = 'elsewhere'")
        answer = registry.toolset("basic").call("get_skill", {"skill_name": "latin"})
        assert answer["error"].startswith("Error reading SKILL.MD: ")
        assert "its folder is on another machine" in answer["error"]


def test_an_unknown_tool_is_an_error(call):
    assert call("delete_skill") == {
        "error": "Unknown tool: 'delete_skill'. There are list_skills and get_skill"
    }


class TestWhatIsShown:
    """What the other toolsets refuse is neither listed nor read here."""

    @pytest.fixture
    def registry(self, database):
        coder = {
            "toolset": ["bash"],
            "team": "platform",
            "skills": {"global_ingest": {"deny": ["denied"]}},
        }
        with open_with(database, personalities={"coder": coder}) as opened:
            yield opened

    @pytest.fixture
    def shown(self, registry, root):
        """Return the names that are listed, having seen that just those can be read."""

        def names(**limits):
            toolset = registry.toolset("basic", source="mine", **limits)
            listed = toolset.call("list_skills", {})["skills"]
            for folder in root.iterdir():
                answer = toolset.call("get_skill", {"skill_name": folder.name})
                if folder.name in listed:
                    assert "documentation" in answer or "SKILL.MD not found" in answer["error"]
                else:
                    assert answer == {"error": f"Skill '{folder.name}' not found in skills folder"}
            return listed

        return names

    def test_what_hides_itself_from_models_is_not(self, registry, root, skill, shown):
        skill("open")
        skill("quiet", extra="disable-model-invocation: true\n")
        skill("quiet/inner")
        registry.sync(str(root), name="mine")
        assert shown() == ["open"]

    def test_a_link_to_what_hides_itself_is_not(self, registry, root, skill, shown):
        skill("open")
        skill("quiet", extra="disable-model-invocation: true\n")
        os.symlink("quiet", root / "alias")
        registry.sync(str(root), name="mine")
        assert shown() == ["open"]

    def test_what_became_of_the_source_since_the_toolset_was_made_counts(
        self, registry, root, skill
    ):
        skill("alpha")
        registry.sync(str(root), name="mine", scope="team")
        toolset = registry.toolset("basic", scope="team")

        def answers():
            listed = toolset.call("list_skills", {})["skills"]
            read = toolset.call("get_skill", {"skill_name": "alpha"})
            assert ("documentation" in read) == (listed == ["alpha"])
            return listed

        assert answers() == ["alpha"]
        registry.update_source("mine", scope="personal")
        assert answers() == []
        registry.update_source("mine", scope="team", new_name="ours")
        assert answers() == ["alpha"]
        registry.remove_source("ours")
        assert answers() == []

    def test_what_hides_itself_since_the_last_sync_is_not_read(self, registry, root, skill):
        skill("open")
        registry.sync(str(root), name="mine")
        skill("open", extra="disable-model-invocation: true\n", age=None)
        skill("fresh", extra="disable-model-invocation: true\n")
        for name in ("open", "fresh"):
            answer = registry.toolset("basic").call("get_skill", {"skill_name": name})
            assert answer == {"error": f"Skill '{name}' not found in skills folder"}

    def test_what_the_personality_does_not_see_is_not(self, registry, root, skill, shown):
        skill("denied")
        skill("far", extra="required_tools: [browser]\n")
        skill("near", extra="required_tools: [bash]\n")
        skill("keyed", extra="ethos: {env_required: [NO_SUCH_KEY]}\n")
        skill("broken", description="", body="")
        (root / "empty").mkdir()
        registry.sync(str(root), name="mine")
        assert shown(personality="coder") == ["near"]
        assert shown() == ["broken", "denied", "empty", "far", "keyed", "near"]

    def test_what_the_personality_does_not_see_since_the_last_sync_is_not_read(
        self, registry, root, skill
    ):
        skill("near")
        registry.sync(str(root), name="mine")
        toolset = registry.toolset("basic", personality="coder")
        assert "documentation" in toolset.call("get_skill", {"skill_name": "near"})
        skill("near", extra="required_tools: [browser]\n", age=None)
        assert "not found" in toolset.call("get_skill", {"skill_name": "near"})["error"]

    def test_a_link_to_what_the_personality_does_not_see_is_not_read(self, registry, root, skill):
        (skill("denied") / "SKILL.md").write_text("# Denied\n\nBy its folder's name.\n")
        os.symlink("denied", root / "alias")
        registry.sync(str(root), name="mine")
        toolset = registry.toolset("basic", personality="coder")
        assert "not found" in toolset.call("get_skill", {"skill_name": "alias"})["error"]
        plain = registry.toolset("basic").call("get_skill", {"skill_name": "alias"})
        assert "documentation" in plain

    def test_a_source_of_another_scope_team_or_project_is_not(
        self, registry, root, skill, shown, tmp_path
    ):
        skill("alpha")
        registry.sync(str(root), name="mine", scope="team")
        assert shown() == shown(scope="team") == ["alpha"]
        assert shown(scope="personal") == shown(personality="coder") == []
        registry.update_source("mine", scope="project")
        assert shown(workdir=str(root.parent)) == ["alpha"]
        assert shown(workdir=str(tmp_path.parent)) == []

    def test_what_a_stronger_source_hides_is_as_it_is_this_folder(
        self, registry, root, skill, shown, tmp_path
    ):
        skill("alpha")
        registry.sync(str(root), name="mine")
        write_skill(tmp_path / "other" / "alpha")
        registry.sync(str(tmp_path / "other"), name="other", scope="project")
        assert shown() == shown(personality="coder") == ["alpha"]
