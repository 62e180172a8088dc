"""Make the signed record of a change, so that `undo` can take it back."""

import json

from registry.changes.signer import Signer, new_numbers, signed
from registry.changes.state import ChangeContext
from registry.core import Core
from registry.db.read.history import RecordedChange
from registry.db.read.journal import JournalEntry
from registry.db.read.skills import StoredSkill
from registry.db.versions import NewVersion
from registry.db.write.history import add_change
from registry.db.write.skills import LiveVersion
from registry.text import utc_now


def made_change(
    context: ChangeContext,
    entry: JournalEntry,
    live: LiveVersion | None,
    version: NewVersion | None,
    renamed: LiveVersion | None,
) -> RecordedChange | None:
    """Return the record of a change from ``live`` to ``version`` (None: no skill); None: nothing.

    A restored skill counts as not there before. ``renamed``: the version in a renamed skill's old
    folder.
    """
    if entry.is_rename and renamed is None:
        return None
    columns = {} if version is None else version.columns
    before, after = None if live is None else live.tree_hash, columns.get("tree_hash")
    if renamed is not None:
        kind = "rename"
        before = json.dumps({"folder": renamed.folder, "tree_hash": renamed.tree_hash})
    elif entry.uid is not None:
        kind, before = "restore", None
    elif version is None:
        kind = "delete"
    else:
        kind = "create" if live is None else "update"
    if (live is None and version is None) or (kind == "update" and before == after):
        return None
    change = RecordedChange(
        id=0,  # given by the database
        number=entry.id,
        kind=kind,
        uid=columns["uid"] if live is None else live.uid,
        name=columns["name"] if live is None else live.name,
        source=context.source.name,
        folder=entry.folder,
        before=before,
        after=after,
        made_at=entry.started_at,
        signature="",
    )
    return signed(context.signer, change)


def record_edit(core: Core, before: StoredSkill, after: StoredSkill) -> None:
    """Record a user's edit of a skill on disk for `undo`.

    Raises `DatabaseProblem`, `OwnFileUnusable`.
    """
    if before.skill.tree_hash == after.skill.tree_hash:
        return
    change = RecordedChange(
        id=0,  # given by the database
        number=new_numbers()[0],
        kind="update",
        uid=after.uid,
        name=after.skill.name,
        source=after.skill.source,
        folder=after.folder,
        before=before.skill.tree_hash,
        after=after.skill.tree_hash,
        made_at=utc_now(),
        signature="",
    )
    change = signed(Signer.of(core, after.root), change)
    with core.writer.transaction() as connection:
        add_change(connection, change, core.host)
