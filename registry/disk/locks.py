"""Locks between processes: one file, one holder, released by the system when the holder dies."""

import fcntl
import json
import os
import random
import time
from typing import ClassVar, Self


class FileLock:
    """An exclusive ``flock`` on the file ``path``, which is created and never removed.

    Each instance opens the file anew, so it excludes threads as well as processes. The descriptor
    is closed on exec; a forked child must not use it.
    """

    _flags: ClassVar[int] = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC

    def __init__(self, path: str) -> None:
        self.path = path
        self._descriptor: int | None = None

    def acquire(self, wait: float) -> bool:
        """Take the lock, trying for ``wait`` seconds (0: once); False: somebody else holds it."""
        descriptor = os.open(self.path, self._flags, 0o644)
        deadline, pause = time.monotonic() + wait, 0.001
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if time.monotonic() >= deadline:
                    os.close(descriptor)
                    return False
                # Uneven pauses keep waiting processes from knocking in step.
                time.sleep(pause * random.uniform(0.5, 1.5))  # noqa: S311  # no secret
                pause = min(pause * 1.5, 0.02)
            except BaseException:
                os.close(descriptor)
                raise
            else:
                self._descriptor = descriptor
                return True

    def release(self) -> None:
        """Give the lock back."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def sign(self, doing: str) -> None:
        """Write into the held file who holds it, for `owner`; its new mtime is the disk's clock."""
        assert self._descriptor is not None  # noqa: S101  # a programming error
        note = json.dumps({"pid": os.getpid(), "doing": doing}).encode()
        os.ftruncate(self._descriptor, 0)
        os.pwrite(self._descriptor, note, 0)

    def now_ns(self) -> int:
        """Return the lock file's mtime: the present, by the clock that stamps files."""
        assert self._descriptor is not None  # noqa: S101  # a programming error
        return os.fstat(self._descriptor).st_mtime_ns

    def owner(self) -> str:
        """Say who signed the lock last, in words."""
        try:
            with open(self.path, "rb") as file:
                note = json.loads(file.read(1000))
            return f"process {note['pid']} ({note['doing']})"
        except (OSError, ValueError, KeyError, TypeError):
            return "another process"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()


class FolderLock(FileLock):
    """The same on a folder that is there: nothing is left in it, and nothing can be signed."""

    _flags = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
