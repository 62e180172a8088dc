"""The OpenAPI 3.1 description of the catalogue's JSON pages."""

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import Response

from registry import __version__
from registry.catalog.search.find import MAX_QUERIES
from registry.db.read.recent import HAPPENED
from registry.db.read.skills import SORTS
from registry.model import (
    SCOPES,
    SECURITY_LEVELS,
    SEVERITIES,
    STATUSES,
    SearchHit,
    Skill,
    SkillDetail,
)
from registry.web.answers import as_json, compressed
from registry.web.query_params import MAX_PAGE

_TEXTS: Final = {"type": "array", "items": {"type": "string"}}

_FILTERS: Final[Sequence[tuple[str, Mapping[str, Any], str]]] = (
    ("tag", _TEXTS, "Only skills with all of these tags."),
    ("kind", {"type": "string"}, "Only skills of this kind."),
    ("category", {"type": "string"}, "Only skills of this category."),
    ("source", {"type": "string"}, "Only skills from this source."),
    ("scope", {"enum": list(SCOPES)}, "Only skills of this scope."),
    ("status", {"enum": list(STATUSES)}, "Only skills with this status."),
    (
        "security",
        {"enum": list(SECURITY_LEVELS)},
        "Only skills whose worst security finding has this severity.",
    ),
    (
        "created",
        {"type": "string", "pattern": "^[0-9]{4}-[0-9]{2}$"},
        "Only skills created in the given month (YYYY-MM).",
    ),
    (
        "updated",
        {"type": "string", "pattern": "^[0-9]{4}-[0-9]{2}$"},
        "Only skills updated in the given month (YYYY-MM).",
    ),
    ("unused", {"type": "string"}, "Only skills that no tool has read in this time (such as 90d)."),
    ("all", {"enum": ["1"]}, "Include shadowed and invalid skills."),
    ("sort", {"enum": ["used", *SORTS]}, "The sort order; /skills.json can't be sorted by use."),
    ("reverse", {"enum": ["1"]}, "Reverse the order."),
)
_COUNT: Final = {"type": "integer", "minimum": 1}
_PAGE: Final = ("page", _COUNT, "The page number, from 1.")

Parameters = Sequence[tuple[str, Mapping[str, Any], str]]

PATHS: Final[Sequence[tuple[str, str, Parameters]]] = (
    (
        "/index.json",
        "List or search skills, page by page, with counts for further filters.",
        (
            (
                "q",
                {**_TEXTS, "maxItems": MAX_QUERIES},
                "The search query; the results of several queries are interleaved.",
            ),
            *_FILTERS,
            ("limit", {**_COUNT, "maximum": MAX_PAGE}, "Number of skills on a page."),
            _PAGE,
        ),
    ),
    ("/skills.json", "Stream all matching skills as one array.", _FILTERS),
    ("/skills/{ref}.json", "Get all data of one skill.", ()),
    (
        "/files/{ref}.json",
        "Get a file of a skill.",
        (
            ("path", {"type": "string"}, "The path of the file."),
            ("revision", _COUNT, "The number of a revision, to get the file as it was then."),
        ),
    ),
    (
        "/history/{ref}.json",
        "List the revisions of a skill, and compare two of them.",
        (
            ("old", _COUNT, "The older revision to compare."),
            ("new", _COUNT, "The newer revision to compare."),
        ),
    ),
    ("/copies/{ref}.json", "List the copies and near-duplicates of a skill.", ()),
    (
        "/why.json",
        "Explain why a skill is, or isn't, listed.",
        (
            (
                "q",
                {"type": "string"},
                "The skill's name or ref; on the server's own machine also a path.",
            ),
            ("personality", {"type": "string"}, "Explain the decision for this personality."),
        ),
    ),
    (
        "/tags.json",
        "List all tags, the most frequent first.",
        (("q", {"type": "string"}, "Only tags that contain this text."), _PAGE),
    ),
    (
        "/copies.json",
        "List the names that several skills have, or groups of near-duplicates.",
        (("relation", {"enum": ["alike"]}, "List near-duplicates with different names."), _PAGE),
    ),
    (
        "/compare.json",
        "Compare two or three skills.",
        (("ref", _TEXTS, "The skills to compare."),),
    ),
    (
        "/install.json",
        "Get one command that installs several skills.",
        (("ref", _TEXTS, "The skills to install."),),
    ),
    ("/sources.json", "List the sources.", ()),
    (
        "/findings.json",
        "Count the findings by code; with a code, list its findings.",
        (
            ("code", {"type": "string"}, "Only findings with this code."),
            ("severity", {"enum": list(SEVERITIES)}, "Only findings with this severity."),
            _PAGE,
        ),
    ),
    (
        "/changes.json",
        "List the latest changes.",
        (
            ("days", _COUNT, "The number of days to cover."),
            ("day", {"type": "string", "format": "date"}, "Only changes of this day."),
            ("kind", {"enum": list(HAPPENED)}, "Only changes of this kind."),
            ("source", {"type": "string"}, "Only changes in this source."),
            _PAGE,
        ),
    ),
    ("/stats.json", "Get counts, sizes and usage.", ()),
    ("/personalities.json", "List the personalities.", ()),
    (
        "/personalities/{name}.json",
        "List the skills that a personality sees, with the deciding rules.",
        (("rule", {"type": "string"}, "Only skills decided by this rule."), _PAGE),
    ),
)
"""All JSON pages: path, description and query parameters."""


async def openapi(request: Request) -> Response:
    """Return the OpenAPI description as a response."""
    headers = {"cache-control": "public, max-age=3600"}
    return compressed(request, as_json(described()), "application/json", headers)


@cache
def described() -> dict[str, Any]:
    """Return the OpenAPI description as a JSON value."""
    return {
        "openapi": "3.1.0",
        "info": {"title": "Skill registry", "version": __version__},
        "paths": {path: {"get": _operation(path, about, query)} for path, about, query in PATHS},
        "components": {
            "schemas": {
                kind.__name__: {"type": "object", "required": list(kind.KEYS)}
                for kind in (Skill, SearchHit, SkillDetail)
            },
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{}, {"token": []}],
    }


def _operation(path: str, about: str, query: Parameters) -> dict[str, Any]:
    return {
        "summary": about,
        "parameters": list(_parameters(path, query)),
        "responses": {
            "200": {"description": about, "content": {"application/json": {}}},
            "304": {"description": "Not modified since the client's ETag."},
            "4XX": {
                "description": "The request failed; `error` has a code, a message and names in it."
            },
        },
    }


def _parameters(path: str, query: Parameters) -> Iterator[dict[str, Any]]:
    for name in ("ref", "name"):
        if f"{{{name}}}" in path:
            yield {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
    for name, schema, about in query:
        yield {"name": name, "in": "query", "schema": dict(schema), "description": about}
