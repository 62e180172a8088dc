"""Read stored skills: values from rows, one skill with all its facts, the skills of a source."""

import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from stat import S_IXUSR
from typing import Any, Final, Literal, NamedTuple, TypeAlias, get_args

from registry.db.interface import Reader, Select
from registry.db.visibility import IMPORTED, STRONGEST_FIRST, Visibility
from registry.model import Diagnostic, JsonValue, Origin, SearchHit, Skill, SkillFile

_ORIGIN: Final = (
    "CASE WHEN src.url IS NULL THEN {} ELSE src.url || '\n' || coalesce(src.pin, '') || '\n' "
    "|| coalesce(src.version, '') || '\n' || s.folder END"
)

ORIGIN: Final = _ORIGIN.format("s.installed")
"""SQL for the origin of a skill; `origin_of` parses its value.

The origin of a skill is the address of its remote source. For an installed copy, it is the origin
in the lock file that lists the copy's folder.
"""

REMOTE_ORIGIN: Final = _ORIGIN.format("NULL")
"""SQL like `ORIGIN`, but NULL for installed copies; revisions store its value."""

MAX_DESCRIPTION: Final = 1 << 16
"""Maximum number of characters of a description that are read; the specification allows 1,024."""

DESCRIPTION: Final = f"substr(s.description, 1, {MAX_DESCRIPTION})"

PATH: Final = "CASE s.folder WHEN '.' THEN src.path ELSE src.path || '/' || s.folder END"
"""SQL for the absolute path of a skill's folder."""

_COLUMNS: Final = (
    f"{{ref}}, s.name, {DESCRIPTION}, s.kind, s.category, s.tags, "
    f"src.scope, src.name, s.folder, {PATH}, "
    "s.version, s.license, s.author, s.created_at, s.updated_at, s.content_hash, s.tree_hash, "
    f"s.status, {{shadowed}}, s.copies, {ORIGIN}"
)


def columns(visibility: Visibility) -> str:
    """Return the SELECT list of a listing, in the order of the fields of `Skill`."""
    return _COLUMNS.format(ref=visibility.ref, shadowed=visibility.shadowed)


def skill_of(row: Sequence[Any]) -> Skill:
    """Return the `Skill` that a row of `columns` describes.

    This function writes to ``__dict__``, because the ``__init__`` of the frozen class takes four
    times as long.
    """
    value = object.__new__(Skill)
    facts = value.__dict__
    (
        facts["ref"],
        facts["name"],
        facts["description"],
        facts["kind"],
        facts["category"],
        tags,
        facts["scope"],
        facts["source"],
        facts["folder"],
        facts["path"],
        facts["version"],
        facts["license"],
        facts["author"],
        facts["created_at"],
        facts["updated_at"],
        facts["content_hash"],
        facts["tree_hash"],
        facts["status"],
        shadowed,
        copies,
        origin,
    ) = row
    facts["tags"] = tuple(tags.split("\n")) if tags else ()
    facts["shadowed"] = shadowed == 1
    facts["copies"] = _others(copies, facts) if copies else ()
    facts["origin"] = origin_of(origin) if origin else None
    return value


def origin_of(text: str) -> Origin | None:
    """Parse a value of `ORIGIN`.

    Returns None if the value is invalid, which can happen in a forged database.
    """
    facts = text.split("\n", 3)
    if len(facts) < 4:  # noqa: PLR2004  # url, ref, commit, path
        return None
    url, ref, commit, path = facts
    return Origin(url, ref or None, commit or None, path)


def _others(copies: str, facts: Mapping[str, str]) -> tuple[str, ...]:
    """Return the refs of a skill's copies, without the skill's own ref.

    The database stores refs that don't depend on the working folder. So it may store the skill's
    own ref in three forms.
    """
    source = facts["source"]
    own = facts["ref"], f"{source}/{facts['name']}", f"{source}/{facts['folder']}"
    return tuple([ref for ref in copies.split("\n") if ref not in own])


def hit_of(skill: Skill, **found: object) -> SearchHit:
    """Turn a skill that a search found into a hit.

    This function doesn't call the ``__init__`` of the frozen class, which is slow.
    """
    value = object.__new__(SearchHit)
    value.__dict__.update(skill.__dict__, **found)
    return value


Sort = Literal["name", "created", "updated"]

SORTS: Final[tuple[Sort, ...]] = get_args(Sort)

YANKED: Final = 2
"""Value of ``skills.held`` if the skill's files are a yanked version."""

FROM: Final = "skills s JOIN sources src ON src.id = s.source_id"

# Sort dates from the newest to the oldest, which is most useful, and names alphabetically.
ORDER: Final = {
    "name": ("s.name_key ASC", "s.name ASC", "s.source_id ASC", "s.position ASC"),
    "created": ("s.created_at DESC", "s.name_key ASC", "s.source_id ASC", "s.position ASC"),
    "updated": ("s.updated_at DESC", "s.name_key ASC", "s.source_id ASC", "s.position ASC"),
}


def order(sort: Sort, *, reverse: bool) -> str:
    """Return the ORDER BY list of a sort order.

    Its columns give each skill a different position, so pages don't overlap.
    """
    terms = ORDER[sort]
    if not reverse:
        return ", ".join(terms)
    flipped = {"ASC": "DESC", "DESC": "ASC"}
    return ", ".join(f"{term.split()[0]} {flipped[term.split()[1]]}" for term in terms)


BY_NAME: Final = order("name", reverse=False)


_FACTS: Final = (
    "s.id, s.uid, s.source_id, src.path, src.host, src.enabled, s.document, s.fingerprint, s.racy, "
    "s.hidden, s.held, s.compatibility, s.required_tools, s.parameters, s.file_count, src.project, "
    "src.team, CASE WHEN src.url IS NULL THEN 0 ELSE 1 END"
)

_FACT_COUNT: Final = _FACTS.count(",") + 2


class StoredSkill(NamedTuple):
    """The current version of a skill as stored.

    ``root`` and ``host`` are the root and the host of its source. ``document`` is the name of the
    skill file. ``fingerprint`` and ``racy`` show whether the folder changed. ``held`` is 1 if the
    skill is quarantined, and 2 if it is yanked. ``required_tools`` and ``parameters`` are JSON.

    ``project`` is the folder of the project in which the skill is visible. ``within`` tells whether
    the working folder is in that project. ``team`` is the team that sees the source; None if all
    roles see it.

    ``remote`` is set if the source is an address. A skill with an origin but without ``remote`` is
    an installed copy. ``skill`` is the skill as listings show it.
    """

    id: int
    uid: str
    source_id: int
    root: str
    host: str
    enabled: int
    document: str | None
    fingerprint: str
    racy: int
    hidden: int
    held: int
    compatibility: str | None
    required_tools: str
    parameters: str
    file_count: int
    project: str | None
    team: str | None
    remote: int
    within: int
    skill: Skill

    @property
    def folder(self) -> str:
        """The path of the folder, relative to the root of the source."""
        return self.skill.folder

    @property
    def path(self) -> str:
        """The absolute path of the folder, on the host that has the folder."""
        return self.skill.path

    @property
    def place(self) -> str:
        """The handle ``source/folder``, which no other skill has."""
        return f"{self.skill.source}/{self.skill.folder}"

    def is_copy_of(self, other: "StoredSkill") -> bool:
        """Tell whether this skill is an installed copy of ``other``, a skill of a remote source."""
        mine, its = self.skill.origin, other.skill.origin
        if mine is None or its is None or self.remote or not other.remote:
            return False
        return (mine.url, mine.path) == (its.url, its.path)

    @property
    def quarantined(self) -> bool:
        """Whether the skill has security errors that no user has accepted."""
        return self.held == 1

    @property
    def yanked(self) -> bool:
        """Whether the skill's files are a yanked version."""
        return self.held == YANKED

    @property
    def is_usable(self) -> bool:
        """Whether listings may show the skill: it is neither quarantined nor yanked."""
        return self.skill.status in {"ok", "warning"} and self.enabled == 1 and self.held == 0

    @property
    def is_visible(self) -> bool:
        """Whether listings show the skill by default in the user's working folder."""
        return self.is_usable and self.within == 1 and not self.skill.shadowed


def select(reader: Reader, condition: str, *values: object) -> list[StoredSkill]:
    """Return the current skills that meet a condition on ``s`` (skills) and ``src`` (sources)."""
    rows = reader.query_visible(
        lambda visibility: (f"{_selecting(visibility)} {shown(reader)} AND {condition}", values)
    )
    return list(map(_stored, rows))


def _stored(row: tuple[Any, ...]) -> StoredSkill:
    return StoredSkill._make((*row[:_FACT_COUNT], skill_of(row[_FACT_COUNT:])))


def _selecting(visibility: Visibility) -> str:
    within = f"CASE WHEN {visibility.within} THEN 1 ELSE 0 END"
    return f"SELECT {_FACTS}, {within}, {columns(visibility)} FROM {FROM} WHERE s.live = 1 AND "


def shown(reader: Reader) -> str:
    """Return the SQL condition that a skill is not yanked, or that this user owns its source."""
    return f"(s.held < {YANKED} OR {reader.own_yanked} = 1)"


def by_handle(reader: Reader, handle: str) -> tuple[list[StoredSkill], list[StoredSkill]]:
    """Return the skill in the folder ``source/folder``, and the skills with this name.

    If the handle contains a slash, both the whole handle and the part after the slash may be the
    name.
    """
    source, slash, rest = handle.partition("/")
    if not slash:
        return [], select(reader, f"s.name = ? AND {IMPORTED}", handle)

    def either(visibility: Visibility) -> Select:
        begin = f"{_selecting(visibility)} {shown(reader)} AND {IMPORTED} AND "
        sql = f"{begin} src.name = ? AND s.folder = ? UNION ALL {begin} s.name IN (?, ?)"
        return sql, (source, rest, handle, rest)

    found = list(map(_stored, reader.query_visible(either)))
    placed = [one for one in found if (one.skill.source, one.folder) == (source, rest)]
    # If both forms of the name match the same skill, list it only once.
    return placed[:1], list({one.id: one for one in found}.values())


def by_id(reader: Reader, skill_id: int) -> StoredSkill | None:
    """Return the version with this id; None if it is no longer current."""
    return next(iter(select(reader, "s.id = ?", skill_id)), None)


def by_ids(reader: Reader, ids: Iterable[int]) -> dict[int, StoredSkill]:
    """Return the versions with these ids that are still current, in the order of ``ids``."""
    wanted = list(ids)
    if not wanted:
        return {}
    found = select(reader, f"s.id {reader.in_json_array}", json.dumps(wanted))
    known = {one.id: one for one in found}
    return {one: known[one] for one in wanted if one in known}


def by_place(reader: Reader, source_id: int, folder: str) -> StoredSkill | None:
    """Return the skill in a folder of a source; None if there is none."""
    return stored(reader.query_visible(lambda visibility: at_place(visibility, source_id, folder)))


def at_place(visibility: Visibility, source_id: int, folder: str) -> Select:
    """Return the SELECT for the skill in a folder of a source; `stored` converts its rows."""
    return f"{_selecting(visibility)} s.source_id = ? AND s.folder = ?", (source_id, folder)


def stored(rows: Sequence[tuple[Any, ...]]) -> StoredSkill | None:
    """Return the skill that the rows of `at_place` describe; None if there are no rows."""
    return _stored(rows[0]) if rows else None


def same_name(reader: Reader, subject: str) -> list[StoredSkill]:
    """Return all skills that a name or ref may mean, including shadowed skills, by precedence."""
    source, slash, rest = subject.partition("/")
    condition, values = "s.name = ?", [subject]
    if slash:  # one condition with OR would read all skills
        of_source = "JOIN sources o ON o.id = x.source_id WHERE x.live = 1 AND o.name = ? AND"
        condition = (
            "s.id IN (SELECT id FROM skills WHERE name = ? "
            f"UNION ALL SELECT x.id FROM skills x {of_source} x.folder = ? "
            f"UNION ALL SELECT x.id FROM skills x {of_source} x.name = ?)"
        )
        values += [source, rest, source, rest]
    ordered = f"{IMPORTED} AND {condition} ORDER BY {STRONGEST_FIRST}"
    found = select(reader, ordered, *values)
    return sorted(found, key=lambda one: (one.within == 0, one.skill.shadowed))


def same_files(reader: Reader, name: str, tree_hash: str) -> list[StoredSkill]:
    """Return all skills with this name that have these files."""
    return select(reader, f"s.name = ? AND s.tree_hash = ? AND {IMPORTED}", name, tree_hash)


def folder_of_name(reader: Reader, source_id: int, name: str) -> str | None:
    """Return the folder of the skill with this name in a source; None if there is none."""
    return dict(reader.rows(*places_of_name(name))).get(source_id)


def places_of_name(name: str) -> Select:
    """Return the SELECT for the source id and folder of each skill with this name."""
    sql = (
        "SELECT source_id, folder FROM skills WHERE name = ? AND live = 1 "
        "AND status <> 'no_document'"
    )
    return sql, (name,)


def is_known(reader: Reader, name: str) -> bool:
    """Tell whether any skill has this name."""
    return bool(reader.rows("SELECT 1 FROM skills WHERE name = ? AND live = 1 LIMIT 1", (name,)))


def folders(reader: Reader, source_id: int) -> dict[str, int]:
    """Return the folders of a source's skills, and its folders without a SKILL.md, but no links.

    The result maps a folder to 1 if its skill is quarantined or hidden from models, else to 0.
    """
    sql = (
        "SELECT folder, CASE WHEN hidden = 1 OR held <> 0 THEN 1 ELSE 0 END FROM skills s "
        "WHERE source_id = ? AND live = 1 "
        "AND NOT (file_count = 0 AND EXISTS (SELECT 1 FROM diagnostics d WHERE d.skill_id = s.id "
        "AND d.code = 'link-outside' AND d.path IS NULL))"
    )
    return dict(reader.rows(sql, (source_id,)))


def broken(reader: Reader) -> list[StoredSkill]:
    """Return the skills that can't be used, and the folders without a SKILL.md, by ref."""
    condition = "src.enabled = 1 AND s.status IN ('invalid', 'no_document') ORDER BY s.ref"
    return select(reader, condition)


def unusual_documents(reader: Reader) -> dict[tuple[str, str], str]:
    """Map (source, folder) to the name of the skill file, if this name isn't SKILL.md."""
    rows = reader.rows(
        f"SELECT src.name, s.folder, s.document FROM {FROM} "
        "WHERE s.live = 1 AND s.document <> 'SKILL.md'"
    )
    return {(source, folder): document for source, folder, document in rows}


_DOCUMENT: Final = "SELECT text, body_start, front_matter FROM documents WHERE skill_id = ?"

_FILES: Final = "SELECT path, size, hash, mode FROM skill_files WHERE skill_id = ? ORDER BY path"

_STAT: Final = "mode, size, mtime_ns, ctime_ns, inode"

_FINDING: Final = "code, severity, message, line, fix, path"

_FINDINGS: Final = f"SELECT {_FINDING} FROM diagnostics WHERE skill_id = ?"

Document: TypeAlias = tuple[str, int, Mapping[str, JsonValue]]
"""The text of a SKILL.md, the offset of its body in the text, and its front matter."""


def load_content(
    reader: Reader, skill_id: int, *more: Select
) -> tuple[
    Document | None, tuple[SkillFile, ...], tuple[Diagnostic, ...], list[list[tuple[Any, ...]]]
]:
    """Return SKILL.md, files and findings of a version, all from one state of the database.

    The result also has the rows of the SELECTs ``more``.
    """
    asked = [(sql, (skill_id,)) for sql in (_DOCUMENT, _FILES, _FINDINGS)]
    texts, files, findings, *others = reader.many([*asked, *more])
    found = (texts[0][0], texts[0][1], json.loads(texts[0][2])) if texts else None
    return found, _files(files), _findings(findings), others


def files(reader: Reader, skill_id: int) -> tuple[SkillFile, ...]:
    """Return the files of a skill, including SKILL.md, by path."""
    return _files(reader.rows(_FILES, (skill_id,)))


def findings(reader: Reader, skill_id: int) -> tuple[Diagnostic, ...]:
    """Return the findings about a skill, errors first."""
    return _findings(reader.rows(_FINDINGS, (skill_id,)))


def _files(rows: Sequence[tuple[Any, ...]]) -> tuple[SkillFile, ...]:
    return tuple(SkillFile(path, size, one, bool(mode & S_IXUSR)) for path, size, one, mode in rows)


def _findings(rows: Sequence[tuple[Any, ...]]) -> tuple[Diagnostic, ...]:
    return tuple(sorted((Diagnostic(*row) for row in rows), key=lambda finding: finding.sort_key))


def visible_refs(reader: Reader, name: str) -> list[str]:
    """Return the refs of the visible skills with this name, by precedence."""
    visibility = reader.visibility
    sql = (
        f"SELECT {visibility.ref} FROM {FROM} WHERE s.name = ? AND {visibility.visible} "
        f"ORDER BY {STRONGEST_FIRST}"
    )
    return [row[0] for row in reader.rows(sql, (name,))]


def refs_of(reader: Reader, ids: Sequence[int]) -> dict[int, str]:
    """Return the refs of versions in this user's view; they may be versions that aren't current."""
    if not ids:
        return {}
    return dict(reader.query_visible(lambda seen: select_refs(reader, ids, seen)))


def select_refs(reader: Reader, ids: Sequence[int], visibility: Visibility) -> Select:
    """Return the SELECT for the id of each version and its ref in the current view."""
    sql = f"SELECT s.id, {visibility.ref} FROM {FROM} WHERE s.id {reader.in_json_array}"
    return sql, [json.dumps(list(ids))]


def bodies_and_skills(
    reader: Reader, ids: Sequence[int], visibility: Visibility
) -> dict[int, tuple[str, Skill]]:
    """Return the Markdown body and the skill of each version; the body may be empty."""
    rows = reader.rows(
        f"SELECT s.id, substr(d.text, d.body_start + 1), {columns(visibility)} FROM {FROM} "
        f"LEFT JOIN documents d ON d.skill_id = s.id WHERE s.id {reader.in_json_array}",
        [json.dumps(ids)],
    )
    return {row[0]: (row[1] or "", skill_of(row[2:])) for row in rows}


def names_and_sources(reader: Reader) -> list[tuple[str, str]]:
    """Return (name, source) of all visible skills."""
    sql = f"SELECT s.name, src.name FROM {FROM} WHERE {reader.visibility.visible}"
    return reader.rows(sql)


def visible_names(reader: Reader) -> list[tuple[str, str, str]]:
    """Return (ref, name key, folder) of all visible skills; the oldest source comes first."""
    visibility = reader.visibility
    sql = f"SELECT {visibility.ref}, s.name_key, s.folder FROM {FROM} WHERE {visibility.visible}"
    return reader.rows(f"{sql} ORDER BY s.source_id, s.position")


def innermost(reader: Reader, source_id: int, path: str) -> str | None:
    """Return the folder of the innermost skill that contains ``path``; None if there is none.

    ``path`` is relative to the root of the source.
    """
    folders = ["."]
    while path := os.path.dirname(path):
        folders.append(path)
    marks = ", ".join("?" * len(folders))
    rows = reader.rows(
        f"SELECT folder FROM skills WHERE source_id = ? AND live = 1 AND folder IN ({marks}) "
        "AND status <> 'no_document' ORDER BY CASE folder WHEN '.' THEN 0 ELSE length(folder) END "
        "DESC LIMIT 1",
        [source_id, *folders],
    )
    return rows[0][0] if rows else None


def has_below(reader: Reader, source_id: int, folder: str) -> bool:
    """Tell whether a skill is stored in ``folder`` or in one of its subfolders."""
    return bool(
        reader.rows(
            "SELECT 1 FROM skills WHERE source_id = ? AND live = 1 AND folder >= ? AND folder < ? "
            "LIMIT 1",
            # upper bound: '0' follows '/' in the sort order of text
            (source_id, folder, folder + "0"),
        )
    )


class StoredFingerprint(NamedTuple):
    """A stored version, with the values that a sync compares with the folder."""

    position: str
    id: int
    folder: str
    fingerprint: str
    racy: int
    status: str


def fingerprints(reader: Reader, source_id: int) -> Iterator[StoredFingerprint]:
    """Yield the current versions of a source in the order of `disk.paths.position`."""
    sql = (
        "SELECT position, id, folder, fingerprint, racy, status FROM skills "
        "WHERE source_id = ? AND live = 1 ORDER BY position"
    )
    return map(StoredFingerprint._make, reader.stream(sql, (source_id,)))


KnownFiles: TypeAlias = dict[str, tuple[tuple[int, ...], str | None]]
"""Maps the path of each file of a version to its stat values and its hash.

The stat values are mode, size, mtime, ctime and inode.
"""


UNSTORED: Final = (
    "SELECT s.id, s.content_hash, d.text FROM skills s JOIN documents d ON d.skill_id = s.id "
    "WHERE s.live = 1 AND s.content_hash IS NOT NULL "
    "AND NOT EXISTS (SELECT 1 FROM contents c WHERE c.hash = s.content_hash)"
)
"""SELECT for the SKILL.md files of current versions that are not stored in history yet."""

StoredContent: TypeAlias = tuple[KnownFiles, tuple[Diagnostic, ...]]
"""The stored files and the findings of a version."""


def files_and_findings(reader: Reader, ids: Sequence[int]) -> dict[int, StoredContent]:
    """Return the files and the findings of each version."""
    return _contents(ids, *reader.many(_select_contents(reader, ids)))


def with_contents(
    reader: Reader, ids: Sequence[int]
) -> tuple[dict[int, StoredSkill], dict[int, StoredContent], dict[int, tuple[str, str]]]:
    """Return the versions with these ids that are still current, and their contents by id.

    The last value holds the hash and the text of each SKILL.md that is not in history yet. A server
    returns everything in one round trip.
    """
    if not ids:
        return {}, {}, {}
    with reader.snapshot():
        texts = f"{UNSTORED} AND s.id {reader.in_json_array}", [json.dumps(ids)]
        asked = [*_select_contents(reader, ids), texts]
        files, findings, unstored = [reader.pipeline(one) for one in asked]
        reader.finish()
        stored = by_ids(reader, ids)
        return (
            stored,
            _contents(ids, files(), findings()),
            {version: (content_hash, text) for version, content_hash, text in unstored()},
        )


def _select_contents(reader: Reader, ids: Sequence[int]) -> list[Select]:
    those, some = f"WHERE skill_id {reader.in_json_array}", [json.dumps(ids)]
    return [
        (f"SELECT skill_id, path, hash, {_STAT} FROM skill_files {those}", some),
        (f"SELECT skill_id, {_FINDING} FROM diagnostics {those}", some),
    ]


def _contents(
    ids: Sequence[int], files: Iterable[tuple[Any, ...]], findings: Iterable[tuple[Any, ...]]
) -> dict[int, StoredContent]:
    known: dict[int, KnownFiles] = {one: {} for one in ids}
    told: dict[int, list[tuple[Any, ...]]] = {one: [] for one in ids}
    for version, path, content, *stat in files:
        known[version][path] = tuple(stat), content
    for version, *finding in findings:
        told[version].append(tuple(finding))
    return {one: (known[one], _findings(told[one])) for one in ids}


_FOLDERS: Final = 500
"""Maximum number of folders in one SELECT."""


class StoredOrigin(NamedTuple):
    """The current version of a skill; if it is an installed copy, with its stored origin."""

    id: int
    source_id: int
    folder: str
    tree_hash: str | None
    installed: str | None


def stored_origins(reader: Reader, folders: Mapping[int, Sequence[str]]) -> list[StoredOrigin]:
    """Return the current skills in these folders, and all installed copies in these sources.

    ``folders`` maps the id of a source to the folders in that source.
    """
    begin = "SELECT id, source_id, folder, tree_hash, installed FROM skills WHERE live = 1 AND"
    # The plus sign makes SQLite use the short index of the installed copies.
    installed = begin.replace("live = 1", "+live = 1")
    asked: list[Select] = [(f"{installed} installed IS NOT NULL", ())]
    for source_id, wanted in folders.items():
        for start in range(0, len(wanted), _FOLDERS):
            some = wanted[start : start + _FOLDERS]
            marks = ", ".join("?" * len(some))
            sql = f"{begin} source_id = ? AND folder IN ({marks})"
            asked.append((sql, (source_id, *some)))
    found = [StoredOrigin._make(row) for rows in reader.many(asked) for row in rows]
    return [one for one in dict.fromkeys(found) if one.source_id in folders]


class RemovedSkill(NamedTuple):
    """A version without a folder, with the values by which a sync recognises a moved folder."""

    id: int
    ref: str
    name: str
    folder: str
    tree_hash: str | None
    file_count: int
    bytes: int
    source: str = ""


def removed_skills(reader: Reader, ids: Sequence[int]) -> list[RemovedSkill]:
    """Return the values by which a sync recognises moved skills."""
    sql = (
        "SELECT s.id, s.ref, s.name, s.folder, s.tree_hash, s.file_count, s.bytes, src.name "
        "FROM skills s JOIN sources src ON src.id = s.source_id "
        f"WHERE s.id {reader.in_json_array} ORDER BY s.id"
    )
    return [RemovedSkill(*row) for row in reader.rows(sql, (json.dumps(ids),))] if ids else []


def has_retired(reader: Reader, host: str) -> bool:
    """Tell whether a host's sources have versions that readers don't see (retired or staged)."""
    sql = (
        "SELECT 1 FROM skills s JOIN sources src ON src.id = s.source_id "
        "WHERE s.live = 0 AND src.host = ? LIMIT 1"
    )
    return bool(reader.rows(sql, (host,)))


def skills_of_source(reader: Reader, source: str) -> list[StoredSkill]:
    """Return all skills of a source by name, including skills that aren't visible."""
    wanted = "src.name = ? AND src.enabled = 1 AND s.status <> 'no_document'"
    return select(reader, f"{wanted} ORDER BY {BY_NAME}", source)


def yanked(reader: Reader) -> set[tuple[str, str]]:
    """Return (source, folder) of each skill whose files are a yanked version, for its owner."""
    condition = (
        "s.uid IN (SELECT l.uid FROM labels l WHERE l.state = 'yanked') AND s.live = 1 "
        f"AND s.held = {YANKED} AND {shown(reader)}"
    )
    return set(reader.rows(f"SELECT src.name, s.folder FROM {FROM} WHERE {condition}"))


def quarantined(reader: Reader) -> dict[tuple[str, str], str]:
    """Return the ref of each quarantined skill, by (source, folder)."""
    waiting = "src.kind IS NOT NULL AND s.live = 1 AND s.held = 1 AND s.status IN ('ok', 'warning')"
    ref = reader.last_visibility().ref
    sql = f"SELECT src.name, s.folder, {ref} FROM {FROM} WHERE {waiting}"
    return {(source, folder): ref for source, folder, ref in reader.rows(sql)}


def near_places(skills: Sequence[Skill]) -> tuple[str, list[str]]:
    """Return an SQL condition on `src` and `s` for the sources and folders of these skills.

    The condition may also select a skill in a folder with the same name in another of these
    sources.
    """
    parts, values = [], list[str]()
    for column, key in (("src.name", "source"), ("s.folder", "folder")):
        wanted = {getattr(one, key) for one in skills} or {""}
        parts.append(f"{column} IN ({', '.join('?' * len(wanted))})")
        values += wanted
    return " AND ".join(parts), values
