"""Find where each value of YAML text stands, so that one can be changed and nothing else."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

from registry.document.frontmatter import FOREIGN_KEYS, KEY
from registry.document.yaml_text import Broken, Refused, read_mapping

Path: TypeAlias = tuple[str, ...]

_LINE: Final = re.compile(r"[^\r\n]*(?:\r\n|\n|\r)|[^\r\n]+\Z")


class Unplaced(Exception):
    """The text is no YAML whose values have places."""


@dataclass(slots=True)
class Node:
    """One value: ``start`` and ``end`` are places in the text, ``end`` behind its last character.

    ``style`` is ``'``, ``"``, ``|``, ``>`` of a text, ``flow`` or ``block`` of a list or mapping,
    empty for a plain text; ``column`` is where the line's key or dash stands.
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

    def get(self, key: str) -> tuple["Node", "Node"] | None:
        """Return the first pair whose key is ``key``."""
        return next((pair for pair in self.pairs if pair[0].value == key), None)


@dataclass(frozen=True, slots=True)
class Entry:
    """The lines of one key of broken front matter; ``head`` is the place behind its colon."""

    key: str
    start: int
    head: int
    end: int


def read_nodes(text: str) -> Node:
    """Return the outermost mapping of ``text``; raises `Unplaced` where it is no valid YAML."""
    import yaml

    try:
        read_mapping(text)
        root = _build(text, yaml.parse(text, Loader=yaml.SafeLoader))  # has a place for every event
    except (Broken, Refused, yaml.YAMLError, ValueError, RecursionError):
        raise Unplaced from None
    if root is None or not root.is_map:
        raise Unplaced
    return root


def entries(front: str) -> list[Entry]:
    """Return the lines of the outermost keys of ``front``, as the repair of broken YAML sees them.

    An entry ends behind its last line that is neither blank nor an unindented comment.
    """
    found: list[Entry] = []
    indent: int | None = None
    for match in _LINE.finditer(front):
        row = match[0].rstrip("\r\n")
        inner = row.lstrip(" ")
        place = len(row) - len(inner)
        key = KEY.match(inner) if indent is None or place <= indent else None
        if key:
            indent = place if indent is None else indent
            at = match.start() + place
            name = key["key"]
            name = name[1:-1] if name[0] == name[-1] and name[0] in "\"'" else name
            name = FOREIGN_KEYS.get(name, name)
            found.append(Entry(name, match.start(), at + key.end(), match.start() + len(row)))
        elif found and inner.strip() and not row.startswith("#"):
            last = found[-1]
            found[-1] = Entry(last.key, last.start, last.head, match.start() + len(row))
    return found


def follow(root: Node, path: Sequence[str]) -> tuple[Node, Node] | None:
    """Return the pair at ``path``, or None where a key of it is missing or inside a text."""
    pair: tuple[Node, Node] | None = None
    node = root
    for key in path:
        pair = node.get(key)
        if pair is None:
            return None
        node = pair[1]
    return pair


def line_end(text: str, at: int) -> int:
    """Return the place of the line end at or after ``at``."""
    match = re.compile(r"[\r\n]|\Z").search(text, at)
    return match.start() if match else len(text)


def _build(text: str, events: Iterator[Any]) -> Node | None:
    from yaml import events as e

    root: Node | None = None
    stack: list[Node] = []
    keys: list[Node | None] = []
    for event in events:
        kind = type(event)
        if kind in {e.MappingEndEvent, e.SequenceEndEvent}:
            node = stack.pop()
            keys.pop()
            if node.style == "flow":
                node.end = int(event.end_mark.index)
        elif kind is e.ScalarEvent:
            start, end = int(event.start_mark.index), int(event.end_mark.index)
            style = event.style or ""
            if style in {"|", ">"}:
                end = line_end(text, start + len(text[start:end].rstrip()))
            node = Node(start, end, style, int(event.start_mark.column), event.value)
        elif kind in {e.MappingStartEvent, e.SequenceStartEvent}:
            start = int(event.start_mark.index)
            style = "flow" if event.flow_style else "block"
            node = Node(start, start, style, int(event.start_mark.column))
            node.is_map = kind is e.MappingStartEvent
            node.in_flow = bool(stack) and (stack[-1].in_flow or stack[-1].style == "flow")
            stack.append(node)
            keys.append(None)
            continue
        else:
            continue
        if not stack:
            root = node
            continue
        parent = stack[-1]
        node.in_flow = parent.in_flow or parent.style == "flow"
        parent.end = max(parent.end, node.end)
        if not parent.is_map:
            parent.items.append(node)
            continue
        key = keys[-1]
        if key is None:
            keys[-1] = node
        else:
            parent.pairs.append((key, node))
            keys[-1] = None
    return root
