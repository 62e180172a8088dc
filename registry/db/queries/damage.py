"""Look through what is stored for what this program never stores.

Asked only when something failed for no other reason: the database may be damaged, or somebody
else's.
"""

import json
from collections.abc import Callable, Collection, Mapping
from dataclasses import fields
from typing import TYPE_CHECKING, Any, Final

from registry.db.interface import Reader
from registry.model import SCOPES, SEVERITIES, STATUSES, Parameter

if TYPE_CHECKING:
    from sqlalchemy import Column

_WORDS: Final[Mapping[str, Collection[str]]] = {
    "sources.scope": SCOPES,
    "skills.status": STATUSES,
    "diagnostics.severity": SEVERITIES,
}


def find_damage(reader: Reader, without: Collection[str] = ()) -> str | None:
    """Return in words the first value that this program does not store; None if there is none.

    The tables ``without`` are not looked at. The hashes of bytes are compared by `unfit`; here only
    their first byte is read. Raises `DatabaseProblem` if a table can't be read.
    """
    from registry.db.schema import contents, metadata

    for table in metadata.sorted_tables:
        if table.name in without:
            continue
        columns = list(table.columns)
        names = ", ".join(
            "substr(data, 1, 1)" if column is contents.c.data else column.name for column in columns
        )
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
    if isinstance(value, str) and ("\0" in value or (place in _PATHS and not _is_inside(value))):
        return False  # the system takes a path to end at a NUL
    if place in _JSON:
        try:
            return _JSON[place](json.loads(str(value)))
        except (ValueError, RecursionError):
            return False
    return place not in _WORDS or value in _WORDS[place]


def _is_inside(path: object) -> bool:
    """Tell whether a path leads to a place below its source or its skill."""
    return isinstance(path, str) and not path.startswith("/") and ".." not in path.split("/")


def _are_files(found: Any) -> bool:
    """Tell whether this is what a revision has for its files: [path, executable, size, hash]."""
    return isinstance(found, list) and all(
        isinstance(file, list)
        and len(file) == len(("path", "executable", "size", "hash"))
        and _is_inside(file[0])
        and isinstance(file[2], int)
        and isinstance(file[3], str | None)
        for file in found
    )


def _are_tools(found: Any) -> bool:
    return isinstance(found, list) and all(isinstance(tool, str) for tool in found)


def _are_parameters(found: Any) -> bool:
    return isinstance(found, list) and all(
        isinstance(one, dict)
        and _SAID <= one.keys() <= _SAID | {"default"}
        and all(isinstance(one[key], str) for key in ("name", "type", "description"))
        for one in found
    )


_SAID: Final = {field.name for field in fields(Parameter)} - {"default"}
_PATHS: Final = frozenset({"skills.folder", "skill_files.path"})
_JSON: Final[Mapping[str, Callable[[Any], bool]]] = {
    "audit.detail": lambda _: True,
    "documents.front_matter": lambda found: isinstance(found, dict),
    "revisions.files": _are_files,
    "skills.required_tools": _are_tools,
    "skills.parameters": _are_parameters,
}
