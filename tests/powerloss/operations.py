"""What is recorded: each operation that changes disk and database, in a small world of its own."""

import os
import shutil
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from unittest import mock

from registry.api import SkillRegistry
from registry.db.sqlite import writer
from registry.db.sqlite.writer import ensure_current  # the real one, before tests replace it
from registry.install.pull import pull, remove
from registry.install.targets import InstallOptions, InstallTarget
from registry.publish import proposals, publishing
from registry.publish.packages import package
from registry.publish.proposals import Person
from registry.settings import Settings
from registry.sync.sources import find
from tests.powerloss.recorder import Acknowledge
from tests.powerloss.tree import Tree, read_tree, write_tree


def document(name: str, description: str, more: str = "") -> bytes:
    return f"---\nname: {name}\ndescription: {description}\n{more}---\n\n# {name}\n".encode()


class World:
    """A source with its database, a project that skills are pulled into, and an archive.

    It keeps its place, since the database knows its source by path. The user's own folder, too, is
    in it.
    """

    def __init__(self, base: str) -> None:
        self.base = os.path.realpath(base)
        self.root = f"{self.base}/skills"
        self.database = f"{self.base}/state/registry.db"
        self.checkout = f"{self.base}/project"
        self.project = f"{self.checkout}/skills"
        self.archive = f"{self.base}/gamma.skill"
        self.home = f"{self.base}/home"

    @contextmanager
    def at_home(self) -> Iterator[None]:
        """Let what a user's programs keep for themselves be in the world."""
        elsewhere = [name for name in os.environ if name.startswith(("XDG_", "SKILL_REGISTRY_"))]
        with mock.patch.dict(os.environ, HOME=self.home):
            for name in elsewhere:
                del os.environ[name]
            yield

    def open(self) -> SkillRegistry:
        return SkillRegistry.open(self.database, settings=Settings())

    def write(self, path: str, data: bytes, mode: int = 0o644) -> None:
        path = f"{self.root}/{path}"
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as file:
            file.write(data)
        os.chmod(path, mode)

    def fill(self) -> None:
        """Write two skills and an archive with a third; nothing is registered yet."""
        self.write("alpha/SKILL.md", document("alpha", "Old."))
        self.write("alpha/a/b.txt", b"b" * 700)
        self.write("alpha/run.sh", b"echo old\n", 0o755)
        self.write("other/SKILL.md", document("other", "Another."))
        os.mkdir(os.path.dirname(self.project))
        os.mkdir(self.home, 0o700)
        with zipfile.ZipFile(self.archive, "w") as archive:
            archive.writestr("SKILL.md", document("gamma", "From an archive."))
            archive.writestr("a/c.txt", b"c" * 700)

    def become(self, tree: Tree) -> None:
        """Make everything what ``tree`` says, and nothing else."""
        shutil.rmtree(self.base)
        os.mkdir(self.base)
        write_tree(self.base, tree)

    def tree(self) -> Tree:
        return read_tree(self.base)


Step = Callable[[SkillRegistry, World], object]


@dataclass(frozen=True)
class Operation:
    """Steps, each acknowledged, and what is done before them, which is all durable.

    ``syncs``: it brings the database in line with the disk, which it need not be before.
    ``interrupted``: another operation that began before, and came to its rename.
    ``together``: all that it changes is as before or as after, not each skill by itself. ``pulls``: it writes into the project, what it left half done is finished by doing it again.
    ``gives``: the same, where agents look.
    """

    name: str
    steps: tuple[Step, ...]
    before: tuple[Step, ...] = ()
    is_new: bool = False
    syncs: bool = False
    pulls: bool = False
    gives: bool = False
    together: bool = False
    interrupted: str | None = None

    def prepare(self, world: World) -> Tree:
        """Fill an empty world for the operation; return what is there then."""
        world.fill()
        if not self.is_new:
            with world.at_home(), world.open() as registry:
                registry.sync(world.root)
                for step in self.before:
                    step(registry, world)
        return world.tree()

    def run(self, world: World, acknowledge: Acknowledge) -> None:
        """Do all steps, for real."""
        writer.ensure_current = ensure_current
        with world.at_home(), world.open() as registry:
            for step in self.steps:
                step(registry, world)
                acknowledge()


def _create(registry: SkillRegistry, _: World) -> None:
    registry.create("beta", description="Made.", body="# Beta\n", files={"a/b.txt": b"b" * 700})


def _update(registry: SkillRegistry, _: World) -> None:
    files = {"a/b.txt": None, "c.txt": b"c" * 700, "run.sh": b"echo new\n"}
    registry.update("alpha", description="New.", files=files)


def _delete(registry: SkillRegistry, _: World) -> None:
    registry.delete("alpha")


def _rename(registry: SkillRegistry, _: World) -> None:
    registry.rename("alpha", "renamed")


def _copy(registry: SkillRegistry, world: World) -> None:
    shutil.copytree(f"{world.root}/alpha", f"{world.root}/copy")
    registry.sync(world.root)


def _update_copies(registry: SkillRegistry, _: World) -> None:
    registry.update("alpha", description="New.", files={"a/b.txt": None}, copies=True)


def _delete_copies(registry: SkillRegistry, _: World) -> None:
    registry.delete("alpha", copies=True)


def _restore(registry: SkillRegistry, _: World) -> None:
    registry.restore("alpha")


def _empty_trash(registry: SkillRegistry, _: World) -> None:
    registry.empty_trash()


def _look(registry: SkillRegistry, _: World) -> None:
    registry.list()  # what was interrupted was brought to an end by opening the registry


def _import(registry: SkillRegistry, world: World) -> None:
    registry.import_archive(world.archive)


def _pull(registry: SkillRegistry, world: World) -> None:
    registry.pull(list(registry.list()), world.project)


def _pull_one(registry: SkillRegistry, world: World) -> None:
    registry.pull([registry.resolve("alpha")], world.project)


def _give_agents(registry: SkillRegistry, world: World) -> None:
    """Pull for two agents; again, everything is as the registry has it."""
    how = InstallOptions(agents=("claude-code", "codex"))
    pull(registry.core, list(registry.list()), InstallTarget.folder(world.checkout), how)


def _give_agents_one(registry: SkillRegistry, world: World) -> None:
    how = InstallOptions(agents=("claude-code", "codex"))
    pull(registry.core, [registry.resolve("alpha")], InstallTarget.folder(world.checkout), how)


def _take_from_agents(registry: SkillRegistry, world: World) -> None:
    remove(registry.core, InstallTarget.folder(world.checkout), ["alpha"])


def _publish_files(registry: SkillRegistry, files: dict[str, bytes]) -> None:
    core, runs = registry.core, frozenset({"run.sh"} & files.keys())
    home = find(core, registry.sources()[0].name)
    planned = publishing.plan(core, package(core, files, runs), home)
    publishing.publish(core, planned, planned.replaces)


def _publish(registry: SkillRegistry, _: World) -> None:
    """Replace a skill; what is published is a version of its own."""
    text = document("alpha", "Published.", "version: 2.0\n")
    files = {"SKILL.md": text, "c.txt": b"c" * 700, "run.sh": b"echo new\n"}
    _publish_files(registry, files)


def _publish_new(registry: SkillRegistry, _: World) -> None:
    _publish_files(registry, {"SKILL.md": document("beta", "New."), "a/b.txt": b"b" * 700})


def _review(registry: SkillRegistry, _: World) -> None:
    registry.update_source(registry.sources()[0].name, review=True)


def _propose_deletion(registry: SkillRegistry, _: World) -> None:
    registry.toolset("native").call("delete_skill", {"name": "alpha"})


def _approve(registry: SkillRegistry, _: World) -> None:
    """Approve the oldest proposal."""
    one = proposals.listed(registry.core)[0]
    proposals.approve(registry.core, one.id, one.tree_hash, Person("reviewer"))


def _sync(registry: SkillRegistry, world: World) -> None:
    registry.sync(world.root)


def _edit(_: SkillRegistry, world: World) -> None:
    world.write("alpha/SKILL.md", document("alpha", "Edited by hand."))
    world.write("beta/SKILL.md", document("beta", "Made by hand."))
    shutil.rmtree(f"{world.root}/other")


OPERATIONS = {
    operation.name: operation
    for operation in (
        Operation("create", (_create,)),
        Operation("update", (_update,)),
        Operation("delete", (_delete,)),
        Operation("rename", (_rename,), together=True),
        Operation("update of copies", (_update_copies,), before=(_copy,), together=True),
        Operation("deletion of copies", (_delete_copies,), before=(_copy,), together=True),
        Operation("restore", (_restore,), before=(_delete,)),
        Operation("import", (_import,)),
        Operation("pull", (_pull,), pulls=True),
        Operation("pull again", (_pull,), before=(_pull_one, _update), pulls=True),
        Operation("pull for agents", (_give_agents,), gives=True),
        Operation(
            "pull for agents again",
            (_give_agents,),
            before=(_give_agents_one, _update),
            gives=True,
        ),
        Operation(
            "removal from agents", (_take_from_agents,), before=(_give_agents_one,), gives=True
        ),
        Operation("publication", (_publish,)),
        Operation("publication of a new skill", (_publish_new,)),
        Operation("proposal", (_publish,), before=(_review,)),
        Operation("approval", (_approve,), before=(_review, _publish)),
        Operation("approval of a new skill", (_approve,), before=(_review, _publish_new)),
        Operation("approval of a deletion", (_approve,), before=(_review, _propose_deletion)),
        Operation("sync", (_sync,), before=(_edit,), syncs=True),
        Operation("first sync", (_sync,), is_new=True, syncs=True),
        Operation("empty trash", (_empty_trash,), before=(_delete,)),
        Operation("recovery of an update", (_look,), interrupted="update"),
        Operation("recovery of a deletion", (_look,), interrupted="delete"),
        Operation("one after the other", (_create, _update, _delete, _restore)),
    )
}
