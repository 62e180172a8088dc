"""What can be wrong with a request, before anything is looked at."""

from collections.abc import Sequence

from registry.errors.base import Invalid, NotFound


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


class DialectNotFound(NotFound):
    """The settings name a dialect that no package has: ``name``, ``similar``, ``known``."""

    sentence = "No dialect named {name:q} is installed."

    name: str
    similar: Sequence[str]
    known: Sequence[str]

    def _details(self) -> str:
        if self.facts["similar"] or not self.facts["known"]:
            return ""
        return self.fill(" Installed: {known:list}.")


class DialectUnusable(Invalid):
    """A dialect that the settings name can't be loaded: ``name``, ``reason``."""

    sentence = "The dialect {name:q} can't be used: {reason}."

    name: str
    reason: str


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
