"""Remember where skills were that are gone, and which changes were made last.

What is known of skills that went before is their history: its last name, and when it was seen.

Revision ID: 0008
Revises: 0006
"""

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0006"
branch_labels = None
depends_on = None

# Compared byte by byte on both databases, so that both keep the same order.
TEXT = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def upgrade() -> None:
    op.create_table(
        "gone",
        sa.Column("uid", TEXT, nullable=False),
        sa.Column("name", TEXT, nullable=False),
        sa.Column("source", TEXT, nullable=False),
        sa.Column("folder", TEXT, nullable=False),
        sa.Column("created_at", TEXT, nullable=False),
        sa.Column("since", TEXT, nullable=False),
        sa.Column("tree_hash", TEXT, nullable=True),
        sa.Column("trash", TEXT, nullable=True),
        sa.PrimaryKeyConstraint("uid", name="pk_gone"),
    )
    op.create_index("ix_gone_name", "gone", ["name"])
    op.create_table(
        "changes",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("number", TEXT, nullable=False),
        sa.Column("host", TEXT, nullable=False),
        sa.Column("kind", TEXT, nullable=False),
        sa.Column("uid", TEXT, nullable=False),
        sa.Column("name", TEXT, nullable=False),
        sa.Column("source", TEXT, nullable=False),
        sa.Column("folder", TEXT, nullable=False),
        sa.Column("before", TEXT, nullable=True),
        sa.Column("after", TEXT, nullable=True),
        sa.Column("made_at", TEXT, nullable=False),
        sa.Column("signature", TEXT, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_changes"),
        sa.UniqueConstraint("number", name="uq_changes_number"),
    )
    op.create_index("ix_changes_uid", "changes", ["uid"])
    op.execute(
        "INSERT INTO gone (uid, name, source, folder, created_at, since) "
        "SELECT r.uid, r.name, '', '', "
        "(SELECT min(f.seen_at) FROM revisions f WHERE f.uid = r.uid), r.seen_at FROM revisions r "
        "WHERE r.number = (SELECT max(l.number) FROM revisions l WHERE l.uid = r.uid) "
        "AND NOT EXISTS (SELECT 1 FROM skills s WHERE s.uid = r.uid AND s.live = 1)"
    )


def downgrade() -> None:
    op.drop_table("changes")
    op.drop_table("gone")
