"""Count how often tools list, find and read each skill.

Revision ID: 0003
Revises: 0002
"""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

# Compared byte by byte on both databases, so that both keep the same order.
TEXT = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def upgrade() -> None:
    op.create_table(
        "usage",
        sa.Column("uid", TEXT, nullable=False),
        sa.Column("listed", sa.BigInteger(), nullable=False),
        sa.Column("found", sa.BigInteger(), nullable=False),
        sa.Column("read", sa.BigInteger(), nullable=False),
        sa.Column("last_listed_at", TEXT, nullable=True),
        sa.Column("last_found_at", TEXT, nullable=True),
        sa.Column("last_read_at", TEXT, nullable=True),
        sa.PrimaryKeyConstraint("uid", name="pk_usage"),
    )


def downgrade() -> None:
    op.drop_table("usage")
