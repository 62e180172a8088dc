"""Sign this user's records, and verify their signatures with this user's key.

Other users may be able to write to the journal, a state folder or the trash. Other users may have
access to the database, or own a clone that contains the source. So each planned change and each
deletion has a record with a signature (HMAC-SHA256). The key is only in the user's own folder. A
signature is valid for one user, one source and (except for the trash) one database. Records without
a valid signature are ignored.
"""

import hmac
import json
import os
import secrets
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final, Literal, Self, TypeAlias

from registry.core import Core
from registry.db.audit_context import current_context
from registry.db.read.history import GROUP_DIGITS, RecordedChange, facts_of
from registry.disk.atomic import OWN, Place, make_path, open_named, write_file
from registry.disk.private import read_own_file, write_own_file
from registry.errors import OwnFileUnusable
from registry.settings import data_folder

KEY: Final = "state.key"
KEY_BYTES: Final = 32

MAX_BYTES: Final = 1 << 20
"""Maximum size of a record, in bytes; a record is JSON with paths and names."""

Purpose: TypeAlias = Literal["staging", "change", "event", "trash", "undo", "token"]


@dataclass(frozen=True, slots=True, repr=False)
class Signer:
    """Signs and verifies this user's records for one source of one database."""

    key: bytes
    database: str
    root: str

    @classmethod
    def of(cls, core: Core, root: str = "") -> Self:
        """Return the signer for the source at ``root``; if ``root`` is empty, for no source.

        Creates this user's key if it is missing. Raises `OwnFileUnusable` if the key's file can't
        be used.
        """
        key = _key(make=True)
        assert key is not None  # noqa: S101  # `_key` created it
        return cls(key, core.backend.identity, root)

    @classmethod
    def known(cls, core: Core, root: str = "") -> Self | None:
        """Return the same signer as `of`; None if this user has no key yet.

        Unlike `of`, this method creates no key.
        """
        key = _key(make=False)
        return None if key is None else cls(key, core.backend.identity, root)

    def write(self, place: Place, purpose: Purpose, number: str, facts: Mapping[str, Any]) -> None:
        """Write a signed record into a new file.

        The file is flushed to disk unless the purpose is "staging".
        """
        text = json.dumps(
            {"record": facts, "signature": self.sign(purpose, number, facts)}, indent=1
        )
        write_file(place, text.encode(), 0o600, durable=purpose != "staging")

    def read(self, place: Place, purpose: Purpose, number: str) -> Mapping[str, Any] | None:
        """Return the values in a record; None if it is missing or its signature is invalid."""
        try:
            found = json.loads(read_own_file(place, MAX_BYTES))
            facts, signature = found["record"], found["signature"]
            if not self.signed(purpose, number, facts, signature):
                return None
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
            return None
        return facts if isinstance(facts, dict) else None

    def signed(self, purpose: Purpose, number: str, facts: object, signature: str) -> bool:
        """Tell whether ``signature`` is this user's valid signature of these values."""
        return hmac.compare_digest(self.sign(purpose, number, facts).encode(), signature.encode())

    def sign(self, purpose: Purpose, number: str, facts: object) -> str:
        """Return the signature of these values; it is valid for one purpose and one number."""
        bound = {
            "purpose": purpose,
            "number": number,
            "user": os.geteuid(),
            # Don't include the database, so that any database with this source can restore the
            # deleted skill.
            "database": None if purpose == "trash" else self.database,
            "root": self.root,
            "facts": facts,
        }
        text = json.dumps(bound, sort_keys=True, separators=(",", ":"))
        return hmac.new(self.key, text.encode(), "sha256").hexdigest()


def _key(*, make: bool) -> bytes | None:
    """Return this user's signing key; if it is missing and ``make``, create it.

    Raises `OwnFileUnusable` if the key's file can't be used.
    """
    folder = str(data_folder())
    try:
        if make:
            make_path(folder, OWN)
        elif not os.path.isdir(folder):
            return None
        with open_named(folder) as home:
            key = _read_key(Place(home, KEY), make=make)
    except OSError as error:
        reason = error.strerror or str(error)
        raise OwnFileUnusable(path=f"{folder}/{KEY}", reason=reason) from error
    if key is not None and len(key) != KEY_BYTES:
        reason = f"it does not have the {KEY_BYTES} bytes of a key"
        raise OwnFileUnusable(path=f"{folder}/{KEY}", reason=reason)
    return key


def _read_key(place: Place, *, make: bool) -> bytes | None:
    with suppress(FileNotFoundError):
        return read_own_file(place, KEY_BYTES + 1)
    if not make:
        return None
    with suppress(FileExistsError):  # another process may create it first
        write_own_file(place, secrets.token_bytes(KEY_BYTES))
    return read_own_file(place, KEY_BYTES + 1)


def new_numbers(count: int = 1) -> list[str]:
    """Return new numbers for a group of changes, in ascending order.

    The numbers are signed, and show which changes belong to the same group.
    """
    group = secrets.token_hex(GROUP_DIGITS // 2)
    if count == 1:
        return [group + secrets.token_hex(2)]
    return [f"{group}{place:04x}" for place in range(count)]


def is_together(number: str, other: str) -> bool:
    """Tell by the numbers of two changes whether the changes belong to the same group."""
    return number[:GROUP_DIGITS] == other[:GROUP_DIGITS]


def signed(signer: Signer, **facts: Any) -> RecordedChange:
    """Return a signed change with these values, the current command and the current tool."""
    who = current_context()
    # The database assigns the id.
    change = RecordedChange(id=0, signature="", command=who.command, tool=who.tool, **facts)
    return change._replace(signature=signer.sign("undo", change.number, facts_of(change)))
