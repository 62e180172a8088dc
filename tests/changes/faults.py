"""Instruments for breaking a change at every step, found by tracing and not by a list.

A step is the execution of one line of the code that changes things. A forked child runs the change
and, when its step comes, is killed (SIGKILL), fails, or sees an edit made by hand.
"""

import os
import shutil
import signal
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import FrameType

from registry.api import SkillRegistry
from registry.catalog.resolve import resolve
from registry.changes.create import create_files
from registry.changes.update import update_files
from registry.db.queries.filters import Filters
from registry.settings import Settings
from tests.conftest import REPOSITORY

TRACED = tuple(
    str(REPOSITORY / "registry" / place)
    for place in (
        "changes/",
        "store/journal.py",
        "store/transactions.py",
        "store/sqlite.py",
        "store/postgres.py",
    )
)
DISK = (str(REPOSITORY / "registry" / "changes" / "files.py"),)
NEVER = 10**9
REPEATS = 2

OLD = b"---\nname: alpha\ndescription: Old.\n---\n\nOld body.\n"
NEW = b"---\nname: alpha\ndescription: New.\n---\n\nNew body.\n"
EDIT = b"---\nname: alpha\ndescription: By hand.\n---\n\nEdited by hand.\n"


class World:
    """A source with one skill, ``alpha``, and its database, to be set up anew for each experiment.

    It keeps its place, since the database knows its source by path.
    """

    def __init__(self, base: Path, database: Path | None = None) -> None:
        self.base = base
        self.root = base / "skills"
        self.database = database or base / "registry.db"

    @property
    def alpha(self) -> Path:
        return self.root / "alpha"

    @property
    def state(self) -> Path:
        return self.base / ".skills.skill-registry"

    def open(self) -> SkillRegistry:
        return SkillRegistry.open(self.database, settings=Settings())

    def save(self, name: str = "saved") -> None:
        shutil.copytree(self.base, self.base.with_name(name), symlinks=True, dirs_exist_ok=False)

    def reset(self, name: str = "saved") -> "World":
        shutil.rmtree(self.base)
        shutil.copytree(self.base.with_name(name), self.base, symlinks=True)
        return self

    def forget(self, name: str) -> None:
        shutil.rmtree(self.base.with_name(name))


def make_world(base: Path, *, deleted: bool = False, database: Path | None = None) -> World:
    world = World(base, database)
    world.root.mkdir(parents=True)
    (world.root / "other").mkdir()
    with world.open() as registry:
        registry.sync(str(world.root))
        source = registry.sources()[0]
        create_files(registry.core, source, "alpha", "alpha", {"SKILL.md": OLD, "a/b.txt": b"b"})
        if deleted:
            registry.delete("alpha")
    world.save()
    return world


def create(registry: SkillRegistry) -> None:
    source = registry.sources()[0]
    create_files(
        registry.core, source, "beta", "beta", {"SKILL.md": NEW.replace(b"alpha", b"beta")}
    )


def update(registry: SkillRegistry) -> None:
    update_files(registry.core, resolve(registry.core.reader, "alpha"), {"SKILL.md": NEW})


def update_many(registry: SkillRegistry) -> None:
    update_files(
        registry.core,
        resolve(registry.core.reader, "alpha"),
        {"SKILL.md": NEW, "a/b.txt": None, "c.txt": b"c"},
    )


def delete(registry: SkillRegistry) -> None:
    registry.delete("alpha")


def restore(registry: SkillRegistry) -> None:
    registry.restore("alpha")


CHANGES = {f.__name__: f for f in (create, update, update_many, delete, restore)}


def run_in_child(work: Callable[[], object]) -> int:
    """Run ``work`` in a forked child; return 0, 1 for an error of ours, or minus the signal."""
    child = os.fork()
    if child == 0:
        code = 3
        try:
            work()
            code = 0
        except Exception as error:  # noqa: BLE001  # told apart by the parent
            from registry.errors import RegistryError

            code = 1 if isinstance(error, RegistryError) else 3
            if code == 3:
                os.write(2, f"unexpected: {error!r}\n".encode())
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def at_step(number: int, act: Callable[[], object], traced: tuple[str, ...] = TRACED) -> list[int]:
    """Call ``act`` before the ``number``-th step from now; the list's item counts the steps.

    Of a line in a loop only the first executions are steps: the later ones meet the same code.
    """
    count = [0]
    seen: Counter[tuple[str, int]] = Counter()

    def trace(frame: FrameType, event: str, _: object) -> object:
        if not frame.f_code.co_filename.startswith(traced):
            return None
        if event == "line":
            place = frame.f_code.co_filename, frame.f_lineno
            seen[place] += 1
            if seen[place] <= REPEATS:
                count[0] += 1
                if count[0] == number:
                    sys.settrace(None)
                    act()
        return trace

    sys.settrace(trace)
    return count


def kill() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def fail(code: int) -> Callable[[], None]:
    def act() -> None:
        raise OSError(code, os.strerror(code))

    return act


def edit(world: World) -> None:
    """Do what an editor does: write a file and put it in the place of the old one."""
    world.alpha.mkdir(exist_ok=True)
    draft = world.alpha / ".draft"
    draft.write_bytes(EDIT)
    draft.replace(world.alpha / "SKILL.md")


def steps_of(world: World, change: Callable[[SkillRegistry], None], traced=TRACED) -> int:
    """Count the steps of a change by doing it once."""
    with world.open() as registry:
        count = at_step(NEVER, kill, traced)
        try:
            change(registry)
        finally:
            sys.settrace(None)
    return count[0]


def recover(world: World) -> None:
    with world.open() as registry:
        registry.finish_changes()


def snapshot(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


ALPHA_OLD = {"alpha/SKILL.md": OLD, "alpha/a/b.txt": b"b"}
BEFORE = dict.fromkeys(CHANGES, ALPHA_OLD) | {"restore": {}}
AFTER = {
    "create": ALPHA_OLD | {"beta/SKILL.md": NEW.replace(b"alpha", b"beta")},
    "update": ALPHA_OLD | {"alpha/SKILL.md": NEW},
    "update_many": {"alpha/SKILL.md": NEW, "alpha/c.txt": b"c"},
    "delete": {},
    "restore": ALPHA_OLD,
}


def broken_promises(world: World, change: str, *, whole: bool = True) -> list[str]:
    """Say what of the promise does not hold; recovery has run. ``whole``: nobody else edited."""
    broken = []
    on_disk = snapshot(world.root)
    if whole and on_disk not in (BEFORE[change], AFTER[change]):
        broken.append(f"half a change is visible: {sorted(on_disk)}")
    with world.open() as registry:
        if registry.check_database():
            broken.append("the database is not sound")
        if registry.core.reader.rows("SELECT id FROM journal"):
            broken.append("the journal is not empty")
        difference = registry.sync(dry_run=True, verify=True)
        if difference.added or difference.updated or difference.moved or difference.removed:
            broken.append(f"the database does not equal the disk: {difference}")
        listed = {skill.name for skill in registry.list(Filters(all=True))}
        stored = {path.parent.name for path in world.root.rglob("SKILL.md")}
        if listed != stored:
            broken.append(f"listed {listed}, on disk {stored}")
        if whole and "alpha" not in stored:
            trash = [t.name for t in registry.trash()]
            if trash != ["alpha"]:
                broken.append(f"alpha is lost: {trash}")
    return broken
