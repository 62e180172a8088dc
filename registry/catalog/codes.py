"""The codes of all findings that a check can make, and those that are meant by a word."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from difflib import get_close_matches
from functools import cache
from typing import Final

from registry.disk.scanned import WALK_CODES
from registry.document.codes import CODES
from registry.document.findings import Rule
from registry.document.mend import TIDY_RULES
from registry.document.rules import RULES
from registry.document.security import SECURITY_RULES
from registry.errors import FindingUnknown

NEAREST: Final = 4
"""Codes named at most where none is the one that was asked for."""

OTHER_RULES: Final[Mapping[str, Rule]] = {
    "changing": Rule("warning", "a file changed each time while it was read"),
    "document-too-large": Rule("error", "the skill file is larger than `limits.document_bytes`"),
    "link-broken": Rule("warning", "a link leads nowhere, or its target can't be read"),
    "link-inside": Rule("warning", "a link leads to something in the skill that is not a file"),
    "link-known": Rule("info", "a link leads to a skill of another source"),
    "link-loop": Rule("warning", "a link leads in a circle"),
    "link-outside": Rule("warning", "a link leads out of the skill's folder, or out of all sources"),
    "name-look-alike": Rule("warning", "the name looks like that of a skill in another source"),
    "no-document": Rule("error", "the folder has no SKILL.md"),
    "path-collision": Rule("error", "two names are the same on a disk that ignores case"),
    "path-not-utf8": Rule("error", "the name of a file or folder is not UTF-8"),
    "path-unsafe": Rule("error", "the name of a file or folder means another path on other systems"),
    "second-document": Rule("warning", "the folder has two skill files"),
    "skill-too-large": Rule("error", "the files together are larger than `limits.skill_bytes`"),
    "source-unreadable": Rule("error", "the folder of a source is missing or can't be read"),
    "special-file": Rule("warning", "a pipe, a socket or a device is in the skill's folder"),
    "too-deep": Rule("warning", "a folder is deeper than `limits.depth`"),
    "too-many-files": Rule("error", "the skill has more files than `limits.files`"),
    "unreadable": Rule("warning", "a file or folder of the skill can't be read"),
}
"""Findings of walking and reading (`WALK_CODES` among them), and about more than one skill.

The severity is the usual one; the finding itself may have another.
"""


@cache
def all_codes() -> frozenset[str]:
    """Return the code of every finding that `SkillRegistry.check` can make."""
    tables = (CODES, RULES, SECURITY_RULES, TIDY_RULES, WALK_CODES, OTHER_RULES)
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
