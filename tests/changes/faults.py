"""Instruments for breaking a change at every step, found by running it and not by a list.

A step is an effect: a call that changes the disk (mkdir, rename, write…), or the commit of a
transaction. Between two of them nothing happens that outlasts a kill: fsync and the begin of a
transaction leave what was there before them, and are steps for errors and lost connections only.
Where it is about an edit made by hand, a look at what is edited is a step as well: an edit before it
is seen, one after it is not. Of looks elsewhere in a row, which see the same whether the edit was
made before them or after, only the first is one. With ``--every-line`` each execution of a line of the code that changes things is
a step instead, which takes many times as long and finds the same.

At its step a change is killed (SIGKILL, in a forked child), fails, or sees an edit made by hand.
Where there are steps of steps, and for most changes, a picture of the disk stands for a kill: it is
what a kill leaves.
"""

import builtins
import gc
import os
import re
import secrets
import shutil
import signal
import sqlite3
import sys
from binascii import crc32
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from functools import partial
from itertools import count
from pathlib import Path
from types import FrameType
from typing import NamedTuple
from unittest import mock

from sqlalchemy import Engine, event

from registry.api import SkillRegistry
from registry.catalog.resolve import resolve
from registry.changes.create import create_files
from registry.changes.update import update_files
from registry.db.read.listing import Filters
from registry.disk import atomic, beneath
from registry.settings import Settings
from tests.conftest import REPOSITORY

WRITES = frozenset(
    """
    chmod fchmod ftruncate link mkdir pwrite remove rename replace rmdir symlink truncate
    unlink utime write
    """.split()
)
"""What changes the disk, of `os`; `open` does so in some modes, and renameat2 always.

By openat2 nothing is made: what is new has one name in an open folder.
"""
LOOKS = frozenset("fstat listdir lstat read readlink scandir stat".split())
WRITING_MODES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC

DISK, FSYNC, LOOK, BEGIN, COMMIT = "disk", "fsync", "look", "begin", "commit"
EFFECTS = frozenset({DISK, COMMIT})
TRANSACTIONS = frozenset({BEGIN, COMMIT})
EDITABLE = EFFECTS | {LOOK}

every_line = False
"""Whether lines are steps, not effects (``--every-line``)."""

every_step = False
"""Whether all steps are tried, not a part of them that is always the same (``--every-step``)."""

TELLING = frozenset({"commit", "ftruncate", "rename", "renameat2", "replace", "utime"})
"""Steps that are always tried: what is published by them is there or is not, or they are rare."""

SOME = 12
"""Of the other steps each so many-th is tried."""

TRACED = tuple(
    str(REPOSITORY / "registry" / place)
    for place in (
        "changes/",
        "disk/atomic.py",
        "disk/beneath.py",
        "disk/private.py",
        "disk/swap.py",
        "db/write/journal.py",
        "db/interface.py",
        "db/sqlite/writer.py",
        "db/postgres/writer.py",
        "install/",
        "remotes/",
    )
)
TRACED_DISK = tuple(
    str(REPOSITORY / "registry" / "disk" / name)
    for name in ("atomic.py", "beneath.py", "private.py")
)
NEVER = 10**9
DRAWN = r"[0-9a-f]{8,}|\d+"
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
        self.more = base / "more"  # a second source, where a copy of alpha may lie
        self.database = database or base / "registry.db"

    @property
    def alpha(self) -> Path:
        return self.root / "alpha"

    @property
    def state(self) -> Path:
        return self.base / ".skills.skill-registry"

    @property
    def states(self) -> list[Path]:
        return [self.state, self.base / ".more.skill-registry"]

    @property
    def edited(self) -> Path:
        """What is edited by hand: of copies the one that is changed last."""
        return self.more / "alpha" if self.more.is_dir() else self.alpha

    def content(self) -> dict[str, bytes]:
        """What lies in the sources; of the second one with its name before it."""
        more = snapshot(self.more) if self.more.is_dir() else {}
        return snapshot(self.root) | {f"more/{path}": data for path, data in more.items()}

    def open(self) -> SkillRegistry:
        return SkillRegistry.open(self.database, settings=Settings())

    def save(self) -> None:
        shutil.copytree(self.base, self.base.with_name("saved"), symlinks=True)

    def reset(self) -> "World":
        shutil.rmtree(self.base)
        shutil.copytree(self.base.with_name("saved"), self.base, symlinks=True)
        return self

    def put(self, picture: Path) -> "World":
        """Let the disk be as a picture shows it, which is used up by that."""
        shutil.rmtree(self.base)
        picture.rename(self.base)
        return self


def make_world(base: Path, *, before: str = "", database: Path | None = None) -> World:
    """Make a world as it is before a change of this name."""
    world = World(base, database)
    world.root.mkdir(parents=True)
    (world.root / "other").mkdir()
    with world.open() as registry:
        registry.sync(str(world.root))
        source = registry.sources()[0]
        create_files(registry.core, source, "alpha", "alpha", {"SKILL.md": OLD, "a/b.txt": b"b"})
        if before.endswith("_copies"):
            shutil.copytree(world.alpha, world.more / "alpha")
            registry.sync(str(world.more))
            assert registry.resolve("alpha").copies == ("more/alpha",)
        if before == "restore":
            registry.delete("alpha")
        if before == "write_back":
            shutil.rmtree(world.alpha)
            registry.sync(allow_prune=True)
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


def update_copies(registry: SkillRegistry) -> None:
    stored = resolve(registry.core.reader, "alpha")
    update_files(registry.core, stored, {"SKILL.md": NEW}, copies=lambda _: True)


def delete_copies(registry: SkillRegistry) -> None:
    registry.delete("alpha", copies=True)


def delete(registry: SkillRegistry) -> None:
    registry.delete("alpha")


def restore(registry: SkillRegistry) -> None:
    registry.restore("alpha")


def rename(registry: SkillRegistry) -> None:
    registry.rename("alpha", "beta")


def write_back(registry: SkillRegistry) -> None:
    """Restore what was removed by hand."""
    registry.restore("alpha")


CHANGES = {
    f.__name__: f
    for f in (
        *(create, update, update_many, update_copies, delete, delete_copies),
        *(rename, restore, write_back),
    )
}


def run_in_child(work: Callable[[], object]) -> int:
    """Run ``work`` in a forked child; return 0, 1 for an error of ours, or minus the signal."""
    child = os.fork()
    if child == 0:
        gc.disable()  # it would copy all that it shares with its parent by looking at it
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


class Step(NamedTuple):
    """Where a change is broken: the ``number``-th step, which was a call of ``name``."""

    number: int
    name: str


@contextmanager
def at_step(
    number: int | None,
    act: Callable[[], object],
    kinds: frozenset[str] = EFFECTS,
    edited: Path | None = None,
) -> Iterator[list[str]]:
    """Call ``act`` before the ``number``-th step of the block; yields the steps' names so far.

    Without a number it is called before each step. ``edited``: the folder that ``act`` edits.
    """
    passed: list[str] = []

    def step(name: str) -> None:
        passed.append(name)
        if number in {None, len(passed)}:
            act()

    with _lines(step, kinds) if every_line else _effects(step, kinds, edited):
        yield passed


Report = Callable[..., None]


@contextmanager
def _effects(
    step: Callable[[str], None], kinds: frozenset[str], edited: Path | None = None
) -> Iterator[None]:
    """Report each effect just before it happens."""
    acting = elsewhere = False

    def report(name: str, kind: str, path: object = None, folder: int | None = None) -> None:
        nonlocal acting, elsewhere
        if kind in kinds and not acting:  # what is done at a step is no step
            acting = True
            try:
                again = elsewhere
                elsewhere = kind == LOOK and edited is not None and _apart(edited, path, folder)
                if not (again and elsewhere):
                    step(name)
            finally:
                acting = False

    with ExitStack() as stack:
        for where, name, call in _replacements(report):
            stack.enter_context(mock.patch.object(where, name, call))
        for name in (BEGIN, COMMIT):
            listener = partial(_on_transaction, report, name)
            event.listen(Engine, name, listener)
            stack.callback(event.remove, Engine, name, listener)
        yield


def _apart(edited: Path, path: object, folder: int | None) -> bool:
    """Tell whether a look at a path sees nothing of a folder that is edited, nor of its parent."""
    if path is None or not os.path.isdir("/proc/self/fd"):
        return False
    if isinstance(path, int):
        seen = os.readlink(f"/proc/self/fd/{path}")
    else:
        below = "" if folder is None else os.readlink(f"/proc/self/fd/{folder}")
        seen = os.path.abspath(os.path.join(below, os.fsdecode(path)))
    return seen != str(edited.parent) and not f"{seen}/".startswith(f"{edited}/")


def _on_transaction(report: Report, name: str, _connection: object) -> None:
    report(name, name)


def _replacements(report: Report) -> Iterator[tuple[object, str, Callable[..., object]]]:
    """Yield what stands in for the calls with effects: where, its name, the call."""

    def reported(name: str, kind: str, real: Callable[..., object]) -> Callable[..., object]:
        def call(*arguments: object, **more: object) -> object:
            report(name, kind, *arguments[:1], folder=more.get("dir_fd"))
            return real(*arguments, **more)

        return call

    beneath.openat2()  # looked up once for good, and so a step of the first run alone
    for name in WRITES:
        yield os, name, reported(name, DISK, getattr(os, name))
    for name in LOOKS:
        yield os, name, reported(name, LOOK, getattr(os, name))
    yield os, FSYNC, reported(FSYNC, FSYNC, os.fsync)

    real_os_open, real_open = os.open, builtins.open

    def os_open(path: object, flags: int, *more: object, **named: object) -> int:
        kind = DISK if flags & WRITING_MODES else LOOK
        report("os.open", kind, path, folder=named.get("dir_fd"))
        return real_os_open(path, flags, *more, **named)

    def open_(file: object, mode: str = "r", *more: object, **named: object) -> object:
        kind = DISK if set(mode) & set("wax+") else LOOK
        report("open", kind, file)
        opened = real_open(file, mode, *more, **named)
        if kind == DISK:  # there, and still empty: it is written when it is closed
            try:
                report("opened", kind)
            except BaseException:
                opened.close()
                raise
        return opened

    yield os, "open", os_open
    yield builtins, "open", open_
    for module, name, kind in ((atomic, "renameat2", DISK), (beneath, "openat2", LOOK)):
        find = getattr(module, name)
        yield module, name, partial(_found, find, partial(reported, name.strip("_"), kind))


def _found(
    find: Callable[[], Callable[..., object] | None],
    reported: Callable[[Callable[..., object]], Callable[..., object]],
) -> Callable[..., object] | None:
    """Return a system call that is looked up, so that it is reported, if this system has it."""
    function = find()
    return function and reported(function)


@contextmanager
def _lines(step: Callable[[str], None], kinds: frozenset[str]) -> Iterator[None]:
    """Report each line of the code that changes things just before it is executed.

    Of a line in a loop only the first executions count: the later ones meet the same code.
    """
    traced = TRACED if COMMIT in kinds else TRACED_DISK
    seen: Counter[tuple[str, int]] = Counter()

    def trace(frame: FrameType, event: str, _: object) -> object:
        if not frame.f_code.co_filename.startswith(traced):
            return None
        if event == "line":
            place = frame.f_code.co_filename, frame.f_lineno
            seen[place] += 1
            if seen[place] <= REPEATS:
                sys.settrace(None)
                step(f"{os.path.basename(place[0])}:{place[1]}")
                sys.settrace(trace)
        return trace

    sys.settrace(trace)
    try:
        yield
    finally:
        sys.settrace(None)


def kill() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def fail(code: int) -> Callable[[], None]:
    def act() -> None:
        raise OSError(code, os.strerror(code))

    return act


def edit(world: World) -> None:
    """Do what an editor does: write a file and put it in the place of the old one."""
    world.edited.mkdir(exist_ok=True)
    draft = world.edited / ".draft"
    draft.write_bytes(EDIT)
    draft.replace(world.edited / "SKILL.md")


def stride() -> int:
    """Return how far it is from one step that is tried to the next, where they have no names."""
    return 1 if every_step or every_line else 4


def some(steps: list[Step], what: str) -> list[Step]:
    """Return the steps to try: all of them, or those that tell most and a part of the others.

    ``what`` chooses the part.
    """
    if every_step or every_line:
        return steps
    first = crc32(what.encode()) % SOME
    return [one for one in steps if one.number % SOME == first or one.name in TELLING]


def steps_of(
    world: World,
    change: Callable[[SkillRegistry], None],
    kinds: frozenset[str] = EFFECTS,
    edited: Path | None = None,
) -> list[Step]:
    """Return the steps of a change, by doing it once."""
    with world.open() as registry, at_step(NEVER, kill, kinds, edited) as passed:
        change(registry)
    assert len(passed) > 3
    return [Step(number, name) for number, name in enumerate(passed, 1)]


def listen(world: World, change: Callable[[SkillRegistry], None]) -> None:
    """Do a change, and fail where Python's own audit tells of a write that was no step.

    For a forked child: who listens once listens for ever.
    """
    written = frozenset(
        f"os.{name}"
        for name in "chmod link mkdir remove rename rmdir symlink truncate utime".split()
    )
    heard: list[tuple[str, int]] = []

    def hear(name: str, arguments: tuple[object, ...]) -> None:
        writes = name in written
        if name == "open" and isinstance(arguments[2], int):
            writes = bool(arguments[2] & WRITING_MODES)
        if writes:
            heard.append((name, len(passed)))

    with world.open() as registry, at_step(NEVER, kill, frozenset({DISK})) as passed:
        sys.addaudithook(hear)
        change(registry)
        told = len(passed)
    steps = [at for _, at in heard if at <= told]
    assert len(steps) > 5
    assert len(steps) == len(set(steps)), heard  # each at a step of its own
    assert 0 not in steps


def pictures(
    world: World, work: Callable[[World], None], stride: int = 1, first: int = 0
) -> list[tuple[Step, Path]]:
    """Do something; return what a kill at each of its steps would have left: a copy of the disk.

    Or at each ``stride``-th of them, beginning with the ``first``.
    """
    taken = []
    numbers = count()

    def take() -> None:
        if next(numbers) % stride == first % stride:
            picture = world.base.with_name(f"picture-{secrets.token_hex(8)}")
            shutil.copytree(world.base, picture, symlinks=True)
            taken.append((Step(len(passed), passed[-1]), picture))

    with at_step(None, take) as passed:
        work(world)
    return taken


def do(world: World, change: str) -> None:
    with world.open() as registry:
        CHANGES[change](registry)


def recover(world: World) -> None:
    with world.open() as registry:
        registry.finish_changes()


def snapshot(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


def shown(base: Path) -> tuple[set[str], dict[str, bytes], dict[str, int]]:
    """Return what lies in a world that was left: folders, files, and how many rows a table has.

    All but what is drawn or counted anew each time.
    """
    with closing(sqlite3.connect(base / "registry.db")) as connection:
        tables = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
        rows = {
            name: connection.execute(f"SELECT count(*) FROM {name}").fetchone()[0]
            for (name,) in tables.fetchall()
        }
    names = {_steady(path.relative_to(base)) for path in base.rglob("*")}
    files = {
        _steady(Path(name)): re.sub(DRAWN.encode(), b"#", data)
        for name, data in snapshot(base).items()
        if not name.startswith("registry.db")
    }
    return names, files, rows


def _steady(path: Path) -> str:
    return re.sub(DRAWN, "#", str(path))


ALPHA_OLD = {"alpha/SKILL.md": OLD, "alpha/a/b.txt": b"b"}
COPIED = ALPHA_OLD | {f"more/{path}": data for path, data in ALPHA_OLD.items()}
BEFORE = dict.fromkeys(CHANGES, ALPHA_OLD) | {
    "restore": {},
    "write_back": {},
    "update_copies": COPIED,
    "delete_copies": COPIED,
}
AFTER = {
    "create": ALPHA_OLD | {"beta/SKILL.md": NEW.replace(b"alpha", b"beta")},
    "update": ALPHA_OLD | {"alpha/SKILL.md": NEW},
    "update_many": {"alpha/SKILL.md": NEW, "alpha/c.txt": b"c"},
    "update_copies": COPIED | {"alpha/SKILL.md": NEW, "more/alpha/SKILL.md": NEW},
    "delete": {},
    "delete_copies": {},
    "rename": {
        "beta/SKILL.md": OLD.replace(b"name: alpha", b"name: beta"),
        "beta/a/b.txt": b"b",
    },
    "restore": ALPHA_OLD,
    "write_back": ALPHA_OLD,
}


def broken_promises(  # noqa: C901  # one promise after the other
    world: World, change: str, *, whole: bool = True
) -> list[str]:
    """Say what of the promise does not hold; recovery has run. ``whole``: nobody else edited."""
    broken = []
    on_disk = world.content()
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
        if not all(registry.history(skill.ref)[0].complete for skill in registry.list()):
            broken.append("the files of a skill are not stored")
        listed = {skill.name for skill in registry.list(Filters(all=True))}
        stored = {Path(path).parent.name for path in on_disk if path.endswith("SKILL.md")}
        if listed != stored:
            broken.append(f"listed {listed}, on disk {stored}")
        if whole and "alpha" not in stored and change == "write_back":
            if not registry.history("alpha")[0].complete:
                broken.append("what alpha was is lost")
        elif whole and "alpha" not in stored and change != "rename":
            trash = [t.name for t in registry.trash()]
            lost = sum(path.endswith("SKILL.md") for path in BEFORE[change] or ALPHA_OLD)
            if trash != ["alpha"] * lost:
                broken.append(f"alpha is lost: {trash}")
    return broken
