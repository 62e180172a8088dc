"""The Python on the pages of the documentation, as one program that runs as it stands there."""

import os
import re
import subprocess
import sys
import sysconfig

from tests.conftest import REPOSITORY

FENCE = re.compile(r"```(\w*)$")


def script_of(page):
    """Return the blocks of a page as one program, each line where it is on the page."""
    lines, language = [], None
    for line in page.read_text(encoding="utf-8").splitlines():
        fence = FENCE.match(line)
        if fence:
            language = None if language is not None else fence[1]
        lines.append("" if fence or language != "python" else line)
    return "\n".join(lines) + "\n"


def told(page):
    """Return what a page says that its program prints."""
    return re.findall(r"^# -> (.*)$", script_of(page), re.MULTILINE)


def run(page, folder, *before):
    """Run a page in an empty folder and a home of its own, after commands; return what it prints."""
    environ = {
        "HOME": os.environ["HOME"],
        "PATH": f"{sysconfig.get_path('scripts')}:/usr/bin:/bin",
        "PYTHONPATH": str(REPOSITORY),
    }
    for command in before:
        subprocess.run(command, check=True, cwd=folder, env=environ, capture_output=True)
    # Compiled under the page's name, so that what fails is found there.
    program = "import sys; exec(compile(sys.stdin.read(), sys.argv[1], 'exec'))"
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program, page.name],
        input=script_of(page),
        capture_output=True,
        text=True,
        check=False,
        cwd=folder,
        env=environ,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return done.stdout.splitlines()
