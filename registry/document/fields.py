"""Read the fields of a front matter, whatever dialect or spelling the keys have."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final, NamedTuple, TypeAlias, TypeVar

from registry.document import coerce
from registry.document.dates import parse_date
from registry.document.findings import finding, printable
from registry.document.frontmatter import FOREIGN_KEYS
from registry.document.yaml_text import YamlReading
from registry.model import Diagnostic, JsonValue, Parameter

_T = TypeVar("_T")
Path: TypeAlias = tuple[str, ...]
Places: TypeAlias = Sequence[tuple[str, str]]

# Sections below `metadata`, by the name in `Places`; OpenClaw has used several names.
_SECTIONS: Final = (
    *((name, "claw") for name in ("openclaw", "clawdbot", "clawdis", "moltbot")),
    ("hermes", "hermes"),
    ("ethos", "ethos"),
)
_SEPARATORS: Final = str.maketrans("", "", "-_.")


_NEEDS: Final = re.compile(
    "fallback.*for.*tools|env.*required|external.*cli.*alternatives", re.IGNORECASE | re.DOTALL
)


def may_name_needs(front_matter: str) -> bool:
    """Tell whether a front matter (JSON) may name requirements (`visibility.rules.Needs`).

    This may also be true for front matter without requirements.
    """
    return _NEEDS.search(front_matter) is not None


def places(paths: str) -> Places:
    """Parse words of the form ``section.key`` into pairs; at the top level, the section is ""."""
    return tuple(
        (section, key) for section, _, key in (path.partition(".") for path in paths.split())
    )


class FieldValue(NamedTuple):
    """A value in the front matter, with its path (the keys that lead to the value).

    ``line`` is the line of the first of these keys.
    """

    path: Path
    value: JsonValue
    line: int | None

    @property
    def filled(self) -> bool:
        """Whether the value is neither null nor empty."""
        return self.value not in (None, "", [])


class Fields:
    """Looks up keys in a front matter, and collects ``findings`` about unreadable values."""

    def __init__(self, reading: YamlReading) -> None:
        self.findings: list[Diagnostic] = []
        self._lines = reading.lines
        top = folded(reading.values)
        # For each section: the keys that lead to it, and its mapping by folded key (see `_fold`).
        self._sections: dict[str, tuple[Path, dict[str, tuple[str, JsonValue]]]] = {"": ((), top)}
        if "ethos" in top:
            self._add("top-ethos", *top["ethos"])
        if "metadata" in top:
            name, value = top["metadata"]
            value = coerce.from_json(value) if isinstance(value, str) else value
            if self._add("metadata", name, value):
                inner = self._sections["metadata"][1]
                for key, section in _SECTIONS:
                    if key in inner and section not in self._sections:
                        self._add(section, *inner[key], origin=(name,))
            elif value not in (None, "", []):
                self.unknown(self._value((name,), value))

    def present(self, where: Places) -> Iterator[FieldValue]:
        """Yield the values (even empty ones) of the keys at ``where`` that the front matter has."""
        sections = self._sections
        for section, key in where:
            if section in sections and key in (found := sections[section])[1]:
                name, value = found[1][key]
                yield self._value((*found[0], name), value)

    def values(self, where: Places) -> Iterator[FieldValue]:
        """Yield the values of the keys at ``where``, except null and empty values."""
        return filter(lambda found: found.value not in (None, ""), self.present(where))

    def read(self, where: Places, shape: Callable[[JsonValue], _T | None]) -> _T | None:
        """Return the first value at ``where`` that the function ``shape`` can read.

        Returns None if there is none.
        """
        for value in self.values(where):
            try:
                result = shape(value.value)
            except coerce.UnknownShape:
                self.unknown(value)
                continue
            if result is not None:
                return result
        return None

    def words(self, where: Places, shape: Callable[[JsonValue], Iterator[str]]) -> tuple[str, ...]:
        """Return the words of the first value at ``where`` that contains any words."""
        return self.read(where, lambda value: coerce.unique(shape(value)) or None) or ()

    def unknown(self, value: FieldValue) -> None:
        """Add a finding about a value of an unsupported type."""
        what = "mapping" if isinstance(value.value, Mapping) else "list"
        if isinstance(value.value, str):
            what = f"text `{printable(value.value, 40)}`"
        message = (
            f"`{printable('.'.join(value.path))}` is a {what} of a shape that is not understood"
        )
        fix = "write the value as the documentation shows; until then, it is stored but ignored"
        self.findings.append(finding("value-shape", message, value.line, fix))

    def _value(self, path: Path, value: JsonValue) -> FieldValue:
        return FieldValue(path, value, self._lines.get(path[0]))

    def _add(self, section: str, name: str, value: JsonValue, origin: Path = ()) -> bool:
        """Add ``value`` as a section in which keys are looked up; return whether this is possible.

        ``value`` must be a mapping, or the JSON text of a mapping.
        """
        if isinstance(value, str):
            value = coerce.from_json(value)
        if isinstance(value, Mapping):
            self._sections[section] = ((*origin, name), folded(value))
        return isinstance(value, Mapping)


def folded(mapping: Mapping[str, JsonValue]) -> dict[str, tuple[str, JsonValue]]:
    """Return ``mapping`` with folded keys (see `_fold`).

    If several keys have the same folded form, the first of them with a value counts.
    """
    found: dict[str, tuple[str, JsonValue]] = {}
    for key, value in mapping.items():
        folded = _fold(key)
        if folded not in found or found[folded][1] is None:
            found[folded] = (key, value)
    return found


@lru_cache(maxsize=4096)
def _fold(key: str) -> str:
    """Return ``key`` in lower case and without separators.

    `createdAt` and `Created-At` give the same result.
    """
    key = "".join(key.casefold().translate(_SEPARATORS).split()).lstrip("+")
    return FOREIGN_KEYS.get(key, key)


# The keys that can have each field, in order of precedence: `section.key`, both folded (see
# `_fold`). At the top level, the section is empty. `claw` means all names of OpenClaw.
NAME: Final = places(".name")
DESCRIPTION: Final = places(".description")
TAGS: Final = places(".tags metadata.tags hermes.tags claw.tags claw.keywords .keywords")
KIND: Final = places(".kind top-ethos.kind ethos.kind metadata.kind .type")
PARAMETERS: Final = places(".parameters")
_CATEGORY: Final = places(".category metadata.category claw.category hermes.category .domain")
_VERSION: Final = places("metadata.version .version")
_AUTHOR: Final = places("metadata.author .author metadata.authors metadata.skillauthor .authors")
_CREATED: Final = places(".createdat .created .dateadded .date metadata.createdat metadata.created")
_REQUIRED_TOOLS: Final = places(
    ".requiredtools top-ethos.requiredtools .ethosrequiredtools metadata.requiredtools "
    "ethos.requiredtools metadata.ethosrequiredtools hermes.requirestools hermes.requiredtools"
)
_ALLOWED_TOOLS: Final = places(".allowedtools .tools")
_LICENSE: Final = places(".license .licence metadata.license")
_COMPATIBILITY: Final = places(".compatibility")
_HIDDEN: Final = places(".disablemodelinvocation")


def normalise(reading: YamlReading) -> tuple[dict[str, Any], list[Diagnostic]]:
    """Return the fields of a `Document`, in their canonical form, and the findings.

    ``name`` and ``description`` are missing if the front matter doesn't have them.
    """
    fields = Fields(reading)
    found: dict[str, Any] = {
        "kind": fields.read(KIND, coerce.one_word),
        "category": fields.read(_CATEGORY, coerce.one_word),
        "version": fields.read(_VERSION, coerce.one_text),
        "author": fields.read(_AUTHOR, coerce.people),
        "license": fields.read(_LICENSE, _free_text),
        "compatibility": fields.read(_COMPATIBILITY, _free_text),
        "tags": _tags(fields),
        "created": _created(fields),
        "required_tools": fields.words(_REQUIRED_TOOLS, coerce.names),
        "allowed_tools": fields.words(_ALLOWED_TOOLS, coerce.tools),
        "parameters": fields.read(PARAMETERS, _parameters) or (),
        "hidden": fields.read(_HIDDEN, coerce.truth) is True,
    }
    for key, where in (("name", NAME), ("description", DESCRIPTION)):
        if (value := next(fields.values(where), None)) and (text := _prose(fields, key, value)):
            found[key] = text
    return found, fields.findings


def _tags(fields: Fields) -> tuple[str, ...]:
    """Return the tags from all keys that may have tags, without duplicates."""
    words: dict[str, None] = {}
    last: FieldValue | None = None
    long = 0
    for value in fields.values(TAGS):
        try:
            for tag in coerce.tags(value.value):
                last = value
                if len(tag) > coerce.MAX_TAG_LENGTH:
                    long += 1
                else:
                    words[tag] = None
        except coerce.UnknownShape:
            fields.unknown(value)
    if last and (long or len(words) > coerce.MAX_TAGS):
        message = (
            f"only {coerce.MAX_TAGS} tags of at most {coerce.MAX_TAG_LENGTH} characters are kept"
        )
        fix = "keep only the tags that people search for"
        fields.findings.append(finding("tags-over-limit", message, last.line, fix))
    return tuple(words)[: coerce.MAX_TAGS]


def _created(fields: Fields) -> str | None:
    """Return the first readable date.

    If there are dates but none is readable, add a finding about the first one.
    """
    unreadable: FieldValue | None = None
    for value in fields.values(_CREATED):
        if isinstance(value.value, str):
            if moment := parse_date(value.value):
                return moment
            unreadable = unreadable or value
    if unreadable:
        shown = printable(str(unreadable.value), 40)
        message = f"`{printable('.'.join(unreadable.path), 40)}` is not a date: `{shown}`"
        fix = "write e.g. `2026-01-15` or `2026-01-15T09:30:00Z`"
        fields.findings.append(finding("date-unreadable", message, unreadable.line, fix))
    return None


def _prose(fields: Fields, key: str, value: FieldValue) -> str:
    """Return the name or the description as plain text."""
    text = value.value
    if not isinstance(text, str):
        message = f"the value of `{key}` is not text, but is used as if it were"
        fix = "put the value in double quotes"
        fields.findings.append(finding("value-shape", message, value.line, fix))
        text = _source(text)
    text = text.strip()
    cleaned = coerce.CONTROL.sub("", text).strip()
    if key == "name" and not cleaned.isprintable():
        cleaned = " ".join(cleaned.split())
    if cleaned != text:
        message = f"`{key}` has control characters, which were left out"
        fix = "delete the control characters, and write a name on one line"
        fields.findings.append(finding("control-characters", message, value.line, fix))
    if key == "name" and len(cleaned) > coerce.MAX_WORD_LENGTH:
        fields.unknown(value._replace(value=cleaned))
        return ""
    return cleaned


def _source(value: JsonValue) -> str:
    """Return a list or mapping almost as the file has it, such as `[TODO]` or `{{name}}`."""
    if isinstance(value, Mapping):
        pairs = (
            str(key) if item is None else f"{key}: {_source(item)}" for key, item in value.items()
        )
        return "{" + ", ".join(pairs) + "}"
    if coerce.is_list(value):
        return "[" + ", ".join(map(_source, value)) + "]"  # type: ignore[arg-type]
    return "" if value is None else str(value)


def _free_text(value: JsonValue) -> str | None:
    if isinstance(value, str):
        return coerce.CONTROL.sub("", value).strip() or None
    return coerce.people(value)


def _parameters(value: JsonValue) -> tuple[Parameter, ...]:
    """Return the parameters in ``value``.

    ``value`` is a list of mappings, a JSON Schema, or a mapping by name.
    """
    required: frozenset[str] = frozenset()
    if isinstance(value, str):
        value = coerce.from_json(value)
    if isinstance(value, Mapping) and isinstance(value.get("properties"), Mapping):
        listed = value.get("required")
        required = frozenset(coerce.texts(listed) if coerce.is_list(listed) else ())
        value = value["properties"]
    if isinstance(value, Mapping):
        items: list[tuple[str | None, JsonValue]] = list(value.items())
    elif isinstance(value, Sequence) and not isinstance(value, str):
        items = [(None, item) for item in value]
    else:
        raise coerce.UnknownShape
    found: dict[str, Parameter] = {}
    for key, item in items:
        facts = item if isinstance(item, Mapping) else {"description": item}
        name = key if key is not None else facts.get("name")
        if not isinstance(name, str) or not name.strip():
            raise coerce.UnknownShape
        name = coerce.clean_line(name)
        flag = facts.get("required")
        found.setdefault(
            name,
            Parameter(
                name=name,
                type=coerce.one_text(facts.get("type")) or "string",
                description=coerce.one_text(facts.get("description")) or "",
                required=coerce.truth(flag) if isinstance(flag, str) else name in required,
                default=facts.get("default"),
            ),
        )
    return tuple(found.values())
