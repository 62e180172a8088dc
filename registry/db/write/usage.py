"""Count in memory how often tools use each skill, and write the counts every few seconds.

So counting doesn't slow tools down. The statements are text: importing SQLAlchemy only for counting
would slow down each tool call in a separate process.
"""

import json
import threading
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, Protocol, TypeAlias, get_args

from registry.db.forks import reopen_in_child
from registry.db.interface import Backend, Reader, Select, UsageRow
from registry.errors import DatabaseProblem
from registry.text import utc_now

if TYPE_CHECKING:
    from sqlalchemy import Connection

UsageEvent: TypeAlias = Literal["listed", "found", "read"]

EVENTS: Final[tuple[UsageEvent, ...]] = get_args(UsageEvent)

WRITE_AFTER: Final = 5.0
"""Seconds between the first unwritten count and the next write."""

WAIT: Final = 1.0
"""Maximum time to wait for other writers, in seconds.

After this time, the counts stay in memory for the next write. If the process exits, they are lost.
"""

_COUNTED: Final = """
(SELECT CAST({0} AS BIGINT) AS listed, CAST({1} AS BIGINT) AS found, CAST({2} AS BIGINT) AS read,
    {3} AS last_listed_at, {4} AS last_found_at, {5} AS last_read_at, {6} AS source, {7} AS folder
  FROM {each} e) c
  JOIN sources src ON src.name = c.source
  JOIN skills s ON s.source_id = src.id AND s.folder = c.folder
WHERE s.live = 1 GROUP BY s.uid ORDER BY s.uid
"""
"""SQL for the counted skills, in an order that is the same for all writers, to prevent deadlocks.

The parameter is a JSON array with an array for each skill. The elements of a skill's array are: the
counts listed, found and read, the last time of each, the name of the source, and the folder.
"""

_ADD: Final = """
INSERT INTO usage (uid, listed, found, read, last_listed_at, last_found_at, last_read_at)
SELECT s.uid, sum(c.listed), sum(c.found), sum(c.read),
  max(c.last_listed_at), max(c.last_found_at), max(c.last_read_at)
FROM {counted}
ON CONFLICT (uid) DO UPDATE SET
  listed = usage.listed + excluded.listed,
  found = usage.found + excluded.found,
  read = usage.read + excluded.read,
  last_listed_at = coalesce(excluded.last_listed_at, usage.last_listed_at),
  last_found_at = coalesce(excluded.last_found_at, usage.last_found_at),
  last_read_at = coalesce(excluded.last_read_at, usage.last_read_at)
"""

_ADD_OF_A_DAY: Final = """
INSERT INTO usage_days (day, uid, listed, found, read)
SELECT ?, s.uid, sum(c.listed), sum(c.found), sum(c.read)
FROM {counted}
ON CONFLICT (day, uid) DO UPDATE SET
  listed = usage_days.listed + excluded.listed,
  found = usage_days.found + excluded.found,
  read = usage_days.read + excluded.read
"""


class Located(Protocol):
    """An object with the source and folder of a skill."""

    @property
    def source(self) -> str:
        """The name of the source."""

    @property
    def folder(self) -> str:
        """The folder in the source."""


class SkillPlace(NamedTuple):
    """The name of a skill's source, and the skill's folder in the source."""

    source: str
    folder: str


def statements(reader: Reader, rows: Sequence[UsageRow]) -> list[Select]:
    """Return the statements that add usage counts, with their values."""
    items = [reader.json_item.format(number) for number in range(8)]
    of_each = _COUNTED.format(*items, each=reader.json_each.format("?"))
    counted = json.dumps(rows)
    return [
        (_ADD.format(counted=of_each), [counted]),
        (_ADD_OF_A_DAY.format(counted=of_each), [utc_now()[:10], counted]),
    ]


class Usage:
    """The unwritten usage counts of one process for a database; threads can share the object."""

    def __init__(self, backend: Backend, *, enabled: bool) -> None:
        self._backend = backend
        self._enabled = enabled
        self.forked(idle=True)
        reopen_in_child(self)

    def forked(self, *, idle: bool) -> None:  # noqa: ARG002  # there is nothing to close
        """Discard the counts in a forked child; the parent still has them and will write them."""
        self._lock = threading.Lock()
        self._writing = threading.Lock()
        self._waiting: dict[tuple[str, str], list[Any]] = {}
        self._timer: threading.Timer | None = None

    def listed(self, skills: Sequence[Located]) -> None:
        """Add these skills to the counts of skills that tools listed."""
        self._note("listed", skills)

    def found(self, skills: Sequence[Located]) -> None:
        """Add these skills to the counts of skills that a tool's search found."""
        self._note("found", skills)

    def read(self, source: str, folder: str) -> None:
        """Count that a tool read this skill or one of its files."""
        self._note("read", [SkillPlace(source, folder)])

    def write(self) -> None:
        """Write the counts to the database; if it is busy or unusable, keep them in memory."""
        with self._writing:
            with self._lock:
                waiting, self._waiting, self._timer = self._waiting, {}, None
            if not waiting or self._backend.reader.empty:
                return
            rows = [(*row, *place) for place, row in waiting.items()]
            try:
                done = self._backend.add_usage(rows, WAIT)
            except (DatabaseProblem, OSError):
                done = False
            if not done:
                self._put_back(waiting)

    def close(self) -> None:
        """Write the remaining counts."""
        with self._lock:
            if self._timer is not None:
                self._timer.cancel()
        self.write()

    def _put_back(self, unwritten: dict[tuple[str, str], list[Any]]) -> None:
        with self._lock:
            for place, later in self._waiting.items():
                row = unwritten.setdefault(place, [0, 0, 0, None, None, None])
                for at in range(len(EVENTS)):
                    row[at] += later[at]
                    row[at + 3] = later[at + 3] or row[at + 3]
            self._waiting = unwritten

    def _note(self, event: UsageEvent, skills: Sequence[Located]) -> None:
        if not self._enabled or not skills:
            return
        at, now = EVENTS.index(event), utc_now()
        with self._lock:
            for one in skills:  # first the counts of all events, then the last times of all events
                place = one.source, one.folder
                row = self._waiting.setdefault(place, [0, 0, 0, None, None, None])
                row[at] += 1
                row[at + 3] = now
            if self._timer is None:
                self._timer = threading.Timer(WRITE_AFTER, self.write)
                self._timer.daemon = True
                self._timer.start()


DAYS: Final = 400
"""Number of days for which daily counts are stored: a year, and a month to compare with."""


def drop_old_days(connection: "Connection", now: str) -> None:
    """Delete the daily counts that are older than `DAYS` days at ``now``; the totals stay.

    On a server, rows that a reader has locked stay until a later call.
    """
    from registry.db.write.statements import execute

    first = datetime.fromisoformat(now) - timedelta(days=DAYS)
    locked = " FOR UPDATE SKIP LOCKED" if connection.dialect.name == "postgresql" else ""
    old = f"SELECT day, uid FROM usage_days WHERE day < ?{locked}"
    execute(connection, f"DELETE FROM usage_days WHERE (day, uid) IN ({old})", f"{first:%Y-%m-%d}")
