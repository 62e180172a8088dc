"""Show a progress bar on a terminal during long operations."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, Self

from registry.cli import escape
from registry.cli.session import Console

if TYPE_CHECKING:
    from rich.progress import Progress

PATIENCE: Final = 0.5
"""Time before a progress bar is drawn, in seconds; shorter operations show no bar."""


class SyncProgress:
    """Shows the progress of a sync or copy; draws nothing if stderr isn't a terminal."""

    def __init__(self, console: Console, clock: Callable[[], float] = time.monotonic) -> None:
        self._watched = console.err_is_terminal
        self._console = console
        self._clock = clock
        self._started = clock()
        self._bar: Progress | None = None
        self._lock = threading.Lock()
        self._said: tuple[str, int, int | None] | None = None
        self._late: threading.Timer | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._watched = False
            if self._late is not None:
                self._late.cancel()
            if self._bar is not None:
                self._bar.stop()

    def __call__(self, doing: str, done: int, total: int | None) -> None:
        """Update the bar; during a long step, a timer draws the bar again."""
        with self._lock:
            if not self._watched:
                return
            self._said = doing, done, total
            if self._clock() - self._started >= PATIENCE:
                self._draw()
            elif self._late is None:
                self._late = threading.Timer(min(PATIENCE, threading.TIMEOUT_MAX), self._draw_late)
                self._late.daemon = True
                self._late.start()

    def _draw_late(self) -> None:
        with self._lock:
            if self._watched:
                self._draw()

    def _draw(self) -> None:
        assert self._said is not None  # noqa: S101  # `__call__` sets this before anything is drawn
        doing, done, total = self._said
        if self._bar is None:
            self._bar = self._make()
            self._bar.add_task("", total=None)
        task, text = self._bar.task_ids[0], escape.line(doing)
        self._bar.update(task, description=text, total=total, completed=done)
        self._bar.start()

    def _make(self) -> "Progress":
        from rich.console import Console as RichConsole
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

        return Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=24),
            MofNCompleteColumn(),
            console=RichConsole(file=self._console.err),
            transient=True,
        )


@contextmanager
def waiting(console: Console, doing: str) -> Iterator[Callable[[], None]]:
    """Show a spinner on a terminal if the block takes longer than `PATIENCE`.

    Yields a function that stops the spinner; call it before a prompt.
    """
    if not console.err_is_terminal:
        yield lambda: None
        return
    over = threading.Event()
    watcher = threading.Thread(target=_watch, args=(console, doing, over), daemon=True)
    watcher.start()

    def end() -> None:
        over.set()
        watcher.join()

    try:
        yield end
    finally:
        end()


def _watch(console: Console, doing: str, over: threading.Event) -> None:
    if over.wait(min(PATIENCE, threading.TIMEOUT_MAX)):
        return
    from rich.console import Console as RichConsole
    from rich.text import Text

    shown = RichConsole(file=console.err)
    with shown.status(Text(f"{doing} ...")):
        over.wait()
