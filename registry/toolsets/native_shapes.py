"""The shapes that the tools of `native` take and return, as JSON Schemas."""

from typing import Final

from registry.model import SCOPES
from registry.toolsets.base import Json

PAGE: Final = 20
MOST_ON_PAGE: Final = 200
PIECE: Final = 50_000
"""Characters (or, of a binary file, bytes) of one answer, where a text is longer."""
MOST_IN_PIECE: Final = 1 << 20

TYPES: Final = ("string", "number", "boolean", "array", "object")


def text(about: str) -> Json:
    """Return the schema of a text."""
    return {"type": "string", "description": about}


def number(about: str, least: int, most: int | None, usual: int) -> Json:
    """Return the schema of a whole number within bounds, with its default."""
    bounds: Json = {"minimum": least} | ({} if most is None else {"maximum": most})
    return {"type": "integer", "description": about, "default": usual, **bounds}


def texts(about: str) -> Json:
    """Return the schema of a list of texts."""
    return {"type": "array", "items": {"type": "string"}, "description": about}


def arguments(properties: Json, *required: str) -> Json:
    """Return the schema of a tool's arguments: these and no others."""
    return {
        "type": "object",
        "properties": properties,
        "required": list(required),
        "additionalProperties": False,
    }


def nullable(kind: str) -> Json:
    """Return the schema of a value that may be unknown."""
    return {"type": [kind, "null"]}


NAME: Final = text("The skill's name or ref, as list_skills and search_skills return it")
HASH: Final = text(
    "The content_hash you have read: the change is refused if the skill is different by now"
)

FILTERS: Final[Json] = {
    "tags": texts("Only skills with all of these tags"),
    "any_tags": texts("Only skills with one of these tags"),
    "kind": text("Only skills of this kind"),
    "category": text("Only skills of this category"),
    "scope": {"enum": list(SCOPES), "description": "Only skills of sources of this scope"},
    "source": text("Only skills of this source"),
    "created_since": text("Created then or later: 2026-01-31, a timestamp, or an age such as 7d"),
    "created_until": text("Created then or earlier"),
    "updated_since": text("Changed then or later"),
    "updated_until": text("Changed then or earlier"),
}

OFFSET: Final = number("Skills to leave out: next_offset of the page before", 0, None, 0)

SKILL_FIELDS: Final[Json] = {
    "ref": {"type": "string"},
    "name": {"type": "string"},
    "description": {"type": "string"},
    "kind": nullable("string"),
    "category": nullable("string"),
    "tags": {"type": "array", "items": {"type": "string"}},
    "scope": {"type": "string"},
    "source": {"type": "string"},
    "version": nullable("string"),
    "created_at": {"type": "string"},
    "updated_at": {"type": "string"},
    "content_hash": nullable("string"),
}
SKILL_KEYS: Final = tuple(SKILL_FIELDS)

PROBLEM: Final[Json] = {
    "type": "object",
    "properties": {"code": {"type": "string"}, "message": {"type": "string"}},
    "required": ["code", "message"],
}


def answer(properties: Json, *optional: str) -> Json:
    """Return the schema of an answer: these properties, or an error alone."""
    required = [key for key in properties if key not in optional]
    return {
        "type": "object",
        "properties": {**properties, "error": PROBLEM},
        "anyOf": [{"required": required}, {"required": ["error"]}],
    }


def record(**more: Json) -> Json:
    """Return the schema of a skill, with ``more`` beyond what a listing shows."""
    fields = {**SKILL_FIELDS, **more}
    return {"type": "object", "properties": fields, "required": list(fields)}


LISTED: Final[Json] = {
    "type": "object",
    "description": f"A skill: {', '.join(SKILL_FIELDS)}",
    "properties": {key: SKILL_FIELDS[key] for key in ("ref", "name", "description")},
    "required": ["ref", "name", "description"],
}
"""One skill of a page. Clients check each answer: all keys of all skills would cost them more than
the answer took."""
TOTAL: Final[Json] = {"total": {"type": "integer"}, "next_offset": nullable("integer")}
PATH: Final[Json] = {"path": {"type": "string"}}

FILES: Final[Json] = {
    "type": "array",
    "items": {
        "type": "object",
        "properties": {
            "path": {"type": "string"},
            "size": {"type": "integer"},
            "hash": nullable("string"),
            "executable": {"type": "boolean"},
        },
    },
}

PARAMETERS: Final[Json] = {
    "type": "array",
    "description": "Parameters of the skill, written as a table",
    "items": {
        "type": "object",
        "properties": {
            "name": {"type": "string", "minLength": 1},
            "type": {"enum": list(TYPES), "default": "string"},
            "description": {"type": "string"},
            "required": {"type": "boolean", "default": False},
            "default": {"description": "The value where none is given"},
        },
        "required": ["name"],
        "additionalProperties": False,
    },
}

FIELDS: Final[Json] = {
    "body": text("The Markdown instructions below the front matter"),
    "tags": texts("Words to find it by"),
    "kind": text("Its kind, such as workflow or reference"),
    "parameters": PARAMETERS,
}
DESCRIPTION: Final = text("What the skill does and when to use it")
