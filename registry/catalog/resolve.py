"""Find the skill that a name or ref means; if there is none, suggest similar names."""

import difflib
from collections.abc import Iterable, Iterator
from shlex import quote
from typing import Final, NamedTuple, Self

from registry.db.interface import Reader
from registry.db.read.history import Tombstone, latest_tombstone
from registry.db.read.labels import shows_yanked, version, versions
from registry.db.read.skills import StoredSkill, by_handle, names_and_sources, visible_names
from registry.document.labels import split
from registry.errors import (
    SkillAmbiguous,
    SkillGone,
    SkillInTrash,
    SkillNotFound,
    VersionNotFound,
    VersionYanked,
)
from registry.model import SkillVersion
from registry.text import name_key, skeleton, spellings


def trust_command(source: str, ref: str = "") -> str:
    """Return the command that trusts a quarantined skill; without ``ref``, all of a source."""
    names = filter(None, (source, ref.removeprefix(f"{source}/")))
    return f"skill-registry source trust {' '.join(map(quote, names))}"


SUGGESTIONS: Final = 5

COMPARED: Final = 60
"""Maximum number of names for the complete comparison with the handle, which is slow.

If there are more names, the ones with the most parts in common with the handle are compared.
"""

FEW: Final = 300
"""If there are at most this many names, all of them are compared completely with the handle."""

PIECES: Final = 4
MAX_HITS: Final = 300
SHORT: Final = 6
MAX_LENGTH: Final = 100
MIN_PART: Final = 3


class Names(NamedTuple):
    """The searchable names and folders of all visible skills, and their refs.

    ``text`` has one name or folder on each line.
    """

    refs: dict[str, str]
    text: str

    @classmethod
    def of(cls, some: Iterable[tuple[str, str, str]]) -> Self:
        """Create the value from (ref, name key, folder) of each skill."""
        refs: dict[str, str] = {}
        for ref, key, folder in some:
            refs.setdefault(_loose(key), ref)
            refs.setdefault(_loose(name_key(folder.rsplit("/", 1)[-1])), ref)
        refs.pop("", None)
        return cls(refs, "\n".join(["", *refs, ""]))


def near(reader: Reader, handle: str) -> list[str]:
    """Return the refs of visible skills whose names are similar to ``handle``, best first."""
    name = f"names {reader.visibility.sources}"
    names = reader.remembered(name, lambda reader: Names.of(visible_names(reader)))
    return nearest(names, handle)


def nearest(names: Names, handle: str) -> list[str]:
    """Return the refs of ``names`` that are similar to ``handle``, best first."""
    wanted = _loose(name_key(handle[:MAX_LENGTH].rsplit("/", 1)[-1]))
    if not wanted:
        return []
    keys = _alike(names, wanted) if len(names.refs) > FEW else list(names.refs)
    close = difflib.get_close_matches(wanted, keys, n=SUGGESTIONS, cutoff=0.6)
    close.sort(key=lambda key: (-difflib.SequenceMatcher(None, key, wanted).ratio(), key))
    if len(wanted) >= MIN_PART:
        close += [key for key in keys if wanted in key and key not in close][:SUGGESTIONS]
    return list(dict.fromkeys(names.refs[key] for key in close))[:SUGGESTIONS]


def look_alikes(reader: Reader) -> dict[str, set[tuple[str, str]]]:
    """Group (name, source) pairs of names that look alike; the key is their common appearance.

    A group has at least two different names from different sources.
    """
    alike: dict[str, set[tuple[str, str]]] = {}
    for name, source in names_and_sources(reader):
        alike.setdefault(skeleton(name), set()).add((name, source))
    return {
        key: pairs
        for key, pairs in alike.items()
        if all(len(set(values)) > 1 for values in zip(*pairs, strict=True))
    }


def imitated(alike: dict[str, set[tuple[str, str]]], name: str) -> list[str]:
    """Return the skills, as ``source/name``, whose names look like ``name`` but differ from it."""
    pairs = alike.get(skeleton(name), ())
    return sorted(f"{source}/{other}" for other, source in pairs if other != name)


def _loose(key: str) -> str:
    return " ".join(key.split()).replace("_", "-").replace(" ", "-")


def _alike(names: Names, wanted: str) -> list[str]:
    """Return the names that share a part with ``wanted``, the most similar first.

    Even if a name has a few typing errors, at least one part of it is usually correct.
    """
    size = max(2, -(-len(wanted) // PIECES))
    pieces = [wanted[at : at + size] for at in range(0, len(wanted), size)]
    shared: dict[str, int] = {}
    for piece in (wanted, *pieces):
        for key in _holding(names.text, piece):
            shared[key] = shared.get(key, 0) + 1
    if len(wanted) <= SHORT:
        for key in names.refs:
            if abs(len(key) - len(wanted)) <= 1:
                shared.setdefault(key, 0)
    ranked = sorted(shared, key=lambda key: (-shared[key], abs(len(key) - len(wanted)), key))
    return ranked[:COMPARED]


def _holding(text: str, piece: str) -> Iterator[str]:
    at, hits = text.find(piece), 0
    while at >= 0 and hits < MAX_HITS:
        start, end = text.rfind("\n", 0, at) + 1, text.find("\n", at)
        yield text[start:end]
        at, hits = text.find(piece, end), hits + 1


MAX_HANDLE: Final = 1 << 16
MAX_TOLD: Final = 200
"""Maximum number of characters that a message quotes from a handle."""


def resolve(reader: Reader, handle: str) -> StoredSkill:
    """Return the stored skill that ``handle`` means.

    The search usually takes one query. If a handle with accents matches no skill, its other Unicode
    form (composed or decomposed) is also tried. If several skills match, raises `SkillAmbiguous`
    with their refs. If none matches, raises the errors of `not_found`.
    """
    found = _resolved(reader, handle)
    if found is None:
        raise not_found(reader, handle)
    return found


def _resolved(reader: Reader, handle: str) -> StoredSkill | None:
    for spelling in spellings(handle) if is_storable(handle) else ():
        for found in _attempts(reader, spelling):
            if len(found) == 1:
                return found[0]
            if found:
                raise SkillAmbiguous(handle, sorted(one.skill.ref for one in found))
    return None


def split_label(reader: Reader, handle: str) -> tuple[str, str] | None:
    """Split ``NAME@LABEL``; return None if the handle has no label.

    If the whole handle is the name of a skill, it has no label.
    """
    parts = split(handle)
    if parts is None or _resolved(reader, handle) is not None:
        return None
    return parts


def version_of(
    reader: Reader, stored: StoredSkill, label: str, *, yanked: bool = True
) -> SkillVersion:
    """Return the version of a skill with this label.

    Only the owner of the skill's source gets a yanked version, and only if ``yanked``. Raises
    `VersionNotFound`, `VersionYanked`.
    """
    found = version(reader, stored.uid, label)
    if found is None:
        known = [one.label for one in versions(reader, stored.uid) if one.state != "yanked"]
        raise VersionNotFound(name=stored.skill.ref, label=label[:MAX_TOLD], known=known)
    if found.state == "yanked" and not (yanked and shows_yanked(reader, stored.source_id)):
        raise VersionYanked(stored.skill.ref, label, found.reason, found.replacement)
    return found


def not_found(reader: Reader, handle: str) -> SkillNotFound:
    """Return the error for a handle that matches no skill.

    The error is `SkillInTrash` or `SkillGone` if the skill existed before, else `SkillNotFound`
    with similar names.
    """
    handle = handle.rstrip("/") or handle
    tombstone = latest_tombstone(reader, handle) if is_storable(handle) else None
    return (
        SkillNotFound(handle[:MAX_TOLD], near(reader, handle))
        if tombstone is None
        else lost(handle, tombstone)
    )


def lost(handle: str, tombstone: Tombstone) -> SkillGone:
    """Return the error for a skill that was removed."""
    kind = SkillGone if tombstone.trash is None else SkillInTrash
    return kind(handle[:MAX_TOLD], tombstone.since, tombstone.source, tombstone.place)


def is_storable(handle: str) -> bool:
    """Tell whether a text can be a handle: it isn't empty, isn't too long and contains no NUL."""
    return 0 < len(handle) <= MAX_HANDLE and "\0" not in handle


def _attempts(reader: Reader, handle: str) -> list[list[StoredSkill]]:
    """Return lists of skills that match ``handle``: as source/folder, as source/name, as a name.

    `resolve` uses the first list that isn't empty.
    """
    placed, named = by_handle(reader, handle)
    source, slash, rest = handle.partition("/")
    whole = [one for one in named if one.skill.name == handle]
    usable = [one for one in whole if one.is_usable and not one.skill.shadowed]
    # Prefer usable skills that are visible from the working folder, then other usable skills, then
    # any skill with this name.
    meant = [one for one in usable if one.within] or usable or whole
    if len(meant) > 1:  # a name without a source means the skill without a team
        meant = [one for one in meant if one.team is None] or meant
    if len(meant) > 1:  # an installed copy has precedence over its original
        meant = [one for one in meant if not any(copy.is_copy_of(one) for copy in meant)]
    return [
        placed,
        [one for one in named if slash and (one.skill.source, one.skill.name) == (source, rest)],
        meant,
    ]
