"""Read the files of a git repository with the installed git, but without a git checkout.

Git provides credentials, ssh and proxies. It fetches commits, trees and the blobs of skills into a
bare repository of this program. Git never writes files of the remote repository to disk. So no
hook, filter, link or attribute of that repository has an effect.

The server or the address may be hostile. So only some protocols are allowed, git never prompts, and
bytes and time are limited.
"""

import hashlib
import os
import re
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from threading import Thread, Timer
from typing import IO, Final
from urllib.parse import urljoin, urlsplit

from registry.errors import (
    RemoteInvalid,
    RemoteProblem,
    RemoteRefused,
    RemoteTooLarge,
    RemoteUnreachable,
)
from registry.remotes.address import check_git_url, host_of, is_loopback, port_of, stranger_reason
from registry.remotes.snapshot import Blob, FetchLimits, Paths, SkippedFiles, Snapshot, below

_KEPT: Final = ("GIT_SSH", "GIT_SSL_", "GIT_CONFIG_", "GIT_PROXY_", "GIT_TRACE", "GIT_EXEC_PATH")
"""Prefixes of environment variables that are passed to git.

These variables are about connections, not about working folders.
"""

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
"""Shell command that limits git's memory and the size of its files, and then starts git.

Git stores all refs of a server in memory. It refuses a pack that is too large while it receives the
pack. If the user's limit is already lower, it stays.
"""

_BLOCK: Final = 512
"""The shell's unit for file sizes, in bytes."""

_MEMORY: Final = 2 << 20
"""Maximum memory for git, in kilobytes."""

MAX_SAID: Final = 16 << 20
MAX_COMPLAINT: Final = 1 << 16
"""Maximum size of git's error output in memory, in bytes.

The rest is read and discarded, because otherwise git would wait.
"""

_AWAY: Final = (
    *("could not resolve", "connection refused", "connection timed out", "connection reset"),
    *("network is unreachable", "no route to host", "failed to connect", "operation timed out"),
    *("early eof", "unexpected disconnect", "the remote end hung up", "timed out", "rpc failed"),
    *("couldn't connect", "transfer closed", "operation too slow", "empty reply from server"),
)
_REFUSED: Final = ("could not read username", "authentication failed for 'http")
"""Parts of git's messages if a server asks for a login, and git has none that it accepts."""

UNAUTHORIZED: Final = 401
_USUAL: Final = (
    "Could not read from remote repository.",
    "Please make sure you have the correct access rights",
    "and the repository exists.",
)
"""Lines that git adds to many errors; they don't describe the error."""

_MOVED = re.compile(r"returned error: 30[12378]\b")
_SILENT = re.compile(r"(?i)^(?:fatal|error|remote|warning): *")


_running: set[subprocess.Popen[bytes]] = set()


def interrupt() -> None:
    """Kill every git process that this process waits for."""
    for process in list(_running):
        _kill(process)


def _kill(process: subprocess.Popen[bytes]) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)


def _tell(stream: IO[bytes], data: bytes) -> None:
    with suppress(OSError, ValueError):  # git may end before it has read all of its input
        stream.write(data)
        stream.close()


def _hear(stream: IO[bytes], said: list[bytes]) -> None:
    with suppress(OSError, ValueError):  # the stream may be closed already
        said.append(stream.read(MAX_COMPLAINT))
        while stream.read(1 << 16):
            pass


def _without_netrc() -> dict[str, str]:
    """Return environment variables that make git ignore ``~/.netrc``.

    Git still uses the user's git settings.
    """
    home = os.path.expanduser("~")
    settings = os.environ.get("GIT_CONFIG_GLOBAL", os.path.join(home, ".gitconfig"))
    return {
        "HOME": os.devnull,
        "NETRC": os.devnull,
        "GIT_CONFIG_GLOBAL": settings if os.path.exists(settings) else os.devnull,
    }


def _with_token(url: str, environment: Mapping[str, str]) -> dict[str, str]:
    """Return environment variables with which git sends the user's token to its own registry.

    Other users could read an argument of git, but not its environment.
    """
    from registry.remotes.http import own_token

    token, parts = own_token(url), urlsplit(url)
    if token is None:
        return {}
    count = environment.get("GIT_CONFIG_COUNT", "0")
    number = int(count) if count.isascii() and count.isdecimal() else 0
    return {
        "GIT_CONFIG_COUNT": str(number + 1),
        f"GIT_CONFIG_KEY_{number}": f"http.{parts.scheme}://{parts.netloc}/.extraHeader",
        f"GIT_CONFIG_VALUE_{number}": f"Authorization: Bearer {token}",
    }


def _environment(schemes: str) -> dict[str, str]:
    """Return the environment for git: the user's connection settings, and no prompts."""
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


COMMIT: Final = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
SHA256: Final = 64
"""Number of hexadecimal digits of a commit in a repository that uses SHA-256."""

TAG: Final = "tag"
BRANCH: Final = "branch"
_TAGS: Final = "refs/tags/"

SEEN: Final = "refs/registry/seen"
"""Prefix of refs in the bare repository; each points to the commit that was read last.

Each requested ref of the remote repository has one.
"""

MAX_LISTED: Final = 1_000_000
"""Maximum number of files in a commit."""

LOOKED_BACK: Final = 50
"""Maximum number of commits that are searched for the previous commit.

This search is needed if the times of commits are wrong.
"""

MAX_PACKS: Final = 50
"""Number of fetches after which the whole repository is fetched again.

Each fetch adds two packs.
"""

_DAY: Final = 86_400


@contextmanager
def open_git(
    url: str,
    ref: str | None,
    state: str,
    known: str | None,
    bounds: FetchLimits,
    *,
    part: str | None = None,
    commit: str | None = None,
) -> Iterator[Snapshot | None]:
    """Open a repository at ``ref``, or at its default branch if ``ref`` is None.

    ``commit`` is the current commit of the ref; if it is None, a request to the server returns it.
    Yields None if this commit equals ``known``. If ``part`` is given, only this folder is read.
    Raises `RemoteProblem`.
    """
    git = Git(url, os.path.join(state, "busy"), bounds)
    commit = commit or git.find(ref)
    if commit == known:
        yield None
        return
    rest = os.path.join(state, "git")
    git.begin(rest if known is not None else None, commit)
    try:
        seen = f"{SEEN}/{hashlib.sha256((ref or '').encode()).hexdigest()}"
        before = git.at(f"{seen}^{{commit}}") if known is not None else None
        notices: list[str] = []
        if not git.fetch(commit, before) and not git.are_first(before, commit):
            notices.append(f"its history was rewritten: it no longer contains {before}")
        files, made_at = git.listed(commit, notices, part)
        yield Snapshot(commit, made_at, files, notices, partial(git.read, files))
        git.run("update-ref", seen, commit)
    finally:  # the next fetch compares with this commit, even if this fetch is refused
        git.end(rest)


def is_changed(url: str, part: str, before: str, now: str, bounds: FetchLimits) -> bool:
    """Tell whether a folder of a repository differs between two commits.

    The result is also True if the commits can't be compared.
    """
    if not COMMIT.fullmatch(before) or not COMMIT.fullmatch(now):
        return True
    with tempfile.TemporaryDirectory(prefix="skill-registry-") as state, suppress(RemoteProblem):
        git = Git(url, os.path.join(state, "git"), bounds)
        git.begin(None, now)
        git.fetch(before, None)
        git.fetch(now, None)
        was = git.at(f"{before}:{part}")
        return was is None or was != git.at(f"{now}:{part}")
    return True


def _tags_in(listed: Mapping[str, str]) -> dict[str, str]:
    """Return the commits of the tags among refs, by the tags' names."""
    return {  # the commit of an annotated tag comes after the tag
        name.removeprefix(_TAGS).removesuffix("^{}"): commit
        for name, commit in listed.items()
        if name.startswith(_TAGS)
    }


class Git:
    """Runs git with limits in a bare repository, and fetches from a remote repository into it."""

    _partial = True

    def __init__(self, url: str, home: str, bounds: FetchLimits) -> None:
        check_git_url(url, url)
        self.url = url
        self.home = home
        self.bounds = bounds
        self.has_failed = False
        self._is_led = False
        self._deadline = time.monotonic() + bounds.seconds
        schemes = "https:ssh:git:file"
        parts = urlsplit(url)
        # For a repository on this machine, this program starts git's server, with the permission to
        # omit blobs.
        self.served = [f"--upload-pack={_SERVED}"] if parts.scheme == "file" else []
        if parts.scheme in {"git", "http"} and not is_loopback(parts.hostname):
            reason = f"{parts.scheme} does not protect files in transit: use https"
            raise RemoteInvalid(url=url, reason=reason)
        self._settings = [*_SETTINGS]
        if parts.scheme == "http":
            schemes += ":http"
            # With plain http, a proxy could read passwords.
            self._settings.append("http.proxy=")
        self._environment = _environment(schemes)
        if bounds.anonymous:
            self._settings += ["credential.helper=", "http.emptyAuth=false"]
            self._environment |= _without_netrc()
        elif parts.scheme in {"http", "https"}:
            self._environment |= _with_token(url, self._environment)
        if bounds.public:
            self.keep_to_public_hosts()

    def keep_to_public_hosts(self) -> None:
        """Limit connections to the remote's public IP addresses. Raises `RemoteProblem`."""
        from registry.remotes.http import HttpClient

        parts = urlsplit(self.url)
        if parts.scheme == "https":
            client = HttpClient(self.url, self.bounds)
            if addresses := client.addresses():
                host, port = host_of(parts), port_of(parts)
                self._settings.append(f"http.curloptResolve={host}:{port}:{','.join(addresses)}")
        else:
            reason = stranger_reason("it is not an https address", self.bounds.named or self.url)
            raise RemoteInvalid(url=self.url, reason=reason)

    def run(
        self,
        *arguments: str,
        given: bytes | None = None,
        at_home: bool = True,
        errors: bool = False,
    ) -> bytes:
        """Run git until it ends, and return its output.

        If ``errors``, return git's error output instead. Raises `RemoteProblem`.
        """
        code, out, said = self._ended(*arguments, given=given, at_home=at_home)
        text = said.decode(errors="replace")
        if code != 0 and _MOVED.search(text) and self._follow():
            code, out, said = self._ended(*arguments, given=given, at_home=at_home)
            text = said.decode(errors="replace")
        if code != 0:
            raise self._failure(code, text)
        return said if errors else out

    def _ended(
        self, *arguments: str, given: bytes | None = None, at_home: bool = True
    ) -> tuple[int, bytes, bytes]:
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
                reason = f"its list of branches has more than {MAX_SAID} bytes"
                raise RemoteTooLarge(url=self.url, reason=reason)
            process.wait()
            for one in others:
                one.join()
        self.left()
        return process.returncode, out, b"".join(complaint)

    def _follow(self) -> bool:
        """Use the address to which the server redirects, at most once.

        Returns False if there is no redirect to follow. Git would send the user's credentials to
        any host, so this method follows only a redirect on the same host.
        """
        if self._is_led:
            return False
        self._is_led = True
        from io import BytesIO

        from registry.remotes.http import HttpClient

        asked, base = "/info/refs?service=git-upload-pack", self.url.rstrip("/")
        bounds = replace(self.bounds, seconds=min(self.left(), 30.0))
        try:
            got = HttpClient(base, bounds).get(base + asked, BytesIO(), MAX_SAID, {}).url
        except RemoteProblem:
            return False  # report git's own error, because it is more precise
        found = urljoin(got, got.removesuffix(asked))
        if not got.endswith(asked) or found == base:
            return False
        check_git_url(found, found)
        before, after = urlsplit(base), urlsplit(found)
        if (before.scheme, before.netloc) != (after.scheme, after.netloc):
            reason = f"it has moved to another host; to follow it, add {found}"
            raise RemoteInvalid(url=self.url, reason=reason)
        self.url = found
        return True

    def left(self) -> float:
        """Return how many seconds are left for the fetch.

        Raises `RemoteUnreachable` if none are left.
        """
        left = self._deadline - time.monotonic()
        if left <= 0:
            self.has_failed = True
            raise RemoteUnreachable(url=self.url, reason="it takes too long")
        return left

    @contextmanager
    def running(
        self, *arguments: str, at_home: bool = True, heard: bool = True
    ) -> Iterator[subprocess.Popen[bytes]]:
        """Start git in a separate session, so that no child of git prompts or outlives git.

        If ``heard``, capture git's error output. This method doesn't read the error output while
        git runs.
        """
        settings = (*self._settings, f"remote.origin.url={self.url}")
        git = ["git", *(word for one in settings for word in ("-c", one))]
        if at_home:
            git.append(f"--git-dir={self.home}")
        limits = str(self.bounds.bytes // _BLOCK), str(_MEMORY)
        pipe = subprocess.PIPE
        try:
            process = subprocess.Popen(  # noqa: S603  # the caller checks the arguments
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
        # the shell returns this status if git is missing
        if code == 127 or "git: not found" in text:  # noqa: PLR2004
            return RemoteInvalid(url=self.url, reason="git is not installed")
        # the pack was too large, so the system killed git without a message
        is_cut = text == "fetch-pack: invalid index-pack output"
        is_cut |= code in {-signal.SIGXFSZ, 128 + signal.SIGXFSZ} or "file too large" in text
        if is_cut or "out of memory" in text:
            reason = f"it has more than {self.bounds.bytes} bytes"
            reason = reason if is_cut else "git would need too much memory for it"
            return RemoteTooLarge(url=self.url, reason=reason)
        if any(sign in text for sign in _REFUSED):
            return RemoteRefused(url=self.url, status=UNAUTHORIZED)
        if "dumb http transport" in text:
            reason = "it is on a plain web server, which can't serve parts of a repository: "
            return RemoteInvalid(url=self.url, reason=f"{reason}clone it, and sync the clone")
        if any(sign in text for sign in _AWAY):
            return RemoteUnreachable(url=self.url, reason=told)
        return RemoteInvalid(url=self.url, reason=f"git reports: {told or f'exit status {code}'}")

    def find(self, ref: str | None) -> str:
        """Return the commit to which a ref of the remote repository points now.

        If a tag and a branch have the same name, the tag counts.
        """
        if ref is None:
            commit = self._listed("HEAD").get("HEAD")
            if commit is None:
                reason = "it is empty or has no default branch; name a branch with #NAME"
                raise RemoteInvalid(url=self.url, reason=reason)
            return commit
        return ref if COMMIT.fullmatch(ref) else next(iter(self.refs(ref).values()))

    def refs(self, ref: str) -> dict[str, str]:
        """Return the commits of the tag and of the branch with this name, by kind, the tag first.

        Raises `RemoteInvalid` if the remote repository has neither.
        """
        return self.refs_and_tags(ref)[0]

    def refs_and_tags(
        self, ref: str, prefix: str | None = None
    ) -> tuple[dict[str, str], list[str]]:
        """Return `refs`, and the names of the tags with a prefix; send one request."""
        names = {f"refs/tags/{ref}^{{}}": TAG, f"refs/tags/{ref}": TAG, f"refs/heads/{ref}": BRANCH}
        names[ref] = TAG if ref.startswith("refs/tags/") else BRANCH
        listed = self._listed(*names, *([] if prefix is None else [f"{_TAGS}{prefix}*"]))
        found: dict[str, str] = {}
        for name, kind in names.items():
            if name in listed:
                found.setdefault(kind, listed[name])
        if not found:
            reason = f"it has no branch, tag or commit {ref}"
            if re.fullmatch("[0-9a-f]{4,39}", ref):
                reason += " (give all digits of a commit)"
            raise RemoteInvalid(url=self.url, reason=reason)
        return found, list(_tags_in(listed))

    def tags(self) -> dict[str, str]:
        """Return the commits of all tags of the remote repository, by name; send one request."""
        return _tags_in(self._listed(f"{_TAGS}*"))

    def _listed(self, *patterns: str) -> dict[str, str]:
        """Return the commits of the refs of the remote repository that match; send one request."""
        said = self.run("ls-remote", "--quiet", "--", "origin", *patterns, at_home=False)
        found: dict[str, str] = {}
        for line in said.decode(errors="replace").split("\n"):
            commit, _, name = line.partition("\t")
            if COMMIT.fullmatch(commit):
                found[name] = commit
        return found

    def begin(self, rest: str | None, commit: str) -> None:
        """Move the bare repository from ``rest`` to its path for use, or create a new repository.

        ``commit`` determines the hash format of a new repository. A repository in use has another
        path, because a killed process may leave locks or incomplete packs in it.
        """
        shutil.rmtree(self.home, ignore_errors=True)
        if rest is not None:
            with suppress(FileNotFoundError):
                os.rename(rest, self.home)
                return
        os.makedirs(self.home, mode=0o700)
        names = ["--object-format=sha256"] if len(commit) == SHA256 else []
        self.run("init", "--quiet", "--bare", "--template=", *names, self.home, at_home=False)

    def end(self, rest: str) -> None:
        """Move the bare repository back to ``rest``.

        If a new clone is better, delete it instead.
        """
        shutil.rmtree(rest, ignore_errors=True)
        if self._is_sound():
            os.rename(self.home, rest)
        else:
            shutil.rmtree(self.home, ignore_errors=True)

    def _is_sound(self) -> bool:
        """Tell whether the repository is small enough and complete.

        Completeness is checked only if git has failed.
        """
        with suppress(OSError, RemoteProblem):
            # the folder contains an index and other files for each pack
            found = list(os.scandir(f"{self.home}/objects/pack"))
            packs = sum(one.name.endswith(".pack") for one in found)
            size = sum(one.stat().st_size for one in found)
            if packs <= 2 * MAX_PACKS and size <= self.bounds.bytes:
                is_locked = self.has_failed and any(Path(self.home).rglob("*.lock"))
                return not self.has_failed or (not is_locked and self._ended("fsck")[0] == 0)
        return False

    def at(self, name: str) -> str | None:
        """Return the id of an object with a name such as ``COMMIT:FOLDER``, which is a tree.

        Returns None if there is no such object.
        """
        code, out, _ = self._ended("rev-parse", "--quiet", "--verify", name)
        return out.decode().strip() if code == 0 else None

    def fetch(self, commit: str, before: str | None) -> bool:
        """Fetch a commit and its trees.

        Return False if ``before`` isn't an ancestor of the commit.
        """
        refspec = f"+{commit}:refs/registry/new"
        if before is None:
            self._fetch("--depth=1", refspecs=[refspec])
            return True
        when = self.made_at(before)
        try:
            self._fetch(f"--shallow-since=@{when}", refspecs=[refspec])
        except RemoteProblem:  # no commit may be that new; the next fetch reports other problems
            self._fetch(f"--depth={LOOKED_BACK}", refspecs=[refspec])
        return self._ended("merge-base", "--is-ancestor", before, commit)[0] == 0

    def are_first(self, *commits: str | None) -> bool:
        """Tell whether none of these commits has a parent; then there is no history to rewrite.

        This is so in a repository that `serve` generates. Read the stored commits, because git
        hides the parents of the oldest commits that it has fetched.
        """
        for commit in filter(None, commits):
            with self.running("cat-file", "commit", commit, heard=False) as process:
                assert process.stdout is not None  # noqa: S101
                _tree, after = process.stdout.readline(100), process.stdout.readline(7)
            if after != b"author ":
                return False
        return True

    def _fetch(self, *options: str, refspecs: Sequence[str], settled: bool = True) -> None:
        """Fetch objects.

        If ``settled``, git tells the server which commits exist here, so that the server sends only
        new objects.
        """
        said = self.run(
            *() if settled else ("-c", "fetch.negotiationAlgorithm=noop"),
            *("fetch", "--no-tags", "--no-progress", "--no-write-fetch-head", "--filter=blob:none"),
            *("--no-recurse-submodules", *self.served, *options, "--stdin", "origin"),
            given="".join(f"{one}\n" for one in refspecs).encode(),
            errors=True,
        )
        if b"filtering not recognized" in said:
            self._partial = False

    def fetch_blobs(self, ids: Sequence[str]) -> None:
        """Fetch blobs in one request; existing local blobs aren't fetched again."""
        if self._partial:
            self._fetch(refspecs=ids, settled=False)

    def listed(
        self, commit: str, notices: list[str], part: str | None = None
    ) -> tuple[dict[str, Blob], int | None]:
        """Return the regular files of a commit (below ``part``), and the commit's time.

        Adds messages about links and other entries that aren't regular files.
        """
        files: dict[str, Blob] = {}
        paths = Paths()
        left = SkippedFiles()
        below = ["--", f"{part}/"] if part else []
        listing = self._entries("ls-tree", "-r", "-z", "--full-tree", commit, *below)
        for number, entry in enumerate(listing):
            facts, _, raw = entry.partition(b"\t")
            mode, _kind, found = facts.decode("ascii", "replace").split(" ", 2)
            path = raw.decode("utf-8", "surrogateescape")
            if mode not in {"100644", "100755", "100664"}:
                left.add({"120000": "link", "160000": "submodule"}.get(mode, "strange file"), path)
            elif paths.add(path) is not None:
                left.add("unsafe path", path)
            else:
                files[path] = Blob(found, mode == "100755")
            if number > MAX_LISTED:
                raise RemoteTooLarge(url=self.url, reason=f"it has more than {MAX_LISTED} files")
        notices += left.said()
        made = self.made_at(commit)
        return files, made if 0 < made < time.time() + _DAY else None

    def made_at(self, commit: str) -> int:
        """Return the time in a commit, in seconds since 1970.

        This method doesn't use ``git show``, because that compares the files with the previous
        commit, which may be missing here.
        """
        said = self.run("rev-list", "--max-count=1", "--timestamp", commit).split(b" ")[0]
        return int(said) if said.isdigit() else 0

    def read(self, files: Mapping[str, Blob], paths: Sequence[str]) -> Iterator[tuple[str, bytes]]:
        """Fetch all missing blobs in one request, and yield the bytes of each path."""
        by_id: dict[str, list[str]] = {}
        for path in paths:
            by_id.setdefault(files[path].id, []).append(path)
        if not by_id:
            return
        self.fetch_blobs(list(by_id))
        self.check_size(list(by_id))
        for found, data in self.blobs(list(by_id)):
            for path in by_id[found]:
                yield path, data

    def check_size(self, ids: Sequence[str]) -> None:
        """Raise `RemoteTooLarge` if blobs are too large, or `RemoteInvalid` if some are missing."""
        given = "".join(f"{one}\n" for one in ids).encode()
        told = self.run("cat-file", "--batch-check=%(objecttype) %(objectsize)", given=given)
        sizes = [line.removeprefix("blob ") for line in told.decode().splitlines()]
        for one, size in zip(ids, sizes, strict=True):
            if not size.isdecimal():
                raise RemoteInvalid(url=self.url, reason=f"the object {one} is missing")
        if sum(map(int, sizes)) > self.bounds.bytes:
            reason = f"its skills have more than {self.bounds.bytes} bytes"
            raise RemoteTooLarge(url=self.url, reason=reason)

    def blobs(self, ids: Sequence[str]) -> Iterator[tuple[str, bytes]]:
        """Yield the bytes of local blobs. Raises `RemoteInvalid`, `RemoteUnreachable`."""
        with self.running("cat-file", "--batch", heard=False) as process:
            assert process.stdin is not None and process.stdout is not None  # noqa: PT018, S101
            given = "".join(f"{one}\n" for one in ids).encode()
            Thread(target=_tell, args=(process.stdin, given), daemon=True).start()
            for wanted in ids:
                head = process.stdout.readline(200).split()
                size = int(head[2]) if len(head) == 3 and head[1] == b"blob" else -1  # noqa: PLR2004
                data = process.stdout.read(max(size, 0))
                process.stdout.read(1)
                if len(data) != size:
                    self.has_failed = True
                    self.left()
                    raise RemoteInvalid(url=self.url, reason=f"the object {wanted} is missing")
                yield wanted, data

    def _entries(self, *arguments: str) -> Iterator[bytes]:
        """Yield the entries of git's output.

        Raises `RemoteProblem` if the output ends too early.
        """
        room = self.bounds.bytes
        with self.running(*arguments, heard=False) as process:
            assert process.stdout is not None  # noqa: S101
            rest = b""
            while chunk := process.stdout.read(1 << 16):
                room -= len(chunk)
                if room < 0:
                    reason = f"the names of its files have more than {self.bounds.bytes} bytes"
                    raise RemoteTooLarge(url=self.url, reason=reason)
                *whole, rest = (rest + chunk).split(b"\0")
                yield from whole
            process.wait()
        self.left()
        if process.returncode != 0 or rest:
            self.has_failed = True
            raise RemoteInvalid(url=self.url, reason="its list of files is incomplete")


@contextmanager
def open_commits(
    url: str, state: str, bounds: FetchLimits, *, offline: bool
) -> Iterator[Callable[[str | None, Collection[str]], Snapshot]]:
    """Yield a function that returns the snapshot at a commit or ref.

    If the function's first argument is None, it uses the default branch. Its second argument is a
    list of folders whose blobs are fetched together. Several threads can read snapshots at once. If
    ``offline``, no request is sent to the server.
    """
    kept = _Kept(url, state, bounds, is_offline=offline)
    try:
        yield kept.tree
    finally:
        kept.rest()


def has_commits(state: str) -> bool:
    """Tell whether this folder contains a git repository from an earlier fetch."""
    return os.path.isdir(_at_rest(state))


def _at_rest(state: str) -> str:
    return os.path.join(state, "git")


class _Kept(Git):
    """A bare repository that is read in its own folder.

    The repository is moved to another path only if git must fetch into it.
    """

    def __init__(self, url: str, state: str, bounds: FetchLimits, *, is_offline: bool) -> None:
        self._at_rest = _at_rest(state)
        self._busy = os.path.join(state, "busy")
        self._is_offline = is_offline
        super().__init__(url, self._at_rest, bounds)
        if is_offline:
            self._partial = False
            self._environment["GIT_ALLOW_PROTOCOL"] = "none"

    def tree(self, ref: str | None, folders: Collection[str]) -> Snapshot:
        """Return the snapshot of a commit; fetch the commit if it is missing here."""
        commit = ref or ""
        if not self._holds(commit):
            if self._is_offline:
                reason = "that version was never fetched here"
                raise RemoteInvalid(url=self.url, reason=reason)
            commit = self.find(ref)
            if not self._holds(commit):
                self._take(commit)
                self.fetch(commit, None)
                self.run("update-ref", f"{SEEN}/{commit}", commit)
        notices: list[str] = []
        files, made_at = self.listed(commit, notices)
        soon = {files[path].id for one in folders for path in below(files, one).values()}
        if soon and not self._is_offline:
            # The limit applies to a single request. Later requests may fetch fewer blobs, so try
            # them.
            with suppress(RemoteTooLarge):
                self.fetch_blobs(list(soon))
        return Snapshot(commit, made_at, files, notices, partial(self.read, files))

    def fetch_blobs(self, ids: Sequence[str]) -> None:
        """Fetch blobs in one request; if all of them exist here, send no request."""
        failed = self.has_failed
        try:
            self.check_size(ids)
        except RemoteInvalid:  # git also reports a missing blob in this way, which is harmless here
            if self._is_offline:
                raise
            self.has_failed = failed
            self._take(ids[0])
            super().fetch_blobs(ids)

    def rest(self) -> None:
        """If the repository was moved for a fetch, move it back to its folder."""
        if self.home == self._busy and os.path.isdir(self.home):
            self.end(self._at_rest)

    def _holds(self, commit: str) -> bool:
        is_one = COMMIT.fullmatch(commit) is not None and os.path.isdir(self.home)
        return is_one and self.at(f"{commit}^{{commit}}") is not None

    def _take(self, commit: str) -> None:
        """Move the repository to the folder for fetches, so that git can write to it."""
        if self.home != self._busy:
            self.home = self._busy
            self.begin(self._at_rest, commit)
