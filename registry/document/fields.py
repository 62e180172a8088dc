"""Look keys up in front matter, whatever their spelling and whoever's dialect they are of."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Final, NamedTuple, TypeAlias, TypeVar

from registry.document import shapes
from registry.document.codes import finding
from registry.document.findings import printable
from registry.document.frontmatter import FOREIGN_KEYS
from registry.document.yaml_text import Reading
from registry.model import Diagnostic, JsonValue

_T = TypeVar("_T")
Path: TypeAlias = tuple[str, ...]
Places: TypeAlias = Sequence[tuple[str, str]]

# Sections below `metadata`, by what `Places` call them: OpenClaw had several names.
_SECTIONS: Final = (
    *((name, "claw") for name in ("openclaw", "clawdbot", "clawdis", "moltbot")),
    ("hermes", "hermes"),
    ("ethos", "ethos"),
)
_SEPARATORS: Final = str.maketrans("", "", "-_.")


def places(paths: str) -> Places:
    """Return ``section.key`` words as pairs; the section is empty at the top level."""
    return tuple(
        (section, key) for section, _, key in (path.partition(".") for path in paths.split())
    )


class Value(NamedTuple):
    """A value of the front matter, the keys that lead to it, and the line of the first of them."""

    path: Path
    value: JsonValue
    line: int | None

    @property
    def filled(self) -> bool:
        """Whether there is a value."""
        return self.value not in (None, "", [])


class Fields:
    """Looks keys up in one front matter and collects what it can't read in ``findings``."""

    def __init__(self, reading: Reading) -> None:
        self.findings: list[Diagnostic] = []
        self._lines = reading.lines
        top = folded(reading.values)
        # Each section: the keys that lead to it, and its mapping by folded key.
        self._sections: dict[str, tuple[Path, dict[str, tuple[str, JsonValue]]]] = {"": ((), top)}
        if "ethos" in top:
            self._add("top-ethos", *top["ethos"])
        if "metadata" in top:
            name, value = top["metadata"]
            value = shapes.from_json(value) if isinstance(value, str) else value
            if self._add("metadata", name, value):
                inner = self._sections["metadata"][1]
                for key, section in _SECTIONS:
                    if key in inner and section not in self._sections:
                        self._add(section, *inner[key], origin=(name,))
            elif value not in (None, "", []):
                self.unknown(self._value((name,), value))

    def present(self, where: Places) -> Iterator[Value]:
        """Yield the keys at ``where`` that the front matter has, with or without a value."""
        sections = self._sections
        for section, key in where:
            if section in sections and key in (found := sections[section])[1]:
                name, value = found[1][key]
                yield self._value((*found[0], name), value)

    def values(self, where: Places) -> Iterator[Value]:
        """Return what stands at ``where``, without what is null or empty."""
        return filter(lambda found: found.value not in (None, ""), self.present(where))

    def read(self, where: Places, shape: Callable[[JsonValue], _T | None]) -> _T | None:
        """Return the first value at ``where`` that ``shape`` can read, or None."""
        for value in self.values(where):
            try:
                result = shape(value.value)
            except shapes.UnknownShape:
                self.unknown(value)
                continue
            if result is not None:
                return result
        return None

    def words(self, where: Places, shape: Callable[[JsonValue], Iterator[str]]) -> tuple[str, ...]:
        """Return the words of the first value at ``where`` that has any."""
        return self.read(where, lambda value: shapes.unique(shape(value)) or None) or ()

    def unknown(self, value: Value) -> None:
        """Note a value of a shape that nobody reads."""
        what = "mapping" if isinstance(value.value, Mapping) else "list"
        if isinstance(value.value, str):
            what = f"text `{printable(value.value, 40)}`"
        message = (
            f"`{printable('.'.join(value.path))}` is a {what} of a shape that is not understood"
        )
        fix = "write it as the documentation shows; it is kept, but nothing is read from it"
        self.findings.append(finding("value-shape", message, value.line, fix))

    def _value(self, path: Path, value: JsonValue) -> Value:
        return Value(path, value, self._lines.get(path[0]))

    def _add(self, section: str, name: str, value: JsonValue, origin: Path = ()) -> bool:
        """Make the mapping ``value``, also one written as JSON text, a section to look in."""
        if isinstance(value, str):
            value = shapes.from_json(value)
        if isinstance(value, Mapping):
            self._sections[section] = ((*origin, name), folded(value))
        return isinstance(value, Mapping)


def folded(mapping: Mapping[str, JsonValue]) -> dict[str, tuple[str, JsonValue]]:
    """Return ``mapping`` by folded key; of keys that fold alike, the first that has a value."""
    found: dict[str, tuple[str, JsonValue]] = {}
    for key, value in mapping.items():
        folded = _fold(key)
        if folded not in found or found[folded][1] is None:
            found[folded] = (key, value)
    return found


@lru_cache(maxsize=4096)
def _fold(key: str) -> str:
    """Return ``key`` without case and separators: `createdAt`, `created_at` and `Created-At`."""
    key = "".join(key.casefold().translate(_SEPARATORS).split()).lstrip("+")
    return FOREIGN_KEYS.get(key, key)
