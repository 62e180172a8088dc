"""Codes of findings: every one that is made can be asked for."""

import ast
import re

import pytest

from registry.catalog.check import all_codes, chooser, codes_of
from registry.document.autofix import FIXABLE
from registry.errors import FindingUnknown
from registry.model import SECURITY_CODES, SEVERITIES
from registry.settings import Limits, Settings
from tests.conftest import REPOSITORY

PACKAGE = REPOSITORY / "registry"
CODE = re.compile(r"[a-z][a-z0-9-]+")
MADE_BY = ("Diagnostic", "finding", "_finding", "_Finding", "_tidy", "note", "Place", "Text")


def literals():
    """Yield the codes that the rooms below the catalogue write out where they make a finding."""
    for path in PACKAGE.rglob("*.py"):
        if path.relative_to(PACKAGE).parts[0] not in {"disk", "document", "sync"}:
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and ast.unparse(node.func).split(".")[-1] in MADE_BY:
                given = [one.value for one in node.args if isinstance(one, ast.Constant)]
                if given and CODE.fullmatch(str(given[0])):
                    yield given[0]


def test_every_code_that_is_written_somewhere_is_known():
    found = set(literals()) - {*SEVERITIES}
    assert len(found) > 30
    assert found - all_codes() == set()
    assert all_codes() >= SECURITY_CODES
    assert all_codes() >= FIXABLE


@pytest.mark.file
def test_every_code_that_real_skills_give_is_known(registry, corpus, tmp_path):
    registry.core.settings = Settings(limits=Limits(depth=12))
    found = {one.code for checked in registry.check([str(corpus)]) for one in checked.findings}
    assert len(found) > 35
    assert found - all_codes() == set()


def test_a_beginning_means_all_that_begin_with_it():
    assert codes_of("yaml-colon") == {"yaml-colon"}
    assert {"yaml-colon", "yaml-quotes"} <= codes_of("yaml-")
    assert all(code.startswith("yaml-") for code in codes_of("yaml-"))


def test_what_is_ignored_is_left_out_of_what_is_selected():
    wanted = chooser(["yaml-", "secret"], ["yaml-colon"])
    assert [wanted(code) for code in ("yaml-quotes", "secret")] == [True, True]
    assert [wanted(code) for code in ("yaml-colon", "key-unknown")] == [False, False]
    assert chooser([], [])("key-unknown")
    assert not chooser([], ["key-"])("key-unknown")


@pytest.mark.parametrize(
    ("word", "near"),
    [("key-unknwon", "key-unknown"), ("yaml", "yaml-"), ("link", "link-"), ("frnt-", "")],
)
def test_an_unknown_code_is_refused_with_those_that_are_near(word, near):
    with pytest.raises(FindingUnknown) as caught:
        codes_of(word)
    assert near in caught.value.similar or not near
    assert word in str(caught.value)
