"""What one run of the program works with: its streams, its options, its registry."""

import os
from collections.abc import Iterable
from contextlib import ExitStack
from functools import cached_property
from typing import TYPE_CHECKING, Final, Self

from registry.cli import escape
from registry.cli.console import Console
from registry.errors import DatabaseMissing
from registry.model.values import record

if TYPE_CHECKING:
    from registry.api import SkillRegistry
    from registry.settings import Settings

FETCHING: Final = "registry.remotes.fetch"
"""The logger of errors that stop the fetch of one source."""


class Session:
    """Opens the registry when a command first needs it; ``style`` is the format asked for."""

    def __init__(self, console: Console | None = None) -> None:
        self.console = console or Console()
        self.db: str | None = None
        self.config: str | None = None
        self.verbose = False
        self.style: str | None = None
        self.starts_new = True
        self.upgrades = False
        self._ending = ExitStack()

    @cached_property
    def registry(self) -> "SkillRegistry":
        """The registry that the global options mean. Raises `RegistryError`.

        A file that was named and is not there is a slip, unless the command ``starts_new`` ones.
        The default file that is not there yet is an empty registry.
        """
        from registry.api import SkillRegistry

        opened = SkillRegistry.open(self.db, settings=self.settings, upgrade=self.upgrades)
        is_file = not opened.core.host
        if self.db and not self.starts_new and is_file and not os.path.lexists(opened.path):
            opened.close()
            raise DatabaseMissing(path=opened.path, name="")
        opened.core.tell_no_more_that_it_is_empty()  # listings say it, with the next command
        opened.core.on_warning = lambda text: self.console.note(escape.text(text), "yellow")
        if self.verbose:
            self._log()
        return opened

    def _log(self) -> None:
        """Print the tracebacks of errors that stop one source only, until the session ends."""
        import logging

        console, logger = self.console, logging.getLogger(FETCHING)

        class Printed(logging.Handler):
            def emit(self, record: logging.LogRecord) -> None:
                console.note(escape.text(self.format(record)))

        handler = Printed()
        logger.addHandler(handler)
        logger.setLevel(logging.DEBUG)
        self._ending.callback(logger.setLevel, logging.NOTSET)
        self._ending.callback(logger.removeHandler, handler)

    @cached_property
    def settings(self) -> "Settings":
        """The settings file's. Raises `SettingsProblem`."""
        from pathlib import Path

        from registry.settings import load_settings

        return load_settings(Path(os.path.expanduser(self.config)) if self.config else None)

    @property
    def as_json(self) -> bool:
        """Whether JSON was asked for, as one value."""
        return self.style == "json"

    def answer(self, value: object, lines: Iterable[str]) -> None:
        """Print the result of a command: the value as JSON, or ``lines`` of escaped text."""
        if self.as_json:
            self.console.json(record(value))
        else:
            self.console.write(lines)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Close the registry, if it was opened; it opens again when it is needed again."""
        self._ending.close()
        if "registry" in self.__dict__:
            self.__dict__.pop("registry").close()
