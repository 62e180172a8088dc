"""The name and the version of each skill's entry in a git repository.

The name of an entry doesn't change while its skill exists. A name belongs to the first source that
had a skill with this name. In other sources, the entry of a skill with this name is called
``SOURCE--NAME``, even after the first skill was removed. Otherwise a client that has installed the
first skill would get another owner's files as an update.
"""

import hashlib
import os
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from typing import Final, NamedTuple

from registry.catalog.browse import Browse
from registry.catalog.visibility.rules import Host, PolicyFacts, decide, needs_of
from registry.core import Core
from registry.db.read import repository as stored
from registry.db.read.history import content, revisions
from registry.db.read.listing import Filters
from registry.db.read.repository import Claim
from registry.document.parse import parse_document
from registry.errors import RegistryError
from registry.model import SkillFile
from registry.settings import Personality
from registry.text import slug

MAX_NAME: Final = 64
"""Maximum length of an entry's name that all clients accept, in characters."""

_RESERVED: Final = frozenset(
    {"con", "prn", "aux", "nul", *(f"{port}{n}" for port in ("com", "lpt") for n in range(1, 10))}
)
"""Names that Windows doesn't accept for folders."""


class Named(NamedTuple):
    """The name of a skill's entry, and the number N of its version ``0.0.N``."""

    name: str
    number: int

    @property
    def version(self) -> str:
        """The version of the entry."""
        return f"0.0.{self.number}"


def claims_known_to(view: Browse, name: str | None) -> list[Claim]:
    """Return the claims to names that a view may consider, the oldest first.

    If ``name`` is given, return only the claims to this name. Skills outside the view must not
    change the names in the view. A skill keeps its claim if the view showed it before, or if the
    view hides it only because it is quarantined, shadowed or removed.
    """
    claims = stored.claims(view.core.reader, name)
    if view.is_whole:
        return claims
    limits = view.limits
    if limits.source is not None:
        claims = [one for one in claims if one.source == limits.source]
    if limits.personality is None:
        return claims
    condition, values = view.condition(view.filters(Filters()))
    if name is not None:
        condition, values = f"{condition} AND s.name = ?", [*values, name]
    shown = stored.uids(view.core.reader, (condition, values))
    wanted = {slug(one.name) for one in claims if one.uid in shown}
    times = Counter(slug(one.name) for one in claims)
    host = Host(os.environ)
    return [
        one
        for one in claims
        if one.uid in shown
        or (
            slug(one.name) in wanted
            and times[slug(one.name)] > 1
            and was_shown(view.core, one, limits.personality, host)
        )
    ]


def was_shown(core: Core, claim: Claim, personality: Personality, host: Host) -> bool:
    """Tell whether a personality allows the last stored SKILL.md of the skill with this claim."""
    for one in revisions(core.reader, claim.uid)[:1]:
        path = one.document or ""
        file = SkillFile(path, 0, one.content_hash, executable=False)
        try:
            data = content(core.reader, claim.uid, file, core.settings.limits.skill_bytes)
        except RegistryError:
            data = None
        if data is None:
            continue
        document = parse_document(data, folder_name=claim.name)
        facts = PolicyFacts(
            name=claim.name,
            source=claim.source,
            scope=claim.scope or "personal",
            tags=document.tags,
            required_tools=document.required_tools,
            needs=needs_of(document.front_matter),
        )
        return decide(facts, personality, host).visible
    return False


def entry_names(claims: Iterable[Claim]) -> Mapping[tuple[str, str], Named]:
    """Return the entry name and number of each live claim, by the skill's uid and name.

    ``claims`` must be sorted, the oldest first.
    """
    owners: dict[str, tuple[str, str]] = {}
    names: dict[tuple[object, ...], str] = {}
    taken: set[str] = set()
    numbers: Counter[str] = Counter()
    found: dict[tuple[str, str], Named] = {}
    for claim in claims:
        base, source = slug(claim.name), (claim.source, claim.owner)
        # If a skill replaces a removed skill with the same name and source, both have the same key.
        key = *source, claim.name, claim.slot
        if key not in names:
            is_owner = owners.setdefault(base, source) == source and claim.slot == 1
            wanted = [base] if is_owner else []
            wanted.append(f"{slug(claim.source)}--{base}")
            free = (one for one in map(_allowed, wanted) if one not in taken)
            names[key] = next(free, "") or _numbered(wanted[-1], taken, numbers)
            taken.add(names[key])
        if claim.live and isinstance(claim.number, int):  # otherwise another program forged the row
            found[claim.uid, claim.name] = Named(names[key], claim.number)
    return found


def _numbered(name: str, taken: Collection[str], numbers: Counter[str]) -> str:
    """Return the first free name of ``NAME--2``, ``NAME--3`` and so on.

    ``numbers`` counts the attempts for each name, so that no number is tried twice.
    """
    while True:
        numbers[name] += 1
        numbered = _allowed(f"{name}--{numbers[name] + 1}")
        if numbered not in taken:
            return numbered


def _allowed(name: str) -> str:
    """Convert a name to a form that all clients and all file systems accept."""
    if name in _RESERVED:
        return f"{name}--skill"
    if len(name) > MAX_NAME:
        return f"{name[: MAX_NAME - 9].rstrip('-')}-{hashlib.sha256(name.encode()).hexdigest()[:8]}"
    return name
