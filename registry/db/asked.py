"""What a full-text index is asked: words, where they are looked for, and under which condition."""

from collections.abc import Sequence
from typing import Final, Literal, NamedTuple, TypeAlias

from registry.db.sight import Strength


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


class Sought(NamedTuple):
    """What a query is going to look for, as `catalog.search.rank` chooses once it knows counts.

    ``typed``: words with what may stand for each that nobody has; ``compounds`` count where heads
    have them; ``lay`` and ``foreign`` are other words for what was typed.
    """

    typed: Sequence[tuple[Pattern, Pattern | None]]
    compounds: Sequence[Pattern]
    lay: Sequence[Pattern]
    foreign: Sequence[Pattern]


class Limits(NamedTuple):
    """How many texts are counted; how many words are looked for in bodies, of how many texts.

    ``heads``: what more bodies have than are counted is looked for if fewer heads have it.
    ``half``: after so many others, a place in a list is worth half.
    """

    counted: int
    words: int
    texts: int
    heads: int
    half: int


class Told(NamedTuple):
    """What is told of a skill along with that it was found: its source's rank, its sketch, head."""

    strength: Strength
    sketch: bytes | None
    head: str | None
