"""What a skill's front matter says about the surroundings it wants.

The keys are ``ethos.fallback_for_tools``, ``ethos.env_required`` and
``ethos.external_cli_alternatives``, nested or dotted, also below ``metadata``, in any case and with
any separators (CONVENTIONS.md, "Dialects"; contracts/NOTES.md, ethos).
"""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from registry.document import shapes
from registry.model import JsonValue


@dataclass(frozen=True, slots=True)
class Needs:
    """What the surroundings of a skill must lack (``fallback_for``) or have (the others).

    Of ``programs`` one is enough.
    """

    fallback_for: tuple[str, ...] = ()
    variables: tuple[str, ...] = ()
    programs: tuple[str, ...] = ()


NOTHING: Final = Needs()

_KEYS: Final = {
    "ethosfallbackfortools": "fallback_for",
    "ethosenvrequired": "variables",
    "ethosexternalclialternatives": "programs",
}
_SECTIONS: Final = frozenset({"ethos", "metadata", "metadataethos"})
_SEPARATORS: Final = re.compile(r"[\W_]+")


def read_needs(front_matter: str | None) -> Needs:
    """Read the needs out of stored front matter JSON; a value of no known shape says nothing."""
    if front_matter is None:
        return NOTHING
    values = json.loads(front_matter)
    return needs_of(values) if isinstance(values, Mapping) else NOTHING


def needs_of(values: Mapping[str, JsonValue]) -> Needs:
    """Read the needs out of front matter."""
    found: dict[str, tuple[str, ...]] = {}
    for path, value in _paths(values, ""):
        field = _KEYS.get(path.removeprefix("metadata"))
        if field is not None and not found.get(field):
            found[field] = _names(value)
    return Needs(**found) if any(found.values()) else NOTHING


def _paths(values: Mapping[str, JsonValue], prefix: str) -> Iterator[tuple[str, JsonValue]]:
    """Yield values with the keys that lead to them, in one word without case and separators."""
    for key, value in values.items():
        path = prefix + _SEPARATORS.sub("", key.casefold())
        section = shapes.from_json(value) if isinstance(value, str) else value
        if path in _SECTIONS and isinstance(section, Mapping):
            yield from _paths(section, path)
        else:
            yield path, value


def _names(value: JsonValue) -> tuple[str, ...]:
    try:
        return shapes.unique(filter(None, shapes.names(value)))
    except shapes.UnknownShape:
        return ()
