"""Names that look like one that was not found, fast enough for an error among very many skills."""

import difflib
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple, Self

from registry.db.interface import Reader
from registry.db.read.skills import names_and_sources, visible_names
from registry.text import name_key, skeleton

SUGGESTIONS: Final = 5

COMPARED: Final = 60
"""Names whose similarity is worked out, which is slow: those that share the most with the word."""

FEW: Final = 300
"""So many names are compared all."""

PIECES: Final = 4
MAX_HITS: Final = 300
SHORT: Final = 6
MAX_LENGTH: Final = 100
MIN_PART: Final = 3


class Names(NamedTuple):
    """The keys of all visible names and folders, each with its ref; ``text`` has one a line."""

    refs: dict[str, str]
    text: str

    @classmethod
    def of(cls, some: Iterable[tuple[str, str, str]]) -> Self:
        """Return the names of skills, given as (ref, key of the name, folder)."""
        refs: dict[str, str] = {}
        for ref, key, folder in some:
            refs.setdefault(_loose(key), ref)
            refs.setdefault(_loose(name_key(folder.rsplit("/", 1)[-1])), ref)
        refs.pop("", None)
        return cls(refs, "\n".join(["", *refs, ""]))


def near(reader: Reader, handle: str) -> list[str]:
    """Return the refs of visible skills whose names look like ``handle``, the nearest first."""
    name = f"names {reader.visibility.sources}"
    names = reader.remembered(name, lambda reader: Names.of(visible_names(reader)))
    return nearest(names, handle)


def nearest(names: Names, handle: str) -> list[str]:
    """Return the refs of names that look like ``handle``, the nearest first."""
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
    """Return the (name, source) pairs that look alike, by what they look like.

    Each group has several names, from several sources.
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
    """Return the skills, as ``source/name``, that a name looks like and does not equal."""
    pairs = alike.get(skeleton(name), ())
    return sorted(f"{source}/{other}" for other, source in pairs if other != name)


def _loose(key: str) -> str:
    return " ".join(key.split()).replace("_", "-").replace(" ", "-")


def _alike(names: Names, wanted: str) -> list[str]:
    """Return keys that share a piece with ``wanted``; a few slips leave some piece as it was."""
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
