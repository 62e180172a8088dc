"""What a remote holds at one version, whatever it speaks."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol


@dataclass(frozen=True, slots=True)
class Bounds:
    """Limits of one fetch.

    ``private``: redirects may lead to private addresses. ``public``: only public hosts are asked,
    as for an address that a stranger wrote. ``anonymous``: no password of the user is sent.
    ``slowest`` and ``patience``: a download of fewer bytes per second is ended after these seconds.
    """

    bytes: int = 256 << 20
    files: int = 200_000
    seconds: float = 300.0
    artifact_bytes: int = 50 << 20
    artifact_files: int = 1000
    private: bool = False
    public: bool = False
    anonymous: bool = False
    slowest: int = 1024
    patience: float = 30.0


class Blob(NamedTuple):
    """A file of a tree; equal ids mean equal bytes. ``size`` in bytes, where it is known."""

    id: str
    executable: bool
    size: int | None = None


class Tree(Protocol):
    """The files of one version.

    ``version`` is what tells it from others (a commit, a digest), ``made_at`` when it was made, in
    seconds since 1970 (None: not told). ``files`` by relative paths with ``/``, all safe
    (`disk.paths.is_safe_relative`), no two of which differ in case alone. ``notices``: what was
    left out and why, in words for people.
    """

    @property
    def version(self) -> str:
        """What tells this version from others."""

    @property
    def made_at(self) -> int | None:
        """When it was made."""

    @property
    def files(self) -> Mapping[str, Blob]:
        """What there is at each path."""

    @property
    def notices(self) -> Sequence[str]:
        """What was left out."""

    def read(self, paths: Sequence[str]) -> Iterator[tuple[str, bytes]]:
        """Yield the bytes of some of the files. Raises `RemoteProblem` and its subclasses."""
