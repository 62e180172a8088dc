"""A project's skills are seen in its folder only, and are called by their names alone there.

Revision ID: 0007
Revises: 0006
"""

import os

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None

# Compared byte by byte on both databases, so that both keep the same order.
TEXT = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")

AGENTS = "agents claude codex copilot cursor gemini hermes openclaw ethos wave github"
FOLDERS = (*(f"/.{agent}/skills" for agent in AGENTS.split()), "/.miniclaw/workspace/skills")


def upgrade() -> None:
    op.add_column("sources", sa.Column("project", TEXT))
    op.add_column("skills", sa.Column("bare", sa.Integer, server_default="0", nullable=False))
    connection = op.get_bind()
    known = sa.table("sources", sa.column("id"), sa.column("path"), sa.column("project"))
    projects = connection.execute(
        sa.text("SELECT id, path FROM sources WHERE scope = 'project'")
    ).all()
    for number, path in projects:
        # The folders of other machines can't be looked at, so that no .git is looked for.
        known_folder = next((folder for folder in FOLDERS if path.endswith(folder)), None)
        project = path.removesuffix(known_folder) if known_folder else os.path.dirname(path)
        connection.execute(
            sa.update(known).where(known.c.id == number).values(project=project or "/")
        )


def downgrade() -> None:
    with op.batch_alter_table("skills") as skills:
        skills.drop_column("bare")
    with op.batch_alter_table("sources") as sources:
        sources.drop_column("project")
