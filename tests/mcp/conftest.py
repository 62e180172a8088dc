"""Servers as processes of their own, and the official client to speak to them."""

import socket
from collections.abc import Callable
from contextlib import contextmanager

import anyio
import pytest
from mcp.client import Client
from mcp.client.stdio import StdioServerParameters

from tests import program
from tests.conftest import keep_library, only_reads, write_skill

MODES = ("legacy", "auto")
WAYS = [(transport, mode) for transport in ("stdio", "http") for mode in MODES]

APART = [("stdio", "legacy"), ("http", "auto")]
"""Ways that have nothing in common: on a server these will do, since all lead to the same tools."""


def fill(root):
    """Write a dozen skills, with all that is special about some of them."""
    for number in range(6):
        write_skill(root / f"skill-{number}", description=f"Number {number}.")
    folder = write_skill(root / "pdf-forms", description="Fill PDF forms.", body="# Forms\n")
    (folder / "scripts").mkdir()
    (folder / "scripts" / "fill.py").write_text("print(1)\n")
    (folder / "logo.png").write_bytes(bytes(range(256)))
    write_skill(root / "folder-of-another-name", name="other-name")
    write_skill(root / "outer")
    write_skill(root / "outer" / "inner")
    write_skill(
        root / "typed",
        extra="metadata:\n  version: 1.10\n  when: 2026-01-02\n  on: yes\n  n: 3\n  x: null\n",
    )
    write_skill(root / "secret", extra="disable-model-invocation: true\n")
    (root / "broken").mkdir()
    (root / "broken" / "SKILL.md").write_bytes(b"\xff")


@pytest.fixture(scope="module")
def kept(new_database, tmp_path_factory):
    """The library of a module that only reads."""
    return keep_library(new_database(), tmp_path_factory.mktemp("kept"), fill)


@pytest.fixture
def library(request):
    """A dozen skills, with all that is special about some of them."""
    if only_reads(request):
        return request.getfixturevalue("kept").root
    root = request.getfixturevalue("root")
    fill(root)
    request.getfixturevalue("registry").sync(str(root), name="mine")
    return root


@pytest.fixture
def environment(database, tmp_path):
    return program.environment(database, tmp_path / "home")


@contextmanager
def servers(environment):
    """Start HTTP servers on free ports: ``start(arguments…)`` returns a URL and the process.

    ``face``: `mcp`, or the catalogue that answers beside its pages, `serve`.
    """
    started = []

    def start(*arguments, host="127.0.0.1", face="mcp", **more):
        with socket.socket() as probe:
            probe.bind((host, 0))
            port = probe.getsockname()[1]
        where = (
            ["--http", f"{host}:{port}"] if face == "mcp" else ["--host", host, "--port", str(port)]
        )
        process, said = program.serve(
            [face, *where, *arguments], {**environment, **more}, "Serving http://"
        )
        started.append((process, said))
        return f"http://{host}:{port}/mcp", process

    try:
        yield start
    finally:
        for process, _ in started:
            process.terminate()
        for process, said in started:
            process.join(10)
            process.kill()
            process.join()
            said.close()


@pytest.fixture
def serve(environment):
    """Start an HTTP server on a free port; return its URL and process."""
    with servers(environment) as start:
        yield start


@pytest.fixture(scope="module")
def kept_url(kept):
    """The URL of the server of a module that only reads."""
    with servers(program.environment(kept.database, kept.root.parent)) as start:
        yield start()[0]


@pytest.fixture
def stdio():
    """The command of a server that a client starts."""
    with program.command() as command:
        yield command


@pytest.fixture
def talk(request, environment, serve, stdio):
    """Run ``conversation(client)`` with a server: ``talk(conversation, way, "--read-only")``.

    The server is one of its own, or that of a module that only reads, where that will do.
    """

    def run(conversation: Callable, way=("http", "auto"), *arguments, handler=None, **more):
        transport, mode = way
        if transport == "stdio":
            server = StdioServerParameters(
                command=stdio[0], args=[*stdio[1:], "mcp", *arguments], env=environment
            )
        elif only_reads(request) and not arguments:
            server = request.getfixturevalue("kept_url")
        else:
            server = serve(*arguments)[0]

        async def main():
            with anyio.fail_after(120):
                async with Client(server, mode=mode, message_handler=handler, **more) as client:
                    return await conversation(client)

        try:
            return anyio.run(main)
        except BaseExceptionGroup as group:
            error = group
            while isinstance(error, BaseExceptionGroup):
                error = error.exceptions[0]
            raise error from None

    return run


@pytest.fixture
def way(request):
    return request.param


def pytest_generate_tests(metafunc):
    if "way" in metafunc.fixturenames:
        ways = [
            pytest.param(way, id="-".join(way), marks=[] if way in APART else pytest.mark.file)
            for way in WAYS
        ]
        metafunc.parametrize("way", ways, indirect=True)
    if "mode" in metafunc.fixturenames:
        metafunc.parametrize("mode", MODES)


async def until_told(change, condition):
    """Make changes until a condition holds: what comes before a server listens is not told."""
    patience = 0.5
    with anyio.fail_after(100):
        while not condition():
            change()
            with anyio.move_on_after(patience):
                while not condition():  # noqa: ASYNC110  # anything may make it hold
                    await anyio.sleep(0.02)
            patience = min(2 * patience, 4)  # on a busy machine it may take long
