"""Add, sync, change, trust and remove remote sources."""

import os
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import ExitStack, closing, suppress
from dataclasses import replace
from difflib import get_close_matches
from importlib import import_module
from shlex import quote
from threading import Thread
from typing import Any, Final, TypeAlias, Unpack

from registry.catalog.resolve import resolve, split_label
from registry.core import Core
from registry.db.read.findings import security_findings
from registry.db.read.skills import skills_of_source
from registry.db.read.sources import list_sources
from registry.disk.paths import ROOT
from registry.errors import (
    AddressInvalid,
    PinMoved,
    RegistryError,
    RemoteInvalid,
    SeveralSkills,
    ShorthandUnclear,
    SkillHeld,
    SkillNotFound,
    SourceExists,
    SourceInvalid,
    UsageProblem,
)
from registry.model import Diagnostic, Remote, Scope, Skill, Source
from registry.remotes.address import (
    Address,
    check_ref,
    file_path_of,
    is_archive,
    normalize_url,
    read_address,
)
from registry.remotes.snapshot import FetchLimits
from registry.sync import sources as folders
from registry.sync.plan import SyncOptions
from registry.sync.report import Fetched, Progress, SyncReport, joined
from registry.sync.run import sync as sync_folders
from registry.sync.sources import check_ours, is_here, is_ours
from registry.text import name_key

AT_ONCE: Final = 4
"""Maximum number of remote sources to which requests are sent at the same time."""

ASK_SECONDS: Final = 30.0
"""Maximum time to wait for a remote source to report whether it has changes, in seconds."""

SCOPE: Final[Scope] = "community"
"""Default scope of a remote source.

It has a low precedence, so that the source's skills don't shadow the user's own skills.
"""


def fetch_and_sync(  # noqa: C901  # first resolve addresses, then store batches
    core: Core,
    targets: Sequence[str | Address] = (),
    options: SyncOptions = SyncOptions(),  # noqa: B008  # immutable
    *,
    scope: Scope | None = None,
    name: str | None = None,
    wait: bool = False,
    progress: Progress | None = None,
) -> SyncReport:
    """Fetch the remote sources among the targets, then sync; without targets, sync all sources.

    A new address becomes a source. If a source can't be fetched, it stays unchanged. If one of the
    user's sources has the same repository with another pin, the address needs a ``name``; see
    `_check_pin`.
    """
    known = list_sources(core.reader, counted=False)
    chosen: list[str] = []
    fetched: dict[str, Fetched] = {}
    told = progress or (lambda _doing, _done, _total: None)
    meant = [
        address_of(core, known, one) or one if isinstance(one, str) else one for one in targets
    ]
    _check_targets(core, known, targets, meant, scope=scope, name=name)
    with ExitStack() as added:  # if one fetch fails, all new sources are removed
        for target, address in zip(targets, meant, strict=True):
            if isinstance(address, str):
                chosen.append(address)
                continue
            if (source := _same(known, address)) is not None:
                chosen.append(source.name)
                continue
            if options.dry_run:
                message = f"{target} is not a source yet, and a remote source must be fetched"
                raise UsageProblem(message=f"{message} first: sync it without --dry-run")
            told("fetching", 0, None)
            try:
                source, got = _add(core, address, name=name, scope=scope, priority=0)
            except SourceExists:
                known = list_sources(core.reader, counted=False)
                source = _same(known, address)
                if source is None:
                    raise
            else:
                added.callback(remove, core, source.name, with_tombstones=False)
                fetched[source.path] = got
                known, name = [*known, source], None
            chosen.append(source.name)
        added.pop_all()
    remotes = [
        one
        for one in known
        if one.remote is not None
        and one.path not in fetched
        and (one.name in chosen or one.path in chosen if targets else one.enabled)
        and is_here(core, one.host, one.path)
    ]

    def stored(some: Sequence[str], **new: Any) -> SyncReport:
        return sync_folders(
            core, some, options, wait=wait, progress=progress, fetched=fetched, **new
        )

    if not remotes or options.dry_run:
        return stored(chosen, scope=scope, name=name)
    from registry.remotes.fetch import fetch_sources

    report = None
    targeted = chosen or [one.path for one in known if one.enabled and is_ours(core, one)]
    late = {one.path: one.name for one in remotes}
    with closing(fetch_sources(core, remotes, told, options)) as batches:
        for batch in batches:
            fetched.update(batch)
            late = {path: name for path, name in late.items() if path not in batch}
            if report is not None:
                report = joined(report, stored(list(batch))) if batch else report
            elif not late:
                report = stored(chosen, scope=scope, name=name)
            elif others := [
                one for one in targeted if one not in late and one not in late.values()
            ]:
                report = stored(others, scope=scope, name=name)
    assert report is not None  # noqa: S101  # the last batch of fetches leaves no source in `late`
    return report


def _check_targets(
    core: Core,
    known: Sequence[Source],
    targets: Sequence[str | Address],
    meant: Sequence[str | Address],
    *,
    scope: Scope | None,
    name: str | None,
) -> None:
    """If a target can't be a source, raise the same error as `sync`.

    `sync` calls it before it adds any source. ``meant`` holds the targets with addresses.
    """
    if local := [one for one in meant if isinstance(one, str)]:
        folders.choose(core, known, local, scope=scope, name=name, register=False)
    for target, one in zip(targets, meant, strict=True):
        if isinstance(one, Address) and _same(known, one) is None:
            check_exists(one)
            if isinstance(target, str) and name is None:
                _check_pin(core, known, one)


def add(core: Core, target: str, *, name: str | None, scope: Scope | None, priority: int) -> Source:
    """Register a folder as a source, or fetch a remote source and register its checkout."""
    known = list_sources(core.reader, counted=False)
    address = address_of(core, known, target)
    if address is None:
        return folders.add(core, target, name=name, scope=scope or "personal", priority=priority)
    same = _same(known, address)
    if same is not None:
        raise SourceExists(name=same.name, path=same.path)
    if name is None:
        _check_pin(core, known, address)
    return _add(core, address, name=name, scope=scope, priority=priority)[0]


class SourceChange(folders.Change, total=False):
    """The fields to change in a source; see `SkillRegistry.update_source`."""

    ref: str | None


def update(
    core: Core,
    name: str,
    ref: str | None = None,
    *,
    progress: Progress | None = None,
    **change: Unpack[folders.Change],
) -> tuple[Source, SyncReport | None]:
    """Change a source; ``ref`` is the new pin, or "" to remove the pin.

    The files of the new pin are fetched and synced at once; the result has the report of this
    sync. If they can't be fetched, the pin stays. First, a request to the server checks whether the
    new pin exists; if it doesn't, nothing changes.
    """
    if unknown := change.keys() - folders.Change.__annotations__.keys():
        told = ", ".join(["ref", *folders.Change.__annotations__])
        raise UsageProblem(message=f"a source has no {min(unknown)} to change; there are: {told}")
    if ref is None:
        return folders.update(core, name, **change), None
    from registry.db.write.access import record_audit
    from registry.db.write.sources import record_remote
    from registry.remotes.fetch import Checkout, Pin, fetch, home_of, pin_now
    from registry.remotes.git import Git

    source = folders.find(core, name)
    if source.remote is None or source.remote.kind != "git":
        raise UsageProblem(message=f"{source.name} is not a git repository: it has no pin")
    check_ref(ref or "HEAD", ref)
    check_ours(core, source)
    # As long as the version is unknown, `pull` installs no skill of this source. So if this process
    # is killed, no lock file has the new pin with the old files.
    remote = replace(source.remote, ref=ref or None, version=None)
    home, bounds = home_of(source.path, source.name), FetchLimits(seconds=ASK_SECONDS)
    with Checkout.locked(home) as checkout:
        checkout.check_asked(source.remote, source.name, remote)
        pin = pin_now(checkout, remote, source.name, bounds, anew=True)
        pin = pin or Pin("", Git(remote.url, "", bounds).find(remote.ref))
        # Change the other fields first, because if this is refused, the pin must stay unchanged.
        name = folders.update(core, source.name, **change).name
        with core.writer.transaction() as connection:
            record_remote(connection, source.id, remote)
            record_audit(connection, "source changed", name, pin=[source.remote.ref, remote.ref])
            before = checkout.ask(remote)
    try:
        got = fetch(core, remote, home, name, pin=pin)
    except BaseException:
        with Checkout.locked(home) as checkout, core.writer.transaction() as connection:
            record_remote(connection, source.id, source.remote)
            record_audit(connection, "source changed", name, pin=[remote.ref, source.remote.ref])
            checkout.ask_again(before)
        raise
    # The user chose this version, so skills that it doesn't have are removed without a question.
    chosen, fetched = SyncOptions(allow_prune=True), {source.path: got}
    report = sync_folders(core, [name], chosen, wait=True, progress=progress, fetched=fetched)
    return next(one for one in list_sources(core.reader) if one.id == source.id), report


def trust(
    core: Core,
    name: str,
    *,
    revoke: bool = False,
    as_admin: bool = False,
    shown: Collection[str | None] | None = None,
    refs: Collection[str] | None = None,
) -> int:
    """Trust the quarantined skills of a source, and return the number of these skills.

    If ``refs`` is given, only these skills are changed. ``shown`` has the tree hashes of the skills
    that the user saw. If the skills have other hashes now, this raises `TrustOutdated`.

    If ``revoke``, quarantine the skills with security errors instead. For a local folder, this
    raises `UsageProblem`.
    """
    from registry.db.write.sources import distrust_source, trust_source

    source = folders.find(core, name)
    check_ours(core, source, as_admin=as_admin)
    if revoke and source.remote is None:
        raise UsageProblem(
            message=f"{source.name} is a local source: none of its skills is quarantined"
        )
    with core.writer.transaction() as connection:
        if revoke:
            return distrust_source(connection, source.id, refs)
        return trust_source(connection, source.id, shown, refs)


def adopt(core: Core, name: str, *, as_admin: bool = False) -> Source:
    """Adopt a source; see `SkillRegistry.adopt_source`.

    If the checkout of a remote source isn't on this machine, for example in a restored backup, the
    source gets a new checkout. The next sync fetches its files.
    """
    from registry.remotes.fetch import Checkout, home_of, new_place, tree_of

    source = folders.adopt(core, name, as_admin=as_admin)
    if source.remote is None:
        return source
    with suppress(SourceInvalid):
        if Checkout(home_of(source.path, source.name)).is_of(source.remote):
            return source
    from registry.db.write.sources import move_source

    with new_place(source.remote.url) as (_, home), Checkout.locked(home) as checkout:
        checkout.check_asked(source.remote, source.name)
        with core.writer.transaction() as connection:
            move_source(connection, source, tree_of(home))
    return folders.adopt(core, name)


def remove(
    core: Core, name: str, *, as_admin: bool = False, with_tombstones: bool = True
) -> Source:
    """Remove a source and its checkout.

    If ``with_tombstones``, record the skills as removed. Otherwise the registry keeps no record of
    them.
    """
    source = folders.remove(core, name, as_admin=as_admin, with_tombstones=with_tombstones)
    if source.remote is not None and is_here(core, source.host, source.path):
        from registry.remotes.fetch import remove_checkout

        # Keep the folder unless it is a checkout of this user and this source.
        with suppress(RegistryError, OSError):
            remove_checkout(source.path, source.remote, source.name)
    return source


def asked(core: Core, sources: Sequence[Source]) -> list[Source]:
    """Query the remote sources; return them with ``behind``: whether there is a newer version.

    Several remote sources are queried at the same time.
    """
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(AT_ONCE, "registry-ask") as pool:
        answers = pool.map(lambda one: _behind(core, one), sources)
        return [
            one if one.remote is None else replace(one, remote=replace(one.remote, behind=answer))
            for one, answer in zip(sources, answers, strict=True)
        ]


def _behind(core: Core, source: Source) -> bool | None:
    """Tell whether a source's remote has a newer version, or a pinned tag moved.

    Returns None if this is unknown, or if the source is a local folder.
    """
    if source.remote is None or not is_here(core, source.host, source.path):
        return None
    try:
        return _is_behind(core, source, source.remote)
    except PinMoved as moved:
        core.warn(f"{source.name}: {moved}")
        return True
    except (RegistryError, OSError):
        return None
    except Exception as error:  # noqa: BLE001  # a hostile server must not hide other sources
        from registry.remotes.fetch import internal, log

        log.debug("Asking %s failed", source.name, exc_info=True)
        core.warn(f"{source.name}: {internal(error)}")
        return None


def _is_behind(core: Core, source: Source, remote: Remote) -> bool:
    from registry.remotes.fetch import Checkout, home_of
    from registry.remotes.kinds import open_remote

    kinds, bounds = core.settings.source_kinds, FetchLimits(seconds=ASK_SECONDS)
    home = home_of(source.path, source.name)
    if remote.kind == "git":
        from registry.remotes.fetch import pin_now
        from registry.remotes.git import Git, is_changed

        checkout = Checkout(home)
        is_ours = checkout.is_of(remote)
        pin = pin_now(checkout, remote, source.name, bounds) if is_ours else None
        now = Git(remote.url, "", bounds).find(remote.ref) if pin is None else pin.commit
        before = remote.version
        if before is None or before == now or remote.part is None:
            return now != before
        return is_changed(remote.url, remote.part, before, now, bounds)
    with (
        Checkout.locked(home) as checkout,
        open_remote(remote, checkout.state, remote.version, bounds, kinds) as tree,
    ):
        return tree is not None


def newer_tags(sources: Sequence[Source]) -> list[list[str] | None]:
    """Return for each source the tags of newer versions than the tag that is its pin.

    Each list begins with the newest tag. It is empty if the pin isn't the tag of a version. The
    result is None if the remote doesn't answer. Several remote sources are queried at the same
    time.
    """
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(AT_ONCE, "registry-ask") as pool:
        return list(pool.map(_newer_tags, sources))


def _newer_tags(source: Source) -> list[str] | None:
    from registry.remotes.git import Git
    from registry.remotes.tags import newer_than, prefix_of

    remote = source.remote
    if remote is None or remote.kind != "git" or not remote.ref or prefix_of(remote.ref) is None:
        return []
    try:
        tags = Git(remote.url, "", FetchLimits(seconds=ASK_SECONDS)).tags()
    except (RegistryError, OSError):
        return None
    return newer_than(remote.ref, tags)


def check_exists(address: Address) -> None:
    """Raise `AddressInvalid` if the address is a missing file or folder of this machine."""
    path = file_path_of(address.url)
    # git also accepts NAME for a repository called NAME.git
    if path is not None and not any(map(os.path.lexists, (path, f"{path}.git"))):
        kind = "file" if is_archive(path) else "folder"
        raise AddressInvalid(address=address.url, reason=f"there is no such {kind}")


def kind_of(address: Address, bounds: FetchLimits = FetchLimits()) -> str:  # noqa: B008  # immutable
    """Return the kind of an address; for an http address, send a request to find out.

    Raises `RemoteProblem`.
    """
    if address.kind != "web":
        return address.kind
    from registry.remotes.git import Git
    from registry.remotes.kinds import detect_kind

    try:
        return detect_kind(address.url, bounds)
    except RemoteInvalid:
        try:
            Git(address.url, "", bounds).find(None)
        except RegistryError:
            pass
        else:
            return "git"
        raise


def address_of(core: Core, known: Sequence[Source], target: str) -> Address | None:
    """Return the address in a target; None if the target is a source or a local folder.

    ``owner/repo`` looks like ``source/skill``, so a typing error could install a skill of an
    unknown person. Such a target is accepted if one of the ``known`` sources has the repository.
    Otherwise it is refused in two cases: it is the ref of a skill (which may be deleted), or its
    owner is similar to the name of a source. Raises `SkillNotFound`, `SkillAmbiguous`,
    `UsageProblem`, `AddressInvalid`.
    """
    if any(target in {one.name, one.path} for one in known):
        return None
    path = os.path.expanduser(target.replace("\0", "\ufffd"))
    address = read_address(core.settings, target)
    if address is None or (os.path.isdir(path) and "://" not in target):
        return None
    if address.is_short and not _has_repository(known, address):
        _check_shorthand(core, known, target)
    return address


def new_shorthand(core: Core, target: str) -> Address | None:
    """Return the address of a shorthand ``owner/repo`` that isn't a source yet, else None.

    The user must confirm such an address.
    """
    known = list_sources(core.reader, counted=False)
    address = address_of(core, known, target)
    is_new = address is not None and address.is_short and not _has_repository(known, address)
    return address if is_new else None


def _has_repository(known: Sequence[Source], address: Address) -> bool:
    urls = {normalize_url(one.remote.url) for one in known if one.remote is not None}
    return normalize_url(address.url) in urls


def _check_shorthand(core: Core, known: Sequence[Source], text: str) -> None:
    """Raise an error if ``owner/repo`` may be the ref of a skill.

    This compares only the sources that the user can see.
    """
    explicit = f"github:{text}"
    try:
        skill = resolve(core.reader, text).skill
    except SkillNotFound as error:
        found = error
    else:
        message = f"{text} is a skill of the source {skill.source}. For a repository: {explicit}"
        raise UsageProblem(message=message)
    if type(found) is not SkillNotFound:  # this was the ref of a skill that is now deleted
        raise found
    names = {name_key(one.name): one.name for one in known}
    near = get_close_matches(name_key(text.partition("/")[0]), names, n=1)
    if near:
        raise ShorthandUnclear(text, found.similar, names[near[0]], explicit)


def _same(known: Sequence[Source], address: Address) -> Source | None:
    """Return the source with the same address, ref, folder and selected skills.

    Returns None if there is no such source.
    """
    asked = address.ref, address.part, address.only
    for one in known:
        remote = one.remote
        is_there = remote is not None and normalize_url(remote.url) == normalize_url(address.url)
        if remote is not None and is_there and (remote.ref, remote.part, remote.only) == asked:
            return one
    return None


def _check_pin(core: Core, known: Sequence[Source], address: Address) -> None:
    """Raise `UsageProblem` if an address differs from a source of this user only in the pin."""
    for one in known:
        if one.remote is None or not is_ours(core, one):
            continue
        if _same([one], replace(address, ref=one.remote.ref)) is not None:
            pinned = f"pinned to {one.remote.ref}" if one.remote.ref else "without a pin"
            change = f"skill-registry source update {quote(one.name)} --ref"
            raise UsageProblem(
                message=f"The source {one.name} already has this repository, {pinned}. To change "
                f"the pin, run: {change} {quote(address.ref or '')}. To add a second source, give "
                "it a name with --name."
            )


def _add(
    core: Core, address: Address, *, name: str | None, scope: Scope | None, priority: int
) -> tuple[Source, Fetched]:
    """Fetch an address into a new checkout, then register the checkout as a source.

    After an error, no files stay on disk.
    """
    from registry.remotes.fetch import fetch, new_place, tree_of

    check_exists(address)
    kind = kind_of(address)
    remote = Remote(kind, address.url, address.ref, address.part, address.only)
    telling = address.host if kind in {"site", "hub"} else address.telling
    if kind == "archive" and file_path_of(address.url) is not None:
        telling = "/" + os.path.basename(telling)  # the name of the parent folder isn't informative
    # Importing the code that stores the source takes 0.25 s, so import it while the program waits
    # for the server.
    Thread(target=import_module, args=("registry.sync.apply",)).start()
    with new_place(telling) as (draft, home):
        got = fetch(core, remote, draft, name or address.url)
        os.rename(draft, home)
        source = None
        while source is None:
            same = _same(list_sources(core.reader, counted=False), address)
            if same is not None:  # another process has added the address in the meantime
                raise SourceExists(name=same.name, path=same.path)
            # If another process takes the generated name at this moment, try another name.
            with suppress(*() if name else (SourceExists,)):
                source = folders.add(
                    core,
                    tree_of(home),
                    name=name,
                    scope=scope or SCOPE,
                    priority=priority,
                    remote=got.remote,
                    telling=telling,
                )
    return source, got


Choose: TypeAlias = Callable[[Sequence[Skill]], Sequence[Skill]]
"""A function that selects skills: it gets skills and returns the selected ones."""


def is_address(core: Core, name: str) -> bool:
    """Tell whether a name is an address from which to fetch skills, and not the ref of a skill."""
    if "/" not in name and ":" not in name:
        return False
    with suppress(RegistryError):
        if read_address(core.settings, name) is None:
            return False
        if "://" in name:
            return True
    try:
        parts = split_label(core.reader, name)
        resolve(core.reader, name if parts is None else parts[0])
    except SkillNotFound:
        return True
    except RegistryError:
        return False
    return False


def skills_at(
    core: Core,
    address: str,
    *,
    skills: Sequence[str] = (),
    every: bool = False,
    dry_run: bool = False,
    choose: Choose | None = None,
) -> list[Skill]:
    """Fetch an address as a source (add it if it is new), and return the selected skills.

    ``skills`` are the names of the skills to select. If there are no names, ``every`` selects all
    skills. Otherwise the only skill is selected; if there are several, ``choose`` selects some.

    Quarantined skills are skipped, with a warning. If ``dry_run``, nothing is fetched or added.
    After an error, a source that this call added is removed. Raises `SeveralSkills`,
    `SkillNotFound`, `SkillHeld`, `UsageProblem`, `AddressInvalid`, `RemoteProblem`.
    """
    known = {one.name: one for one in list_sources(core.reader, counted=False)}
    asked = address_of(core, list(known.values()), address)
    source = None if asked is None else _source_of(core, known.values(), asked)
    if source is not None and asked is not None and not _is_own(source, asked):
        skills, part = skills or asked.only, asked.part or ROOT
    else:  # the source has exactly this address
        every, part = every or bool(asked and asked.only), ROOT
    if dry_run:
        if source is None:
            way = f"skill-registry pull {quote(address)} --list"
            message = f"{address} is not a source yet, and --dry-run and --check fetch nothing"
            raise UsageProblem(message=f"{message}. To see its skills, run: {way}")
        name = source.name
    else:
        target = source.name if source is not None else asked or address
        (synced,) = fetch_and_sync(core, [target], wait=True).sources
        name = synced.name
        if synced.outcome != "ok":
            core.warn(f"{name}: {synced.message}")
        if synced.remote is None:
            raise UsageProblem(message=f"{address} is a folder here: name the skills themselves")
    try:
        return _chosen(core, name, address, part, skills, every=every, choose=choose)
    except BaseException:  # this includes an interrupt in a prompt
        remove_added(core, [name], known)
        raise


def remove_added(core: Core, names: Iterable[str], known: Collection[str]) -> list[str]:
    """Remove the sources ``names`` that are not in ``known``, and return their names.

    A refused pull calls this to remove the sources that it added.
    """
    added = [one for one in dict.fromkeys(names) if one not in known]
    for name in added:
        remove(core, name, with_tombstones=False)
    return added


def with_other_pin(core: Core, target: str) -> tuple[Source, Address] | None:
    """Return this user's source that has the repository of an address, but another pin.

    Returns None if there is none, or if a source has exactly this address.
    """
    known = list_sources(core.reader, counted=False)
    asked = address_of(core, known, target)
    if asked is None or _source_of(core, known, asked) is not None:
        return None
    for one in known:
        remote = one.remote
        if remote is None or remote.kind != "git" or remote.only or not is_ours(core, one):
            continue
        if (normalize_url(remote.url), remote.part) == (normalize_url(asked.url), asked.part):
            return one, asked
    return None


def _source_of(core: Core, known: Iterable[Source], asked: Address) -> Source | None:
    """Return the source with exactly this address, or else a source of the whole repository.

    Returns None if there is no such source.
    """
    found = None
    for one in known:
        remote = one.remote
        if remote is None or (normalize_url(remote.url), remote.ref) != (
            normalize_url(asked.url),
            asked.ref,
        ):
            continue
        if _is_own(one, asked):
            return one
        is_whole = remote.part is None and not remote.only
        if is_whole and any(map(any, _offered(core, one.name, asked.part or ROOT))):
            found = one
    return found


def _is_own(source: Source, asked: Address) -> bool:
    remote = source.remote
    return remote is not None and (remote.part, remote.only) == (asked.part, asked.only)


def _chosen(
    core: Core,
    source: str,
    address: str,
    part: str,
    names: Sequence[str],
    *,
    every: bool,
    choose: Choose | None,
) -> list[Skill]:
    offered, held = _offered(core, source, part)
    if names:
        return [_named(core, name, address, offered, held) for name in names]
    if held and not offered:
        raise _refused(core, held[0], address)
    waiting = list(dict.fromkeys(one.name for one in held))
    is_clear = every or len(offered) + len(waiting) == 1
    if not is_clear and choose is None:
        listed = sorted([one.name for one in offered] + waiting)
        raise SeveralSkills(path=address, names=listed, held=waiting, source=source)
    if held:
        told = ", ".join(waiting)
        core.warn(f"{source}: {told} quarantined until you trust the source")
    return offered if is_clear or choose is None else list(choose(offered))


def _offered(core: Core, source: str, part: str) -> tuple[list[Skill], list[Skill]]:
    """Return the usable skills of a source in a folder, and the quarantined skills there.

    If usable skills are copies of each other, only one of them is returned.
    """
    offered, held = [], []
    for stored in skills_of_source(core.reader, source):
        if part != ROOT and not f"{stored.folder}/".startswith(f"{part}/"):
            continue
        if stored.quarantined:
            held.append(stored.skill)
        elif stored.is_usable:
            offered.append(stored.skill)
    first: dict[tuple[str, str | None], Skill] = {}
    for one in sorted(offered, key=lambda one: one.shadowed):
        first.setdefault((one.name, one.tree_hash), one)
    return [one for one in offered if first[one.name, one.tree_hash] is one], held


def _refused(core: Core, skill: Skill, address: str) -> SkillHeld:
    found = security_findings(core.reader, skill.source, [skill.ref])
    problems = [Diagnostic(one.code, one.severity, one.message) for one in found]
    return SkillHeld(skill.name, skill.source, address=address, problems=problems)


def _named(
    core: Core, name: str, address: str, offered: Sequence[Skill], held: Sequence[Skill]
) -> Skill:
    """Return the skill with a name; if there is none, the skill in a folder with this name."""
    for one in (*_of_name(name, offered), *_of_name(name, held)):
        if one in offered:
            return one
        raise _refused(core, one, address)
    near = get_close_matches(name, [one.name for one in offered], n=3)
    raise SkillNotFound(name, similar=near)


def _of_name(name: str, among: Sequence[Skill]) -> list[Skill]:
    """Return the skills with a name, those in a folder with this name first.

    If no skill has the name, return the skills in a folder with this name.
    """
    key = name.casefold()
    in_folder = [one for one in among if one.folder.rpartition("/")[2].casefold() == key]
    named = [one for one in among if one.name.casefold() == key]
    return sorted(named, key=lambda one: one not in in_folder) or in_folder
