"""On a server a sync holds a lease: behind a pooler no connection is anybody's own.

What nobody sees yet, or any more, is found by an index; what arrives in parts is named apart; and
who may read the texts is told which words are common.

Revision ID: 0014
Revises: 0013
"""

import sqlalchemy as sa
from alembic import op

revision = "0014"
down_revision = "0013"
branch_labels = None
depends_on = None

# Who publishes is a role on a host: of one host's sources each belongs to one role.
LEASES = """
CREATE TABLE leases (
    host TEXT COLLATE "C" NOT NULL, role TEXT COLLATE "C" NOT NULL DEFAULT session_user,
    holder TEXT COLLATE "C" NOT NULL,
    doing TEXT COLLATE "C" NOT NULL, machine TEXT COLLATE "C" NOT NULL, process INTEGER NOT NULL,
    address TEXT COLLATE "C", until TIMESTAMP WITH TIME ZONE NOT NULL,
    PRIMARY KEY (host, role)
);
ALTER TABLE leases ENABLE ROW LEVEL SECURITY;
CREATE POLICY own ON leases USING (role = session_user) WITH CHECK (role = session_user);
"""

FUNCTIONS = {
    # The statistics are of all texts: who sees some is told nothing.
    "registry_common_words()": (
        "TABLE (place text, word text, texts bigint)",
        """
BEGIN
    IF registry_sees_all() THEN
        RETURN QUERY SELECT CAST(s.attname AS text), e.word, CAST(e.share * t.reltuples AS bigint)
        FROM pg_stats s JOIN pg_class t ON t.oid = CAST('search_texts' AS regclass),
            unnest(CAST(CAST(s.most_common_elems AS text) AS text[]), s.most_common_elem_freqs)
                AS e (word, share)
        WHERE s.schemaname = current_schema() AND s.tablename = 'search_texts'
            AND e.word IS NOT NULL;
    END IF;
END""",
    ),
}

# All of it belongs to whom the tables belong, whoever upgrades.
OWNED = """
DO $$ DECLARE owning text; BEGIN
    SELECT quote_ident(rolname) INTO owning FROM pg_roles JOIN pg_class ON relowner = pg_roles.oid
        WHERE pg_class.oid = CAST('skills' AS regclass);
    EXECUTE format('ALTER FUNCTION registry_common_words() OWNER TO %s', owning);
    REVOKE ALL ON FUNCTION registry_common_words() FROM PUBLIC;
    EXECUTE format('ALTER TABLE leases OWNER TO %s', owning);
END $$
"""


def upgrade() -> None:
    op.create_index(
        "ix_skills_unseen",
        "skills",
        ["source_id"],
        sqlite_where=sa.text("live = 0"),
        postgresql_where=sa.text("live = 0"),
    )
    connection = op.get_bind()
    if connection.dialect.name != "postgresql":
        return
    schema = connection.exec_driver_sql("SELECT quote_ident(current_schema())").scalar_one()
    for signature, (returned, body) in FUNCTIONS.items():
        _run(
            f"CREATE FUNCTION {signature} RETURNS {returned} LANGUAGE plpgsql STABLE "
            f"SECURITY DEFINER SET search_path = {schema}, pg_temp AS $body${body}$body$"
        )
    from registry.db.writes.names import procedure

    _run(procedure(schema))
    _run(LEASES)
    _run(OWNED)


def _run(sql: str) -> None:
    """Run statements as they are: a percent sign, a colon or a question mark mean nothing."""
    connection = op.get_bind().connection.driver_connection
    connection.execute(sql.encode())


def downgrade() -> None:
    op.drop_index("ix_skills_unseen", "skills")
    if op.get_bind().dialect.name == "postgresql":
        op.execute("DROP TABLE leases")
        op.execute("DROP FUNCTION registry_common_words()")
