"""Public values: as JSON, as times, as what a web framework makes of them."""

import json
import os
from dataclasses import FrozenInstanceError, fields, replace
from datetime import UTC, datetime

import pytest

from registry.model import Diagnostic, Page, Parameter, SearchHit, Skill, SkillDetail, Source
from registry.sync.report import Moved, SourceReport, SyncReport
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


VALUES = [
    Diagnostic, Parameter, Source, Skill, SearchHit, SkillDetail, Page[Skill], Page[SearchHit],
    SyncReport, SourceReport, Moved,
]  # fmt: skip


@pytest.mark.parametrize("kind", VALUES, ids=str)
def test_pydantic_makes_a_schema_of_every_public_value(kind):
    pydantic = pytest.importorskip("pydantic")
    for mode in ("validation", "serialization"):
        assert pydantic.TypeAdapter(kind).json_schema(mode=mode)


def test_pydantic_writes_and_reads_a_skill_whole(filled):
    pydantic = pytest.importorskip("pydantic")
    adapter = pydantic.TypeAdapter(SkillDetail)
    skill = filled.get("alpha")
    assert skill.front_matter["metadata"] == {"deep": [{"er": ["1", "two", None]}]}
    written = json.loads(adapter.dump_json(skill))
    assert written["front_matter"]["metadata"] == {"deep": [{"er": ["1", "two", None]}]}
    assert adapter.validate_json(adapter.dump_json(skill)) == skill
