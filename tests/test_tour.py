"""Pages on which commands are typed, in a realistic home, and none needs a second try."""

import shlex

import pytest

from tests import program
from tests.conftest import REPOSITORY
from tests.home import make, make_upstream
from tests.tour import Shell, answered

pytestmark = pytest.mark.file

PAGES = [("tour.md", 30), ("agents.md", 10), ("remote.md", 12)]


@pytest.mark.parametrize(("name", "typed"), PAGES)
def test_the_page_shows_what_the_program_says_today(tmp_path, name, typed):
    page = (REPOSITORY / "docs" / name).read_text(encoding="utf-8")
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
