"""Full-text search: what people and agents type in, ranked skills with a snippet out.

Words are OR-ed and ranked by BM25, where name and tags weigh most; quotes make phrases; every
word also matches as a prefix; nothing typed is a syntax error.
"""

import json
import re
from dataclasses import dataclass
from typing import Final

from registry.catalog.connection import Reader
from registry.catalog.filters import FROM, Filters, where
from registry.catalog.rows import COLUMNS, hit
from registry.model import SearchHit
from registry.text import has_unspaced, name_key, words

WEIGHTS: Final = (10.0, 6.0, 4.0, 1.0)
"""Of name, tags, description and body."""

_RANK: Final = f"bm25(skill_search, {', '.join(map(str, WEIGHTS))})"

MOST_TERMS: Final = 32
"""A longer question is cut: its first distinct words say what it is about."""

SNIPPET: Final = 160
"""Length of a snippet in characters."""

_QUOTED: Final = re.compile(r'"([^"]*)"|\u201c([^\u201d]*)\u201d|\u300c([^\u300d]*)\u300d')
_SHORTEST_PREFIX: Final = 2
_SHORTEST_STEM: Final = 4

# Words that a question is built of and that say nothing about what is looked for.
_EMPTY_WORDS: Final = frozenset(
    """a about am an and any are as at be been by can could d did do does doing find for from get
    give had has have help how i if in into is it its let ll m may me might my need not of on or
    please re s shall should show skill skills so some t that the their them then there these they
    this to us use using ve want was we were what when where which who why will with would you
    your""".split()
)


def search(
    reader: Reader, query: str, filters: Filters, *, limit: int = 20, offset: int = 0
) -> tuple[list[SearchHit], int]:
    """Return one page of hits, the best first, and how many skills match in all."""
    terms = parse(query)
    if not terms:
        return [], 0
    condition, values = where(filters)
    asked = _Asked(match_expression(terms), condition, tuple(values))
    # A name that is exactly what was typed comes first whatever else says it more often.
    exact = name_key(" ".join(query.split()))
    with reader.snapshot():
        # Several agents of one team ask the same; until the database changes, so is the answer.
        total = reader.remembered(f"hits {asked}", asked.count)
        page = reader.remembered(
            f"page {offset} {limit} {exact} {asked}",
            lambda reader: asked.page(reader, exact, limit, offset),
        )
        ranks = dict(page)
        marks = ",".join("?" * len(page))
        rows = {
            row[0]: row[1:]
            for row in reader.rows(
                f"SELECT s.id, d.text, d.body_start, {COLUMNS} FROM {FROM} "
                f"LEFT JOIN documents d ON d.skill_id = s.id WHERE s.id IN ({marks})",
                list(ranks),
            )
        }
    hits = []
    for skill_id, rank in page:
        text, start, *columns = rows[skill_id]
        snippet = make_snippet((text or "")[start or 0 :], columns[2], terms)
        hits.append(hit(tuple(columns), round(-rank, 4), snippet))
    return hits, total


@dataclass(frozen=True, slots=True)
class _Asked:
    """A full-text expression and the condition of the filters, with its values.

    The index ranks by itself, and what passes the filters is looked up for the best only: joining
    and sorting all matches of a common word takes twice as long.
    """

    expression: str
    condition: str
    values: tuple[object, ...]

    def count(self, reader: Reader) -> int:
        rows = reader.rows(
            "SELECT count(*) FROM skill_search x JOIN skills s ON s.id = x.rowid "
            "JOIN sources src ON src.id = s.source_id "
            f"WHERE skill_search MATCH ? AND {self.condition}",
            [self.expression, *self.values],
        )
        return int(rows[0][0]) if rows else 0

    def page(self, reader: Reader, name: str, limit: int, offset: int) -> list[tuple[int, float]]:
        """Return a page of matches with their ranks, those called ``name`` first."""
        first = self.named(reader, name)
        page = [*first, *self.best(reader, offset + limit, {row[0] for row in first})]
        return page[offset : offset + limit]

    def named(self, reader: Reader, name: str) -> list[tuple[int, float]]:
        """Return the matches whose name is ``name``, with their ranks, the best first."""
        return reader.rows(
            f"SELECT s.id, {_RANK} AS rank FROM {FROM} CROSS JOIN skill_search x "
            f"WHERE s.name_key = ? AND {self.condition} "
            "AND x.rowid = s.id AND skill_search MATCH ? ORDER BY rank, s.id",
            [name, *self.values, self.expression],
        )

    def best(self, reader: Reader, wanted: int, others: set[int]) -> list[tuple[int, float]]:
        """Return the ``wanted`` best matches but for ``others``, with their ranks."""
        looked_at = 2 * wanted + 50
        while True:
            top = reader.rows(
                f"SELECT rowid, {_RANK} AS rank FROM skill_search WHERE skill_search MATCH ? "
                "ORDER BY rank, rowid LIMIT ?",
                [self.expression, looked_at],
            )
            chosen = json.dumps([row[0] for row in top])
            passing = reader.rows(
                f"SELECT s.id FROM {FROM} WHERE s.id IN (SELECT value FROM json_each(?)) "
                f"AND {self.condition}",
                [chosen, *self.values],
            )
            seen = {row[0] for row in passing} - others
            found = [(skill_id, rank) for skill_id, rank in top if skill_id in seen]
            if len(found) >= wanted or len(top) < looked_at:
                return found[:wanted]
            looked_at *= 8


def parse(query: str) -> list[list[str]]:
    """Split a query into terms; a term is a list of words that must stand one after the other."""
    phrases = [group for match in _QUOTED.finditer(query) for group in match.groups() if group]
    terms = [words(phrase) for phrase in phrases]
    rest = _QUOTED.sub(" ", query)
    loose = [words(piece) for piece in rest.split()]
    telling = [term for term in loose if term and not _is_empty(term)]
    terms += telling if telling or any(terms) else loose
    unique: dict[tuple[str, ...], None] = {}
    for term in terms:
        if term:
            unique.setdefault(tuple(word.casefold() for word in term))
            # The parts of a compound count too, though less than the whole.
            if (
                len(term) > 1
                and not has_unspaced("".join(term))
                and term not in map(words, phrases)
            ):
                for word in term:
                    if not _is_empty([word]):
                        unique.setdefault((word.casefold(),))
    return [list(term) for term in unique][:MOST_TERMS]


def _is_empty(term: list[str]) -> bool:
    return len(term) == 1 and term[0].casefold() in _EMPTY_WORDS


def match_expression(terms: list[list[str]]) -> str:
    """Return the FTS5 expression of ``terms``; each word is quoted, so none is an operator."""
    parts = []
    for term in terms:
        phrase = " ".join(f'"{word}"' for word in term)
        phrase = phrase.replace('" "', " ")
        last = term[-1]
        is_prefix = len(last) >= _SHORTEST_PREFIX and not has_unspaced(last)
        parts.append(phrase + "*" if is_prefix else phrase)
        if len(term) == 1 and is_prefix:
            stem = _stem(last)
            if stem != last:
                parts.append(f'"{stem}"*')
    return " OR ".join(parts)


def _stem(word: str) -> str:
    """Cut an English ending off, so that "charts" finds "chart" and "creating" "creation"."""
    if not word.isascii():
        return word
    for ending in ("ing", "ies", "ed", "es", "s"):
        if word.endswith(ending) and len(word) - len(ending) >= _SHORTEST_STEM:
            return word[: -len(ending)]
    return word


def make_snippet(body: str, description: str, terms: list[list[str]]) -> str:
    """Return the stretch of the body, else of the description, around the first match."""
    for text in (body, description):
        place = _first_match(text, terms)
        if place is not None:
            return _cut(text, place)
    return _cut(description, 0)


def _first_match(text: str, terms: list[list[str]]) -> int | None:
    for term in terms:
        separator = r"\W{0,3}" if not has_unspaced("".join(term)) else r"\s*"
        pattern = separator.join(map(re.escape, term))
        start = "" if has_unspaced(term[0]) else r"\b"
        found = re.search(start + pattern, text, re.IGNORECASE)
        if found is None and len(term) == 1 and _stem(term[0]) != term[0]:
            found = re.search(start + re.escape(_stem(term[0])), text, re.IGNORECASE)
        if found:
            return found.start()
    return None


def _cut(text: str, place: int) -> str:
    begin = max(0, place - SNIPPET // 3)
    end = min(len(text), begin + SNIPPET)
    begin = max(0, min(begin, end - SNIPPET))
    if begin > 0 and (space := text.find(" ", begin, place)) >= 0:
        begin = space + 1
    if end < len(text) and (space := text.rfind(" ", place + 1, end)) > place:
        end = space
    piece = " ".join(text[begin:end].split())
    return ("\u2026" if begin > 0 else "") + piece + ("\u2026" if end < len(text) else "")
