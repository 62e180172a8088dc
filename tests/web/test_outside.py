"""What visitors who are not the user of this machine are not shown, and what they can't ask."""

import json
import sqlite3

import pytest

from registry.db.read.listing import MAX_TAGS
from registry.errors import UsageProblem
from registry.web.auth import MAX_PARAMETERS
from registry.web.openapi import PATHS
from tests.web.conftest import rewrite, serving


@pytest.fixture
def token(registry, library):
    _, shown = registry.tokens().create("anna")
    return {"Authorization": f"Bearer {shown}"}


@pytest.fixture
def addresses(library, registry):
    """Every address of the description, of every kind of skill, as JSON and as a page."""
    (library / "office" / "link").symlink_to(library / "data" / "sums")
    rewrite(library)
    registry.sync()
    found = ["/changes.atom", "/why.json?q=sums", "/why.json?q=broken", "/why?q=sums"]
    found += ["/index.json?all=1", "/skills.json?all=1", "/index.json?q=sums", "/api/v1/skills"]
    found += ["/api/v1/skills/sums", "/.well-known/agent-skills/index.json", "/why?q=/etc"]
    for path, *_ in PATHS:
        for ref in ("sums", "broken", "letters-0", "nobody"):
            one = path.replace("{ref}", ref).replace("{name}", ref)
            found += [f"{one}?path=SKILL.md", f"{one.removesuffix('.json')}?path=SKILL.md"]
    return found


def test_a_visitor_with_a_token_is_shown_no_folder_of_this_machine(
    registry, token, addresses, tmp_path
):
    with serving(registry) as site:
        for path in addresses:
            assert str(tmp_path) not in site.ask(path, **token).text, path
        for path in ("/index.json", "/skills.json", "/skills/sums.json"):
            told = site.ask(path, **token).json
            one = told[0] if isinstance(told, list) else told.get("skills", [told])[0]
            assert one["path"] is None
            assert one["ref"]
        detail = site.ask("/skills/sums.json", **token).json
        assert detail["location"] is None
        assert [file["path"] for file in detail["files"]] == [
            "SKILL.md",
            "logo.png",
            "scripts/sum.py",
        ]
        assert "also in mine/office/link" in json.dumps(detail["reasons"])


def test_the_user_of_this_machine_is_shown_the_folders(site, library):
    folder = str(library / "data" / "sums")
    assert site.get("/skills/sums.json").json["path"] == folder
    assert folder in {one["path"] for one in site.get("/index.json").json["skills"]}
    assert folder in {one["path"] for one in site.get("/skills.json").json}


def test_more_parameters_than_a_url_may_have_are_refused_without_a_path(registry, token, tmp_path):
    many = "&".join(f"tag={number}" for number in range(4000))
    with serving(registry) as site:
        for path in ("/index.json", "/", "/skills.json", "/api/v1/skills"):
            for headers in ({}, token):
                answer = site.ask(f"{path}?{many}", **headers)
                assert answer.status == 400, path
                assert str(tmp_path) not in answer.text
        most = "&".join(f"tag={number}" for number in range(MAX_PARAMETERS))
        assert site.ask(f"/index.json?{most}").status == 200


def test_more_tags_than_a_listing_can_take_are_refused(registry, library):
    with pytest.raises(UsageProblem, match="at most"):
        registry.list(tags=[str(number) for number in range(MAX_TAGS + 1)])
    assert registry.list(tags=[str(number) for number in range(MAX_TAGS)]).total == 0


DAMAGE = {
    "front matter": "UPDATE documents SET front_matter = '{' WHERE skill_id = (SELECT id FROM "
    "skills WHERE name = 'sums' AND live = 1)",
    "parameters": "UPDATE skills SET required_tools = '{' WHERE name = 'sums'",
    "files": "UPDATE revisions SET files = '[[1]]' WHERE name = 'sums'",
}


@pytest.mark.file
@pytest.mark.parametrize("what", DAMAGE)
def test_a_page_over_a_damaged_row_names_its_skill_and_the_others_work(
    registry, token, database, tmp_path, what
):
    with sqlite3.connect(database) as rows:
        assert rows.execute(DAMAGE[what]).rowcount > 0
    with serving(registry) as site:
        for headers in (token, {}):
            for path in ("/skills/sums", "/skills/sums.json"):
                answer = site.ask(path, Accept="text/html", **headers)
                assert answer.status == 500
                assert "The stored data of sums is damaged" in answer.text
                assert "skill-registry db check" in answer.text
                assert str(tmp_path) not in answer.text
            for path in ("/", "/skills/letters-0", "/stats", "/index.json"):
                assert site.ask(path, **headers).status == 200, path


@pytest.mark.file
def test_a_list_over_a_damaged_row_says_which_kind_of_row_it_is(registry, token, database):
    with sqlite3.connect(database) as rows:
        rows.execute("UPDATE skills SET tags = x'00ff' WHERE name = 'sums'")
    with serving(registry) as site:
        for path in ("/index.json", "/skills.json", "/api/v1/skills"):
            answer = site.ask(path, **token)
            assert answer.status == 500, path
            assert (
                "The stored data of a skill is damaged: a row of skills has no tags" in answer.text
            )
        assert site.ask("/skills/letters-0", **token).status == 200
