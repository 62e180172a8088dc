"""What is written down of each change that was made, signed, so that it can be taken back."""

from registry.changes.context import ChangeContext
from registry.db.queries.changes import MadeChange, facts_of
from registry.db.queries.journal import Entry
from registry.db.versions import NewVersion
from registry.db.writes.single import LiveVersion


def made_change(
    context: ChangeContext, entry: Entry, live: LiveVersion | None, version: NewVersion | None
) -> MadeChange | None:
    """Return a change that brought ``version`` about where ``live`` was (None: nothing).

    What is restored was not there, whatever the database still knew. None: nothing is different.
    """
    columns = {} if version is None else version.columns
    before, after = None if live is None else live.tree_hash, columns.get("tree_hash")
    if entry.uid is not None:
        kind, before = "restore", None
    elif version is None:
        kind = "delete"
    else:
        kind = "create" if live is None else "update"
    if (live is None and version is None) or (kind == "update" and before == after):
        return None
    change = MadeChange(
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
    return change._replace(signature=context.seal.sign("undo", entry.id, facts_of(change)))
