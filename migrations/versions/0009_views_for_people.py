"""Show people what there is as views in plain words, and count what tools do by day.

SQLite does not rename a table while a view reads one that is missing: a later migration that builds
``skills``, ``sources``, ``skill_tags``, ``revisions`` or ``usage`` anew drops the views first and
makes them again.

Revision ID: 0009
Revises: 0008
"""

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None

# Compared byte by byte on both databases, so that both keep the same order.
TEXT = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")

# Folders that lost their document are kept as rows, and are no skills.
LIVE = "s.live = 1 AND s.status <> 'no_document'"

# A comparison is a truth value on PostgreSQL and 1 or 0 on SQLite: WHERE shadowed works on both.
VIEWS = {
    "skill": f"""
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
WHERE {LIVE}
""",
    "skill_tag": f"""
SELECT s.ref, s.name, t.tag FROM skills s JOIN skill_tags t ON t.skill_id = s.id WHERE {LIVE}
""",
    "revision": f"""
SELECT s.ref AS skill, r.number, r.name, r.seen_at,
    CASE r.number WHEN 1 THEN 'added' ELSE 'updated' END AS what,
    CASE WHEN s.tree_hash = r.tree_hash THEN 1 ELSE 0 END = 1 AS current,
    r.document, r.content_hash, r.tree_hash, r.uid
FROM revisions r LEFT JOIN skills s ON s.uid = r.uid AND {LIVE}
""",
    "usage_by_day": f"""
SELECT d.day, s.ref AS skill, d.listed, d.found, d.read, d.uid
FROM usage_days d LEFT JOIN skills s ON s.uid = d.uid AND {LIVE}
""",
}


def upgrade() -> None:
    op.create_table(
        "usage_days",
        sa.Column("day", TEXT, nullable=False),
        sa.Column("uid", TEXT, nullable=False),
        sa.Column("listed", sa.BigInteger(), nullable=False),
        sa.Column("found", sa.BigInteger(), nullable=False),
        sa.Column("read", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("day", "uid", name="pk_usage_days"),
        sqlite_with_rowid=False,
    )
    for name, query in VIEWS.items():
        op.execute(f"CREATE VIEW {name} AS {query}")


def downgrade() -> None:
    for name in VIEWS:
        op.execute(f"DROP VIEW {name}")
    op.drop_table("usage_days")
