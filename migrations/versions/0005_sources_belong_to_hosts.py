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


def upgrade() -> None:
    with op.batch_alter_table("sources") as sources:
        sources.add_column(sa.Column("host", TEXT, server_default="", nullable=False))
        sources.drop_constraint("uq_sources_path", type_="unique")
        sources.create_unique_constraint("uq_sources_host_path", ["host", "path"])
    op.execute("UPDATE journal SET host = ''")
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
