"""Read the prompts of a file that a skill brings along, in the shapes that authors write.

A file of a stranger: nothing in it is followed, what is not a prompt is passed over, and what can't
be read at all is told. Shapes are those of skill-creator's ``evals.json`` and ``trigger-eval.json``
and others of public collections; keys are compared without regard to case, ``_`` and ``-``.
"""

import csv
import io
import json
import re
from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from registry.document.yaml_text import Broken, Refused, read_value
from registry.model import JsonValue

MAX_PROMPT: Final = 4000
"""Characters of a prompt that are kept: its words are what is asked, and only the first of them."""

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
"""Keys of a prompt's text, the best known first."""

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
    """What somebody would ask, and whether the skill is meant by it; ``path`` is the file's."""

    text: str
    wanted: bool
    path: str


class NotPrompts(Exception):
    """A file that can't be understood; the reason is its text."""


def is_prompt_file(path: str) -> bool:
    """Tell whether a file of a skill, by its path in the skill's folder, may hold prompts."""
    return _FILE.fullmatch(path) is not None and not _ANSWERS.search(path.rpartition(".")[0])


def read_prompts(path: str, data: bytes) -> list[Prompt]:
    """Return the prompts in a file, each once.

    Raises `NotPrompts` for what is not the format that the file's name says, or holds no prompt.
    """
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise NotPrompts("it is not UTF-8") from None
    ending = path.rpartition(".")[2].lower()
    prompts = [Prompt(said, wanted, path) for said, wanted in _found(_parsed(ending, text), True)]
    if not prompts:
        raise NotPrompts("it has no prompts in a shape that is known")
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
    except Refused as error:
        raise NotPrompts(error.diagnostic.message) from None
    except (Broken, csv.Error, ValueError) as error:
        # The parser's name for text that it was given.
        reason = str(error).replace('"<unicode string>", ', "")
    except RecursionError:
        reason = "nested too deeply"
    raise NotPrompts(
        f"it is not {'JSON' if ending.startswith('json') else ending.upper()}: {reason}"
    )


def _json(text: str) -> JsonValue:
    # Numbers are not looked at, and some that JSON allows make Python give up.
    value: JsonValue = json.loads(
        text, parse_int=_nothing, parse_float=_nothing, parse_constant=_nothing
    )
    return value


def _nothing(_number: str) -> None:
    return None


def _found(value: JsonValue, wanted: bool) -> Iterator[tuple[str, bool]]:
    """Yield the prompts of what a file says, lists of them under known keys among them.

    ``wanted``: what holds where they don't say it themselves.
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
    """Yield the prompt of an entry of a list, if it is one."""
    entry: Mapping[str, JsonValue] = {}
    if isinstance(value, Mapping):
        entry = {_key(key): one for key, one in value.items()}
        value = next((one for key in _TEXT if isinstance(one := entry.get(key), str)), None)
    if isinstance(value, str) and (said := value.strip()[:MAX_PROMPT]):
        yield said, _verdict(entry, wanted)


def _verdict(entry: Mapping[str, JsonValue], wanted: bool) -> bool:
    """Return whether an entry says that its prompt is meant for the skill."""
    for key in (*_VERDICT, *_POLARITY):
        value = entry.get(key)
        if isinstance(value, bool):
            return value
        if isinstance(value, str) and _key(value) in _NO:
            return False
    return wanted


def _key(key: object) -> str:
    return re.sub(r"[\W_]", "", str(key)).lower()
