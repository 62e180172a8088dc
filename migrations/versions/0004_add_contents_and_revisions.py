"""Keep the bytes of all files, once each, and what each skill was like before.

Revision ID: 0004
Revises: 0003
"""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None

# Compared byte by byte on both databases, so that both keep the same order.
TEXT = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def upgrade() -> None:
    op.create_table(
        "contents",
        sa.Column("hash", TEXT, nullable=False),
        sa.Column("size", sa.BigInteger(), nullable=False),
        sa.Column("packed", sa.Integer(), nullable=False),
        sa.Column("data", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("hash", name="pk_contents"),
    )
    op.create_table(
        "revisions",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("uid", TEXT, nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("name", TEXT, nullable=False),
        sa.Column("document", TEXT, nullable=True),
        sa.Column("content_hash", TEXT, nullable=True),
        sa.Column("tree_hash", TEXT, nullable=False),
        sa.Column("seen_at", TEXT, nullable=False),
        sa.Column("files", TEXT, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_revisions"),
        sa.UniqueConstraint("uid", "number", name="uq_revisions_uid_number"),
        sa.UniqueConstraint("uid", "tree_hash", name="uq_revisions_uid_tree_hash"),
    )


def downgrade() -> None:
    op.drop_table("revisions")
    op.drop_table("contents")
