"""Render untrusted Markdown for a terminal."""

from collections.abc import Iterable, Iterator
from io import StringIO
from typing import TYPE_CHECKING, Final

from registry.cli import escape
from registry.cli.session import Console

if TYPE_CHECKING:
    from markdown_it.token import Token

MAX_RENDERED: Final = 100_000
"""Maximum number of characters that are rendered; a longer text is shown as plain text."""

LEXERS: Final = frozenset("bash console diff html javascript json python sh sql toml yaml".split())
"""Languages of code blocks that are shown in colours."""


def render(console: Console, text: str, width: int) -> Iterator[str]:
    """Yield the lines of ``text``, rendered for a terminal.

    HTML and comments are shown as source text. After a link comes its address; it isn't a terminal
    hyperlink. Characters that can control a terminal are shown as escapes, even if the text has
    them as entities.
    """
    if len(text) > MAX_RENDERED or not console.is_unicode:
        yield from escape.text(text).split("\n")
        return
    from markdown_it import MarkdownIt
    from rich.console import Console as RichConsole
    from rich.markdown import Markdown

    parser = MarkdownIt("commonmark", {"html": False}).enable(["strikethrough", "table"])
    page = Markdown("", code_theme="ansi_dark")
    page.parsed = list(_inert(parser.parse(text)))
    drawn = StringIO()
    RichConsole(
        file=drawn,
        width=width,
        force_terminal=console.is_colored,
        color_system="standard" if console.is_colored else None,
        legacy_windows=False,
    ).print(page)
    yield from (line.rstrip() for line in drawn.getvalue().strip("\n").split("\n"))


def _inert(tokens: "Iterable[Token]") -> "Iterator[Token]":
    for token in tokens:
        token.content = escape.text(token.content)
        if token.info.partition(" ")[0] not in LEXERS:
            token.info = ""
        if token.children is not None:
            token.children = list(_in_line(token.children))
        yield token


def _in_line(tokens: "Iterable[Token]") -> "Iterator[Token]":
    """Yield the tokens of a paragraph, with the addresses of links and images as plain text."""
    from markdown_it.token import Token

    def text(content: str) -> Token:
        return Token("text", "", 0, content=escape.line(content))

    said, href = "", ""
    for token in tokens:
        if token.type == "link_open":
            said, href = "", str(token.attrs.get("href", ""))
        elif token.type == "link_close":
            if href.removeprefix("mailto:") != said:
                yield text(f" ({href})")
        elif token.type == "image":
            said += token.content
            yield text(f"[image: {token.content}] ({token.attrs.get('src', '')})")
        else:
            said += token.content
            token.content = escape.line(token.content)
            yield token
