"""One SQLite catalogue over all your agent skills, in step with the folders on disk."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from registry.api import SkillRegistry
    from registry.db.queries.filters import Filters
    from registry.errors import RegistryError
    from registry.settings import Settings

__version__ = "0.1.0"

__all__ = ["Filters", "RegistryError", "Settings", "SkillRegistry", "__version__"]


def __getattr__(name: str) -> object:
    """Import what the package offers when it is first asked for: ``--version`` needs none of it."""
    if name not in __all__:
        raise AttributeError(f"module 'registry' has no attribute {name!r}")
    from registry import api, errors

    return getattr(errors if name == "RegistryError" else api, name)
