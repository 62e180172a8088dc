"""Links from one source into another, as agents' installers make them: one skill, no error."""

import os
import shutil

import pytest

from registry.db.read.findings import notice_digest
from registry.db.read.listing import Filters
from registry.errors import SkillNotFound
from registry.sync.plan import SyncOptions
from registry.sync.run import sync
from tests.conftest import write_skill


class Homes:
    """``agents`` holds the skills, ``claude`` links to them (``../../.agents/skills/x``)."""

    def __init__(self, base, registry):
        self.agents = base / ".agents" / "skills"
        self.claude = base / ".claude" / "skills"
        self.claude.mkdir(parents=True)
        self.registry = registry

    def link(self, *names):
        for name in names:
            write_skill(self.agents / name)
            (self.claude / name).symlink_to(os.path.relpath(self.agents / name, self.claude))

    def sync(self, *targets, **options):
        return self.registry.sync(*map(str, targets), **options)

    def places(self):
        skills = self.registry.list(Filters(all=True))
        return [(f"{one.source}/{one.folder}", one.status) for one in skills]

    def notices(self, name):
        [source] = [one for one in self.registry.sources() if one.name == name]
        return notice_digest(self.registry.core.reader, source.id)

    def codes(self, *targets):
        return [
            f.code for one in self.registry.check(list(map(str, targets))) for f in one.findings
        ]


@pytest.fixture
def homes(tmp_path, registry):
    return Homes(tmp_path, registry)


@pytest.mark.parametrize("second", ["the target", "the links", "all"])
def test_links_that_led_out_are_settled_by_the_next_sync_of_either_source(homes, second):
    homes.agents = homes.agents.parents[1] / "store" / "skills"
    homes.link("pdf", "doc")
    homes.sync(homes.claude)
    assert [status for _, status in homes.places()] == ["invalid", "invalid"]
    homes.registry.add_source(str(homes.agents))
    targets = {"the target": [homes.agents], "the links": [homes.claude], "all": []}[second]
    report = homes.sync(*targets)
    assert (report.removed, report.complete) == ((), True)
    assert all(not place.startswith("claude/") for place, _ in homes.places())
    assert homes.notices("claude") == [("doc", "link-known"), ("pdf", "link-known")]
    homes.sync()
    assert homes.places() == [("store/doc", "ok"), ("store/pdf", "ok")]
    again = homes.sync()
    assert (again.added, again.removed, again.unchanged, again.invalid) == ((), (), 2, 0)
    # What is still there is not gone: nothing of it could be brought back.
    assert homes.registry.core.reader.rows("SELECT uid FROM gone") == []


def test_a_dry_run_settles_nothing(homes):
    homes.link("pdf")
    homes.sync(homes.claude)
    before = homes.places()
    sync(homes.registry.core, [str(homes.agents)], SyncOptions(dry_run=True))
    assert homes.places() == before


def test_links_that_still_lead_out_stay_errors_with_the_way_out(homes, tmp_path):
    homes.link("pdf")
    write_skill(tmp_path / "elsewhere" / "far")
    (homes.claude / "far").symlink_to(tmp_path / "elsewhere" / "far")
    homes.sync(homes.claude)
    homes.sync(homes.agents)
    assert homes.places() == [("claude/far", "invalid"), ("agents/pdf", "ok")]
    [[finding]] = [one.findings for one in homes.registry.check([str(homes.claude)])]
    assert (finding.code, finding.severity) == ("link-outside", "error")
    assert "register the folder it leads to" in finding.fix


@pytest.mark.both
def test_a_source_that_holds_but_links_by_now_lost_nothing(homes):
    for number in range(12):
        write_skill(homes.claude / f"s{number}", body=f"Number {number}.\n")
    homes.sync(homes.claude)
    homes.agents.parent.mkdir()
    shutil.move(homes.claude, homes.agents)
    homes.claude.mkdir()
    homes.link(*(f"s{number}" for number in range(12)))
    report = homes.sync(homes.claude, homes.agents)
    assert (report.complete, report.sources[0].kept) == (True, 0)
    assert {place for place, _ in homes.places()} == {f"agents/s{n}" for n in range(12)}


def test_a_source_whose_links_are_gone_too_keeps_its_rows(homes):
    homes.link("pdf")
    write_skill(homes.claude / "own")
    homes.sync(homes.claude, homes.agents)
    shutil.rmtree(homes.claude)
    homes.claude.mkdir()
    assert not homes.sync(homes.claude).complete
    assert ("claude/own", "ok") in homes.places()


@pytest.mark.parametrize("first", ["claude", "agents"])
def test_check_calls_a_link_into_another_source_no_error(homes, first):
    homes.link("pdf")
    order = [homes.claude, homes.agents] if first == "claude" else [homes.agents, homes.claude]
    for root in order:
        homes.sync(root)
    assert homes.codes() == homes.codes(homes.claude / "pdf") == homes.codes("pdf") == []
    assert homes.codes(homes.claude) == homes.codes("claude") == ["link-known"]
    write_skill(homes.claude / "own")
    assert homes.codes(homes.claude) == []


def test_check_of_a_folder_that_is_no_source_knows_the_sources(homes):
    homes.link("pdf")
    homes.sync(homes.agents)
    write_skill(homes.claude / "own")
    assert homes.codes(homes.claude) == []


def test_check_of_a_folder_around_a_source_still_checks_what_lies_in_that(homes, tmp_path):
    write_skill(homes.agents / "pdf", description="")
    homes.sync(homes.agents)
    assert "description-from-body" in homes.codes(tmp_path)


@pytest.mark.parametrize("inside", [False, True], ids=["another source", "its own source"])
def test_a_skill_says_by_which_links_it_is_found(homes, inside):
    homes.link("pdf")
    links = [homes.claude / "pdf"]
    if inside:
        links = [homes.agents / "same"]
        links[0].symlink_to("pdf")
        (homes.claude / "pdf").unlink()
    homes.sync(homes.agents, homes.claude)
    assert [one.path for one in homes.registry.links("pdf")] == list(map(str, links))
    [why] = homes.registry.why("pdf")
    assert [(r.code, str(links[0]) in r.message) for r in why.reasons] == [
        ("listed", False),
        ("link-known", True),
    ]
    assert [one.name for one in homes.registry.list(Filters(all=True))] == ["pdf"]


def test_a_link_around_a_skill_and_one_to_its_document_count_too(homes):
    write_skill(homes.agents / "office" / "pdf")
    (homes.claude / "work").symlink_to(homes.agents / "office")
    (homes.claude / "alone").mkdir()
    (homes.claude / "alone" / "SKILL.md").symlink_to(homes.agents / "office" / "pdf" / "SKILL.md")
    homes.sync(homes.agents, homes.claude)
    assert [one.path for one in homes.registry.links("pdf")] == [
        str(homes.claude / "alone"),
        str(homes.claude / "work" / "pdf"),
    ]


def test_a_link_that_leads_elsewhere_since_the_sync_is_not_told(homes):
    homes.link("pdf", "doc")
    homes.sync(homes.agents, homes.claude)
    (homes.claude / "pdf").unlink()
    (homes.claude / "pdf").symlink_to(homes.agents / "doc")
    assert homes.registry.links("pdf") == []


@pytest.mark.both
def test_a_linked_skill_is_changed_by_name_and_dangling_links_are_named(homes):
    homes.link("pdf")
    homes.sync(homes.claude)
    homes.sync(homes.agents)
    said: list[str] = []
    homes.registry.core.on_warning = said.append
    homes.registry.update("pdf", description="Says something else.")
    assert said == []
    homes.registry.delete("pdf")
    assert said == [f"The link {str(homes.claude / 'pdf')!r} now leads nowhere."]
    assert homes.codes() == homes.codes(homes.claude / "pdf") == ["link-broken"]
    assert [r.code for r in homes.registry.why(str(homes.claude / "pdf"))[0].reasons] == [
        "link-broken"
    ]
    with pytest.raises(SkillNotFound):
        homes.registry.resolve("pdf")
    homes.registry.restore("pdf")
    assert homes.codes() == []


@pytest.mark.both
def test_what_a_stranger_wrote_of_links_is_checked_on_the_disk(homes, tmp_path):
    homes.link("pdf")
    homes.sync(homes.claude, homes.agents)
    (tmp_path / "secret").symlink_to(homes.agents / "pdf")
    with homes.registry.core.writer.transaction() as connection:
        changed = connection.exec_driver_sql(
            "UPDATE diagnostics SET folder = '../../secret' WHERE code = 'link-known' RETURNING 1"
        )
        assert len(changed.all()) == 1
    assert homes.registry.links("pdf") == []


def test_a_link_into_the_shared_folder_of_the_same_project_is_no_error(homes):
    homes.link("pdf")
    report = homes.sync(homes.claude)
    assert (report.added, report.invalid, homes.places()) == ((), 0, [])
    assert homes.codes() == []
    ((_, notice),) = report.sources[0].notices
    assert (notice.code, notice.fix) == (
        "link-known",
        f"run: skill-registry sync {homes.agents} --scope project",
    )
    homes.sync(homes.agents)
    assert homes.places() == [("agents/pdf", "ok")]
