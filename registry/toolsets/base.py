"""The base class of toolsets, and the check of the arguments from a model."""

import difflib
import json
import os
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Final, NoReturn

from registry.changes.review import Intent, proposing
from registry.core import Core
from registry.db.audit_context import audit_context
from registry.model import Parameter, Scope, Source
from registry.text import MAX_NAME, shorten
from registry.toolsets.schemas import TYPES, Json, Style, Tool, described, given, own

if TYPE_CHECKING:
    from jsonschema.exceptions import ValidationError
    from jsonschema.protocols import Validator


@dataclass(frozen=True, slots=True)
class Context:
    """The limits for the skills of a toolset; a toolset uses the fields that its contract allows.

    ``source`` limits reading and writing to this source; contracts with a single skills folder
    require it. ``scope`` limits the skills to this scope. ``personality`` is the name of a
    visibility policy in the settings. ``environ`` has the environment variables that skills may
    require. If ``read_only``, the toolset offers only tools that change nothing. ``core`` decides
    which projects' skills are visible. ``person`` and ``token`` name the user of a token, who
    becomes the author of proposals.
    """

    core: Core
    source: str | None = None
    scope: Scope | None = None
    personality: str | None = None
    environ: Mapping[str, str] = field(default_factory=lambda: os.environ)
    read_only: bool = False
    person: str | None = None
    token: str | None = None


def _propose(core: Core, source: Source, intent: Intent) -> NoReturn:
    from registry.publish.proposals import propose

    propose(core, source, intent)


MAX_SHOWN: Final = 200
"""Maximum number of characters of a model's text that an answer quotes."""


def parameter(name: str, entry: Mapping[str, Any]) -> Parameter:
    """Return a parameter of a skill; keys that ``entry`` doesn't have get default values."""
    return Parameter(
        name=name,
        type=entry.get("type", TYPES[0]),
        description=entry.get("description", ""),
        required=entry.get("required", False),
        default=entry.get("default"),
    )


def shown(value: object) -> str:
    """Return a value from a model in a form that an answer can contain.

    The value is shortened, and characters that can't be encoded are replaced.
    """
    try:
        text = "" if value is None else str(value)
    except RecursionError:
        text = "\N{HORIZONTAL ELLIPSIS}"
    return shorten(text, MAX_SHOWN).encode("utf-8", "replace").decode()


def one_line(text: str) -> str:
    """Return ``text`` on one line, for lists with one line for each skill."""
    return text if text.isprintable() else " ".join(text.split())


MAX_PROBLEM: Final = 300
"""Maximum length of the description of a problem, in characters."""


class Arguments:
    """Checks the arguments of one tool.

    The first call of the tool creates the validator.
    """

    def __init__(self, schema: Json) -> None:
        self._schema = schema

    def problem(self, arguments: Any) -> str | None:
        """Describe why ``arguments`` are invalid; None if they are valid."""
        from jsonschema.exceptions import best_match, relevance

        if isinstance(arguments, str):
            return "the arguments are not a JSON object"
        try:
            # Report unknown arguments first: a misspelt name also explains why another argument is
            # missing.
            error = best_match(
                self._validator.iter_errors(arguments),
                key=lambda one: (one.validator_value is False, relevance(one)),
            )
        except RecursionError:
            return "the arguments are nested too deeply"
        if error is None:
            return None
        message = _unknown(error) if error.validator_value is False else error.message
        words = shorten(message, MAX_PROBLEM)
        place = ".".join(map(str, error.path))
        text = f"{place}: {words}" if place else words
        return text.encode("utf-8", "replace").decode()

    @cached_property
    def _validator(self) -> "Validator":
        from jsonschema import Draft202012Validator

        return Draft202012Validator(self._schema)


def _unknown(error: "ValidationError") -> str:
    """Return a message with the first unknown argument, and the most similar known argument."""
    refusing: Any = error.schema
    sent: Any = error.instance
    known = list(refusing["properties"])
    name = shorten(next(str(name) for name in sent if name not in known), MAX_NAME)
    near = difflib.get_close_matches(name, known, n=1)
    hint = f"did you mean {near[0]!r}?" if near else f"known are {', '.join(known)}"
    return f"unknown argument {name!r}: {hint}"


class Toolset(ABC):
    """A named set of tools that follows one contract; each contract has a subclass.

    The caller may change results, because this doesn't affect the toolset.
    """

    name: ClassVar[str]

    def __init__(self, context: Context, tools: Sequence[Tool]) -> None:
        """Offer the tools; if the context is read-only, offer only tools that change nothing."""
        self._person, self._token = context.person, context.token
        offered = (tool for tool in tools if tool.read_only or not context.read_only)
        self._tools = {tool.name: tool for tool in offered}

    def tools(self) -> Sequence[Tool]:
        """Return the tools; the description of a tool may contain the current skills."""
        return tuple(map(own, self._current()))

    def schemas(self, style: Style, *, strict: bool = False) -> list[Json]:
        """Return the tools in the format of a framework (see `described`).

        Raises `UsageProblem` if the style is unknown.
        """
        return [described(tool, style, strict=strict) for tool in self._current()]

    def call(self, tool: str, arguments: Any) -> Json:
        """Run one tool; return its result, or the contract's error.

        The method never raises an exception. ``arguments`` may be any JSON value, or JSON text. A
        blank text and null count as an empty object. If an optional argument is null, it counts as
        missing.
        """
        offered = self._tools.get(str(tool))
        if offered is None:
            return self._unknown(tool)
        sent = _parsed(arguments) if isinstance(arguments, str) else arguments
        with (
            audit_context(
                f"{self.name} {offered.name}",
                command="",  # `undo` must undo one call, and not all calls of a server
                person=self._person,
                token=self._token,
            ),
            proposing(_propose),
        ):
            return self._run(offered.name, given(offered.parameters, {} if sent is None else sent))

    async def acall(self, tool: str, arguments: Any) -> Json:
        """Run one tool as `call` does, in a thread.

        If the task is cancelled, the call continues until its end.
        """
        import asyncio

        return await asyncio.to_thread(self.call, tool, arguments)

    def _current(self) -> Sequence[Tool]:
        """Return the tools with their current descriptions."""
        return tuple(self._tools.values())

    @abstractmethod
    def _unknown(self, tool: object) -> Json:
        """Return the contract's error for a call of a tool that the toolset doesn't offer."""

    @abstractmethod
    def _run(self, tool: str, arguments: Any) -> Json:
        """Run a tool that the toolset offers; its ``arguments`` are not checked yet."""


def _parsed(text: str) -> Any:
    """Return the parsed JSON text; if it isn't JSON, return the text itself."""
    try:
        return json.loads(text) if text.strip() else {}
    except (ValueError, RecursionError):
        return text
