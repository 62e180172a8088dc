"""Lists of tags and copies, sorted searches, deleted skills, and requests that pages refuse."""

import pytest

from tests.conftest import write_skill
from tests.web.conftest import LETTER, serving


@pytest.mark.both
def test_all_tags_are_listed_and_filtered(site, registry, root):
    for number in range(0, 350, 50):
        tags = ", ".join(f"t-{one:03}" for one in range(number, number + 50))
        write_skill(root / f"tagged-{number}", extra=f"tags: [{tags}]\n")
    write_skill(root / "odd", extra="tags: [100%, a_b]\n")
    registry.sync()
    first = site.get("/tags").page
    assert "355 tags" in first.text
    assert "/?tag=office" in first.links
    (link,) = [one for one in first.links if "page=2" in one]
    assert len(site.get(link).page.links) > 55
    assert site.get("/tags.json", q="T-03").json["total"] == 10
    assert [one["value"] for one in site.get("/tags.json", q="%").json["tags"]] == ["100%"]
    assert [one["value"] for one in site.get("/tags.json", q="a_").json["tags"]] == ["a_b"]
    assert "/tags" in site.get("/").page.links


@pytest.mark.both
def test_names_that_several_skills_have_are_listed(site, registry, tmp_path):
    assert site.get("/copies.json").json["names"] == []
    for place in ("one", "two"):
        write_skill(tmp_path / place / "sums", body=f"# {place}\n")
        registry.sync(str(tmp_path / place), name=place)
    told = site.get("/copies.json").json
    assert [(one["name"], one["skills"], one["contents"]) for one in told["names"]] == [
        ("sums", 3, 3)
    ]
    page = site.get("/copies").page
    (link,) = [one for one in page.links if one.startswith("/copies/")]
    assert len(site.get(link).page.names()) >= 2
    _, shown = registry.tokens().create("anna", source="mine")
    assert site.ask("/copies.json", Authorization=f"Bearer {shown}").json["total"] == 0


def near(answer):
    return [([one["ref"] for one in it["skills"]], it["total"]) for it in answer.json["groups"]]


@pytest.mark.both
def test_near_duplicates_with_different_names_are_listed_by_the_page(site, registry, tmp_path):
    letters = ["letters-0", "letters-1", "letters-2"]
    assert near(site.get("/copies.json", relation="alike")) == [(letters, 3)]
    (link,) = [one for one in site.get("/copies").page.links if "relation=alike" in one]
    page = site.get(link).page
    assert "1 group" in page.text
    assert "/copies/letters-0" in page.links
    assert {"/skills/letters-1", "/skills/letters-2"} <= set(page.links)
    body = "".join(f"{step}. Take step {step} of it.\n" for step in range(30))
    for number in range(60):
        for name in ("a", "b", "c", "d", "e"):
            about = f"Does number {number} with all of its {number * 7} further parts."
            write_skill(
                tmp_path / "many" / f"z{number:02}-{name}",
                description=about,
                body=body.replace("of it", f"of {number}") + f"Version {name}.\n",
            )
    registry.sync(str(tmp_path / "many"), name="many")
    told = site.get("/copies.json", relation="alike").json
    assert (told["total"], told["page"], told["pages"]) == (61, 1, 2)
    first, *_, last = near(site.get("/copies.json", relation="alike", page=2))
    assert first == ([f"z49-{name}" for name in "abcd"], 5)
    assert last == ([f"z59-{name}" for name in "abcd"], 5)
    found = [one.skills[0].ref for one in registry.copies() if one.relation == "alike"]
    assert found == ["letters-0", *(f"z{number:02}-a" for number in range(60))]
    assert site.ask("/copies?relation=alike&page=3").status == 404
    assert site.ask("/copies?relation=same").status == 400


@pytest.mark.both
def test_a_limited_visitor_sees_near_duplicates_only_among_its_own_skills(
    site, registry, library, tmp_path
):
    def ask(source):
        _, shown = registry.tokens().create(source, source=source)
        return site.ask("/copies.json?relation=alike", Authorization=f"Bearer {shown}")

    before = ask("mine").body
    for name in ("aaa", "letters-1", "zzz"):
        folder = tmp_path / "theirs" / name
        write_skill(
            folder,
            description="Writes letters to customers in the tone that the house keeps, no. 9.",
            body=LETTER,
        )
    write_skill(tmp_path / "alone" / "zzz", description="Other.", body=LETTER)
    registry.sync(str(tmp_path / "theirs"), name="theirs")
    registry.sync(str(tmp_path / "alone"), name="alone")
    assert near(site.get("/copies.json", relation="alike"))[0][1] >= 4
    assert ask("mine").body == before
    assert near(ask("theirs")) == [(["aaa", "letters-1", "zzz"], 3)]
    assert near(ask("alone")) == []


@pytest.mark.both
def test_a_search_is_sorted_by_time_and_name(registry, root):
    for number, name in enumerate(("b-table", "c-table", "a-table")):
        write_skill(
            root / name, description=f"Adds table columns, {'way ' * number}.", age=10**9 + number
        )
    registry.sync(str(root))
    with serving(registry) as site:
        for sort, names in (
            ({"sort": "updated"}, ["a-table", "c-table", "b-table"]),
            ({"sort": "updated", "reverse": "1"}, ["b-table", "c-table", "a-table"]),
            ({"sort": "name"}, ["a-table", "b-table", "c-table"]),
            ({"sort": "name", "limit": "2", "page": "2"}, ["c-table"]),
        ):
            query = {"q": ["b-table", "c-table", "a-table"], **sort}
            assert site.get("/", **query).page.names() == names, sort
        links = site.get("/", q="table").page.links
        assert "/?q=table&sort=updated" in links
        assert "/?q=table" in site.get("/", q="table", sort="name").page.links


@pytest.mark.both
def test_the_page_of_a_deleted_skill_says_so_and_leads_to_its_history(site, registry):
    registry.delete("sums")
    answer = site.ask("/skills/sums")
    assert answer.status == 404
    assert "This skill was deleted" in answer.page.text
    (link,) = [one for one in answer.page.links if one.startswith("/history/")]
    history = site.get(link).page
    assert history.text
    (old,) = [one for one in history.links if "SKILL.md&revision=1" in one]
    assert "Adds up the columns" in site.get(old).page.text
    assert site.ask("/skills/sums.json").json["error"]["code"] == "skill_not_found"
    assert "deleted" not in site.ask("/skills/nothing-like-it").page.text
    _, shown = registry.tokens().create("anna", source="mine")
    hidden = site.ask("/skills/sums", Authorization=f"Bearer {shown}")
    assert (hidden.status, "deleted" in hidden.text) == (404, False)


@pytest.mark.both
def test_a_file_of_a_revision_has_an_address(lively):
    for number, word in ((1, "Adds up"), (2, "Sums up")):
        told = lively.get("/files/sums.json", path="SKILL.md", revision=number).json
        assert word in told["text"]
    links = lively.get("/history/sums").page.links
    assert "/files/sums?path=SKILL.md&revision=1" in links
    for wrong in ("path=SKILL.md&revision=9", "path=nope&revision=1"):
        assert lively.ask(f"/files/sums?{wrong}").status == 404
    assert lively.ask("/files/sums?path=SKILL.md&revision=x").status == 400


def test_json_has_the_order_of_the_page(site, registry, library, root):
    write_skill(root / "later", extra="tags: [office]\nkind: guide\ncategory: data\n", age=0)
    registry.sync()
    for path in ("/", "/?q=letters", "/?sort=name", "/?sort=created", "/?tag=office"):
        told = site.get(f"/index.json{path[1:]}").json
        assert site.get(path).page.names() == [one["ref"] for one in told["skills"]], path
    for path, query in (
        ("/tags", {}),
        ("/findings", {}),
        ("/sources", {}),
        ("/copies", {"relation": "alike"}),
    ):
        shown = site.get(path, **query).page.text
        told = site.get(f"{path}.json", **query).json
        (rows,) = (one for one in told.values() if isinstance(one, list))
        keys = [
            one.get("value") or one.get("code") or one.get("name") or one["skills"][0]["name"]
            for one in rows
        ]
        places = [shown.index(f" {key} ") for key in dict.fromkeys(keys)]
        assert places == sorted(places), path
    facets = site.get("/index.json").json["facets"]
    page = site.get("/").page
    titles = [given["data-name"].lower() for _, given in page.elements if "data-name" in given]
    assert titles == [key for key in facets if key in titles]
    assert {"tags", "kinds", "categories", "updated", "created"} <= set(titles)


@pytest.mark.both
def test_frequent_findings_come_in_the_order_of_all_others(registry, library, root, monkeypatch):
    for number in (3, 1, 2):
        extra = f"zzz-{number}: x\nyyy-{number}: x\n"
        write_skill(root / f"more-{number}", name=f"More-{number}", extra=extra)
    registry.sync()
    paths = [
        f"/findings.json?code={code}{more}"
        for code in ("key-unknown", "name-upper-case", "name-differs-from-folder")
        for more in ("", "&severity=warning", "&severity=error", "&page=2")
    ]

    def ask():
        with serving(registry) as site:
            return [site.ask(path).body for path in paths]

    usual = ask()
    monkeypatch.setattr("registry.web.pages.FREQUENT", 0)
    assert ask() == usual
    with serving(registry) as site:
        told = site.get(paths[0]).json["findings"]
    assert [
        (one["ref"], one["finding"]["line"]) for one in told if "more" in one["ref"].lower()
    ] == [(f"More-{number}", line) for number in (1, 2, 3) for line in (4, 5)]


def test_unused_skills_are_listed(site, registry):
    registry.toolset("native").call("read_skill", {"name": "sums"})
    registry.core.usage.write()
    assert "sums" not in site.get("/", unused="90d").page.names()
    assert len(site.get("/", unused="90d").page.names()) == 3
    assert site.ask("/?unused=often").status == 400


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("/?tags=pdf", "tags"),
        ("/index.json?tags=pdf", "tags"),
        ("/skills.json?x=1", "x"),
        ("/skills/sums?version=1", "version"),
        ("/sources?page=1", "page"),
        ("/changes?from=mine", "from"),
        ("/changes.atom?x=1", "x"),
        ("/findings?severe=error", "severe"),
        ("/stats.json?x=1", "x"),
        ("/tags?tag=x", "tag"),
    ],
)
def test_a_parameter_that_a_page_does_not_know_is_refused(site, path, name):
    answer = site.ask(path)
    assert answer.status == 400
    assert f"there is no parameter '{name}'" in answer.text.replace("&#39;", "'")
    tracked = f"{path.partition('?')[0]}?utm_source=mail&fbclid=x&gclid=y"
    assert site.ask(tracked).status == 200


def test_a_page_beyond_the_last_is_not_found_and_leads_back(site, registry, root):
    for number in range(40):
        write_skill(root / f"more-{number:02}", description=f"Number {number} {'x' * number}.")
    registry.sync()
    for path, last in (
        ("/?page=3", "/?page=2"),
        ("/?kind=workflow&page=2", "/?kind=workflow"),
        ("/tags?page=2", None),
        ("/copies?page=9", None),
        ("/changes?page=9", "/changes"),
    ):
        answer = site.ask(path)
        assert answer.status == 404, path
        assert last is None or last in answer.page.links, path
    assert site.ask("/index.json?page=3").status == 404
    assert site.ask("/?q=zzqqxx&page=1").status == 200
