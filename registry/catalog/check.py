"""Check folders or registered skills: read them from disk and return all findings."""

import json
import os
import zlib
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from difflib import get_close_matches
from functools import cache
from operator import attrgetter
from typing import ClassVar, Final, NamedTuple, overload

from registry.catalog.reading import NO_DOCUMENT
from registry.catalog.resolve import imitated, look_alikes, resolve
from registry.core import Core
from registry.db.read.findings import StoredFindings, stored_findings
from registry.db.read.labels import version_hashes
from registry.db.read.proposals import unreviewed
from registry.db.read.skills import findings as findings_of
from registry.db.read.sources import list_sources
from registry.disk.links import LINK_KNOWN, finding, follow, is_dangling, real_path
from registry.disk.paths import ROOT, is_below, join, position
from registry.disk.private import is_ours_alone
from registry.disk.walk import WALK_CODES, RootGone, RootUnreadable, ScannedFolder, Walk
from registry.document.autofix import CHECK_ONLY_RULES, is_perhaps_untidy, untidy, untidy_tags
from registry.document.findings import PARSER_RULES, Rule
from registry.document.labels import REUSED, reused
from registry.document.parse import parse_document
from registry.document.rules import FORMAT_RULES
from registry.document.security import MAX_SKILL_BYTES, SECURITY_RULES
from registry.errors import FindingUnknown, FolderMissing, SkillNotFound, SourceInvalid
from registry.model import DOCUMENT_NAMES, Diagnostic, Source, Value
from registry.sync.installed import lock_of
from registry.sync.reading import Recent, hash_files, is_current, read_folder, tree_hash
from registry.sync.sources import check_own, is_here, own_sources, walk_of
from registry.text import is_path

NEAREST: Final = 4
"""Maximum number of similar codes in the error about an unknown code."""

FOLDER_RULES: Final[Mapping[str, Rule]] = {
    "changing": Rule("warning", "a file changed every time `check` read it"),
    "document-too-large": Rule("error", "the skill file is larger than `limits.document_bytes`"),
    "link-broken": Rule("warning", "the target of a link does not exist or can't be read"),
    "link-inside": Rule("warning", "the target of a link is in the skill, but is not a file"),
    "link-known": Rule("info", "a link leads to a skill of another source"),
    "link-loop": Rule("warning", "a link leads back to itself, directly or through other links"),
    "link-outside": Rule(
        "warning", "a link leads out of the skill's folder, or out of all sources"
    ),
    "name-look-alike": Rule("warning", "the name looks like the name of a skill in another source"),
    "no-document": Rule("error", "the folder does not contain a SKILL.md"),
    "path-collision": Rule("error", "two files have the same name on a disk that ignores case"),
    "path-not-utf8": Rule("error", "the name of a file or folder is not UTF-8"),
    "path-unsafe": Rule(
        "error", "on other systems, the name of a file or folder is read as a different path"
    ),
    "second-document": Rule("warning", "the folder contains two skill files"),
    "skill-too-large": Rule(
        "error", "the total size of the files is larger than `limits.skill_bytes`"
    ),
    "source-unreadable": Rule("error", "the folder of a source is missing or can't be read"),
    "special-file": Rule("warning", "the skill's folder contains a pipe, a socket or a device"),
    "too-deep": Rule("warning", "a folder is deeper than `limits.depth`"),
    "too-many-files": Rule("error", "the skill has more files than `limits.files`"),
    REUSED: Rule("info", "the skill has other files than its version had first"),
    "unreadable": Rule("warning", "a file or folder of the skill can't be read"),
    "unreviewed": Rule("warning", "the skill was changed by hand in a source under review"),
}
"""Rules of findings that don't come from the check of a single SKILL.md.

These findings come from scanning and reading folders (including `WALK_CODES`), or are about more
than one skill. The severity of a rule is the usual one; a finding may have another severity.
"""


@cache
def all_codes() -> frozenset[str]:
    """Return the code of every finding that `SkillRegistry.check` can make."""
    tables = (
        PARSER_RULES,
        FORMAT_RULES,
        SECURITY_RULES,
        CHECK_ONLY_RULES,
        WALK_CODES,
        FOLDER_RULES,
    )
    return frozenset[str]().union(*tables)


def codes_of(word: str) -> frozenset[str]:
    """Return the codes that ``word`` selects.

    ``word`` is a code, or a prefix that ends in a hyphen (``link-``) and selects all codes with it.

    Raises `FindingUnknown` with similar codes if no code matches.
    """
    known = all_codes()
    found = {word} & known if not word.endswith("-") else {c for c in known if c.startswith(word)}
    if not found:
        beginnings = Counter(code.partition("-")[0] + "-" for code in known if "-" in code)
        words = sorted({*known, *(one for one, number in beginnings.items() if number > 1)})
        near = get_close_matches(word, words, n=NEAREST, cutoff=0.7)
        near += [one for one in words if word and one.startswith(word) and one not in near]
        raise FindingUnknown(name=word, similar=tuple(near[:NEAREST]))
    return frozenset(found)


def chooser(select: Sequence[str], ignore: Sequence[str]) -> Callable[[str], bool]:
    """Return a function that tells whether findings with a code are selected.

    ``select`` limits the selection to some codes. ``ignore`` excludes codes, even if ``select`` has
    them. `codes_of` interprets the words in both, and raises `FindingUnknown` for unknown words.
    """
    left = frozenset[str]().union(*map(codes_of, ignore))
    if not select:
        return lambda code: code not in left
    chosen = frozenset[str]().union(*map(codes_of, select)) - left
    return chosen.__contains__


_KEY: Final = attrgetter("sort_key")


class Examined(NamedTuple):
    """A skill's name, and all findings about the skill, errors first."""

    name: str
    findings: Sequence[Diagnostic]


class Examiner:
    """Checks the skill folders below ``root``, in the order in which `Walk` finds them.

    ``source`` is the source with the root ``root``, if there is one. If the files of a folder still
    have the stored hashes, its stored findings are used again. Two conditions apply: the findings
    come from the current rules, and from a database file that no other user can have written.
    Findings from a server or a shared file are not trusted. ``versions`` has the tree hash of each
    version, by folder and label.
    """

    def __init__(
        self,
        core: Core,
        root: str,
        source: Source | None,
        versions: Mapping[tuple[str, str], str],
    ) -> None:
        self._root = root
        self._limits = core.settings.limits
        self._recent = Recent()
        self._known: Iterator[StoredFindings] = iter(())
        self._versions = versions
        if source is not None and not core.host and is_ours_alone(core.backend.path):
            self._known = stored_findings(core.reader, source.id)
        self._next = next(self._known, None)

    def examine(self, found: ScannedFolder) -> Examined:
        """Return the findings about a folder."""
        known = self._known_of(found)
        if known is not None and (examined := self._again(found, known)) is not None:
            return examined
        reading = read_folder(self._root, found, self._limits, {}, recent=self._recent)
        data, document = reading.data, reading.document
        if data is None or document is None:
            return Examined(found.name, reading.findings)
        tidy = [*untidy(data, document)] if document.usable else []
        label = document.version or ""
        first = self._versions.get((found.folder, label))
        if document.usable and first not in {None, tree_hash(found, reading.hashes)}:
            tidy.append(reused(label, found.document))
        return Examined(document.name, _with(reading.findings, tidy, found.document))

    def _known_of(self, found: ScannedFolder) -> StoredFindings | None:
        """Return the stored findings of a folder, if the scan found the same problems as last time.

        Return None if the problems differ, or if the findings don't come from the current rules.
        """
        here = position(found.folder)
        while self._next is not None and self._next.position < here:
            self._next = next(self._known, None)
        known = self._next
        if known is None or known.position != here or not is_current(known.fingerprint):
            return None
        told = [one for one in known.findings if one.code in WALK_CODES]
        if sorted(told, key=_KEY) != sorted(found.problems, key=_KEY):
            return None
        # `check` and a sync read only some of the files of a very large skill, and perhaps not the
        # same files. So the findings that a sync stored may be incomplete.
        return known if sum(file.size for file in found.files) <= MAX_SKILL_BYTES else None

    def _again(self, found: ScannedFolder, known: StoredFindings) -> Examined | None:
        """Return the stored findings; None if the files don't have the stored hashes."""
        hashed = hash_files(self._root, found, {}, self._limits)
        now = tree_hash(found, hashed.hashes)
        if hashed.data is None or now is None or now != known.tree_hash:
            return None
        tidy: Iterable[Diagnostic] = ()
        if is_perhaps_untidy(hashed.data):
            document = parse_document(hashed.data, folder_name=found.name)
            tidy = untidy(hashed.data, document)
        elif known.front_matter is not None:
            tidy = untidy_tags(json.loads(known.front_matter), known.tags.split("\n"))
        return Examined(known.name, _with(known.findings, tidy, found.document))


def _with(
    findings: Sequence[Diagnostic], tidy: Iterable[Diagnostic], document: str | None
) -> Sequence[Diagnostic]:
    """Add the findings ``tidy``, which only `check` reports, to the other findings of a skill.

    The findings ``tidy`` are about the file ``document``.
    """
    more = [replace(one, path=document) for one in tidy]
    return sorted([*findings, *more], key=_KEY)


_FIELDS: Final = attrgetter("code", "severity", "message", "line", "fix", "path")


@dataclass(frozen=True, slots=True)
class Checked(Value):
    """The findings about one skill, errors first; ``path`` is the skill's folder.

    ``root`` is the folder from which the skill's folder was opened. The path is empty if no file
    was read.
    """

    KEYS: ClassVar = ("name", "path", "findings")

    name: str
    path: str
    findings: Sequence[Diagnostic]
    root: str = ""

    @property
    def is_skill(self) -> bool:
        """True for a skill, False for another path with findings, such as a broken link."""
        return bool(self.root) or _PLACES.isdisjoint(one.code for one in self.findings)


_PLACES: Final = frozenset(
    "link-broken link-known link-loop link-outside no-document source-unreadable too-deep "
    "unreadable".split()
)
"""Codes of findings about paths that are not skills."""


class _Packed(NamedTuple):
    name: str
    path: str
    root: str
    findings: bytes


class Checks(Sequence[Checked]):
    """The checked skills by name; each `Checked` object is created at its use.

    Creating them late saves memory: a hundred thousand skills have a million findings, and most of
    these are nearly equal.
    """

    def __init__(self, checked: Iterable[Checked]) -> None:
        self._packed = sorted(map(_pack, checked))

    def __len__(self) -> int:
        return len(self._packed)

    @overload
    def __getitem__(self, index: int) -> Checked: ...
    @overload
    def __getitem__(self, index: slice) -> list[Checked]: ...
    def __getitem__(self, index: int | slice) -> Checked | list[Checked]:
        if isinstance(index, slice):
            return list(map(_unpack, self._packed[index]))
        return _unpack(self._packed[index])


def _pack(one: Checked) -> _Packed:
    findings = zlib.compress(json.dumps(list(map(_FIELDS, one.findings))).encode(), 1)
    return _Packed(one.name, one.path, one.root, findings)


def _unpack(one: _Packed) -> Checked:
    findings = [Diagnostic(*facts) for facts in json.loads(zlib.decompress(one.findings).decode())]
    return Checked(one.name, one.path, findings, one.root)


def check(
    core: Core, targets: Sequence[str], *, select: Sequence[str] = (), ignore: Sequence[str] = ()
) -> Checks:
    """Check folders or skills; see `SkillRegistry.check`, which also lists the errors."""
    wanted = chooser(select, ignore)
    alike = look_alikes(core.reader)

    def found() -> Iterator[Checked]:
        for one in _once(_all(core, targets)):
            told = _warned(one, alike) if alike else one
            chosen = _chosen(told, wanted) if select or ignore else told
            if told.is_skill or chosen.findings:
                yield chosen

    return Checks(found())


def _all(core: Core, targets: Sequence[str]) -> Iterator[Checked]:
    """Check the targets; without targets, check all sources of this machine."""
    if not targets:
        for source in own_sources(core):
            yield from _source(core, source.name)
    for target in targets:
        found = False
        for result in _target(core, target):
            found = True
            yield result
        if not found:
            yield _without_skill(core, target)


def _once(results: Iterable[Checked]) -> Iterator[Checked]:
    """Yield only the first result for each folder, because targets can overlap."""
    told: set[str] = set()
    for one in results:
        if one.path not in told:
            told.add(one.path)
            yield one


def _source(core: Core, name: str) -> Iterator[Checked]:
    """Check a source; if it can't be read, yield a finding and raise no error."""
    try:
        yield from _target(core, name)
    except SourceInvalid as error:
        message = f"the source can't be read: {error.facts['reason']}"
        fix = "restore the folder, or run: skill-registry source remove NAME"
        finding = Diagnostic("source-unreadable", "error", message, fix=fix)
        yield Checked(name, str(error.facts["path"]), [finding])


def _chosen(result: Checked, wanted: Callable[[str], bool]) -> Checked:
    return replace(result, findings=[one for one in result.findings if wanted(one.code)])


_NO_SKILL: Final = replace(NO_DOCUMENT, message=f"{NO_DOCUMENT.message}, so it is not a skill")


def _without_skill(core: Core, target: str) -> Checked:
    """Return the findings for a target that contains no skill."""
    sources = {one.name: one.path for one in list_sources(core.reader, counted=False)}
    path = sources.get(target) or os.path.abspath(os.path.expanduser(target))
    if target not in sources and not _looks_like_path(target):
        with suppress(SkillNotFound):
            path = resolve(core.reader, target).path
    return Checked(os.path.basename(path), path, _links(core, path) or [_NO_SKILL])


def _links(core: Core, path: str) -> list[Diagnostic]:
    """Return findings about links in a folder that lead to skills in another checked folder."""
    walk = walk_of(core, real_path(path))
    with suppress(RootGone, RootUnreadable):
        deque(walk, maxlen=0)
    found = (one.diagnostic for one in walk.notices if one.diagnostic.code == LINK_KNOWN)
    return sorted(found, key=lambda one: one.sort_key)


def _looks_like_path(target: str) -> bool:
    return os.sep in target or target in {".", ".."}


def _warned(result: Checked, alike: dict[str, set[tuple[str, str]]]) -> Checked:
    others = imitated(alike, result.name)
    if not others:
        return result
    message = f"the name looks like that of another skill: {', '.join(others[:3])}"
    fix = "make sure that it is not an imitation, or rename it"
    finding = Diagnostic("name-look-alike", "warning", message, fix=fix)
    findings = sorted([*result.findings, finding], key=lambda one: one.sort_key)
    return replace(result, findings=findings)


def _target(core: Core, target: str) -> Iterator[Checked]:
    for source in list_sources(core.reader, counted=False):
        if source.name == target:
            check_own(core, source.name, source.host, source.path)
            yield from check_folder(core, source.path)
            return
    path = os.path.abspath(os.path.expanduser(target.replace("\0", "\ufffd")))
    looks_like_path = _looks_like_path(target)
    if is_path(target) and not os.path.lexists(path):
        raise FolderMissing(path=path)
    if os.path.isfile(path) and os.path.basename(path) in DOCUMENT_NAMES:
        yield from check_folder(core, os.path.dirname(path), alone=True)
        return
    if looks_like_path and (os.path.isdir(path) or is_dangling(path)):
        yield from check_folder(core, path)
        return
    try:
        stored = resolve(core.reader, target)
    except SkillNotFound:
        if os.path.isdir(path) or is_dangling(path):
            yield from check_folder(core, path)
            return
        if looks_like_path and os.path.lexists(path):
            raise SourceInvalid(path=path, reason="it is not a folder and not a SKILL.md") from None
        raise
    if not is_here(core, stored.host, stored.root):
        # The folder is on another machine, so use the findings that the last sync there stored.
        findings = findings_of(core.reader, stored.id)
        yield Checked(stored.skill.name, stored.path, findings)
    else:
        yield from _check_below(core, stored.root, stored.folder, stored.path, alone=True)


def check_folder(core: Core, path: str, *, alone: bool = False) -> Iterator[Checked]:
    """Check all skills below ``path``.

    If ``alone``, check only the skill whose folder is ``path``.
    """
    real = real_path(path)
    # If the folder is in a source, open it step by step from the source's root. Then the check is
    # correct even if another process renames a parent folder.
    sources = own_sources(core)
    if is_dangling(path):
        link = follow(path, None, [one.path for one in sources])
        yield Checked(os.path.basename(path), path, [finding(link, None, fatal=False)])
        return
    # this link may lead out of all sources
    is_pulled = os.path.islink(path) and lock_of(real) is not None
    for place in (real,) if is_pulled else (real, path):
        holding = [one.path for one in sources if is_below(place, one.path)]
        if holding:
            root = max(holding, key=len)
            yield from _check_below(core, root, os.path.relpath(place, root), path, alone=alone)
            return
    yield from _check_below(core, real, ROOT, path, alone=alone)


_UNREVIEWED: Final = Diagnostic(
    "unreviewed",
    FOLDER_RULES["unreviewed"].severity,
    "its current files were not approved: they were changed by hand",
    fix="review the files, then publish them again or restore an approved revision",
)


def _check_below(
    core: Core, root: str, folder: str, path: str, *, alone: bool
) -> Iterator[Checked]:
    sources = own_sources(core)
    roots = [source.path for source in sources]
    # A nested source is checked with the source that contains it.
    walk = Walk(root, core.settings.limits, roots, nested=not alone)
    whole = next((one for one in sources if one.path == root and folder == ROOT), None)
    versions: Mapping[tuple[str, str], str] = {}
    for source in sources:
        if source.path == root:
            versions = version_hashes(core.reader, source.id, folder if alone else None)
    examiner = Examiner(core, root, None if alone else whole, versions)
    under_review = [one.id for one in sources if one.path == root and one.review]
    edited = unreviewed(core.reader, under_review[0]) if under_review else set()
    try:
        for found in _found(walk, folder, alone=alone):
            if found.is_skill:
                name, findings = examiner.examine(found)
                if found.folder in edited:
                    findings = sorted([*findings, _UNREVIEWED], key=_KEY)
                yield Checked(name, join(root, found.folder), findings, root)
    except RootGone:
        raise SourceInvalid(path=path, reason="there is no such folder") from None
    except RootUnreadable as error:
        raise SourceInvalid(path=path, reason=str(error)) from None
    for notice in walk.notices:
        # For a check of a single skill, report only unreadable paths in the skill's folder.
        told = notice.lost and notice.folder == folder if alone else True
        if told and notice.diagnostic.severity != "info":
            yield Checked(notice.folder, join(root, notice.folder), [notice.diagnostic])


def _found(walk: Walk, folder: str, *, alone: bool) -> Iterable[ScannedFolder]:
    if alone:
        found = walk.one(folder)
        return [] if found is None else [found]
    return walk if folder == ROOT else walk.below(folder)
