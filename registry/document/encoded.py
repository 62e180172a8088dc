"""Find what looks like noise to a reader: keys that give access, base64 that hides something."""

import base64
import binascii
import re
from collections.abc import Iterator
from math import log2
from typing import Final

from registry.document import threats
from registry.document.findings import Place, printable

MIN_ENTROPY: Final = 3.0
"""Bits a character, below which a key is a placeholder; random base62 of 20 has about 4."""

MIN_LETTERS: Final = 20
"""Different characters of 64 in a run of base64; fewer make a pattern or a path."""

# One pass over the bytes tells what is there to look for: control characters, and the long runs of
# letters and digits without which there is neither a key nor base64.
_CLASSES = bytes(
    b"A"[0] if letter else b"\x01"[0] if control else b" "[0]
    for letter, control in (
        (chr(byte) in threats.ALPHANUMERIC, chr(byte) in threats.CONTROLS) for byte in range(256)
    )
)
_RUN = b"A" * threats.MIN_RUN
_BASE64 = bytes(
    b"A"[0] if chr(byte) in threats.ALPHANUMERIC + "+/" else b" "[0] for byte in range(256)
)
_BASE64_RUN = b"A" * threats.BASE64_LENGTH
_RANDOM = re.compile(r"[A-Za-z0-9]{12}")
_MEDIA = re.compile(r"data:(?:image|font|audio|video)/[\w.+-]+;base64,$")


def look(data: bytes) -> tuple[bool, bool]:
    """Tell whether ``data``, one byte a character, has control characters, and runs of letters."""
    classes = data.translate(_CLASSES)
    return b"\x01" in classes, _RUN in classes or b"AIza" in data


def find_secrets(text: str, data: bytes) -> Iterator[Place]:
    """Yield what is shaped like a working key and not a placeholder, never the whole of it."""
    for needle, kind, pattern in threats.SECRETS:
        if needle not in data:
            continue
        for match in pattern.finditer(text):
            start, found = match.start(), match[0]
            if start and (text[start - 1].isalnum() or text[start - 1] == "_"):
                continue  # the end of a longer word, such as `task-...`
            if threats.PLACEHOLDER.search(found) or _entropy(found[4:]) < MIN_ENTROPY:
                continue
            if _RANDOM.search(found) and any(map(str.isdigit, found)):  # else a name of words
                yield Place("secret", start, f"{kind}: `{found[:10].strip()}` and so on")


def find_encoded(text: str, data: bytes) -> Iterator[Place]:
    """Yield long runs of base64 that really decode, but for pictures and keys."""
    if _BASE64_RUN not in data.translate(_BASE64, b"\r\n"):
        return
    for match in threats.BASE64_RUN.finditer(text):
        if len(match[0]) < threats.BASE64_LENGTH:
            continue
        before = text[max(0, match.start() - 60) : match.start()]
        if _MEDIA.search(before) or "PRIVATE KEY-----" in before:  # a key is a finding of its own
            continue
        run = "".join(match[0].split())
        kinds = (str.isupper, str.islower, str.isdigit)
        if not all(any(map(kind, run)) for kind in kinds) or len(set(run)) < MIN_LETTERS:
            continue  # one alphabet alone is a sequence or a number, few letters a pattern
        try:
            decoded = base64.b64decode(run[: len(run) // 4 * 4].encode("ascii"), validate=True)
        except (ValueError, binascii.Error):
            continue
        what = f"{len(run)} characters of base64"
        if decoded.isascii() and (said := decoded.decode("ascii")).replace("\n", "").isprintable():
            what += f" that say `{printable(said)}`"
        yield Place("encoded-data", match.start(), what)


def _entropy(text: str) -> float:
    """Return Shannon's bits a character."""
    counts = (text.count(char) / len(text) for char in set(text))
    return -sum(share * log2(share) for share in counts)
