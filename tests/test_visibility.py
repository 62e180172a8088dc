import stat
import sys
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from registry.api import SkillRegistry
from registry.catalog.visibility.decisions import decisions, personality
from registry.catalog.visibility.rules import NOTHING, Host, Needs, PolicyFacts, decide, read_needs
from registry.errors import PersonalityNotFound, SettingsProblem
from registry.settings import GlobalIngest, Personality, Settings, load_settings, parse_settings
from tests.conftest import write_skill
from tests.older import move

NOWHERE = Host({})


def coder(**ingest):
    sets = {
        key: value if isinstance(value, str) else frozenset(value) for key, value in ingest.items()
    }
    return Personality("coder", frozenset({"bash", "read_file"}), "platform", GlobalIngest(**sets))


def pdf(**facts):
    return replace(PolicyFacts(name="pdf", source="mine", scope="personal"), **facts)


# The order of the rules for the global pool, each from both sides

POOL = [
    ("a denied name is out", pdf(), {"deny": ["pdf"]}, "deny"),
    ("a denied qualified name is out", pdf(), {"deny": ["mine/pdf"]}, "deny"),
    ("another source's denied name is not meant", pdf(), {"deny": ["other/pdf"]}, "undeclared"),
    ("deny beats allow", pdf(), {"deny": ["pdf"], "allow": ["mine/pdf"]}, "deny"),
    ("an allowed name is in", pdf(), {"allow": ["pdf"]}, "allow"),
    ("an allowed qualified name is in", pdf(), {"allow": ["mine/pdf"]}, "allow"),
    ("allow is in, in mode none", pdf(), {"mode": "none", "allow": ["pdf"]}, "allow"),
    ("allow is in, in mode explicit", pdf(), {"mode": "explicit", "allow": ["pdf"]}, "allow"),
    (
        "allow is in, in mode tags, whatever the tags",
        pdf(tags=("bad",)),
        {"mode": "tags", "reject_tags": ["bad"], "allow": ["pdf"]},
        "allow",
    ),
    (
        "allow is in where unknown needs are denied",
        pdf(),
        {"fallback_unknown": "deny", "allow": ["pdf"]},
        "allow",
    ),
    (
        "allow is out where the required tools are out of reach",
        pdf(required_tools=("bash", "browser")),
        {"allow": ["pdf"]},
        "tools-missing",
    ),
    ("mode none lets nothing in", pdf(required_tools=("bash",)), {"mode": "none"}, "mode-none"),
    (
        "mode explicit lets in only what is allowed",
        pdf(required_tools=("bash",)),
        {"mode": "explicit", "allow": ["other"]},
        "mode-explicit",
    ),
    (
        "a rejected tag is out, though another is accepted",
        pdf(tags=("good", "bad")),
        {"mode": "tags", "accept_tags": ["good"], "reject_tags": ["bad"]},
        "tag-rejected",
    ),
    (
        "without an accepted tag it is out",
        pdf(tags=("other",)),
        {"mode": "tags", "accept_tags": ["good"]},
        "tag-not-accepted",
    ),
    (
        "with an accepted tag it is in",
        pdf(tags=("other", "good")),
        {"mode": "tags", "accept_tags": ["good"]},
        "tags",
    ),
    ("an empty accept_tags accepts all", pdf(), {"mode": "tags", "reject_tags": ["bad"]}, "tags"),
    (
        "an accepted tag needs its tools within reach",
        pdf(tags=("good",), required_tools=("browser",)),
        {"mode": "tags", "accept_tags": ["good"]},
        "tools-missing",
    ),
    (
        "mode tags asks for no declared tools",
        pdf(),
        {"mode": "tags", "fallback_unknown": "deny"},
        "tags",
    ),
    ("capability is the default mode", pdf(required_tools=("bash",)), {}, "capability"),
    (
        "capability wants every required tool",
        pdf(required_tools=("bash", "read_file")),
        {"mode": "capability"},
        "capability",
    ),
    (
        "capability is out where one tool is missing",
        pdf(required_tools=("bash", "browser")),
        {"mode": "capability"},
        "tools-missing",
    ),
    (
        "fallback_unknown is not asked where tools are declared",
        pdf(required_tools=("bash",)),
        {"fallback_unknown": "deny"},
        "capability",
    ),
    ("without required tools it is in by default", pdf(), {}, "undeclared"),
    (
        "fallback_unknown deny keeps it out",
        pdf(),
        {"fallback_unknown": "deny"},
        "undeclared-denied",
    ),
    ("fallback_unknown warn lets it in", pdf(), {"fallback_unknown": "warn"}, "undeclared"),
    ("community is in the pool", pdf(scope="community"), {"mode": "none"}, "mode-none"),
    ("bundled is in the pool", pdf(scope="bundled"), {"mode": "none"}, "mode-none"),
]
SEEN = {"allow", "tags", "capability", "undeclared", "own", "team", "no-personality"}


@pytest.mark.parametrize(
    ("facts", "ingest", "rule"), [row[1:] for row in POOL], ids=[row[0] for row in POOL]
)
def test_the_global_pool(facts, ingest, rule):
    decision = decide(facts, coder(**ingest), NOWHERE)
    assert (decision.rule, decision.visible) == (rule, rule in SEEN)
    assert decision.reason


def test_only_fallback_unknown_warn_warns():
    assert "pdf" in decide(pdf(), coder(fallback_unknown="warn"), NOWHERE).warning
    assert decide(pdf(), coder(), NOWHERE).warning is None
    tools = pdf(required_tools=("bash",))
    assert decide(tools, coder(fallback_unknown="warn"), NOWHERE).warning is None


@pytest.mark.parametrize(
    "ingest", [{"mode": "none"}, {"mode": "explicit"}, {"deny": ["pdf"]}], ids=str
)
@pytest.mark.parametrize(
    ("scope", "source", "rule"), [("project", "mine", "own"), ("team", "platform", "team")]
)
def test_own_and_team_skills_are_not_subject_to_the_ingest(scope, source, rule, ingest):
    facts = pdf(scope=scope, source=source)
    assert decide(facts, coder(**ingest), NOWHERE).rule == rule
    assert decide(facts, coder(**ingest), NOWHERE).visible


@pytest.mark.parametrize(("scope", "source"), [("project", "mine"), ("team", "platform")])
def test_own_and_team_skills_are_subject_to_reachability(scope, source):
    facts = pdf(scope=scope, source=source, required_tools=("browser",))
    assert decide(facts, coder(allow=["pdf"]), NOWHERE).rule == "tools-missing"


def test_another_teams_skills_are_not_seen_even_if_allowed():
    facts = pdf(scope="team", source="web")
    assert decide(facts, coder(allow=["pdf", "web/pdf"]), NOWHERE).rule == "other-team"
    hidden = decide(facts, replace(coder(), team=None), NOWHERE)
    assert hidden.rule == "other-team"
    assert hidden.reason.endswith("; tags don't limit sources of scope team")


def test_without_a_personality_everything_visible_is_seen():
    needy = pdf(required_tools=("browser",), needs=Needs(variables=("KEY",)))
    for facts in (pdf(), needy, pdf(scope="team", source="web")):
        assert decide(facts, None, NOWHERE).rule == "no-personality"
        assert decide(facts, None, NOWHERE).visible


@pytest.mark.parametrize(
    "who", [None, coder(), coder(allow=["pdf"])], ids=["any", "coder", "allowed"]
)
@pytest.mark.parametrize("scope", ["project", "personal"])
def test_what_is_hidden_from_the_model_is_never_seen(who, scope):
    decision = decide(pdf(hidden=True, scope=scope), who, NOWHERE)
    assert (decision.visible, decision.rule) == (False, "hidden")


# Reachability beyond tools


@pytest.fixture
def host(tmp_path):
    folder = tmp_path / "bin"
    folder.mkdir()
    program = folder / "gh"
    program.write_text("#!/bin/sh\n")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    (folder / "data").write_text("no program")
    return Host({"PATH": str(folder), "KEY": "value", "EMPTY": ""})


REACH = [
    ("a fallback is shown while its tools are absent", Needs(fallback_for=("browser",)), None),
    (
        "a fallback is hidden while one of its tools is there",
        Needs(fallback_for=("browser", "bash")),
        "fallback-not-needed",
    ),
    ("a variable that is set", Needs(variables=("KEY",)), None),
    ("a variable that is not set", Needs(variables=("KEY", "OTHER")), "env-missing"),
    ("a variable that is empty", Needs(variables=("EMPTY",)), "env-missing"),
    ("one of the programs is on the PATH", Needs(programs=("hub", "gh")), None),
    ("no program is on the PATH", Needs(programs=("hub", "glab")), "program-missing"),
    ("a file that can't be run is no program", Needs(programs=("data",)), "program-missing"),
    (
        "a path is no program",
        Needs(programs=("/bin/sh", "../bin/gh", "a\0b", "")),
        "program-missing",
    ),
]


@pytest.mark.parametrize(
    ("facts", "ingest", "otherwise"),
    [
        (pdf(), {}, "undeclared"),
        (pdf(required_tools=("bash",)), {}, "capability"),
        (pdf(), {"mode": "tags"}, "tags"),
        (pdf(), {"mode": "none", "allow": ["pdf"]}, "allow"),
        (pdf(scope="project"), {}, "own"),
        (pdf(scope="team", source="platform"), {}, "team"),
    ],
    ids=["undeclared", "capability", "tags", "allow", "own", "team"],
)
def test_reachability_counts_wherever_a_skill_comes_from(host, facts, ingest, otherwise):
    for case, needs, rule in REACH:
        decision = decide(replace(facts, needs=needs), coder(**ingest), host)
        assert decision.rule == (rule or otherwise), case
        assert decision.visible is (rule is None), case


def test_without_a_path_there_are_no_programs():
    assert not Host({}).has_program("sh")


@pytest.mark.parametrize(
    ("front_matter", "expected"),
    [
        ('{"ethos":{"fallback_for_tools":["web"]}}', Needs(fallback_for=("web",))),
        ('{"ethos":{"fallback_for_tools":"web, browser"}}', Needs(fallback_for=("web", "browser"))),
        ('{"ethos.fallback_for_tools":["web"]}', Needs(fallback_for=("web",))),
        ('{"Ethos":{"Fallback-For-Tools":["web"]}}', Needs(fallback_for=("web",))),
        ('{"ethos":{"fallbackForTools":["web"]}}', Needs(fallback_for=("web",))),
        ('{"ETHOS-ENV-REQUIRED":["KEY"]}', Needs(variables=("KEY",))),
        (
            '{"ethos":{"env_required":[{"name":"KEY","description":"d"},"B"]}}',
            Needs(variables=("KEY", "B")),
        ),
        ('{"metadata":{"ethos":{"env_required":"KEY"}}}', Needs(variables=("KEY",))),
        ('{"metadata":{"ethos.env_required":"KEY"}}', Needs(variables=("KEY",))),
        ('{"metadata.ethos.env_required":"KEY"}', Needs(variables=("KEY",))),
        ('{"metadata":{"ethos":"{\\"env_required\\": [\\"KEY\\"]}"}}', Needs(variables=("KEY",))),
        ('{"ethos":{"external_cli_alternatives":["a","b","a"]}}', Needs(programs=("a", "b"))),
        (
            '{"ethos":{"env_required":[]},"metadata":{"ethos":{"env_required":["K"]}}}',
            Needs(variables=("K",)),
        ),
        ('{"env_required":["KEY"]}', NOTHING),
        ('{"ethos":{"other":{"env_required":["KEY"]}}}', NOTHING),
        ('{"ethos":["env_required"]}', NOTHING),
        ('{"ethos":{"env_required":null}}', NOTHING),
        ('{"ethos":{"env_required":[[[{"a":{}}]]]}}', NOTHING),
        ("[]", NOTHING),
        (None, NOTHING),
    ],
)
def test_needs_are_read_in_every_spelling(front_matter, expected):
    assert read_needs(front_matter) == expected


# Properties

NAMES = st.sampled_from(["pdf", "mine/pdf", "doc", "other/pdf"])
TOOLS = st.frozensets(st.sampled_from(["bash", "web", "browser"]))
TAGS = st.frozensets(st.sampled_from(["good", "bad"]))
PERSONALITIES = st.builds(
    Personality,
    st.just("coder"),
    TOOLS,
    st.sampled_from([None, "mine", "other"]),
    st.builds(
        GlobalIngest,
        st.sampled_from(["capability", "tags", "explicit", "none"]),
        st.frozensets(NAMES),
        st.frozensets(NAMES),
        TAGS,
        TAGS,
        st.sampled_from(["allow", "deny", "warn"]),
    ),
)
FACTS = st.builds(
    PolicyFacts,
    name=st.sampled_from(["pdf", "doc"]),
    source=st.sampled_from(["mine", "other"]),
    scope=st.sampled_from(["project", "team", "personal", "community", "bundled"]),
    tags=TAGS.map(tuple),
    required_tools=TOOLS.map(tuple),
    needs=st.one_of(
        st.just(NOTHING), st.builds(Needs, fallback_for=TOOLS.map(tuple), variables=TAGS.map(tuple))
    ),
    hidden=st.booleans(),
)
POOLED = FACTS.filter(lambda facts: facts.scope not in {"project", "team"})


@given(POOLED, PERSONALITIES, st.booleans())
def test_deny_always_wins(facts, who, qualified):
    name = facts.qualified_name if qualified else facts.name
    ingest = replace(who.global_ingest, deny=who.global_ingest.deny | {name})
    assert not decide(facts, replace(who, global_ingest=ingest), NOWHERE).visible


@given(FACTS, PERSONALITIES)
def test_allow_never_shows_what_is_out_of_reach(facts, who):
    ingest = replace(who.global_ingest, allow=frozenset({facts.name}), deny=frozenset())
    decision = decide(facts, replace(who, global_ingest=ingest), NOWHERE)
    if decision.visible:
        assert set(facts.required_tools) <= who.toolset
        assert not set(facts.needs.fallback_for) & who.toolset
        assert not facts.needs.variables
        assert not facts.hidden


@given(FACTS, PERSONALITIES, TOOLS)
def test_a_tool_more_never_hides_a_skill_that_is_no_fallback(facts, who, more):
    facts = replace(facts, needs=replace(facts.needs, fallback_for=()))
    before = decide(facts, who, NOWHERE)
    after = decide(facts, replace(who, toolset=who.toolset | more), NOWHERE)
    assert after.visible or not before.visible


@given(FACTS, PERSONALITIES)
def test_every_decision_has_a_rule_and_words(facts, who):
    decision = decide(facts, who, NOWHERE)
    assert decision.rule.replace("-", "").isalpha()
    assert decision.reason
    assert decision.warning is None or decision.visible


# From the database


def seen(registry, who, environ=None, **more):
    decided = decisions(registry.core.reader, who, environ or {}, **more)
    return {skill.ref: decision.rule for _, skill, decision in decided}


def test_facts_come_from_the_stored_skills(registry, root, skill):
    skill("plain")
    skill("tools", extra="required_tools: [bash, read_file]\n")
    skill("far", extra="metadata:\n  required_tools: browser\n")
    skill("fallback", extra="ethos:\n  fallback_for_tools: [bash]\n")
    skill("keyed", extra="Ethos.Env-Required: KEY\n")
    skill("quiet", extra="disable-model-invocation: yes\n")
    skill("tagged", extra="tags: [BAD]\n")
    skill("broken", description="", body="")
    registry.sync(str(root))
    assert seen(registry, coder()) == {
        "plain": "undeclared",
        "tools": "capability",
        "far": "tools-missing",
        "fallback": "fallback-not-needed",
        "keyed": "env-missing",
        "quiet": "hidden",
        "tagged": "undeclared",
    }
    assert seen(registry, coder(), {"KEY": "1"})["keyed"] == "undeclared"
    assert seen(registry, coder(mode="tags", reject_tags=["bad"]))["tagged"] == "tag-rejected"
    assert set(seen(registry, None).values()) == {"no-personality", "hidden"}
    assert list(seen(registry, None)) == [one.ref for one in registry.list()]
    assert seen(registry, coder(), name="far") == {"far": "tools-missing"}


@pytest.mark.file
def test_an_upgrade_finds_what_stored_skills_need(registry, root, skill, database):
    skill("plain")
    skill("keyed", extra="Ethos.Env-Required: KEY\n")
    registry.sync(str(root))
    before = seen(registry, coder())
    registry.close()
    move(database, "0030")
    with SkillRegistry.open(database, settings=Settings()) as upgraded:
        upgraded.list()
        assert seen(upgraded, coder()) == before == {"keyed": "env-missing", "plain": "undeclared"}


def test_an_empty_registry_has_nothing_to_decide(registry):
    assert list(decisions(registry.core.reader, coder(), {})) == []


@pytest.fixture
def teams(registry, tmp_path):
    for source, scope in (
        ("web", "team"),
        ("platform", "team"),
        ("mine", "personal"),
        ("shared", "community"),
    ):
        for name in ("deploy", source):
            write_skill(tmp_path / source / name, description=f"Of {source}.")
        registry.sync(str(tmp_path / source), name=source, scope=scope)
    return registry


def test_other_teams_hide_nothing_from_a_personality(teams):
    lonely = replace(coder(), team=None)
    visible = {ref for ref, rule in seen(teams, lonely).items() if rule != "other-team"}
    assert visible == {"mine/deploy", "mine", "shared"}
    assert teams.get("mine/deploy").description == "Of mine."


def test_its_own_team_hides_the_namesakes_of_the_pool(teams):
    decided = seen(teams, coder())
    visible = {ref for ref, rule in decided.items() if rule != "other-team"}
    assert visible == {"platform/deploy", "platform", "mine", "shared"}


def test_all_decisions_take_one_select_and_parse_only_front_matter_that_matters(
    registry, root, skill, monkeypatch
):
    for number in range(30):
        skill(f"s{number}", extra="metadata: {author: someone}\n")
    skill("keyed", extra="ethos: {env_required: [KEY]}\n")
    registry.sync(str(root))
    parsed = []
    monkeypatch.setattr(
        sys.modules["registry.catalog.visibility.decisions"],  # not the function of that name
        "read_needs",
        lambda text: parsed.append(text) or read_needs(text),
    )
    selects = []
    for name in ("rows", "stream"):
        real = getattr(registry.core.reader, name)
        monkeypatch.setattr(
            registry.core.reader,
            name,
            lambda *given, real=real: selects.append(given) or real(*given),
        )
    assert len(list(decisions(registry.core.reader, coder(), {}))) == 31
    assert len(selects) == 1
    assert [text for text in parsed if text] == [
        '{"name":"keyed","description":"Does one thing well.","ethos":{"env_required":["KEY"]}}'
    ]


# Settings

EXAMPLE = {
    "personalities": {
        "coder": {
            "toolset": ["bash", "read_file", "write_file"],
            "team": "platform",
            "skills": {
                "global_ingest": {
                    "mode": "tags",
                    "allow": ["mine/pdf"],
                    "deny": ["doc"],
                    "accept_tags": ["Good  Tag"],
                    "reject_tags": [],
                    "fallback_unknown": "warn",
                }
            },
        },
        "writer": None,
    }
}


def test_personalities_are_read_from_the_settings():
    settings = parse_settings(EXAMPLE, "config.yaml")
    assert personality(settings, "coder") == Personality(
        "coder",
        frozenset({"bash", "read_file", "write_file"}),
        "platform",
        GlobalIngest(
            "tags",
            frozenset({"mine/pdf"}),
            frozenset({"doc"}),
            frozenset({"good tag"}),
            frozenset(),
            "warn",
        ),
    )
    assert personality(settings, "writer") == Personality("writer")
    assert Personality("writer").global_ingest.mode == "capability"


def ingest(**keys):
    return {"skills": {"global_ingest": keys}}


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (["bash"], "personalities.coder must be a mapping"),
        ({"tolset": []}, "unknown key 'tolset' in personalities.coder: did you mean 'toolset'?"),
        ({"toolset": "bash"}, "personalities.coder.toolset must be a list of names"),
        ({"toolset": [1]}, "personalities.coder.toolset must be a list of names"),
        ({"team": ["a"]}, "personalities.coder.team must be the name of a source of scope team"),
        ({"skills": {"ingest": {}}}, "did you mean 'global_ingest'?"),
        ({"skills": []}, "personalities.coder.skills must be a mapping"),
        (ingest(modes="tags"), "did you mean 'mode'?"),
        (ingest(mode="tag"), "global_ingest.mode can't be 'tag': did you mean 'tags'?"),
        (ingest(mode=7), "known are capability, tags, explicit, none"),
        (ingest(fallback_unknown="denied"), "did you mean 'deny'?"),
        (ingest(allow={"a": 1}), "global_ingest.allow must be a list of names"),
        (ingest(deny=[True]), "global_ingest.deny must be a list of names"),
    ],
    ids=str,
)
def test_settings_that_make_no_sense_are_refused(value, words):
    with pytest.raises(SettingsProblem) as caught:
        parse_settings({"personalities": {"coder": value}}, "config.yaml")
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("usage: true\nlimits: {files: 1}\nusage: false\n", "line 3: the key 'usage' is repeated"),
        ("personalities:\n  a: {}\n  b: {}\n  a: {}\n", "line 4: the key 'a' is repeated"),
        ("usage: [\nstrict", "it is not valid YAML, line 2: "),
        ("host: 2026-02-30", "it is not valid YAML: day is out of range"),
        (f"limits: {{files: {'9' * 5000}}}", "it is not valid YAML: Exceeds the limit"),
        ("usege: true", "did you mean 'usage'?"),
        ("hosts: &a {x: *a}", "hosts must be a mapping of short names"),
    ],
)
def test_a_file_with_a_slip_is_refused_in_one_line(tmp_path, text, words):
    file = tmp_path / "config.yaml"
    file.write_text(text)
    with pytest.raises(SettingsProblem) as caught:
        load_settings(file)
    told = str(caught.value)
    assert words in told
    assert "\n" not in told
    assert not told.endswith("?.")


def test_what_is_repeated_by_an_anchor_may_be_given_anew(tmp_path):
    file = tmp_path / "config.yaml"
    file.write_text("personalities:\n  a: &a {team: x}\n  b: {<<: *a, team: y}\n  c: *a\n")
    teams = {one.name: one.team for one in load_settings(file).personalities.values()}
    assert teams == {"a": "x", "b": "y", "c": "x"}


def test_a_personality_is_named_by_text():
    with pytest.raises(SettingsProblem, match="must be a text, not 5"):
        parse_settings({"personalities": {5: {}}}, "config.yaml")


def test_an_unknown_personality_is_answered_with_near_names(database):
    settings = parse_settings(EXAMPLE, "config.yaml")
    with pytest.raises(PersonalityNotFound) as caught:
        personality(settings, "codr")
    assert str(caught.value) == "No personality named 'codr'. Did you mean 'coder'?"
    with pytest.raises(PersonalityNotFound) as caught:
        personality(settings, "zzz")
    assert str(caught.value) == "No personality named 'zzz'. The settings have 'coder' or 'writer'."
    with SkillRegistry.open(database) as registry, pytest.raises(PersonalityNotFound) as caught:
        personality(registry.settings, "zzz")
    assert (
        str(caught.value)
        == "No personality named 'zzz'. The settings have no personalities. Add it under the key personalities."
    )
