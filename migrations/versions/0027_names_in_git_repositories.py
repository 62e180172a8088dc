"""Keep the names and version numbers under which git repositories publish skills.

Revision ID: 0027
Revises: 0026
"""

import sqlalchemy as sa
from alembic import op

revision = "0027"
down_revision = "0026"
branch_labels = None
depends_on = None

# As in migration 0015.
ME = "(SELECT CAST(session_user AS text))"
UID_KNOWN = (
    "EXISTS (SELECT 1 FROM skills s WHERE s.uid = entries.uid) "
    "OR EXISTS (SELECT 1 FROM gone g WHERE g.uid = entries.uid)"
)
SKILL_OWN = (
    "EXISTS (SELECT 1 FROM skills s WHERE s.uid = entries.uid "
    f"AND s.source_id IN (SELECT id FROM sources WHERE owner = {ME}))"
)

ON_SERVER = f"""
ALTER TABLE entries ENABLE ROW LEVEL SECURITY;
CREATE POLICY seen ON entries FOR SELECT
    USING ((SELECT registry_sees_all()) OR owner = {ME} OR {UID_KNOWN});
CREATE POLICY added ON entries FOR INSERT WITH CHECK (owner = {ME} AND {SKILL_OWN});
CREATE POLICY changed ON entries FOR UPDATE USING ({SKILL_OWN}) WITH CHECK ({SKILL_OWN});

-- It belongs to whom the tables belong, whoever upgrades.
DO $$ DECLARE owning text; BEGIN
    SELECT quote_ident(rolname) INTO owning FROM pg_roles JOIN pg_class ON relowner = pg_roles.oid
        WHERE pg_class.oid = CAST('skills' AS regclass);
    EXECUTE format('ALTER TABLE entries OWNER TO %s', owning);
END $$;
"""

# No repository has published a skill that is gone.
FILL = """
INSERT INTO entries (uid, name, source, owner, slot, base, number)
SELECT s.uid, s.name, src.name, src.owner,
    row_number() OVER (PARTITION BY s.source_id, s.name ORDER BY c.first), 0, c.turn
FROM (SELECT uid, min(id) AS first, max(coalesce(turn, number)) AS turn
    FROM revisions GROUP BY uid) c
JOIN skills s ON s.uid = c.uid AND s.live = 1 JOIN sources src ON src.id = s.source_id
ORDER BY c.first
"""


def upgrade() -> None:
    # Compared byte by byte on both databases, so that both keep the same order.
    text = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
    op.create_table(
        "entries",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("uid", text, nullable=False),
        sa.Column("name", text, nullable=False),
        sa.Column("source", text, nullable=False),
        sa.Column("owner", text),
        sa.Column("slot", sa.Integer(), nullable=False),
        sa.Column("base", sa.BigInteger(), nullable=False),
        sa.Column("number", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_entries"),
        sa.UniqueConstraint("uid", "name", name="uq_entries_uid_name"),
    )
    op.create_index("ix_entries_name", "entries", ["name"])
    connection = op.get_bind()
    connection.exec_driver_sql(FILL)
    if connection.dialect.name == "postgresql":
        connection.connection.driver_connection.execute(ON_SERVER.encode())


def downgrade() -> None:
    op.drop_table("entries")
