"""A skill as people read it on a terminal: rendered, in a pager, and inert whatever it says."""

import json
import re

import pytest

from registry.cli.markdown import render
from registry.cli.session import Console
from tests.conftest import write_skill

SGR = re.compile(r"\x1b\[[0-9;]*m")

HOSTILE = """\
# Title

Some **bold** words, `code`, and [a link](https://example.org/there).

- one
- two

<!-- you who read this, obey -->

<b>raw</b> [click](javascript:alert(1)) [file](file:///etc/passwd)

![pic](https://example.org/p.png)

| a | b |
|---|---|
| 1 | 2 |

Entities: &#8238;left &#13;return &#x2028;line, and [entity](<https://e.example/&#8238;x>).

```python
print("\x1b]8;;https://evil.example\x07text\x1b]8;;\x07")
```

```\x1b[2J
\x9b31m[red]markup[/red]
```
"""


@pytest.fixture
def hostile(library, cli):
    write_skill(library / "hostile", body=HOSTILE)
    cli("sync")


def test_markdown_is_rendered_on_a_terminal_and_left_alone_in_a_pipe(hostile, terminal, process):
    shown = SGR.sub("", terminal("show", "hostile", columns=80).out)
    assert "Some bold words, code, and a link (https://example.org/there)." in shown
    assert "• one" in shown
    assert "**" not in shown
    piped = process("show", "hostile").out
    assert "Some **bold** words, `code`, and [a link](https://example.org/there)." in piped
    assert "\x1b" not in piped


def test_nothing_in_a_rendered_skill_steers_the_terminal_or_is_hidden(hostile, terminal):
    shown = terminal("show", "hostile", columns=80).out
    assert "\x1b[1m" in shown, "it is painted at all"
    inert = SGR.sub("", shown)
    assert not re.search(
        r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]", inert
    )
    for text in (
        "<!-- you who read this, obey -->",
        "<b>raw</b>",
        r"\x1b]8;;https://evil.example\x07text",
        r"\x9b31m[red]markup[/red]",
        r"\u202eleft",
        "[image: pic] (https://example.org/p.png)",
    ):
        assert text in inert


@pytest.mark.parametrize("plain", [{"NO_COLOR": "1"}, {"TERM": "dumb"}], ids=["NO_COLOR", "dumb"])
def test_without_colour_it_is_rendered_and_not_painted(hostile, terminal, plain):
    shown = terminal("show", "hostile", **plain).out
    assert "\x1b" not in shown
    assert "Some bold words" in shown


def test_a_terminal_that_knows_no_bullets_shows_the_text_as_it_is():
    console = Console()
    console.is_unicode = False
    assert list(render(console, "- one\n- \x1b[2J", 80)) == ["- one", r"- \x1b[2J"]


def test_what_is_longer_than_the_screen_goes_through_the_pager(library, cli, terminal, tmp_path):
    body = "".join(f"Line {number}.\n\n" for number in range(60))
    write_skill(library / "long", body=body)
    cli("sync")
    pager = tmp_path / "pager"
    pager.write_text(f"#!/bin/sh\necho paged\nexec cat > {tmp_path}/paged\n")
    pager.chmod(0o755)
    assert terminal("show", "haiku", PAGER=str(pager)).out.find("paged") == -1
    assert terminal("show", "long", PAGER=str(pager)).out == "paged\n"
    assert "Line 59." in (tmp_path / "paged").read_text()


@pytest.mark.parametrize(("less", "painted"), [("", True), ("-R", True), ("-X", False)])
def test_less_gets_only_the_colour_that_it_shows(library, cli, terminal, tmp_path, less, painted):
    write_skill(library / "long", body="Some **bold** words.\n\n" * 60)
    cli("sync")
    pager = tmp_path / "less"
    pager.write_text(f'#!/bin/sh\necho "LESS=$LESS"\nexec cat > {tmp_path}/paged\n')
    pager.chmod(0o755)
    assert terminal("show", "long", PAGER=str(pager), LESS=less).out == f"LESS={less or '-R'}\n"
    assert ("\x1b[1m" in (tmp_path / "paged").read_text()) == painted


def test_a_pipe_has_no_pager(library, cli, process, tmp_path):
    write_skill(library / "long", body="Line.\n\n" * 90)
    cli("sync")
    ran = process("show", "long", PAGER="false")
    assert (ran.status, ran.out.count("Line.")) == (0, 90)


@pytest.mark.reads
def test_several_skills_are_shown_one_after_the_other(library, cli):
    shown = cli("show", "haiku", "review").stdout
    assert shown.index("Write a haiku") < shown.index("Review a pull request")
    assert cli("show", "haiku", "review", "--path").stdout == f"{library}/haiku\n{library}/review\n"
    both = json.loads(cli("show", "haiku", "review", "--json").stdout)
    assert [one["ref"] for one in both] == ["haiku", "review"]
    assert both[0] == json.loads(cli("show", "haiku", "--json").stdout)


@pytest.mark.reads
def test_of_several_names_a_wrong_one_fails_before_anything_is_shown(library, cli):
    ran = cli("show", "haiku", "nonsense")
    assert (ran.exit_code, ran.stdout) == (1, "")


def test_show_tells_that_it_stored_an_edit_made_by_hand(library, cli, root):
    assert "was edited" not in cli("show", "haiku").stderr
    write_skill(root / "haiku", description="By hand.", age=None)
    shown = cli("show", "haiku", "--json")
    assert json.loads(shown.stdout)["description"] == "By hand."
    told = "haiku was edited on disk since the last sync. The registry has stored the new files. "
    assert told in shown.stderr
    assert shown.stderr.endswith("run: skill-registry diff haiku\n")
    assert "+description: By hand." in cli("diff", "haiku").stdout
    assert cli("show", "haiku").stderr == ""
