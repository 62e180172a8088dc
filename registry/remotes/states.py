"""The states of versions that another registry tells: which it deprecated or withdrew, and why.

A git repository of a registry has them in the file `FILE`, and a site in its index under the key
`KEY`. Both have the same JSON. The server of a source can write anything into them. So a state
counts only for the files with its tree hash in this source, and texts have limits.
"""

import json
import re
from collections.abc import Iterable, Iterator
from typing import Any, Final

from registry.disk.paths import check_path
from registry.document.labels import is_label
from registry.model import RemoteState
from registry.text import is_encodable, shorten

FILE: Final = "versions.json"
KEY: Final = "versions"

MAX_BYTES: Final = 4 << 20
"""Maximum size of the file, in bytes; a larger file is not read."""

MAX_STATES: Final = 10_000
"""Maximum number of states that are read from one source."""

MAX_TEXT: Final = 1000
"""Maximum number of characters of a reason, and of a replacement."""

_TREE: Final = re.compile(r"sha256:[0-9a-f]{64}")


def as_json(states: Iterable[RemoteState]) -> list[dict[str, Any]]:
    """Return states in the form of the file and of the index."""
    return [one._asdict() for one in states]


def encoded(states: Iterable[RemoteState]) -> bytes:
    """Return the bytes of the file; each state has its own line."""
    lines = ",\n".join(map(json.dumps, as_json(states)))
    return f'{{"{KEY}": [\n{lines}\n]}}\n'.encode()


def decoded(data: bytes) -> list[RemoteState] | None:
    """Return the states in a file; None if this is not such a file."""
    try:
        said = json.loads(data) if len(data) <= MAX_BYTES else None
    except (ValueError, RecursionError):
        return None
    listed = said.get(KEY) if isinstance(said, dict) else None
    return list(checked(listed)) if isinstance(listed, list) else None


def checked(listed: Iterable[Any]) -> Iterator[RemoteState]:
    """Yield the valid states in a list from another registry."""
    for given, _ in zip(listed, range(MAX_STATES), strict=False):
        facts = given if isinstance(given, dict) else {}
        folder, label, tree, state = map(facts.get, ("folder", "label", "tree_hash", "state"))
        if (
            isinstance(folder, str)
            and check_path(folder) is None
            and isinstance(label, str)
            and is_label(label)
            and isinstance(tree, str)
            and _TREE.fullmatch(tree)
            and state in ("deprecated", "yanked")
        ):
            told = map(_text, (facts.get("reason"), facts.get("replacement")))
            yield RemoteState(folder, label, tree, state, *told)


def _text(value: object) -> str | None:
    """Return a text from another registry as one line without invisible characters."""
    if not isinstance(value, str) or not is_encodable(value):
        return None
    # Characters that control a terminal, and invisible characters, are not printable.
    plain = "".join(one if one.isprintable() else " " for one in value[: 2 * MAX_TEXT])
    return shorten(" ".join(plain.split()), MAX_TEXT) or None
