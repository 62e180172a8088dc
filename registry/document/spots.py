"""Where a field stands in front matter, in whatever dialect."""

from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

from registry.document import shapes
from registry.document.fields import Places, folded, places
from registry.document.source import Path
from registry.model import JsonValue

# As `normalise` reads them (a test compares them).
TAGS: Final = places(
    ".tags", "metadata.tags", "hermes.tags", "claw.tags", "claw.keywords", ".keywords"
)
KIND: Final = places(".kind", "top-ethos.kind", "ethos.kind", "metadata.kind", ".type")
DESCRIPTION: Final = places(".description")
PARAMETERS: Final = places(".parameters")
NAME: Final = places(".name")

_CLAW: Final = ("openclaw", "clawdbot", "clawdis", "moltbot")


class Spot(NamedTuple):
    """A key of the front matter that a field is read from, and the value it has now."""

    path: Path
    value: JsonValue

    @property
    def filled(self) -> bool:
        """Whether there is a value."""
        return self.value not in (None, "", [])


def spots(values: Mapping[str, JsonValue], where: Places) -> list[Spot]:
    """Return the keys at ``where`` that the front matter has, with or without a value."""
    sections = _sections(values)
    found = []
    for section, key in where:
        origin, mapping = sections.get(section, ((), {}))
        if key in mapping:
            name, value = mapping[key]
            found.append(Spot((*origin, name), value))
    return found


def without(values: Mapping[str, JsonValue], fields: Iterable[Places]) -> dict[str, Any]:
    """Return front matter without the values of ``fields``, and without an empty `metadata`."""
    paths = [spot.path for where in fields for spot in spots(values, where)]
    result: dict[str, Any] = dict(values)
    for path in paths:
        inner = result
        for key in path[:-1]:
            below = inner[key]
            inner[key] = inner = dict(below) if isinstance(below, Mapping) else {}
        inner.pop(path[-1], None)
    return {key: value for key, value in result.items() if value or key.casefold() != "metadata"}


def _sections(
    values: Mapping[str, JsonValue],
) -> dict[str, tuple[Path, dict[str, tuple[str, JsonValue]]]]:
    """Return the mappings that keys are looked up in, and the path to each (see `Fields`)."""
    top = folded(values)
    found: dict[str, tuple[Path, dict[str, tuple[str, JsonValue]]]] = {"": ((), top)}

    def add(section: str, pair: tuple[str, JsonValue], origin: Path) -> None:
        name, value = pair
        if isinstance(value, str):
            value = shapes.from_json(value)
        if isinstance(value, Mapping):
            found[section] = ((*origin, name), folded(value))

    if "ethos" in top:
        add("top-ethos", top["ethos"], ())
    if "metadata" in top:
        add("metadata", top["metadata"], ())
    if "metadata" in found:
        (name,), inner = found["metadata"][0], found["metadata"][1]
        for key in (*_CLAW, "hermes", "ethos"):
            section = "claw" if key in _CLAW else key
            if key in inner and section not in found:
                add(section, inner[key], (name,))
    return found
