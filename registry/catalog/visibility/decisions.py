"""Decisions for the skills of a registry: one SELECT, then the rules."""

import difflib
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, TypeVar

from registry.catalog.visibility.needs import needs_of, read_needs
from registry.catalog.visibility.rules import HIDDEN, NO_PERSONALITY, Decision, Facts, Host, decide
from registry.core import Core
from registry.db.interface import Reader
from registry.db.read.listing import Candidate, Filters, candidates
from registry.errors import PersonalityNotFound
from registry.model import Document, Skill, Source
from registry.settings import Personality, Settings

K = TypeVar("K")


def decide_all(
    reader: Reader,
    personality: Personality | None,
    environ: Mapping[str, str] = os.environ,
    *,
    name: str | None = None,
) -> list[tuple[Skill, Decision]]:
    """Return each visible skill (of one ``name``, if given) by name, with its decision.

    A skill is visible if no stronger source hides it. A skill that the personality does not see
    hides nothing. ``environ`` holds the variables that skills may need, ``PATH`` among them.
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

    ``source_id``: only this source, also its skills that stronger ones hide.
    """
    is_one_source = source_id is not None
    if personality is None:
        some = candidates(reader, judged=is_one_source, name=name, source_id=source_id)
        for one in some:
            yield one.id, one.skill, HIDDEN if one.hidden == 1 else NO_PERSONALITY
        return
    decided = list(_decided(reader, personality, Host(environ), name=name, source_id=source_id))
    free = unhidden(one for one, choice in decided if choice.visible)
    for one, choice in decided:
        is_hidden = one.id not in free if choice.visible else one.skill.shadowed
        if is_one_source or not is_hidden:
            yield one.id, one.skill, choice


def admitted(
    reader: Reader, personality: Personality, host: Host, **among: str | None
) -> list[Candidate]:
    """Return the skills that a personality lets in, by name, hidden by others of them or not.

    ``among`` as `candidates` has it.
    """
    decided = _decided(reader, personality, host, **among)
    return [one for one, choice in decided if choice.visible]


def _decided(
    reader: Reader, personality: Personality, host: Host, **among: Any
) -> Iterator[tuple[Candidate, Decision]]:
    for one in candidates(reader, judged=True, **among):
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
        yield one, decide(facts, personality, host)


def unhidden(some: Iterable[Candidate]) -> set[int]:
    """Return the versions that no other of these usable skills hides, as `db.write.names` does.

    A skill of a project hides those of weaker projects and of none; otherwise that of a stronger
    source hides the weaker, among sources of one team and one owner, or as an admin decided. Of
    copies only the first is left.
    """
    skills = list(some)
    projects: dict[str, int] = {}
    highest: dict[tuple[object, ...], int] = {}
    best: dict[tuple[object, ...], int] = {}
    oldest: dict[tuple[object, ...], int] = {}
    for one in skills:
        rank, mine = one.rank, _among(one)
        _lower(projects, one.skill.name, rank.project)
        _lower(highest, mine, rank.precedence)
        _lower(best, (mine, rank.precedence, rank.owner), rank.strength)
        _lower(oldest, (mine, _content(one), rank.owner), rank.source_id)

    def order(one: Candidate) -> tuple[int, ...]:
        rank, mine = one.rank, _among(one)
        is_beaten = (
            rank.precedence > highest[mine]
            or rank.strength > best[mine, rank.precedence, rank.owner]
        )
        age = oldest[mine, _content(one), rank.owner]
        return (
            *(int(is_beaten), rank.precedence, age),
            *(rank.strength, rank.source_id, rank.position),
        )

    copies: set[tuple[object, ...]] = set()
    found = set()
    for one in sorted(skills, key=order):
        same = _among(one), _content(one)
        is_first = projects[one.skill.name] == one.rank.project and same not in copies
        if is_first and not order(one)[0]:
            found.add(one.id)
        copies.add(same)
    return found


def _lower(known: dict[K, int], key: K, value: int) -> None:
    """Keep the lowest value of a key."""
    known[key] = min(value, known.get(key, value))


def _among(one: Candidate) -> tuple[str, int, str]:
    """Return what is the same for skills that can hide each other."""
    team = "" if one.skill.scope == "project" else one.rank.team
    return one.skill.name, one.rank.project, team


def _content(one: Candidate) -> str | int:
    """Return what is the same for copies of a skill."""
    return one.skill.tree_hash or one.id


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
