"""Keep the tokens with which others enter, and in which order contents were current.

A client that compares versions sees that an old content came back only where the version rises.

Revision ID: 0012
Revises: 0011
"""

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None

# Compared byte by byte on both databases, so that both keep the same order.
TEXT = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def upgrade() -> None:
    op.create_table(
        "tokens",
        sa.Column("number", TEXT, nullable=False),
        sa.Column("hash", TEXT, nullable=False),
        sa.Column("name", TEXT, nullable=False),
        sa.Column("personality", TEXT, nullable=True),
        sa.Column("source", TEXT, nullable=True),
        sa.Column("write", sa.Integer(), nullable=False),
        sa.Column("created_at", TEXT, nullable=False),
        sa.Column("expires_at", TEXT, nullable=True),
        sa.Column("used_at", TEXT, nullable=True),
        sa.Column("signature", TEXT, nullable=False),
        sa.PrimaryKeyConstraint("number", name="pk_tokens"),
        sa.UniqueConstraint("hash", name="uq_tokens_hash"),
    )
    op.add_column("revisions", sa.Column("turn", sa.Integer(), nullable=True))
    op.execute(
        "UPDATE revisions SET turn = 1 + (SELECT max(x.number) FROM revisions x "
        "WHERE x.uid = revisions.uid) WHERE id IN (SELECT r.id FROM skills s "
        "JOIN revisions r ON r.uid = s.uid AND r.tree_hash = s.tree_hash WHERE s.live = 1 "
        "AND EXISTS (SELECT 1 FROM revisions x WHERE x.uid = r.uid AND x.number > r.number))"
    )


def downgrade() -> None:
    op.drop_column("revisions", "turn")
    op.drop_table("tokens")
