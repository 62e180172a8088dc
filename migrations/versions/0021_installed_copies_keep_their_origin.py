"""An installed copy that lies in a source of its own keeps the origin that our lock records.

Revision ID: 0021
Revises: 0020
"""

import sqlalchemy as sa
from alembic import op

revision = "0021"
down_revision = "0020"
branch_labels = None
depends_on = None


def upgrade() -> None:
    # Compared byte by byte on both databases, so that both keep the same order.
    text = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
    op.add_column("skills", sa.Column("installed", text))
    some = sa.text("installed IS NOT NULL")
    op.create_index(
        "ix_skills_installed", "skills", ["source_id"], sqlite_where=some, postgresql_where=some
    )


def downgrade() -> None:
    op.drop_index("ix_skills_installed", "skills")
    op.drop_column("skills", "installed")
