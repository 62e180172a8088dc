"""Read what a git repository holds, by the system's git, without a checkout of its making.

Git brings credentials, ssh and proxies. It is asked for commits, trees and the blobs of skills
alone, into a bare repository of ours, and never writes a file of the repository: so no hook, no
filter, no link and no attribute of it takes effect. What is run here may meet a hostile server or
address: protocols are limited, nothing asks a person, bytes and time are bounded.
"""

import hashlib
import os
import re
import shutil
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Final

from registry.errors import RemoteInvalid, RemoteProblem, RemoteTooLarge
from registry.remotes.git_program import GitProgram
from registry.remotes.paths import LeftOut, Paths
from registry.remotes.tree import Blob, Bounds

COMMIT: Final = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
SHA256: Final = 64
"""Digits of a commit in a repository that names its objects so."""

TAG: Final = "tag"
BRANCH: Final = "branch"

SEEN: Final = "refs/registry/seen"
"""In our bare repository, by what was asked for: the commit that was read last."""

MAX_LISTED: Final = 1_000_000
"""Files of one commit that are listed."""

LOOKED_BACK: Final = 50
"""Commits among which the one before is looked for where times don't tell: clocks go wrong."""

MAX_PACKS: Final = 50
"""So many fetches, two packs each, and then all is fetched anew."""

_DAY: Final = 86_400


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
        if not by_id:
            return
        self.git.fetch_blobs(list(by_id))
        self.git.check_size(list(by_id))
        for found, data in self.git.blobs(list(by_id)):
            for path in by_id[found]:
                yield path, data


@contextmanager
def open_git(
    url: str,
    ref: str | None,
    state: str,
    known: str | None,
    bounds: Bounds,
    *,
    part: str | None = None,
    commit: str | None = None,
) -> Iterator[GitTree | None]:
    """Give what a repository holds at a ref (None: its default branch), or None: it is ``known``.

    ``commit``: what the ref means now; None: the remote is asked. ``part``: the folder of it that
    is of interest. ``state``: a folder of ours for the bare repository. Raises `RemoteProblem`,
    `AddressInvalid`.
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
        before = git.at(seen) if known is not None else None
        notices: list[str] = []
        if not git.fetch(commit, before):
            notices.append(f"its history was rewritten: {before} is no part of it any more")
        files, made_at = git.listed(commit, notices, part)
        yield GitTree(git, commit, made_at, files, notices)
        git.run("update-ref", seen, commit)
    finally:  # what was read last, and is refused now, is known all the same
        git.end(rest)


def is_changed(url: str, part: str, before: str, now: str, bounds: Bounds) -> bool:
    """Tell whether a folder of a repository is another in one commit than in the one ``before``.

    Where that can't be told, it counts as changed: a server need not give out what no branch has.
    """
    if not COMMIT.fullmatch(before) or not COMMIT.fullmatch(now):
        return True
    with tempfile.TemporaryDirectory(prefix="skill-registry-") as state, suppress(RemoteProblem):
        git = Git(url, os.path.join(state, "git"), bounds)
        git.begin(None, now)
        git.fetch(before, None)
        git.fetch(now, None)
        was = git.folder_at(before, part)
        return was is None or was != git.folder_at(now, part)
    return True


class Git(GitProgram):
    """One bare repository of ours, and the remote that it is filled from."""

    _partial = True

    def stay_here(self) -> None:
        """Reach no remote from now on."""
        self._partial = False
        self.forbid_network()

    def find(self, ref: str | None) -> str:
        """Return the commit that a ref means at the remote now: a tag before a branch."""
        if ref is None:
            commit = self._listed_refs("HEAD").get("HEAD")
            if commit is None:
                reason = "it is empty, or has no default branch: #NAME names one that there is"
                raise RemoteInvalid(url=self.url, reason=reason)
            return commit
        return ref if COMMIT.fullmatch(ref) else next(iter(self.refs(ref).values()))

    def refs(self, ref: str) -> dict[str, str]:
        """Return the commits of the tag and the branch of a name, by kind; the tag comes first.

        Raises `RemoteInvalid` if the remote has neither.
        """
        names = {f"refs/tags/{ref}^{{}}": TAG, f"refs/tags/{ref}": TAG, f"refs/heads/{ref}": BRANCH}
        names[ref] = TAG if ref.startswith("refs/tags/") else BRANCH
        listed = self._listed_refs(*names)
        found: dict[str, str] = {}
        for name, kind in names.items():
            if name in listed:
                found.setdefault(kind, listed[name])
        if not found:
            reason = f"it has no branch, tag or commit {ref}"
            if re.fullmatch("[0-9a-f]{4,39}", ref):
                reason += " (of a commit all digits are needed)"
            raise RemoteInvalid(url=self.url, reason=reason)
        return found

    def _listed_refs(self, *names: str) -> dict[str, str]:
        """Return the commits of those of these refs that the remote has; one round trip."""
        said = self.run("ls-remote", "--quiet", "--", "origin", *names, at_home=False)
        found: dict[str, str] = {}
        for line in said.decode(errors="replace").split("\n"):
            commit, _, name = line.partition("\t")
            if name in names and COMMIT.fullmatch(commit):
                found[name] = commit
        return found

    def begin(self, rest: str | None, commit: str) -> None:
        """Take the bare repository from where it rests, else make a new one, for such commits.

        Where it is in use it lies elsewhere: one that a killed process left is not gone on with,
        since it may be locked, or hold half of a pack.
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
        """Put the bare repository to rest, unless it is better made anew."""
        shutil.rmtree(rest, ignore_errors=True)
        if self._is_sound():
            os.rename(self.home, rest)
        else:
            shutil.rmtree(self.home, ignore_errors=True)

    def _is_sound(self) -> bool:
        """Tell whether it has not grown too much; where git failed, whether it is whole, too."""
        with suppress(OSError, RemoteProblem):
            found = list(os.scandir(f"{self.home}/objects/pack"))  # with an index and more of each
            packs = sum(one.name.endswith(".pack") for one in found)
            size = sum(one.stat().st_size for one in found)
            if packs <= 2 * MAX_PACKS and size <= self.bounds.bytes:
                is_locked = self.has_failed and any(Path(self.home).rglob("*.lock"))
                return not self.has_failed or (not is_locked and self.code("fsck") == 0)
        return False

    def at(self, name: str) -> str | None:
        """Return the commit that a name in our repository stands for; None: there is none."""
        code, out, _ = self._ended("rev-parse", "--quiet", "--verify", f"{name}^{{commit}}")
        return out.decode().strip() if code == 0 else None

    def folder_at(self, commit: str, part: str) -> str | None:
        """Return the tree that a folder is in a commit that is here; None: there is none."""
        code, out, _ = self._ended("rev-parse", "--quiet", "--verify", f"{commit}:{part}")
        return out.decode().strip() if code == 0 else None

    def fetch(self, commit: str, before: str | None) -> bool:
        """Fetch a commit and its trees; False: ``before`` is not part of its history."""
        refspec = f"+{commit}:refs/registry/new"
        if before is None:
            self._fetch("--depth=1", refspecs=[refspec])
            return True
        when = self.made_at(before)
        try:
            self._fetch(f"--shallow-since=@{when}", refspecs=[refspec])
        except RemoteProblem:  # nothing in it is so new; what else it is, is told by the next
            self._fetch(f"--depth={LOOKED_BACK}", refspecs=[refspec])
        return self.code("merge-base", "--is-ancestor", before, commit) == 0

    def _fetch(self, *options: str, refspecs: Sequence[str], settled: bool = True) -> None:
        """Fetch objects; ``settled``: what is here already is told, so that it isn't sent again."""
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
        """Fetch blobs, all in one; those that are here already cost nothing."""
        if self._partial:
            self._fetch(refspecs=ids, settled=False)

    def listed(
        self, commit: str, notices: list[str], part: str | None = None
    ) -> tuple[dict[str, Blob], int | None]:
        """Return the plain files of a commit, and when it was made; of the rest say what it was.

        ``part``: only those below this folder.
        """
        files: dict[str, Blob] = {}
        paths = Paths()
        left = LeftOut()
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
        """Return when a commit says it was made, in seconds since 1970.

        It is not shown: git would compare its files with those before, which are not all here.
        """
        said = self.run("rev-list", "--max-count=1", "--timestamp", commit).split(b" ")[0]
        return int(said) if said.isdigit() else 0

    def check_size(self, ids: Sequence[str]) -> None:
        """Raise `RemoteTooLarge` or `RemoteInvalid` unless blobs are all here and not too large."""
        given = "".join(f"{one}\n" for one in ids).encode()
        told = self.run("cat-file", "--batch-check=%(objecttype) %(objectsize)", given=given)
        sizes = [line.removeprefix("blob ") for line in told.decode().splitlines()]
        for one, size in zip(ids, sizes, strict=True):
            if not size.isdecimal():
                raise RemoteInvalid(url=self.url, reason=f"it lacks the object {one}")
        if sum(map(int, sizes)) > self.bounds.bytes:
            reason = f"its skills have more than {self.bounds.bytes} bytes"
            raise RemoteTooLarge(url=self.url, reason=reason)

    def blobs(self, ids: Sequence[str]) -> Iterator[tuple[str, bytes]]:
        """Yield the bytes of blobs that are here. Raises `RemoteInvalid`, `RemoteUnreachable`."""
        with self.running("cat-file", "--batch", heard=False) as process:
            assert process.stdin is not None and process.stdout is not None  # noqa: PT018, S101
            asking = threading.Thread(target=_ask, args=(process.stdin, ids), daemon=True)
            asking.start()
            for wanted in ids:
                head = process.stdout.readline(200).split()
                size = int(head[2]) if len(head) == 3 and head[1] == b"blob" else -1  # noqa: PLR2004
                data = process.stdout.read(max(size, 0))
                process.stdout.read(1)
                if len(data) != size:
                    self.has_failed = True
                    self.left()
                    raise RemoteInvalid(url=self.url, reason=f"it lacks the object {wanted}")
                yield wanted, data

    def _entries(self, *arguments: str) -> Iterator[bytes]:
        """Yield what git lists, to its end. Raises `RemoteProblem` where that is not the end."""
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
            raise RemoteInvalid(url=self.url, reason="its list of files can't be read to the end")


def _ask(stream: IO[bytes], ids: Sequence[str]) -> None:
    with suppress(OSError):  # it ended before it was told all
        for one in ids:
            stream.write(f"{one}\n".encode())
        stream.close()
