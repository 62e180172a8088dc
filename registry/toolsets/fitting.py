"""Shorten lists of skills for models to a number of characters; each skill has one line."""

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple, Protocol, TypeVar

from registry.model import SCOPES, Scope
from registry.text import shorten

MIN_DESCRIPTION: Final = 20
"""Minimum length of a shortened description, in characters.

If descriptions would be shorter, all of them are left out.
"""

MAX_DESCRIPTION: Final = 1024
"""Maximum length of a description, in characters (Agent Skills specification)."""


_RANKS: Final = {scope: rank for rank, scope in enumerate(SCOPES)}


class HasScope(Protocol):
    """A value that has a scope."""

    @property
    def scope(self) -> Scope:
        """The scope (see `model.Scope`)."""


T = TypeVar("T", bound=HasScope)


class SkillLine(NamedTuple):
    """The line of a skill in a list; ``head`` is the text before the colon and the description."""

    head: str
    description: str
    scope: Scope

    def text(self, longest: int | None = None) -> str:
        """Return the line.

        ``longest`` is the maximum length of the description; 0 means no description.
        """
        if longest == 0:
            return self.head
        description = self.description
        if longest is not None:
            description = shorten(description, longest, whole_words=True)
        return f"{self.head}: {description}"


SHORTEST: Final = len("- **a**\n")
"""Minimum length of a skill's line, in characters."""


def strongest(skills: Sequence[T], limit: int) -> Sequence[T]:
    """Return the skills that may fit into a list of ``limit`` characters.

    These are the first skills, from the scopes of highest precedence. `fit` would leave out all
    others.
    """
    most = limit // SHORTEST + 1
    return (
        skills
        if len(skills) <= most
        else [skills[index] for index in sorted(_by_scope(skills)[:most])]
    )


def fit(lines: Sequence[SkillLine], room: int) -> tuple[list[str], int]:
    """Return the lines that fit into ``room`` characters, and the maximum length of a description.

    First, all descriptions are shortened to the same length. If that isn't enough, descriptions are
    left out. Then skills are left out. The skills from the scopes of lowest precedence are left out
    first, and in each scope the last skills.
    """
    bare = sum(len(line.head) + 1 for line in lines)
    longest = _longest([len(line.description) for line in lines], room - bare - 2 * len(lines))
    if longest >= MIN_DESCRIPTION:
        return [line.text(longest) for line in lines], longest
    kept: list[int] = []
    for index in _by_scope(lines):
        room -= len(lines[index].head) + 1
        if room < 0:
            break
        kept.append(index)
    return [lines[index].head for index in sorted(kept)], 0


def _by_scope(skills: Sequence[HasScope]) -> list[int]:
    return sorted(range(len(skills)), key=lambda index: _RANKS[skills[index].scope])


def _longest(lengths: Iterable[int], room: int) -> int:
    """Return the maximum length of a text with which all texts together fit into ``room``."""
    ordered = sorted(lengths)
    for index, length in enumerate(ordered):
        share = room // (len(ordered) - index)
        if length > share:
            return min(share, MAX_DESCRIPTION)
        room -= length
    return MAX_DESCRIPTION
