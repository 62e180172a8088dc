"""Convert the values in front matter into the types of the fields: lists, words, booleans."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from registry.model import JsonValue

MAX_TAGS: Final = 100
MAX_TAG_LENGTH: Final = 100

MAX_WORD_LENGTH: Final = 200
"""Maximum number of characters of a name, a kind and a category.

An index of PostgreSQL holds at most 2,704 bytes for each row.
"""

CONTROL: Final = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff]")

_SEPARATOR: Final = re.compile(r"[,;|\n\u3001\uff0c\uff1b]")
_YES: Final = frozenset({"true", "yes", "on", "1", "y"})
_NO: Final = frozenset({"false", "no", "off", "0", "n"})
_TOOL: Final = re.compile(r"[()]|[^()\s,]+|[\s,]+")


class UnknownShape(TypeError):
    """A field can't have a value of this shape, such as a mapping in place of text."""

    def __init__(self) -> None:
        super().__init__("a value of this type can't be used for its field")


def is_list(value: JsonValue) -> bool:
    """Tell whether ``value`` is a list. Text is not a list."""
    return isinstance(value, Sequence) and not isinstance(value, str)


def from_json(text: str) -> JsonValue:
    """Parse ``text`` as JSON, with every scalar as text.

    Returns ``text`` itself if it isn't a valid JSON list or mapping.
    """
    text = text.strip()
    if text[:1] not in ("[", "{") or text[-1:] not in ("]", "}"):
        return text
    try:
        value: JsonValue = json.loads(text, parse_int=str, parse_float=str, parse_constant=str)
        return _as_text(value, 0)
    except (ValueError, RecursionError, UnknownShape):
        return text


def clean_line(text: str) -> str:
    """Return ``text`` on one line, without control characters and repeated spaces."""
    return " ".join((CONTROL.sub("", text) if CONTROL.search(text) else text).split())


def one_text(value: JsonValue) -> str | None:
    """Return ``value`` (text, or a list of texts) as one line; None if it is empty.

    Raises `UnknownShape` if ``value`` is neither text nor a list.
    """
    if value is None:
        return None
    if isinstance(value, str):
        return clean_line(value) or None
    if is_list(value):
        return ", ".join(texts(value)) or None
    raise UnknownShape


def one_word(value: JsonValue) -> str | None:
    """Return ``value`` as `one_text` does; the result has at most `MAX_WORD_LENGTH` characters.

    Raises `UnknownShape` for a longer text, and for what `one_text` refuses.
    """
    text = one_text(value)
    if text and len(text) > MAX_WORD_LENGTH:
        raise UnknownShape
    return text


def not_read_back(field: str, value: object) -> str:
    """Return why ``value`` would not be read back from a field, as the end of a sentence."""
    if isinstance(value, str) and len(value) > MAX_WORD_LENGTH and field != "description":
        return f"has more than {MAX_WORD_LENGTH} characters"
    return "would not be read back as given"


def people(value: JsonValue) -> str | None:
    """Return the authors named in ``value``, on one line; None if it is empty.

    ``value`` is text, a mapping with a name, or a list of these. Raises `UnknownShape` if a mapping
    has no name.
    """
    if isinstance(value, Mapping):
        for key in ("name", "Name", "username", "github", "login", "email"):
            if isinstance(value.get(key), str):
                return one_text(value[key])
        raise UnknownShape
    if isinstance(value, Sequence) and not isinstance(value, str):
        return ", ".join(filter(None, map(people, value))) or None
    return one_text(value)


def texts(value: JsonValue) -> Iterator[str]:
    """Yield the words in ``value``.

    ``value`` is a list, the JSON text of a list, text with commas, or a word. Raises `UnknownShape`
    for a mapping.
    """
    if value is None:
        return
    if isinstance(value, str):
        text = value.strip()
        if text[:1] == "[" and text[-1:] == "]":
            parsed = from_json(text)
            if not isinstance(parsed, str):
                yield from texts(parsed)
                return
            text = text[1:-1]
        for word in _SEPARATOR.split(text):
            if word := clean_line(word).strip("\"' "):
                yield word
    elif isinstance(value, Sequence):
        for item in value:
            if isinstance(item, Mapping):
                raise UnknownShape
            yield from texts(item)
    else:
        raise UnknownShape


def names(value: JsonValue) -> Iterator[str]:
    """Yield the names in ``value``.

    `texts` reads text and lists of text. In a list, a mapping counts as its ``name`` or ``key``;
    without these, each of its keys is a name. If ``value`` is a mapping, its keys are the names.
    """
    if isinstance(value, Mapping):
        yield from map(clean_line, value)
    elif isinstance(value, Sequence) and not isinstance(value, str):
        for item in value:
            if isinstance(item, Mapping):
                name = item.get("name", item.get("key"))
                yield from map(clean_line, [name] if isinstance(name, str) else item)
            else:
                yield from texts(item)
    else:
        yield from texts(value)


def tags(value: JsonValue) -> Iterator[str]:
    """Yield the tags in ``value``, casefolded, each on one line.

    Text such as ``#a #b`` is split into two tags.
    """
    return map(str.casefold, written_tags(value))


def written_tags(value: JsonValue) -> Iterator[str]:
    """Yield the tags in ``value`` as `tags` does, but keep their letter case."""
    for text in texts(value):
        words = text.split()
        parts = words if all(word[0] == "#" for word in words) else [text]
        for part in parts:
            if tag := part.lstrip("#").strip():
                yield tag


def unique(words: Iterable[str]) -> tuple[str, ...]:
    """Return ``words`` without duplicates, in the order of first occurrence."""
    return tuple(dict.fromkeys(words))


def truth(value: JsonValue) -> bool:
    """Return the boolean that ``value`` means. Raises `UnknownShape` if it isn't a boolean."""
    word = value.strip().casefold() if isinstance(value, str) else None
    if word not in _YES | _NO:
        raise UnknownShape
    return word in _YES


def tools(value: JsonValue) -> Iterator[str]:
    """Yield allowed tools: a list, or text split at commas and spaces outside parentheses."""
    if isinstance(value, str):
        parsed = from_json(value)
        if isinstance(parsed, str):
            yield from _split_tools(parsed.strip().removeprefix("[").removesuffix("]"))
        else:
            yield from tools(parsed)
    elif isinstance(value, Sequence):
        for item in value:
            if isinstance(item, Mapping):
                raise UnknownShape
            if isinstance(item, str) and (tool := clean_line(item)):
                yield tool
    elif value is not None:
        raise UnknownShape


def _split_tools(text: str) -> Iterator[str]:
    """Split ``text`` at its commas.

    If it has commas only in parentheses, split it at its spaces.
    """
    depth = 0
    parts: list[str] = []
    for part in _TOOL.findall(text):
        depth = max(0, depth + (part == "(") - (part == ")"))
        between = not depth and (part.isspace() or "," in part)
        parts.append(("\0" if "," in part else "\1") if between else part)
    marked = "".join(parts)
    for tool in marked.replace("\1", " ").split("\0") if "\0" in marked else marked.split("\1"):
        if tool := clean_line(tool.strip().strip("\"'")):
            yield tool


def _as_text(value: JsonValue, depth: int) -> JsonValue:
    """Convert parsed JSON to the value that YAML gives for the same text: all scalars are text."""
    if depth > 16:  # noqa: PLR2004 - the limit that holds for YAML
        raise UnknownShape
    if isinstance(value, Mapping):
        return {_sound(key): _as_text(item, depth + 1) for key, item in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_as_text(item, depth + 1) for item in value]
    if isinstance(value, bool):
        return "true" if value else "false"
    return _sound(value) if isinstance(value, str) else None


def _sound(text: str) -> str:
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
