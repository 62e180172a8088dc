"""Where a change happens, and the lock under which it does."""

from collections.abc import Collection, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Final, Self

from registry.changes.signed import Seal
from registry.changes.state import StateFolder, open_place
from registry.core import Core
from registry.db.read.journal import JournalEntry
from registry.db.read.sources import list_sources
from registry.disk.beneath import Folder
from registry.disk.swap import Swap
from registry.errors import ChangeRefused, RegistryError, RootMissing
from registry.model import Source
from registry.sync.sources import check_ours, check_writable, is_here

LOCK_SECONDS: Final = 30.0


@dataclass(frozen=True, slots=True)
class ChangeContext:
    """The source that is changed, its root and its state folder, open, and what signs for it.

    ``roots``: those of all sources of this host.
    """

    core: Core
    source: Source
    roots: tuple[str, ...]
    root: Folder
    state: StateFolder
    seal: Seal

    @classmethod
    @contextmanager
    def locked(
        cls, core: Core, source_id: int, *, inside: Collection[str] = ()
    ) -> "Iterator[Self]":
        """Open a source to change it, with the lock of its state folder held.

        ``inside``: the roots that have their state folder in them. Raises `SourceElsewhere`,
        `SourceNotYours`, `OwnFileUnusable`, `SkillInaccessible`, and `ChangeRefused` when the lock
        stays taken, or something can't be had or is not ours.
        """
        known = list_sources(core.reader, counted=False)
        source = next(one for one in known if one.id == source_id)
        check_ours(core, source)
        check_writable(source)
        roots = tuple(one.path for one in known if is_here(core, one.host, one.path))
        seal = Seal.of(core, source.path)
        try:
            root = Folder.open(source.path)
        except FileNotFoundError as error:
            # It is not made: what it was on may only be away, and would hide what is made now.
            reason = "the source's folder is not there"
            raise RootMissing(path=source.path, reason=reason) from error
        except OSError as error:
            raise refusal(source.path, error) from error
        within = True if source.path in inside else None
        with root, StateFolder.make(source.path, inside=within) as state, state.lock() as lock:
            try:
                taken = lock.acquire(LOCK_SECONDS)
                if taken:
                    lock.sign("change")
            except OSError as error:
                raise refusal(error.filename or source.path, error) from error
            if not taken:
                reason = f"another process ({lock.owner()}) is changing this source"
                raise ChangeRefused(path=source.path, reason=reason)
            yield cls(core, source, roots, root, state, seal)


def refusal(path: str, error: OSError) -> RegistryError:
    """Return the error for a disk that refused before anything was published."""
    return ChangeRefused(path=path, reason=error.strerror or str(error))


@contextmanager
def open_swap(context: ChangeContext, entry: JournalEntry) -> Iterator[Swap]:
    """Open the folders that a change moves something between."""
    area, number, tree = entry.staged.split("/")
    home = {"ops": context.state.ops, "trash": context.state.trash}[area]
    with ExitStack() as stack:
        live = open_place(stack, context.root, entry.target)
        staged = open_place(stack, home, f"{number}/{tree}")
        yield Swap(live, staged, entry.base, entry.new)
