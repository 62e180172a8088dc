"""A reader that keeps a list of the skills, and asks the server only for changes."""

import threading
from contextlib import suppress

from registry import Settings, SkillRegistry
from registry.db.read.listing import TreeHashes
from registry.errors import RegistryError
from tests.server.chaos.cluster import Cluster

PAUSE_SECONDS = 0.02


class Follower:
    """Brings its list up to date until `end`, through all failures of the server.

    ``changes`` is the number of readings that found a change.
    """

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._hashes = TreeHashes()
        self._known: dict[str, str] = {}
        self.changes = 0
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._follow, daemon=True)
        self._thread.start()

    def _follow(self) -> None:
        while not self._stopped.wait(PAUSE_SECONDS):
            with suppress(RegistryError):
                self._read_from(self._cluster.url_now)

    def _read_from(self, url: str) -> None:
        with SkillRegistry.open(url, settings=Settings()) as registry:
            while url == self._cluster.url_now:
                self._read(registry)
                if self._stopped.wait(PAUSE_SECONDS):
                    return

    def _read(self, registry: SkillRegistry) -> None:
        before, now = self._hashes.read(registry.core.reader)
        self.changes += before != now
        self._known = {ref: one for ref, one in self._known.items() if ref not in before} | now

    def stop(self) -> None:
        self._stopped.set()
        self._thread.join()

    def end(self) -> list[str]:
        """Stop, and return what is wrong in the list."""
        self.stop()
        with SkillRegistry.open(self._cluster.url_now, settings=Settings()) as registry:
            self._read(registry)
            _, there = TreeHashes().read(registry.core.reader)
        wrong = sorted(self._known.items() ^ there.items())
        return [f"a follower has missed the change of {ref}" for ref, _ in wrong]
