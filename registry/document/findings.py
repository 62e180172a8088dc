"""What the checks of a document share: the shape of their tables, and how they quote."""

import re
from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from registry.model import Document, Severity
from registry.text import shorten

NEAR: Final = 300
"""Characters around a match that are read as its context."""

SHOWN: Final = 160
"""Characters of a match that are quoted at most."""

_KEY = re.compile(r"""["']?([^\s"'#\-][^:"']*?)["']?\s*:(?:\s|$)""")


class Rule(NamedTuple):
    """What a diagnostic's code stands for, so that documentation can be made from the tables."""

    severity: Severity
    meaning: str


class Place(NamedTuple):
    """A finding before it is put into words: its code, its place in the text, what is there.

    ``quoted``: it seems to be an example of an attack, not one.
    """

    code: str
    offset: int
    what: str
    quoted: bool = False


def printable(text: str, limit: int = 80) -> str:
    """Return ``text`` as one printable line of at most ``limit`` characters.

    What a message quotes comes from a skill: characters that steer a terminal or can't be seen
    are shown as escapes (CONVENTIONS.md, "Escape").
    """
    text = shorten(text, limit)
    if not text.isprintable():
        text = "".join(c if c.isprintable() else ascii(c)[1:-1] for c in " ".join(text.split()))
    return shorten(text, limit)


def join_some(items: Iterable[str]) -> str:
    """Return the first five of ``items``, each shortened, and how many there are beyond them."""
    texts = list(items)
    shown = ", ".join(printable(item, 40) for item in texts[:5])
    return f"{shown} and {len(texts) - 5} more" if texts[5:] else shown


def key_lines(document: Document) -> Mapping[str, int]:
    """Map the top-level keys of the front matter to their lines in the file."""
    lines: dict[str, int] = {}
    head = document.text.split("\n", document.body_line - 1)[: document.body_line - 1]
    for number, line in enumerate(head, 1):
        if match := _KEY.match(line):
            lines.setdefault(match[1], number)
    return lines
