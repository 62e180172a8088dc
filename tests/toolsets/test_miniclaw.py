"""The contract of the toolset miniclaw: criteria, formats, errors, and what its review found."""

import json
import re
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from registry.api import SkillRegistry
from registry.disk import atomic as change_files
from registry.document.names import BUILT_IN_TOOLS, SNAKE_CASE_REASON
from registry.model import Parameter
from registry.settings import Settings
from registry.toolsets.miniclaw import MESSAGES
from tests.conftest import write_skill

CITY = {"name": "city", "type": "string", "description": "Where", "required": True}
WEATHER = {
    "name": "weather_lookup",
    "description": "Get weather information for a location",
    "parameters": [CITY],
    "implementation": "Ask the weather service.",
}


@pytest.fixture
def workspace(registry, root):
    registry.sync(str(root), name="workspace")
    return root


@pytest.fixture
def call(registry, workspace):
    def run(tool, arguments=None, **more):
        answer = registry.toolset("miniclaw").call(tool, {**(arguments or {}), **more})
        json.dumps(answer, ensure_ascii=False).encode()
        if not answer["success"]:
            assert set(answer) == {"success", "error"}
            assert set(answer["error"]) == {"type", "message"}
            assert answer["error"]["type"] in MESSAGES
        return answer

    return run


@pytest.fixture
def refused(call):
    """Return (type, message) of an error."""

    def run(tool, arguments=None, **more):
        error = call(tool, arguments, **more)["error"]
        return error["type"], error["message"]

    return run


def create(call, name="weather_lookup", **more):
    answer = call("create_skill", {**WEATHER, "name": name, **more})
    assert answer["success"], answer
    return answer


class TestSchemas:
    def test_the_four_tools_are_those_of_the_contract(self, registry, workspace):
        tools = {tool.name: tool for tool in registry.toolset("miniclaw").tools()}
        assert {name: tool.description for name, tool in tools.items()} == {
            "create_skill": "Create a new reusable skill package",
            "list_skills": "List all available skills",
            "read_skill": "Read the full content of a skill",
            "delete_skill": "Delete a user-created skill",
        }
        assert tools["list_skills"].parameters == {"type": "object", "properties": {}}
        for tool, word in (("read_skill", "read"), ("delete_skill", "delete")):
            assert tools[tool].parameters == {
                "type": "object",
                "properties": {
                    "name": {"type": "string", "description": f"Name of the skill to {word}"}
                },
                "required": ["name"],
            }
        assert tools["create_skill"].parameters == {
            "type": "object",
            "properties": {
                "name": {"type": "string", "description": "Skill name (snake_case, unique)"},
                "description": {"type": "string", "description": "What this skill does"},
                "parameters": {
                    "type": "array",
                    "description": "Parameter definitions",
                    "items": {
                        "type": "object",
                        "properties": {
                            "name": {"type": "string"},
                            "type": {
                                "type": "string",
                                "enum": ["string", "number", "boolean", "array", "object"],
                            },
                            "description": {"type": "string"},
                            "required": {"type": "boolean"},
                        },
                    },
                },
                "implementation": {
                    "type": "string",
                    "description": "Implementation instructions or code",
                },
            },
            "required": ["name", "description", "implementation"],
        }


class TestCreate:
    def test_the_answer_is_the_contracts(self, call, workspace):
        answer = create(call)
        moment = answer["skill"]["created_at"]
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", moment)
        assert answer == {
            "success": True,
            "message": "Skill created successfully",
            "skill": {
                "name": "weather_lookup",
                "description": "Get weather information for a location",
                "created_at": moment,
            },
            "file_path": str(workspace / "weather_lookup" / "SKILL.md"),
        }

    def test_the_file_has_the_templates_sections_below_front_matter(self, call, workspace):
        moment = create(call)["skill"]["created_at"]
        text = (workspace / "weather_lookup" / "SKILL.md").read_text()
        front, body = text.removeprefix("---\n").split("\n---\n", 1)
        assert "name: weather_lookup" in front
        assert body == (
            "\n# Skill: weather_lookup\n\n"
            "## Description\nGet weather information for a location\n\n"
            "## Parameters\n"
            "| Name | Type | Required | Description | Default |\n"
            "| ---- | ---- | -------- | ----------- | ------- |\n"
            "| city | string | Yes | Where |  |\n\n"
            "## Implementation\nAsk the weather service.\n\n"
            f"## Metadata\n- **Created**: {moment}\n- **Version**: 1.0.0\n"
        )

    @pytest.mark.parametrize("name", ["a", "a1", "a_b", "x" * 50, "a__b", "a_"])
    def test_snake_case_names_of_up_to_fifty_characters_are_valid(self, call, name):
        create(call, name)

    def test_other_names_are_invalid(self, refused, workspace):
        for name in [
            "",
            "A",
            "aB",
            "1a",
            "_a",
            "a-b",
            "a b",
            "x" * 51,
            "a\n",
            "\u0430bc",
            "a\u0661",
            "../x",
            "a/b",
        ]:
            kind, message = refused("create_skill", WEATHER, name=name)
            assert kind == "InvalidName"
            assert message == f"Invalid skill name '{name}': {SNAKE_CASE_REASON}"
            assert list(workspace.iterdir()) == []

    def test_names_of_built_in_tools_are_refused(self, refused):
        for name in BUILT_IN_TOOLS:
            assert refused("create_skill", WEATHER, name=name) == (
                "BuiltInToolConflict",
                f"Name '{name}' conflicts with built-in tool",
            )

    def test_a_name_must_be_unique(self, call, refused):
        create(call)
        assert refused("create_skill", WEATHER) == (
            "NameConflict",
            "Skill 'weather_lookup' already exists",
        )

    def test_a_name_must_be_unique_among_all_that_are_listed(
        self, registry, refused, workspace, tmp_path
    ):
        own = tmp_path / "home" / ".miniclaw" / "workspace" / "skills"
        write_skill(own / "there")
        registry.sync(str(own))
        write_skill(workspace / "weather_lookup")
        registry.sync()
        assert refused("create_skill", WEATHER) == (
            "NameConflict",
            "Skill 'weather_lookup' already exists",
        )
        assert not (own / "weather_lookup").exists()
        bound = registry.toolset("miniclaw", source="miniclaw")
        assert bound.call("create_skill", WEATHER)["success"]

    def test_uniqueness_is_checked_on_disk_too(self, refused, workspace):
        (workspace / "weather_lookup").mkdir()
        assert refused("create_skill", WEATHER) == (
            "SkillAlreadyExists",
            "Skill 'weather_lookup' already exists",
        )
        assert list((workspace / "weather_lookup").iterdir()) == []

    def test_of_many_creators_of_one_name_exactly_one_wins(self, registry, workspace):
        barrier = threading.Barrier(6)

        def work(number):
            barrier.wait()
            arguments = {**WEATHER, "implementation": f"By {number}."}
            return registry.toolset("miniclaw").call("create_skill", arguments)

        with ThreadPoolExecutor(6) as pool:
            answers = list(pool.map(work, range(6)))
        (winner,) = [number for number, answer in enumerate(answers) if answer["success"]]
        others = {answer["error"]["type"] for answer in answers if not answer["success"]}
        assert others <= {"NameConflict", "SkillAlreadyExists"}
        assert f"By {winner}." in (workspace / "weather_lookup" / "SKILL.md").read_text()

    @pytest.mark.parametrize(
        ("parameters", "words"),
        [
            ([{"type": "string"}], "parameter 1 has no name"),
            ([CITY, CITY], "two parameters 'city'"),
            ([{"name": "a", "type": "text"}], "'text' is not one of"),
            ("city", "is not of type 'array'"),
            ([{"name": "a", "default": 5}], "default"),
        ],
    )
    def test_wrong_parameters_are_an_invalid_schema(self, refused, workspace, parameters, words):
        kind, message = refused("create_skill", WEATHER, parameters=parameters)
        assert kind == "InvalidSchema"
        assert message.startswith("Invalid parameter schema: ")
        assert words in message
        assert list(workspace.iterdir()) == []

    @pytest.mark.parametrize("missing", ["description", "implementation"])
    def test_what_is_required_must_be_given(self, registry, workspace, missing):
        arguments = {key: value for key, value in WEATHER.items() if key != missing}
        answer = registry.toolset("miniclaw").call("create_skill", arguments)
        assert answer["error"]["type"] == "InvalidSchema"
        assert missing in answer["error"]["message"]

    @pytest.mark.parametrize("default", [b"x", {(1,): 2}, "\ud800", "x" * 5000, object()])
    def test_a_default_that_is_no_json_is_refused_briefly(self, registry, workspace, default):
        parameter = {"name": "a", "type": "object", "default": default}
        arguments = {**WEATHER, "parameters": [parameter, parameter]}
        answer = registry.toolset("miniclaw").call("create_skill", arguments)
        assert answer["error"]["type"] == "InvalidSchema"
        assert len(json.dumps(answer, ensure_ascii=False).encode()) < 1200
        single = {**WEATHER, "parameters": [parameter]}
        answer = registry.toolset("miniclaw").call("create_skill", single)
        json.dumps(answer, ensure_ascii=False).encode()

    @pytest.mark.parametrize(
        ("name", "reason"),
        [
            ("con", "Windows keeps this name for a device"),
            ("com1", "Windows keeps this name for a device"),
            ("node_modules", "folders with this name are not searched for skills"),
        ],
    )
    def test_a_name_that_no_folder_of_a_skill_can_have_is_invalid_with_the_reason(
        self, refused, workspace, name, reason
    ):
        message = f"Invalid skill name '{name}': {reason}"
        assert refused("create_skill", WEATHER, name=name) == ("InvalidName", message)
        assert list(workspace.iterdir()) == []

    def test_what_could_not_be_read_is_not_created(self, refused, workspace):
        kind, message = refused("create_skill", WEATHER, implementation="x" * (1 << 20))
        assert kind == "InvalidSchema"
        assert "are allowed" in message
        assert list(workspace.iterdir()) == []

    @pytest.mark.file
    def test_a_damaged_database_is_an_answer_and_no_exception(self, registry, workspace):
        toolset = registry.toolset("miniclaw")
        registry.core.reader.close()
        for path in registry.path, f"{registry.path}-wal", f"{registry.path}-shm":
            with open(path, "wb") as file:
                file.write(b"garbage" * 1000)
        for tool in ("create_skill", "list_skills", "read_skill", "delete_skill"):
            answer = toolset.call(tool, WEATHER)
            assert answer["success"] is False
            assert answer["error"]["type"] in MESSAGES

    def test_parameters_come_back_as_they_were_given(self, call, registry, database):
        given_ = [
            CITY,
            {"name": "days", "type": "number", "description": "How | many\ndays", "default": 3},
            {"name": "units", "type": "string", "description": "`C` or <br>", "default": "C"},
            {"name": "all", "type": "boolean", "description": "", "default": False},
            {"name": "tags", "type": "array", "description": "\u5929\u6c14", "default": ["a", "b"]},
            {"name": "more", "type": "object", "description": "x", "default": {"k": None}},
        ]
        create(call, parameters=given_)
        wanted = tuple(
            Parameter(
                p["name"], p["type"], p["description"], p.get("required", False), p.get("default")
            )
            for p in given_
        )
        assert registry.get("weather_lookup").parameters == wanted
        registry.sync(verify=True)
        with SkillRegistry.open(database, settings=Settings()) as again:
            assert again.get("weather_lookup").parameters == wanted

    def test_a_folder_that_cannot_be_made_is_said(self, refused, workspace, monkeypatch):
        def fail(*_):
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(change_files, "rename_new", fail)
        monkeypatch.setattr("registry.disk.swap.rename_new", fail, raising=False)
        kind, message = refused("create_skill", WEATHER)
        assert kind in {"DirectoryCreationFailed", "FileWriteFailed"}
        assert str(workspace) in message
        assert "No space left on device" in message
        assert not (workspace / "weather_lookup").exists()

    def test_without_a_source_to_write_to_it_says_so(self, registry):
        answer = registry.toolset("miniclaw").call("create_skill", WEATHER)
        assert answer["error"]["type"] == "DirectoryCreationFailed"
        assert "No sources are registered yet" in answer["error"]["message"]


class TestWhereSkillsAreMade:
    """ "creates directory: `~/.miniclaw/workspace/skills/{name}/`"."""

    @pytest.fixture
    def make(self, registry, tmp_path):
        """Register folders as sources, and return what creating a skill then says."""

        def run(*folders):
            for folder in folders:
                write_skill(folder / "there")
                registry.sync(str(folder))
            return registry.toolset("miniclaw").call("create_skill", WEATHER)

        return run

    @pytest.fixture
    def own(self, tmp_path):
        return tmp_path / "home" / ".miniclaw" / "workspace" / "skills"

    def test_its_own_workspace_is_used_whatever_other_sources_there_are(self, make, own, tmp_path):
        answer = make(tmp_path / "one", own, tmp_path / "two")
        assert answer["file_path"] == str(own / "weather_lookup" / "SKILL.md")

    def test_a_source_that_was_asked_for_comes_first(self, make, registry, own, tmp_path):
        make(own, tmp_path / "one")
        bound = registry.toolset("miniclaw", source="one")
        answer = bound.call("create_skill", {**WEATHER, "name": "second"})
        assert answer["file_path"] == str(tmp_path / "one" / "second" / "SKILL.md")

    def test_without_it_the_model_is_told_what_the_user_can_do(self, make, own, tmp_path):
        error = make(tmp_path / "one", tmp_path / "two")["error"]
        assert error == {
            "type": "DirectoryCreationFailed",
            "message": (
                f"Failed to create directory '{own / 'weather_lookup'}': Several sources could be "
                "written to: 'one' or 'two'. The user has to choose a source, or register the folder "
                "above."
            ),
        }


class TestListAndRead:
    def test_the_list_is_the_contracts_the_newest_first(self, call, registry, workspace):
        for name, description, moment in (
            ("reminder", "Set reminders for tasks", "2026-02-15T14:30:00Z"),
            ("weather_lookup", "Get weather information for a location", "2026-02-16T10:00:00Z"),
        ):
            write_skill(workspace / name, description=description, extra=f"created_at: {moment}\n")
        registry.sync()
        assert call("list_skills") == {
            "success": True,
            "skills": [
                {
                    "name": "weather_lookup",
                    "description": "Get weather information for a location",
                    "created_at": "2026-02-16T10:00:00Z",
                },
                {
                    "name": "reminder",
                    "description": "Set reminders for tasks",
                    "created_at": "2026-02-15T14:30:00Z",
                },
            ],
        }

    def test_corrupted_and_missing_documents_are_left_out_gracefully(
        self, call, registry, workspace
    ):
        create(call)
        (workspace / "empty").mkdir()
        (workspace / "corrupt").mkdir()
        (workspace / "corrupt" / "SKILL.md").write_bytes(b"\xff\xfe\x00")
        registry.sync()
        assert [skill["name"] for skill in call("list_skills")["skills"]] == ["weather_lookup"]

    def test_reading_returns_the_full_content(self, call, workspace):
        create(call)
        text = (workspace / "weather_lookup" / "SKILL.md").read_text()
        answer = call("read_skill", name="weather_lookup")
        assert answer == {"success": True, "name": "weather_lookup", "content": text}

    def test_a_skill_that_does_not_exist_is_an_error(self, refused):
        for tool in ("read_skill", "delete_skill"):
            assert refused(tool, name="nothing") == ("SkillNotFound", "Skill 'nothing' not found")

    def test_names_are_validated_when_skills_are_accessed(self, refused):
        for tool in ["read_skill", "delete_skill"]:
            for name in ["../../../etc", "a/b", "..", "a\\b", "Invalid-Name", ""]:
                assert refused(tool, name=name)[0] == "InvalidName"

    def test_a_file_that_was_deleted_is_an_error(self, call, refused, workspace):
        create(call)
        (workspace / "weather_lookup" / "SKILL.md").unlink()
        path = workspace / "weather_lookup" / "SKILL.md"
        assert refused("read_skill", name="weather_lookup") == (
            "FileReadFailed",
            f"Failed to read file '{path}': the folder holds no SKILL.md",
        )

    def test_a_file_that_is_no_text_is_an_error(self, call, refused, workspace):
        create(call)
        path = workspace / "weather_lookup" / "SKILL.md"
        path.write_bytes(b"\xff")
        kind, message = refused("read_skill", name="weather_lookup")
        assert kind == "FileReadFailed"
        assert message.startswith(f"Failed to read file '{path}': ")
        assert "UTF-8" in message

    @pytest.mark.usefixtures("settled")
    def test_a_file_that_cannot_be_read_is_an_error(self, call, refused, workspace, deny):
        create(call)
        path = workspace / "weather_lookup" / "SKILL.md"
        denied = deny("SKILL.md")
        kind, message = refused("read_skill", name="weather_lookup")
        assert denied
        assert kind == "FileReadFailed"
        assert message.startswith(f"Failed to read file '{path}': ")
        assert "Permission denied" in message

    def test_skills_in_nested_folders_are_listed_and_read(self, call, registry, workspace):
        write_skill(workspace / "weather" / "far_away", body="Ask.\n")
        registry.sync()
        assert [skill["name"] for skill in call("list_skills")["skills"]] == ["far_away"]
        assert "Ask." in call("read_skill", name="far_away")["content"]

    def test_one_toolset_sees_what_was_made_and_deleted_meanwhile(self, registry, workspace):
        toolset = registry.toolset("miniclaw")
        assert toolset.call("list_skills", {})["skills"] == []
        registry.toolset("miniclaw").call("create_skill", WEATHER)
        assert len(toolset.call("list_skills", {})["skills"]) == 1
        registry.delete("weather_lookup")
        assert toolset.call("list_skills", {})["skills"] == []
        assert not toolset.call("read_skill", {"name": "weather_lookup"})["success"]

    def test_nothing_in_a_skill_is_run(self, call, workspace, tmp_path):
        mark = tmp_path / "ran"
        code = f"!`touch {mark}`\n\n```sh\ntouch {mark}\n```\n$(touch {mark})"
        create(call, implementation=code)
        assert code in call("read_skill", name="weather_lookup")["content"]
        call("list_skills")
        call("delete_skill", name="weather_lookup")
        assert not mark.exists()

    def test_a_name_that_several_have_is_told_apart(self, call, refused, registry, workspace):
        for folder in ("a/same", "b/same"):
            write_skill(workspace / folder, body=f"# Of {folder}\n")
        registry.sync()
        for tool in ("read_skill", "delete_skill"):
            assert refused(tool, name="same") == (
                "InvalidName",
                (
                    "Invalid skill name 'same': several skills have it, choose one of "
                    "workspace/a/same, workspace/b/same"
                ),
            )
        assert call("read_skill", name="workspace/b/same")["success"]

    def test_names_that_only_other_contracts_allow_can_be_read(self, call, registry, workspace):
        registry.create("kebab-case", description="By another contract.")
        assert "kebab-case" in call("read_skill", name="kebab-case")["content"]

    def test_timestamps_survive_a_reload(self, call, registry, database):
        moment = create(call)["skill"]["created_at"]
        registry.sync(verify=True)
        with SkillRegistry.open(database, settings=Settings()) as again:
            (listed,) = again.toolset("miniclaw").call("list_skills", {})["skills"]
            assert listed["created_at"] == moment

    def test_a_document_by_the_template_without_front_matter_is_read(
        self, call, registry, workspace
    ):
        (workspace / "old_one").mkdir()
        (workspace / "old_one" / "SKILL.md").write_text(
            "# Skill: old_one\n\n## Description\nMade long ago.\n\n## Parameters\n"
            "| Name | Type | Required | Description |\n|---|---|---|---|\n"
            "| city | string | Yes | Where |\n\n## Implementation\nDo it.\n\n"
            "## Metadata\n- **Created**: 2026-02-14T15:45:00Z\n- **Version**: 1.0.0\n"
        )
        registry.sync()
        assert call("list_skills")["skills"] == [
            {
                "name": "old_one",
                "description": "Made long ago.",
                "created_at": "2026-02-14T15:45:00Z",
            }
        ]
        assert registry.get("old_one").parameters == (Parameter("city", "string", "Where", True),)


class TestDelete:
    def test_the_directory_is_removed_and_deletion_confirmed(self, call, workspace):
        create(call)
        assert call("delete_skill", name="weather_lookup") == {
            "success": True,
            "message": "Skill 'weather_lookup' deleted successfully",
        }
        assert not (workspace / "weather_lookup").exists()
        assert call("list_skills")["skills"] == []

    def test_what_cannot_be_used_can_be_deleted(self, call, registry, workspace):
        """Or its name would be taken for good."""
        for name, data in (("corrupt", b"\xff\xfe\x00"), ("blank", b""), ("gone", b"Text.")):
            (workspace / name).mkdir()
            (workspace / name / "SKILL.md").write_bytes(data)
        registry.sync()
        (workspace / "gone" / "SKILL.md").unlink()
        registry.sync()
        for name in ("corrupt", "blank", "gone"):
            assert not call("read_skill", name=name)["success"]
            assert call("delete_skill", name=name) == {
                "success": True,
                "message": f"Skill '{name}' deleted successfully",
            }
            assert not (workspace / name).exists()
            create(call, name)

    def test_what_is_not_shown_cannot_be_deleted_broken_or_not(self, registry, refused, workspace):
        quiet = "disable-model-invocation: true\n"
        write_skill(workspace / "quiet", extra=quiet)
        write_skill(workspace / "broken", description="", body="", extra=quiet)
        registry.sync()
        for name in ("quiet", "broken"):
            kind, message = refused("delete_skill", name=name)
            assert (kind, message) == ("SkillNotFound", f"Skill '{name}' not found")
            assert (workspace / name / "SKILL.md").exists()

    def test_what_another_view_holds_cannot_be_deleted_broken_or_not(
        self, registry, workspace, tmp_path
    ):
        other = tmp_path / "other" / "skills"
        write_skill(other / "sound")
        write_skill(other / "broken", description="", body="")
        registry.sync(str(other), name="other", scope="project")
        for limits in ({"source": "workspace"}, {"scope": "personal"}, {"workdir": str(workspace)}):
            toolset = registry.toolset("miniclaw", **limits)
            for name in ("sound", "broken"):
                answer = toolset.call("delete_skill", {"name": name})
                assert answer["error"]["type"] == "SkillNotFound", (limits, name)
                assert (other / name).exists()

    def test_a_folder_that_cannot_be_removed_is_said(self, call, refused, workspace, monkeypatch):
        create(call)

        def fail(*_):
            raise OSError(16, "Device or resource busy")

        monkeypatch.setattr("registry.disk.swap.rename_new", fail)
        kind, message = refused("delete_skill", name="weather_lookup")
        assert kind == "DirectoryRemovalFailed"
        assert message.startswith(f"Failed to remove directory '{workspace / 'weather_lookup'}': ")
        assert "Device or resource busy" in message
        assert (workspace / "weather_lookup" / "SKILL.md").exists()

    @pytest.mark.parametrize("name", BUILT_IN_TOOLS)
    def test_built_in_skills_cannot_be_deleted_even_where_there_is_one(
        self, refused, registry, workspace, name
    ):
        write_skill(workspace / name)
        registry.sync()
        assert refused("delete_skill", name=name) == (
            "BuiltInSkillDeletion",
            f"Cannot delete built-in skill '{name}'",
        )
        assert (workspace / name).exists()

    def test_an_edit_by_hand_is_not_deleted(self, call, refused, workspace):
        create(call)
        with (workspace / "weather_lookup" / "SKILL.md").open("a") as document:
            document.write("By hand.\n")
        kind, message = refused("delete_skill", name="weather_lookup")
        assert kind == "DirectoryRemovalFailed"
        assert message.startswith("Failed to remove directory '")
        assert "changed on disk" in message
        assert (workspace / "weather_lookup" / "SKILL.md").read_text().endswith("By hand.\n")


def test_every_variant_displays_as_the_contract_has_it():
    facts = {"name": "n", "reason": "r", "path": "p", "source": "s", "msg": "m"}
    assert {kind: text.format(**facts) for kind, text in MESSAGES.items()} == {
        "InvalidName": "Invalid skill name 'n': r",
        "NameConflict": "Skill 'n' already exists",
        "BuiltInToolConflict": "Name 'n' conflicts with built-in tool",
        "SkillNotFound": "Skill 'n' not found",
        "SkillAlreadyExists": "Skill 'n' already exists",
        "DirectoryCreationFailed": "Failed to create directory 'p': s",
        "FileWriteFailed": "Failed to write file 'p': s",
        "FileReadFailed": "Failed to read file 'p': s",
        "DirectoryRemovalFailed": "Failed to remove directory 'p': s",
        "BuiltInSkillDeletion": "Cannot delete built-in skill 'n'",
        "InvalidSchema": "Invalid parameter schema: m",
    }


def test_wrong_arguments_are_the_contracts_errors(registry, workspace):
    for tool in ["create_skill", "list_skills", "read_skill", "delete_skill", "x"]:
        for arguments in [[], 5, "x", {"name": 5}, {"name": None}, {"name": ["a"]}]:
            answer = registry.toolset("miniclaw").call(tool, arguments)
            if tool != "list_skills" or not isinstance(arguments, dict):
                assert answer["error"]["type"] in {"InvalidName", "InvalidSchema"}


@pytest.mark.both
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(description=st.text(max_size=60), implementation=st.text(max_size=200))
def test_any_text_is_written_and_read_back_or_refused_whole(
    registry, workspace, description, implementation
):
    toolset = registry.toolset("miniclaw")
    arguments = {"name": "made", "description": description, "implementation": implementation}
    answer = toolset.call("create_skill", arguments)
    if answer["success"]:
        assert toolset.call("read_skill", {"name": "made"})["success"]
        assert toolset.call("delete_skill", {"name": "made"})["success"]
    else:
        assert answer["error"]["type"] == "InvalidSchema"
        assert list(workspace.iterdir()) == []
