"""The changes: what an import adds is one line, and feeds of each source."""

import base64
from datetime import UTC, datetime
from xml.etree import ElementTree as ET

import pytest

from registry.db.audit_context import audit_context
from tests.conftest import write_skill
from tests.web.conftest import rewrite, serving

ATOM = "{http://www.w3.org/2005/Atom}"


@pytest.fixture
def imported(site, registry, tmp_path, library):
    """The small catalogue after an import of many skills and an edit."""
    for number in range(130):
        write_skill(tmp_path / "far" / f"part-{number:03}")
    registry.sync(str(tmp_path / "far"), name="far")
    rewrite(library)
    with audit_context("sync"):
        registry.sync()
    return site


@pytest.mark.both
def test_an_import_is_one_line_that_leads_to_all_its_skills(imported):
    today = f"{datetime.now(UTC):%Y-%m-%d}"
    page = imported.get("/changes").page
    assert "130 skills added" in page.text
    assert "part-000" not in page.text
    link = f"/changes?day={today}&kind=added&source=far"
    assert link in page.links
    first = imported.get(link).page
    assert len(first.names()) == 100
    assert f"{link}&page=2" in first.links
    second = imported.get(f"{link}&page=2").page
    names = first.names() + second.names()
    assert len(names) == len(set(names)) == 130


@pytest.mark.both
def test_groups_of_one_day_are_in_the_order_of_their_times(imported, registry, tmp_path):
    for number in range(9):
        write_skill(tmp_path / "aaa" / f"young-{number}")
    registry.sync(str(tmp_path / "aaa"), name="zzz")
    groups = imported.get("/changes.json", kind="added").json["groups"]
    assert (groups[0]["source"], groups[0]["count"]) == ("zzz", 9)
    assert [one["at"] for one in groups] == sorted((one["at"] for one in groups), reverse=True)


@pytest.mark.both
def test_few_changes_are_shown_one_by_one_with_time_and_author(imported):
    page = imported.get("/changes").page
    assert "UTC changed sums" in page.text
    assert "sync Sums up" in page.text
    changed = imported.get("/changes", kind="changed").page
    assert "part-" not in changed.text
    assert "130 skills" not in changed.text
    assert "130 skills" not in imported.get("/changes", source="mine").page.text
    told = imported.get("/changes.json", kind="changed").json
    assert [(one["name"], one["tool"]) for one in told["changes"]] == [("sums", "sync")]
    assert [(one["kind"], one["count"]) for one in told["groups"]] == [("changed", 1)]
    assert imported.get("/changes.json").json["more"] is False


def test_json_of_the_changes_is_paged(imported, registry, tmp_path):
    for number in range(100):
        write_skill(tmp_path / "far" / f"more-{number:03}")
    registry.sync()
    first = imported.get("/changes.json", kind="added").json
    second = imported.get("/changes.json", kind="added", page=2).json
    assert (first["more"], second["more"]) == (True, False)
    refs = [one["ref"] for one in (*first["changes"], *second["changes"])]
    assert len(refs) == len(set(refs)) == 235


def test_what_cannot_be_asked_of_the_changes_is_refused(imported):
    for query in ("kind=made", "day=today", "day=2026-13-01", "day=9999-12-31", "page=0"):
        assert imported.ask(f"/changes?{query}").status == 400, query
    assert imported.ask("/changes?source=nope").status == 404


def test_each_source_has_its_own_feed(imported):
    assert "/changes.atom?source=far" in imported.get("/changes", source="far").page.links
    feed = ET.fromstring(imported.get("/changes.atom", source="far").body)
    assert feed.findtext(f"{ATOM}title") == "Changed skills of far"
    (title,) = [one.findtext(f"{ATOM}title") for one in feed.findall(f"{ATOM}entry")]
    assert title == "130 skills added in far"
    titles = [
        one.findtext(f"{ATOM}title")
        for one in ET.fromstring(imported.get("/changes.atom").body).findall(f"{ATOM}entry")
    ]
    assert "sums: changed" in titles


def test_a_feed_reader_sends_the_token_as_its_password(registry, library):
    _, shown = registry.tokens().create("reader")

    def basic(password, user="anyone"):
        return "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()

    with serving(registry, host="0.0.0.0") as site:
        refused = site.ask("/changes.atom")
        assert refused.status == 401
        assert "Basic" in refused.headers["www-authenticate"]
        assert site.ask("/changes.atom", Authorization=basic(shown)).status == 200
        for wrong in (basic("skr_wrong"), "Basic !!!", "Basic", basic("")):
            assert site.ask("/changes.atom", Authorization=wrong).status == 401, wrong
        assert site.ask("/changes", Authorization=basic(shown)).status == 401
        assert "Basic" not in site.ask("/index.json").headers["www-authenticate"]


def test_a_limited_token_sees_only_changes_of_its_skills(imported, registry):
    _, shown = registry.tokens().create("anna", source="mine")
    asked = {"Authorization": f"Bearer {shown}"}
    assert imported.ask("/changes?source=far", **asked).status == 404
    for path in ("/changes", "/changes.json", "/changes.atom"):
        body = imported.ask(path, **asked).text
        assert "sums" in body, path
        assert "130" not in body.replace("130px", ""), path
        assert "part-" not in body, path
