"""Replace a folder or file by another: prepare the new content, exchange, verify, recover.

The new content waits at ``staged``, on the same file system as its final path ``live``. Before the
first rename, the caller durably records the digests of the current content (``base``) and the new
content (``new``), in the journal or in a staging directory.

A single rename is the commit point: it makes the change valid. Afterwards, the replaced content is
checked. If a user edited it just before the rename, the edit is restored.

A process may be killed at any instruction. Then `Swap.finish` changes the disk to the old or the
new state. If `finish` is also killed, it can be called again. Without renameat2(2), two renames are
needed. Between them, the old content has the staged name with the suffix ``.old``.

The same code completes successful changes, failed changes, and the changes of killed processes.
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
"""Name of the new or the replaced content in the folder that belongs to a change."""

OLD: Final = ".old"
"""Suffix of the old content, beside the staged path, if the system can't exchange two names."""

NEW: Final = ".new"
"""Suffix of new content, beside the staged path, if an edit had to be restored at its path."""

PREFIX: Final = ".exchange-"
"""Prefix of drafts (temporary files) and staging directories.

These files and directories are beside folders that users see. Their names end in `STATE_SUFFIX`, so
that syncs skip them.
"""


@dataclass(frozen=True, slots=True)
class Swap:
    """A change of one path: its names in open folders, and the digests before and after.

    ``live`` and ``staged`` are None if their folder is missing or was replaced by a link. ``base``
    is None if the change creates ``live``. ``new`` is None if the change deletes ``live``; then the
    content is moved to ``staged``.
    """

    live: Place | None
    staged: Place | None
    base: str | None
    new: str | None

    @property
    def creates(self) -> bool:
        """Whether ``live`` must not exist before the change."""
        return self.base is None

    @property
    def deletes(self) -> bool:
        """Whether ``live`` must not exist after the change."""
        return self.new is None

    @property
    def in_order(self) -> list[Place]:
        """Both names; the name that the rename creates comes first.

        The created name must be on disk before the other name is removed.
        """
        places = (self.staged, self.live) if self.deletes else (self.live, self.staged)
        return [one for one in places if one is not None]

    def publish(self) -> Place | None:
        """Make the rename that is the commit point; return where the replaced content is now.

        Returns None if nothing was replaced. The caller must check the replaced content. Raises
        OSError if the rename fails. For example, FileExistsError or FileNotFoundError means that
        another process changed the path first.
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
        """Tell whether ``live`` has the state after the change. Raises OSError."""
        return (None if self.live is None else digest_of(self.live)) == self.new

    def finish(self, set_aside: Callable[[Place], None]) -> None:
        """Complete or undo the change; to save edits that can't be restored, call ``set_aside``."""
        if self.staged is None or self.creates:
            return
        if self.deletes:
            self._finish_delete(self.staged, set_aside)
        elif is_exchanged(self.staged):
            self._finish_exchange(self.staged, set_aside)
        else:
            self._finish_two_renames(self.staged, set_aside)

    def _finish_delete(self, staged: Place, set_aside: Callable[[Place], None]) -> None:
        if digest_of(staged) in {None, self.base}:
            return
        if self.live is None or not is_gone(self.live):
            set_aside(staged)
        else:
            rename_new(staged, self.live)

    def _finish_exchange(self, staged: Place, set_aside: Callable[[Place], None]) -> None:
        if digest_of(staged) in {None, self.base, self.new}:
            return
        if self.live is not None and digest_of(self.live) == self.new:
            exchange(staged, self.live)  # keep a user's edit
        else:
            set_aside(staged)

    def _finish_two_renames(self, staged: Place, set_aside: Callable[[Place], None]) -> None:
        live, old = self.live, _beside(staged, OLD)
        displaced = digest_of(old)
        if displaced is None:
            return
        if live is None:
            set_aside(old)  # the folder from which the edit came is missing
        elif is_gone(live):
            if displaced == self.base and digest_of(staged) == self.new:
                rename_new(staged, live)
            else:
                rename_new(old, live)
        elif displaced != self.base and digest_of(live) == self.new:
            rename_new(live, _beside(staged, NEW))
            rename_new(old, live)  # keep a user's edit

    def roll_forward(self) -> None:
        """Publish the new content, unless a user has edited the files in the meantime.

        Then call `finish`.
        """
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
            except ExchangeUnsupported:  # `finish` makes the second rename
                rename_new(self.live, _beside(self.staged, OLD))

    def roll_back(self) -> None:
        """Undo a publication, unless a user has edited the new content in the meantime.

        Then call `finish`.
        """
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
        """Move published content back to its staged path."""
        if is_gone(staged) and digest_of(live) == self.new:
            rename_new(live, staged)
            # A user edited the content between the check and the rename.
            if digest_of(staged) != self.new:
                rename_new(staged, live)

    def unknown(self) -> list[Place]:
        """Return the places with other content than ``base`` and ``new``, such as an edit."""
        return [] if self.staged is None else unknown_in(self.staged, {self.base, self.new})

    def clear(self) -> None:
        """Remove the staged and the replaced content, but keep content that may be an edit."""
        if self.staged is not None:
            for place in _all_beside(self.staged):
                if digest_of(place) in {self.base, self.new}:
                    remove_tree(place)

    def _ends(self) -> tuple[Place, Place]:
        # The callers have checked this.
        assert self.live is not None and self.staged is not None  # noqa: PT018, S101
        return self.live, self.staged

    def _holds(self, *, staged: str | None, live: str | None) -> bool:
        at_live, at_staged = self._ends()
        return digest_of(at_staged) == staged and digest_of(at_live) == live


def unknown_in(staged: Place, known: Iterable[str | None]) -> list[Place]:
    """Return the staged names with a digest that isn't in ``known``.

    The staged names are the name itself, and the name with the suffix `OLD` or `NEW`. Names that
    don't exist are left out.
    """
    return [one for one in _all_beside(staged) if digest_of(one) not in {None, *known}]


def is_exchanged(staged: Place) -> bool:
    """Tell whether the staged folder has no trace of an unfinished exchange by two renames."""
    return is_gone(_beside(staged, OLD)) and is_gone(_beside(staged, NEW))


def put_in_place(new: Place, live: Place) -> Place:
    """Exchange new and old content, and return where the old content is now."""
    try:
        exchange(new, live)
    except ExchangeUnsupported:
        displaced = _beside(new, OLD)
        rename_new(live, displaced)
        rename_new(new, live)
        return displaced
    return new


def _all_beside(staged: Place) -> list[Place]:
    return [staged, _beside(staged, OLD), _beside(staged, NEW)]


def _beside(staged: Place, ending: str) -> Place:
    return Place(staged.folder, staged.name + ending)


def stage_files(staged: Place, files: Mapping[str, tuple[bytes, bool]]) -> str:
    """Write files durably into a new folder; return the digest of the folder.

    ``files`` has the bytes and the executable bit of each file, by path.
    """
    with make_folder(staged) as tree:
        for path, (data, executable) in files.items():
            write_below(tree, path, data, 0o755 if executable else 0o644)
    sync_tree(staged)
    return digest_of(staged) or ""


def draft_name() -> str:
    """Return an unused name for a draft or a staging directory."""
    return f"{PREFIX}{secrets.token_hex(8)}{STATE_SUFFIX}"


def replace_file(place: Place, data: bytes) -> None:
    """Replace a file atomically and durably."""
    new = Place(place.folder, draft_name())
    try:
        write_file(new, data)
        replace(new, place)
    except BaseException:
        remove_tree(new)
        raise
    place.folder.sync()
