"""Hold what a model sends against a tool's JSON Schema."""

import difflib
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from registry.text import MAX_NAME, shorten
from registry.toolsets.base import Json

if TYPE_CHECKING:
    from jsonschema.exceptions import ValidationError
    from jsonschema.protocols import Validator

MAX_PROBLEM: Final = 300
"""Characters of a problem's description, which repeats what was sent."""


class Arguments:
    """The check of one tool's arguments, made ready at the first call."""

    def __init__(self, schema: Json) -> None:
        self._schema = schema

    def problem(self, arguments: Any) -> str | None:
        """Return in words what is wrong with ``arguments``, or None."""
        from jsonschema.exceptions import best_match, relevance

        if isinstance(arguments, str):
            return "the arguments are not a JSON object"
        try:
            # A misspelt name explains the one that is missing, not the other way round.
            error = best_match(
                self._validator.iter_errors(arguments),
                key=lambda one: (one.validator_value is False, relevance(one)),
            )
        except RecursionError:
            return "the arguments are nested too deeply"
        if error is None:
            return None
        told = _unknown(error) if error.validator_value is False else error.message
        words = shorten(told, MAX_PROBLEM)
        place = ".".join(map(str, error.path))
        text = f"{place}: {words}" if place else words
        return text.encode("utf-8", "replace").decode()

    @cached_property
    def _validator(self) -> "Validator":
        from jsonschema import Draft202012Validator

        return Draft202012Validator(self._schema)


def _unknown(error: "ValidationError") -> str:
    """Name the first property that the schema does not know, and what may have been meant."""
    refusing: Any = error.schema
    sent: Any = error.instance
    known = list(refusing["properties"])
    name = shorten(next(str(name) for name in sent if name not in known), MAX_NAME)
    near = difflib.get_close_matches(name, known, n=1)
    hint = f"did you mean {near[0]!r}?" if near else f"known are {', '.join(known)}"
    return f"unknown argument {name!r}: {hint}"
