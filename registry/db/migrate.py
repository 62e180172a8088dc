"""Find and run the migrations of the schema.

`sqlite.writer` and `postgres.writer` decide when to run them.
"""

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from sqlalchemy import Connection

LOGGERS: Final = ("alembic.runtime.migration", "alembic.runtime.plugins")
"""Names of the loggers in which Alembic reports its steps."""

UPGRADE_SECONDS: Final = 60.0
"""Maximum seconds to wait while another process upgrades the same database."""


def migrations_folder() -> Path:
    """Return the folder of the migration scripts, from the package or else from the checkout."""
    package = Path(__file__).resolve().parent.parent
    packaged = package / "_migrations"
    return packaged if packaged.is_dir() else package.parent / "migrations"


def run_migrations(connection: "Connection") -> None:
    """Upgrade the database of ``connection`` to the newest revision, inside its transaction.

    Afterwards, update shadowing, copies and refs of all skills.
    """
    from registry.db.write.names import refresh_names

    with _quietly():
        from alembic import command
        from alembic.config import Config

        config = Config()
        # The ini parser behind Config reads a bare % as the start of a reference.
        config.set_main_option("script_location", str(migrations_folder()).replace("%", "%%"))
        config.attributes["connection"] = connection
        command.upgrade(config, "head")
    refresh_names(connection, None)


@contextmanager
def _quietly() -> Iterator[None]:
    """Keep Alembic's messages out of the log of the program that uses this package.

    Only messages of this thread are dropped, and only during the ``with`` block.
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
