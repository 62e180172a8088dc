"""Fetch a version of a remote source's skill that no sync of this registry has seen.

In a git repository, a version is a tag. The git remote of a registry has the tags of one skill in
the repository of this skill (docs/how-to/install-with-an-agents-own-client.md).
"""

import json
import os
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from tempfile import TemporaryDirectory
from typing import Final, NamedTuple
from urllib.parse import quote, urlsplit

from registry.catalog.reading import pinned
from registry.catalog.resolve import resolve
from registry.core import Core
from registry.db.read.labels import version
from registry.db.read.skills import StoredSkill
from registry.disk.files import digest
from registry.disk.paths import ROOT
from registry.document.labels import is_label, ordered
from registry.document.parse import parse_document
from registry.errors import (
    RemoteProblem,
    RemoteTooLarge,
    RemoteUnreachable,
    VersionNotFound,
    VersionNotStored,
)
from registry.install.content import FileContent, content_below, tree_hash
from registry.model import DOCUMENT_NAMES, Origin, PinnedSkill, Remote, Skill
from registry.remotes import sources
from registry.remotes.git import COMMIT, Git, open_git
from registry.remotes.snapshot import FetchLimits
from registry.sync.sources import find, is_here
from registry.text import utc_now

MAX_NAMED: Final = 20
"""Maximum number of versions that the error names if there is no such version."""

_SERVED: Final = re.compile(r"(.*/git)/(?:catalogue|(?:source|tag|personality)/[^/]+)\.git/?")
"""Matches an address of the git remote of a registry, except that of one skill."""

_NUMBERED: Final = re.compile(r"v?(\d[\w.+-]*)")


class Place(NamedTuple):
    """A repository that may have the versions of a skill, and the skill's folder in it."""

    url: str
    folder: str


def skills_at(
    core: Core,
    address: str,
    *,
    skills: Sequence[str] = (),
    every: bool = False,
    dry_run: bool = False,
    choose: sources.Choose | None = None,
) -> list[Skill]:
    """Return the selected skills at an address, as `remotes.sources.skills_at` does.

    If a source has the repository with another pin, and the address names a tag or a commit, no
    second source is added. The result then has this version of the skills of the source.
    """
    found = None if dry_run else sources.with_other_pin(core, address)
    if found is None:
        return sources.skills_at(
            core, address, skills=skills, every=every, dry_run=dry_run, choose=choose
        )
    source, asked = found
    tag, label = asked.ref or "", (asked.ref or "").rpartition("/")[2]
    if is_label(label) and (
        COMMIT.fullmatch(tag) or tag in Git(asked.url, "", FetchLimits()).tags()
    ):
        skills, every = skills or asked.only, every or bool(asked.only)
        offered = sources.skills_at(core, source.name, skills=skills, every=every, choose=choose)
        return [at_label(core, one, label, tag=tag) for one in offered]
    made = sources.skills_at(core, address, skills=skills, every=every, choose=choose)
    name = made[0].source if made else ""
    if name not in {"", source.name}:
        core.warn(
            f"{name} is a second source of {asked.url}, beside {source.name}, which has another "
            f"pin. To remove it, run: skill-registry source remove {shlex.quote(name)}"
        )
    return made


def at_label(core: Core, skill: Skill, label: str, *, tag: str | None = None) -> PinnedSkill:
    """Return the version of a skill with this label.

    If this registry has no such version, and the skill is from a remote source, the version is
    fetched and stored first: from ``tag`` (a tag or a commit), or else from a tag with a usual name
    for this version. Raises the errors of `reading.chosen`, and `RemoteProblem`.
    """
    stored = resolve(core.reader, f"{skill.source}/{skill.folder}")
    try:
        return pinned(core, stored, label)
    except (VersionNotFound, VersionNotStored) as problem:
        source = find(core, stored.skill.source)
        if source.remote is None or not is_here(core, source.host, source.path):
            raise
        known = list(problem.facts.get("known", ()))
        _fetch(core, stored, source.remote, label, known, tag)
    return pinned(core, stored, label)


def _fetch(
    core: Core,
    stored: StoredSkill,
    remote: Remote,
    label: str,
    known: list[str],
    wanted: str | None,
) -> None:
    """Fetch and store a version; ``known`` are the versions that this registry has.

    ``wanted`` is the tag or the commit, if the user named it. Raises `VersionNotFound` with the
    versions that exist, and `RemoteProblem`.
    """
    bounds = FetchLimits()
    unreachable: RemoteUnreachable | None = None
    for place in _places(remote, stored.folder):
        try:
            tags = Git(place.url, "", bounds).tags()
        except RemoteUnreachable as problem:
            unreachable = unreachable or problem
            continue
        except RemoteProblem:
            continue
        entry = os.path.basename(place.folder)
        names = {entry: None, stored.skill.name: None}
        own = [f"{name}{mark}{label}" for name in names for mark in ("/", "@", "-", "-v")]
        if wanted is not None:
            own = [wanted]
            tags |= {wanted: wanted} if COMMIT.fullmatch(wanted) else {}
        for tag in own if wanted else (*own, label, f"v{label}"):
            found = _files(core, place, tags[tag], bounds) if tag in tags else []
            if found and (tag in own or _is_labelled(found, entry, label)):
                _store(core, stored, label, found, Origin(place.url, tag, tags[tag], place.folder))
                return
        known += [one for one in _labels(tags, names) if one not in known]
    if unreachable is not None:
        raise unreachable
    newest = ordered(known, lambda one: one, lambda _: 0)[::-1][:MAX_NAMED]
    raise VersionNotFound(name=stored.skill.ref, label=label, known=newest)


def _places(remote: Remote, folder: str) -> Iterator[Place]:
    """Yield the repositories that may have the versions of a skill."""
    base = None
    if remote.kind == "git":
        yield Place(remote.url, folder)
        served = _SERVED.fullmatch(remote.url)
        base = served[1] if served else None
    elif remote.kind == "site":
        parts = urlsplit(remote.url)
        above = parts.path.partition("/.well-known/")[0].partition("/s/")[0].rstrip("/")
        base = parts._replace(path=f"{above}/git", query="").geturl()
    if base is not None:
        entry = os.path.basename(folder)
        ref = quote(entry.replace("--", "/", 1))
        yield Place(f"{base}/skill/{ref}.git", f"plugins/{entry}/skills/{entry}")


def _files(core: Core, place: Place, commit: str, bounds: FetchLimits) -> list[FileContent]:
    """Return the files of a skill's folder at a commit; an empty list if there is no such folder.

    Raises `RemoteProblem`.
    """
    part, limits = None if place.folder == ROOT else place.folder, core.settings.limits
    with (
        TemporaryDirectory(prefix="skill-registry-") as state,
        open_git(place.url, None, state, None, bounds, part=part, commit=commit) as tree,
    ):
        assert tree is not None  # noqa: S101  # not None, as `known` is None
        files = content_below(tree, place.folder, place.url, limits.files)
        if sum(len(one.data) for one in files) > limits.skill_bytes:
            reason = f"{place.folder} has more than {limits.skill_bytes} bytes"
            raise RemoteTooLarge(url=place.url, reason=reason)
        return files


def _document(files: list[FileContent]) -> FileContent | None:
    by_path = {one.path: one for one in files}
    return next((by_path[name] for name in DOCUMENT_NAMES if name in by_path), None)


def _is_labelled(files: list[FileContent], folder: str, label: str) -> bool:
    """Tell whether a skill at a tag of the whole repository can be the version with this label."""
    document = _document(files)
    if document is None:
        return False
    return parse_document(document.data, folder_name=folder).version in {None, label}


def _labels(tags: Mapping[str, str], names: Mapping[str, None]) -> Iterator[str]:
    for tag in tags:
        for name in names:
            if tag.startswith(f"{name}/") and is_label(tag[len(name) + 1 :]):
                yield tag[len(name) + 1 :]
        if (numbered := _NUMBERED.fullmatch(tag)) is not None and is_label(numbered[1]):
            yield numbered[1]


def _store(
    core: Core, stored: StoredSkill, label: str, files: list[FileContent], origin: Origin
) -> None:
    """Store the files as an earlier revision of the skill, and give them the label.

    A reader checks the files for security errors, as those of each revision from a remote source.
    """
    from registry.db.versions import pack
    from registry.db.write.history import add_contents, add_revision
    from registry.db.write.labels import add_label

    document, tree = _document(files), tree_hash(files)
    if document is None:
        raise VersionNotStored(name=stored.skill.ref, label=label)
    hashes = {one.path: digest(one.data) for one in files}
    listed = [[one.path, int(one.executable), len(one.data), hashes[one.path]] for one in files]
    with core.writer.transaction() as connection:
        add_contents(connection, [pack(hashes[one.path], one.data) for one in files])
        add_revision(
            connection,
            uid=stored.uid,
            name=stored.skill.name,
            document=document.path,
            content_hash=hashes[document.path],
            tree_hash=tree,
            seen_at=utc_now(),
            files=json.dumps(listed),
            origin="\n".join((origin.url, origin.ref or "", origin.commit or "", origin.path)),
            host=core.host or None,
        )
        if version(core.reader, stored.uid, label) is None:
            add_label(connection, stored.uid, label, tree, core.host)
