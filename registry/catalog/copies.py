"""Copies (skills with the same name) and near-duplicates (similar texts under other names)."""

import re
from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Final, Literal, TypeAlias

from registry.catalog.resolve import resolve
from registry.db.interface import Condition, Reader
from registry.db.read.listing import Filters, where
from registry.db.read.search import (
    same_files_as,
    sketch_at,
    sketches_of,
    skills_of,
    skills_sharing_names,
)
from registry.db.read.skills import StoredSkill, by_place
from registry.document.minhash import are_alike, fit, keys, probes, unpacked
from registry.model import Skill, Value
from registry.text import runs


def gathered(ids: Sequence[int], sketches: Mapping[int, bytes]) -> dict[int, list[int]]:
    """Group near-duplicates: return each group's first id, in order, with the group's other ids."""
    kept: dict[int, list[int]] = {}
    holders: list[dict[bytes, int]] = [{} for _ in keys(fit(None))]
    known: dict[int, bytes] = {}
    for one in ids:
        data = fit(sketches.get(one))
        its_keys = keys(data)
        found = [
            by_key[key] for by_key, key in zip(holders, its_keys, strict=True) if key in by_key
        ]
        if found:  # most skills share no key with another skill, so they need no comparison
            mine = unpacked(data)
            others = dict.fromkeys(found)
            better = next((two for two in others if are_alike(mine, unpacked(known[two]))), None)
            if better is not None:
                kept[better].append(one)
                continue
        kept[one], known[one] = [], data
        for by_key, key in zip(holders, its_keys, strict=True):
            by_key.setdefault(key, one)
    return kept


TRANSLATED: Final = 0.8
"""Minimum share of a translation's Latin words that its original also contains.

A translation into another script keeps commands, code and names in Latin letters. Of 2,173 pairs of
an original and its translation, 87 % have at least this share.
"""

_LATIN: Final = re.compile("[A-Za-z][A-Za-z0-9_./:-]{3,}")
_MIN_LATIN: Final = 5
_WRITTEN: Final = 0.1
"""Minimum share of characters from scripts without spaces.

A text with at least this share counts as written in a script without spaces.
"""


def is_in_unspaced_script(text: str) -> bool:
    """Tell whether a text is in Chinese, Japanese, Thai or another script without spaces."""
    return sum(map(len, runs(text)[1::2])) > _WRITTEN * len(text)


def are_translations(unspaced: str, other: str) -> bool:
    """Tell whether a text in a script without spaces is a translation of the other text."""
    kept, words = set(_LATIN.findall(unspaced)), set(_LATIN.findall(other))
    return len(kept) >= _MIN_LATIN and len(kept & words) >= TRANSLATED * len(kept)


Relation = Literal["identical", "differing", "alike"]


@dataclass(frozen=True, slots=True)
class Copies:
    """Skills that are copies of each other, the newest first, or near-duplicates, by name.

    ``relation`` is ``identical`` if the skills have the same name and files. The relation is
    ``differing`` if the skills have the same name but not all have the same files. It is ``alike``
    if the skills have different names and nearly the same text. The near-duplicates of one skill
    don't include the skill itself.
    """

    name: str
    relation: Relation
    skills: tuple[Skill, ...]


def copies_of(reader: Reader, stored: StoredSkill) -> list[StoredSkill]:
    """Return the skills in other folders with the same name and files as a skill."""
    # Each skill has the refs of its copies. If it has none, no query is needed.
    return same_files_as(reader, stored) if stored.skill.copies else []


@dataclass(frozen=True, slots=True)
class Fate:
    """The copies of a changed skill, as refs, and whether they also changed.

    ``left`` holds the copies that did not change. ``changed`` holds the copies that changed
    together with the skill. After a deletion, ``changed`` holds the former refs of the copies. Both
    are empty if the skill itself did not change.
    """

    left: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()


def fate(
    reader: Reader,
    changed: StoredSkill,
    before: Sequence[StoredSkill],
    localized: Callable[[Skill], Skill] = lambda skill: skill,
) -> Fate:
    """Return which copies changed together with a skill, and which did not.

    ``before`` is the result of `copies_of` before the change. The function ``localized`` returns a
    skill with its ref in the caller's view.
    """
    left: list[str] = []
    too: list[str] = []
    if not before or _is_same(changed, by_place(reader, changed.source_id, changed.folder)):
        return Fate()
    for one in before:
        now = by_place(reader, one.source_id, one.folder)
        ref = one.skill.ref if now is None else localized(now.skill).ref
        (left if _is_same(one, now) else too).append(ref)
    return Fate(tuple(left), tuple(too))


def _is_same(before: StoredSkill, now: StoredSkill | None) -> bool:
    return now is not None and now.skill.tree_hash == before.skill.tree_hash


def copies(reader: Reader, handle: str | None = None) -> list[Copies]:
    """Return the skills that share a name, and the near-duplicates under other names.

    If a ``handle`` is given, return only the copies of the skill with this name or ref. Raises the
    errors of `resolve`.
    """
    with reader.snapshot():
        listed = where(reader, Filters(), reader.visibility)
        if handle is None:
            by_name = groupby(skills_sharing_names(reader), key=lambda skill: skill.name)
            found = [_related(name, list(some)) for name, some in by_name]
            near = alike(reader, near_duplicates(reader, listed))
            return found + [Copies(one.skills[0].name, "alike", one.skills) for one in near]
        # If several skills have the name, `resolve` would raise an error. Here the answer may
        # include all of them, so try the handle as a name first.
        namesakes = skills_sharing_names(reader, handle) or skills_sharing_names(
            reader, resolve(reader, handle).skill.name
        )
        if not namesakes:
            return []
        return _copies(reader, namesakes[0], namesakes, listed)


def copies_among(
    reader: Reader, stored: StoredSkill, same: Sequence[int], listed: Condition
) -> list[Copies]:
    """Return the copies of one skill, as `copies` does, in a view that doesn't show all skills.

    ``same`` holds the usable versions in the view that have the skill's name. ``listed`` is the
    condition of the skills that the view lists.
    """
    with reader.snapshot():
        return _copies(reader, stored.skill, list(skills_of(reader, same).values()), listed)


def _copies(
    reader: Reader, skill: Skill, namesakes: Sequence[Skill], listed: Condition
) -> list[Copies]:
    like = tuple(_like(reader, skill, listed))
    found = [_related(skill.name, namesakes)] if len(namesakes) > 1 else []
    return [*found, Copies(skill.name, "alike", like)] if like else found


def _related(name: str, skills: Sequence[Skill]) -> Copies:
    hashes = {skill.tree_hash or skill.ref for skill in skills}
    newest = sorted(skills, key=lambda skill: skill.updated_at, reverse=True)
    return Copies(name, "identical" if len(hashes) == 1 else "differing", tuple(newest))


@dataclass(frozen=True, slots=True)
class Alike(Value):
    """A group of near-duplicates with different names.

    ``skills`` has the first skills by name, and ``total`` is the number of all skills in the group.
    """

    skills: tuple[Skill, ...]
    total: int


Group: TypeAlias = Sequence[int]
"""The version ids of near-duplicates with different names, by name."""


def near_duplicates(reader: Reader, listed: Condition) -> list[Group]:
    """Group the near-duplicates among the skills that meet a condition, by name.

    A group has the skill whose name comes first, and its near-duplicates with other names.
    """
    names: dict[int, str] = {}
    sketches: dict[int, bytes] = {}
    for one, name, data in sketches_of(reader, listed):
        names[one], sketches[one] = name, bytes(data)
    return [
        array("q", [first, *others])
        for first, some in gathered(list(names), sketches).items()
        if (others := [one for one in some if names[one] != names[first]])
    ]


def alike(reader: Reader, groups: Sequence[Group], most: int | None = None) -> list[Alike]:
    """Return groups of `near_duplicates` with at most ``most`` skills of each."""
    known = skills_of(reader, [one for group in groups for one in group[:most]])
    shown = ((tuple(known[one] for one in group[:most] if one in known), group) for group in groups)
    return [Alike(some, len(group)) for some, group in shown if some]


def _like(reader: Reader, skill: Skill, listed: Condition) -> Iterator[Skill]:
    """Yield the listed skills with other names and nearly the same text as the skill."""
    mine = fit(sketch_at(reader, skill))
    found = sketches_of(reader, listed, sharing=probes(mine))
    like = [
        one
        for one, name, theirs in found
        if name != skill.name and are_alike(unpacked(mine), unpacked(fit(bytes(theirs))))
    ]
    return iter(skills_of(reader, like).values())
