"""`skill-registry source`."""

import os
import shlex
from collections.abc import Collection, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

import click

from registry.cli import completion, escape, formatting, options
from registry.cli.findings import report_security
from registry.cli.group import Group, session_command
from registry.cli.listing import Column, emit
from registry.cli.progress import waiting
from registry.cli.prompts import confirm, confirm_addresses
from registry.cli.session import Session, Status
from registry.cli.source_hints import report_nesting, report_newer_tags
from registry.model import SCOPES, Remote, Source

if TYPE_CHECKING:
    from registry.sync.sources import Discovered


def place_of(source: Source) -> str:
    """Return the path of a local source, or the address of a remote source, escaped."""
    remote = source.remote
    return escape.line(source.path if remote is None else _address(remote))


def _address(remote: Remote) -> str:
    return formatting.address(remote.url, remote.ref, remote.part, remote.only)


def _commit(source: Source) -> str | None:
    remote = source.remote
    return formatting.commit(remote.version) if remote and remote.version else None


_ANSWERED: Final = frozenset({"outdated", "current"})


def _behind(source: Source, here: Collection[int]) -> str | None:
    if source.remote is None or source.id not in here:
        return None
    return {True: "outdated", False: "current", None: "unreachable"}[source.remote.behind]


def _differ(texts: AbstractSet[str]) -> bool:
    return len(texts) > 1


def asked_columns(here: Collection[int]) -> Sequence[Column[Source]]:
    """Return the columns of a list of sources after their remote addresses were queried."""
    return [
        *SOURCES[:2],
        Column("REMOTE", lambda one: _behind(one, here), only="table"),
        *SOURCES[2:],
        Column("ADDRESS", lambda one: _address(one.remote) if one.remote else "-", only="plain"),
        Column("REMOTE", lambda one: _behind(one, here) or "-", only="plain"),
    ]


def _result(source: Source) -> str | None:
    if not source.enabled:
        return "off"
    return None if source.last_result == "ok" else source.last_result


SOURCES: Final[Sequence[Column[Source]]] = (
    Column("SOURCE", lambda source: source.name, style="bold"),
    Column("SCOPE", lambda source: source.scope, drop=1),
    Column("PRIORITY", lambda source: str(source.priority or ""), only="table", right=True, drop=5),
    Column("SKILLS", lambda source: source.skills, right=True, drop=2),
    Column("HOST", lambda source: source.host, only="table", drop=3),
    Column("OWNER", lambda one: one.owner, only="table", drop=3, when=_differ),
    Column("TEAM", lambda one: one.team, only="table", drop=3, when=_differ),
    Column(
        "PRECEDENCE",
        lambda one: str(one.precedence or ""),
        only="table",
        right=True,
        drop=3,
        when=_differ,
    ),
    Column(
        "SYNCED", lambda source: source.last_sync_at or "never", only="table", time=True, drop=4
    ),
    Column("RESULT", _result, only="table", drop=4),
    Column("COMMIT", _commit, only="table", drop=4),
    Column("FOLDER", place_of, only="table", flexible=True, cut="start"),
    Column("FOLDER", lambda source: source.path, only="plain"),
)

CLIENT_LINES: Final[Sequence[Column[Mapping[str, str]]]] = (
    Column("SOURCE", lambda one: one["source"], style="bold"),
    Column("CLIENT", lambda one: one["client"]),
    Column("COMMAND", lambda one: one["command"], max_width=1000, flexible=True),
)

DISCOVERED: Final[Sequence[Column["Discovered"]]] = (
    Column("FOLDER", lambda one: one.path, max_width=1000, cut="start"),
    Column("SCOPE", lambda one: one.scope, drop=2),
    Column("SOURCE", lambda one: one.source or "(new)", only="table", drop=1),
    Column("SOURCE", lambda one: one.source or "-", only="plain"),
)


def _client_lines(sources: Sequence[Source], base: str) -> Iterator[Mapping[str, str]]:
    from registry.publish.git.clients import lines, repository_url

    for one in sources:
        url = repository_url(base.rstrip("/"), f"source/{quote(one.name, safe='')}")
        for client, line in lines(url):
            yield {"source": one.name, "client": client, "command": line}


def of_others(sources: Sequence[Source]) -> str:
    """Return a note that other roles own sources of this host, with the command for admins."""
    names = [escape.line(one.name) for one in sources]
    owners = escape.line(formatting.listed(sorted({one.owner or "" for one in sources})))
    return (
        f"Not synced: {formatting.listed(names)}, owned by the role {owners}. An admin can "
        f"take over with: skill-registry source adopt {shlex.join(names)} --as-admin"
    )


@click.group(
    cls=Group,
    examples=(
        "skill-registry source discover",
        "skill-registry source add ~/work/skills --scope team --name work",
        "skill-registry source add github:owner/repo#v2",
        "skill-registry source list",
    ),
)
def command() -> None:
    """Register, list, change and remove sources of skills.

    A source is a registered folder or address. If two sources have a skill of the same name, the
    stronger scope wins: project, team, personal, community, bundled; within a scope the higher
    priority. On a server this rule covers the sources of one owner. Between owners the name is
    ambiguous, unless an admin has ranked one of the sources first.
    """


@session_command(
    "skill-registry source list",
    "skill-registry source list --json | jq -r '.[].path'",
    "skill-registry source list --remote         # and which are outdated",
    "skill-registry source list --clients https://skills.example.org",
    group=command,
)
@click.option(
    "--remote", is_flag=True, help="Ask the remote sources whether they have a newer version."
)
@click.option(
    "--clients",
    metavar="URL",
    help=(
        "Show how agents' own clients install each of these sources from the server at this URL, "
        "if it serves this registry."
    ),
)
@options.format_options
def list_(session: Session, *, remote: bool, clients: str | None) -> None:
    """List the sources, the strongest first.

    In a pipe each line is the name, the scope, the number of skills and the path, with tabs
    between. With --remote the address and the state (outdated, current or unreachable)
    follow; a hyphen means that the source has no such value. If a source is pinned to a version's
    tag, newer tags are printed as well. With --clients each line is the name,
    a client and its command.
    """
    if remote and clients is not None:
        raise click.UsageError("--remote and --clients can't be combined.")
    sources = session.registry.sources()
    columns = SOURCES
    if clients is not None:
        if not options.PUBLIC.fullmatch(clients):
            message = "--clients must be the URL of a server, such as https://skills.example.org."
            raise click.UsageError(message)
        emit(session, list(_client_lines(sources, clients)), CLIENT_LINES, to_record=dict)
        return
    if remote:
        with waiting(session.console, "asking"):
            sources = session.registry.sources_asked(sources)
        here = {one.id for one in session.registry.own_sources()}
        columns = asked_columns(here)
    emit(
        session,
        sources,
        columns,
        nothing=(
            "No sources are registered yet. To register a folder and read its skills, run: "
            "skill-registry sync FOLDER\n"
            "To find the skill folders of agents, run: skill-registry source discover"
        ),
    )
    if remote:
        report_newer_tags(session, [one for one in sources if _behind(one, here) in _ANSWERED])


@session_command(
    "skill-registry source add ~/.claude/skills",
    "skill-registry source add ~/work/skills --scope team --priority 10",
    "skill-registry source add github:owner/repo",
    "skill-registry source add https://example.com/x.git#v2",
    group=command,
    starts_new=True,
)
@click.argument("place", metavar="FOLDER|ADDRESS")
@click.option(
    "--scope",
    type=click.Choice(SCOPES),
    help="The scope (default: personal for a folder, community for an address).",
)
@click.option("--name", metavar="NAME", help="The name (default: taken from the path or address).")
@click.option(
    "--priority",
    metavar="N",
    type=int,
    default=0,
    show_default=True,
    help="The priority within the scope; the higher number wins.",
)
@options.yes_fetch_option
@options.json_option
def add(session: Session, /, *, place: str, yes: bool, **given: Any) -> None:
    """Register a folder or an address, without reading its skills yet.

    ADDRESS is owner/repo (on GitHub), owner/repo/folder, owner/repo@skill, or the URL of a git
    repository, of an archive (.zip, .tar.gz, .skill), of a site that offers skills, or of a ClawHub
    registry. #REF pins a repository to a branch, a tag or a commit. If you give the short form
    owner/repo, the full address is shown for you to confirm; github:owner/repo needs no
    confirmation. The address is fetched into a read-only checkout below the data folder. The next
    sync reads its skills, and each sync fetches new versions.
    """
    confirm_addresses(session, [place], yes=yes)
    report_nesting(session, [place])
    with waiting(session.console, "fetching"):
        source = session.registry.add_source(place, **given)
    shown = escape.line(source.name)
    done = f"Registered the source {shown} ({source.scope}): {place_of(source)}"
    session.answer(source, [done])
    if not session.as_json:
        session.console.note(f"To read its skills, run: skill-registry sync {shlex.quote(shown)}")


@session_command(
    "skill-registry source adopt work",
    "skill-registry source adopt work personal --yes",
    group=command,
)
@click.argument(
    "names", nargs=-1, required=True, metavar="NAME...", shell_complete=completion.sources
)
@options.yes_option
@options.as_admin_option
@options.json_option
def adopt(session: Session, *, names: tuple[str, ...], yes: bool, as_admin: bool) -> None:
    """Accept sources of this host as yours, so that they are synced.

    On a server, any user with write access can register a folder under this host's name, and your
    next sync would upload it. Therefore sync skips sources that you did not add on this machine,
    until you adopt them. This also holds for sources that you added when the server had another
    address. In a SQLite file, only a remote source from another machine needs it: it gets a new
    checkout. With --as-admin you become the owner of another role's
    source.
    """
    from registry.sync.sources import find

    for source in [find(session.registry.core, name) for name in names]:
        if not yes:
            shown, path = escape.line(source.name), escape.line(source.path)
            session.console.note(f"The source {shown} is {path} ({source.scope}).")
    them = "them" if names[1:] else "it"
    confirm(session, f"Read, sync and upload {them}?", yes=yes)
    adopted = [session.registry.adopt_source(name, as_admin=as_admin) for name in names]
    done = (
        f"Adopted the source {escape.line(one.name)} ({one.scope}): {escape.line(one.path)}"
        for one in adopted
    )
    session.answer(adopted if names[1:] else adopted[0], done)


@session_command(
    "skill-registry source update work --scope team --priority 10",
    "skill-registry source update office --ref v2        # fetch and list that version",
    "skill-registry source update work --folder ~/new/skills    # you moved the folder",
    group=command,
)
@click.argument("name", shell_complete=completion.sources)
@click.option("--scope", type=click.Choice(SCOPES), help="The new scope.")
@click.option(
    "--priority",
    metavar="N",
    type=int,
    help="The new priority. With --as-admin it also counts between owners.",
)
@click.option("--name", "new_name", metavar="NEW", help="The new name.")
@click.option("--folder", metavar="DIR", help="The new folder. The skills keep their history.")
@click.option(
    "--ref",
    metavar="REF",
    help="The branch, tag or commit to pin the source to; empty to unpin it.",
)
@click.option(
    "--team", metavar="T", help="The team that sees the source, on a server; empty for all users."
)
@click.option(
    "--owner",
    metavar="ROLE",
    help="The role that becomes the owner, on a server. Only an admin can set it.",
)
@click.option(
    "--review",
    type=click.Choice(("required", "none")),
    help="Whether another person must approve what is published, or changed through tools.",
)
@options.as_admin_option
@options.json_option
def update(
    session: Session, /, *, name: str, as_admin: bool, review: str | None, **change: Any
) -> None:
    """Change a source's name, scope, priority, folder, pinned version, team, owner or review.

    With --review required, skills that are published into the source, or changed through tools,
    wait as proposals ("proposal list"). Edits made by hand in the folder are not held back; "check"
    reports them as "unreviewed".

    With --ref, the files of that branch, tag or commit are fetched and synced at once. If they
    can't be fetched, nothing changes.
    """
    from registry.cli.progress import SyncProgress
    from registry.cli.sync_messages import MAX_SHOWN, draw_report, report_sources
    from registry.remotes.sources import update as update_source

    change["review"] = None if review is None else review == "required"
    if all(one is None for one in change.values()):
        raise click.UsageError(
            "Nothing to change: give --scope, --priority, --name, --folder, --ref, --team, "
            "--owner or --review."
        )
    core = session.registry.core
    with SyncProgress(session.console) as progress:
        source, report = update_source(core, name, as_admin=as_admin, progress=progress, **change)
    shown = escape.line(source.name)
    facts = [source.scope, f"priority {source.priority}"]
    if source.review or review:
        facts.append("under review" if source.review else "not under review")
    done = f"Changed the source {shown} ({', '.join(facts)}): {place_of(source)}"
    limit = None if session.verbose else MAX_SHOWN
    changes = () if report is None else draw_report(session.console, report, limit)
    session.answer(source, [done, *changes])
    if review == "required" and not session.as_json:
        session.console.note(
            "Skills that are published, or changed through tools, wait as proposals from now on. "
            "To list them, run: skill-registry proposal list; to accept one, run: skill-registry "
            "proposal approve ID"
        )
    if change["folder"] is not None and not session.as_json:
        if source.remote is None and not os.listdir(source.path):
            way = f"restore --source {shlex.quote(shown)} --missing"
            session.console.note(f"To write its skills to this folder, run: skill-registry {way}")
        else:
            session.console.note(f"To read it, run: skill-registry sync {shlex.quote(shown)}")
    if report is not None:
        report_sources(session, report, hints=not session.as_json)
        if not report.complete:
            raise click.exceptions.Exit(Status.FAILED)


@session_command(
    "skill-registry source trust office mailer       # only this skill",
    "skill-registry source trust office",
    "skill-registry source trust office --revoke     # quarantine them again",
    group=command,
)
@click.argument("name", shell_complete=completion.sources)
@click.argument("only", nargs=-1, metavar="[SKILL]...")
@click.option("--revoke", is_flag=True, help="Quarantine the skills with security errors again.")
@options.yes_option
@options.as_admin_option
@options.json_option
def trust(
    session: Session, *, name: str, only: Sequence[str], revoke: bool, yes: bool, as_admin: bool
) -> None:
    """Trust the named quarantined skills of a source, or all, so that agents see them.

    Skills of a remote source are quarantined if they have security errors. This command prints the
    errors and asks before it trusts the skills; without a terminal it requires --yes. Trust covers
    exactly the files whose errors were printed. If a later version has other files and security
    errors, it is quarantined again.
    """
    from registry.db.read.findings import security_findings
    from registry.sync.sources import find

    core = session.registry.core
    source = find(core, name).name
    asked = [f"{source}/{one.removeprefix(f'{source}/')}" for one in only]
    refs = {session.registry.resolve(one).ref for one in asked} if only else None
    found = [
        one
        for one in security_findings(core.reader, source, refs)
        if one.severity == "error" and one.quarantined != revoke
    ]
    for one in found:
        report_security(session.console, one.ref, one)
    count = formatting.count(len({one.ref for one in found}), "skill")
    if found and not revoke:
        confirm(session, f"Trust {count} with the errors above?", yes=yes)
    changed = session.registry.trust_source(
        name,
        revoke=revoke,
        as_admin=as_admin,
        shown=None if revoke else {one.tree_hash for one in found},
        refs=refs,
    )
    are = "is" if changed == 1 else "are"
    done = (
        f"{formatting.count(changed, 'skill')} {are} {'quarantined' if revoke else 'listed'} now."
    )
    if not changed:
        done = "No skill was trusted." if revoke else "No skill was quarantined."
    key = "held" if revoke else "trusted"
    session.answer({key: changed}, [done])
    if revoke and changed:
        session.console.note(
            "Copies that were installed before are not removed. To remove one, run: "
            "skill-registry pull --remove NAME"
        )


@session_command("skill-registry source remove work", group=command)
@click.argument("name", shell_complete=completion.sources)
@options.as_admin_option
@options.json_option
def remove(session: Session, *, name: str, as_admin: bool) -> None:
    """Remove a source and its skills from the registry.

    The folder and its skills stay on disk; only the checkout of a remote source is deleted. NAME is
    the source's name or path. On a server only the owner can do this, on the source's host.
    """
    source = session.registry.remove_source(name, as_admin=as_admin)
    name, path = escape.line(source.name), escape.line(source.path)
    held = formatting.count(source.skills, "skill")
    rest = f"{path} is not changed."
    if source.remote is not None and source.host != session.registry.core.host:
        rest = f"its checkout on {escape.line(source.host)} stays."
    elif source.remote is not None:
        rest = "its checkout is removed."
        if os.path.lexists(source.path):
            rest = f"its checkout could not be removed: {path}"
    done = f"Removed the source {name} and its {held}; {rest}"
    session.answer(source, [done])


@session_command(
    "skill-registry source discover",
    "skill-registry source discover ~/work/project",
    "skill-registry source discover --register && skill-registry sync",
    group=command,
    starts_new=True,
)
@click.argument("project", type=click.Path(), default=".", required=False)
@click.option("--register", is_flag=True, help="Register the folders that aren't sources yet.")
@options.format_options
def discover(session: Session, *, project: str, register: bool) -> None:
    """Find the well-known skill folders of agents on this machine.

    The command looks below your home folder and below PROJECT (default: the current folder). In a
    pipe each line is a path, the scope, and the source or a hyphen.
    """
    home = os.path.expanduser("~")
    found = session.registry.discover(home, os.path.expanduser(project))
    if register:
        for one in found:
            if one.source is None:
                name = one.suggested_name
                session.registry.add_source(one.path, name=name, scope=one.scope)
        new = sum(one.source is None for one in found)
        found = session.registry.discover(home, os.path.expanduser(project))
        if new:
            message = f"Registered {formatting.count(new, 'source')}. To read the skills, run:"
            session.console.note(f"{message} skill-registry sync")
    emit(session, found, DISCOVERED)
    left = [one for one in found if one.source is None]
    if not found:
        session.console.note(
            "No well-known folder was found. To register any folder, run: skill-registry sync "
            "FOLDER"
        )
    elif left and session.is_for_people:
        session.console.note(
            "To register all new folders, run: skill-registry source discover --register\n"
            "Or register and read them one by one:"
        )
        for one in left:
            scope = "" if one.scope == "personal" else f" --scope {one.scope}"
            path = shlex.quote(one.path)
            session.console.note(f"  skill-registry sync {escape.line(path)}{scope}")
