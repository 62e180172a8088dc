"""What all errors of the registry share, and what is wrong with a request."""

import re
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from registry.text import Fact, masked


class RegistryError(Exception):
    """Something the registry was asked for can't be done.

    ``code`` is stable: the class's name in snake case, unless it says otherwise. ``facts`` say
    what and where, and are also attributes; passwords and tokens of addresses are masked in them.
    Errors can be copied and pickled.
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
        # What Exception does instead calls the class with its values, by no name.
        return _made_again, (type(self), dict(self.facts)), vars(self)

    def __str__(self) -> str:
        near = " Did you mean {similar:or}?" if self.facts.get("similar") else ""
        return self.fill(self.sentence + near) + self._details()

    def fill(self, template: str) -> str:
        """Return a template with the facts filled in."""
        return template.format_map({key: Fact(value) for key, value in self.facts.items()})

    def _details(self) -> str:
        """Return what follows the sentence, where that depends on the facts."""
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
    """What was named is not there, or not for who asks."""


class Conflict(RegistryError):
    """What is there, or was done meanwhile, is in the way."""


class Invalid(RegistryError, ValueError):
    """What was given can't be right, whatever is there."""


class Unavailable(RegistryError):
    """Something else has it at the moment: the same may work later."""


class UsageProblem(Invalid):
    """A request that can't be understood: ``message`` says why."""

    code = "usage"
    sentence = "{message}"

    message: str


class SettingsProblem(Invalid):
    """The settings file can't be used: ``path`` and ``message``."""

    code = "settings_invalid"
    sentence = "The settings file {path} can't be used: {message}"

    path: str
    message: str

    def _details(self) -> str:
        return "" if self.facts["message"].endswith("?") else "."


class PersonalityNotFound(NotFound):
    """The settings know no personality of this name: ``name``, ``similar``, ``known``."""

    sentence = "No personality named {name:q}."

    name: str
    similar: Sequence[str]
    known: Sequence[str]

    def _details(self) -> str:
        if self.facts["similar"]:
            return ""
        if self.facts["known"]:
            return self.fill(" The settings have {known:or}.")
        return " The settings have none: add it under personalities."


class AgentNotFound(NotFound):
    """No agent has this name: ``name``, ``similar`` names, and all ``known`` ones."""

    sentence = "No agent named {name:q}."

    name: str
    similar: Sequence[str]
    known: Sequence[str]


class ToolsetNotFound(NotFound):
    """There is no toolset of this name: ``name``, ``similar``, ``known``."""

    sentence = "No toolset named {name:q}. There are {known:list}."

    name: str
    similar: Sequence[str]
    known: Sequence[str]


class FindingUnknown(NotFound):
    """No finding has this code, or a code that begins like this: ``name``, ``similar``."""

    sentence = "There are no findings with the code {name:q}."

    name: str
    similar: Sequence[str]


class FolderMissing(NotFound):
    """A path was given, and nothing is there: ``path``."""

    sentence = "There is no folder {path:q}."

    path: str


class TokenNotFound(NotFound):
    """This user made no token of this name or number: ``name``."""

    sentence = "There is no token {name:q}."

    name: str
