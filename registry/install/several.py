"""Several places of one skill, in as many folders, that change together: all of them or none.

No rename covers two folders. So each place is prepared beside where it is to be (`placing`), one
of them decides, and a record in the folder of the lock says which places there are: whoever finds
it goes on where the one that decides is in place, and takes back the others where it is not. A
link is put before what it leads to, and so is nothing until that is there: of links and the folder
that they lead to, none or all are seen, whenever the process dies.
"""

import errno
import json
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Final, NamedTuple, Self

from registry.disk.atomic import Place, digest_of, is_gone, sync_folder, write_file
from registry.disk.beneath import Folder
from registry.disk.files import read_below
from registry.disk.private import open_own_folder
from registry.install import placing
from registry.install.content import Entry
from registry.install.lockfile import MAX_BYTES, Locked, locked_from, safe_folder
from registry.install.staging import is_ours, make_staging_dir

RECORD: Final = "places.json"
"""Which places change; written before anything is staged."""

ENTRY: Final = "entry.json"
"""What the lock is to say; written when all is staged, and before anything is put in place."""


_ALSO_COPIES: Final = frozenset({errno.EDQUOT, errno.EIO, errno.ENOSPC, errno.EROFS})
"""What keeps a copy from being made as well as a link; all else is about links."""


class Part(NamedTuple):
    """One place: the folder it is in (by its label), what is there by its digest, what is to be.

    ``link``: the target of a link; "" where the skill's files are to be, None where nothing is.
    """

    label: str
    base: str | None
    link: str | None = ""


@dataclass(frozen=True, slots=True)
class Record:
    """What a change is about: the name of the folder, the labels in their order, what decides."""

    folder: str
    labels: tuple[str, ...]
    deciding: str


Opened = Callable[[str], Folder]
"""Opens the folder of a label."""


class Several:
    """A change of several places, begun in the folder ``anchor`` that has the lock."""

    def __init__(
        self, anchor: Folder, name: str, record: Record, opened: Mapping[str, Folder]
    ) -> None:
        self.anchor = anchor
        self.name = name
        self.record = record
        self._opened = opened

    @classmethod
    def begin(
        cls, anchor: Folder, folder: str, parts: Sequence[Part], opened: Mapping[str, Folder]
    ) -> Self:
        """Say durably what is going to change."""
        parts = in_order(parts)
        deciding = next((one for one in parts if one.link == ""), parts[0])
        record = Record(folder, tuple(one.label for one in parts), deciding.label)
        name = make_staging_dir(anchor)
        with open_own_folder(Place(anchor, name)) as home:
            write_file(Place(home, RECORD), json.dumps(asdict(record)).encode())
            sync_folder(home)
        anchor.sync()
        return cls(anchor, name, record, opened)

    @classmethod
    def found(
        cls, anchor: Folder, name: str, known: Container[str], open_label: Opened
    ) -> Self | None:
        """Return what was begun under a name; None: nothing, or it was never said what.

        What is about other labels than those that are ``known`` was begun by somebody else. Raises
        OSError and `PullRefused` where a folder of it can't be opened.
        """
        with open_own_folder(Place(anchor, name)) as home:
            try:
                data = json.loads(read_below(home, RECORD, MAX_BYTES).data)
                labels = tuple(map(str, data["labels"]))
                record = Record(safe_folder(data["folder"]), labels, str(data["deciding"]))
            except placing.UNREADABLE:
                return None
        if record.deciding not in record.labels or not all(one in known for one in labels):
            return None
        return cls(anchor, name, record, {label: open_label(label) for label in record.labels})

    def stage(self, parts: Sequence[Part], entries: Sequence[Entry]) -> str:
        """Prepare all places; return the digest of the skill's folder, empty if it is in none.

        Where no link can be made, the files are put in its place.
        """
        digest = ""
        for part in parts:
            folder = self._opened[part.label]
            new = None
            if part.link is None:
                if folder is not self.anchor:
                    make_staging_dir(folder, self.name)
            elif part.link:
                try:
                    new = placing.stage_link(folder, part.link, self.name)
                except OSError as error:
                    if error.errno in _ALSO_COPIES:
                        raise
            if part.link is not None and new is None:
                _, new = placing.stage(folder, entries, self.name)
                digest = new
            note = placing.Note(self.record.folder, part.base, new)
            placing.write_note(folder, self.name, note)
            folder.sync()
        return digest

    def place(self, entry: Locked | None) -> bool:
        """Put all in place, or nothing: False. ``entry``: for the lock; None: it is removed."""
        with open_own_folder(Place(self.anchor, self.name)) as home:
            data = json.dumps(None if entry is None else asdict(entry))
            write_file(Place(home, ENTRY), data.encode())
            sync_folder(home)
        for number, label in enumerate(self.record.labels):
            if not placing.put(self._opened[label], self.name):
                for done in reversed(self.record.labels[: number + 1]):
                    placing.take_back(self._opened[done], self.name)
                return False
        return True

    def finish(self) -> bool:
        """Go on with what a dead process left, or take it back: False."""
        staged = self._staged()
        if self.record.deciding not in staged:
            return False  # nothing is in place yet, or the lock covers it
        if not self.is_decided():
            for label in reversed(staged):
                placing.take_back(self._opened[label], self.name)
            return False
        for label in staged:
            folder = self._opened[label]
            if placing.repair(folder, self.name) is None and self._is_as_it_was(folder):
                placing.put(folder, self.name)
        return True

    def is_decided(self) -> bool:
        """Tell whether it counts as made; change nothing."""
        folder = self._opened[self.record.deciding]
        if self.record.deciding not in self._staged():
            return False
        with open_own_folder(Place(self.anchor, self.name)) as home:
            if is_gone(Place(home, ENTRY)):
                return False
        return placing.is_in_place(folder, self.name) is not None

    def entry(self) -> Locked | None:
        """Return what the lock is to say; None: the skill was removed.

        Raises as `lockfile.locked_from`, and OSError.
        """
        with open_own_folder(Place(self.anchor, self.name)) as home:
            data = json.loads(read_below(home, ENTRY, MAX_BYTES).data)
        return None if data is None else locked_from(data)

    def clear(self) -> None:
        """Remove what it needed; what may be somebody's edit stays."""
        # What decides goes first: without it nothing is gone on with, or taken back.
        for label in sorted(self.record.labels, key=lambda one: one != self.record.deciding):
            if is_ours(Place(self._opened[label], self.name)):
                placing.clear(self._opened[label], self.name)
                self._opened[label].sync()  # before the record of it goes
        if is_ours(Place(self.anchor, self.name)):
            placing.clear(self.anchor, self.name)

    def _staged(self) -> list[str]:
        """Return the labels of the places that are prepared, and not cleared yet, in order."""
        opened = ((label, self._opened[label]) for label in self.record.labels)
        there = [(label, one) for label, one in opened if is_ours(Place(one, self.name))]
        return [label for label, one in there if placing.note_in(one, self.name) is not None]

    def _is_as_it_was(self, folder: Folder) -> bool:
        note = placing.note_in(folder, self.name)
        return note is not None and digest_of(Place(folder, note.folder)) == note.base


def in_order(parts: Sequence[Part]) -> list[Part]:
    """Return places in the order of their changes.

    New links come first, since they lead nowhere yet; then the skill's files, then what takes the
    place of something else, and last what is removed; of several removals the files go first.
    """

    def rank(part: Part) -> int:
        if part.link is None:
            return 3
        if part.link == "":
            return 1
        return 0 if part.base is None else 2

    return sorted(parts, key=rank)
