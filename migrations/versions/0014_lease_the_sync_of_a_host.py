"""On a server a sync holds a lease: behind a pooler no connection is anybody's own.

Revision ID: 0014
Revises: 0012
"""

from alembic import op

revision = "0014"
down_revision = "0012"
branch_labels = None
depends_on = None


def upgrade() -> None:
    if op.get_bind().dialect.name == "postgresql":
        op.execute(
            'CREATE TABLE leases (host TEXT COLLATE "C" PRIMARY KEY, '
            'holder TEXT COLLATE "C" NOT NULL, '
            'doing TEXT COLLATE "C" NOT NULL, machine TEXT COLLATE "C" NOT NULL, '
            'process INTEGER NOT NULL, address TEXT COLLATE "C", '
            "until TIMESTAMP WITH TIME ZONE NOT NULL)"
        )


def downgrade() -> None:
    if op.get_bind().dialect.name == "postgresql":
        op.execute("DROP TABLE leases")
