"""How a name is to be spelled, and what it would be if it were (specification, `name`)."""

import re
import unicodedata
from collections.abc import Iterator
from typing import Final

from registry.document.findings import join_some, printable

NAME_LENGTH: Final = 64
"""Characters of a name that https://agentskills.io/specification allows."""

_STRICT_NAME: Final = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")
_NOT_IN_A_SLUG: Final = re.compile(r"[^a-z0-9]+")


def same_name(name: str, folder: str) -> str:
    """Say how name and folder become the same, and a name that the specification allows."""
    rename, write = f"rename the folder to `{name}`", f"write `name: {folder}`"
    match is_strict(name), is_strict(folder):
        case True, True:
            return f"{rename}, or {write}"
        case True, False:
            return rename
        case False, True:
            return write
    slug = slug_of(name, folder)
    return f"rename the folder to `{slug}`, and write `name: {slug}`"


def is_strict(name: str) -> bool:
    """Tell whether the reference validator allows a name, and all clients do."""
    return _STRICT_NAME.fullmatch(name) is not None and len(name) <= NAME_LENGTH


def spelling(name: str, folder: str) -> Iterator[tuple[str, str, str]]:
    """Yield code, message and fix of each way in which a name breaks the specification."""
    if is_strict(name):
        return
    shown, slug = printable(name), slug_of(name, folder)
    write = f"write `name: {slug}`"
    if len(name) > NAME_LENGTH:
        message = f"the name `{shown}` has {len(name)} characters, {NAME_LENGTH} are allowed"
        yield "name-too-long", message, f"shorten it to {NAME_LENGTH} characters"
    if name != name.lower():
        yield "name-upper-case", f"the name `{shown}` has upper-case letters", write
    if name[0] == "-" or name[-1] == "-":
        message = f"the name `{shown}` begins or ends with a hyphen"
        yield "name-hyphen-edge", message, write
    if "--" in name:
        message = f"the name `{shown}` has two hyphens in a row"
        yield "name-hyphen-double", message, write
    strange = sorted({char for char in name if not (char.isalnum() or char == "-")})
    if strange:
        message = f"the name `{shown}` has other characters than letters, digits and hyphens: "
        yield "name-characters", message + join_some(map(_visible, strange)), write
    foreign = sorted({char for char in name if char.isalnum() and not char.isascii()})
    if foreign:
        message = f"the name `{shown}` has letters that other clients refuse: "
        fix = "write the name with a-z, 0-9 and hyphens; the title in the body may stay as it is"
        yield "name-not-ascii", message + join_some(foreign), fix


def slug_of(name: str, otherwise: str = "") -> str:
    """Return the nearest name that the specification allows (NFKC first, accents dropped).

    Of a name without any letter that is left it is that of ``otherwise``.
    """
    for text in (name, otherwise):
        plain = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode()
        slug = _NOT_IN_A_SLUG.sub("-", plain.lower()).strip("-")[:NAME_LENGTH].rstrip("-")
        if slug:
            return slug
    return "my-skill"


def _visible(char: str) -> str:
    if char == " ":
        return "a space"
    return f"`{char}`" if char.isprintable() and char != "`" else f"U+{ord(char):04X}"
