"""Decisions for the skills of a registry: one SELECT, then the rules."""

import difflib
import json
import os
from collections.abc import Iterator, Mapping

from registry.catalog.visibility.needs import MENTIONED, read_needs
from registry.catalog.visibility.rules import HIDDEN, NO_PERSONALITY, Decision, Facts, Host, decide
from registry.db.queries.filters import FROM, USABLE, order
from registry.db.queries.rows import COLUMNS, fill
from registry.db.reader import Reader
from registry.errors import PersonalityNotFound
from registry.model import Skill
from registry.settings import Personality, Settings

_LIVE = f"s.live = 1 AND src.enabled = 1 AND {USABLE}"

_HERE = f"""{_LIVE} AND (s.shadowed = 0 OR NOT EXISTS (
    SELECT 1 FROM skills other JOIN sources home ON home.id = other.source_id
    WHERE other.name = s.name AND other.live = 1 AND other.status IN ('ok', 'warning')
      AND home.enabled = 1 AND home.strength < src.strength
      AND (home.scope <> 'team' OR home.name = ?)))"""
"""A skill of a team that is not seen hides nothing from this personality."""


def decide_all(
    reader: Reader,
    personality: Personality | None,
    environ: Mapping[str, str] = os.environ,
    *,
    name: str | None = None,
) -> list[tuple[Skill, Decision]]:
    """Return each visible skill (of one ``name``, if given) by name, with its decision.

    Visible is what no stronger source hides; sources of other teams hide nothing. ``environ``
    holds the variables that skills may need, ``PATH`` among them.
    """
    return [(skill, choice) for _, skill, choice in decisions(reader, personality, environ, name)]


def decisions(
    reader: Reader,
    personality: Personality | None,
    environ: Mapping[str, str],
    name: str | None = None,
) -> Iterator[tuple[int, Skill, Decision]]:
    """Yield what `decide_all` returns, each with the id of its stored version."""
    values: list[str] = []
    if personality is None:
        columns, tables, condition = "NULL", FROM, f"{_LIVE} AND s.shadowed = 0"
    else:
        columns = f"CASE WHEN {MENTIONED} THEN d.front_matter END"
        tables, condition = f"{FROM} LEFT JOIN documents d ON d.skill_id = s.id", _HERE
        values.append(personality.team or "")
    if name is not None:
        condition += " AND s.name = ?"
        values.append(name)
    sql = (
        f"SELECT s.id, s.hidden, s.required_tools, {columns}, {COLUMNS} FROM {tables} "
        f"WHERE {condition} ORDER BY {order('name', reverse=False)}"
    )
    host = Host(environ)
    for version, hidden, tools, front_matter, *row in reader.rows(sql, values):
        skill = fill(Skill, tuple(row))
        if personality is None:
            yield version, skill, HIDDEN if hidden == 1 else NO_PERSONALITY
            continue
        facts = Facts(
            name=skill.name,
            source=skill.source,
            scope=skill.scope,
            tags=skill.tags,
            required_tools=() if tools == "[]" else tuple(json.loads(tools)),
            needs=read_needs(front_matter),
            hidden=hidden == 1,
        )
        yield version, skill, decide(facts, personality, host)


def seen_ids(
    reader: Reader, personality: Personality | None, environ: Mapping[str, str] = os.environ
) -> list[int]:
    """Return the stored versions of all skills that are seen."""
    found = decisions(reader, personality, environ)
    return [version for version, _, choice in found if choice.visible]


def personality(settings: Settings, name: str) -> Personality:
    """Return the personality that the settings know by this name.

    Raises `PersonalityNotFound` with near names.
    """
    known = settings.personalities
    if name not in known:
        near = difflib.get_close_matches(name, known, n=3, cutoff=0.5)
        raise PersonalityNotFound(name=name, similar=near, known=sorted(known))
    return known[name]
