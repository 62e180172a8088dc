"""Publishing: rights of tokens, sources under review, and proposals with their files.

Revision ID: 0025
Revises: 0024
"""

import sqlalchemy as sa
from alembic import op

from registry.db.migrate import run_on_server

revision = "0025"
down_revision = "0024"
branch_labels = None
depends_on = None

ME = "(SELECT CAST(session_user AS text))"
SOURCE_OWN = f"source_id IN (SELECT id FROM sources WHERE owner = {ME})"
SOURCE_SEEN = "source_id IN (SELECT id FROM sources)"

FUNCTIONS = """
-- The right to approve is the right to update the column role, which no update changes.
CREATE FUNCTION registry_may_approve() RETURNS boolean
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = :schema, pg_temp AS $body$
BEGIN
    RETURN has_column_privilege(session_user, 'proposals', 'role', 'UPDATE');
END$body$;

-- A proposal is what was proposed: only the decision about it changes.
CREATE FUNCTION registry_guard_proposal() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = :schema, pg_temp AS $body$
DECLARE is_own boolean;
BEGIN
    IF TG_OP = 'INSERT' THEN
        IF NEW.state <> 'pending' AND NOT registry_is_admin() THEN
            RAISE EXCEPTION 'a new proposal is not decided' USING ERRCODE = 'SR003';
        END IF;
        PERFORM registry_note('skill proposed', NEW.name, json_build_object('proposal', NEW.id,
            'kind', NEW.kind, 'tree_hash', NEW.tree_hash, 'author', NEW.author));
        RETURN NEW;
    END IF;
    IF to_jsonb(NEW) - ARRAY['state', 'decided_by', 'decided_at', 'reason', 'archive']
            <> to_jsonb(OLD) - ARRAY['state', 'decided_by', 'decided_at', 'reason', 'archive']
            OR NEW.archive IS DISTINCT FROM OLD.archive
                AND NOT (NEW.archive IS NULL AND OLD.state IN ('applied', 'rejected')) THEN
        RAISE EXCEPTION 'a proposal never changes' USING ERRCODE = 'SR003';
    END IF;
    SELECT owner = session_user INTO is_own FROM sources WHERE id = NEW.source_id;
    IF NOT (is_own OR registry_is_admin()) THEN
        IF NEW.state NOT IN ('approved', 'rejected') OR OLD.state <> 'pending'
                OR OLD.role = session_user THEN
            RAISE EXCEPTION 'this role may not decide this' USING ERRCODE = 'SR002';
        END IF;
        NEW.decided_by := session_user;
    END IF;
    IF NEW.state <> OLD.state THEN
        PERFORM registry_note('proposal ' || NEW.state, NEW.name, json_build_object(
            'proposal', NEW.id, 'kind', NEW.kind, 'tree_hash', NEW.tree_hash,
            'author', NEW.author, 'by', NEW.decided_by, 'reason', NEW.reason));
    END IF;
    RETURN NEW;
END$body$;

CREATE FUNCTION registry_tell_review() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = :schema, pg_temp AS $body$
BEGIN
    PERFORM registry_note('source changed', NEW.name,
        json_build_object('review', json_build_array(
            CASE WHEN OLD.review > 0 THEN 'required' ELSE 'none' END,
            CASE WHEN NEW.review > 0 THEN 'required' ELSE 'none' END)));
    RETURN NULL;
END$body$;

-- Reads and publications are told by the client: the server can't see them itself.
CREATE FUNCTION registry_note_use(what text, subject text, detail text) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = :schema, pg_temp AS $body$
BEGIN
    IF $1 NOT IN ('skill published', 'skill downloaded') OR length($2) > 1000
            OR length($3) > 4000 THEN
        RAISE EXCEPTION 'this may not be noted' USING ERRCODE = 'SR003';
    END IF;
    PERFORM registry_note($1, $2, CAST($3 AS json));
END$body$;

CREATE TRIGGER guard BEFORE INSERT OR UPDATE ON proposals
    FOR EACH ROW EXECUTE FUNCTION registry_guard_proposal();
CREATE TRIGGER tell_review AFTER UPDATE OF review ON sources
    FOR EACH ROW WHEN (OLD.review <> NEW.review) EXECUTE FUNCTION registry_tell_review();

REVOKE ALL ON FUNCTION registry_may_approve() FROM PUBLIC;
REVOKE ALL ON FUNCTION registry_guard_proposal() FROM PUBLIC;
REVOKE ALL ON FUNCTION registry_tell_review() FROM PUBLIC;
REVOKE ALL ON FUNCTION registry_note_use(text, text, text) FROM PUBLIC;

ALTER TABLE proposals ALTER role SET DEFAULT session_user;
ALTER TABLE proposals ENABLE ROW LEVEL SECURITY;
"""

TELL_TOKEN = """
CREATE OR REPLACE FUNCTION registry_tell_token() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = :schema, pg_temp AS $body$
DECLARE one tokens;
BEGIN
    IF TG_OP = 'INSERT' THEN one := NEW; ELSE one := OLD; END IF;
    PERFORM registry_note(
        CASE TG_OP WHEN 'INSERT' THEN 'token added' ELSE 'token removed' END, one.name,
        json_build_object('number', one.number, 'write', one.write, :more
            'personality', one.personality, 'source', one.source));
    RETURN NULL;
END$body$;
"""  # noqa: S105
RIGHTS = "'publish', one.publish, 'approve', one.approve,"

# As in migration 0022, with the column `review`.
SOURCE_VIEW = """
SELECT src.name, src.scope, src.priority, src.enabled > 0 AS enabled,
    (SELECT count(*) FROM skills s WHERE s.source_id = src.id AND s.live = 1
        AND s.status <> 'no_document') AS skills,
    (SELECT count(*) FROM skills s WHERE s.source_id = src.id AND s.live = 1 AND s.held = 1)
        AS held,
    src.path, src.host, src.project, src.owner, src.team, src.precedence, src.added_at,
    src.last_sync_at, src.last_result, src.kind AS remote_kind, src.url AS remote_url,
    src.pin AS remote_ref, src.part AS remote_part, src.version AS remote_version,
    src.fetched_at:review
FROM sources src
"""
REVIEW = ", src.review > 0 AS review"

# The view belongs to the owner of the tables, and shows only what its reader may see.
OWNED = """
DO $$ BEGIN
    EXECUTE (SELECT format('ALTER VIEW source OWNER TO %I', rolname) FROM pg_roles
        JOIN pg_class ON relowner = pg_roles.oid WHERE pg_class.oid = CAST('skills' AS regclass));
    IF CAST(current_setting('server_version_num') AS integer) >= 150000 THEN
        ALTER VIEW source SET (security_invoker = true);
    END IF;
END $$
"""

POLICIES = {
    "seen FOR SELECT": f"USING ({SOURCE_OWN} OR role = {ME} "
    f"OR ((SELECT registry_may_approve()) AND {SOURCE_SEEN}))",
    "added FOR INSERT": f"WITH CHECK ({SOURCE_OWN} AND role = {ME})",
    "changed FOR UPDATE": f"USING ({SOURCE_OWN} OR ((SELECT registry_may_approve()) "
    f"AND {SOURCE_SEEN}))",
    "removed FOR DELETE": f"USING ({SOURCE_OWN})",
}


def upgrade() -> None:
    # Compared byte by byte on both databases, so that both keep the same order.
    text = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
    off = sa.text("0")
    for table, column in (("tokens", "publish"), ("tokens", "approve"), ("sources", "review")):
        kind = sa.BigInteger if column == "review" else sa.Integer
        op.add_column(table, sa.Column(column, kind, nullable=False, server_default=off))
    source = sa.ForeignKey("sources.id", ondelete="CASCADE", name="fk_proposals_source_id")
    op.create_table(
        "proposals",
        sa.Column("id", text, nullable=False),
        sa.Column("source_id", sa.Integer, source, nullable=False),
        *(sa.Column(name, text, nullable=False) for name in ("kind", "name", "folder")),
        *(sa.Column(name, text) for name in ("uid", "base")),
        *(sa.Column(name, text, nullable=False) for name in ("tree_hash", "author")),
        sa.Column("token", text),
        sa.Column("created_at", text, nullable=False),
        sa.Column("archive", sa.LargeBinary),
        sa.Column("state", text, nullable=False),
        *(sa.Column(name, text) for name in ("decided_by", "decided_at", "reason", "role")),
        sa.PrimaryKeyConstraint("id", name="pk_proposals"),
    )
    op.create_index("ix_proposals_source_id", "proposals", ["source_id"])
    policies = (
        f"CREATE POLICY {name.replace(' ', ' ON proposals ', 1)} {condition};"
        for name, condition in POLICIES.items()
    )
    run_on_server(FUNCTIONS + "\n".join(policies) + TELL_TOKEN.replace(":more", RIGHTS))
    if op.get_bind().dialect.name == "postgresql":  # keeps the rights, but not the options
        op.execute("CREATE OR REPLACE VIEW source AS " + SOURCE_VIEW.replace(":review", REVIEW))
        run_on_server(OWNED)
    else:
        op.execute("DROP VIEW source")
        op.execute("CREATE VIEW source AS " + SOURCE_VIEW.replace(":review", REVIEW))


def downgrade() -> None:
    run_on_server("DROP TRIGGER tell_review ON sources;" + TELL_TOKEN.replace(":more", ""))
    op.execute("DROP VIEW source")
    op.execute("CREATE VIEW source AS " + SOURCE_VIEW.replace(":review", ""))
    run_on_server(OWNED)
    op.drop_table("proposals")
    for table, column in (("tokens", "publish"), ("tokens", "approve"), ("sources", "review")):
        op.drop_column(table, column)
    run_on_server(
        "DROP FUNCTION registry_may_approve(), registry_guard_proposal(), registry_tell_review(), "
        "registry_note_use(text, text, text)"
    )
