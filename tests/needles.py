"""What every match of a behaviour's pattern holds, worked out from the pattern itself.

    python -m tests.needles

writes `registry/document/behaviours/needles.json`, by which `registry.document.prefilter` knows
where in a text a pattern can't match. `make needles` does the same.

    python -m tests.needles FOLDER...

first counts how often the texts in these folders have each needle, and writes `COUNTED`. This
decides which needles of a pattern are looked for, and so how fast a search is, but never its result.
"""

import json
import os
import re._constants as op
import re._parser as parser
import sys
from collections import Counter
from itertools import product
from pathlib import Path

from ahocorasick_rs import BytesAhoCorasick

from registry.document.behaviours import BEHAVIOURS, FOREIGN

FILE = Path(__file__).parent.parent / "registry/document/behaviours/needles.json"

MOST = 400
"""Needles that a set has at most."""

JOINED = 64
"""Texts that parts of a pattern after one another may have together."""

SHORTEST = 2
"""Bytes of a needle that is worth looking for, unless it is one of `SIGNS`."""

SIGNS = frozenset("@")
"""Single characters that are rare enough to be needles."""

LONGEST = 8
"""Bytes that are kept of a needle in a set of more than `MANY`; a shorter one is found sooner."""

MANY = 24

KEPT = 3
"""Sets of needles that are kept of a pattern, those first that say most."""

RARE = 5
"""How often (`_often`) a text may hold a further set that is kept."""

WAYS = 64
"""Alternatives of a pattern that are told apart at most."""

LINE_END = ord("\n")

COUNTED = Path(__file__).parent / "document/needle_counts.json"
"""How often a text has each needle on average, as counted in 10,000 texts of skills."""

SELDOM = 0.01
"""How often a text has a needle that `COUNTED` leaves out."""

MOST_COUNTED = 100
"""How often a needle is counted in one text at most."""

_COUNTS = json.loads(COUNTED.read_text("utf-8"))
_ASKED = set()
"""The needles that were ever ranked."""

_REPEATS = (op.MAX_REPEAT, op.MIN_REPEAT, op.POSSESSIVE_REPEAT)
_LOOKS = (op.ASSERT, op.ASSERT_NOT)


def needles_of(source):
    """Return the width of a pattern, whether it stays in a line, and sets of needles of each way.

    The width, in bytes, is the longest match with all that it looks at behind it. A match holds one
    needle of each set of one way at least.
    """
    parsed = parser.parse(source)
    width = parsed.getwidth()[1] + _looked_at(parsed)
    ways = [_of_way(way, parsed.state) for way in _ways(list(parsed))]
    return width, _is_in_line(parsed), sorted(map(list, set(map(tuple, ways))))


def _is_in_line(parsed):
    """Tell whether no match of a pattern holds a line end, or looks further than to one."""
    return not any(_passes_line_end(code, argument) for code, argument in parsed)


def _passes_line_end(code, argument):  # noqa: PLR0911 - one line for each kind of element
    if code is op.LITERAL:
        return argument == LINE_END
    if code is op.NOT_LITERAL:
        return argument != LINE_END
    if code is op.IN:
        is_negated = argument[0][0] is op.NEGATE
        return is_negated != any(map(_holds_line_end, argument))
    if code is op.SUBPATTERN:
        return not _is_in_line(argument[3])
    if code is op.ATOMIC_GROUP:
        return not _is_in_line(argument)
    if code is op.BRANCH:
        return not all(map(_is_in_line, argument[1]))
    if code in _REPEATS:
        return not _is_in_line(argument[2])
    if code in _LOOKS:
        return argument[1].getwidth()[1] > 1 and not _is_in_line(argument[1])
    if code is op.AT:
        return argument is not op.AT_BOUNDARY
    return code not in (op.ANY, op.GROUPREF)


def _holds_line_end(member):
    code, argument = member
    if code is op.RANGE:
        return argument[0] <= LINE_END <= argument[1]
    if code is op.CATEGORY:
        return argument not in (op.CATEGORY_WORD, op.CATEGORY_DIGIT)
    return (code, argument) == (op.LITERAL, LINE_END)


def _of_way(way, state):
    exact, sets = _sequence(way)
    kept = []
    for one in sorted((one for one in (*sets, exact) if _worth(one)), key=_rank):
        if kept and (len(kept) == KEPT or _often(one) > RARE):
            break
        if not any(_covers(one, other) for other in kept):
            kept.append(one)
    return tuple((tuple(sorted(_shortest(one))), _before(way, one, state)) for one in kept)


def _before(way, needles, state):
    """Return how many bytes of a match may lie before a needle of a set."""
    before = 0
    for place, (code, argument) in enumerate(way):
        behind = before + _width((code, argument), state)
        if needles in _one(code, argument)[1]:
            return behind
        if needles in _sequence(way[: place + 1])[1][:-1]:
            return before
        before = behind
    return before


def _width(element, state):
    parsed = parser.SubPattern(state, [element])
    return parsed.getwidth()[1] + _looked_at(parsed)


def _ways(elements):
    """Return the sequences that a sequence stands for, with each alternative on its own."""
    for place, (code, argument) in enumerate(elements):
        if parts := _alternatives(code, argument):
            told_apart = [[*elements[:place], *part, *elements[place + 1 :]] for part in parts]
            ways = [way for one in told_apart for way in _ways(one)]
            return next((some for some in (ways, told_apart) if len(some) <= WAYS), [elements])
    return [elements]


def _alternatives(code, argument):
    """Return the alternatives of an element that is more than a choice of texts."""
    if code is op.SUBPATTERN and len(argument[3]) == 1:
        return _alternatives(*argument[3][0])
    if code is not op.BRANCH or not any(map(_says_more, argument[1])):
        return []
    return [list(part) for part in argument[1]]


def _says_more(part):
    """Tell whether a sequence is more than a choice of texts."""
    exact, sets = _sequence(part)
    return exact is None or bool(sets)


def _covers(weak, strong):
    """Tell whether a text that holds one of ``strong`` always holds one of ``weak``."""
    return all(any(needle in longer for needle in weak) for longer in strong)


def _shortest(needles):
    """Shorten the needles, and leave out what holds another one of the set."""
    longest = LONGEST if len(needles) > MANY else 4 * LONGEST
    short = {one[:longest] for one in needles}
    return {one for one in short if not any(two in one for two in short if two != one)}


def _worth(needles):
    return bool(needles) and all(len(one) >= SHORTEST or one in SIGNS for one in needles)


def _often(needles):
    """Return about how often a text holds one of the needles."""
    short = _shortest(needles)
    _ASKED.update(short)
    return round(sum(_COUNTS.get(one, SELDOM) for one in sorted(short)), 6)


def _rank(needles):
    return _often(needles), sorted(needles)


def _sequence(parsed):
    """Return all texts that a sequence matches, None if they are too many, and sets of needles."""
    whole, sets, current = True, [], {""}
    for code, argument in parsed:
        exact, more = _one(code, argument)
        sets += more
        joined = None
        if exact is not None and len(current) * len(exact) <= JOINED:
            joined = {a + b for a, b in product(current, exact)}
        if joined is None:
            whole = False
            sets.append(_begun(current, code, argument) if exact is None else current)
            current = exact if exact is not None else {""}
        else:
            current = joined
    if whole:
        return current, sets
    return None, [*sets, current]


def _one(code, argument):  # noqa: PLR0911 - one line for each kind of element
    """Return the same of one element; the texts of what takes no room are the empty one."""
    if code is op.LITERAL:
        return {chr(argument)}, []
    if code is op.IN:
        return _letters(argument), []
    if code is op.SUBPATTERN:
        return _sequence(argument[3])
    if code is op.ATOMIC_GROUP:
        return _sequence(argument)
    if code is op.BRANCH:
        return _branch(argument[1])
    if code in _REPEATS:
        return _repeated(*argument)
    if code is op.ASSERT and argument[0] > 0:
        exact, sets = _sequence(argument[1])
        return {""}, [*sets, *([exact] if exact else [])]
    if code in (op.AT, *_LOOKS):
        return {""}, []
    return None, []


def _begun(texts, code, argument):
    """Return the texts with what every match of the element that comes after them begins with."""
    if code in _REPEATS:
        least, _, parsed = argument
        exact, _ = _sequence(parsed)
        for _ in range(least):
            if exact is None or len(texts) * len(exact) > JOINED:
                break
            texts = {a + b for a, b in product(texts, exact)}
        return texts
    parts = argument[1] if code is op.BRANCH else [argument[3]] if code is op.SUBPATTERN else []
    begun = set().union(*map(_first, parts)) or {""}
    return {a + b for a, b in product(texts, begun)} if len(texts) * len(begun) <= JOINED else texts


def _first(parsed):
    """Return what the matches of a sequence begin with."""
    current = {""}
    for code, argument in parsed:
        exact, _ = _one(code, argument)
        if exact is None or len(current) * len(exact) > JOINED:
            return _begun(current, code, argument)
        current = {a + b for a, b in product(current, exact)}
    return current


def _letters(members):
    found = set()
    for code, argument in members:
        if code is op.LITERAL:
            found.add(chr(argument))
        elif code is op.RANGE and argument[1] - argument[0] < 16:
            found |= set(map(chr, range(argument[0], argument[1] + 1)))
        else:
            return None
    return found if len(found) <= 16 else None


def _branch(parts):
    whole, needles = set(), set()
    for part in parts:
        exact, sets = _sequence(part)
        best = min(filter(_worth, [*sets, *([exact] if exact else [])]), key=_rank, default=None)
        whole = None if whole is None or exact is None else whole | exact
        needles = None if needles is None or best is None else needles | best
    if whole is not None and len(whole) <= MOST:
        return whole, []
    return None, [needles] if needles is not None and len(needles) <= MOST else []


def _repeated(least, most, parsed):
    exact, sets = _sequence(parsed)
    if exact is not None and most == 1:
        return exact | ({""} if least == 0 else set()), [] if least == 0 else sets
    if exact is not None and least == most and len(exact) ** most <= JOINED:
        return {"".join(one) for one in product(exact, repeat=most)}, sets
    if least == 0:
        return None, []
    return None, [*sets, *([exact] if exact else [])]


def _looked_at(parsed):
    """Return how far all lookaheads of a pattern look together."""
    total = 0
    for code, argument in parsed:
        if code in _LOOKS:
            total += argument[1].getwidth()[1] if argument[0] > 0 else 0
        elif code is op.SUBPATTERN:
            total += _looked_at(argument[3])
        elif code is op.ATOMIC_GROUP:
            total += _looked_at(argument)
        elif code is op.BRANCH:
            total += max(map(_looked_at, argument[1]))
        elif code in _REPEATS:
            total += argument[1] * _looked_at(argument[2])
    return total


def derived():
    """Return what the file says: the sets of needles, and of each pattern what `needles_of` does.

    A way has the number of a set, and how many bytes of a match may lie before its needle.
    """
    sets = {}

    def row(source):
        width, in_line, ways = needles_of(source)
        numbered = [
            [[sets.setdefault(needles, len(sets)), before] for needles, before in way]
            for way in ways
        ]
        return [width, int(in_line), numbered]

    patterns = [row(one.pattern.source) for one in BEHAVIOURS]
    foreign = [row(one.pattern.pattern.lower()) for one in FOREIGN]
    return {"sets": [list(one) for one in sets], "patterns": patterns, "foreign": foreign}


def written(rows):
    """Return the text of the file: a line for each set and each pattern."""
    parts = []
    for key, lines in rows.items():
        text = ",\n".join(
            json.dumps(line, separators=(",", ":"), ensure_ascii=False) for line in lines
        )
        parts.append(f'"{key}":[\n{text}\n]')
    return "{" + ",\n".join(parts) + "}\n"


def count(folders):
    """Count the needles in all texts below some folders, and write `COUNTED`."""
    derived()
    needles = sorted(_ASKED)
    machine = BytesAhoCorasick([one.encode() for one in needles])
    total, texts = Counter(), 0
    for folder in folders:
        for place, _, names in os.walk(folder):
            for name in names:
                data = Path(place, name).read_bytes()
                if b"\0" not in data:
                    found = machine.find_matches_as_indexes(data.lower(), overlapping=True)
                    here = Counter(number for number, _, _ in found)
                    total.update({one: min(times, MOST_COUNTED) for one, times in here.items()})
                    texts += 1
    rows = sorted((needles[one], float(f"{times / texts:.2g}")) for one, times in total.items())
    lines = [f"{json.dumps(one)}: {often:g}" for one, often in rows if often > SELDOM]
    COUNTED.write_text("{\n" + ",\n".join(lines) + "\n}\n", "utf-8")
    _COUNTS.update(json.loads(COUNTED.read_text("utf-8")))


if __name__ == "__main__":
    if len(sys.argv) > 1:
        count(sys.argv[1:])
    FILE.write_text(written(derived()), "utf-8")
    sys.exit(0)
