"""On a server a first import is told apart from its namesakes in parts, before it is shown.

A new source asks for the names that it takes as refs alone, not for all; and that a first import is
hidden for a while is no change of the source that the audit would tell.

Revision ID: 0015
Revises: 0014
"""

from alembic import op

revision = "0015"
down_revision = "0014"
branch_labels = None
depends_on = None

BELOW = "registry_refresh_names_below(text)"

TELLS = """
DROP TRIGGER tell ON sources;
CREATE TRIGGER tell AFTER INSERT OR DELETE OR UPDATE OF {columns} ON sources
    FOR EACH ROW EXECUTE FUNCTION registry_tell_source();
"""
TOLD = "name, path, scope, priority, host, project, kind, url, pin, part, chosen, owner, team"

# It belongs to whom the tables belong, whoever upgrades.
OWNED = f"""
DO $$ DECLARE owning text; BEGIN
    SELECT quote_ident(rolname) INTO owning FROM pg_roles JOIN pg_class ON relowner = pg_roles.oid
        WHERE pg_class.oid = CAST('skills' AS regclass);
    EXECUTE format('ALTER ROUTINE {BELOW} OWNER TO %s', owning);
    REVOKE ALL ON ROUTINE {BELOW} FROM PUBLIC;
END $$
"""


def upgrade() -> None:
    connection = op.get_bind()
    if connection.dialect.name != "postgresql":
        return
    schema = connection.exec_driver_sql("SELECT quote_ident(current_schema())").scalar_one()
    from registry.db.writes.names import procedure, procedure_below

    _run(procedure(schema))
    _run(procedure_below(schema))
    _run(OWNED)
    _run(TELLS.format(columns=TOLD))


def _run(sql: str) -> None:
    """Run statements as they are: a percent sign, a colon or a question mark mean nothing."""
    connection = op.get_bind().connection.driver_connection
    connection.execute(sql.encode())


def downgrade() -> None:
    if op.get_bind().dialect.name == "postgresql":
        op.execute(f"DROP PROCEDURE {BELOW}")
        _run(TELLS.format(columns=TOLD.replace("priority,", "priority, enabled,")))
