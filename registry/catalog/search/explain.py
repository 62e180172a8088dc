"""Explain the rank of a skill for a query, and which words its description doesn't contain."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Final

from registry.catalog.listing import chosen
from registry.catalog.resolve import resolve
from registry.catalog.search.find import Match, answers
from registry.catalog.search.query import parse, said_for, unquoted
from registry.catalog.search.rank import MAX_RANKED, Among, Asked, confidence, counted
from registry.catalog.visibility.decisions import seen_by
from registry.catalog.why import Explanation, explain, judged
from registry.core import Core
from registry.db.interface import Part, Pattern, Reader
from registry.db.read.listing import FilterArguments, Filters, list_skills, where
from registry.db.read.skills import bodies_and_skills, refs_of
from registry.model import Diagnostic, Value
from registry.text import fold, has_unspaced, name_key

MAX_AHEAD: Final = 5
"""Maximum number of higher-ranked hits in an explanation."""

MAX_TO_WRITE: Final = 8
"""Maximum number of missing words in an explanation."""


@dataclass(frozen=True, slots=True)
class AskedWord(Value):
    """A search word, and the parts of the skill that contain the word in any inflected form.

    If ``word`` is a synonym or a correction, ``said`` is the word that the user typed. ``telling``
    is the rarity of the word, from 0 (every skill contains it) to 1 (no skill contains it).
    """

    word: str
    said: str | None
    telling: float
    parts: tuple[Part, ...]

    @property
    def in_head(self) -> bool:
        """Whether the name, the tags or the description contain the word."""
        return any(part != "body" for part in self.parts)


@dataclass(frozen=True, slots=True)
class Ahead(Value):
    """A hit that ranks higher than the explained skill, and the reasons.

    ``words`` holds words of the query that only this hit has in its name, tags or description.
    ``stronger`` holds words that this hit has in its name or tags, but the explained skill only in
    its description. The rarest words come first. ``named`` tells whether this hit's name is exactly
    the query.
    """

    ref: str
    place: int
    confidence: float
    words: tuple[str, ...]
    stronger: tuple[str, ...]
    named: bool


@dataclass(frozen=True, slots=True)
class Placed(Value):
    """The rank of a skill for a query, from 1; None if the skill isn't a hit.

    ``ref``, ``path``, ``listed`` and ``reasons`` have the same meaning as in `SkillRegistry.why`;
    the reasons include the filters that exclude the skill. ``total`` is the number of ranked hits.
    ``beside`` is the near-duplicate that the search shows in place of the skill. ``confidence``
    tells how well the skill matches, as in a search. ``to_write`` holds words of the query that the
    skill's name, tags and description don't contain. The words from its body come first.
    """

    ref: str | None
    path: str
    listed: bool
    reasons: tuple[Diagnostic, ...]
    query: str
    place: int | None
    total: int
    beside: str | None
    confidence: float
    words: tuple[AskedWord, ...]
    ahead: tuple[Ahead, ...]
    to_write: tuple[str, ...]


def placed(
    core: Core,
    subject: str,
    query: str,
    filters: Filters | None,
    wanted: FilterArguments,
    personality: str | None,
) -> list[Placed]:
    """Explain the ranks of skills for a query; see `SkillRegistry.why_found`."""
    narrowed = chosen(core, filters, wanted)
    subjects = judged(core, explain(core, subject), personality)
    seen = narrowed if personality is None else seen_by(core, personality, narrowed)
    reader = core.reader
    with reader.snapshot():
        among = Among.of(seen.ids)
        condition = where(reader, seen, reader.visibility, ids=False)
        found, (asked,) = answers(reader, [query], condition, among=among)
        search = _Search(reader, query, narrowed, found, asked, among)
        return [search.place(one) for one in subjects]


class _Search:
    """A query and its hits; one search explains the ranks of several skills."""

    def __init__(
        self,
        reader: Reader,
        query: str,
        filters: Filters,
        found: Sequence[Match],
        asked: Asked,
        among: Among | None,
    ) -> None:
        self.reader = reader
        self.query = query
        self.filters = filters
        self.found = found
        self.asked = asked
        self.looked_for = _looked_for(reader, query, asked, among)
        self.typed = set(parse(query))

    def place(self, subject: Explanation) -> Placed:
        """Return the rank of a skill with its explanation; None if the skill isn't stored."""
        known = subject.ref, subject.path, subject.listed, subject.reasons, self.query
        answer = Placed(*known, None, len(self.found), None, 0.0, (), (), ())
        skill = subject.skill
        if skill is None:
            return answer
        version = resolve(self.reader, f"{skill.source}/{skill.folder}").id
        words = self.words(version)
        index, match = next(
            (
                (index, match)
                for index, match in enumerate(self.found)
                if version == match.id or version in match.alike
            ),
            (None, None),
        )
        beside = None
        if match is not None and match.id != version:
            beside = refs_of(self.reader, [match.id])[match.id]
        kept_out = () if match is not None else tuple(self.reasons(subject, version, words))
        return replace(
            answer,
            reasons=(*subject.reasons, *kept_out),
            place=None if index is None else index + 1,
            beside=beside,
            confidence=round(confidence(self.asked, skill), 2),
            words=words,
            ahead=tuple(self.ahead(words, self.found[:index][:MAX_AHEAD])),
            to_write=self.to_write(words),
        )

    def words(self, version: int) -> tuple[AskedWord, ...]:
        """Return the search words, the rarest first, each with the parts that contain it."""
        parts = self.reader.index.parts(
            self.reader, version, [pattern for pattern, _, _ in self.looked_for]
        )
        return tuple(
            AskedWord(" ".join(pattern.words), said, round(tells, 2), some)
            for (pattern, said, tells), some in zip(self.looked_for, parts, strict=True)
        )

    def ahead(self, mine: Sequence[AskedWord], before: Sequence[Match]) -> Iterator[Ahead]:
        """Yield the hits that rank higher than the skill, with the reasons."""
        skills = bodies_and_skills(self.reader, [one.id for one in before], self.reader.visibility)
        for place, one in enumerate(before, 1):
            skill = skills[one.id][1]
            theirs = list(zip(self.words(one.id), mine, strict=True))
            yield Ahead(
                skill.ref,
                place,
                round(confidence(self.asked, skill), 2),
                tuple(other.word for other, own in theirs if other.in_head and not own.in_head),
                tuple(
                    other.word
                    for other, own in theirs
                    if own.in_head and _is_prominent(other) and not _is_prominent(own)
                ),
                named=name_key(skill.name) == name_key(" ".join(self.query.split())),
            )

    def to_write(self, words: Sequence[AskedWord]) -> tuple[str, ...]:
        """Return the words to add to the description.

        If a word is part of another returned word, it is left out.
        """
        meant, told = self._translated(words)
        lacking = [
            one
            for one in words
            if not one.in_head
            and (
                one.word in meant
                if one.said
                else not has_unspaced(one.word)
                and tuple(one.word.split()) in self.typed
                and fold(one.word) not in told
            )
        ]
        ordered = [one.word for one in sorted(lacking, key=lambda one: "body" not in one.parts)]
        whole = [one.split() for one in ordered if " " in one]
        return tuple(one for one in ordered if not any(one in some for some in whole))[
            :MAX_TO_WRITE
        ]

    def _translated(self, words: Sequence[AskedWord]) -> tuple[set[str], set[str]]:
        """Return the English terms for foreign words of the query, and these foreign words.

        If at least one skill contains a word, the word isn't translated.
        """
        asked = self.asked
        known = {
            fold(part)
            for word in asked.words
            if word.heads + word.bodies and word.pattern == Pattern(word.typed)
            for part in word.typed
        }
        foreign = set(asked.others.foreign)
        found = {
            one.word: one.said
            for one in words
            if one.said and tuple(one.word.split()) in foreign
            if has_unspaced(one.said) or known.isdisjoint(one.said.split())
        }
        return set(found), {word for said in found.values() for word in said.split()}

    def reasons(
        self, subject: Explanation, version: int, words: Collection[AskedWord]
    ) -> Iterator[Diagnostic]:
        """Yield reasons why a skill isn't a hit, without the reasons that `catalog.why` gives."""
        is_usable = subject.skill is not None and subject.skill.status in {"ok", "warning"}
        for name, value in _given(self.filters) if is_usable else ():
            alone: Mapping[str, object] = {name: value, "ids": [version]}
            if not list_skills(self.reader, Filters(**alone), limit=1).total:  # type: ignore[arg-type]
                message = f"the filter {name} leaves it out"
                yield Diagnostic("filtered", "info", message)
        if not words:
            yield Diagnostic("no-word", "warning", "the query has no words")
        elif not any(one.parts for one in words):
            fix = "add the words that people search for to its description"
            yield Diagnostic("no-word", "warning", "it has none of the words of the query", fix=fix)
        elif subject.listed and len(self.found) >= MAX_RANKED:
            message = f"more than {MAX_RANKED} skills match better"
            yield Diagnostic("far-behind", "info", message)


def _looked_for(
    reader: Reader, query: str, asked: Asked, among: Among | None
) -> list[tuple[Pattern, str | None, float]]:
    """Return the patterns of the search, each with the typed word and its weight.

    Highest weight first.
    """
    found: dict[Pattern, tuple[str | None, float]] = {}
    for word in asked.words:
        said = None if word.pattern.words == word.typed else " ".join(word.typed)
        found.setdefault(word.pattern, (said, word.telling))
    other = {Pattern(term): said for term, said in said_for(unquoted(query)).items()}
    others = [(term, Pattern(term)) for term in (*asked.others.lay, *asked.others.foreign)]
    for word in counted(reader, others, among):
        found.setdefault(word.pattern, (other[word.pattern], word.telling))
    ordered = sorted(found.items(), key=lambda one: -one[1][1])
    return [(pattern, said, tells) for pattern, (said, tells) in ordered]


def _is_prominent(word: AskedWord) -> bool:
    return "name" in word.parts or "tags" in word.parts


def _given(filters: Filters) -> Iterator[tuple[str, object]]:
    """Yield the active filters, except the choice of skills by the personality."""
    for field in fields(filters):
        value = getattr(filters, field.name)
        if value != field.default and field.name not in {"ids", "all"}:
            yield field.name, value
