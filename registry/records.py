"""Values as JSON: exactly the keys that are documented, null where nothing is known."""

from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Final

from registry.model import Diagnostic, SearchHit, Skill, SkillDetail, SkillFile, Source

if TYPE_CHECKING:
    from registry.catalog.check import Checked
    from registry.catalog.why import Explanation
    from registry.sync.report import SyncReport
    from registry.sync.sources import Discovered

Record = dict[str, Any]

SKILL_KEYS: Final = (
    "ref",
    "name",
    "description",
    "kind",
    "category",
    "tags",
    "scope",
    "source",
    "path",
    "version",
    "license",
    "author",
    "created_at",
    "updated_at",
    "content_hash",
    "tree_hash",
    "status",
    "shadowed",
)


def skill(value: Skill) -> Record:
    """Return a skill as listings print it."""
    facts = vars(value)
    return {key: facts[key] for key in SKILL_KEYS}


def hit(value: SearchHit) -> Record:
    """Return a search result."""
    return {**skill(value), "score": value.score, "snippet": value.snippet}


def detail(value: SkillDetail) -> Record:
    """Return everything of one skill."""
    return {
        **skill(value),
        "compatibility": value.compatibility,
        "required_tools": value.required_tools,
        "parameters": [asdict(parameter) for parameter in value.parameters],
        "location": value.location,
        "front_matter": value.front_matter,
        "files": [file(one) for one in value.files],
        "diagnostics": [diagnostic(one) for one in value.diagnostics],
        "body": value.body,
    }


def file(value: SkillFile) -> Record:
    """Return one file of a skill."""
    return {
        "path": value.path,
        "size": value.size,
        "hash": value.hash,
        "executable": value.executable,
    }


def diagnostic(value: Diagnostic) -> Record:
    """Return one finding."""
    return {
        "code": value.code,
        "severity": value.severity,
        "path": value.path,
        "line": value.line,
        "message": value.message,
        "fix": value.fix,
    }


def checked(value: "Checked") -> Record:
    """Return the findings about one skill."""
    findings = [diagnostic(finding) for finding in value.findings]
    return {"name": value.name, "path": value.path, "findings": findings}


def explanation(value: "Explanation") -> Record:
    """Return why a skill is, or isn't, listed."""
    return {
        "ref": value.ref,
        "path": value.path,
        "listed": value.listed,
        "reasons": [diagnostic(reason) for reason in value.reasons],
    }


def source(value: Source) -> Record:
    """Return a source."""
    return {
        "name": value.name,
        "path": value.path,
        "scope": value.scope,
        "priority": value.priority,
        "enabled": value.enabled,
        "skills": value.skills,
        "last_sync_at": value.last_sync_at,
        "last_result": value.last_result,
        "host": value.host,
    }


def discovered(value: "Discovered") -> Record:
    """Return a well-known folder that exists; ``source`` is null where it is not registered."""
    return {
        "path": value.path,
        "scope": value.scope,
        "suggested_name": value.suggested_name,
        "source": value.source,
    }


def sync(report: "SyncReport") -> Record:
    """Return what a sync did."""
    return {
        "added": report.added,
        "updated": report.updated,
        "moved": [move.ref for move in report.moved],
        "removed": report.removed,
        "unchanged": report.unchanged,
        "invalid": report.invalid,
        "sources": [
            {
                "name": part.name,
                "path": part.path,
                "outcome": part.outcome,
                "message": part.message,
                "skills": part.skills,
                "kept": part.kept,
                "notices": [
                    {"folder": folder, **diagnostic(notice)} for folder, notice in part.notices
                ],
            }
            for part in report.sources
        ],
        "seconds": report.seconds,
        "dry_run": report.dry_run,
    }
