"""Hints: which command helps after an error."""

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from shlex import quote
from typing import TYPE_CHECKING, Final

from registry import errors
from registry.cli import escape
from registry.disk.links import real_path
from registry.model import DOCUMENT_NAMES
from registry.settings import data_folder
from registry.sync.installed import lock_of
from registry.text import quoted

if TYPE_CHECKING:
    from registry.api import SkillRegistry


def _source_unclear(error: errors.RegistryError) -> str:
    if not error.facts["known"]:
        return "'skill-registry sync FOLDER' registers a folder."
    return (
        "Name one with --source. To make one the usual choice, put 'default_source: NAME' into the "
        "settings file, which this command names: skill-registry config"
    )


def _skill_not_found(error: errors.RegistryError) -> str:
    return "" if error.facts["similar"] else "'skill-registry search' finds skills by what they do."


def _several_skills(error: errors.RegistryError) -> str:
    said = "--skill NAME takes one of them, --all takes all."
    if not error.facts["held"]:
        return said
    way = trusting(error.facts["source"], error.facts["path"])
    return f"{said} What is quarantined has security errors: {way}"


def trusting(source: str, address: str | None = None) -> str:
    """Return which commands show the security errors of a source, and trust it."""
    source = quote(escape.line(source))
    known = f"skill-registry sync {quote(escape.line(address))} && " if address else ""
    first = f"{known}skill-registry check {source}"
    return f"'{first}' says which; then: skill-registry source trust {source}"


def _skill_held(error: errors.RegistryError) -> str:
    if error.facts["source"] is not None:
        return trusting(error.facts["source"], error.facts["address"])
    if error.facts["url"] is not None:
        name, url = (quote(escape.line(error.facts[one])) for one in ("name", "url"))
        way = f"skill-registry import {url} --skill {name} --trust"
        return f"\nAfter a look at it, bring it from where it comes: {way}"
    return "\nAfter a look at them, the same with --trust brings them in."


def _not_undone(error: errors.RegistryError) -> str:
    place, number = quote(escape.line(error.facts["place"])), error.facts["revision"]
    before = ""
    if error.facts["kind"] == "pull":
        where = "--global" if error.facts["place"] == str(data_folder()) else f"--to {place}"
        before = f"'skill-registry pull --remove NAME {where}' removes what was pulled; "
    elif number:
        before = f"'skill-registry restore {place} --revision {number}' brings back what it was; "
    return before + "'skill-registry undo --skip' forgets this change and shows the one before it."


def _folder_pulled(error: errors.RegistryError) -> str:
    way = removal(error.facts["folder"], error.facts["lock"])
    return f"Rename it where it comes from and pull that, or remove it here: {way}"


def removal(folder: str, lock: str) -> str:
    """Return the command that removes a pulled skill from the folder of a lock."""
    where = f"--to {quote(escape.line(lock))}"
    if real_path(lock) == real_path(str(data_folder())):
        where = "--global"
    return f"skill-registry pull --remove {quote(escape.line(folder))} {where}"


def _installed_copy(arguments: Sequence[str]) -> str:
    """Return what to do with the installed copy that a change of a read-only source may mean."""
    from registry.install.pull import folders_of
    from registry.install.targets import Target

    if not {"delete", "rm", "rename"}.intersection(arguments):
        return ""
    with suppress(OSError):  # the current folder is gone, and with it any project
        for target in (Target.project(os.getcwd()), Target.everywhere()):
            for name in arguments:
                with suppress(errors.RegistryError):
                    (folder,) = folders_of(target, [name])
                    way = removal(folder, target.path)
                    return f"To remove the copy that was pulled, run: {way}"
    return ""


def _read_only(error: errors.RegistryError, arguments: Sequence[str]) -> str:
    """Return what to do instead of a change of a skill of a remote source."""
    words = [one for one in arguments if one[:1] != "-"]
    if "rename" in words:
        old, new, *_ = (*words[words.index("rename") + 1 :], "NAME", "NEW")
        url, name, new = (
            quote(escape.line(one)) for one in (error.facts["url"], old.rpartition("/")[2], new)
        )
        way = f"skill-registry import {url} --skill {name} && skill-registry rename {name} {new}"
        return f"To have a copy of that name in a source of your own, run: {way}"
    if {"delete", "rm"}.intersection(words):
        source = quote(escape.line(error.facts["name"]))
        return f"To forget all its skills, run: skill-registry source remove {source}"
    if "create" in words:
        return "Name a source of your own with --source."
    return (
        "Pull a copy into a folder of your own, and change that: skill-registry pull NAME --to DIR"
    )


def _for_all_projects(error: errors.RegistryError, arguments: Sequence[str]) -> str:
    """Return the same command with --global, if the skill was installed for all projects."""
    from registry.install.lockfile import NAME, read_lock
    from registry.install.pull import folders_of
    from registry.install.targets import Target

    everywhere = Target.everywhere()
    folder, file = os.path.split(error.facts["path"])
    if file != NAME or folder == everywhere.path or any(one[:4] == "--to" for one in arguments):
        return ""
    with suppress(errors.RegistryError):
        if "name" in error.facts:
            folders_of(everywhere, [error.facts["name"]])
        if read_lock(everywhere.path):
            again = " ".join(quote(escape.line(one)) for one in (*arguments, "--global"))
            return f"For all projects there is: skill-registry {again}"
    return ""


def _database_missing(error: errors.RegistryError) -> str:
    if error.facts["name"]:
        return f"Make it, on the server: createdb {quote(error.facts['name'])}"
    return "Is the path right? 'skill-registry sync FOLDER' with it makes one."


def _database_refused(error: errors.RegistryError) -> str:
    if "unknown" in error.facts:
        return f"Make one, on the server: createuser {quote(error.facts['unknown'])}"
    return "Give the password in PGPASSWORD or ~/.pgpass." if "user" in error.facts else ""


def _right_missing(error: errors.RegistryError) -> str:
    right = "--write" if error.facts["writing"] else "--read, or --write"
    if "team" in error.facts:
        right += f" --team {quote(escape.line(error.facts['team']))}"
    return (
        f"An admin gives it: skill-registry db grant ROLE {right}; with --print it says what a DBA "
        "would run."
    )


def _remote_refused(error: errors.RegistryError) -> str:
    if error.facts["status"] in {401, 403}:
        return (
            "Put the user and the password for this host into ~/.netrc, which nobody else may "
            "read; a private repository is fetched by git, with your credentials."
        )
    return "Is the address right? What is private may be called missing to whoever is not known."


def _at_skill(error: errors.RegistryError) -> str:
    place = error.facts.get("url") or error.facts["address"]
    _, is_path, last = place.partition("://")[2].rpartition("/")
    if not is_path or "@" not in last:
        return ""
    return (
        "After owner/repo only, @ names a skill; elsewhere --skill NAME of 'import' or 'pull' does."
    )


_HINTS: Final[dict[type[errors.RegistryError], str | Callable[[errors.RegistryError], str]]] = {
    errors.SkillNotFound: _skill_not_found,
    errors.AgentNotFound: "To list all agents, run: skill-registry agents",
    errors.SkillGone: "'skill-registry restore {name}' brings it back.",
    errors.SkillInTrash: "'skill-registry restore {name}' brings it back.",
    errors.SkillNotDeleted: (
        "'skill-registry history {name}' lists what it was, 'skill-registry restore {name} "
        "--revision N' brings that back."
    ),
    errors.ChangeNotUndone: _not_undone,
    errors.FolderPulled: _folder_pulled,
    errors.RootMissing: "Mount what it is on, or make it first: mkdir -p {path}",
    errors.TokenNotFound: "'skill-registry token list' shows those there are.",
    errors.NotInTrash: "'skill-registry trash list' shows what can be restored.",
    errors.SkillMissing: (
        "'skill-registry sync' brings the registry in line, 'skill-registry restore' the skill "
        "back."
    ),
    errors.FileTooLarge: "Settings: limits.document_bytes.",
    errors.FileNotFoundInSkill: "'skill-registry show NAME --files' lists them.",
    errors.SkillExists: "Choose another name, or change it with: skill-registry update",
    errors.SourceExists: "'skill-registry source update {name} --name NEW' renames it.",
    errors.SourceUnclear: _source_unclear,
    errors.SourceNotFound: "'skill-registry sync FOLDER' registers a folder.",
    errors.SkillHeld: _skill_held,
    errors.SeveralSkills: _several_skills,
    errors.SourceKindUnusable: "Settings: source_kinds.",
    errors.SourceNotAdopted: "If that is right: skill-registry source adopt {name}",
    errors.SourceNotYours: "Ask them; who is an admin says --as-admin.",
    errors.AdminNeeded: "'skill-registry db grant ROLE --admin --print' says how one is made.",
    errors.HostTaken: (
        "Give this machine another name: SKILL_REGISTRY_HOST, or the setting host. An admin frees "
        "one with: skill-registry db revoke ROLE"
    ),
    errors.RoleNotFound: "Make one, on the server: createuser {name}",
    errors.RightMissing: _right_missing,
    errors.LockMissing: "'skill-registry pull NAME --agent AGENT', or --to DIR, pulls a skill.",
    errors.NotPulled: "'skill-registry pull NAME --agent AGENT', or --to DIR, pulls a skill.",
    errors.LockNotMet: "'skill-registry pull --check' says what is different.",
    errors.OwnFileUnusable: (
        "Make it yours alone (chmod 600, of a folder 700), or move it away: then a new one is "
        "made, and what was signed with the old one is left alone."
    ),
    errors.AddressInvalid: _at_skill,
    errors.RemoteInvalid: _at_skill,
    errors.RemoteUnreachable: _at_skill,
    errors.RemoteRefused: lambda error: _at_skill(error) or _remote_refused(error),
    errors.TrustOutdated: "Look at them again: skill-registry source trust {name}",
    errors.SyncRunning: "Wait for it with --wait.",
    errors.DatabaseMissing: _database_missing,
    errors.DatabaseRefused: _database_refused,
    errors.DatabaseBehind: "Upgrade it for all with: skill-registry db upgrade",
    errors.DatabaseTooNew: "Upgrade with: pip install --upgrade skill-registry",
    errors.DatabaseTooOld: (
        "Your skills are in their folders on disk. Read them into a new database: "
        "skill-registry --db NEW sync FOLDER... (the old one keeps its history and counts)"
    ),
    errors.DatabaseCorrupt: (
        "Move it aside, with the -wal and -shm beside it, and put your last 'skill-registry db "
        "backup' in its place; or run 'skill-registry sync FOLDER...': the skills on disk are "
        "untouched and fill a new one, without their history, usage counts and the sources' scopes."
    ),
}


def hint(error: errors.RegistryError, arguments: Sequence[str] = ()) -> str:
    """Return the hint for an error; empty if its message is enough.

    ``arguments``: the command line, for hints that repeat it with another option.
    """
    if isinstance(error, errors.LockMissing | errors.NotPulled):
        if again := _for_all_projects(error, arguments):
            return again
        if "--remove" in arguments:
            return "'skill-registry list --agent AGENT' shows what it has."
    if type(error) in {errors.SourceElsewhere, errors.SourceNotYours} and "pull" in arguments:
        source = quote(escape.line(error.facts["name"]))
        names = f"skill-registry list --all --source {source}"
        return (
            f"Pull its skills by their names, as they were synced there. To list them, run: {names}"
        )
    if isinstance(error, errors.SourceReadOnly):
        return _installed_copy(arguments) or _read_only(error, arguments)
    found = _HINTS.get(type(error), "")
    if not isinstance(found, str):
        return found(error)
    # In a text stand facts as a shell takes them.
    return found.format_map({key: quote(escape.line(str(one))) for key, one in error.facts.items()})


def unsynced(registry: "SkillRegistry", name: str) -> str:
    """Explain why a skill folder that ``name`` may mean isn't found by that name.

    Empty if there is no such folder. Raises as `SkillRegistry.why`.
    """
    for path in _places(registry, name):
        if not any(os.path.lexists(os.path.join(path, document)) for document in DOCUMENT_NAMES):
            continue
        found = registry.why(path)[0]
        if found.ref is None:
            reason = found.reasons[0]
            if lock_of(real_path(path)) is not None:
                way = f"skill-registry diff {quote(path)} --upstream"
                return f"There is {path}, which pull installed. To compare it, run: {way}"
            said = "it is not synced yet" if reason.code == "not-synced" else reason.message
            return f"There is {path}, but {said}" + (f"; {reason.fix}" if reason.fix else ".")
        if os.path.realpath(path) != path:
            return f"{path} is a link to the skill {quoted(found.ref)}."
    return ""


def trashed(registry: "SkillRegistry", name: str) -> str:
    """Tell how to restore a skill that is in the trash but not in the database; else empty."""
    for one in registry.trash():
        if name in {one.name, f"{one.source}/{one.folder}"}:
            how = f"'skill-registry restore {one.id}' brings it back."
            return f"One is in the trash (deleted {one.deleted_at}); {how}"
    return ""


def _places(registry: "SkillRegistry", name: str) -> Iterator[str]:
    """Yield the folders that a name may mean: a path, or a folder in a source of this machine."""
    yield os.path.abspath(os.path.expanduser(name))
    for source in registry.own_sources():
        yield os.path.normpath(os.path.join(source.path, name))
        if name.startswith(f"{source.name}/"):
            yield os.path.normpath(os.path.join(source.path, name.removeprefix(f"{source.name}/")))
