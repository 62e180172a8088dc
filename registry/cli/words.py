"""Format numbers, sizes and times for people."""

import time
from collections.abc import Sequence
from typing import Final

from registry.cli.console import Style

STATUS_STYLES: Final[dict[str, Style]] = {
    "ok": "green",
    "warning": "yellow",
    "invalid": "red",
    "no document": "red",
    "shadowed": "dim",
    "quarantined": "yellow",
}
SEVERITY_STYLES: Final[dict[str, Style]] = {"error": "red", "warning": "yellow", "info": "dim"}

_MINUTE: Final = 60
_DAY: Final = 86_400
_UNITS: Final = (
    (2 * 365 * _DAY, 365 * _DAY, "year"),
    (60 * _DAY, 30 * _DAY, "month"),
    (_DAY, _DAY, "day"),
    (3600, 3600, "hour"),
    (_MINUTE, _MINUTE, "minute"),
)
"""From which age on a unit is used, and how long it is."""

_STEP: Final = 1000
_TENTHS_BELOW: Final = 100

COMMIT: Final = 10
"""Digits of a commit that are shown: enough to find it."""


def count(number: int, noun: str, plural: str | None = None) -> str:
    """Return ``1 skill`` or ``2,981 skills``."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def listed(names: Sequence[str]) -> str:
    """Return ``a, b and c``."""
    return " and ".join(filter(None, [", ".join(names[:-1]), *names[-1:]]))


def size(number: int) -> str:
    """Return a number of bytes, in decimal units."""
    value = float(number)
    for unit in ("B", "kB", "MB", "GB"):
        if value < _STEP or unit == "GB":
            break
        value /= _STEP
    digits = 1 if unit != "B" and value < _TENTHS_BELOW else 0
    return f"{value:,.{digits}f} {unit}"


def moment(stamp: str | None, *, local: bool = False) -> str:
    """Return a timestamp to the minute, in UTC or in the time zone of who looks at it."""
    if not stamp:
        return "never"
    if local and (seconds := _seconds(stamp)) is not None:
        return time.strftime("%Y-%m-%d %H:%M %Z", time.localtime(seconds))
    return f"{stamp[:10]} {stamp[11:16]} UTC"


def ago(stamp: str, now: float) -> str:
    """Return how long before ``now``, in seconds since 1970, a timestamp was; else the timestamp.

    What is none, or is yet to come, stays as it is.
    """
    seconds = _seconds(stamp)
    if seconds is None or seconds > now + _MINUTE:
        return stamp
    passed = int(now - seconds)
    for least, length, unit in _UNITS:
        if passed >= least:
            return f"{count(passed // length, unit)} ago"
    return "just now"


def _seconds(stamp: str) -> float | None:
    """Return the seconds since 1970 of ``2026-01-31T12:30:00Z``; None for anything else."""
    from datetime import datetime

    try:
        return datetime.fromisoformat(stamp).timestamp()
    except (ValueError, OverflowError):
        return None


def state(status: str, *, shadowed: bool = False) -> str:
    """Return a skill's status for people."""
    return "shadowed" if shadowed else status.replace("_", " ")


def commit(version: str) -> str:
    """Return a version of a remote as people write it."""
    return version.removeprefix("sha256:")[:COMMIT]


def address(url: str, ref: str | None, part: str | None = None, only: Sequence[str] = ()) -> str:
    """Return where something remote is, with the folder, what it is pinned to and its skills."""
    place = f"{url.rstrip('/')}/{part}" if part else url
    return "".join([place, f"#{ref}" if ref else "", *(f"@{one}" for one in only)])
