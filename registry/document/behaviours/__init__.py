"""Behaviours of malicious skills, as data; `registry.document.security` searches for them."""

from collections.abc import Mapping
from typing import Final

from registry.document.behaviours import (
    agents,
    asking,
    assembled,
    autorun,
    channels,
    concealment,
    control,
    decoding,
    disclosure,
    execution,
    gathering,
    leaks,
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
    assembled,
    autorun,
    supply,
    packages,
    theft,
    channels,
    leaks,
    asking,
    disclosure,
    persistence,
    control,
    agents,
    persuasion,
    concealment,
    gathering,
)

BEHAVIOURS: Final[tuple[Behaviour, ...]] = tuple(
    behaviour for theme in _THEMES for behaviour in theme.BEHAVIOURS
)

BEHAVIOUR_RULES: Final[Mapping[str, SecurityRule]] = rules("behaviour")
