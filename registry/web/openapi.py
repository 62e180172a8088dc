"""The OpenAPI 3.1 description of the JSON pages."""

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import Response

from registry import __version__
from registry.catalog.search.find import MAX_QUERIES
from registry.db.read.skills import SORTS
from registry.model import SCOPES, STATUSES, SearchHit, Skill, SkillDetail
from registry.web.answers import as_json, compressed
from registry.web.query_params import MAX_PAGE

_TEXTS: Final = {"type": "array", "items": {"type": "string"}}

_FILTERS: Final[Sequence[tuple[str, Mapping[str, Any], str]]] = (
    ("tag", _TEXTS, "All of these tags."),
    ("kind", {"type": "string"}, "Of this kind."),
    ("category", {"type": "string"}, "Of this category."),
    ("source", {"type": "string"}, "Of this source."),
    ("scope", {"enum": list(SCOPES)}, "Of this scope."),
    ("status", {"enum": list(STATUSES)}, "Of this status."),
    ("created", {"type": "string", "pattern": "^[0-9]{4}-[0-9]{2}$"}, "Made in this month."),
    ("updated", {"type": "string", "pattern": "^[0-9]{4}-[0-9]{2}$"}, "Changed in this month."),
    ("all", {"enum": ["1"]}, "Hidden and broken ones, too."),
    ("sort", {"enum": list(SORTS)}, "In which order; a search has its own."),
    ("reverse", {"enum": ["1"]}, "The other way round."),
)
_COUNT: Final = {"type": "integer", "minimum": 1}
_PAGE: Final = ("page", _COUNT, "Which page, from 1.")

Parameters = Sequence[tuple[str, Mapping[str, Any], str]]

PATHS: Final[Sequence[tuple[str, str, Parameters]]] = (
    (
        "/index.json",
        "A page of the skills that fit, or that a search finds, and counts to narrow it by.",
        (
            (
                "q",
                {**_TEXTS, "maxItems": MAX_QUERIES},
                "What to search for; what several find comes in turn.",
            ),
            *_FILTERS,
            ("limit", {**_COUNT, "maximum": MAX_PAGE}, "Skills on a page."),
            _PAGE,
        ),
    ),
    ("/skills.json", "All skills that fit, as one array, streamed.", _FILTERS),
    ("/skills/{ref}.json", "Everything of one skill.", ()),
    ("/files/{ref}.json", "A file of a skill.", (("path", {"type": "string"}, "Of the file."),)),
    (
        "/history/{ref}.json",
        "What a skill was like, and two of its contents compared.",
        (("old", _COUNT, "From this revision."), ("new", _COUNT, "To this revision.")),
    ),
    ("/copies/{ref}.json", "Copies of a skill, and what is nearly the same.", ()),
    (
        "/why.json",
        "Why a skill is, or isn't, listed.",
        (
            ("q", {"type": "string"}, "Its name or ref; of one's own machine also a path."),
            ("personality", {"type": "string"}, "For this personality."),
        ),
    ),
    ("/sources.json", "Where skills come from.", ()),
    (
        "/findings.json",
        "How often each finding was made; with a code, the findings of it.",
        (("code", {"type": "string"}, "Of this code."), _PAGE),
    ),
    ("/changes.json", "The last changes.", (("days", _COUNT, "Of so many days."),)),
    ("/stats.json", "What there is in all.", ()),
    ("/personalities.json", "Who sees what.", ()),
    (
        "/personalities/{name}.json",
        "What a personality sees, and by which rule.",
        (("rule", {"type": "string"}, "Decided by this rule."), _PAGE),
    ),
)
"""All JSON pages: path, description, query parameters."""


async def openapi(request: Request) -> Response:
    """Return the description."""
    headers = {"cache-control": "public, max-age=3600"}
    return compressed(request, as_json(described()), "application/json", headers)


@cache
def described() -> dict[str, Any]:
    """Return the OpenAPI document."""
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
            "304": {"description": "It is as it was when the client's ETag was given."},
            "4XX": {"description": "Not done; `error` has a code, a message and choices."},
        },
    }


def _parameters(path: str, query: Parameters) -> Iterator[dict[str, Any]]:
    for name in ("ref", "name"):
        if f"{{{name}}}" in path:
            yield {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
    for name, schema, about in query:
        yield {"name": name, "in": "query", "schema": dict(schema), "description": about}
