"""Record which changes one command made, so that `undo` takes them back together.

Revision ID: 0020
Revises: 0019
"""

import sqlalchemy as sa
from alembic import op

revision = "0020"
down_revision = "0019"
branch_labels = None
depends_on = None


def upgrade() -> None:
    # Compared byte by byte on both databases, so that both keep the same order.
    text = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
    op.add_column("changes", sa.Column("command", text))


def downgrade() -> None:
    with op.batch_alter_table("changes") as table:
        table.drop_column("command")
