"""Change single values of front matter; what is around them stays as it was written."""

import re
from collections.abc import Sequence
from typing import Final

from registry.document import shapes
from registry.document.fields import Path, folded
from registry.document.frontmatter import LINE, split, split_loosely
from registry.document.scalars import quoted, scalar, tag_text, text_value
from registry.document.source import Entry, Node, Unplaced, entries, follow, line_end, read_nodes
from registry.model import Document

_NEWLINE: Final = re.compile(r"\r\n|\n|\r")


class EditImpossible(ValueError):
    """The file can't be changed without damage; the text says why."""


class Front:
    """The front matter of a document, to be changed value by value.

    Raises `EditImpossible` where it doesn't stand in the file as lines of its own.
    """

    def __init__(self, text: str, document: Document) -> None:
        parts = split(text)
        if (parts.body, parts.body_line) != (document.body, document.body_line):
            parts = split_loosely(text)
        same = (parts.body, parts.body_line) == (document.body, document.body_line)
        if parts.front is None or not same:
            raise EditImpossible("the front matter can't be told from the text around it")
        self.newline = newline_of(text)
        self.start = sum(map(len, LINE.findall(text)[: parts.front_line - 1]))
        self.front = parts.front
        if not text.startswith(self.front, self.start):
            raise EditImpossible("the front matter stands on one line with the `---`")
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
        """Return the document with the list ``words`` at ``path``, in the shape it has there.

        Items that stay are left as they were written, unless they are to be ``spelled`` as here.
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
            text = source if tuple(shapes.tags(source)) == tuple(words) else text
            new = scalar(text, like="'" if node.style == "'" else '"')
        elif not node.value and not node.style and not node.in_flow:
            new = self._flow(base, node, words)
        else:
            new = scalar(text, like=_quotes(node), flow=node.in_flow)
        return self._put(base, node, key, new)

    def set_source(self, path: Path, lines: Sequence[str], flow: str) -> str:
        """Return the document with YAML at ``path``: ``lines`` below its key, or ``flow``."""
        base, node, key = self._find(path)
        if node is None:
            raise _broken(path)
        if node.style != "block" or node.in_flow or not lines:
            return self._put(base, node, key, flow)
        new = (self.newline + " " * node.column).join(lines)
        return self._replace(base + node.start, base + node.end, new)

    def add(self, key: str, value: str, *, below: str | None = None, first: bool = False) -> str:
        """Return the document with a new key, at the top level or ``below`` a mapping there."""
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
        """Put a pair at the end of a mapping."""
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
        """Return the base, the value and the key at ``path``; the value is None in broken YAML."""
        if self._root is not None:
            pair = follow(self._root, path)
            if pair is None:
                raise EditImpossible(f"`{'.'.join(path)}` stands inside a text; change it by hand")
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

    def _entry(self, path: Path) -> Entry:
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
        """Write a list a line an item; lines of items that stay are kept as they are."""
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
        """Return a list in brackets; items that stay are written as they were."""
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
    """Return the first line end of ``text``."""
    match = _NEWLINE.search(text)
    return match[0] if match else "\n"


def _quotes(node: Node) -> str:
    return node.style if node.style in {"'", '"'} else ""


def _broken(path: Path) -> EditImpossible:
    return EditImpossible(f"`{'.'.join(path)}` is broken YAML; correct it by hand")


def _only_tag(item: Node, *, spelled: bool) -> str | None:
    """Return the tag that an item of a list is, where it is exactly one.

    ``spelled``: in the case in which it is written, and only where nothing else is written there.
    """
    if item.items or item.pairs:
        return None
    if spelled:
        return item.value if tuple(shapes.written_tags(item.value)) == (item.value,) else None
    tags = tuple(shapes.tags(item.value))
    return tags[0] if len(tags) == 1 else None
