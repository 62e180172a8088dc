"""Three machines and one server, whatever happens: ``python -m tests.server.chaos.run [SECONDS]``.

Machines are killed and stand still amid changes, the server is stopped and started, its poolers
die, and the replica takes over. What the machines were told is then held against what is there
(`history`). Ends with 1 where a change was lost, or something is there that nobody asked for.
"""

import argparse
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
from pathlib import Path
from typing import Final

from tests.server.chaos.cluster import WAITING, WRITING, Cluster, Member
from tests.server.chaos.follower import Follower
from tests.server.chaos.history import CHANGES, History
from tests.server.chaos.machines import Machine, until

WAYS: Final = {"one": "direct", "two": "session", "three": "transaction"}
"""How each machine comes to the server."""

KILL, SUSPEND = "machine killed", "machine suspended"
STOP, STOP_FAST = "server stopped at once", "server stopped fast"
POOLERS, REPLICA, FAIL_OVER = "poolers killed", "replica stopped", "fail-over"
PENDING, OPEN = "of a pending change", "in an open transaction"
BEHIND = "before a commit that waits was confirmed"
MATTERS: Final = {
    KILL: PENDING,
    REPLICA: BEHIND,
    **dict.fromkeys((SUSPEND, STOP, STOP_FAST, POOLERS, FAIL_OVER), OPEN),
}
"""What happens, and where that matters."""

FAULTS: Final = 0.55
"""So much of the time things happen; a busy machine needs the rest for the check and the control."""


class Run:
    """The machines and their server; ``counts``: what happened, and how often where it matters.

    ``interesting``: each time where it matters; else at any moment, half of the time.
    """

    def __init__(self, folder: Path, seed: int, cluster: Cluster, thinks: float) -> None:
        self.random = random.Random(seed)
        self.interesting = True
        self.counts: Counter[str] = Counter()
        self.cluster = cluster
        self.follower: Follower | None = None
        self.machines = [
            Machine(
                name,
                folder / name,
                self.cluster.address(way),
                seed,
                [other for other in WAYS if other != name],
                thinks,
            )
            for name, way in WAYS.items()
        ]
        self.faults: list[Callable[[], None]] = [
            *(self.kill, self.suspend, self.stop_at_once, self.stop_fast),
            *([self.kill_poolers] if self.cluster.poolers else []),
            *([self.stop_replica, self.fail_over] if cluster.replica else []),
        ]

    def start(self) -> None:
        for machine in self.machines:
            machine.start()
        for machine in self.machines:
            until(machine.is_up)
        self.follower = Follower(self.cluster)

    def go_on_until(self, deadline: float) -> None:
        """Let everything happen where it matters, and then anything at any moment."""
        for fault in self.faults:
            self._let(fault)
        self.interesting = False
        while time.monotonic() < deadline:
            self._let(self.random.choice(self.faults))

    def _let(self, fault: Callable[[], None]) -> None:
        fault()
        if self.cluster.replica is None:
            self.cluster.follow()

    # What happens

    def kill(self) -> None:
        """Kill a machine when it has begun a change; it ends that when it is started again."""
        machine = self._any()
        if self._is_to_matter():
            machine.stop_where(machine.unfinished)
        self._kill(machine)
        if not self._is_to_matter():  # again, in the middle of its repair or of anything else
            time.sleep(self.random.uniform(0, 0.5))
            self._kill(machine)
        until(machine.is_up)

    def _kill(self, machine: Machine) -> None:
        machine.kill()
        self._happened(KILL, **{PENDING: bool(machine.unfinished())})
        machine.start()

    def suspend(self) -> None:
        """Let a machine stand still in its transaction; the others go on, and so does it later."""
        with self._standing_still(SUSPEND) as machine:
            since = time.monotonic()
            for other in self.machines:
                until(lambda other=other: other is machine or other.has_changed(since))
        self._all_go_on()

    def stop_at_once(self) -> None:
        self._stop(signal.SIGQUIT, STOP)

    def stop_fast(self) -> None:
        self._stop(signal.SIGINT, STOP_FAST)

    def kill_poolers(self) -> None:
        """Kill the poolers, and with them all connections of who comes by them."""
        with self._amid(POOLERS):
            for pooler in self.cluster.poolers.values():
                pooler.kill()
            for pooler in self.cluster.poolers.values():
                pooler.start()
        self._all_go_on()

    def stop_replica(self) -> None:
        """Stop the replica until a commit waits for it; whoever waits may lose the server, too."""
        self._fall_behind()
        self._happened(REPLICA, **{BEHIND: True})
        if self._is_to_matter():
            self.cluster.primary.end(signal.SIGQUIT)
            self.cluster.primary.start()
        self._replica.start()
        self._all_go_on()

    def fail_over(self) -> None:
        """Kill the server, and let its replica take over."""
        is_behind = not self.interesting and self.random.random() < 0.5
        if is_behind:
            self._fall_behind()
            self._happened(FAIL_OVER, **{BEHIND: True})
            self.cluster.fail_over()
        else:
            with self._amid(FAIL_OVER):
                self.cluster.fail_over()
        self._all_go_on()

    def lag_and_fail_over(self) -> None:
        """Let a replica take over that has not got what everybody was told since."""
        self._replica.end(signal.SIGINT)
        self._all_go_on()
        self.cluster.fail_over()
        self._all_go_on()

    def _fall_behind(self) -> None:
        self._replica.end(signal.SIGINT)
        until(lambda: self.cluster.ask(WAITING), 0.05)

    @property
    def _replica(self) -> Member:
        assert self.cluster.replica is not None
        return self.cluster.replica

    def _stop(self, how: signal.Signals, called: str) -> None:
        with self._amid(called):
            self.cluster.primary.end(how)
            if not self.interesting and self.random.random() < 0.5:
                self._kill(self._any())
            self.cluster.primary.start()
        self._all_go_on()

    @contextmanager
    def _amid(self, called: str) -> Iterator[None]:
        """Let something happen amid a transaction, or at any moment."""
        if self._is_to_matter():
            with self._standing_still(called):
                yield
        else:
            self._happened(called)
            yield

    @contextmanager
    def _standing_still(self, called: str) -> Iterator[Machine]:
        """Let a machine stand still in the middle of a transaction, which is seen to be open."""
        machine = self._any()
        generation, called_so = machine.generation, (f"skill-registry {machine.pid}",)
        while True:
            machine.signal(signal.SIGUSR1)
            until(machine.is_stopped, 0.002)
            if called_so in self.cluster.ask(WRITING):
                break
            machine.signal(signal.SIGCONT)  # on a busy machine the server was faster
        self._happened(called, **{OPEN: True})
        yield machine
        if machine.generation == generation:  # else it was killed
            machine.signal(signal.SIGCONT)

    def _happened(self, what: str, **where: bool) -> None:
        self.counts[what] += 1
        for one, is_so in where.items():
            self.counts[f"{what}, {one}"] += is_so

    def _is_to_matter(self) -> bool:
        return self.interesting or self.random.random() < 0.5

    def _any(self) -> Machine:
        return self.random.choice(self.machines)

    def _all_go_on(self) -> None:
        """Wait until each machine has changed something."""
        since = time.monotonic()
        for machine in self.machines:
            until(lambda machine=machine: machine.has_changed(since))

    # What came of it

    def end(self) -> History:
        """Let the machines end, and hold what they were told against what is there."""
        for machine in self.machines:
            machine.signal(signal.SIGTERM)
        for machine in self.machines:
            machine.end()
        history = History({one.name: one.folder for one in self.machines})
        history.check()
        history.check_left()
        history.check_stored(self.cluster.url_now, self.cluster.ask)
        assert self.follower is not None
        history.findings.other += self.follower.end()
        return history

    def stop(self) -> None:
        if self.follower is not None:
            self.follower.stop()
        for machine in self.machines:
            machine.kill()
        self.cluster.stop()


@contextmanager
def running(
    seed: int,
    *,
    replicated: bool = True,
    confirming: bool = True,
    thinks: float = 0.04,
) -> Iterator[Run]:
    """Have machines at work in a folder of their own, and end all of it."""
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    folder = tempfile.mkdtemp(prefix="skill-registry-chaos-", dir=memory)
    cluster = Cluster(replicated=replicated, confirming=confirming)
    run = Run(Path(folder), seed, cluster, thinks)
    try:
        run.start()
        yield run
    finally:
        run.stop()
        shutil.rmtree(folder)


def control(seed: int) -> History:
    """Let a replica take over that was not waited for: what was acknowledged is lost, and found."""
    with running(seed, confirming=False, thinks=0.02) as run:
        run.lag_and_fail_over()
        return run.end()


def main() -> int:
    """Go on for as long as was asked for; return the exit code."""
    started = time.monotonic()
    parser = argparse.ArgumentParser(prog="python -m tests.server.chaos.run", description=__doc__)
    parser.add_argument("seconds", nargs="?", type=float, default=120, help="about that, in all")
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 32))
    chosen = parser.parse_args()
    say(f"servers, --seed {chosen.seed}:")
    with running(chosen.seed, thinks=0.02) as run:
        if not run.cluster.poolers:
            say("  there is no PgBouncer: all machines come to the server directly")
        run.go_on_until(started + FAULTS * chosen.seconds)
        history = run.end()
        say(summary(run, history))
    called = {fault for fault in MATTERS if fault != POOLERS or run.cluster.poolers}
    never = [f"{one}, {MATTERS[one]}" for one in called if not run.counts[f"{one}, {MATTERS[one]}"]]
    if never:
        say(f"  never happened: {never}")
    found = control(chosen.seed).findings
    say(f"  as a control, with a replica that confirms nothing: {len(found.lost)} lost")
    missed = [one for one in found.other if "follower" in one]
    say(f"  a follower of it has missed {len(missed)} changes")
    return 1 if history.findings or never or missed or not found.lost else 0


def summary(run: Run, history: History) -> str:
    """Say what was done and what happened, and what of it did not hold."""
    answered = Counter[str]()
    for (what, answer), many in history.counts.items():
        answered[("changes" if what in CHANGES else "reads and syncs") + f" {answer}"] += many
    lines = [f"  {what}: {many}" for what, many in sorted({**run.counts, **answered}.items())]
    assert run.follower is not None
    lines.append(f"  changes seen by a follower: {run.follower.changes}")
    return "\n".join([*lines, f"  {history.findings}"])


def say(what: str) -> None:
    print(what, flush=True)  # noqa: T201


if __name__ == "__main__":
    sys.exit(main())
