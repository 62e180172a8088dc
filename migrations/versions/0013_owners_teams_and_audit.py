"""Sources have owners and teams, who did what is told, and a server keeps all that by itself.

On a server everything here is refused or hidden by the database, whatever a client says: policies
of its rows, triggers, and functions that run as the owner of the tables. That owner, and who is a
member of it, is an admin, whom no policy binds. A file has the same columns and `audit`, plain.

A table that a later migration makes gets its policies there, and a line in `db.remote.rights`.

Revision ID: 0013
Revises: 0012
"""

import sqlalchemy as sa
from alembic import op

revision = "0013"
down_revision = "0012"
branch_labels = None
depends_on = None

# Compared byte by byte on both databases, so that both keep the same order.
TEXT = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")

COLUMNS = {
    "sources": ("owner", "team"),
    "gone": ("owner", "team"),
    "revisions": ("role", "host", "tool", "client"),
    "changes": ("role", "tool", "client"),
    "tokens": ("role",),
}

# Who asks; once for a statement, not once for a row.
ME = "(SELECT CAST(session_user AS text))"
ALL_SEEN = "(SELECT registry_sees_all())"
TEAMS = "CAST((SELECT registry_teams()) AS text[])"
TEAM_SEEN = f"{ALL_SEEN} OR team IS NULL OR owner = {ME} OR team = ANY ({TEAMS})"
SOURCE_SEEN = f"{ALL_SEEN} OR source_id IN (SELECT id FROM sources)"
SOURCE_OWN = f"source_id IN (SELECT id FROM sources WHERE owner = {ME})"
SKILL_SEEN = f"{ALL_SEEN} OR EXISTS (SELECT 1 FROM skills s WHERE s.id = {{table}}.skill_id)"
SKILL_OWN = f"EXISTS (SELECT 1 FROM skills s WHERE s.id = {{table}}.skill_id AND s.{SOURCE_OWN})"
UID_KNOWN = (
    "EXISTS (SELECT 1 FROM skills s WHERE s.uid = {table}.uid) "
    "OR EXISTS (SELECT 1 FROM gone g WHERE g.uid = {table}.uid)"
)
UID_SEEN = f"{ALL_SEEN} OR {UID_KNOWN}"
SKILLS_UID_OWN = f"EXISTS (SELECT 1 FROM skills s WHERE s.uid = {{table}}.uid AND s.{SOURCE_OWN})"
UID_OWN = (
    f"({SKILLS_UID_OWN} "
    f"OR EXISTS (SELECT 1 FROM gone g WHERE g.uid = {{table}}.uid AND g.owner = {ME}))"
)
UID_OF_OTHERS = (
    "EXISTS (SELECT 1 FROM skills s JOIN sources o ON o.id = s.source_id "
    f"WHERE s.uid = {{table}}.uid AND o.owner <> {ME})"
)
MINE = f"role = {ME}"

# Of each table which rows are seen, and which are added, changed and removed by who is no admin.
POLICIES = {
    "sources": (TEAM_SEEN, f"owner = {ME}", f"owner = {ME}", f"owner = {ME}"),
    "skills": (SOURCE_SEEN, SOURCE_OWN, SOURCE_OWN, SOURCE_OWN),
    "diagnostics": (SOURCE_SEEN, SOURCE_OWN, SOURCE_OWN, SOURCE_OWN),
    "journal": (SOURCE_SEEN, SOURCE_OWN, SOURCE_OWN, SOURCE_OWN),
    **dict.fromkeys(
        ("documents", "sketches", "skill_files", "skill_tags", "search_texts"),
        (SKILL_SEEN, SKILL_OWN, SKILL_OWN, SKILL_OWN),
    ),
    "revisions": (
        UID_SEEN,
        f"{MINE} AND {UID_OWN}",
        UID_OWN,
        # What nobody can ask for any more belongs to who wrote it.
        f"{UID_OWN} OR ({MINE} AND NOT ({UID_KNOWN}))",
    ),
    "gone": (
        TEAM_SEEN,
        f"owner = {ME} AND {SKILLS_UID_OWN}",
        f"owner = {ME}",
        f"owner = {ME}",
    ),
    "changes": (
        f"{UID_SEEN} OR {MINE}",
        f"{MINE} AND NOT ({UID_OF_OTHERS})",
        None,
        MINE,
    ),
    # Counts are hints, which whoever reads may add to.
    "usage": (UID_SEEN, UID_SEEN, UID_SEEN, None),
    "usage_days": (UID_SEEN, UID_SEEN, UID_SEEN, UID_OWN),
    "contents": (
        f"{ALL_SEEN} OR EXISTS (SELECT 1 FROM content_uses u WHERE u.hash = contents.hash)",
        "true",
        None,
        None,
    ),
    "content_uses": (UID_SEEN, None, None, None),
    "tokens": (MINE, MINE, MINE, MINE),
    "audit": (MINE, None, None, None),
    "hosts": (None, None, None, None),
    "teams": (None, None, None, None),
}

# What a change of a source is, beside what each sync writes.
TOLD = "name path scope priority enabled host project kind url pin part chosen owner team".split()

TABLES = """
-- The role that used the name of a machine first.
CREATE TABLE hosts (host text COLLATE "C" PRIMARY KEY, role text COLLATE "C" NOT NULL);
-- Who sees of all sources only those of these teams and of none.
CREATE TABLE teams (
    role text COLLATE "C" NOT NULL, team text COLLATE "C" NOT NULL, PRIMARY KEY (role, team)
);
-- In whose history a content stands: contents are shared, and seen by who sees one of these.
CREATE TABLE content_uses (
    hash text COLLATE "C" NOT NULL, uid text COLLATE "C" NOT NULL, PRIMARY KEY (hash, uid)
);
CREATE INDEX ix_content_uses_uid ON content_uses (uid);
INSERT INTO content_uses SELECT DISTINCT e.value ->> 3, r.uid
    FROM revisions r, json_array_elements(CAST(r.files AS json)) e WHERE e.value ->> 3 IS NOT NULL;
-- What is there belongs to the one role there was, whoever upgrades.
UPDATE sources SET owner = (SELECT CASE WHEN r.rolcanlogin THEN r.rolname ELSE session_user END
    FROM pg_class c JOIN pg_roles r ON r.oid = c.relowner
    WHERE c.oid = CAST('sources' AS regclass));
UPDATE gone SET owner = (SELECT min(owner) FROM sources);
INSERT INTO hosts SELECT DISTINCT host, owner FROM sources;
ALTER TABLE sources ALTER owner SET DEFAULT session_user;
ALTER TABLE gone ALTER owner SET DEFAULT session_user;
ALTER TABLE revisions ALTER role SET DEFAULT session_user;
ALTER TABLE changes ALTER role SET DEFAULT session_user;
ALTER TABLE tokens ALTER role SET DEFAULT session_user;
ALTER TABLE audit ALTER role SET DEFAULT session_user;
ALTER TABLE audit ALTER at SET DEFAULT
    to_char(now() AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"');
"""

# How a role is asked for: a member counts as who it may become, and so is bound by its teams.
AS_MEMBER = (
    "FROM teams t JOIN pg_catalog.pg_roles r ON r.rolname = t.role "
    "WHERE pg_has_role(session_user, r.oid, 'MEMBER')"
)
OF_TEAMS = (
    "SELECT s.id FROM skills s JOIN sources o ON o.id = s.source_id "
    "WHERE o.team IS NULL OR o.owner = session_user OR o.team = ANY (mine)"
)
FIND = "RETURN QUERY SELECT t.skill_id FROM search_texts t WHERE t.{column} @@ asked"

# Name and arguments, what is returned, and the body.
FUNCTIONS = {
    "registry_is_admin()": (
        "boolean",
        """
DECLARE owning oid;
BEGIN
    SELECT relowner INTO owning FROM pg_class WHERE oid = CAST('sources' AS regclass);
    RETURN pg_has_role(session_user, owning, 'USAGE');
END""",
    ),
    "registry_sees_all()": (
        "boolean",
        f"""
BEGIN
    IF NOT EXISTS (SELECT 1 FROM teams) THEN RETURN true; END IF;
    RETURN registry_is_admin() OR NOT EXISTS (SELECT 1 {AS_MEMBER});
END""",
    ),
    "registry_teams()": ("text[]", f"BEGIN RETURN ARRAY(SELECT t.team {AS_MEMBER}); END"),
    # A policy would keep the index of words from being used: @@ might tell of what it looks at.
    "registry_find(place text, asked tsquery, most bigint)": (
        "SETOF integer",
        f"""
DECLARE mine text[];
BEGIN
    IF registry_sees_all() THEN
        IF place = 'head' THEN {FIND.format(column="head")} LIMIT most;
        ELSE {FIND.format(column="body")} LIMIT most;
        END IF;
    ELSE
        mine := registry_teams();
        IF place = 'head' THEN
            {FIND.format(column="head")} AND t.skill_id IN ({OF_TEAMS}) LIMIT most;
        ELSE
            {FIND.format(column="body")} AND t.skill_id IN ({OF_TEAMS}) LIMIT most;
        END IF;
    END IF;
END""",
    ),
    "registry_note(what text, subject text, detail json)": (
        "void",
        """
BEGIN
    INSERT INTO audit (what, subject, detail, host, tool, client)
    VALUES ($1, $2, CAST($3 AS text),
        nullif(current_setting('skill_registry.host', true), ''),
        nullif(current_setting('skill_registry.tool', true), ''),
        nullif(current_setting('skill_registry.client', true), ''));
END""",
    ),
    "registry_guard_source()": (
        "trigger",
        """
DECLARE bound text;
BEGIN
    NEW.owner := coalesce(NEW.owner, session_user);
    IF TG_OP = 'INSERT' OR NEW.host <> OLD.host THEN
        INSERT INTO hosts VALUES (NEW.host, NEW.owner) ON CONFLICT DO NOTHING;
        SELECT role INTO bound FROM hosts WHERE host = NEW.host;
        IF bound <> NEW.owner AND NOT registry_is_admin() THEN
            RAISE EXCEPTION 'the host name % is used by the role %', NEW.host, bound
                USING ERRCODE = 'SR001',
                DETAIL = CAST(json_build_object('host', NEW.host, 'role', bound) AS text);
        END IF;
    ELSIF NEW.owner <> OLD.owner AND registry_is_admin() AND NOT EXISTS (
        SELECT 1 FROM sources WHERE host = NEW.host AND owner <> NEW.owner AND id <> NEW.id
    ) THEN
        UPDATE hosts SET role = NEW.owner WHERE host = NEW.host;
    END IF;
    IF NEW.team <> '' AND (TG_OP = 'INSERT' OR NEW.team IS DISTINCT FROM OLD.team)
            AND NOT (registry_sees_all() OR NEW.team = ANY (registry_teams())) THEN
        RAISE EXCEPTION 'this role is not of the team %', NEW.team USING ERRCODE = 'SR002';
    END IF;
    NEW.team := nullif(NEW.team, '');
    IF TG_OP = 'UPDATE' AND (NEW.team, NEW.owner) IS DISTINCT FROM (OLD.team, OLD.owner) THEN
        UPDATE gone SET team = NEW.team, owner = NEW.owner
        WHERE source = OLD.name AND owner = OLD.owner;
    END IF;
    RETURN NEW;
END""",
    ),
    # A number says whose history it is: no other owner's may be taken.
    "registry_guard_uids()": (
        "trigger",
        """
BEGIN
    IF NOT registry_is_admin() AND EXISTS (SELECT 1 FROM added a WHERE EXISTS (
        SELECT 1 FROM skills s JOIN sources o ON o.id = s.source_id
        WHERE s.uid = a.uid AND o.owner <> session_user
    ) OR EXISTS (
        SELECT 1 FROM gone g WHERE g.uid = a.uid AND g.owner <> session_user
    ) OR EXISTS (
        SELECT 1 FROM revisions r WHERE r.uid = a.uid AND r.role <> session_user
        AND NOT EXISTS (SELECT 1 FROM skills s WHERE s.uid = r.uid AND s.id <> a.id)
        AND NOT EXISTS (SELECT 1 FROM gone g WHERE g.uid = r.uid)
    )) THEN
        RAISE EXCEPTION 'the history of a skill belongs to another role' USING ERRCODE = 'SR002';
    END IF;
    RETURN NULL;
END""",
    ),
    "registry_refuse()": (
        "trigger",
        """
BEGIN
    RAISE EXCEPTION '% of % is refused', TG_OP, TG_TABLE_NAME USING ERRCODE = 'SR003';
END""",
    ),
    "registry_use_contents()": (
        "trigger",
        """
BEGIN
    INSERT INTO content_uses SELECT DISTINCT e.value ->> 3, a.uid
    FROM added a, json_array_elements(CAST(a.files AS json)) e
    WHERE e.value ->> 3 IS NOT NULL ON CONFLICT DO NOTHING;
    RETURN NULL;
END""",
    ),
    "registry_tell_source()": (
        "trigger",
        f"""
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
    ),
    "registry_tell_trust()": (
        "trigger",
        """
BEGIN
    PERFORM registry_note(
        CASE WHEN NEW.held = 0 THEN 'skill trusted' ELSE 'skill held back' END,
        (SELECT name FROM sources WHERE id = NEW.source_id) || '/' || NEW.folder, NULL);
    RETURN NULL;
END""",
    ),
    "registry_tell_prune()": (
        "trigger",
        """
DECLARE told json;
BEGIN
    SELECT json_build_object('revisions', count(*), 'skills', count(DISTINCT uid)) INTO told
    FROM dropped HAVING count(*) > 0;
    IF told IS NOT NULL THEN
        PERFORM registry_note('history pruned', NULL, told);
    END IF;
    RETURN NULL;
END""",
    ),
    "registry_tell_token()": (
        "trigger",
        """
DECLARE one tokens;
BEGIN
    IF TG_OP = 'INSERT' THEN one := NEW; ELSE one := OLD; END IF;
    PERFORM registry_note(
        CASE TG_OP WHEN 'INSERT' THEN 'token added' ELSE 'token removed' END, one.name,
        json_build_object('number', one.number, 'write', one.write,
            'personality', one.personality, 'source', one.source));
    RETURN NULL;
END""",
    ),
}

TRIGGERS = f"""
CREATE TRIGGER guard BEFORE INSERT OR UPDATE OF host, owner, team, name ON sources
    FOR EACH ROW EXECUTE FUNCTION registry_guard_source();
CREATE TRIGGER guard AFTER INSERT ON skills REFERENCING NEW TABLE AS added
    FOR EACH STATEMENT EXECUTE FUNCTION registry_guard_uids();
CREATE TRIGGER keep BEFORE UPDATE OF uid ON skills
    FOR EACH ROW WHEN (OLD.uid <> NEW.uid) EXECUTE FUNCTION registry_refuse();
CREATE TRIGGER count BEFORE UPDATE ON data_version
    FOR EACH ROW WHEN (NEW.number <> OLD.number + 1) EXECUTE FUNCTION registry_refuse();
CREATE TRIGGER keep BEFORE UPDATE OR DELETE ON audit
    FOR EACH ROW EXECUTE FUNCTION registry_refuse();
CREATE TRIGGER keep_all BEFORE TRUNCATE ON audit
    FOR EACH STATEMENT EXECUTE FUNCTION registry_refuse();
CREATE TRIGGER uses AFTER INSERT ON revisions REFERENCING NEW TABLE AS added
    FOR EACH STATEMENT EXECUTE FUNCTION registry_use_contents();
CREATE TRIGGER tell AFTER INSERT OR DELETE OR UPDATE OF {", ".join(TOLD)} ON sources
    FOR EACH ROW EXECUTE FUNCTION registry_tell_source();
CREATE TRIGGER tell AFTER UPDATE OF held ON skills
    FOR EACH ROW WHEN (OLD.held <> NEW.held) EXECUTE FUNCTION registry_tell_trust();
CREATE TRIGGER tell AFTER DELETE ON revisions REFERENCING OLD TABLE AS dropped
    FOR EACH STATEMENT EXECUTE FUNCTION registry_tell_prune();
CREATE TRIGGER tell AFTER INSERT OR DELETE ON tokens
    FOR EACH ROW EXECUTE FUNCTION registry_tell_token();
"""

# All of it belongs to whom the tables belong, whoever upgrades; what others may is granted.
OWNED = """
DO $$ DECLARE owning text; one record; BEGIN
    SELECT quote_ident(rolname) INTO owning FROM pg_roles JOIN pg_class ON relowner = pg_roles.oid
        WHERE pg_class.oid = CAST('skills' AS regclass);
    FOR one IN SELECT oid, prokind FROM pg_proc WHERE proname LIKE 'registry\\_%'
            AND pronamespace = CAST(quote_ident(current_schema()) AS regnamespace) LOOP
        EXECUTE format('ALTER ROUTINE %s OWNER TO %s', CAST(one.oid AS regprocedure), owning);
        EXECUTE format('REVOKE ALL ON ROUTINE %s FROM PUBLIC', CAST(one.oid AS regprocedure));
    END LOOP;
    FOR one IN SELECT unnest(ARRAY['hosts', 'teams', 'content_uses', 'audit']) AS name LOOP
        EXECUTE format('ALTER TABLE %I OWNER TO %s', one.name, owning);
    END LOOP;
    IF CAST(current_setting('server_version_num') AS integer) >= 150000 THEN
        FOR one IN SELECT unnest(ARRAY['skill', 'skill_tag', 'revision', 'usage_by_day']) AS name
        LOOP EXECUTE format('ALTER VIEW %I SET (security_invoker = true)', one.name); END LOOP;
    END IF;
END $$
"""


def upgrade() -> None:
    connection = op.get_bind()
    for table, names in COLUMNS.items():
        for name in names:
            op.add_column(table, sa.Column(name, TEXT))
    op.create_table(
        "audit",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("at", TEXT, nullable=False),
        sa.Column("role", TEXT, nullable=True),
        sa.Column("host", TEXT, nullable=True),
        sa.Column("tool", TEXT, nullable=True),
        sa.Column("client", TEXT, nullable=True),
        sa.Column("what", TEXT, nullable=False),
        sa.Column("subject", TEXT, nullable=True),
        sa.Column("detail", TEXT, nullable=True),
        sa.PrimaryKeyConstraint("id", name="pk_audit"),
    )
    if connection.dialect.name != "postgresql":
        return
    _run(TABLES)
    schema = connection.exec_driver_sql("SELECT quote_ident(current_schema())").scalar_one()
    for signature, (returned, body) in FUNCTIONS.items():
        volatile = "" if returned in {"trigger", "void"} else "STABLE "
        _run(
            f"CREATE FUNCTION {signature} RETURNS {returned} LANGUAGE plpgsql {volatile}"
            f"SECURITY DEFINER SET search_path = {schema}, pg_temp AS $body${body}$body$"
        )
    from registry.db.writes.names import procedure

    _run(procedure(schema))
    _run(TRIGGERS)
    for table, (seen, added, changed, removed) in POLICIES.items():
        _run(f"ALTER TABLE {table} ENABLE ROW LEVEL SECURITY")
        for name, command, condition in (
            ("seen", "FOR SELECT USING ({})", seen),
            ("added", "FOR INSERT WITH CHECK ({})", added),
            ("changed", "FOR UPDATE USING ({}) WITH CHECK ({})", changed),
            ("removed", "FOR DELETE USING ({})", removed),
        ):
            if condition is not None:
                held = condition.format(table=table)
                _run(f"CREATE POLICY {name} ON {table} {command.format(held, held)}")
    _run(OWNED)


def _run(sql: str) -> None:
    """Run statements as they are: a percent sign, a colon or a question mark mean nothing."""
    connection = op.get_bind().connection.driver_connection
    connection.execute(sql.encode())


def downgrade() -> None:
    if op.get_bind().dialect.name == "postgresql":
        for table in POLICIES:
            _run(f"ALTER TABLE {table} DISABLE ROW LEVEL SECURITY")
            for name in ("seen", "added", "changed", "removed"):
                _run(f"DROP POLICY IF EXISTS {name} ON {table}")
        _run("DROP PROCEDURE registry_refresh_names(text[])")
        for signature in FUNCTIONS:
            _run(f"DROP FUNCTION {signature} CASCADE")
        for table in ("hosts", "teams", "content_uses"):
            _run(f"DROP TABLE {table}")
    op.drop_table("audit")
    for table, names in COLUMNS.items():
        for name in reversed(names):
            op.drop_column(table, name)
