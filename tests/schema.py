"""Write the schema of a new SQLite file, as all migrations make it (``make schema``)."""

import os
import sqlite3
import tempfile
from contextlib import closing

from registry.db.sqlite.writer import SCRIPT, migrate

_KEPT_BY_SQLITE = """
    name LIKE 'sqlite\\_%' ESCAPE '\\'
    OR EXISTS (
        SELECT 1 FROM sqlite_master v
        WHERE v.sql LIKE 'CREATE VIRTUAL TABLE%' AND substr(m.name, 1, length(v.name) + 1)
            = v.name || '_' AND m.type = 'table'
    )
"""
"""Which tables and indexes come by themselves with others."""


def written_by_migrations() -> str:
    """Run all migrations on a file that goes again, and return its schema as SQL."""
    with tempfile.TemporaryDirectory(prefix="skill-registry-") as folder:
        path = os.path.join(folder, "registry.db")
        migrate(path)
        with closing(sqlite3.connect(path)) as connection:
            made = connection.execute(
                f"SELECT sql FROM sqlite_master m WHERE NOT ({_KEPT_BY_SQLITE}) AND sql != '' "
                "ORDER BY rowid"
            )
            statements = [sql for (sql,) in made]
            (revision,) = connection.execute("SELECT version_num FROM alembic_version").fetchone()
    statements.append(f"INSERT INTO alembic_version VALUES ('{revision}')")
    return "".join(f"{one};\n" for one in statements)


if __name__ == "__main__":
    SCRIPT.write_text(written_by_migrations(), encoding="utf-8")
