"""Show people sources and findings as views in plain words, beside those of migration 0015.

SQLite does not rename a table while a view reads one that is missing: a later migration that builds
``sources``, ``skills`` or ``diagnostics`` anew drops the views first and makes them again.

Revision ID: 0022
Revises: 0021
"""

from alembic import op

revision = "0022"
down_revision = "0021"
branch_labels = None
depends_on = None

LIVE = "s.source_id = src.id AND s.live = 1"

# A comparison is a truth value on PostgreSQL and 1 or 0 on SQLite: WHERE enabled works on both.
VIEWS = {
    "source": f"""
SELECT src.name, src.scope, src.priority, src.enabled > 0 AS enabled,
    (SELECT count(*) FROM skills s WHERE {LIVE} AND s.status <> 'no_document') AS skills,
    (SELECT count(*) FROM skills s WHERE {LIVE} AND s.held = 1) AS held,
    src.path, src.host, src.project, src.owner, src.team, src.precedence, src.added_at,
    src.last_sync_at, src.last_result, src.kind AS remote_kind, src.url AS remote_url,
    src.pin AS remote_ref, src.part AS remote_part, src.version AS remote_version, src.fetched_at
FROM sources src
""",
    # Of versions that are not live, and wait to be published or removed, nothing is shown.
    "finding": """
SELECT CASE WHEN s.status <> 'no_document' THEN s.ref END AS skill, src.name AS source, d.folder,
    d.severity, d.code, d.path, d.line, d.message, d.fix
FROM diagnostics d JOIN sources src ON src.id = d.source_id LEFT JOIN skills s ON s.id = d.skill_id
WHERE d.skill_id IS NULL OR s.live = 1
""",
}

# They belong to whom the tables belong, whoever upgrades, and show no more than who asks may see.
OWNED = """
DO $$ DECLARE owning text; name text; BEGIN
    SELECT quote_ident(rolname) INTO owning FROM pg_roles JOIN pg_class ON relowner = pg_roles.oid
        WHERE pg_class.oid = CAST('skills' AS regclass);
    FOREACH name IN ARRAY ARRAY['source', 'finding'] LOOP
        EXECUTE format('ALTER VIEW %I OWNER TO %s', name, owning);
        IF CAST(current_setting('server_version_num') AS integer) >= 150000 THEN
            EXECUTE format('ALTER VIEW %I SET (security_invoker = true)', name);
        END IF;
    END LOOP;
END $$
"""


def upgrade() -> None:
    for name, query in VIEWS.items():
        op.execute(f"CREATE VIEW {name} AS {query}")
    connection = op.get_bind()
    if connection.dialect.name == "postgresql":
        # As it is: a percent sign means nothing.
        connection.connection.driver_connection.execute(OWNED.encode())


def downgrade() -> None:
    for name in VIEWS:
        op.execute(f"DROP VIEW {name}")
