"""Errors as values: what each says of itself, its bases, and that it survives being handed on."""

import copy
import inspect
import pickle
import string
from typing import ClassVar, get_origin, get_type_hints

import pytest

import registry
from registry.disk.files import IsLink
from registry.errors import Conflict, DatabaseProblem, Invalid, NotFound, RegistryError, Unavailable
from registry.errors import skills as errors_of_skills
from registry.model import Diagnostic
from tests.conftest import write_skill

PROBLEM = Diagnostic("name-missing", "error", "it has no name", fix="give it one")
SAMPLES = {
    "known": ("one", "two"),
    "similar": ("alphas",),
    "refs": ("one/alpha", "two/alpha"),
    "paths": ("a.txt",),
    "problems": (PROBLEM,),
    "number": 3,
    "count": 2,
    "offset": 7,
    "size": 10,
    "limit": 9,
    "seconds": 2.5,
}
"""Values of facts that are no text."""

KINDS = [
    IsLink,
    *(
        kind
        for kind in (getattr(registry, name) for name in registry.__all__)
        if isinstance(kind, type) and issubclass(kind, RegistryError)
    ),
]


def facts_of(kind):
    """Return the facts that a class declares, with their kinds."""
    hints = get_type_hints(kind, vars(errors_of_skills) | {"Diagnostic": Diagnostic})
    return {
        name: hint
        for name, hint in hints.items()
        if get_origin(hint) is not ClassVar and name != "facts"
    }


def make(kind):
    """Return an error of a class, made as the registry makes it, with all that it may say."""
    facts = {name: SAMPLES.get(name, f"the {name}") for name in facts_of(kind)}
    wanted = inspect.signature(kind).parameters
    if any(one.kind is one.VAR_KEYWORD for one in wanted.values()):
        return kind(**facts)
    return kind(**{name: facts[name] for name in wanted})


@pytest.mark.parametrize(
    "handed_on",
    [
        copy.copy,
        copy.deepcopy,
        *(
            lambda error, protocol=protocol: pickle.loads(pickle.dumps(error, protocol))
            for protocol in range(pickle.HIGHEST_PROTOCOL + 1)
        ),
    ],
)
def test_an_error_is_the_same_after_it_was_copied_or_pickled(handed_on):
    for kind in KINDS:
        error = make(kind)
        error.add_note("while it was tried")
        again = handed_on(error)
        assert type(again) is kind
        assert str(again) == str(error)
        assert vars(again) == vars(error)
        assert again.args == error.args


def test_an_error_says_what_its_class_declares_and_nothing_else():
    for kind in KINDS:
        error = make(kind)
        said = {field for _, field, _, _ in string.Formatter().parse(kind.sentence) if field}
        assert said <= set(facts_of(kind)), kind
        assert set(error.facts) <= set(facts_of(kind)), kind
        assert all(getattr(error, name) == value for name, value in error.facts.items()), kind
        assert "{" not in str(error), kind


def test_an_error_belongs_to_one_group_at_most():
    assert issubclass(NotFound, LookupError)
    assert issubclass(Invalid, ValueError)
    for kind in set(KINDS) - {RegistryError, NotFound, Conflict, Invalid, Unavailable}:
        groups = [
            base for base in (NotFound, Conflict, Invalid, Unavailable) if issubclass(kind, base)
        ]
        assert len(groups) <= 1, kind


@pytest.mark.parametrize(
    ("base", "call"),
    [
        (LookupError, lambda r: r.get("nosuch")),
        (NotFound, lambda r: r.read_file("alpha", "nosuch.txt")),
        (NotFound, lambda r: r.remove_source("nosuch")),
        (Conflict, lambda r: r.create("alpha", description="Again.")),
        (ValueError, lambda r: r.create("../x", description="Out.")),
        (Invalid, lambda r: r.list(sort="nosuch")),
        (ValueError, lambda r: r.create("beta", description="b", files={"../x": b""})),
    ],
)
def test_what_goes_wrong_can_be_caught_by_its_group(registry, root, base, call):
    write_skill(root / "alpha")
    registry.sync(str(root))
    with pytest.raises(base) as caught:
        call(registry)
    assert isinstance(caught.value, RegistryError)
    assert not isinstance(caught.value, DatabaseProblem)
