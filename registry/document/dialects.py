"""Dialects of front matter that packages add (docs/python.md).

A package names its dialects by entry points of the group `GROUP`. One is loaded where the settings
name it, and not before: looking through what is installed takes longer than a listing.
"""

import difflib
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import replace
from datetime import date
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

from registry.document.fields import normalise
from registry.document.findings import finding, printable
from registry.document.yaml_text import MAX_NESTING, SURROGATES, Reading
from registry.errors import DialectNotFound, DialectUnusable
from registry.model import Diagnostic, JsonValue
from registry.text import in_one_line

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

GROUP: Final = "skill_registry.dialects"

MAX_SAID: Final = 64 * 1024
"""Characters of what a dialect returns, as of the front matter of a file."""

Translate: TypeAlias = Callable[[dict[str, Any], str], object]


class Dialect(NamedTuple):
    """A dialect by its name.

    ``translate`` is given the front matter (a mapping of its own, all scalars as text) and the
    folder's name. It returns a mapping with the keys of the Agent Skills specification and those
    that are read beside them, or None where the front matter is not of its kind. ``version``
    is its package's: with another one all skills are read again.
    """

    name: str
    translate: Translate
    version: str = ""


Dialects: TypeAlias = Sequence[Dialect]


def load_dialects(names: Sequence[str]) -> tuple[Dialect, ...]:
    """Load the dialects of these names, in their order.

    Raises `DialectNotFound`, and `DialectUnusable` for one that can't be imported, or that two
    packages offer.
    """
    from importlib.metadata import entry_points

    offered: dict[str, list[EntryPoint]] = {}
    for point in entry_points(group=GROUP):
        offered.setdefault(point.name, []).append(point)
    return tuple(_load(name, offered) for name in names)


def _load(name: str, offered: "Mapping[str, Sequence[EntryPoint]]") -> Dialect:
    points = {point.value: point for point in offered.get(name, ())}
    if not points:
        near = difflib.get_close_matches(name, offered, n=1, cutoff=0.5)
        raise DialectNotFound(name=name, similar=near, known=sorted(offered))
    if len(points) > 1:
        raise DialectUnusable(name=name, reason=f"it is offered twice: {', '.join(sorted(points))}")
    (point,) = points.values()
    try:
        translate = point.load()
    except Exception as error:  # whatever its package does when it is imported
        raise DialectUnusable(name=name, reason=in_one_line(error)) from error
    if not callable(translate):
        raise DialectUnusable(name=name, reason=f"{point.value} is no function")
    return Dialect(name, translate, point.dist.version if point.dist else "")


def fill(
    fields: dict[str, Any], reading: Reading, folder_name: str, dialects: Dialects
) -> list[Diagnostic]:
    """Put into ``fields`` what a dialect says that the front matter does not say in our terms.

    The first dialect that knows the front matter counts. Returns what was noticed: what a dialect
    does wrong is a finding about this skill.
    """
    findings: list[Diagnostic] = []
    for dialect in dialects:
        try:
            said = dialect.translate(deepcopy(reading.values), folder_name)
            values = None if said is None else _Plain().mapping(said, 1)
        except Exception as error:  # noqa: BLE001  # whatever a package does
            message = f"the dialect `{dialect.name}` failed: {printable(in_one_line(error))}"
            fix = "correct or update its package, or take it out of the settings"
            findings.append(finding("dialect-failed", message, None, fix))
            continue
        if values is None:
            continue
        known, unread = normalise(Reading(values))
        taken = [key for key, value in known.items() if value and not fields.get(key)]
        fields.update({key: known[key] for key in taken})
        by = f"by the dialect `{dialect.name}`"
        findings += [replace(one, message=f"{one.message} ({by})") for one in unread]
        if taken:
            message = f"{', '.join(taken)}: read {by}, which other programs may not know"
            fix = "write these keys as the Agent Skills specification has them"
            findings.append(finding("dialect-read", message, None, fix))
        break
    return findings


class _Plain:
    """Makes what a dialect returned what front matter is: text, lists and mappings, so many."""

    def __init__(self) -> None:
        self._left = MAX_SAID

    def mapping(self, value: object, depth: int) -> dict[str, JsonValue]:
        """Return a mapping with texts as its keys. Raises TypeError and ValueError."""
        if not isinstance(value, Mapping):
            raise TypeError(f"it returned a {type(value).__name__} in the place of a mapping")
        made: dict[str, JsonValue] = {}
        for key, item in value.items():
            if not isinstance(key, str):
                raise TypeError(f"it returned a {type(key).__name__} as a key")
            made[self._text(key)] = self._value(item, depth)
        return made

    def _value(self, value: object, depth: int) -> JsonValue:
        if depth > MAX_NESTING:
            raise ValueError(f"it returned more than {MAX_NESTING} levels")
        if isinstance(value, Mapping):
            return self.mapping(value, depth + 1)
        if isinstance(value, list | tuple):
            return [self._value(item, depth + 1) for item in value]
        return None if value is None else self._text(_scalar(value))

    def _text(self, text: str) -> str:
        self._left -= len(text) + 1
        if self._left < 0:
            raise ValueError(f"it returned more than {MAX_SAID:,} characters")
        return SURROGATES.sub("\N{REPLACEMENT CHARACTER}", text.replace("\0", ""))


def _scalar(value: object) -> str:
    match value:
        case str():
            return value
        case bool():
            return str(value).lower()
        case int() | float():
            return str(value)
        case date():
            return value.isoformat()
    raise TypeError(f"it returned a {type(value).__name__}")
