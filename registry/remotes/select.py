"""Fetch an address and select skills from it, in one step."""

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from difflib import get_close_matches
from typing import TypeAlias

from registry.catalog.resolve import resolve
from registry.core import Core
from registry.db.read.skills import skills_of_source
from registry.db.read.sources import list_sources
from registry.disk.paths import ROOT
from registry.errors import RegistryError, SeveralSkills, SkillHeld, SkillNotFound, UsageProblem
from registry.model import Skill, Source
from registry.remotes.address import Address, normalize_url, read_address
from registry.remotes.sources import address_of, remove, sync

Choose: TypeAlias = Callable[[Sequence[Skill]], Sequence[Skill]]
"""Returns those of several skills that are wanted."""


def is_address(core: Core, name: str) -> bool:
    """Tell whether a name is an address that skills are fetched from, and of no skill."""
    if "/" not in name and ":" not in name:
        return False
    with suppress(RegistryError):
        if read_address(core.settings, name) is None:
            return False
        if "://" in name:
            return True
    try:
        resolve(core.reader, name)
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
    """Fetch an address as a source (added if new), and return the selected skills.

    ``skills``: the names to select; otherwise ``every`` skill, or the only one, or ``choose`` among
    several. A source added for this call is removed if that fails. ``dry_run``: nothing is fetched
    or added. Quarantined skills are skipped, with a warning. Raises `SeveralSkills`,
    `SkillNotFound`, `SkillHeld`, `UsageProblem`, `AddressInvalid`, `RemoteProblem`.
    """
    known = {one.name: one for one in list_sources(core.reader, counted=False)}
    asked = address_of(core, list(known.values()), address)
    source = None if asked is None else _source_of(core, known.values(), asked)
    if source is not None and asked is not None and not _is_own(source, asked):
        skills, part = skills or asked.only, asked.part or ROOT
    else:  # it holds nothing else
        every, part = every or bool(asked and asked.only), ROOT
    if dry_run:
        if source is None:
            raise UsageProblem(message=f"{address} is not a source yet: sync it first")
        name = source.name
    else:
        target = source.name if source is not None else asked or address
        (synced,) = sync(core, [target], wait=True).sources
        name = synced.name
        if synced.outcome != "ok":
            core.warn(f"{name}: {synced.message}")
        if synced.remote is None:
            raise UsageProblem(message=f"{address} is a folder here: name the skills themselves")
    try:
        return _chosen(core, name, address, part, skills, every=every, choose=choose)
    except BaseException:  # also where the user was asked, and ended the command
        if name not in known:
            remove(core, name, with_tombstones=False)
        raise


def _source_of(core: Core, known: Iterable[Source], asked: Address) -> Source | None:
    """Return the source that has all of an address: its own, else one of the whole repository."""
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
        return [_named(name, source, address, offered, held) for name in names]
    if held and not offered:
        raise SkillHeld(name=held[0].name, source=source, address=address)
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
    """Return the skills of a source below a folder, each copy once, and the quarantined skills."""
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


def _named(
    name: str, source: str, address: str, offered: Sequence[Skill], held: Sequence[Skill]
) -> Skill:
    """Return the skill of a name, else the one in a folder of it, as addresses mean it."""
    for one in (*_of_name(name, offered), *_of_name(name, held)):
        if one in offered:
            return one
        raise SkillHeld(name=one.name, source=source, address=address)
    near = get_close_matches(name, [one.name for one in offered], n=3)
    raise SkillNotFound(name, similar=near)


def _of_name(name: str, among: Sequence[Skill]) -> list[Skill]:
    key = name.casefold()
    found = [one for one in among if one.name.casefold() == key]
    return found or [one for one in among if one.folder.rpartition("/")[2].casefold() == key]
