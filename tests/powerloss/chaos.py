"""Cut the power at every call of every operation: ``python -m tests.powerloss.chaos [OPERATION…]``.

For each operation: how many calls were recorded, how many states of the disk were tried, and how
many of them broke a promise, with the smallest of each kind. Ends with 1 where anything failed.
With ``--unneeded`` also the syncs that no state needs, since others or the journal cover them.
"""

import argparse
import os
import re
import shutil
import sys
import tempfile
import traceback
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from typing import Final

from tests.powerloss.operations import OPERATIONS
from tests.powerloss.run import Failure, Run
from tests.powerloss.states import all_states, some_states
from tests.powerloss.tracer import CannotTrace

MEMORY: Final = "/dev/shm"
SHOWN: Final = 8

LONG: Final = 250
SAMPLE: Final = 2000
"""Of a run of more calls only so many states are tried: there are as many as its square."""


@contextmanager
def folder_for_runs() -> Iterator[str]:
    """Make a folder, in memory where the system has such a place, and remove it at the end."""
    memory = MEMORY if os.access(MEMORY, os.W_OK) else None
    made = tempfile.mkdtemp(prefix="skill-registry-power-", dir=memory)
    try:
        yield made
    finally:
        shutil.rmtree(made)


def try_all(name: str, by_chance: int, seed: int, *, unneeded: bool) -> tuple[str, bool]:
    """Try one operation; return what is to be said of it, and whether everything held."""
    with folder_for_runs() as folder:
        run = Run(OPERATIONS[name], f"{folder}/world")
        tried = 0
        times: Counter[tuple[bool, str]] = Counter()
        smallest: dict[tuple[bool, str], Failure] = {}
        states = all_states(run.history, by_chance=by_chance, seed=seed)
        if len(run.history.calls) > LONG:
            states = some_states(run.history, SAMPLE, seed)
        for failure in run.failures(states):
            tried += 1
            if failure is not None:
                said = re.sub(r"[0-9a-f]{8,}", "", " ".join(failure.broken))
                kind = failure.state.ordered, said
                times[kind] += 1
                if kind not in smallest or failure.state.lost < smallest[kind].state.lost:
                    smallest[kind] = failure
        calls, failed = len(run.history.calls), times.total()
        lines = [f"{name}: {calls} calls, {tried} states, {failed} failures"]
        kinds = sorted(smallest, key=lambda kind: smallest[kind].state.lost)[:SHOWN]
        lines += [f"  {times[kind]} times, {smallest[kind]}" for kind in kinds]
        if unneeded:
            lines += [f"  no state needs the sync of {place}" for place in _unneeded(run)]
    return "\n".join(lines), not smallest


def try_safely(name: str, by_chance: int, seed: int, *, unneeded: bool) -> tuple[str, bool]:
    """Do the same, and say what went wrong in words, which always come through to the parent."""
    try:
        return try_all(name, by_chance, seed, unneeded=unneeded)
    except CannotTrace as error:
        return f"{name}: can't be recorded here: {error}", False
    except Exception:  # noqa: BLE001  # the others go on
        return f"{name}: {traceback.format_exc()}", False


def _unneeded(run: Run) -> list[str]:
    return [
        f"{run.place(sync.at)}, call {sync.at}"
        for sync in run.history.syncs
        if run.failure_without({sync.at}) is None
    ]


def main() -> int:
    """Try what was asked for; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.powerloss.chaos", description=__doc__)
    parser.add_argument("operations", nargs="*", metavar="OPERATION", help="all by default")
    parser.add_argument("--chance", type=int, default=5, help="random states at each call")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--unneeded", action="store_true", help="say which syncs no state needs")
    chosen = parser.parse_args()
    held = True
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        tasks = [
            pool.submit(try_safely, name, chosen.chance, chosen.seed, unneeded=chosen.unneeded)
            for name in chosen.operations or OPERATIONS
        ]
        for task in tasks:
            said, all_held = task.result()
            held &= all_held
            print(said, flush=True)  # noqa: T201
    return 0 if held else 1


if __name__ == "__main__":
    sys.exit(main())
