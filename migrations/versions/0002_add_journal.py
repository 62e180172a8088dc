"""Add the journal of unfinished changes.

Revision ID: 0002
Revises: 0001
"""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

# Compared byte by byte on both databases, so that both keep the same order.
TEXT = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def upgrade() -> None:
    op.create_table(
        "journal",
        sa.Column("id", TEXT, nullable=False),
        sa.Column("host", TEXT, nullable=False),
        sa.Column("source_id", sa.Integer(), nullable=False),
        sa.Column("root", TEXT, nullable=False),
        sa.Column("kind", TEXT, nullable=False),
        sa.Column("folder", TEXT, nullable=False),
        sa.Column("target", TEXT, nullable=False),
        sa.Column("staged", TEXT, nullable=False),
        sa.Column("base", TEXT, nullable=True),
        sa.Column("new", TEXT, nullable=True),
        sa.Column("exchange", sa.Integer(), nullable=False),
        sa.Column("uid", TEXT, nullable=True),
        sa.Column("created_at", TEXT, nullable=True),
        sa.Column("started_at", TEXT, nullable=False),
        sa.ForeignKeyConstraint(
            ["source_id"], ["sources.id"], name="fk_journal_source_id", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name="pk_journal"),
    )


def downgrade() -> None:
    op.drop_table("journal")
