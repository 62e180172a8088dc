import html
import re
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from registry.catalog.prompt import MIN_DESCRIPTION, prompt, render_prompt
from registry.db.read.listing import CatalogEntry
from registry.errors import PersonalityNotFound
from registry.model import SCOPES
from tests.conftest import open_with, write_skill

PERSONALITIES = {
    "coder": {"toolset": ["bash"], "skills": {"global_ingest": {"deny": ["denied"]}}},
    "everybody": {},
    "hermit": {"skills": {"global_ingest": {"mode": "none"}}},
}


@pytest.fixture
def registry(database):
    with open_with(database, personalities=PERSONALITIES) as opened:
        yield opened


def entry(name, description="Does one thing well.", scope="personal", location=None):
    path = location or f"/skills/{name}"
    return CatalogEntry(name, name, description, scope, f"{path}/SKILL.md")


def descriptions(text):
    return [element.text.strip("\n") for element in ET.fromstring(text).iter("description")]


def names(text):
    return [element.text.strip("\n") for element in ET.fromstring(text).iter("name")]


# The text


def test_the_xml_is_the_reference_librarys_byte_for_byte(registry, root, skill):
    skill("pdf", description='"Text, <b>HTML-escaped</b> & \\"quoted\\": it\'s so"')
    skill("a/plan")
    registry.sync(str(root))
    assert (
        prompt(registry.core).text
        == f"""<available_skills>
<skill>
<name>
pdf
</name>
<description>
Text, &lt;b&gt;HTML-escaped&lt;/b&gt; &amp; &quot;quoted&quot;: it&#x27;s so
</description>
<location>
{root}/pdf/SKILL.md
</location>
</skill>
<skill>
<name>
plan
</name>
<description>
Does one thing well.
</description>
<location>
{root}/a/plan/SKILL.md
</location>
</skill>
</available_skills>"""
    )


@pytest.mark.both
def test_the_markdown_is_one_line_a_skill_by_ref(registry, tmp_path):
    for source in ("one", "two"):
        text = "|\n  First.\n\n  Second.\n"
        write_skill(tmp_path / source / "review", description=text, body=f"Of {source}.")
        registry.sync(str(tmp_path / source), name=source)
    assert (
        prompt(registry.core, style="markdown").text
        == f"""## Available skills

- **one/review**: First. Second. ({tmp_path}/one/review/SKILL.md)
- **two/review**: First. Second. ({tmp_path}/two/review/SKILL.md)"""
    )


@pytest.mark.parametrize("style", ["xml", "markdown"])
def test_an_empty_catalogue_is_an_empty_text(registry, style):
    assert prompt(registry.core, style=style).text == ""
    assert render_prompt([], style, 0).text == ""


def test_the_location_names_the_file_as_it_is_spelled(registry, root, skill):
    folder = skill("pdf")
    (folder / "SKILL.md").rename(folder / "skill.md")
    registry.sync(str(root))
    assert f"\n{folder}/skill.md\n" in prompt(registry.core).text


def test_a_skill_at_the_root_of_its_source_has_a_location(registry, root):
    write_skill(root, name="whole")
    registry.sync(str(root))
    assert f"\n{root}/SKILL.md\n" in prompt(registry.core).text


def test_a_location_is_raw_as_the_references(registry, tmp_path):
    root = tmp_path / "R&D > 'lab'"
    write_skill(root / "pdf")
    registry.sync(str(root))
    assert f"<location>\n{root}/pdf/SKILL.md\n</location>" in prompt(registry.core).text


def test_no_path_ends_its_element():
    path = "/s/a</location></skill><skill><name>R&D &lt;"
    text = render_prompt([entry("a", location=path)]).text
    (location,) = ET.fromstring(text).iter("location")
    assert location.text == f"\n{path}/SKILL.md\n"
    assert text.count("<skill>") == 1


@pytest.mark.parametrize("style", ["xml", "markdown"])
def test_marks_of_direction_and_line_ends_in_a_path_are_shown_as_escapes(
    registry, root, skill, style
):
    skill("\u202egnp.txt\u200f/a\nb", name="plain", description="\u200fDescribed.")
    registry.sync(str(root), name="mine")
    text = prompt(registry.core, style=style).text
    assert f"{root}/\\u202egnp.txt\\u200f/a\\nb/SKILL.md" in text
    assert "\u200fDescribed." in text
    assert text.count("\u200f") == 1
    assert "\u202e" not in text


def test_what_xml_can_not_hold_is_replaced():
    text = render_prompt([entry("a\x00b", "c\x1b\ufffe]]>", location="/s/\udcff")]).text
    assert "a\ufffdb" in text
    assert "c\ufffd\ufffd]]&gt;" in text
    ET.fromstring(text)
    text.encode()


# Who sees it


def test_what_is_hidden_from_the_model_is_in_no_prompt(registry, root, skill):
    skill("quiet", extra="disable-model-invocation: true\n")
    skill("loud")
    registry.sync(str(root))
    assert prompt(registry.core).shown == ("loud",)
    assert prompt(registry.core, "coder").shown == ("loud",)


@pytest.mark.both
def test_a_personality_gets_what_it_sees(registry, root, skill):
    skill("plain")
    skill("denied")
    skill("far", extra="required_tools: [browser]\n")
    skill("keyed", extra="ethos: {env_required: [KEY]}\n")
    registry.sync(str(root))
    assert prompt(registry.core, "coder", environ={}).shown == ("plain",)
    assert prompt(registry.core, "coder", environ={"KEY": "1"}).shown == ("keyed", "plain")
    assert prompt(registry.core).shown == ("denied", "far", "keyed", "plain")
    assert prompt(registry.core, "hermit").text == ""


def test_every_decision_is_there_to_be_explained(registry, root, skill):
    skill("plain")
    skill("denied")
    skill("far", extra="required_tools: [browser]\n")
    registry.sync(str(root))
    explained = prompt(registry.core, "coder", environ={}).decisions
    assert [(one.ref, why.visible, why.rule, why.reason) for one, why in explained] == [
        ("denied", False, "deny", "it is in deny"),
        ("far", False, "tools-missing", "the toolset lacks browser, which it requires"),
        ("plain", True, "undeclared", "it declares no required tools"),
    ]


def test_who_may_see_all_is_given_the_same_catalogue_as_who_is_nobody(registry, root, skill):
    skill("plain", description="Says <b>this</b> & that.")
    skill("nested/far")
    skill("hidden", extra="disable-model-invocation: true\n")
    (root / "plain" / "SKILL.md").rename(root / "plain" / "skill.md")
    write_skill(root.parent / "alone")
    registry.sync(str(root))
    registry.sync(str(root.parent / "alone"))
    for style in ("xml", "markdown"):
        told = registry.prompt(style=style)
        assert told.text == registry.prompt("everybody", style=style).text
        assert told.shown == ("alone", "far", "plain")


def test_an_unknown_personality_is_refused(registry):
    with pytest.raises(PersonalityNotFound):
        prompt(registry.core, "nobody")


# The budget

LONG = "word " * 40 + "end"


def test_a_budget_that_is_met_changes_nothing():
    entries = [entry("a", LONG), entry("b")]
    whole = render_prompt(entries)
    assert render_prompt(entries, max_chars=len(whole.text)) == whole
    assert whole.left_out == whole.shortened == ()


def test_descriptions_are_shortened_evenly_at_words_before_a_name_is_dropped():
    entries = [entry("a", LONG), entry("b", LONG), entry("c", "Short as it is.")]
    whole = render_prompt(entries).text
    result = render_prompt(entries, max_chars=len(whole) - 100)
    first, second, third = descriptions(result.text)
    assert first == second
    assert re.fullmatch(r"(word )+word…", first)
    assert third == "Short as it is."
    assert result.shown == ("a", "b", "c")
    assert result.shortened == ("a", "b")
    assert result.left_out == ()
    assert "<!-- 2 descriptions are shortened: this catalogue holds at most" in result.text


def test_the_weakest_scopes_are_dropped_first_and_the_order_stays():
    entries = [entry(f"{n}-{scope}", LONG, scope) for n in range(2) for scope in reversed(SCOPES)]
    result = render_prompt(entries, max_chars=900)
    assert result.shown == ("0-team", "0-project", "1-team", "1-project")
    assert names(result.text) == list(result.shown)
    assert set(result.shown) | set(result.left_out) == {one.ref for one in entries}
    assert "6 of 10 skills are left out, 4 descriptions are shortened" in result.text


def test_of_one_scope_the_last_are_dropped():
    entries = [entry(name) for name in "abcdef"]
    assert render_prompt(entries, max_chars=600).shown == ("a", "b", "c")


def test_no_description_gets_too_short_to_say_anything():
    entries = [entry(name, LONG) for name in "abcdef"]
    result = render_prompt(entries, max_chars=700)
    assert result.left_out
    assert all(len(text) > MIN_DESCRIPTION - 6 for text in descriptions(result.text))


def test_prose_without_spaces_is_cut_where_it_must():
    text = render_prompt([entry("a", "短 " + "文" * 500)], max_chars=400).text
    assert descriptions(text)[0].count("文") > 50


def test_a_budget_too_small_for_any_skill_still_tells_how_many_there_are():
    result = render_prompt([entry("a", LONG), entry("b", LONG)], max_chars=160)
    assert ET.fromstring(result.text).tag == "available_skills"
    assert "2 of 2 skills are left out" in result.text
    assert result.left_out == ("a", "b")


@pytest.mark.parametrize("style", ["xml", "markdown"])
@pytest.mark.parametrize("budget", [0, -1, 10])
def test_a_budget_too_small_for_that_gives_an_empty_text_and_the_facts(style, budget):
    result = render_prompt([entry("a"), entry("b")], style, budget)
    assert result.text == ""
    assert result.left_out == ("a", "b")


def test_markdown_says_what_was_left_out():
    text = render_prompt([entry(name, LONG) for name in "abcdef"], "markdown", 300).text
    assert text.endswith("shortened: this catalogue holds at most 300 characters)")


ENTRIES = st.lists(
    st.builds(
        entry,
        st.text(min_size=1, max_size=12),
        st.text(max_size=300) | st.text("ab <&\n", max_size=900),
        st.sampled_from(SCOPES),
    ),
    max_size=12,
)


@given(ENTRIES, st.integers(0, 4000), st.sampled_from(["xml", "markdown"]))
def test_a_budget_is_never_exceeded_and_every_skill_accounted_for(entries, budget, style):
    result = render_prompt(entries, style, budget)
    assert len(result.text) <= budget
    assert sorted(result.shown + result.left_out) == sorted(one.ref for one in entries)
    assert set(result.shortened) <= set(result.shown)
    assert render_prompt(entries, style, budget) == result
    if not result.text:
        assert result.shown == ()
    ranks = {scope: rank for rank, scope in enumerate(SCOPES)}
    if (
        result.left_out
        and result.shown
        and len(set(result.shown + result.left_out)) == len(entries)
    ):
        scopes = {one.ref: ranks[one.scope] for one in entries}
        assert max(scopes[ref] for ref in result.shown) <= min(
            scopes[ref] for ref in result.left_out
        )


@given(ENTRIES, st.none() | st.integers(0, 4000))
def test_the_xml_can_always_be_parsed_but_for_the_ampersands_of_paths(entries, budget):
    result = render_prompt(entries, "xml", budget)
    if result.text:
        parts = re.split(r"(?s)(?<=<location>\n)(.*?)(?=\n</location>)", result.text)
        parts[1::2] = [part if "&lt;" in part else html.escape(part) for part in parts[1::2]]
        assert len(list(ET.fromstring("".join(parts)))) == len(result.shown)
    else:
        assert not result.shown
