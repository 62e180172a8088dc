"""Source text with its syntax marked by classes; only what is ours becomes HTML."""

import time
from collections.abc import Iterator
from functools import cache
from html import escape
from typing import Any, Final

from pygments import highlight
from pygments.formatters.html import HtmlFormatter
from pygments.lexers import get_lexer_by_name, get_lexer_for_filename
from pygments.token import STANDARD_TYPES
from pygments.util import ClassNotFound

PIECE: Final = 4000
"""Characters that are looked at together. A stranger chooses the text, and to some of them a lexer
takes the square of their length."""

PATIENCE: Final = 0.3
"""Seconds, after which the rest of a text stays as it is: nothing else is answered meanwhile."""

LANGUAGES: Final = frozenset(
    "bash css go html ini javascript json python rust sql toml typescript xml yaml".split()
)
"""Languages that are highlighted: those whose lexers were tried with what is written to be slow."""

_PREFIX: Final = "p-"
CLASSES: Final = {_PREFIX + name for name in STANDARD_TYPES.values() if name}
"""The classes that highlighted text may have."""


def highlighted(text: str, *, language: str = "", name: str = "") -> str:
    """Return a text as HTML, in a language by its name, or as what a file is called says."""
    lexer = _lexer(language.strip()[:40], name)
    if lexer is None:
        return escape(text)
    end = time.monotonic() + PATIENCE
    parts = []
    for piece in _pieces(text):
        if len(piece) > PIECE or time.monotonic() > end:
            parts.append(escape(piece))
        else:
            # The formatter ends each line, also one that was not ended.
            marked = str(highlight(piece, lexer, _formatter()))
            parts.append(marked if piece.endswith("\n") else marked.removesuffix("\n"))
    return "".join(parts)


def _pieces(text: str) -> Iterator[str]:
    """Yield a text in pieces of whole lines."""
    piece: list[str] = []
    size = 0
    for line in text.splitlines(keepends=True):
        if piece and size + len(line) > PIECE:
            yield "".join(piece)
            piece, size = [], 0
        piece.append(line)
        size += len(line)
    yield "".join(piece)


def lines(text: str, name: str) -> list[str]:
    """Return the lines of a file as HTML, highlighted."""
    marked = highlighted(text, name=name)
    # The formatter closes at a line's end the spans that go over several.
    return marked.removesuffix("\n").split("\n")


def numbered(text: str, name: str) -> str:
    """Return a file as HTML, each line an element that can be linked to."""
    marked = enumerate(lines(text, name), 1)
    return "".join(f'<span class="l" id="L{place}">{line}</span>' for place, line in marked)


def _lexer(language: str, name: str) -> Any:
    try:
        if language:
            found = get_lexer_by_name(language, stripnl=False, ensurenl=False)
        elif name:
            found = get_lexer_for_filename(name, stripnl=False, ensurenl=False)
        else:
            return None
    except ClassNotFound:
        return None
    return found if LANGUAGES & set(found.aliases) else None


@cache
def _formatter() -> Any:
    return HtmlFormatter(classprefix=_PREFIX, nowrap=True)
