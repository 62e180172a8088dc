"""The catalogue below a path: every link, redirect, cookie, feed and file has the path."""

import re
from pathlib import Path
from urllib.parse import urlsplit
from xml.etree import ElementTree as ET

import pytest

from registry.web import rendering
from tests.web.conftest import NARROW, Site, serving

ATOM = "{http://www.w3.org/2005/Atom}"
PATH = "/team/skills"


class Below(Site):
    """A catalogue below a path, as if it were the root of its host."""

    def __init__(self, site):
        super().__init__(site.port, site.state)
        self.host = site
        self.base = f"{site.base}{PATH}"

    def ask(self, path, *arguments, **named):
        return super().ask(path if path.startswith(PATH) else PATH + path, *arguments, **named)


@pytest.fixture
def below(registry, changed):
    with serving(registry, public=f"http://localhost{PATH}") as site:
        yield Below(site)


def links(answer):
    """Return the addresses in a page that a browser would request."""
    for tag, given in answer.page.elements:
        for key in ("href", "src", "action", "data-hx-get"):
            value = given.get(key)
            if value and not value.startswith(("#", "?")) and not urlsplit(value).netloc:
                yield tag, value


def test_every_address_on_every_page_is_below_the_path_and_there(below):
    seen, left = set(), [f"{PATH}/"]
    while left:
        path = left.pop()
        if path in seen:
            continue
        seen.add(path)
        answer = below.ask(path)
        assert answer.status == 200, path
        if answer.headers["content-type"].startswith("text/html"):
            for tag, link in links(answer):
                assert link.startswith(f"{PATH}/"), (path, tag, link)
                if "&" not in link and tag != "form":
                    left.append(link.partition("#")[0])
    kinds = {path.removeprefix(PATH).split("/")[1].partition("?")[0] for path in seen}
    assert {"skills", "files", "history", "static", "changes.atom", "openapi.json"} <= kinds


def test_redirects_the_feed_and_indexes_have_the_path(below):
    for asked, found in (
        ("/findings/", f"{PATH}/findings"),
        ("/skills?tag=mail", f"{PATH}/?tag=mail"),
    ):
        assert below.ask(asked).headers["location"] == found
    assert below.host.ask(PATH).headers["location"] == f"{PATH}/"
    feed = ET.fromstring(below.ask("/changes.atom").body)
    hrefs = [one.get("href") for one in feed.iter(f"{ATOM}link")]
    assert hrefs
    for href in hrefs:
        assert href.startswith(f"http://localhost{PATH}/"), href
        assert below.ask(href.removeprefix("http://localhost")).status == 200
    (entry,) = below.ask("/s/sums/.well-known/agent-skills/index.json").json["skills"]
    assert entry["url"].startswith(f"{PATH}/artifacts/")
    assert below.ask(entry["url"]).status == 200
    told = below.ask("/skills/sums.json").json
    assert f"npx skills add http://localhost{PATH}/s/sums" in {
        one["command"] for one in told["install"]
    }
    assert f'"url": "http://localhost{PATH}/mcp"' in below.ask("/skills/sums").page.text


def test_other_paths_of_the_host_have_no_pages(below):
    for path in ("/", "/index.json", "/team", f"{PATH}x/", "/static/icon.svg", "/healthz"):
        assert below.host.ask(path).status == 404, path
    assert below.ask("/healthz").status == 200
    assert below.ask("/nowhere", Accept="text/html").status == 404


@pytest.mark.parametrize("scripts", [True, False])
def test_a_user_signs_in_searches_and_signs_out_below_a_path(registry, library, chromium, scripts):
    _, shown = registry.tokens().create("anna")
    with serving(registry, public=f"http://skills.example{PATH}") as site:
        context = chromium.new_context(
            java_script_enabled=scripts,
            viewport={"width": NARROW[0], "height": NARROW[1]},
            extra_http_headers={"X-Forwarded-For": "192.0.2.7"},
        )
        page = context.new_page()
        page.goto(f"{site.base}{PATH}/skills/sums")
        page.get_by_label("Token").fill(shown)
        page.get_by_role("button", name="Sign in").click()
        page.get_by_role("heading", level=1, name="sums").wait_for()
        assert urlsplit(page.url).path == f"{PATH}/skills/sums"
        (cookie,) = context.cookies()
        assert cookie["path"] == f"{PATH}/"
        page.get_by_role("link", name="Skills", exact=True).click()
        page.get_by_label("Search skills").fill("columns")
        if scripts:
            page.wait_for_url("**/?q=columns")
        else:
            page.get_by_role("button", name="Search").click()
        assert urlsplit(page.url).path == f"{PATH}/"
        page.get_by_role("link", name="sums", exact=True).click()
        page.get_by_role("button", name="Sign out").click()
        page.get_by_label("Token").wait_for()
        assert context.cookies() == []
        context.close()


@pytest.mark.parametrize(
    ("url", "is_valid"),
    [
        ("https://example.org/skills", True),
        ("https://example.org/team/skills/", True),
        ("https://example.org/../x", False),
        ("https://example.org/a//b", False),
        ("https://example.org/skills?x=1", False),
        ("https://example.org/a b", False),
    ],
)
def test_the_path_of_the_public_url_is_checked(url, is_valid):
    from registry.cli.options import PUBLIC

    assert bool(PUBLIC.fullmatch(url)) is is_valid


def test_no_template_has_an_address_without_the_path():
    folder = Path(rendering.__file__).parent / "templates"
    for template in folder.glob("*.html"):
        found = re.findall(r'(?:href|src|action|data-hx-get)="/[^"]*"', template.read_text())
        assert found == [], template.name
