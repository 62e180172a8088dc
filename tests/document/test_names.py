"""Names of new skills: the specification's, miniclaw's, and what folders can be called."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from registry.disk.paths import IGNORED, is_ignored
from registry.document.names import (
    BUILT_IN_TOOLS,
    check_folder_name,
    check_new_name,
    check_snake_case,
    is_built_in,
)


@pytest.mark.parametrize("name", ["a", "7", "pdf-tools", "a-1-b", "x" * 64, "console", "com10"])
def test_names_of_the_specification_are_accepted(name):
    assert check_new_name(name) is None


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("", "needed"),
        ("x" * 65, "65 characters; 64"),
        ("Pdf", "a-z"),
        ("pdf_tools", "a-z"),
        ("pdf tools", "a-z"),
        ("pdf\n", "a-z"),
        ("caf\u00e9", "a-z"),
        ("\u0660", "a-z"),
        ("../up", "a-z"),
        ("-pdf", "hyphen"),
        ("pdf-", "hyphen"),
        ("pdf--tools", "two hyphens"),
        ("con", "device"),
        ("lpt1", "device"),
    ],
)
def test_other_names_are_refused_with_the_reason(name, reason):
    assert reason in check_new_name(name)


@pytest.mark.parametrize("name", ["a", "weather_lookup", "a1__", "x" * 50])
def test_snake_case_is_accepted(name):
    assert check_snake_case(name) is None


@pytest.mark.parametrize(
    "name",
    ["", "A", "1a", "_a", "a-b", "a b", "x" * 51, "a\n", "\na", "caf\u00e9", "a\u0660", "../a"],
)
def test_what_is_no_snake_case_is_refused_in_the_words_of_the_contract(name):
    assert check_snake_case(name) == (
        "Name must be snake_case: lowercase letters, numbers, underscores only. "
        "Must start with letter. Max 50 chars."
    )


def test_the_built_in_tools_of_miniclaw_are_reserved():
    assert len(BUILT_IN_TOOLS) == 11
    assert is_built_in("read_skill")
    assert not is_built_in("Read_Skill")
    assert all(check_snake_case(name) is None for name in BUILT_IN_TOOLS)


@pytest.mark.parametrize(
    "name",
    [
        *"con CON Nul aux.md COM1 lpt9.tar.gz com\u00b9 CONIN$ . .. a/b a\\b a:b a. a?".split(),
        *(".git", ".hidden", "node_modules", "Node_Modules", "x" * 256, "\u00e9" * 128),
        *("", " ", "nul ", "a ", " a", "a\0b", "a\nb", "\udc80"),
    ],
)
def test_folders_that_some_system_or_the_walk_refuses(name):
    assert check_folder_name(name)


@pytest.mark.parametrize(
    "name", ["a", "A b", "caf\u00e9", "console", "null", "com", "a.b", "x" * 255]
)
def test_folders_that_every_system_takes(name):
    assert check_folder_name(name) is None


def test_folders_that_the_walk_passes_over_are_refused():
    assert all(check_folder_name(name) for name in IGNORED)


@given(st.text())
def test_an_accepted_folder_is_walked(name):
    assert check_folder_name(name) or not is_ignored(name)


@given(st.text(alphabet="ab-_1A\n\u00e9"))
def test_reasons_are_sentences_without_the_name_of_anything_hostile(name):
    for check in (check_new_name, check_snake_case, check_folder_name):
        reason = check(name)
        assert reason is None or reason.isprintable()
