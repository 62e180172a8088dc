"""The web catalogue as people look through it: CPU time, waiting, bytes, memory.

    python benchmarks/web.py DATABASE

Prints rows of a Markdown table. Who asks is a process of its own (`visitors.py`); CPU time is all
of the server's, which says how much work a page is on a machine that does other things, too.
"""

import gzip
import http.client
import itertools
import json
import os
import random
import re
import socket
import statistics
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote, urlencode

from toolsets import Row
from visitors import ASKING, Answer, ask

from registry import Settings, SkillRegistry
from registry.db.read.listing import Filters

OK = 200
QUESTIONS = [
    "pdf forms",
    "deploy a docker service",
    "release notes",
    "chart in excel",
    "sql review",
    "email reply",
    "kubernetes logs",
    "unit tests python",
]
EACH = 40
"""Pages of one kind that are asked for, one after the other."""

FROM = 10_000
"""Skills of a registry that is looked through."""

SKILLS = 400
"""Among which visitors choose: too few, and all of them would be kept."""

VISITORS, VISITS = 8, 3000

SHARES = {
    "start page": 4,
    "filtered list": 8,
    "search while typing": 30,
    "page of a skill": 30,
    "page of a file": 10,
    "history page of a skill": 4,
    "skill as JSON": 6,
    "search as JSON": 3,
    "findings": 2,
    "changes": 1,
    "statistics": 2,
}
"""Pages of each kind among a hundred."""


def plans(database: str) -> dict[str, list[str]]:
    """Return what is asked for of each kind: other pages each time, in the order of a seed."""
    chance = random.Random(1)
    with SkillRegistry.open(database, settings=Settings()) as registry:
        total = registry.list(limit=0).total
        places = [chance.randrange(total) for _ in range(SKILLS)]
        skills = [registry.list(limit=1, offset=place)[0] for place in places]
        files = [(one.ref, file.path) for one in skills for file in registry.get(one.ref).files[:3]]
        codes = [one.code for one in registry.browse().counts()]
        counts = registry.browse().facets("", Filters())
    refs = [quote(one.ref) for one in skills]
    facets = [("tag", one.value) for one in counts.tags] + [
        ("kind", one.value) for one in counts.kinds
    ]
    facets += [("category", one.value) for one in counts.categories]
    facets += [("updated", one.value) for one in counts.updated]
    chance.shuffle(facets)
    typed = [text[:end] for text in QUESTIONS for end in range(1, len(text) + 1)]
    return {
        "start page": ["/"],
        "filtered list": [f"/?{urlencode([pair])}" for pair in facets],
        "search while typing": [f"/?{urlencode({'q': text})}" for text in typed],
        "page of a skill": [f"/skills/{ref}" for ref in refs],
        "page of a file": [
            f"/files/{quote(ref)}?{urlencode({'path': path})}" for ref, path in files
        ],
        "history page of a skill": [f"/history/{ref}" for ref in refs],
        "skill as JSON": [f"/skills/{ref}.json" for ref in refs],
        "search as JSON": [f"/index.json?{urlencode({'q': text})}" for text in QUESTIONS],
        "findings": ["/findings", *(f"/findings?code={code}" for code in codes)],
        "changes": ["/changes", "/changes?days=7", "/changes.atom"],
        "statistics": ["/stats"],
    }


def worked(process: int) -> float:
    """Return the CPU time in seconds that the threads of a process have taken."""
    threads = Path(f"/proc/{process}/task").glob("*/schedstat")
    return sum(int(one.read_text().split()[0]) for one in threads) / 1e9


def memory(process: int) -> float:
    """Return the memory in MiB that a process takes now."""
    status = Path(f"/proc/{process}/status").read_text()
    return int(status.split("VmRSS:")[1].split()[0]) / 1024


def percentile(times: Sequence[float], share: int) -> float:
    return statistics.quantiles(times, n=100, method="inclusive")[share - 1]


@contextmanager
def serving(database: str) -> Iterator[tuple[int, int]]:
    """Serve the catalogue; give the port and the process."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = ["-m", "registry", "--db", database, "serve", "--no-watch", "--port", str(port)]
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    server = subprocess.Popen(
        [sys.executable, *command], stderr=subprocess.PIPE, text=True, env=environment
    )
    try:
        assert server.stderr is not None
        assert server.stderr.readline().startswith("Serving ")
        yield port, server.pid
    finally:
        server.terminate()
        server.communicate()


def first_page(port: int) -> tuple[float, int]:
    """Return the kilobytes of the start page and all that it is made of, and the requests."""
    connection = http.client.HTTPConnection("127.0.0.1", port)
    connection.request("GET", "/", headers=ASKING)
    answer = connection.getresponse()
    sent = answer.read()
    page = gzip.decompress(sent).decode()
    parts = set(re.findall(r'(?:src|<link rel="(?:icon|stylesheet)" href)="([^"]+)"', page))
    sizes = [len(sent), *(ask(connection, "", part)[3] for part in parts)]
    connection.close()
    return sum(sizes) / 1000, len(sizes)


def rows(database: str) -> Iterator[Row]:
    """Yield what was asked, how much it was, the goal and the unit."""
    asked = plans(database)
    with serving(database) as (port, process):
        size, requests = first_page(port)
        yield "size of the first page with all its files", size, "<= 100 KB", "KB"
        yield "number of requests for the first page", requests, "<= 10", "requests"
        for kind, paths in asked.items():
            work, waits = each(port, process, kind, itertools.islice(itertools.cycle(paths), EACH))
            yield f"{kind}, CPU time, median", statistics.median(work), "", "ms"
            yield f"{kind}, CPU time, p95", percentile(work, 95), "", "ms"
            yield f"{kind}, response time, p95", percentile(waits, 95), "<= 50 ms", "ms"
    with serving(database) as (port, process):
        started = worked(process)
        answers, seconds = visited(port, mixed(asked))
        waits = [wait for _, wait, _, _ in answers]
        yield f"{VISITORS} visitors, requests per second", VISITS / seconds, ">= 200", "a second"
        yield (
            f"{VISITORS} visitors, CPU time per request",
            (worked(process) - started) / VISITS,
            "",
            "ms",
        )
        yield f"{VISITORS} visitors, response time, p50", statistics.median(waits), "", "ms"
        yield f"{VISITORS} visitors, response time, p95", percentile(waits, 95), "", "ms"
        yield "memory of the server after these requests", memory(process), "", "MiB"


def each(
    port: int, process: int, kind: str, paths: Iterable[str]
) -> tuple[list[float], list[float]]:
    """Return the CPU time and the waiting of each page, asked for one after the other."""
    connection = http.client.HTTPConnection("127.0.0.1", port)
    work, waits = [], []
    for path in paths:
        before = worked(process)
        _, wait, status, _ = ask(connection, kind, path)
        work.append(worked(process) - before)
        waits.append(wait)
        assert status == OK, path
    connection.close()
    return work, waits


def mixed(asked: dict[str, list[str]]) -> list[tuple[str, str]]:
    """Return what people ask for, in the order of a seed; they type what they search for."""
    chance = random.Random(2)
    kinds = chance.choices(list(SHARES), weights=list(SHARES.values()), k=VISITS)
    turns = {kind: itertools.cycle(paths) for kind, paths in asked.items()}
    return [(kind, next(turns[kind])) for kind in kinds]


def visited(port: int, plan: list[tuple[str, str]]) -> tuple[list[Answer], float]:
    """Return the answers that visitors got at once, and how long all of them took."""
    program = str(Path(__file__).with_name("visitors.py"))
    ran = subprocess.run(
        [sys.executable, program, "127.0.0.1", str(port), str(VISITORS)],
        input=json.dumps(plan),
        capture_output=True,
        text=True,
        check=True,
    )
    answers, seconds = json.loads(ran.stdout)
    assert all(status == OK for _, _, status, _ in answers)
    return answers, seconds


if __name__ == "__main__":
    for what, figure, goal, unit in rows(sys.argv[1]):
        shown = f"{figure * 1000:,.1f} ms" if unit == "ms" else f"{figure:,.1f} {unit}"
        print(f"| {what} | {shown} | {goal} |", flush=True)
