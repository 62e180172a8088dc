"""Sources as people name them: folders to register, what was registered, which are ours."""

import os
from collections.abc import Sequence
from pathlib import PurePath
from shlex import quote
from typing import NamedTuple

from registry.core import Core
from registry.db.adopted import remember
from registry.db.read.sources import count_below, list_sources, roots
from registry.disk.paths import ROOT, STATE_SUFFIX, is_below
from registry.disk.walk import Walk
from registry.errors import SourceExists, SourceInvalid, SourceNotFound, UsageProblem
from registry.model import DOCUMENT_NAMES, Remote, Scope, Source
from registry.sync.owned import check_ours, is_here, is_ours
from registry.sync.places import MAX_NAME, project_of, resolved, suggest_name
from registry.text import utc_now


class Nesting(NamedTuple):
    """A source that a new folder lies ``inside``, or around; it has so many ``skills`` there."""

    source: Source
    inside: bool
    skills: int


def choose(
    core: Core,
    targets: Sequence[str],
    *,
    scope: Scope | None,
    name: str | None,
    register: bool,
) -> list[Source]:
    """Return the sources that the targets mean, registering folders that are none yet.

    Without ``register`` a new folder is returned as a source that is not stored. Raises
    `SourceNotFound`, `SourceInvalid`, `SourceExists` (of another name), `UsageProblem`.
    """
    known = list_sources(core.reader, counted=False)
    host = core.host
    if not targets:
        if name or scope:
            raise UsageProblem(message="--name and --scope go with a folder to sync")
        return [one for one in known if one.enabled and is_ours(core, one)]
    if name and len(targets) > 1:
        raise UsageProblem(message="--name goes with a single folder")
    chosen: dict[str, Source] = {}
    for target in targets:
        source = _existing(known, target, host)
        if source is not None:
            check_ours(core, source)
            if name and name != source.name:
                raise SourceExists(name=source.name, path=source.path)
        if source is None:
            source = _new(core, known, target, scope or "personal", name, register=register)
            known = [*known, source]
        elif scope and scope != source.scope:
            change = f"skill-registry source update {quote(source.name)} --scope {scope}"
            known_as = f"the source {source.name} has the scope {source.scope}"
            raise UsageProblem(message=f"{known_as}; to change it, run: {change}")
        chosen[source.path] = source
    return list(chosen.values())


def nesting(core: Core, target: str) -> list[Nesting]:
    """Return the sources of this machine that a folder, which is none yet, lies in or around."""
    known = own_sources(core)
    path = resolved(target)
    if not os.path.isdir(path) or _existing(known, target, core.host) is not None:
        return []
    found = []
    for source in known:
        if is_below(path, source.path):
            below = os.path.relpath(path, source.path)
            found.append(Nesting(source, True, count_below(core.reader, source.id, below)))
        elif is_below(source.path, path):
            found.append(Nesting(source, False, count_below(core.reader, source.id, ROOT)))
    return found


def own_sources(core: Core) -> list[Source]:
    """Return the sources whose folders are on this machine, the strongest first, not counted."""
    known = list_sources(core.reader, counted=False)
    return [one for one in known if is_ours(core, one)]


def unadopted_sources(core: Core) -> list[Source]:
    """Return the sources under this host's name that this user did not add, not counted."""
    known = list_sources(core.reader, counted=False)
    return [one for one in known if one.host == core.host and not is_here(core, one.host, one.path)]


def walk_of(core: Core, root: str, known: Sequence[str] | None = None) -> Walk:
    """Return a walk of the source at ``root`` that knows all other sources.

    ``known``: the folders of this host's sources, where they are known.
    """
    known = roots(core.reader, core.host) if known is None else known
    return Walk(root, core.settings.limits, [one for one in known if is_here(core, core.host, one)])


def find(core: Core, name: str) -> Source:
    """Return the source of this name or path, without a count. Raises `SourceNotFound`."""
    return found_in(core, list_sources(core.reader, counted=False), name)


def found_in(core: Core, known: Sequence[Source], name: str) -> Source:
    """Return that of the ``known`` sources which a name or path means. Raises `SourceNotFound`."""
    found = _existing(known, name, core.host)
    if found is None:
        raise SourceNotFound(name=name, known=[source.name for source in known])
    return found


def add(
    core: Core,
    path: str,
    *,
    name: str | None,
    scope: Scope,
    priority: int,
    remote: Remote | None = None,
    telling: str | None = None,
) -> Source:
    """Register a folder; see `SkillRegistry.add_source`.

    ``remote``: what it is a checkout of, and ``telling``: what that is named after, as a path.
    """
    known = list_sources(core.reader)
    for source in known:
        if source.path == resolved(path) and source.host == core.host:
            raise SourceExists(name=source.name, path=source.path)
    return _new(
        core,
        known,
        path,
        scope,
        name,
        priority=priority,
        register=True,
        remote=remote,
        telling=telling,
    )


def _existing(known: Sequence[Source], target: str, host: str) -> Source | None:
    for source in known:
        if source.name == target:
            return source
    path = resolved(target)
    if target.endswith("/") and not os.path.lexists(path):  # as shells complete names
        return _existing(known, target.rstrip("/"), host)
    known = [source for source in known if source.host == host]  # whose paths mean something here
    for source in known:
        if source.path == path:
            return source
    # The folder of a skill inside a source means that source.
    if any(os.path.lexists(os.path.join(path, document)) for document in DOCUMENT_NAMES):
        for source in known:
            if path.startswith(source.path.rstrip("/") + "/"):
                return source
    return None


def _new(
    core: Core,
    known: Sequence[Source],
    target: str,
    scope: Scope,
    name: str | None,
    *,
    register: bool,
    priority: int = 0,
    remote: Remote | None = None,
    telling: str | None = None,
) -> Source:
    path = resolved(target)
    _check_folder(target, path, known)
    taken = [source.name for source in known]
    if name is not None:
        check_name(name, known)
    chosen = name or suggest_name(telling or path, taken)
    number = -1 - len(known)
    if register:
        from registry.db.write.sources import add_source

        stored = None
        while stored is None:
            try:
                with core.writer.transaction() as connection:
                    stored = add_source(
                        connection,
                        chosen,
                        path,
                        scope,
                        priority,
                        utc_now(),
                        host=core.host,
                        project=project_of(scope, path),
                        remote=remote,
                    )
            except SourceExists as error:
                if name or error.path:
                    raise
                taken.append(chosen)  # by a source of another team
                chosen = suggest_name(telling or path, taken)
        number = stored
        if core.host:
            remember(core.backend, path)
            return find(core, chosen)  # with the owner that the server gave it
    return Source(number, chosen, path, scope, priority, True, None, None, 0, core.host, remote)


def check_name(name: str, known: Sequence[Source]) -> None:
    """Raise `UsageProblem` for what is no name of a source, `SourceExists` where one has it."""
    if not name or len(name) > MAX_NAME or not name.isprintable() or "/" in name:
        message = f"a source's name has 1 to {MAX_NAME} printable characters and no slash"
        raise UsageProblem(message=message)
    taken = next((one for one in known if one.name == name), None)
    if taken is not None:
        raise SourceExists(name=name, path=taken.path)


def _check_folder(target: str, path: str, known: Sequence[Source]) -> None:
    if not os.path.lexists(path):
        if os.sep not in target and not target.startswith((".", "~")):
            raise SourceNotFound(name=target, known=[source.name for source in known])
        folder, _, ref = path.partition("#")
        pinned = f"; to pin a repository: {PurePath(folder).as_uri()}#{ref}"
        hint = pinned if ref and os.path.isdir(folder) else ""
        raise SourceInvalid(path=path, reason=f"there is no such folder{hint}")
    if not os.path.isdir(path):
        raise SourceInvalid(path=path, reason="it is not a folder")
    try:
        path.encode()
    except UnicodeEncodeError:
        raise SourceInvalid(path=ascii(path), reason="its name is not UTF-8 text") from None
    try:
        os.scandir(path).close()
    except OSError as error:
        raise SourceInvalid(path=path, reason=error.strerror or str(error)) from error
    if all(os.path.exists(os.path.join(path, one)) for one in ("HEAD", "objects", "refs")):
        reason = f"it is a bare repository: its address is {PurePath(path).as_uri()}"
        raise SourceInvalid(path=path, reason=reason)
    if is_below(resolved("~"), path):
        what = "your home folder" if path == resolved("~") else "a folder that holds your home"
        reason = f"it is {what}, most of which is no skills; name a folder below it that holds some"
        raise SourceInvalid(path=path, reason=reason)
    if any(part.endswith(STATE_SUFFIX) for part in PurePath(path).parts):
        raise SourceInvalid(path=path, reason="it holds the registry's own state, not skills")
