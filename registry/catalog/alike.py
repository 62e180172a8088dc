"""Which of many skills are copies and near copies of one another."""

from collections.abc import Mapping, Sequence

from registry.document.likeness import NOTHING, Sketch, are_alike, keys, unpacked


def gathered(ids: Sequence[int], sketches: Mapping[int, bytes]) -> dict[int, list[int]]:
    """Return the ids that keep a place, in order, each with those that are alike it."""
    kept: dict[int, list[int]] = {}
    holders: dict[Sketch, int] = {}
    known: dict[int, Sketch] = {}
    for one in ids:
        mine = unpacked(sketches[one]) if one in sketches else NOTHING
        its_keys = keys(mine)
        found = dict.fromkeys([holders[key] for key in its_keys if key in holders])
        better = next((other for other in found if are_alike(mine, known[other])), None)
        if better is not None:
            kept[better].append(one)
            continue
        kept[one], known[one] = [], mine
        for key in its_keys:
            holders.setdefault(key, one)
    return kept
