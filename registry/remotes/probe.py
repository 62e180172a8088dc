"""Find out what lies at an address that does not say it itself."""

from collections.abc import Callable
from typing import Final, Literal, TypeAlias
from urllib.parse import urlsplit

from registry.errors import RemoteInvalid, RemoteProblem, RemoteRefused
from registry.remotes.address import ARCHIVES
from registry.remotes.http import NOT_FOUND, Client
from registry.remotes.hub import SKILLS, find_base, page_of
from registry.remotes.site import NEW, WELL_KNOWN, find_index
from registry.remotes.tree import Bounds
from registry.remotes.unpacking import GZIP
from registry.remotes.urls import redacted

Kind: TypeAlias = Literal["archive", "site", "hub"]

TAR_MAGIC: Final = 257
"""Where a tar says that it is one (POSIX, ustar)."""

MAGICS: Final = ((0, GZIP), (0, b"PK\x03\x04"), (TAR_MAGIC, b"ustar"))


def probe(url: str, bounds: Bounds) -> Kind:
    """Return what an http or https address is: an archive, a site with an index, or a hub.

    Raises `RemoteInvalid`, which says what was tried; `RemoteRefused` where a server wants to
    know who asks; `RemoteUnreachable`.
    """
    client = Client(url, bounds)
    if urlsplit(client.url).path.lower().endswith(ARCHIVES):
        return "archive"
    refused: list[RemoteProblem] = []
    for kind, answers in _ANSWERS.items():
        try:
            if answers(client):
                return kind
        except RemoteInvalid:
            continue
        except RemoteRefused as problem:
            if problem.status != NOT_FOUND:
                refused.append(problem)
    if refused:
        raise refused[0]
    reason = (
        f"it is no archive, and there is neither an index of skills ({WELL_KNOWN}{NEW}) nor a "
        f"list of them ({SKILLS})"
    )
    raise RemoteInvalid(url=redacted(client.url), reason=reason)


def _is_archive(client: Client) -> bool:
    start = client.begins(client.url, TAR_MAGIC + len("ustar"))
    return any(start[at:].startswith(magic) for at, magic in MAGICS)


_ANSWERS: Final[dict[Kind, Callable[[Client], bool]]] = {
    "archive": _is_archive,
    "site": lambda client: bool(find_index(client)),
    "hub": lambda client: bool(page_of(client, find_base(client), 1)),
}
