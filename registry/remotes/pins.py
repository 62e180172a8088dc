"""A pin stays what it was: a tag that moved is not followed, and no branch takes its place.

By convention tags never move, so a tag that moved is a mistake or an attack. A branch moves, and is
followed. The checkout remembers which of the two a pin is, and the commit of a tag. It keeps its
files until the user pins the source again.
"""

from collections.abc import Mapping
from contextlib import suppress
from shlex import quote
from typing import Final, NamedTuple

from registry.errors import PinMoved, SourceInvalid
from registry.model import Remote, Source
from registry.remotes.checkout import Checkout, home_of
from registry.remotes.git import COMMIT, TAG, Git
from registry.remotes.tree import Bounds

SHOWN: Final = 12
"""Characters of a commit in a message."""


class Pin(NamedTuple):
    """A branch or a tag (``kind``, as `Git.refs` names them), and its commit."""

    kind: str
    commit: str


def pin_now(checkout: Checkout, remote: Remote, name: str, bounds: Bounds) -> Pin | None:
    """Ask the remote what the pin of the source ``name`` means now; None: it follows no name.

    Raises `PinMoved`, `RemoteProblem`.
    """
    ref = remote.ref
    if remote.kind != "git" or ref is None or COMMIT.fullmatch(ref):
        return None
    found = Git(remote.url, "", bounds).refs(ref)
    before = _before(checkout, found)
    if before is None:
        reason = f"{ref} is a tag and a branch there, and it is unknown which of them is meant"
    elif before.kind not in found:
        reason = f"the {before.kind} {ref} is gone, and a {min(found)} has its name"
    elif before.kind == TAG and before.commit != found[TAG]:
        reason = f"the tag {ref} moved from {before.commit[:SHOWN]} to {found[TAG][:SHOWN]}"
    else:
        return Pin(before.kind, found[before.kind])
    way = f"skill-registry source update {quote(name)} --ref {quote(ref)}"
    raise PinMoved(url=remote.url, reason=reason, way=way, commit=next(iter(found.values())))


def commit_now(source: Source, bounds: Bounds) -> str | None:
    """Return the commit of a source's pin now, also if it moved; None: nothing tells what it was.

    Raises `RemoteProblem`.
    """
    if source.remote is not None:
        with suppress(SourceInvalid):
            checkout = Checkout(home_of(source.path, source.name))
            if checkout.is_of(source.remote):
                try:
                    pin = pin_now(checkout, source.remote, source.name, bounds)
                except PinMoved as moved:
                    return moved.commit
                return None if pin is None else pin.commit
    return None


def _before(checkout: Checkout, found: Mapping[str, str]) -> Pin | None:
    """Return what the pin was so far; None: nothing tells."""
    if checkout.pin is not None:
        return Pin(*checkout.pin)
    version = checkout.version
    if version is None or checkout.is_pinned_anew:
        return Pin(*next(iter(found.items())))
    # The checkout was made before pins were remembered.
    same = [kind for kind, commit in found.items() if commit == version]
    kinds = same or list(found)
    return Pin(kinds[0], version) if len(kinds) == 1 or same else None
