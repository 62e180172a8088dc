"""The start page: what fits, what narrows it, and that every state of it is a URL."""

import gzip
import re

import pytest

from tests.conftest import write_skill
from tests.home import SENDER
from tests.remotes.upstream import Upstream
from tests.web.conftest import serving

EVERYTHING = ["letters-0", "letters-1", "letters-2", "sums"]


def test_it_lists_what_is_visible_and_links_to_it(site):
    page = site.get("/").page
    assert page.names() == EVERYTHING
    assert "4 skills" in page.text
    assert "1 invalid" in page.text


def test_a_search_shows_where_it_matched_and_as_json_the_same(site):
    answer = site.get("/", q="letters to customers")
    assert answer.page.names() == ["letters-0"]  # the others are nearly the same
    assert "<mark>customers</mark>" in answer.text
    assert "+2 copies" in answer.page.text
    told = site.get("/index.json", q="letters to customers").json
    assert [one["ref"] for one in told["skills"]] == ["letters-0"]
    assert told["total"] == 1
    assert sorted(told["skills"][0]["alike"]) == ["letters-1", "letters-2"]
    assert told["confidence"] > 0.5


def test_that_nothing_fits_is_said(site):
    assert "No skills match" in site.get("/", q="zzqqxx").page.text
    told = site.get("/", q="zzqqxx customers volcanoes").page.text
    assert "No close match" in told
    assert "volcanoes" in told
    told = site.get("/", q="letters table").page.text
    assert "No close match. " in told  # some names either, none both


def test_if_nothing_fits_shorter_queries_are_links(site):
    answer = site.get("/", q="zzqqxx letters volcanoes gardens customers")
    assert 'href="/?q=letters+customers"' in answer.text or "letters%20customers" in answer.text


def test_several_queries_are_answered_in_turn_and_every_link_keeps_them(site):
    both = ["table of sums", "letters to customers"]
    answer = site.get("/", q=[*both, ""])
    assert answer.page.names() == ["sums", "letters-0"]
    assert {"<mark>sums</mark>", "<mark>customers</mark>"} <= set(
        re.findall("<mark>[a-z]+</mark>", answer.text.lower())
    )
    told = site.get("/index.json", q=both).json
    assert [one["ref"] for one in told["skills"]] == ["sums", "letters-0"]
    assert told["total"] == sum(one["count"] for one in told["facets"]["kinds"]) == 2
    links = answer.page.links
    assert "/?q=table+of+sums&q=letters+to+customers&kind=workflow" in links
    assert {"/?q=table+of+sums", "/?q=letters+to+customers"} <= set(links)  # without the other
    assert "/?q=table+of+sums&q=letters+to+customers&limit=1&page=2" in (
        site.get("/", q=both, limit="1").page.links
    )
    assert site.get("/", q=both, limit="1", page="2").page.names() == ["letters-0"]
    neither = site.get("/", q=["zzqqxx", "yyqqzz"]).page
    assert "No skills match" in neither.text
    assert "/why?q=zzqqxx" in neither.links


def test_more_queries_than_a_search_takes_are_refused_as_the_library_does(site):
    six = [f"letters {number}" for number in range(6)]
    assert site.get("/", q=six[:5]).status == 200
    assert "ask 1 to 5 queries, not 6" in site.ask("/", query={"q": six}).page.text
    told = site.ask("/index.json", query={"q": six})
    assert told.status == 400
    assert told.json["error"]["message"] == "ask 1 to 5 queries, not 6"
    described = site.get("/openapi.json").json["paths"]["/index.json"]["get"]["parameters"]
    assert [one["schema"]["maxItems"] for one in described if one["name"] == "q"] == [5]


def test_facets_narrow_it(site):
    for narrowed, expected in [
        ({"tag": "office"}, EVERYTHING[:3]),
        ({"tag": ["office", "mail"]}, EVERYTHING[:3]),
        ({"tag": ["office", "data"]}, []),
        ({"kind": "reference"}, ["sums"]),
        ({"category": "office"}, EVERYTHING[:3]),
        ({"source": "mine"}, EVERYTHING),
        ({"scope": "personal"}, EVERYTHING),
        ({"scope": "team"}, []),
        ({"status": "invalid"}, ["broken"]),
        ({"updated": "2023-11"}, EVERYTHING),
        ({"updated": "2023-10"}, []),
        ({"q": "table", "kind": "workflow"}, []),
        ({"sort": "name", "reverse": "1"}, EVERYTHING[::-1]),
    ]:
        assert site.get("/", **narrowed).page.names() == expected
        assert [
            one["ref"] for one in site.get("/index.json", **narrowed).json["skills"]
        ] == expected


def test_counts_are_those_of_what_is_left_and_their_links_lead_there(site):
    facets = site.get("/index.json").json["facets"]
    assert facets["kinds"] == [
        {"value": "workflow", "count": 3},
        {"value": "reference", "count": 1},
    ]
    assert facets["tags"][0] == {"value": "mail", "count": 3}
    assert facets["updated"] == [{"value": "2023-11", "count": 4}]
    narrowed = site.get("/index.json", tag="data").json["facets"]
    assert narrowed["kinds"] == [{"value": "reference", "count": 1}]
    asked = site.get("/index.json", q="letters").json
    assert sum(one["count"] for one in asked["facets"]["kinds"]) == asked["total"]
    page = site.get("/", kind="workflow").page
    assert "/?tag=mail&kind=workflow" in page.links
    assert "/" in page.links  # without the kind
    chosen = site.get("/", tag="mail").page
    assert "/?tag=mail&tag=office" in chosen.links
    assert "/?tag=mail&tag=mail" not in chosen.links


def test_of_many_values_it_is_said_that_there_are_more_than_are_named(site, skill, registry, root):
    def sync_with(tags):
        skill("tagged", extra=f"tags: [{', '.join(f't-{one:02}' for one in range(tags))}]\n")
        registry.sync(str(root))
        return site.get("/").page.text

    assert "25 more" in sync_with(34)  # with the three of the others; 12 are named at once
    assert "the next 28" in sync_with(60)
    assert len(site.get("/index.json").json["facets"]["tags"]) == 40


def test_pages_fit_together(site, skill, registry, root):
    for number in range(40):
        skill(f"many/more-{number:02}", description=f"Number {number} does {'x' * number} alone.")
    registry.sync(str(root))
    first, second = site.get("/").page, site.get("/", page="2").page
    assert len(first.names()) == 30
    assert "/?page=2" in first.links
    assert "/" in second.links
    for beyond, last in [("/?page=99", "/?page=2"), ("/?kind=workflow&page=2", "/?kind=workflow")]:
        answer = site.ask(beyond)  # a link of when there were more
        assert (answer.status, last in answer.page.links) == (404, True)
    names = first.names() + second.names()
    assert len(names) == len(set(names)) == 44
    # what came meanwhile was seen: nothing is told from before the sync
    assert site.get("/index.json").json["total"] == 44


def test_what_cannot_be_asked_is_said_in_words(site):
    for query in [
        "sort=size",
        "page=0",
        "page=x",
        "created=2026-13",
        "created=0000-01",
        "scope=galaxy",
        "kind=workflow&kind=reference",
        "status=ok&status=invalid",
        "updated=2023-10&updated=2023-11",
        "sort=name&sort=created",
        "all=0&all=1",
        "all=yes",
        "reverse=-1",
        "limit=1&limit=2",
    ]:
        page = site.ask(f"/?{query}")
        assert page.status == 400
        assert page.headers["content-type"].startswith("text/html")
        told = site.ask(f"/index.json?{query}")
        assert told.status == 400
        assert told.json["error"]["code"] == "usage"
    told = site.ask("/skills.json?kind=workflow&kind=reference")
    assert (
        told.json["error"]["message"]
        == "give the parameter kind only once, not as 'workflow' and as 'reference'"
    )
    assert site.get("/", kind=["workflow", "", "workflow"]).page.names() == EVERYTHING[:3]
    assert site.get("/", all="True", reverse="false").page.names() == sorted(
        [*EVERYTHING, "broken"]
    )


def test_a_client_that_has_it_is_told_so_until_something_changes(site, skill, registry, root):
    for path in ("/", "/index.json?q=sums", "/stats", "/findings.json", "/changes.atom"):
        tag = site.get(path).headers["etag"]
        again = site.ask(path, If_None_Match=tag)
        assert (again.status, again.body) == (304, b"")
        assert "Cookie" in again.headers["vary"]  # as with the answer that it stands for
        skill(f"new-{abs(hash(path))}", description="Something new.")
        registry.sync(str(root))
        assert site.ask(path, If_None_Match=tag).status == 200


def test_what_was_asked_while_a_sync_stages_is_not_the_answer_after_it(site, skill, registry, root):
    skill("later", description="Came later.")
    asked = []

    def ask(doing, _done, _total):
        if doing == "publishing":  # it is stored by now, and nobody sees it yet
            asked.append(site.get("/index.json", q="later"))

    registry.sync(str(root), progress=ask)
    assert [one.json["total"] for one in asked] == [0]
    after = site.ask("/index.json?q=later", If_None_Match=asked[0].headers["etag"])
    assert (after.status, after.json["total"]) == (200, 1)


def test_what_a_source_is_trusted_with_is_shown_at_once(site, registry, tmp_path):
    far = Upstream(tmp_path / "far")
    far.write("skills/mailer/SKILL.md", SENDER)
    far.commit()
    source = registry.add_source(far.url)
    registry.sync(source.name)
    tag = site.get("/index.json", q="mailer").headers["etag"]
    for revoke, total in ((False, 1), (True, 0)):
        assert registry.trust_source(source.name, revoke=revoke) == 1
        told = site.ask("/index.json?q=mailer", If_None_Match=tag)
        assert (told.status, told.json["total"]) == (200, total)
        tag = told.headers["etag"]


def test_all_skills_are_streamed_as_json(site, skill, registry, root):
    for number in range(600):
        skill(f"many/more-{number:03}")
    registry.sync(str(root))
    told = site.get("/skills.json")
    assert told.headers["transfer-encoding"] == "chunked"
    assert [one["ref"] for one in told.json] == [one.ref for one in registry.list()]
    assert len(told.json) == 604
    assert [one["ref"] for one in site.get("/skills.json", kind="reference").json] == ["sums"]
    assert site.get("/skills.json", kind="none").json == []
    packed = site.ask("/skills.json", Accept_Encoding="gzip")
    assert packed.headers["content-encoding"] == "gzip"
    assert gzip.decompress(packed.body) == site.get("/skills.json").body
    empty = site.ask("/skills.json?kind=none", Accept_Encoding="gzip")
    assert gzip.decompress(empty.body) == b"[]\n"
    assert site.ask("/skills.json?sort=x").status == 400
    for paged in ("q=sums", "limit=5", "page=2"):
        assert "/index.json" in site.ask(f"/skills.json?{paged}").json["error"]["message"]


@pytest.mark.file
def test_a_database_that_fails_is_said_by_every_face(site, registry, database, tmp_path):
    _, shown = registry.tokens().create("anna")
    (tmp_path / "strange.db").write_bytes(b"no database at all " * 1000)
    (tmp_path / "strange.db").replace(database)
    for path in ("/", "/skills/sums", "/skills.json", "/changes.atom", "/api/v1/skills"):
        assert site.ask(path).status == 503, path
    for path in ("", "/s/mine"):
        assert site.ask(f"{path}/.well-known/agent-skills/index.json").status == 503, path
    given = {"Authorization": f"Bearer {shown}"}
    answer = site.ask("/", **given)
    assert (answer.status, str(database) in answer.text) == (503, False)
    assert "can't check who you are" in site.ask("/", Accept="text/html", **given).page.text
    assert site.ask("/login", "POST", f"token={shown}").status == 503
    assert site.ask("/healthz", **given).status == 200


def test_the_first_page_is_small_and_needs_few_requests(site, skill, registry, root):
    for number in range(60):
        skill(f"many/more-{number:03}", description="Does something at length. " * 12)
    registry.sync(str(root))
    answer = site.ask("/", Accept_Encoding="gzip")
    assert answer.headers["content-encoding"] == "gzip"
    for refused in ("gzip;q=0", "gzip; q=0.000, identity", "identity", "x-gzipped"):
        assert "content-encoding" not in site.ask("/", Accept_Encoding=refused).headers
    for taken in ("br, gzip;q=0.5", "deflate,gzip"):
        assert site.ask("/", Accept_Encoding=taken).headers["content-encoding"] == "gzip"
    files = [
        given.get("src") or given.get("href")
        for tag, given in site.get("/").page.elements
        if tag in {"script", "img"} or (tag == "link" and given["rel"] in {"stylesheet", "icon"})
    ]
    assert len(files) + 1 <= 10
    size = sum(len(site.ask(path, Accept_Encoding="gzip").body) for path in files)
    assert size + len(answer.body) <= 100_000
    assert "immutable" in site.ask(files[0]).headers["cache-control"]


def test_an_empty_registry_says_so(registry):
    with serving(registry) as site:
        assert "No skills yet" in site.get("/").page.text
        assert site.get("/index.json").json["skills"] == []


def test_names_in_any_script_are_isolated_and_found(registry, root):
    for name in ("пример", "例え", "مثال", "a b&c"):
        write_skill(root / f"folder-{len(name)}-{ord(name[0])}", name=name)
    registry.sync(str(root))
    with serving(registry) as site:
        page = site.get("/").page
        assert len(page.names()) == 4
        for path in page.names():
            answer = site.get(f"/skills/{path}")
            assert '<h1 dir="auto"><bdi>' in answer.text
