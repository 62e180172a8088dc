"""Read what a git repository holds, by the system's git, without a checkout of its making.

Git brings credentials, ssh and proxies. It is asked for commits, trees and the blobs of skills
alone, into a bare repository of ours, and never writes a file of the repository: so no hook, no
filter, no link and no attribute of it takes effect. What is run here may meet a hostile server or
address: protocols are limited, nothing asks a person, bytes and time are bounded.
"""

import hashlib
import os
import re
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import IO, Final

from registry.disk.paths import check_path
from registry.errors import RemoteInvalid, RemoteProblem, RemoteTooLarge
from registry.exchange.remote.git_program import GitProgram
from registry.exchange.remote.tree import Blob, Bounds
from registry.text import folded

COMMIT: Final = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
SEEN: Final = "refs/registry/seen"
"""In our bare repository, by what was asked for: the commit that was read last."""

MAX_LISTED: Final = 2_000_000
"""Files of one commit that are listed."""


@dataclass(slots=True)
class GitTree:
    """What a commit holds; see `tree.Tree`."""

    git: "Git"
    version: str
    made_at: int | None
    files: Mapping[str, Blob]
    notices: list[str] = field(default_factory=list)

    def read(self, paths: Sequence[str]) -> Iterator[tuple[str, bytes]]:
        """Fetch the blobs that are not here, all at once, and yield the bytes of each path."""
        by_id: dict[str, list[str]] = {}
        for path in paths:
            by_id.setdefault(self.files[path].id, []).append(path)
        self.git.fetch_blobs(list(by_id))
        for found, data in self.git.blobs(list(by_id)):
            for path in by_id[found]:
                yield path, data


@contextmanager
def open_git(
    url: str, ref: str | None, state: str, known: str | None, bounds: Bounds
) -> Iterator[GitTree | None]:
    """Give what a repository holds at a ref (None: its default branch), or None: it is ``known``.

    ``state``: a folder of ours for the bare repository. Raises `RemoteProblem`, `AddressInvalid`.
    """
    git = Git(url, os.path.join(state, "git"), bounds)
    commit = git.find(ref)
    if commit == known:
        yield None
        return
    git.begin()
    seen = f"{SEEN}/{hashlib.sha256((ref or '').encode()).hexdigest()}"
    before = git.at(seen)
    notices: list[str] = []
    if not git.fetch(commit, before):
        notices.append(f"its history was rewritten: {before} is no part of it any more")
    files, made_at = git.listed(commit, notices)
    yield GitTree(git, commit, made_at, files, notices)
    git.run("update-ref", seen, commit)


class Git(GitProgram):
    """One bare repository of ours, and the remote that it is filled from."""

    _partial = True

    def find(self, ref: str | None) -> str:
        """Return the commit that a ref means at the remote now; one round trip."""
        if ref is not None and COMMIT.fullmatch(ref):
            return ref
        wanted = (
            ["HEAD"]
            if ref is None
            else [f"refs/heads/{ref}", f"refs/tags/{ref}^{{}}", f"refs/tags/{ref}", ref]
        )
        said = self.run("ls-remote", "--quiet", "--", self.url, *wanted, at_home=False)
        found: dict[str, str] = {}
        for line in said.decode(errors="replace").splitlines()[:1000]:
            commit, _, name = line.partition("\t")
            found[name] = commit
        for name in wanted:
            if COMMIT.fullmatch(found.get(name, "")):
                return found[name]
        reason = f"it has no branch, tag or commit {ref}" if ref else "it is empty"
        raise RemoteInvalid(url=self.url, reason=reason)

    def begin(self) -> None:
        """Make the bare repository where it is missing."""
        if not os.path.isdir(os.path.join(self.home, "objects")):
            os.makedirs(self.home, mode=0o700, exist_ok=True)
            self.run("init", "--quiet", "--bare", "--template=", self.home, at_home=False)

    def at(self, name: str) -> str | None:
        """Return the commit that a name in our repository stands for; None: there is none."""
        if self.code("rev-parse", "--quiet", "--verify", f"{name}^{{commit}}") != 0:
            return None
        return self.run("rev-parse", name).decode().strip()

    def fetch(self, commit: str, before: str | None) -> bool:
        """Fetch a commit and its trees; False: ``before`` is no part of its history."""
        refspec = f"+{commit}:refs/registry/new"
        if before is None:
            self._fetch("--depth=1", refspecs=[refspec])
            return True
        when = self.run("show", "-s", "--format=%ct", before).decode().strip()
        try:
            self._fetch(f"--shallow-since=@{when}", refspecs=[refspec])
        except RemoteProblem:  # nothing in it is so new; what else it is, is told by the next
            self._fetch("--depth=1", refspecs=[refspec])
        return self.code("merge-base", "--is-ancestor", before, commit) == 0

    def _fetch(self, *options: str, refspecs: Sequence[str], settled: bool = True) -> None:
        """Fetch objects; ``settled``: what is here already is told, so that it isn't sent again."""
        said = self.run(
            *("-c", f"remote.origin.url={self.url}"),
            *() if settled else ("-c", "fetch.negotiationAlgorithm=noop"),
            *("fetch", "--no-tags", "--no-progress", "--no-write-fetch-head", "--filter=blob:none"),
            *("--no-recurse-submodules", *self.served, *options, "--stdin", "origin"),
            given="".join(f"{one}\n" for one in refspecs).encode(),
            errors=True,
        )
        if b"filtering not recognized" in said:
            self._partial = False

    def fetch_blobs(self, ids: Sequence[str]) -> None:
        """Fetch blobs, all in one; those that are here already cost nothing."""
        if self._partial and ids:
            self._fetch(refspecs=ids, settled=False)

    def listed(self, commit: str, notices: list[str]) -> tuple[dict[str, Blob], int | None]:
        """Return the plain files of a commit, and when it was made; of the rest say what it was."""
        files: dict[str, Blob] = {}
        folded_paths: set[str] = set()
        left: dict[str, int] = {}
        for number, entry in enumerate(self._entries("ls-tree", "-r", "-z", "--full-tree", commit)):
            facts, _, raw = entry.partition(b"\t")
            mode, _kind, found = facts.decode("ascii", "replace").split(" ", 2)
            path = raw.decode("utf-8", "surrogateescape")
            if mode not in {"100644", "100755", "100664"}:
                kind = {"120000": "links", "160000": "submodules"}.get(mode, "strange entries")
                left[kind] = left.get(kind, 0) + 1
            elif check_path(path) is not None or folded(path) in folded_paths:
                left["unsafe paths"] = left.get("unsafe paths", 0) + 1
            else:
                folded_paths.add(folded(path))
                files[path] = Blob(found, mode == "100755")
            if number > MAX_LISTED:
                raise RemoteTooLarge(url=self.url, reason=f"it has more than {MAX_LISTED} files")
        notices += [f"{count} {kind} were left out" for kind, count in left.items()]
        made = self.run("show", "-s", "--format=%ct", commit).decode().strip()
        return files, int(made) if made.isdigit() else None

    def blobs(self, ids: Sequence[str]) -> Iterator[tuple[str, bytes]]:
        """Yield the bytes of blobs that are here. Raises `RemoteTooLarge`, `RemoteInvalid`."""
        room = self.bounds.bytes
        with self.running("cat-file", "--batch", heard=False) as process:
            assert process.stdin is not None and process.stdout is not None  # noqa: PT018, S101
            asking = threading.Thread(target=_ask, args=(process.stdin, ids), daemon=True)
            asking.start()
            for wanted in ids:
                head = process.stdout.readline(200).split()
                if len(head) != 3 or head[1] != b"blob":  # noqa: PLR2004  # id, type, size
                    raise RemoteInvalid(url=self.url, reason=f"it lacks the object {wanted}")
                size = int(head[2])
                room -= size
                if room < 0:
                    reason = f"its skills have more than {self.bounds.bytes} bytes"
                    raise RemoteTooLarge(url=self.url, reason=reason)
                data = process.stdout.read(size)
                process.stdout.read(1)
                if len(data) != size:
                    raise RemoteInvalid(url=self.url, reason=f"it lacks the object {wanted}")
                yield wanted, data

    def _entries(self, *arguments: str) -> Iterator[bytes]:
        with self.running(*arguments, heard=False) as process:
            assert process.stdout is not None  # noqa: S101
            rest = b""
            while chunk := process.stdout.read(1 << 16):
                self.left()
                *whole, rest = (rest + chunk).split(b"\0")
                yield from whole


def _ask(stream: IO[bytes], ids: Sequence[str]) -> None:
    with suppress(OSError):  # it ended before it was told all
        for one in ids:
            stream.write(f"{one}\n".encode())
        stream.close()
