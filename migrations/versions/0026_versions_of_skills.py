"""Keep the versions of skills: labels for their files, which are added and never changed.

On a server, the rows of a skill are added by the role that owns its source. A change of state is
in the audit log, as everything is that changes what others see.

Revision ID: 0026
Revises: 0025
"""

import sqlalchemy as sa
from alembic import op

revision = "0026"
down_revision = "0025"
branch_labels = None
depends_on = None

# As in migration 0015.
ME = "(SELECT CAST(session_user AS text))"
UID_KNOWN = (
    "EXISTS (SELECT 1 FROM skills s WHERE s.uid = labels.uid) "
    "OR EXISTS (SELECT 1 FROM gone g WHERE g.uid = labels.uid)"
)
SKILL_OWN = (
    "EXISTS (SELECT 1 FROM skills s WHERE s.uid = labels.uid "
    f"AND s.source_id IN (SELECT id FROM sources WHERE owner = {ME}))"
)
GONE_OWN = f"EXISTS (SELECT 1 FROM gone g WHERE g.uid = labels.uid AND g.owner = {ME})"

ON_SERVER = f"""
ALTER TABLE labels ALTER role SET DEFAULT session_user;

ALTER TABLE labels ENABLE ROW LEVEL SECURITY;
CREATE POLICY seen ON labels FOR SELECT USING ((SELECT registry_sees_all()) OR {UID_KNOWN});
CREATE POLICY added ON labels FOR INSERT WITH CHECK (role = {ME} AND {SKILL_OWN});
CREATE POLICY removed ON labels FOR DELETE
    USING ({SKILL_OWN} OR {GONE_OWN} OR (role = {ME} AND NOT ({UID_KNOWN})));

CREATE TRIGGER keep BEFORE UPDATE ON labels
    FOR EACH ROW EXECUTE FUNCTION registry_refuse();

CREATE FUNCTION registry_tell_label() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = :schema, pg_temp AS $body$
DECLARE place text;
BEGIN
    SELECT o.name || '/' || s.folder INTO place FROM skills s JOIN sources o ON o.id = s.source_id
        WHERE s.uid = NEW.uid AND s.live = 1 ORDER BY s.id LIMIT 1;
    PERFORM registry_note(
        CASE WHEN NEW.state = 'active' THEN 'version active again' ELSE 'version ' || NEW.state END,
        coalesce(place, NEW.uid) || '@' || NEW.label,
        json_build_object('reason', NEW.reason, 'replacement', NEW.replacement));
    RETURN NULL;
END$body$;
CREATE TRIGGER tell AFTER INSERT ON labels
    FOR EACH ROW WHEN (NEW.number > 0) EXECUTE FUNCTION registry_tell_label();

-- That a yanked version is withdrawn says nothing about trust.
DROP TRIGGER tell ON skills;
CREATE TRIGGER tell AFTER UPDATE OF held ON skills
    FOR EACH ROW WHEN ((OLD.held = 1) <> (NEW.held = 1)) EXECUTE FUNCTION registry_tell_trust();

-- It belongs to whom the tables belong, whoever upgrades.
DO $$ DECLARE owning text; BEGIN
    SELECT quote_ident(rolname) INTO owning FROM pg_roles JOIN pg_class ON relowner = pg_roles.oid
        WHERE pg_class.oid = CAST('skills' AS regclass);
    EXECUTE format('ALTER TABLE labels OWNER TO %s', owning);
    EXECUTE format('ALTER ROUTINE registry_tell_label() OWNER TO %s', owning);
    REVOKE ALL ON ROUTINE registry_tell_label() FROM PUBLIC;
END $$;
"""


def upgrade() -> None:
    # Compared byte by byte on both databases, so that both keep the same order.
    text = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
    op.create_table(
        "labels",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("uid", text, nullable=False),
        sa.Column("label", text, nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("tree_hash", text, nullable=False),
        sa.Column("state", text, nullable=False),
        sa.Column("at", text, nullable=False),
        sa.Column("reason", text),
        sa.Column("replacement", text),
        sa.Column("role", text),
        sa.Column("host", text),
        sa.Column("tool", text),
        sa.Column("client", text),
        sa.PrimaryKeyConstraint("id", name="pk_labels"),
        sa.UniqueConstraint("uid", "label", "number", name="uq_labels_uid_label_number"),
    )
    op.create_index("ix_labels_tree_hash", "labels", ["tree_hash"])
    connection = op.get_bind()
    if connection.dialect.name != "postgresql":
        return
    schema = connection.exec_driver_sql("SELECT quote_ident(current_schema())").scalar_one()
    _run(ON_SERVER.replace(":schema", schema))


def _run(sql: str) -> None:
    """Run statements as they are: a percent sign, a colon or a question mark mean nothing."""
    connection = op.get_bind().connection.driver_connection
    connection.execute(sql.encode())


def downgrade() -> None:
    if op.get_bind().dialect.name == "postgresql":
        _run(
            "DROP TRIGGER tell ON skills; CREATE TRIGGER tell AFTER UPDATE OF held ON skills "
            "FOR EACH ROW WHEN (OLD.held <> NEW.held) EXECUTE FUNCTION registry_tell_trust();"
        )
    op.drop_table("labels")
    if op.get_bind().dialect.name == "postgresql":
        _run("DROP FUNCTION registry_tell_label()")
