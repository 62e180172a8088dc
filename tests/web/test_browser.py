"""The catalogue in a real Chromium: what people do there, with and without scripts.

What is asked of it needs the dependency group ``browser`` and a Chromium on the PATH.
"""

from urllib.parse import quote

import pytest

from tests.conftest import write_skill
from tests.web import test_hostile
from tests.web.conftest import serving

WIDE, NARROW = (1200, 900), (360, 740)
PULL = "skill-registry pull --global --agent claude-code sums"


@pytest.fixture
def tab(chromium):
    """Open tabs; what they complain of, or ask of anybody else, fails the test at its end."""
    opened, wrong = [], []

    def make(size=WIDE, **settings):
        context = chromium.new_context(
            viewport=dict(zip(("width", "height"), size, strict=True)), **settings
        )
        page = context.new_page()
        page.on("console", lambda said: wrong.append(said.text) if said.type == "error" else None)
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on("dialog", lambda dialog: (wrong.append(dialog.message), dialog.dismiss()))
        page.on("request", lambda asked: wrong.append(asked.url) if far(asked.url) else None)
        opened.append(context)
        return page

    yield make
    for context in opened:
        context.close()
    assert wrong == []


def far(url):
    return not url.startswith(("http://127.0.0.1:", "data:", "blob:"))


@pytest.fixture
def lively(site, registry, library):
    """The small catalogue after something changed in it."""
    document = library / "data" / "sums" / "SKILL.md"
    document.write_text(document.read_text().replace("Adds up", "Sums up"))
    registry.sync()
    return site


WAYS = [
    pytest.param(size, scripts, id=f"{name}-{'with' if scripts else 'without'}-scripts")
    for name, size in (("wide", WIDE), ("narrow", NARROW))
    for scripts in (True, False)
]
OPPOSITE = [WAYS[0], WAYS[-1]]
"""Each width and each kind of browser once."""


@pytest.mark.parametrize(("size", "scripts"), WAYS)
def test_find_read_compare_and_copy_the_pull_line(lively, tab, size, scripts):
    page = tab(size, java_script_enabled=scripts, permissions=["clipboard-read", "clipboard-write"])
    page.goto(lively.base)
    page.get_by_label("Search skills").fill("columns of a table")
    if scripts:
        page.wait_for_url("**/?q=columns**")
    else:
        page.get_by_role("button", name="Search").click()
    page.get_by_role("link", name="sums", exact=True).click()
    assert page.get_by_role("heading", level=1).inner_text() == "sums"
    assert page.get_by_role("heading", name="Sums", exact=True).is_visible()
    line = page.locator(".command code").first
    assert line.inner_text() == PULL
    if scripts:
        page.get_by_role("button", name="Copy: For Claude Code").click()
        page.get_by_text("Copied").wait_for()
        assert page.evaluate("navigator.clipboard.readText()") == PULL
    else:
        assert page.get_by_role("button", name="Copy").count() == 0
    page.get_by_role("link", name="History").click()
    assert page.get_by_text("Sums up the columns").last.is_visible()
    page.get_by_role("button", name="Compare").click()
    assert "old=1" in page.url
    assert page.locator("td.del", has_text="Adds up").is_visible()
    assert page.locator("td.add", has_text="Sums up").is_visible()
    fits(page)


@pytest.mark.parametrize(("size", "scripts"), OPPOSITE)
def test_what_changed_this_week(lively, tab, size, scripts):
    page = tab(size, java_script_enabled=scripts)
    page.goto(lively.base)
    page.get_by_role("link", name="Changes").click()
    page.get_by_role("link", name="this week").click()
    assert page.get_by_role("heading", name="1 changed").is_visible()
    fits(page)
    page.get_by_role("link", name="sums", exact=True).first.click()
    assert "Sums up" in page.content()


@pytest.mark.parametrize(("size", "scripts"), OPPOSITE)
def test_why_mine_is_not_shown(lively, tab, size, scripts):
    page = tab(size, java_script_enabled=scripts)
    page.goto(lively.base)
    page.get_by_role("link", name="Why?").click()
    page.get_by_role("textbox").fill("broken")
    page.get_by_role("button", name="Explain").click()
    assert page.get_by_role("heading", name="not listed").is_visible()
    assert page.locator(".finding .said").count() > 0
    fits(page)


def test_a_keyboard_alone_is_enough(site, tab):
    page = tab()
    page.goto(f"{site.base}/stats")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the content"
    page.keyboard.press("/")
    page.keyboard.type("letters")
    page.keyboard.press("Enter")
    page.wait_for_url("**/?q=letters")
    page.keyboard.press("/")
    page.keyboard.press("ArrowDown")
    assert page.evaluate("document.activeElement.className") == "name"
    page.keyboard.press("ArrowUp")
    assert page.evaluate("document.activeElement.id") == "q"
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    page.wait_for_url("**/skills/letters-*")


def test_results_come_as_one_types_and_each_is_a_url(site, tab):
    page = tab()
    page.goto(f"{site.base}/?kind=reference")
    page.get_by_label("Search skills").press_sequentially("table")
    page.wait_for_url("**/?q=table&kind=reference")
    page.get_by_text("1 skill", exact=False).first.wait_for()
    assert page.evaluate("document.activeElement.id") == "q"
    page.reload()
    assert page.get_by_label("Search skills").input_value() == "table"
    assert page.locator(".hits .name").all_inner_texts() == ["sums"]


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
def test_nothing_stands_in_anybodys_way(lively, chromium, size, scheme):
    context = chromium.new_context(
        viewport=dict(zip(("width", "height"), size, strict=True)), color_scheme=scheme
    )
    page = context.new_page()
    for path in PAGES:
        page.goto(f"{lively.base}{path}")
        page.evaluate("document.querySelectorAll('details').forEach(one => one.open = true)")
        is_fine(page)
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

    def visit(site, path, *, by_form=False):
        context = chromium.new_context(viewport=viewport, color_scheme=scheme)
        page = context.new_page()
        if by_form:  # of another site
            page.set_content(
                f"<form method=post action={site.base}{path}><button>x</button></form>"
            )
            with page.expect_navigation() as gone:
                page.get_by_role("button").click()
            status = gone.value.status
        else:
            status = page.goto(f"{site.base}{path}").status
        is_fine(page)
        words = page.locator("main").inner_text()
        context.close()
        return status, words

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


def fits(page):
    """Assert that nobody has to scroll sideways, and that nothing moved while it came."""
    width = page.evaluate("[document.documentElement.scrollWidth, innerWidth]")
    assert width[0] <= width[1], page.url


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


def test_nothing_of_a_stranger_runs_in_a_browser(registry, root, tab):
    test_hostile.fill(root)
    registry.sync(str(root), name="mine")
    with serving(registry) as site:
        page = tab()
        page.goto(site.base)
        hostile = next(one for one in registry.list() if "onerror" in one.name)
        ref = quote(hostile.ref)
        paths = ["/", f"/?q={quote(hostile.name)}", f"/skills/{ref}", f"/history/{ref}", "/changes"]
        paths += [f"/copies/{ref}", "/stats", "/findings", f"/why?q={quote(hostile.name)}"]
        paths += [
            f"/files/{ref}?path={quote(file.path)}" for file in registry.get(hostile.ref).files
        ]
        for path in paths:
            page.goto(site.base + path)
            for link in page.locator("a").all()[:200]:
                href = link.get_attribute("href") or ""
                assert not href.lower().startswith(("javascript:", "data:", "vbscript:"))
        # What is shown of it in its own tab is of no origin, and has no scripts.
        page.goto(f"{site.base}/raw/{ref}?path=SKILL.md")
        assert page.evaluate("origin") == "null"
        shown = page.goto(f"{site.base}/skills/{ref}")
        assert shown.status == 200
        assert page.evaluate("document.querySelector('.md script')") is None


def test_names_from_right_to_left_turn_nothing_else_around(registry, root, tab):
    write_skill(root / "one", name="\u202egnp.exe مثال", description="Plain words.")
    registry.sync(str(root))
    with serving(registry) as site:
        page = tab()
        page.goto(site.base)
        about = page.locator(".about").first
        assert about.inner_text() == "Plain words."
        boxes = [page.locator(place).first.bounding_box() for place in (".hit .name", ".hit .when")]
        assert boxes[0]["x"] < boxes[1]["x"]


@pytest.mark.parametrize("scripts", [True, False])
def test_who_has_a_token_signs_in_and_out(registry, library, chromium, scripts):
    _, shown = registry.tokens().create("anna")
    with serving(registry, host="0.0.0.0") as site:
        context = chromium.new_context(java_script_enabled=scripts)
        page = context.new_page()
        page.goto(f"{site.base}/skills/sums")
        assert "sums" not in page.locator("main").inner_text()
        page.get_by_label("Token").fill(shown)
        page.get_by_role("button", name="Sign in").click()
        page.get_by_role("link", name="sums", exact=True).click()
        assert page.get_by_role("heading", level=1).inner_text() == "sums"
        assert context.cookies()[0]["httpOnly"]
        page.get_by_role("button", name="Sign out").click()
        page.goto(site.base)
        assert page.get_by_label("Token").is_visible()
        context.close()
