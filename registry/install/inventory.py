"""List the skills that an agent sees on disk, with their state in lock file and registry."""

import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Final, Literal, TypeAlias

from registry.catalog.why import Explanation
from registry.core import Core
from registry.db.read.skills import by_place
from registry.disk.agents import Agent, expand
from registry.disk.beneath import Folder
from registry.disk.files import read_file
from registry.disk.links import real_path
from registry.disk.paths import ROOT, is_below
from registry.document.parse import parse_document
from registry.errors import RegistryError
from registry.install.plan import InstallPlan
from registry.install.provenance import owner
from registry.install.pull import as_pull_refused
from registry.install.targets import InstallTarget
from registry.model import DOCUMENT_NAMES, Diagnostic, Skill, Value, record
from registry.sync.sources import own_sources

Where: TypeAlias = Literal["project", "global"]

Known: TypeAlias = Literal["pulled", "behind", "edited", "missing", "gone", "registered", "unknown"]


@dataclass(frozen=True, slots=True)
class AgentSkill(Value):
    """A skill that an agent sees at the path ``place``.

    Its JSON has the keys of a skill, and ``state``, ``where`` and ``place``. The states are
    ``pulled``: the lock and the registry agree with the disk; ``behind``, ``edited``, ``gone``: as
    `InstallResult` defines them; ``missing``: the lock lists the skill, but it is not on disk;
    ``registered``: a skill of a source that no pull installed; ``unknown``: a skill that is neither
    installed by a pull nor in a source. If the registry does not know a skill, the other fields are
    null.
    """

    KEYS: ClassVar = (*Skill.KEYS, "state", "where", "place")

    state: Known
    where: Where
    place: str
    name: str
    description: str | None
    skill: Skill | None

    def to_dict(self) -> dict[str, Any]:
        """Return the value as JSON."""
        unknown = dict.fromkeys(Skill.KEYS)
        facts = {"name": self.name, "description": self.description, "path": self.place}
        known = unknown | facts if self.skill is None else record(self.skill)
        return {**known, "state": self.state, "where": self.where, "place": self.place}


def seen_by(core: Core, agent: Agent, project: InstallTarget | None) -> list[AgentSkill]:
    """Return the skills that an agent sees in a project, and the missing skills.

    If ``project`` is None, return only the skills that the agent sees in all projects.
    """
    found: list[AgentSkill] = []
    if project is not None:
        found += _Look(core, project, "project").at(agent.project_places, agent)
    found += _Look(core, InstallTarget.everywhere(), "global").at(agent.personal_places, agent)
    return _once(found)


def _once(found: Sequence[AgentSkill]) -> list[AgentSkill]:
    """Return one item for each path; if a path has two items, return the one from a lock file."""
    kept: dict[tuple[str, str], AgentSkill] = {}
    for one in found:
        folder, name = os.path.split(one.place)
        before = kept.get(key := (real_path(folder), name))
        if before is None or before.state in {"registered", "unknown"}:
            kept[key] = one
    return [*kept.values()]


def explained_for(
    core: Core, explanations: Sequence[Explanation], agent: Agent, project: InstallTarget
) -> list[Explanation]:
    """Add findings to the explanations: from which path an agent reads each skill.

    If the agent doesn't read a skill, a finding reports this. The explanations lose the fix for
    shadowing, because it changes only the lists of the registry.
    """
    seen = [one for one in seen_by(core, agent, project) if one.state != "missing"]
    return [
        replace(
            one,
            reasons=(
                *(replace(r, fix=None) if r.code == "shadowed" else r for r in one.reasons),
                *_read_by(one, agent, seen),
            ),
        )
        for one in explanations
    ]


def _read_by(one: Explanation, agent: Agent, seen: Sequence[AgentSkill]) -> Iterator[Diagnostic]:
    """Yield findings: from which path an agent reads a skill, and other skills with its name."""
    real = real_path(one.path)
    here = [
        each
        for each in seen
        if real_path(each.place) == real
        or (one.skill is not None and each.skill is not None and each.skill.ref == one.skill.ref)
    ]
    if not here:
        fix = f"run: skill-registry pull {one.ref} --agent {agent.id}" if one.ref else None
        if one.skill is not None and any(each.name == one.skill.name for each in seen):
            fix = None  # `pull` would write into the folder of the other skill with this name
        yield Diagnostic("agent", "info", f"{agent.name} does not read it", fix=fix)
        return
    for each in here:
        state = (
            ""
            if each.state in {"pulled", "registered", "unknown"}
            else f" ({'outdated' if each.state == 'behind' else each.state})"
        )
        yield Diagnostic("agent", "info", f"{agent.name} reads it from {each.place}{state}")
    names = {each.name for each in here}
    if others := [each for each in seen if each.name in names and each not in here]:
        places = ", ".join(each.place for each in others)
        message = f"{agent.name} also reads a skill of the same name from {places}"
        first, fix = loaded_of(agent, [*here, *others]), None
        if first is not None:
            message += f"; it loads the one in {first.place}, because {_BECAUSE[first.where]}"
            fix = f"to load the other one, rename or remove the one in {first.place}"
        yield Diagnostic("agent", "warning", message, fix=fix)


def told_of_namesakes(
    agent: Agent, seen: Sequence[AgentSkill], *, singles: bool = False
) -> Iterator[tuple[str, AgentSkill | None]]:
    """For each name that several skills on disk share, report which skill the agent loads.

    If ``singles``, also report the names of single skills. Yields a sentence and the skill; None if
    the agent's documentation doesn't state which one.
    """
    by_name: dict[str, dict[str, AgentSkill]] = {}
    for one in seen:
        if one.state != "missing":
            by_name.setdefault(one.name, {}).setdefault(real_path(one.place), one)
    for name, places in by_name.items():
        if singles and len(places) == 1:
            (only,) = places.values()
            yield f"{agent.name} loads {name} from {only.place}.", only
        elif len(places) > 1:
            first = loaded_of(agent, list(places.values()))
            text = (
                f"{agent.name} reads {len(places)} skills named {name}; which of them it loads "
                "is not documented."
                if first is None
                else f"{agent.name} loads {name} from {first.place}, not the others of its name, "
                f"because {_BECAUSE[first.where]}."
            )
            yield text, first


def loaded_of(agent: Agent, namesakes: Sequence[AgentSkill]) -> AgentSkill | None:
    """Return the skill that an agent loads if several skills have the same name.

    Returns None if the agent's documentation doesn't state this.
    """
    found = [one for one in namesakes if one.where == _WINS.get(agent.id)]
    return found[0] if len({real_path(one.place) for one in found}) == 1 else None


_WINS: Final[dict[str, Where]] = {"claude-code": "global", "gemini-cli": "project"}
"""Which skill each agent loads if a global skill and a project's skill have the same name.

The agents' documentation states this.
"""

_BECAUSE: Final[dict[Where, str]] = {
    "global": "it prefers personal skills to a project's skills",
    "project": "it prefers a project's skills to personal skills",
}

_PULLED: Final[dict[str, Known]] = {
    "unchanged": "pulled",
    "behind": "behind",
    "edited": "edited",
    "gone": "gone",
    "missing": "missing",
    "failed": "pulled",  # the user no longer trusts the source of this skill
}


class _Look:
    def __init__(self, core: Core, target: InstallTarget, where: Where) -> None:
        self._core = core
        self._target = target
        self._where = where

    def at(self, folder_ids: list[str], agent: Agent) -> list[AgentSkill]:
        found: list[AgentSkill] = []
        with as_pull_refused(self._target.path), ExitStack() as stack:
            standing = InstallPlan(self._core, stack, self._target)
            standing.begin()
            ours = {
                folder: entry
                for folder, entry in standing.locked.items()
                # Several agents may read the same folder, so also list skills that were installed
                # for other agents.
                if agent.id in entry.agents
                or {*self._target.folder_ids(entry.agents)} & {*folder_ids}
            }
            # If one folder is a link to another folder, list its skills only once.
            seen: set[str] = set()
            for folder_id in folder_ids:
                path = self._path(folder_id)
                for name in [] if path is None else _folders(path):
                    place = os.path.join(path or "", name)
                    if (real := real_path(place)) in seen:
                        continue
                    seen.add(real)
                    places = self._target.folder_ids(ours[name].agents) if name in ours else ()
                    if name in ours and folder_id in {folder_ids[0], *places}:
                        found.append(self._locked(standing, name, place))
                    else:
                        found.append(self._other(place))
            there = {os.path.basename(one.place) for one in found}
            for name in sorted(ours.keys() - there):
                entry = ours[name]
                place = os.path.join(self._path(folder_ids[0]) or "", name)
                skill = owner(self._core, entry)
                description = None if skill is None else skill.description
                found.append(
                    AgentSkill("missing", self._where, place, entry.name, description, skill)
                )
        return found

    def _path(self, folder_id: str) -> str | None:
        is_global = self._where == "global"
        return expand(folder_id) if is_global else os.path.join(self._target.path, folder_id)

    def _locked(self, standing: InstallPlan, name: str, place: str) -> AgentSkill:
        entry = standing.locked[name]
        skill = owner(self._core, entry)
        state = _PULLED[standing.compare(name, skill).state]
        if skill is None:
            return AgentSkill(state, self._where, place, entry.name, _read(place)[1], None)
        return AgentSkill(state, self._where, place, skill.name, skill.description, skill)

    def _other(self, place: str) -> AgentSkill:
        skill = self._registered(real_path(place))
        if skill is not None:
            return AgentSkill(
                "registered", self._where, place, skill.name, skill.description, skill
            )
        return AgentSkill("unknown", self._where, place, *_read(place), None)

    def _registered(self, path: str) -> Skill | None:
        for source in own_sources(self._core):
            if is_below(path, source.path):
                below = os.path.relpath(path, source.path)
                found = by_place(self._core.reader, source.id, ROOT if below == "." else below)
                if found is not None:
                    return found.skill
        return None


def _folders(path: str) -> Iterator[str]:
    """Yield the sorted names of the subfolders with a SKILL.md; links are followed."""
    try:
        with Folder(os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC), path) as folder:
            names = sorted(entry.name for entry in folder.entries() if entry.name[:1] != ".")
    except OSError:
        return
    for name in names:
        place = os.path.join(path, name)
        if any(os.path.isfile(os.path.join(place, one)) for one in DOCUMENT_NAMES):
            yield name


def _read(place: str) -> tuple[str, str | None]:
    """Return the name and description in the SKILL.md of a skill that isn't in the registry."""
    name = os.path.basename(place)
    for document in DOCUMENT_NAMES:
        with suppress(RegistryError, OSError):
            data = read_file(os.path.join(place, document), MAX_BYTES).data
            found = parse_document(data, folder_name=name)
            return found.name, found.description or None
    return name, None


MAX_BYTES: Final = 1 << 20
"""Maximum size of a SKILL.md whose description is shown, in bytes."""
