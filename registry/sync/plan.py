"""Compare what was scanned with what is known. No input or output happens here."""

from collections.abc import Iterable, Iterator
from typing import Literal, NamedTuple

from registry.db.queries.known import StoredFingerprint
from registry.disk.found import Found
from registry.disk.paths import position


class Difference(NamedTuple):
    """A folder that is new (no ``known``), gone (no ``found``), or must be looked at again."""

    kind: Literal["new", "gone", "suspect", "same"]
    found: Found | None
    known: StoredFingerprint | None


def compare(
    scanned: Iterable[Found], known: Iterable[StoredFingerprint], *, verify: bool
) -> Iterator[Difference]:
    """Merge both streams, each in the order of `position`, into their differences.

    A folder is ``same`` only where its fingerprint is equal and was not taken so early that a
    later change could hide behind it; ``verify`` trusts no fingerprint.
    """
    rows = iter(known)
    row = next(rows, None)
    for found in scanned:
        here = position(found.folder)
        while row is not None and row.position < here:
            yield Difference("gone", None, row)
            row = next(rows, None)
        if row is None or row.position > here:
            yield Difference("new", found, None)
            continue
        trusted = row.fingerprint == found.fingerprint and not row.racy and not verify
        yield Difference("same" if trusted else "suspect", found, row)
        row = next(rows, None)
    while row is not None:
        yield Difference("gone", None, row)
        row = next(rows, None)


def pair_moves(
    added: Iterable[tuple[int, str, str]], gone: Iterable[tuple[int, str, str]]
) -> dict[tuple[int, str], int]:
    """Pair new folders with gone versions of the same content.

    ``added``: (source id, folder, tree hash); ``gone``: (version id, folder, tree hash). Among
    several of the same content the one whose last folder is the same is preferred, then order.
    Returns the version id for each (source id, folder) that is a move.
    """
    by_hash: dict[str, list[tuple[int, str]]] = {}
    for version, folder, tree in gone:
        by_hash.setdefault(tree, []).append((version, folder))
    pairs: dict[tuple[int, str], int] = {}
    for source_id, folder, tree in added:
        candidates = by_hash.get(tree)
        if not candidates:
            continue
        last = folder.rsplit("/", 1)[-1]
        best = next((c for c in candidates if c[1].rsplit("/", 1)[-1] == last), candidates[0])
        candidates.remove(best)
        pairs[source_id, folder] = best[0]
    return pairs
