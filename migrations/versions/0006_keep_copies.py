"""Each skill knows its copies: others of the same name with the same files.

They are worked out at once, since a name that was ambiguous may now mean one skill.

Revision ID: 0006
Revises: 0005
"""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None

# Compared byte by byte on both databases, so that both keep the same order.
TEXT = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def upgrade() -> None:
    op.add_column("skills", sa.Column("copies", TEXT, server_default="", nullable=False))


def downgrade() -> None:
    with op.batch_alter_table("skills") as skills:
        skills.drop_column("copies")
