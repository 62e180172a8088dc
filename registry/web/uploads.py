"""Uploaded files, in memory and within limits, until they are published."""

import hashlib
import secrets
import time
from collections import OrderedDict
from dataclasses import dataclass
from threading import Lock
from typing import Final

from registry.settings import Limits

UPLOAD_SECONDS: Final = 600.0
"""Time after which an unpublished upload is deleted, in seconds."""

MAX_UPLOADS: Final = 64 << 20
"""Maximum size of all uploaded files that are not published yet, in bytes."""

MAX_TICKETS: Final = 10_000
"""Maximum number of tickets for files that aren't published yet."""


class Refusal(Exception):
    """The server refuses a request with a status, a code and a message."""

    def __init__(self, status: int, code: str, message: str) -> None:
        super().__init__(message)
        self.status, self.code, self.message = status, code, message


@dataclass(slots=True)
class _Upload:
    """A file that a client announced; ``data`` is None until it is uploaded."""

    token: str
    sha256: str
    size: int
    until: float
    data: bytes | None = None


class Uploads:
    """Uploaded files that are not published yet, in memory and within limits."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._known: OrderedDict[str, _Upload] = OrderedDict()

    def announce(self, token: str, sha256: str, size: int, limits: Limits) -> str:
        """Return a ticket for a file. Raises `Refusal` if a limit is reached."""
        ticket = secrets.token_urlsafe(24)
        with self._lock:
            self._forget_old()
            own = [one for one in self._known.values() if one.token == token]
            too_many = len(own) >= 2 * limits.files or len(self._known) >= MAX_TICKETS
            room = min(2 * limits.skill_bytes, MAX_UPLOADS)
            if too_many or sum(one.size for one in own) + size > room:
                raise Refusal(413, "too_large", "These files are larger than a skill may be.")
            if sum(one.size for one in self._known.values()) + size > MAX_UPLOADS:
                raise Refusal(503, "busy", "Too many files are being uploaded. Try again later.")
            until = time.monotonic() + UPLOAD_SECONDS
            self._known[ticket] = _Upload(token, sha256, size, until)
        return ticket

    def fill(self, ticket: str, token: str, data: bytes) -> None:
        """Store the bytes of a file. Raises `Refusal` if they differ from the announced file."""
        one = self._of(ticket, token)
        if len(data) != one.size or hashlib.sha256(data).hexdigest() != one.sha256:
            raise Refusal(400, "differs", "This is not the file that the client announced.")
        one.data = data

    def take(self, ticket: str, token: str) -> bytes:
        """Return the bytes of an uploaded file. Raises `Refusal` if the file was not uploaded."""
        data = self._of(ticket, token).data
        if data is None:
            raise Refusal(400, "not_uploaded", "A file was not uploaded.")
        return data

    def drop(self, tickets: list[str]) -> None:
        """Forget published files."""
        with self._lock:
            for ticket in tickets:
                self._known.pop(ticket, None)

    def _of(self, ticket: str, token: str) -> _Upload:
        with self._lock:
            self._forget_old()
            one = self._known.get(ticket)
        if one is None or one.token != token:
            raise Refusal(404, "ticket_unknown", "This upload is unknown or too old.")
        return one

    def _forget_old(self) -> None:
        now = time.monotonic()
        while self._known and next(iter(self._known.values())).until < now:
            self._known.popitem(last=False)
