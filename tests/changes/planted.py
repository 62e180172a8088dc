"""What a stranger can plant: rows of a journal, notes in a trash, state folders; and snapshots."""

import os
from pathlib import Path
from stat import S_ISLNK, S_ISREG

from sqlalchemy import insert

from registry.db.schema import journal
from registry.disk.atomic import Place, digest_of
from registry.disk.beneath import Folder

NUMBER = "0123456789abcdef"


def state_of(root: Path, *below: str) -> Path:
    return root.parent.joinpath(f".{root.name}.skill-registry", *below)


def digest(path: Path) -> str | None:
    """Return what a change would know a file or folder by."""
    with Folder.open(str(path.parent)) as folder:
        return digest_of(Place(folder, path.name))


def plant_row(registry, **facts):
    """Insert a row as any role could that may write, with what is usual where nothing is said."""
    (source, *_) = registry.sources()
    row = {
        "id": NUMBER,
        "host": source.host,
        "source_id": source.id,
        "root": source.path,
        "kind": "create",
        "folder": "stolen",
        "target": "stolen",
        "staged": f"ops/{NUMBER}/tree",
        "base": None,
        "new": None,
        "exchange": 1,
        "uid": None,
        "created_at": None,
        "started_at": "2020-01-01T00:00:00Z",
    }
    with registry.core.writer.transaction() as connection:
        connection.execute(insert(journal).values(row | facts))


def rows(registry):
    return registry.core.reader.rows("SELECT count(*) FROM journal")[0][0]


def seen(home: Path, *, without: tuple[Path, ...] = ()) -> dict[str, object]:
    """Return all that lies below a folder: kinds, modes, contents, where links lead."""
    found: dict[str, object] = {}
    left_out = {str(one) for one in without}
    for folder, folders, files in os.walk(home):
        folders[:] = [name for name in folders if os.path.join(folder, name) not in left_out]
        for name in (*folders, *files):
            path = os.path.join(folder, name)
            if path in left_out:
                continue
            facts = os.lstat(path)
            what: object = None
            if S_ISLNK(facts.st_mode):
                what = os.readlink(path)
            elif S_ISREG(facts.st_mode):
                what = Path(path).read_bytes()
            found[path] = facts.st_mode, what
    return found
