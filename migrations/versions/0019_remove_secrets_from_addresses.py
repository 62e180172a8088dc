"""Remove passwords and tokens from the addresses of sources, and from what was copied of them.

Addresses with ``?token=…`` were accepted before. Credentials belong into ``~/.netrc`` or into git's
credential store; the user is asked to revoke those that were stored.

Revision ID: 0019
Revises: 0016
"""

import json
import logging
from typing import Any

import sqlalchemy as sa
from alembic import op

from registry.text import masked, without_secrets

revision = "0019"
down_revision = "0016"
branch_labels = None
depends_on = None

# The triggers of a server would note the old address, and keep what was noted of it.
SILENCED = (("sources", "tell"), ("audit", "keep"))


def upgrade() -> None:
    connection = op.get_bind()
    is_server = connection.dialect.name == "postgresql"
    for table, trigger in SILENCED if is_server else ():
        op.execute(f"ALTER TABLE {table} DISABLE TRIGGER {trigger}")
    _clean_sources(connection)
    _clean_texts(connection, "revisions", "origin", _origin)
    _clean_texts(connection, "audit", "detail", _document)
    _drop_pulls(connection)
    for table, trigger in SILENCED if is_server else ():
        op.execute(f"ALTER TABLE {table} ENABLE TRIGGER {trigger}")


def downgrade() -> None:
    """Leave the addresses as they are: the secrets are gone."""


def _clean_sources(connection: sa.Connection) -> None:
    rows = connection.execute(sa.text("SELECT id, name, url FROM sources WHERE url IS NOT NULL"))
    for number, name, url in rows.all():
        if (clean := without_secrets(url)) != url:
            change = sa.text("UPDATE sources SET url = :url WHERE id = :id")
            connection.execute(change, {"url": clean, "id": number})
            logging.getLogger("registry").warning(
                "The address of the source %s held a password or token, which was removed: %s. "
                "Revoke it: copies of the database and lock files may still hold it. "
                "Put its successor into ~/.netrc.",
                name,
                masked(url),
            )


def _clean_texts(connection: sa.Connection, table: str, column: str, cleaned: Any) -> None:
    """Replace the texts of a column that hold a secret."""
    likely = " OR ".join(f"{column} LIKE '%://%{sign}%'" for sign in "?#;@")
    rows = connection.execute(sa.text(f"SELECT DISTINCT {column} FROM {table} WHERE {likely}"))
    for (text,) in rows.all():
        if (clean := cleaned(text)) != text:
            change = sa.text(f"UPDATE {table} SET {column} = :clean WHERE {column} = :text")
            connection.execute(change, {"clean": clean, "text": text})


def _origin(text: str) -> str:
    url, newline, rest = text.partition("\n")
    return without_secrets(url) + newline + rest


def _document(text: str) -> str:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return text
    clean = _cleaned(found)
    return text if clean == found else json.dumps(clean)


def _cleaned(value: Any) -> Any:
    if isinstance(value, str):
        return without_secrets(value) if "://" in value else value
    if isinstance(value, list):
        return [_cleaned(one) for one in value]
    if isinstance(value, dict):
        return {key: _cleaned(one) for key, one in value.items()}
    return value


def _drop_pulls(connection: sa.Connection) -> None:
    """Remove records of pulls with a secret: they are signed, so they can't be changed."""
    rows = connection.execute(sa.text("SELECT id, before FROM changes WHERE kind = 'pull'"))
    for number, before in rows.all():
        if before and _document(before) != before:
            connection.execute(sa.text("DELETE FROM changes WHERE id = :id"), {"id": number})
