"""Machines and servers die while others work: what was acknowledged stays, and nothing else comes.

The short form of ``python -m tests.server.chaos.run``, which `make chaos` lets run for longer.
"""

import json

import pytest

from tests.server.chaos.history import History
from tests.server.chaos.run import (
    FAIL_OVER,
    KILL,
    MATTERS,
    POOLERS,
    STOP,
    STOP_FAST,
    SUSPEND,
    running,
)

pytestmark = pytest.mark.server

SEED = 20261122


def test_nothing_is_lost_and_nothing_appears_whatever_is_killed_and_stopped():
    with running(SEED, replicated=False) as run:
        for fault in run.faults:
            fault()
        history = run.end()
        assert not history.findings, history.findings
        pooled = [POOLERS] if run.cluster.poolers else []
        assert run.counts == once(KILL, SUSPEND, STOP, STOP_FAST, *pooled)
        assert all(history.counts[what, "done"] for what in ("create", "update", "edit", "up"))
        controls(history)


def test_a_replica_that_confirms_each_commit_takes_over_without_loss():
    with running(SEED) as run:
        run.fail_over()
        history = run.end()
        assert not history.findings, history.findings
        assert run.counts == once(FAIL_OVER)


def once(*faults):
    """Each happened once, and where it matters."""
    return dict.fromkeys([*faults, *(f"{one}, {MATTERS[one]}" for one in faults)], 1)


def controls(history):
    """A check that finds nothing is worth what it would have found."""
    machine = history.folders["one"]
    real = (machine / "journal").read_text()

    def found(*facts):
        told = [{"at": 0, "generation": "1", **one} for one in facts]
        lines = [json.dumps(one) + "\n" for one in told]
        (machine / "journal").write_text("".join(lines) + real)
        return History(history.folders).check()

    made = {"n": 0, "op": "create", "skill": "one-b-0", "to": ["mark-x.1.1", "mark-x.1.1"]}
    assert found(made, {"n": 0, "done": {"hash": "sha256:0"}}).lost
    assert not found(made, {"n": 0, "failed": "DatabaseUnreachable"})
    look = {"n": 0, "op": "list"}
    assert found(look, {"n": 0, "done": {"one-b-0": "mark-nobody.1.1"}}).phantom
    broke = found({"n": 0, "op": "read", "skill": "one-b-0"}, {"n": 0, "broke": "KeyError()"})
    assert broke.other
    held = {"n": 0, "failed": "SyncRunning", "why": "Another sync of this registry is running."}
    assert found({**made, "op": "edit"}, held).other
