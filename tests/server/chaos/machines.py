"""The machines of the run: processes that are started, killed, and made to stand still."""

import json
import os
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from typing import Final

from tests.program import start
from tests.server.chaos.history import CHANGES
from tests.server.chaos.host import main as be_a_machine

PATIENCE: Final = 60
"""Seconds after which what does not happen is a defect."""


def until(happened: Callable[[], object], pause: float = 0.01) -> None:
    """Wait until something has happened, which it must."""
    deadline = time.monotonic() + PATIENCE
    while not happened():
        assert time.monotonic() < deadline, f"in vain for {PATIENCE} seconds"
        time.sleep(pause)


@dataclass
class Machine:
    """One that is started as often as it is killed; ``thinks``: seconds between its operations."""

    name: str
    folder: Path
    url: str
    seed: int
    others: list[str]
    thinks: float
    generation: int = 0
    process: ForkServerProcess | None = None
    _read: int = 0
    _doing: str = ""
    _began: float = 0
    _changed: float = 0
    _came_up: int = 0

    @property
    def pid(self) -> int:
        assert self.process is not None
        assert self.process.pid is not None
        return self.process.pid

    @property
    def said(self) -> str:
        """How it ended, what it did last and what it printed."""
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
            "others": self.others,
            "thinks": self.thinks,
        }
        home = self.folder / "home"
        home.mkdir(parents=True, exist_ok=True)
        own = ("XDG_", "SKILL_REGISTRY_")
        keep = {key: value for key, value in os.environ.items() if not key.startswith(own)}
        with open(os.devnull, "r+b") as nothing, (self.folder / "errors").open("ab") as errors:
            self.process = start(
                [json.dumps(given)],
                environ={**keep, "HOME": str(home)},
                streams=(nothing.fileno(), nothing.fileno(), errors.fileno()),
                main=be_a_machine,
            )

    def kill(self) -> None:
        """Let it die here and now, if it lives."""
        if self.process is not None:
            self.process.kill()
            self.process.join()

    def end(self) -> None:
        """Let it come to its end, which is that all of it was seen once more."""
        assert self.process is not None
        self.process.join(PATIENCE)
        assert self.process.exitcode == 0, self.said

    def signal(self, number: signal.Signals) -> None:
        os.kill(self.pid, number)

    def is_stopped(self) -> bool:
        self._check_alive()
        return Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()[0] == "T"

    def stop_where(self, seen: Callable[[], object]) -> None:
        """Let it stand still where something is seen, and is still so then."""
        while True:
            until(seen, 0.0005)
            self.signal(signal.SIGSTOP)
            until(self.is_stopped, 0.0005)
            if seen():
                return
            self.signal(signal.SIGCONT)

    def unfinished(self) -> list[str]:
        """Return the changes that began and are not over, as the disk has them."""
        return [str(one) for one in self.folder.glob(".*.skill-registry/ops/*/record")]

    def has_changed(self, since: float) -> bool:
        """Tell whether it was told of a success, of a change that began since then."""
        self._follow()
        return self._changed > since

    def is_up(self) -> bool:
        """Tell whether it has looked at all that it has, since it was started last."""
        self._follow()
        return self._came_up == self.generation

    def _follow(self) -> None:
        """Read on in its journal."""
        self._check_alive()
        journal = self.folder / "journal"
        with journal.open("rb") if journal.exists() else open(os.devnull, "rb") as said:
            said.seek(self._read)
            for line in said:
                if not line.endswith(b"\n"):
                    break
                self._read += len(line)
                facts = json.loads(line)
                if "op" in facts:
                    self._doing, self._began = facts["op"], facts["at"]
                elif "done" in facts and self._doing in CHANGES:
                    self._changed = self._began
                elif "done" in facts and self._doing == "up":
                    self._came_up = int(facts["generation"])

    def _check_alive(self) -> None:
        assert self.process is not None
        assert self.process.exitcode is None, self.said
