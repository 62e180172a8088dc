"""Between the sources of different owners only an admin's decision counts.

Scope and priority compare the sources of one owner. What an admin decides is in ``precedence``;
a role that is not an admin can't write it. Nothing counts between owners before an admin says so,
so what was set before this migration stops counting there: `db upgrade` lists those sources.

A reader counts the uses of skills without the right to lock the tables of these counts.

Revision ID: 0016
Revises: 0015
"""

import sqlalchemy as sa
from alembic import op

revision = "0016"
down_revision = "0015"
branch_labels = None
depends_on = None

TOLD = (
    "name path scope priority enabled host project kind url pin part chosen owner team precedence"
).split()
COLUMNS = "name, path, scope, priority, host, project, kind, url, pin, part, chosen, owner, team"
GUARD = "registry_guard_precedence()"

# What an admin put first is put first for those who see it then: a role that lets others see it,
# or a new owner, asks an admin again.
FUNCTIONS = {
    GUARD: """
BEGIN
    IF TG_OP = 'UPDATE' AND NEW.id <> OLD.id THEN
        RAISE EXCEPTION 'the number of a source stays as it is' USING ERRCODE = 'SR003';
    END IF;
    IF TG_OP = 'INSERT' THEN
        IF NOT registry_is_admin() THEN
            NEW.precedence := 0;
        END IF;
    ELSIF NEW.precedence <> OLD.precedence THEN
        IF NOT registry_is_admin() THEN
            RAISE EXCEPTION 'only an admin decides the precedence between owners'
                USING ERRCODE = 'SR003';
        END IF;
    ELSIF NEW.owner IS DISTINCT FROM OLD.owner OR (
        (NEW.team, NEW.project, NEW.scope = 'project')
            IS DISTINCT FROM (OLD.team, OLD.project, OLD.scope = 'project')
        AND NOT registry_is_admin()
    ) THEN
        NEW.precedence := 0;
    END IF;
    RETURN NEW;
END""",
    "registry_tell_source()": f"""
DECLARE told json;
BEGIN
    IF TG_OP = 'UPDATE' THEN
        SELECT json_object_agg(n.key, json_build_array(o.value, n.value)) INTO told
        FROM jsonb_each(to_jsonb(OLD)) o JOIN jsonb_each(to_jsonb(NEW)) n ON n.key = o.key
        WHERE n.value <> o.value AND n.key IN ({", ".join(f"'{one}'" for one in TOLD)});
        IF told IS NOT NULL THEN
            PERFORM registry_note('source changed', OLD.name, told);
        END IF;
    ELSIF TG_OP = 'INSERT' THEN
        PERFORM registry_note('source added', NEW.name,
            json_build_object('path', NEW.path, 'host', NEW.host, 'owner', NEW.owner));
    ELSE
        PERFORM registry_note('source removed', OLD.name,
            json_build_object('path', OLD.path, 'host', OLD.host, 'owner', OLD.owner));
    END IF;
    RETURN NULL;
END""",
}

TELLS = """
DROP TRIGGER tell ON sources;
CREATE TRIGGER tell AFTER INSERT OR DELETE OR UPDATE OF {columns} ON sources
    FOR EACH ROW EXECUTE FUNCTION registry_tell_source();
"""
GUARDS = """
CREATE TRIGGER guard_precedence BEFORE INSERT OR UPDATE ON sources
    FOR EACH ROW EXECUTE FUNCTION registry_guard_precedence();
"""

# It belongs to whom the tables belong, whoever upgrades.
OWNED = f"""
DO $$ DECLARE owning text; BEGIN
    SELECT quote_ident(rolname) INTO owning FROM pg_roles JOIN pg_class ON relowner = pg_roles.oid
        WHERE pg_class.oid = CAST('skills' AS regclass);
    EXECUTE format('ALTER ROUTINE {GUARD} OWNER TO %s', owning);
    REVOKE ALL ON ROUTINE {GUARD} FROM PUBLIC;
END $$
"""


def upgrade() -> None:
    op.add_column(
        "sources", sa.Column("precedence", sa.Integer(), server_default="0", nullable=False)
    )
    connection = op.get_bind()
    if connection.dialect.name != "postgresql":
        return
    schema = connection.exec_driver_sql("SELECT quote_ident(current_schema())").scalar_one()
    for signature, body in FUNCTIONS.items():
        _run(
            f"CREATE OR REPLACE FUNCTION {signature} RETURNS trigger LANGUAGE plpgsql "
            f"SECURITY DEFINER SET search_path = {schema}, pg_temp AS $body${body}$body$"
        )
    from registry.db.write.names import procedure

    _run(procedure(schema))
    _run(TELLS.format(columns=f"{COLUMNS}, precedence") + GUARDS)
    _run(OWNED)


def _run(sql: str) -> None:
    """Run statements as they are: a percent sign, a colon or a question mark mean nothing."""
    connection = op.get_bind().connection.driver_connection
    connection.execute(sql.encode())


def downgrade() -> None:
    if op.get_bind().dialect.name == "postgresql":
        _run(TELLS.format(columns=COLUMNS))
        _run(f"DROP FUNCTION {GUARD} CASCADE")
    op.drop_column("sources", "precedence")
