"""Which run of the machine this is."""

from pathlib import Path
from typing import Final

_BOOT: Final = Path("/proc/sys/kernel/random/boot_id")


def this_boot() -> str | None:
    """Return what tells this run of the machine from others; None: the system does not say."""
    try:
        return _BOOT.read_text().strip()
    except OSError:
        return None
