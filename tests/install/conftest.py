"""A library of two skills, and a project into which they are pulled."""

import pytest

from registry.install.targets import InstallTarget
from tests.install.places import Place


@pytest.fixture
def library(registry, root, skill):
    folder = skill("alpha", description="One.")
    (folder / "run").write_text("#!/bin/sh\n")
    (folder / "run").chmod(0o755)
    skill("beta")
    registry.sync(str(root), name="mine")
    return registry


@pytest.fixture
def project(tmp_path):
    folder = tmp_path / "project"
    (folder / ".git").mkdir(parents=True)
    return folder


@pytest.fixture
def place(library, project):
    return Place(library, InstallTarget.project(str(project)))
