"""Sources that are checkouts of what lies elsewhere, and skills of theirs that are held back.

Revision ID: 0011
Revises: 0010
"""

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None

# Compared byte by byte on both databases, so that both keep the same order.
TEXT = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
# What "skill" shows beside what it did (0009).
BEFORE = "s.file_count, s.bytes,"
ADDED = f"""src.url AS origin_url, src.pin AS origin_ref, src.version AS origin_commit,
    s.held = 1 AS held, {BEFORE}"""
SKILL = """
SELECT s.ref, s.name, s.description, s.kind, s.category,
    CASE s.tags WHEN '' THEN '[]' ELSE '["' || replace(replace(replace(
        s.tags, '\\', '\\\\'), '"', '\\"'), '\n', '","') || '"]' END AS tags,
    src.scope, src.name AS source,
    CASE s.folder WHEN '.' THEN src.path ELSE src.path || '/' || s.folder END AS path,
    s.version, s.license, s.author, s.created_at, s.updated_at, s.content_hash, s.tree_hash,
    s.status, s.shadowed = 1 AS shadowed, s.hidden = 1 AS hidden, s.folder, src.host, src.project,
    s.file_count, s.bytes,
    coalesce(u.listed, 0) AS listed, coalesce(u.found, 0) AS found, coalesce(u.read, 0) AS read,
    u.last_read_at, s.uid
FROM skills s JOIN sources src ON src.id = s.source_id LEFT JOIN usage u ON u.uid = s.uid
WHERE s.live = 1 AND s.status <> 'no_document'
"""
REMOTE = ("kind", "url", "pin", "part", "chosen", "version", "fetched_at")


def upgrade() -> None:
    for name in REMOTE:
        op.add_column("sources", sa.Column(name, TEXT))
    op.add_column("skills", sa.Column("held", sa.Integer, server_default="0", nullable=False))
    op.add_column("revisions", sa.Column("origin", TEXT))
    op.execute("DROP VIEW skill")
    op.execute(f"CREATE VIEW skill AS {SKILL.replace(BEFORE, ADDED)}")


def downgrade() -> None:
    op.execute("DROP VIEW skill")
    op.execute(f"CREATE VIEW skill AS {SKILL}")
    op.drop_column("revisions", "origin")
    op.drop_column("skills", "held")
    for name in reversed(REMOTE):
        op.drop_column("sources", name)
