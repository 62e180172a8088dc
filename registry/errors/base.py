"""What all errors of the registry share."""

import re
from collections.abc import Mapping
from typing import Any, ClassVar

from registry.text import Fact


class RegistryError(Exception):
    """Something the registry was asked for can't be done.

    ``code`` is stable: the class's name in snake case, unless it says otherwise. ``facts`` say
    what and where, and are attributes, too.
    """

    code: ClassVar[str] = "registry_error"
    sentence: ClassVar[str] = "The request could not be carried out."

    def __init__(self, **facts: Any) -> None:
        super().__init__(*facts.values())
        self.facts: Mapping[str, Any] = facts
        vars(self).update(facts)

    def __init_subclass__(cls) -> None:
        if "code" not in vars(cls):
            cls.code = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", cls.__name__).lower()

    def __str__(self) -> str:
        near = " Did you mean {similar:or}?" if self.facts.get("similar") else ""
        return self.fill(self.sentence + near) + self._details()

    def fill(self, template: str) -> str:
        """Return a template with the facts filled in."""
        return template.format_map({key: Fact(value) for key, value in self.facts.items()})

    def _details(self) -> str:
        """Return what follows the sentence, where that depends on the facts."""
        return ""
