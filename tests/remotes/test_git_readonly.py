"""What comes from elsewhere is a read-only checkout, says where it comes from, and may be held back."""

import json

import pytest

from registry.errors import SourceUnclear
from tests.conftest import write_skill
from tests.remotes.conftest import SHELL
from tests.remotes.upstream import DAY, WHEN, checkout_of, document, files_of


@pytest.fixture
def mine(registry, root):
    write_skill(root / "own")
    registry.sync(str(root), name="mine")
    return root


CALLS = [
    (
        "native",
        "create_skill",
        {"name": "new", "description": "New.", "body": "x", "source": "team"},
    ),
    ("native", "update_skill", {"name": "alpha", "description": "Other."}),
    ("native", "delete_skill", {"name": "alpha"}),
    ("miniclaw", "delete_skill", {"name": "alpha"}),
]


def test_a_tool_that_writes_is_refused_in_words(registry, upstream, mine):
    registry.sync(upstream.url)
    home = checkout_of(registry, "team")
    held = files_of(home)
    for toolset, tool, arguments in CALLS:
        said = json.dumps(registry.toolset(toolset).call(tool, arguments))
        assert "error" in said.lower() or '"success": false' in said
        assert files_of(home) == held
        if toolset == "native":
            assert "is a read-only checkout" in said
            assert "Create a copy of it in another source" in said


def test_the_only_own_source_is_written_to_where_none_is_named(registry, upstream, mine):
    registry.sync(upstream.url)
    registry.create("new", description="New one.")
    assert (mine / "new" / "SKILL.md").exists()


def test_where_there_is_none_of_ones_own_a_change_is_refused(registry, upstream):
    registry.sync(upstream.url)
    with pytest.raises(SourceUnclear, match="All sources are remote"):
        registry.create("new", description="New one.")


def test_every_skill_says_where_it_comes_from_and_its_history_the_commits(registry, upstream):
    first = upstream.head()
    registry.sync(f"{upstream.url}#main")
    upstream.skill("skills/alpha", description="Newer.")
    second = upstream.commit()
    registry.sync()
    told = {"url": upstream.url, "ref": "main", "commit": second, "path": "skills/alpha"}
    (alpha,) = [one for one in registry.list() if one.name == "alpha"]
    assert alpha.to_dict()["origin"] == told
    assert registry.get("alpha").to_dict()["origin"] == told
    assert (
        registry.toolset("native").call("read_skill", {"name": "alpha"})["skill"]["origin"] == told
    )
    commits = [one.origin.commit for one in registry.history("alpha")]
    assert sorted(commits) == sorted([first, second])


def test_a_source_gets_another_name_scope_and_priority_and_stays_in_step(registry, upstream):
    registry.sync(upstream.url)
    registry.update_source("team", new_name="theirs", scope="team", priority=5)
    upstream.skill("skills/alpha", description="Newer.")
    upstream.commit()
    assert registry.sync().updated == ("alpha",)
    (source,) = registry.sources()
    assert (source.name, source.scope, source.priority) == ("theirs", "team", 5)


@pytest.fixture
def suspect(registry, evil):
    registry.sync(evil.url)
    grave = {d.code for d in registry.get("evil").diagnostics if d.severity == "error"}
    assert grave
    return evil


def names(registry, **more):
    return [one.name for one in registry.list(**more)]


def test_a_skill_with_security_errors_is_held_back_from_agents(registry, suspect):
    assert names(registry) == ["alpha", "beta"]
    assert names(registry, all=True) == ["alpha", "beta", "evil"]
    assert [one.name for one in registry.search("evil")] == []
    assert "alpha" in str(registry.prompt())
    assert "evil" not in str(registry.prompt())
    for toolset, tool in (
        ("native", "list_skills"),
        ("miniclaw", "list_skills"),
        ("ethos", "skills_list"),
    ):
        assert "evil" not in json.dumps(registry.toolset(toolset).call(tool, {}))
    said = json.dumps(registry.toolset("native").call("read_skill", {"name": "evil"}))
    assert "/dev/tcp" not in said
    assert "source trust team" in str(registry.why("evil"))
    assert registry.sources()[0].held == 1


def test_a_verify_shows_nothing_that_was_held_and_holds_nothing_that_was_shown(registry, suspect):
    registry.sync(verify=True)
    assert "evil" not in names(registry)
    registry.trust_source("team")
    registry.sync(verify=True)
    assert "evil" in names(registry)


def test_a_held_skill_hides_nobody(registry, suspect, root):
    registry.update_source("team", scope="project")
    registry.update_source("team", scope="team")
    write_skill(root / "evil", description="A harmless one of my own.")
    registry.sync(str(root), name="mine")
    (own,) = [one for one in registry.list() if one.name == "evil"]
    assert (own.source, own.ref) == ("mine", "evil")
    assert registry.get("evil").source == "mine"


def test_a_skill_that_was_harmless_is_held_when_it_is_no_more(registry, upstream):
    registry.sync(upstream.url)
    upstream.write("skills/alpha/SKILL.md", document("alpha", body=SHELL))
    upstream.commit()
    registry.sync()
    assert names(registry) == ["beta"]
    upstream.write("skills/alpha/SKILL.md", document("alpha"))
    upstream.commit()
    registry.sync()
    assert names(registry) == ["alpha", "beta"]


def test_a_skill_that_moved_is_held_as_it_was(registry, suspect):
    (suspect.work / "skills/evil").rename(suspect.work / "skills/other")
    suspect.commit()
    registry.sync()
    assert names(registry) == ["alpha", "beta"]


def test_times_are_the_commits(registry, upstream):
    registry.sync(upstream.url)
    file = checkout_of(registry) / "tree/skills/alpha/SKILL.md"
    assert file.stat().st_mtime == WHEN
    assert file.stat().st_mtime != WHEN + DAY
