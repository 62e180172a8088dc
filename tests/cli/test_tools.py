"""tools, prompt and --personality, as people call them."""

import json

import pytest

from tests.conftest import write_skill

SETTINGS = """
personalities:
  writer:
    skills:
      global_ingest: {mode: tags, accept_tags: [writing]}
"""


@pytest.fixture
def config(tmp_path):
    path = tmp_path / "config.yaml"
    path.write_text(SETTINGS)
    return ("--config", str(path))


class TestTools:
    def test_list_names_all_tools_of_all_toolsets(self, cli):
        listed = json.loads(cli("tools", "list", "--json").stdout)
        assert {one["toolset"] for one in listed} == {
            "native",
            "basic",
            "miniclaw",
            "ethos",
            "wave",
        }
        assert cli("tools", "list", "--toolset", "wave").stdout.startswith("wave/Skill\t")

    @pytest.mark.parametrize(
        ("style", "keys"),
        [
            ("openai", {"type", "function"}),
            ("anthropic", {"name", "description", "input_schema"}),
            ("mcp", {"name", "description", "inputSchema", "annotations", "outputSchema"}),
            ("gemini", {"name", "description", "parameters"}),
        ],
    )
    def test_schemas_come_in_each_frameworks_envelope(self, cli, library, style, keys):
        tools = json.loads(cli("tools", "schema", "--style", style).stdout)
        assert len(tools) == 9
        assert all(set(tool) == keys for tool in tools)

    def test_schemas_for_a_strict_mode_say_so(self, cli, library):
        tools = json.loads(cli("tools", "schema", "--strict", "--read-only").stdout)
        assert [tool["function"]["strict"] for tool in tools] == [True] * 4

    def test_tools_that_write_are_left_out_for_readers(self, cli, library):
        listed = json.loads(cli("tools", "list", "--read-only", "--json").stdout)
        assert {one["read_only"] for one in listed} == {True}
        assert {one["toolset"] for one in listed} >= {"native", "miniclaw", "wave"}
        refused = cli("tools", "call", "--read-only", "delete_skill", '{"name": "haiku"}')
        assert refused.exit_code == 1
        assert "No tool 'delete_skill'" in refused.stdout
        assert cli("tools", "call", "--read-only", "read_skill", '{"name": "haiku"}').exit_code == 0

    def test_the_schema_of_wave_lists_the_skills_there_are(self, cli, library):
        (tool,) = json.loads(cli("tools", "schema", "--toolset", "wave").stdout)
        assert "**haiku** (personal)" in tool["function"]["description"]

    def test_ethos_says_how_long_its_results_may_be(self, cli, library):
        tools = json.loads(cli("tools", "schema", "--toolset", "ethos", "--style", "mcp").stdout)
        assert [tool["_meta"]["maxResultChars"] for tool in tools] == [10_000, 30_000]
        assert {tool["_meta"]["toolset"] for tool in tools} == {"skills"}

    def test_a_call_prints_the_answer(self, cli, library):
        answer = json.loads(cli("tools", "call", "search_skills", '{"query": "haiku"}').stdout)
        assert answer["skills"][0]["ref"] == "haiku"
        basic = cli("tools", "call", "--toolset", "basic", "list_skills")
        assert "haiku" in json.loads(basic.stdout)["skills"]

    def test_the_skills_are_those_of_one_project(self, cli, tmp_path):
        for project in ("one", "two"):
            home = tmp_path / project / ".wave" / "skills"
            write_skill(home / f"{project}-plan")
            cli("sync", str(home), "--scope", "project")
        options = ("--toolset", "wave", "--workdir", str(tmp_path / "one"))
        (tool,) = json.loads(cli("tools", "schema", *options).stdout)
        described = tool["function"]["description"]
        assert "one-plan" in described
        assert "two-plan" not in described
        assert cli("tools", "call", *options, "Skill", '{"skill_name": "one-plan"}').exit_code == 0
        assert cli("tools", "call", *options, "Skill", '{"skill_name": "two-plan"}').exit_code == 1

    def test_arguments_are_read_from_standard_input(self, cli, library):
        result = cli("tools", "call", "read_skill", "-", input='{"name": "haiku"}')
        assert "Step by step." in json.loads(result.stdout)["body"]

    def test_an_answer_that_is_an_error_ends_with_status_1(self, cli, library):
        result = cli("tools", "call", "read_skill", '{"name": "nothing"}')
        assert result.exit_code == 1
        assert json.loads(result.stdout)["error"]["code"] == "skill_not_found"
        for toolset, tool in (("basic", "get_skill"), ("miniclaw", "x"), ("ethos", "skill_view")):
            assert cli("tools", "call", "--toolset", toolset, tool).exit_code == 1

    @pytest.mark.parametrize("text", ["{", "nope", "", "[" * 100_000])
    def test_what_is_not_json_is_wrong_usage(self, cli, library, text):
        result = cli("tools", "call", "read_skill", text)
        assert result.exit_code == 2
        assert "not JSON" in result.output

    def test_an_unknown_toolset_is_wrong_usage(self, cli):
        assert cli("tools", "call", "--toolset", "nope", "x").exit_code == 2


class TestPrompt:
    def test_the_catalogue_is_xml_or_markdown(self, cli, library):
        text = cli("prompt").stdout
        assert text.startswith("<available_skills>\n<skill>\n<name>\nhaiku\n</name>\n")
        assert text.endswith("</available_skills>\n")
        assert "- **haiku**: Write a haiku" in cli("prompt", "--markdown").stdout

    def test_a_budget_is_kept_and_what_it_cost_is_said(self, cli, library):
        result = cli("prompt", "--max-chars", "420")
        assert len(result.stdout.rstrip("\n")) <= 420
        assert "were left out" in result.stderr
        told = json.loads(cli("prompt", "--max-chars", "420", "--json").stdout)
        assert told["left_out"]

    def test_without_skills_it_says_so(self, newcomer):
        result = newcomer("prompt")
        assert (result.stdout, result.exit_code) == ("", 0)
        assert "No skills to print" in result.stderr


class TestPersonality:
    def test_lists_and_searches_show_only_what_it_sees(self, cli, library, config):
        assert cli(*config, "list", "--personality", "writer", "--format", "names").stdout == (
            "haiku\n"
        )
        found = cli(*config, "search", "form", "--personality", "writer", "--json")
        assert [hit["ref"] for hit in json.loads(found.stdout)] == ["haiku"]

    def test_what_it_does_not_see_is_not_shown_and_why_says_by_which_rule(
        self, cli, library, config
    ):
        shown = cli(*config, "show", "review", "--personality", "writer")
        assert shown.exit_code == 1
        assert "none of its tags is in accept_tags" in shown.output
        assert cli(*config, "show", "haiku", "--personality", "writer").exit_code == 0
        (told,) = json.loads(
            cli(*config, "why", "review", "--personality", "writer", "--json").stdout
        )
        assert told["listed"] is False
        assert "rule tag-not-accepted" in told["reasons"][-1]["message"]

    def test_who_has_none_is_shown_an_example_that_works(self, cli, library, tmp_path):
        ran = cli("list", "--personality", "writing")
        assert ran.exit_code == 1
        _, _, example = ran.stderr.partition("skill-registry config\n")
        path = tmp_path / "copied.yaml"
        path.write_text(example)
        seen = cli("--config", str(path), "list", "--personality", "writing", "--format", "names")
        assert seen.stdout == "haiku\n"

    @pytest.fixture
    def finance(self, tmp_path):
        path = tmp_path / "finance.yaml"
        ingest = "{mode: tags, accept_tags: [finance, forms], reject_tags: [forms]}"
        path.write_text(f"personalities: {{finance: {{skills: {{global_ingest: {ingest}}}}}}}")
        return ("--config", str(path))

    UNSEEN = (
        "The personality finance sees none of the 3 skills: 2 with a rejected tag and 1 without "
        "an accepted tag.\n"
        "Skills of all sources with a tag that it accepts: finance (0), forms (2).\n"
        "To see the reason for a skill, run: skill-registry why NAME --personality finance\n"
    )

    @pytest.mark.parametrize("command", ["list", "search form"])
    def test_where_it_sees_nothing_the_reasons_are_counted(self, cli, library, finance, command):
        ran = cli(*finance, *command.split(), "--personality", "finance")
        assert (ran.exit_code, ran.stdout) == (0, "")
        assert ran.stderr.startswith(self.UNSEEN)

    def test_a_token_that_shows_nothing_is_created_with_the_reasons(self, cli, library, finance):
        create = [*finance, "token", "create", "ann", "--read"]
        ran = cli(*create, "--personality", "finance")
        assert ran.exit_code == 0
        assert ran.stderr.endswith(f"The token shows no skill now.\n{self.UNSEEN}")
        assert "shows no skill" not in cli(*create, "--source", "mine").stderr

    def test_of_a_token_for_an_empty_source_it_is_said(self, cli, library, tmp_path):
        (tmp_path / "empty").mkdir()
        cli("sync", str(tmp_path / "empty"), "--name", "empty")
        ran = cli("token", "create", "ann", "--publish", "--source", "empty")
        assert "The token shows no skill of the source empty now.\n" in ran.stderr

    def test_the_prompt_holds_what_it_sees_and_can_explain_itself(self, cli, library, config):
        text = cli(*config, "prompt", "--personality", "writer").stdout
        assert "haiku" in text
        assert "review" not in text
        lines = cli(*config, "prompt", "--personality", "writer", "--explain").stdout.splitlines()
        assert lines[0] == "haiku\tseen\ttags\tits tags are accepted"
        assert lines[1].startswith("pdf-forms\tnot visible\ttag-not-accepted\t")

    def test_tools_are_limited_to_it(self, cli, library, config):
        result = cli(*config, "tools", "call", "--personality", "writer", "list_skills")
        assert json.loads(result.stdout)["total"] == 1

    TAGS_AND_A_TEAM = "The personality writer also sees all skills of the source mine, because"

    @pytest.mark.parametrize("team", ["", "mine"])
    def test_a_token_for_tags_and_a_team_source_is_said_to_show_all_of_it(
        self, cli, library, tmp_path, team
    ):
        path = tmp_path / "team.yaml"
        path.write_text(SETTINGS + (f"    team: {team}\n" if team else ""))
        assert cli("source", "update", "mine", "--scope", "team").exit_code == 0
        made = cli(
            *("--config", str(path), "token", "create", "anna"), "--read", "--personality", "writer"
        )
        assert made.exit_code == 0, made.output
        assert (self.TAGS_AND_A_TEAM in made.stderr) is bool(team)
        listed = cli("--config", str(path), "list", "--personality", "writer")
        assert (self.TAGS_AND_A_TEAM in listed.stderr) is bool(team)
        assert (listed.stdout != "") is bool(team)
        limited = "To limit it by tags, run: skill-registry source update mine --scope community"
        assert (limited in listed.stderr) is not bool(team)

    def test_an_unknown_one_suggests_the_nearest(self, cli, library, config):
        for command in (("list",), ("prompt",), ("tools", "call", "list_skills"), ("why", "haiku")):
            result = cli(*config, *command, "--personality", "writr")
            assert result.exit_code == 1
            assert "Did you mean 'writer'?" in result.output


class TestUsage:
    def test_what_tools_did_is_shown_and_what_they_did_not_is_listed(self, cli, library):
        assert "No tool has listed" in cli("stats", "--usage").output
        cli("tools", "call", "read_skill", '{"name": "haiku"}')
        assert cli("stats", "--usage").stdout.split("\t")[:4] == ["haiku", "1", "0", "0"]
        (count,) = json.loads(cli("stats", "--usage", "--json").stdout)
        assert (count["ref"], count["read"]) == ("haiku", 1)
        for when in ("1d", "never"):
            unused = cli("list", "--unused-since", when, "--format", "names").stdout.split()
            assert unused == ["pdf-forms", "review"]
        assert cli("list", "--updated-since", "never").exit_code == 2
