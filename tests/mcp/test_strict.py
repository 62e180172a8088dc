"""Entries of skills/list that no client refuses, and with them the listing (SEP-2640).

The rules are those of the Agent Skills specification's fields, with lengths in UTF-16 units, as
JavaScript counts, and of the extension's entries.
"""

import re
import sqlite3

import pytest

from registry.mcp.resources import SkillResources, cut
from registry.settings import Settings
from registry.toolsets.base import Context
from registry.toolsets.view import View
from tests.conftest import open_with

LONG = "Fill in forms. " * 100
EMOJI = "\N{GRINNING FACE}"

ODD = {
    "numbers": "metadata:\n  version: 1.10\n  n: 3\n  on: yes\n",
    "nested": "metadata:\n  openclaw:\n    requires: {bins: [jq]}\n  tags: [a, b]\n  none: null\n",
    "no-map": "metadata: [a, b]\n",
    "tools": "allowed-tools: [Read, 'Bash(git:*)']\nlicense: 2\n",
    "lists": "allowed-tools: [1, {a: b}]\nlicense: [MIT]\ncompatibility:\n",
    "wide": f"compatibility: '{LONG}'\nmetadata:\n",
    "others": "version: 2\ntags: [a]\nuser-invocable: true\n",
}


def obey(entry):
    """Hold an entry against the rules, as a client with a schema of its own does."""
    front = entry["frontmatter"]
    assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", front["name"])
    assert len(front["name"]) <= 64
    assert entry["uri"].split("/")[-2] == front["name"]
    lengths = {"description": 1024, "compatibility": 500, "license": None, "allowed-tools": None}
    for key, limit in lengths.items():
        value = front.get(key, "-")
        assert isinstance(value, str), key
        assert value.strip(), key
        assert limit is None or len(value.encode("utf-16-le")) // 2 <= limit, key
    assert "description" in front
    assert all(isinstance(one, str) for one in front.get("metadata", {}).values())
    assert isinstance(front.get("metadata", {}), dict)
    for file in entry["resources"]:
        assert re.fullmatch(r"sha256:[0-9a-f]{64}", file["digest"])
        assert isinstance(file["size"], int)


@pytest.fixture
def library(registry, root, skill):
    for name, extra in ODD.items():
        skill(name, description="Does one thing.", extra=extra)
    skill("long", description=LONG)
    skill("emoji", description=EMOJI * 700)
    skill("not-said", description="", body="# Title\n\nThe first paragraph.\n")
    skill("a-number", description="5")
    registry.sync(str(root), name="mine")
    return root


@pytest.fixture
def entries(registry, library):
    resources = SkillResources(View(Context(registry.core)))
    found, _ = resources.skills(None)
    listed = {one["frontmatter"]["name"]: one for one in found}
    assert all(resources.skill(one["uri"]) == one for one in found)
    return listed


def test_each_entry_obeys_every_rule(entries):
    assert set(entries) == {*ODD, "long", "emoji", "not-said", "a-number"}
    for entry in entries.values():
        obey(entry)


@pytest.mark.parametrize(
    ("name", "key", "value"),
    [
        ("numbers", "metadata", {"version": "1.10", "n": "3", "on": "yes"}),
        (
            "nested",
            "metadata",
            {"openclaw": '{"requires": {"bins": ["jq"]}}', "tags": '["a", "b"]'},
        ),
        ("no-map", "metadata", None),
        ("tools", "allowed-tools", "Read Bash(git:*)"),
        ("tools", "license", "2"),
        ("lists", "allowed-tools", '[1, {"a": "b"}]'),
        ("lists", "license", "MIT"),
        ("lists", "compatibility", None),
        ("others", "version", 2),
        ("others", "tags", ["a"]),
        ("not-said", "description", "The first paragraph."),
        ("a-number", "description", "5"),
    ],
)
def test_what_is_no_text_becomes_the_text_it_is_written_as(entries, name, key, value):
    assert entries[name]["frontmatter"].get(key) == value


def test_a_long_description_is_cut_at_a_word(entries):
    told = entries["long"]["frontmatter"]["description"]
    assert 1000 < len(told) <= 1024
    assert told.endswith(("forms.\N{HORIZONTAL ELLIPSIS}", "in\N{HORIZONTAL ELLIPSIS}", "Fill…"))


@pytest.mark.parametrize("text", ["", "a", "a" * 3000, EMOJI * 3000, f"{EMOJI} a " * 900])
def test_a_cut_text_fits_as_javascript_counts_and_is_not_cut_too_short(text):
    done = cut(text, 1024)
    units = len(done.encode("utf-16-le")) // 2
    assert units <= 1024
    assert units == len(text.encode("utf-16-le")) // 2 or units > 1000


def test_the_document_itself_stays_as_it_is(registry, entries, library):
    resources = SkillResources(View(Context(registry.core)))
    for name, entry in entries.items():
        read = resources.read(entry["uri"])
        assert read[1] == (library / name / "SKILL.md").read_bytes()


def test_a_skill_that_obeys_is_listed_word_for_word(registry, root, skill):
    extra = "license: MIT\nmetadata:\n  author: me\n  version: '1.10'\nallowed-tools: Read\n"
    skill("plain", extra=extra)
    registry.sync(str(root))
    strict, _ = SkillResources(View(Context(registry.core))).skills(None)
    registry.core.settings = Settings(strict=False)
    raw, _ = SkillResources(View(Context(registry.core))).skills(None)
    assert strict == raw
    assert list(strict[0]["frontmatter"]) == list(raw[0]["frontmatter"])


def test_switched_off_front_matter_is_listed_as_it_is(registry, library, database):
    with open_with(database, strict=False) as other:
        found, _ = SkillResources(View(Context(other.core))).skills(None)
    raw = {one["frontmatter"]["name"]: one["frontmatter"] for one in found}
    assert raw["nested"]["metadata"]["tags"] == ["a", "b"]
    assert raw["numbers"]["metadata"]["version"] == 1.1
    assert raw["long"]["description"] == LONG.strip()


@pytest.mark.parametrize(
    "front",
    [
        "a: &x [1]\nb: [*x, *x]\n",
        "a: &x {k: v}\nb: *x\n",
        "a: &x [*x]\n",
        "".join(
            f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9 if n else '1')}]\n" for n in range(12)
        ),
    ],
    ids=["list", "map", "itself", "billion"],
)
def test_front_matter_with_aliases_is_none_whoever_wrote_it_into_the_database(
    registry, database, root, skill, front
):
    skill("plain")
    skill("hostile")
    registry.sync(str(root), name="mine")
    text = f"---\nname: hostile\ndescription: D.\n{front}---\n"
    with sqlite3.connect(database) as written:
        changed = written.execute(
            "UPDATE documents SET text = ? WHERE text LIKE '%name: hostile%'", [text]
        )
        assert changed.rowcount == 1
    written.close()
    found, _ = SkillResources(View(Context(registry.core))).skills(None)
    assert [one["frontmatter"]["name"] for one in found] == ["plain"]
