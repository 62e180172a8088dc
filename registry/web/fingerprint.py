"""The fingerprint that ClawHub's client makes of a skill's folder.

Contract: ``contracts/clawhub-api.md``, Fingerprint.
"""

import hashlib
from collections.abc import Sequence
from typing import Final

from registry.model import SkillFile

_ORDER: Final = " _-,;:!?.'\"()[]{}@*/\\&#%`^+<=>|~$0123456789abcdefghijklmnopqrstuvwxyz"
_WEIGHTS: Final = {char: weight for weight, char in enumerate(_ORDER)}
_IGNORING: Final = frozenset({".gitignore", ".clawhubignore", ".clawdhubignore"})
_IGNORED: Final = "node_modules"


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
        if any(part.startswith(".") or part == _IGNORED for part in parts):
            continue
        if not (file.path.isascii() and file.path.isprintable()):
            return None
        lines.append((file.path, file.hash.removeprefix("sha256:")))
    lines.sort(key=lambda line: order_of(line[0]))
    text = "\n".join(f"{path}:{hashed}" for path, hashed in lines)
    return hashlib.sha256(text.encode()).hexdigest()


def order_of(path: str) -> tuple[list[int], list[bool]]:
    """Return the key by which JavaScript's ``localeCompare`` puts printable ASCII in order.

    By the weights of all characters; where these are equal, small letters come before capitals.
    """
    return [_WEIGHTS[char] for char in path.lower()], [char.isupper() for char in path]
