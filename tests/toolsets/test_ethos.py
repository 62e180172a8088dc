"""The contract's sentences, in its order, then what it leaves to the notes."""

import json
import shutil
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from registry.api import SkillRegistry
from registry.errors import PersonalityNotFound
from registry.settings import parse_settings
from registry.toolsets import ethos
from registry.toolsets.base import Context
from tests.conftest import OLD, open_with, write_skill

TOOLS = ["skills_list", "skill_view"]

PERSONALITIES = {
    "coder": {
        "toolset": ["bash", *TOOLS],
        "team": "platform",
        "skills": {"global_ingest": {"deny": ["denied"]}},
    },
    "hermit": {"toolset": TOOLS, "skills": {"global_ingest": {"mode": "none"}}},
    "chooser": {
        "toolset": TOOLS,
        "skills": {"global_ingest": {"mode": "explicit", "allow": ["plan"]}},
    },
    "tagger": {
        "toolset": TOOLS,
        "skills": {"global_ingest": {"mode": "tags", "accept_tags": ["quality"]}},
    },
}

LIBRARY = {
    "plan": ("companion", "Render a long-form plan file in the standard Ethos shape..."),
    "writing-plans": ("companion", "Plan template + section conventions for the `plan` skill..."),
    "spike": ("companion", "Throwaway experiments to validate an idea before build..."),
    "tdd": (None, "TDD — enforce RED-GREEN-REFACTOR, tests before code."),
    "code-review": ("companion", "Pre-commit gate. Reviews staged or branch-scoped diff..."),
}

BODY = "# Plan\n\n## When to use\n\nAlways.\n\n## Workflow\n\n1. Plan.\n\n## Anti-patterns\n\n- None.\n"


@pytest.fixture
def registry(database):
    with open_with(database, personalities=PERSONALITIES) as opened:
        yield opened


@pytest.fixture
def library(registry, root, skill):
    for name, (kind, description) in LIBRARY.items():
        extra = f"ethos:\n  kind: {kind}\n" if kind else ""
        skill(name, description=f'"{description}"', extra=extra, body=BODY)
    registry.sync(str(root), name="library", scope="bundled")
    return registry


@pytest.fixture
def call(registry):
    def run(tool, arguments=None, *, personality=None, environ=None):
        toolset = ethos.EthosToolset(
            Context(registry.core, personality=personality, environ=environ or {})
        )
        answer = toolset.call(tool, {} if arguments is None else arguments)
        json.dumps(answer, ensure_ascii=False).encode()
        assert set(answer) == ({"ok", "value"} if answer["ok"] else {"ok", "code", "error"})
        return answer

    return run


@pytest.fixture
def listed(call):
    """Return what skills_list names, for a personality."""

    def names(personality=None, **more):
        value = call("skills_list", personality=personality, **more)["value"]
        return [line.split("**")[1] for line in value.splitlines() if line.startswith("- **")]

    return names


def refusal(name):
    return {
        "ok": False,
        "code": "not_available",
        "error": f'Skill "{name}" not found or not accessible.',
    }


# skills_list


def test_two_tools_that_let_an_agent_discover_and_read_its_own_skill_library(registry):
    toolset = ethos.EthosToolset(Context(registry.core))
    assert toolset.name == "ethos"
    assert [tool.name for tool in toolset.tools()] == ["skills_list", "skill_view"]
    assert all(tool.read_only and not tool.destructive for tool in toolset.tools())


def test_skills_list_schema_has_no_parameters(registry):
    tool = ethos.EthosToolset(Context(registry.core)).tools()[0]
    assert tool.parameters == {"type": "object", "properties": {}, "required": []}


def test_skills_list_max_result_chars_10_000(registry, root, skill, call):
    for number in range(400):
        skill(f"s{number:03}", description="word " * 30)
    registry.sync(str(root))
    value = call("skills_list")["value"]
    assert len(value) <= 10_000
    lines = value.splitlines()
    bullets = [line for line in lines if line.startswith("- **")]
    assert [bullet.split("**")[1] for bullet in bullets] == [f"s{n:03}" for n in range(400)]
    assert lines[0] == "400 skills available:"
    assert lines[-1] == (
        "(Descriptions are left out: this list holds at most 10000 characters. "
        "skill_view(name) shows a skill whole.)"
    )
    assert call("skill_view", {"name": "s399"})["ok"]


def test_descriptions_are_shortened_before_any_is_left_out(registry, root, skill, call):
    for number in range(150):
        skill(f"s{number:03}", description="word " * 30)
    skill("short", description="As it is.")
    registry.sync(str(root))
    value = call("skills_list")["value"]
    assert 9_000 < len(value) <= 10_000
    bullets = [line for line in value.splitlines() if line.startswith("- **")]
    assert len(bullets) == 151
    assert {bullet.partition(": ")[2] for bullet in bullets} == {
        "word word word word word word word word word word…",
        "As it is.",
    }
    assert value.endswith(
        "(Long descriptions are shortened: this list holds at most 10000 characters. "
        "skill_view(name) shows a skill whole.)"
    )


def test_names_are_dropped_last_and_their_number_is_told(registry, root, skill, call):
    for number in range(1200):
        skill(f"s{number:04}")
    registry.sync(str(root))
    value = call("skills_list")["value"]
    assert 9_000 < len(value) <= 10_000
    bullets = [line for line in value.splitlines() if line.startswith("- **")]
    assert bullets[0] == "- **s0000**"
    missing = 1200 - len(bullets)
    assert value.endswith(
        f"({missing} of 1200 skills are not shown: this list holds at most "
        "10000 characters. skill_view(name) reads those too.)"
    )
    assert call("skill_view", {"name": "s1199"})["ok"]


def test_returns_a_bullet_list_of_name_kind_description(library, call):
    assert call("skills_list") == {
        "ok": True,
        "value": """5 skills available:

- **code-review** [companion]: Pre-commit gate. Reviews staged or branch-scoped diff...
- **plan** [companion]: Render a long-form plan file in the standard Ethos shape...
- **spike** [companion]: Throwaway experiments to validate an idea before build...
- **tdd**: TDD — enforce RED-GREEN-REFACTOR, tests before code.
- **writing-plans** [companion]: Plan template + section conventions for the `plan` skill...""",
    }


def test_for_every_skill_the_active_personality_can_see(library, listed):
    assert listed("coder") == sorted(LIBRARY)
    assert listed("chooser") == ["plan"]


def test_only_skills_that_would_inject_on_this_personalitys_next_turn_appear(
    registry, root, skill, listed
):
    skill("plain")
    skill("denied")
    skill("reachable", extra="required_tools: [bash]\n")
    skill("unreachable", extra="required_tools: [bash, browser]\n")
    skill("keyed", extra="ethos:\n  env_required: [KEY]\n")
    skill("hidden", extra="disable-model-invocation: true\n")
    registry.sync(str(root))
    assert listed("coder") == ["plain", "reachable"]
    assert listed("coder", environ={"KEY": "1"}) == ["keyed", "plain", "reachable"]
    assert listed() == ["denied", "keyed", "plain", "reachable", "unreachable"]


def test_required_tools_may_stand_below_ethos(registry, root, skill, listed):
    for number, extra in enumerate(
        (
            "ethos:\n  required_tools: [browser]\n",
            "ethos.required_tools: [browser]\n",
            "metadata:\n  ethos:\n    requiredTools: browser\n",
            "metadata:\n  ethos.required_tools: browser\n",
        )
    ):
        skill(f"far-{number}", extra=extra)
    skill("near", extra="ethos:\n  required_tools: [bash]\n")
    registry.sync(str(root))
    assert listed("coder") == ["near"]


# skill_view


def test_skill_view_requires_a_name_string(registry):
    parameters = ethos.EthosToolset(Context(registry.core)).tools()[1].parameters
    assert parameters["properties"]["name"] == {
        "type": "string",
        "description": (
            "Skill name (matches the name: field in the skill's frontmatter; not the directory id, "
            "though they're typically identical)"
        ),
    }
    assert parameters["required"] == ["name"]


def test_the_name_matches_the_name_field_in_the_frontmatter_not_the_directory_id(
    registry, root, skill, call
):
    skill("folder", name="in-the-front-matter", body="# It\n")
    registry.sync(str(root))
    assert call("skill_view", {"name": "in-the-front-matter"})["value"] == "# It"
    assert call("skill_view", {"name": "folder"}) == refusal("folder")


def test_skill_view_max_result_chars_30_000(registry, root, skill, call):
    line = "All work and no play makes a dull day.\n"
    folder = skill("long", body="# Long\n\n" + line * 2000)
    registry.sync(str(root))
    value = call("skill_view", {"name": "long"})["value"]
    assert 29_000 < len(value) <= 30_000
    shown, _, note = value.rpartition("\n\n")
    count = shown.count("\n") + 1
    assert shown == ("# Long\n\n" + line * (count - 2)).rstrip()
    assert note == f"[Cut after line {count} of 2002. The whole text is in {folder}/SKILL.md]"


def test_a_body_of_exactly_30_000_characters_is_returned_whole(registry, root, skill, call):
    skill("full", body="# " + "x" * 29_998)
    skill("over", body="# " + "x" * 29_999)
    registry.sync(str(root))
    assert call("skill_view", {"name": "full"})["value"] == "# " + "x" * 29_998
    over = call("skill_view", {"name": "over"})["value"]
    assert len(over) == 30_000
    assert "[Cut after line 1 of 1." in over


def test_returns_the_skills_full_markdown_body(library, call):
    assert call("skill_view", {"name": "plan"}) == {"ok": True, "value": BODY.rstrip()}


def test_not_available_for_unknown_names(library, call):
    assert call("skill_view", {"name": "nothing"}, personality="coder") == refusal("nothing")


def test_not_available_for_skills_the_personality_cant_see(library, call):
    assert call("skill_view", {"name": "tdd"}, personality="chooser") == refusal("tdd")
    assert call("skill_view", {"name": "plan"}, personality="chooser")["ok"]


@pytest.mark.parametrize("personality", [None, *PERSONALITIES])
def test_a_personality_cant_read_a_skill_it_cant_list(
    registry, tmp_path, listed, call, personality
):
    for source, scope in (("web", "team"), ("platform", "team"), ("mine", "personal")):
        for name, extra in {
            "plan": "",
            "denied": "",
            f"{source}-needs": "required_tools: [browser]\n",
            f"{source}-quiet": "disable-model-invocation: true\n",
            f"{source}-tagged": "tags: quality\n",
        }.items():
            write_skill(tmp_path / source / name, extra=extra)
        registry.sync(str(tmp_path / source), name=source, scope=scope)
    shown = set(listed(personality))
    skills = registry.list().items
    for handle in shown:
        assert call("skill_view", {"name": handle}, personality=personality)["ok"]
    for skill in skills:
        for handle in {skill.ref, f"{skill.source}/{skill.folder}", skill.name}:
            answer = call("skill_view", {"name": handle}, personality=personality)
            assert answer["ok"] or answer["error"].startswith(refusal(handle)["error"])
            if skill.ref not in shown and handle != skill.name:
                assert answer == refusal(handle)


# Scoping


@pytest.mark.parametrize("scope", ["personal", "community", "bundled"])
def test_source_discovery_community_sources_and_first_party_bundles(
    registry, root, skill, listed, scope
):
    skill("plan")
    registry.sync(str(root), name="source", scope=scope)
    assert listed("coder") == ["plan"]
    assert listed("hermit") == []


def test_personality_global_ingest_filters_the_candidate_pool(registry, root, skill, listed):
    skill("plan")
    skill("denied")
    skill("tdd", extra="tags: quality\nrequired_tools: []\n")
    registry.sync(str(root))
    assert listed("coder") == ["plan", "tdd"]
    assert listed("tagger") == ["tdd"]
    assert listed("chooser") == ["plan"]
    assert listed("hermit") == []


def test_a_skill_whose_required_tools_arent_all_in_the_toolset_is_filtered_out(
    registry, root, skill, listed
):
    skill("some", extra="required_tools: [bash, browser]\n")
    skill("all", extra="required_tools: [bash]\n")
    registry.sync(str(root))
    assert listed("coder") == ["all"]


def test_skills_authored_at_the_team_layer_surface_to_all_members_of_that_team(
    registry, root, skill, listed
):
    skill("denied")
    registry.sync(str(root), name="platform", scope="team")
    assert listed("coder") == ["denied"]
    assert listed("hermit") == []


def test_skills_list_reflects_the_final_intersection_not_the_raw_scan_output(
    registry, root, skill, listed
):
    skill("plan", extra="required_tools: [browser]\n")
    skill("broken", description="", body="")
    registry.sync(str(root))
    assert listed("chooser") == []
    assert len(registry.list()) == 1


# Capability rationale


def test_capabilities_are_empty_on_both_tools_and_they_belong_to_the_toolset_skills(registry):
    assert [tool.meta for tool in ethos.EthosToolset(Context(registry.core)).tools()] == [
        {"toolset": "skills", "maxResultChars": 10_000, "capabilities": {}},
        {"toolset": "skills", "maxResultChars": 30_000, "capabilities": {}},
    ]


@pytest.mark.parametrize("has", [[], ["skills_list"], ["skill_view"], TOOLS], ids=str)
def test_a_personality_whose_toolset_omits_a_tool_does_not_have_it(database, root, skill, has):
    with open_with(database, personalities={"p": {"toolset": ["bash", *has]}}) as registry:
        skill("plan")
        registry.sync(str(root))
        toolset = registry.toolset("ethos", personality="p")
        assert [tool.name for tool in toolset.tools()] == has
        for tool in TOOLS:
            answer = toolset.call(tool, {"name": "plan"})
            if tool in has:
                assert answer["ok"]
            else:
                assert answer == {
                    "ok": False,
                    "code": "input_invalid",
                    "error": f'No tool "{tool}": this personality\'s toolset does not have it.',
                }


# Examples and errors


def test_self_discovery(library, call):
    assert "- **plan** [companion]: Render" in call("skills_list", personality="coder")["value"]
    assert call("skill_view", {"name": "plan"}, personality="coder")["value"].startswith("# Plan")


def test_cross_agent_discovery(library, call):
    assert call("skill_view", {"name": "code-review"}, personality="coder")["ok"]
    assert call("skill_view", {"name": "code-review"}, personality="hermit") == refusal(
        "code-review"
    )


NO_NAME = {"ok": False, "code": "input_invalid", "error": "name is required"}


def test_input_invalid_when_skill_view_is_called_without_name(library, call):
    for arguments in [
        {},
        {"name": ""},
        {"name": None},
        {"name": 5},
        {"name": True},
        {"name": ["plan"]},
        {"name": {"name": "plan"}},
        {"Name": "plan"},
        [],
        ["plan"],
        "plan",
        "",
        7,
        1.5,
        False,
        {"skill": "plan"},
    ]:
        assert call("skill_view", arguments) == NO_NAME
        assert ethos.EthosToolset(Context(library.core)).call("skill_view", None) == NO_NAME


# What the contract leaves open


def test_no_skills_available_for_this_personality(registry, library, call):
    none = {"ok": True, "value": "No skills available for this personality."}
    assert call("skills_list", personality="hermit") == none


def test_an_empty_registry_has_no_skills(registry, call):
    assert call("skills_list")["value"] == "No skills available for this personality."
    assert call("skill_view", {"name": "plan"}) == refusal("plan")


def test_one_skill_is_counted_as_any_number_is(library, call):
    value = call("skills_list", personality="chooser")["value"]
    assert value.startswith("1 skills available:\n\n- **plan**")


def test_a_description_of_many_lines_is_one_bullet(registry, root, skill, call):
    skill("plan", description="|\n  One.\n\n  - **fake**: Two.\n")
    registry.sync(str(root))
    assert call("skills_list")["value"].splitlines()[2:] == ["- **plan**: One. - **fake**: Two."]


def test_a_description_longer_than_the_list_leaves_room_for_the_others(registry, root, skill, call):
    skill("a", description="x" * 20_000)
    skill("b", description="Short.")
    registry.sync(str(root))
    value = call("skills_list")["value"]
    assert len(value) < 10_000
    assert f"- **a**: {'x' * 1023}…\n- **b**: Short.\n" in value
    assert value.endswith("skill_view(name) shows a skill whole.)")


def test_a_list_that_is_too_long_keeps_the_strongest_scopes(registry, tmp_path, listed):
    for source, scope in (("a", "community"), ("b", "personal"), ("z", "project")):
        for number in range(300):
            write_skill(tmp_path / source / f"{source}{'-long' * 5}{number:03}")
        registry.sync(str(tmp_path / source), name=source, scope=scope)
    names = listed()
    assert 300 - 50 < len(names) < 300 + 50
    assert {name[0] for name in names} <= {"z", "b"}
    assert not [name for name in names if name[0] == "a"]
    assert names == sorted(names)


def test_what_shares_its_name_is_listed_by_ref_and_every_ref_can_be_viewed(
    registry, tmp_path, listed, call
):
    for source in ("one", "two"):
        write_skill(tmp_path / source / "review", body=f"# Of {source}\n")
        registry.sync(str(tmp_path / source), name=source)
    assert listed() == ["one/review", "two/review"]
    assert call("skill_view", {"name": "two/review"})["value"] == "# Of two"
    answer = call("skill_view", {"name": "review"})
    assert answer["code"] == "not_available"
    assert answer["error"].endswith("Several have this name: one/review, two/review.")


def test_a_name_means_the_one_skill_of_that_name_which_the_personality_sees(
    registry, tmp_path, listed, call
):
    for source, scope in (("web", "team"), ("platform", "team"), ("mine", "personal")):
        write_skill(tmp_path / source / "deploy", body=f"# Of {source}\n")
        registry.sync(str(tmp_path / source), name=source, scope=scope)
    assert listed("coder") == ["deploy"]
    assert call("skill_view", {"name": "deploy"}, personality="coder")["value"] == "# Of platform"
    assert listed("tagger") == []
    assert call("skill_view", {"name": "deploy"}, personality="chooser") == refusal("deploy")
    write_skill(tmp_path / "mine" / "plan", body="# Mine\n")
    write_skill(tmp_path / "web" / "plan", body="# Web's\n")
    registry.sync()
    assert listed("chooser") == ["plan"]
    assert call("skill_view", {"name": "plan"}, personality="chooser")["value"] == "# Mine"
    assert call("skill_view", {"name": "web/plan"}, personality="chooser") == refusal("web/plan")


def test_a_skill_edited_since_the_last_sync_is_read_as_it_is_now(registry, root, skill, call):
    skill("plan", body="# Old\n")
    registry.sync(str(root))
    skill("plan", body="# New\n", age=OLD + 7)
    assert call("skill_view", {"name": "plan"})["value"] == "# New"


@pytest.mark.parametrize(
    "change",
    [
        {"description": "", "body": ""},
        {"extra": "disable-model-invocation: true\n"},
        {"extra": "required_tools: [browser]\n"},
        {"extra": "ethos: {env_required: [KEY]}\n"},
        {"name": "denied"},
    ],
    ids=str,
)
def test_a_skill_that_would_not_be_listed_any_more_is_not_available(
    registry, root, skill, call, change
):
    skill("plan")
    registry.sync(str(root))
    assert call("skill_view", {"name": "plan"}, personality="coder")["ok"]
    skill("plan", age=OLD + 7, **change)
    assert call("skill_view", {"name": "plan"}, personality="coder") == refusal("plan")


def test_a_skill_that_is_gone_from_disk_is_not_available(registry, root, skill, call):
    shutil.rmtree(skill("plan"))
    registry.sync(str(root))
    folder = skill("plan")
    registry.sync(str(root))
    shutil.rmtree(folder)
    assert call("skill_view", {"name": "plan"}) == refusal("plan")


def test_skills_list_takes_whatever_arguments_a_model_makes_up(library, call):
    for arguments in ({"limit": 5}, [], "all", 3):
        assert call("skills_list", arguments)["value"].startswith("5 skills available:")


@pytest.mark.parametrize("tool", ["skills_view", "", "SKILLS_LIST", None, 5])
def test_a_tool_that_does_not_exist_is_an_error_of_the_contract(library, call, tool):
    assert call(tool)["code"] == "input_invalid"


@pytest.mark.file
def test_a_database_that_can_not_be_read_is_an_error_and_no_exception(library, call, database):
    library.close()
    database.write_bytes(b"no database" * 1000)
    assert call("skills_list")["code"] == "not_available"
    assert call("skill_view", {"name": "plan"})["code"] == "not_available"


def test_an_unknown_personality_is_refused_when_the_toolset_is_made(registry):
    with pytest.raises(PersonalityNotFound) as caught:
        ethos.EthosToolset(Context(registry.core, personality="codr"))
    assert caught.value.facts["similar"][0] == "coder"


JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text() | st.just("name"), inner),
    max_leaves=5,
)


@pytest.fixture(scope="module")
def small(tmp_path_factory, new_database):
    folder = tmp_path_factory.mktemp("small")
    write_skill(folder / "skills" / "plan")
    with SkillRegistry.open(new_database(), settings=parse_settings({}, "")) as opened:
        opened.sync(str(folder / "skills"))
        yield opened


@given(tool=st.sampled_from(["skills_list", "skill_view"]), arguments=JSON)
def test_no_arguments_of_any_type_raise(small, tool, arguments):
    answer = ethos.EthosToolset(Context(small.core, environ={})).call(tool, arguments)
    assert answer["ok"] is (tool == "skills_list")


@given(st.one_of(st.text(), st.text(st.characters(categories=["Cs"]), min_size=1)))
def test_no_name_raises_and_every_answer_is_json(small, name):
    answer = ethos.EthosToolset(Context(small.core, environ={})).call("skill_view", {"name": name})
    assert json.loads(json.dumps(answer, ensure_ascii=False).encode())["ok"] is (name == "plan")


@given(st.integers(0, 12), st.integers(0, 60), st.integers(150, 400))
def test_a_list_never_exceeds_its_maximum_and_shows_all_where_all_fit(count, length, limit):
    skill = SimpleNamespace(ref="a", kind=None, description="x" * length, scope="personal")
    text = ethos.list_text([skill] * count, limit)
    whole = f"{count} skills available:\n\n" + "\n".join([f"- **a**: {'x' * length}"] * count)
    assert len(text) <= limit
    assert (text == whole) is (count > 0 and len(whole) <= limit)


@given(st.text(st.sampled_from("ab \n"), max_size=200), st.integers(90, 200))
def test_a_view_never_exceeds_its_maximum_and_is_cut_at_a_line(body, limit):
    text = ethos.view_text(body, "/skills/plan/SKILL.md", limit)
    assert len(text) <= limit
    if len(body) <= limit:
        assert text == body
    else:
        assert body.startswith(text.rpartition("\n\n[Cut after line ")[0])


def test_what_is_filtered_out_is_logged_when_the_toolset_is_made(registry, root, skill, caplog):
    skill("needy", extra="required_tools: [browser]\n")
    registry.sync(str(root))
    with caplog.at_level("INFO", "registry.toolsets.ethos"):
        registry.toolset("ethos", personality="coder")
    assert caplog.messages == [
        "needy is filtered out: the toolset lacks browser, which it requires"
    ]
