"""Access tokens for other users of the web catalogue, each with its rights and expiry.

A token is shown only once. The database stores the hash of the token with this user's signature.
Another user with write access to the database can remove a token. But that user can't create one,
because rows without this signature are ignored.
"""

import hashlib
import secrets
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

from registry.catalog.visibility.decisions import personality as personality_of
from registry.changes.signer import Signer
from registry.core import Core
from registry.db.read.access import SIGNED, SIGNED_RIGHTS, StoredToken, all_tokens, by_hash
from registry.errors import DatabaseProblem, TokenNotFound, UsageProblem
from registry.model import Value
from registry.sync.sources import find as find_source
from registry.text import is_utc_text, utc_now

BEGINNING: Final = "skr_"
"""First characters of all tokens, by which people and scanners recognise a token."""

SECRET_BYTES: Final = 32
MAX_NAME: Final = 64
TIME: Final = "%Y-%m-%dT%H:%M:%SZ"
USED_WITHIN: Final = timedelta(minutes=10)
"""Minimum time between two updates of the stored time of a token's last use.

So the stored time may be this much earlier than the last use.
"""


@dataclass(frozen=True, slots=True)
class Token(Value):
    """An access token that this user created; ``number`` isn't secret.

    ``expires_at`` is None if the token never expires.
    """

    number: str
    name: str
    write: bool
    personality: str | None
    source: str | None
    created_at: str
    expires_at: str | None
    used_at: str | None
    publish: bool = False
    approve: bool = False

    @property
    def is_expired(self) -> bool:
        """Whether the token has expired."""
        return self.expires_at is not None and self.expires_at <= utc_now()


class Tokens:
    """This user's tokens in one database."""

    def __init__(self, core: Core) -> None:
        self._core = core

    def create(
        self,
        name: str,
        *,
        write: bool = False,
        publish: bool = False,
        approve: bool = False,
        personality: str | None = None,
        source: str | None = None,
        lasts: timedelta | None = None,
    ) -> tuple[Token, str]:
        """Create a token; return it together with the secret text with which a person signs in.

        ``publish`` allows publishing skills over HTTP, and ``approve`` allows deciding on
        proposals. ``lasts`` is the time for which the token is valid. If it is None, the token is
        valid until you revoke it. Raises `UsageProblem`, `PersonalityNotFound`, `SourceNotFound`,
        `OwnFileUnusable`.
        """
        from registry.db.write.access import add_token

        if not name or len(name) > MAX_NAME or not name.isprintable():
            raise UsageProblem(message=f"a token needs a name of 1 to {MAX_NAME} characters")
        if personality is not None and (publish or approve):
            # With this token, errors would reveal names of skills that the personality can't see.
            message = (
                "a token with a personality can't publish or approve; leave the personality out"
            )
            raise UsageProblem(message=message)
        if personality is not None:
            personality_of(self._core.settings, personality)
        if source is not None:
            source = find_source(self._core, source).name
        shown = BEGINNING + secrets.token_urlsafe(SECRET_BYTES)
        row = StoredToken(
            number=secrets.token_hex(4),
            hash=_hashed(shown),
            name=name,
            personality=personality,
            source=source,
            write=int(write),
            created_at=utc_now(),
            expires_at=None if lasts is None else f"{datetime.now(UTC) + lasts:{TIME}}",
            used_at=None,
            signature="",
            publish=int(publish),
            approve=int(approve),
        )
        signer = Signer.of(self._core)
        row = row._replace(signature=signer.sign("token", row.number, _signed(row)))
        with self._core.writer.transaction() as connection:
            add_token(connection, row)
        return _token(row), shown

    def list(self) -> Sequence[Token]:
        """Return this user's tokens, including expired tokens, the oldest first."""
        return [_token(row) for row in all_tokens(self._core.reader) if self._is_ours(row)]

    def ignored(self) -> int:
        """Return the number of stored tokens that are not valid for this user and database."""
        return sum(not self._is_ours(row) for row in all_tokens(self._core.reader))

    def revoke(self, name: str) -> Token:
        """Revoke the token with this number; if only one token has this name, revoke that token.

        Raises `TokenNotFound` if no token matches, and `UsageProblem` if several tokens have the
        name.
        """
        from registry.db.write.access import remove_token

        known = self.list()
        found = [one for one in known if one.number == name]
        found = found or [one for one in known if one.name == name]
        if not found:
            raise TokenNotFound(name=name)
        if len(found) > 1:
            numbers = ", ".join(one.number for one in found)
            message = f"several tokens are called {name!r}; give the number of one: {numbers}"
            raise UsageProblem(message=message)
        with self._core.writer.transaction() as connection:
            remove_token(connection, found[0].number)
        return found[0]

    def known(self, shown: str) -> Token | None:
        """Return the valid token with this secret text; None if there is none."""
        if not shown.startswith(BEGINNING):
            return None
        row = by_hash(self._core.reader, _hashed(shown))
        if row is None or not self._is_ours(row):
            return None
        token = _token(row)
        if token.is_expired:
            return None
        self._note_use(token)
        return token

    def _note_use(self, token: Token) -> None:
        from registry.db.write.access import record_use

        now = datetime.now(UTC)
        if token.used_at is not None and is_utc_text(token.used_at):
            last = datetime.fromisoformat(token.used_at)
            if abs(now - last) < USED_WITHIN:
                return
        # A sync may be writing to the database, and a login must not wait for it.
        with suppress(DatabaseProblem), self._core.writer.transaction(0.0) as connection:
            record_use(connection, token.number, utc_now())

    def _is_ours(self, row: StoredToken) -> bool:
        signer = Signer.known(self._core)
        if signer is None or not all(
            isinstance(value, str) for value in (row.number, row.signature)
        ):
            return False
        return signer.signed("token", row.number, _signed(row), row.signature)


def _signed(row: StoredToken) -> dict[str, object]:
    rights = {key: getattr(row, key) for key in SIGNED_RIGHTS if getattr(row, key)}
    return {key: getattr(row, key) for key in SIGNED} | rights


def _token(row: StoredToken) -> Token:
    facts = {key: value for key, value in row._asdict().items() if key not in {"hash", "signature"}}
    rights = {key: getattr(row, key) == 1 for key in ("write", *SIGNED_RIGHTS)}
    return Token(**{**facts, **rights})


def _hashed(shown: str) -> str:
    """Return the hash of a token; its 256 random bits need no salt."""
    return f"sha256:{hashlib.sha256(shown.encode('utf-8', 'replace')).hexdigest()}"
