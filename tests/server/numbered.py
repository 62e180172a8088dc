"""A library of many skills that are told apart by their numbers."""

from contextlib import contextmanager

from registry import SkillRegistry
from registry.settings import Settings
from tests.conftest import write_skill


@contextmanager
def numbered(database, root, count):
    """Open a registry with so many skills in the source ``mine``."""
    for number in range(count):
        write_skill(root / f"one-{number}", description=f"Number {number}.")
    with SkillRegistry.open(database, settings=Settings()) as registry:
        registry.sync(str(root), name="mine")
        yield registry
