"""Measure the registry beside the bare parts and write docs/contributing/benchmarks.md.

    python benchmarks/run.py [--sizes 1000,10000,60000,100000]

Every figure and its floor are taken in the same run, in turn, and the median is quoted.
"""

import argparse
import json
import os
import platform
import shutil
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import backends
import costs
import floors
import mcp_clients
import quality
import stages
import toolsets
import web
from generate import real_skills, write_skills

from registry import Settings, SkillRegistry, __version__
from registry.db.read.skills import columns
from registry.db.visibility import EVERYTHING

FULL_SIZE = 10_000
"""Skills of the goals that are not about very many."""

REPOSITORY = Path(__file__).resolve().parent.parent
COMMAND = str(Path(sys.executable).with_name("skill-registry"))
KEYWORDS = [
    *("pdf", "docker deploy", "chart excel", '"release notes"', "sql", "email", "kubernetes helm"),
    *("react hooks", "api security", "changelog", "web scraping", "slack bot", "unit tests"),
]
SENTENCES = [
    "how do I deploy a docker service?",
    "security review of an api before it is released",
    "turn the numbers of a spreadsheet into a chart for my slides",
    "write release notes from the commits since the last tag",
    "find out why this test fails only sometimes",
]
TURNS = 5

SKILLS = (
    "The skills are varied copies of real skills: each copy has\nits own name, one word of its own "
    "in the description, and one line of its own\n(`benchmarks/generate.py`)."
    if real_skills()
    else "The skills are made up, with the\nsizes of real ones (`benchmarks/generate.py`)."
)

CHECK = """
import json, sys, time
from registry import SkillRegistry, Settings
import registry.catalog.check  # start-up is measured by the whole processes below
with SkillRegistry.open(sys.argv[1], settings=Settings()) as registry:
    started, worked = time.perf_counter(), time.process_time()
    checked = len(registry.check())
    print(json.dumps([time.perf_counter() - started, time.process_time() - worked]))
assert checked >= int(sys.argv[2]), checked
"""

# What a process takes that asks for what `list` shows, and does nothing with it.
SELECT = """
import sqlite3, sys, click
print(len(sqlite3.connect(sys.argv[1]).execute(sys.argv[2]).fetchall()))
"""

PEAK = """
import os, resource, subprocess, sys
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
"""


def median(work: Callable[[], object], runs: int) -> float:
    return statistics.median(floors.timed(work) for _ in range(runs))


def beside(
    work: Callable[[], object], floor: Callable[[], object], runs: int
) -> tuple[float, float]:
    """Time two pieces of work in turn; return the medians."""
    pairs = [(floors.timed(work), floors.timed(floor)) for _ in range(runs)]
    return tuple(statistics.median(column) for column in zip(*pairs, strict=True))  # type: ignore[return-value]


def process(*command: str) -> Callable[[], object]:
    # Compiled files are part of an installed program, so let Python keep them.
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    return lambda: subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=environment)


def peak(*command: str) -> float:
    """Return the most memory in MiB that a program has taken."""
    # Between them is a small process: a child counts what its parent held when it was started.
    ran = subprocess.run(
        [sys.executable, "-c", PEAK, *command], check=True, capture_output=True, text=True
    )
    return int(ran.stdout) / 1024


def age(root: Path) -> None:
    """Give all files an old time, and wait until their change of it is old too."""
    for folder, _, files in os.walk(root):
        for name in files:
            os.utime(os.path.join(folder, name), (1_700_000_000, 1_700_000_000))
    time.sleep(2.1)


class Table:
    def __init__(self, size: int) -> None:
        self.size = size
        self.rows: list[str] = []
        self.stages: list[tuple[str, float]] = []

    def add(
        self, what: str, ours: float, floor: float | None, goal: str, *, unit: str = "ms"
    ) -> None:
        shown = [
            f"{value * 1000:,.1f} ms"
            if unit == "ms"
            else f"{value:,.1f} {unit}"
            if value is not None
            else ""
            for value in ((ours,) if floor is None else (ours, floor))
        ]
        ratio = "" if floor is None else f"{ours / floor:.2f} x"
        self.rows.append(
            f"| {what} | {shown[0]} | {shown[1] if floor is not None else ''} | {ratio} | {goal} |"
        )
        print(self.rows[-1], flush=True)


def measure(size: int, work: Path) -> Table:
    table = Table(size)
    root, database = work / f"skills-{size}", work / f"{size}.db"
    print(f"generating {size:,} skills", flush=True)
    write_skills(root, size)
    runs = 7 if size <= FULL_SIZE else 3
    measure_import(table, root, database, work)
    age(root)
    with SkillRegistry.open(database, settings=Settings()) as registry:
        registry.sync()
        age(work / "none")
        registry.sync()

        ours, floor = beside(registry.sync, lambda: floors.walk(str(root)), runs)
        table.add("sync, nothing changed", ours, floor, "<= 2 x + start-up")
        document = next(root.rglob("SKILL.md"))

        def edit() -> None:
            document.write_text(document.read_text() + "\nOne more line.\n")
            assert len(registry.sync().updated) == 1

        edit()
        ours, floor = beside(edit, lambda: floors.walk(str(root)), runs)
        table.add("sync, one file edited", ours, floor, "<= 2 x + 50 ms + start-up")

        raw = sqlite3.connect(database)
        select = (
            f"SELECT {columns(EVERYTHING)} FROM skills s JOIN sources src ON src.id = s.source_id"
        )
        ours, floor = beside(registry.list, lambda: raw.execute(select).fetchall(), runs)
        table.add("list all skills with the Python API", ours, floor, "<= 2 x")
        ours = median(lambda: registry.list(limit=50), runs)
        table.add("list the first 50 skills with the Python API", ours, None, "")
        raw.close()

        for what, queries, goals in [
            ("keywords", KEYWORDS, ("<= 5 ms", "<= 30 ms")),
            ("sentences", SENTENCES, ("<= 10 ms", "<= 60 ms")),
        ]:
            # A word that nothing has makes each of them new: repeated ones are remembered.
            asked = [f"{query} q{turn}x" for turn in range(TURNS) for query in queries]
            times = sorted(floors.timed(lambda q=query: registry.search(q)) for query in asked)
            half, most = statistics.median(times), times[int(len(times) * 0.95)]
            small = goals[0] if size <= FULL_SIZE else ""
            table.add(f"search for {what} with the Python API, p50", half, None, small)
            table.add(f"search for {what} with the Python API, p95", most, None, goals[1])
        ours = median(lambda: registry.get(registry.list(limit=1)[0].ref), runs)
        table.add("show one skill with the Python API", ours, None, "")
        for what, figure, goal, unit in toolsets.rows(registry, root):
            table.add(what, figure, None, goal if size <= FULL_SIZE else "", unit=unit)

    measure_processes(table, database, select, runs)
    shutil.rmtree(root)
    for leftover in work.glob(f"{size}.db*"):
        leftover.unlink()
    return table


def measure_import(table: Table, root: Path, database: Path, work: Path) -> None:
    """Import the skills and check them, beside the bare parts of both."""
    size = table.size
    parts = floors.import_parts(root, work / "floor.db")
    for leftover in work.glob("floor.db*"):
        leftover.unlink()
    seconds, own, helped, peak = measured(costs.IMPORT, str(database), str(root), str(size))
    shown = ", ".join(f"{name} {part.seconds:.2f} s" for name, part in parts.items())
    goal = "<= 1.5 x" if size >= FULL_SIZE else ""
    floor = sum(part.seconds for part in parts.values())
    floor_worked = sum(part.worked for part in parts.values())
    table.add(f"first import ({shown})", seconds, floor, goal)
    table.add("first import, CPU time of both processes", own + helped, floor_worked, goal)
    table.add("peak memory of the first import", peak, None, "<= 300 MiB", unit="MiB")
    if size == FULL_SIZE:
        table.stages = stages.rows(root)
        each = [
            ("whole first import, in the process that reads and stores", own),
            ("whole first import, in the process that only reads", helped),
            ("whole first import, sum of the floors", floor_worked),
        ]
        table.stages += [(what, figure / size * 1e6) for what, figure in each]

    seconds, worked = measured(CHECK, str(database), str(size))
    read = [part for name, part in parts.items() if name != "insert"]
    table.add("check all skills", seconds, sum(part.seconds for part in read), "<= 3 x")
    table.add("check all skills, CPU time", worked, sum(part.worked for part in read), "<= 3 x")


def measured(script: str, *arguments: str) -> list[float]:
    """Return what a script of its own process prints."""
    ran = subprocess.run(
        [sys.executable, "-c", script, *arguments],
        check=True,
        capture_output=True,
        stdin=subprocess.DEVNULL,
        text=True,
    )
    figures: list[float] = json.loads(ran.stdout)
    return figures


def measure_processes(table: Table, database: Path, select: str, runs: int) -> None:
    size = table.size
    bare = process(sys.executable, "-c", "import sqlite3, click")
    bare()
    goal = "<= 2 x" if size <= 1_000 else ""
    db = ("--db", str(database))
    for what, arguments in [
        ("skill-registry list (whole process)", ("list",)),
        ("skill-registry list --json (whole process)", ("list", "--json")),
        ("skill-registry search pdf (whole process)", ("search", "pdf")),
        ("skill-registry prompt (whole process)", ("prompt",)),
        ("skill-registry sync, nothing changed (whole process)", ("sync",)),
    ]:
        command = process(COMMAND, *db, *arguments)
        command()
        ours, floor = beside(command, bare, runs)
        shown = "<= 1 s" if arguments == ("prompt",) else goal if arguments == ("list",) else ""
        table.add(what, ours, floor, shown)
    command = process(COMMAND, *db, "list")
    selecting = process(sys.executable, "-c", SELECT, str(database), select)
    what = "skill-registry list, compared with a process that runs the same SELECT"
    table.add(what, *beside(command, selecting, runs), "<= 2 x")
    for arguments in [("list",), ("list", "--json"), ("prompt",), ("check",)]:
        what = f"peak memory of skill-registry {' '.join(arguments)}"
        goal = "< 150 MiB" if arguments != ("prompt",) else ""
        table.add(what, peak(COMMAND, *db, *arguments), None, goal, unit="MiB")
    if size == FULL_SIZE:
        for what, figure, echo in mcp_clients.rows(str(database)):
            table.add(what, figure, echo, "adds <= 10 ms" if what.endswith("p50") else "")
    if size >= web.FROM:
        for what, figure, goal, unit in web.rows(str(database)):
            table.add(f"web: {what}", figure, None, goal, unit=unit)


def machine() -> str:
    model = ""
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                model = line.split(":", 1)[1].strip()
    except OSError:
        pass
    return (
        f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores {model}, "
        f"Python {platform.python_version()}, SQLite {sqlite3.sqlite_version}"
    )


INTRODUCTION = """\
For contributors and curious users: this page shows how long operations take, compared with the
minimum of work for the same result.

`make bench` writes this page. "measured" is the time of the program. "floor" is the time of the
necessary work without the program, for example to read and hash the files. Each run measures both
in turn. Figures without p95 or p99 are medians. p95 means that 95 % of the values are lower. Rows
with "web:" measure pages of the web catalogue. Rows with "native:", "basic:" and "wave:" measure
tools for agents. The machine is shared, so compare the ratios, not the times.
"""
FLOORS = """\
The floor of *first import* is the sum of read, sha256, libyaml and insert with FTS5, each measured
separately. The floor of *check* is the sum of the first three. The floor of *sync* is one scandir
and stat of all files. The floor of *list* is one raw SELECT of the same columns. The floor of
*whole process* is `python -c "import sqlite3, click"`. The floor of *over HTTP* is an echo tool
with the same SDK and the same number of clients. All clients are in one process, which shares the
two cores with the server. So with twenty clients, the figure shows the total work, not how long
one client waits."""
JUDGED = """\
The table includes the questions with relevance judgments that have a right skill in this
catalogue. [Search evaluation](search-evaluation.md) shows the results of the whole test set."""


def write(tables: list[Table], target: Path, side_by_side: list[str]) -> None:
    header = "| work | measured | floor | ratio | goal |"
    lines = [
        "# Benchmarks",
        "",
        f"{INTRODUCTION} {SKILLS}",
        "",
        f"skill-registry {__version__}; {machine()}",
        "",
    ]
    for table in tables:
        lines += [
            f"## {table.size:,} skills",
            "",
            header,
            "|---|---:|---:|---:|---|",
        ]
        lines += [*table.rows, ""]
    lines += [
        FLOORS,
        "",
        *side_by_side,
    ]
    target.write_text("\n".join(lines), encoding="utf-8")


def found(answered: list[tuple[str, ...]]) -> list[str]:
    """Say how many questions search answers, of those about skills that can be carried."""
    if not answered:
        return []
    return [
        "## Found among the first five",
        "",
        JUDGED,
        "",
        "| questions | answered | share |",
        "|---|---:|---:|",
        *(f"| {' | '.join(row)} |" for row in answered),
        "",
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", default="1000,10000,60000,100000")
    parser.add_argument("--server-sizes", default="1000,10000", help="of the comparison")
    parser.add_argument("--seconds", type=float, default=20, help="with 16 clients at once")
    parser.add_argument(
        "--output", type=Path, default=REPOSITORY / "docs" / "contributing" / "benchmarks.md"
    )
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="skill-registry-bench-") as folder:
        tables = [measure(size, Path(folder)) for size in numbers(arguments.sizes)]
        answered = quality.measure(Path(folder))
    servers = numbers(arguments.server_sizes)
    compared = backends.report(servers, arguments.seconds) if servers else []
    profile = [row for table in tables for row in table.stages]
    write(tables, arguments.output, [*stages.told(profile), *found(answered), *compared])


def numbers(text: str) -> list[int]:
    """Return the sizes that are named; of none, an empty list."""
    return [int(size) for size in text.split(",") if size]


if __name__ == "__main__":
    main()
