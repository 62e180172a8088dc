"""Find the type of a path's file system, and the id of the current boot."""

import os
from pathlib import Path
from typing import Final

_REMOTE: Final = frozenset(
    "9p afs ceph cifs fuse.sshfs glusterfs lustre nfs nfs4 smb3 smbfs vboxsf".split()
)


def is_remote(path: str) -> bool:
    """Tell whether ``path`` is on a network file system.

    Other machines can change files there without a notification to this machine.
    """
    return file_system(path) in _REMOTE


def file_system(path: str) -> str:
    """Return the type of the file system of ``path``; "" if it is unknown."""
    place = os.path.realpath(os.path.dirname(path) or ".")
    best, kind = "", ""
    try:
        with open("/proc/self/mounts", encoding="utf-8", errors="replace") as mounts:
            for line in mounts:
                _, mounted, name, *_ = line.split(" ")
                inside = place == mounted or place.startswith(mounted.rstrip("/") + "/")
                if inside and len(mounted) >= len(best):
                    best, kind = mounted, name
    except (OSError, ValueError):
        return ""
    return kind


_BOOT: Final = Path("/proc/sys/kernel/random/boot_id")


def this_boot() -> str | None:
    """Return the id of the system's current boot; None if the system has no such id."""
    try:
        return _BOOT.read_text().strip()
    except OSError:
        return None
