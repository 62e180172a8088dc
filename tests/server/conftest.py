"""What tests with several machines begin with."""

from contextlib import ExitStack

import pytest

from registry.api import SkillRegistry
from registry.settings import Settings


@pytest.fixture
def machine(server_database):
    """Open the registry as the machine of a name: ``machine("laptop")``."""
    with ExitStack() as stack:

        def open_as(host, **settings):
            opened = SkillRegistry.open(server_database, settings=Settings(host=host, **settings))
            return stack.enter_context(opened)

        yield open_as
