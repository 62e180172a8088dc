"""The codes of all findings that a check can make, and those that are meant by a word."""

from collections import Counter
from collections.abc import Callable, Sequence
from difflib import get_close_matches
from functools import cache
from typing import Final

from registry.disk.walk import WALK_CODES
from registry.document.codes import CODES
from registry.document.mend import TIDY_RULES
from registry.document.rules import RULES
from registry.document.security import SECURITY_RULES
from registry.errors import FindingUnknown

NEAREST: Final = 4
"""Codes named at most where none is the one that was asked for."""

OTHER_CODES: Final = frozenset(
    "changing document-too-large link-known name-look-alike no-document source-unreadable".split()
)
"""What is found when files are read, and about more than one skill, or about none."""


@cache
def all_codes() -> frozenset[str]:
    """Return the code of every finding that `SkillRegistry.check` can make."""
    tables = (CODES, RULES, SECURITY_RULES, TIDY_RULES, WALK_CODES, OTHER_CODES)
    return frozenset[str]().union(*tables)


def codes_of(word: str) -> frozenset[str]:
    """Return the codes that ``word`` means: a code, or all that begin with it (``link-``).

    Raises `FindingUnknown` with the codes that are near.
    """
    known = all_codes()
    found = {word} & known if not word.endswith("-") else {c for c in known if c.startswith(word)}
    if not found:
        beginnings = Counter(code.partition("-")[0] + "-" for code in known if "-" in code)
        words = sorted({*known, *(one for one, number in beginnings.items() if number > 1)})
        near = get_close_matches(word, words, n=NEAREST, cutoff=0.7)
        near += [one for one in words if word and one.startswith(word) and one not in near]
        raise FindingUnknown(name=word, similar=tuple(near[:NEAREST]))
    return frozenset(found)


def chooser(select: Sequence[str], ignore: Sequence[str]) -> Callable[[str], bool]:
    """Return what tells whether findings of a code are asked for.

    ``select``: only these; ``ignore``: none of these, which is the stronger. Each word is as for
    `codes_of`, which raises `FindingUnknown`.
    """
    left = frozenset[str]().union(*map(codes_of, ignore))
    if not select:
        return lambda code: code not in left
    chosen = frozenset[str]().union(*map(codes_of, select)) - left
    return chosen.__contains__
