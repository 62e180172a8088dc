"""The base of all errors of the registry, and errors about invalid requests."""

import re
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from registry.text import Fact, masked


class RegistryError(Exception):
    """The registry can't carry out the request.

    ``code`` never changes. It is the class's name in snake case, unless the class sets another
    code. ``facts`` are the details of the error; each is also an attribute, which the class
    declares. Passwords and tokens in addresses are masked in them. Errors can be copied and
    pickled.
    """

    code: ClassVar[str] = "registry_error"
    sentence: ClassVar[str] = "The request could not be carried out."

    def __init__(self, **facts: Any) -> None:
        facts = {key: _masked(value) for key, value in facts.items()}
        super().__init__(*facts.values())
        self.facts: Mapping[str, Any] = facts
        vars(self).update(facts)

    def __init_subclass__(cls) -> None:
        if "code" not in vars(cls):
            cls.code = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", cls.__name__).lower()

    def __reduce__(self) -> tuple[Any, ...]:
        # `Exception` itself would pass the details without their names
        return _made_again, (type(self), dict(self.facts)), vars(self)

    def __str__(self) -> str:
        near = " Did you mean {similar:or}?" if self.facts.get("similar") else ""
        return self.fill(self.sentence + near) + self._details()

    def fill(self, template: str) -> str:
        """Return a template with the values of details in place of their names."""
        return template.format_map({key: Fact(value) for key, value in self.facts.items()})

    def _details(self) -> str:
        """Return text to append to the sentence, which depends on the details."""
        return ""


def _masked(value: Any) -> Any:
    if isinstance(value, str):
        return masked(value)
    if isinstance(value, list) and all(isinstance(one, str) for one in value):
        return [masked(one) for one in value]
    return value


def _made_again(kind: type[RegistryError], facts: dict[str, Any]) -> RegistryError:
    error = kind.__new__(kind)
    RegistryError.__init__(error, **facts)
    return error


class NotFound(RegistryError, LookupError):
    """The skill, source or other item doesn't exist, or isn't visible to the user."""


class Conflict(RegistryError):
    """The current state, or another change at the same time, conflicts with the request."""


class Invalid(RegistryError, ValueError):
    """The given value is invalid, whatever the state of the registry is."""


class Unavailable(RegistryError):
    """Another process uses the resource; the same request may succeed later."""


class UsageProblem(Invalid):
    """The request is invalid; ``message`` gives the reason."""

    code = "usage"
    sentence = "{message}"

    message: str


class SettingsProblem(Invalid):
    """The settings file can't be used."""

    code = "settings_invalid"
    sentence = "The settings file {path} can't be used: {message}"

    path: str
    message: str

    def _details(self) -> str:
        return "" if self.facts["message"].endswith("?") else "."


class PersonalityNotFound(NotFound):
    """The settings have no personality with this name."""

    sentence = "No personality named {name:q}."

    name: str
    similar: Sequence[str]
    known: Sequence[str]

    def _details(self) -> str:
        if self.facts["similar"]:
            return ""
        if self.facts["known"]:
            return self.fill(" The settings have {known:or}.")
        return " The settings have no personalities. Add it under the key personalities."


class AgentNotFound(NotFound):
    """No agent has this name (details: ``name``, ``similar`` names, and all ``known`` names)."""

    sentence = "No agent named {name:q}."

    name: str
    similar: Sequence[str]
    known: Sequence[str]


class ToolsetNotFound(NotFound):
    """No toolset has this name (details: ``name``, ``similar`` names, and all ``known`` names)."""

    sentence = "No toolset named {name:q}. Known toolsets: {known:list}."

    name: str
    similar: Sequence[str]
    known: Sequence[str]


class FindingUnknown(NotFound):
    """No finding has this code or prefix (details: ``name``, and ``similar`` codes)."""

    sentence = "There are no findings with the code {name:q}."

    name: str
    similar: Sequence[str]


class FolderMissing(NotFound):
    """No folder exists at a given path."""

    sentence = "There is no folder {path:q}."

    path: str


class TokenNotFound(NotFound):
    """This user has no token with this name or number."""

    sentence = "There is no token {name:q}."

    name: str
