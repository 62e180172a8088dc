"""Registered sources: find, choose, register, change and remove them; check their owners."""

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from shlex import quote
from typing import Final, NamedTuple, TypedDict, Unpack

from registry.core import Core
from registry.db.adopted import address_of, forget, former_addresses, is_adopted, remember
from registry.db.read.skills import places_of_name
from registry.db.read.sources import count_below, is_admin, list_sources, roots, sources_and
from registry.disk.agents import personal_folders, project_folders
from registry.disk.links import real_path
from registry.disk.paths import ARCHIVES, ROOT, STATE_SUFFIX, is_below
from registry.disk.walk import Walk
from registry.errors import (
    AdminNeeded,
    SkillExists,
    SourceElsewhere,
    SourceExists,
    SourceInvalid,
    SourceNotAdopted,
    SourceNotFound,
    SourceNotYours,
    SourceReadOnly,
    SourceUnclear,
    UsageProblem,
)
from registry.model import DOCUMENT_NAMES, Remote, Scope, Source, Value
from registry.text import utc_now


def is_here(core: Core, host: str, path: str) -> bool:
    """Tell whether a source's folder is on this machine and this user may use it.

    In a SQLite file, sources have no host and need no adoption, but their paths must be absolute.
    On a server, any user can write any host name into a source. So a source is accepted only if
    this user added or adopted it.
    """
    if not core.host:
        return not host and os.path.isabs(path)
    return host == core.host and is_adopted(core.backend, path)


def check_own(core: Core, name: str, host: str, path: str) -> None:
    """Raise an error if a source isn't on this machine, or if this user has not adopted it.

    Raises `SourceElsewhere` if the source is on another machine. Otherwise raises
    `SourceNotAdopted`, or `SourceNotYours` if it belongs to another role.
    """
    if host != core.host:
        raise SourceElsewhere(name=name, host=host)
    if not is_here(core, host, path):
        raise not_adopted(core, name, path)


def not_adopted(core: Core, name: str, path: str) -> SourceNotAdopted | SourceNotYours:
    """Return the error for a source with this host's name that this user has not adopted."""
    for source in list_sources(core.reader, counted=False):
        if source.name == name and not source.own:
            return SourceNotYours(name=name, owner=source.owner, host=source.host)
    formerly = former_addresses(core.backend).get(path)
    address = address_of(core.backend.identity) if formerly else None
    return SourceNotAdopted(name=name, host=core.host, formerly=formerly, address=address)


def is_ours(core: Core, source: Source) -> bool:
    """Tell whether a source is on this machine and this user's role owns it."""
    return is_here(core, source.host, source.path) and (source.own or not core.host)


def check_ours(core: Core, source: Source, *, as_admin: bool = False) -> None:
    """Raise an error if this user may not change a source.

    If ``as_admin``, check only whether this user is an admin (`check_admin`). Otherwise the source
    must be on this machine (`check_own`) and belong to this user's role (`check_owner`).
    """
    if as_admin:
        check_admin(core)
        return
    check_own(core, source.name, source.host, source.path)
    check_owner(core, source)


def check_owner(core: Core, source: Source) -> None:
    """Raise `SourceNotYours` if the source belongs to another role of the server."""
    if core.host and not source.own:
        raise SourceNotYours(name=source.name, owner=source.owner, host=source.host)


def check_admin(core: Core) -> None:
    """Raise `AdminNeeded` if this user is not an admin.

    In a SQLite file, every user is an admin.
    """
    if core.host and not is_admin(core.reader):
        raise AdminNeeded(path=core.backend.path)


def check_writable(source: Source) -> None:
    """Raise `SourceReadOnly` if the source is a checkout of a remote source."""
    if source.remote is not None:
        raise SourceReadOnly(name=source.name, url=source.remote.url)


MAX_NAME: Final = 64

_GENERIC: Final = frozenset({"skills", "skill", "workspace", "agent-skills"})


@dataclass(frozen=True, slots=True)
class Discovered(Value):
    """A well-known skill folder that exists on disk.

    If the folder is a source, ``source`` is the name of the source.
    """

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
    """Return a short name for a source with the folder ``path``; the name isn't in ``taken``.

    A folder called "skills" is named after the folder that contains it. For example,
    ``~/.claude/skills`` is "claude". If that name is taken, the names of outer folders are added in
    front, as in "project-claude". If these names are also taken, a number is added at the end.
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
    """Return the project folder for skills at ``path``; None if the scope isn't project.

    If ``path`` is in an agent's skills folder, the project is the folder that contains the agent's
    folder. Otherwise the project is the nearest git checkout that contains the path. If there is
    none, it is the parent folder. A home folder under version control doesn't count as a checkout.
    """
    if scope != "project":
        return None
    for below in project_folders():
        if path.endswith(f"/{below}"):
            return path.removesuffix(f"/{below}") or os.sep
    above, name = os.path.split(path)
    if name in {"skill", "skills"} and os.path.basename(above).startswith("."):
        return os.path.dirname(above)  # ``path`` is a skills folder of an unknown agent
    folder, home = path, resolved("~")
    while not is_below(home, folder):
        if os.path.lexists(os.path.join(folder, ".git")):
            return folder
        folder = os.path.dirname(folder)
    return os.path.dirname(path)


def resolved(path: str) -> str:
    """Convert a path that the user typed into an absolute path without links."""
    return real_path(os.path.expanduser(path.replace("\0", "\ufffd")))


class Nesting(NamedTuple):
    """A registered source that contains a new folder, or is inside the new folder.

    If ``inside``, the new folder is inside the source. ``skills`` is the number of the source's
    skills that are also in the new folder.
    """

    source: Source
    inside: bool
    skills: int


def choose(
    core: Core,
    known: Sequence[Source],
    targets: Sequence[str],
    *,
    scope: Scope | None,
    name: str | None,
    register: bool,
) -> list[Source]:
    """Return the ``known`` sources that the targets name; register targets that are new folders.

    Without ``register``, a new folder is returned as a source, but isn't stored. Raises
    `SourceNotFound`, `SourceInvalid`, `UsageProblem`, and `SourceExists` if a folder is already
    registered with another name.
    """
    host = core.host
    if not targets:
        if name or scope:
            raise UsageProblem(message="--name and --scope go with a folder to sync")
        return [one for one in own_sources(core, known) if one.enabled]
    if name and len(targets) > 1:
        raise UsageProblem(message="--name goes with a single folder")
    # check all targets first, so that after an error no target is registered
    if register and targets[1:]:
        choose(core, known, targets, scope=scope, name=name, register=False)
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
            known_as = f"The source {source.name} has the scope {source.scope}"
            raise UsageProblem(message=f"{known_as}; to change it, run: {change}")
        chosen[source.path] = source
    return list(chosen.values())


def nesting(core: Core, target: str) -> list[Nesting]:
    """Return this machine's sources that contain the folder ``target`` or are inside it.

    If the folder is a source itself, or doesn't exist, the result is empty.
    """
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


def own_sources(core: Core, known: Sequence[Source] | None = None) -> list[Source]:
    """Return the sources whose folders are on this machine, in order of precedence.

    ``known`` holds all sources. If it is None, this function reads them, without counting their
    skills.
    """
    known = list_sources(core.reader, counted=False) if known is None else known
    return [one for one in known if is_ours(core, one)]


def unadopted_sources(core: Core, known: Sequence[Source]) -> list[Source]:
    """Return the ``known`` sources with this host's name that this user has not adopted."""
    return [one for one in known if one.host == core.host and not is_here(core, one.host, one.path)]


def walk_of(core: Core, root: str, known: Sequence[str] | None = None) -> Walk:
    """Return a `Walk` that scans the source at ``root``.

    ``known`` holds the folders of this host's sources. If it is None, this function reads them from
    the database.
    """
    known = roots(core.reader, core.host) if known is None else known
    return Walk(root, core.settings.limits, [one for one in known if is_here(core, core.host, one)])


def find(core: Core, name: str) -> Source:
    """Return the source with this name or path, without counting its skills.

    Raises `SourceNotFound` if there is none.
    """
    return found_in(core, list_sources(core.reader, counted=False), name)


def found_in(core: Core, known: Sequence[Source], name: str) -> Source:
    """Return the source among ``known`` with this name or path.

    Raises `SourceNotFound` if there is none.
    """
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
    """Register a folder as a source; see `SkillRegistry.add_source`.

    If the folder is the checkout of a remote source, ``remote`` is that remote source. If ``name``
    isn't given, the source gets its name from the path ``telling``.
    """
    known = list_sources(core.reader)
    _check_path_free(core, resolved(path), known)
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
    # shells add a slash when they complete a name
    if target.endswith("/") and not os.path.lexists(path):
        return _existing(known, target.rstrip("/"), host)
    # The same path on another host is a different folder, so consider only this host's sources.
    known = [source for source in known if source.host == host]
    for source in known:
        if source.path == path:
            return source
    # If the path is a skill folder inside a source, use that source.
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
                    if core.host:
                        # Record the source before the commit, because another process that sees it
                        # must find that this user added it.
                        remember(core.backend, path)
            except SourceExists as error:
                if name or error.path:
                    raise
                # a source of another team, which this user can't see, has this name
                taken.append(chosen)
                chosen = suggest_name(telling or path, taken)
        number = stored
        if core.host:
            return find(core, chosen)  # read the source again, because the server has set its owner
    return Source(number, chosen, path, scope, priority, True, None, None, 0, core.host, remote)


def check_name(name: str, known: Sequence[Source]) -> None:
    """Check the name of a new source.

    Raises `UsageProblem` if the name is invalid, and `SourceExists` if another source has the name.
    """
    if not name or len(name) > MAX_NAME or not name.isprintable() or "/" in name:
        message = f"a source's name has 1 to {MAX_NAME} printable characters and no slash"
        raise UsageProblem(message=message)
    taken = next((one for one in known if one.name == name), None)
    if taken is not None:
        raise SourceExists(name=name, path=taken.path)


def _check_folder(target: str, path: str, known: Sequence[Source]) -> None:
    if not os.path.lexists(path):
        is_path = os.sep in target or target.startswith((".", "~"))
        if not is_path and not target.lower().endswith(ARCHIVES):
            raise SourceNotFound(name=target, known=[source.name for source in known])
        folder, _, ref = path.partition("#")
        kind = "file" if target.lower().endswith(ARCHIVES) else "folder"
        pinned = f"; to pin a repository: {PurePath(folder).as_uri()}#{ref}"
        hint = pinned if ref and os.path.isdir(folder) else ""
        raise SourceInvalid(path=path, reason=f"there is no such {kind}{hint}")
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
        reason = (
            f"it is {what}, which is mostly other files; name a folder below it that holds skills"
        )
        raise SourceInvalid(path=path, reason=reason)
    if any(part.endswith(STATE_SUFFIX) for part in PurePath(path).parts):
        raise SourceInvalid(path=path, reason="it holds the registry's own state, not skills")


def target_source(core: Core, name: str | None, *, to_read: bool = False) -> Source:
    """Return the source to write to: the named source, the only source, or the one in the settings.

    With ``to_read``, if this machine has no source, a source of another machine is accepted. Raises
    `SourceNotFound`, `SourceUnclear`, `SourceNotAdopted`.
    """
    return _target(core, list_sources(core.reader, counted=False), name, to_read=to_read)


def target_of_new(core: Core, source: str | None, name: str) -> Source:
    """Return the source to which to write a new skill; `target_source` chooses it.

    Raises `SkillExists` if the source has a skill with this ``name``.
    """
    every, found = sources_and(core.reader, places_of_name(name))
    target = _target(core, every, source)
    if (folder := dict(found).get(target.id)) is not None:
        raise SkillExists(name=name, path=os.path.join(target.path, folder))
    return target


def _target(
    core: Core, every: Sequence[Source], name: str | None, *, to_read: bool = False
) -> Source:
    known = [one for one in every if is_ours(core, one)]
    known = known or (list(every) if to_read else [])
    foreign = [] if to_read else [one.name for one in known if one.remote is not None]
    if not to_read:
        known = [one for one in known if one.remote is None]
    claimed = sorted((one for one in every if one.host == core.host), key=lambda one: not one.own)
    if name is None and not known and foreign and core.settings.default_source is None:
        raise SourceUnclear(known=[], foreign=foreign)
    if name is None and not known and not foreign and claimed:
        raise not_adopted(core, claimed[0].name, claimed[0].path)
    if name is None and len(known) == 1:
        return known[0]
    name = name or core.settings.default_source
    if name is None:
        own = [source.name for source in known]
        elsewhere = bool(every) and not own
        raise SourceUnclear(known=own, elsewhere=elsewhere, to_read=to_read)
    return found_in(core, every, name)


class Change(TypedDict, total=False):
    """The properties of a source to change.

    ``team`` is the team that sees the source; if ``team`` is empty, all users see it. ``owner`` is
    the new owner, which only an admin can set. ``review`` tells whether changes over HTTP or
    through tools need approval. ``folder`` is the new place of the skills, for example after a
    database was restored on another machine; the skills keep their history.

    With ``as_admin``, an admin can change a source of another role or machine. On a server,
    ``priority`` then sets the rank among the sources of all owners. Without ``as_admin``, it sets
    the rank only among the sources of the same owner.
    """

    new_name: str | None
    scope: Scope | None
    priority: int | None
    team: str | None
    owner: str | None
    review: bool | None
    folder: str | None
    as_admin: bool


def update(  # one line for each property
    core: Core, name: str, **change: Unpack[Change]
) -> Source:
    """Change the name, scope, priority, folder, team or owner of a source; see `Change`."""
    from registry.db.write.sources import (
        change_source,
        move_source,
        rename_source,
        set_owner,
        set_team,
    )

    known = list_sources(core.reader, counted=False)
    source = found_in(core, known, name)
    check_ours(core, source, as_admin=change.get("as_admin", False))
    new_name, team, owner = (change.get("new_name"), change.get("team"), change.get("owner"))
    if not core.host and (team is not None or owner is not None):
        raise UsageProblem(message="owners and teams need a server; a SQLite file has neither")
    review = change.get("review")
    if review is not None:
        check_writable(source)
    if owner is not None:
        from registry.db.postgres.rights import check_role

        check_admin(core)
        check_role(core.reader.rows, owner)
    if new_name is not None and new_name != source.name:
        check_name(new_name, [one for one in known if one.id != source.id])
    path = _new_path(core, known, source, change.get("folder"))
    scope, priority = change.get("scope") or source.scope, change.get("priority")
    priority = source.priority if priority is None else priority
    # On a server, the priority that an admin sets applies to all owners. A SQLite file has no
    # owners.
    decided = change.get("as_admin", False) and source.owner is not None
    precedence = change.get("priority") if decided else None
    with core.writer.transaction() as connection:
        if new_name is not None:
            rename_source(connection, source.id, source.name, new_name)
        if team is not None:
            set_team(connection, source.id, team or None)
        if owner is not None:
            set_owner(connection, source.id, owner)
        if review is not None and review != source.review:
            from registry.db.write.proposals import set_review

            set_review(connection, source.id, required=review)
        if path != source.path:
            move_source(connection, source, path)
        change_source(connection, source.id, scope, priority, project_of(scope, path), precedence)
    return next(one for one in list_sources(core.reader) if one.id == source.id)


def _new_path(core: Core, known: Sequence[Source], source: Source, folder: str | None) -> str:
    """Return the path that a source gets if its skills are in ``folder`` now."""
    if folder is None:
        return source.path
    if core.host:
        message = "the folder of a source can't be changed on a server: sync the new folder instead"
        raise UsageProblem(message=message)
    if source.remote is not None:
        message = (
            f"the files of {source.name} are fetched from {source.remote.url} into a folder of the "
            "registry, which can't be changed. To read only one folder of the repository, sync its "
            "address with the folder at its end, then remove this source"
        )
        raise UsageProblem(message=message)
    check_writable(source)
    path, others = resolved(folder), [one for one in known if one.id != source.id]
    _check_path_free(core, path, others)
    if not os.path.lexists(path):
        reason = "there is no such folder. First create it, or move the skills there"
        raise SourceInvalid(path=path, reason=reason)
    _check_folder(os.path.join(folder, ""), path, others)
    return path


def _check_path_free(core: Core, path: str, known: Sequence[Source]) -> None:
    """Raise `SourceExists` if one of this host's ``known`` sources has this path."""
    for one in known:
        if one.path == path and one.host == core.host:
            raise SourceExists(name=one.name, path=one.path)


def remove(
    core: Core, name: str, *, as_admin: bool = False, with_tombstones: bool = True
) -> Source:
    """Remove a source and its skills from the database; see `SkillRegistry.remove_source`."""
    from registry.db.write.sources import remove_source

    wanted = find(core, name)
    if as_admin:
        check_admin(core)
    elif core.host and (wanted.host != core.host or not wanted.own):
        raise SourceNotYours(name=wanted.name, owner=wanted.owner, host=wanted.host)
    source = next(one for one in list_sources(core.reader) if one.id == wanted.id)
    with core.writer.transaction() as connection:
        remove_source(connection, source.id, with_tombstones=with_tombstones)
    if source.host == core.host:
        forget(core.backend, source.path)
    return source


def adopt(core: Core, name: str, *, as_admin: bool = False) -> Source:
    """Adopt a source, so that this machine syncs it; see `SkillRegistry.adopt_source`.

    If ``as_admin``, this user's role also becomes the owner of the source.
    """
    source = find(core, name)
    if source.host != core.host:
        raise SourceElsewhere(name=source.name, host=source.host)
    if core.host:
        if as_admin:
            from registry.db.write.sources import set_owner

            check_admin(core)
            with core.writer.transaction() as connection:
                set_owner(connection, source.id, None)
            source = find(core, name)
        check_owner(core, source)
        remember(core.backend, source.path)
    return source
