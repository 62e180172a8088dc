"""What one run of the program works with: its streams, its options, its registry."""

import os
from functools import cached_property
from typing import TYPE_CHECKING

from registry.cli.console import Console

if TYPE_CHECKING:
    from registry.service import SkillRegistry


class Session:
    """Opens the registry when a command first needs it."""

    def __init__(self, console: Console | None = None) -> None:
        self.console = console or Console()
        self.db: str | None = None
        self.config: str | None = None
        self.verbose = False

    @cached_property
    def registry(self) -> "SkillRegistry":
        """The registry that the global options mean. Raises `RegistryError`."""
        from pathlib import Path

        from registry.service import SkillRegistry
        from registry.settings import load_settings

        path = Path(os.path.expanduser(self.config)) if self.config else None
        return SkillRegistry.open(self.db, settings=load_settings(path))

    def close(self) -> None:
        """Close the registry, if it was opened."""
        if "registry" in self.__dict__:
            self.registry.close()
