"""Locks between processes: one file, one holder, released by the system when the holder dies."""

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
    """Something lies where a lock file of this user's should be; in words."""


class FileLock:
    """An exclusive ``flock`` on the file ``path``, which is created and never removed.

    Below an open ``folder`` the path is a name in it. Nothing but a lock file is opened, and no
    link followed: a regular file under one name, and this user's own unless ``shared``. Each
    instance opens the file anew, so it excludes threads as well as processes. The descriptor is
    closed on exec, and in a forked child, which does not hold what its parent holds.
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
        """Take the lock, trying for ``wait`` seconds (0: once); False: somebody else holds it.

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
                    # Uneven pauses keep waiting processes from knocking in step.
                    time.sleep(pause * random.uniform(0.5, 1.5))  # noqa: S311  # no secret
                    pause = min(pause * 1.5, 0.02)
                else:
                    self._descriptor = descriptor
                    _held.add(self)
                    return True
        except BaseException:
            os.close(descriptor)
            raise

    def release(self) -> None:
        """Give the lock back."""
        if self._descriptor is not None:
            # A child that was forked in the very moment may have the descriptor, too.
            with suppress(OSError):
                fcntl.flock(self._descriptor, fcntl.LOCK_UN)
            self.forget()

    def forget(self) -> None:
        """Close the file, and leave the lock to whoever else has it open."""
        _held.discard(self)
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def sign(self, doing: str) -> None:
        """Write into the held file who holds it, for `owner`; its new mtime is the disk's clock.

        Raises `NotALock` where it holds something else than such a note.
        """
        assert self._descriptor is not None  # noqa: S101  # a programming error
        if not _may_be_note(os.pread(self._descriptor, NOTE_BYTES, 0)):
            raise self._refusal("it holds something else than who has the lock; move it away")
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
                raise self._refusal("it is a link, no lock file; move it away") from error
            raise

    def _check(self, facts: os.stat_result) -> None:
        """Raise OSError for what this registry would not have made."""
        if not S_ISREG(facts.st_mode) or facts.st_nlink != 1:
            raise self._refusal("it is no lock file; move it away")
        if facts.st_uid != os.geteuid() and not self._shared:
            raise self._refusal("the lock file is another user's; move it away")

    def _refusal(self, reason: str) -> NotALock:
        return NotALock(errno.EPERM, reason, self.path)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()


class FolderLock(FileLock):
    """The same on a folder that is open: nothing is left in it, and nothing can be signed."""

    _flags = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC

    def __init__(self, folder: Folder) -> None:
        super().__init__(".", folder=folder)

    def _check(self, facts: os.stat_result) -> None:
        """Nothing to ask: whose folder it is says whoever opened it."""


_held: WeakSet[FileLock] = WeakSet()


def _forget_all() -> None:
    for lock in list(_held):
        lock.forget()


os.register_at_fork(after_in_child=_forget_all)


def _may_be_note(data: bytes) -> bool:
    """Tell whether a lock file holds a note, or what a power cut left of one, or nothing."""
    begins_so = all(byte in {0, wanted} for byte, wanted in zip(data, BEGINNING, strict=False))
    return begins_so and len(data) < NOTE_BYTES


def _noted(data: bytes) -> tuple[int, str] | None:
    """Return the process and what it does, as a holder wrote it; None: it is no such note."""
    try:
        note: Any = json.loads(data)
        process, doing = note["pid"], note["doing"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
    if type(process) is not int or not isinstance(doing, str) or not doing.isprintable():
        return None
    return process, doing
