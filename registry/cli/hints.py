"""What to do next about an error, in the words of the command line."""

import shlex
from typing import Final

from registry import errors
from registry.cli import escape

_HINTS: Final[dict[type[errors.RegistryError], str]] = {
    errors.NotInTrash: "'skill-registry trash list' shows what can be restored.",
    errors.SkillMissing: "'skill-registry sync' brings the registry in line.",
    errors.FileTooLarge: "Settings: limits.document_bytes.",
    errors.FileNotFoundInSkill: "'skill-registry show NAME --files' lists them.",
    errors.SkillExists: "Choose another name, or change it with: skill-registry update",
    errors.SourceNotFound: "'skill-registry sync FOLDER' registers a folder.",
    errors.OwnFileUnusable: (
        "Make it yours alone (chmod 600, of a folder 700), or move it away: then a new one is "
        "made, and what was signed with the old one is left alone."
    ),
    errors.SyncRunning: "Wait for it with --wait.",
    errors.DatabaseTooNew: "Upgrade with: pip install --upgrade skill-registry",
    errors.DatabaseCorrupt: (
        "Move it aside, with the -wal and -shm beside it, and put your last 'skill-registry db "
        "backup' in its place; or run 'skill-registry sync FOLDER...': the skills on disk are "
        "untouched and fill a new one, without their history, usage counts and the sources' scopes."
    ),
}


def hint(error: errors.RegistryError) -> str:
    """Return what helps, empty where the error's own sentence is enough."""
    if isinstance(error, errors.SourceUnclear):
        if not error.facts["known"]:
            return "'skill-registry sync FOLDER' registers a folder."
        return (
            "Name one with --source; the setting default_source makes one of them the usual choice."
        )
    if isinstance(error, errors.SourceNotAdopted):
        name = shlex.quote(escape.line(error.facts["name"]))
        return f"If that is right: skill-registry source adopt {name}"
    if type(error) is errors.SkillNotFound and not error.facts["similar"]:
        return "'skill-registry search' finds skills by what they do."
    return _HINTS.get(type(error), "")
