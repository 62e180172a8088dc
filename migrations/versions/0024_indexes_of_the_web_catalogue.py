"""Indexes for the web catalogue: skills by their last update, and findings by code.

Revision ID: 0024
Revises: 0023
"""

import sqlalchemy as sa
from alembic import op

revision = "0024"
down_revision = "0023"
branch_labels = None
depends_on = None


def upgrade() -> None:
    live = sa.text("live = 1")
    op.create_index(
        "ix_skills_updated",
        "skills",
        [sa.text("updated_at DESC"), "name_key", "source_id", "position"],
        sqlite_where=live,
        postgresql_where=live,
    )
    op.create_index("ix_diagnostics_code", "diagnostics", ["code", "severity", "skill_id"])


def downgrade() -> None:
    op.drop_index("ix_diagnostics_code", "diagnostics")
    op.drop_index("ix_skills_updated", "skills")
