"""Any commits of one git repository, which is kept: what was fetched once is not fetched again."""

import os
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager, suppress

from registry.errors import RemoteInvalid, RemoteTooLarge
from registry.remotes.chosen import below
from registry.remotes.git import COMMIT, SEEN, Git, GitTree
from registry.remotes.tree import Bounds


@contextmanager
def open_commits(
    url: str, state: str, bounds: Bounds, *, offline: bool
) -> Iterator[Callable[[str | None, Collection[str]], GitTree]]:
    """Give what returns the tree at a commit, or at what a ref (None: the default) means now.

    What lies in the folders that it is given, too, is fetched all in one, to be read soon. The
    trees can be read side by side. ``state``: a folder of ours for the bare repository.
    ``offline``: the remote is asked for nothing. Both the function and the trees raise
    `RemoteProblem`.
    """
    kept = _Kept(url, state, bounds, is_offline=offline)
    try:
        yield kept.tree
    finally:
        kept.rest()


def has_commits(state: str) -> bool:
    """Tell whether a repository is kept in this folder."""
    return os.path.isdir(_at_rest(state))


def _at_rest(state: str) -> str:
    return os.path.join(state, "git")


class _Kept(Git):
    """A bare repository that is read where it rests until something has to be fetched into it.

    So a process that is killed costs nothing of what is here, unless it was fetching.
    """

    def __init__(self, url: str, state: str, bounds: Bounds, *, is_offline: bool) -> None:
        self._at_rest = _at_rest(state)
        self._busy = os.path.join(state, "busy")
        self._is_offline = is_offline
        super().__init__(url, self._at_rest, bounds)
        if is_offline:
            self.stay_here()

    def tree(self, ref: str | None, folders: Collection[str]) -> GitTree:
        """Return what a commit holds, which is fetched where it is not here."""
        commit = ref or ""
        if not self._holds(commit):
            if self._is_offline:
                reason = "nothing of that version was fetched here before"
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
            with suppress(RemoteTooLarge):  # as a whole, not one by one
                self.fetch_blobs(list(soon))
        return GitTree(self, commit, made_at, files, notices)

    def fetch_blobs(self, ids: Sequence[str]) -> None:
        """Fetch blobs, all in one, unless they all are here: then nobody is asked."""
        failed = self.has_failed
        try:
            self.check_size(ids)
        except RemoteInvalid:  # as git has it that lacks one of them, which is no harm
            if self._is_offline:
                raise
            self.has_failed = failed
            self._take(ids[0])
            super().fetch_blobs(ids)

    def rest(self) -> None:
        """Put the repository back to where it rests."""
        if self.home == self._busy and os.path.isdir(self.home):
            self.end(self._at_rest)

    def _holds(self, commit: str) -> bool:
        is_one = COMMIT.fullmatch(commit) is not None and os.path.isdir(self.home)
        return is_one and self.at(commit) is not None

    def _take(self, commit: str) -> None:
        """Take it from where it rests, to fetch something into it."""
        if self.home != self._busy:
            self.home = self._busy
            self.begin(self._at_rest, commit)
