"""What tests of changes begin with."""

import pytest

from tests.conftest import write_skill


@pytest.fixture
def alpha(registry, root):
    folder = write_skill(root / "alpha")
    registry.sync(str(root), name="mine")
    return folder
