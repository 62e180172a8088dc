"""Times as the registry writes them: UTC, ISO 8601, whole seconds, ending in ``Z``."""

import time


def from_ns(nanoseconds: int) -> str:
    """Write a time given in nanoseconds since 1970."""
    seconds = min(max(nanoseconds // 1_000_000_000, 0), 253_402_300_799)
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds))


def now() -> str:
    """Write the present."""
    return from_ns(now_ns())


def now_ns() -> int:
    """Return the present in nanoseconds since 1970."""
    return time.time_ns()
