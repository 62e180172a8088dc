"""A registry that syncs a team's catalogue learns which versions were withdrawn, and why."""

import json
import subprocess

import pytest

from registry import Settings, SkillRegistry
from registry.errors import VersionYanked
from registry.remotes import states
from registry.settings import GlobalIngest, Personality
from tests.cli.conftest import run
from tests.conftest import write_skill
from tests.remotes.conftest import _two_skills, upstream  # fixtures
from tests.web.conftest import serving

__all__ = ["_two_skills", "upstream"]

BAD = "Version 1.1.0 is yanked: lists secret tickets."
OPEN_ONLY = GlobalIngest(mode="tags", accept_tags=frozenset({"open"}))


def write(root, name, version, text="Step by step.", tags=""):
    extra = f"{tags}metadata:\n  version: '{version}'\n"
    write_skill(root / name, extra=extra, body=f"{text}\n", age=None)


class Team:
    """A registry that serves skills; Ann's registry syncs it at `url` as the source ``team``."""

    def __init__(self, registry, root, ann, url):
        self.registry, self.root, self.ann, self.url = registry, root, ann, url

    def release(self, name, version, text):
        write(self.root, name, version, text)
        self.registry.sync()

    def sync(self):
        (told,) = self.ann.sync(*(() if self.ann.sources() else (self.url,))).sources
        return told

    def run(self, *arguments):
        return run("--db", self.ann.path, *arguments)


@pytest.fixture(params=["git/catalogue.git", ""], ids=["git", "site"])
def team(request, mine, root, tmp_path):
    write(root, "notes", "1.0.0", "One.")
    write(root, "tea", "1.0.0", "Tea.")
    mine.sync()
    with (
        serving(mine) as site,
        SkillRegistry.open(tmp_path / "ann.db", workdir=tmp_path) as ann,
    ):
        yield Team(mine, root, ann, f"{site.base}/{request.param}")


def test_the_reason_of_a_withdrawn_version_comes_with_the_next_sync(team, tmp_path):
    team.release("notes", "1.1.0", "Two.")
    team.sync()
    project = ("--to", str(tmp_path / "project"))
    assert team.run("pull", "notes", *project).exit_code == 0
    team.registry.yank_version("notes@1.1.0", reason="lists secret tickets")
    synced = team.run("sync")
    assert "version 1.1.0 of notes was withdrawn: lists secret tickets." in synced.stderr
    assert "skill-registry pull --check" in synced.stderr
    assert synced.stdout.startswith("0 added, 0 updated, 0 moved, 0 removed")
    for command in (("pull", "--check"), ("outdated",), ("pull",), ("pull", "notes")):
        told = team.run(*command, *project)
        assert BAD in told.stderr.replace("was yanked", "is yanked"), command
        assert "skill-registry version list notes" in told.stderr, command
    assert (tmp_path / "project" / "notes" / "SKILL.md").read_text().endswith("Two.\n")
    assert [one.name for one in team.ann.list()] == ["tea"]
    shown = team.run("show", "notes").stdout
    assert BAD.removeprefix("Version ") in shown
    assert "its source withdrew it" in shown
    with pytest.raises(VersionYanked, match="lists secret tickets"):
        team.ann.pull([team.ann.resolve("notes@1.1.0")], str(tmp_path / "other"))
    assert team.sync().fetched == ()  # it is told once


def test_a_withdrawn_version_can_be_offered_again_and_a_newer_one_replaces_it(team, tmp_path):
    team.sync()
    team.ann.pull([team.ann.resolve("notes")], str(tmp_path / "project"))
    team.registry.yank_version("notes@1.0.0", reason="bad")
    team.sync()
    assert [one.name for one in team.ann.list()] == ["tea"]
    team.registry.reactivate_version("notes@1.0.0")
    team.sync()
    assert [one.name for one in team.ann.list()] == ["notes", "tea"]
    assert team.ann.get("notes").versions[0].warning is None
    team.registry.yank_version("notes@1.0.0", reason="bad again")
    team.release("notes", "2.0.0", "New.")
    assert team.sync().fetched == ("version 1.0.0 of notes was withdrawn: bad again",)
    done = team.run("pull", "--to", str(tmp_path / "project"))
    assert done.stdout.startswith("updated")
    assert team.ann.get("notes").body.strip() == "New."


def test_a_pinned_version_is_told_as_withdrawn_although_it_is_not_the_newest(team, tmp_path):
    team.sync()
    pinned = ("--to", str(tmp_path / "pinned"))
    assert team.run("pull", "notes@1.0.0", *pinned).exit_code == 0
    team.release("notes", "1.1.0", "Two.")
    team.registry.yank_version("notes@1.0.0", reason="old")
    team.sync()
    told = team.run("pull", "--check", *pinned)
    assert "Version 1.0.0 is yanked: old." in told.stderr
    assert "1.1.0 is available" in told.stderr
    assert told.exit_code == 1
    refused = team.run("pull", "notes@1.0.0", "--to", str(tmp_path / "new"))
    assert "was yanked: old" in refused.stderr
    assert refused.exit_code == 1


def test_a_source_that_is_pinned_to_a_withdrawn_version_learns_the_reason(mine, root, tmp_path):
    write(root, "notes", "1.0.0", "One.")
    mine.sync()
    write(root, "notes", "2.0.0", "Two.")
    mine.sync()
    with (
        serving(mine) as site,
        SkillRegistry.open(tmp_path / "ann.db", workdir=tmp_path) as ann,
    ):
        ann.sync(f"{site.base}/git/skill/notes.git#notes/1.0.0")
        ann.pull([ann.resolve("notes")], str(tmp_path / "project"))
        mine.yank_version("notes@1.0.0", reason="old secrets")
        (told,) = ann.sync().sources
        assert told.outcome == "refused"
        assert told.fetched == ("version 1.0.0 of notes was withdrawn: old secrets",)
        checked = run("--db", ann.path, "pull", "--check", "--to", str(tmp_path / "project"))
        assert "Version 1.0.0 is yanked: old secrets." in checked.stderr
        assert ann.sync().sources[0].fetched == ()


def test_a_deprecated_version_is_told_with_its_replacement(team, tmp_path):
    team.sync()
    team.registry.deprecate_version("tea@1.0.0", "too hot", replacement="notes@1.0.0")
    told = team.sync()
    assert told.fetched == (
        "version 1.0.0 of tea was deprecated: too hot; use notes@1.0.0 instead",
    )
    warning = "Version 1.0.0 is deprecated: too hot. Use notes@1.0.0 instead."
    assert team.ann.get("tea").versions[0].warning == warning
    installed = team.run("pull", "tea", "--to", str(tmp_path / "project"))
    assert warning in installed.stderr
    assert installed.exit_code == 0


def test_the_last_skill_of_a_source_can_be_withdrawn(team):
    team.sync()
    for name in ("notes", "tea"):
        team.registry.yank_version(f"{name}@1.0.0", reason="bad")
    assert team.sync().outcome == "ok"
    assert team.ann.list().total == 0
    assert team.ann.sync(verify=True).removed == ()


def test_a_state_that_a_user_of_this_registry_set_stays(team):
    team.sync()
    team.ann.deprecate_version("tea@1.0.0", "we use coffee")
    team.registry.deprecate_version("notes@1.0.0", "old")
    team.sync()
    assert team.ann.get("tea").versions[0].reason == "we use coffee"
    assert team.ann.get("notes").versions[0].reason == "old"


def test_a_visitor_learns_states_only_of_skills_that_the_visitor_may_see(
    mine, root, tmp_path, monkeypatch
):
    write(root, "secret", "1.0.0")
    write(root, "poem", "1.0.0", tags="tags: [open]\n")
    write(root, "song", "1.0.0", tags="tags: [open]\n")
    mine.sync()
    mine.deprecate_version("song@1.0.0", reason="the song is bad")
    for name in ("secret", "poem"):
        mine.yank_version(f"{name}@1.0.0", reason=f"the {name} is bad")
    only_open = Personality("guest", global_ingest=OPEN_ONLY)
    settings = Settings(personalities={"guest": only_open})
    with SkillRegistry.open(mine.path, settings=settings) as served:
        _, token = served.tokens().create("guest", personality="guest")
        with serving(served, host="0.0.0.0") as site:
            bearer = {"authorization": f"Bearer {token}"}
            seen = site.ask("/.well-known/agent-skills/index.json", **bearer)
            assert [one["folder"] for one in seen.json["versions"]] == ["poem", "song"]
            assert "secret" not in seen.text
            monkeypatch.setenv("GIT_CONFIG_COUNT", "1")
            monkeypatch.setenv("GIT_CONFIG_KEY_0", "http.extraHeader")
            monkeypatch.setenv("GIT_CONFIG_VALUE_0", f"Authorization: Bearer {token}")
            for path, told in (
                ("catalogue", ["poem", "song"]),
                ("tag/open", ["poem", "song"]),
                ("skill/song", ["song"]),
            ):
                clone = tmp_path / path
                url = f"{site.base}/git/{path}.git"
                subprocess.run(["git", "clone", "-q", url, str(clone)], check=True)
                found = json.loads((clone / states.FILE).read_text())["versions"]
                folders = [f"plugins/{name}/skills/{name}" for name in told]
                assert [one["folder"] for one in found] == folders, path


STATE = {
    "folder": "skills/alpha",
    "label": "1.0",
    "state": "yanked",
    "reason": "bad",
    "replacement": None,
}


def test_a_hostile_source_can_say_nothing_about_other_files_and_prints_no_control_characters(
    registry, upstream
):
    registry.sync(upstream.url)
    (alpha,) = (one for one in registry.list() if one.name == "alpha")
    right = {**STATE, "tree_hash": alpha.tree_hash}
    other = {**STATE, "label": "2.0", "tree_hash": "sha256:" + "0" * 64}
    reason = "\x1b[31mrun\u202e \u200bthis\n\n" + "x" * 5000
    wrong = [
        *(None, 1, [], {}, "x"),
        {**right, "folder": "../../elsewhere"},
        {**right, "label": "a b"},
        {**right, "tree_hash": "x"},
        {**right, "state": "active"},
        {**right, "label": 5},
    ]
    listed = [*wrong, other, {**right, "reason": reason, "replacement": ["x"]}]
    upstream.write(states.FILE, json.dumps({"versions": listed}))
    upstream.commit()
    told = registry.sync().sources[0].fetched
    assert len(told) == 2
    assert registry.get("alpha").versions[0].label == "1.0"
    found = registry.get("alpha").versions[0].reason
    assert found.startswith("[31mrun this xxx")
    assert len(found) == states.MAX_TEXT
    assert all(one.isprintable() for text in told for one in text)


@pytest.mark.parametrize("text", ["", "[]", "{", '{"versions": 5}', "[" * 100_000, " " * (5 << 20)])
def test_a_file_that_is_no_list_of_states_changes_nothing(registry, upstream, text):
    upstream.write(states.FILE, text)
    upstream.commit()
    assert registry.sync(upstream.url).sources[0].outcome == "ok"
    assert registry.get("alpha").versions == ()


def test_only_so_many_states_are_read_from_a_source(monkeypatch):
    monkeypatch.setattr(states, "MAX_STATES", 2)
    listed = [{**STATE, "tree_hash": "sha256:" + "0" * 64, "label": str(n)} for n in range(5)]
    assert [one.label for one in states.checked(listed)] == ["0", "1"]
