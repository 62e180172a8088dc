"""Keep a sentence vector beside each sketch, for the extra ``semantic``.

Revision ID: 0028
Revises: 0027
"""

import sqlalchemy as sa
from alembic import op

revision = "0028"
down_revision = "0027"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("sketches", sa.Column("vector", sa.LargeBinary()))


def downgrade() -> None:
    op.drop_column("sketches", "vector")
