"""Where a change happens, and the lock under which it does."""

from dataclasses import dataclass
from typing import Final

from registry.changes.state import StateFolder
from registry.core import Core
from registry.db.queries.sources import list_sources
from registry.disk.locks import FileLock
from registry.errors import ChangeRefused, RegistryError
from registry.model import Source
from registry.sync.sources import check_own

LOCK_SECONDS: Final = 30.0


@dataclass(frozen=True, slots=True)
class ChangeContext:
    """The source that is changed, its state folder, and the roots of all sources of this host."""

    core: Core
    source: Source
    roots: tuple[str, ...]
    state: StateFolder

    @classmethod
    def of(cls, core: Core, source_id: int) -> "ChangeContext":
        """Return the context of a source. Raises `SourceElsewhere`."""
        known = list_sources(core.reader, counted=False)
        source = next(one for one in known if one.id == source_id)
        check_own(core, source.name, source.host)
        roots = tuple(one.path for one in known if one.host == core.host)
        return cls(core, source, roots, StateFolder(source.path))

    def locked(self) -> FileLock:
        """Take the lock of the source's state folder.

        Raises `ChangeRefused` when it stays taken, or can't be had or signed.
        """
        lock = self.state.lock()
        try:
            taken = lock.acquire(LOCK_SECONDS)
            if taken:
                lock.sign("change")
        except OSError as error:
            lock.release()
            raise refusal(self.source.path, error) from error
        if not taken:
            reason = f"another process ({lock.owner()}) is changing this source"
            raise ChangeRefused(path=self.source.path, reason=reason)
        return lock


def refusal(path: str, error: OSError) -> RegistryError:
    """Return the error for a disk that refused before anything was published."""
    return ChangeRefused(path=path, reason=error.strerror or str(error))
