"""Fetch remote sources into checkouts: folders with the current files of their skills.

A checkout is in the data folder and belongs to this user. It contains::

    lock            the lock file; the process that fetches holds the lock
    asked.json      the address and pin of the checkout, and whether the pin is a tag
    files.json      the id of the blob of each file in ``tree``
    manifest.json   the version of the complete ``tree``; a fetch writes it last
    new             a file that will be renamed into ``tree``
    state/          data that depend on the kind of the source, such as a bare repository
    tree/           the source's folder: the files of its skills, unchanged

A fetch writes only changed files. It writes each file atomically, and gives the file the time of
its version. So for the next sync, on this machine or another, an unchanged skill looks unchanged.

A pin is the branch, tag or commit that the user chose. If a pinned tag moves, or is replaced by a
branch of the same name, the fetch fails and the checkout keeps its files until the user pins the
source again. By convention tags never move, so a tag that moved is a mistake or an attack. A fetch
follows a moved branch. The checkout records whether a pin is a tag or a branch, and its commit.
"""

import json
import logging
import os
import re
import secrets
import shutil
import time
from collections.abc import Generator, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed, wait
from contextlib import contextmanager, suppress
from dataclasses import replace
from itertools import chain
from pathlib import Path
from shlex import quote
from stat import S_ISREG
from tempfile import TemporaryDirectory
from types import MappingProxyType
from typing import Any, Final, NamedTuple, Self

from registry.core import Core
from registry.disk.atomic import OWN, Place, make_path, open_named
from registry.disk.locks import FileLock
from registry.disk.mounts import this_boot
from registry.disk.paths import ROOT
from registry.disk.private import open_own_folder
from registry.errors import (
    PinMoved,
    RegistryError,
    RemoteInvalid,
    RemoteTooLarge,
    RemoteUnreachable,
    SourceInvalid,
    SyncRunning,
)
from registry.model import Remote, RemoteState, Source
from registry.remotes.git import COMMIT, TAG, Git, interrupt, open_git
from registry.remotes.kinds import MAX_REASON, open_remote
from registry.remotes.snapshot import Blob, FetchLimits, Snapshot
from registry.remotes.states import FILE, MAX_BYTES, decoded
from registry.remotes.tags import newer_than, prefix_of
from registry.settings import data_folder
from registry.sync.plan import SyncOptions
from registry.sync.report import Fetched, Outcome, Progress
from registry.text import in_one_line, utc_now, without_secrets

TREE: Final = "tree"
STATE: Final = "state"
ASKED: Final = "asked.json"
FILES: Final = "files.json"
MANIFEST: Final = "manifest.json"
DRAFT: Final = "new"
LOCK_SECONDS: Final = 30.0
_NAME = re.compile(r"[A-Za-z0-9-]+")
_DRAFT: Final = "."
"""Prefix of a new checkout's name; the checkout has it until a source uses the checkout."""

_BEGUN_SECONDS: Final = 86_400.0
"""Age after which an unfinished new checkout counts as abandoned, in seconds.

A fetch takes only minutes.
"""


def checkouts() -> Path:
    """Return the folder that contains all checkouts of this user."""
    return data_folder() / "checkouts"


@contextmanager
def new_place(telling: str) -> Iterator[tuple[str, str]]:
    """Yield a folder for a new checkout, and the path to which the checkout moves later.

    The path is named after ``telling``. If the block raises an error, both are removed.
    """
    _sweep()
    name = "".join(c if c.isascii() and c.isalnum() else "-" for c in os.path.basename(telling))
    home = checkouts() / f"{name[:40].strip('-') or 'remote'}-{secrets.token_hex(8)}"
    draft = home.with_name(f"{_DRAFT}{home.name}")
    try:
        yield str(draft), str(home)
    except BaseException:
        for one in (draft, home):
            shutil.rmtree(one, ignore_errors=True)
        raise


def _sweep() -> None:
    with suppress(OSError):
        for one in list(os.scandir(checkouts())):
            if one.name.startswith(_DRAFT) and one.stat(follow_symlinks=False).st_mtime < (
                time.time() - _BEGUN_SECONDS
            ):
                shutil.rmtree(one.path, ignore_errors=True)


def tree_of(home: str) -> str:
    """Return the folder of the skills in a checkout, which the source reads."""
    return os.path.join(home, TREE)


def home_of(tree: str, name: str) -> str:
    """Return the checkout for the path in a source's database row.

    Raises `SourceInvalid` if the path isn't a checkout of this user.
    """
    home, last = os.path.split(tree)
    above, own = os.path.split(home)
    is_ours = last == TREE and above == str(checkouts()) and _NAME.fullmatch(own) is not None
    if not is_ours or os.path.islink(home) or not os.path.isdir(home):
        way = f"skill-registry source adopt {quote(name)}"
        reason = f"its checkout was not created here; to fetch it again, run: {way}"
        raise SourceInvalid(path=tree, reason=reason)
    return home


def remove_checkout(tree: str, remote: Remote, name: str) -> None:
    """Remove a source's checkout.

    Raises `SourceInvalid` if the checkout belongs to another source, and `SyncRunning` if another
    process uses it.
    """
    home = home_of(tree, name)
    with Checkout.locked(home) as checkout:
        checkout.check_asked(remote, name)
        shutil.rmtree(home)


def _without_secret(noted: dict[str, Any]) -> dict[str, Any]:
    """Return the recorded address of a remote source without its password or token."""
    asked = noted.get("asked")
    if isinstance(asked, list) and len(asked) > 1 and isinstance(asked[1], str):
        return {"asked": [asked[0], without_secrets(asked[1]), *asked[2:]]}
    return noted


def _asked(remote: Remote) -> list[str | None]:
    return [remote.kind, remote.url, remote.ref, remote.part, *remote.only]


class Checkout:
    """A checkout that this process has locked; only this class writes files in it."""

    def __init__(self, home: str) -> None:
        self.home = home
        self.tree = os.path.join(home, TREE)
        self.state = os.path.join(home, STATE)
        self._was = self._noted(MANIFEST)

    @classmethod
    @contextmanager
    def locked(cls, path: str) -> Iterator[Self]:
        """Open and lock a checkout; create it if it is missing.

        Raises `SyncRunning` if another process has the lock, and OSError.
        """
        above, name = os.path.split(path)
        make_path(above, OWN)
        with open_named(above) as parent, open_own_folder(Place(parent, name), make=True) as home:
            for part in (STATE, TREE):
                open_own_folder(Place(home, part), make=True).close()
            with FileLock("lock", folder=home) as lock:
                if not lock.acquire(LOCK_SECONDS):
                    raise SyncRunning(owner=lock.owner())
                lock.sign("fetch")
                yield cls(path)

    def check_asked(self, remote: Remote, name: str, *others: Remote) -> None:
        """Record the remote source of a new checkout; for an old checkout, check the recorded one.

        ``others`` are remote sources that the checkout may also have. Raises `SourceInvalid` if
        another remote source is recorded: another user's database row may name this user's
        checkout, and pin it to a hostile commit. (Servers deliver commits even if no branch
        contains them.)
        """
        noted = self._noted(ASKED)
        if not noted:
            self._note(ASKED, {"asked": _asked(remote)})
        elif _without_secret(noted).get("asked") == _asked(remote) != noted.get("asked"):
            self._note(ASKED, {**noted, "asked": _asked(remote)})
        elif noted.get("asked") not in [_asked(one) for one in (remote, *others)]:
            reason = f"that folder is the checkout of another source or pin, not of {name}"
            raise SourceInvalid(path=self.home, reason=reason)

    def is_of(self, remote: Remote) -> bool:
        """Tell whether this is a checkout of exactly this remote source."""
        return self._noted(ASKED).get("asked") == _asked(remote)

    def ask(self, remote: Remote) -> Mapping[str, object]:
        """Record which remote source the user requests, and delete the record of the former pin.

        Returns the former record, for `ask_again`.
        """
        before = self._noted(ASKED)
        self._note(ASKED, {"asked": _asked(remote), "pin": None})
        return before

    def ask_again(self, before: Mapping[str, object]) -> None:
        """Restore a record that `ask` replaced."""
        self._note(ASKED, before)

    @property
    def pin(self) -> tuple[str, str] | None:
        """The recorded kind and commit of the pinned ref (see `Git.refs`).

        The value is None if there is no record.
        """
        match self._noted(ASKED).get("pin"):
            case [str(kind), str(commit)]:
                return kind, commit
        return None

    @property
    def is_pinned_anew(self) -> bool:
        """Whether the user chose the pin after the last fetch."""
        return self._noted(ASKED).get("pin", "") is None

    def note_pin(self, kind: str, commit: str) -> None:
        """Record the kind and commit of the pinned ref, unless there is a record already.

        Call this method before a fetch, because a fetch may be interrupted.
        """
        if self.pin is None:
            self._note(ASKED, {**self._noted(ASKED), "pin": [kind, commit]})

    @property
    def version(self) -> str | None:
        """The version that was written last; after a system crash, its files may be incomplete."""
        version = self._was.get("version")
        return version if isinstance(version, str) else None

    def known(self, *, verify: bool) -> str | None:
        """Return the version whose files are on disk for certain.

        Returns None if the files must be compared with those of the remote source. The comparison
        is necessary if ``verify``, or if the system may have crashed since the files were written.
        """
        boot = self._was.get("boot")
        is_sure = (boot is None or boot == this_boot()) and not verify
        return self.version if is_sure else None

    def files_in(self, folders: Sequence[str]) -> dict[str, str]:
        """Return the recorded files in these folders, by path."""
        noted = self._noted(FILES)
        begin = tuple(f"{one}/" for one in folders)
        return {
            path: one
            for path, one in (noted.items() if begin else ())
            if path.startswith(begin) and isinstance(one, str)
        }

    def take(
        self,
        tree: Snapshot,
        known: str | None,
        wanted: Mapping[str, Blob],
        bounds: FetchLimits,
        stay: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        """Change the checkout so that it has exactly the ``wanted`` files of the snapshot ``tree``.

        It also keeps the files ``stay``, a result of `files_in`. Raises `RemoteProblem`, OSError.
        """
        now = {path: blob.id + ("+x" if blob.executable else "") for path, blob in wanted.items()}
        before = self._noted(FILES) if known is not None else {}
        other = [path for path, one in now.items() if before.get(path) != one]
        now |= stay
        room = bounds.bytes
        reading = tree.read(other)
        first = next(reading, None)  # fetch all data before the first change on disk
        gone = [path for path in before or self._found() if path not in now]
        if gone or other:
            Path(self.home, MANIFEST).unlink(missing_ok=True)
        for path in gone:
            self._remove(path)
        if not before:
            self._remove_empty()
        changed = bool(gone)
        for path, data in chain(() if first is None else (first,), reading):
            room -= len(data)
            if room < 0:
                reason = f"its skills have more than {bounds.bytes} bytes"
                raise RemoteTooLarge(url=tree.version, reason=reason)
            changed |= self._write(path, data, wanted[path], tree.made_at)
        if gone or other:
            self._note(FILES, now)
        self._note(MANIFEST, {"version": tree.version, "boot": self._sure_from(changed=changed)})

    def _sure_from(self, *, changed: bool) -> str | None:
        """Return the boot id of the system at the time when the files were written.

        Returns None if the files were found unchanged after a reboot. Unchanged files after a
        reboot are on disk for certain.
        """
        now = this_boot()
        if changed or now is None or not self._was:
            return now
        return None if self._was.get("boot") != now else now

    def _found(self) -> list[str]:
        """Return the paths of all files on disk, including files without a record."""
        found = []
        for holder, folders, files in os.walk(self.tree):
            links = [name for name in folders if os.path.islink(os.path.join(holder, name))]
            below = os.path.relpath(holder, self.tree)
            found += [name if below == ROOT else f"{below}/{name}" for name in files + links]
        return found

    def _remove_empty(self) -> None:
        """Remove empty folders, because a new file may have the same name as a folder."""
        for holder, _folders, _files in os.walk(self.tree, topdown=False):
            if holder != self.tree:
                with suppress(OSError):
                    os.rmdir(holder)

    def _write(self, path: str, data: bytes, blob: Blob, made_at: int | None) -> bool:
        """Write a file, unless the file on disk already has these bytes and this mode."""
        target = Path(self.tree, path)
        mode = 0o755 if blob.executable else 0o644
        with suppress(OSError):
            facts = target.lstat()
            is_same = S_ISREG(facts.st_mode) and facts.st_mode & 0o7777 == mode
            if is_same and facts.st_size == len(data) and target.read_bytes() == data:
                return False
        target.parent.mkdir(parents=True, exist_ok=True)
        self._write_whole(target, data, mode, made_at)
        return True

    def _write_whole(self, target: Path, data: bytes, mode: int, made_at: int | None) -> None:
        """Write a file atomically; ``made_at`` is its modification time in seconds since 1970."""
        draft = Path(self.home, DRAFT)
        draft.unlink(missing_ok=True)
        with open(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as file:
            file.write(data)
            os.fchmod(file.fileno(), mode)
        if made_at is not None:
            os.utime(draft, (made_at, made_at))
        draft.replace(target)

    def _remove(self, path: str) -> None:
        target = Path(self.tree, path)
        target.unlink(missing_ok=True)
        with suppress(OSError):  # rmdir fails at the first folder that isn't empty
            for folder in target.parents:
                if folder == Path(self.tree):
                    break
                folder.rmdir()

    def _noted(self, name: str) -> dict[str, Any]:
        try:
            said = json.loads(Path(self.home, name).read_bytes())
        except (OSError, ValueError):
            return {}
        return said if isinstance(said, dict) else {}

    def _note(self, name: str, said: Mapping[str, object]) -> None:
        self._write_whole(Path(self.home, name), json.dumps(said).encode(), 0o600, None)


SHOWN: Final = 12
"""Number of characters of a commit in messages."""


class Pin(NamedTuple):
    """A branch or a tag, and its commit; ``kind`` is one of the kinds in `Git.refs`, or "".

    It is "" for the default branch, and for a commit that the user chose. ``newer`` are the tags of
    newer versions; see `newer_than`.
    """

    kind: str
    commit: str
    newer: Sequence[str] = ()


def pin_now(
    checkout: Checkout, remote: Remote, name: str, bounds: FetchLimits, *, anew: bool = False
) -> Pin | None:
    """Return the current pin of the source ``name``; None if it isn't pinned to a branch or tag.

    If ``anew``, the user chooses the pin now, so the recorded pin doesn't count. Raises
    `PinMoved`, `RemoteProblem`.
    """
    ref = remote.ref
    if remote.kind != "git" or ref is None or COMMIT.fullmatch(ref):
        return None
    found, tags = Git(remote.url, "", bounds).refs_and_tags(ref, prefix_of(ref))
    first = Pin(*next(iter(found.items())))
    before = first if anew else _before(checkout, found, remote.version)
    if before is None:
        reason = f"{ref} is both a tag and a branch there"
    elif before.kind not in found:
        reason = f"the {before.kind} {ref} no longer exists, and a {min(found)} has its name"
    elif before.kind == TAG and before.commit != found[TAG]:
        reason = f"the tag {ref} moved from {before.commit[:SHOWN]} to {found[TAG][:SHOWN]}"
    else:
        newer = newer_than(ref, tags) if before.kind == TAG else ()
        return Pin(before.kind, found[before.kind], newer)
    way = f"skill-registry source update {quote(name)} --ref {quote(ref)}"
    raise PinMoved(url=remote.url, reason=reason, way=way, commit=first.commit)


def commit_now(source: Source, bounds: FetchLimits) -> str | None:
    """Return the current commit of a source's pinned branch or tag, even if a pinned tag moved.

    Returns None if no pin is recorded.
    """
    if source.remote is not None:
        with suppress(SourceInvalid):
            checkout = Checkout(home_of(source.path, source.name))
            if checkout.is_of(source.remote):
                try:
                    pin = pin_now(checkout, source.remote, source.name, bounds)
                except PinMoved as moved:
                    return moved.commit
                return None if pin is None else pin.commit
    return None


def _before(checkout: Checkout, found: Mapping[str, str], stored: str | None) -> Pin | None:
    """Return the recorded pin, or the pin that the checkout's commit shows; None if there is none.

    ``found`` are the remote's refs with the name of the pin. ``stored`` is the commit in the
    database, for a checkout that is still empty because the database was restored from a backup.
    """
    if checkout.pin is not None:
        return Pin(*checkout.pin)
    version = checkout.version or stored
    if version is None or checkout.is_pinned_anew:
        return Pin(*next(iter(found.items())))
    # Earlier versions of this program didn't record pins. In that case, find the pin by the commit
    # of the checkout.
    same = [kind for kind, commit in found.items() if commit == version]
    kinds = same or list(found)
    return Pin(kinds[0], version) if len(kinds) == 1 or same else None


log = logging.getLogger(__name__)

PLAIN: Final = SyncOptions()
AT_ONCE: Final = 4

TOGETHER: Final = 3.0
"""Maximum time to wait for more fetched sources, to store them together, in seconds."""

WINK: Final = 0.05
"""Interval at which the program checks whether an interrupted fetch has ended, in seconds."""


def fetch_sources(
    core: Core,
    sources: Sequence[Source],
    progress: Progress,
    options: SyncOptions = PLAIN,
) -> Generator[Mapping[str, Fetched]]:
    """Fetch remote sources, and yield the results by the source's path as they arrive.

    The first results come within `TOGETHER` seconds, and may be empty, so that a slow server delays
    only its own source. If a source can't be fetched, it keeps its files, and its result gives the
    reason.
    """
    with ThreadPoolExecutor(min(AT_ONCE, len(sources)) or 1, "registry-fetch") as pool:
        jobs = {pool.submit(_fetched, core, one, options): one for one in sources}
        left = set(jobs)
        try:
            progress("fetching", 0, len(jobs))
            while left:
                ready: dict[str, Fetched] = {}
                with suppress(TimeoutError):
                    for job in as_completed(frozenset(left), TOGETHER):
                        left.remove(job)
                        ready[jobs[job].path] = job.result()
                        progress("fetching", len(jobs) - len(left), len(jobs))
                yield ready
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            while wait(jobs, WINK).not_done:
                interrupt()
            raise


def _fetched(core: Core, source: Source, options: SyncOptions) -> Fetched:
    assert source.remote is not None  # noqa: S101  # the caller only passes remote sources
    try:
        home = home_of(source.path, source.name)
        return fetch(core, source.remote, home, source.name, options)
    except RegistryError as error:
        outcome: Outcome = (
            "offline" if isinstance(error, RemoteUnreachable | SyncRunning) else "refused"
        )
        states = _states_of_default(source.remote) if isinstance(error, RemoteInvalid) else None
        return Fetched(source.remote, outcome, str(error), states=states)
    except OSError as error:
        return Fetched(source.remote, "refused", f"{error.strerror or error} ({source.path})")
    except Exception as error:  # the answer of a hostile server must not stop other sources
        log.debug("The fetch of %s failed", source.name, exc_info=True)
        return Fetched(source.remote, "refused", internal(error))


def _states_of_default(remote: Remote) -> tuple[RemoteState, ...] | None:
    """Return the states of versions in the default branch of a pinned repository, if it has any.

    If a registry withdraws a version, the tag of this version no longer exists. The default branch
    has the reason.
    """
    if remote.kind != "git" or remote.ref is None:
        return None
    with (
        suppress(RegistryError, OSError),
        TemporaryDirectory(prefix="skill-registry-") as state,
        open_git(remote.url, None, state, None, FetchLimits()) as tree,
    ):
        return (_states_in(tree) or None) if tree is not None else None
    return None


def internal(error: Exception) -> str:
    """Return the report of an unexpected error, and log its traceback at level DEBUG."""
    return f"Internal error ({in_one_line(error)[:MAX_REASON]})"


def fetch(
    core: Core,
    remote: Remote,
    home: str,
    name: str,
    options: SyncOptions = PLAIN,
    pin: Pin | None = None,
) -> Fetched:
    """Update a checkout to the current version, or to the pin that the user has just chosen.

    Raises `RemoteProblem`, `SourceInvalid`, OSError.
    """
    bounds = FetchLimits()
    with Checkout.locked(home) as checkout:
        checkout.check_asked(remote, name)
        known = checkout.known(verify=options.verify)
        kinds = core.settings.source_kinds
        pin = pin or pin_now(checkout, remote, name, bounds)
        if pin is not None and pin.kind:
            checkout.note_pin(pin.kind, pin.commit)
        commit = None if pin is None else pin.commit
        newer = () if pin is None else pin.newer
        with open_remote(remote, checkout.state, known, bounds, kinds, commit=commit) as tree:
            if tree is None:
                return Fetched(replace(remote, version=known), newer=newer)
            from registry.remotes.discovery import wanted_files, without_offered

            states = _states_in(tree)
            # The source no longer offers a withdrawn skill. Its files stay here, so that this
            # registry keeps installed copies and prints the reason.
            stay = checkout.files_in([one.folder for one in states if one.state == "yanked"])
            may_be_none = options.allow_prune or bool(stay)
            wanted, notices = wanted_files(tree, remote, bounds, may_be_none=may_be_none)
            stay = without_offered(stay, wanted)
            checkout.take(tree, known, wanted, bounds, stay)
            now = replace(remote, version=tree.version, fetched_at=utc_now())
            found = (*tree.notices, *notices)
            return Fetched(now, notices=found, newer=newer, states=states)


def _states_in(tree: Snapshot) -> tuple[RemoteState, ...]:
    """Return the states of versions that a snapshot tells, in a file or in the index of a site."""
    size = tree.files[FILE].size if FILE in tree.files else None
    if FILE not in tree.files or (size or 0) > MAX_BYTES:
        return tuple(tree.states)
    return tuple(decoded(dict(tree.read([FILE]))[FILE]) or ())
