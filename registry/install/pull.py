"""Install skills of a registry into a folder or for agents, without overwriting edits."""

import os
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from difflib import get_close_matches
from shlex import quote

from registry.catalog.resolve import trust_command
from registry.changes.untrusted import check_untrusted
from registry.core import Core
from registry.db.read.skills import same_files
from registry.disk.atomic import missing_folders
from registry.disk.links import real_path
from registry.document.labels import split
from registry.errors import (
    LockEdited,
    LockMissing,
    LockNotMet,
    NotPulled,
    PullRefused,
    RegistryError,
    SkillHeld,
)
from registry.install import lockfile, pull_records
from registry.install.content import content_as_locked, is_known
from registry.install.lockfile import LockEntry, Mode
from registry.install.plan import InstallPlan, InstallTransaction
from registry.install.provenance import Provenance, folders, original, owner
from registry.install.pull_records import remember
from registry.install.releases import at_label
from registry.install.restore import LockedOrigins
from registry.install.staging import LOCK_SECONDS, open_exclusively, where
from registry.install.targets import PLAIN, InstallOptions, InstallResult, InstallTarget
from registry.install.versions import is_yanked, noted, versions_of
from registry.model import PinnedSkill, Skill
from registry.remotes.git import COMMIT


def pull(
    core: Core, skills: Sequence[Skill], target: InstallTarget, options: InstallOptions = PLAIN
) -> list[InstallResult]:
    """Write skills into folders with their names; leave folders with equal files unchanged.

    Unless ``options`` allow it, some other folders also stay unchanged: edited folders, folders
    that no pull created, and folders of skills from another source. If a remote source has the
    original of an installed copy, the original is installed. Raises `PullClash`, `PullRefused`,
    `LockFileInvalid`, `AgentNotFound`, `UsageProblem`.
    """
    target.folder_ids(options.agents)
    skills = [original(core, one) for one in skills]
    places, refused = folders(skills, target.path, for_agents=bool(options.agents))
    with open_transaction(core, target, options) as work:
        found = [
            _noted(
                core, work, folder, work.pull(folder, places[folder], options.agents, options.mode)
            )
            for folder in options.with_progress(places)
        ]
    return found + refused


def _noted(core: Core, work: InstallPlan, folder: str, told: InstallResult) -> InstallResult:
    entry = work.locked.get(folder)
    return noted(told, entry, versions_of(core, entry) if entry is not None else ())


def update(
    core: Core,
    target: InstallTarget,
    names: Mapping[str, str | None] | None = None,
    options: InstallOptions = PLAIN,
) -> list[InstallResult]:
    """Update the installed skills in the folders ``names``, or all skills in the lock file.

    ``names`` maps each folder to the label of the version to pin; None means to follow the source.
    Without ``names``, pinned skills keep their version. A skill also keeps its files if its current
    files in the registry are a yanked version. If the address of a skill isn't a source here,
    missing files are restored in the locked version. So are those of a skill that another machine
    locked at another ref (`Provenance.locked_elsewhere`), unless forced. Raises `LockMissing`, and
    the errors of `pull`.
    """
    if not os.path.isdir(target.path):
        check_locked(target)
    with ExitStack() as stack:
        origins = LockedOrigins(core, stack, offline=options.offline)
        work = stack.enter_context(open_transaction(core, target, options))
        check_locked(target)  # `open_transaction` has finished or undone interrupted pulls
        chosen = [one for one in sorted(work.locked) if names is None or one in names]
        missing = [one for one in chosen if not os.path.lexists(work.path(one))]
        origins.expect(_unknown(core, [work.locked[one] for one in missing]))
        found = []
        elsewhere = {} if options.force else _locked_elsewhere(core, target, work.locked)
        for folder in options.with_progress(chosen):
            entry = work.locked[folder]
            pin = entry.pin if names is None else names[folder]
            versions = versions_of(core, entry)
            stays = is_yanked(versions) if pin is None else pin == entry.pin
            reason = elsewhere.get(folder) if pin is None else None
            stays = stays or reason is not None
            skill = None if stays else owner(core, entry)
            if skill is not None:
                told = _pull_one(core, work, folder, skill, pin, options.mode)
            else:
                told = work.check(folder, None) if stays else work.compare(folder, None)
                is_wanted = told.state == "edited" and (options.force or options.theirs)
                if told.state == "missing" or is_wanted:
                    told = _restore_one(core, work, origins, folder, entry)
                told = replace(told, reason=told.reason or reason)
            now = work.locked[folder]
            found.append(noted(told, now, versions if now == entry else versions_of(core, now)))
        return found


def skills_to_update(
    core: Core, target: InstallTarget, names: Mapping[str, str | None] | None
) -> list[Skill]:
    """Return the skills whose current files `update` installs, by its argument ``names``."""
    pins = names or {}
    locked = lockfile.read_lock(target.path)
    elsewhere = _locked_elsewhere(core, target, locked)
    entries = [
        entry
        for folder, entry in locked.items()
        if folder not in elsewhere
        and (entry.pin is None if names is None else pins.get(folder, "") is None)
    ]
    found = [(entry, owner(core, entry)) for entry in entries]
    return [one for entry, one in found if one is not None and one.tree_hash != entry.tree_hash]


def _locked_elsewhere(
    core: Core, target: InstallTarget, locked: Mapping[str, LockEntry]
) -> dict[str, str]:
    return Provenance(core).locked_elsewhere(target, locked)


def _pull_one(
    core: Core,
    work: InstallPlan,
    folder: str,
    skill: Skill,
    pin: str | None,
    mode: Mode | None,
) -> InstallResult:
    """Install the current files of a skill, or the version ``pin``."""
    entry = work.locked[folder]
    try:
        wanted = skill if pin is None else at_label(core, skill, pin)
    except RegistryError as error:
        return InstallResult(skill.ref, work.path(folder), "failed", str(error))
    return work.pull(folder, wanted, entry.agents, mode)


def remove(
    core: Core, target: InstallTarget, names: Sequence[str], options: InstallOptions = PLAIN
) -> list[InstallResult]:
    """Remove the installed skills in these folders, and their links; edited skills stay.

    If ``options`` have agents, remove the skills only for these agents; see `InstallPlan.remove`.
    """
    with open_transaction(core, target, options) as work:
        if options.agents:
            for folder in names:  # after an error, nothing must have changed
                work.entry_without(folder, options.agents)
        return [work.remove(folder, options.agents) for folder in names]


def restore_from_lock(
    core: Core, target: InstallTarget, options: InstallOptions = PLAIN
) -> list[InstallResult]:
    """Restore all skills to the state in the lock file, byte for byte, or change nothing.

    Files of a remote source are scanned for security errors, unless the sync that listed their
    skill has scanned them. Raises
    `LockNotMet` if a skill can't be restored. Raises its subclass `LockEdited` if edits are the
    only reason. Also raises the errors of `pull`.
    """
    check_locked(target)
    missing: dict[str, list[str]] = {}
    kind: type[LockNotMet] = LockEdited
    with ExitStack() as stack:
        origins = LockedOrigins(core, stack, offline=options.offline)
        with open_transaction(core, target, replace(options, dry_run=True)) as plan:
            wanted = [one for one in sorted(plan.locked) if not plan.is_as_locked(one)]
            origins.expect(_unknown(core, [plan.locked[one] for one in wanted]))
            for folder in wanted:
                told = _restore_one(core, plan, origins, folder, plan.locked[folder])
                if told.state in {"edited", "failed"}:
                    reason = (told.reason or told.state).rstrip(".")
                    missing.setdefault(reason, []).append(folder)
                if told.state == "failed":
                    kind = LockNotMet
        if missing:
            lines = [f"{', '.join(folders)} ({reason})" for reason, folders in missing.items()]
            raise kind(path=os.path.join(target.path, lockfile.NAME), missing=lines)
        with open_transaction(core, target, options) as work:
            return [
                _noted(core, work, folder, _restore_one(core, work, origins, folder, entry))
                for folder, entry in sorted(work.locked.items())
            ]


def _unknown(core: Core, entries: Iterable[LockEntry]) -> list[LockEntry]:
    return [one for one in entries if not is_known(core, one.name, one.tree_hash)]


def _restore_one(
    core: Core, work: InstallPlan, origins: LockedOrigins, folder: str, entry: LockEntry
) -> InstallResult:
    if work.is_as_locked(folder):
        return InstallResult(entry.ref, work.path(folder), "unchanged")
    # Read the files a second time here, because the files of all skills together may not fit into
    # memory.
    reason = None
    entries = content_as_locked(core, entry.name, entry.tree_hash, foreign=False)
    if entries is None:
        entries = content_as_locked(core, entry.name, entry.tree_hash)
        try:
            if entries is None:
                entries = origins.files(entry)
            if entries is not None:
                files = {one.path: one.data for one in entries}
                runs = {one.path for one in entries if one.executable}
                check_untrusted(core, entry.name, files, runs)
        except SkillHeld as held:
            entries, reason = None, _why_held(core, entry, held)
        except RegistryError as error:
            entries, reason = None, str(error)
    return work.restore(folder, entry, entries, reason)


def _why_held(core: Core, entry: LockEntry, held: SkillHeld) -> str:
    """Return the first security error in an entry's files, and a command to accept the skill."""
    found = next(one for one in held.facts["problems"] if one.severity == "error")
    waiting = same_files(core.reader, entry.name, entry.tree_hash)
    known = next((one.skill for one in waiting if one.quarantined), None)
    way = trust_command(*(("NAME", entry.name) if known is None else (known.source, known.ref)))
    if known is None and entry.origin is not None and entry.origin["url"] is not None:
        url, commit = entry.origin["url"], entry.origin["commit"] or ""
        pinned = f"{url}#{commit}" if COMMIT.fullmatch(commit) else url
        way = f"skill-registry sync {quote(pinned)} --name NAME && {way}"
    return f"it has security errors ({found.code}: {found.message}). To accept them, run: {way}"


def check_locked(target: InstallTarget) -> None:
    """Raise `LockMissing` if the target has no lock file.

    Without this check, the result would be that no skill is outdated, which is misleading.
    """
    if not is_locked(target):
        raise LockMissing(path=os.path.join(target.path, lockfile.NAME))


def is_locked(target: InstallTarget) -> bool:
    """Tell whether the target has a lock file."""
    return os.path.lexists(os.path.join(target.path, lockfile.NAME))


def _refs(entry: LockEntry) -> tuple[str, str, str]:
    """Return the refs that users may know for an installed skill; the most specific comes last."""
    return f"{entry.source}/{entry.name}", f"{entry.source}/{entry.folder}", entry.ref


def folders_of(target: InstallTarget, names: Sequence[str]) -> dict[str, str | None]:
    """Return the folders of the installed skills with these names, refs or folders.

    The result maps each folder to the label if the name is ``NAME@LABEL``, else to None. Raises
    `NotPulled` if no installed skill has a name, and `LockMissing`.
    """
    check_locked(target)
    locked = lockfile.read_lock(target.path)
    known = {
        name: folder
        for folder, entry in locked.items()
        for name in (*_refs(entry), entry.name, folder)
    }
    found: dict[str, str | None] = {}
    for name in names:
        parts = split(name)
        if name in known:
            found[known[name]] = None
        elif parts is not None and parts[0] in known:
            found[known[parts[0]]] = parts[1]
        else:
            near = get_close_matches(name, locked, n=3)
            path = os.path.join(target.path, lockfile.NAME)
            raise NotPulled(name=name, path=path, similar=near)
    return found


def check(
    core: Core,
    skills: Sequence[Skill] | None,
    target: InstallTarget,
    names: Collection[str] | None = None,
) -> list[InstallResult]:
    """Return how installed skills differ from the registry.

    The function compares the given ``skills``. If ``skills`` is None, it compares the locked skills
    in the folders ``names`` or, without ``names``, in all folders.
    """
    with as_pull_refused(target.path), ExitStack() as stack:
        plan = InstallPlan(core, stack, target)
        plan.begin()
        if skills is not None:
            for_agents = any(entry.agents for entry in plan.locked.values())
            skills = [original(core, one) for one in skills]
            places, refused = folders(skills, target.path, for_agents=for_agents)
            return [_check_one(core, plan, *place) for place in places.items()] + refused
        elsewhere = _locked_elsewhere(core, target, plan.locked)
        return [
            _check_one(core, plan, folder, None, elsewhere.get(folder))
            for folder in sorted(plan.locked)
            if names is None or folder in names
        ]


def _check_one(
    core: Core, plan: InstallPlan, folder: str, skill: Skill | None, elsewhere: str | None = None
) -> InstallResult:
    """Compare an installed skill with ``skill``; if it is None, with the skill of its lock entry.

    Some skills are compared only with the lock file, because they keep their files. These are
    pinned skills, skills whose current files in the registry are a yanked version, and skills with
    a message ``elsewhere`` from `Provenance.locked_elsewhere`.
    """
    entry = plan.locked.get(folder)
    if entry is None:
        return plan.check(folder, skill)
    versions = versions_of(core, entry)
    stays = entry.pin is not None or is_yanked(versions) or elsewhere is not None
    if isinstance(skill, PinnedSkill) or not stays:
        told = (
            plan.compare(folder, owner(core, entry)) if skill is None else plan.check(folder, skill)
        )
    else:
        told = plan.check(folder, None)
        told = replace(told, reason=told.reason or elsewhere)
    return noted(told, entry, versions)


@contextmanager
def open_transaction(
    core: Core,
    target: InstallTarget,
    options: InstallOptions = PLAIN,
    *,
    remembers: bool = True,
    wait: float = LOCK_SECONDS,
) -> Iterator[InstallPlan]:
    """Open the transaction that changes a target; for a dry run, open only a plan.

    If ``remembers``, the pull is recorded for `undo`. ``wait`` is the maximum time to wait for
    another pull, in seconds.
    """
    with as_pull_refused(target.path), ExitStack() as stack:
        if options.dry_run:
            plan = InstallPlan(core, stack, target, options=options)
            plan.begin()
            yield plan
            return
        path = real_path(target.path)
        made = missing_folders(path)
        work = InstallTransaction(
            core, stack, target, stack.enter_context(open_exclusively(target.path, wait)), options
        )
        pull_records.note_begun(target)
        try:
            work.begin()
            work.made += made if is_locked(target) else [*made, os.path.join(path, lockfile.NAME)]
            yield work
        finally:
            work.flush()
            if remembers:
                remember(core, target, work.changed)
        pull_records.note_ended(target)


def finish_interrupted_pulls(core: Core) -> None:
    """Finish or undo all interrupted pulls of this user; running pulls are not affected."""
    for target in pull_records.interrupted_targets():
        if not os.path.isdir(target.path):
            pull_records.note_ended(target)
            continue
        with suppress(RegistryError), open_transaction(core, target, remembers=False, wait=0):
            pass  # opening the transaction finishes or undoes interrupted pulls


@contextmanager
def as_pull_refused(path: str) -> Iterator[None]:
    """If the block raises an OSError, raise `PullRefused` instead."""
    try:
        yield
    except OSError as error:
        reason = error.strerror or str(error)
        raise PullRefused(path=where(path, error), reason=reason) from error
