"""A real PgBouncer in front of the tests' server, started by themselves."""

import os
import pwd
import shutil
import socket
import subprocess
import tempfile
import time
from pathlib import Path

import psycopg
from sqlalchemy import make_url

START_SECONDS = 20


def program() -> str | None:
    """Return where PgBouncer is, if it is."""
    return shutil.which("pgbouncer") or shutil.which("pgbouncer", path="/usr/sbin:/usr/local/sbin")


class Pooler:
    """One in a folder of its own, in front of the server of ``url``; ``mode``: session, transaction.

    It has ``size`` connections to each database, and takes no option that it does not know.
    """

    def __init__(self, url: str, mode: str, size: int = 20) -> None:
        self._server = make_url(url)
        self._folder = Path(tempfile.mkdtemp(prefix="skill-registry-pooler-"))
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        settings = self._folder / "pgbouncer.ini"
        settings.write_text(
            f"[databases]\n* = host=127.0.0.1 port={self._server.port} user=tests\n"
            f"[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {self.port}\n"
            f"unix_socket_dir =\nauth_type = any\npool_mode = {mode}\n"
            f"default_pool_size = {size}\nmax_client_conn = 200\n"
        )
        whose: dict[str, int] = {}
        if os.geteuid() == 0:  # it refuses to run as root
            known = pwd.getpwnam("nobody")
            whose = {"user": known.pw_uid, "group": known.pw_gid}
            for one in (self._folder, settings):
                os.chown(one, known.pw_uid, known.pw_gid)
        self._log = self._folder / "log"
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                [program(), "--quiet", settings], stdout=log, stderr=log, **whose
            )
        self._wait()

    def address(self, url: str) -> str:
        """Return the address of a database of the server, through here."""
        through = make_url(url).set(host="127.0.0.1", port=self.port)
        return through.render_as_string(hide_password=False)

    def stop(self) -> None:
        self._process.kill()
        self._process.wait()
        shutil.rmtree(self._folder)

    def _wait(self) -> None:
        url = make_url(self.address(str(self._server))).set(drivername="postgresql")
        deadline = time.monotonic() + START_SECONDS
        while True:
            try:
                psycopg.connect(url.render_as_string(hide_password=False)).close()
            except psycopg.OperationalError as error:
                if self._process.poll() is not None or time.monotonic() > deadline:
                    raise RuntimeError(self._log.read_text()) from error
                time.sleep(0.02)
            else:
                return
