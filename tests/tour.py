"""Type the commands of a page in a realistic home, and write the answers into the page.

``python -m tests.tour PAGE...`` updates the answers. In ``console`` blocks the text after ``$`` is
typed, and the lines below it are what was printed. A ``yaml`` block whose first line is a comment
with a path below ``~`` is written to that file. Each page has a home of its own.
"""

import os
import re
import shlex
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterator
from pathlib import Path

from tests.home import make, make_upstream

FINDING = (
    "skill-registry check",
    "skill-registry check ~/.codex/skills",
    "skill-registry show invoices",
    "skill-registry pull",
    "skill-registry pull tea@1.0.0 --to dinner/skills",
)
"""What is typed to learn that something is wrong, and says so by its exit status."""

_BLOCK = re.compile(r"^```(console|yaml)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_FILE = re.compile(r"# ~/(\S+)\n")
_TYPED = re.compile(r"^\$ (.*)$", re.MULTILINE)


class Shell:
    """Where commands are typed: a home, a folder, and no settings but these.

    ``scripts``: the folder of the program, if not where it is installed.
    """

    def __init__(self, home: Path, scripts: str | None = None) -> None:
        self.home = self.folder = home
        self.failed: list[str] = []
        self._scripts = scripts or sysconfig.get_path("scripts")
        self.environ = {
            "HOME": str(home),
            "PATH": f"{self._scripts}:/usr/bin:/bin",
            "COLUMNS": "88",
            "LANG": "C.UTF-8",
            "TZ": "UTC",
        }

    def type(self, line: str) -> str:
        """Return what a line prints."""
        words = shlex.split(line)
        if words[0] == "cd":
            self.folder = Path(words[1].replace("~", str(self.home), 1))
            return ""
        done = subprocess.run(  # what the page says
            ["/bin/sh", "-c", line],
            cwd=self.folder,
            env=self.environ,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        if done.returncode != (line in FINDING):
            self.failed.append(f"{line}: {done.returncode}\n{done.stdout}")
        return self._steady(done.stdout)

    def _steady(self, text: str) -> str:
        """Return ``text`` with what is another each time as it is on the page."""
        text = text.replace(self._scripts, "/home/ann/.local/bin")
        text = text.replace(str(self.home), "/home/ann").replace("\ufeff", "<U+FEFF>")
        text = re.sub(r"20\d\d-\d\d-\d\d([T ])\d\d:\d\d(:\d\d)?", _moment, text)
        text = re.sub(r"\(\d+\.\d s\)", "(0.1 s)", text)
        text = re.sub(r"sha256:[0-9a-f]{64}", "sha256:9f2c...", text)
        return re.sub(r"\b[0-9a-f]{16}\b", "4a1be07c5d2f9e36", text)


def _moment(match: re.Match[str]) -> str:
    return f"2026-03-02{match[1]}09:00{':00' if match[2] else ''}"


def answered(page: str, shell: Shell) -> str:
    """Return the page with the answers of today."""

    def answers(block: re.Match[str]) -> str:
        if block[1] == "console":
            return "```console\n" + "\n".join(_answers(block[2], shell)) + "```"
        if named := _FILE.match(block[2]):
            file = shell.home / named[1]
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(block[2], encoding="utf-8")
        return block[0]

    return _BLOCK.sub(answers, page)


def _answers(block: str, shell: Shell) -> Iterator[str]:
    for line in _TYPED.findall(block):
        said = shell.type(line)
        yield f"$ {line}\n{said}" if said else f"$ {line}\n"


def main() -> None:
    """Update the pages that are named."""
    for name in sys.argv[1:]:
        page = Path(name)
        with tempfile.TemporaryDirectory() as base:
            home = Path(os.path.realpath(base)) / "home"
            make(home)
            make_upstream(home)
            shell = Shell(home)
            text = answered(page.read_text(encoding="utf-8"), shell)
        if shell.failed:
            sys.exit("\n".join(shell.failed))
        page.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
