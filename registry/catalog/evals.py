"""Run the evaluation prompts of skills; for each prompt, report which skill the search finds."""

import csv
import io
import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

from registry.catalog.copies import copies_of
from registry.catalog.listing import chosen
from registry.catalog.reading import CurrentSkill, read_file
from registry.catalog.search.find import Match, answers
from registry.catalog.search.rank import FITS, confidence
from registry.core import Core
from registry.db.read.listing import FilterArguments, Filters, skills_with_files, where
from registry.db.read.skills import StoredSkill, by_ids, files, refs_of
from registry.document.yaml_text import Broken, YamlRefused, read_value
from registry.errors import DatabaseProblem, RegistryError
from registry.model import JsonValue, Value

MAX_PROMPT: Final = 4000
"""Maximum number of characters of a prompt; the rest is ignored."""

_FILE: Final = re.compile(
    r"(?:(?:evals?|evaluations?)/[^/]+|(?:tests?/)?[^/]*(?:eval|trigger)[^/]*)"
    r"\.(?:json|jsonl|ya?ml|csv)",
    re.IGNORECASE,
)
_ANSWERS: Final = re.compile(r"(?:report|result|baseline|schema)s?[^/]*\Z", re.IGNORECASE)

_TEXT: Final = (
    *("prompt", "query", "utterance", "userprompt", "userquery", "userinput"),
    *("input", "trigger", "question", "message"),
)
"""Keys of a prompt's text in files of prompts, the most common key first.

If a prompt has several of these keys, the first of them in this order counts.
"""

_LISTS: Final = (
    *("evals", "evaluations", "testcases", "cases", "tests", "prompts", "queries", "examples"),
    *("triggers", "execution"),
)
_POSITIVE: Final = ("positive", "positives", "shouldtrigger", "truepositives")
_NEGATIVE: Final = ("negative", "negatives", "shouldnottrigger", "truenegatives")
_VERDICT: Final = ("shouldtrigger", "expectedtrigger", "shouldactivate", "trigger", "triggers")
_POLARITY: Final = ("polarity", "type", "label", "expected")
_NO: Final = frozenset({"false", "no", "0", "negative", "notrigger", "shouldnottrigger"})


class Prompt(NamedTuple):
    """A user's question, and whether the skill should be found for it.

    ``path`` is the prompt's file.
    """

    text: str
    wanted: bool
    path: str


class NotPrompts(Exception):
    """The file of prompts is invalid; the message of the exception gives the reason."""


def is_prompt_file(path: str) -> bool:
    """Tell from its path in the skill's folder whether a file may contain prompts."""
    return _FILE.fullmatch(path) is not None and not _ANSWERS.search(path.rpartition(".")[0])


def read_prompts(path: str, data: bytes) -> list[Prompt]:
    """Return the prompts in a file, without duplicates.

    Raises `NotPrompts` if the file is not in the format that its name promises, or if it has no
    prompts.
    """
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise NotPrompts("it is not UTF-8") from None
    ending = path.rpartition(".")[2].lower()
    prompts = [Prompt(said, wanted, path) for said, wanted in _found(_parsed(ending, text), True)]
    if not prompts:
        raise NotPrompts("it has no prompts in a known format")
    return list(dict.fromkeys(prompts))


def _parsed(ending: str, text: str) -> JsonValue:
    try:
        match ending:
            case "json":
                return _json(text)
            case "jsonl":
                return [_json(line) for line in text.splitlines() if line.strip()]
            case "csv":
                return [dict(row) for row in csv.DictReader(io.StringIO(text), restval="")]
        return read_value(text, 1, set())
    except YamlRefused as error:
        raise NotPrompts(error.diagnostic.message) from None
    except (Broken, csv.Error, ValueError) as error:
        # The YAML parser adds its own name for the text to the message, so remove this name.
        reason = str(error).replace('"<unicode string>", ', "")
    except RecursionError:
        reason = "nested too deeply"
    raise NotPrompts(
        f"it is not {'JSON' if ending.startswith('json') else ending.upper()}: {reason}"
    )


def _json(text: str) -> JsonValue:
    # Ignore numbers, because prompts don't use them, and Python can't parse some numbers that JSON
    # allows.
    value: JsonValue = json.loads(
        text, parse_int=_nothing, parse_float=_nothing, parse_constant=_nothing
    )
    return value


def _nothing(_number: str) -> None:
    return None


def _found(value: JsonValue, wanted: bool) -> Iterator[tuple[str, bool]]:
    """Yield the prompts in a parsed file, including the prompts in lists under known keys.

    ``wanted`` tells whether the skill should be found for a prompt, if the prompt's data doesn't
    tell this.
    """
    if isinstance(value, list):
        for one in value:
            yield from _entry(one, wanted)
    elif isinstance(value, Mapping):
        yield from _entry(value, wanted)
        inner = {_key(key): one for key, one in value.items()}
        for keys, is_wanted in ((_LISTS, wanted), (_POSITIVE, True), (_NEGATIVE, False)):
            for key in keys:
                some = inner.get(key)
                for one in some if isinstance(some, list) else [some]:
                    yield from _entry(one, is_wanted) if isinstance(some, list | Mapping) else ()


def _entry(value: JsonValue, wanted: bool) -> Iterator[tuple[str, bool]]:
    """Yield the prompt in ``value``, a text or an object; if it has no prompt, yield nothing."""
    entry: Mapping[str, JsonValue] = {}
    if isinstance(value, Mapping):
        entry = {_key(key): one for key, one in value.items()}
        value = next((one for key in _TEXT if isinstance(one := entry.get(key), str)), None)
    if isinstance(value, str) and (said := value.strip()[:MAX_PROMPT]):
        yield said, _verdict(entry, wanted)


def _verdict(entry: Mapping[str, JsonValue], wanted: bool) -> bool:
    """Tell whether the skill should be found for an object's prompt; ``wanted`` is the default."""
    for key in (*_VERDICT, *_POLARITY):
        value = entry.get(key)
        if isinstance(value, bool):
            return value
        if isinstance(value, str) and _key(value) in _NO:
            return False
    return wanted


def _key(key: object) -> str:
    return re.sub(r"[\W_]", "", str(key)).lower()


BEST: Final = 5
"""A prompt passes if its skill is among this number of hits; agents read only the first hits."""

MAX_FILES, MAX_PROMPTS = 20, 500
"""Maximum numbers of prompt files and of prompts to use for one skill."""

MAX_COMPETITORS: Final = 3

_LIKELY: Final = ("%eval%", "%trigger%")
"""SQL LIKE patterns; the path of each prompt file matches at least one."""


@dataclass(frozen=True, slots=True)
class EvalResult(Value):
    """The result of one prompt; ``wanted`` tells whether the skill should be found for it.

    ``path`` is the prompt's file. ``place`` is the rank, from 1, of the skill or of its best
    near-duplicate; None if the hits contain neither. ``first`` is the ref of the first hit.
    ``confidence`` tells how well the hits match, as in a search. If the skill should be found, the
    prompt passes (``passed``) if the skill is among the first `BEST` hits. Otherwise the prompt
    fails only if the skill is the first hit with the confidence of a good match.
    """

    prompt: str
    path: str
    wanted: bool
    place: int | None
    first: str | None
    confidence: float
    passed: bool


@dataclass(frozen=True, slots=True)
class Competitor(Value):
    """A skill that was the first hit for prompts of another skill, and for how many."""

    ref: str
    wins: int


@dataclass(frozen=True, slots=True)
class Score(Value):
    """The results of several prompts: how often the skill came first, or among the first five.

    ``negatives`` counts prompts for which the skill should not be found. ``false_alarms`` counts
    the negatives for which the skill was the first hit with the confidence of a good match.
    """

    prompts: int
    hit_at_1: int
    hit_at_5: int
    negatives: int
    false_alarms: int
    competitors: tuple[Competitor, ...]


@dataclass(frozen=True, slots=True)
class SkillScore(Value):
    """The score of a skill for its own prompts; ``path`` is its folder."""

    ref: str
    path: str
    score: Score
    answers: tuple[EvalResult, ...]


@dataclass(frozen=True, slots=True)
class Problem(Value):
    """An invalid prompt file: its path in the skill's folder, and the reason."""

    ref: str
    path: str
    reason: str


@dataclass(frozen=True, slots=True)
class Evaluation(Value):
    """The score of all skills together, and the score of each skill, by name."""

    total: Score
    skills: tuple[SkillScore, ...]
    problems: tuple[Problem, ...]


def evaluate(
    core: Core, names: Sequence[str], filters: Filters | None, wanted: FilterArguments
) -> Evaluation:
    """Search with the prompts that skills contain, and score the results.

    See `SkillRegistry.evaluate`.
    """
    problems: list[Problem] = []
    shipped = list(_shipped(core, _subjects(core, names, chosen(core, filters, wanted)), problems))
    reader = core.reader
    with reader.snapshot():
        # The search covers all listed skills, like a user's search.
        condition = where(reader, Filters(), reader.visibility)
        asked = {
            text: answers(reader, [text], condition)
            for text in dict.fromkeys(one.text for _, prompts in shipped for one in prompts)
        }
        winners = {found[0].id for found, _ in asked.values() if found}
        refs = refs_of(reader, list(winners))
        scores = []
        for stored, prompts in shipped:
            ids = {stored.id, *(copy.id for copy in copies_of(reader, stored))}
            skill = stored.skill
            told = []
            for prompt in prompts:
                found, (understood,) = asked[prompt.text]
                first = refs[found[0].id] if found else None
                fits = confidence(understood, skill)
                told.append(_answer(prompt, _place(found, ids), first, fits))
            scores.append(SkillScore(skill.ref, skill.path, _score(told), tuple(told)))
    total = _score([answer for one in scores for answer in one.answers])
    return Evaluation(total, tuple(scores), tuple(problems))


def _subjects(core: Core, names: Sequence[str], filters: Filters) -> list[StoredSkill]:
    """Return the selected skills that have prompt files, by name."""
    if names:  # the user may have edited these skills just now
        filters = replace(filters, ids=[CurrentSkill.of(core, one).stored.id for one in names])
    return list(by_ids(core.reader, skills_with_files(core.reader, filters, _LIKELY)).values())


def _shipped(
    core: Core, subjects: Iterable[StoredSkill], problems: list[Problem]
) -> Iterator[tuple[StoredSkill, Sequence[Prompt]]]:
    """Yield each skill with the prompts in its files; add invalid files to ``problems``."""
    for stored in subjects:
        ref = stored.skill.ref
        try:
            current = CurrentSkill.of_stored(core, stored)
        except DatabaseProblem:
            raise
        except RegistryError as error:
            problems.append(Problem(ref, "", str(error)))
            continue
        paths = [one.path for one in files(core.reader, current.stored.id)]
        prompts: list[Prompt] = []
        for path in [one for one in paths if is_prompt_file(one)][:MAX_FILES]:
            try:
                prompts += read_prompts(path, read_file(core, current, path))
            except DatabaseProblem:
                raise
            except (RegistryError, NotPrompts) as error:
                problems.append(Problem(ref, path, str(error)))
        unique = list({(one.text, one.wanted): one for one in reversed(prompts)}.values())[::-1]
        if len(unique) > MAX_PROMPTS:
            reason = f"of {len(unique)} prompts only the first {MAX_PROMPTS} are used"
            problems.append(Problem(ref, unique[MAX_PROMPTS].path, reason))
        if unique:
            yield current.stored, unique[:MAX_PROMPTS]


def _place(found: Sequence[Match], ids: set[int]) -> int | None:
    """Return the rank of the best hit among these skills and their near-duplicates.

    Returns None if none of them is a hit.
    """
    return next(
        (
            place
            for place, one in enumerate(found, 1)
            if one.id in ids or not ids.isdisjoint(one.alike)
        ),
        None,
    )


def _answer(prompt: Prompt, place: int | None, first: str | None, fits: float) -> EvalResult:
    is_found = place is not None and place <= BEST
    is_taken = place == 1 and fits >= FITS
    passed = is_found if prompt.wanted else not is_taken
    return EvalResult(prompt.text, prompt.path, prompt.wanted, place, first, round(fits, 2), passed)


def _score(told: Sequence[EvalResult]) -> Score:
    meant = [one for one in told if one.wanted]
    won = Counter(one.first for one in meant if one.place != 1 and one.first is not None)
    return Score(
        prompts=len(meant),
        hit_at_1=sum(one.place == 1 for one in meant),
        hit_at_5=sum(one.passed for one in meant),
        negatives=len(told) - len(meant),
        false_alarms=sum(not one.passed for one in told if not one.wanted),
        competitors=tuple(Competitor(*one) for one in won.most_common(MAX_COMPETITORS)),
    )
