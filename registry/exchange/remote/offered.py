"""What an address offers, for who takes skills from it in one go."""

from collections.abc import Sequence
from contextlib import suppress
from difflib import get_close_matches

from registry.catalog.resolve import resolve
from registry.core import Core
from registry.db.queries.filters import Filters
from registry.db.queries.listing import listing_of
from registry.errors import RegistryError, SeveralSkills, SkillHeld, SkillNotFound, UsageProblem
from registry.exchange.remote.address import parse_address
from registry.exchange.remote.sources import sync
from registry.model import Skill


def is_address(core: Core, name: str) -> bool:
    """Tell whether a name is an address that skills are fetched from, and of no skill."""
    if "/" not in name and ":" not in name:
        return False
    with suppress(RegistryError):
        if parse_address(name, core.settings.hosts, core.settings.source_kinds) is None:
            return False
    try:
        resolve(core.reader, name)
    except SkillNotFound:
        return True
    except RegistryError:
        return False
    return False


def skills_at(
    core: Core, address: str, *, skills: Sequence[str] = (), every: bool = False
) -> list[Skill]:
    """Fetch an address, which becomes a source, and return what is chosen of its skills.

    ``skills``: those of these names; else ``every`` one, or the only one. What is held back until
    the source is trusted is left out, and told (`Core.warn`). Raises `SeveralSkills`,
    `SkillNotFound`, `AddressInvalid`, `RemoteProblem`.
    """
    report = sync(core, [address], wait=True)
    (part,) = report.sources
    if part.outcome != "ok":
        core.warn(f"{part.name}: {part.message}")
    if part.remote is None:
        raise UsageProblem(message=f"{address} is a folder here: name the skills themselves")
    offered, held = _offered(core, part.name)
    if skills:
        return [_named(name, part.name, offered, held) for name in skills]
    if held:
        core.warn(f"{part.name}: {', '.join(held)} held back until the source is trusted")
    if len(offered) > 1 and not (every or part.remote.only):
        raise SeveralSkills(path=address, names=[one.name for one in offered])
    return offered


def _offered(core: Core, source: str) -> tuple[list[Skill], list[str]]:
    """Return what a source offers, shadowed or not, and the names of what is held back."""
    offered, held = [], []
    for skill in listing_of(core.reader, Filters(source=source, all=True)):
        stored = resolve(core.reader, f"{skill.source}/{skill.folder}")
        if stored.held:
            held.append(skill.name)
        elif stored.is_usable:
            offered.append(skill)
    return offered, held


def _named(name: str, source: str, offered: Sequence[Skill], held: Sequence[str]) -> Skill:
    for skill in offered:
        if skill.name.casefold() == name.casefold():
            return skill
    if any(one.casefold() == name.casefold() for one in held):
        raise SkillHeld(name=name, source=source)
    near = get_close_matches(name, [one.name for one in offered], n=3)
    raise SkillNotFound(name, similar=near)
