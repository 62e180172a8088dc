"""Any order of changes, hand edits and syncs: nothing is lost, disk and database agree."""

import os
import shutil
import tempfile
from pathlib import Path

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
    run_state_machine_as_test,
)

from registry.api import SkillRegistry
from registry.catalog.resolve import resolve
from registry.changes.create import create_files
from registry.changes.update import update_files
from registry.db.read.listing import Filters
from registry.errors import (
    ChangeRefused,
    SkillChangedOnDisk,
    SkillExists,
    SkillMissing,
    SkillNotFound,
)
from registry.settings import Settings

names = st.sampled_from(["alpha", "beta", "gamma"])
texts = st.sampled_from(["one", "two", "three"])


def document(name: str, text: str) -> bytes:
    return f"---\nname: {name}\ndescription: About {text}.\n---\n\n{text}\n".encode()


class Registry(RuleBasedStateMachine):
    """The model: ``disk`` is what lies in the source, ``known`` what the registry was told of."""

    new_database = None  # set by the test

    @initialize()
    def start(self):
        self.database = self.new_database()
        self.base = Path(tempfile.mkdtemp(dir="/dev/shm" if os.path.isdir("/dev/shm") else None))
        self.root = self.base / "skills"
        self.root.mkdir()
        self.registry = SkillRegistry.open(self.database, settings=Settings())
        self.registry.sync(str(self.root))
        self.source = self.registry.sources()[0]
        self.disk: dict[str, bytes] = {}
        self.known: dict[str, bytes] = {}
        self.trash: list[tuple[str, bytes]] = []

    def teardown(self):
        if hasattr(self, "registry"):
            self.registry.close()
            shutil.rmtree(self.base)

    @rule(name=names, text=texts)
    def create(self, name, text):
        try:
            create_files(
                self.registry.core, self.source, name, name, {"SKILL.md": document(name, text)}
            )
        except SkillExists:
            assert name in self.disk or name in self.known
        else:
            assert name not in self.disk
            self.disk[name] = self.known[name] = document(name, text)

    @rule(name=names, text=texts)
    def update(self, name, text):
        try:
            update_files(
                self.registry.core,
                resolve(self.registry.core.reader, name),
                {"SKILL.md": document(name, text)},
            )
        except SkillNotFound:
            assert name not in self.known
        except SkillMissing:
            assert name in self.known
            assert name not in self.disk
        except (SkillChangedOnDisk, ChangeRefused):
            assert self.disk.get(name) != self.known[name]
        else:
            assert self.disk[name] == self.known[name]
            self.disk[name] = self.known[name] = document(name, text)

    @rule(name=names)
    def delete(self, name):
        try:
            self.registry.delete(name)
        except SkillNotFound:
            assert name not in self.known
        except SkillMissing:
            assert name in self.known
            assert name not in self.disk
        except SkillChangedOnDisk:
            assert self.disk.get(name) != self.known[name]
        else:
            assert self.disk[name] == self.known[name]
            self.trash.append((name, self.disk.pop(name)))
            del self.known[name]

    @rule(name=names)
    def restore(self, name):
        mine = {trashed.id: trashed for trashed in self.registry.trash() if trashed.name == name}
        if not mine:
            assert name not in [kept for kept, _ in self.trash]
            return
        latest = next(iter(mine.values()))
        content = (Path(latest.path) / "SKILL.md").read_bytes()
        try:
            self.registry.restore(latest.id)
        except SkillExists:
            assert name in self.disk
        else:
            self.trash.remove((name, content))
            self.disk[name] = self.known[name] = content

    @rule(name=names, text=texts)
    def edit_by_hand(self, name, text):
        (self.root / name).mkdir(exist_ok=True)
        (self.root / name / "SKILL.md").write_bytes(document(name, text) + b"by hand\n")
        self.disk[name] = document(name, text) + b"by hand\n"

    @rule(name=names)
    def remove_by_hand(self, name):
        shutil.rmtree(self.root / name, ignore_errors=True)
        self.disk.pop(name, None)

    @rule(verify=st.booleans())
    def sync(self, verify):
        self.registry.sync(allow_prune=True, verify=verify)
        self.known = dict(self.disk)
        again = self.registry.sync(allow_prune=True)
        assert (again.added, again.updated, again.removed, again.moved) == ((), (), (), ())

    @rule()
    def open_again(self):
        self.registry.close()
        self.registry = SkillRegistry.open(self.database, settings=Settings())

    @invariant()
    def the_disk_holds_what_was_put_there(self):
        if hasattr(self, "disk"):
            found = {path.parent.name: path.read_bytes() for path in self.root.glob("*/SKILL.md")}
            assert found == self.disk

    @invariant()
    def the_registry_lists_what_it_was_told_of(self):
        if hasattr(self, "disk"):
            listed = {skill.name for skill in self.registry.list(Filters(all=True))}
            assert listed == set(self.known)
            assert len(self.registry.trash()) == len(self.trash)
            assert self.registry.check_database() == []


LONG = settings(
    max_examples=25,
    stateful_step_count=25,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)

SHORT = settings(LONG, max_examples=8)


def test_any_order_of_changes_edits_and_syncs_loses_nothing(request, new_database):
    Registry.new_database = staticmethod(new_database)
    # The orders are the same whatever the database, and each takes five times as long on a server.
    on_a_server = request.config.getoption("--backend") == "postgresql"
    run_state_machine_as_test(Registry, settings=SHORT if on_a_server else LONG)
