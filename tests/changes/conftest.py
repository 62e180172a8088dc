"""What tests of changes begin with."""

import pytest

from registry.disk import atomic
from tests.conftest import write_skill


@pytest.fixture
def alpha(registry, root):
    folder = write_skill(root / "alpha")
    registry.sync(str(root), name="mine")
    return folder


@pytest.fixture(params=["exchange", "two renames"])
def swap(request, monkeypatch):
    """An update swaps with the system call for it, and without."""
    if request.param == "two renames":
        monkeypatch.setattr(atomic, "renameat2", lambda: None)
    return request.param
