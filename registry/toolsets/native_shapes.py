"""The shapes that the tools of `native` take and return, as JSON Schemas."""

from typing import Final

from registry.model import SCOPES
from registry.toolsets.base import TYPES, Json, schema, text

PAGE: Final = 20
MAX_PAGE: Final = 200
PIECE: Final = 50_000
"""Characters (or, of a binary file, bytes) of one answer, where a text is longer."""
MAX_PIECE: Final = 1 << 20

STRING: Final[Json] = {"type": "string"}
STRINGS: Final[Json] = {"type": "array", "items": STRING}
INTEGER: Final[Json] = {"type": "integer"}
BOOLEAN: Final[Json] = {"type": "boolean"}
STRING_OR_NULL: Final[Json] = {"type": ["string", "null"]}
INTEGER_OR_NULL: Final[Json] = {"type": ["integer", "null"]}


def number(about: str, least: int, most: int | None, usual: int) -> Json:
    """Return the schema of a whole number within bounds, with its default."""
    bounds: Json = {"minimum": least} | ({} if most is None else {"maximum": most})
    return {**INTEGER, "description": about, "default": usual, **bounds}


def texts(about: str) -> Json:
    """Return the schema of a list of texts."""
    return {**STRINGS, "description": about}


def flag(about: str) -> Json:
    """Return the schema of a choice that is not made unless it is said."""
    return {**BOOLEAN, "default": False, "description": about}


def arguments(properties: Json, *required: str) -> Json:
    """Return the schema of a tool's arguments: these and no others."""
    return {**schema(properties, required), "additionalProperties": False}


NAME: Final = text("The skill's name or ref, as list_skills and search_skills return it")
HASH: Final = text(
    "The content_hash you have read: the change is refused if the skill is different by now"
)

FILTERS: Final[Json] = {
    "tags": texts("Only skills with all of these tags"),
    "any_tags": texts("Only skills with one of these tags"),
    "kind": text("Only skills of this kind"),
    "category": text("Only skills of this category"),
    "scope": {**text("Only skills of sources of this scope"), "enum": list(SCOPES)},
    "source": text("Only skills of this source"),
    "created_since": text("Created then or later: 2026-01-31, a timestamp, or an age such as 7d"),
    "created_until": text("Created then or earlier"),
    "updated_since": text("Changed then or later"),
    "updated_until": text("Changed then or earlier"),
}

OFFSET: Final = number("Skills to leave out: next_offset of the page before", 0, None, 0)

SKILL_FIELDS: Final[Json] = {
    "ref": STRING,
    "name": STRING,
    "description": STRING,
    "kind": STRING_OR_NULL,
    "category": STRING_OR_NULL,
    "tags": STRINGS,
    "scope": STRING,
    "source": STRING,
    "version": STRING_OR_NULL,
    "created_at": STRING,
    "updated_at": STRING,
    "content_hash": STRING_OR_NULL,
}
SKILL_KEYS: Final = tuple(SKILL_FIELDS)


def object_with(properties: Json) -> Json:
    """Return the schema of an object that has all of these properties."""
    return schema(properties, tuple(properties))


def answer(properties: Json) -> Json:
    """Return the schema of an answer: these properties, or an error alone."""
    return {
        "type": "object",
        "properties": {**properties, "error": object_with({"code": STRING, "message": STRING})},
        "anyOf": [{"required": list(properties)}, {"required": ["error"]}],
    }


LISTED: Final[Json] = {
    "type": "object",
    "description": f"A skill: {', '.join(SKILL_FIELDS)}",
    "properties": {"ref": STRING, "name": STRING, "description": STRING},
    "required": ["ref", "name", "description"],
}
"""One skill of a page. Clients check each answer: all keys of all skills would cost them more than
the answer took."""

_PAGE: Final[Json] = {
    "skills": {"type": "array", "items": LISTED},
    "total": INTEGER,
    "next_offset": INTEGER_OR_NULL,
}
PAGE_OF_SKILLS: Final = answer(_PAGE)
PAGE_OF_HITS: Final = answer({**_PAGE, "confidence": {"type": "number"}, "note": STRING_OR_NULL})
CHANGED_SKILL: Final = object_with({**SKILL_FIELDS, "path": STRING})
CHANGED: Final = answer({"skill": CHANGED_SKILL})
"""The answer of a tool that changes a skill."""

COPIES: Final = flag("Also its copies, the same files under the same name elsewhere; all or none")
FATE: Final[Json] = object_with({"changed": STRINGS, "left": STRINGS})
"""What a change did to the skill's copies, by ref."""

FILES: Final[Json] = {
    "type": "array",
    "items": {
        "type": "object",
        "properties": {
            "path": STRING,
            "size": INTEGER,
            "hash": STRING_OR_NULL,
            "executable": BOOLEAN,
        },
    },
}

ORIGIN: Final[Json] = {
    "type": ["object", "null"],
    "description": "Where a skill of a remote source comes from",
    "properties": {
        "url": STRING,
        "ref": STRING_OR_NULL,
        "commit": STRING_OR_NULL,
        "path": STRING,
    },
}

PARAMETERS: Final[Json] = {
    "type": "array",
    "description": "Parameters of the skill, written as a table",
    "items": arguments(
        {
            "name": {"type": "string", "minLength": 1},
            "type": {**STRING, "enum": list(TYPES), "default": TYPES[0]},
            "description": STRING,
            "required": {"type": "boolean", "default": False},
            "default": {"type": [*TYPES, "null"], "description": "The value where none is given"},
        },
        "name",
    ),
}

FIELDS: Final[Json] = {
    "body": text("The Markdown instructions below the front matter"),
    "tags": texts("Words to find it by"),
    "kind": text("Its kind, such as workflow or reference"),
    "parameters": PARAMETERS,
}
DESCRIPTION: Final = text("What the skill does and when to use it")
