"""Lists of skills that a model gets within so many characters, one skill a line."""

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple, Protocol, TypeVar

from registry.model import SCOPES, Scope
from registry.text import shorten

MIN_DESCRIPTION: Final = 20
"""Characters of a description: where there is not even room for so many, all are left out."""

MAX_DESCRIPTION: Final = 1024
"""No description takes more, so that none is at the cost of the others (Agent Skills)."""


_RANKS: Final = {scope: rank for rank, scope in enumerate(SCOPES)}


class HasScope(Protocol):
    """A skill in whatever form; the scope is its source's."""

    @property
    def scope(self) -> Scope:
        """See `model.Scope`."""


T = TypeVar("T", bound=HasScope)


class Line(NamedTuple):
    """A skill in a list: ``head`` is what stands before the colon and the description."""

    head: str
    description: str
    scope: Scope

    def text(self, longest: int | None = None) -> str:
        """Return the line; ``longest``: the characters of the description, 0 for none at all."""
        if longest == 0:
            return self.head
        description = self.description
        if longest is not None:
            description = shorten(description, longest, whole_words=True)
        return f"{self.head}: {description}"


SHORTEST: Final = len("- **a**\n")
"""Characters that the line of a skill takes at the least."""


class Fitted(NamedTuple):
    """The lines that fit, in their order.

    ``longest`` is what their descriptions were shortened to, 0 where they were left out.
    """

    lines: list[str]
    longest: int


def strongest(skills: Sequence[T], limit: int) -> Sequence[T]:
    """Return as many skills as can possibly be listed in ``limit`` characters, in their order.

    They are those of the strongest scopes, and of one scope the first: to `fit` it makes no
    difference that it gets no others, however many there are.
    """
    most = limit // SHORTEST + 1
    return (
        skills
        if len(skills) <= most
        else [skills[index] for index in sorted(_by_scope(skills)[:most])]
    )


def fit(lines: Sequence[Line], room: int) -> Fitted:
    """Make as many lines as fit ``room`` characters, each with the end of its line.

    Descriptions are shortened first, all to the same length; then they are left out; then skills
    are, those of the weakest scopes first, and of one scope the last.
    """
    bare = sum(len(line.head) + 1 for line in lines)
    longest = _longest([len(line.description) for line in lines], room - bare - 2 * len(lines))
    if longest >= MIN_DESCRIPTION:
        return Fitted([line.text(longest) for line in lines], longest)
    kept: list[int] = []
    for index in _by_scope(lines):
        room -= len(lines[index].head) + 1
        if room < 0:
            break
        kept.append(index)
    return Fitted([lines[index].head for index in sorted(kept)], 0)


def _by_scope(skills: Sequence[HasScope]) -> list[int]:
    return sorted(range(len(skills)), key=lambda index: _RANKS[skills[index].scope])


def _longest(lengths: Iterable[int], room: int) -> int:
    """Return the length to which texts may grow for all to fit ``room`` together."""
    ordered = sorted(lengths)
    for index, length in enumerate(ordered):
        share = room // (len(ordered) - index)
        if length > share:
            return min(share, MAX_DESCRIPTION)
        room -= length
    return MAX_DESCRIPTION
