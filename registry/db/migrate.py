"""Find and run the migrations of the schema.

`sqlite.writer` and `postgres.writer` decide when the migrations run.
"""

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from sqlalchemy import Connection

LOGGERS: Final = ("alembic.runtime.migration", "alembic.runtime.plugins")
"""Names of the loggers to which Alembic writes its messages."""

UPGRADE_SECONDS: Final = 60.0
"""Maximum time to wait while another process upgrades the same database, in seconds."""


def migrations_folder() -> Path:
    """Return the folder of the migration scripts in the package.

    If it has none, in the checkout.
    """
    package = Path(__file__).resolve().parent.parent
    packaged = package / "_migrations"
    return packaged if packaged.is_dir() else package.parent / "migrations"


def run_migrations(connection: "Connection") -> None:
    """Upgrade the database of ``connection`` to the newest revision, in the current transaction.

    Then recompute shadowing, copies and refs of all skills.
    """
    from registry.db.write.names import refresh_names

    with _quietly():
        from alembic import command
        from alembic.config import Config

        config = Config()
        # Escape each %, because the ini parser behind Config interprets it as a reference.
        config.set_main_option("script_location", str(migrations_folder()).replace("%", "%%"))
        config.attributes["connection"] = connection
        command.upgrade(config, "head")
    refresh_names(connection, None)


def run_on_server(script: str) -> None:
    """In a migration, run statements on PostgreSQL; on SQLite, do nothing.

    ``:schema`` means the current schema. No other character has a special meaning, not even a
    percent sign.
    """
    from alembic import op

    connection = op.get_bind()
    if connection.dialect.name == "postgresql":
        schema = connection.exec_driver_sql("SELECT quote_ident(current_schema())").scalar_one()
        driver: Any = connection.connection.driver_connection
        driver.execute(script.replace(":schema", schema).encode())


def owned_like_skills(*names: str) -> str:
    """Return SQL that gives objects, such as ``TABLE totals``, to the owner of the table skills.

    Any admin may run the migration. Nobody else may call routines.
    """
    objects = ", ".join(f"'{name}'" for name in names)
    return f"""
DO $$ DECLARE owning text; one text; BEGIN
    SELECT quote_ident(rolname) INTO owning FROM pg_roles JOIN pg_class ON relowner = pg_roles.oid
        WHERE pg_class.oid = CAST('skills' AS regclass);
    FOREACH one IN ARRAY ARRAY[{objects}] LOOP
        EXECUTE format('ALTER %s OWNER TO %s', one, owning);
        IF one LIKE 'ROUTINE%' THEN EXECUTE format('REVOKE ALL ON %s FROM PUBLIC', one); END IF;
    END LOOP;
END $$;
"""


@contextmanager
def _quietly() -> Iterator[None]:
    """During the ``with`` block, keep Alembic's messages out of the log of the calling program.

    Messages from other threads are still logged.
    """
    ours = threading.get_ident()

    def is_theirs(record: logging.LogRecord) -> bool:
        return record.thread != ours

    loggers = [logging.getLogger(name) for name in LOGGERS]
    for logger in loggers:
        logger.addFilter(is_theirs)
    try:
        yield
    finally:
        for logger in loggers:
            logger.removeFilter(is_theirs)
