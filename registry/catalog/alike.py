"""Which of many skills are copies and near copies of one another."""

from collections.abc import Mapping, Sequence

from registry.document.likeness import Sketch, are_alike, fit, keys, unpacked


def gathered(ids: Sequence[int], sketches: Mapping[int, bytes]) -> dict[int, list[int]]:
    """Return the ids that keep a place, in order, each with those that are alike it."""
    kept: dict[int, list[int]] = {}
    holders: list[dict[bytes, int]] = [{} for _ in keys(fit(None))]
    known: dict[int, Sketch] = {}
    for one in ids:
        data = fit(sketches.get(one))
        its_keys = list(zip(holders, keys(data), strict=True))
        found = dict.fromkeys([held[key] for held, key in its_keys if key in held])
        mine = unpacked(data)
        better = next((other for other in found if are_alike(mine, known[other])), None)
        if better is not None:
            kept[better].append(one)
            continue
        kept[one], known[one] = [], mine
        for held, key in its_keys:
            held.setdefault(key, one)
    return kept
