"""Measure a server that is far away: what an operation costs at 0, 1 and 10 ms, and why.

    python benchmarks/far.py [--skills 1000] [--seconds 10]

To measure a sync of 5,000 edits, there must be as many skills: `--skills 10000`. Prints Markdown;
`benchmarks/backends.py` does so too, for `make bench`.
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(REPOSITORY), str(Path(__file__).parent)]

from generate import write_skills  # noqa: E402
from proxy import Proxy, under_lock  # noqa: E402
from served import print_report  # noqa: E402
from sqlalchemy import make_url  # noqa: E402

from registry import Settings, SkillRegistry  # noqa: E402
from registry.db.read.listing import TreeHashes  # noqa: E402

DELAYS = (0, 1, 10)
EDITS = (0, 400, 5000)
LISTS = 20
RUNS = 5
WRITERS = 8
HEAD = (
    "\n### A server that is far away, {skills:,} skills\n\n"
    "A proxy adds a delay to each round trip. It counts all round trips, and the round trips\n"
    "under the lock of writers.\n"
)
SYNCS = (
    "\n| edits | round trips | under the lock | 0 ms | 10 ms | processor time of the server |\n"
    "|---:|---:|---:|---:|---:|---:|"
)
READS = "\n| reading | round trips | median | processor time of the server |\n|---|---:|---:|---:|"


def operations(registry: SkillRegistry) -> dict[str, Callable[[int], object]]:
    ref = registry.list(limit=1)[0].ref
    return {
        "create": lambda run: registry.create(f"far-{run}", description="Far.", source="far"),
        "update": lambda run: registry.update(f"far-{run}", body=f"Run {run}.\n"),
        "delete": lambda run: registry.delete(f"far-{run}"),
        "list the first 50 skills": lambda _: registry.list(limit=50),
        "show": lambda _: registry.get(ref),
        "search with a new query": lambda run: registry.search(f"docker deploy q{run}"),
    }


def report(url: str, skills: int, seconds: float) -> Iterator[str]:
    """Yield lines of Markdown about the database at ``url``."""
    there = make_url(url)
    proxy = Proxy(there.host or "127.0.0.1", there.port or 5432)
    address = there.set(host="127.0.0.1", port=proxy.port).render_as_string(hide_password=False)
    try:
        yield HEAD.format(skills=skills)
        far = " | ".join(f"{delay} ms" for delay in DELAYS)
        yield f"| work | round trips | under the lock | {far} |"
        yield "|---|---:|---:|" + "---:|" * len(DELAYS)
        with (
            tempfile.TemporaryDirectory(dir=_place()) as root,
            SkillRegistry.open(address, settings=Settings()) as registry,
        ):
            write_skills(Path(root), skills)
            registry.sync(root, name="far")
            registry.create("far-warm", description="Far.", source="far")
            for what, work in operations(registry).items():
                yield _row(proxy, what, work)
            yield SYNCS
            for edits in EDITS:
                if edits <= skills:
                    yield _sync_row(proxy, registry, Path(root), edits)
            proxy.delay = 0
            yield READS
            with SkillRegistry.open(url, settings=Settings(host="other")) as other:
                yield from _list_rows(proxy, registry, other, Path(root))
            proxy.delay = DELAYS[-1] / 2000
            rate = _together(address, Path(root), seconds)
        yield f"\n{WRITERS} writers with their own sources, {DELAYS[-1]} ms away, make"
        yield f"{rate:.0f} changes per second."
    finally:
        proxy.close()


def _row(proxy: Proxy, what: str, work: Callable[[int], object]) -> str:
    cells, counted = [], ""
    for place, delay in enumerate(DELAYS):
        proxy.delay = delay / 2000
        taken = []
        for run in range(RUNS):
            with proxy.counting() as said:
                started = time.perf_counter()
                work(place * RUNS + run)
                taken.append(time.perf_counter() - started)
            counted = f"{len(said)} | {under_lock(said)}"
        cells.append(f"{statistics.median(taken) * 1000:,.1f} ms")
    return f"| {what} | {counted} | {' | '.join(cells)} |"


def _sync_row(proxy: Proxy, registry: SkillRegistry, root: Path, edits: int) -> str:
    """Edit skills and sync them, at the least delay and at the greatest."""
    cells, counted, spent = [], "", ""
    for delay in (DELAYS[0], DELAYS[-1]):
        for document in sorted(root.rglob("SKILL.md"))[:edits]:
            document.write_bytes(document.read_bytes() + b"\nOne more line.\n")
        proxy.delay = delay / 2000
        before, started = server_time(registry), time.perf_counter()
        with proxy.counting() as said:
            registry.sync(str(root), name="far")
        cells.append(f"{time.perf_counter() - started:,.2f} s")
        counted = counted or f"{len(said)} | {under_lock(said)}"
        spent = spent or f"{server_time(registry) - before:,.2f} s"
    return f"| {edits:,} | {counted} | {' | '.join(cells)} | {spent} |"


def _list_rows(
    proxy: Proxy, registry: SkillRegistry, other: SkillRegistry, root: Path
) -> Iterator[str]:
    """Read when nothing has changed, and after each change that another client made."""
    (root / "other" / "one").mkdir(parents=True)
    (root / "other" / "one" / "SKILL.md").write_text("---\nname: else\ndescription: d\n---\n")
    other.sync(str(root / "other"), name="other")
    hashes, reader = TreeHashes(), registry.core.reader
    reads: dict[str, Callable[[], object]] = {
        "look for changes": reader.version,
        "the first page of a list": lambda: registry.list(limit=50),
        "the first page of a list, after a change": lambda: registry.list(limit=50),
        "the changed skills, after a change": lambda: hashes.read(reader),
    }
    for what, read in reads.items():
        taken, spent, counted = [], 0.0, 0
        read()
        for run in range(LISTS):
            if what.endswith("after a change"):
                other.update("else", body=f"Run {run} of {what}.\n")
            before, started = server_time(registry), time.perf_counter()
            with proxy.counting() as said:
                read()
            taken.append(time.perf_counter() - started)
            counted = max(counted, len(said))
            spent += server_time(registry) - before
        yield (
            f"| {what} | {counted} | {statistics.median(taken) * 1000:.1f} ms | "
            f"{spent / LISTS * 1000:.1f} ms |"
        )


def server_time(registry: SkillRegistry) -> float:
    """Return the processor time, in seconds, of the server's present processes on this machine."""
    (found,) = registry.core.reader.rows("SELECT pg_backend_pid()")
    server = Path(f"/proc/{found[0]}/stat").read_text().rpartition(")")[2].split()[1]
    children = Path(f"/proc/{server}/task/{server}/children").read_text().split()
    times = [Path(f"/proc/{one}/schedstat") for one in children]
    return sum(int(one.read_text().split()[0]) for one in times if one.exists()) / 1e9


def _together(address: str, root: Path, seconds: float) -> float:
    """Return how many skills several processes create a second, each in a source of its own."""
    running = [
        subprocess.Popen(
            [sys.executable, __file__, "--writer", address, f"{root}-{number}", str(seconds)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for number in range(WRITERS)
    ]
    for process in running:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    for process in running:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    made = [int(process.communicate(timeout=seconds + 120)[0]) for process in running]
    return sum(made) / seconds


def writer(address: str, root: str, seconds: float) -> None:
    """Create skills from the word on standard input on, and print how many."""
    with tempfile.TemporaryDirectory(prefix=Path(root).name, dir=_place()) as own:
        name = f"writer-{os.getpid()}"
        (Path(own) / "one").mkdir()
        (Path(own) / "one" / "SKILL.md").write_text(f"---\nname: {name}\ndescription: d\n---\n")
        # A host syncs one source at a time.
        with SkillRegistry.open(address, settings=Settings(host=name)) as registry:
            registry.sync(own, name=name)
            print("ready", flush=True)
            sys.stdin.readline()
            until, made = time.monotonic() + seconds, 0
            while time.monotonic() < until:
                registry.create(f"{name}-{made}", description="Made.", source=name)
                made += 1
    print(made)


def _place() -> Path:
    place = REPOSITORY / ".bench"  # on a disk, and ignored by git
    place.mkdir(exist_ok=True)
    return place


def main() -> None:
    """Measure the tests' own server, or the one that they are told of."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--skills", type=int, default=1000)
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--writer", nargs=3)
    given = parser.parse_args()
    if given.writer:
        writer(given.writer[0], given.writer[1], float(given.writer[2]))
        return
    print_report(report, given.skills, given.seconds)


if __name__ == "__main__":
    main()
