"""What a full-text index is asked: words, where they are looked for, and under which condition."""

from collections.abc import Sequence
from typing import Final, Literal, NamedTuple, TypeAlias


class Pattern(NamedTuple):
    """Words that stand one after the other; ``prefix``: the last one may go on."""

    words: tuple[str, ...]
    prefix: bool = False


Place: TypeAlias = Literal["heads", "bodies"]
"""Where words are: in name, tags and description of skills, or in the texts below them."""

Part: TypeAlias = Literal["name", "tags", "description", "body"]
"""A part of a skill: three of its head, and the text below."""

PARTS: Final[tuple[Part, ...]] = ("name", "tags", "description", "body")

Question: TypeAlias = tuple[Place, Sequence[Pattern]]
"""A question: which texts match any of the patterns."""

Condition: TypeAlias = tuple[str, Sequence[object]]
"""SQL on skills ``s`` and sources ``src`` with its values, as `filters.where` makes it."""
