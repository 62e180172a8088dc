"""Whatever a client sends, it gets an answer, and the server stays up and small."""

import os
import random
import signal
import time

import anyio
import pytest
from mcp.client import Client
from mcp.shared.exceptions import MCPError

from registry.api import SkillRegistry
from registry.settings import Settings
from registry.toolsets.native import TOOLS
from tests import program

NAMES = ["../../etc/passwd", "CON", "", "x" * 10_000, "\u202eabc", "a\0b", "/", "..", "mine/", "-"]
VALUES = [None, True, -1, 10**30, 1.5, "", "x" * 100_000, [], {}, [[[[[]]]]], {"a": {"b": [1]}}]
SECRETS = ("root:", "Traceback", "/home/")


def hostile(rng):
    """Return a tool and arguments: from its schema, with something wrong, or nothing."""
    tool = rng.choice(TOOLS)
    keys = list(tool.parameters["properties"])
    arguments = {}
    for key in rng.sample(keys, rng.randint(0, len(keys))):
        arguments[key] = rng.choice(NAMES) if rng.random() < 0.6 else rng.choice(VALUES)
    if rng.random() < 0.1:
        arguments["unknown"] = 1
    if tool.name == "create_skill" and rng.random() < 0.5:
        arguments.setdefault("files", {rng.choice(NAMES): "x"})
    return (tool.name if rng.random() < 0.95 else rng.choice(NAMES)), arguments


def resident(pid):
    """Return the memory of a process in MiB."""
    with open(f"/proc/{pid}/status") as status:
        return int(status.read().split("VmRSS:")[1].split()[0]) / 1024


@pytest.mark.skipif(not os.path.exists("/proc/self/status"), reason="memory is read from /proc")
def test_hundreds_of_hostile_calls_get_answers_and_the_memory_stays_flat(request, serve, library):
    url, process = serve()
    calls = 1000 if request.config.getoption("--every-step") else 400
    rng = random.Random(4)

    async def main():
        async with Client(url) as client:
            await client.list_tools()
            before = 0.0
            for number in range(calls):
                if number == 200:
                    before = resident(process.pid)
                name, arguments = hostile(rng)
                try:
                    answer = await client.call_tool(name, arguments)
                    text = answer.content[0].text
                except MCPError as error:
                    assert name in NAMES
                    text = error.message
                assert len(text) < 2_000_000
                assert not any(secret in text for secret in SECRETS), (name, arguments, text)
            assert resident(process.pid) - before < 40
            ok = await client.call_tool("read_skill", {"name": "skill-0"})
            assert not ok.is_error

    anyio.run(main)
    assert process.is_alive()


@pytest.mark.both
def test_a_server_killed_in_the_middle_of_a_create_leaves_disk_and_database_in_agreement(
    environment, library, database
):
    for delay in (0.0, 0.01, 0.03, 0.1):
        (their_in, our_in), (our_out, their_out) = os.pipe(), os.pipe()
        process = program.start(["mcp"], environ=environment, streams=(their_in, their_out, 2))
        os.close(their_in)
        os.close(their_out)
        frames = [
            (
                '{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18",'
                '"capabilities":{},"clientInfo":{"name":"t","version":"1"}}}'
            ),
            '{"jsonrpc":"2.0","method":"notifications/initialized"}',
        ]
        frames += [
            f'{{"jsonrpc":"2.0","id":{n + 1},"method":"tools/call","params":{{"name":"create_skill",'
            f'"arguments":{{"name":"made-{int(delay * 100)}-{n}","description":"D.",'
            '"files":{"a/b.txt":"x"}}}}'
            for n in range(20)
        ]
        with open(our_in, "wb") as asked, open(our_out, "rb") as answers:
            asked.write("\n".join(frames).encode() + b"\n")
            asked.flush()
            answers.readline()
            answers.readline()
            time.sleep(delay)
            process.kill()
            process.join()
            assert process.exitcode == -signal.SIGKILL
        with SkillRegistry.open(database, settings=Settings()) as registry:
            assert registry.check_database() == []
            report = registry.sync(verify=True)
            assert (report.added, report.updated, report.removed) == ((), (), ())
            made = {skill.name for skill in registry.list() if skill.name.startswith("made-")}
            on_disk = {path.name for path in library.iterdir() if path.name.startswith("made-")}
            assert made == on_disk
            assert made
