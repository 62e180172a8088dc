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
from dataclasses import replace
from threading import Thread, Timer
from typing import IO, Final
from urllib.parse import urljoin, urlsplit

from registry.errors import RemoteInvalid, RemoteProblem, RemoteTooLarge, RemoteUnreachable
from registry.remotes.address import check_git_url, is_loopback
from registry.remotes.tree import Bounds
from registry.remotes.urls import host_of, port_of, stranger_reason

_KEPT: Final = ("GIT_SSH", "GIT_SSL_", "GIT_CONFIG_", "GIT_PROXY_", "GIT_TRACE", "GIT_EXEC_PATH")
"""Of the variables that git looks at: how it connects, and not where it works."""

_SETTINGS: Final = (
    *("core.hooksPath=/dev/null", "core.fsmonitor=false", "core.askPass="),
    *("submodule.recurse=false", "fetch.recurseSubmodules=false", "credential.interactive=false"),
    *("gc.auto=0", "maintenance.auto=false", "http.followRedirects=false", "advice.detachedHead=0"),
    *("protocol.version=2", "fetch.unpackLimit=1", "fetch.writeCommitGraph=false"),
    *("http.lowSpeedLimit=1024", "http.lowSpeedTime=30"),
)
_SSH: Final = "ssh -oBatchMode=yes -oConnectTimeout=15"
_SERVED: Final = "git -c uploadpack.allowFilter=true upload-pack"
_LIMITED: Final = 'ulimit -f "$0"; ulimit -d "$1"; shift; exec "$@"'
"""No file that git writes may be larger (a pack is refused while it is received), and its memory
is bounded: what a server says of its refs is all held in it. A limit that the user has already may
be lower, and then stays."""

_BLOCK: Final = 512
"""Bytes in which the shell counts the size of a file."""

_MEMORY: Final = 2 << 20
"""Kilobytes of memory that git may take."""

MAX_SAID: Final = 16 << 20
MAX_COMPLAINT: Final = 1 << 16
"""Bytes of what git prints that are read; it goes on, unheard, after so many of a complaint."""

_AWAY: Final = (
    *("could not resolve", "connection refused", "connection timed out", "connection reset"),
    *("network is unreachable", "no route to host", "failed to connect", "operation timed out"),
    *("early eof", "unexpected disconnect", "the remote end hung up", "timed out", "rpc failed"),
    *("couldn't connect", "transfer closed", "operation too slow", "empty reply from server"),
)
_USUAL: Final = (
    "Could not read from remote repository.",
    "Please make sure you have the correct access rights",
    "and the repository exists.",
)
"""What git adds to every complaint."""

_MOVED = re.compile(r"returned error: 30[12378]\b")
_SILENT = re.compile(r"(?i)^(?:fatal|error|remote|warning): *")


class GitProgram:
    """Git on one bare repository of ours, within bounds for all that it does."""

    def __init__(self, url: str, home: str, bounds: Bounds) -> None:
        check_git_url(url, url)
        self.url = url
        self.home = home
        self.bounds = bounds
        self.has_failed = False
        self._is_led = False
        self._deadline = time.monotonic() + bounds.seconds
        schemes = "https:ssh:git:file"
        parts = urlsplit(url)
        # A server on this machine is ours to tell that it may leave out blobs.
        self.served = [f"--upload-pack={_SERVED}"] if parts.scheme == "file" else []
        if parts.scheme in {"git", "http"} and not is_loopback(parts.hostname):
            reason = f"what comes over {parts.scheme} can be changed on its way: use https"
            raise RemoteInvalid(url=url, reason=reason)
        self._settings = [*_SETTINGS]
        if parts.scheme == "http":
            schemes += ":http"
            self._settings.append("http.proxy=")  # a password is for this machine only
        self._environment = _environment(schemes)
        if bounds.anonymous:
            self._settings += ["credential.helper=", "http.emptyAuth=false"]
            self._environment |= _without_netrc()
        if bounds.public:
            self.keep_to_public_hosts()

    def keep_to_public_hosts(self) -> None:
        """Reach the remote only at its host's public addresses, found now.

        Raises `RemoteInvalid`, `RemoteUnreachable`.
        """
        from registry.remotes.http import Client

        parts = urlsplit(self.url)
        if parts.scheme == "https":
            client = Client(self.url, self.bounds)
            if addresses := client.addresses():
                host, port = host_of(parts), port_of(parts)
                self._settings.append(f"http.curloptResolve={host}:{port}:{','.join(addresses)}")
        else:
            reason = stranger_reason("it is not an https address", self.url)
            raise RemoteInvalid(url=self.url, reason=reason)

    def run(
        self,
        *arguments: str,
        given: bytes | None = None,
        at_home: bool = True,
        errors: bool = False,
    ) -> bytes:
        """Run git to its end and return what it printed (``errors``: what it complained of).

        To the remote it is led by the name ``origin``. Raises `RemoteUnreachable`,
        `RemoteInvalid`, `RemoteTooLarge`.
        """
        code, out, said = self._ended(*arguments, given=given, at_home=at_home)
        text = said.decode(errors="replace")
        if code != 0 and _MOVED.search(text) and self._follow():
            code, out, said = self._ended(*arguments, given=given, at_home=at_home)
            text = said.decode(errors="replace")
        if code != 0:
            raise self._failure(code, text)
        return said if errors else out

    def forbid_network(self) -> None:
        """Let git speak no protocol from now on."""
        self._environment["GIT_ALLOW_PROTOCOL"] = "none"

    def code(self, *arguments: str) -> int:
        """Run git to its end and return its exit status."""
        return self._ended(*arguments)[0]

    def _ended(
        self, *arguments: str, given: bytes | None = None, at_home: bool = True
    ) -> tuple[int, bytes, bytes]:
        """Run git to its end and return its exit status, what it printed and complained of."""
        complaint: list[bytes] = []
        with self.running(*arguments, at_home=at_home) as process:
            assert process.stdin and process.stdout and process.stderr  # noqa: PT018, S101
            others = [
                Thread(target=_tell, args=(process.stdin, given or b""), daemon=True),
                Thread(target=_hear, args=(process.stderr, complaint), daemon=True),
            ]
            for one in others:
                one.start()
            out = process.stdout.read(MAX_SAID + 1)
            if len(out) > MAX_SAID:
                reason = f"it says more than {MAX_SAID} bytes of its branches"
                raise RemoteTooLarge(url=self.url, reason=reason)
            process.wait()
            for one in others:
                one.join()
        self.left()
        return process.returncode, out, b"".join(complaint)

    def _follow(self) -> bool:
        """Take the address that the server redirects to, once; False: there is none to be taken.

        Git follows nothing: it would take the user's credentials anywhere. What is on the same
        host, as after a repository got another name, is taken for this time.
        """
        if self._is_led:
            return False
        self._is_led = True
        from io import BytesIO

        from registry.remotes.http import Client

        asked, base = "/info/refs?service=git-upload-pack", self.url.rstrip("/")
        bounds = replace(self.bounds, seconds=min(self.left(), 30.0))
        try:
            got = Client(base, bounds).get(base + asked, BytesIO(), MAX_SAID, {}).url
        except RemoteProblem:
            return False  # what git says of it is the better answer
        found = urljoin(got, got.removesuffix(asked))
        if not got.endswith(asked) or found == base:
            return False
        check_git_url(found, found)
        before, after = urlsplit(base), urlsplit(found)
        if (before.scheme, before.netloc) != (after.scheme, after.netloc):
            reason = f"it has moved to another host: add {found} if that is right"
            raise RemoteInvalid(url=self.url, reason=reason)
        self.url = found
        return True

    def left(self) -> float:
        """Return the seconds that are left. Raises `RemoteUnreachable` where there are none."""
        left = self._deadline - time.monotonic()
        if left <= 0:
            self.has_failed = True
            raise RemoteUnreachable(url=self.url, reason="it takes too long")
        return left

    @contextmanager
    def running(
        self, *arguments: str, at_home: bool = True, heard: bool = True
    ) -> Iterator[subprocess.Popen[bytes]]:
        """Start git, in a session of its own so that nothing below it asks or outlives it.

        ``heard``: what it complains of is of interest; nobody reads it while it runs.
        """
        settings = (*self._settings, f"remote.origin.url={self.url}")
        git = ["git", *(word for one in settings for word in ("-c", one))]
        if at_home:
            git.append(f"--git-dir={self.home}")
        limits = str(self.bounds.bytes // _BLOCK), str(_MEMORY)
        pipe = subprocess.PIPE
        try:
            process = subprocess.Popen(  # noqa: S603  # what is run is checked above
                ["/bin/sh", "-c", _LIMITED, *limits, *git, *arguments],
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
        end = Timer(max(self._deadline - time.monotonic(), 0), _kill, [process])
        end.daemon = True
        _running.add(process)
        try:
            end.start()
            yield process
        finally:
            end.cancel()
            if process.poll() is None:
                _kill(process)
            for stream in (process.stdin, process.stdout, process.stderr):
                if stream is not None:
                    with suppress(OSError):
                        stream.close()
            process.wait()
            _running.discard(process)

    def _failure(self, code: int, said: str) -> Exception:
        self.has_failed = True
        lines = [_SILENT.sub("", line).strip() for line in said.splitlines()]
        told = "; ".join(dict.fromkeys(one for one in lines if one and one not in _USUAL))[:500]
        text = told.lower()
        if code == 127 or "git: not found" in text:  # noqa: PLR2004  # of the shell
            return RemoteInvalid(url=self.url, reason="git is not installed")
        is_cut = text == "fetch-pack: invalid index-pack output"  # it was killed without a word
        if is_cut or code in {-signal.SIGXFSZ, 128 + signal.SIGXFSZ} or "file too large" in text:
            reason = f"it has more than {self.bounds.bytes} bytes"
            return RemoteTooLarge(url=self.url, reason=reason)
        if "dumb http transport" in text:
            reason = "it lies on a plain web server, which gives out no part of a repository: "
            return RemoteInvalid(url=self.url, reason=f"{reason}clone it, and sync the clone")
        if "out of memory" in text:
            return RemoteTooLarge(url=self.url, reason="git would need too much memory for it")
        if any(sign in text for sign in _AWAY):
            return RemoteUnreachable(url=self.url, reason=told)
        return RemoteInvalid(url=self.url, reason=f"git says: {told or f'exit status {code}'}")


_running: set[subprocess.Popen[bytes]] = set()


def interrupt() -> None:
    """End every git that this process waits for."""
    for process in list(_running):
        _kill(process)


def _kill(process: subprocess.Popen[bytes]) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)


def _tell(stream: IO[bytes], data: bytes) -> None:
    with suppress(OSError, ValueError):  # it ended before it was told all
        stream.write(data)
        stream.close()


def _hear(stream: IO[bytes], said: list[bytes]) -> None:
    with suppress(OSError, ValueError):  # it was closed
        said.append(stream.read(MAX_COMPLAINT))
        while stream.read(1 << 16):
            pass


def _without_netrc() -> dict[str, str]:
    """Return the variables that keep git from ``~/.netrc``, and at the user's own settings."""
    home = os.path.expanduser("~")
    settings = os.environ.get("GIT_CONFIG_GLOBAL", os.path.join(home, ".gitconfig"))
    return {
        "HOME": os.devnull,
        "NETRC": os.devnull,
        "GIT_CONFIG_GLOBAL": settings if os.path.exists(settings) else os.devnull,
    }


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
