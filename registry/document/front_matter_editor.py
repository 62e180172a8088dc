"""Change single values of a front matter; the other text stays the same."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any, Final

from registry.document import coerce
from registry.document.fields import Path, folded
from registry.document.frontmatter import (
    FOREIGN_KEYS,
    LINE,
    bare_key,
    outer_keys,
    split,
    split_loosely,
)
from registry.document.yaml_text import (
    Broken,
    YamlRefused,
    quoted,
    read_mapping,
    scalar,
    tag_text,
    text_value,
)
from registry.model import Document


class Unplaced(Exception):
    """The text isn't valid YAML, or the positions of its values in the text are unknown."""


@dataclass(slots=True)
class Node:
    """One value of a front matter, with its offsets in the text.

    ``start`` is the offset of its first character, and ``end`` is the offset after its last
    character. ``style`` is ``'``, ``"``, ``|`` or ``>`` for text, ``flow`` or ``block`` for a list
    or mapping, and empty for plain text. ``column`` is the column of the line's key or dash. A list
    has ``items``; a mapping has ``pairs`` of key and value.
    """

    start: int
    end: int
    style: str
    column: int
    value: str | None = None
    items: list["Node"] = field(default_factory=list)
    pairs: list[tuple["Node", "Node"]] = field(default_factory=list)
    is_map: bool = False
    in_flow: bool = False


@dataclass(frozen=True, slots=True)
class KeyLines:
    """The lines of one key in a broken front matter.

    ``head`` is the offset after the key's colon.
    """

    key: str
    start: int
    head: int
    end: int


def read_nodes(text: str) -> Node:
    """Return the outermost mapping of ``text``. Raises `Unplaced` if ``text`` is not valid YAML."""
    import yaml

    try:
        read_mapping(text)  # refuses text that would cause endless recursion or expansion
        # the marks (positions) of libyaml have no index
        composed = yaml.compose(text, Loader=yaml.SafeLoader)
    except (Broken, YamlRefused, yaml.YAMLError, ValueError, RecursionError):
        raise Unplaced from None
    if not isinstance(composed, yaml.MappingNode):
        raise Unplaced
    return _node(text, composed, in_flow=False)


def entries(front: str) -> list[KeyLines]:
    """Return the lines of the outermost keys of ``front``.

    The lines are split as for the repair of broken YAML. An entry ends before trailing blank lines
    and comments without indentation.
    """
    lines = LINE.findall(front)
    starts = list(accumulate(map(len, lines), initial=0))
    keys = outer_keys(lines)
    found = []
    for number, (first, place, key) in enumerate(keys):
        last = keys[number + 1][0] - 1 if number + 1 < len(keys) else len(lines) - 1
        while last > first and (not lines[last].strip() or lines[last][0] == "#"):
            last -= 1
        name = bare_key(key["key"])
        head = starts[first] + place + key.end()
        end = starts[last] + len(lines[last].rstrip("\r\n"))
        found.append(KeyLines(FOREIGN_KEYS.get(name, name), starts[first], head, end))
    return found


def follow(root: Node, path: Sequence[str]) -> tuple[Node, Node] | None:
    """Return the key and the value at ``path``.

    Returns None if a key on the path is missing, or if the path continues into a text.
    """
    pair: tuple[Node, Node] | None = None
    node = root
    for key in path:
        pair = next((pair for pair in node.pairs if pair[0].value == key), None)
        if pair is None:
            return None
        node = pair[1]
    return pair


def line_end(text: str, at: int) -> int:
    """Return the offset of the line end at or after ``at``."""
    match = re.compile(r"[\r\n]|\Z").search(text, at)
    return match.start() if match else len(text)


def _node(text: str, composed: Any, *, in_flow: bool) -> Node:
    """Convert a node of PyYAML to a `Node`."""
    import yaml

    start, end = composed.start_mark.index, composed.end_mark.index
    node = Node(start, end, "", composed.start_mark.column, in_flow=in_flow)
    if isinstance(composed, yaml.ScalarNode):
        node.style, node.value = composed.style or "", composed.value
        if node.style in {"|", ">"}:
            node.end = line_end(text, start + len(text[start:end].rstrip()))
        return node
    node.style = "flow" if composed.flow_style else "block"
    node.is_map = isinstance(composed, yaml.MappingNode)
    flow = in_flow or node.style == "flow"
    if node.is_map:
        node.pairs = [
            (_node(text, key, in_flow=flow), _node(text, value, in_flow=flow))
            for key, value in composed.value
        ]
    else:
        node.items = [_node(text, item, in_flow=flow) for item in composed.value]
    if node.style == "block":  # PyYAML returns the start of the next token as the end of a block
        inner = [*node.items, *(node for pair in node.pairs for node in pair)]
        node.end = max((below.end for below in inner), default=start)
    return node


_NEWLINE: Final = re.compile(r"\r\n|\n|\r")


class EditImpossible(ValueError):
    """The file can't be changed without damage; the message gives the reason."""


class Front:
    """The front matter of a document, with methods that change single values.

    Raises `EditImpossible` if the front matter isn't on lines of its own.
    """

    def __init__(self, text: str, document: Document) -> None:
        parts = split(text)
        if (parts.body, parts.body_line) != (document.body, document.body_line):
            parts = split_loosely(text)
        same = (parts.body, parts.body_line) == (document.body, document.body_line)
        if parts.front is None or not same:
            raise EditImpossible("the front matter can't be separated from the body")
        self.newline = newline_of(text)
        self.start = sum(map(len, LINE.findall(text)[: parts.front_line - 1]))
        self.front = parts.front
        if not text.startswith(self.front, self.start):
            raise EditImpossible("the front matter is on the same line as the `---`")
        self.text = text
        self.values = document.front_matter
        try:
            self._root: Node | None = read_nodes(self.front)
        except Unplaced:
            self._root = None

    def set_text(self, path: Path, value: str) -> str:
        """Return the document with the text ``value`` at ``path``."""
        base, node, key = self._find(path)
        if node is None:
            entry = self._entry(path)
            line = self.front[entry.head : line_end(self.front, entry.head)]
            at = entry.head + len(line) - len(line.lstrip(" \t"))
            new = text_value(value, self._indent() + "  ", self.newline)
            return self._replace(at, entry.end, new if at > entry.head else f" {new}")
        end = base + node.end
        if node.in_flow or self.front[end : line_end(self.front, end)].strip():
            return self._put(base, node, key, scalar(value, like=_quotes(node), flow=node.in_flow))
        return self._put(
            base, node, key, text_value(value, " " * (key.column + 2), self.newline, _quotes(node))
        )

    def set_words(self, path: Path, words: Sequence[str], *, spelled: bool = False) -> str:
        """Return the document with the list ``words`` at ``path``, in the style of the old list.

        Items that are already in the list keep their spelling unless ``spelled`` is True.
        """
        base, node, key = self._find(path)
        if node is None:
            raise _broken(path)
        if node.is_map:
            raise EditImpossible(f"`{'.'.join(path)}` is a mapping, not a list")
        if node.style == "block" and words:
            return self._put_lines(base, node, words, spelled=spelled)
        if node.style in {"flow", "block"}:
            return self._put(base, node, key, self._flow(base, node, words, spelled=spelled))
        text = tag_text(words)
        if node.value and node.value.strip().startswith("["):
            source = "[" + ", ".join(quoted(word) for word in words) + "]"
            text = source if tuple(coerce.tags(source)) == tuple(words) else text
            new = scalar(text, like="'" if node.style == "'" else '"')
        elif not node.value and not node.style and not node.in_flow:
            new = self._flow(base, node, words)
        else:
            new = scalar(text, like=_quotes(node), flow=node.in_flow)
        return self._put(base, node, key, new)

    def set_source(self, path: Path, lines: Sequence[str], flow: str) -> str:
        """Return the document with new YAML at ``path``.

        The YAML is either ``lines`` below the key, or ``flow`` on the line of the key.
        """
        base, node, key = self._find(path)
        if node is None:
            raise _broken(path)
        if node.style != "block" or node.in_flow or not lines:
            return self._put(base, node, key, flow)
        new = (self.newline + " " * node.column).join(lines)
        return self._replace(base + node.start, base + node.end, new)

    def add(self, key: str, value: str, *, below: str | None = None, first: bool = False) -> str:
        """Return the document with a new key, at the top level or in the mapping ``below``."""
        if below is None:
            return self._add_line(key, value, first=first)
        top = folded(self.values).get(below)
        if top is None:
            indent = self._indent() + "  "
            return self._add_line(below, self.newline + f"{indent}{key}: {value}")
        base, node, parent = self._find((top[0],))
        if node is None:
            raise _broken((top[0],))
        if node.start == node.end:
            at = line_end(self.front, base + node.end)
            indent = " " * (parent.column + 2)
            return self._replace(at, at, f"{self.newline}{indent}{key}: {value}")
        if not node.is_map:
            raise EditImpossible(f"`{top[0]}` is not a mapping of keys to values")
        return self._into(base, node, key, value)

    def _into(self, base: int, node: Node, key: str, value: str) -> str:
        """Return the document with a new pair at the end of a mapping."""
        if node.style == "flow":
            if not node.pairs:
                at = base + node.start + 1
                return self._replace(at, at, f"{key}: {value}")
            last, item = node.pairs[-1]
            shown = quoted(key) if last.style == '"' else key
            at = base + max(last.end, item.end)
            return self._replace(at, at, f", {shown}: {value}")
        at = line_end(self.front, base + node.end)
        return self._replace(at, at, f"{self.newline}{' ' * node.column}{key}: {value}")

    def _add_line(self, key: str, value: str, *, first: bool = False) -> str:
        gap = "" if value.startswith(("\n", "\r")) else " "
        if self._root is not None and self._root.style == "flow":
            if not gap:
                raise EditImpossible("the front matter is one mapping in braces")
            return self._into(0, self._root, key, value)
        line = f"{self._indent()}{key}:{gap}{value}"
        rows = entries(self.front)
        if first:
            at = next((row.start for row in rows), 0)
            return self._replace(at, at, line + self.newline)
        at = len(self.front.rstrip())
        if at == 0:
            more = "" if self.front[:1] in {"\n", "\r"} else self.newline
            return self._replace(0, 0, line + more)
        return self._replace(at := line_end(self.front, at), at, self.newline + line)

    def _find(self, path: Path) -> tuple[int, Node | None, Node]:
        """Return the base offset, the value and the key at ``path``.

        In broken YAML, the value is None.
        """
        if self._root is not None:
            pair = follow(self._root, path)
            if pair is None:
                raise EditImpossible(
                    f"`{'.'.join(path)}` is inside a text value; change it by hand"
                )
            return 0, pair[1], pair[0]
        entry = self._entry(path)
        try:
            root = read_nodes(self.front[entry.start : entry.end])
        except Unplaced:
            root = None
        pair = follow(root, path) if root and len(root.pairs) == 1 else None
        if pair:
            return entry.start, pair[1], pair[0]
        if len(path) > 1:
            raise _broken(path)
        return 0, None, Node(0, 0, "", 0)

    def _entry(self, path: Path) -> KeyLines:
        found = next((entry for entry in entries(self.front) if entry.key == path[0]), None)
        if found is None:
            raise _broken(path)
        return found

    def _indent(self) -> str:
        if self._root is not None and self._root.pairs:
            return " " * self._root.pairs[0][0].column
        rows = entries(self.front)
        first = self.front[rows[0].start :] if rows else ""
        return first[: len(first) - len(first.lstrip(" "))]

    def _put(self, base: int, node: Node, key: Node, new: str) -> str:
        start, end = base + node.start, base + node.end
        before = self.front[base + key.end : start]
        if start == end or (node.style == "block" and not before.strip(": \t\r\n")):
            start = base + key.end + before.index(":") + 1 if ":" in before else start
            new = f" {new}"
        return self._replace(start, end, new)

    def _put_lines(self, base: int, node: Node, words: Sequence[str], *, spelled: bool) -> str:
        """Return the document with a list that has one item on each line.

        The lines of items that were in the list before don't change.
        """
        indent = " " * node.column
        begin = above = base + node.start
        kept: dict[str, str] = {}
        for item in node.items:
            end = line_end(self.front, base + item.end)
            source = self.front[above:end].lstrip("\r\n")
            if (word := _only_tag(item, spelled=spelled)) is not None:
                kept.setdefault(word, indent + source if above == begin else source)
            above = end
        rows = [kept.get(word) or f"{indent}- {scalar(word)}" for word in words]
        return self._replace(begin, above, self.newline.join(rows).lstrip(" "))

    def _flow(self, base: int, node: Node, words: Sequence[str], *, spelled: bool = False) -> str:
        """Return a list in brackets; items that were in the list before keep their spelling."""
        kept = {
            word: self.front[base + item.start : base + item.end]
            for item in node.items
            if (word := _only_tag(item, spelled=spelled)) is not None
        }
        like = node.items[0].style if node.items and node.style == "flow" else ""
        new = [kept.get(word) or scalar(word, like=like, flow=True) for word in words]
        return f"[{', '.join(new)}]"

    def _replace(self, start: int, end: int, new: str) -> str:
        at = self.start
        return self.text[: at + start] + new + self.text[at + end :]


def newline_of(text: str) -> str:
    """Return the first line end of ``text`` (LF, CR LF or CR)."""
    match = _NEWLINE.search(text)
    return match[0] if match else "\n"


def _quotes(node: Node) -> str:
    return node.style if node.style in {"'", '"'} else ""


def _broken(path: Path) -> EditImpossible:
    return EditImpossible(f"`{'.'.join(path)}` is broken YAML; correct it by hand")


def _only_tag(item: Node, *, spelled: bool) -> str | None:
    """Return the tag if a list item consists of exactly one tag, else None.

    If ``spelled``, the letter case stays, and the item must have no other text.
    """
    if item.items or item.pairs:
        return None
    if spelled:
        return item.value if tuple(coerce.written_tags(item.value)) == (item.value,) else None
    tags = tuple(coerce.tags(item.value))
    return tags[0] if len(tags) == 1 else None
