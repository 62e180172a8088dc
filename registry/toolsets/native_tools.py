"""The tools of `native`: what they are called and do, in words for a model."""

from typing import Final

from registry.catalog.search.find import MAX_QUERIES
from registry.db.read.skills import SORTS
from registry.toolsets import native_shapes as shapes
from registry.toolsets.base import Tool, text
from registry.toolsets.native_shapes import answer, arguments, flag, number, object_with, texts

TOOLS: Final = (
    Tool(
        "list_skills",
        "List the skills there are, page by page, narrowed by any filters. To find what helps "
        "with a task, search_skills is better.",
        arguments(
            {
                **shapes.FILTERS,
                "sort": {
                    **text("The order; dates come newest first"),
                    "enum": list(SORTS),
                    "default": "name",
                },
                "reverse": flag("The other way round: names from Z to A, dates oldest first"),
                "limit": number("Skills on a page", 1, shapes.MAX_PAGE, shapes.PAGE),
                "offset": shapes.OFFSET,
            }
        ),
        shapes.PAGE_OF_SKILLS,
    ),
    Tool(
        "search_skills",
        "Find skills by what they do, the best first. Ask with 2 to 6 keywords that name the task "
        'and the tool, file type or field ("redact scanned pdf", "kubernetes cost report"), with '
        "the technical terms a skill's author would use; not the user's whole sentence. Give "
        "several queries where the task has several names. Skills are described in many "
        "languages, most in English: ask in English, and where the user writes another language, "
        "also in that one.",
        arguments(
            {
                "queries": {
                    **texts(
                        "Short keyword queries; their results are merged, the best of each first"
                    ),
                    "minItems": 1,
                    "maxItems": MAX_QUERIES,
                },
                "query": text("One such query, where one is enough; give this or queries"),
                **shapes.FILTERS,
                "limit": number("Skills on a page", 1, shapes.MAX_PAGE, 10),
                "offset": shapes.OFFSET,
            }
        ),
        shapes.PAGE_OF_HITS,
    ),
    Tool(
        "read_skill",
        "Read a skill before you follow it: its instructions (body) and the list of its files, as "
        "they are on disk now.",
        arguments(
            {
                "name": shapes.NAME,
                "offset": number("Where in the body to begin: next_offset", 0, None, 0),
                "max_chars": number("Characters of the body", 1, shapes.MAX_PIECE, shapes.PIECE),
            },
            "name",
        ),
        answer(
            {
                "skill": object_with(
                    {
                        **shapes.SKILL_FIELDS,
                        "path": shapes.STRING,
                        "tree_hash": shapes.STRING_OR_NULL,
                        "compatibility": shapes.STRING_OR_NULL,
                        "required_tools": shapes.STRINGS,
                        "parameters": {"type": "array", "items": {"type": "object"}},
                        "files": shapes.FILES,
                        "origin": shapes.ORIGIN,
                    }
                ),
                "body": shapes.STRING,
                "total_chars": shapes.INTEGER,
                "next_offset": shapes.INTEGER_OR_NULL,
            }
        ),
    ),
    Tool(
        "read_skill_file",
        "Read one supporting file of a skill by its relative path, as read_skill lists it. "
        "A file that is no text comes in base64.",
        arguments(
            {
                "name": shapes.NAME,
                "path": text("The file's path, relative to the skill's folder"),
                "offset": number("Where to begin: next_offset", 0, None, 0),
                "max_chars": number(
                    "Characters, or bytes in base64", 1, shapes.MAX_PIECE, shapes.PIECE
                ),
            },
            "name",
            "path",
        ),
        answer(
            {
                "ref": shapes.STRING,
                "path": shapes.STRING,
                "size": shapes.INTEGER,
                "encoding": {**shapes.STRING, "enum": ["utf-8", "base64"]},
                "content": shapes.STRING,
                "next_offset": shapes.INTEGER_OR_NULL,
            }
        ),
    ),
    Tool(
        "create_skill",
        "Create a skill: a folder with a SKILL.md, on disk and in the catalogue at once.",
        arguments(
            {
                "name": text("Letters a-z, digits and single hyphens, at most 64"),
                "description": shapes.DESCRIPTION,
                **shapes.FIELDS,
                "files": {
                    "type": "object",
                    "additionalProperties": shapes.STRING,
                    "description": "Supporting files: relative path to text",
                },
                "source": text("The source to write to, where there are several"),
            },
            "name",
            "description",
        ),
        shapes.CHANGED,
        read_only=False,
        idempotent=False,
    ),
    Tool(
        "update_skill",
        "Change fields or files of a skill; everything that is not given stays as it is.",
        arguments(
            {
                "name": shapes.NAME,
                "description": shapes.DESCRIPTION,
                **shapes.FIELDS,
                "files": {
                    "type": "object",
                    "additionalProperties": shapes.STRING_OR_NULL,
                    "description": "Supporting files: relative path to text; null removes a file",
                },
                "if_hash": shapes.HASH,
                "copies": shapes.COPIES,
            },
            "name",
        ),
        answer({"skill": shapes.CHANGED_SKILL, "copies": shapes.FATE}),
        read_only=False,
        destructive=True,
    ),
    Tool(
        "delete_skill",
        "Move a skill to the registry's trash, from where restore_skill brings it back.",
        arguments({"name": shapes.NAME, "if_hash": shapes.HASH, "copies": shapes.COPIES}, "name"),
        answer(
            {
                "deleted": object_with(
                    dict.fromkeys(("name", "source", "folder", "trash_id"), shapes.STRING)
                ),
                "copies": shapes.FATE,
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
        shapes.CHANGED,
        read_only=False,
        idempotent=False,
    ),
    Tool(
        "sync_skills",
        "Bring the catalogue in line with the folders on disk, after edits by hand.",
        arguments(
            {
                "sources": texts("Only these sources; by default all"),
                "dry_run": flag("Only say what would change"),
            }
        ),
        answer(
            {
                **dict.fromkeys(("added", "updated", "moved", "removed"), shapes.STRINGS),
                "unchanged": shapes.INTEGER,
                "invalid": shapes.INTEGER,
                "complete": shapes.BOOLEAN,
                "problems": shapes.STRINGS,
            }
        ),
        read_only=False,
    ),
)
"""All tools, with descriptions written for a model."""
