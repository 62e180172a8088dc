"""Locks between processes, with lock files; the system releases a lock when its process ends."""

import errno
import fcntl
import json
import os
import random
import time
from contextlib import suppress
from stat import S_ISREG
from typing import Any, ClassVar, Final, Self
from weakref import WeakSet

from registry.disk.beneath import Folder

NOTE_BYTES: Final = 1000
BEGINNING: Final = b'{"pid": '


class NotALock(OSError):
    """A file that isn't a lock file of this user exists at the path of the lock file.

    The message describes the file.
    """


class FileLock:
    """An exclusive ``flock`` on the file ``path``, which is created and never removed.

    If an open ``folder`` is given, ``path`` is a name in this folder. The file must be a regular
    file with only one name, and not a link. The file must belong to this user unless ``shared``.
    Each instance opens the file again, so the lock also excludes other threads of the process. The
    descriptor is closed on exec. It is also closed in a forked child, because the child doesn't
    have its parent's lock.
    """

    _flags: ClassVar[int] = (
        os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
    )

    def __init__(self, path: str, *, folder: Folder | None = None, shared: bool = False) -> None:
        self.path = path if folder is None else folder.path_of(path)
        self._name = path
        self._folder = folder
        self._shared = shared
        self._descriptor: int | None = None

    def acquire(self, wait: float) -> bool:
        """Try for ``wait`` seconds to take the lock; return False if another process holds it.

        Raises `NotALock`, OSError.
        """
        descriptor = self._open(self._flags)
        deadline, pause = time.monotonic() + wait, 0.001
        try:
            self._check(os.fstat(descriptor))
            while True:
                try:
                    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    if time.monotonic() >= deadline:
                        os.close(descriptor)
                        return False
                    # Random pauses prevent several processes from trying again at the same moments.
                    time.sleep(pause * random.uniform(0.5, 1.5))  # noqa: S311  # not for a secret
                    pause = min(pause * 1.5, 0.02)
                else:
                    self._descriptor = descriptor
                    _held.add(self)
                    return True
        except BaseException:
            os.close(descriptor)
            raise

    def release(self) -> None:
        """Release the lock."""
        if self._descriptor is not None:
            # a child that was forked at this moment may also have the descriptor
            with suppress(OSError):
                fcntl.flock(self._descriptor, fcntl.LOCK_UN)
            self.forget()

    def forget(self) -> None:
        """Close the file without unlocking it.

        If other processes have the same open file, they keep the lock.
        """
        _held.discard(self)
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def sign(self, doing: str) -> None:
        """Write the process id and the current activity into the locked file.

        `owner` returns this note to other processes. Raises `NotALock` if the file has other
        content.
        """
        assert self._descriptor is not None  # noqa: S101  # only a programming error can cause this
        if not _may_be_note(os.pread(self._descriptor, NOTE_BYTES, 0)):
            raise self._refusal("it is not a lock file of skill-registry; move it away")
        note = json.dumps({"pid": os.getpid(), "doing": doing}).encode()
        os.ftruncate(self._descriptor, 0)
        os.pwrite(self._descriptor, note, 0)

    def now_ns(self) -> int:
        """Return the modification time of the lock file, which `sign` sets.

        This time comes from the same clock as the times of other files.
        """
        assert self._descriptor is not None  # noqa: S101  # only a programming error can cause this
        return os.fstat(self._descriptor).st_mtime_ns

    def owner(self) -> str:
        """Return a description of the process that last wrote a note with `sign`."""
        try:
            reading = self._flags & ~(os.O_CREAT | os.O_RDWR)
            with os.fdopen(self._open(reading), "rb") as file:
                self._check(os.fstat(file.fileno()))
                note = _noted(file.read(NOTE_BYTES))
        except OSError:
            note = None
        return "another process" if note is None else f"process {note[0]} ({note[1]})"

    def _open(self, flags: int) -> int:
        folder = None if self._folder is None else self._folder.fd
        try:
            return os.open(self._name, flags, 0o644, dir_fd=folder)
        except OSError as error:
            if error.errno == errno.ELOOP:
                raise self._refusal("it is a link, not a lock file; move it away") from error
            raise

    def _check(self, facts: os.stat_result) -> None:
        """Raise `NotALock` if the file can't be a lock file of this registry."""
        if not S_ISREG(facts.st_mode) or facts.st_nlink != 1:
            raise self._refusal("it is not a lock file; move it away")
        if facts.st_uid != os.geteuid() and not self._shared:
            raise self._refusal("the lock file is another user's; move it away")

    def _refusal(self, reason: str) -> NotALock:
        return NotALock(errno.EPERM, reason, self.path)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()


class FolderLock(FileLock):
    """A lock on an open folder; it creates no file, and `sign` can't be used."""

    _flags = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC

    def __init__(self, folder: Folder) -> None:
        super().__init__(".", folder=folder)

    def _check(self, facts: os.stat_result) -> None:
        """Accept every folder, because the caller opened the folder and knows its owner."""


_held: WeakSet[FileLock] = WeakSet()


def _forget_all() -> None:
    for lock in list(_held):
        lock.forget()


os.register_at_fork(after_in_child=_forget_all)


def _may_be_note(data: bytes) -> bool:
    """Tell whether a lock file is empty or contains a note.

    After a power failure, the note may be incomplete.
    """
    begins_so = all(byte in {0, wanted} for byte, wanted in zip(data, BEGINNING, strict=False))
    return begins_so and len(data) < NOTE_BYTES


def _noted(data: bytes) -> tuple[int, str] | None:
    """Return the process id and the activity in a note; None if the note is invalid."""
    try:
        note: Any = json.loads(data)
        process, doing = note["pid"], note["doing"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
    if type(process) is not int or not isinstance(doing, str) or not doing.isprintable():
        return None
    return process, doing
