"""Look keys up in front matter, whatever their spelling and whoever's dialect they are of."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Final, NamedTuple, TypeAlias, TypeVar

from registry.document import shapes
from registry.document.codes import finding
from registry.document.findings import shorten
from registry.document.frontmatter import FOREIGN_KEYS
from registry.document.yaml_text import Reading
from registry.model import Diagnostic, JsonValue

_T = TypeVar("_T")
Places: TypeAlias = Sequence[tuple[str, str]]

_OPENCLAW: Final = ("openclaw", "clawdbot", "clawdis", "moltbot")
_SECTIONS: Final = (*_OPENCLAW, "hermes", "ethos")


def places(*paths: str) -> Places:
    """Return ``section.key`` texts as pairs; the section is empty at the top level."""
    return tuple((section, key) for section, _, key in (path.partition(".") for path in paths))


class Value(NamedTuple):
    """A value of the front matter, the path of keys to it, and the line of the outermost."""

    path: str
    value: JsonValue
    line: int | None


class Fields:
    """Looks keys up in one front matter and collects what it can't read in ``findings``."""

    def __init__(self, reading: Reading) -> None:
        self.findings: list[Diagnostic] = []
        self._reading = reading
        top = folded(reading.values)
        self._sections: dict[str, dict[str, tuple[str, JsonValue]]] = {"": top}
        self._origin: dict[str, tuple[str, ...]] = {"": ()}
        if "ethos" in top:
            self._add("top-ethos", top["ethos"], ())
        metadata = top.get("metadata")
        if metadata and self._add("metadata", metadata, (), complain=True):
            inner = self._sections["metadata"]
            for name in _SECTIONS:
                if name in inner:
                    section = "claw" if name in _OPENCLAW else name
                    if section not in self._sections:
                        self._add(section, inner[name], (metadata[0],))

    def values(self, where: Places) -> Iterator[Value]:
        """Yield what stands at ``where``, without what is null or empty."""
        sections = self._sections
        for section, key in where:
            found = sections.get(section)
            if found is None or key not in found:
                continue
            name, value = found[key]
            if value is None or value == "":
                continue
            path = (*self._origin[section], name)
            yield Value(".".join(path), value, self._reading.lines.get(path[0]))

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
            what = f"text `{shorten(value.value, 40)}`"
        message = f"`{shorten(value.path)}` is a {what} of a shape that is not understood"
        fix = "write it as the documentation shows; it is kept, but nothing is read from it"
        self.findings.append(finding("value-shape", message, value.line, fix))

    def _add(
        self,
        section: str,
        pair: tuple[str, JsonValue],
        origin: tuple[str, ...],
        *,
        complain: bool = False,
    ) -> bool:
        """Make the mapping of ``pair``, also one written as JSON text, a section to look in."""
        name, value = pair
        if isinstance(value, str):
            value = shapes.from_json(value)
        if not isinstance(value, Mapping):
            if complain and value not in (None, "", []):
                self.unknown(Value(name, value, self._reading.lines.get(name)))
            return False
        self._sections[section] = folded(value)
        self._origin[section] = (*origin, name)
        return True


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


_SEPARATORS: Final = str.maketrans("", "", "-_.")
