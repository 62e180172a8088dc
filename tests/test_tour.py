"""Pages on which commands are typed, in a realistic home, and none needs a second try."""

import shlex

import pytest

from tests import program
from tests.conftest import REPOSITORY
from tests.home import make, make_upstream
from tests.tour import Shell, answered

pytestmark = pytest.mark.file

PAGES = {
    "README.md": 4,
    "docs/tour.md": 30,
    "docs/how-to/add-remote-skills.md": 10,
    "docs/how-to/back-up-and-restore.md": 7,
    "docs/how-to/install-into-agents.md": 10,
    "docs/how-to/pin-a-version.md": 15,
    "docs/how-to/write-a-personality.md": 4,
    "docs/explanation/ranking.md": 1,
}
"""The pages with ``console`` blocks, and how many commands each types at least."""


@pytest.mark.parametrize(("name", "typed"), PAGES.items())
def test_the_page_shows_what_the_program_says_today(tmp_path, name, typed):
    page = (REPOSITORY / name).read_text(encoding="utf-8")
    home = tmp_path / "ann"
    make(home)
    make_upstream(home)
    scripts = tmp_path / "bin"
    scripts.mkdir()
    script = scripts / "skill-registry"
    with program.command() as command:
        script.write_text(f'#!/bin/sh\nexec {shlex.join(command)} "$@"\n')
        script.chmod(0o755)
        shell = Shell(home, str(scripts))
        today = answered(page, shell)
    assert shell.failed == []
    assert today == page
    assert page.count("\n$ ") > typed


def test_every_page_with_typed_commands_is_among_them():
    documents = [REPOSITORY / "README.md", *(REPOSITORY / "docs").rglob("*.md")]
    found = {
        str(page.relative_to(REPOSITORY))
        for page in documents
        if "\n```console\n" in page.read_text(encoding="utf-8")
    }
    assert found == PAGES.keys()
