"""Compare files line by line, within the limits of a page."""

import difflib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from time import thread_time
from typing import Any, Final, Literal, TypeAlias

from registry.errors import ContentMissing, FileTooLarge
from registry.mcp.fairness import check_client
from registry.model import Value

FILES: Final = 50
"""Maximum number of files to compare on a page."""

LINES: Final = 3000
"""Maximum number of lines of a compared file.

The time of a comparison increases faster than the number of lines.
"""

BYTES: Final = 2 << 20
"""Maximum total size of the files that one page compares, in bytes.

The old and the new version of a file both count.
"""

ROWS: Final = 10_000
"""Maximum number of rows of comparisons on a page."""

SECONDS: Final = 1.0
"""Processor time for the comparisons of one page, in seconds."""

NO_ROOM: Final = "This comparison is too long for the page. To see it, run: skill-registry diff"

AROUND: Final = 3
"""Number of unchanged lines to show before and after a change."""


@dataclass(frozen=True, slots=True)
class Row(Value):
    """One row of a comparison, with a line from each version.

    A line is None if its version doesn't have it. A ``gap`` is a row that replaces ``skipped``
    unchanged lines.
    """

    kind: Literal["same", "changed", "gap"]
    old_line: int | None = None
    old: str | None = None
    new_line: int | None = None
    new: str | None = None
    skipped: int = 0


@dataclass(frozen=True, slots=True)
class FileDiff(Value):
    """The changes in a file. If there are no rows, ``note`` gives the reason."""

    path: str
    rows: tuple[Row, ...]
    note: str = ""


class NoRoom(Exception):
    """The limits of a page's comparisons are exhausted."""


class Room:
    """The remaining limits for one page's comparisons: bytes, rows, and seconds of CPU time."""

    def __init__(self) -> None:
        self._bytes = BYTES
        self._rows = ROWS
        self._end = thread_time() + SECONDS

    def take(self, *, size: int = 0, rows: int = 0) -> None:
        """Subtract bytes and rows from the limits.

        Raises `NoRoom` if a limit is exhausted, and `ClientGone` if the visitor has left.
        """
        check_client()
        self._bytes -= size
        self._rows -= rows
        if min(self._bytes, self._rows) < 0 or thread_time() > self._end:
            raise NoRoom


class _Matcher(difflib.SequenceMatcher[str]):
    """A matcher that checks the limits at each step.

    For some texts, all steps would take minutes.
    """

    room: Room

    def find_longest_match(self, *where: Any, **named: Any) -> difflib.Match:
        """Check the limits, then do one step of the comparison."""
        self.room.take()
        return super().find_longest_match(*where, **named)


def compare(path: str, old: bytes | None, new: bytes | None, room: Room | None = None) -> FileDiff:
    """Compare two versions of a file; a version is None if the file didn't exist."""
    try:
        was, now = [(data or b"").decode().splitlines() for data in (old, new)]
    except UnicodeDecodeError:
        return FileDiff(path, (), "Binary file changed.")
    if max(len(was), len(now)) > LINES:
        return FileDiff(path, (), "This file is too long to compare here. Run: skill-registry diff")
    note = "" if was != now else "Only the line endings changed."
    try:
        return FileDiff(path, tuple(_rows(was, now, room or Room())), note)
    except NoRoom:
        return FileDiff(path, (), NO_ROOM)


def _rows(was: Sequence[str], now: Sequence[str], room: Room) -> Iterator[Row]:
    matcher = _Matcher(None, was, now)
    matcher.room = room
    done = 0
    for group in matcher.get_grouped_opcodes(AROUND):
        if skipped := group[0][1] - done:
            yield Row("gap", skipped=skipped)
        for tag, i1, i2, j1, j2 in group:
            room.take(rows=max(i2 - i1, j2 - j1))
            pairs = zip_longest(range(i1, i2), range(j1, j2))
            for left, right in pairs:
                yield Row(
                    "same" if tag == "equal" else "changed",
                    None if left is None else left + 1,
                    None if left is None else was[left],
                    None if right is None else right + 1,
                    None if right is None else now[right],
                )
        done = group[-1][2]
    if done and (skipped := len(was) - done):
        yield Row("gap", skipped=skipped)


ComparedFile: TypeAlias = tuple[object, Callable[[], bytes | None]]
"""A value that changes if the content of a file changes, and a function that reads the file."""

NO_FILE: Final[ComparedFile] = object(), lambda: None


def diffs(
    was: Mapping[str, ComparedFile],
    now: Mapping[str, ComparedFile],
    room: Room | None = None,
    names: tuple[str, str] | None = None,
) -> Iterator[FileDiff]:
    """Yield the changes from the files ``was`` to the files ``now``, by path.

    If ``names`` of both sides are given, the content of a file that only one side has isn't shown.
    """
    room = room or Room()
    changed = [
        path
        for path in sorted(was.keys() | now.keys())
        if was.get(path, NO_FILE)[0] != now.get(path, NO_FILE)[0]
    ]
    for path in changed[:FILES]:
        if names is not None and not (path in was and path in now):
            yield FileDiff(path, (), f"Only in {names[path in now]}.")
            continue
        try:
            room.take()
            before, after = (some.get(path, NO_FILE)[1]() for some in (was, now))
            room.take(size=len(before or b"") + len(after or b""))
        except (ContentMissing, FileTooLarge) as error:
            yield FileDiff(path, (), str(error))
        except NoRoom:
            yield FileDiff(path, (), NO_ROOM)
        else:
            yield compare(path, before, after, room)
    if len(changed) > FILES:
        yield FileDiff(f"{len(changed) - FILES} more files", (), "Not compared on this page.")
