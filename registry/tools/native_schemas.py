"""What the tools of `native` take and return, as JSON Schemas with words for a model."""

from typing import Final

from registry.model import SCOPES
from registry.tools.base import Json, Tool

PAGE: Final = 50
MOST_ON_PAGE: Final = 200
PIECE: Final = 50_000
"""Characters (or, of a binary file, bytes) of one answer, where a text is longer."""
MOST_IN_PIECE: Final = 1 << 20

TYPES: Final = ("string", "number", "boolean", "array", "object")


def _text(about: str) -> Json:
    return {"type": "string", "description": about}


def _number(about: str, least: int, most: int | None, usual: int) -> Json:
    bounds: Json = {"minimum": least} | ({} if most is None else {"maximum": most})
    return {"type": "integer", "description": about, "default": usual, **bounds}


def _texts(about: str) -> Json:
    return {"type": "array", "items": {"type": "string"}, "description": about}


def _object(properties: Json, *required: str) -> Json:
    return {
        "type": "object",
        "properties": properties,
        "required": list(required),
        "additionalProperties": False,
    }


def _nullable(kind: str) -> Json:
    return {"type": [kind, "null"]}


_NAME: Final = _text("The skill's name or ref, as list_skills and search_skills return it")
_HASH: Final = _text(
    "The content_hash you have read: the change is refused if the skill is different by now"
)

FILTERS: Final[Json] = {
    "tags": _texts("Only skills with all of these tags"),
    "any_tags": _texts("Only skills with one of these tags"),
    "kind": _text("Only skills of this kind"),
    "category": _text("Only skills of this category"),
    "scope": {"enum": list(SCOPES), "description": "Only skills of sources of this scope"},
    "source": _text("Only skills of this source"),
    "created_since": _text("Created then or later: 2026-01-31, a timestamp, or an age such as 7d"),
    "created_until": _text("Created then or earlier"),
    "updated_since": _text("Changed then or later"),
    "updated_until": _text("Changed then or earlier"),
}

_OFFSET: Final = _number("Skills to leave out: next_offset of the page before", 0, None, 0)

_SKILL_FIELDS: Final[Json] = {
    "ref": {"type": "string"},
    "name": {"type": "string"},
    "description": {"type": "string"},
    "kind": _nullable("string"),
    "category": _nullable("string"),
    "tags": {"type": "array", "items": {"type": "string"}},
    "scope": {"type": "string"},
    "source": {"type": "string"},
    "version": _nullable("string"),
    "created_at": {"type": "string"},
    "updated_at": {"type": "string"},
    "content_hash": _nullable("string"),
}
SKILL_KEYS: Final = tuple(_SKILL_FIELDS)

_PROBLEM: Final[Json] = {
    "type": "object",
    "properties": {"code": {"type": "string"}, "message": {"type": "string"}},
    "required": ["code", "message"],
}


def _result(properties: Json, *optional: str) -> Json:
    """Return the schema of an answer: these properties, or an error alone."""
    required = [key for key in properties if key not in optional]
    return {
        "type": "object",
        "properties": {**properties, "error": _PROBLEM},
        "anyOf": [{"required": required}, {"required": ["error"]}],
    }


def _record(**more: Json) -> Json:
    fields = {**_SKILL_FIELDS, **more}
    return {"type": "object", "properties": fields, "required": list(fields)}


_SKILL: Final = _record()
_TOTAL: Final[Json] = {"total": {"type": "integer"}, "next_offset": _nullable("integer")}
_PATH: Final[Json] = {"path": {"type": "string"}}

_FILES: Final[Json] = {
    "type": "array",
    "items": {
        "type": "object",
        "properties": {
            "path": {"type": "string"},
            "size": {"type": "integer"},
            "hash": _nullable("string"),
            "executable": {"type": "boolean"},
        },
    },
}

_PARAMETERS: Final[Json] = {
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

_FIELDS: Final[Json] = {
    "body": _text("The Markdown instructions below the front matter"),
    "tags": _texts("Words to find it by"),
    "kind": _text("Its kind, such as workflow or reference"),
    "parameters": _PARAMETERS,
}
_DESCRIPTION: Final = _text("What the skill does and when to use it")

TOOLS: Final = (
    Tool(
        "list_skills",
        "List the skills there are, page by page, narrowed by any filters. To find what helps "
        "with a task, search_skills is better.",
        _object(
            {
                **FILTERS,
                "sort": {
                    "enum": ["name", "created", "updated"],
                    "default": "name",
                    "description": "The order; dates come newest first",
                },
                "reverse": {"type": "boolean", "default": False},
                "limit": _number("Skills on a page", 1, MOST_ON_PAGE, PAGE),
                "offset": _OFFSET,
            }
        ),
        _result({"skills": {"type": "array", "items": _SKILL}, **_TOTAL}),
    ),
    Tool(
        "search_skills",
        "Find skills by what they do, the best first. Plain words in any language; quotes keep "
        "words together.",
        _object(
            {
                "query": _text("What the skill should help with"),
                **FILTERS,
                "limit": _number("Skills on a page", 1, MOST_ON_PAGE, 10),
                "offset": _OFFSET,
            },
            "query",
        ),
        _result(
            {
                "skills": {
                    "type": "array",
                    "items": _record(score={"type": "number"}, snippet={"type": "string"}),
                },
                **_TOTAL,
            }
        ),
    ),
    Tool(
        "read_skill",
        "Read a skill before you follow it: its instructions (body) and the list of its files, as "
        "they are on disk now.",
        _object(
            {
                "name": _NAME,
                "offset": _number("Where in the body to begin: next_offset", 0, None, 0),
                "max_chars": _number("Characters of the body", 1, MOST_IN_PIECE, PIECE),
            },
            "name",
        ),
        _result(
            {
                "skill": _record(
                    path={"type": "string"},
                    tree_hash=_nullable("string"),
                    compatibility=_nullable("string"),
                    required_tools={"type": "array", "items": {"type": "string"}},
                    parameters={"type": "array", "items": {"type": "object"}},
                    files=_FILES,
                ),
                "body": {"type": "string"},
                "total_chars": {"type": "integer"},
                "next_offset": _nullable("integer"),
            }
        ),
    ),
    Tool(
        "read_skill_file",
        "Read one supporting file of a skill by its relative path, as read_skill lists it. "
        "A file that is no text comes in base64.",
        _object(
            {
                "name": _NAME,
                "path": _text("The file's path, relative to the skill's folder"),
                "offset": _number("Where to begin: next_offset", 0, None, 0),
                "max_chars": _number("Characters, or bytes in base64", 1, MOST_IN_PIECE, PIECE),
            },
            "name",
            "path",
        ),
        _result(
            {
                "ref": {"type": "string"},
                **_PATH,
                "size": {"type": "integer"},
                "encoding": {"enum": ["utf-8", "base64"]},
                "content": {"type": "string"},
                "next_offset": _nullable("integer"),
            }
        ),
    ),
    Tool(
        "create_skill",
        "Create a skill: a folder with a SKILL.md, on disk and in the catalogue at once.",
        _object(
            {
                "name": _text("Letters a-z, digits and single hyphens, at most 64"),
                "description": _DESCRIPTION,
                **_FIELDS,
                "files": {
                    "type": "object",
                    "additionalProperties": {"type": "string"},
                    "description": "Supporting files: relative path to text",
                },
                "source": _text("The source to write to, where there are several"),
            },
            "name",
            "description",
        ),
        _result({"skill": _record(**_PATH)}),
        read_only=False,
        idempotent=False,
    ),
    Tool(
        "update_skill",
        "Change fields or files of a skill; everything that is not given stays as it is.",
        _object(
            {
                "name": _NAME,
                "description": _DESCRIPTION,
                **_FIELDS,
                "files": {
                    "type": "object",
                    "additionalProperties": {"type": ["string", "null"]},
                    "description": "Supporting files: relative path to text; null removes a file",
                },
                "if_hash": _HASH,
            },
            "name",
        ),
        _result({"skill": _record(**_PATH)}),
        read_only=False,
        destructive=True,
    ),
    Tool(
        "delete_skill",
        "Move a skill to the registry's trash, from where restore_skill brings it back.",
        _object({"name": _NAME, "if_hash": _HASH}, "name"),
        _result(
            {
                "deleted": {
                    "type": "object",
                    "properties": {
                        "name": {"type": "string"},
                        "source": {"type": "string"},
                        "folder": {"type": "string"},
                        "trash_id": {"type": "string"},
                    },
                    "required": ["name", "source", "folder", "trash_id"],
                }
            }
        ),
        read_only=False,
        destructive=True,
        idempotent=False,
    ),
    Tool(
        "restore_skill",
        "Bring back the skill that was deleted last under a name.",
        _object(
            {
                "name": _text("The deleted skill's name, source/folder or trash_id"),
                "source": _text("The source it was deleted from, where there are several"),
            },
            "name",
        ),
        _result({"skill": _record(**_PATH)}),
        read_only=False,
        idempotent=False,
    ),
    Tool(
        "sync_skills",
        "Bring the catalogue in line with the folders on disk, after edits by hand.",
        _object(
            {
                "sources": _texts("Only these sources; by default all"),
                "dry_run": {
                    "type": "boolean",
                    "default": False,
                    "description": "Only say what would change",
                },
            }
        ),
        _result(
            {
                **{
                    key: {"type": "array", "items": {"type": "string"}}
                    for key in ("added", "updated", "moved", "removed")
                },
                "unchanged": {"type": "integer"},
                "invalid": {"type": "integer"},
                "complete": {"type": "boolean"},
                "problems": {"type": "array", "items": {"type": "string"}},
            }
        ),
        read_only=False,
    ),
)
"""All tools, with descriptions written for a model."""
