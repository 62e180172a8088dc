"""A source that is pinned to a tag keeps that commit; a branch is followed, and is never a tag."""

import json

import pytest
from sqlalchemy import text

from registry.errors import PinMoved, RemoteProblem
from tests.conftest import write_skill
from tests.remotes.upstream import checkout_of, edit_json


@pytest.fixture
def tag(upstream):
    """Let a tag of what is served be a commit, by default the newest: ``tag("v1")``."""

    def put(name, commit="refs/heads/main", *options):
        upstream.git("tag", "-f", *options, name, commit, at=upstream.bare)

    return put


@pytest.fixture
def branch(upstream):
    """Let a branch of what is served be a commit."""

    def put(name, commit):
        upstream.git("update-ref", f"refs/heads/{name}", commit, at=upstream.bare)

    return put


def newer(upstream):
    """Publish a skill more on the branch main; return the commit."""
    upstream.skill(f"skills/new-{upstream.commits}")
    return upstream.commit()


def commit_of(registry):
    (source,) = registry.sources()
    return source.remote.version


def refused(registry, said):
    """Sync, and see that the source keeps its commit, and why."""
    before, skills = commit_of(registry), registry.list()
    (report,) = registry.sync().sources
    assert report.outcome == "refused"
    assert said in report.message
    assert commit_of(registry) == before
    assert registry.list() == skills
    assert not registry.sync().complete  # the next one is no other


def test_a_tag_comes_before_a_branch_of_its_name(registry, upstream, tag, branch):
    tagged = upstream.head()
    tag("v1")
    branch("v1", newer(upstream))
    registry.sync(f"{upstream.url}#v1")
    assert commit_of(registry) == tagged


@pytest.mark.parametrize("options", [(), ("-a", "-m", "signed")])
def test_a_tag_that_moved_is_not_followed_until_it_is_pinned_again(
    registry, upstream, tag, options
):
    tagged = upstream.head()
    tag("v1", "refs/heads/main", *options)
    registry.sync(f"{upstream.url}#v1")
    moved = newer(upstream)
    tag("v1", "refs/heads/main", *options)
    refused(registry, f"the tag v1 moved from {tagged[:12]} to {moved[:12]}")
    registry.update_source("team", ref="v1")
    assert registry.sync().complete
    assert commit_of(registry) == moved
    newest = newer(upstream)
    tag("v1", "refs/heads/main", *options)
    refused(registry, f"the tag v1 moved from {moved[:12]} to {newest[:12]}")


def test_a_tag_that_moved_back_is_fine(registry, upstream, tag):
    first = upstream.head()
    tag("v1")
    registry.sync(f"{upstream.url}#v1")
    newer(upstream)
    tag("v1")
    refused(registry, "the tag v1 moved")
    tag("v1", first)
    assert registry.sync().complete


def test_nor_is_it_followed_when_all_is_read_again(registry, upstream, tag):
    tag("v1")
    registry.sync(f"{upstream.url}#v1")
    before = commit_of(registry)
    newer(upstream)
    tag("v1")
    (report,) = registry.sync(verify=True).sources
    assert report.outcome == "refused"
    (checkout_of(registry) / "manifest.json").unlink()  # as of a fetch that was cut off
    (report,) = registry.sync().sources
    assert report.outcome == "refused"
    assert commit_of(registry) == before


def test_a_branch_is_followed_and_no_tag_takes_its_place(registry, upstream, tag):
    registry.sync(f"{upstream.url}#main")
    first = upstream.head()
    moved = newer(upstream)
    tag("main", first)
    assert registry.sync().complete
    assert commit_of(registry) == moved
    upstream.git("symbolic-ref", "HEAD", "refs/heads/other", at=upstream.bare)
    upstream.git("update-ref", "-d", "refs/heads/main", at=upstream.bare)
    refused(registry, "the branch main no longer exists, and a tag has its name")


def test_a_tag_that_is_gone_is_no_branch_of_its_name(registry, upstream, tag, branch):
    tag("v1")
    registry.sync(f"{upstream.url}#v1")
    branch("v1", newer(upstream))
    upstream.git("tag", "-d", "v1", at=upstream.bare)
    refused(registry, "the tag v1 no longer exists, and a branch has its name")


class TestOlderCheckout:
    """A checkout that was made before it was remembered what a pin is."""

    @pytest.fixture
    def old(self, registry, upstream):
        def forget(ref):
            registry.sync(f"{upstream.url}#{ref}")
            file = checkout_of(registry) / "asked.json"
            asked = json.loads(file.read_text())
            assert asked.pop("pin")
            file.write_text(json.dumps(asked))

        return forget

    def test_its_tag_is_not_followed_either(self, registry, upstream, tag, old):
        tag("v1")
        old("v1")
        newer(upstream)
        tag("v1")
        refused(registry, "the tag v1 moved")

    def test_its_branch_is_followed(self, registry, upstream, old):
        old("main")
        moved = newer(upstream)
        assert registry.sync().complete
        assert commit_of(registry) == moved

    def test_a_sync_that_brings_nothing_remembers_what_it_is(
        self, registry, upstream, tag, branch, old
    ):
        tag("v1")
        old("v1")
        assert registry.sync().complete
        moved = newer(upstream)
        branch("v1", moved)
        tag("v1")
        refused(registry, "the tag v1 moved")

    def test_which_of_two_it_was_is_asked(self, registry, upstream, tag, branch, old):
        tag("v1")
        old("v1")
        branch("v1", newer(upstream))
        newer(upstream)
        tag("v1")
        refused(registry, "v1 is both a tag and a branch there")
        registry.update_source("team", ref="v1")
        assert registry.sync().complete
        assert commit_of(registry) == upstream.head()


def test_what_is_noted_and_can_t_be_is_passed_over(registry, upstream, tag):
    tag("v1")
    registry.sync(f"{upstream.url}#v1")
    for odd in (1, "tag", ["tag"], ["tag", 1], {"tag": "x"}):
        edit_json(checkout_of(registry) / "asked.json", pin=odd)
        assert registry.sync().complete


def test_the_command_line_names_the_command_that_accepts_it(cli, upstream, tag):
    tag("v1")
    cli("sync", f"{upstream.url}#v1")
    newer(upstream)
    tag("v1")
    listed = cli("source", "list", "--remote", "--json")
    (source,) = json.loads(listed.stdout)
    assert source["remote"]["behind"] is True
    done = cli("sync")
    assert done.exit_code == 1
    command = "skill-registry source update team --ref v1"
    for shown in (listed.stderr, done.stderr):
        assert "the tag v1 moved from" in shown
        assert command in shown
    assert cli(*command.split()[1:]).exit_code == 0
    assert cli("sync").exit_code == 0
    assert "new-" in cli("list", "--format", "names").stdout


@pytest.mark.parametrize("command", [["sync"], ["source", "add"]], ids=" ".join)
@pytest.mark.parametrize(("first", "later"), [("#v1", "#v2"), ("", "#v2"), ("#v1", "")])
def test_another_pin_names_the_source_that_has_the_repository(
    cli, upstream, tag, command, first, later
):
    tag("v1")
    upstream.skill("skills/gamma")
    upstream.commit()
    tag("v2")
    cli(*command, upstream.url + first)
    refused = cli(*command, upstream.url + later)
    assert refused.exit_code == 2
    pinned = "pinned to v1" if first else "without a pin"
    assert f"The source team already has this repository, {pinned}." in refused.stderr
    change = f"skill-registry source update team --ref {later[1:] or chr(39) * 2}"
    assert f"To change the pin, run: {change}. " in refused.stderr
    assert len(json.loads(cli("source", "list", "--json").stdout)) == 1
    assert cli("source", "update", "team", "--ref", later[1:]).exit_code == 0
    assert cli("sync", upstream.url + later).exit_code == 0  # it is the source's pin now
    assert "gamma" in cli("list", "--format", "names").stdout
    assert cli("sync", f"{upstream.url}#main", "--name", "second").exit_code == 0
    assert len(json.loads(cli("source", "list", "--json").stdout)) == 2


def test_before_it_is_accepted_its_changes_can_be_seen(registry, upstream, tag):
    tag("v1")
    registry.sync(f"{upstream.url}#v1")
    upstream.skill("skills/alpha", description="Sorts, and sends them away.")
    upstream.commit()
    tag("v1")
    registry.sync()
    assert "+description: Sorts, and sends them away." in registry.diff_upstream("alpha")


def test_listing_remotes_writes_nothing_down(registry, upstream, tag):
    tag("v1")
    registry.sync(f"{upstream.url}#v1")
    (checkout_of(registry) / "asked.json").unlink()
    registry.sources_asked(registry.sources())
    assert not (checkout_of(registry) / "asked.json").exists()


def test_its_error_says_what_is_there_now():
    error = PinMoved(url="https://x.example", reason="the tag v1 moved", way="w", commit="c")
    assert (
        str(error)
        == "'https://x.example' was not fetched: the tag v1 moved. To accept this, run: w"
    )


def test_a_list_of_asked_sources_names_the_tags_of_newer_versions(cli, upstream, tag):
    for name in ("v1.2", "v1.10", "v1.9", "v1.1", "v2.0-rc1", "other-3", "v1.2.0", "x;v9"):
        tag(name)
    cli("sync", f"{upstream.url}#v1.2")
    listed = cli("source", "list", "--remote")
    assert listed.stdout.endswith("\tcurrent\n")
    way = "skill-registry source update team --ref v1.10"
    told = f"team is pinned to v1.2; newer tags: v1.10, v1.9. To move to the newest, run: {way}\n"
    assert listed.stderr == told
    assert cli(*way.split()[1:]).exit_code == 0
    cli("sync")
    assert cli("source", "list", "--remote").stderr == ""


@pytest.mark.parametrize("pin", ["main", "stable", "2.0"])
def test_a_pin_that_is_no_tag_of_a_version_has_no_newer_tags(cli, upstream, tag, branch, pin):
    tag("v3")
    tag("9.9")
    tag("stable")
    branch("2.0", "refs/heads/main")
    cli("sync", f"{upstream.url}#{pin}")
    listed = cli("source", "list", "--remote")
    assert (listed.stdout.endswith("\tcurrent\n"), listed.stderr) == (True, "")


def test_a_sync_names_newer_tags_without_another_request(cli, upstream, tag, traced):
    tag("v1")
    cli("sync", f"{upstream.url}#v1")
    traced()
    assert "newer" not in cli("sync").stderr
    before = traced()
    tag("v1.1")
    told = "team: pinned to v1; newer tags: v1.1. To move to the newest, run: "
    way = "skill-registry source update team --ref v1.1"
    assert cli("sync").stderr == f"{told}{way}\n"
    assert traced() == before
    assert json.loads(cli("sync", "--json").stdout)["sources"][0]["fetched"] == [
        f"{told}{way}".removeprefix("team: ")
    ]
    assert cli(*way.split()[1:]).exit_code == 0
    assert cli("sync").stderr == ""


def test_the_first_sync_of_a_pin_names_the_new_source_in_its_command(cli, upstream, tag):
    tag("v1")
    tag("v2")
    told = cli("sync", f"{upstream.url}#v1").stderr
    assert "To move to the newest, run: skill-registry source update team --ref v2\n" in told


def test_a_check_where_nothing_is_installed_says_what_it_looked_for_and_names_newer_tags(
    cli, upstream, tag, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    tag("v1")
    cli("sync", f"{upstream.url}#v1")
    tag("v2")
    for command in (["outdated"], ["pull", "--check"]):
        checked = cli(*command)
        assert checked.exit_code == 1
        newer, error = checked.stderr.splitlines()
        assert newer.startswith("team is pinned to v1; newer tags: v2. ")
        assert newer.endswith("run: skill-registry source update team --ref v2")
        assert f"No lock file at {tmp_path}/skills.lock.json" in error
        assert "Run it in the folder of your project, or add --to DIR." in error


def test_a_diff_without_differences_names_newer_tags(cli, upstream, tag, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    tag("v1")
    cli("sync", f"{upstream.url}#v1")
    assert cli("diff", "alpha", "--upstream").stderr == "No differences.\n"
    tag("v2")
    told = "team is pinned to v1; newer tags: v2. To move to the newest, run: "
    way = "skill-registry source update team --ref v2"
    expected = f"No differences.\n{told}{way}\n"
    assert cli("diff", "alpha", "--upstream").stderr == expected
    assert cli("pull", "alpha", "--agent", "codex").exit_code == 0
    assert cli("diff", "alpha", "--upstream").stderr == expected


def test_a_list_of_versions_tells_how_to_get_those_that_no_sync_has_seen(
    cli, upstream, root, tag, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    tag("v1.0")
    upstream.skill("skills/alpha", description="Newer.")
    upstream.commit()
    write_skill(root / "own")
    cli("sync", upstream.url)
    cli("sync", str(root))
    listed = cli("version", "list", "alpha")
    assert listed.exit_code == 0
    assert listed.stderr.endswith("run: skill-registry pull alpha@LABEL --agent AGENT\n")
    assert cli("pull", "alpha@1.0", "--agent", "codex").exit_code == 0
    assert "Sorts letters." in (tmp_path / ".agents/skills/alpha/SKILL.md").read_text()
    assert "LABEL" not in cli("version", "list", "own").stderr
    assert cli("version", "list", "alpha", "--json").stderr == ""


class TestNewPin:
    """A source that moves to another tag: its skills move at once, or nothing does."""

    @pytest.fixture
    def pinned(self, cli, upstream, tag):
        tag("v1")
        assert cli("sync", f"{upstream.url}#v1").exit_code == 0
        upstream.skill("skills/alpha", description="Sorts letters twice.")
        upstream.skill("skills/gamma")
        upstream.commit()
        tag("v2")

    def lock(self, folder):
        return json.loads((folder / "skills.lock.json").read_text())["skills"]

    def test_it_is_fetched_and_what_changed_is_told(self, cli, upstream, pinned):
        moved = cli("source", "update", "team", "--ref", "v2")
        assert moved.exit_code == 0, moved.stderr
        first, *changes = moved.stdout.splitlines()
        assert first == f"Changed the source team (community, priority 0): {upstream.url}#v2"
        assert changes[:2] == ["+ gamma", "~ alpha"]
        assert changes[2].startswith("1 added, 1 updated, 0 moved, 0 removed, 1 unchanged")
        assert "sync" not in moved.stderr
        (source,) = json.loads(cli("source", "list", "--json").stdout)
        assert (source["remote"]["ref"], source["remote"]["version"]) == ("v2", upstream.head())

    def test_a_pull_after_it_installs_what_the_lock_file_says(
        self, cli, upstream, pinned, tmp_path
    ):
        to = tmp_path / "there"
        assert cli("pull", "alpha", "--to", str(to)).exit_code == 0
        moved = json.loads(cli("source", "update", "team", "--ref", "v2", "--json").stdout)
        assert moved["remote"]["version"] == upstream.head()
        assert cli("pull", "--to", str(to)).stdout.startswith("updated\talpha\t")
        assert "twice" in (to / "alpha/SKILL.md").read_text()
        origin = self.lock(to)["alpha"]["origin"]
        assert (origin["ref"], origin["commit"]) == ("v2", upstream.head())

    @pytest.mark.parametrize("ref", ["v2", ""])
    def test_if_the_remote_does_not_answer_nothing_changes(
        self, cli, registry, upstream, pinned, ref
    ):
        before = registry.sources(), registry.list()
        upstream.bare.rename(upstream.bare.with_name("away"))
        failed = cli("source", "update", "team", "--ref", ref)
        assert failed.exit_code == 1
        assert failed.stderr.startswith("Error: ")
        assert (registry.sources(), registry.list()) == before
        upstream.bare.with_name("away").rename(upstream.bare)
        assert cli("sync").exit_code == 0
        assert registry.sources()[0].remote == before[0][0].remote

    def test_nor_if_its_files_are_refused(self, cli, registry, upstream, pinned, bounded):
        before = registry.sources(), registry.list()
        asked = (checkout_of(registry) / "asked.json").read_bytes()
        bounded(bytes=10)
        with pytest.raises(RemoteProblem):
            registry.update_source("team", ref="v2")
        assert (registry.sources(), registry.list()) == before
        assert (checkout_of(registry) / "asked.json").read_bytes() == asked
        bounded()
        assert registry.sync().complete

    def test_a_pull_never_records_a_pin_that_was_not_fetched(
        self, cli, registry, upstream, pinned, tmp_path
    ):
        to = tmp_path / "there"
        assert cli("pull", "alpha", "--to", str(to)).exit_code == 0
        lock = (to / "skills.lock.json").read_bytes()
        with registry.core.writer.transaction() as connection:  # as after a crash in the update
            connection.execute(text("UPDATE sources SET pin = 'v2', version = NULL"))
        asked = checkout_of(registry) / "asked.json"
        kind, url, _, *rest = json.loads(asked.read_text())["asked"]
        edit_json(asked, asked=[kind, url, "v2", *rest], pin=None)
        for names in (["alpha"], ["beta"], []):
            failed = cli("pull", *names, "--to", str(to))
            assert failed.exit_code == 1
            assert "its source team is pinned to v2 now, which was not fetched" in failed.stderr
            assert failed.stderr.rstrip().endswith("run: skill-registry sync team")
            assert (to / "skills.lock.json").read_bytes() == lock
        assert cli("sync", "team").exit_code == 0
        assert cli("pull", "--to", str(to)).stdout.startswith("updated\talpha\t")
        assert self.lock(to)["alpha"]["origin"]["commit"] == upstream.head()

    def test_skills_that_the_new_version_does_not_have_are_removed(
        self, cli, registry, upstream, pinned, tag, monkeypatch
    ):
        monkeypatch.setattr("registry.sync.plan.BRAKE", 0)
        upstream.git("rm", "-rqf", "skills/alpha", "skills/beta")
        upstream.commit()
        tag("v3")
        moved = cli("source", "update", "team", "--ref", "v3")
        assert moved.exit_code == 0
        assert {"+ gamma", "- alpha", "- beta"} <= set(moved.stdout.splitlines())
        assert cli("source", "update", "team", "--ref", "v1").exit_code == 0
        assert cli("list", "--format", "names").stdout.splitlines() == ["alpha", "beta"]

    def test_a_version_without_skills_is_refused_and_changes_nothing(
        self, cli, registry, upstream, pinned, tag
    ):
        before = registry.sources(), registry.list()
        upstream.git("rm", "-rqf", "skills")
        upstream.commit()
        tag("v3")
        failed = cli("source", "update", "team", "--ref", "v3")
        assert (failed.exit_code, failed.stdout) == (1, "")
        assert "it holds no skill." in failed.stderr
        assert (registry.sources(), registry.list()) == before

    def test_a_pin_to_the_same_commit_changes_only_the_pin(self, registry, upstream, pinned, tag):
        before = registry.sources()[0].remote
        tag("v1.0", "refs/tags/v1")
        after = registry.update_source("team", ref="v1.0").remote
        assert (after.ref, after.version, after.fetched_at) == (
            "v1.0",
            before.version,
            before.fetched_at,
        )
        assert registry.sync().complete
