"""Names in several places: the same files, differing ones, and the same text under other names."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Final, Literal

from registry.catalog.resolve import resolve
from registry.catalog.search.find import search
from registry.db.interface import Reader
from registry.db.queries.copies import bodies, repeated, same_as
from registry.db.queries.filters import Filters
from registry.db.queries.skills import StoredSkill, by_place
from registry.model import Skill
from registry.text import words

Relation = Literal["identical", "differing", "alike"]

SHINGLE: Final = 3
"""Words that are compared together: so order counts, and single words in common do not."""

ALIKE: Final = 0.7
"""Share of common shingles from which on two texts count as nearly alike."""

COMPARED: Final = 40
"""Skills found by the words of a skill's description that are compared with it."""

MAX_QUESTION: Final = 600
MAX_TEXT: Final = 100_000
"""Characters of a text that are compared."""


@dataclass(frozen=True, slots=True)
class Copies:
    """Skills that are, or look like, one; the newest first.

    ``identical``: one name and the same files. ``differing``: one name, and not all files are the
    same. ``alike``: nearly the same text under another name.
    """

    name: str
    relation: Relation
    skills: tuple[Skill, ...]


def copies_of(reader: Reader, stored: StoredSkill) -> list[StoredSkill]:
    """Return the copies of a skill: its name and its files in other places."""
    # Kept with each skill, so nearly always nothing has to be asked for.
    return same_as(reader, stored) if stored.skill.copies else []


@dataclass(frozen=True, slots=True)
class Fate:
    """What a change of a skill did to its copies: the refs, as they are now, of those it left.

    ``changed`` are those that it changed, too; of what it deleted, the refs that they had. Both are
    empty where it changed nothing at all.
    """

    left: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()


def fate(reader: Reader, changed: StoredSkill, before: Sequence[StoredSkill]) -> Fate:
    """Tell what a change of a skill did to its copies (`copies_of`, ``before`` the change)."""
    left: list[str] = []
    too: list[str] = []
    if not before or _is_same(changed, _now(reader, changed)):
        return Fate()
    for one in before:
        now = _now(reader, one)
        ref = one.skill.ref if now is None else now.skill.ref
        (left if _is_same(one, now) else too).append(ref)
    return Fate(tuple(left), tuple(too))


def _now(reader: Reader, stored: StoredSkill) -> StoredSkill | None:
    return by_place(reader, stored.source_id, stored.folder)


def _is_same(before: StoredSkill, now: StoredSkill | None) -> bool:
    return now is not None and now.skill.tree_hash == before.skill.tree_hash


def copies(reader: Reader, handle: str | None = None) -> list[Copies]:
    """Return the names that lie in several places, or what lies where for one skill.

    What is nearly alike is looked for with a ``handle`` alone. Raises as `resolve`.
    """
    if handle is None:
        by_name = groupby(repeated(reader), key=lambda skill: skill.name)
        return [_related(name, list(some)) for name, some in by_name]
    with reader.snapshot():
        # An ambiguous name is what is asked about here, so it comes before the one resolver.
        namesakes = repeated(reader, handle) or repeated(reader, resolve(reader, handle).skill.name)
        if not namesakes:
            return []
        name = namesakes[0].name
        found = [_related(name, namesakes)] if len(namesakes) > 1 else []
        alike = tuple(_alike(reader, namesakes[0]))
    return [*found, Copies(name, "alike", alike)] if alike else found


def _related(name: str, skills: Sequence[Skill]) -> Copies:
    hashes = {skill.tree_hash or skill.ref for skill in skills}
    newest = sorted(skills, key=lambda skill: skill.updated_at, reverse=True)
    return Copies(name, "identical" if len(hashes) == 1 else "differing", tuple(newest))


def _alike(reader: Reader, skill: Skill) -> Iterator[Skill]:
    """Return listed skills of other names whose text is nearly the same, the most similar first."""
    question = f"{skill.name} {skill.description}"[:MAX_QUESTION]
    found = search(reader, [question], Filters(), limit=COMPARED)
    others = [one.ref for one in found if one.name != skill.name]
    read = bodies(reader, [skill.ref, *others])
    texts = {one.ref: (one, _shingles(text)) for text, one in read}
    _, mine = texts.pop(skill.ref)
    scored = []
    for other, theirs in texts.values():
        common = len(mine & theirs) / (len(mine | theirs) or 1)
        if common >= ALIKE:
            scored.append((common, other))
    scored.sort(key=lambda one: (-one[0], one[1].ref))
    return (other for _, other in scored)


def _shingles(text: str) -> set[tuple[str, ...]]:
    said = [word.casefold() for word in words(text[:MAX_TEXT])]
    return {tuple(said[start : start + SHINGLE]) for start in range(len(said) - SHINGLE + 1)}
