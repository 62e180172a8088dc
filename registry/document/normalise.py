"""Dialects of front matter into canonical fields (CONVENTIONS.md, "Dialects").

Keys match regardless of case and separators. A value of a shape nobody reads is a warning, never a
failure; the raw front matter keeps it.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from registry.document import shapes
from registry.document.codes import finding
from registry.document.dates import parse_date
from registry.document.fields import Fields, Value, places
from registry.document.findings import printable
from registry.document.yaml_text import Reading
from registry.model import Diagnostic, JsonValue, Parameter

# Where each field is read from, the strongest first: `section.key`, both folded (see `_fold`);
# the section is empty at the top level, `claw` for OpenClaw by any of its names.
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


def normalise(reading: Reading) -> tuple[dict[str, Any], list[Diagnostic]]:
    """Return the canonical fields of a `Document` that ``reading`` gives, and findings.

    ``name`` and ``description`` are left out where the front matter has none.
    """
    fields = Fields(reading)
    found: dict[str, Any] = {
        "kind": fields.read(KIND, shapes.one_text),
        "category": fields.read(_CATEGORY, shapes.one_text),
        "version": fields.read(_VERSION, shapes.one_text),
        "author": fields.read(_AUTHOR, shapes.people),
        "license": fields.read(_LICENSE, _free_text),
        "compatibility": fields.read(_COMPATIBILITY, _free_text),
        "tags": _tags(fields),
        "created": _created(fields),
        "required_tools": fields.words(_REQUIRED_TOOLS, shapes.names),
        "allowed_tools": fields.words(_ALLOWED_TOOLS, shapes.tools),
        "parameters": fields.read(PARAMETERS, _parameters) or (),
        "hidden": fields.read(_HIDDEN, shapes.truth) is True,
    }
    for key, where in (("name", NAME), ("description", DESCRIPTION)):
        if (value := next(fields.values(where), None)) and (text := _prose(fields, key, value)):
            found[key] = text
    return found, fields.findings


def _tags(fields: Fields) -> tuple[str, ...]:
    """Return the union of the tags at all places."""
    words: dict[str, None] = {}
    last: Value | None = None
    long = 0
    for value in fields.values(TAGS):
        try:
            for tag in shapes.tags(value.value):
                last = value
                if len(tag) > shapes.MAX_TAG_LENGTH:
                    long += 1
                else:
                    words[tag] = None
        except shapes.UnknownShape:
            fields.unknown(value)
    if last and (long or len(words) > shapes.MAX_TAGS):
        message = (
            f"only {shapes.MAX_TAGS} tags of at most {shapes.MAX_TAG_LENGTH} characters are kept"
        )
        fix = "keep the tags that people would look for"
        fields.findings.append(finding("tags-over-limit", message, last.line, fix))
    return tuple(words)[: shapes.MAX_TAGS]


def _created(fields: Fields) -> str | None:
    """Return the first date that can be read; if there is none, note the first that can't."""
    unreadable: Value | None = None
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


def _prose(fields: Fields, key: str, value: Value) -> str:
    """Return the name or the description as people read it."""
    text = value.value
    if not isinstance(text, str):
        message = f"`{key}` is not text; it is read as text"
        fix = "put the value in double quotes"
        fields.findings.append(finding("value-shape", message, value.line, fix))
        text = _source(text)
    text = text.strip()
    cleaned = shapes.CONTROL.sub("", text).strip()
    if key == "name" and not cleaned.isprintable():
        cleaned = " ".join(cleaned.split())
    if cleaned != text:
        message = f"`{key}` has control characters, which were left out"
        fix = "delete them, and keep a name on one line"
        fields.findings.append(finding("control-characters", message, value.line, fix))
    return cleaned


def _source(value: JsonValue) -> str:
    """Return a list or mapping as it stood in the file, nearly: `[TODO]`, `{{name}}`."""
    if isinstance(value, Mapping):
        pairs = (
            str(key) if item is None else f"{key}: {_source(item)}" for key, item in value.items()
        )
        return "{" + ", ".join(pairs) + "}"
    if shapes.is_list(value):
        return "[" + ", ".join(map(_source, value)) + "]"  # type: ignore[arg-type]
    return "" if value is None else str(value)


def _free_text(value: JsonValue) -> str | None:
    if isinstance(value, str):
        return shapes.CONTROL.sub("", value).strip() or None
    return shapes.people(value)


def _parameters(value: JsonValue) -> tuple[Parameter, ...]:
    """Read parameters: a list of mappings, a JSON Schema, or a mapping by name."""
    required: frozenset[str] = frozenset()
    if isinstance(value, str):
        value = shapes.from_json(value)
    if isinstance(value, Mapping) and isinstance(value.get("properties"), Mapping):
        listed = value.get("required")
        required = frozenset(shapes.texts(listed) if shapes.is_list(listed) else ())
        value = value["properties"]
    if isinstance(value, Mapping):
        items: list[tuple[str | None, JsonValue]] = list(value.items())
    elif isinstance(value, Sequence) and not isinstance(value, str):
        items = [(None, item) for item in value]
    else:
        raise shapes.UnknownShape
    found: dict[str, Parameter] = {}
    for key, item in items:
        facts = item if isinstance(item, Mapping) else {"description": item}
        name = key if key is not None else facts.get("name")
        if not isinstance(name, str) or not name.strip():
            raise shapes.UnknownShape
        name = shapes.clean_line(name)
        flag = facts.get("required")
        found.setdefault(
            name,
            Parameter(
                name=name,
                type=shapes.one_text(facts.get("type")) or "string",
                description=shapes.one_text(facts.get("description")) or "",
                required=shapes.truth(flag) if isinstance(flag, str) else name in required,
                default=facts.get("default"),
            ),
        )
    return tuple(found.values())
