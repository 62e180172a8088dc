"""The skills of the run: each content has a mark of its own, by which it is known everywhere."""

import hashlib
import re
from contextlib import suppress
from pathlib import Path
from typing import Final, TypeAlias

State: TypeAlias = tuple[str, str] | None
"""What is in a skill: the marks in its SKILL.md and its other file; None: there is none."""

MARK: Final = re.compile(r"mark-[\w-]+\.\d+\.\d+")

SOURCES: Final = ("a", "b")
BOTH: Final = "both"
"""In the place of a source: a skill with a copy in each, which are changed together."""


def state_of(folder: Path) -> State:
    """Return what is in the folder of a skill, as anybody would see it."""
    try:
        text = (folder / "SKILL.md").read_text()
    except FileNotFoundError:
        return None
    beside = folder / "data.txt"
    return document_mark(text), document_mark(beside.read_text() if beside.exists() else "")


def document_mark(text: str) -> str:
    """Return the mark that a text has everywhere; what is mixed, or has none, is no mark."""
    return "+".join(sorted(set(MARK.findall(text)))) or f"no mark in {text!r}"


def hash_of(folder: Path) -> str | None:
    """Return the hash of a SKILL.md, as the registry tells it."""
    with suppress(FileNotFoundError):
        return f"sha256:{hashlib.sha256((folder / 'SKILL.md').read_bytes()).hexdigest()}"
    return None
