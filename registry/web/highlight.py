"""Source text with its syntax marked by classes; only what is ours becomes HTML."""

from functools import cache
from html import escape
from typing import Any, Final

from pygments import highlight
from pygments.formatters.html import HtmlFormatter
from pygments.lexers import get_lexer_by_name, get_lexer_for_filename
from pygments.token import STANDARD_TYPES
from pygments.util import ClassNotFound

MOST: Final = 100_000
"""Characters that are highlighted: some lexers are slow, and a stranger chooses the text."""

_PREFIX: Final = "p-"
CLASSES: Final = {_PREFIX + name for name in STANDARD_TYPES.values() if name}
"""The classes that highlighted text may have."""


def highlighted(text: str, *, language: str = "", name: str = "") -> str:
    """Return a text as HTML, in a language by its name, or as what a file is called says."""
    if len(text) > MOST:
        return escape(text)
    lexer = _lexer(language.strip()[:40], name)
    if lexer is None:
        return escape(text)
    return str(highlight(text, lexer, _formatter()))


def lines(text: str, name: str) -> list[str]:
    """Return the lines of a file as HTML, highlighted."""
    marked = highlighted(text, name=name)
    # The formatter closes at a line's end the spans that go over several.
    return marked.removesuffix("\n").split("\n")


def _lexer(language: str, name: str) -> Any:
    try:
        if language:
            return get_lexer_by_name(language, stripnl=False, ensurenl=False)
        return get_lexer_for_filename(name, stripnl=False, ensurenl=False) if name else None
    except ClassNotFound:
        return None


@cache
def _formatter() -> Any:
    return HtmlFormatter(classprefix=_PREFIX, nowrap=True)
