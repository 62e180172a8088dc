"""For everybody: what a real Chromium shows, at each width, in the colours that people set."""

import pytest

from tests.web.conftest import NARROW, WIDE, fits, serving

PAGES = [
    "/",
    "/?q=letters",
    "/?q=zzqqxx",
    "/skills/sums",
    "/files/sums?path=scripts/sum.py",
    "/history/sums",
    "/copies/letters-0",
    "/sources",
    "/findings",
    "/changes",
    "/stats",
    "/personalities",
    "/why?q=broken",
    "/skills/nope",
    "/nowhere",
    "/?sort=x",
]


OPPOSITE_LOOKS = pytest.mark.parametrize(
    ("size", "scheme"), [(WIDE, "light"), (NARROW, "dark")], ids=["wide", "narrow"]
)


@OPPOSITE_LOOKS
def test_nothing_stands_in_anybodys_way(request, lively, chromium, size, scheme):
    context = chromium.new_context(
        viewport=dict(zip(("width", "height"), size, strict=True)), color_scheme=scheme
    )
    page = context.new_page()
    every = request.config.getoption("--every-step")
    for number, path in enumerate(PAGES):
        page.goto(f"{lively.base}{path}")
        page.evaluate("document.querySelectorAll('details').forEach(one => one.open = true)")
        if every or number % 2 == (size == WIDE):  # axe takes long: each page in one of the looks
            is_fine(page)
        else:
            fits(page)
    context.close()


def is_fine(page):
    """Assert that nothing on a page keeps anybody from it (axe), at any width."""
    axe = pytest.importorskip(
        "axe_playwright_python.sync_playwright", reason="axe is not installed"
    )
    found = axe.Axe().run(page, options={"rules": {"target-size": {"enabled": True}}})
    told = [
        (one["id"], [node["html"][:200] for node in one["nodes"][:3]])
        for one in found.response["violations"]
    ]
    assert told == [], page.url
    fits(page)


@OPPOSITE_LOOKS
def test_who_is_turned_away_is_told_on_a_page(
    registry, library, chromium, monkeypatch, scheme, size
):
    registry.tokens().create("anna")
    viewport = dict(zip(("width", "height"), size, strict=True))

    context = chromium.new_context(viewport=viewport, color_scheme=scheme)
    page = context.new_page()

    def visit(site, path, *, by_form=False):
        if by_form:  # of another site
            page.goto("about:blank")
            page.set_content(
                f"<form method=post action={site.base}{path}><button>x</button></form>"
            )
            with page.expect_navigation() as gone:
                page.get_by_role("button").click()
            status = gone.value.status
        else:
            status = page.goto(f"{site.base}{path}").status
        is_fine(page)
        return status, page.locator("main").inner_text()

    with serving(registry, host="0.0.0.0") as site:
        status, words = visit(site, "/skills/sums")
        assert (status, "Paste the token" in words) == (401, True)
        status, words = visit(site, "/login", by_form=True)
        assert (status, "This origin is not allowed." in words) == (403, True)
    with serving(registry) as site:
        status, words = visit(site, "/nowhere")
        assert (status, "nothing at this address" in words) == (404, True)
        monkeypatch.setattr("registry.web.charts.growth", lambda _: 1 // 0)
        status, words = visit(site, "/stats")
        assert (status, "the server's log" in words) == (500, True)
        assert "division" not in words
    context.close()


def test_what_people_set_for_all_pages_is_kept_to(lively, chromium):
    """Colours of their own, no motion, paper."""
    context = chromium.new_context(forced_colors="active", reduced_motion="reduce")
    page = context.new_page()
    for path in PAGES:
        page.goto(f"{lively.base}{path}")
        fits(page)
        assert page.evaluate("getComputedStyle(document.documentElement).scrollBehavior") == "auto"
    page.goto(f"{lively.base}/stats")
    for place, key in (("svg.months", "fill"), (".bars svg", "fill"), ("svg.line", "stroke")):
        shown, text = page.evaluate(
            "([place, key]) => [getComputedStyle(document.querySelector(place))[key],"
            " getComputedStyle(document.querySelector('td a')).color]",
            [place, key],
        )
        assert shown == text, place
    page.emulate_media(media="print", forced_colors="none", color_scheme="dark")
    for path in ("/", "/skills/sums", "/history/sums"):
        page.goto(f"{lively.base}{path}")
        assert not page.locator("nav").first.is_visible()
        assert page.locator("h1").first.inner_text()
        paper = "getComputedStyle(document.body)"
        assert page.evaluate(f"{paper}.backgroundColor") == "rgb(255, 255, 255)"
        for place in ("body", "h1", "main p", ".label"):
            colour = page.evaluate(
                "place => getComputedStyle(document.querySelector(place) || document.body).color",
                place,
            )
            assert max(map(int, colour[4:-1].split(","))) < 128, (path, place, colour)
    context.close()


@pytest.mark.parametrize("size", [WIDE, NARROW], ids=["wide", "narrow"])
def test_whatever_can_be_clicked_is_reached_by_keyboard_and_is_seen_to_be(lively, tab, size):
    page = tab(size)
    for path in ("/", "/skills/sums", "/history/sums", "/stats", "/why?q=broken"):
        page.goto(f"{lively.base}{path}")
        page.evaluate("document.activeElement.blur()")
        wanted = page.evaluate(
            "[...document.querySelectorAll('a[href], button, input, select, summary')]"
            ".filter(one => one.checkVisibility() && one.type !== 'hidden').length"
        )
        reached = set()
        for _ in range(wanted + 40):
            page.keyboard.press("Tab")
            told = page.evaluate(
                "(() => { const one = document.activeElement;"
                " one.dataset.reached ??= document.querySelectorAll('[data-reached]').length;"
                " return [one.matches('a, button, input, select, summary'), one.dataset.reached,"
                " getComputedStyle(one).outlineStyle] })()"
            )
            if told[0]:
                reached.add(told[1])
                assert told[2] != "none", path
            if len(reached) >= wanted:
                break
        assert len(reached) >= wanted, path


def test_nothing_moves_while_a_page_comes(lively, tab):
    page = tab()
    page.add_init_script(
        "window.moved = 0; new PerformanceObserver(list => list.getEntries().forEach("
        "entry => { window.moved += entry.value })).observe({type: 'layout-shift', buffered: true})"
    )
    for path in ("/", "/skills/sums", "/stats"):
        page.goto(f"{lively.base}{path}")
        page.wait_for_load_state("networkidle")
        assert page.evaluate("window.moved") < 0.01, path
