"""Fix SKILL.md files: show a diff, and then change the file if it is still the same."""

import os
import secrets
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from difflib import unified_diff
from stat import S_ISREG
from typing import ClassVar

from registry.catalog.check import Checked, check, chooser
from registry.core import Core
from registry.db.read.skills import StoredSkill, by_place
from registry.disk.atomic import Place, digest_of, sync_folder, write_file
from registry.disk.beneath import Folder
from registry.disk.files import digest, open_home, read_below
from registry.disk.paths import is_below, join
from registry.disk.swap import Swap
from registry.disk.walk import Walk
from registry.document.autofix import FIXABLE, IsWanted, autofix
from registry.document.frontmatter import LINE
from registry.errors import ChangeRefused, RegistryError, SkillChangedOnDisk
from registry.model import Value
from registry.sync.sources import own_sources
from registry.text import escaped


@dataclass(frozen=True, slots=True)
class Fix(Value):
    """A fix of the SKILL.md at ``path``: the ``codes`` of the fixed findings, and the ``diff``.

    ``data`` is the new content of the file, and ``base`` is the hash of its old content. The file
    ``document`` is in ``folder``, a path relative to ``root``.
    """

    KEYS: ClassVar = ("name", "path", "codes", "diff")

    name: str
    path: str
    codes: tuple[str, ...]
    diff: str
    root: str = field(repr=False)
    folder: str = field(repr=False)
    document: str = field(repr=False)
    base: str = field(repr=False)
    data: bytes = field(repr=False)


def fixes(
    core: Core, targets: Sequence[str], *, select: Sequence[str] = (), ignore: Sequence[str] = ()
) -> list[Fix]:
    """Return the fixes that need no judgement; for the errors, see `SkillRegistry.fixes`."""
    return fixes_of(core, check(core, targets, select=select, ignore=ignore), select, ignore)


def fixes_of(
    core: Core, checked: Iterable[Checked], select: Sequence[str] = (), ignore: Sequence[str] = ()
) -> list[Fix]:
    """Return the fixes of checked skills that need no judgement."""
    fixed = list(_fixes(core, checked, chooser(select, ignore)))
    foreign = _foreign(core)
    kept = [one for one in fixed if not any(is_below(one.path, root) for root in foreign)]
    if left := len(fixed) - len(kept):
        skills, sources = "1 skill is", "it is in a remote source"
        if left > 1:
            skills, sources = f"{left} skills are", "they are in remote sources"
        core.warn(f"{skills} not fixed: {sources}.")
    return kept


def has_fixes(
    core: Core, checked: Iterable[Checked], *, select: Sequence[str], ignore: Sequence[str]
) -> bool:
    """Tell whether `fixes` would return a fix of one of these skills."""
    foreign = _foreign(core)
    own = (one for one in checked if not any(is_below(one.path, root) for root in foreign))
    return any(_fixes(core, own, chooser(select, ignore)))


def _foreign(core: Core) -> list[str]:
    return [source.path for source in own_sources(core) if source.remote is not None]


def _fixes(core: Core, checked: Iterable[Checked], wanted: IsWanted) -> Iterator[Fix]:
    for one in checked:
        if one.root and any(finding.code in FIXABLE for finding in one.findings):
            fix = _fix(core, one, wanted)
            if fix is not None:
                yield fix


def _fix(core: Core, checked: Checked, wanted: IsWanted) -> Fix | None:
    """Return the fix of one skill's SKILL.md.

    Returns None if nothing needs a fix, or if the file can't be read.
    """
    root, limits = checked.root, core.settings.limits
    folder = os.path.relpath(checked.path, root)
    roots = [source.path for source in own_sources(core)]
    found = Walk(root, limits, roots).one(folder)
    if found is None or found.document is None:
        return None
    try:
        with open_home(root, folder) as home:
            data = read_below(home, found.document, limits.document_bytes).data
    except (OSError, RegistryError):
        return None
    fixed = autofix(data, folder_name=found.name, wanted=wanted)
    if fixed is None:
        return None
    path = join(checked.path, found.document)
    return Fix(
        name=checked.name,
        path=path,
        codes=fixed.codes,
        diff=_diff(data.decode(), fixed.data.decode(), escaped(path)),
        root=root,
        folder=folder,
        document=found.document,
        base=digest(data),
        data=fixed.data,
    )


def _diff(before: str, after: str, path: str) -> str:
    lines = unified_diff(LINE.findall(before), LINE.findall(after), path, path)
    end = "\n\\ No newline at end of file\n"
    return "".join(line if line.endswith(("\n", "\r")) else line + end for line in lines)


def apply(core: Core, fix: Fix) -> None:
    """Write the fixed SKILL.md to disk; for the errors, see `SkillRegistry.fix`."""
    stored = _stored(core, fix)
    if stored is not None:
        # Import this only here, because it needs SQLAlchemy, and a check doesn't.
        from registry.changes.update import update_files

        update_files(core, stored, {fix.document: fix.data}, if_hash=fix.base)
        return
    try:
        with Folder.open(fix.root) as root, root.folder(fix.folder) as home:
            _replace(core, fix, home)
    except (FileNotFoundError, FileExistsError):
        raise SkillChangedOnDisk(name=fix.name, path=fix.path) from None
    except OSError as error:
        raise ChangeRefused(path=fix.path, reason=error.strerror or str(error)) from error


def _stored(core: Core, fix: Fix) -> StoredSkill | None:
    place = join(fix.root, fix.folder)
    holding = [one for one in own_sources(core) if is_below(place, one.path)]
    if not holding:
        return None
    source = max(holding, key=lambda one: len(one.path))
    return by_place(core.reader, source.id, os.path.relpath(place, source.path))


def _replace(core: Core, fix: Fix, home: Folder) -> None:
    """Replace a SKILL.md that isn't in a registered source.

    If the user edits the file at the same time, restore the edit and raise `SkillChangedOnDisk`.
    """
    live = Place(home, fix.document)
    facts = home.lstat(live.name)
    if not S_ISREG(facts.st_mode):
        raise ChangeRefused(path=fix.path, reason="it is a link, or no file")
    # compute the digest before the comparison, so that the swap finds all later edits
    base = digest_of(live)
    data = read_below(home, live.name, core.settings.limits.document_bytes).data
    if digest(data) != fix.base:
        raise SkillChangedOnDisk(name=fix.name, path=fix.path)
    staged = Place(home, f".{fix.document}.{secrets.token_hex(8)}")
    write_file(staged, fix.data, facts.st_mode & 0o777)
    swap = Swap(live, staged, base, digest_of(staged))
    try:
        displaced = swap.publish()
        if displaced is None or digest_of(displaced) != base:
            raise SkillChangedOnDisk(name=fix.name, path=fix.path)
        sync_folder(home)
    finally:
        with suppress(OSError):  # a file that may be an edit stays beside the SKILL.md
            swap.finish(lambda _: None)
            swap.clear()
