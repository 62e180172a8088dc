"""The session of one run: its streams, options and registry."""

import os
import sys
from codecs import lookup
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, suppress
from enum import IntEnum
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING, Final, Literal, Self, TextIO, TypeVar

from registry.cli import escape
from registry.errors import DatabaseMissing
from registry.model import record, shallow_record

if TYPE_CHECKING:
    from registry.api import SkillRegistry
    from registry.settings import Settings


Style = Literal["bold", "dim", "red", "green", "yellow", "cyan", "match"]

T = TypeVar("T")

DEFAULT_WIDTH: Final = 80

LINES_AT_ONCE: Final = 100
"""Number of lines in one write."""

_CODES: Final[Mapping[str, str]] = {
    "bold": "1",
    "dim": "2",
    "red": "31",
    "green": "32",
    "yellow": "33",
    "cyan": "36",
    "match": "1;33",
}


class Console:
    """The output streams of a run; they escape characters that their encoding doesn't have."""

    def __init__(self, environ: Mapping[str, str] = os.environ) -> None:
        self.out: TextIO = sys.stdout or _nowhere()
        self.err: TextIO = sys.stderr or _nowhere()
        for stream in (self.out, self.err):
            reconfigure = getattr(stream, "reconfigure", None)
            if reconfigure is not None:
                reconfigure(errors="backslashreplace")
        self.is_terminal = _is_terminal(self.out)
        self.err_is_terminal = _is_terminal(self.err)
        self._environ = environ
        plain = bool(environ.get("NO_COLOR")) or environ.get("TERM") == "dumb"
        self.is_colored = self.is_terminal and not plain
        self._err_color = self.err_is_terminal and not plain
        self.is_unicode = _is_unicode(self.out)
        self.ellipsis = "\u2026" if self.is_unicode else "..."

    @property
    def width(self) -> int:
        """The width of the terminal in columns; `DEFAULT_WIDTH` without a terminal."""
        with suppress(ValueError):
            if (columns := int(self._environ.get("COLUMNS") or 0)) > 0:
                return columns
        with suppress(OSError, ValueError, AttributeError):
            return os.get_terminal_size(self.out.fileno()).columns or DEFAULT_WIDTH
        return DEFAULT_WIDTH

    @property
    def height(self) -> int | None:
        """The height of the terminal in lines; None without a terminal."""
        with suppress(OSError, ValueError, AttributeError):
            return os.get_terminal_size(self.out.fileno()).lines or None
        return None

    def style(self, text: str, style: Style | None) -> str:
        """Return text with a style, if stdout is a terminal with colours."""
        return f"\x1b[{_CODES[style]}m{text}\x1b[0m" if style and self.is_colored and text else text

    def paint_diff(self, line: str) -> str:
        """Return a line of a unified diff, escaped and painted; a byte order mark is visible."""
        shown = escape.text(line).replace("\ufeff", "<U+FEFF>")
        if line.startswith(("+++", "---")):
            return self.style(shown, "bold")
        if line.startswith("@@"):
            return self.style(shown, "cyan")
        return self.style(shown, {"+": "green", "-": "red"}.get(line[:1]))  # type: ignore[arg-type]

    def write(self, lines: Iterable[str], *, json_text: bool = False) -> None:
        """Write lines to stdout: escaped text, or with ``json_text`` JSON that this method escapes.

        It writes `LINES_AT_ONCE` lines at a time, to limit the memory. It doesn't print a single
        empty line.
        """
        rest = iter(lines)
        some = list(islice(rest, LINES_AT_ONCE))
        if some == [""]:
            return
        while some:
            text = "\n".join(map(escape.json_text, some) if json_text else some)
            self.out.write(text + "\n")
            some = list(islice(rest, LINES_AT_ONCE))

    def page(self, lines: Iterable[str]) -> None:
        """Write lines to stdout; if they don't fit on the terminal, through a pager."""
        shown = list(lines)
        height = self.height if self.is_terminal and _is_terminal(sys.stdin) else None
        if height is None or len(shown) < height:
            self.write(shown)
            return
        from click import echo_via_pager

        self.flush()
        # The text has colours if the pager is less, which can show them.
        echo_via_pager("\n".join(shown) + "\n")

    def write_bytes(self, data: bytes) -> None:
        """Write bytes to stdout unchanged."""
        self.out.flush()
        self.out.buffer.write(data)
        self.out.buffer.flush()

    def note(self, text: str, style: Style | None = None) -> None:
        """Write a message (escaped text) to stderr."""
        if style and self._err_color:
            text = f"\x1b[{_CODES[style]}m{text}\x1b[0m"
        self.flush()  # write the results before the messages about them
        self.err.write(text + "\n")

    def error(self, message: str) -> None:
        """Write an error message to stderr."""
        label = "\x1b[31mError:\x1b[0m" if self._err_color else "Error:"
        self.err.write(f"{label} {escape.text(message)}\n")

    def json(self, value: object) -> None:
        """Write a JSON value on several lines to stdout, with a final line break."""
        import json

        self.write([json.dumps(value, ensure_ascii=not self.is_unicode, indent=2)], json_text=True)

    def json_lines(self, values: Iterable[object]) -> Iterator[str]:
        """Yield each value as a line of JSON in the encoding of stdout.

        Control characters aren't escaped yet.
        """
        from json import JSONEncoder

        # The encoder converts dataclass values into JSON objects, one after another.
        return map(
            JSONEncoder(ensure_ascii=not self.is_unicode, default=shallow_record).encode, values
        )

    def flush(self) -> None:
        """Flush stdout."""
        self.out.flush()


def batches(items: Iterable[T]) -> Iterator[list[T]]:
    """Yield items in lists of `LINES_AT_ONCE`."""
    rest = iter(items)
    while some := list(islice(rest, LINES_AT_ONCE)):
        yield some


def _nowhere() -> TextIO:
    """Return a replacement for a stream that was already closed when the program started."""
    return open(os.devnull, "w", encoding="utf-8")  # stays open until the process ends


def _is_terminal(stream: TextIO) -> bool:
    try:
        return stream.isatty()
    except ValueError:  # the stream is closed
        return False


def _is_unicode(stream: TextIO) -> bool:
    try:
        return lookup(stream.encoding).name.startswith("utf-8")
    except (LookupError, TypeError):
        return False


FETCHING: Final = "registry.remotes.fetch"
"""Name of the logger for errors that stop only the fetch of one source."""


class Status(IntEnum):
    """The exit statuses of the program."""

    DONE = 0
    FAILED = 1
    USAGE = 2
    DATABASE = 3
    INTERRUPTED = 130


class Session:
    """Opens the registry when a command first needs it; ``style`` is the output format."""

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
        """The registry that the global options name. Raises `RegistryError`.

        If the user gave a path, the file must exist, unless the command ``starts_new`` databases.
        If there is no file at the default path, the registry is empty.
        """
        from registry.api import SkillRegistry

        opened = SkillRegistry.open(self.db, settings=self.settings, upgrade=self.upgrades)
        is_file = not opened.core.host
        if self.db and not self.starts_new and is_file and not os.path.lexists(opened.path):
            opened.close()
            raise DatabaseMissing(path=opened.path, name="")
        # Lists themselves report that the registry is empty, and print the next command.
        opened.core.tell_no_more_that_it_is_empty()
        opened.core.on_warning = lambda text: self.console.note(escape.text(text), "yellow")
        if self.verbose:
            self._log()
        return opened

    def _log(self) -> None:
        """Until the session ends, print the traceback of each error that stops only one source."""
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
        """The settings from the settings file. Raises `SettingsProblem`."""
        from pathlib import Path

        from registry.settings import load_settings

        return load_settings(Path(os.path.expanduser(self.config)) if self.config else None)

    @property
    def as_json(self) -> bool:
        """True if the output format is JSON."""
        return self.style == "json"

    @property
    def is_for_people(self) -> bool:
        """False if the user chose JSON, JSON lines or names as the output format."""
        return self.style in {None, "table"}

    def answer(self, value: object, lines: Iterable[str]) -> None:
        """Print the result of a command: ``value`` as JSON, or ``lines`` of escaped text."""
        if self.as_json:
            self.console.json(record(value))
        else:
            self.console.write(lines)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Close the registry if it is open; it can be opened again afterwards."""
        self._ending.close()
        if "registry" in self.__dict__:
            self.__dict__.pop("registry").close()
