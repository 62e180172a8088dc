"""An index with all columns that the counts of a SQLite file read.

The rows of skills are long. With this index, the file counts skills without reading their rows. A
server has stored totals instead; there, an index with long texts would refuse some skills.

Revision ID: 0032
Revises: 0031
"""

from alembic import op

revision = "0032"
down_revision = "0031"
branch_labels = None
depends_on = None


def upgrade() -> None:
    if op.get_bind().dialect.name == "sqlite":
        # No query looks for a number of bytes. So the index serves only queries that read all of
        # it. If it began with the source, SQLite would also use it to look for one skill.
        op.execute(
            "CREATE INDEX ix_skills_counted ON skills (bytes, source_id, status, held, shadowed, "
            "hidden, name, uid, kind, category, created_at, updated_at, file_count, live) "
            "WHERE live = 1"
        )


def downgrade() -> None:
    if op.get_bind().dialect.name == "sqlite":
        op.execute("DROP INDEX ix_skills_counted")
