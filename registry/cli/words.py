"""Format numbers, sizes and times for people."""

from typing import Final

from registry.cli.console import Style

STATUS_STYLES: Final[dict[str, Style]] = {
    "ok": "green",
    "warning": "yellow",
    "invalid": "red",
    "no document": "red",
    "shadowed": "dim",
}
SEVERITY_STYLES: Final[dict[str, Style]] = {"error": "red", "warning": "yellow", "info": "dim"}

_STEP: Final = 1000
_TENTHS_BELOW: Final = 100


def count(number: int, noun: str, plural: str | None = None) -> str:
    """Return ``1 skill`` or ``2,981 skills``."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def size(number: int) -> str:
    """Return a number of bytes, in decimal units."""
    value = float(number)
    for unit in ("B", "kB", "MB", "GB"):
        if value < _STEP or unit == "GB":
            break
        value /= _STEP
    digits = 1 if unit != "B" and value < _TENTHS_BELOW else 0
    return f"{value:,.{digits}f} {unit}"


def day(stamp: str | None) -> str:
    """Return the date of a timestamp."""
    return stamp[:10] if stamp else ""


def moment(stamp: str | None) -> str:
    """Return a timestamp to the minute."""
    return f"{stamp[:10]} {stamp[11:16]} UTC" if stamp else "never"


def state(status: str, *, shadowed: bool = False) -> str:
    """Return a skill's status for people."""
    return "shadowed" if shadowed else status.replace("_", " ")
