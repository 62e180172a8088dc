"""Create versions of skills, deprecate or yank them, and make them active again.

A version is a label for the files that a skill has at one time. The label always means the same
files. A sync also creates the versions that the front matter names (`db.write.labels`).
"""

import os
from shlex import quote
from typing import Final

from registry.catalog.reading import CurrentSkill, unusable
from registry.catalog.resolve import not_found, resolve, split_label
from registry.core import Core
from registry.db.read.labels import version, versions
from registry.db.read.skills import StoredSkill
from registry.document.labels import RULE, is_label
from registry.errors import (
    ChangeRefused,
    UsageProblem,
    VersionExists,
    VersionInvalid,
    VersionNotFound,
)
from registry.install.lockfile import read_lock
from registry.install.provenance import owner
from registry.model import SkillVersion, VersionState
from registry.sync.installed import lock_of
from registry.sync.sources import check_admin, check_owner, find
from registry.text import is_encodable

MAX_REASON: Final = 1000
"""Maximum number of characters of a reason, and of the name of a replacement."""


def add_version(core: Core, handle: str, label: str) -> SkillVersion:
    """Give the current files of a skill a label; if they already have it, do nothing.

    Raises `VersionExists` if other files have the label, `VersionInvalid`, `SourceNotYours`,
    `ChangeRefused` for an installed copy, and the errors of `CurrentSkill.of` and `unusable`.
    """
    from registry.db.write.labels import add_label

    if not is_label(label):
        raise VersionInvalid(label=label[:MAX_REASON], rule=RULE)
    current = CurrentSkill.of(core, handle)
    current.check_whole()
    stored = current.stored
    tree = stored.skill.tree_hash
    if stored.skill.status not in {"ok", "warning"} or stored.quarantined or tree is None:
        raise unusable(core.reader, stored, stored.skill.ref)
    check_owner(core, find(core, stored.skill.source))
    _check_original(core, stored)
    with core.writer.transaction() as connection:
        if check_label(core, stored, label, tree) is None:
            add_label(connection, stored.uid, label, tree, core.host)
    found = version(core.reader, stored.uid, label)
    if found is None:  # another process has removed the skill permanently
        raise not_found(core.reader, handle)
    return found


def check_label(core: Core, stored: StoredSkill, label: str, tree_hash: str) -> SkillVersion | None:
    """Return the version of a skill with this label; None if there is none.

    Raises `VersionExists` if the version has files with another tree hash.
    """
    found = version(core.reader, stored.uid, label)
    if found is not None and found.tree_hash != tree_hash:
        raise VersionExists(name=stored.skill.ref, label=label)
    return found


def set_state(
    core: Core,
    handle: str,
    state: VersionState,
    *,
    reason: str | None = None,
    replacement: str | None = None,
    as_admin: bool = False,
) -> SkillVersion:
    """Deprecate or yank the version ``NAME@LABEL``, or make it active again.

    If the version already has this state, reason and replacement, nothing changes. Raises
    `UsageProblem`, `VersionNotFound`, `SourceNotYours`, `AdminNeeded`, and the errors of `resolve`.
    """
    from registry.db.write.labels import change_state

    told = {"reason": _text("reason", reason), "replacement": _text("replacement", replacement)}
    reader = core.reader
    if as_admin:
        check_admin(core)
        reader = reader.with_yanked()  # an admin can also change versions that only the owner sees
    parts = split_label(reader, handle)
    if parts is None:
        stored = resolve(reader, handle)
        known = [one.label for one in versions(core.reader, stored.uid)]
        add = f"To add one, run: skill-registry version add {quote(stored.skill.ref)} LABEL"
        has = f"it has {', '.join(known)}." if known else f"it has none. {add}"
        raise UsageProblem(message=f"Name a version of the skill as NAME@LABEL; {has}")
    stored = resolve(reader, parts[0])
    if not as_admin:
        check_owner(core, find(core, stored.skill.source))
    label = parts[1]
    found = version(core.reader, stored.uid, label)
    if found is None:
        known = [one.label for one in versions(core.reader, stored.uid)]
        raise VersionNotFound(name=stored.skill.ref, label=label, known=known)
    if state != "active" and told["reason"] is None:
        raise UsageProblem(message="Missing --reason TEXT; users of the version read it.")
    if (found.state, found.reason, found.replacement) == (state, *told.values()):
        return found
    with core.writer.transaction() as connection:
        place, host = stored.place, core.host
        change_state(connection, stored.uid, label, state, place=place, host=host, **told)
    changed = version(core.reader, stored.uid, label)
    if changed is None:  # another process has removed the skill permanently
        raise not_found(core.reader, handle)
    return changed


def _check_original(core: Core, stored: StoredSkill) -> None:
    """Raise `ChangeRefused` for an unedited installed copy; versions belong to its original."""
    lock = lock_of(stored.path)
    entry = None if lock is None else read_lock(lock).get(os.path.basename(stored.path))
    whose = None if entry is None else owner(core, entry)
    if entry is not None and whose is not None and entry.tree_hash == stored.skill.tree_hash:
        reason = f"it is the installed copy of {whose.ref}; add the version to {whose.ref}"
        raise ChangeRefused(path=stored.path, reason=reason)


def _text(name: str, text: str | None) -> str | None:
    """Return a text from the user on one line; None if it is empty."""
    text = " ".join((text or "").split())
    if len(text) > MAX_REASON or not is_encodable(text) or "\0" in text:
        raise UsageProblem(message=f"the {name} can have at most {MAX_REASON} characters")
    return text or None
