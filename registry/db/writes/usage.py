"""Forget what tools did long ago; see `registry.db.usage` for how it is counted."""

from datetime import datetime, timedelta
from typing import Final

from sqlalchemy import Connection, delete, select, tuple_

from registry.db.schema import usage_days

DAYS: Final = 400
"""For how many days counts are kept: a year, and the month to compare it with."""


def drop_old_days(connection: Connection, now: str) -> None:
    """Forget the counts of days that are too long before ``now``; the totals stay.

    A row that a reader has locked on a server stays until the next time.
    """
    first = datetime.fromisoformat(now) - timedelta(days=DAYS)
    key = usage_days.c.day, usage_days.c.uid
    old = select(*key).where(usage_days.c.day < f"{first:%Y-%m-%d}")
    old = old.with_for_update(skip_locked=True)
    connection.execute(delete(usage_days).where(tuple_(*key).in_(old)))
