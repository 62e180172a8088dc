"""Where this machine keeps its folders is shown to its own user only."""

import os
import posixpath
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

from registry.catalog.why import Explanation
from registry.errors import RegistryError
from registry.model import Source
from registry.model.values import record

PLACES: Final = frozenset({"path", "location", "url"})
"""Keys of JSON that may hold a place of this machine. Paths below a skill's folder are relative."""

STRANGE: Final = frozenset({"front_matter"})
"""Keys whose values the author of a skill wrote."""


def is_place(text: object) -> bool:
    """Tell whether a text is a place of this machine: an absolute path, or a ``file:`` URL."""
    return isinstance(text, str) and (text.startswith(("/", "~", "\\", "file:")) or ":\\" in text)


def without_places(value: Any) -> Any:
    """Return a value as JSON in which the places of this machine are null."""
    value = record(value)
    if isinstance(value, list | tuple):
        return [without_places(one) for one in value]
    if not isinstance(value, dict):
        return value
    return {
        key: None
        if key in PLACES and is_place(one)
        else one
        if key in STRANGE
        else without_places(one)
        for key, one in value.items()
    }


def explained(found: Explanation, sources: Sequence[Source]) -> Explanation:
    """Return an explanation whose reasons name sources in the place of their folders."""

    def named(text: str) -> str:
        for source in sorted(sources, key=lambda one: -len(one.path)):
            text = text.replace(source.path, source.name)
        return text

    reasons = [
        replace(one, message=named(one.message), fix=one.fix and named(one.fix))
        for one in found.reasons
        if one.code != "project"  # which names the folder of the project
    ]
    return replace(found, reasons=tuple(reasons))


def sentence(error: RegistryError) -> str:
    """Return what an error says, with the names of files in the place of their absolute paths."""
    text = str(error).partition("\n")[0]
    for fact in error.facts.values():
        if isinstance(fact, str) and os.path.isabs(fact):
            text = text.replace(fact, posixpath.basename(fact))
    return text
