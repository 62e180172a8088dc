"""docs/contributing/contracts.md: each test it names exists, each deviation has a reason, each quote is one."""

import ast
import re
from typing import NamedTuple

import pytest

from tests.conftest import REPOSITORY

DOCUMENT = REPOSITORY / "docs" / "contributing" / "contracts.md"
CONTRACTS = REPOSITORY.parent / "shared" / "contracts"
TESTS = REPOSITORY / "tests"


class Row(NamedTuple):
    contract: str
    sentence: str
    holds: str
    tests: list[tuple[str, str]]
    rest: str


def read_rows():
    contract = ""
    for line in DOCUMENT.read_text(encoding="utf-8").splitlines():
        if line.startswith("## "):
            contract = line.removeprefix("## ")
        elif line.startswith("| ") and not line.startswith("| sentence |"):
            sentence, holds, shown = line.strip("|").rsplit(" | ", 2)
            tests = re.findall(r"`([a-z_/]+\.py)::(\w+)`", shown)
            yield Row(contract, sentence.strip(), holds, tests, re.sub(r"`[^`]*`", "", shown))


ROWS = list(read_rows())


def functions(path):
    tree = ast.parse((TESTS / path).read_text(encoding="utf-8"))
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}


def plain(text):
    """Return text without the marks of Markdown, in single spaces."""
    return " ".join(re.sub(r"\\?\|", " ", re.sub(r"[*`]", "", text)).split())


def test_each_test_that_it_names_exists():
    named = {test for row in ROWS for test in row.tests}
    known = {path: functions(path) for path, _ in named}
    assert len(named) > 100
    assert [test for test in sorted(named) if test[1] not in known[test[0]]] == []


def test_what_holds_is_tested_or_measured_and_what_does_not_has_a_reason():
    assert {row.holds for row in ROWS} == {"yes", "partly", "no"}
    for row in ROWS:
        if row.holds == "yes":
            assert row.tests or row.rest.strip().startswith("measured: "), row
        else:
            assert "\N{EM DASH} " in row.rest, row


@pytest.mark.parametrize("contract", sorted({row.contract for row in ROWS}))
def test_each_sentence_stands_in_its_contract(contract):
    if not CONTRACTS.exists():
        pytest.skip("the contracts are not beside this checkout")
    text = plain((CONTRACTS / contract).read_text(encoding="utf-8"))
    quoted = [row.sentence for row in ROWS if row.contract == contract]
    assert [sentence for sentence in quoted if plain(sentence) not in text] == []
