"""Front matter as every client of the skills extension takes it.

Clients hold an entry against the Agent Skills specification's types, and throw a whole listing away
for one that breaks them: half of all real skills have a number or a list below ``metadata``.
"""

import json
from typing import Any, Final

from registry.document.verbatim import scalar_texts
from registry.text import shorten

MAX_DESCRIPTION: Final = 1024
MAX_COMPATIBILITY: Final = 500

Json = dict[str, Any]


def strict_front_matter(front_matter: Json, text: str, description: str) -> Json:
    """Return front matter by the rules of the specification's six fields; others stay as they are.

    What is not text becomes the text it is in the document, or its JSON; null is left out; a long
    description or ``compatibility`` is cut at a word. ``text`` is the document, ``description``
    what the registry has for it, where the front matter itself has none. The name is not looked at.
    """
    done = {key: value for key, value in front_matter.items() if key not in _FIELDS}
    given = front_matter.get("description")
    said = given if isinstance(given, str) and given.strip() else description
    done["description"] = cut(said, MAX_DESCRIPTION)
    for key in ("license", "compatibility", "allowed-tools"):
        value = front_matter.get(key)
        if isinstance(value, list) and all(isinstance(one, str) for one in value):
            value = " ".join(value)
        if value not in (None, ""):
            done[key] = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    if "compatibility" in done:
        done["compatibility"] = cut(done["compatibility"], MAX_COMPATIBILITY)
    metadata = front_matter.get("metadata")
    if isinstance(metadata, dict):
        done["metadata"] = _texts(metadata, text)
    # In the order of the document, as far as it has them.
    return {key: done[key] for key in [*front_matter, *done] if key in done}


def cut(text: str, limit: int) -> str:
    """Return ``text`` in at most ``limit`` UTF-16 units, as JavaScript counts, cut at a word."""
    units = text.encode("utf-16-le", "surrogatepass")
    if len(units) <= 2 * limit:
        return text
    return shorten(text, len(units[: 2 * limit].decode("utf-16-le", "ignore")), whole_words=True)


_FIELDS: Final = frozenset(("description", "license", "compatibility", "allowed-tools", "metadata"))


def _texts(metadata: Json, text: str) -> dict[str, str]:
    """Return ``metadata`` as texts: a number as the document has it, a list or map as JSON."""
    if all(isinstance(value, str) for value in metadata.values()):
        return metadata
    written = scalar_texts(text).get("metadata")
    texts = written if isinstance(written, dict) else {}
    found = {}
    for key, value in metadata.items():
        plain = value if isinstance(value, str) else texts.get(key)
        if value is not None:
            found[key] = plain if isinstance(plain, str) else json.dumps(value, ensure_ascii=False)
    return found
