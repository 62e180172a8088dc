"""Behaviours of malicious skills, as data; `registry.document.security` looks for them."""

from collections.abc import Mapping
from typing import Final

from registry.document.behaviours import (
    concealment,
    decoding,
    disclosure,
    execution,
    packages,
    persistence,
    persuasion,
    supply,
    theft,
)
from registry.document.behaviours.languages import FOREIGN
from registry.document.behaviours.table import Behaviour, SecurityRule, rules

__all__ = ["BEHAVIOURS", "BEHAVIOUR_RULES", "FOREIGN"]

_THEMES: Final = (
    execution,
    decoding,
    supply,
    packages,
    theft,
    disclosure,
    persistence,
    persuasion,
    concealment,
)

BEHAVIOURS: Final[tuple[Behaviour, ...]] = tuple(
    behaviour for theme in _THEMES for behaviour in theme.BEHAVIOURS
)

BEHAVIOUR_RULES: Final[Mapping[str, SecurityRule]] = rules("behaviour")
