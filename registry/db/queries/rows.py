"""Rows into values. A listing of thousands spends its time here, so this is kept bare."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, Protocol

from registry.db.sight import Sight
from registry.model import Origin, SearchHit, Skill

_ORIGIN: Final = (
    "CASE WHEN src.url IS NULL THEN {} ELSE src.url || '\n' || coalesce(src.pin, '') || '\n' "
    "|| coalesce(src.version, '') || '\n' || s.folder END"
)
ORIGIN: Final = _ORIGIN.format("s.installed")
"""Where a skill comes from: its remote source, or a lock that lists its folder as installed.

`origin_of` reads it.
"""

REMOTE_ORIGIN: Final = _ORIGIN.format("NULL")
"""The same of a skill of a remote source only, as it is kept with its revisions."""

MAX_DESCRIPTION: Final = 1 << 16
"""Characters of a description that are read; the specification allows 1,024."""

DESCRIPTION: Final = f"substr(s.description, 1, {MAX_DESCRIPTION})"

PATH: Final = "CASE s.folder WHEN '.' THEN src.path ELSE src.path || '/' || s.folder END"
"""The absolute path of a skill's folder."""

_COLUMNS: Final = (
    f"{{ref}}, s.name, {DESCRIPTION}, s.kind, s.category, s.tags, "
    f"src.scope, src.name, s.folder, {PATH}, "
    "s.version, s.license, s.author, s.created_at, s.updated_at, s.content_hash, s.tree_hash, "
    f"s.status, {{shadowed}}, s.copies, {ORIGIN}"
)


class Rows(Protocol):
    """What SELECTs can be asked of: a reader, or a transaction that writes."""

    @property
    def sight(self) -> Sight:
        """What is seen of projects."""

    def rows(self, sql: str, parameters: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        """Return all rows of a SELECT."""


def columns(sight: Sight) -> str:
    """Return what a listing selects, in the order of `Skill`'s fields."""
    return _COLUMNS.format(ref=sight.ref, shadowed=sight.shadowed)


def skills(rows: Iterable[tuple[Any, ...]]) -> tuple[Skill, ...]:
    """Turn rows of `columns` into skills."""
    return tuple([skill_of(row) for row in rows])


def skill_of(row: Sequence[Any]) -> Skill:
    """Turn a row of `columns` into a skill.

    Writing into ``__dict__`` leaves out the frozen ``__init__``, which costs four times as much.
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
    """Read what `ORIGIN` selects; None: a stranger's database holds something else."""
    facts = text.split("\n", 3)
    if len(facts) < 4:  # noqa: PLR2004  # url, ref, commit, path
        return None
    url, ref, commit, path = facts
    return Origin(url, ref or None, commit or None, path)


def _others(copies: str, facts: Mapping[str, str]) -> tuple[str, ...]:
    """Return the refs of copies without the skill's own, which are those from anywhere."""
    source = facts["source"]
    own = facts["ref"], f"{source}/{facts['name']}", f"{source}/{facts['folder']}"
    return tuple([ref for ref in copies.split("\n") if ref not in own])


def hit_of(skill: Skill, **found: object) -> SearchHit:
    """Turn a skill that was ``found`` into a hit, as cheaply as a row into a skill."""
    value = object.__new__(SearchHit)
    value.__dict__.update(skill.__dict__, **found)
    return value
