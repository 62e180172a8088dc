"""The toolset `native`: all operations of the registry that agents may need, typed and paged.

An answer follows the tool's ``result`` schema, or is ``{"error": {"code", "message"}}``. The code
is a stable code of `registry.errors`, or ``invalid_arguments``.
"""

import base64
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from registry.catalog.copies import Fate, copies_of, fate
from registry.catalog.reading import check_path, read_file
from registry.catalog.search.find import MAX_QUERIES, search
from registry.catalog.search.rank import FITS
from registry.db.read.labels import deprecated
from registry.db.read.listing import Filters, list_skills
from registry.db.read.skills import SORTS, StoredSkill
from registry.db.read.summary import registered
from registry.errors import (
    FileNotFoundInSkill,
    NotInTrash,
    RegistryError,
    SkillExists,
    SkillGone,
    SkillHeld,
    SkillInTrash,
    SkillMissing,
    SkillNotDeleted,
    SkillNotFound,
    SkillProposed,
    SourceNotAdopted,
    SourceNotFound,
    SourceReadOnly,
    SourceUnclear,
    UsageProblem,
)
from registry.model import SCOPES, Found, Skill, record
from registry.remotes.sources import fetch_and_sync
from registry.sync.plan import SyncOptions
from registry.sync.report import SyncReport
from registry.text import Fact, is_encodable, quoted
from registry.toolsets.base import Arguments, Context, Toolset, parameter, shown
from registry.toolsets.schemas import TYPES, Json, Tool, schema, text
from registry.toolsets.view import View

if TYPE_CHECKING:
    from registry.changes.commit import Which


PAGE: Final = 20
MAX_PAGE: Final = 200
PIECE: Final = 50_000
"""Maximum length of a text in one answer, in characters; for a binary file, in bytes."""
MAX_PIECE: Final = 1 << 20

STRING: Final[Json] = {"type": "string"}
STRINGS: Final[Json] = {"type": "array", "items": STRING}
INTEGER: Final[Json] = {"type": "integer"}
BOOLEAN: Final[Json] = {"type": "boolean"}
STRING_OR_NULL: Final[Json] = {"type": ["string", "null"]}
INTEGER_OR_NULL: Final[Json] = {"type": ["integer", "null"]}


def number(about: str, least: int, most: int | None, usual: int) -> Json:
    """Return the schema of an integer with its minimum, maximum and default."""
    bounds: Json = {"minimum": least} | ({} if most is None else {"maximum": most})
    return {**INTEGER, "description": about, "default": usual, **bounds}


def texts(about: str) -> Json:
    """Return the schema of a list of texts."""
    return {**STRINGS, "description": about}


def flag(about: str) -> Json:
    """Return the schema of a boolean that is false by default."""
    return {**BOOLEAN, "default": False, "description": about}


def arguments(properties: Json, *required: str) -> Json:
    """Return the schema of a tool's arguments; other arguments aren't allowed."""
    return {**schema(properties, required), "additionalProperties": False}


NAME: Final = text("The skill's name or ref from list_skills or search_skills")
HASH: Final = text("The content_hash you read; if the skill has changed since, the call fails")

FILTERS: Final[Json] = {
    "tags": texts("Only skills with all of these tags"),
    "any_tags": texts("Only skills with one of these tags"),
    "kind": text("Only skills of this kind"),
    "category": text("Only skills of this category"),
    "scope": {**text("Only skills from sources of this scope"), "enum": list(SCOPES)},
    "source": text("Only skills from this source"),
    "created_since": text(
        "Created at this time or later: 2026-01-31, a timestamp, or an age such as 7d"
    ),
    "created_until": text("Created at this time or earlier"),
    "updated_since": text("Updated at this time or later"),
    "updated_until": text("Updated at this time or earlier"),
}

OFFSET: Final = number("Number of skills to skip: next_offset of the previous page", 0, None, 0)

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
    """Return the schema of an object that must have all of these properties."""
    return schema(properties, tuple(properties))


def answer(properties: Json) -> Json:
    """Return the schema of an answer: an object with either these properties or only an error."""
    return {
        "type": "object",
        "properties": {**properties, "error": object_with({"code": STRING, "message": STRING})},
        "anyOf": [{"required": list(properties)}, {"required": ["error"]}],
    }


LISTED: Final[Json] = {
    "type": "object",
    "description": f"A skill: {', '.join(SKILL_FIELDS)}; maybe deprecated (why)",
    "properties": {"ref": STRING, "name": STRING, "description": STRING},
    "required": ["ref", "name", "description"],
}
"""The schema of one skill on a page.

The schema is short, because clients validate each answer.
"""

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

COPIES: Final = flag("Include its copies (same name and files in other places); all or none")
FATE: Final[Json] = object_with({"changed": STRINGS, "left": STRINGS})
"""The schema of two lists of refs: the copies that also changed, and the copies that did not."""

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
    "description": "The address a remote skill was fetched from",
    "properties": {
        "url": STRING,
        "ref": STRING_OR_NULL,
        "commit": STRING_OR_NULL,
        "path": STRING,
    },
}

PARAMETERS: Final[Json] = {
    "type": "array",
    "description": "The skill's parameters; written to the SKILL.md as a table",
    "items": arguments(
        {
            "name": {"type": "string", "minLength": 1},
            "type": {**STRING, "enum": list(TYPES), "default": TYPES[0]},
            "description": STRING,
            "required": {"type": "boolean", "default": False},
            "default": {"type": [*TYPES, "null"], "description": "The value if none is given"},
        },
        "name",
    ),
}

FIELDS: Final[Json] = {
    "body": text("The Markdown instructions below the front matter"),
    "tags": texts("Tags: words to find the skill by"),
    "kind": text("The kind, such as workflow or reference"),
    "parameters": PARAMETERS,
}
DESCRIPTION: Final = text("What the skill does and when to use it")


TOOLS: Final = (
    Tool(
        "list_skills",
        "List the available skills in pages. To find a skill for a task, use search_skills.",
        arguments(
            {
                **FILTERS,
                "sort": {
                    **text("The sort order; dates come newest first"),
                    "enum": list(SORTS),
                    "default": "name",
                },
                "reverse": flag("Reverse the order: names from Z to A, dates oldest first"),
                "limit": number("Number of skills on a page", 1, MAX_PAGE, PAGE),
                "offset": OFFSET,
            }
        ),
        PAGE_OF_SKILLS,
    ),
    Tool(
        "search_skills",
        (
            "Find skills for a task, best match first. Give 2 to 6 keywords: the task, and the "
            'tool, file type or field ("redact scanned pdf", "kubernetes cost report"). Use the '
            "technical terms of a skill author, not the user's sentence. If the task has several "
            "names, give several queries. Skills are described in many languages, mostly English: "
            "search in English and also in the user's language."
        ),
        arguments(
            {
                "queries": {
                    **texts("Short keyword queries; their results are merged in turn, best first"),
                    "minItems": 1,
                    "maxItems": MAX_QUERIES,
                },
                "query": text("A single query; give this or queries"),
                **FILTERS,
                "limit": number("Number of skills on a page", 1, MAX_PAGE, 10),
                "offset": OFFSET,
            }
        ),
        PAGE_OF_HITS,
    ),
    Tool(
        "read_skill",
        (
            "Read a skill before you follow it: its current instructions (body) and the list of "
            "its files."
        ),
        arguments(
            {
                "name": NAME,
                "offset": number(
                    "Position in the body to start at: next_offset of the previous part", 0, None, 0
                ),
                "max_chars": number(
                    "Maximum number of characters of the body", 1, MAX_PIECE, PIECE
                ),
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
                        "origin": ORIGIN,
                        "deprecated": {
                            **STRING_OR_NULL,
                            "description": "Why this version should not be used any more",
                        },
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
        (
            "Read one supporting file of a skill; read_skill lists their paths. Binary files are "
            "returned as base64."
        ),
        arguments(
            {
                "name": NAME,
                "path": text("The file's path, relative to the skill's folder"),
                "offset": number(
                    "Position to start at: next_offset of the previous part", 0, None, 0
                ),
                "max_chars": number(
                    "Maximum number of characters; for base64, of bytes", 1, MAX_PIECE, PIECE
                ),
            },
            "name",
            "path",
        ),
        answer(
            {
                "ref": STRING,
                "path": STRING,
                "size": INTEGER,
                "encoding": {**STRING, "enum": ["utf-8", "base64"]},
                "content": STRING,
                "next_offset": INTEGER_OR_NULL,
            }
        ),
    ),
    Tool(
        "create_skill",
        "Create a skill: a folder with a SKILL.md on disk, listed immediately.",
        arguments(
            {
                "name": text("Letters a-z, digits and single hyphens, at most 64"),
                "description": DESCRIPTION,
                **FIELDS,
                "files": {
                    "type": "object",
                    "additionalProperties": STRING,
                    "description": "Supporting files: relative path as key, text as value",
                },
                "source": text("The source to write to; required if there are several"),
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
        "Change fields or files of a skill. Everything else stays unchanged.",
        arguments(
            {
                "name": NAME,
                "description": DESCRIPTION,
                **FIELDS,
                "files": {
                    "type": "object",
                    "additionalProperties": STRING_OR_NULL,
                    "description": "Supporting files: path as key, text as value (null removes)",
                },
                "if_hash": HASH,
                "copies": COPIES,
            },
            "name",
        ),
        answer({"skill": CHANGED_SKILL, "copies": FATE}),
        read_only=False,
        destructive=True,
    ),
    Tool(
        "delete_skill",
        "Move a skill to the trash. restore_skill restores it.",
        arguments({"name": NAME, "if_hash": HASH, "copies": COPIES}, "name"),
        answer(
            {
                "deleted": object_with(
                    dict.fromkeys(("name", "source", "folder", "trash_id"), STRING)
                ),
                "copies": FATE,
            }
        ),
        read_only=False,
        destructive=True,
        idempotent=False,
    ),
    Tool(
        "restore_skill",
        "Restore a deleted skill. If several have the name, the last deleted one is restored.",
        arguments(
            {
                "name": text("The deleted skill's name, source/folder or trash_id"),
                "source": text("The source it was deleted from, if there are several"),
            },
            "name",
        ),
        CHANGED,
        read_only=False,
        idempotent=False,
    ),
    Tool(
        "sync_skills",
        "Update the catalogue from the folders on disk, for example after manual edits.",
        arguments(
            {
                "sources": texts("Only these sources (default: all)"),
                "dry_run": flag("Report the changes without making them"),
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
"""All tools; their descriptions are for models."""


_CHECKS: Final = {tool.name: Arguments(tool.parameters) for tool in TOOLS}
_FOUND: Final = ("score", "snippet", "confidence")
_HINTS: Final[dict[type[RegistryError], str]] = {
    SkillInTrash: "Use restore_skill to restore it.",
    SkillGone: "Use restore_skill to restore its last stored revision.",
    NotInTrash: "Only the user can list the deleted skills.",
    SkillMissing: "Use sync_skills to update the catalogue, or restore_skill to restore the skill.",
    FileNotFoundInSkill: "read_skill lists its files.",
    SkillExists: "Choose another name, or change the existing skill with update_skill.",
    SourceUnclear: (
        "Give one of them as source. If there is none, the user has to register a folder."
    ),
    SourceNotFound: "The user has to register a folder.",
    SourceReadOnly: "Create a copy of it in another source.",
    SourceNotAdopted: "Only the user can adopt it.",
    SkillHeld: "Only the user can trust its source.",
}


class NativeToolset(Toolset):
    """The registry's own tools for agents."""

    name = "native"

    def __init__(self, context: Context) -> None:
        super().__init__(context, TOOLS)
        self._core = context.core
        self._view = View(context)

    def _unknown(self, tool: object) -> Json:
        return _error("invalid_arguments", f"No tool '{shown(tool)}': {', '.join(self._tools)}.")

    def _run(self, tool: str, arguments: Any) -> Json:
        arguments = _without_empty(tool, arguments)
        problem = _CHECKS[tool].problem(arguments)
        if problem is not None:
            return _error("invalid_arguments", problem)
        # JSON Schema accepts 20.0 as an integer, and models may send it.
        given = {key: int(one) if isinstance(one, float) else one for key, one in arguments.items()}
        try:
            with self._core.explained():
                answer: Json = getattr(self, f"_{tool}")(**given)
        except SkillProposed as proposed:
            return self._proposed(tool, proposed)
        except RegistryError as error:
            return _error(error.code, _for_models(error))
        return answer

    def _proposed(self, tool: str, proposed: SkillProposed) -> Json:
        """Return the answer for a change that waits for review.

        The answer has the form of other answers.
        """
        from registry.publish.proposals import preview

        skill, message = preview(self._core, proposed.id), {"message": str(proposed)}
        left: Json = {"copies": {"changed": [], "left": []}} if tool != "create_skill" else {}
        if tool == "delete_skill":
            gone = {key: getattr(skill, key) for key in ("name", "source", "folder")}
            return {"deleted": {**gone, "trash_id": ""}, **left, **message}
        if tool == "restore_skill":
            left = {}
        return {"skill": _changed(skill), **left, **message}

    def _list_skills(self, *, limit: int = PAGE, offset: int = 0, **given: Any) -> Json:
        order = {key: given.pop(key) for key in ("sort", "reverse") if key in given}
        filters = self._filters(given)
        page = list_skills(self._core.reader, filters, limit=limit, offset=offset, **order)
        self._core.usage.listed(page)
        return _page(self._marked(self._view.localized_all(page)), page.total, offset)

    def _search_skills(
        self,
        *,
        query: str | None = None,
        queries: Sequence[str] = (),
        limit: int = 10,
        offset: int = 0,
        **given: Any,
    ) -> Json:
        filters = self._filters(given)
        asked = [*([] if query is None else [query]), *queries]
        if not 0 < len(asked) <= MAX_QUERIES:
            return _error(
                "invalid_arguments", f"Give query or queries, {MAX_QUERIES} queries at most."
            )
        found = search(self._core.reader, asked, filters, limit=limit, offset=offset)
        found = self._view.localized_hits(found)
        self._core.usage.found(found)
        hits = [
            {**skill, **{key: getattr(hit, key) for key in _FOUND}, "alike": [*hit.alike]}
            for skill, hit in zip(self._marked(found), found, strict=True)
        ]
        page = _page(hits, found.total, offset)
        note = _fitting(found) if found.total else self._nothing()
        return {**page, "confidence": found.confidence, "note": note}

    def _marked(self, skills: Sequence[Skill]) -> list[Json]:
        """Return the skills of a page; a skill with a deprecated current version has a warning."""
        warnings = deprecated(self._core.reader, skills)
        return [
            {**_skill(one), **({"deprecated": warnings[place]} if place in warnings else {})}
            for one in skills
            for place in [(one.source, one.folder)]
        ]

    def _nothing(self) -> str:
        """Return a sentence that explains why a search found no skill."""
        if not registered(self._core.reader)[1]:
            return "The registry is empty. The user has to register a folder."
        if not list_skills(self._core.reader, self._filters({}), limit=1).total:
            return "No skills can be searched here; other keywords won't help."
        return "No matches. Try other keywords, or English ones."

    def _read_skill(self, *, name: str, offset: int = 0, max_chars: int = PIECE) -> Json:
        skill = self._view.find(name)
        self._core.usage.read(skill.source, skill.folder)
        body = skill.body or ""
        whole = record(skill)
        more = "path tree_hash compatibility required_tools parameters files origin".split()
        return {
            "skill": {
                **_skill(skill),
                **{key: whole[key] for key in more},
                "deprecated": next(filter(None, (one.warning for one in skill.versions)), None),
            },
            "body": body[offset : offset + max_chars],
            "total_chars": len(body),
            "next_offset": _next(offset + max_chars, len(body)),
        }

    def _read_skill_file(
        self, *, name: str, path: str, offset: int = 0, max_chars: int = PIECE
    ) -> Json:
        check_path(path)
        current = self._view.locate(name)
        data = read_file(self._core, current, path)
        skill = current.stored.skill
        self._core.usage.read(skill.source, skill.folder)
        try:
            text = data.decode()
        except UnicodeDecodeError:
            encoding, length = "base64", len(data)
            content = base64.b64encode(data[offset : offset + max_chars]).decode()
        else:
            encoding, length = "utf-8", len(text)
            content = text[offset : offset + max_chars]
        return {
            "ref": skill.ref,
            "path": path,
            "size": len(data),
            "encoding": encoding,
            "content": content,
            "next_offset": _next(offset + max_chars, length),
        }

    def _create_skill(self, *, name: str, source: str | None = None, **given: Any) -> Json:
        from registry.changes.create import create_skill

        made = create_skill(self._core, name, source=self._home(source), **_fields(given))
        return {"skill": _changed(self._view.localized(made))}

    def _update_skill(
        self, *, name: str, if_hash: str | None = None, copies: bool = False, **given: Any
    ) -> Json:
        from registry.changes.update import update_skill

        stored = self._view.resolve(name)
        before, which = self._copies(stored, chosen=copies)
        done = update_skill(self._core, stored, if_hash=if_hash, copies=which, **_fields(given))
        return {
            "skill": _changed(self._view.localized(done)),
            "copies": record(self._fate(stored, before)),
        }

    def _delete_skill(self, *, name: str, if_hash: str | None = None, copies: bool = False) -> Json:
        from registry.changes.trash import delete

        stored = self._view.resolve(name)
        before, which = self._copies(stored, chosen=copies)
        trashed = delete(self._core, stored, if_hash=if_hash, copies=which)
        gone = {key: getattr(trashed, key) for key in ("name", "source", "folder")}
        done = record(self._fate(stored, before))
        return {"deleted": {**gone, "trash_id": trashed.id}, "copies": done}

    def _fate(self, changed: StoredSkill, before: Sequence[StoredSkill]) -> Fate:
        localized = self._view.localized
        before = [one._replace(skill=localized(one.skill)) for one in before]
        return fate(self._core.reader, changed, before, localized)

    def _copies(
        self, stored: StoredSkill, *, chosen: bool
    ) -> tuple[list[StoredSkill], "Which | None"]:
        """Return the copies of a skill in this view.

        If ``chosen``, also return a function that selects the copies to change.
        """
        found = self._view.admitted(copies_of(self._core.reader, stored))
        places = {one.place for one in found}
        return found, (lambda one: one.place in places) if chosen else None

    def _restore_skill(self, *, name: str, source: str | None = None) -> Json:
        from registry.changes.trash import restore_named

        among = None if self._view.is_whole else self._sources()
        chosen = None if source is None else self._named(source)
        try:
            back = restore_named(self._core, name, source=chosen, among=among)
        except SkillNotDeleted:
            # The error must not mention skills that this view doesn't show.
            self._view.resolve(name)
            raise
        return {"skill": _changed(self._view.localized(back.skill))}

    def _sync_skills(self, *, sources: Sequence[str] = (), dry_run: bool = False) -> Json:
        """Sync only registered sources, because a tool must not register folders."""
        known = self._sources()
        for name in sources:
            if name not in known:
                raise SourceNotFound(name=name, known=known)
        chosen = list(sources)
        before = self._view.refs()
        report = SyncReport()
        if chosen or self._view.is_whole or (chosen := self._own()):
            report = fetch_and_sync(self._core, chosen, SyncOptions(dry_run=dry_run), wait=True)
        done = record(report) | {"moved": [move.ref for move in report.moved]}
        if before is not None and not dry_run:
            refs = {**before, **(self._view.refs() or {})}
            for key in ("added", "updated", "moved", "removed"):
                done[key] = [refs[ref] for ref in done[key] if ref in refs]
        keys = ("added", "updated", "moved", "removed", "unchanged", "invalid")
        return {
            **{key: done[key] for key in keys},
            "complete": report.complete,
            "problems": [
                f"{part.name}: {part.message or part.outcome}"
                for part in report.sources
                if part.outcome != "ok"
            ],
        }

    def _filters(self, given: Mapping[str, Any]) -> Filters:
        chosen = {key: given[key] for key in FILTERS if key in given}
        return self._view.filters(Filters(**chosen))

    def _home(self, source: str | None) -> str | None:
        """Return the source to write to: the named source, or the only source in this view.

        If the view has no limits and no source is named, returns None. Raises `SourceNotFound` and
        `SourceUnclear`, which list only sources in this view.
        """
        if source is not None:
            return self._named(source)
        if self._view.is_whole:
            return None
        known = self._own()
        chosen = known[0] if len(known) == 1 else self._core.settings.default_source
        if chosen is None or chosen not in known:
            raise SourceUnclear(known=known)
        return chosen

    def _named(self, source: str) -> str:
        if self._view.is_whole:
            return source
        known = self._view.sources()
        for one in known:
            if source in {one.name, one.path}:
                return one.name
        raise SourceNotFound(name=source, known=[one.name for one in known])

    def _sources(self) -> list[str]:
        return [source.name for source in self._view.sources()]

    def _own(self) -> list[str]:
        """Return the names of this machine's enabled sources in this view."""
        sources = self._view.sources()
        return [one.name for one in sources if one.enabled and one.host == self._core.host]


def _without_empty(tool: str, arguments: Any) -> Any:
    """Return the arguments without empty filters and empty source names.

    Some frameworks send these in place of missing arguments.
    """
    if not isinstance(arguments, Mapping):
        return arguments
    empty = FILTERS if tool in ("list_skills", "search_skills") else ("source",)
    return {key: one for key, one in arguments.items() if one != "" or key not in empty}


def _fields(given: Json) -> Json:
    """Return the fields of a skill in the form for `SkillRegistry`."""
    fields = dict(given)
    if "files" in fields:
        fields["files"] = {path: _bytes(text) for path, text in fields["files"].items()}
    if "parameters" in fields:
        fields["parameters"] = [parameter(one["name"], one) for one in fields["parameters"]]
    return fields


def _bytes(text: str | None) -> bytes | None:
    if text is None:
        return None
    if not is_encodable(text):
        raise UsageProblem(message="a file's text has unpaired surrogates")
    return text.encode()


def _skill(skill: Skill) -> Json:
    facts = vars(skill)
    return {key: facts[key] for key in SKILL_KEYS} | {"tags": list(skill.tags)}


def _changed(skill: Skill) -> Json:
    return {**_skill(skill), "path": skill.path}


def _page(skills: Sequence[Json], total: int, offset: int) -> Json:
    return {"skills": skills, "total": total, "next_offset": _next(offset + len(skills), total)}


def _fitting(found: Found) -> str | None:
    """Return a sentence for the model if the hits probably don't fit its query, else None."""
    told = [
        f"Searched for {quoted(used)} instead of {quoted(typed)}."
        for typed, used in found.respelled
    ]
    if found.confidence < FITS:
        named = f" No top result mentions {Fact(found.missing):or}." if found.missing else ""
        told.append(
            f"No close match.{named} These are the nearest; try other keywords, or English ones."
        )
        if found.shorter:
            told.append(f"Shorter queries: {Fact(found.shorter):or}.")
    return " ".join(told) or None


def _next(end: int, total: int) -> int | None:
    return end if end < total else None


def _for_models(error: RegistryError) -> str:
    """Return the message of an error, with the name of a tool that helps the model."""
    hint = _HINTS.get(type(error), "")
    if type(error) is SkillNotFound and not error.facts["similar"]:
        hint = "Use search_skills to find skills for a task."
    return f"{error} {hint}".rstrip().encode("utf-8", "replace").decode()


def _error(code: str, message: str) -> Json:
    return {"error": {"code": code, "message": message}}
