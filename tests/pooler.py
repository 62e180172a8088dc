"""A real PgBouncer in front of the tests' server, started by themselves."""

import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path

import psycopg
from sqlalchemy import URL, make_url

START_SECONDS = 20


def program() -> str | None:
    """Return where PgBouncer is, if it is."""
    return shutil.which("pgbouncer") or shutil.which("pgbouncer", path="/usr/sbin:/usr/local/sbin")


class Pooler:
    """One in a folder of its own, in front of the server of ``url``; ``mode``: session, transaction.

    It has ``size`` connections to each database, and takes no option that it does not know.
    ``more``: further lines of its settings.
    """

    def __init__(self, url: str | URL, mode: str, size: int = 20, more: str = "") -> None:
        self._server = make_url(url)
        self._mode, self._size, self._more = mode, size, more
        self._folder = Path(tempfile.mkdtemp(prefix="skill-registry-pooler-"))
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self._settings = self._folder / "pgbouncer.ini"
        self._whose: dict[str, int] = {}
        if os.geteuid() == 0:  # it refuses to run as root
            known = pwd.getpwnam("nobody")
            self._whose = {"user": known.pw_uid, "group": known.pw_gid}
        self._configure()
        self._log = self._folder / "log"
        self.start()

    def start(self) -> None:
        """Start it, or start it again on the port that it had."""
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                [program(), "--quiet", self._settings], stdout=log, stderr=log, **self._whose
            )
        self._wait()

    def kill(self) -> None:
        """End it, and with it all connections through it."""
        self._process.kill()
        self._process.wait()

    def point_to(self, url: str) -> None:
        """Let it connect to another server from now on."""
        self._server = make_url(url)
        self._configure()
        self._process.send_signal(signal.SIGHUP)
        self._wait()

    def _configure(self) -> None:
        self._settings.write_text(
            f"[databases]\n* = host=127.0.0.1 port={self._server.port} user=tests\n"
            f"[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {self.port}\n"
            f"unix_socket_dir =\nauth_type = any\npool_mode = {self._mode}\n"
            f"default_pool_size = {self._size}\nmax_client_conn = 200\n"
            # A server that went away is asked again soon.
            f"server_login_retry = 0.2\n{self._more}\n"
        )
        for one in (self._folder, self._settings) if self._whose else ():
            os.chown(one, self._whose["user"], self._whose["group"])

    def address(self, url: str | URL) -> str:
        """Return the address of a database of the server, through here."""
        through = make_url(url).set(host="127.0.0.1", port=self.port)
        return through.render_as_string(hide_password=False)

    def stop(self) -> None:
        self.kill()
        shutil.rmtree(self._folder)

    def _wait(self) -> None:
        url = make_url(self.address(self._server)).set(drivername="postgresql")
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
