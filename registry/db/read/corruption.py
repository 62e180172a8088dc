"""Find corruption: hash mismatches, and values that this program never stores.

The database itself doesn't compare hashes. A database may come from an untrusted source. So this
module reads a few rows at a time, and doesn't read values larger than the limits. The module looks
for values that this program never stores only after an operation failed for an unknown reason.
"""

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from registry.db.interface import Reader
from registry.db.read.history import unpacked
from registry.disk.files import digest
from registry.document.parse import parse_document
from registry.model import SCOPES, SEVERITIES, STATUSES, Parameter
from registry.settings import Limits

if TYPE_CHECKING:
    from sqlalchemy import Column

_TEXTS: Final = 100
"""Number of SKILL.md files that are read with one query."""

_AT_ONCE: Final = 1 << 23
"""Maximum size of the file contents that are read with one query, in bytes."""

_NAMED: Final = 20
"""Maximum number of messages for one type of problem; further problems are only counted."""

_LENGTHS: Final = "SELECT hash, length(data) FROM contents WHERE hash > ? ORDER BY hash LIMIT 1000"

_DATA: Final = (
    "SELECT hash, size, packed, CASE WHEN length(data) <= ? THEN data END FROM contents WHERE hash "
)

_ALTERED: Final = frozenset({"not-utf8", "nul-characters", "not-text", "byte-order-mark"})
"""Codes of findings which mean that the stored text of a SKILL.md differs from its bytes."""


class MismatchedText(NamedTuple):
    """A current version whose stored text doesn't match the hash of its SKILL.md."""

    id: int
    ref: str


def mismatched_texts(
    reader: Reader, limits: Limits, source_id: int | None = None
) -> Iterator[MismatchedText]:
    """Yield the current versions whose text doesn't match its hash.

    If ``source_id`` is given, check only the versions of this source.
    """
    which, values = ("", ()) if source_id is None else (" AND s.source_id = ?", (source_id,))
    sql = (
        "SELECT s.id, s.ref, s.content_hash, coalesce(length(d.text), 0), "
        "CASE WHEN length(d.text) <= ? THEN d.text END "
        "FROM skills s LEFT JOIN documents d ON d.skill_id = s.id "
        f"WHERE s.live = 1 AND s.content_hash IS NOT NULL AND s.id > ?{which} "
        f"ORDER BY s.id LIMIT {_TEXTS}"
    )
    most, after = limits.document_bytes, 0
    while rows := reader.rows(sql, (most, after, *values)):
        for number, ref, content_hash, length, text in rows:
            if length <= most and not _fits(reader, number, content_hash, text, limits):
                yield MismatchedText(number, ref)
        after = rows[-1][0]


def _fits(reader: Reader, version: int, content_hash: object, text: object, limits: Limits) -> bool:
    if not isinstance(text, str):
        return False
    if digest(text.encode(errors="replace")) == content_hash:
        return True
    # If the bytes of a SKILL.md differ from its text, the table `contents` has the bytes, unless
    # the storage of files is turned off.
    most = limits.skill_bytes
    for _, size, packed, stored in reader.rows(f"{_DATA} = ?", (most, content_hash)):
        data = _data(size, packed, stored, most)
        if data is not None:
            is_whole = digest(data) == content_hash
            return is_whole and parse_document(data, folder_name="").text == text
    codes = reader.rows("SELECT code FROM diagnostics WHERE skill_id = ?", (version,))
    return any(code in _ALTERED for (code,) in codes)


def mismatched_contents(reader: Reader, limits: Limits) -> Iterator[str]:
    """Yield the hashes under which other bytes are stored."""
    most, after = limits.skill_bytes, ""
    some = f"{_DATA} > ? AND hash <= ? ORDER BY hash"
    while rows := reader.rows(_LENGTHS, (after,)):
        for last in _ends(rows):
            for content_hash, size, packed, stored in reader.rows(some, (most, after, last)):
                data = _data(size, packed, stored, most)
                if data is not None and digest(data) != content_hash:
                    yield content_hash
            after = last


def _data(size: object, packed: object, stored: object, most: int) -> bytes | None:
    """Return the unpacked bytes of a stored file; None if there are more than ``most`` bytes."""
    if not isinstance(size, int) or size < 0:
        return b""
    if size > most:
        return None
    data = unpacked(stored, size) if packed else stored
    return data if isinstance(data, bytes) else b""


def _ends(rows: Sequence[tuple[Any, ...]]) -> Iterator[str]:
    """Group rows of (hash, length) so that each group can be read with one query.

    Yield each group's last hash.
    """
    size = 0
    for place, (content_hash, length) in enumerate(rows, 1):
        size += length
        if size >= _AT_ONCE or place == len(rows):
            yield content_hash
            size = 0


def _overlong(reader: Reader, limits: Limits) -> Iterator[str]:
    """Yield the refs of skills with a longer stored description than a SKILL.md may have."""
    sql = "SELECT ref FROM skills WHERE live = 1 AND length(description) > ? ORDER BY id"
    return (ref for (ref,) in reader.rows(sql, (limits.document_bytes,)))


def hash_mismatches(reader: Reader, limits: Limits) -> Iterator[str]:
    """Yield a message for each hash mismatch; the message names the affected skill or file."""
    yield from _told(
        _overlong(reader, limits),
        lambda ref: f"the description of skill {ref} is longer than a SKILL.md may be",
        "the descriptions of {} more skills are longer than a SKILL.md may be",
    )
    yield from _told(
        (one.ref for one in mismatched_texts(reader, limits)),
        lambda ref: f"the stored text of skill {ref} does not fit its hash",
        "the stored text of {} more skills does not fit its hash",
    )
    yield from _told(
        mismatched_contents(reader, limits),
        lambda one: f"the stored bytes of {_whose(reader, one)} do not fit their hash",
        "the stored bytes of {} more files do not fit their hash",
    )


def _told(found: Iterable[str], say: Callable[[str], str], others: str) -> Iterator[str]:
    """Yield a message for each of the first `_NAMED` problems, and one message for all others."""
    count = 0
    for count, one in enumerate(found, 1):
        if count <= _NAMED:
            yield say(one)
    if count > _NAMED:
        yield others.format(count - _NAMED)


def _whose(reader: Reader, content_hash: str) -> str:
    """Return a description of the files with this hash, which names their skills."""
    rows = reader.rows(
        "SELECT f.path, s.ref FROM skill_files f JOIN skills s ON s.id = f.skill_id "
        "WHERE f.hash = ? AND s.live = 1 ORDER BY s.ref, f.path",
        (content_hash,),
    )
    if rows:
        path, refs = rows[0][0], list(dict.fromkeys(ref for _, ref in rows))
        more = f" and {len(refs) - _NAMED} more" if len(refs) > _NAMED else ""
        skills = "skill" if len(refs) == 1 else "skills"
        return f"{path} of {skills} {', '.join(refs[:_NAMED])}{more}"
    rows = reader.rows(
        "SELECT DISTINCT name FROM revisions WHERE files LIKE ? ORDER BY name",
        (f"%{content_hash}%",),
    )
    names = ", ".join(name for (name,) in rows[:_NAMED])
    return f"what was once a file of {names}" if rows else f"the unused content {content_hash}"


_WORDS: Final[Mapping[str, Collection[str]]] = {
    "sources.scope": SCOPES,
    "skills.status": STATUSES,
    "diagnostics.severity": SEVERITIES,
}


def find_corruption(reader: Reader, skipped_tables: Collection[str] = ()) -> str | None:
    """Describe the first stored value that this program never stores; None if there is none.

    ``skipped_tables`` holds names of tables. This function reads only the first byte of stored file
    contents; `hash_mismatches` compares their hashes. Raises `DatabaseProblem` if a table can't be
    read.
    """
    from registry.db.schema import contents, metadata

    for table in metadata.sorted_tables:
        if table.name in skipped_tables:
            continue
        columns = list(table.columns)
        names = ", ".join(
            "coalesce(substr(data, 1, 1), data)" if column is contents.c.data else column.name
            for column in columns
        )
        for row in reader.stream(f"SELECT {names} FROM {table.name}"):
            for column, value in zip(columns, row, strict=True):
                if not _is_storable(column, value):
                    return f"a row of {table.name} has no {column.name} that can be used"
    return None


def _is_storable(column: "Column[object]", value: object) -> bool:
    if value is None:
        return bool(column.nullable)
    if not isinstance(value, column.type.python_type):
        return False
    place = str(column)
    if isinstance(value, str) and ("\0" in value or (place in _PATHS and not _is_inside(value))):
        return False  # system calls ignore everything after a NUL
    if place in _JSON:
        try:
            return _JSON[place](json.loads(str(value)))
        except (ValueError, RecursionError):
            return False
    return place not in _WORDS or value in _WORDS[place]


def _is_inside(path: object) -> bool:
    """Tell whether a path stays inside its source or its skill."""
    return isinstance(path, str) and not path.startswith("/") and ".." not in path.split("/")


def _are_files(found: Any) -> bool:
    """Tell whether a value is a revision's list of files.

    Each file is a list [path, executable, size, hash].
    """
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
        and _PARAMETER_KEYS <= one.keys() <= _PARAMETER_KEYS | {"default"}
        and all(isinstance(one[key], str) for key in ("name", "type", "description"))
        for one in found
    )


_PARAMETER_KEYS: Final = {field.name for field in fields(Parameter)} - {"default"}

_PATHS: Final = frozenset({"skills.folder", "skill_files.path"})

_JSON: Final[Mapping[str, Callable[[Any], bool]]] = {
    "audit.detail": lambda _: True,
    "documents.front_matter": lambda found: isinstance(found, dict),
    "revisions.files": _are_files,
    "skills.required_tools": _are_tools,
    "skills.needs": lambda found: isinstance(found, dict),
    "skills.parameters": _are_parameters,
}
