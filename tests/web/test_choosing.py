"""The start page as a place to choose a skill: what the site is, what is new, filters in reach."""

import pytest

from tests.conftest import write_skill
from tests.web.conftest import NARROW, WIDE, serving


def test_the_start_page_says_what_the_site_is_and_what_is_new(changed, site, registry, tmp_path):
    write_skill(tmp_path / "more" / "haiku")
    registry.sync(str(tmp_path / "more"), name="more")
    registry.toolset("native").call("read_skill", {"name": "sums"})
    registry.core.usage.write()
    page = site.get("/").page
    assert "Claude Code" in page.text
    assert "5 skills from 2 sources" in page.text
    recent = page.text.partition("Recently changed")[2].partition("All changes")[0]
    assert recent.split()[0] == "haiku"
    assert "sums changed" in recent
    assert "Most used sums read 1 time" in page.text
    assert "Collections by tag" in page.text
    assert "/?tag=office" in page.links


def test_the_lists_of_the_start_page_are_not_on_other_states_of_it(site):
    for query in ({"q": "sums"}, {"tag": "office"}, {"page": "1", "limit": "2"}):
        assert "Recently changed" not in site.get("/", **query).page.text


@pytest.mark.both
def test_the_list_shows_the_latest_update_first(site, registry, root):
    write_skill(root / "zz-newest", age=1_800_000_000)
    registry.sync()
    assert site.get("/").page.names()[0] == "zz-newest"
    assert site.get("/index.json").json["skills"][0]["ref"] == "zz-newest"
    assert site.get("/", sort="name").page.names()[-1] == "zz-newest"
    assert site.get("/skills.json").json[-1]["ref"] == "zz-newest"  # a stream stays by name


@pytest.mark.parametrize("size", [WIDE, NARROW], ids=["wide", "narrow"])
def test_the_filters_are_two_keys_and_one_click_away(site, tab, size):
    page = tab(size)
    page.goto(f"{site.base}/?tag=office")
    assert page.evaluate("document.activeElement === document.body")  # no field takes the focus
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the filters"
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.closest('#facets') !== null")
    page.goto(f"{site.base}/?q=letters")
    page.get_by_role("link", name="Filters", exact=True).click()
    page.wait_for_url("**#facets")
    top = page.evaluate("document.getElementById('facets').getBoundingClientRect().top")
    assert top < size[1]


def test_a_filter_that_is_closed_stays_closed(site, tab):
    page = tab()
    page.goto(site.base)
    page.get_by_text("Kinds", exact=True).click()
    page.wait_for_function("(localStorage.getItem('closed-filters') ?? '').includes('Kinds')")
    page.reload()
    kinds = page.locator(".facet[data-name=Kinds]")
    assert kinds.get_attribute("open") is None
    page.get_by_label("Search skills").fill("letters to customers")
    page.wait_for_url("**/?q=letters**")
    assert kinds.count() == 0 or kinds.get_attribute("open") is None
    page.goto(site.base)
    page.get_by_text("Kinds", exact=True).click()
    page.wait_for_function("!(localStorage.getItem('closed-filters') ?? '').includes('Kinds')")
    page.reload()
    assert kinds.get_attribute("open") is not None


@pytest.mark.parametrize(
    ("answer", "said"), [({"status": 500}, "the server answered 500"), (None, "no answer")]
)
def test_a_search_that_fails_says_that_the_list_is_of_an_earlier_search(
    site, chromium, answer, said
):
    page = chromium.new_page()
    asked = []

    def fail(route):
        asked.append(route.request.url)
        if answer is None:
            route.abort()
        else:
            route.fulfill(**answer)

    page.goto(site.base)
    page.route("**/?q=*", fail)
    page.get_by_label("Search skills").fill("letters")
    page.get_by_text("The search failed").wait_for()
    assert asked
    assert said in page.locator("#count").inner_text()
    assert page.locator("body.stale").count() == 1
    assert page.locator("#found[aria-busy]").count() == 0
    page.unroute("**/?q=*")
    page.get_by_label("Search skills").fill("letters to customers")
    page.wait_for_url("**/?q=letters%20to%20customers")
    assert "failed" not in page.locator("#count").inner_text()
    assert page.locator("body.stale").count() == 0
    page.close()


def test_a_search_without_a_valid_token_leads_to_the_sign_in_page(registry, library, chromium):
    _, shown = registry.tokens().create("anna")
    with serving(registry, host="0.0.0.0") as site:
        context = chromium.new_context()
        page = context.new_page()
        page.goto(site.base)
        page.get_by_label("Token").fill(shown)
        page.get_by_role("button", name="Sign in").click()
        page.get_by_label("Search skills").wait_for()
        page.wait_for_load_state()
        registry.tokens().revoke("anna")
        page.get_by_label("Search skills").fill("letters")
        page.get_by_label("Token").wait_for()
        assert page.url.endswith("/?q=letters")
        context.close()


def test_the_list_is_marked_as_busy_while_a_search_runs(site, tab):
    page = tab()
    page.goto(site.base)
    waiting = []

    def hold(route):
        waiting.append(route)

    page.route("**/?q=*", hold)
    page.get_by_label("Search skills").fill("letters")
    page.locator("#found[aria-busy=true]").wait_for()
    (route,) = waiting
    route.continue_()
    page.wait_for_url("**/?q=letters")
    assert page.locator("#found[aria-busy]").count() == 0
