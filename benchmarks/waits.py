"""Measure how long a writer waits on a server while others sync.

    python benchmarks/waits.py [--skills 6000] [--seconds 5]

One client makes changes all the time; meanwhile a host imports skills for the first time, and finds
some edited. Then a second host imports the same ones, and the first finds some edited again. Prints
Markdown;
`benchmarks/backends.py` does so too, for `make bench`.
"""

import argparse
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(REPOSITORY), str(Path(__file__).parent)]

from generate import write_skills  # noqa: E402
from served import print_report  # noqa: E402

from registry import Settings, SkillRegistry  # noqa: E402

EDITED = 5000
SKILLS = 6000
HEAD = (
    "\n### How long a writer waits while others sync, {skills:,} skills\n\n"
    "One client updates a skill again and again. The server and the syncs use the same two "
    "cores.\n\n"
    "| at the same time | duration | changes | p50 | p99 | longest |\n"
    "|---|---:|---:|---:|---:|---:|"
)


def report(url: str, skills: int, seconds: float) -> Iterator[str]:
    """Yield lines of Markdown about the database at ``url``; ``seconds``: that nothing happens."""
    yield HEAD.format(skills=skills)
    place = REPOSITORY / ".bench"  # on a disk, and ignored by git
    place.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=place) as work:
        first, second, own = (Path(work) / name for name in ("first", "second", "own"))
        write_skills(first, skills)
        (own / "notes").mkdir(parents=True)
        (own / "notes" / "SKILL.md").write_text("---\nname: waits\ndescription: Waits.\n---\n")
        with SkillRegistry.open(url, settings=Settings(host="writer")) as registry:
            registry.sync(str(own), name="own")
            change = _Changes(registry)
            yield _row("nothing", change, time.monotonic() + seconds)
            yield _row("a first import", change, _sync(url, "one", first))
            edits = f"a sync of {_edit(first):,} edits"
            yield _row(edits, change, _sync(url, "one", first))
            shutil.copytree(first, second)
            yield _row(
                "a first import of the same skills by a second host",
                change,
                _sync(url, "two", second),
            )
            _edit(first)
            what = f"{edits} of skills that the second host also has"
            yield _row(what, change, _sync(url, "one", first))


def _edit(root: Path) -> int:
    """Add a line to skills, and return how many they are."""
    edited = sorted(root.rglob("SKILL.md"))[:EDITED]
    for document in edited:
        document.write_bytes(document.read_bytes() + b"\nOne more line.\n")
    return len(edited)


class _Changes:
    """One change after the other of the one skill of a registry."""

    def __init__(self, registry: SkillRegistry) -> None:
        self._registry, self._ref, self._made = registry, "waits", 0

    def take(self) -> float:
        """Make one, and return the seconds it took."""
        self._made += 1
        started = time.perf_counter()
        self._registry.update(self._ref, body=f"Change {self._made}.\n")
        return time.perf_counter() - started


def _row(what: str, changes: _Changes, until: "float | subprocess.Popen[str]") -> str:
    started, taken = time.monotonic(), []
    while time.monotonic() < until if isinstance(until, float) else until.poll() is None:
        taken.append(changes.take())
    lasted = time.monotonic() - started
    if not isinstance(until, float) and until.returncode:
        raise SystemExit(f"{what}: the sync ended with {until.returncode}")
    taken.sort()
    p50, p99, longest = (
        f"{taken[int(share * (len(taken) - 1))] * 1000:,.0f} ms" for share in (0.5, 0.99, 1)
    )
    return f"| {what} | {lasted:.1f} s | {len(taken):,} | {p50} | {p99} | {longest} |"


def _sync(url: str, host: str, root: Path) -> "subprocess.Popen[str]":
    return subprocess.Popen([sys.executable, __file__, "--sync", url, host, str(root)], text=True)


def sync(url: str, host: str, root: str) -> None:
    """Sync a folder as a host does."""
    with SkillRegistry.open(url, settings=Settings(host=host)) as registry:
        registry.sync(root, name=host)


def main() -> None:
    """Measure the tests' own server, or the one that they are told of."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--skills", type=int, default=SKILLS)
    parser.add_argument("--seconds", type=float, default=5)
    parser.add_argument("--sync", nargs=3)
    given = parser.parse_args()
    if given.sync:
        sync(*given.sync)
        return
    print_report(report, given.skills, given.seconds)


if __name__ == "__main__":
    main()
