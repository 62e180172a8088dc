"""The benchmarks can be run: they share the tests' servers, and nothing else tries them."""

import pytest

from registry import Settings, SkillRegistry
from tests.conftest import REPOSITORY, interpreted


def test_the_benchmarks_find_all_that_they_are_made_of():
    ran = interpreted("benchmarks/run.py", "--help")
    assert (ran.returncode, ran.stderr) == (0, "")
    assert "--server-sizes" in ran.stdout


@pytest.mark.both
def test_the_bytes_of_all_tables_are_those_of_the_database(new_database, root, skill, monkeypatch):
    monkeypatch.syspath_prepend(str(REPOSITORY / "benchmarks"))
    import costs

    place = new_database()
    for number in range(20):
        skill(f"skill-{number}", body="Some words of a body.\n" * 400)
    with SkillRegistry.open(place, settings=Settings()) as registry:
        registry.sync(str(root), name="mine")
        whole = registry.database_info().bytes
    found = costs.sizes(str(place))
    bytes_of_all = sum(map(sum, found.values()))
    assert found["documents"][0] > 0
    assert found["skills"][1] > 0
    assert 0.1 * whole < bytes_of_all <= whole
    (*_, last) = costs.report({"here": str(place)}, 20)
    assert last.startswith("| **all** |")
