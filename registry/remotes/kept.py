"""What a remote's kind keeps between runs: what it brought, by digest, and what it noted of it."""

import errno
import hashlib
import json
import os
import secrets
import time
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from email.utils import parsedate_to_datetime
from http.client import HTTPMessage
from io import BufferedReader
from typing import Any, Final

from registry.disk.atomic import OWN, Place, make_path, open_named, remove_tree, replace
from registry.disk.beneath import READ, WRITE_NEW, Folder
from registry.disk.private import NotOurs, open_own_folder, read_own_file, write_own_file
from registry.remotes.http import UNCHANGED, Client

NOTES: Final = "notes.json"
NOTES_BYTES: Final = 64 << 20


class Kept:
    """A folder of ours with files that are named by their SHA-256, and with notes.

    ``notes``: JSON of the kind, and hints only; what is read by its digest has that digest. One
    process at a time uses it, several threads may.
    """

    def __init__(self, folder: Folder) -> None:
        self._folder = folder
        self.notes: dict[str, Any] = {}
        with suppress(FileNotFoundError, NotOurs, ValueError, RecursionError):
            notes = json.loads(read_own_file(Place(folder, NOTES), NOTES_BYTES))
            self.notes = notes if isinstance(notes, dict) else {}

    def noted(self, key: str) -> Mapping[str, Any]:
        """Return what was noted by this key, empty where it is not a mapping."""
        found = self.notes.get(key)
        return found if isinstance(found, dict) else {}

    def download(self, client: Client, url: str, most: int) -> str:
        """Keep what lies at an address, and return its digest: 64 hexadecimal digits."""
        digest, _ = self.renewed(client, url, most, {})
        assert digest is not None  # noqa: S101  # nothing was asked that it could be as before
        return digest

    def renewed(
        self, client: Client, url: str, most: int, headers: Mapping[str, str]
    ) -> tuple[str | None, HTTPMessage]:
        """Keep what lies at an address; return its digest and the headers of the answer.

        None: the server says that it still is what ``headers`` ask about.
        """
        draft = Place(self._folder, f"draft-{secrets.token_hex(8)}")
        descriptor = os.open(draft.name, WRITE_NEW, 0o600, dir_fd=self._folder.fd)
        try:
            with os.fdopen(descriptor, "wb") as file:
                answer = client.get(url, file, most, headers)
            if answer.status == UNCHANGED:
                return None, answer.headers
            with self._read(draft.name) as written:
                digest = _digest(written)
            replace(draft, Place(self._folder, digest))
        finally:
            remove_tree(draft)
        return digest, answer.headers

    def has(self, digest: str) -> bool:
        """Tell whether there is a file of this digest; what it holds is asked when it is opened."""
        return self._folder.holds(digest)

    def open(self, digest: str) -> BufferedReader:
        """Open a kept file, which has this digest. Raises FileNotFoundError where none has."""
        file = self._read(digest)
        if _digest(file) != digest:
            file.close()
            remove_tree(Place(self._folder, digest))
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), digest)
        file.seek(0)
        return file

    def _read(self, name: str) -> BufferedReader:
        return os.fdopen(os.open(name, READ, dir_fd=self._folder.fd), "rb")

    def keep_only(self, digests: Collection[str]) -> None:
        """Remove all but the files of these digests, and the notes."""
        for entry in self._folder.entries():
            if entry.name != NOTES and entry.name not in digests:
                remove_tree(Place(self._folder, entry.name))

    def note(self, notes: Mapping[str, Any]) -> None:
        """Write notes down for the next run."""
        place = Place(self._folder, NOTES)
        remove_tree(place)
        write_own_file(place, json.dumps(notes).encode())


@contextmanager
def open_kept(state: str) -> Iterator[Kept]:
    """Open the folder of ours (0700) in which a kind keeps what it wants, made where it is missing.

    Raises OSError, `NotOurs` where somebody else made it.
    """
    above, name = os.path.split(os.path.abspath(state))
    make_path(above, OWN)
    with open_named(above) as parent, open_own_folder(Place(parent, name), make=True) as folder:
        yield Kept(folder)


def _digest(file: BufferedReader) -> str:
    return hashlib.file_digest(file, "sha256").hexdigest()


def made_at(headers: HTTPMessage) -> int | None:
    """Return when a server says that something was changed last, in seconds since 1970."""
    try:
        return past(parsedate_to_datetime(headers.get("Last-Modified", "")).timestamp())
    except (ValueError, OverflowError):
        return None


def past(seconds: float) -> int | None:
    """Return a time that a server tells, None where it can't be one at which anything was made."""
    return int(seconds) if 0 < seconds < time.time() else None
