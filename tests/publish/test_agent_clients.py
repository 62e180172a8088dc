"""Agents' own clients install, update and pin skills from the git remote; the real programs run."""

import shutil

import pytest

from tests import agent_clients


@pytest.mark.file
@pytest.mark.parametrize("name", agent_clients.TRIALS)
def test_the_unmodified_client_logs_in_installs_updates_and_pins(name, tmp_path):
    if not agent_clients.is_installed(name):
        has_npm = shutil.which("npm") is not None
        pytest.skip("`make clients` installs it" if has_npm else "there is no npm to install it")
    assert agent_clients.TRIALS[name](tmp_path) == agent_clients.EXPECTED[name]
