"""Three machines and one server, whatever happens: ``python -m tests.server.chaos.run [SECONDS]``.

Machines are killed and stand still amid changes, the server is stopped and started, its pooler dies,
and the replica takes over. What the machines were told is then held against what is there
(`history`). Ends with 1 where a change was lost, or something is there that nobody asked for.
"""

import argparse
import json
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from typing import Final

from tests.program import start
from tests.server.chaos.cluster import WRITING, Cluster
from tests.server.chaos.history import CHANGES, Findings, History, Operation, operations
from tests.server.chaos.host import main as be_a_machine

WAYS: Final = {"one": "direct", "two": "session", "three": "transaction"}
"""How each machine comes to the server."""

PATIENCE: Final = 60
"""Seconds after which what does not happen is a defect."""


@dataclass
class Machine:
    """One that is started as often as it is killed."""

    name: str
    folder: Path
    url: str
    seed: int
    generation: int = 0
    process: ForkServerProcess | None = None

    @property
    def pid(self) -> int:
        assert self.process is not None
        assert self.process.pid is not None
        return self.process.pid

    @property
    def operations(self) -> list[Operation]:
        journal = self.folder / "journal"
        return operations(journal) if journal.exists() else []

    @property
    def said(self) -> str:
        """How it ended, what it printed and what it did last."""
        assert self.process is not None
        did = (self.folder / "journal").read_text().splitlines()[-5:]
        return "\n".join([str(self.process.exitcode), *did, (self.folder / "errors").read_text()])

    def start(self) -> None:
        self.generation += 1
        given = {
            "name": self.name,
            "folder": str(self.folder),
            "url": self.url,
            "seed": f"{self.seed}:{self.name}:{self.generation}",
            "others": [one for one in WAYS if one != self.name],
        }
        home = self.folder / "home"
        home.mkdir(parents=True, exist_ok=True)
        keep = {key: value for key, value in os.environ.items() if not key.startswith("XDG_")}
        with open(os.devnull, "r+b") as nothing, (self.folder / "errors").open("ab") as errors:
            self.process = start(
                [json.dumps(given)],
                environ={**keep, "HOME": str(home)},
                streams=(nothing.fileno(), nothing.fileno(), errors.fileno()),
                main=be_a_machine,
            )

    def signal(self, number: signal.Signals) -> None:
        os.kill(self.pid, number)

    def is_stopped(self) -> bool:
        self.check_alive()
        return Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()[0] == "T"

    def check_alive(self) -> None:
        assert self.process is not None
        assert self.process.exitcode is None, self.said

    def unfinished(self) -> list[str]:
        """Return the changes that began and are not over, as the disk has them."""
        return [str(one) for one in self.folder.glob(".*.skill-registry/ops/*/record")]

    def has_changed(self, since: float) -> bool:
        """Tell whether it was told of a success, of a change that began since then."""
        self.check_alive()
        return any(
            one.done and one.facts["at"] > since for one in self.operations if one.what in CHANGES
        )

    def is_up(self) -> bool:
        self.check_alive()
        mine = [one for one in self.operations if one.facts["generation"] == str(self.generation)]
        return any(one.done and one.what == "up" for one in mine)


def until(happened: Callable[[], object], pause: float = 0.01) -> None:
    """Wait until something has happened, which it must."""
    deadline = time.monotonic() + PATIENCE
    while not happened():
        assert time.monotonic() < deadline, f"in vain for {PATIENCE} seconds"
        time.sleep(pause)


class Run:
    """The machines and their server; ``counts``: what happened, and where it mattered."""

    def __init__(self, folder: Path, seed: int, *, replicated: bool = True) -> None:
        self.random = random.Random(seed)
        self.counts: Counter[str] = Counter()
        self.cluster = Cluster(replicated=replicated)
        self.machines = {
            name: Machine(name, folder / name, self.cluster.address(way), seed)
            for name, way in WAYS.items()
        }
        self.history: History | None = None

    def start(self) -> None:
        for machine in self.machines.values():
            machine.start()
        for machine in self.machines.values():
            until(machine.is_up)

    def any(self) -> Machine:
        return self.random.choice([*self.machines.values()])

    # What happens

    def kill(self) -> None:
        """Kill a machine when it has begun a change; it ends that when it is started again."""
        machine = self.any()
        until(machine.unfinished, 0.0005)
        machine.signal(signal.SIGKILL)
        assert machine.process is not None
        machine.process.join()
        self.counts["kill"] += 1
        self.counts["kill, of a pending change"] += bool(machine.unfinished())
        machine.start()
        until(machine.is_up)

    def suspend(self) -> None:
        """Let a machine stand still in its transaction; the others go on, and so does it later."""
        with self._standing_still() as machine:
            others = [one for one in self.machines.values() if one is not machine]
            since = time.monotonic()
            until(lambda: not self.cluster.ask(WRITING))
            until(lambda: all(one.has_changed(since) for one in others))
        self.counts["suspended client"] += 1
        self._goes_on()

    def stop_immediately(self) -> None:
        self._stop(signal.SIGQUIT, "server stopped at once")

    def stop_fast(self) -> None:
        self._stop(signal.SIGINT, "server stopped fast")

    def restart_pooler(self) -> None:
        """Kill the poolers in front of everybody, and start them again."""
        for pooler in self.cluster.poolers.values():
            pooler.kill()
        for pooler in self.cluster.poolers.values():
            pooler.start()
            self.counts["pooler restarted"] += 1
        self._goes_on()

    def fail_over(self) -> None:
        """Kill the server in a transaction, and let its replica take over."""
        with self._standing_still():
            self.cluster.fail_over()
        self.counts["fail-over"] += 1
        self._goes_on()

    def _stop(self, how: signal.Signals, called: str) -> None:
        with self._standing_still():
            self.cluster.primary.end(how)
            self.cluster.primary.start()
        self.counts[called] += 1
        self._goes_on()

    @contextmanager
    def _standing_still(self) -> Iterator[Machine]:
        """Let a machine stand still in the middle of a transaction, which is seen to be open."""
        machine = self.any()
        machine.signal(signal.SIGUSR1)
        until(machine.is_stopped, 0.002)
        self.counts["open transaction hit"] += bool(self.cluster.ask(WRITING))
        try:
            yield machine
        finally:
            machine.signal(signal.SIGCONT)

    def _goes_on(self) -> None:
        """Wait until each machine has changed something."""
        since = time.monotonic()
        for machine in self.machines.values():
            until(lambda machine=machine: machine.has_changed(since))

    # What came of it

    def end(self) -> Findings:
        """Let the machines end, and say what is wrong."""
        for machine in self.machines.values():
            machine.signal(signal.SIGTERM)
        for machine in self.machines.values():
            assert machine.process is not None
            machine.process.join(PATIENCE)
            assert machine.process.exitcode == 0, machine.said
        history = self.history = History({one.name: one.folder for one in self.machines.values()})
        history.check()
        history.check_left()
        history.check_stored(self.cluster.url_now, self.cluster.ask)
        return history.findings

    def stop(self) -> None:
        for machine in self.machines.values():
            if machine.process is not None:
                machine.process.kill()
                machine.process.join()
        self.cluster.stop()


@contextmanager
def running(seed: int, *, replicated: bool = True) -> Iterator[Run]:
    """Have machines at work in a folder of their own, and end all of it."""
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    folder = tempfile.mkdtemp(prefix="skill-registry-chaos-", dir=memory)
    run = Run(Path(folder), seed, replicated=replicated)
    try:
        run.start()
        yield run
    finally:
        run.stop()
        if os.environ.get("KEEP"):
            shutil.copytree(
                folder,
                os.environ["KEEP"],
                dirs_exist_ok=True,
                symlinks=True,
                ignore=shutil.ignore_patterns("home"),
            )
        shutil.rmtree(folder)


def say(what: str) -> None:
    print(what, flush=True)  # noqa: T201


def main() -> int:
    """Go on for as long as was asked for; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.server.chaos.run", description=__doc__)
    parser.add_argument("seconds", nargs="?", type=float, default=90)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 32))
    chosen = parser.parse_args()
    say(f"seed {chosen.seed}")
    with running(chosen.seed) as run:
        faults = [run.kill, run.suspend, run.stop_immediately, run.stop_fast, run.fail_over]
        if run.cluster.poolers:
            faults.append(run.restart_pooler)
        else:
            say("There is no PgBouncer: all machines come to the server directly.")
        deadline = time.monotonic() + chosen.seconds
        while time.monotonic() < deadline:
            run.random.shuffle(faults)
            for fault in faults:
                fault()
                if run.cluster.replica is None:
                    run.cluster.follow()
        findings = run.end()
        say(summary(run))
        say(findings)
        return 1 if findings else 0


def summary(run: Run) -> str:
    """Say what was done and what happened, a line each."""
    assert run.history is not None
    counts = run.history.counts
    answers = ("done", "refused", "failed", "no")
    lines = [
        f"{what}: " + ", ".join(f"{counts[what, one]} {one}" for one in answers)
        for what in sorted({what for what, _ in counts})
    ]
    return "\n".join([*lines, *(f"{what}: {many}" for what, many in run.counts.items())])


if __name__ == "__main__":
    sys.exit(main())
