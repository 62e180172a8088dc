"""Find where each value of YAML text stands, so that one can be changed and nothing else."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any

from registry.document.frontmatter import FOREIGN_KEYS, LINE, bare_key, outer_keys
from registry.document.yaml_text import Broken, Refused, read_mapping


class Unplaced(Exception):
    """The text is not YAML whose values have places."""


@dataclass(slots=True)
class Node:
    """One value: ``start`` and ``end`` are places in the text, ``end`` behind its last character.

    ``style`` is ``'``, ``"``, ``|``, ``>`` of a text, ``flow`` or ``block`` of a list or mapping,
    empty for a plain text; ``column`` is where the line's key or dash stands. A list has
    ``items``, a mapping ``pairs`` of key and value.
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
class Entry:
    """The lines of one key of broken front matter; ``head`` is the place behind its colon."""

    key: str
    start: int
    head: int
    end: int


def read_nodes(text: str) -> Node:
    """Return the outermost mapping of ``text``; raises `Unplaced` where it is not valid YAML."""
    import yaml

    try:
        read_mapping(text)  # refuses what composing would recurse or expand without end
        composed = yaml.compose(text, Loader=yaml.SafeLoader)  # libyaml's marks have no index
    except (Broken, Refused, yaml.YAMLError, ValueError, RecursionError):
        raise Unplaced from None
    if not isinstance(composed, yaml.MappingNode):
        raise Unplaced
    return _node(text, composed, in_flow=False)


def entries(front: str) -> list[Entry]:
    """Return the lines of the outermost keys of ``front``, as the repair of broken YAML sees them.

    An entry ends behind its last line that is neither blank nor an unindented comment.
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
        found.append(Entry(FOREIGN_KEYS.get(name, name), starts[first], head, end))
    return found


def follow(root: Node, path: Sequence[str]) -> tuple[Node, Node] | None:
    """Return the pair at ``path``, or None where a key of it is missing or inside a text."""
    pair: tuple[Node, Node] | None = None
    node = root
    for key in path:
        pair = next((pair for pair in node.pairs if pair[0].value == key), None)
        if pair is None:
            return None
        node = pair[1]
    return pair


def line_end(text: str, at: int) -> int:
    """Return the place of the line end at or after ``at``."""
    match = re.compile(r"[\r\n]|\Z").search(text, at)
    return match.start() if match else len(text)


def _node(text: str, composed: Any, *, in_flow: bool) -> Node:
    """Return a node of PyYAML as ours."""
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
    if node.style == "block":  # PyYAML's ends where the next token begins
        inner = [*node.items, *(node for pair in node.pairs for node in pair)]
        node.end = max((below.end for below in inner), default=start)
    return node
