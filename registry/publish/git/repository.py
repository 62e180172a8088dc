"""Build the git repository of a view: each skill is a plugin, and a marketplace lists them.

The layout is ``plugins/NAME/skills/NAME/…`` and ``.claude-plugin/marketplace.json``, which all
clients of docs/how-to/install-with-an-agents-own-client.md accept. If versions are deprecated or
yanked, ``versions.json`` tells another registry which ones, and why. For the same skills and the
same states of versions, the commit id is the same.
"""

import json
import re
import zlib
from calendar import timegm
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from hashlib import sha256
from itertools import chain
from typing import Any, Final, NamedTuple

from registry.catalog.browse import Browse
from registry.core import Core
from registry.db.interface import Condition
from registry.db.read import repository as stored
from registry.db.read.labels import InactiveVersion
from registry.db.read.listing import Filters
from registry.db.read.repository import Release, RepositorySkill
from registry.disk.files import digest, tree_digest
from registry.disk.paths import check_paths
from registry.errors import ExportRefused, RegistryError, SkillNotFound, SourceNotFound
from registry.install.content import content_of
from registry.model import SkillFile
from registry.publish.git.names import Named, claims_known_to, entry_names
from registry.publish.git.objects import (
    BLOB,
    COMMIT,
    FILE,
    FOLDER,
    MAX_PACK,
    OID,
    PROGRAM,
    TREE,
    Pack,
    PackFull,
    PackWriter,
    commit,
    entries_of,
    tree,
)
from registry.publish.git.states import states_of, yanked_skill
from registry.remotes.states import FILE as FILE_OF_STATES
from registry.remotes.states import encoded
from registry.text import is_utc_text, shorten, slug

MARKETPLACE: Final = "skill-registry"
"""The name of the marketplace with all skills."""

DOCUMENT: Final = "SKILL.md"
BRANCH: Final = "refs/heads/main"
OWNER: Final = "skill-registry"
AUTHOR: Final = f"{OWNER} <{OWNER}@localhost>"
MAX_DESCRIPTION: Final = 1024
ATTRIBUTES: Final = b"* -text\n"
"""The repository's `.gitattributes`: git must not change line ends.

So files keep exactly the same bytes.
"""

SKILLS: Final = 200
"""Number of skills whose lists of files are read with one query."""

BYTES: Final = 4 << 20
"""Maximum total size of files that are read with one query, in bytes.

A larger file is read separately.
"""

_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f-\x9f]+")

_Entries = dict[bytes, tuple[bytes, bytes]]


@dataclass(frozen=True, slots=True)
class Repository:
    """A finished repository.

    ``refs`` maps the names of branches and tags to object ids. ``skills`` maps the tree hash of
    each skill to the ids of the skill's objects; the id of the skill's tree comes first.
    ``entries`` has the name of each entry and the ref of its skill, and ``versions`` the version of
    each entry. ``left_out`` has a ref and a reason for each skill that isn't in the repository.
    ``tips`` maps each commit to the ids of its objects.
    """

    head: bytes
    refs: Mapping[str, bytes]
    pack: Pack
    skills: Mapping[str, bytes]
    entries: Sequence[tuple[str, str]]
    versions: Mapping[str, str]
    left_out: Sequence[tuple[str, str]]
    tips: Mapping[bytes, bytes]

    def files(self, name: str) -> dict[str, bytes]:
        """Return the ids of the blobs of an entry's skill, by path in the skill's folder."""
        oid = bytes.fromhex((self.pack.read(self.head) or b"")[5:45].decode())
        for part in ("plugins", name, "skills", name):
            entries = entries_of(self.pack.read(oid) or b"")
            if part.encode() not in entries:
                return {}
            oid = entries[part.encode()][1]
        return dict(self._below(oid, ""))

    def _below(self, oid: bytes, above: str) -> Iterator[tuple[str, bytes]]:
        for name, (mode, inner) in entries_of(self.pack.read(oid) or b"").items():
            path = f"{above}{name.decode()}"
            if mode == FOLDER:
                yield from self._below(inner, f"{path}/")
            else:
                yield path, inner

    def objects_of(self, commit: bytes) -> frozenset[bytes]:
        """Return the ids of all objects of a commit, including the commit."""
        oids = self.tips[commit]
        return frozenset(oids[at : at + OID] for at in range(0, len(oids), OID))


class Choice(NamedTuple):
    """The skills of a repository as an SQL condition, and the name of its marketplace."""

    condition: Condition
    name: str


def marketplace_of(name: str) -> str:
    """Return the name of the marketplace in the repository of one skill."""
    return f"skill-{slug(name)}"


def is_tag(label: str) -> bool:
    """Tell whether git accepts the label of a version as the end of a tag's name."""
    return ".." not in label and not label.endswith((".", ".lock"))


def choose(view: Browse, kind: str, name: str) -> Choice:
    """Return the skills of a repository that a view lists.

    ``kind`` is catalogue, source, tag, personality or skill. For personality, ``view`` must be the
    view of that personality. Raises `SkillNotFound`, `SkillAmbiguous` and `SourceNotFound`.
    """
    wanted, called = Filters(), MARKETPLACE if kind == "catalogue" else f"{kind}-{slug(name)}"
    if kind == "source":
        known = [one.name for one in view.sources()]
        if name not in known:
            raise SourceNotFound(name=name, known=known)
        wanted = Filters(source=name)
    elif kind == "tag":
        wanted = Filters(tags=[name])
    condition = view.condition(view.filters(wanted))
    if kind == "skill":
        stored_skill = view.locate(name)
        called = marketplace_of(stored_skill.skill.name)
        condition = f"{condition[0]} AND s.id = ?", [*condition[1], stored_skill.id]
    return Choice(condition, called)


def build(
    view: Browse, kind: str = "catalogue", name: str = "", before: Repository | None = None
) -> Repository:
    """Build a repository of the skills that a view lists; see `choose`.

    ``before`` is an earlier state of the same repository, from which objects are copied. Raises
    `ExportRefused` if the new repository is too large, and the errors of `choose`.
    """
    reader = view.core.reader
    with reader.snapshot():
        try:
            condition, called = choose(view, kind, name)
            skills = stored.published(reader, condition)
            versioned = skills[:1] if kind == "skill" else []
        except SkillNotFound:
            hidden = yanked_skill(view, name) if kind == "skill" else None
            if hidden is None:
                raise
            # The other versions of a withdrawn skill stay available as tags.
            skills, called = [], marketplace_of(hidden.name)
            versioned = stored.published(reader, ("s.uid = ? AND s.live = 1", [hidden.uid]))
        releases = [one for each in versioned for one in stored.releases(reader, each.uid)]
        only = versioned[0].skill.name if versioned else None
        names = entry_names(claims_known_to(view, only))

        def folder_of(one: InactiveVersion) -> str:
            entry = names.get((one.uid, one.name))
            # A view has no claim of a hidden skill if no other skill has the skill's name.
            called = slug(one.name) if entry is None else entry.name
            return f"plugins/{called}/skills/{called}"

        chosen = versioned[0].uid if versioned else name
        states = states_of(view, kind, chosen, folder_of)
    builder = _Builder(view.core, before, encoded(states) if states else None)
    try:
        return builder.build(view, skills, names, called, versioned, releases)
    except PackFull:
        builder.pack.discard()
        reason = f"the repository would be larger than {MAX_PACK >> 20} MiB"
        raise ExportRefused(path=called, reason=reason) from None
    except BaseException:
        builder.pack.discard()
        raise


class _Builder:
    def __init__(self, core: Core, before: Repository | None, states: bytes | None) -> None:
        self._core, self._states = core, states
        self._known = {} if before is None else before.skills
        self.pack = PackWriter(None if before is None else before.pack)
        self._skills: dict[str, bytes] = {}

    def build(
        self,
        view: Browse,
        skills: Sequence[RepositorySkill],
        names: Mapping[tuple[str, str], Named],
        name: str,
        versioned: Sequence[RepositorySkill],
        releases: Sequence[Release],
    ) -> Repository:
        left_out: list[tuple[str, str]] = []
        done: list[tuple[Named, RepositorySkill, bytes]] = []
        taken: set[str] = set()
        reasons = self._add_all(skills)
        for one in sorted(skills, key=lambda one: one.uid):
            entry = names.get((one.uid, one.skill.name))
            tree_hash = one.skill.tree_hash or ""
            reason = reasons.get(one.id)
            if entry is not None and entry.name in taken:
                reason = "another skill has its name"
            if reason is None and entry is not None:
                taken.add(entry.name)
                done.append((entry, one, self._skills[tree_hash]))
            else:
                ref = view.localized(one.skill).ref
                left_out.append((ref, reason or "the last sync could not read all of its files"))
        done.sort(key=lambda one: one[0].name)
        seconds = max((_seconds(one.seen_at) for _, one, _ in done), default=0)
        text = f"{len(done)} skill{'' if len(done) == 1 else 's'}"
        plugins = [(entry, one.skill.description, oids) for entry, one, oids in done]
        head, objects = self._commit(name, plugins, seconds, text, with_states=True)
        refs, tips = {BRANCH: head}, {head: objects}
        for one in versioned:
            entry = names.get((one.uid, one.skill.name))
            if entry is None:
                continue
            for release in releases:
                made = self._add_release(release, name, entry.number - one.turn, entry.name)
                if made is not None:
                    tag = f"refs/tags/{entry.name}/{release.label}"
                    refs[tag], tips[made[0]] = made[0], made[1]
        return Repository(
            head,
            refs,
            self.pack.finish(),
            self._skills,
            [(entry.name, view.localized(one.skill).ref) for entry, one, _ in done],
            {entry.name: entry.version for entry, _, _ in done},
            sorted(left_out),
            tips,
        )

    def _add_release(
        self, release: Release, name: str, base: int, entry: str
    ) -> tuple[bytes, bytes] | None:
        """Add the commit of a version; return its id and the ids of all its objects.

        Returns None if the label isn't a valid git tag, or if the version's files aren't stored.
        """
        if not is_tag(release.label):
            return None
        if release.tree_hash not in self._skills:
            if check_paths(_called(file.path, release.document) for file in release.files):
                return None
            blobs = dict(self._stored_blobs(release.files))
            if not self._add_stored(release.tree_hash, release.document, release.files, blobs):
                return None
        # The commit of a version must never change, so don't use the skill's current description.
        text = f"Version {release.label}"
        called = Named(entry, base + release.turn)
        plugins = [(called, text, self._skills[release.tree_hash])]
        return self._commit(name, plugins, _seconds(release.seen_at), text)

    def _commit(
        self,
        name: str,
        plugins: Sequence[tuple[Named, str, bytes]],
        seconds: int,
        text: str,
        *,
        with_states: bool = False,
    ) -> tuple[bytes, bytes]:
        """Add the commit of a marketplace; return its id and the ids of all its objects.

        ``plugins`` has an entry, its description, and the ids of its skill's objects. The states of
        versions change, so the commit of a version must not have them.
        """
        oids: list[bytes] = []

        def add(kind: int, data: bytes) -> bytes:
            oids.append(self.pack.add(kind, data))
            return oids[-1]

        folders: _Entries = {}
        for entry, _, skill in plugins:
            inner = entry.name.encode()
            of_it = add(TREE, tree({inner: (FOLDER, skill[:OID])}))
            folders[inner] = FOLDER, add(TREE, tree({b"skills": (FOLDER, of_it)}))
            oids.append(skill)
        manifest = add(BLOB, marketplace(name, ((entry, about) for entry, about, _ in plugins)))
        top: _Entries = {
            b".gitattributes": (FILE, add(BLOB, ATTRIBUTES)),
            b".claude-plugin": (FOLDER, add(TREE, tree({b"marketplace.json": (FILE, manifest)}))),
        }
        if self._states is not None and with_states:
            top[FILE_OF_STATES.encode()] = FILE, add(BLOB, self._states)
        if folders:
            top[b"plugins"] = FOLDER, add(TREE, tree(folders))
        made = add(COMMIT, commit(add(TREE, tree(top)), AUTHOR, seconds, text))
        return made, b"".join(oids)

    def _add_all(self, skills: Sequence[RepositorySkill]) -> dict[int, str]:
        """Add the files of all skills.

        Return the reasons why skills are left out, by version id.
        """
        reasons: dict[int, str] = {}
        fresh = []
        for one in skills:
            tree_hash = one.skill.tree_hash
            if tree_hash is None:
                reasons[one.id] = "the last sync could not read all of its files"
            elif tree_hash not in self._skills:
                oids = self._known.get(tree_hash)
                if oids is not None and all(
                    self.pack.copy(oids[at : at + OID]) for at in range(0, len(oids), OID)
                ):
                    self._skills[tree_hash] = oids
                else:
                    fresh.append(one)
        for begin in range(0, len(fresh), SKILLS):
            some = fresh[begin : begin + SKILLS]
            files = stored.files(self._core.reader, [one.id for one in some])
            blobs = dict(self._blobs(some, files))
            for one in some:
                reason = self._add(one, files[one.id], blobs)
                if reason is not None:
                    reasons[one.id] = reason
        return reasons

    def _add(
        self, one: RepositorySkill, files: Sequence[SkillFile], blobs: Mapping[str, bytes]
    ) -> str | None:
        """Add the trees of a skill; if the skill must be left out, return the reason."""
        tree_hash = one.skill.tree_hash or ""
        bad = check_paths(_called(file.path, one.document) for file in files)
        if bad is not None:
            return f"{bad[0]!r}: {bad[1]}"
        if self._add_stored(tree_hash, one.document, files, blobs):
            return None
        try:
            entries = content_of(self._core, one.skill)
        except RegistryError as error:
            return str(error).removesuffix(".")
        hashed = [(each.path, each.executable, digest(each.data)) for each in entries]
        if tree_digest(hashed) != tree_hash:
            return "its files changed since the last sync"
        found = [(each.path, each.executable, self.pack.add(BLOB, each.data)) for each in entries]
        self._add_skill(tree_hash, one.document, found)
        return None

    def _add_stored(
        self,
        tree_hash: str,
        document: str | None,
        files: Sequence[SkillFile],
        blobs: Mapping[str, bytes],
    ) -> bool:
        """Add the trees of a skill; return False if the database doesn't have all of its files.

        The caller has checked the paths of the files.
        """
        listed = [(file.path, file.executable, file.hash or "") for file in files]
        if tree_digest(listed) != tree_hash or not all(file.hash in blobs for file in files):
            return False
        found = [(file.path, file.executable, blobs[file.hash or ""]) for file in files]
        self._add_skill(tree_hash, document, found)
        return True

    def _add_skill(
        self, tree_hash: str, document: str | None, files: Sequence[tuple[str, bool, bytes]]
    ) -> None:
        oids: list[bytes] = []
        folder: dict[str, Any] = {}
        for path, executable, oid in files:
            *above, last = _called(path, document).split("/")
            inner = folder
            for part in above:
                inner = inner.setdefault(part, {})
            inner[last] = PROGRAM if executable else FILE, oid
            oids.append(oid)
        own = self._add_tree(folder, oids)
        self._skills[tree_hash] = own + b"".join(oids)

    def _add_tree(self, folder: Mapping[str, Any], oids: list[bytes]) -> bytes:
        entries: _Entries = {}
        for name, inner in folder.items():
            if isinstance(inner, dict):
                oid = self._add_tree(inner, oids)
                oids.append(oid)
                entries[name.encode()] = FOLDER, oid
            else:
                entries[name.encode()] = inner
        return self.pack.add(TREE, tree(entries))

    def _blobs(
        self, some: Sequence[RepositorySkill], files: Mapping[int, Sequence[SkillFile]]
    ) -> Iterator[tuple[str, bytes]]:
        """Add the stored files of some skills; yield each file's hash and the id of its blob."""
        reader, limit = self._core.reader, self._core.settings.limits.skill_bytes
        found: set[str] = set()
        for hashed, oid in self._stored_blobs(chain.from_iterable(files.values())):
            found.add(hashed)
            yield hashed, oid
        # For the SKILL.md of a current version, only the version's text is stored.
        missing = {
            one.id: one.skill.content_hash
            for one in some
            if one.skill.content_hash is not None and one.skill.content_hash not in found
        }
        for version, text in stored.texts(reader, list(missing)).items():
            hashed, data = missing[version], text.encode("utf-8", "replace")
            added = self._add_blob(hashed, data, limit, packed=False)
            if added is not None:
                yield hashed, added

    def _stored_blobs(self, files: Iterable[SkillFile]) -> Iterator[tuple[str, bytes]]:
        reader, limit = self._core.reader, self._core.settings.limits.skill_bytes
        sizes = {one.hash: max(0, one.size) for one in files if one.hash is not None}
        for hashes in _batches(sizes):
            for hashed, packed, data in stored.contents(reader, hashes, limit):
                oid = self._add_blob(hashed, data, limit, packed=packed)
                if oid is not None:
                    yield hashed, oid

    def _add_blob(
        self, hashed: str, data: bytes | None, limit: int, *, packed: bool
    ) -> bytes | None:
        """Add a file and return its id, if the stored bytes have this hash."""
        if not isinstance(data, bytes):
            return None
        plain: bytes = data
        if packed:
            unpacking = zlib.decompressobj()
            try:
                plain = unpacking.decompress(data, limit + 1)
            except zlib.error:
                return None
            if not unpacking.eof or unpacking.unused_data:
                return None
        if len(plain) > limit or f"sha256:{sha256(plain).hexdigest()}" != hashed:
            return None
        return self.pack.add(BLOB, plain, data if packed else None)


def _called(path: str, document: str | None) -> str:
    """Return the path of a file in the repository.

    The skill file gets the name SKILL.md, because clients look only for this name.
    """
    return DOCUMENT if path == document else path


def _batches(sizes: Mapping[str, int]) -> Iterator[list[str]]:
    """Divide contents into batches of at most `BYTES`; a larger content is a batch by itself."""
    batch: list[str] = []
    room = BYTES
    for hashed, size in sizes.items():
        if batch and size > room:
            yield batch
            batch, room = [], BYTES
        batch.append(hashed)
        room -= size
    if batch:
        yield batch


def marketplace(name: str, entries: Iterable[tuple[Named, str]]) -> bytes:
    """Return the file ``.claude-plugin/marketplace.json``; each entry contains its description."""
    plugins = [
        {
            "name": entry.name,
            "description": _one_line(about),
            "source": f"./plugins/{entry.name}",
            "strict": False,
            "version": entry.version,
        }
        for entry, about in entries
    ]
    facts = json.dumps({"name": name, "owner": {"name": OWNER}})
    lines = ",\n".join(map(json.dumps, plugins))
    return f'{facts[:-1]}, "plugins": [\n{lines}\n]}}\n'.encode()


def _one_line(text: str) -> str:
    """Return a description without characters that could control a terminal."""
    return shorten(_CONTROL.sub(" ", text).strip(), MAX_DESCRIPTION, whole_words=True)


def _seconds(time: str) -> int:
    """Return a stored time as seconds since 1970; 0 for an invalid time."""
    if not is_utc_text(time):
        return 0
    try:
        return max(0, timegm(datetime.fromisoformat(time).timetuple()))
    except ValueError:
        return 0
