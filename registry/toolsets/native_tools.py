"""The tools of `native`: what they are called and do, in words for a model."""

from typing import Final

from registry.toolsets.base import Tool, text
from registry.toolsets.native_shapes import (
    BOOLEAN,
    CHANGED,
    DESCRIPTION,
    FIELDS,
    FILES,
    FILTERS,
    HASH,
    INTEGER,
    INTEGER_OR_NULL,
    MAX_PAGE,
    MAX_PIECE,
    NAME,
    OFFSET,
    PAGE,
    PAGE_OF_SKILLS,
    PIECE,
    SKILL_FIELDS,
    STRING,
    STRING_OR_NULL,
    STRINGS,
    answer,
    arguments,
    number,
    object_with,
    texts,
)

TOOLS: Final = (
    Tool(
        "list_skills",
        "List the skills there are, page by page, narrowed by any filters. To find what helps "
        "with a task, search_skills is better.",
        arguments(
            {
                **FILTERS,
                "sort": {
                    "enum": ["name", "created", "updated"],
                    "default": "name",
                    "description": "The order; dates come newest first",
                },
                "reverse": {"type": "boolean", "default": False},
                "limit": number("Skills on a page", 1, MAX_PAGE, PAGE),
                "offset": OFFSET,
            }
        ),
        PAGE_OF_SKILLS,
    ),
    Tool(
        "search_skills",
        "Find skills by what they do, the best first. Plain words in any language; quotes keep "
        "words together.",
        arguments(
            {
                "query": text("What the skill should help with"),
                **FILTERS,
                "limit": number("Skills on a page", 1, MAX_PAGE, 10),
                "offset": OFFSET,
            },
            "query",
        ),
        PAGE_OF_SKILLS,
    ),
    Tool(
        "read_skill",
        "Read a skill before you follow it: its instructions (body) and the list of its files, as "
        "they are on disk now.",
        arguments(
            {
                "name": NAME,
                "offset": number("Where in the body to begin: next_offset", 0, None, 0),
                "max_chars": number("Characters of the body", 1, MAX_PIECE, PIECE),
            },
            "name",
        ),
        answer(
            {
                "skill": object_with(
                    {
                        **SKILL_FIELDS,
                        "path": STRING,
                        "tree_hash": STRING_OR_NULL,
                        "compatibility": STRING_OR_NULL,
                        "required_tools": STRINGS,
                        "parameters": {"type": "array", "items": {"type": "object"}},
                        "files": FILES,
                    }
                ),
                "body": STRING,
                "total_chars": INTEGER,
                "next_offset": INTEGER_OR_NULL,
            }
        ),
    ),
    Tool(
        "read_skill_file",
        "Read one supporting file of a skill by its relative path, as read_skill lists it. "
        "A file that is no text comes in base64.",
        arguments(
            {
                "name": NAME,
                "path": text("The file's path, relative to the skill's folder"),
                "offset": number("Where to begin: next_offset", 0, None, 0),
                "max_chars": number("Characters, or bytes in base64", 1, MAX_PIECE, PIECE),
            },
            "name",
            "path",
        ),
        answer(
            {
                "ref": STRING,
                "path": STRING,
                "size": INTEGER,
                "encoding": {"enum": ["utf-8", "base64"]},
                "content": STRING,
                "next_offset": INTEGER_OR_NULL,
            }
        ),
    ),
    Tool(
        "create_skill",
        "Create a skill: a folder with a SKILL.md, on disk and in the catalogue at once.",
        arguments(
            {
                "name": text("Letters a-z, digits and single hyphens, at most 64"),
                "description": DESCRIPTION,
                **FIELDS,
                "files": {
                    "type": "object",
                    "additionalProperties": STRING,
                    "description": "Supporting files: relative path to text",
                },
                "source": text("The source to write to, where there are several"),
            },
            "name",
            "description",
        ),
        CHANGED,
        read_only=False,
        idempotent=False,
    ),
    Tool(
        "update_skill",
        "Change fields or files of a skill; everything that is not given stays as it is.",
        arguments(
            {
                "name": NAME,
                "description": DESCRIPTION,
                **FIELDS,
                "files": {
                    "type": "object",
                    "additionalProperties": STRING_OR_NULL,
                    "description": "Supporting files: relative path to text; null removes a file",
                },
                "if_hash": HASH,
            },
            "name",
        ),
        CHANGED,
        read_only=False,
        destructive=True,
    ),
    Tool(
        "delete_skill",
        "Move a skill to the registry's trash, from where restore_skill brings it back.",
        arguments({"name": NAME, "if_hash": HASH}, "name"),
        answer(
            {
                "deleted": object_with(
                    {"name": STRING, "source": STRING, "folder": STRING, "trash_id": STRING}
                )
            }
        ),
        read_only=False,
        destructive=True,
        idempotent=False,
    ),
    Tool(
        "restore_skill",
        "Bring back the skill that was deleted last under a name.",
        arguments(
            {
                "name": text("The deleted skill's name, source/folder or trash_id"),
                "source": text("The source it was deleted from, where there are several"),
            },
            "name",
        ),
        CHANGED,
        read_only=False,
        idempotent=False,
    ),
    Tool(
        "sync_skills",
        "Bring the catalogue in line with the folders on disk, after edits by hand.",
        arguments(
            {
                "sources": texts("Only these sources; by default all"),
                "dry_run": {
                    "type": "boolean",
                    "default": False,
                    "description": "Only say what would change",
                },
            }
        ),
        answer(
            {
                **dict.fromkeys(("added", "updated", "moved", "removed"), STRINGS),
                "unchanged": INTEGER,
                "invalid": INTEGER,
                "complete": BOOLEAN,
                "problems": STRINGS,
            }
        ),
        read_only=False,
    ),
)
"""All tools, with descriptions written for a model."""
