"""Full-text search: find and rank the skills for a query, with a snippet for each."""

import re
from collections.abc import Callable, Mapping, Sequence
from itertools import combinations
from typing import Final, NamedTuple

from registry.catalog.copies import are_translations, gathered, is_in_unspaced_script
from registry.catalog.search.query import Term, between, pattern, stem
from registry.catalog.search.rank import (
    FITS,
    MAX_RANKED,
    Among,
    Asked,
    Said,
    confidence,
    expect,
    missing,
    rank,
    respelled,
    shorter,
    understand,
    wanted,
)
from registry.db.interface import Condition, Reader
from registry.db.read.listing import Filters, where
from registry.db.read.search import (
    heads_of,
    hit_details,
    ids_named,
    names_and_bodies,
    precedences_of,
    sketches,
)
from registry.db.read.skills import hit_of
from registry.db.visibility import Precedence, Visibility
from registry.errors import UsageProblem
from registry.model import Found
from registry.text import has_unspaced, name_key

_MARKERS: Final = re.compile(r"\s*(?:(?:[-*+>]|\d{1,3}[.)]|#{1,6})\s+|(?:```|~~~)\S*)")
_LINK: Final = re.compile(r"!?\[([^\]\n]*)\]\([^)\n]*\)")
_EMPHASIS: Final = re.compile(r"(?<![\w*])([*_]{1,2})(?=[^\s*_])([^*_]*[^\s*_])\1(?![\w*])")


def plain(text: str) -> str:
    """Return a part of a Markdown text as one line without markup."""
    lines = []
    for line in text.splitlines():
        told = line
        while (marker := _MARKERS.match(told)) is not None:
            told = told[marker.end() :]
        if not told.strip(" \t|:=*_-"):
            continue
        if told.lstrip().startswith("|"):
            told = told.replace("|", " ")
        lines.append(told)
    told = " ".join(" ".join(lines).split()).replace("**", "").replace("`", "")
    if "](" in told:
        told = _LINK.sub(r"\1", told)
    return _EMPHASIS.sub(r"\2", told) if "*" in told or "_" in told else told


SNIPPET: Final = 160
"""Length of a snippet, in characters."""

_SMALL_K: Final = "\N{KELVIN SIGN}"
_SMALL_I: Final = "\N{LATIN CAPITAL LETTER I WITH DOT ABOVE}"
"""Characters outside ASCII that become an ASCII letter, or contain one, in lower case."""


def make_snippet(body: str, description: str, terms: Sequence[Term]) -> str:
    """Return one line of the body, or of the description, around the first match.

    The line has no Markdown markup.
    """
    for text in (body, description):
        place = _first_match(text, terms)
        if place is not None:
            return _cut(text, place)
    return _cut(description, 0)


def _first_match(text: str, terms: Sequence[Term]) -> int | None:
    lowered = _lowered(text, all(word.isascii() for term in terms for word in term))
    for term in terms:
        place = _place(lowered, term)
        if place < 0 and len(term) == 1 and stem(term[0]) != term[0]:
            place = _place(lowered, (stem(term[0]),))
        if place >= 0:
            return place
    return None


def _lowered(text: str, for_ascii: bool) -> str:
    """Return a text in lower case, in which each character keeps its offset.

    If ``for_ascii``, letters outside ASCII may stay in upper case.
    """
    if for_ascii and not text.isascii() and _SMALL_K not in text and _SMALL_I not in text:
        # This is ten times as fast as converting each letter.
        return text.encode("utf-8", "surrogatepass").lower().decode("utf-8", "surrogatepass")
    lowered = text.lower()
    # a few capitals become two characters in lower case
    return lowered if len(lowered) == len(text) else text


def _place(text: str, term: Term) -> int:
    """Return the offset of a term in a text, or -1.

    This is much faster than a regular expression.
    """
    if has_unspaced(term[0]):
        found = re.search(pattern(term), text)
        return found.start() if found else -1
    start = text.find(term[0])
    rest = re.compile(between(term)) if len(term) > 1 else None
    while start >= 0:
        is_begun = start == 0 or not text[start - 1].isalnum()
        if is_begun and (rest is None or rest.match(text, start)):
            return start
        start = text.find(term[0], start + 1)
    return -1


def _cut(text: str, place: int) -> str:
    begin = max(0, place - SNIPPET // 3)
    end = min(len(text), begin + SNIPPET)
    begin = max(0, min(begin, end - SNIPPET))
    if begin > 0 and (space := text.find(" ", begin, place)) >= 0:
        begin = space + 1
    if end < len(text) and (space := text.rfind(" ", place + 1, end)) > place:
        end = space
    piece = plain(text[begin:end])
    return ("\u2026" if begin > 0 else "") + piece + ("\u2026" if end < len(text) else "")


MAX_QUERIES: Final = 5
"""Maximum number of queries in one search."""

BEST: Final = 5
"""Number of best hits of each query from which the confidence is computed."""

COVERED: Final = 20
"""Number of best hits that are sorted a second time, by the words in their heads."""

NAMED: Final = 10.0
"""Score of a skill whose name is exactly the query; all other scores are lower."""


class Match(NamedTuple):
    """A hit, and its near-duplicates (``alike``), which the search doesn't show.

    ``fits`` is the share of the query that the hit's name, tags and description contain; None if it
    isn't computed yet.
    """

    id: int
    score: float
    asked: Asked
    fits: float | None
    alike: Sequence[int] = ()


def search(
    reader: Reader, queries: Sequence[str], filters: Filters, *, limit: int = 20, offset: int = 0
) -> Found:
    """Return one page of hits, best first, and the total number of hits.

    The hits of several queries alternate, beginning with the best hit of each query. A skill and
    its copies and near-duplicates count as one hit. If more than `MAX_RANKED` skills match, only
    the best of them are counted, unless the page needs more. Raises `UsageProblem` if there are too
    many queries, or none.
    """
    most = MAX_RANKED
    with reader.snapshot():
        found, understood, visibility = _asked(reader, queries, filters, most)
        # The first page may be too short, because copies of one skill can fill the list of ranked
        # skills.
        goes_on = offset != 0 or limit > most
        while goes_on and len(found) < offset + limit and _skills(found) >= most:
            most *= 4
            found = _continued(found, _asked(reader, queries, filters, most)[0])
        page = found[offset : offset + limit]
        best = found[: BEST * min(len(queries), 3)]
        told = {one.id: one for one in [*page, *best]}
        alike = [other for one in page for other in one.alike]
        known, refs = hit_details(reader, list(told), alike, visibility)
    fits = {
        one: confidence(match.asked, known[one][1]) if match.fits is None else match.fits
        for one, match in told.items()
    }
    fitting = round(max((fits[one.id] for one in best), default=0.0), 2)
    nearest = [known[one.id][1] for one in best]
    return Found(
        tuple(
            hit_of(
                known[one.id][1],
                score=round(one.score, 4),
                snippet=make_snippet(
                    known[one.id][0], known[one.id][1].description, one.asked.terms
                ),
                confidence=round(fits[one.id], 2),
                alike=tuple(refs[other] for other in one.alike),
            )
            for one in page
        ),
        len(found),
        fitting,
        missing(understood, nearest) if fitting < FITS else (),
        shorter(understood, nearest) if fitting < FITS else (),
        respelled(understood, nearest),
    )


def _skills(found: Sequence[Match]) -> int:
    return sum(1 + len(one.alike) for one in found)


def _continued(found: Sequence[Match], more: Sequence[Match]) -> list[Match]:
    """Return the hits of a shorter search, then the hits that only a longer search found.

    The first hits keep their order, so that the pages of a search don't overlap.
    """
    result = list(found)
    places = {member: at for at, one in enumerate(found) for member in (one.id, *one.alike)}
    for one in more:
        members = (one.id, *one.alike)
        known = [places[member] for member in members if member in places]
        new = [member for member in members if member not in places]
        if not known:
            result.append(one)
        elif new:
            first = result[known[0]]
            result[known[0]] = first._replace(alike=[*first.alike, *new])
    return result


def places(reader: Reader, queries: Sequence[str], filters: Filters) -> list[int]:
    """Return the versions that `search` would show, best first. Raises the errors of `search`."""
    with reader.snapshot():
        return [one.id for one in _asked(reader, queries, filters, MAX_RANKED)[0]]


def _asked(
    reader: Reader, queries: Sequence[str], filters: Filters, most: int
) -> tuple[list[Match], list[Asked], Visibility]:
    """Return the result of `answers`, cached until the database changes.

    The search is sent to a server together with the query for the current visibility, which saves a
    round trip. It uses the last known visibility. If the visibility has changed, the search is
    repeated.
    """
    if not 0 < len(queries) <= MAX_QUERIES:
        raise UsageProblem(message=f"ask 1 to {MAX_QUERIES} queries, not {len(queries)}")
    among = Among.of(filters.ids)
    guess = where(reader, filters, reader.last_visibility(), ids=False)
    expected = None
    if not reader.recalls(_key(queries, guess, most, among)):
        expected = expecting(reader, queries, guess, most, among)
    visibility = reader.visibility
    condition = where(reader, filters, visibility, ids=False)

    def ask(reader: Reader) -> tuple[list[Match], list[Asked]]:
        known = expected if condition == guess else None
        return answers(reader, queries, condition, most, known, among=among)

    return *reader.remembered(_key(queries, condition, most, among), ask), visibility


def _key(queries: Sequence[str], condition: Condition, most: int, among: Among | None) -> str:
    return f"search {most} {queries} {condition} {among and among.key}"


class Expected(NamedTuple):
    """Parsed queries with SELECTs that are already sent, and functions that return the results.

    ``named`` has a function for each query; it returns the skills with exactly the query as name.
    """

    queries: Sequence[str]
    said: Sequence[Said]
    named: Sequence[Callable[[], list[int]]]


def expecting(
    reader: Reader, queries: Sequence[str], condition: Condition, most: int, among: Among | None
) -> Expected:
    """Send the SELECTs that a search will need, before it needs their results.

    In a view that doesn't show all skills, this sends only the SELECTs for exact names.
    """
    said = list(map(Said.of, queries))
    if among is None:
        expect(reader, said, condition, most)
    names = [name_key(" ".join(query.split())) for query in queries]
    return Expected(queries, said, [ids_named(reader, name, condition) for name in names])


def answers(
    reader: Reader,
    queries: Sequence[str],
    condition: Condition,
    most: int = MAX_RANKED,
    expected: Expected | None = None,
    *,
    among: Among | None = None,
) -> tuple[list[Match], list[Asked]]:
    """Return the alternating hits of several queries, best first, and each parsed query.

    In a view that doesn't show all skills, ``among`` holds the skills of the view. Only these
    skills decide how rare a word is.
    """
    expected = expected or expecting(reader, queries, condition, most, among)
    try:
        return _answers(reader, expected, condition, most, among)
    finally:
        reader.index.forget()


def _answers(
    reader: Reader, expected: Expected, condition: Condition, most: int, among: Among | None
) -> tuple[list[Match], list[Asked]]:
    understood = [understand(reader, said, among) for said in expected.said]
    near: Sequence[Sequence[int]] = [()] * len(understood)
    if reader.semantic:
        # available only with the extra `semantic`
        from registry.catalog.search.meaning import nearest

        near = nearest(reader, expected.queries, condition, most, among and among.ids)
    scores = [
        _scores(reader, *one, condition, most, among)
        for one in zip(understood, expected.named, near, strict=True)
    ]
    ids = list({one: None for some in scores for one in some})
    if not ids:
        return [], understood
    heads = [heads_of(reader, list(some)[:COVERED]) for some in scores]
    alike = sketches(reader, ids)
    told = [one() for one in heads]
    lists = [_covered(*one) for one in zip(understood, scores, told, strict=True)]
    every = {one: head for some in told for one, head in some.items()}
    return _gathered(reader, _in_turn(lists), alike, every), understood


def _scores(
    reader: Reader,
    asked: Asked,
    named: Callable[[], list[int]],
    near: Sequence[int],
    condition: Condition,
    most: int,
    among: Among | None,
) -> dict[int, float]:
    """Return the hits of one query with their scores; skills with exactly this name come first.

    ``near`` holds the skills with the most similar meaning, if the extra ``semantic`` is used.
    """
    if not asked.words:
        return {}
    scores = rank(reader, asked, condition, most, among, near)
    same = (one for one in named() if among is None or one in among.ids)
    first = {one: scores.get(one, 0.0) + NAMED for one in same}
    return {**first, **scores, **first}


def _covered(asked: Asked, scores: Mapping[int, float], heads: Mapping[int, str]) -> list[Match]:
    """Return the hits of one query, with the best `COVERED` hits in a better order.

    These hits are sorted by how many words of the query their names, tags and descriptions contain.
    """
    sought = wanted(asked)
    fits = {one: sought.named_by(head) for one, head in heads.items()}
    found = [
        Match(one, score * (1 + fit.whole) / 2, asked, fit.confidence)
        if (fit := fits.get(one)) is not None
        else Match(one, score / 2, asked, None)
        for one, score in scores.items()
    ]
    # A hit that wasn't checked gets half of its score, so that it can't come before a checked hit.
    return sorted(found, key=lambda match: -match.score)


def _in_turn(lists: Sequence[Sequence[Match]]) -> list[Match]:
    found: dict[int, Match] = {}
    for place in range(max(map(len, lists), default=0)):
        for one in lists:
            if place < len(one):
                found.setdefault(one[place].id, one[place])
    return list(found.values())


def _gathered(
    reader: Reader,
    found: Sequence[Match],
    sketches: Mapping[int, bytes],
    heads: Mapping[int, str],
) -> list[Match]:
    """Return the hits, each with its near-duplicates and translations.

    Among near-duplicates, the one from the source of highest precedence is the hit, so that another
    person's copy can't replace it. Between sources of different owners, only a precedence that an
    admin has set counts. If the admin has set none, the better match is the hit.
    """
    matches = {one.id: one for one in found}
    groups = gathered(list(matches), sketches)
    for one, other in _translations(reader, [one for one in groups if one in heads], heads):
        if one in groups and other in groups:
            groups[one] += [other, *groups.pop(other)]
    several = [member for one, others in groups.items() if others for member in (one, *others)]
    precedences = precedences_of(reader, several) if several else {}
    places: list[Match] = []
    for one, others in groups.items():
        if not others:
            places.append(matches[one])
            continue
        strongest, *rest = _strongest_first([one, *others], precedences)
        places.append(matches[strongest]._replace(score=matches[one].score, alike=rest))
    return places


def _translations(
    reader: Reader, ids: Sequence[int], heads: Mapping[int, str]
) -> list[tuple[int, int]]:
    """Return pairs of skills with the same name, in which one is a translation of the other.

    The better hit comes first. Only translations into scripts without spaces are recognized.
    """
    alike: dict[str, list[int]] = {}
    for one in ids:
        alike.setdefault(name_key(heads[one].partition(" ")[0]), []).append(one)
    several = [some for some in alike.values() if len(some) > 1]
    is_unspaced = {one: is_in_unspaced_script(heads[one]) for some in several for one in some}
    pairs = [
        pair
        for some in several
        for pair in combinations(some, 2)
        if is_unspaced[pair[0]] != is_unspaced[pair[1]]
    ]
    if not pairs:
        return []
    known = names_and_bodies(reader, list({one for pair in pairs for one in pair}))
    found = []
    for pair in pairs:
        if all(one in known for one in pair):
            (name, body), (other_name, other_body) = (known[one] for one in pair)
            texts = (body, other_body) if is_unspaced[pair[0]] else (other_body, body)
            if name == other_name and are_translations(*texts):
                found.append(pair)
    return found


def _strongest_first(members: Sequence[int], precedences: Mapping[int, Precedence]) -> list[int]:
    """Sort near-duplicates by preference, best first; a search shows only the first of them."""
    known = {one: precedences.get(one, Precedence()) for one in members}
    top = max(one.admin for one in known.values())
    owner = next(one.owner for one in known.values() if one.admin == top)

    def key(member: int) -> tuple[int, bool, int]:
        one = known[member]
        is_of_it = one.owner == owner
        return -one.admin, not is_of_it, one.rank if is_of_it else 0

    return sorted(members, key=key)
