import pytest

from tests.conftest import REPOSITORY

EXAMPLES = REPOSITORY / "examples" / "skills"


def test_every_example_meets_the_specification_without_a_finding(registry):
    checked = registry.check([str(EXAMPLES)])
    assert len(checked) >= 12
    assert {one.name: one.findings for one in checked if one.findings} == {}


def test_the_examples_fill_a_catalogue(registry):
    report = registry.sync(str(EXAMPLES), scope="bundled")
    assert (report.invalid, report.complete) == (0, True)
    listed = {skill.name: skill for skill in registry.list()}
    assert listed["plain-language"].category == "writing"
    assert all(skill.tags and skill.kind and skill.version for skill in listed.values())
    assert len(registry.get("csv-cleaning").files) == 3


@pytest.mark.parametrize(
    ("query", "name"),
    [
        ("how do I review a pull request?", "code-review"),
        ("clean a csv file", "csv-cleaning"),
        ("\u4f1a\u8bae", "huiyi-jiyao"),
        ("slow query", "sql-review"),
    ],
)
def test_the_examples_are_found_by_what_people_ask(registry, query, name):
    registry.sync(str(EXAMPLES))
    assert registry.search(query)[0].name == name
