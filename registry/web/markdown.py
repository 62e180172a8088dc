"""Convert untrusted Markdown and code to safe HTML: without scripts, styles and forms."""

import posixpath
import re
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import cache
from html import escape, unescape
from typing import Any, Final
from urllib.parse import unquote, urlsplit

from markdown_it import MarkdownIt
from markdown_it.token import Token
from pygments import highlight
from pygments.formatters.html import HtmlFormatter
from pygments.lexers import find_lexer_class_by_name, get_all_lexers
from pygments.token import STANDARD_TYPES

from registry.web import addresses

PIECE: Final = 4000
"""Number of characters that a lexer gets in one call.

For some hostile texts, the time of a lexer increases with the square of their length.
"""

BLANK_LINES: Final = "\n" * 50
"""A piece with this many blank lines in a row isn't highlighted, because this would be slow."""

HIGHLIGHT_SECONDS: Final = 0.3
"""Time after which the rest of a text isn't highlighted, in seconds.

Other requests wait while a text is highlighted.
"""

LANGUAGES: Final = frozenset(
    "bash css go html ini javascript json markdown python rust sql toml typescript xml yaml".split()
)
"""Languages that are highlighted; their lexers were tested with hostile texts."""

_PREFIX: Final = "p-"
CLASSES: Final = {_PREFIX + name for name in STANDARD_TYPES.values() if name}
"""The CSS classes that highlighted text may have."""


def highlighted(text: str, *, language: str = "", name: str = "") -> str:
    """Return a text as highlighted HTML; its language or its file name is given."""
    lexer = _lexer(language.strip()[:40], name)
    if lexer is None:
        return escape(text)
    end = time.monotonic() + HIGHLIGHT_SECONDS
    parts = []
    for piece in _pieces(text):
        is_slow = len(piece) > PIECE or BLANK_LINES in piece
        if is_slow or time.monotonic() > end:
            parts.append(escape(piece))
        else:
            # The formatter adds a line break after every line, even after the last one.
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
    # The formatter ends all spans at the end of each line, and starts them again on the next line.
    return marked.removesuffix("\n").split("\n")


def numbered(text: str, name: str) -> str:
    """Return a file as HTML, with numbered lines.

    Each line is an element with an id and a link to itself; the text of the link is the line's
    number. The keyboard skips these links, because a file may have thousands of lines.
    """
    marked = enumerate(lines(text, name), 1)
    return "".join(
        f'<span class="l" id="L{place}"><a href="#L{place}" tabindex="-1" aria-hidden="true"></a>'
        f"{line}</span>"
        for place, line in marked
    )


_OPTIONS: Final[Mapping[str, Any]] = {
    "stripnl": False,
    "ensurenl": False,
    "handlecodeblocks": False,
}
"""Options of the lexers.

The lexer of Markdown doesn't highlight code blocks, because their lexers may be slow.
"""


def _lexer(language: str, name: str) -> Any:
    aliases, patterns = _languages()
    alias = language.lower()
    if not alias:
        alias = next((alias for pattern, alias in patterns if fnmatchcase(name, pattern)), "")
    return aliases[alias](**_OPTIONS) if alias in aliases else None


@cache
def _languages() -> tuple[dict[str, Any], list[tuple[str, str]]]:
    """Return the lexers of `LANGUAGES` by alias, and patterns of file names with their alias.

    The functions of Pygments go through all of its 500 lexers in each call.
    """
    aliases: dict[str, Any] = {}
    patterns: list[tuple[str, str]] = []
    for _, names, files, _ in get_all_lexers(plugins=False):
        if LANGUAGES & set(names):
            aliases |= dict.fromkeys(names, find_lexer_class_by_name(names[0]))
            patterns += [(one, names[0]) for one in files]
    return aliases, patterns


@cache
def _formatter() -> Any:
    return HtmlFormatter(classprefix=_PREFIX, nowrap=True)


MOST: Final = 100_000
"""Maximum length of rendered Markdown, in characters.

99 % of real files have at most a third of this length. Rendering hostile Markdown of this length
takes most of a second, and all other requests wait.
"""

MAX_HTML: Final = 4 << 20
"""Maximum length of the HTML, in characters.

HTML can be much longer than its Markdown: thousands of links can refer to one long address, and
each link gets a copy of it.
"""

_TAGS: Final = set(
    "a abbr b blockquote br caption code col colgroup dd del details dfn div dl dt em h2 h3 h4 "
    "h5 h6 hr i img ins kbd li mark ol p pre q s samp small span strong sub summary sup table "
    "tbody td tfoot th thead tr u ul var".split()
)
_ATTRIBUTES: Final[dict[str, set[str]]] = {
    "a": {"href", "title"},
    "img": {"src", "alt", "title", "width", "height"},
    "td": {"colspan", "rowspan", "align"},
    "th": {"colspan", "rowspan", "align", "scope"},
    "ol": {"start"},
    "details": {"open"},
    "div": {"tabindex", "role", "aria-label"},
    "pre": {"tabindex"},
    **{f"h{level}": {"id"} for level in range(2, 7)},
    "span": set(),
}
_REGION: Final = '<div class="wide" tabindex="0" role="group" aria-label="Table">'
_SCHEMES: Final = {"http", "https", "mailto"}
_OURS: Final = {"tabindex": "0", "role": "group", "aria-label": "Table"}
"""The attributes that a `div` may have, and the only value of each."""

_IMAGES: Final = (".png", ".jpg", ".jpeg", ".gif", ".webp", ".avif", ".svg")
_HEADING_ID: Final = re.compile(r"[^\w]+")
PREFIX: Final = "md-"
"""Prefix of ids from skill files, so that they differ from the ids of the page itself."""


def rendered(text: str, ref: str, files: Collection[str], folder: str = "") -> str | None:
    """Return Markdown as safe HTML; None if the Markdown or its HTML is too long.

    ``ref`` is the skill, and ``files`` are the paths of its files. Relative links are relative to
    ``folder``, and lead to these files.
    """
    if len(text) > MOST:
        return None
    parser = _parser()
    tokens = parser.parse(text)
    _number_headings(tokens)
    _check_tasks(tokens)
    if _size(tokens) > MAX_HTML:
        return None
    dirty = parser.renderer.render(tokens, parser.options, {})
    clean = _clean(dirty, _Rewriting(ref, files, folder))
    return clean if len(clean) <= MAX_HTML else None


def _size(tokens: Iterable[Token]) -> int:
    """Return the total length of the attributes of these elements, in characters."""
    return sum(
        sum(len(str(value)) for value in token.attrs.values()) + _size(token.children or ())
        for token in tokens
        if token.attrs or token.children
    )


@cache
def _parser() -> MarkdownIt:
    parser = MarkdownIt("commonmark", {"highlight": _fence}).enable(["table", "strikethrough"])
    # Wide tables have a scroll bar. With ``tabindex``, users can also scroll with the keyboard.
    opening, closing = f"{_REGION}<table>\n", "</table></div>\n"
    parser.add_render_rule("table_open", lambda *_: opening)
    parser.add_render_rule("table_close", lambda *_: closing)
    return parser


def _fence(code: str, language: str, _attributes: str) -> str:
    return (
        f'<pre class="code" tabindex="0"><code>{highlighted(code, language=language)}</code></pre>'
    )


def _number_headings(tokens: Sequence[Token]) -> None:
    """Give headings ids.

    Their levels change, so that they are below the page's own headings and no level is skipped.
    """
    level, taken = 2, Counter[str]()
    for place, token in enumerate(tokens):
        if token.type not in {"heading_open", "heading_close"}:
            continue
        if token.type == "heading_open":
            level = min(int(token.tag[1:]) + 2, level + 1, 6)
            name = _slug(tokens[place + 1].content)
            taken[name] += 1
            token.attrSet("id", name if taken[name] == 1 else f"{name}-{taken[name]}")
        token.tag = f"h{level}"


_TASKS: Final = {"[ ] ": "☐ ", "[x] ": "☑ ", "[X] ": "☑ "}
"""The beginnings of items in task lists, and the signs that replace them."""


def _check_tasks(tokens: Sequence[Token]) -> None:
    """Replace the check boxes of task lists by signs."""
    for before, paragraph, token in zip(tokens, tokens[1:], tokens[2:], strict=False):
        if before.type == "list_item_open" and paragraph.type == "paragraph_open":
            first = next(iter(token.children or ()), None)
            if first is not None and (sign := _TASKS.get(first.content[:4])) is not None:
                first.content = sign + first.content[4:]


def _slug(text: str) -> str:
    return PREFIX + _HEADING_ID.sub("-", text.casefold()).strip("-")[:80]


_HEADING: Final = re.compile(r'<h([3-6]) id="(md-[^"]*)">(.*?)</h', re.DOTALL)
_TAG: Final = re.compile(r"<[^>]*>")


def headings(html: str) -> list[tuple[int, str, str]]:
    """Return the level, id and text of each heading in the result of `rendered`."""
    return [
        (int(level), name, unescape(_TAG.sub("", text)))
        for level, name, text in _HEADING.findall(html)
    ]


_REL: Final = "nofollow noopener noreferrer"
_UNLINKED: Final = re.compile(r'<a(?: (?:title|rel)="[^"]*")+>')
_UNSHOWN: Final = re.compile(r'<img((?: (?:alt|title|width|height)="[^"]*")*)>')
_ALT: Final = re.compile(r' alt="([^"]*)"')


def _without_rel(link: re.Match[str]) -> str:
    return link[0].replace(f' rel="{_REL}"', "")


def _as_text(image: re.Match[str]) -> str:
    """Return the text that describes an image without an address."""
    alt = _ALT.search(image[1])
    return escape(unescape(alt[1])) if alt else ""


def _clean(dirty: str, rewrite: Callable[[str, str, str], str | None]) -> str:
    import nh3

    clean = nh3.clean(
        dirty,
        tags=_TAGS,
        clean_content_tags={"script", "style", "template", "iframe", "object", "noscript", "title"},
        attributes=_ATTRIBUTES,
        attribute_filter=rewrite,
        strip_comments=True,
        link_rel=_REL,
        url_schemes=_SCHEMES,
        allowed_classes={"span": CLASSES, "div": {"wide"}, "pre": {"code"}},
        set_tag_attribute_values={"pre": {"tabindex": "0"}},
    )
    return _UNSHOWN.sub(_as_text, _UNLINKED.sub(_without_rel, clean))


class _Rewriting:
    """Changes attributes, so that links lead to pages of the catalogue."""

    def __init__(self, ref: str, files: Collection[str], folder: str) -> None:
        self._ref = ref
        self._files = files
        self._folder = folder

    def __call__(self, _tag: str, attribute: str, value: str) -> str | None:
        """Return the new value of an attribute, or None to remove the attribute."""
        if attribute == "id":
            return value if value.startswith(PREFIX) else None
        if attribute in _OURS:
            return value if value == _OURS[attribute] else None
        if attribute == "href":
            return self._link(value)
        return self._image(value) if attribute == "src" else value

    def _link(self, value: str) -> str | None:
        if value.startswith("#"):
            return "#" + _slug(unquote(value[1:])) if value[1:] else None
        path = self._path(value)
        if path is not None:
            return addresses.file(self._ref, path)
        try:
            scheme = urlsplit(value).scheme.lower()
        except ValueError:
            return None
        return value if scheme in _SCHEMES else None

    def _image(self, value: str) -> str | None:
        path = self._path(value)
        if path is None or not path.lower().endswith(_IMAGES):
            return None
        return addresses.raw(self._ref, path)

    def _path(self, value: str) -> str | None:
        """Return the path of the skill's file that a relative link refers to."""
        try:
            parts = urlsplit(value)
        except ValueError:
            return None
        if parts.scheme or parts.netloc or not parts.path or parts.path.startswith("/"):
            return None
        path = posixpath.normpath(posixpath.join(self._folder, unquote(parts.path)))
        return path if path in self._files else None
