"""The catalogue in a real Chromium: what people do there, with and without scripts.

What is asked of it needs the dependency group ``browser`` and a Chromium on the PATH.
"""

import pytest

from tests.conftest import write_skill
from tests.web.conftest import NARROW, WIDE, fits, pull_line, serving

OPPOSITE = pytest.mark.parametrize(
    ("size", "scripts"),
    [
        pytest.param(WIDE, True, id="wide-with-scripts"),
        pytest.param(NARROW, False, id="narrow-without-scripts"),
    ],
)
"""Each width and each kind of browser once."""


@OPPOSITE
def test_find_read_compare_and_copy_the_pull_line(lively, registry, tab, size, scripts):
    pull = pull_line(registry, "sums")
    page = tab(size, java_script_enabled=scripts, permissions=["clipboard-read", "clipboard-write"])
    page.goto(lively.base)
    page.get_by_label("Search skills").fill("columns of a table")
    if scripts:
        page.wait_for_url("**/?q=columns**")
    else:
        page.get_by_role("button", name="Search").click()
    page.get_by_role("link", name="sums", exact=True).click()
    assert page.get_by_role("heading", level=1).inner_text() == "sums"
    page.get_by_role("heading", name="Sums", exact=True).wait_for()
    line = page.locator(".command code").first
    assert line.inner_text() == pull
    if scripts:
        page.get_by_role("button", name="Copy: For Claude Code").click()
        page.get_by_text("Copied").wait_for()
        assert page.evaluate("navigator.clipboard.readText()") == pull
    else:
        assert page.get_by_role("button", name="Copy").count() == 0
    page.get_by_role("link", name="History").click()
    page.get_by_text("Sums up the columns").last.wait_for()
    page.get_by_role("button", name="Compare").click()
    page.wait_for_url("**old=1**")
    page.locator("td.del", has_text="Adds up").wait_for()
    page.locator("td.add", has_text="Sums up").wait_for()
    fits(page)


@OPPOSITE
def test_what_changed_this_week(lively, tab, size, scripts):
    page = tab(size, java_script_enabled=scripts)
    page.goto(lively.base)
    page.get_by_role("link", name="Changes", exact=True).click()
    page.get_by_role("link", name="this week").click()
    page.locator(".feed .label.changed").wait_for()
    fits(page)
    page.get_by_role("link", name="sums", exact=True).first.click()
    page.get_by_text("Sums up").first.wait_for()


@OPPOSITE
def test_why_mine_is_not_shown(lively, tab, size, scripts):
    page = tab(size, java_script_enabled=scripts)
    page.goto(lively.base)
    page.get_by_role("link", name="Check a skill").click()
    page.get_by_role("textbox").fill("broken")
    page.get_by_role("button", name="Explain").click()
    page.get_by_role("heading", name="broken: not listed").wait_for()
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
    page.get_by_text("1 result", exact=False).first.wait_for()
    assert page.evaluate("document.activeElement.id") == "q"
    page.reload()
    assert page.get_by_label("Search skills").input_value() == "table"
    assert page.locator(".hits .name").all_inner_texts() == ["sums"]


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
        assert page.get_by_role("heading", level=1).inner_text() == "sums"
        page.goto(f"data:text/html,<a href='{site.base}/history/sums'>on another site</a>")
        page.get_by_role("link").click()
        assert page.get_by_role("heading", level=1).inner_text() == "sums"
        assert context.cookies()[0]["httpOnly"]
        page.get_by_role("button", name="Sign out").click()
        page.get_by_label("Token").wait_for()
        page.goto(site.base)
        page.get_by_label("Token").wait_for()
        context.close()
