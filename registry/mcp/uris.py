"""`skill://` URIs (SEP-2640): ``skill://source/folder/SKILL.md``, the last folder the skill's name.

A skill whose folder has another name than itself, as nearly half of all real ones, has the segments
`@` and its name behind the folder's.
"""

from typing import Final, NamedTuple
from urllib.parse import quote, unquote

from registry.disk.paths import ROOT

SCHEME: Final = "skill://"
ASIDE: Final = "@"
MAX_SEGMENTS: Final = 64


class Target(NamedTuple):
    """What a URI may mean: the file ``path`` of the skill ``name`` in ``folder`` of ``source``."""

    source: str
    folder: str
    name: str
    path: str


def base(source: str, folder: str, name: str) -> str:
    """Return the URI of a skill's folder, with a slash behind it."""
    segments = [] if folder == ROOT else folder.split("/")
    if not segments or segments[-1] != name:
        segments += [ASIDE, name]
    return SCHEME + "/".join(quote(part, safe="") for part in (source, *segments)) + "/"


def targets(uri: str) -> list[Target]:
    """Return what ``uri`` may mean, the deepest folder first; nothing if it is not such a URI."""
    if not uri.startswith(SCHEME) or "?" in uri or "#" in uri:
        return []
    source, *segments = [unquote(part) for part in uri.removeprefix(SCHEME).split("/")]
    if len(segments) > MAX_SEGMENTS:
        return []
    found = []
    for end in range(len(segments) - 1, -1, -1):
        folder = "/".join(segments[:end]) or ROOT
        rest = segments[end:]
        if len(rest) > 2 and rest[0] == ASIDE:  # noqa: PLR2004  # the mark, the name, a path
            found.append(Target(source, folder, rest[1], "/".join(rest[2:])))
        if end:
            found.append(Target(source, folder, segments[end - 1], "/".join(rest)))
    return found
