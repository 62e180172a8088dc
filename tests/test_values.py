"""Public values: as JSON, as times, as what a web framework makes of them."""

import json
import os
from dataclasses import FrozenInstanceError, fields, replace
from datetime import UTC, datetime

import pytest

from registry.api import SkillRegistry
from registry.settings import Settings
from tests import program
from tests.conftest import write_skill

EXTRA = """created_at: 2024-05-06T07:08:09Z
tags: [office, pdf]
metadata: {deep: [{er: [1, two, null]}]}
parameters: [{name: depth, type: number, description: How deep., default: 3}]
"""


@pytest.fixture
def filled(registry, root):
    write_skill(root / "alpha", extra=EXTRA)
    (root / "alpha" / "notes.txt").write_text("Notes.\n")
    registry.sync(str(root))
    return registry


@pytest.mark.file
def test_a_value_as_a_dict_is_the_json_of_its_command(filled, root, database):
    def told(*arguments):
        ran = program.run(["--db", str(database), *arguments, "--json"], environ=os.environ)
        assert ran.status == 0
        return json.loads(ran.stdout)

    def as_json(value):
        return json.loads(json.dumps(value))

    assert [as_json(one.to_dict()) for one in filled.list()] == told("list")
    assert [as_json(one.to_dict()) for one in filled.search("step")] == told("search", "step")
    assert as_json(filled.get("alpha").to_dict()) == told("show", "alpha")
    write_skill(root / "beta")
    (root / "gamma").symlink_to(root / "nowhere")
    ours, theirs = as_json(filled.sync(dry_run=True).to_dict()), told("sync", "--dry-run")
    assert ours["sources"][0]["notices"]
    assert ours["added"]
    assert ours | {"seconds": 0} == theirs | {"seconds": 0}
    assert [as_json(one.to_dict()) for one in filled.sources()] == told("source", "list")
    assert as_json(filled.stats().to_dict()) == told("stats")
    assert as_json(filled.database_info().to_dict()) == told("db", "info")
    assert [as_json(one.to_dict()) for one in filled.check(["alpha"])] == told("check", "alpha")
    filled.update("alpha", body="New.\n")
    ours = [as_json(one.to_dict()) for one in filled.history("alpha")]
    assert ours == told("history", "alpha")
    assert len(ours) == 2
    filled.delete("alpha")
    ours = [as_json(one.to_dict()) for one in filled.trash()]
    assert ours == told("trash", "list")
    assert len(ours) == 1


@pytest.mark.file
def test_what_was_counted_is_the_json_of_its_command_too(filled, database):
    filled.toolset("native").call("read_skill", {"name": "alpha"})
    filled.close()
    asked = ["--db", str(database), "stats", "--usage", "--json"]
    ran = program.run(asked, environ=os.environ)
    with SkillRegistry.open(database, settings=Settings()) as again:
        [ours] = [one.to_dict() for one in again.usage_counts()]
    assert json.loads(ran.stdout) == [ours]
    assert ours["read"] == 1


def test_times_are_texts_and_moments(filled):
    [skill] = filled.list()
    assert skill.created == datetime(2024, 5, 6, 7, 8, 9, tzinfo=UTC)
    assert f"{skill.updated:%Y-%m-%dT%H:%M:%SZ}" == skill.updated_at
    [source] = filled.sources()
    assert source.last_sync.tzinfo is UTC
    assert replace(source, last_sync_at=None).last_sync is None


def test_what_is_no_time_is_shown_and_not_counted_with(filled):
    [skill] = filled.list()
    odd = replace(skill, created_at="yesterday")
    assert odd.to_dict()["created_at"] == "yesterday"
    with pytest.raises(ValueError, match="yesterday"):
        _ = odd.created


def test_reports_do_not_change(filled, root):
    write_skill(root / "beta")
    report = filled.sync()
    for value, name in ((report, "added"), (report.sources[0], "kept")):
        assert {type(getattr(value, one.name)) for one in fields(value)} <= {
            str,
            int,
            float,
            bool,
            tuple,
            type(None),
        }
        with pytest.raises(FrozenInstanceError):
            setattr(value, name, ())
        hash(value)
