"""Put a folder or file in the place of another: stage, swap, verify, recover.

The new content waits at ``staged``, on the file system of its final place ``live``. Before anything
moves, the caller durably records the digests of the current content (``base``) and the new content
(``new``), in the journal or in a staging directory. One rename is the commit point. The displaced
content is verified afterwards: if it was edited at that moment, the edit wins. A process may die at
any instruction; `Swap.settle` then brings the disk to the old or the new state, and may itself be
killed and repeated. Without renameat2(2), two renames are used; in between, the live content has
the staged name and ``.old``.

The same code ends successful changes, failed ones, and those of dead processes.
"""

import secrets
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from registry.disk.atomic import (
    ExchangeUnsupported,
    Place,
    digest_of,
    exchange,
    is_gone,
    make_folder,
    remove_tree,
    rename_new,
    replace,
    sync_tree,
    write_below,
    write_file,
)
from registry.disk.paths import STATE_SUFFIX

TREE: Final = "tree"
"""Name of the staged or displaced content in the folder of one change."""

OLD: Final = ".old"
"""Suffix of the staged name for the live content, if the system can't exchange two names."""

NEW: Final = ".new"
"""Suffix of the staged name for published content that had to give way to an edit."""

PREFIX: Final = ".exchange-"
"""Prefix of drafts and staging directories beside folders that users see.

They end in `STATE_SUFFIX`, so that no sync reads them.
"""


@dataclass(frozen=True, slots=True)
class Swap:
    """A change of one place, by open folders and the digests of the content before and after.

    ``live`` and ``staged`` are None if their folder is gone, or is a link now. ``base``: None if
    there is no content before, so the change creates; ``new``: None if there is none after, so the
    change deletes, and moves the live content to ``staged``.
    """

    live: Place | None
    staged: Place | None
    base: str | None
    new: str | None

    @property
    def creates(self) -> bool:
        """Whether the place must be empty before the change."""
        return self.base is None

    @property
    def deletes(self) -> bool:
        """Whether the place is empty after the change."""
        return self.new is None

    @property
    def in_order(self) -> list[Place]:
        """Both places, the new name first: it must be durable before the old name is removed."""
        places = (self.staged, self.live) if self.deletes else (self.live, self.staged)
        return [one for one in places if one is not None]

    def publish(self) -> Place | None:
        """Do the rename that is the commit point; return the displaced content's place, if any.

        The caller verifies it. Raises FileExistsError or FileNotFoundError if another process was
        faster, and OSError.
        """
        live, staged = self._ends()
        if self.creates:
            rename_new(staged, live)
            return None
        if self.deletes:
            rename_new(live, staged)
            return staged
        return put_in_place(staged, live)

    def is_done(self) -> bool:
        """Tell whether the disk shows the change made. Raises OSError."""
        return (None if self.live is None else digest_of(self.live)) == self.new

    def settle(self, set_aside: Callable[[Place], None]) -> None:
        """Complete or undo the swap; ``set_aside`` saves edits for which there is no place."""
        if self.staged is None or self.creates:
            return
        if self.deletes:
            self._settle_delete(self.staged, set_aside)
        elif is_exchanged(self.staged):
            self._settle_exchange(self.staged, set_aside)
        else:
            self._settle_two_renames(self.staged, set_aside)

    def _settle_delete(self, staged: Place, set_aside: Callable[[Place], None]) -> None:
        if digest_of(staged) in {None, self.base}:
            return
        if self.live is None or not is_gone(self.live):
            set_aside(staged)
        else:
            rename_new(staged, self.live)

    def _settle_exchange(self, staged: Place, set_aside: Callable[[Place], None]) -> None:
        if digest_of(staged) in {None, self.base, self.new}:
            return
        if self.live is not None and digest_of(self.live) == self.new:
            exchange(staged, self.live)  # the edit made by hand wins
        else:
            set_aside(staged)

    def _settle_two_renames(self, staged: Place, set_aside: Callable[[Place], None]) -> None:
        live, old = self.live, _beside(staged, OLD)
        displaced = digest_of(old)
        if displaced is None:
            return
        if live is None:
            set_aside(old)  # its old folder is gone
        elif is_gone(live):
            if displaced == self.base and digest_of(staged) == self.new:
                rename_new(staged, live)
            else:
                rename_new(old, live)
        elif displaced != self.base and digest_of(live) == self.new:
            rename_new(live, _beside(staged, NEW))
            rename_new(old, live)  # the edit made by hand wins

    def roll_forward(self) -> None:
        """Publish the new content, unless a place was edited since; then call `settle`."""
        if self.live is None or self.staged is None:
            return
        if self.creates:
            if is_gone(self.live) and digest_of(self.staged) == self.new:
                rename_new(self.staged, self.live)
        elif self.deletes:
            if is_gone(self.staged) and digest_of(self.live) == self.base:
                rename_new(self.live, self.staged)
        elif is_exchanged(self.staged) and self._holds(staged=self.new, live=self.base):
            try:
                exchange(self.staged, self.live)
            except ExchangeUnsupported:  # `settle` completes the rest
                rename_new(self.live, _beside(self.staged, OLD))

    def roll_back(self) -> None:
        """Undo a publication, unless the content was edited since; then call `settle`."""
        if self.live is None or self.staged is None:
            return
        if self.creates:
            self._take_away(self.live, self.staged)
        elif self.deletes:
            if is_gone(self.live) and not is_gone(self.staged):
                rename_new(self.staged, self.live)
        elif is_exchanged(self.staged):
            if self._holds(staged=self.base, live=self.new):
                exchange(self.staged, self.live)
        elif not is_gone(old := _beside(self.staged, OLD)):
            self._take_away(self.live, self.staged)
            if is_gone(self.live):
                rename_new(old, self.live)

    def _take_away(self, live: Place, staged: Place) -> None:
        """Move published content back to its staged place."""
        if is_gone(staged) and digest_of(live) == self.new:
            rename_new(live, staged)
            if digest_of(staged) != self.new:  # an edit happened in between
                rename_new(staged, live)

    def unknown(self) -> list[Place]:
        """Return the places with content that is neither ``base`` nor ``new``: perhaps an edit."""
        return [] if self.staged is None else unknown_in(self.staged, {self.base, self.new})

    def _ends(self) -> tuple[Place, Place]:
        assert self.live is not None and self.staged is not None  # noqa: PT018, S101  # asked before
        return self.live, self.staged

    def _holds(self, *, staged: str | None, live: str | None) -> bool:
        at_live, at_staged = self._ends()
        return digest_of(at_staged) == staged and digest_of(at_live) == live


def unknown_in(staged: Place, known: Iterable[str | None]) -> list[Place]:
    """Return the places at or beside a staged place whose content has none of these digests."""
    places = (staged, _beside(staged, OLD), _beside(staged, NEW))
    return [one for one in places if digest_of(one) not in {None, *known}]


def is_exchanged(staged: Place) -> bool:
    """Tell whether there is no trace of a swap by two renames."""
    return is_gone(_beside(staged, OLD)) and is_gone(_beside(staged, NEW))


def put_in_place(new: Place, live: Place) -> Place:
    """Exchange new and live content, and return the place of the displaced content."""
    try:
        exchange(new, live)
    except ExchangeUnsupported:
        displaced = _beside(new, OLD)
        rename_new(live, displaced)
        rename_new(new, live)
        return displaced
    return new


def _beside(staged: Place, ending: str) -> Place:
    return Place(staged.folder, staged.name + ending)


def stage_files(staged: Place, files: Mapping[str, tuple[bytes, bool]]) -> str:
    """Write files (path: bytes, executable) durably into a new folder; return its digest."""
    with make_folder(staged) as tree:
        for path, (data, executable) in files.items():
            write_below(tree, path, data, 0o755 if executable else 0o644)
    sync_tree(staged)
    return digest_of(staged) or ""


def draft_name() -> str:
    """Return an unused name for a draft or a staging directory."""
    return f"{PREFIX}{secrets.token_hex(8)}{STATE_SUFFIX}"


def replace_file(place: Place, data: bytes) -> None:
    """Replace a file durably, in one step."""
    new = Place(place.folder, draft_name())
    try:
        write_file(new, data)
        replace(new, place)
    except BaseException:
        remove_tree(new)
        raise
    place.folder.sync()
