"""Let no role change which skill had a name in git repositories first.

On a server, a writer could give its own row of `entries` an older number or another name, and so
take the name of another owner's skill. Now the server numbers new rows itself, and an update only
changes the version number.

Revision ID: 0028
Revises: 0027
"""

from alembic import op

revision = "0028"
down_revision = "0027"
branch_labels = None
depends_on = None

ON_SERVER = """
CREATE FUNCTION registry_guard_entry() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = :schema, pg_temp AS $body$
BEGIN
    IF registry_is_admin() THEN
        RETURN NEW;
    END IF;
    IF TG_OP = 'INSERT' THEN
        NEW.id := nextval('entries_id_seq');
        IF NOT EXISTS (SELECT 1 FROM skills s JOIN sources o ON o.id = s.source_id
                WHERE s.uid = NEW.uid AND s.name = NEW.name
                AND o.name = NEW.source AND o.owner = NEW.owner) THEN
            RAISE EXCEPTION 'no skill has this name' USING ERRCODE = 'SR003';
        END IF;
    ELSIF to_jsonb(NEW) - 'number' <> to_jsonb(OLD) - 'number' THEN
        RAISE EXCEPTION 'a name keeps its owner' USING ERRCODE = 'SR003';
    END IF;
    RETURN NEW;
END$body$;
CREATE TRIGGER guard BEFORE INSERT OR UPDATE ON entries
    FOR EACH ROW EXECUTE FUNCTION registry_guard_entry();

-- It belongs to whom the tables belong, whoever upgrades.
DO $$ DECLARE owning text; BEGIN
    SELECT quote_ident(rolname) INTO owning FROM pg_roles JOIN pg_class ON relowner = pg_roles.oid
        WHERE pg_class.oid = CAST('skills' AS regclass);
    EXECUTE format('ALTER ROUTINE registry_guard_entry() OWNER TO %s', owning);
    REVOKE ALL ON ROUTINE registry_guard_entry() FROM PUBLIC;
END $$;
"""


def upgrade() -> None:
    connection = op.get_bind()
    if connection.dialect.name == "postgresql":
        schema = connection.exec_driver_sql("SELECT quote_ident(current_schema())").scalar_one()
        _run(ON_SERVER.replace(":schema", schema))


def downgrade() -> None:
    if op.get_bind().dialect.name == "postgresql":
        _run("DROP TRIGGER guard ON entries; DROP FUNCTION registry_guard_entry();")


def _run(sql: str) -> None:
    """Run statements as they are: a percent sign, a colon or a question mark mean nothing."""
    connection = op.get_bind().connection.driver_connection
    connection.execute(sql.encode())
