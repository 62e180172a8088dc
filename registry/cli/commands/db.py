"""`skill-registry db`: commands for the database itself."""

import os
import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final

import click

from registry.cli import escape, formatting, options
from registry.cli.group import Group, session_command
from registry.cli.listing import Column, draw_facts, emit
from registry.cli.progress import waiting
from registry.cli.prompts import confirm
from registry.cli.session import Session, Status
from registry.errors import DatabaseBehind, UsageProblem
from registry.model import record

if TYPE_CHECKING:
    from registry.db.interface import Backend, DatabaseInfo
    from registry.db.postgres.rights import Right, RoleRights
    from registry.db.read.access import AuditRecord


@click.group(
    cls=Group,
    examples=("skill-registry db info", "skill-registry db backup ~/registry-copy.db"),
)
def command() -> None:
    """Check, back up, copy and upgrade the database; manage rights on a server.

    "skill-registry sync FOLDER..." fills a new database with the skills on disk. Only a backup has
    the rest: names, scopes and priorities of sources, the history of skills with its files,
    creation times that no SKILL.md states, and usage counts.
    """


@session_command(
    "skill-registry db info",
    "skill-registry db info --json | jq -r .path",
    group=command,
    starts_new=True,
)
@options.json_option
def info(session: Session) -> None:
    """Print the path, size and version of the database."""
    facts = session.registry.database_info()
    session.answer(facts, draw_facts(session.console, _facts(facts)))
    _report_open(session)


@session_command("skill-registry db check", group=command)
@options.json_option
def check(session: Session) -> None:
    """Look for damage, and for stored files that don't match their hash.

    Exit status: 3 if the database is damaged; 1 if a stored file doesn't match. To repair the
    stored files of skills on this machine, run "sync --verify".
    """
    from registry.db.read.corruption import hash_mismatches
    from registry.db.read.sources import is_admin

    with waiting(session.console, "checking"):
        registry = session.registry
        damage = registry.check_database(contents=False)
        problems = damage or list(hash_mismatches(registry.core.reader, session.settings.limits))
    session.answer(
        {"path": registry.path, "problems": problems},
        map(escape.line, problems or ["The database is sound."]),
    )
    _report_open(session)
    if damage:
        session.console.note(
            "The skills on disk are not affected. Move the damaged database away and restore your "
            "last backup:\n"
            "skill-registry db restore FILE. Or create a new database, without history and usage "
            "counts:\n"
            "skill-registry sync FOLDER..."
        )
        raise click.exceptions.Exit(Status.DATABASE)
    if problems:
        session.console.note(
            "To repair the stored files that are still on disk, run: skill-registry sync "
            "--verify\n"
            "All others are only in your last backup."
        )
        if registry.core.host and not is_admin(registry.core.reader):
            session.console.note(
                "Stored files are shared by skills, so only an admin can repair them, from a "
                "source that the\n"
                "admin owns: skill-registry source adopt NAME --as-admin"
            )
        raise click.exceptions.Exit(Status.FAILED)


def _report_open(session: Session) -> None:
    """Warn if other users may write to the data folder, a database file, or its folder."""
    from registry.disk.private import open_to_others
    from registry.settings import data_folder

    core = session.registry.core
    paths = [str(data_folder())]
    if not core.host:
        paths += [os.path.dirname(core.backend.path), core.backend.path]
    for path in open_to_others(paths):
        shown = escape.line(path)
        close = f"chmod go-w {shlex.quote(shown)}"
        session.console.note(
            f"Other users can write to {shown}. To prevent it, run: {close}", "yellow"
        )


@session_command(
    "skill-registry db backup ~/registry-copy.db",
    "skill-registry db backup ~/registry-copy.db --overwrite",
    group=command,
)
@click.argument("file", type=click.Path())
@click.option("--overwrite", is_flag=True, help="Replace FILE if it exists.")
def backup(session: Session, *, file: str, overwrite: bool) -> None:
    """Copy the database to FILE.

    The copy is a consistent SQLite file, even if the database is in use.

    "db restore FILE" restores it, also on another machine. To restore it to an empty server:
    skill-registry db copy FILE URL.
    """
    with waiting(session.console, "copying"):
        try:
            session.registry.backup(file, overwrite=overwrite)
        except UsageProblem as error:
            if os.path.isfile(os.path.expanduser(file)) and not overwrite:
                error.add_note("To replace it, add --overwrite.")
            raise
    session.console.write([f"Copied the database to {escape.line(file)}"])
    session.console.note(
        "It has the skills' stored files, but not the settings file, state.key and lock files.",
        "dim",
    )


@session_command(
    "skill-registry db restore ~/registry-copy.db",
    "skill-registry --db ~/new.db db restore ~/registry-copy.db",
    "skill-registry db restore ~/registry-copy.db --overwrite",
    group=command,
    starts_new=True,
)
@click.argument("file", type=click.Path())
@click.option(
    "--overwrite",
    is_flag=True,
    help="Replace the registry in the database. It is first copied to a file beside it.",
)
@options.json_option
def restore(session: Session, *, file: str, overwrite: bool) -> None:
    """Restore a backup into the database, also on another machine.

    FILE is a file from "db backup". Remote sources without a checkout on this machine get a new
    one, and the next sync fetches their skills. If the folder of a source doesn't exist here, the
    registry keeps its skills, and the command prints how to name the new folder. The settings file,
    "state.key" and installed skills are not in a backup.
    """
    registry = session.registry
    with waiting(session.console, "restoring"):
        saved = registry.restore_backup(file, overwrite=overwrite)
        info, sources = registry.database_info(), registry.own_sources()
    path = escape.line(info.path)
    counts = f"{formatting.count(info.sources, 'source')}, {formatting.count(info.skills, 'skill')}"
    session.answer(
        {"path": info.path, "sources": info.sources, "skills": info.skills, "replaced": saved},
        [f"Restored {path} from {escape.line(file)} ({counts})"],
    )
    if saved is not None:
        session.console.note(f"The registry that was there is now in {escape.line(saved)}")
    for one in sources:
        if one.remote is None and not os.path.isdir(one.path):
            name, found = escape.line(one.name), _folder_here(one.path)
            then = f"skill-registry source update {shlex.quote(name)} --folder {found or 'DIR'}"
            text = (
                f"{name}: there is no folder {escape.line(one.path)} here, so its skills stay as "
                f"they are in the backup. If the folder has another place, run: {then}"
            )
            if found is None:
                text += (
                    "\nTo write its skills to a new folder, create the folder, run this command, "
                    f"then: skill-registry restore --source {shlex.quote(name)} --missing"
                )
            session.console.note(text, "yellow")
    session.console.note(
        "To read the folders and fetch the remote sources, run: skill-registry sync"
    )


def _folder_here(path: str) -> str | None:
    """Return the folder below the home folder that ends as ``path`` does, quoted for a command."""
    parts = path.split(os.sep)
    for index in range(1, len(parts)):
        found = os.path.join(os.path.expanduser("~"), *parts[index:])
        if os.path.isdir(found):
            return shlex.quote(escape.line(found))
    return None


@session_command(
    "skill-registry db copy ~/skills.db postgresql+psycopg://registry@db.example.org/skills",
    "skill-registry db copy postgresql+psycopg://registry@db.example.org/skills copy.db",
    group=command,
)
@click.argument("source", metavar="FROM")
@click.argument("target", metavar="TO")
@options.json_option
def copy(session: Session, *, source: str, target: str) -> None:
    """Copy a registry from one database into another, empty one.

    FROM and TO are files or addresses of a PostgreSQL server. Skills, findings, revisions, files
    and usage counts are copied, all or nothing. Sources of this machine stay yours: after a copy to
    a server they are adopted, and the next sync there reads their folders. On a server the command
    prints the role that owns the tables; members of that role are admins.
    """
    from contextlib import closing

    from registry.cli.commands.source import of_others, place_of
    from registry.cli.progress import SyncProgress
    from registry.db.adopted import adopt_copied
    from registry.db.copy import copy as copy_all
    from registry.db.open import open_backend
    from registry.db.read.access import all_tokens
    from registry.db.read.sources import list_sources

    settings = session.settings
    with (
        closing(open_backend(source, settings)) as before,
        closing(open_backend(target, settings)) as after,
        SyncProgress(session.console) as progress,
    ):
        if after.host:
            _report_owner(session, after)
        copied = copy_all(before, after, progress)
        path, tokens = after.path, len(all_tokens(before.reader))
        adopted = adopt_copied(before, after)
        others = (
            []
            if not after.host
            else [
                one
                for one in list_sources(after.reader, counted=False)
                if one.host == after.host and not one.own
            ]
        )
    made = record(copied)
    counts = ", ".join(
        formatting.count(number, _COPIED.get(what, what.removesuffix("s")))
        for what, number in made.items()
    )
    session.answer({"path": path, **made}, [f"Copied {counts} to {escape.line(path)}"])
    if adopted:
        names = ", ".join(f"{escape.line(one.name)} ({place_of(one)})" for one in adopted)
        session.console.note(f"Adopted for the next sync: {names}.")
    if others:
        session.console.note(of_others(others), "yellow")
    if tokens:
        were = "was" if tokens == 1 else "were"
        session.console.note(
            f"{formatting.count(tokens, 'token')} {were} not copied. To create a new token, run: "
            "skill-registry token create NAME",
            "yellow",
        )
    if target != session.db and not session.as_json:
        session.console.note(
            "Commands still use the database that they used before. To make them use the copy, "
            "write this into your shell's profile, for example ~/.profile:\n"
            f"export SKILL_REGISTRY_DB={shlex.quote(escape.line(path))}"
        )


_COPIED: Final = {"contents": "stored file"}


def _report_owner(session: Session, backend: "Backend") -> None:
    """Print which role owns the tables on a server.

    If there are no tables, which role will own them.
    """
    from registry.db.postgres.rights import owner_of_tables

    name, exist = owner_of_tables(backend.reader.rows)
    belong = "belong" if exist else "will belong"
    session.console.note(
        f"The tables {belong} to the role {escape.line(name)}; this role and its members "
        "are admins."
    )


@session_command("skill-registry db upgrade", group=command, starts_new=True)
def upgrade(session: Session) -> None:
    """Create the database, or upgrade it to the newest schema.

    A SQLite file is upgraded by every command, after a backup of the older file. A server's schema
    is only upgraded by this command, because older programs can't use it afterwards.
    """
    from registry.db.read.sources import DECIDED_FROM

    try:
        before = session.registry.database_info().revision
    except DatabaseBehind as error:
        before = error.facts["revision"]
        session.upgrades = True
    registry = session.registry
    registry.create_database()
    info = registry.database_info()
    path, revision = escape.line(info.path), info.revision
    if before is None:
        done = f"Created the database {path} (schema {revision})."
    elif before != revision:
        done = f"Upgraded the database {path} from schema {before} to {revision}."
    else:
        done = f"The database {path} is up to date (schema {revision})."
    session.console.write([done])
    if before is not None and before < DECIDED_FROM:
        _list_undecided(session)


def _list_undecided(session: Session) -> None:
    """List sources that lost their precedence over other owners' sources, and how to restore it."""
    from registry.db.read.sources import undecided

    found = list(undecided(session.registry.core.reader))
    if not found:
        return
    message = (
        "Scope and priority no longer apply between owners. These sources were ranked "
        "before those of"
    )
    session.console.write([f"{message} others.", "To restore that order, an admin can run:"])
    for one in found:
        shown = escape.line(one.name)
        facts = f"{one.scope}, priority {one.priority}, of {escape.line(one.owner)}"
        fix = f"source update {shlex.quote(shown)} --priority {one.precedence} --as-admin"
        session.console.write([f"  skill-registry {fix}    # {facts}"])


@session_command(
    "skill-registry db prune", "skill-registry db prune --keep 5 --before 90d", group=command
)
@click.option(
    "--keep",
    metavar="N",
    type=click.IntRange(min=0),
    default=20,
    show_default=True,
    help="Keep this many revisions of each skill, besides the current one.",
)
@options.when_option(
    "--before",
    help=(
        "Remove only revisions last seen before this time: 2026-01-31, a timestamp, or an "
        "age such as 90d."
    ),
)
@options.as_admin_option
def prune(session: Session, *, keep: int, before: str | None, as_admin: bool) -> None:
    """Remove old revisions of skills, and the files that only they use.

    The current version of each skill stays. The last revision of a removed skill also stays, unless
    it was removed before --before or emptied from the trash. On a server this covers your own
    sources on this host; with --as-admin all sources.
    """
    with waiting(session.console, "forgetting"):
        gone, freed = session.registry.prune(keep=keep, before=before, as_admin=as_admin)
    revisions, contents = formatting.count(gone, "revision"), formatting.count(freed, "stored file")
    session.console.write([f"Removed {revisions} and {contents}."])


@session_command(
    "skill-registry db grant alice --write",
    "skill-registry db grant readers --read --team red",
    "skill-registry db grant bob --admin --print      # for a DBA to run",
    group=command,
)
@click.argument("role")
@click.option("--read", is_flag=True, help="Allow reading.")
@click.option(
    "--write", is_flag=True, help="Allow reading, and adding sources that the role then owns."
)
@click.option("--admin", is_flag=True, help="Allow everything, including giving rights.")
@click.option("--approve", is_flag=True, help="Allow reading, and deciding on proposals.")
@click.option(
    "--team",
    metavar="T",
    help=(
        "Limit the role to sources of its teams (this one and those given before) and "
        "sources without a team."
    ),
)
@options.rights_options
def grant(
    session: Session,
    *,
    role: str,
    approve: bool,
    team: str | None,
    yes: bool,
    printed: bool,
    **given: bool,
) -> None:
    """Give a role of the server rights in the registry.

    The role must exist (CREATE ROLE); it is a user or a group. Name one of --read, --write and
    --admin; --read withdraws the right that --write gave. If you give only --approve, the other
    rights stay, and a grant without --approve withdraws it. --team adds to the teams given before;
    without --team the role sees all sources. No role can change another role's sources. The command
    shows what the role will see, asks, and prints the rights in force.
    """
    from registry.changes.rights import granting, right_now

    chosen = [may for may in RIGHTS if given[may]]
    if approve and not chosen:
        chosen = [right_now(session.registry.core, role)]
    if not chosen:
        raise click.UsageError("Missing right: give --read, --write, --approve or --admin.")
    if len(chosen) > 1:
        names = formatting.listed([f"--{may}" for may in chosen])
        why = "--write includes --read, and --admin includes both"
        raise click.UsageError(f"{names} can't be combined: {why}.")
    statements = granting(session.registry.core, role, chosen[0], team, approve=approve)
    _give(session, role, statements, yes=yes, printed=printed)


@session_command(
    "skill-registry db revoke alice", "skill-registry db revoke alice --print", group=command
)
@click.argument("role")
@options.rights_options
def revoke(session: Session, *, role: str, yes: bool, printed: bool) -> None:
    """Take all rights in the registry from a role of the server.

    The role keeps the rights of groups that it is a member of; they are printed. Its sources stay;
    an admin takes them over with "source adopt", or gives them to another role with "source update
    --owner". The names of its machines become free.
    """
    from registry.changes.rights import revoking

    _give(session, role, revoking(session.registry.core, role), yes=yes, printed=printed)


@session_command(
    "skill-registry db grants",
    "skill-registry db grants --json | jq -r '.[] | select(.teams == null) | .role'",
    group=command,
)
@options.format_options
def grants(session: Session) -> None:
    """List the rights of each role in the registry.

    THROUGH names the groups that a role is a member of and that have rights or teams. Only an admin
    sees this list. In a pipe each line is a role, its right, what it sees, what it writes, the
    groups, and "yes" if it approves.
    """
    from registry.changes.rights import listed

    emit(session, listed(session.registry.core), GRANTED)


def _give(
    session: Session, role: str, statements: Sequence[str], *, yes: bool, printed: bool
) -> None:
    """Change rights after a confirmation, or only print the SQL."""
    if printed:
        session.console.write(f"{escape.line(one)};" for one in statements)
        return
    from registry.changes.rights import carry_out

    core, note = session.registry.core, session.console.note
    before, after = carry_out(core, statements, rehearse=True)
    changed = (one for one in {**before, **after} if before.get(one) != after.get(one))
    roles = list(dict.fromkeys([role, *sorted(changed)]))
    if not yes:
        for one in roles:
            note(f"{_right(one, before, 'now sees')}.")
        for one in roles:
            note(f"After this {_right(one, after, 'sees')}.")
    if widened := [one for one in roles if _sees_more(before.get(one), after.get(one))]:
        names = escape.line(formatting.listed(widened))
        note(f"This widens what {names} see{'s' if len(widened) == 1 else ''}.", "yellow")
    confirm(session, "Make this change?", yes=yes)
    _, after = carry_out(core, statements)
    session.console.write(f"{_right(one, after, 'sees')}." for one in roles)


def _right(role: str, granted: "Mapping[str, RoleRights]", verb: str) -> str:
    found = granted.get(role)
    if found is None:
        return f"{escape.line(role)} {verb}: nothing; writes: nothing"
    through = f" (through {formatting.listed(found.through)})" if found.through else ""
    decides = "; decides on proposals" if found.approve and found.may != "admin" else ""
    message = f"{role} {verb}: {_sees(found)}; writes: {_WRITES[found.may]}{decides}{through}"
    return escape.line(message)


def _sees(granted: "RoleRights") -> str:
    if granted.teams is None:
        return "everything"
    return formatting.listed([*granted.teams, "sources without a team"])


def _sees_more(before: "RoleRights | None", after: "RoleRights | None") -> bool:
    """Tell whether a change of rights lets a role see more."""
    if before is None or before.teams is None or after is None:
        return False
    return after.teams is None or not set(after.teams) <= set(before.teams)


RIGHTS: Final[Sequence["Right"]] = ("read", "write", "admin")

_WRITES: Final = {
    "read": "nothing",
    "write": "own sources",
    "admin": "everything, and gives rights",
}

GRANTED: Final[Sequence[Column["RoleRights"]]] = (
    Column("ROLE", lambda one: one.role, style="bold"),
    Column("MAY", lambda one: one.may),
    Column("SEES", _sees, flexible=True),
    Column("WRITES", lambda one: _WRITES[one.may], drop=1),
    Column("APPROVES", lambda one: "yes" if one.approve else "", only="table", drop=3),
    Column("THROUGH", lambda one: ", ".join(one.through), only="table", drop=2),
    Column("THROUGH", lambda one: ", ".join(one.through) or "-", only="plain"),
    Column("APPROVES", lambda one: "yes" if one.approve else "-", only="plain"),
)


@session_command(
    "skill-registry db audit",
    "skill-registry db audit --since 7d --what source",
    "skill-registry db audit --limit 1000 --json",
    group=command,
)
@options.since_option
@click.option(
    "--what", metavar="WORD", help="Only changes with this word: source, version, published, token."
)
@options.last_option(help="Show the last N entries.")
@options.format_options
def audit(session: Session, *, since: str | None, what: str | None, limit: int) -> None:
    """List changes to sources, rights, trust, tokens and history, the latest first.

    A server records each change with the role that made it. The records can't be changed, and "db
    prune" keeps them. Admins see all records, other roles only their own. For changes to skills,
    see "history". In a pipe each line is a time, who made the change, the change and its
    subject.
    """
    from registry.db.read.access import audit_records

    reader = session.registry.core.reader
    found = audit_records(reader, limit, since=since or "", what=what or "")
    emit(session, found, AUDITED, nothing="No such records." if since or what else "")


def _detail(one: "AuditRecord") -> str:
    detail = one.detail if isinstance(one.detail, dict) else {}
    pairs = {key: value for key, value in detail.items() if value is not None}
    changed = (
        f"{key}: {' → '.join(map(str, value)) if isinstance(value, list) else value}"
        for key, value in pairs.items()
    )
    return ", ".join(changed)


def _who(one: "AuditRecord") -> str:
    """Return who made a change: the role on a server, else the name in the detail."""
    detail = one.detail if isinstance(one.detail, dict) else {}
    return one.role or str(detail.get("by") or detail.get("author") or formatting.LOCAL)


AUDITED: Final[Sequence[Column["AuditRecord"]]] = (
    Column("WHEN", lambda one: one.at, time=True),
    Column("WHO", _who),
    Column("HOST", lambda one: one.host, only="table", drop=3),
    Column("TOOL", lambda one: one.tool, only="table", drop=4),
    Column("WHAT", lambda one: one.what, style="bold"),
    Column("SUBJECT", lambda one: one.subject, only="table"),
    Column("SUBJECT", lambda one: one.subject or "-", only="plain"),
    Column("DETAIL", _detail, only="table", flexible=True, drop=5),
)


def _facts(info: "DatabaseInfo") -> Iterator[tuple[str, str]]:
    yield "Path", info.path
    if not info.exists:
        yield "State", "not created yet; the first sync creates it"
    yield "Size", formatting.size(info.bytes)
    yield "Schema", info.revision or "none"
    if info.server_version:
        yield "PostgreSQL", info.server_version
        yield "This host", info.host or "unknown"
    else:
        yield "Journal", info.journal_mode or "none"
        yield "SQLite", info.sqlite_version or "unknown"
        yield "File system", info.file_system or "unknown"
    yield "Sources", f"{info.sources:,}"
    yield "Skills", f"{info.skills:,}"
    if info.staged:
        size = formatting.size(info.staged_bytes)
        yield "Staged", f"{info.staged:,} versions of running or interrupted syncs ({size})"
