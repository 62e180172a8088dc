"""Hints after errors: the commands that help."""

import os
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from shlex import quote
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from registry import errors
from registry.cli import escape, formatting
from registry.disk.links import real_path
from registry.disk.paths import ROOT
from registry.model import DOCUMENT_NAMES
from registry.settings import data_folder
from registry.sync.installed import lock_of
from registry.text import quoted

if TYPE_CHECKING:
    from registry.api import SkillRegistry
    from registry.model import Skill


MAX_WAYS: Final = 3

UNAUTHORIZED: Final = 401


def _source_unclear(error: errors.RegistryError, arguments: Sequence[str]) -> str:
    """Return the command with each source, and the setting for a default."""
    known = error.facts["known"]
    if not known:
        return "To register a folder, run: skill-registry sync FOLDER"
    default = (
        "To set a default, put 'default_source: NAME' into the settings file, which this command "
        "names: skill-registry config"
    )
    if {"create", "import"}.isdisjoint(arguments) or "--" in arguments:
        return f"Name the source with --source. {default}"
    ways = [
        f"\n  skill-registry {' '.join(quote(escape.line(one)) for one in again)}"
        for again in ([*arguments, "--source", source] for source in known[:MAX_WAYS])
    ]
    return f"Run one of:{''.join(ways)}\n{default}"


def _version_not_found(error: errors.RegistryError) -> str:
    name = quote(escape.line(error.facts["name"]))
    if error.facts["known"]:
        return f"To list its versions, run: skill-registry version list {name}"
    return f"To add one, run: skill-registry version add {name} LABEL"


def _skill_not_found(error: errors.RegistryError) -> str:
    return (
        ""
        if error.facts["similar"]
        else "To find a skill by what it does, run: skill-registry search KEYWORDS"
    )


def _several_skills(error: errors.RegistryError) -> str:
    said = "Choose with --skill NAME, or take all with --all."
    if not error.facts["held"]:
        return said
    way = trusting(error.facts["source"], error.facts["path"])
    return f"{said} Quarantined skills have security errors: {way}"


def trusting(source: str, address: str | None = None, name: str = "") -> str:
    """Return two commands: to show the security errors of a source, and to trust its skills.

    If ``name`` is given, trust only the skill with this name.
    """
    first = f"{_registering(address)}skill-registry check {quote(escape.line(source))}"
    return f"To see the errors, run: {first}. {_to_trust(source, address, name)}"


def _to_trust(source: str, address: str | None, name: str) -> str:
    from registry.catalog.resolve import trust_command

    way = trust_command(escape.line(source), escape.line(name))
    return f"To trust {'it' if name else 'the skills'}, run: {_registering(address)}{way}"


def _registering(address: str | None) -> str:
    return f"skill-registry sync {quote(escape.line(address))} && " if address else ""


def _skill_held(error: errors.RegistryError) -> str:
    if (source := error.facts["source"]) is not None:
        address, name = error.facts["address"], error.facts["name"]
        if error.facts["problems"]:  # the message has the errors
            return f"\n{_to_trust(source, address, name)}\nThen repeat your command."
        return trusting(source, address, name)
    if error.facts["url"] is not None:
        name, url = (quote(escape.line(error.facts[one])) for one in ("name", "url"))
        way = f"skill-registry import {url} --skill {name} --trust"
        return f"\nTo import it after you have read it, run: {way}"
    return "\nTo import them after you have read them, repeat the command with --trust."


def _not_undone(error: errors.RegistryError) -> str:
    place, number = quote(escape.line(error.facts["place"])), error.facts["revision"]
    before = ""
    if error.facts["kind"] == "pull":
        where = "--global" if error.facts["place"] == str(data_folder()) else f"--to {place}"
        before = f"To remove the installed skill, run: skill-registry pull --remove NAME {where}. "
    elif number:
        before = (
            f"To restore that version, run: skill-registry restore {place} --revision {number}. "
        )
    return (
        before + "To skip this command and see the one before it, run: skill-registry undo --skip"
    )


def _folder_pulled(error: errors.RegistryError) -> str:
    way = removal(error.facts["folder"], error.facts["lock"])
    return f"Rename it in its source and pull it again, or remove it here: {way}"


def _skill_exists(error: errors.RegistryError) -> str:
    path = error.facts["path"]
    if os.path.isdir(path) and not any(
        os.path.isfile(os.path.join(path, one)) for one in DOCUMENT_NAMES
    ):
        file = quote(escape.line(os.path.join(path, DOCUMENT_NAMES[0])))
        return f"Choose another name, or write {file} and then run: skill-registry sync"
    way = f"skill-registry update {quote(escape.line(error.facts['name']))}"
    return f"Choose another name, or change the existing skill: {way}"


def removal(folder: str, lock: str) -> str:
    """Return the command that removes an installed skill.

    ``lock`` is the folder of its lock file.
    """
    where = f"--to {quote(escape.line(lock))}"
    if real_path(lock) == real_path(str(data_folder())):
        where = "--global"
    return f"skill-registry pull --remove {quote(escape.line(folder))} {where}"


def installed_copies(skill: "Skill") -> Iterator[tuple[str, str]]:
    """Yield the paths at which a skill is installed, each with the command that removes it.

    The function searches only this project, and the folders for all projects.
    """
    from registry.install.lockfile import read_lock
    from registry.install.provenance import is_of
    from registry.install.targets import InstallTarget

    with suppress(OSError):  # the current folder may have been removed, and with it the project
        for target in (InstallTarget.project(os.getcwd()), InstallTarget.everywhere()):
            with suppress(errors.RegistryError):
                for folder, entry in read_lock(target.path).items():
                    is_it = (
                        (entry.source, entry.folder) == (skill.source, skill.folder)
                        if entry.origin is None
                        else is_of(skill, entry.origin)
                    )
                    if not is_it:
                        continue
                    for one in target.install_paths(entry.agents, entry.mode, folder):
                        if os.path.lexists(path := one.path_of(folder)):
                            yield path, removal(folder, target.path)


def check_meant(registry: "SkillRegistry", name: str) -> None:
    """Raise `ChangeRefused` if ``name`` may mean a copy that is installed in this project.

    This is possible if the registry's skill with this name has no origin, is in another folder, and
    isn't the skill from which the copy was installed.
    """
    from registry.install.lockfile import read_lock
    from registry.install.provenance import owner
    from registry.install.targets import InstallTarget

    with suppress(OSError):  # the current folder may have been removed, and with it the project
        target = InstallTarget.project(os.getcwd())
        entry = None
        with suppress(errors.RegistryError):
            entry = read_lock(target.path).get(name)
        if entry is None:
            return
        known = registry.resolve(name)
        laid = target.install_paths(entry.agents, entry.mode, name)
        paths = [path for one in laid if os.path.lexists(path := one.path_of(name))]
        whose = owner(registry.core, entry)
        is_it = whose is not None and (whose.source, whose.folder) == (known.source, known.folder)
        is_elsewhere = real_path(known.path) not in map(real_path, paths)
        if paths and known.origin is None and is_elsewhere and not is_it:
            meant = f"{known.source}/{known.folder}"
            reason = (
                f"'pull' installed it; the skill {name} of the registry is in {known.path}. "
                f"To remove the installed copy, run: {removal(name, target.path)}. "
                f"To delete the other skill, run: skill-registry delete {quote(meant)}"
            )
            raise errors.ChangeRefused(path=paths[0], reason=reason)


@contextmanager
def naming_what_helps(
    registry: "SkillRegistry", handle: str, new_name: str | None = None
) -> Iterator[None]:
    """Add to a raised `SourceReadOnly` a note with a command that helps instead."""
    try:
        yield
    except errors.SourceReadOnly as error:
        skill = registry.resolve(handle)
        if removals := [way for _, way in installed_copies(skill)]:
            error.add_note(f"To remove the installed copy, run: {removals[0]}")
        elif new_name is None:
            source = quote(escape.line(skill.source))
            error.add_note(
                "To remove the source with all its skills, run: skill-registry source remove "
                f"{source}"
            )
        else:
            error.add_note(_own_copy(registry, skill, new_name))
        raise


@contextmanager
def naming_both() -> Iterator[None]:
    """Add to a raised `SkillAmbiguous` a note with the command that compares two of the skills."""
    try:
        yield
    except errors.SkillAmbiguous as error:
        both = " ".join(quote(escape.line(ref)) for ref in error.refs[:2])
        error.add_note(f"\nTo compare two of them, run: skill-registry diff {both}")
        raise


def _own_copy(registry: "SkillRegistry", skill: "Skill", new_name: str) -> str:
    """Return commands that copy a skill of a remote source to a local source and rename it."""
    from registry.sync.sources import find, target_source

    remote = find(registry.core, skill.source).remote
    assert remote is not None  # noqa: S101  # skills of local sources can be renamed
    own, choice = "SOURCE", ""
    try:
        home = target_source(registry.core, None)
        own = own if home.remote else home.name
    except errors.SourceUnclear as error:
        choice = error.fill(" ({known:or})") if error.facts["known"] else ""
    except errors.RegistryError:
        pass
    address, name = formatting.address(remote.url, remote.ref), skill.name
    folder = name if skill.folder == ROOT else os.path.basename(skill.folder)
    address, folder, home_name, copied, new = (
        quote(escape.line(one)) for one in (address, folder, own, f"{own}/{name}", new_name)
    )
    way = (
        f"skill-registry import {address} --skill {folder} --source {home_name} && "
        f"skill-registry rename {copied} {new}"
    )
    where = f"choose it as SOURCE{choice} and run" if own == "SOURCE" else "run"
    return f"To get a copy with that name in a source of your own, {where}: {way}"


def _read_only(arguments: Sequence[str]) -> str:
    """Return an alternative to changing a skill of a remote source."""
    if "create" in arguments:
        return "Name a source of your own with --source."
    return (
        "Install a copy into a folder of your own and change that: skill-registry pull "
        "NAME --to DIR"
    )


def _for_all_projects(error: errors.RegistryError, arguments: Sequence[str]) -> str:
    """Return the command with --global if the skill is installed for all projects, else ""."""
    from registry.install.lockfile import NAME, read_lock
    from registry.install.pull import folders_of
    from registry.install.targets import InstallTarget

    everywhere = InstallTarget.everywhere()
    folder, file = os.path.split(error.facts["path"])
    if file != NAME or folder == everywhere.path or any(one[:4] == "--to" for one in arguments):
        return ""
    with suppress(errors.RegistryError):
        if "name" in error.facts:
            folders_of(everywhere, [error.facts["name"]])
        if read_lock(everywhere.path):
            again = " ".join(quote(escape.line(one)) for one in (*arguments, "--global"))
            return f"For the skills installed with --global, run: skill-registry {again}"
    return ""


def _installed(error: errors.RegistryError, arguments: Sequence[str]) -> str:
    """Return where to find installed skills for a check or a removal, else ""."""
    if isinstance(error, errors.LockMissing) and {"--check", "outdated"} & {*arguments}:
        return (
            "A check compares the skills that this file lists with the registry. Run it in the "
            "folder of your project, or add --to DIR. To install a skill, run: skill-registry pull "
            "NAME --agent AGENT"
        )
    if "--remove" in arguments:
        return "To list the agent's skills, run: skill-registry list --agent AGENT"
    return ""


def _personality(error: errors.RegistryError) -> str:
    """Return an example of a personality if the settings have none, else ""."""
    if error.facts["known"] or error.facts["similar"]:
        return ""
    name = str(error.facts["name"])
    name = name if re.fullmatch(r"[a-zA-Z][\w-]*", name) else "NAME"
    return (
        "An example, for the settings file that this command names: skill-registry config\n"
        f"personalities:\n  {name}:\n    skills:\n      global_ingest:\n"
        f"        mode: tags\n        accept_tags: [{name}]\n"
        "        # Tags don't limit sources of scope team; this example doesn't show their skills."
    )


def _despite_edits(arguments: Sequence[str]) -> str:
    """Return two commands for the edits that stop `pull --frozen`: to show and to replace them."""
    by_force = "--theirs" in arguments  # --theirs doesn't replace folders that no pull created
    again = [*arguments, "--force" if by_force else "--theirs"]
    check = [one for one in arguments if one not in {"--frozen", "--offline", "--theirs"}]
    see, replace = (
        " ".join(quote(escape.line(one)) for one in one_of)
        for one_of in (
            [*check, "--check"],
            again,
        )
    )
    return (
        f"To see the edits, run: skill-registry {see}. To replace them by the files of the lock, "
        f"run: skill-registry {replace}"
    )


def _edited_by_hand(arguments: Sequence[str]) -> str:
    """Return a command that makes it possible to change a skill that the user has edited."""
    if any(one.startswith("--if-hash") for one in arguments):
        return ""  # with --if-hash, the hash decides whether the change is allowed
    hint = "To read an edit by hand into the registry, run: skill-registry sync"
    can_force = {"update", "delete", "rm"}.intersection(arguments) and "--copies" not in arguments
    return f"{hint} (or repeat the command with --force)" if can_force else hint


def _database_missing(error: errors.RegistryError) -> str:
    if error.facts["name"]:
        return f"To create it, run on the server: createdb {quote(error.facts['name'])}"
    return "To create it, run: skill-registry sync FOLDER"


def _database_refused(error: errors.RegistryError) -> str:
    if "unknown" in error.facts:
        return f"To create it, run on the server: createuser {quote(error.facts['unknown'])}"
    return "Put the password into PGPASSWORD or ~/.pgpass." if "user" in error.facts else ""


def _right_missing(error: errors.RegistryError) -> str:
    right = "--write" if error.facts["writing"] else "--read, or --write"
    if "team" in error.facts:
        right += f" --team {quote(escape.line(error.facts['team']))}"
    return (
        f"An admin can give it: skill-registry db grant ROLE {right} (--print shows the SQL "
        "for a DBA)."
    )


def _login_place(url: str) -> str | None:
    """Return where the token or password for an address comes from; None if there is none."""
    from registry.remotes.address import split
    from registry.remotes.http import TOKEN, own_token, password_at

    with suppress(errors.RegistryError):
        if own_token(url):
            return TOKEN
        if password_at(split(url)):
            return "~/.netrc"
    return None


def _remote_refused(error: errors.RegistryError) -> str:
    if error.facts["status"] == UNAUTHORIZED and (place := _login_place(error.facts["url"])):
        return (
            f"The server doesn't accept the token or password from {place}: it is revoked, expired "
            "or wrong. Ask for a new one."
        )
    if error.facts["status"] in {401, 403}:
        host = urlsplit(error.facts["url"]).hostname or "HOST"
        line = f"machine {escape.line(host)} login USER password PASSWORD"
        return (
            f"To log in, put this line into ~/.netrc, and run 'chmod 600 ~/.netrc': {line}. For a "
            "skill-registry server, the password is your token, with any user name; or set "
            "SKILL_REGISTRY_URL to the server's address, and SKILL_REGISTRY_TOKEN. Private "
            "repositories are also fetched by git with your git credentials. Some servers answer "
            "in the same way if the address does not exist."
        )
    return (
        "Check the address. Some servers also report private files as missing; if it is "
        "private, sign in first."
    )


def _archive_refused(error: errors.RegistryError) -> str:
    """Return how to import a folder or a single SKILL.md."""
    from registry.install.imports import IS_DOCUMENT, IS_FOLDER

    if error.facts["reason"] not in {IS_DOCUMENT, IS_FOLDER}:
        return ""
    path = os.path.abspath(os.path.expanduser(error.facts["path"]))
    site = os.path.join(path, ".well-known", "agent-skills")
    if os.path.isdir(site):
        packed = [os.path.join(site, one) for one in sorted(os.listdir(site))]
        if files := [one for one in packed if one.endswith(".tar.gz")]:
            file = files[0] if len(files) == 1 else os.path.join(site, "NAME.tar.gz")
            way = f"skill-registry import {quote(escape.line(file))}"
            return f"It is an exported web site. To import a skill of it, run: {way}"
        path = next((one for one in packed if os.path.isdir(one)), path)
    if os.path.basename(path) in DOCUMENT_NAMES:
        path = os.path.dirname(path)
    if any(os.path.isfile(os.path.join(path, one)) for one in DOCUMENT_NAMES):
        folder = quote(escape.line(path))
        return (
            f"To register it, run: skill-registry sync {folder}. To copy it into a source of your "
            f"own, run: skill-registry publish {folder} --source NAME"
        )
    return f"To register the folder, run: skill-registry sync {quote(escape.line(path))}"


def _at_skill(error: errors.RegistryError) -> str:
    place = error.facts.get("url") or error.facts["address"]
    _, is_path, last = place.partition("://")[2].rpartition("/")
    if not is_path or "@" not in last:
        return ""
    return (
        "NAME@ is only valid after owner/repo. For other addresses, use --skill NAME with "
        "'import' or 'pull'."
    )


_HINTS: Final[dict[type[errors.RegistryError], str | Callable[[errors.RegistryError], str]]] = {
    errors.SkillNotFound: _skill_not_found,
    errors.AgentNotFound: "To list all agents, run: skill-registry agents",
    errors.SkillGone: "To restore it, run: skill-registry restore {name}",
    errors.SkillInTrash: "To restore it, run: skill-registry restore {name}",
    errors.SkillNotDeleted: (
        "To list its revisions, run: skill-registry history {name}. To restore one, run: "
        "skill-registry restore {name} --revision N"
    ),
    errors.ChangeNotUndone: _not_undone,
    errors.FolderPulled: _folder_pulled,
    errors.RootMissing: "Mount its file system, or create it: mkdir -p {path}",
    errors.TokenNotFound: "To list all tokens, run: skill-registry token list",
    errors.NotInTrash: "To list the deleted skills, run: skill-registry trash list",
    errors.SkillMissing: (
        "To update the registry, run: skill-registry sync. To restore the skill, run: "
        "skill-registry restore NAME"
    ),
    errors.FileTooLarge: "To raise the limit, change the setting limits.document_bytes.",
    errors.FileNotFoundInSkill: "To list its files, run: skill-registry show NAME --files",
    errors.SkillExists: _skill_exists,
    errors.SourceExists: (
        "To rename the existing source, run: skill-registry source update {name} --name NEW"
    ),
    errors.SourceNotFound: (
        "To list the sources, run: skill-registry source list. To register a folder, run: "
        "skill-registry sync FOLDER"
    ),
    errors.SkillHeld: _skill_held,
    errors.VersionYanked: "To list its versions, run: skill-registry version list {name}",
    errors.VersionNotFound: _version_not_found,
    errors.VersionExists: "To list its versions, run: skill-registry version list {name}",
    errors.VersionNotStored: "To list its versions, run: skill-registry version list {name}",
    errors.SeveralSkills: _several_skills,
    errors.SourceKindUnusable: "Check the setting source_kinds.",
    errors.SourceNotAdopted: "To sync it from now on, run: skill-registry source adopt {name}",
    errors.SourceNotYours: "Ask the owner. As an admin, add --as-admin.",
    errors.AdminNeeded: (
        "To see how to make an admin, run: skill-registry db grant ROLE --admin --print"
    ),
    errors.HostTaken: (
        "Set another name for this machine with SKILL_REGISTRY_HOST or the setting host. "
        "If that role is no longer used, an admin can free its name: skill-registry db revoke ROLE"
    ),
    errors.RoleNotFound: "To create it, run on the server: createuser {name}",
    errors.RightMissing: _right_missing,
    errors.LockMissing: (
        "To install a skill, run: skill-registry pull NAME --agent AGENT (or --to DIR)"
    ),
    errors.NotPulled: (
        "To install a skill, run: skill-registry pull NAME --agent AGENT (or --to DIR)"
    ),
    errors.LockNotMet: "To see the differences, run: skill-registry pull --check",
    errors.OwnFileUnusable: (
        "Make it private (chmod 600; 700 for a folder). Or move it away: a new file is "
        "created, and trash and undo records signed with the old one are ignored."
    ),
    errors.ApproverNeeded: (
        "An admin can give it the right: skill-registry db grant ROLE --approve"
    ),
    errors.AddressInvalid: _at_skill,
    errors.ArchiveRefused: _archive_refused,
    errors.RemoteInvalid: _at_skill,
    errors.RemoteUnreachable: _at_skill,
    errors.RemoteRefused: lambda error: _at_skill(error) or _remote_refused(error),
    errors.PersonalityNotFound: _personality,
    errors.TrustOutdated: (
        "To see the new files and trust them, run: skill-registry source trust {name}"
    ),
    errors.SyncRunning: "To wait until it ends, add --wait.",
    errors.DatabaseMissing: _database_missing,
    errors.DatabaseRefused: _database_refused,
    errors.DatabaseBehind: "To upgrade it for all users, run: skill-registry db upgrade",
    errors.DatabaseTooNew: (
        "To upgrade the program, run in a new checkout of it: pip install --upgrade ."
    ),
    errors.DatabaseTooOld: (
        "Your skills are still in their folders. To read them into a new database, run: "
        "skill-registry --db NEW sync FOLDER... (the history and usage counts stay in the "
        "old one)"
    ),
    errors.DatabaseCorrupt: (
        "The skills on disk are not affected. Move the database file and its -wal and -shm "
        "files away. Then restore your last backup (skill-registry db restore FILE), or create a "
        "new database without history, usage counts and source scopes: "
        "skill-registry sync FOLDER..."
    ),
}


_WITH_ARGUMENTS: Final[dict[type[errors.RegistryError], Callable[[Sequence[str]], str]]] = {
    errors.LockEdited: _despite_edits,
    errors.SkillChangedOnDisk: _edited_by_hand,
    errors.SourceReadOnly: _read_only,
}
"""Hints that depend on the command line, by the class of the error."""


def hint(error: errors.RegistryError, arguments: Sequence[str] = ()) -> str:
    """Return the hint for an error; "" if its message is enough.

    ``arguments`` is the command line; some hints repeat it with another option.
    """
    notes = " ".join(getattr(error, "__notes__", ()))
    if isinstance(error, errors.SourceUnclear):  # its note is for Python
        notes = _source_unclear(error, arguments)
    if notes or type(error) in _WITH_ARGUMENTS:
        return notes or _WITH_ARGUMENTS[type(error)](arguments)
    if isinstance(error, errors.LockMissing | errors.NotPulled) and (
        way := _for_all_projects(error, arguments) or _installed(error, arguments)
    ):
        return way
    if type(error) in {errors.SourceElsewhere, errors.SourceNotYours} and "pull" in arguments:
        source = quote(escape.line(error.facts["name"]))
        names = f"skill-registry list --all --source {source}"
        return f"You can install its skills by name. To list them, run: {names}"
    found = _HINTS.get(type(error), "")
    if not isinstance(found, str):
        return found(error)
    # Quote the error's attributes for a shell.
    return found.format_map({key: quote(escape.line(str(one))) for key, one in error.facts.items()})


def unsynced(registry: "SkillRegistry", name: str) -> str:
    """Explain why the skill folder ``name`` can't be found by this name.

    Returns "" if there is no such folder. Raises the errors of `SkillRegistry.why`.
    """
    for path in _places(registry, name):
        if not any(os.path.lexists(os.path.join(path, document)) for document in DOCUMENT_NAMES):
            continue
        found = registry.why(path)[0]
        if found.ref is None:
            reason = found.reasons[0]
            if lock_of(real_path(path)) is not None:
                way = f"skill-registry diff {quote(path)} --upstream"
                return f"{path} exists; 'pull' installed it. To compare it, run: {way}"
            said = "it is not synced yet" if reason.code == "not-synced" else reason.message
            return f"{path} exists, but {said}" + (f"; {reason.fix}" if reason.fix else ".")
        if os.path.realpath(path) != path:
            return f"{path} is a link to the skill {quoted(found.ref)}."
    return ""


def trashed(registry: "SkillRegistry", name: str) -> str:
    """Return how to restore a skill from the trash if the database doesn't have it, else ""."""
    for one in registry.trash():
        if name in {one.name, f"{one.source}/{one.folder}"}:
            how = f"To restore it, run: skill-registry restore {one.id}"
            return f"A skill of that name is in the trash (deleted {one.deleted_at}). {how}"
    return ""


def _places(registry: "SkillRegistry", name: str) -> Iterator[str]:
    """Yield the folders that a name may mean: as a path, or in a source of this machine."""
    yield os.path.abspath(os.path.expanduser(name))
    for source in registry.own_sources():
        yield os.path.normpath(os.path.join(source.path, name))
        if name.startswith(f"{source.name}/"):
            yield os.path.normpath(os.path.join(source.path, name.removeprefix(f"{source.name}/")))
