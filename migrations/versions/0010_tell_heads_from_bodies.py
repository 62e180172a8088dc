"""Keep heads (name, tags, description) and bodies in indexes of their own, words by their stems.

What is indexed is in the database already, so that nothing has to be read anew.

Revision ID: 0010
Revises: 0009
"""

from collections.abc import Iterator
from typing import Any

import sqlalchemy as sa
from alembic import op

from registry.db.writes.indexed import Indexed, how_indexed

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None

AT_ONCE = 500


def upgrade() -> None:
    connection = op.get_bind()
    op.execute("DROP TABLE skill_search")
    if connection.dialect.name == "sqlite":
        from registry.db.sqlite.index import add_to_index

        words = "content='', tokenize='porter unicode61 remove_diacritics 2'"
        op.execute(
            f"CREATE VIRTUAL TABLE search_heads USING fts5(name, tags, description, {words})"
        )
        op.execute(f"CREATE VIRTUAL TABLE search_bodies USING fts5(body, {words})")
        op.execute("CREATE VIRTUAL TABLE search_words USING fts5vocab(search_heads, 'row')")
    else:
        from registry.db.postgres.index import add_to_index

        # The stems that FTS5 knows, and as there no word is left out.
        op.execute("CREATE TEXT SEARCH DICTIONARY stems (TEMPLATE = snowball, LANGUAGE = porter)")
        op.execute("CREATE TEXT SEARCH CONFIGURATION stems (COPY = pg_catalog.simple)")
        op.execute(
            "ALTER TEXT SEARCH CONFIGURATION stems ALTER MAPPING REPLACE pg_catalog.simple "
            "WITH stems"
        )
        op.execute(
            "CREATE TABLE search_texts (skill_id INTEGER PRIMARY KEY "
            "REFERENCES skills (id) ON DELETE CASCADE, head tsvector NOT NULL, "
            "body tsvector NOT NULL)"
        )
        for column in ("head", "body"):
            op.execute(
                f"CREATE INDEX ix_search_texts_{column} ON search_texts USING gin ({column})"
            )
    op.create_table(
        "sketches",
        sa.Column("skill_id", sa.Integer(), nullable=False),
        sa.Column("data", sa.LargeBinary(), nullable=False),
        sa.ForeignKeyConstraint(
            ["skill_id"],
            ["skills.id"],
            name=op.f("fk_sketches_skill_id_skills"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("skill_id", name=op.f("pk_sketches")),
    )
    # Other texts than before are segmented now; what is not yet at its turn is not indexed.
    op.execute("UPDATE documents SET indexed = 0")
    for versions in _stored(connection):
        connection.execute(
            sa.text("UPDATE documents SET indexed = :how WHERE skill_id = :id"),
            [{"how": one.how, "id": one.id} for one in versions],
        )
        add_to_index(connection, versions)


def _stored(connection: sa.Connection) -> Iterator[list[Indexed]]:
    last = 0
    while rows := _next(connection, last):
        last = rows[-1].id
        yield [
            Indexed(*said, text[start:], how_indexed("ok", (*said[1:], text[start:])))
            for *said, text, start in rows
        ]


def _next(connection: sa.Connection, last: int) -> list[Any]:
    rows = connection.execute(
        sa.text(
            "SELECT s.id, s.name, s.tags, s.description, d.text, d.body_start FROM documents d "
            "JOIN skills s ON s.id = d.skill_id WHERE s.status IN ('ok', 'warning') "
            "AND s.id > :last ORDER BY s.id LIMIT :most"
        ),
        {"last": last, "most": AT_ONCE},
    )
    return list(rows)


def downgrade() -> None:
    connection = op.get_bind()
    op.drop_table("sketches")
    if connection.dialect.name == "sqlite":
        for table in ("search_words", "search_bodies", "search_heads"):
            op.execute(f"DROP TABLE {table}")
        op.execute(
            "CREATE VIRTUAL TABLE skill_search USING fts5("
            "name, tags, description, body, content='', tokenize='unicode61 remove_diacritics 2')"
        )
    else:
        op.execute("DROP TABLE search_texts")
        op.execute("DROP TEXT SEARCH CONFIGURATION stems")
        op.execute("DROP TEXT SEARCH DICTIONARY stems")
        op.execute(
            "CREATE TABLE skill_search (skill_id INTEGER PRIMARY KEY "
            "REFERENCES skills (id) ON DELETE CASCADE, words tsvector NOT NULL, "
            "head tsvector NOT NULL)"
        )
    # A sync of an older program fills the index.
    op.execute("UPDATE documents SET indexed = 0")
