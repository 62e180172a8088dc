"""Folders that hold skills: the well-known ones, what to call them, whose project they are of."""

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import PurePath
from typing import Final

from registry.core import Core
from registry.db.read.sources import list_sources
from registry.disk.agents import personal_folders, project_folders
from registry.disk.links import real_path
from registry.disk.paths import is_below
from registry.errors import UsageProblem
from registry.model import Scope, Value

MAX_NAME: Final = 64

_GENERIC: Final = frozenset({"skills", "skill", "workspace", "agent-skills"})


@dataclass(frozen=True, slots=True)
class Discovered(Value):
    """A well-known folder that exists; ``source`` is its name where it is registered."""

    path: str
    scope: Scope
    suggested_name: str
    source: str | None


def discover(core: Core, home: str, project: str | None = None) -> Iterable[Discovered]:
    """Yield the well-known skill folders that exist below ``home`` and ``project``."""
    every = list_sources(core.reader)
    known = {one.path: one for one in every if one.host == core.host}
    taken = {source.name for source in every}
    places: list[tuple[str, Scope]] = [(path, "personal") for path in personal_folders(home)]
    if project is not None and resolved(project) != resolved(home):
        places += [(os.path.join(project, below), "project") for below in project_folders()]
    seen: set[str] = set()
    for path, scope in places:
        real = resolved(path)
        if real in seen or not os.path.isdir(path):
            continue
        seen.add(real)
        source = known.get(real)
        name = source.name if source else suggest_name(real, taken)
        taken.add(name)
        yield Discovered(real, scope, name, source.name if source else None)


def suggest_name(path: str, taken: Iterable[str]) -> str:
    """Return a short name for the folder ``path`` that is not ``taken``.

    Folders called just "skills" are named after what they belong to: ``~/.claude/skills`` is
    "claude", and a second one "project-claude".
    """
    parts = [part.lstrip(".") for part in PurePath(path).parts[1:]]
    telling = [part for part in parts if part and part.lower() not in _GENERIC] or ["skills"]
    used = set(taken)
    candidates = ["-".join(telling[-count:]) for count in range(1, min(3, len(telling)) + 1)]
    candidates += [f"{candidates[0]}-{number}" for number in range(2, 10_000)]
    for candidate in candidates:
        name = "".join(c if c.isprintable() and not c.isspace() else "-" for c in candidate)
        name = name.encode("utf-8", "replace").decode()[-MAX_NAME:]
        if name not in used:
            return name
    raise UsageProblem(message="no free name was found: give one with --name")


def project_of(scope: Scope, path: str) -> str | None:
    """Return the folder of the project that keeps skills at ``path``; None: its scope is another.

    It is the folder below which an agent keeps them, else the nearest at or above it that is a git
    checkout, else the one that holds it. A home folder under version control is no project.
    """
    if scope != "project":
        return None
    for below in project_folders():
        if path.endswith(f"/{below}"):
            return path.removesuffix(f"/{below}") or os.sep
    above, name = os.path.split(path)
    if name in {"skill", "skills"} and os.path.basename(above).startswith("."):
        return os.path.dirname(above)  # of an agent that is not known here
    folder, home = path, resolved("~")
    while not is_below(home, folder):
        if os.path.lexists(os.path.join(folder, ".git")):
            return folder
        folder = os.path.dirname(folder)
    return os.path.dirname(path)


def resolved(path: str) -> str:
    """Return the absolute path that people mean, without links."""
    return real_path(os.path.expanduser(path.replace("\0", "\ufffd")))
