"""Run the system's git for a remote that may be hostile.

Git brings credentials, ssh and proxies. Protocols are limited, no hook or helper of a repository
runs, nothing asks a person, bytes and time are bounded.
"""

import os
import re
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Final
from urllib.parse import urlsplit

from registry.errors import RemoteInvalid, RemoteTooLarge, RemoteUnreachable
from registry.exchange.remote.address import check_git_url, is_loopback
from registry.exchange.remote.tree import Bounds

_KEPT: Final = ("GIT_SSH", "GIT_SSL_", "GIT_CONFIG_", "GIT_PROXY_", "GIT_TRACE", "GIT_EXEC_PATH")
"""Of the variables that git looks at: how it connects, and not where it works."""

_SETTINGS: Final = (
    *("core.hooksPath=/dev/null", "core.fsmonitor=false", "core.askPass="),
    *("submodule.recurse=false", "fetch.recurseSubmodules=false", "credential.interactive=false"),
    *("gc.auto=0", "maintenance.auto=false", "http.followRedirects=false", "advice.detachedHead=0"),
    "protocol.version=2",
)
_SSH: Final = "ssh -oBatchMode=yes -oConnectTimeout=15"
_SERVED: Final = "git -c uploadpack.allowFilter=true upload-pack"
_BLOCK: Final = 512
"""Bytes in which the shell counts the size of a file."""

_AWAY: Final = (
    *("could not resolve", "connection refused", "connection timed out", "connection reset"),
    *("network is unreachable", "no route to host", "failed to connect", "operation timed out"),
    *("early eof", "unexpected disconnect", "the remote end hung up", "timed out", "rpc failed"),
    "couldn't connect",
)
_USUAL: Final = (
    "Could not read from remote repository.",
    "Please make sure you have the correct access rights",
    "and the repository exists.",
)
"""What git adds to every complaint."""

_SILENT = re.compile(r"(?i)^(?:fatal|error|remote|warning): *")


class GitProgram:
    """Git on one bare repository of ours, within bounds for all that it does."""

    def __init__(self, url: str, home: str, bounds: Bounds) -> None:
        check_git_url(url, url)
        self.url = url
        self.home = home
        self.bounds = bounds
        self._deadline = time.monotonic() + bounds.seconds
        schemes = "https:ssh:git:file"
        parts = urlsplit(url)
        # A server on this machine is ours to tell that it may leave out blobs.
        self.served = [f"--upload-pack={_SERVED}"] if parts.scheme == "file" else []
        if parts.scheme == "http":
            if not is_loopback(parts.hostname):
                reason = "what comes over http can be changed on its way: use https"
                raise RemoteInvalid(url=url, reason=reason)
            schemes += ":http"
        self._environment = _environment(schemes)

    def run(
        self,
        *arguments: str,
        given: bytes | None = None,
        at_home: bool = True,
        errors: bool = False,
    ) -> bytes:
        """Run git to its end and return what it printed (``errors``: what it complained of).

        Raises `RemoteUnreachable`, `RemoteInvalid`, `RemoteTooLarge`.
        """
        with self.running(*arguments, at_home=at_home) as process:
            try:
                out, said = process.communicate(given, timeout=self.left())
            except subprocess.TimeoutExpired:
                raise RemoteUnreachable(url=self.url, reason="it takes too long") from None
        if process.returncode != 0:
            raise self._failure(process.returncode, said.decode(errors="replace"))
        return said if errors else out

    def code(self, *arguments: str) -> int:
        """Run git to its end and return its exit status."""
        with self.running(*arguments) as process:
            process.communicate(timeout=self.left())
        return process.returncode

    def left(self) -> float:
        """Return the seconds that are left. Raises `RemoteUnreachable` where there are none."""
        left = self._deadline - time.monotonic()
        if left <= 0:
            raise RemoteUnreachable(url=self.url, reason="it takes too long")
        return left

    @contextmanager
    def running(
        self, *arguments: str, at_home: bool = True, heard: bool = True
    ) -> Iterator[subprocess.Popen[bytes]]:
        """Start git, in a session of its own so that nothing below it asks or outlives it.

        ``heard``: what it complains of is of interest; nobody reads it while it runs.
        """
        git = ["git", *(word for one in _SETTINGS for word in ("-c", one))]
        if at_home:
            git.append(f"--git-dir={self.home}")
        # No file that git writes may be larger: a pack is refused while it is received.
        limited = [
            "/bin/sh",
            "-c",
            'ulimit -f "$0" && exec "$@"',
            str(self.bounds.bytes // _BLOCK),
        ]
        pipe = subprocess.PIPE
        try:
            process = subprocess.Popen(  # noqa: S603  # what is run is checked above
                [*limited, *git, *arguments],
                stdin=pipe,
                stdout=pipe,
                stderr=pipe if heard else subprocess.DEVNULL,
                env=self._environment,
                cwd="/",
                start_new_session=True,
            )
        except OSError as error:
            raise RemoteInvalid(
                url=self.url, reason=f"git can't be run: {error.strerror}"
            ) from error
        try:
            yield process
        finally:
            if process.poll() is None:
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
            for stream in (process.stdin, process.stdout, process.stderr):
                if stream is not None:
                    with suppress(OSError):
                        stream.close()
            process.wait()

    def _failure(self, code: int, said: str) -> Exception:
        lines = [_SILENT.sub("", line).strip() for line in said.splitlines()]
        told = "; ".join(dict.fromkeys(one for one in lines if one and one not in _USUAL))[:500]
        text = told.lower()
        if code == 127 or "git: not found" in text:  # noqa: PLR2004  # of the shell
            return RemoteInvalid(url=self.url, reason="git is not installed")
        if code in {-signal.SIGXFSZ, 128 + signal.SIGXFSZ} or "file too large" in text:
            reason = f"it has more than {self.bounds.bytes} bytes"
            return RemoteTooLarge(url=self.url, reason=reason)
        if any(sign in text for sign in _AWAY):
            return RemoteUnreachable(url=self.url, reason=told)
        return RemoteInvalid(url=self.url, reason=f"git says: {told or f'exit status {code}'}")


def _environment(schemes: str) -> dict[str, str]:
    """Return the variables for git: how the user connects, and nothing that may ask."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("GIT_") or name.startswith(_KEPT)
    }
    kept.pop("GIT_CONFIG_PARAMETERS", None)
    ssh = kept.get("GIT_SSH_COMMAND") or (None if "GIT_SSH" in kept else _SSH)
    if ssh is not None:
        kept["GIT_SSH_COMMAND"] = ssh if "BatchMode" in ssh else f"{ssh} -oBatchMode=yes"
    return kept | {
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_ASKPASS": "",
        "SSH_ASKPASS": "",
        "SSH_ASKPASS_REQUIRE": "never",
        "GIT_ALLOW_PROTOCOL": schemes,
        "GIT_LFS_SKIP_SMUDGE": "1",
        "GIT_LITERAL_PATHSPECS": "1",
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_NO_REPLACE_OBJECTS": "1",
        "GIT_NO_LAZY_FETCH": "1",
        "LC_ALL": "C",
    }
