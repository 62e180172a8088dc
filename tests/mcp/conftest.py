"""Servers as processes of their own, and the official client to speak to them."""

import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import anyio
import pytest
from mcp.client import Client
from mcp.client.stdio import StdioServerParameters

REPOSITORY = Path(__file__).resolve().parents[2]
WAYS = [(transport, mode) for transport in ("stdio", "http") for mode in ("legacy", "auto")]


@pytest.fixture
def library(registry, root, skill):
    """A dozen skills, with all that is special about some of them."""
    for number in range(6):
        skill(f"skill-{number}", description=f"Number {number}.")
    folder = skill("pdf-forms", description="Fill PDF forms.", body="# Forms\n")
    (folder / "scripts").mkdir()
    (folder / "scripts" / "fill.py").write_text("print(1)\n")
    (folder / "logo.png").write_bytes(bytes(range(256)))
    skill("folder-of-another-name", name="other-name")
    skill("outer")
    skill("outer/inner")
    skill(
        "typed",
        extra="metadata:\n  version: 1.10\n  when: 2026-01-02\n  on: yes\n  n: 3\n  x: null\n",
    )
    skill("secret", extra="disable-model-invocation: true\n")
    (root / "broken").mkdir()
    (root / "broken" / "SKILL.md").write_bytes(b"\xff")
    registry.sync(str(root), name="mine")
    return root


@pytest.fixture
def environment(database, tmp_path):
    return {
        **os.environ,
        "SKILL_REGISTRY_DB": str(database),
        "PYTHONPATH": str(REPOSITORY),
        "HOME": str(tmp_path / "home"),
    }


@pytest.fixture
def serve(environment):
    """Start an HTTP server on a free port; return its URL and process."""
    started = []

    def start(*arguments, host="127.0.0.1", **more):
        with socket.socket() as probe:
            probe.bind((host, 0))
            port = probe.getsockname()[1]
        process = subprocess.Popen(
            [sys.executable, "-m", "registry", "mcp", "--http", f"{host}:{port}", *arguments],
            env={**environment, **more},
            stderr=subprocess.PIPE,
            text=True,
        )
        started.append(process)
        assert process.stderr is not None
        line = process.stderr.readline()
        assert line.startswith("Serving http://"), line
        return f"http://{host}:{port}/mcp", process

    yield start
    for process in started:
        process.terminate()
        process.wait(10)
        process.stderr.close()


@pytest.fixture
def talk(environment, serve):
    """Run ``conversation(client)`` with a server: ``talk(conversation, way, "--read-only")``."""

    def run(conversation: Callable, way=("stdio", "auto"), *arguments, handler=None):
        transport, mode = way
        server = (
            StdioServerParameters(
                command=sys.executable,
                args=["-m", "registry", "mcp", *arguments],
                env=environment,
            )
            if transport == "stdio"
            else serve(*arguments)[0]
        )

        async def main():
            with anyio.fail_after(30):
                async with Client(server, mode=mode, message_handler=handler) as client:
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
        metafunc.parametrize("way", WAYS, ids=["-".join(way) for way in WAYS], indirect=True)


async def until(condition, seconds=5.0):
    """Wait until a condition holds."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        await anyio.sleep(0.02)
