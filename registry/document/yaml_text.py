"""Read every YAML scalar as written, and write text so that YAML reads the same text again."""

import json
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Final

from registry.document import coerce
from registry.document.findings import finding, printable
from registry.model import Diagnostic, JsonValue

# Words that YAML 1.1 or 1.2 doesn't read as text. Texts that begin with a digit or a special
# character are always quoted, so the list doesn't contain other numbers and dates.
_WORDS: Final = frozenset("y n yes no on off true false null none nan inf".split())

_VISIBLE_FORMAT: Final = "\u200c\u200d\u3000"
"""Invisible characters that need no escape: joiners of emoji, Persian and Indic text, the Chinese
space.
"""

_FLOW: Final = re.compile(r"[,\[\]{}?:]")


def scalar(text: str, *, like: str = "", flow: bool = False) -> str:
    """Return ``text`` as a YAML scalar on one line, with quotes if necessary.

    ``like`` is the quotation mark of the old value, which is used again if possible. Inside
    brackets (``flow``), more texts need quotes.
    """
    if not all(map(_is_visible, text)):
        return quoted(text)
    if not like and is_plain(text) and not (flow and _FLOW.search(text)):
        return text
    simpler = not like and "'" not in text and ('"' in text or "\\" in text)
    return "'" + text.replace("'", "''") + "'" if like == "'" or simpler else quoted(text)


def quoted(text: str) -> str:
    """Return ``text`` in double quotes, on one line, with invisible characters as escapes."""
    return '"' + "".join(map(_escape, text)) + '"'


def is_plain(text: str) -> bool:
    """Tell whether ``text`` needs no quotes after `key: ` in all versions of YAML."""
    if not text or not text[0].isalpha() or text.lower() in _WORDS:
        return False
    if text != text.strip() or text[-1] == ":" or ": " in text or " #" in text:
        return False
    return all(map(_is_visible, text))


def block(text: str, indent: str, newline: str) -> str | None:
    """Return a ``text`` of several lines as a literal block; None if quotes are safer.

    The first line of the result is the block's header, which belongs on the line of the key. The
    other lines begin with ``indent``.
    """
    lines = text.split("\n")
    if len(lines) == 1 or not lines[0].strip() or lines[0][0] in " \u3000" or not lines[-1]:
        return None
    if any(line != line.rstrip() or not all(map(_is_visible, line)) for line in lines):
        return None
    return newline.join(["|-", *(indent + line if line else "" for line in lines)])


def text_value(text: str, indent: str = "  ", newline: str = "\n", like: str = "") -> str:
    """Return ``text`` as the value after `key: `; several lines become a literal block."""
    return block(text, indent, newline) or scalar(text, like=like)


def tag_words(tags: Iterable[str]) -> tuple[str, ...]:
    """Return ``tags`` in their stored form: casefolded, without duplicates, split at commas."""
    words: tuple[str, ...] = tuple(tags)
    while (read := coerce.unique(word for tag in words for word in coerce.tags(tag))) != words:
        words = read  # `#"a` is read as `"a`, and `"a` is read as `a`
    return words


def tag_text(words: Sequence[str]) -> str:
    """Return stored tags as one text.

    Commas separate the tags, if the text then parses to the same tags.
    """
    text = ", ".join(words)
    same = tuple(coerce.tags(text)) == tuple(words)
    return text if same else json.dumps(words, ensure_ascii=False)


def _is_visible(char: str) -> bool:
    return char.isprintable() or char in _VISIBLE_FORMAT


def _escape(char: str) -> str:
    if char == '"':
        return '\\"'
    seen = _is_visible(char) and char != "\\"
    return char if seen else char.encode("unicode_escape").decode("ascii")  # as in YAML


MAX_NESTING: Final = 16

SURROGATES: Final = re.compile("[\ud800-\udfff]")

_NULLS: Final = frozenset({"", "~", "null", "Null", "NULL"})
_CORE: Final = "tag:yaml.org,2002:"
_CORE_TAGS: Final = frozenset(
    f"{_CORE}{name}" for name in ("str", "int", "float", "bool", "null", "seq", "map", "timestamp")
) | {"!"}


class Broken(Exception):
    """The text isn't valid YAML, or it is valid but its author meant something else."""


class YamlRefused(Exception):
    """The YAML uses a feature that ordinary skills don't need; ``diagnostic`` gives the reason."""

    def __init__(self, diagnostic: Diagnostic) -> None:
        super().__init__(diagnostic)
        self.diagnostic = diagnostic


@dataclass(slots=True)
class YamlReading:
    """The parsed ``values``, the line of each top-level key, and the findings."""

    values: dict[str, JsonValue] = field(default_factory=dict)
    lines: dict[str, int] = field(default_factory=dict)
    findings: list[Diagnostic] = field(default_factory=list)


def read_mapping(text: str, line: int = 1, anchors: set[str] | None = None) -> YamlReading:
    """Parse ``text``, which begins on ``line`` of its file, as one YAML mapping.

    ``anchors`` collects the anchors, so that values parsed one by one share them. Text that is
    empty or has only comments is an empty mapping.

    Raises `Broken` if ``text`` isn't a YAML mapping. Raises `YamlRefused` for an alias with an
    anchor, a custom tag, or nesting deeper than `MAX_NESTING`.
    """
    reader = _Reader(text, line, set() if anchors is None else anchors)
    root = reader.read()
    if root is None:
        return YamlReading()
    if not isinstance(root, dict):
        raise Broken("the front matter is not a mapping of keys to values")
    return YamlReading(root, reader.lines, reader.findings)


def read_value(text: str, line: int, anchors: set[str]) -> JsonValue:
    """Parse ``text`` as one YAML value of any type. Raises the same errors as `read_mapping`."""
    return _Reader(text, line, anchors).read()


class _Reader:
    """Builds one value from the events of a parser."""

    def __init__(self, text: str, line: int, anchors: set[str]) -> None:
        self.text = text
        self.first = line
        self.anchors = anchors
        self.lines: dict[str, int] = {}
        self.findings: list[Diagnostic] = []

    def read(self) -> JsonValue:
        import yaml

        make, pure = _parser()
        try:
            return self._build(make(self.text).get_event, pure)
        except (yaml.YAMLError, ValueError, OverflowError, RecursionError) as error:
            # Since version 0.2.6, libyaml itself refuses brackets with a nesting depth of 1,000.
            if "maximum nesting depth" in str(getattr(error, "problem", "")):
                mark = getattr(error, "problem_mark", None)
                raise YamlRefused(self._too_deep(self.first + (mark.line if mark else 0))) from None
            # The pure parser raises ValueError for \UFFFFFFFF.
            raise Broken(str(error)) from None

    def _build(  # noqa: C901, PLR0912 - one state machine; a call an event would cost a third more
        self, get: Callable[[], Any], pure: bool
    ) -> JsonValue:
        from yaml import events as e

        root: Any = None
        container: Any = None
        key: str | None = None
        stack: list[tuple[Any, str | None]] = []
        documents = 0
        while (event := get()) is not None:
            kind = type(event)
            value: Any
            if kind is e.ScalarEvent:
                if event.anchor or event.tag:
                    self._check(event)
                value = event.value
                if pure and event.style == '"' and SURROGATES.search(value):
                    # libyaml itself refuses half of a surrogate pair
                    raise Broken("half a character as an escape")
                if type(container) is dict and key is None:
                    key = self._key(container, value, event, len(stack))
                    continue
                if not event.style and value in _NULLS:
                    value = None
            elif kind is e.MappingStartEvent or kind is e.SequenceStartEvent:
                if event.anchor or event.tag:
                    self._check(event)
                if len(stack) >= MAX_NESTING:
                    raise YamlRefused(self._too_deep(self._line(event)))
                if type(container) is dict and key is None:
                    key = self._key(
                        container, self._skip(event, get, len(stack)), event, len(stack)
                    )
                    continue
                stack.append((container, key))
                container, key = {} if kind is e.MappingStartEvent else [], None
                continue
            elif kind is e.MappingEndEvent or kind is e.SequenceEndEvent:
                value = container
                container, key = stack.pop()
            elif kind is e.AliasEvent:
                if event.anchor in self.anchors:
                    raise YamlRefused(self._refusal("yaml-alias", event))
                raise Broken("an unquoted `*` precedes the text")
            else:
                documents += kind is e.DocumentStartEvent
                if documents > 1:
                    raise Broken("a second document begins")
                continue
            if container is None:
                root = value
            elif key is None:
                container.append(value)
            else:
                container.setdefault(key, value)
                key = None
        return root  # type: ignore[no-any-return]  # from an untyped library

    def _key(self, container: dict[str, Any], key: str, event: Any, depth: int) -> str:
        if key in container:
            line = self._line(event)
            fix = "remove one of the two"
            message = f"`{printable(key, 40)}` occurs twice; the first one counts"
            self.findings.append(finding("yaml-duplicate-key", message, line, fix))
        elif depth == 1:
            self.lines[key] = self._line(event)
        return key

    def _skip(self, event: Any, get: Callable[[], Any], depth: int) -> str:
        """Skip a list or mapping that is used as a key, and return its YAML text."""
        start = event.start_mark.index
        first = event
        inside = 1
        while inside:
            event = get()
            name = type(event).__name__
            if name == "AliasEvent" and event.anchor in self.anchors:
                raise YamlRefused(self._refusal("yaml-alias", event))
            if name.endswith(("MappingStartEvent", "SequenceStartEvent")):
                inside += 1
                if depth + inside > MAX_NESTING:
                    raise YamlRefused(self._too_deep(self._line(first)))
            elif name.endswith(("MappingEndEvent", "SequenceEndEvent")):
                inside -= 1
            if getattr(event, "anchor", None) or getattr(event, "tag", None):
                self._check(event)
        return self.text[start : event.end_mark.index].strip()

    def _check(self, event: Any) -> None:
        """Raise `YamlRefused` for custom tags, and `Broken` for an anchor before a plain word.

        An anchor before a plain word is Markdown and not YAML.
        """
        tag = event.tag
        if tag and tag not in _CORE_TAGS:
            if tag.startswith(("![", "!(")):
                raise Broken("an unquoted `!` precedes the text")
            raise YamlRefused(self._refusal("yaml-tag", event))
        if event.anchor:
            self.anchors.add(event.anchor)
            if getattr(event, "style", True) in (None, ""):
                raise Broken("an unquoted `&` precedes the text")

    def _line(self, event: Any) -> int:
        return self.first + int(event.start_mark.line)

    def _refusal(self, code: str, event: Any) -> Diagnostic:
        line = self._line(event)
        if code == "yaml-alias":
            message = f"the alias `*{printable(event.anchor, 40)}` repeats the value of an anchor"
            return finding(code, message, line, "write the value out in both places")
        shown = event.tag.replace(_CORE, "!!", 1)
        message = f"the custom tag `{printable(shown, 40)}` is not allowed"
        return finding(code, message, line, "remove the tag, or put the value in quotes")

    def _too_deep(self, line: int) -> Diagnostic:
        message = f"lists and mappings are nested more than {MAX_NESTING} deep"
        return finding("yaml-depth", message, line, "flatten the front matter, or quote the value")


@cache
def _parser() -> tuple[Callable[[str], Any], bool]:
    """Return the function that creates a parser: libyaml's if available, else Python's slow one."""
    import yaml

    try:
        from yaml._yaml import CParser
    except ImportError:
        return yaml.SafeLoader, True
    return CParser, False
