"""What makes pages pleasant to use: colours, keys, contents, copying, and their facts for others."""

import gzip

import pytest

from registry.web import markdown
from tests.conftest import write_skill
from tests.web.conftest import NARROW, serving


def test_colours_are_chosen_and_kept(site, tab):
    page = tab(color_scheme="light")
    page.goto(site.base)
    paper = "getComputedStyle(document.body).backgroundColor"
    light = page.evaluate(paper)
    button = page.get_by_role("button", name="Colours")
    button.click()
    assert page.evaluate(paper) == light  # light
    button.click()
    assert button.inner_text() == "Colours: dark"
    dark = page.evaluate(paper)
    assert dark != light
    page.goto(f"{site.base}/skills/sums")
    assert page.evaluate(paper) == dark
    page.get_by_role("button", name="Colours").click()
    assert page.evaluate(paper) == light
    assert page.evaluate("document.documentElement.dataset.theme") is None


def test_a_key_shows_all_keys(site, tab):
    page = tab()
    page.goto(f"{site.base}/stats")
    page.keyboard.press("?")
    page.get_by_role("dialog", name="Keys").get_by_text("go to the search field").wait_for()
    page.keyboard.press("Escape")
    assert not page.get_by_role("dialog").is_visible()
    page.keyboard.press("/")
    page.keyboard.type("what?")
    assert page.get_by_role("dialog").count() == 0


@pytest.fixture
def long(registry, root):
    parts = "".join(
        f"## Part {one} <b>&</b>\n\nText.\n\n```sh\nls {one}\n```\n\n" for one in range(5)
    )
    write_skill(root / "long", body=f"# Long\n\n{parts}", description="Has many parts.")
    registry.sync(str(root), name="mine")
    with serving(registry) as served:
        yield served


@pytest.mark.parametrize("scripts", [True, False])
def test_a_long_skill_has_a_table_of_contents(long, tab, scripts):
    page = tab(NARROW, java_script_enabled=scripts)
    page.goto(f"{long.base}/skills/long")
    page.get_by_text("Contents", exact=True).click()
    page.get_by_role("link", name="Part 4 &").click()
    page.wait_for_url("**#md-part-4-b-b")
    page.locator("[id='md-part-4-b-b']").wait_for()


def test_a_short_skill_has_no_table_of_contents(site):
    assert "Contents" not in site.get("/skills/sums").page.text


def test_code_is_copied_and_that_is_announced(long, tab):
    page = tab(permissions=["clipboard-read", "clipboard-write"])
    page.goto(f"{long.base}/skills/long")
    button = page.get_by_role("button", name="Copy this code").first
    button.focus()
    page.keyboard.press("Enter")
    page.locator("#said", has_text="on the clipboard").wait_for()
    assert page.evaluate("navigator.clipboard.readText()") == "ls 0\n"


def test_styles_and_scripts_are_compressed_and_the_icon_is_where_programs_look(site):
    for path in ("/static/catalogue.css", "/static/htmx.min.js"):
        answer = site.ask(path, Accept_Encoding="gzip")
        assert answer.headers["content-encoding"] == "gzip"
        assert gzip.decompress(answer.body) == site.ask(path).body
    icon = site.ask("/favicon.ico")
    assert (icon.status, icon.headers["content-type"]) == (200, "image/svg+xml")


def meta(page):
    return {
        given.get("name") or given.get("property"): given["content"]
        for tag, given in page.elements
        if tag == "meta" and "content" in given
    }


def test_pages_describe_themselves_to_other_programs(registry, library):
    with serving(registry, public="http://localhost/team") as site:
        page = site.get("/team/skills/sums", utm_source="mail").page
        facts = meta(page)
        assert facts["description"] == facts["og:description"]
        assert facts["description"] == "Adds up the columns of a table."
        assert facts["og:url"] == "http://localhost/team/skills/sums"
        (link,) = [given for tag, given in page.elements if given.get("rel") == "canonical"]
        assert link["href"] == facts["og:url"]
        assert "Claude Code" in meta(site.get("/team/").page)["description"]
    with serving(registry) as site:
        assert "og:url" not in meta(site.get("/skills/sums").page)


def test_task_lists_have_boxes(registry, root):
    write_skill(root / "tasks", body="- [ ] Fold\n- [x] Cut\n- [y] Glue\n\n[ ] No task\n")
    registry.sync(str(root))
    with serving(registry) as site:
        text = site.get("/skills/tasks").page.text
        assert "☐ Fold ☑ Cut [y] Glue [ ] No task" in text


def test_a_line_number_is_a_link_to_its_line(site, tab):
    page = tab()
    page.goto(f"{site.base}/files/sums?path=scripts/sum.py")
    page.locator("#L2 a").click()
    page.wait_for_url("**#L2")
    page.goto(f"{site.base}/files/sums?path=scripts/sum.py#L1")
    assert page.evaluate("document.querySelector(':target').id") == "L1"


def test_results_are_headings(site, tab):
    page = tab()
    page.goto(f"{site.base}/?q=letters")
    assert page.get_by_role("heading", level=3, name="letters-0").is_visible()


def test_words_in_a_script_without_spaces_are_marked(registry, root):
    write_skill(root / "paper", description="用于折叠纸张的技能。")
    registry.sync(str(root))
    with serving(registry) as site:
        assert "<mark>折叠</mark>" in site.get("/", q="折叠").text


def test_a_category_that_is_a_path_shows_its_end(registry, root):
    for part in ("one", "two"):
        write_skill(root / part, extra=f"category: teams/data/{part}/sheets\n")
    registry.sync(str(root))
    with serving(registry) as site:
        page = site.get("/").page
        assert "/?category=teams%2Fdata%2Fone%2Fsheets" in page.links
        assert "…/ one/ sheets" in page.text


def test_a_comparison_on_a_phone_shows_unchanged_lines_once_with_numbers(lively, tab):
    page = tab(NARROW)
    page.goto(f"{lively.base}/history/sums")
    row = page.locator(".diff tr.same").first
    shown = [one for one in row.locator("td").all() if one.is_visible()]
    assert len(shown) == 2  # the number and the line
    assert shown[0].inner_text().strip().isdecimal()


def test_the_source_of_a_skill_is_highlighted(site):
    text = site.get("/files/sums?path=SKILL.md").text
    assert '<span class="p-gh"># Sums</span>' in text
    assert "x = 1" in text


@pytest.mark.parametrize(
    ("name", "text"), [("query.sql", "SELECT 1;"), ("run.py", "import os"), ("x.json", "null")]
)
def test_a_file_is_highlighted_by_its_name(name, text):
    assert 'class="p-k' in markdown.numbered(text, name)
    assert "p-" not in markdown.numbered(text, "notes.unknown")


def test_a_source_that_would_take_the_lexer_long_is_not_highlighted():
    assert "p-gh" in markdown.numbered("# Title\n\n\nText\n", "SKILL.md")
    assert "p-gh" not in markdown.numbered("# Title\n" + "\n" * 3000, "SKILL.md")
