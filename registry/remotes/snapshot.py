"""The files of a remote source at one version, and checks of their paths.

All kinds of remote sources use these classes.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from registry.disk.paths import ROOT, check_path
from registry.document.names import is_device
from registry.document.scan import find_hidden
from registry.model import RemoteState
from registry.text import folded, quoted


@dataclass(frozen=True, slots=True)
class FetchLimits:
    """The limits of one fetch.

    If ``private``, redirects may lead to private addresses. If ``public``, requests are sent only
    to public hosts, for example because an untrusted person wrote the address. If ``anonymous``, no
    password of the user is sent. Messages name the address ``named``. A download is stopped if it
    is slower than ``slowest`` bytes per second for ``patience`` seconds.
    """

    bytes: int = 256 << 20
    files: int = 200_000
    seconds: float = 300.0
    artifact_bytes: int = 50 << 20
    artifact_files: int = 1000
    private: bool = False
    public: bool = False
    anonymous: bool = False
    named: str | None = None
    slowest: int = 1024
    patience: float = 30.0


class Blob(NamedTuple):
    """A file of a snapshot; files with equal ids have equal bytes.

    ``size`` is in bytes (None if unknown).
    """

    id: str
    executable: bool
    size: int | None = None


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The files of a remote source at one version.

    ``version`` is the id of the version, such as a commit or a digest. ``made_at`` is the time of
    the version in seconds since 1970, or None if unknown. ``files`` has the files by their relative
    paths with ``/``. All paths are safe (`disk.paths.is_safe_relative`), and no two paths differ
    only in case. ``notices`` are messages that name skipped files and give the reasons. ``read``
    yields the bytes of selected files, or raises `RemoteProblem`. ``states`` are the states of
    versions that the index of a site tells.
    """

    version: str
    made_at: int | None
    files: Mapping[str, Blob]
    notices: Sequence[str]
    read: Callable[[Sequence[str]], Iterator[tuple[str, bytes]]]
    states: Sequence[RemoteState] = ()


MAX_NOTICES: Final = 20
"""Maximum number of stored messages; further messages are only counted."""


MAX_NAMED: Final = 3
"""Maximum number of skipped files of one type that a message names."""


class Paths:
    """Checks by their paths whether files can be stored together in one folder."""

    def __init__(self) -> None:
        self._files: dict[str, str] = {}
        self._folders: set[str] = set()

    def add(self, path: str) -> str | None:
        """Check another path together with the paths so far.

        Returns None, or the reason if the path is refused. In a sentence, the reason can follow the
        path.
        """
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


class SkipNotices:
    """Collects the reasons why skills are skipped or outdated.

    Only the first reasons are stored; further reasons are counted.
    """

    def __init__(self) -> None:
        self._said: list[str] = []
        self._more = 0

    def leave_out(self, name: str, reason: str) -> None:
        """Add a message that a skill or file is left out."""
        self._add(f"{quoted(name)} is left out: {reason.rstrip('.')}")

    def keep(self, name: str, reason: str) -> None:
        """Add a message that a skill keeps its former version."""
        self._add(f"{quoted(name)} stays as it was: {reason.rstrip('.')}")

    def refuse(self, name: str, reason: str) -> None:
        """Add a message that a member of an archive is left out (see `unpacking.Refuse`)."""
        self.leave_out(name, f"it {reason}")

    def _add(self, sentence: str) -> None:
        if len(self._said) < MAX_NOTICES:
            self._said.append(sentence)
        else:
            self._more += 1

    def said(self) -> list[str]:
        """Return the messages as sentences without full stops."""
        return [*self._said, f"{self._more} more like these"] if self._more else self._said


class SkippedFiles:
    """Counts the skipped files of a repository by type, and stores the first names of each type."""

    def __init__(self) -> None:
        self._count: Counter[str] = Counter()
        self._first: defaultdict[str, list[str]] = defaultdict(list)

    def add(self, kind: str, path: str) -> None:
        """Count a skipped file; ``kind`` is a singular noun for messages, such as "link"."""
        self._count[kind] += 1
        if self._count[kind] <= MAX_NAMED:
            self._first[kind].append(path)

    def said(self) -> list[str]:
        """Return a sentence for each type of skipped file, without a full stop."""
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
    """Return the paths of files below a folder.

    The keys of the result are the paths relative to that folder.
    """
    begin = "" if folder == ROOT else f"{folder}/"
    return {path[len(begin) :]: path for path in files if path.startswith(begin)}
