"""Tables that tell readers of a server which skills a transaction changed.

Nothing changes in a SQLite file.

Revision ID: 0033
Revises: 0032
"""

from registry.db.migrate import owned_like_skills, run_on_server

revision = "0033"
down_revision = "0032"
branch_labels = None
depends_on = None

# The columns that decide whether, and under which ref, a role sees a skill. What else decides it is
# in the tables `sources` and `teams`.
SEEN = "source_id, folder, position, name, ref, shadowed, bare, hidden, held, status, tree_hash"

NEWEST = 1000
"""Number of transactions that the server keeps."""

ON_SERVER = f"""
-- A random number for each state of the registry. A restored server never gets an old one again.
ALTER TABLE data_version ADD token bigint NOT NULL DEFAULT 0,
    -- All transactions up to this one have been removed from `commits`.
    ADD forgotten xid8 NOT NULL DEFAULT '0';

-- The newest transactions: the state after each one, and whether every skill may look different.
CREATE TABLE commits (xid xid8 PRIMARY KEY, token bigint, everything boolean DEFAULT false);
ALTER TABLE commits ENABLE ROW LEVEL SECURITY;
CREATE POLICY seen ON commits FOR SELECT USING (true);

-- The ids of the versions that a transaction made current, changed or removed.
CREATE TABLE commit_skills (
    xid xid8 NOT NULL, source_id integer NOT NULL, skills bigint[] NOT NULL
);
CREATE INDEX ix_commit_skills_xid ON commit_skills (xid);
ALTER TABLE commit_skills ENABLE ROW LEVEL SECURITY;
CREATE POLICY seen ON commit_skills FOR SELECT USING (
    (SELECT registry_sees_all()) OR source_id IN (SELECT id FROM sources)
);

CREATE FUNCTION registry_note_state() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = :schema, pg_temp AS $body$
DECLARE last xid8 := greatest(pg_snapshot_xmax(pg_current_snapshot()), pg_current_xact_id());
    oldest xid8;
BEGIN
    NEW.token := hashtextextended(CAST(gen_random_uuid() AS text), 0);
    NEW.forgotten := OLD.forgotten;
    IF NEW.number % 100 = 0 OR OLD.forgotten > last THEN
        -- A dump has the numbers of another server's transactions.
        NEW.forgotten := least(OLD.forgotten, last);
        DELETE FROM commits WHERE xid > last;
        SELECT xid INTO oldest FROM commits ORDER BY xid DESC OFFSET {NEWEST} LIMIT 1;
        IF oldest > NEW.forgotten THEN NEW.forgotten := oldest; END IF;
        DELETE FROM commits WHERE xid <= NEW.forgotten;
        DELETE FROM commit_skills WHERE xid <= NEW.forgotten OR xid > last;
    END IF;
    INSERT INTO commits (xid, token) VALUES (pg_current_xact_id(), NEW.token)
        ON CONFLICT (xid) DO UPDATE SET token = excluded.token;
    RETURN NEW;
END$body$;
CREATE TRIGGER note BEFORE UPDATE ON data_version
    FOR EACH ROW EXECUTE FUNCTION registry_note_state();

CREATE FUNCTION registry_note_skills() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = :schema, pg_temp AS $body$
BEGIN
    IF TG_OP = 'INSERT' THEN
        INSERT INTO commit_skills SELECT pg_current_xact_id(), source_id, array_agg(id)
            FROM after WHERE live = 1 GROUP BY source_id;
    ELSIF TG_OP = 'DELETE' THEN
        INSERT INTO commit_skills SELECT pg_current_xact_id(), source_id, array_agg(id)
            FROM before WHERE live = 1 GROUP BY source_id;
    ELSE
        -- Not by a join of both tables: its plan, once made for a single row, would stay for many.
        INSERT INTO commit_skills SELECT pg_current_xact_id(), source_id, array_agg(DISTINCT id)
        FROM (
            SELECT id, source_id FROM (
                SELECT id, 1 AS sign, {SEEN} FROM after WHERE live = 1
                UNION ALL SELECT id, -1, {SEEN} FROM before WHERE live = 1
            ) e GROUP BY id, {SEEN} HAVING sum(sign) <> 0
        ) c GROUP BY source_id;
    END IF;
    RETURN NULL;
END$body$;
CREATE TRIGGER note_added AFTER INSERT ON skills REFERENCING NEW TABLE AS after
    FOR EACH STATEMENT EXECUTE FUNCTION registry_note_skills();
CREATE TRIGGER note_changed AFTER UPDATE ON skills
    REFERENCING OLD TABLE AS before NEW TABLE AS after
    FOR EACH STATEMENT EXECUTE FUNCTION registry_note_skills();
CREATE TRIGGER note_removed AFTER DELETE ON skills REFERENCING OLD TABLE AS before
    FOR EACH STATEMENT EXECUTE FUNCTION registry_note_skills();

CREATE FUNCTION registry_note_all() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = :schema, pg_temp AS $body$
BEGIN
    INSERT INTO commits (xid, everything) VALUES (pg_current_xact_id(), true)
        ON CONFLICT (xid) DO UPDATE SET everything = true;
    RETURN NULL;
END$body$;
CREATE TRIGGER note AFTER DELETE OR UPDATE OF name, path, scope, priority, strength, enabled, host,
    project, owner, team, precedence ON sources
    FOR EACH STATEMENT EXECUTE FUNCTION registry_note_all();
CREATE TRIGGER note AFTER INSERT OR UPDATE OR DELETE ON teams
    FOR EACH STATEMENT EXECUTE FUNCTION registry_note_all();

UPDATE data_version SET number = number + 1;

""" + owned_like_skills(
    "TABLE commits",
    "TABLE commit_skills",
    "ROUTINE registry_note_state()",
    "ROUTINE registry_note_skills()",
    "ROUTINE registry_note_all()",
)

OFF_SERVER = """
DROP TRIGGER note ON teams;
DROP TRIGGER note ON sources;
DROP TRIGGER note_removed ON skills;
DROP TRIGGER note_changed ON skills;
DROP TRIGGER note_added ON skills;
DROP TRIGGER note ON data_version;
DROP FUNCTION registry_note_all(), registry_note_skills(), registry_note_state();
DROP TABLE commit_skills, commits;
ALTER TABLE data_version DROP forgotten, DROP token;
"""


def upgrade() -> None:
    run_on_server(ON_SERVER)


def downgrade() -> None:
    run_on_server(OFF_SERVER)
