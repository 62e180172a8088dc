"""Decisions for the skills of a registry: one SELECT, then the rules."""

import difflib
import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import replace

from registry.catalog.visibility.needs import needs_of, read_needs
from registry.catalog.visibility.rules import HIDDEN, NO_PERSONALITY, Decision, Facts, Host, decide
from registry.core import Core
from registry.db.interface import Reader
from registry.db.queries.candidates import candidates
from registry.db.queries.filters import Filters
from registry.errors import PersonalityNotFound
from registry.model import Document, Skill, Source
from registry.settings import Personality, Settings


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
    source_id: int | None = None,
) -> Iterator[tuple[int, Skill, Decision]]:
    """Yield what `decide_all` returns, each with the id of its stored version.

    ``source_id``: of one source, and what stronger ones hide is decided, too.
    """
    team = None if personality is None else personality.team or ""
    host = Host(environ)
    for one in candidates(reader, team=team, name=name, source_id=source_id):
        if personality is None:
            yield one.id, one.skill, HIDDEN if one.hidden == 1 else NO_PERSONALITY
            continue
        tools = one.required_tools
        facts = Facts(
            name=one.skill.name,
            source=one.skill.source,
            scope=one.skill.scope,
            tags=one.skill.tags,
            required_tools=() if tools == "[]" else tuple(json.loads(tools)),
            needs=read_needs(one.front_matter),
            hidden=one.hidden == 1,
        )
        yield one.id, one.skill, decide(facts, personality, host)


def decide_document(
    document: Document,
    source: Source,
    personality: Personality | None,
    environ: Mapping[str, str],
) -> Decision:
    """Decide about a skill file that was just read in a source, stored already or not."""
    facts = Facts(
        name=document.name,
        source=source.name,
        scope=source.scope,
        tags=document.tags,
        required_tools=document.required_tools,
        needs=needs_of(document.front_matter),
        hidden=document.hidden,
    )
    return decide(facts, personality, Host(environ))


def decided(core: Core, name: str | None) -> list[tuple[Skill, Decision]]:
    """Decide about every visible skill for the personality of this name, if any.

    Raises `PersonalityNotFound`.
    """
    return decide_all(core.reader, None if name is None else personality(core.settings, name))


def seen_by(core: Core, name: str, filters: Filters) -> Filters:
    """Return ``filters`` of only what the personality of this name sees now.

    Raises `PersonalityNotFound`.
    """
    found = decisions(core.reader, personality(core.settings, name), os.environ)
    return replace(filters, ids=[version for version, _, choice in found if choice.visible])


def personality(settings: Settings, name: str) -> Personality:
    """Return the personality that the settings know by this name.

    Raises `PersonalityNotFound` with near names.
    """
    known = settings.personalities
    if name not in known:
        near = difflib.get_close_matches(name, known, n=3, cutoff=0.5)
        raise PersonalityNotFound(name=name, similar=near, known=sorted(known))
    return known[name]
