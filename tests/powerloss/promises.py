"""What must hold on a disk after a power cut, once a new process has opened the registry."""

import os
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple, TypeAlias

from registry.api import SkillRegistry
from registry.db.read.listing import Filters
from registry.install.pull import check, pull
from registry.install.targets import InstallOptions, InstallTarget
from registry.publish import proposals
from tests.powerloss.operations import Operation, World
from tests.powerloss.tree import File, Folder, Node, read_tree

Outcome: TypeAlias = Mapping[str, tuple[object, ...]]
"""Of each skill all that is to be seen of it: on disk, listed, in the trash, pulled, proposed."""


NOTHING: Final = (None, None, None, None, None)
LOCK: Final = "skills.lock.json"


class Found(NamedTuple):
    """What a disk turned out to hold, and what of it may never be."""

    outcome: Outcome
    broken: Sequence[str]


def _parts(folder: str) -> dict[str, dict[str, object]]:
    """Return what a folder holds by the first part of the path; of modes who may execute."""
    parts: dict[str, dict[str, object]] = {}
    for path, node in read_tree(folder).items():
        first, _, rest = path.partition("/")
        parts.setdefault(first, {})[rest] = _seen(node)
    return parts


def _seen(node: Node) -> object:
    if isinstance(node, File):
        return node.data, bool(node.mode & 0o100)
    return "folder" if isinstance(node, Folder) else node


def find(world: World, operation: Operation, *, goes_on: bool = False) -> Found:
    """Open the registry on what is there, look at everything, and, if asked, go on."""
    broken: list[str] = []
    with world.at_home(), world.open() as registry:
        outcome = _outcome(world, registry)
        broken += registry.check_database()
        if registry.core.reader.rows("SELECT id FROM journal"):
            broken.append("the journal is not empty")
        if not goes_on and not registry.sources():
            return Found(outcome, broken)  # nothing was registered yet; to begin takes long
        if operation.syncs:
            registry.sync(world.root)
        broken += _differences(world, registry)
        if operation.pulls:
            broken += _pulled_again(world, registry)
        if operation.gives:
            broken += _given_again(world, registry)
        if goes_on:
            on_disk = outcome.get("beta", NOTHING)[0] is not None  # it may only be proposed
            name = "beta" if on_disk else "other"
            registry.update(name, description="Later.")
            broken += _differences(world, registry)
    return Found(outcome, broken)


def _outcome(world: World, registry: SkillRegistry) -> Outcome:
    proposed: dict[str, list[tuple[str, ...]]] = {}
    for one in proposals.listed(registry.core, None):  # finishes what was approved
        proposed.setdefault(one.folder, []).append((one.kind, one.tree_hash, one.state))
    disk, pulled = _parts(world.root), _parts(world.project) | _given(world)
    listed = {
        skill.folder: (
            *(skill.ref, skill.description, skill.tree_hash),
            *(one.label for one in registry.versions(skill.ref)),
        )
        for skill in registry.list(Filters(all=True))
    }
    trash = {trashed.folder: _parts(trashed.path) for trashed in registry.trash()}
    folders = {
        *disk,
        *listed,
        *trash,
        *proposed,
        *(name for name in pulled if not name.startswith(".")),
    }
    return {
        folder: tuple(place.get(folder) for place in (disk, listed, trash, pulled, proposed))
        for folder in folders
    }


def _differences(world: World, registry: SkillRegistry) -> list[str]:
    """Say how the database does not equal the disk."""
    report = registry.sync(dry_run=True, verify=True)
    found = [*report.added, *report.updated, *report.moved, *report.removed]
    broken = [f"the database does not equal the disk: {found}"] if found else []
    listed = {skill.folder for skill in registry.list(Filters(all=True))}
    stored = set(os.listdir(world.root))
    return [*broken, f"listed {listed}, on disk {stored}"] if listed != stored else broken


def _pulled_again(world: World, registry: SkillRegistry) -> list[str]:
    """Do the pull once more, and say what it took for somebody's edit, or left over."""
    skills = list(registry.list())
    broken = [
        f"{one.ref} looks edited in the project"
        for one in registry.check_pulled(world.project, skills)
        if one.state == "edited"
    ]
    done = registry.pull(skills, world.project)
    broken += [
        f"a pull finds {one.ref} {one.state}"
        for one in done
        if one.state not in {"added", "updated", "unchanged"}
    ]
    left = set(os.listdir(world.project)) - {skill.name for skill in skills} - {LOCK}
    checked = {one.state for one in registry.check_pulled(world.project)}
    if left or checked != {"unchanged"}:
        broken.append(f"after another pull {left} are left, and skills are {checked}")
    return broken


def _given(world: World) -> dict[str, dict[str, object]]:
    """Return what each of two agents sees of each skill, by its folder; nothing: by none."""
    found: dict[str, dict[str, object]] = {}
    for agent in (".agents", ".claude"):
        place = f"{world.checkout}/{agent}/skills"
        for name in os.listdir(place) if os.path.isdir(place) else ():
            if name[0] != "." and os.path.isfile(f"{place}/{name}/SKILL.md"):
                files = _parts(os.path.realpath(f"{place}/{name}"))
                found.setdefault(name, {})[agent] = files
    return found


def _given_again(world: World, registry: SkillRegistry) -> list[str]:
    """Pull for agents once more, and say what it took for an edit, or left over."""
    target, skills = InstallTarget.folder(world.checkout), list(registry.list())
    done = pull(registry.core, skills, target, InstallOptions(agents=("claude-code", "codex")))
    broken = [
        f"a pull finds {one.ref} {one.state}"
        for one in done
        if one.state not in {"added", "updated", "unchanged"}
    ]
    folders = [
        world.checkout,
        *(f"{world.checkout}/{one}/skills" for one in (".agents", ".claude")),
    ]
    left = {name for folder in folders for name in os.listdir(folder) if ".exchange" in name}
    checked = {one.state for one in check(registry.core, None, target)}
    if left or checked != {"unchanged"}:
        broken.append(f"after another pull {left} are left, and skills are {checked}")
    return broken


def broken_promises(
    world: World, operation: Operation, either: Sequence[Outcome], *, goes_on: bool
) -> list[str]:
    """Say what does not hold of ``either`` state that each skill may be in."""
    try:
        found = find(world, operation, goes_on=goes_on)
    except Exception as error:  # noqa: BLE001  # whatever it is, nobody may see it
        return [f"{type(error).__name__}: {error}"]
    broken = list(found.broken)
    for folder in sorted({*found.outcome, *(folder for one in either for folder in one)}):
        seen = found.outcome.get(folder, NOTHING)
        if seen not in [one.get(folder, NOTHING) for one in either]:
            broken.append(f"{folder} is neither as before nor as after: {_short(seen)}")
    if operation.together and found.outcome not in either:
        broken.append(f"a change of several is made by half: {found.outcome}")
    return broken


def _short(seen: tuple[object, ...]) -> str:
    words = []
    for word, part in zip(("disk", "listed", "trash", "pulled", "proposed"), seen, strict=True):
        if part is not None:
            words.append(f"{word}: {sorted(part) if isinstance(part, dict) else part}")
    return "; ".join(words) or "gone"
