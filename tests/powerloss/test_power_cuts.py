"""After a power cut each skill is as before or as after, and what was acknowledged is there.

A sample of the states of the disk that a cut at any call of an operation may leave; ``make chaos``
tries them all.
"""

import pytest

from tests.powerloss.chaos import folder_for_runs
from tests.powerloss.operations import OPERATIONS
from tests.powerloss.run import Run
from tests.powerloss.states import Cut, some_states
from tests.powerloss.tracer import CannotTrace

SAMPLE = 6
"""States by chance of each operation, beside those right after what was acknowledged."""

STATE = r"\.skills\.skill-registry"
STAGED = rf"{STATE}/ops/\*/tree"
GIVING = r"project/(\.agents/skills/|\.claude/skills/)?\.exchange-\*\.skill-registry"
PULLING = r"project/skills/\.exchange-\*\.skill-registry"

ALONE = [name for name in OPERATIONS if name != "one after the other"]
"""What is tried here."""


@pytest.fixture(scope="module")
def run():
    """Return the recorded run of an operation by name; each is recorded once."""
    runs = {}
    with folder_for_runs() as folder:

        def recorded(name):
            if name not in runs:
                try:
                    runs[name] = Run(OPERATIONS[name], f"{folder}/{len(runs)}")
                except CannotTrace as error:
                    pytest.skip(str(error))
            return runs[name]

        yield recorded


@pytest.mark.parametrize("name", ALONE)
def test_what_was_recorded_is_all_that_happened(run, name):
    recorded = run(name)
    again = Cut(recorded.history, len(recorded.history.calls)).whole()
    assert again.tree() == recorded.end
    assert len(recorded.history.done) == len(recorded.operation.steps)


@pytest.mark.parametrize("name", ALONE)
def test_a_power_cut_leaves_each_skill_as_before_or_as_after(run, name):
    recorded, tried = run(name), 0
    for failure in recorded.failures(some_states(recorded.history, SAMPLE, seed=0)):
        assert failure is None, str(failure)
        tried += 1
    assert tried > SAMPLE // 2


def test_the_operations_do_what_their_names_say(run):
    def seen(name):
        return [
            {skill: [bool(part) for part in parts] for skill, parts in outcome.items()}
            for outcome in run(name).legal
        ]

    there, trashed, pulled = (
        [True, True, False, False, False],
        [False, False, True, False, False],
        [True, True, False, True, False],
    )
    assert seen("create")[-1].get("beta") == there
    assert [one["alpha"] for one in seen("delete")] == [there, trashed]
    assert [one["alpha"] for one in seen("restore")] == [trashed, there]
    assert [one["copy"] for one in seen("deletion of copies")] == [there, trashed]
    assert [one["alpha"] for one in seen("pull")] == [there, pulled]
    assert [one["other"] for one in seen("pull again")] == [there, pulled]
    assert [one["alpha"] for one in seen("pull for agents")] == [there, pulled]
    assert [one["other"] for one in seen("pull for agents again")] == [there, pulled]
    assert [one["alpha"] for one in seen("removal from agents")] == [pulled, there]
    assert [one.get("gamma") for one in seen("import")] == [None, there]
    assert [one.get("alpha") for one in seen("empty trash")] == [trashed, None]
    assert [one["alpha"] for one in seen("first sync")] == [
        [True, False, False, False, False],
        there,
    ]
    assert seen("publication of a new skill")[-1].get("beta") == there
    assert seen("approval")[-1]["alpha"] == [True, True, False, False, True]
    assert seen("approval of a new skill")[0]["beta"] == [False, False, False, False, True]
    assert seen("approval of a new skill")[1]["beta"] == [True, True, False, False, True]
    assert seen("approval of a deletion")[1]["alpha"] == [False, False, True, False, True]
    approved = [one["alpha"][4][0][2] for one in run("approval").legal]
    assert approved == ["pending", "applied"]
    assert "2.0" in run("publication").legal[1]["alpha"][1]
    update, sync = run("update").legal, run("sync").legal
    assert update[0]["alpha"] != update[1]["alpha"]
    assert sync[0]["alpha"] != sync[1]["alpha"]
    copies = run("update of copies").legal
    assert all(copies[0][folder] != copies[1][folder] for folder in ("alpha", "copy"))
    assert run("recovery of an update").legal[1]["alpha"] == update[1]["alpha"]


LEFT_OUT = {
    "staged files": ("create", rf"{STAGED}/.*(SKILL\.md|b\.txt)"),
    "staged folders": ("create", rf"{STAGED}(/a)?"),
    "both folders of a rename": ("create", rf"skills|{STATE}/ops/\*"),
    "the log of the database": ("create", r"state/registry\.db-wal"),
    "the database": ("create", r"state/registry\.db"),
    "the folder of the database": ("create", r"state"),
    "the name of the state folder": ("delete", r"\."),
    "the folders in the state folder": ("delete", STATE),
    "the trash": ("delete", rf"{STATE}/trash"),
    "what is noted in the trash": ("delete", rf"{STATE}/trash/\*/meta\.json"),
    "what comes into the trash": ("delete", rf"skills|{STATE}/trash/\*"),
    "files that are pulled": ("pull again", rf"{PULLING}/tree/.*(SKILL\.md|b\.txt)"),
    "folders that are pulled": ("pull again", rf"{PULLING}/tree(/a)?"),
    "what a pull is about to do": ("pull again", rf"{PULLING}/note\.json"),
    "where a pull prepares": ("pull again", PULLING),
    "where a pull puts things": ("pull again", r"project/skills"),
    "files that agents are given": (
        "pull for agents again",
        rf"{GIVING}/tree/.*(SKILL\.md|b\.txt)",
    ),
    "which places change": ("removal from agents", rf"{GIVING}/(places|entry)\.json"),
    "where agents look": ("pull for agents again", r"project/\.(agents|claude)/skills"),
}
"""Kinds of syncs: the operation that needs them, and the places of all of a kind."""


@pytest.mark.parametrize("kind", LEFT_OUT)
def test_without_the_sync_something_fails(run, kind):
    name, pattern = LEFT_OUT[kind]
    recorded = run(name)
    calls = recorded.syncs(pattern)
    assert calls, "nothing of the kind is synced"
    assert recorded.failure_without(calls) is not None
