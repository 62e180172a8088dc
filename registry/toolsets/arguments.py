"""Hold what a model sends against a tool's JSON Schema."""

from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from registry.text import shorten
from registry.toolsets.base import Json

if TYPE_CHECKING:
    from jsonschema.protocols import Validator

MAX_PROBLEM: Final = 300
"""Characters of a problem's description, which repeats what was sent."""


class Arguments:
    """The check of one tool's arguments, made ready at the first call."""

    def __init__(self, schema: Json) -> None:
        self._schema = schema

    def problem(self, arguments: Any) -> str | None:
        """Return in words what is wrong with ``arguments``, or None."""
        from jsonschema.exceptions import best_match

        try:
            error = best_match(self._validator.iter_errors(arguments))
        except RecursionError:
            return "the arguments are nested too deeply"
        if error is None:
            return None
        words = shorten(error.message, MAX_PROBLEM)
        place = ".".join(map(str, error.path))
        text = f"{place}: {words}" if place else words
        return text.encode("utf-8", "replace").decode()

    @cached_property
    def _validator(self) -> "Validator":
        from jsonschema import Draft202012Validator

        return Draft202012Validator(self._schema)
