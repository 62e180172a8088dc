"""What is told ClawHub's clients, in the shapes of ``contracts/clawhub-api.md``."""

import mimetypes
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, Final, TypeVar

from registry.catalog.hub import Kept, Offered
from registry.install.content import Entry
from registry.model import SkillFile
from registry.web import addresses

DOCUMENT: Final = "SKILL.md"
"""What clients know the document by, whatever it is called here."""


F = TypeVar("F", Entry, SkillFile)


def offered_files(kept: Kept) -> list[SkillFile]:
    """Return the files of a content as clients get them."""
    return renamed(kept.revision.files, kept.revision.document)


def renamed(files: Sequence[F], document: str | None) -> list[F]:
    """Return files with the document under the name that all clients know."""
    return [replace(one, path=DOCUMENT) if one.path == document else one for one in files]


def choices(base: str, slug: str, found: Sequence[Offered]) -> dict[str, Any]:
    """Return the answer where several owners have a skill of this slug."""
    return {
        "code": "AMBIGUOUS_SKILL_SLUG",
        "message": f"Several owners have a skill {slug}; choose one.",
        "slug": slug,
        "matches": [
            {
                "ownerHandle": one.owner,
                "slug": one.slug,
                "ref": f"@{one.owner}/{one.slug}",
                "url": f"{base}{addresses.skill(one.stored.skill.ref)}",
            }
            for one in found
        ],
    }


def item(one: Offered) -> dict[str, Any]:
    """Return a skill as listings have it."""
    skill = one.stored.skill
    return {
        "slug": one.slug,
        "displayName": skill.name,
        "summary": skill.description,
        "topics": list(skill.tags),
        "tags": tags(one),
        "stats": {},
        "createdAt": _ms(skill.created_at),
        "updatedAt": _ms(skill.updated_at),
        "latestVersion": {
            "version": one.version,
            "createdAt": _ms(skill.updated_at),
            "changelog": "",
        },
        "ownerHandle": one.owner,
    }


def summary(one: Offered) -> dict[str, Any]:
    """Return a skill as a search has it, without its score."""
    skill = one.stored.skill
    return {
        "slug": one.slug,
        "displayName": skill.name,
        "summary": skill.description,
        "version": one.version,
        "updatedAt": _ms(skill.updated_at),
        "ownerHandle": one.owner,
        "owner": owner(one),
    }


def owner(one: Offered) -> dict[str, Any]:
    """Return who has a skill: its source."""
    return {"handle": one.owner, "displayName": one.stored.skill.source}


def tags(one: Offered) -> dict[str, str]:
    """Return the map from tags to versions; what the skill calls its version is one of them."""
    declared = one.stored.skill.version
    tags = {"latest": one.version}
    return {**tags, f"declared-{declared}": one.version} if declared else tags


def version(kept: Kept) -> dict[str, Any]:
    """Return a content as lists of versions have it."""
    return {"version": kept.version, "createdAt": _ms(kept.seen_at), "changelog": ""}


def file(one: SkillFile) -> dict[str, Any]:
    """Return a file as a version has it."""
    kind = mimetypes.guess_type(one.path)[0] or "application/octet-stream"
    hashed = (one.hash or "").removeprefix("sha256:")
    return {"path": one.path, "size": one.size, "sha256": hashed, "contentType": kind}


def _ms(time: str) -> int:
    """Return a time as milliseconds since 1970; 0 for what is none, in a stranger's database."""
    try:
        return int(datetime.fromisoformat(time).timestamp() * 1000)
    except ValueError:
        return 0
