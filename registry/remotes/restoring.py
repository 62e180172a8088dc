"""Restore a backup into the database file, also on another machine."""

from contextlib import closing

from registry.core import Core
from registry.db.interface import State
from registry.db.open import file_path
from registry.db.read.sources import list_sources
from registry.db.read.summary import is_filled
from registry.errors import UsageProblem
from registry.remotes.sources import adopt
from registry.sync.sources import is_here
from registry.text import utc_now


def restore(core: Core, file: str, *, overwrite: bool) -> str | None:
    """Replace the content of the database; see `SkillRegistry.restore_backup`."""
    from registry.db.sqlite.backend import SqliteBackend

    path = core.backend.path
    if core.backend.shared:
        way = f"skill-registry db copy {file} URL"
        message = f"the database is on a server; to copy a backup to an empty one, run: {way}"
        raise UsageProblem(message=message)
    assert isinstance(core.backend, SqliteBackend)  # noqa: S101  # the other kind is shared
    with closing(SqliteBackend(file_path(file))) as backup:
        if backup.reader.state() is State.EMPTY:
            raise UsageProblem(message=f"there is no registry at {backup.path}")
        if backup.identity == core.backend.identity:
            raise UsageProblem(message=f"{path} is the database itself; give a backup")
        core.create_database()
        saved = None
        if is_filled(core.reader):
            if not overwrite:
                message = f"{path} contains a registry already; to replace it, add --overwrite"
                raise UsageProblem(message=message)
            saved = f"{path}.{utc_now().replace(':', '')}.bak"
            core.backend.backup(saved, overwrite=False)
        core.backend.replace_by(backup)
    core.create_database()  # upgrades the schema of an older backup
    for source in list_sources(core.reader, counted=False):
        if source.remote is not None and is_here(core, source.host, source.path):
            adopt(core, source.name)
    return saved
