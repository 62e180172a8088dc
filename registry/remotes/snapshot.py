"""The files of a remote at one version, for every kind, and the checks of their paths."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from registry.disk.paths import ROOT, check_path
from registry.document.names import is_device
from registry.document.scan import find_hidden
from registry.text import folded, quoted


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
    """A file of a tree; equal ids mean equal bytes. ``size`` in bytes, None if unknown."""

    id: str
    executable: bool
    size: int | None = None


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The files of one version.

    ``version`` identifies it (a commit, a digest); ``made_at`` is its time, in seconds since 1970
    (None: unknown). ``files`` are by relative paths with ``/``, all safe
    (`disk.paths.is_safe_relative`), and no two differ only in case. ``notices``: the skipped files
    and the reasons, for people. ``read`` yields the bytes of some files, or raises `RemoteProblem`.
    """

    version: str
    made_at: int | None
    files: Mapping[str, Blob]
    notices: Sequence[str]
    read: Callable[[Sequence[str]], Iterator[tuple[str, bytes]]]


MAX_NOTICES: Final = 20
"""Maximum number of notices in full; any further notices are only counted."""


MAX_NAMED: Final = 3
"""Files of a kind that are named."""


class Paths:
    """Check that files can be beside each other in one folder, by their paths."""

    def __init__(self) -> None:
        self._files: dict[str, str] = {}
        self._folders: set[str] = set()

    def add(self, path: str) -> str | None:
        """Take a path in, or return why not, to follow its name."""
        reason = _refusal(path)
        if reason is not None:
            return reason
        key = folded(path)
        parts = key.split("/")
        above = ["/".join(parts[:length]) for length in range(1, len(parts))]
        if key in self._files:
            other = self._files[key]
            where = "" if other == path else f" for many file systems, as {quoted(other)}"
            return f"is there twice{where}"
        if key in self._folders or any(folder in self._files for folder in above):
            return "is both a file and a folder"
        self._files[key] = path
        self._folders.update(above)
        return None


class Notices:
    """Reasons for skipped or outdated skills: the first in full, of the others only the number."""

    def __init__(self) -> None:
        self._said: list[str] = []
        self._more = 0

    def leave_out(self, name: str, reason: str) -> None:
        """Say that a skill or a file is left out, and why."""
        self._add(f"{quoted(name)} is left out: {reason.rstrip('.')}")

    def keep(self, name: str, reason: str) -> None:
        """Say that a skill stays as it was, and why."""
        self._add(f"{quoted(name)} stays as it was: {reason.rstrip('.')}")

    def refuse(self, name: str, reason: str) -> None:
        """Say why a member of an archive is left out (`unpacking.Refuse`)."""
        self.leave_out(name, f"it {reason}")

    def _add(self, sentence: str) -> None:
        if len(self._said) < MAX_NOTICES:
            self._said.append(sentence)
        else:
            self._more += 1

    def said(self) -> list[str]:
        """Return the sentences, which have no full stop."""
        return [*self._said, f"{self._more} more like these"] if self._more else self._said


class SkippedFiles:
    """How many files of each kind are left out of a repository, and the first of them by name."""

    def __init__(self) -> None:
        self._count: Counter[str] = Counter()
        self._first: defaultdict[str, list[str]] = defaultdict(list)

    def add(self, kind: str, path: str) -> None:
        """Leave out a file; ``kind``: one such, in words."""
        self._count[kind] += 1
        if self._count[kind] <= MAX_NAMED:
            self._first[kind].append(path)

    def said(self) -> list[str]:
        """Return a sentence for each kind, without a full stop."""
        found = []
        for kind, count in self._count.items():
            names = ", ".join(map(quoted, self._first[kind]))
            more = ", \N{HORIZONTAL ELLIPSIS}" if count > MAX_NAMED else ""
            what = f"1 {kind} was" if count == 1 else f"{count} {kind}s were"
            found.append(f"{what} left out: {names}{more}")
        return found


def _refusal(path: str) -> str | None:
    if check_path(path) is not None:
        return "can't be in a skill's folder"
    if next(find_hidden(path), None) is not None:
        return "has invisible characters in its name"
    for part in path.split("/"):
        if is_device(part):
            return "has a name that Windows keeps for a device"
        if ":" in part or part[-1] in ". ":
            return "has a name that Windows takes for another"
    return None


def below(files: Iterable[str], folder: str) -> dict[str, str]:
    """Return the files below a folder, by their paths in it."""
    begin = "" if folder == ROOT else f"{folder}/"
    return {path[len(begin) :]: path for path in files if path.startswith(begin)}
