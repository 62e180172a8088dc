"""Measure a SQLite file and a PostgreSQL server side by side: alone, and with 16 clients at once.

    python benchmarks/backends.py [--sizes 1000,10000,100000] [--seconds 20]

The server is the tests' own (or the one in SKILL_REGISTRY_TEST_POSTGRES), with its usual settings:
it writes through to the disk. Prints Markdown; `make bench` puts it into
docs/contributing/benchmarks.md.
"""

import argparse
import json
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(REPOSITORY), str(Path(__file__).parent)]

import costs  # noqa: E402
import far  # noqa: E402
import floors  # noqa: E402
import waits  # noqa: E402
from generate import write_skills  # noqa: E402
from served import server  # noqa: E402

from registry import Settings, SkillRegistry  # noqa: E402
from registry.db.read.listing import Filters  # noqa: E402

CLIENTS, WRITERS = 16, 4
HEAD = (
    "## A file and a server side by side",
    "",
    "`make bench` also runs `python benchmarks/backends.py`. It makes the same calls with the",
    "same skills, on a SQLite file and on a PostgreSQL server. The server has its default",
    "settings, stores each write on the disk before it confirms it, and shares the two cores with",
    "its clients. Each call to the server needs a few round trips over a socket, while the",
    "program reads the file directly. A first import runs in its own process, with a helper",
    "process.",
)
WORDS = "docker deploy pdf chart excel email sql review security release notes api service".split()

RARE = "kubernetes docx churn helm terraform latex solidity genomics svelte invoice regex".split()
SENTENCES = (
    "how do I review a pull request that changes the database",
    "write release notes from the commits since the last tag",
    "we never wrote API docs for our server, produce them from the code",
    "turn the recording of a training into handouts and a quiz",
    "mark which columns of our tables hold personal data",
    "too many people cancel their subscription after two months",
    "draw a chart of the numbers in this excel file",
    "which of our containers can be reached from outside",
    "I can't get started on anything, help me plan the day in tiny steps",
    "find out why the tests of the payment service fail at night",
)


def searching(registry: SkillRegistry, place: str) -> dict[str, float]:
    """Search for single words and for sentences, none of them twice; seconds."""
    registry.search("warm up")
    before = costs.server_work(place)[0]
    taken = [
        [floors.timed(lambda text=text: registry.search(text)) for text in what]
        for what in (WORDS, RARE, SENTENCES)
    ]
    asked = [one for some in taken for one in some]
    found = {"search, CPU time of the server": (costs.server_work(place)[0] - before) / len(asked)}
    for name, some in zip(("a common word", "a rare word", "a sentence"), taken, strict=True):
        found[f"search for {name}"] = statistics.median(some)
    found["search, 95th percentile"] = quantile(asked, 0.95)
    return found


def alone(place: str, root: Path) -> dict[str, float]:
    """Measure one process that has the database for itself; seconds."""
    with SkillRegistry.open(place, settings=Settings()) as registry:
        found: dict[str, float] = {}
        for folder, _, files in os.walk(root):
            for name in files:
                os.utime(os.path.join(folder, name), (1_700_000_000, 1_700_000_000))
        time.sleep(2.1)
        registry.sync()
        time.sleep(2.1)
        registry.sync()
        found["sync, nothing changed"] = median(registry.sync, 5)
        document = next(root.rglob("SKILL.md"))

        def edit() -> None:
            document.write_text(document.read_text() + "\nOne more line.\n")
            assert len(registry.sync().updated) == 1

        edit()
        found["sync, one file edited"] = median(edit, 5)
        found["list all skills"] = median(registry.list, 5)
        found["list the first 50 skills"] = median(lambda: registry.list(limit=50), 15)
        one = registry.list(limit=1)[0].ref
        found["show one skill"] = median(lambda: registry.get(one), 15)
        number = iter(range(1000))
        found["search with a new query"] = median(
            lambda: registry.search(
                f"{random.choice(WORDS)} {random.choice(WORDS)} q{next(number)}"
            ),
            25,
        )
        found["search with a repeated query"] = median(lambda: registry.search("docker deploy"), 15)
        found |= searching(registry, place)
        names = iter(range(1000))
        found["create a skill"] = median(
            lambda: registry.create(f"bench-{next(names)}", description="Made.", source="bench"), 15
        )
        found["update a skill"] = median(
            lambda: registry.update("bench-0", body=f"{time.time_ns()}\n"), 15
        )
        found["bytes"] = registry.database_info().bytes
        assert registry.check_database() == []
    return found


def median(work: Callable[[], object], runs: int) -> float:
    return statistics.median(floors.timed(work) for _ in range(runs))


def client(place: str, number: int) -> None:
    """Work as one of many until the time on standard input; print what was done, and how fast."""
    rng = random.Random(number)
    taken: dict[str, list[float]] = {}
    mine: dict[str, str | None] = {}
    turn = 0
    with SkillRegistry.open(place, settings=Settings()) as registry:
        refs = [skill.ref for skill in registry.list(limit=200)]
        registry.search("warm up")
        print("ready", flush=True)
        until = float(sys.stdin.readline())

        def timed(what: str, work: Callable[[], object]) -> None:
            started = time.perf_counter()
            work()
            taken.setdefault(what, []).append(time.perf_counter() - started)

        while time.time() < until:
            turn += 1
            if number < WRITERS:
                live = [name for name, text in mine.items() if text is not None]
                choice = rng.random()
                if choice < 0.5 or not live:
                    name = f"client-{number}-{turn}"
                    timed(
                        "create",
                        lambda name=name: registry.create(
                            name, description=f"By {number}.", source="bench"
                        ),
                    )
                    mine[name] = f"By {number}."
                elif choice < 0.85:
                    name, text = rng.choice(live), f"In turn {turn}."
                    timed(
                        "update",
                        lambda name=name, text=text: registry.update(name, description=text),
                    )
                    mine[name] = text
                else:
                    name = rng.choice(live)
                    timed("delete", lambda name=name: registry.delete(name))
                    mine[name] = None
            else:
                choice = rng.random()
                if choice < 0.4:
                    start = rng.randrange(0, 500, 50)
                    timed("list 50", lambda start=start: registry.list(limit=50, offset=start))
                elif choice < 0.7:
                    query = f"{rng.choice(WORDS)} {rng.choice(WORDS)}"
                    timed("search", lambda query=query: registry.search(query, limit=10))
                else:
                    ref = rng.choice(refs)
                    timed("read", lambda ref=ref: registry.read(ref))
    print(json.dumps([taken, mine]))


def together(place: str, seconds: float) -> tuple[dict[str, list[float]], float]:
    """Run all clients at once; return the times of each kind of call, and calls per second."""
    running = [
        subprocess.Popen(
            [sys.executable, __file__, "--client", place, str(number)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for number in range(CLIENTS)
    ]
    for process in running:
        assert process.stdout.readline() == "ready\n"
    until = time.time() + seconds
    for process in running:
        process.stdin.write(f"{until}\n")
        process.stdin.flush()
    taken: dict[str, list[float]] = {}
    expected: dict[str, str | None] = {}
    for process in running:
        output, _ = process.communicate(timeout=seconds + 120)
        assert process.returncode == 0
        times, mine = json.loads(output)
        expected |= mine
        for what, some in times.items():
            taken.setdefault(what, []).extend(some)
    with SkillRegistry.open(place, settings=Settings()) as registry:
        listed = {skill.name: skill.description for skill in registry.list(Filters(all=True))}
        for name, text in expected.items():
            assert listed.get(name) == text, f"lost: {name}"
        assert registry.check_database() == []
        report = registry.sync(verify=True)
        assert [*report.added, *report.updated, *report.removed] == []
    calls = sum(map(len, taken.values()))
    return taken, calls / seconds


def quantile(values: list[float], share: float) -> float:
    return sorted(values)[min(len(values) - 1, int(share * len(values)))]


def size_of(value: float) -> str:
    return f"{value / (1 << 20):,.0f} MiB"


def report(sizes: list[int], seconds: float) -> Iterator[str]:
    """Yield lines of Markdown."""
    yield from HEAD
    (REPOSITORY / ".bench").mkdir(exist_ok=True)  # on a disk, and ignored by git
    work = Path(tempfile.mkdtemp(dir=REPOSITORY / ".bench"))
    try:
        with server() as databases:
            for size in sizes:
                places = {"SQLite": str(work / f"{size}.db"), "PostgreSQL": databases.new()}
                found, first = {}, {}
                for name, place in places.items():
                    root = work / f"{name}-{size}"  # each changes its own
                    write_skills(root, size)
                    first[name] = costs.imported(place, root, size)
                floor = costs.copied(places["PostgreSQL"])
                tables = list(costs.report(places, size))
                for name, place in places.items():
                    found[name] = {
                        "first import": first[name].seconds,
                        **alone(place, work / f"{name}-{size}"),
                    }
                yield f"\n### One process, {size:,} skills\n"
                yield "| work | SQLite | PostgreSQL | ratio |\n|---|---:|---:|---:|"
                for what, ours in found["SQLite"].items():
                    theirs = found["PostgreSQL"][what]
                    shown = [
                        size_of(v) if what == "bytes" else f"{v * 1000:,.1f} ms"
                        for v in (ours, theirs)
                    ]
                    name = "size of the database" if what == "bytes" else what
                    ratio = f"{theirs / ours:.1f} x" if ours else ""
                    yield f"| {name} | {shown[0]} | {shown[1]} | {ratio} |"
                yield from costs.of_import(first, floor, size)
                yield from tables
                if size == 10_000:
                    yield from crowd(places, seconds)
                for place in list(places.values())[1:]:
                    databases.drop(place)
                for name in places:
                    shutil.rmtree(work / f"{name}-{size}")
            for more, skills in ((far.report, min(sizes)), (waits.report, waits.SKILLS)):
                url = databases.new()
                yield from more(url, skills, seconds)
                databases.drop(url)
    finally:
        shutil.rmtree(work, ignore_errors=True)


def crowd(places: dict[str, str], seconds: float) -> Iterator[str]:
    runs = {name: together(place, seconds) for name, place in places.items()}
    yield (
        f"\n### {CLIENTS} client processes at once, {WRITERS} of them writing, 10,000 skills\n\n"
        "No change was lost, no call failed, and a sync afterwards found nothing to do.\n"
    )
    rates = ", ".join(f"{name} {rate:,.0f} calls a second" for name, (_, rate) in runs.items())
    yield f"Throughput: {rates}.\n"
    yield "| call | SQLite p50 | p99 | calls | PostgreSQL p50 | p99 | calls |"
    yield "|---|---:|---:|---:|---:|---:|---:|"
    for what in ("list 50", "search", "read", "create", "update", "delete"):
        cells = []
        for taken, _ in runs.values():
            some = taken.get(what, [0.0])
            cells += [f"{quantile(some, share) * 1000:,.1f} ms" for share in (0.5, 0.99)]
            cells.append(f"{len(some):,}")
        yield f"| {what} | {' | '.join(cells)} |"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--sizes", default="1000,10000,100000")
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--client", nargs=2)
    chosen = parser.parse_args()
    if chosen.client:
        client(chosen.client[0], int(chosen.client[1]))
        return
    for line in report([int(one) for one in chosen.sizes.split(",")], chosen.seconds):
        print(line, flush=True)


if __name__ == "__main__":
    main()
