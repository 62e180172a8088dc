"""Sources belong to hosts, and a server counts what changed it.

In a SQLite file the empty host stands for whoever opens it.

Revision ID: 0005
Revises: 0004
"""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None

# Compared byte by byte on both databases, so that both keep the same order.
TEXT = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")

FIRST_REVISIONS = """
INSERT INTO revisions (uid, number, name, document, content_hash, tree_hash, seen_at, files)
SELECT s.uid, 1, s.name, s.document, s.content_hash, s.tree_hash, s.indexed_at,
  (SELECT json_group_array(json_array(f.path, (f.mode & 64) <> 0, f.size, f.hash))
   FROM skill_files f WHERE f.skill_id = s.id)
FROM skills s
WHERE s.live = 1 AND s.tree_hash IS NOT NULL AND s.status <> 'no_document'
  AND NOT EXISTS (SELECT 1 FROM revisions r WHERE r.uid = s.uid)
GROUP BY s.uid
"""


def upgrade() -> None:
    with op.batch_alter_table("sources") as sources:
        sources.add_column(sa.Column("host", TEXT, server_default="", nullable=False))
        sources.drop_constraint("uq_sources_path", type_="unique")
        sources.create_unique_constraint("uq_sources_host_path", ["host", "path"])
    op.execute("UPDATE journal SET host = ''")
    if op.get_bind().dialect.name == "sqlite":
        # What is there now is where the history of each skill begins.
        op.execute(FIRST_REVISIONS)
    if op.get_bind().dialect.name == "postgresql":
        op.execute("CREATE TABLE data_version (number BIGINT NOT NULL)")
        op.execute("INSERT INTO data_version VALUES (0)")


def downgrade() -> None:
    if op.get_bind().dialect.name == "postgresql":
        op.execute("DROP TABLE data_version")
    with op.batch_alter_table("sources") as sources:
        sources.drop_constraint("uq_sources_host_path", type_="unique")
        sources.create_unique_constraint("uq_sources_path", ["path"])
        sources.drop_column("host")
