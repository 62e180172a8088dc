"""Databases at older revisions: made anew, brought back, or as an older program left them."""

import os
import sqlite3
from contextlib import closing
from pathlib import Path

import psycopg
from alembic import command
from alembic.config import Config
from sqlalchemy import make_url

from registry.db.migrate import migrations_folder
from registry.db.open import engine_at
from tests.databases import Databases

AT_0015 = Path(__file__).with_name("db") / "at_0015"
"""What commit b51997b, the last at schema 0015, left in a file and on a server.

There were four skills in a folder. One was updated twice and read twice, and one was deleted. Of the
file it is all, of the server the rows: its tables are those of the migration 0015.
"""


def move(address: str | Path, revision: str, step: str = "downgrade") -> None:
    """Bring a database to a revision, without what the program does around that."""
    url = address if "://" in str(address) else f"sqlite:///{address}"
    config = Config()
    config.set_main_option("script_location", str(migrations_folder()))
    engine = engine_at(str(url))
    with engine.begin() as connection:
        config.attributes["connection"] = connection
        getattr(command, step)(config, revision)
    engine.dispose()


def make_older(address: str | Path, revision: str) -> None:
    """Make a database without skills, as it was at a revision."""
    if "://" not in str(address):
        os.makedirs(os.path.dirname(address), exist_ok=True)
    move(address, revision, "upgrade")


def file_at_0015(path: Path, root: Path) -> None:
    """Make a file as the older program left it, with its source at ``root``."""
    path.parent.mkdir(exist_ok=True)
    sql = (AT_0015 / "file.sql").read_text().replace("/home/ann/skills", str(root))
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(sql)


def server_at_0015(databases: Databases, root: Path) -> str:
    """Make a database of a server as the older program left it, and return its address."""
    url = databases.empty()
    make_older(url, "0015")
    role = make_url(url).username
    sql = (AT_0015 / "server.sql").read_text().replace("/home/ann/skills", str(root))
    address = make_url(url).set(drivername="postgresql")
    with psycopg.connect(address.render_as_string(hide_password=False)) as connection:
        # The rows are as the triggers left them.
        connection.execute("SET session_replication_role = replica")
        connection.execute(sql.replace("'ann'", f"'{role}'").encode())
    return url
