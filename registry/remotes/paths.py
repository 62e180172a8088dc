"""Which paths of a remote's files are taken, on this and on any other file system."""

from collections import Counter, defaultdict
from typing import Final

from registry.disk.paths import check_path
from registry.document.invisible import find_hidden
from registry.document.names import is_device
from registry.text import folded, quoted

MAX_NOTICES: Final = 20
"""Of more that is left out, only the number is told."""


MAX_NAMED: Final = 3
"""Files of a kind that are named."""


class Paths:
    """Paths of files that can lie beside each other in one folder."""

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
    """What was left out or not renewed, and why: the first in words, the rest as a number."""

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


class LeftOut:
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
        return "has characters in its name that nobody sees"
    for part in path.split("/"):
        if is_device(part):
            return "has a name that Windows keeps for a device"
        if ":" in part or part[-1] in ". ":
            return "has a name that Windows takes for another"
    return None
