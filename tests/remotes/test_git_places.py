"""Where a repository's skills are looked for, and what its own files about that may say."""

import json

import pytest

from registry.disk.paths import ROOT
from registry.remotes.discovery import DOT_FOLDERS, MAX_NOTICES, skill_folders


def found(*folders, part=None, files=(), **manifests):
    """Return the folders of skills of a repository with documents in ``folders``."""
    said = {
        {
            "market": ".claude-plugin/marketplace.json",
            "plugin": ".claude-plugin/plugin.json",
            "codex": ".agents/plugins/marketplace.json",
        }[name]: value if isinstance(value, bytes) else json.dumps(value).encode()
        for name, value in manifests.items()
    }
    said = {(f"{part}/{path}" if part else path): data for path, data in said.items()}
    paths = [f"{one}/SKILL.md" if one != ROOT else "SKILL.md" for one in folders]
    return skill_folders([*paths, *files, *said], part, said.__getitem__)


@pytest.mark.parametrize(
    ("there", "taken"),
    [
        ([ROOT, "skills/a", "b"], [ROOT]),
        (["a", "b"], ["a", "b"]),
        (["a", "x/y/b"], ["a"]),
        (["skills/a", "skills/x/b", "skills/x/y/c"], ["skills/a", "skills/x/b", "skills/x/y/c"]),
        (["skills/a", "skills/w/x/y/d"], ["skills/a"]),
        (["skills/a", "skills/a/inner"], ["skills/a"]),
        (["skills/a", "skills/a-b"], ["skills/a", "skills/a-b"]),
        (["skills/.curated/x/y/a"], ["skills/.curated/x/y/a"]),
        (["skills/.system/a", "skills/.experimental/b"], ["skills/.experimental/b", "skills/.system/a"]),
        (["a", "node_modules/b", "dist/c", "build/d", "__pycache__/e"], ["a"]),
        (["skills/node_modules/x", "skills/a"], ["skills/a"]),
        (["docs/x/a"], ["docs/x/a"]),
        (["1/2/3/4/5"], ["1/2/3/4/5"]),
        (["1/2/3/4/5/6"], []),
        (["docs/dist/a"], []),
        ([f".{name}/skills/a" for name in sorted(DOT_FOLDERS)],) * 2,
        ([".unknown/skills/a", "b"], ["b"]),
    ],
)  # fmt: skip
def test_the_usual_places(there, taken):
    assert list(found(*there).folders) == taken


@pytest.mark.parametrize("name", ["SKILL.md", "SKILL.MD", "skill.md", "Skill.md"])
def test_the_document_may_be_spelled_as_elsewhere(name):
    assert skill_folders([f"skills/a/{name}"], None).folders == ("skills/a",)


def test_other_names_are_no_document():
    assert skill_folders(["skills/a/README.md", "skills/b/xSKILL.md"], None).folders == ()


def test_a_part_is_a_repository_of_its_own():
    there = ["skills/a", "team/skills/b", "team/c", "teams/d"]
    assert found(*there, part="team").folders == ("team/c", "team/skills/b")
    assert found(*there, part="team/c").folders == ("team/c",)
    assert found(*there, part="gone").folders == ()


def entry(name="p", **facts):
    return {"name": name, **facts}


@pytest.mark.parametrize(
    "plugin",
    [
        entry(source="./plugins/p"),
        entry(source="plugins/p"),
        entry(source={"source": "local", "path": "./plugins/p"}),
        entry(source="./plugins/p", skills=["./skills/a"]),
        entry(source="./", skills=["./plugins/p/skills/a"]),
        entry(source="./", skills="./plugins/p/skills/a"),
        entry(source="./", skills=["./plugins/p/skills"]),
    ],
)
@pytest.mark.parametrize("kind", ["market", "codex"])
def test_a_marketplace_names_where_plugins_keep_their_skills(kind, plugin):
    there = ["b", "plugins/p/skills/a", "other/x/skills/c"]
    taken = found(*there, **{kind: {"plugins": [plugin]}})
    assert taken.folders == ("b", "plugins/p/skills/a")


def test_a_marketplace_may_have_a_root_for_its_plugins():
    market = {"metadata": {"pluginRoot": "./plugins"}, "plugins": [entry(source="./p")]}
    assert found("b", "plugins/p/skills/a", market=market).folders == ("b", "plugins/p/skills/a")


def test_a_plugin_names_its_skills():
    plugin = {"name": "p", "skills": ["./deep/er/a"]}
    assert found("b", "deep/er/a", "deep/er/c", plugin=plugin).folders == (
        "b",
        "deep/er/a",
        "deep/er/c",
    )


def test_a_plugin_that_lies_elsewhere_is_told_and_not_fetched():
    away = [
        entry("one", source={"source": "github", "repo": "o/r"}),
        entry("two", source={"source": "npm", "package": "@o/p"}),
    ]
    taken = found("a", market={"plugins": away})
    assert taken.notices == (
        "the plugin one is not in this repository: o/r",
        "the plugin two is not in this repository: @o/p",
    )


@pytest.mark.parametrize(
    "path",
    ["/etc", "..", "../x", "./../../x", "./a/../../../x", "~/x", "./.git", "./x\0y", "./\x1b", "C:\\x",
     "./a\\..\\b", None, 7, [], {}, ["./x"], "./" + "x/" * 100_000, "./" + "x" * 100_000],
)  # fmt: skip
@pytest.mark.parametrize("place", ["source", "skills", "root", "plugin"])
def test_a_path_that_leads_out_or_is_none_names_nothing(place, path):
    market = {
        "source": {"plugins": [entry(source=path)]},
        "skills": {"plugins": [entry(source="./", skills=[path, "./deep/er/a"])]},
        "root": {"metadata": {"pluginRoot": path}, "plugins": [entry(source="./deep/er/..")]},
        "plugin": {},
    }[place]
    plugin = {"skills": path} if place == "plugin" else {}
    taken = found("b", "deep/er/a", "x/skills/y", market=market, plugin=plugin)
    usual = {"source": {"b"}, "root": {"b"}, "plugin": {"b"}, "skills": {"b", "deep/er/a"}}[place]
    if path == ["./x"] and place == "plugin":
        assert set(taken.folders) == {"b"}
    assert set(taken.folders) == usual


@pytest.mark.parametrize(
    "said",
    [
        b"", b"null", b"[]", b"7", b'"x"', b"{", b"\xff\xfe", b"[" * 100_000, b"9" * 10_000,
        b'{"plugins": null}', b'{"plugins": {}}', b'{"plugins": [null, 7, [], "x"]}',
        b'{"plugins": [{"name": {}, "source": {"source": {"source": {}}}}]}',
        b'{"plugins": [{"source": {"repo": [[[[]]]]}}]}', b'{"metadata": [], "plugins": 7}',
        b'{"skills": {"a": "./x"}}', b'{"plugins": [{"skills": {"a": 1}, "source": "./"}]}',
        b'{"a": 1e999999, "plugins": NaN}', b'{"x": "' + b"y" * (2 << 20) + b'"}',
    ],
    ids=range(19),
)  # fmt: skip
@pytest.mark.parametrize("kind", ["market", "plugin", "codex"])
def test_a_file_of_any_other_shape_does_no_harm(kind, said):
    assert found("a", "skills/b", **{kind: said}).folders == ("a", "skills/b")


def test_a_hundred_thousand_plugins_and_as_many_skills_are_soon_read():
    plugins = [entry(f"p{n}", source=f"./{n}") for n in range(100_000)]
    short = json.dumps(
        {"plugins": [{"source": "./", "skills": [f"./{n}/skills/x" for n in range(45_000)]}]}
    )
    there = [f"{n}/skills/a" for n in range(50_000)]
    assert len(found(*there, market={"plugins": plugins}).folders) == 50_000
    assert len(short) < 1 << 20 < len(short) * 2
    assert len(found(*there, market=short.encode()).folders) == 45_000


def test_of_many_plugins_that_lie_elsewhere_some_are_told():
    away = [entry(f"p{n}", source={"source": "npm", "package": "x" * 10_000}) for n in range(50)]
    notices = found("a", market={"plugins": away}).notices
    assert len(notices) == MAX_NOTICES + 1
    assert notices[-1] == "and 30 more"
    assert max(map(len, notices)) < 400
