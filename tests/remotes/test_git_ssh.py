"""A git repository over ssh, with a key of the user's."""

import asyncio
import gc
import os
import shlex
import shutil
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from registry.errors import RemoteProblem
from tests.remotes.upstream import PLAIN_GIT, Upstream, all_checkouts, files_of

asyncssh = pytest.importorskip("asyncssh", reason="the development packages bring an ssh server")

pytestmark = [
    pytest.mark.skipif(shutil.which("ssh") is None, reason="there is no ssh"),
    # The server's own library leaves them where a connection ends while it writes.
    pytest.mark.filterwarnings("ignore:coroutine 'Queue.join' was never awaited:RuntimeWarning"),
]


@dataclass
class SshServer:
    """Runs what git asks for; ``speaks``: whether it passes on which protocol git would like."""

    keys: Path
    port: int = 0
    speaks: bool = True
    commands: list[str] = field(default_factory=list)

    async def handle(self, process: "asyncssh.SSHServerProcess[bytes]") -> None:
        self.commands.append(process.command or "")
        told = process.env.get("GIT_PROTOCOL", "") if self.speaks else ""
        allowed = {
            "GIT_CONFIG_COUNT": "1",
            "GIT_CONFIG_KEY_0": "uploadpack.allowFilter",
            "GIT_CONFIG_VALUE_0": str(self.speaks).lower(),
        }
        running = await asyncio.create_subprocess_exec(
            *shlex.split(process.command or "false"),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env={**os.environ, **PLAIN_GIT, **allowed, "GIT_PROTOCOL": told},
        )
        await process.redirect(running.stdin, running.stdout, running.stderr)
        process.exit(await running.wait())

    async def serve(self, ready: threading.Event, end: asyncio.Event) -> None:
        listening = await asyncssh.listen(
            "127.0.0.1",
            0,
            server_host_keys=[str(self.keys / "host")],
            authorized_client_keys=str(self.keys / "user.pub"),
            process_factory=self.handle,
            encoding=None,
        )
        self.port = listening.get_port()
        ready.set()
        await end.wait()
        listening.close()
        await listening.wait_closed()


@pytest.fixture
def ssh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[SshServer]:
    keys = tmp_path / "keys"
    keys.mkdir(0o700)
    for name in ("host", "user", "stranger"):
        made = asyncssh.generate_private_key("ssh-ed25519")
        made.write_private_key(str(keys / name))
        made.write_public_key(str(keys / f"{name}.pub"))
        (keys / name).chmod(0o600)
    server = SshServer(keys)
    ready, loop, end = threading.Event(), asyncio.new_event_loop(), asyncio.Event()
    thread = threading.Thread(target=lambda: loop.run_until_complete(server.serve(ready, end)))
    thread.start()
    assert ready.wait(60)
    host = (keys / "host.pub").read_text()
    (keys / "known").write_text(f"[127.0.0.1]:{server.port} {host}")
    use_key(monkeypatch, keys, "user")
    yield server
    loop.call_soon_threadsafe(end.set)
    thread.join()
    loop.close()
    gc.collect()  # what it leaves is found here, and not in the test of somebody else


def use_key(patch: pytest.MonkeyPatch, keys: Path, name: str, known: str = "known") -> None:
    options = f"-i {keys / name} -o IdentitiesOnly=yes -o UserKnownHostsFile={keys / known}"
    patch.setenv("GIT_SSH_COMMAND", f"ssh -F /dev/null {options}")


def url_of(server: SshServer, upstream: Upstream) -> str:
    return f"ssh://git@127.0.0.1:{server.port}{upstream.bare}"


@pytest.mark.parametrize("speaks", [True, False])
def test_a_repository_over_ssh_is_fetched_and_followed(registry, upstream, ssh, speaks):
    ssh.speaks = speaks
    assert registry.sync(url_of(ssh, upstream)).added == ("alpha", "beta")
    upstream.skill("skills/alpha", description="Newer.")
    upstream.commit()
    assert registry.sync().updated == ("alpha",)
    ssh.commands.clear()
    assert registry.sync().unchanged == 2
    assert len(ssh.commands) == 1
    assert ssh.commands[0].startswith("git-upload-pack ")


def test_a_key_that_the_server_does_not_know_is_refused_and_nobody_is_asked(
    registry, upstream, ssh, monkeypatch
):
    use_key(monkeypatch, ssh.keys, "stranger")
    with pytest.raises(RemoteProblem, match="Permission denied"):
        registry.sync(url_of(ssh, upstream))
    assert all_checkouts() == []


def test_a_server_whose_key_is_not_known_is_refused(registry, upstream, ssh, monkeypatch):
    use_key(monkeypatch, ssh.keys, "user", known="nobody")
    with pytest.raises(RemoteProblem, match="Host key verification failed"):
        registry.sync(url_of(ssh, upstream))
    assert ssh.commands == []


def test_a_server_says_nothing_that_is_kept(registry, upstream, ssh, tmp_path):
    registry.sync(url_of(ssh, upstream))
    key = (ssh.keys / "user").read_bytes().split(b"\n")[2]
    assert not any(key in data for data in files_of(tmp_path / "home").values())
