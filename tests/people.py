"""People who type commands: each has a home, works in a folder of it, and reads the answers."""

import os
import shlex
from pathlib import Path

from tests import program
from tests.home import git
from tests.program import Ran


class Person:
    """Somebody at a prompt. What is typed is written without the program's name in front.

    ``variables`` are those of their environment. ``~`` is the home, as in a shell.
    """

    def __init__(self, home: Path, **variables: str) -> None:
        self.home = self.folder = home
        self.variables = {"HOME": str(home), **variables}
        home.mkdir(parents=True, exist_ok=True)

    def goes_to(self, folder: str) -> None:
        """Work in a folder from now on."""
        self.folder = self.path(folder)

    def path(self, name: str) -> Path:
        """Return a path as the shell means it."""
        return self.folder / name.replace("~", str(self.home), 1)

    def types(self, line: str) -> Ran:
        """Return what a command printed; it has to succeed."""
        ran = self._ran(line)
        assert ran.status == 0, f"{line}: {ran.status}\n{ran.out}{ran.err}"
        return ran

    def fails(self, line: str, status: int = 1) -> Ran:
        """Return what a command printed; it has to end with this status."""
        ran = self._ran(line)
        assert ran.status == status, f"{line}: {ran.status}\n{ran.out}{ran.err}"
        return ran

    def _ran(self, line: str) -> Ran:
        words = [word.replace("~", str(self.home), 1) for word in shlex.split(line)]
        environ = {**os.environ, **self.variables}
        return program.run(words, environ=environ, cwd=self.folder, before=program.patient)

    def commits(self, folder: str, message: str) -> None:
        """Commit all files of a checkout."""
        git(self.path(folder), "add", "-A")
        git(self.path(folder), "commit", "-qm", message)
