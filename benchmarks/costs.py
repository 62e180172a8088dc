"""What a skill costs, on a file and on a server: time of a first import, memory, and bytes.

Part of `benchmarks/backends.py`.
"""

import json
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import NamedTuple

import psycopg

IMPORT = """
import json, resource, subprocess, sys, time
from registry import SkillRegistry, Settings
import registry.sync.apply  # start-up is measured by whole processes
def peak_of(process):
    # getrusage would count what the parent held when it started this process.
    status = open(f"/proc/{process}/status").read()
    return int(status.split("VmHWM:")[1].split()[0]) / 1024
peaks = []
kill = subprocess.Popen.kill
subprocess.Popen.kill = lambda helper: (peaks.append(peak_of(helper.pid)), kill(helper))
with SkillRegistry.open(sys.argv[1], settings=Settings()) as registry:
    registry.create_database()
    started, worked = time.perf_counter(), time.process_time()
    report = registry.sync(sys.argv[2], name="bench")
    seconds, worked = time.perf_counter() - started, time.process_time() - worked
    assert len(report.added) == int(sys.argv[3]), report
    helper = resource.getrusage(resource.RUSAGE_CHILDREN)
    helped = helper.ru_utime + helper.ru_stime
    print(json.dumps([seconds, worked, helped, peak_of("self") + sum(peaks)]), flush=True)
    sys.stdin.readline()  # the server's processes are looked at as long as it has them
"""

SHADOWS = ("search_heads", "search_bodies", "search_words")
"""Tables of FTS5, each with some of its own."""


BROUGHT = (
    "sources skills documents contents skill_files skill_tags diagnostics search_texts sketches "
    "revisions content_uses"
).split()
"""The tables of a server that an import fills."""

PART = 1 << 20
"""Bytes of rows that are sent at once."""

LEAST = 16
"""Bytes a skill of a table that is worth a line."""


class Import(NamedTuple):
    """A first import: seconds that passed, and that the processors of each side worked.

    ``memory``: MiB of the client at most, with its helper, and of the server's processes for it,
    what all of them share left out.
    """

    seconds: float
    client: float
    server: float
    memory: tuple[float, float]


def imported(place: str, root: Path, skills: int) -> Import:
    """Import skills for the first time, in a process of its own."""
    running = subprocess.Popen(
        [sys.executable, "-c", IMPORT, place, str(root), str(skills)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert running.stdout is not None
    seconds, own, helped, peak = json.loads(running.stdout.readline())
    server, memory = server_work(place)
    running.communicate("\n")
    assert running.returncode == 0
    return Import(seconds, own + helped, server, (peak, memory))


def copied(place: str) -> Import:
    """Copy what an import brought to a server into tables and indexes that are the same: its floor.

    Nothing is asked of these rows: no keys of other tables, no triggers.
    """
    with (
        psycopg.connect(address(place), autocommit=True) as connection,
        tempfile.TemporaryFile() as file,
    ):
        connection.execute("CREATE SCHEMA floor")
        rows: list[tuple[str, int]] = []
        for table in BROUGHT:
            connection.execute(f"CREATE TABLE floor.{table} (LIKE {table} INCLUDING ALL)")
            started = file.tell()
            with connection.cursor().copy(f"COPY {table} TO STDOUT (FORMAT binary)") as copy:
                file.writelines(copy)
            rows.append((table, file.tell() - started))
        file.seek(0)
        before = _worked(connection.info.backend_pid)
        started_at = time.perf_counter()
        for table, size in rows:
            with connection.cursor().copy(f"COPY floor.{table} FROM STDIN (FORMAT binary)") as copy:
                for start in range(0, size, PART):
                    copy.write(file.read(min(PART, size - start)))
        seconds = time.perf_counter() - started_at
        server = _worked(connection.info.backend_pid) - before
        connection.execute("DROP SCHEMA floor CASCADE")
    return Import(seconds, 0.0, server, (0.0, 0.0))


def _worked(process: int) -> float:
    """Return the seconds for which processors worked for a process of this machine."""
    with suppress(OSError):  # another machine's, or not Linux
        return int(Path(f"/proc/{process}/schedstat").read_text().split()[0]) / 1e9
    return 0.0


def server_work(place: str) -> tuple[float, float]:
    """Return for how long processors worked for the clients of a database, and their memory now.

    Seconds and MiB; of a file's, none.
    """
    if "://" not in place:
        return 0.0, 0.0
    with psycopg.connect(address(place), autocommit=True) as connection:
        rows = connection.execute(
            "SELECT pid FROM pg_stat_activity WHERE datname = current_database() "
            "AND pid <> pg_backend_pid()"
        ).fetchall()
    spent, memory = 0.0, 0.0
    for (pid,) in rows:
        with suppress(OSError):  # another machine's, or not Linux
            spent += _worked(pid)
            status = Path(f"/proc/{pid}/status").read_text()
            memory += int(status.split("RssAnon:")[1].split()[0]) / 1024
    return spent, memory


def address(place: str) -> str:
    return place.replace("+psycopg", "")


def sizes(place: str) -> dict[str, tuple[int, int]]:
    """Return the bytes of each table, with its long values, and of its indexes."""
    return _of_server(place) if "://" in place else _of_file(place)


def _of_server(place: str) -> dict[str, tuple[int, int]]:
    with psycopg.connect(address(place), autocommit=True) as connection:
        rows = connection.execute(
            "SELECT relname, pg_table_size(oid), pg_indexes_size(oid) FROM pg_class "
            "WHERE relkind = 'r' AND relnamespace = CAST(current_schema() AS regnamespace)"
        ).fetchall()
    return {name: (table, indexes) for name, table, indexes in rows}


def _of_file(place: str) -> dict[str, tuple[int, int]]:
    with closing(sqlite3.connect(place)) as connection:
        rows = connection.execute(
            "SELECT tbl_name, type, pgsize FROM sqlite_master m "
            "JOIN (SELECT name, sum(pgsize) AS pgsize FROM dbstat GROUP BY name) d USING (name)"
        ).fetchall()
    found: dict[str, tuple[int, int]] = {}
    for name, kind, size in rows:
        whole = next((one for one in SHADOWS if name.startswith(one)), name)
        table, indexes = found.get(whole, (0, 0))
        found[whole] = (table + size, indexes) if kind == "table" else (table, indexes + size)
    return found


def of_import(first: dict[str, Import], floor: Import, skills: int) -> Iterator[str]:
    """Yield a table of what first imports took of processors and memory, and their floor."""
    yield f"\n### A first import of {skills:,} skills\n"
    yield f"| cost | {' | '.join(first)} |"
    yield "|---|" + "---:|" * len(first)
    for what, numbers in (
        ("CPU time of the client per skill", [one.client for one in first.values()]),
        ("CPU time of the server per skill", [one.server for one in first.values()]),
    ):
        yield f"| {what} | {' | '.join(f'{one / skills * 1000:,.2f} ms' for one in numbers)} |"
    for place, what in enumerate(("memory of the client", "memory of the server for the import")):
        shown = (f"{one.memory[place]:,.0f} MiB" for one in first.values())
        yield f"| {what} | {' | '.join(shown)} |"
    ours, floors = first["PostgreSQL"], floor.server / skills * 1000
    yield (
        "\nA plain COPY of the same rows into the same tables and indexes takes "
        f"{floor.seconds:,.1f} s, and {floors:,.2f} ms of CPU time of the server per skill. The "
        f"import takes **{ours.seconds / floor.seconds:.1f} x** as long, and "
        f"{ours.server / floor.server:.1f} x as much CPU time of the server."
    )


def report(places: dict[str, str], skills: int) -> Iterator[str]:
    """Yield a table of the bytes a skill takes, the tables that take most of all first."""
    found = {name: sizes(place) for name, place in places.items()}
    yield f"\n### Size of the tables, {skills:,} skills\n"
    yield f"| bytes per skill | {' | '.join(f'{name}: rows | indexes' for name in found)} |"
    yield "|---|" + "---:|---:|" * len(found)
    total = {name: tuple(map(sum, zip(*of.values(), strict=True))) for name, of in found.items()}
    names = {table for of in found.values() for table in of}
    for table in sorted(names, key=lambda one: -sum(sum(of.get(one, ())) for of in found.values())):
        cells = [of.get(table, (0, 0)) for of in found.values()]
        if max(map(sum, cells)) >= LEAST * skills:
            yield _row(table, cells, skills)
    yield _row("**all**", list(total.values()), skills)


def _row(name: str, cells: list[tuple[int, ...]], skills: int) -> str:
    shown = (f"{size / skills:,.0f}" if size else "" for pair in cells for size in pair)
    return f"| {name} | {' | '.join(shown)} |"
