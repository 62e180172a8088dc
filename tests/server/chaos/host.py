"""One machine of the run: it works with its skills until it is told to end, or is killed.

Each operation is written down before it begins and when it was answered, a line of JSON each, in a
file that outlasts a kill. Who is told by SIGUSR1 stands still at its next change or sync, in the
transaction that holds the lock of all writers.
"""

import json
import os
import random
import signal
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from registry import Settings, SkillRegistry
from registry.changes import finish
from registry.db.postgres import session
from registry.errors import (
    ChangePending,
    DatabaseProblem,
    RegistryError,
    SkillNotFound,
    Unavailable,
)
from registry.sync import apply
from tests.server.chaos.skills import BOTH, SOURCES, State, document_mark, hash_of, state_of

NAMES: Final = 5
"""Of skills in each source."""

IDLE: Final = "1s"
"""How long a transaction of a machine that stands still goes on."""

OPERATIONS: Final = """
create create create update update update update edit edit delete delete restore
together together read listing search pull look
""".split()
"""What a machine does, as often as it stands here."""

UNKNOWN: Final = (ChangePending, DatabaseProblem, Unavailable)
"""Errors that leave open what became of a change; after any other there is none."""


class Host:
    """The machine ``name`` in ``folder``; all is decided by ``seed`` and by what it then sees.

    ``thinks``: at most so many seconds between its operations, so that they are not all it does.
    """

    def __init__(
        self, name: str, folder: str, url: str, seed: str, others: list[str], thinks: float
    ) -> None:
        self.name, self.folder, self.url, self.others = name, Path(folder), url, others
        self.thinks = thinks
        self.random = random.Random(seed)
        self.generation = seed.rpartition(":")[2]
        self.number = 0
        self.ending = False
        self.armed = False
        self.journal = os.open(self.folder / "journal", os.O_WRONLY | os.O_APPEND | os.O_CREAT)

    def run(self) -> None:
        """Come up, work until it is told to end, and look at everything once more."""
        session.WRITING["idle_in_transaction_session_timeout"] = IDLE
        self._stand_still_when_told()
        signal.signal(signal.SIGTERM, self._end)
        with self._insist(self._open) as registry:
            if self.generation == "1":
                self.plant(registry)
            self._insist(lambda: self.look(registry, "up"))
            while not self.ending:
                getattr(self, self.random.choice(OPERATIONS))(registry)
                time.sleep(self.random.uniform(0, self.thinks))
            self._insist(lambda: self.look(registry, "last"))

    # What is done

    def create(self, registry: SkillRegistry) -> None:
        if (name := self._some(there=False)) is not None:
            mark = self._mark(name)
            given = {**_given(mark), "source": self._source(name)}
            self._change("create", name, (mark, mark), lambda: registry.create(name, **given))

    def update(self, registry: SkillRegistry) -> None:
        if (name := self._some(there=True)) is not None:
            mark = self._mark(name)
            given = _given(mark)
            self._change("update", name, (mark, mark), lambda: registry.update(name, **given))

    def plant(self, registry: SkillRegistry) -> None:
        """Make the skill that lies in both sources, by hand."""
        name = self._name(BOTH, 0)
        mark = self._mark(name)
        number = self._begin("create", skill=name, to=(mark, mark))
        for place in self._places(name):
            place.mkdir()
            text = f"---\nname: {name}\ndescription: Holds {mark}.\n---\n\n# {mark}\n"
            (place / "SKILL.md").write_text(text)
            (place / "data.txt").write_text(mark)
        self._ask(number, lambda: registry.sync() and {"hash": hash_of(self._place(name))})

    def together(self, registry: SkillRegistry) -> None:
        """Update a skill and its copy, both or neither."""
        name = self._name(BOTH, 0)
        mark = self._mark(name)
        given = _given(mark)
        change = lambda: registry.update(name, **given, copies=True)  # noqa: E731
        self._change("update", name, (mark, mark), change)

    def delete(self, registry: SkillRegistry) -> None:
        if (name := self._some(there=True)) is not None:
            self._change("delete", name, None, lambda: registry.delete(name))

    def restore(self, registry: SkillRegistry) -> None:
        with suppress(RegistryError):
            for one in registry.trash():
                name = os.path.basename(one.folder)
                if state_of(self._place(name)) is None:
                    was = state_of(Path(one.path))
                    self._change("restore", name, was, lambda name=name: registry.restore(name))
                    return

    def edit(self, registry: SkillRegistry) -> None:
        """Edit a SKILL.md by hand, and sync."""
        name = self._some(there=True)
        if name is None:
            return
        place = self._place(name)
        was, mark = state_of(place), self._mark(name)
        assert was is not None
        draft = place.parent.parent / "draft"
        draft.write_text((place / "SKILL.md").read_text().replace(was[0], mark))
        number = self._begin("edit", skill=name, to=(mark, was[1]))
        draft.replace(place / "SKILL.md")
        self._say(n=number, written=True)

        def sync() -> object:
            registry.sync(self._source(name))
            return {"hash": hash_of(place)}

        self._ask(number, sync)

    def read(self, registry: SkillRegistry) -> None:
        name = self._any()

        def ask() -> object:
            try:
                return document_mark(registry.read(name))
            except SkillNotFound:
                return None

        self._ask(self._begin("read", skill=name), ask)

    def listing(self, registry: SkillRegistry) -> None:
        self._ask(
            self._begin("list"),
            lambda: {one.name: document_mark(one.description) for one in registry.list()},
        )

    def search(self, registry: SkillRegistry) -> None:
        """Search, and let a tool do so, whose use is counted."""

        def ask() -> object:
            registry.toolset("native").call("search_skills", {"query": "holds"})
            return {one.name: document_mark(one.description) for one in registry.search("holds")}

        self._ask(self._begin("search"), ask)

    def pull(self, registry: SkillRegistry) -> None:
        """Copy a skill of any machine into a folder of this one."""
        name, to = self._any(), self.folder / "pulled"

        def ask() -> object:
            try:
                (one,) = registry.pull([registry.resolve(name)], str(to))
            except SkillNotFound:
                return None
            return {"state": one.state, "holds": state_of(to / name)}

        self._ask(self._begin("pull", skill=name), ask)

    def look(self, registry: SkillRegistry, why: str = "look") -> bool:
        """Sync, and write down what there is: on the disk, and where the database differs."""
        number = self._begin(why)

        def ask() -> object:
            if why == "last":
                registry.finish_changes()  # as the next open does
            registry.sync()
            report = registry.sync(dry_run=True, verify=True)
            names = [*self._names(), self._name(BOTH, 0)]
            listed = {one.name: document_mark(one.description) for one in registry.list()}
            return {
                "disk": {name: self._state(name) for name in names},
                "hashes": {name: hash_of(self._place(name)) for name in names},
                "listed": listed,
                "differs": [*report.added, *report.updated, *report.removed, *report.moved],
            }

        return self._ask(number, ask)

    # How it is done and told

    def _change(self, what: str, name: str, to: State, change: Callable[[], object]) -> None:
        def ask() -> object:
            change()
            return {"hash": hash_of(self._place(name))}

        self._ask(self._begin(what, skill=name, to=to), ask)

    def _ask(self, number: int, ask: Callable[[], object]) -> bool:
        """Write down what is answered; tell whether it was what was asked for."""
        try:
            answer = ask()
        except UNKNOWN as error:
            self._say(n=number, failed=type(error).__name__, why=str(error))
            return False
        except RegistryError as error:
            self._say(n=number, refused=type(error).__name__, why=str(error))
            return False
        except Exception as error:  # noqa: BLE001  # whatever it is, nobody may see it
            self._say(n=number, broke=repr(error))
            return False
        self._say(n=number, done=answer)
        return True

    def _begin(self, what: str, **facts: object) -> int:
        self.number += 1
        self._say(n=self.number, op=what, **facts)
        return self.number

    def _say(self, **facts: object) -> None:
        line = {"at": time.monotonic(), "generation": self.generation, **facts}
        os.write(self.journal, json.dumps(line).encode() + b"\n")

    def _open(self) -> SkillRegistry | None:
        try:
            return SkillRegistry.open(self.url, settings=Settings(host=self.name))
        except UNKNOWN:
            return None

    def _insist(self, ask: Callable[[], Any]) -> Any:
        """Ask until there is an answer: a server comes back."""
        while not (answer := ask()):
            time.sleep(0.05)
        return answer

    def _mark(self, name: str) -> str:
        return f"mark-{name}.{self.generation}.{self.number + 1}"

    def _name(self, source: str, slot: int, host: str | None = None) -> str:
        return f"{host or self.name}-{source}-{slot}"

    def _some(self, *, there: bool) -> str | None:
        """Return a skill of this machine that is there, or is not; None: there is none such."""
        fit = [name for name in self._names() if (state_of(self._place(name)) is not None) == there]
        return self.random.choice(fit) if fit else None

    def _any(self) -> str:
        source, slot = self.random.choice(SOURCES), self.random.randrange(NAMES)
        return self._name(source, slot, self.random.choice([self.name, *self.others]))

    def _names(self) -> list[str]:
        return [self._name(source, slot) for source in SOURCES for slot in range(NAMES)]

    def _places(self, name: str) -> list[Path]:
        source = name.split("-")[1]
        return [self.folder / one / name for one in (SOURCES if source == BOTH else [source])]

    def _place(self, name: str) -> Path:
        return self._places(name)[0]

    def _state(self, name: str) -> State:
        """Return what is in a skill; of one whose copies differ what nobody ever asked for."""
        found = {state_of(place) for place in self._places(name)}
        return found.pop() if len(found) == 1 else (f"one of {found}", "")

    def _source(self, name: str) -> str:
        return name.rpartition("-")[0]

    def _end(self, *_: object) -> None:
        self.ending = True

    def _stand_still_when_told(self) -> None:
        def arm(*_: object) -> None:
            self.armed = True

        signal.signal(signal.SIGUSR1, arm)
        # What a change, and what a sync does while it holds the lock of all writers.
        finish.replace_version = self._standing(finish.replace_version)
        apply.publish = self._standing(apply.publish)

    def _standing(self, real: Any) -> Any:
        def work(*given: Any) -> Any:
            if self.armed:
                self.armed = False
                os.kill(os.getpid(), signal.SIGSTOP)
            return real(*given)

        return work


def _given(mark: str) -> dict[str, Any]:
    files = {"data.txt": mark.encode()}
    return {"description": f"Holds {mark}.", "body": f"# {mark}\n", "files": files}


def set_up(name: str, folder: Path, url: str) -> None:
    """Make the folders of a machine, and register them; called in a process of its own home."""
    with SkillRegistry.open(url, settings=Settings(host=name)) as registry:
        for source in SOURCES:
            (folder / source).mkdir(parents=True)
            registry.sync(str(folder / source), name=f"{name}-{source}")


def main(arguments: list[str]) -> None:
    """Be a machine, as a list of JSON says, until its end."""
    given = json.loads(arguments[0])
    if not (Path(given["folder"]) / "a").exists():
        set_up(given["name"], Path(given["folder"]), given["url"])
    try:
        Host(**given).run()
    except Exception:  # noqa: BLE001  # told by its status
        traceback.print_exc()
        raise SystemExit(1) from None
    raise SystemExit(0)
