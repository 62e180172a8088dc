"""The view of skills shows the origin of an installed copy, as the commands do.

Revision ID: 0023
Revises: 0022
"""

from collections.abc import Callable

from alembic import op

revision = "0023"
down_revision = "0022"
branch_labels = None
depends_on = None

# As in migration 0015, but for the origin.
VIEW = r"""
SELECT s.ref, s.name, s.description, s.kind, s.category,
    CASE s.tags WHEN '' THEN '[]' ELSE '["' || replace(replace(replace(
        s.tags, '\', '\\'), '"', '\"'), '
', '","') || '"]' END AS tags,
    src.scope, src.name AS source,
    CASE s.folder WHEN '.' THEN src.path ELSE src.path || '/' || s.folder END AS path,
    s.version, s.license, s.author, s.created_at, s.updated_at, s.content_hash, s.tree_hash,
    s.status, s.shadowed = 1 AS shadowed, s.hidden = 1 AS hidden, s.folder, src.host, src.project,
    {url} AS origin_url, {ref} AS origin_ref, {commit} AS origin_commit,
    s.held = 1 AS held, s.file_count, s.bytes,
    coalesce(u.listed, 0) AS listed, coalesce(u.found, 0) AS found, coalesce(u.read, 0) AS read,
    u.last_read_at, s.uid
FROM skills s JOIN sources src ON src.id = s.source_id LEFT JOIN usage u ON u.uid = s.uid
WHERE s.live = 1 AND s.status <> 'no_document'
"""

REMOTE = {"url": "src.url", "ref": "src.pin", "commit": "src.version"}


def line_in_file(number: int) -> str:
    """Return a line of `installed` on SQLite."""
    rest = "s.installed"
    for _ in range(number - 1):
        rest = f"substr({rest}, instr({rest}, char(10)) + 1)"
    return f"substr({rest}, 1, instr({rest}, char(10)) - 1)"


def line_on_server(number: int) -> str:
    """Return a line of `installed` on PostgreSQL."""
    return f"split_part(s.installed, chr(10), {number})"


def with_installed(line: Callable[[int], str]) -> dict[str, str]:
    """Return the columns of an origin: of the remote source, else of the installed copy."""
    return {
        name: f"CASE WHEN src.url IS NULL THEN nullif({line(number)}, '') ELSE {column} END"
        for number, (name, column) in enumerate(REMOTE.items(), 1)
    }


def replace(*, is_new: bool) -> None:
    connection = op.get_bind()
    is_server = connection.dialect.name == "postgresql"
    line = line_on_server if is_server else line_in_file
    query = VIEW.format(**(with_installed(line) if is_new else REMOTE))
    if not is_server:
        connection.exec_driver_sql("DROP VIEW skill")
        connection.exec_driver_sql(f"CREATE VIEW skill AS {query}")
        return
    # Replacing keeps the owner and the rights, but not the options.
    may_set = connection.exec_driver_sql(
        "SELECT CAST(current_setting('server_version_num') AS integer) >= 150000"
    ).scalar()
    option = "WITH (security_invoker = true) " if may_set else ""
    connection.exec_driver_sql(f"CREATE OR REPLACE VIEW skill {option}AS {query}")


def upgrade() -> None:
    replace(is_new=True)


def downgrade() -> None:
    replace(is_new=False)
