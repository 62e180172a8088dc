"""Look through what is stored for what this program never stores.

Asked only when something failed for no other reason: the database may be damaged, or somebody
else's.
"""

import json
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any, Final

from registry.db.interface import Reader
from registry.model import SCOPES, SEVERITIES, STATUSES

if TYPE_CHECKING:
    from sqlalchemy import Column

_WORDS: Final[Mapping[str, Collection[str]]] = {
    "sources.scope": SCOPES,
    "skills.status": STATUSES,
    "diagnostics.severity": SEVERITIES,
}
_JSON: Final[Mapping[str, type]] = {
    "documents.front_matter": dict,
    "revisions.files": list,
    "skills.required_tools": list,
    "skills.parameters": list,
}


def find_damage(reader: Reader) -> str | None:
    """Return in words where the first value is that this program does not store; None: nowhere.

    Raises `DatabaseProblem` where not even this can be read. Bytes of files are not looked at:
    whoever reads them compares their hash.
    """
    from registry.db.schema import contents, metadata

    for table in metadata.sorted_tables:
        if table is contents:
            continue
        columns = list(table.columns)
        names = ", ".join(column.name for column in columns)
        for row in reader.stream(f"SELECT {names} FROM {table.name}"):
            for column, value in zip(columns, row, strict=True):
                if not _fits(column, value):
                    return f"a row of {table.name} has no {column.name} that can be used"
    return None


def _fits(column: "Column[object]", value: object) -> bool:
    if value is None:
        return bool(column.nullable)
    if not isinstance(value, column.type.python_type):
        return False
    place = str(column)
    if place in _JSON:
        try:
            found = json.loads(str(value))
        except (ValueError, RecursionError):
            return False
        return isinstance(found, _JSON[place]) and (place != "revisions.files" or _are_files(found))
    return place not in _WORDS or value in _WORDS[place]


def _are_files(found: Any) -> bool:
    """Tell whether this is what a revision has for its files: [path, executable, size, hash]."""
    return all(
        isinstance(file, list)
        and len(file) == len(("path", "executable", "size", "hash"))
        and isinstance(file[0], str)
        and isinstance(file[2], int)
        and isinstance(file[3], str | None)
        for file in found
    )
