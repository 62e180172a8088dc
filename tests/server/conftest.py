"""What tests with several machines, and of several roles, begin with."""

import os
import re
from contextlib import ExitStack, closing

import pytest

from benchmarks.proxy import Proxy
from registry.api import SkillRegistry
from registry.settings import Settings
from tests.conftest import write_skill
from tests.program import run
from tests.server.roles import World


@pytest.fixture
def machine(server_database, tmp_path, monkeypatch):
    """Open the registry as the machine of a name: ``machine("laptop")``.

    ``user``: whose home it is there. ``folder``: where the user works.
    """
    with ExitStack() as stack:

        def open_as(host, user=None, folder=None, **settings):
            if user is not None:
                (tmp_path / user).mkdir(exist_ok=True)
                monkeypatch.setenv("HOME", str(tmp_path / user))
            told = {} if folder is None else {"workdir": tmp_path / folder}
            opened = SkillRegistry.open(
                server_database, settings=Settings(host=host, **settings), **told
            )
            return stack.enter_context(opened)

        yield open_as


@pytest.fixture
def world(databases, tmp_path):
    """A registry of several roles."""
    made = World(databases, tmp_path)
    yield made
    made.close()


@pytest.fixture
def command(world):
    """Run a command as a role."""

    def call(role, *arguments):
        environ = {**os.environ, "SKILL_REGISTRY_HOST": f"{role}-pc"}
        return run(["--db", world.url(role), *arguments], environ=environ)

    return call


@pytest.fixture
def numbered(server_database, root):
    """Fill the source ``mine`` with skills that are told apart by their numbers: ``numbered(9)``."""
    with SkillRegistry.open(server_database, settings=Settings()) as registry:

        def fill(count):
            for number in range(count):
                write_skill(root / f"one-{number}", description=f"Number {number}.")
            registry.sync(str(root), name="mine")
            return registry

        yield fill


@pytest.fixture
def proxy(server_database):
    """A proxy that counts what is waited for."""
    host, port = re.search(r"@([^:/]+):(\d+)/", server_database).groups()
    with closing(Proxy(host, int(port))) as made:
        yield made


@pytest.fixture
def address(proxy, server_database):
    """The address of the database through the proxy."""
    return re.sub(r"@[^/]+/", f"@127.0.0.1:{proxy.port}/", server_database)
