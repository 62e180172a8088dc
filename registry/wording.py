"""Errors in words for people: what happened, to what, and what to do next."""

from collections.abc import Callable, Mapping
from typing import Any, Final

from registry import errors

MOST_CHOICES: Final = 20

LONGEST: Final = 120
"""A longer name is cut where it is only mentioned."""


def describe(error: errors.RegistryError) -> str:
    """Put an error into one or two sentences."""
    for kind in type(error).__mro__:
        words = _WORDS.get(kind)
        if words is not None:
            return words(error.facts)
    return ", ".join(f"{key}: {value}" for key, value in error.facts.items()) or error.code


def quoted(name: object) -> str:
    """Quote a name, with anything that could disturb a terminal shown as an escape."""
    text = str(name)
    if len(text) > LONGEST:
        text = text[:LONGEST] + "\u2026"
    if text.isprintable() and "'" not in text:
        return f"'{text}'"
    return repr(text)


def _escaped(text: str) -> str:
    return text if text.isprintable() else repr(text)[1:-1]


def _not_found(facts: Mapping[str, Any]) -> str:
    text = f"No skill named {quoted(facts['name'])}."
    if facts["similar"]:
        return f"{text} Did you mean {_choice(facts['similar'])}?"
    return f"{text} 'skill-registry search' finds skills by what they do."


def _choice(names: Any) -> str:
    listed = [quoted(name) for name in names]
    return listed[0] if len(listed) == 1 else f"{', '.join(listed[:-1])} or {listed[-1]}"


def _no_personality(facts: Mapping[str, Any]) -> str:
    text = f"No personality named {quoted(facts['name'])}."
    if facts["similar"]:
        return f"{text} Did you mean {_choice(facts['similar'])}?"
    if facts["known"]:
        return f"{text} The settings have {_choice(facts['known'][:MOST_CHOICES])}."
    return f"{text} The settings have none: add it under personalities."


def _no_toolset(facts: Mapping[str, Any]) -> str:
    hint = f" Did you mean {_choice(facts['similar'])}?" if facts["similar"] else ""
    return f"No toolset named {quoted(facts['name'])}.{hint} There are {', '.join(facts['known'])}."


def _ambiguous(facts: Mapping[str, Any]) -> str:
    refs = list(facts["refs"])
    more = f"\n  and {len(refs) - MOST_CHOICES} more" if len(refs) > MOST_CHOICES else ""
    choices = "\n".join(f"  {_escaped(ref)}" for ref in refs[:MOST_CHOICES])
    return f"{quoted(facts['name'])} names {len(refs)} skills. Choose one of:\n{choices}{more}"


def _invalid(facts: Mapping[str, Any]) -> str:
    problems = "\n".join(
        f"  {problem.message}" + (f" (fix: {problem.fix})" if problem.fix else "")
        for problem in facts["problems"]
        if problem.severity == "error"
    )
    return f"The skill {quoted(facts['name'])} can't be used:\n{problems}"


def _source_unclear(facts: Mapping[str, Any]) -> str:
    known = facts["known"]
    if not known:
        return "No sources are registered yet. 'skill-registry sync FOLDER' registers a folder."
    return (
        f"Name the source to write to, with --source: {_choice(known)}. "
        "The setting default_source makes one of them the usual choice."
    )


def _source_not_found(facts: Mapping[str, Any]) -> str:
    known = facts.get("known")
    have = f" Registered are {_choice(known)}." if known else " No sources are registered yet."
    return (
        f"{quoted(facts['name'])} is neither a source nor a folder.{have}"
        " 'skill-registry sync FOLDER' registers a folder."
    )


_WORDS: Final[dict[type[errors.RegistryError], Callable[[Mapping[str, Any]], str]]] = {
    errors.UsageProblem: lambda f: f"{f['message']}",
    errors.SettingsProblem: lambda f: (
        f"The settings file {f['path']} can't be used: {f['message']}."
    ),
    errors.PersonalityNotFound: _no_personality,
    errors.ToolsetNotFound: _no_toolset,
    errors.NotInTrash: lambda f: (
        f"The trash holds no skill {quoted(f['name'])}. "
        "'skill-registry trash list' shows what can be restored."
    ),
    errors.SkillNotFound: _not_found,
    errors.RevisionNotFound: lambda f: (
        f"The skill {quoted(f['name'])} has no revision {f['number']}; there "
        f"{'is' if len(f['known']) == 1 else 'are'} {', '.join(map(str, sorted(f['known'])))}."
    ),
    errors.ContentMissing: lambda f: (
        f"{quoted(f['path'])} of revision {f['number']} of {quoted(f['name'])} is not stored."
    ),
    errors.LockFileInvalid: lambda f: (
        f"The lock file {f['path']} can't be used ({f['reason']}). Restore it, or remove it: then "
        "folders that are there already count as made by somebody else."
    ),
    errors.PullClash: lambda f: (
        f"{_choice(f['refs'])} would both get the folder {quoted(f['folder'])}: pull them apart."
    ),
    errors.PullRefused: lambda f: f"{quoted(f['path'])} can't be written: {f['reason']}.",
    errors.ExportRefused: lambda f: f"{quoted(f['path'])} can't be written: {f['reason']}.",
    errors.ArchiveRefused: lambda f: f"{quoted(f['path'])} was not brought in: {f['reason']}.",
    errors.SkillAmbiguous: _ambiguous,
    errors.SkillInvalid: _invalid,
    errors.SkillNotVisible: lambda f: f"The skill {quoted(f['name'])} is not shown: {f['reason']}.",
    errors.SkillInaccessible: lambda f: f"{quoted(f['path'])} can't be read: {f['reason']}.",
    errors.SkillMissing: lambda f: (
        f"The skill {quoted(f['name'])} is not on disk any more ({f['path']}). "
        "'skill-registry sync' brings the registry in line."
    ),
    errors.FileTooLarge: lambda f: (
        f"{quoted(f['path'])} has {f['size']} bytes, {f['limit']} are allowed. "
        "Settings: limits.document_bytes."
    ),
    errors.NotUtf8: lambda f: (
        f"{quoted(f['path'])} is no UTF-8 text (byte {f['offset']}). Save it as UTF-8."
    ),
    errors.OutsideSkill: lambda f: f"{quoted(f['path'])} leads out of the skill's folder.",
    errors.FileNotFoundInSkill: lambda f: (
        f"The skill {quoted(f['name'])} has no file {quoted(f['path'])}. "
        "'skill-registry show NAME --files' lists them."
    ),
    errors.FileChanging: lambda f: (
        f"{quoted(f['path'])} kept changing while it was read. Try again when it is finished."
    ),
    errors.InvalidName: lambda f: f"{quoted(f['name'])} can't be a skill's name: {f['reason']}.",
    errors.SkillExists: lambda f: (
        f"There is a skill {quoted(f['name'])} already ({f['path']}). "
        "Choose another name, or change it with: skill-registry update"
    ),
    errors.SkillChangedOnDisk: lambda f: (
        f"The skill {quoted(f['name'])} was changed on disk since it was read ({f['path']}); "
        "nothing was done. Look at it again, then repeat the change."
    ),
    errors.ChangeRefused: lambda f: f"Nothing was changed at {f['path']}: {f['reason']}.",
    errors.ChangePending: lambda f: (
        f"The change at {f['path']} could not be finished: {f['reason']}. "
        "It is finished or undone as a whole when the registry is opened next."
    ),
    errors.SourceUnclear: _source_unclear,
    errors.SourceNotFound: _source_not_found,
    errors.SourceElsewhere: lambda f: (
        f"The source {quoted(f['name'])} belongs to {quoted(f['host'])}: sync and change it there. "
        "What is read here comes from the database."
    ),
    errors.SourceExists: lambda f: (
        f"There is a source {quoted(f['name'])} already, at {f['path']}."
    ),
    errors.SourceInvalid: lambda f: f"{quoted(f['path'])} can't be a source: {f['reason']}.",
    errors.SyncRunning: lambda f: (
        f"Another sync of this registry is running: {f['owner']}. Wait for it with --wait."
    ),
    errors.DatabaseBusy: lambda f: (
        f"The database {f['path']} was busy for {f['seconds']:g} seconds. Try again."
    ),
    errors.DatabaseTooNew: lambda f: (
        f"The database {f['path']} was written by a newer skill-registry "
        f"(its schema is {f['revision']}). Upgrade with: pip install --upgrade skill-registry"
    ),
    errors.DatabaseCorrupt: lambda f: (
        f"The database {f['path']} is damaged ({f['reason']}). Move it aside, with the -wal and "
        "-shm beside it, and put your last 'skill-registry db backup' in its place; or run "
        "'skill-registry sync FOLDER...': the skills on disk are untouched and fill a new one, "
        "without their history, usage counts and the sources' scopes."
    ),
    errors.DatabaseUnreachable: lambda f: (
        f"The database {f['path']} can't be reached: {f['reason']}. Try again."
    ),
    errors.DatabaseProblem: lambda f: f"The database {f['path']} can't be used: {f['reason']}.",
}
