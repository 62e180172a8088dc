"""Who may do what: each role tries everything on the real server, and docs/reference/roles.md says the same.

What is tried is done to a source of the owner, which is a team's, from the owner's own machine, so
that nothing but the role is in the way. Who is an admin says so (``as_admin``) where there is that.
"""

import re
from pathlib import Path

import pytest

from registry.changes.rights import carry_out, granting, listed
from registry.db.adopted import remember
from registry.db.read.access import audit_records
from registry.errors import RegistryError, SourceNotYours
from tests.conftest import write_skill
from tests.server.roles import World

pytestmark = pytest.mark.server

DOCUMENT = Path(__file__).resolve().parent.parent.parent / "docs" / "reference" / "roles.md"

ROLES = ("stranger", "reader", "team reader", "writer", "owner", "admin")
YES, NO, OWN, ADOPTED = "yes", "no", "own", "adopts it first"


class Trial:
    """One role, and the registry as it sees it; ``name``: of what is the owner's."""

    def __init__(self, world, role, root):
        self.world, self.role, self.root = world, role, root
        self.name = "owner_of_red" if role == "owner" else role.replace(" ", "_")
        self.registry = world.open(self.name, host="owner_of_red-pc")
        self.admin = role == "admin"

    def flags(self):
        return {"as_admin": True} if self.admin else {}

    def outcome(self, act):
        try:
            done = act(self)
        except SourceNotYours:
            if not self.admin:
                return NO
            self.registry.adopt_source("red", as_admin=True)
            act(self)
            owner = self.world.name("owner_of_red")
            self.registry.update_source("red", owner=owner, as_admin=True)
            return ADOPTED
        except RegistryError:
            return NO
        return {True: YES, False: NO}.get(done, done)


def list_(trial):
    return "pdf" in [skill.name for skill in trial.registry.list()]


def search(trial):
    return trial.registry.search("zebra").total == 1


def show(trial):
    return trial.registry.get("red/pdf").name == "pdf"


def read_file(trial):
    return trial.registry.read_file("red/pdf", "run.sh") == b"echo\n"


def read_the_past(trial):
    return len(trial.registry.history("red/pdf")) > 1


def add(trial):
    folder = trial.root / f"of-{trial.role}"
    write_skill(folder / "own")
    registry = trial.world.open(trial.name)
    registry.sync(str(folder), name=f"of-{trial.role}")
    return True


def sync(trial):
    late = trial.root / "red" / f"late-{trial.name}"
    write_skill(late)
    return late.name in {ref.rpartition("/")[2] for ref in trial.registry.sync("red").added}


def create(trial):
    return bool(trial.registry.create("new", description="New.", source="red"))


def update(trial):
    return trial.registry.update("red/pdf", body=f"# {trial.role}\n").name == "pdf"


def delete(trial):
    trial.registry.delete("red/pdf")
    return True


def restore(trial):
    trial.registry.create("back", description="Goes, and comes back.", source="red")
    trial.registry.delete("back")
    return trial.registry.restore("back").name == "back"


def update_source(trial):
    return trial.registry.update_source("red", priority=7, **trial.flags()).priority == 7


def set_team(trial):
    return trial.registry.update_source("red", team="", **trial.flags()).team is None


def adopt(trial):
    return trial.registry.adopt_source("red", **trial.flags()).own


def trust(trial):
    trial.registry.trust_source("red", **trial.flags())
    return True


def prune(trial):
    before = trial.world.open("owner_of_tables").core.reader.rows("SELECT count(*) FROM revisions")
    trial.registry.prune(keep=0, **trial.flags())
    after = trial.world.open("owner_of_tables").core.reader.rows("SELECT count(*) FROM revisions")
    return after < before


def grant(trial):
    core = trial.registry.core
    carry_out(core, granting(core, trial.world.name("friend"), "read"))
    return True


def grants(trial):
    return trial.world.name("friend") not in {one.role for one in listed(trial.registry.core)}


def audit(trial):
    roles = {one.role for one in audit_records(trial.registry.core.reader, 1000)}
    if trial.world.name("owner_of_red") in roles and trial.world.name("owner_of_tables") in roles:
        return YES
    return OWN if roles else NO


def token(trial):
    return bool(trial.registry.tokens().create(f"for {trial.role}"))


def remove(trial):
    trial.registry.remove_source("red", **trial.flags())
    return trial.registry.sources() == [] or "red" not in {
        source.name for source in trial.registry.sources()
    }


OPERATIONS = {
    "list": list_,
    "search": search,
    "show": show,
    "read a file": read_file,
    "history": read_the_past,
    "add a source of its own": add,
    "sync": sync,
    "create": create,
    "update": update,
    "delete": delete,
    "restore": restore,
    "token create": token,
    "source update": update_source,
    "source update --team": set_team,
    "source trust": trust,
    "source adopt": adopt,
    "db prune": prune,
    "db grants": grants,
    "db grant": grant,
    "db audit": audit,
    "source remove": remove,
}


@pytest.fixture(scope="module")
def found(databases, tmp_path_factory):
    """What each role could do, each in a registry of its own."""
    with pytest.MonkeyPatch.context() as patch:
        return {role: tried(databases, tmp_path_factory, patch, role) for role in ROLES}


def tried(databases, tmp_path_factory, patch, role):
    folder = tmp_path_factory.mktemp("matrix")
    patch.setenv("XDG_DATA_HOME", str(folder / "data"))
    world = World(databases, folder, owner="owner_of_tables")
    try:
        world.add("friend")
        world.add("owner_of_red", "write", "red")
        if role != "owner":
            rights = {"reader": "read", "team reader": "read", "writer": "write", "admin": "admin"}
            team = "blue" if role == "team reader" else None
            world.add(role.replace(" ", "_"), rights.get(role), team)
        home = write_skill(folder / "red" / "pdf", description="All about the zebra.")
        (home / "run.sh").write_text("echo\n")
        owner = world.open("owner_of_red")
        owner.add_source(str(folder / "red"), name="red")
        owner.update_source("red", team="red")
        owner.sync()
        owner.update("red/pdf", tags=["second"])
        try:
            trial = Trial(world, role, folder)
        except RegistryError:  # not even opened
            return dict.fromkeys(OPERATIONS, NO)
        remember(trial.registry.core.backend, str(folder / "red"))
        return {name: trial.outcome(act) for name, act in OPERATIONS.items()}
    finally:
        world.close()


def table(found):
    lines = [f"| | {' | '.join(ROLES)} |", f"|---|{'---|' * len(ROLES)}"]
    lines += [
        f"| {operation} | {' | '.join(found[role][operation] for role in ROLES)} |"
        for operation in OPERATIONS
    ]
    return "\n".join(lines)


def test_the_document_says_what_was_found(found):
    text = DOCUMENT.read_text(encoding="utf-8")
    (said,) = re.findall(r"\| \| stranger \|.*?\n(?!\|)", text, re.DOTALL)
    assert said.strip() == table(found), f"\n{table(found)}"


def test_an_owner_and_an_admin_may_do_everything_somehow(found):
    assert {name for name, done in found["owner"].items() if done not in {YES, OWN}} == {
        "db grants",
        "db grant",
    }
    assert set(found["admin"].values()) == {YES, ADOPTED}, found["admin"]


def test_a_stranger_may_do_nothing(found):
    assert set(found["stranger"].values()) == {NO}
