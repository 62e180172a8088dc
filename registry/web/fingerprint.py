"""The fingerprint that ClawHub's client makes of a skill's folder.

Contract: ``contracts/clawhub-api.md``, Fingerprint.
"""

import hashlib
from collections.abc import Sequence
from typing import Final

from registry.model import SkillFile

_ORDER: Final = " _-,;:!?.'\"()[]{}@*/\\&#%`^+<=>|~$0123456789abcdefghijklmnopqrstuvwxyz"
_WEIGHTS: Final = {character: weight for weight, character in enumerate(_ORDER)}

_IGNORING: Final = frozenset({".gitignore", ".clawhubignore", ".clawdhubignore"})


def fingerprint(files: Sequence[SkillFile]) -> str | None:
    """Return the fingerprint of files; None: it can't be known here.

    That is so of names beyond ASCII, whose order is that of a language's rules, and where a file
    says which others do not count.
    """
    lines = []
    for file in files:
        if file.path in _IGNORING or file.hash is None:
            return None
        parts = file.path.split("/")
        if any(part.startswith(".") or part == "node_modules" for part in parts):
            continue
        if not (file.path.isascii() and file.path.isprintable()):
            return None
        lines.append((file.path, file.hash.removeprefix("sha256:")))
    lines.sort(key=lambda line: locale_key(line[0]))
    text = "\n".join(f"{path}:{hashed}" for path, hashed in lines)
    return hashlib.sha256(text.encode()).hexdigest()


def locale_key(path: str) -> tuple[list[int], list[bool]]:
    """Return the key by which JavaScript's ``localeCompare`` orders printable ASCII.

    By the weights of all characters; where these are equal, small letters come before capitals.
    """
    weights = [_WEIGHTS[character] for character in path.lower()]
    return weights, [character.isupper() for character in path]
