"""Choose the folder of each skill, and find the skill in the registry for each lock entry."""

import os
import re
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cached_property
from shlex import join, quote
from typing import Final

from registry.catalog.reading import CurrentSkill
from registry.catalog.resolve import resolve
from registry.core import Core
from registry.db.read.history import has_revision_with, skills_that_had
from registry.db.read.skills import StoredSkill, same_name
from registry.db.read.sources import list_sources
from registry.disk.files import digest
from registry.disk.links import real_path
from registry.disk.paths import ROOT, is_below
from registry.document.names import check_folder_name
from registry.errors import PullClash, RegistryError, SkillAmbiguous, SkillNotFound
from registry.install import lockfile
from registry.install.content import FileContent, tree_hash
from registry.install.lockfile import LockEntry, Mode, read_lock
from registry.install.targets import InstallResult, InstallTarget
from registry.model import DOCUMENT_NAMES, PinnedSkill, Remote, Skill, Source
from registry.remotes.address import check_ref, normalize_url, read_address
from registry.text import folded, name_key

NO_FOLDER: Final = "Neither its name nor its folder's can be the name of a folder on every system."
ALREADY_THERE: Final = "it is there already"
"""Start of a reason to refuse: the skill's own folder is the folder into which to install."""

LIES_ABOVE: Final = "It would be installed inside its own folder."
UNLESS_FORCED: Final = "To replace it, add --force."
"""End of a reason to refuse, if the option ``force`` allows the change."""

_INSTALLED: Final = "is already installed from"

_NOT_KEPT: Final = re.compile(r"[^a-z0-9._]+")
_MAX_NAME: Final = 255


def agents_folder(name: str) -> str:
    """Return the name of the folder that the ``skills`` tool would give to a skill."""
    return _NOT_KEPT.sub("-", name.lower()).strip(".-")[:_MAX_NAME] or "unnamed-skill"


def folders(
    skills: Sequence[Skill], to: str, *, for_agents: bool
) -> tuple[dict[str, Skill], list[InstallResult]]:
    """Return the skills by the folders into which they will be installed, and the refused skills.

    A folder has the name of the skill, or of the skill's own folder. If several skills would have
    the same folder, all of them are refused. Raises `PullClash` if all skills are refused.
    """
    refused: list[InstallResult] = []
    wanted: dict[str, dict[tuple[str, str], tuple[str, Skill]]] = {}
    for skill in skills:
        names = [skill.name, os.path.basename(skill.path)]
        if for_agents:
            names = list(map(agents_folder, names))
        folder = next(filter(_is_safe, names), None)
        if folder is None:
            refused.append(InstallResult(skill.ref, to, "failed", NO_FOLDER))
        else:
            found = wanted.setdefault(name_key(folded(folder)), {})
            found[skill.source, skill.folder] = folder, skill
    places = dict(next(iter(found.values())) for found in wanted.values() if len(found) == 1)
    for found in wanted.values():
        if len(found) > 1:
            folder = next(iter(found.values()))[0]
            clash = PullClash(folder=folder, refs=[skill.ref for _, skill in found.values()])
            if not places:
                raise clash
            refused += [
                InstallResult(skill.ref, os.path.join(to, name), "failed", str(clash))
                for name, skill in found.values()
            ]
    return places, refused


def _is_safe(folder: str) -> bool:
    return check_folder_name(folder) is None and name_key(folder) != lockfile.NAME


def owner(core: Core, entry: LockEntry) -> Skill | None:
    """Return the registry's skill from which an entry was installed; None if there is none.

    First, this tries the skill at the entry's source and folder, if it has the entry's origin.
    Next, it tries the skill with that origin. Last, it tries a moved skill: one from the same
    address that had the locked files. The result is never an installed copy.
    """
    found = None
    with suppress(SkillNotFound, SkillAmbiguous):
        found = resolve(core.reader, f"{entry.source}/{entry.folder}")
    origin = entry.origin
    if origin is None:
        if found is not None and had(core, found.skill, entry.tree_hash):
            return original(core, found.skill)
        moved = _moved(core, [entry.source], entry.name, entry.tree_hash)
        return next((one.skill for one in moved if not one.remote), None)
    if (
        found is not None
        and found.remote
        and (is_of(found.skill, origin) or had(core, found.skill, entry.tree_hash))
    ):
        return found.skill
    there = at_origin(core, entry.name, origin, entry.tree_hash)
    return None if there is None else there.skill


def original(core: Core, skill: Skill) -> Skill:
    """Return the remote source's skill of an unedited installed copy.

    For any other skill, return ``skill`` itself.
    """
    if skill.origin is None or isinstance(skill, PinnedSkill):
        return skill
    with suppress(RegistryError):  # the next operation that reads the skill reports the error
        found = resolve(core.reader, f"{skill.source}/{skill.folder}")
        if not found.remote:
            now = CurrentSkill.of_stored(core, found).stored.skill
            if (origin := origin_of(now)) is not None:
                there = at_origin(core, now.name, origin, now.tree_hash or "")
                if there is not None:
                    return there.skill
            return replace(now, ref=skill.ref)
    return skill


def at_origin(
    core: Core, name: str, origin: Mapping[str, str | None], tree: str
) -> StoredSkill | None:
    """Return the remote source's skill at an origin.

    If there is none now, return a skill from the same address that has or had this tree hash.
    """
    for one in same_name(core.reader, name):
        if one.is_usable and one.remote and is_of(one.skill, origin):
            return one
    url = normalize_url(origin["url"] or "")
    known = list_sources(core.reader, counted=False)
    names = [
        one.name for one in known if one.remote is not None and normalize_url(one.remote.url) == url
    ]
    return next((one for one in _moved(core, names, name, tree) if one.remote), None)


def had(core: Core, skill: Skill, tree: str) -> bool:
    """Tell whether a skill has or had these files, by the revisions in this registry.

    A lock file identifies a local source only by its name. On another machine, an unrelated source
    may have the same name.
    """
    those = skills_that_had(core.reader, skill.source, tree)
    return any(one.skill.folder == skill.folder for one in those)


def _moved(core: Core, sources: Sequence[str], name: str, tree: str) -> list[StoredSkill]:
    """Return the usable skills of these sources that have or had this tree hash.

    Skills with the name ``name`` come first.
    """
    found = [one for source in sources for one in skills_that_had(core.reader, source, tree)]
    usable = [one for one in found if one.is_usable]
    return sorted(usable, key=lambda one: one.skill.name != name)


def lock_entry(
    skill: Skill, entries: Sequence[FileContent], ids: tuple[str, ...], mode: Mode
) -> LockEntry:
    """Return the lock entry of a skill with these files, before its folder is written."""
    hashes = {one.path: digest(one.data) for one in entries}
    return LockEntry(
        name=skill.name,
        ref=skill.ref,
        source=skill.source,
        folder=skill.folder,
        content_hash=next((hashes[name] for name in DOCUMENT_NAMES if name in hashes), ""),
        tree_hash=tree_hash(entries),
        digest="",
        files=hashes,
        origin=origin_of(skill),
        agents=ids,
        mode=mode,
        pin=skill.pin if isinstance(skill, PinnedSkill) else None,
    )


def origin_of(skill: Skill) -> dict[str, str | None] | None:
    """Return the origin of a skill in the form of a lock entry.

    For a copy, this is the origin of the copied skill. Returns None if there is no origin.
    """
    return None if skill.origin is None else lockfile.origin_from(skill.origin.to_dict())


def is_of(skill: Skill, origin: Mapping[str, str | None]) -> bool:
    """Tell whether a skill comes from an origin; the commits may be different."""
    found = origin_of(skill)
    return found is not None and _place(found) == _place(origin)


def _place(origin: Mapping[str, str | None]) -> tuple[str, str]:
    return normalize_url(origin["url"] or ""), origin["path"] or "."


def is_taken(core: Core, entry: LockEntry | None, skill: Skill) -> str | None:
    """Return why an entry's folder belongs to another skill; None if it belongs to this skill."""
    if entry is None or _is_owner(core, entry, skill):
        return None
    whose = owner(core, entry)
    if whose is not None:
        place = f"{whose.source}/{whose.folder}"
        is_other = (whose.source, whose.folder) != (skill.source, skill.folder)
        return f"{_INSTALLED} {place}. {UNLESS_FORCED}" if is_other else None
    if entry.tree_hash == skill.tree_hash or entry.origin == origin_of(skill) is not None:
        return None
    place = f"{entry.source}/{entry.folder}" if entry.source else "another source"
    known = "which this registry doesn't have"
    if (entry.source, entry.folder) == (skill.source, skill.folder):
        known = "but the skill of this name here never had its files"
    return f"{_INSTALLED} {place}, {known}. {UNLESS_FORCED}"


def _is_owner(core: Core, entry: LockEntry, skill: Skill) -> bool:
    """Tell whether an entry's folder was installed from this skill or from its remote origin."""
    if (entry.source, entry.folder) == (skill.source, skill.folder):
        return entry.origin is not None or had(core, skill, entry.tree_hash)
    return entry.origin is not None and is_of(skill, entry.origin)


def installed_owners(core: Core, target: InstallTarget, skills: Sequence[Skill]) -> list[Skill]:
    """Return each skill, or the skill from which its folder was installed before.

    Raises `LockFileInvalid`.
    """
    locked = lockfile.read_lock(target.path)
    by_name = {entry.name: entry for entry in locked.values()}
    owners = [owner(core, by_name[one.name]) if one.name in by_name else None for one in skills]
    return [found or skill for found, skill in zip(owners, skills, strict=True)]


def overlap_reason(skill: Skill, folders: Sequence[str]) -> str | None:
    """Return the reason why a local skill can't be installed into these real paths.

    A target must not be inside the skill's own folder, and must not contain it.
    """
    real = real_path(skill.path)
    if any(is_below(real, one) for one in folders):
        return f"{ALREADY_THERE}, in {real}"
    return LIES_ABOVE if any(is_below(one, real) for one in folders) else None


_LOCKED_ELSEWHERE: Final = (
    "The lock file has {locked}, but the source {source} is pinned to {pin} on this machine. To "
    "install {pin} instead, add --force. To install the locked version, run: skill-registry pull "
    "{frozen}. To move the source, run: skill-registry source update {quoted} --ref {ref}"
)
_UNFETCHED: Final = (
    "its source {source} is pinned to {pin} now, which was not fetched. To fetch it, run: "
    "skill-registry sync {quoted}"
)
_UNKNOWN_SOURCE: Final = "the source {source}, which this registry doesn't have"
_NOT_IN_SOURCE: Final = "its source {source} no longer has a skill in {path}"


class Provenance:
    """Finds the registry's skills for lock entries, and reads the list of sources only once."""

    def __init__(self, core: Core) -> None:
        self._core = core

    def is_strange(self, entry: LockEntry) -> bool:
        """Tell whether an entry comes from a source that isn't on this machine.

        An entry with an address counts as such if no source here includes the address and the
        folder. An entry without an address counts as such if no skill of this registry ever had its
        files.
        """
        if entry.origin is None or not entry.origin["url"]:
            return not has_revision_with(self._core.reader, entry.tree_hash)
        return self._source(entry) is None

    def reason(self, entry: LockEntry) -> str:
        """Return the reason why the registry has no skill for an entry."""
        if entry.origin is None or not entry.origin["url"]:
            if not entry.source:
                return "no source here has it"
            if entry.source not in {one.name for one in self._sources}:
                return f"it was installed from {_UNKNOWN_SOURCE.format(source=entry.source)}"
            return _NOT_IN_SOURCE.format(source=entry.source, path=entry.folder)
        url, path = entry.origin["url"], entry.origin["path"] or ROOT
        source = self._source(entry)
        if source is None:
            return f"{url} is not a source here"
        return _NOT_IN_SOURCE.format(source=f"{source[0]} ({url})", path=path)

    def unfetched(self, skill: Skill) -> str | None:
        """Return why a lock entry would be wrong: the files are of the pin before the current one.

        Returns None if they are of the current pin.
        """
        if isinstance(skill, PinnedSkill) or skill.origin is None or skill.origin.commit:
            return None
        source = next((one for one in self._sources if one.name == skill.source), None)
        if source is None or source.remote is None or source.remote.version:
            return None
        pin = source.remote.ref or "no version"
        return _UNFETCHED.format(source=source.name, pin=pin, quoted=quote(source.name))

    def locked_elsewhere(
        self, target: InstallTarget, locked: Mapping[str, LockEntry]
    ) -> dict[str, str]:
        """Return messages about the entries that another machine locked at another ref, by folder.

        The source of such an entry is pinned to another ref here. If the source had the locked
        files before, the user has moved its pin, and `pull` follows the source. An entry with known
        files counts only if there is another entry with the same ref and unknown files.
        """
        groups: dict[tuple[str, str, str], dict[str, LockEntry]] = {}
        for folder, entry in locked.items():
            source = None if entry.pin is not None else self._source(entry)
            ref = (entry.origin or {}).get("ref") or ""
            if source is not None and source[1].ref not in {None, ref} and _is_ref(ref):
                groups.setdefault((source[0], source[1].ref or "", ref), {})[folder] = entry
        found: dict[str, str] = {}
        for (name, pin, ref), entries in groups.items():
            hashes = {entry.tree_hash for entry in entries.values()}
            if all(skills_that_had(self._core.reader, name, one) for one in hashes):
                continue
            where = ["--global"] if target.is_global else ["--to", target.path]
            is_project = not target.is_global and any(one.agents for one in entries.values())
            message = _LOCKED_ELSEWHERE.format(
                locked=ref or "a version of the default branch",
                source=name,
                pin=pin,
                frozen=join([*([] if is_project else where), "--frozen"]),
                quoted=quote(name),
                ref=quote(ref),
            )
            found |= dict.fromkeys(entries, message)
        return found

    def _source(self, entry: LockEntry) -> tuple[str, Remote] | None:
        """Return a source that includes the origin of an entry, with its name."""
        origin = entry.origin or {}
        path = origin.get("path") or ROOT
        for name, remote in self._remotes.get(normalize_url(origin.get("url") or ""), ()):
            is_below = remote.part is None or f"{path}/".startswith(f"{remote.part}/")
            named = {one.casefold() for one in (entry.name, path.rpartition("/")[2])}
            if is_below and (not remote.only or named & {one.casefold() for one in remote.only}):
                return name, remote
        return None

    @cached_property
    def _sources(self) -> list[Source]:
        return list_sources(self._core.reader, counted=False)

    @cached_property
    def _remotes(self) -> dict[str, list[tuple[str, Remote]]]:
        found: dict[str, list[tuple[str, Remote]]] = {}
        for one in self._sources:
            if one.remote is not None:
                found.setdefault(normalize_url(one.remote.url), []).append((one.name, one.remote))
        return found


def strange_addresses(
    core: Core, target: InstallTarget, skipped_folders: Collection[str] = ()
) -> list[str]:
    """Return the valid addresses in a lock file that aren't sources here.

    The entries of ``skipped_folders`` don't count. Raises `LockFileInvalid`.
    """
    provenance, found = Provenance(core), set()
    for folder, entry in read_lock(target.path).items():
        if folder not in skipped_folders and entry.origin and provenance.is_strange(entry):
            url, ref = entry.origin["url"], entry.origin["ref"]
            text = f"{url}#{ref}" if ref else f"{url}"
            if _is_address(core, text) and owner(core, entry) is None:
                found.add(text)
    return sorted(found)


def _is_ref(text: str) -> bool:
    """Tell whether a text is empty or can be the name of a branch, tag or commit."""
    with suppress(RegistryError):
        check_ref(text or "main", text)
        return True
    return False


def _is_address(core: Core, text: str) -> bool:
    try:
        address = read_address(core.settings, text)
    except RegistryError:
        return False
    return address is not None and not address.is_short
