"""Write text as YAML that every loader reads back as that text."""

import json
import re
from collections.abc import Iterable, Sequence
from typing import Final

from registry.document import shapes

# What YAML 1.1 and 1.2 read as something else than text, of all that begins with a letter. Other
# numbers, dates and special characters begin with something else, and are always quoted.
_WORDS: Final = frozenset("y n yes no on off true false null none nan inf".split())

_VISIBLE_FORMAT: Final = "\u200c\u200d\u3000"
"""Joiners of emoji and of Persian and Indic text, and the Chinese space, which need no escape."""

_FLOW: Final = re.compile(r"[,\[\]{}?:]")


def scalar(text: str, *, like: str = "", flow: bool = False) -> str:
    """Return ``text`` as a YAML scalar on one line, quoted where it has to be.

    ``like`` is the quotation mark of the value it replaces, kept where it can be. Inside brackets
    (``flow``) less can be written without quotes.
    """
    if not all(map(_is_visible, text)):
        return quoted(text)
    if not like and is_plain(text) and not (flow and _FLOW.search(text)):
        return text
    simpler = not like and "'" not in text and ('"' in text or "\\" in text)
    return "'" + text.replace("'", "''") + "'" if like == "'" or simpler else quoted(text)


def quoted(text: str) -> str:
    """Return ``text`` in double quotes, on one line, what can't be seen as escapes."""
    return '"' + "".join(map(_escape, text)) + '"'


def is_plain(text: str) -> bool:
    """Tell whether ``text`` needs no quotes behind `key: `, for loaders of any version of YAML."""
    if not text or not text[0].isalpha() or text.lower() in _WORDS:
        return False
    if text != text.strip() or text[-1] == ":" or ": " in text or " #" in text:
        return False
    return all(map(_is_visible, text))


def block(text: str, indent: str, newline: str) -> str | None:
    """Return ``text``, of several lines, as a literal block, or None where quotes are safer.

    The header comes first, for the line of the key; the lines below it begin with ``indent``.
    """
    lines = text.split("\n")
    if len(lines) == 1 or not lines[0].strip() or lines[0][0] in " \u3000" or not lines[-1]:
        return None
    if any(line != line.rstrip() or not all(map(_is_visible, line)) for line in lines):
        return None
    return newline.join(["|-", *(indent + line if line else "" for line in lines)])


def text_value(text: str, indent: str = "  ", newline: str = "\n", like: str = "") -> str:
    """Return ``text`` as the value behind `key: `, several lines as a literal block."""
    return block(text, indent, newline) or scalar(text, like=like)


def tag_words(tags: Iterable[str]) -> tuple[str, ...]:
    """Return ``tags`` as they are stored: casefolded, unique, those with commas split."""
    words: tuple[str, ...] = tuple(tags)
    while (read := shapes.unique(word for tag in words for word in shapes.tags(tag))) != words:
        words = read  # `#"a` is read as `"a`, and that as `a`
    return words


def tag_text(words: Sequence[str]) -> str:
    """Return stored tags as one text, separated by commas unless that reads otherwise."""
    text = ", ".join(words)
    same = tuple(shapes.tags(text)) == tuple(words)
    return text if same else json.dumps(words, ensure_ascii=False)


def _is_visible(char: str) -> bool:
    return char.isprintable() or char in _VISIBLE_FORMAT


def _escape(char: str) -> str:
    if char == '"':
        return '\\"'
    seen = _is_visible(char) and char != "\\"
    return char if seen else char.encode("unicode_escape").decode("ascii")  # YAML's are the same
