"""Versions have addresses: NAME@LABEL on the page of a skill, its JSON, files and downloads."""

import io
import zipfile

import pytest

from tests.conftest import write_skill
from tests.web.conftest import commands, pull_line, serving

pytestmark = pytest.mark.both


@pytest.fixture
def tea(mine, root):
    """A registry with a skill that had the versions 1.9 and 1.10+hot, and then changed."""
    for label in ("1.9", "1.10+hot", None):
        extra = f"metadata:\n  version: '{label}'\n" if label else ""
        body = f"Brew {label}: [pot](pot.txt).\n"
        folder = write_skill(root / "tea", body=body, extra=extra, age=None)
        (folder / "pot.txt").write_text(f"pot {label}")
        mine.sync()
    return mine


@pytest.fixture
def site(tea):
    with serving(tea) as served:
        yield served


def unzipped(answer):
    with zipfile.ZipFile(io.BytesIO(answer.body)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


@pytest.mark.parametrize("ref", ["tea", "mine/tea"])
def test_the_page_of_a_version_shows_its_files_and_leads_only_to_them(site, tea, ref):
    page = site.get(f"/skills/{ref}@1.10%2Bhot")
    assert "Brew 1.10+hot" in page.text
    assert "Brew None" not in page.text
    assert "This is version <bdi>1.10+hot</bdi>" in page.text
    assert "shows only the findings of its SKILL.md" in page.page.text  # files aren't read again
    first, *others = commands(page)
    assert first == pull_line(tea, "tea@1.10+hot")
    assert all("npx" not in one for one in others)  # its addresses name no version
    links = page.page.links
    assert {"/skills/tea", "/history/tea", "/download/tea%401.10%2Bhot.skill"} <= set(links)
    (pot,) = {one for one in links if one.startswith("/files/") and "pot.txt" in one}
    shown = site.get(pot)
    assert "pot 1.10+hot" in shown.page.text
    (raw,) = [one for one in shown.page.links if one.startswith("/raw/")]
    assert site.get(raw).text == "pot 1.10+hot"
    assert "/skills/tea%401.9" in site.get("/history/tea").page.links


def test_the_json_raw_files_and_download_of_a_version_are_those_of_its_files(site, tea):
    told = site.get("/skills/tea@1.9.json").json
    assert (told["ref"], told["body"].lstrip()) == ("tea", "Brew 1.9: [pot](pot.txt).\n")
    assert [one["label"] for one in told["versions"]] == ["1.9"]
    assert told["tree_hash"] == tea.versions("tea")[1].tree_hash
    assert site.get("/files/tea@1.9.json", path="pot.txt").json["text"] == "pot 1.9"
    assert "Brew 1.9" in site.get("/raw/tea@1.9", path="SKILL.md").text
    for address in ("/download/tea@1.9", "/download/tea@1.9.skill"):
        assert unzipped(site.get(address))["tea/pot.txt"] == b"pot 1.9"
    assert unzipped(site.get("/download/tea"))["tea/pot.txt"] == b"pot None"


def test_the_current_version_has_an_address_too(site, tea):
    tea.add_version("tea", "2.0")
    assert "This is version <bdi>2.0</bdi>" in site.get("/skills/tea@2.0").text
    assert site.get("/raw/tea@2.0", path="pot.txt").text == "pot None"
    assert unzipped(site.get("/download/tea@2.0"))["tea/pot.txt"] == b"pot None"


def test_a_deprecated_version_is_served_with_its_warning(site, tea):
    tea.deprecate_version("tea@1.9", "too weak", replacement="tea@1.10+hot")
    warning = "Version 1.9 is deprecated: too weak. Use tea@1.10+hot instead."
    assert warning in site.get("/skills/tea@1.9").page.text
    assert warning not in site.get("/skills/tea@1.10+hot").page.text
    (told,) = site.get("/skills/tea@1.9.json").json["versions"]
    assert (told["state"], told["reason"]) == ("deprecated", "too weak")


def test_an_unknown_or_yanked_version_is_not_found(site, tea):
    tea.yank_version("tea@1.9", "sends files away")
    for label, code, sentence in (
        ("7", "version_not_found", "it has 1.10+hot."),
        ("1.9", "version_yanked", "was yanked: sends files away."),
    ):
        for address in (f"/skills/tea@{label}.json", f"/files/tea@{label}.json?path=pot.txt"):
            answer = site.ask(address)
            assert (answer.status, answer.json["error"]["code"]) == (404, code)
            assert sentence in answer.json["error"]["message"]
        for address in (f"/raw/tea@{label}?path=pot.txt", f"/download/tea@{label}.skill"):
            answer = site.ask(address)
            assert answer.status == 404
            assert sentence in answer.page.text
    assert site.ask("/skills/none@1.9").status == 404


def test_the_page_of_a_withdrawn_skill_says_why_to_visitors_who_see_all_skills(site, tea, tmp_path):
    tea.add_version("tea", "2.0")
    tea.yank_version("tea@2.0", "burns the leaves")
    for address in ("/skills/tea", "/skills/mine/tea", "/skills/tea@2.0", "/download/tea"):
        answer = site.ask(address)
        assert answer.status == 404
        assert "was yanked: burns the leaves." in answer.page.text
    told = site.ask("/skills/tea.json").json["error"]
    assert told["code"] == "version_yanked"
    assert "tea" not in [one["ref"] for one in site.get("/skills.json").json]
    write_skill(tmp_path / "other" / "mate")
    tea.sync(str(tmp_path / "other"), name="other")
    for source in ("mine", "other"):
        _, shown = tea.tokens().create("anna", source=source)
        hidden = site.ask("/skills/tea.json", Authorization=f"Bearer {shown}")
        unknown = site.ask("/skills/none.json", Authorization=f"Bearer {shown}")
        assert (hidden.status, unknown.status) == (404, 404)
        assert hidden.text.replace("tea", "none") == unknown.text


def test_a_visitor_gets_no_version_of_a_skill_that_its_token_does_not_see(site, tea, tmp_path):
    write_skill(tmp_path / "other" / "mate")
    tea.sync(str(tmp_path / "other"), name="other")
    _, shown = tea.tokens().create("anna", source="other")
    for address in ("/skills/tea@1.9", "/raw/tea@1.9?path=pot.txt", "/download/tea@1.9"):
        answer = site.ask(address, Authorization=f"Bearer {shown}")
        assert answer.status == 404
        assert "1.10" not in answer.text
    assert site.ask("/skills/mate", Authorization=f"Bearer {shown}").status == 200


def test_a_skill_whose_name_has_a_label_comes_before_the_version(site, tea, root):
    write_skill(root / "tea@1.9", name="tea@1.9", body="Another skill.\n")
    tea.sync()
    assert "Another skill." in site.get("/skills/tea@1.9").page.text
