"""`skill-registry pull` and `agents`."""

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from itertools import chain
from shlex import join, quote
from typing import TYPE_CHECKING, Any, Final

import click

from registry.cli import completion, escape, formatting, options
from registry.cli.formatting import fit, some_refs
from registry.cli.group import session_command
from registry.cli.install_messages import (
    explain,
    notes_of,
    report_dangers,
    report_declined,
    report_fetched,
    report_locked_elsewhere,
    report_namesakes,
    report_origins,
    report_still_read,
    report_strange,
    report_unloaded,
)
from registry.cli.listing import Column, emit
from registry.cli.options import agents_of, report_project, target_of, where_options
from registry.cli.progress import SyncProgress, waiting
from registry.cli.prompts import choose as ask_which
from registry.cli.prompts import confirm_addresses, is_terminal
from registry.cli.session import Session, Status
from registry.cli.source_hints import report_newer_tags
from registry.db.read.listing import Filters
from registry.disk.agents import Agent, agents, expand, installed_agents
from registry.errors import AddressInvalid, LockMissing, NotPulled

if TYPE_CHECKING:
    from registry.api import SkillRegistry
    from registry.db.read.findings import SecurityFinding
    from registry.install.imports import OfferedSkill
    from registry.install.lockfile import Mode
    from registry.install.targets import InstallOptions, InstallResult, InstallTarget
    from registry.model import Skill
    from registry.remotes.sources import Choose


CHOOSE: Final = "No skills chosen. Give their names, --tag TAG or --all."
WITH_ADDRESS: Final = (
    "After a single ADDRESS, you can give the names of its skills; with 'pull' you can "
    "also use --skill. Use a second command for registered skills."
)
WHERE: Final = "No target given. Use --agent NAME (in this project, or with --global), or --to DIR."

_FOLDER: Final = (
    "{path} is a folder. Register it ('skill-registry sync FOLDER'), then name its skills."
)

choosing_options: Final = options.stack(
    click.argument("names", nargs=-1, metavar="[NAME]...", shell_complete=completion.names),
    options.tag_option(
        "--tag", "tags", help="All skills with this tag; repeat it to require several tags."
    ),
    click.option("--all", "every", is_flag=True, help="All listed skills."),
    options.personality_option,
)


def confirm_names(session: Session, names: Sequence[str], *, yes: bool) -> None:
    """Ask the user to confirm each new ``owner/repo`` among the names; see `confirm_addresses`."""
    short = (one for one in names if "://" not in one and session.registry.is_address(one))
    confirm_addresses(session, short, yes=yes)


def chosen_skills(
    session: Session,
    *,
    names: Sequence[str],
    tags: Sequence[str],
    personality: str | None,
    every: bool,
    skills: Sequence[str] = (),
    target: "InstallTarget | None" = None,
    dry_run: bool = False,
    choose: "Choose | None" = None,
) -> "list[Skill] | None":
    """Return the skills that the options choose; None if no option chooses skills.

    If an address offers several skills, ``choose`` asks the user. If several skills have the same
    name, this returns the skill that is already installed in ``target``, unless the user gave a
    ref. With ``dry_run``, no address is fetched or registered as a source.

    Raises the errors of `SkillRegistry.resolve`, and `SkillNotVisible` for skills that the
    personality can't see.
    """
    _check_paths(names)
    addresses = [name for name in names if session.registry.is_address(name)]
    if addresses and not tags:
        others = [name for name in names if name not in addresses]
        if others and (len(addresses) > 1 or skills or every):
            raise click.UsageError(WITH_ADDRESS)
        wanted = partial(session.registry.skills_at, every=every, dry_run=dry_run, choose=choose)
        return [one for each in addresses for one in wanted(each, skills=[*skills, *others])]
    if skills:
        raise click.UsageError(
            "--skill requires an ADDRESS; give the names of registered skills as arguments."
        )
    ways = sum(map(bool, (names, tags, every)))
    if ways > 1 or (not ways and personality is not None):
        raise click.UsageError(CHOOSE)
    if not ways:
        return None
    registry = session.registry
    if names:
        known = {} if target is None else _owners(session, target)
        return [_named(registry, name, personality, known) for name in names]
    chosen = Filters(tags=tags)
    if personality is not None:
        chosen = registry.seen_by(personality, chosen)
    found = list(registry.list(chosen))
    if target is None:
        return found
    from registry.install.provenance import installed_owners

    return installed_owners(registry.core, target, found)


def _check_paths(names: Sequence[str]) -> None:
    """Raise an error if a name is a folder or the path of a missing file."""
    for name in names:
        path = os.path.expanduser(name)
        if name[0:1] in {"/", "~", "."} and os.path.isdir(path):
            raise click.UsageError(_FOLDER.format(path=escape.line(name)))
        if name[0:1] in {"/", "~", "."} and not os.path.lexists(path):
            raise AddressInvalid(address=name, reason="no such file or folder")


def _owners(session: Session, target: "InstallTarget") -> dict[str, str]:
    """Return the refs of installed skills, by each name that users can type for them."""
    from registry.install.lockfile import read_lock
    from registry.install.provenance import owner

    found: dict[str, str] = {}
    for folder, entry in read_lock(target.path).items():
        skill = owner(session.registry.core, entry)
        if skill is not None:
            found |= dict.fromkeys((folder, entry.name), f"{skill.source}/{skill.folder}")
    return found


def _named(
    registry: "SkillRegistry", name: str, personality: str | None, known: Mapping[str, str]
) -> "Skill":
    """Return the skill, or the version NAME@LABEL, with a name.

    ``known`` is a result of `_owners`.
    """
    from registry.catalog.resolve import split_label

    parts = None if name in known else split_label(registry.core.reader, name)
    if parts is not None:
        skill = _named(registry, parts[0], personality, known)
        from registry.install.releases import at_label

        return at_label(registry.core, skill, parts[1])
    name = known.get(name, name)
    if personality is None:
        return registry.resolve(name)
    return options.view_of(registry, personality).resolve(name).skill


@session_command(
    "skill-registry pull code-review --agent claude-code --agent codex",
    "skill-registry pull github:owner/repo --skill code-review -a claude-code",
    "skill-registry pull github:owner/repo --list        # list its skills",
    "skill-registry pull                                 # update this project's skills",
    ("skill-registry pull --check                         # what is outdated or edited"),
    "skill-registry pull --remove code-review",
    "skill-registry pull --remove code-review --agent codex    # other agents keep it",
    "skill-registry pull code-review@1.2 -a claude-code    # stay at this version",
    "skill-registry pull code-review release-notes --to ./.claude/skills",
    "skill-registry pull --tag git --to ~/project/skills",
    "skill-registry pull --check --to ./.claude/skills",
)
@choosing_options
@click.option(
    "--skill",
    "skills",
    metavar="NAME",
    multiple=True,
    help="Install only this skill of an ADDRESS (repeatable).",
)
@where_options
@click.option(
    "--link", "mode", flag_value="link", help="Keep one copy, and link the agents' folders to it."
)
@click.option("--copy", "mode", flag_value="copy", help="Put a copy into each agent's folder.")
@click.option(
    "--theirs",
    is_flag=True,
    help='Overwrite your edits with the registry\'s version. "undo" restores them.',
)
@click.option(
    "--keep",
    is_flag=True,
    help=(
        "Keep your edits of these NAMEs as edits of the registry's version, after you merged an "
        "update by hand."
    ),
)
@click.option(
    "--force",
    is_flag=True,
    help="Overwrite edited folders, and folders that 'pull' did not install.",
)
@click.option(
    "--check",
    is_flag=True,
    help=(
        "Write and fetch nothing. Report outdated skills; exit with 1 if there are any, or if the "
        "version of an installed skill is yanked. Sources that are pinned to the tag of a version "
        "are asked for newer tags."
    ),
)
@click.option("--dry-run", is_flag=True, help="Print the changes without making them.")
@click.option(
    "--frozen", is_flag=True, help="Install exactly the versions in the lock file, or nothing."
)
@click.option("--offline", is_flag=True, help="Don't fetch anything. Requires --frozen.")
@click.option(
    "--adopt",
    is_flag=True,
    help=(
        "Let the lock file list skill folders that 'pull' did not install. With NAMEs: those "
        "with the same files; without: all that the npm tool 'skills' installed."
    ),
)
@click.option(
    "--list", "lists", is_flag=True, help="List the skills that an ADDRESS offers; install nothing."
)
@click.option(
    "--remove",
    is_flag=True,
    help="Remove the installed skills with these names, with --agent only from these agents.",
)
@options.yes_fetch(
    help=(
        "Skip the confirmations: before fetching owner/repo from GitHub, and before installing "
        "skills with security findings."
    )
)
@options.format_options
def pull(
    session: Session,
    /,
    *,
    to: str | None,
    agent: Sequence[str],
    is_global: bool,
    mode: "Mode | None",
    theirs: bool,
    keep: bool,
    force: bool,
    dry_run: bool,
    offline: bool,
    lists: bool,
    yes: bool,
    **given: Any,
) -> None:
    """Install skills for agents or into a folder, and update them.

    NAME is a registered skill, or an address ("source add --help"), which is first registered as a
    source. If you give the short form owner/repo, the full address is shown for you to confirm. If
    an address offers several skills, give their names after it, or use --skill or --all; on a
    terminal you are asked. --list shows them all, and marks skills that are quarantined or have
    security warnings (in a pipe with a last column: ok, warning, quarantined or invalid). The
    security findings of each skill are printed before it is installed, its source afterwards. On a
    terminal, you are asked before one of your own skills with security errors, or a remote skill
    with security warnings, is installed, unless you add --yes. If you answer no, the sources that
    this pull registered are removed. Without a terminal, pull installs such skills without a
    question. A quarantined skill is not installed before you trust it with "source trust".

    --agent installs into the agent's folder in this project (the git checkout around the current
    folder, else the current folder); with --global into its folder for all projects. Several agents
    share one copy through links. Each skill is installed completely or not at all. Folders that you
    edited, or that come from another source, are not changed.

    The lock file skills.lock.json records each installed skill, its source and its version. It is
    in the project, in DIR, or with --global in the registry's data folder. Commit it: without
    names, pull updates all skills in it, and --check reports which are outdated (with --format
    names, only the skills that differ).

    NAME@LABEL installs a version ("version --help") and pins it: without names, pull keeps it, and
    prints newer versions. If this registry has no such version, it is fetched from the remote of
    the skill's source. NAME without a label follows the skill again. If a repository is a source
    already, ADDRESS#TAG pins only the installed skill; the source does not change.

    Exit status: 1 if a skill was not changed, can't be installed, or is outdated, or if nothing was
    ever installed.
    """
    from registry.install.targets import InstallOptions

    if lists:
        others = (
            to,
            agent,
            is_global,
            mode,
            theirs,
            keep,
            force,
            dry_run,
            offline,
            *given.values(),
        )
        if sum(map(bool, others)) > bool(given["names"]):
            raise click.UsageError("--list requires an ADDRESS and no other option.")
        _list_offered(session, given["names"], yes=yes)
        return
    adopts = given["adopt"] and any(given[way] for way in ("names", "tags", "every"))
    if adopts:
        given["adopt"] = False
    doing = [flag for flag in ("check", "frozen", "remove", "adopt") if given.pop(flag, False)]
    _check_usage(doing, given, to=to, agent=agent, is_global=is_global, mode=mode)
    _check_keep(keep=keep, others=bool(doing or adopts or theirs or force or not given["names"]))
    target = target_of(to, is_global=is_global)
    how = InstallOptions(
        agents=agents_of(agent),
        mode=mode,
        force=force,
        theirs=theirs,
        keep=keep,
        adopt=adopts,
        dry_run=dry_run,
        offline=offline,
    )
    if offline and doing != ["frozen"]:
        raise click.UsageError("--offline requires --frozen.")
    is_named = bool(agent or to is not None)
    if not doing and not dry_run and (is_named or given["personality"] is not None):
        confirm_names(session, given["names"], yes=yes)
    shown: list[SecurityFinding] = []
    done = _act(session, target, how, doing, given, is_named=is_named, may_ask=not yes, shown=shown)
    # after the checks of the arguments, so that their errors come first
    report_project(session, target, to)
    is_filtered = doing == ["check"] and session.style == "names"
    listed = [one for one in done if one.state != "unchanged"] if is_filtered else done
    where = ["--to", to] if to is not None else ["--global"] if is_global else []
    again = ["skill-registry", "pull", *where]
    bring = join([*again, *(f"--agent={one}" for one in how.agents)])
    notes = notes_of(session, target, done, bring, dry_run=dry_run)
    is_read = session.console.is_terminal and session.is_for_people
    draw = partial(notes.draw, COLUMNS) if is_read else None
    emit(session, listed, COLUMNS, name=lambda one: one.ref, draw=draw)
    if not dry_run:
        report_origins(session, target, done, shown, may_be_first=not doing)
    for line in () if is_read else chain.from_iterable(notes.lines.values()):
        session.console.note(line)
    overwrite = "--force" if theirs else "--theirs"
    explain(session, target, done, doing, notes, again=join(again), overwrite=overwrite)
    if doing in ([], ["check"]):
        _report_sources(session, target, done, given, is_check=bool(doing), force=force)
    report_namesakes(session, done, given["names"], bring)
    report_unloaded(session, target, done, () if doing or dry_run else how.agents)
    is_removal = doing == ["remove"] and not dry_run
    report_still_read(session, target, done, how.agents if is_removal else ())
    if any(one.state not in DONE or (doing == ["check"] and one.yanked) for one in done):
        raise click.exceptions.Exit(Status.FAILED)


def _report_sources(
    session: Session,
    target: "InstallTarget",
    done: "Sequence[InstallResult]",
    given: Mapping[str, Any],
    *,
    is_check: bool,
    force: bool,
) -> None:
    """Print what the installed skills were compared with, and what they were not compared with."""
    if not force:
        report_locked_elsewhere(session, target, done)
    if is_check or any(one.state == "unchanged" for one in done):
        report_fetched(session, target, done, asks=is_check)
    if not given["names"]:
        report_strange(session, target, done)


def _check_keep(*, keep: bool, others: bool) -> None:
    """Raise UsageError for --keep without names, or together with other options."""
    if keep and others:
        raise click.UsageError(
            "--keep requires the names of installed skills, and can't be combined with --theirs, "
            "--force, --check, --frozen, --remove or --adopt."
        )


def _check_usage(
    doing: Sequence[str],
    given: Mapping[str, Any],
    *,
    to: str | None,
    agent: Sequence[str],
    is_global: bool,
    mode: str | None,
) -> None:
    """Raise UsageError for options that can't be used together."""
    chooses = any(given[way] for way in ("names", "tags", "every", "personality"))
    problem = None
    if to is not None and (agent or is_global or mode):
        problem = "--to can't be combined with --agent, --global, --link or --copy."
    elif len(doing) > 1:
        problem = f"--{doing[0]} and --{doing[1]} can't be combined."
    elif agent and doing and doing != ["remove"]:
        problem = f"--{doing[0]} covers all agents and can't be combined with --agent."
    elif doing == ["remove"] and not given["names"]:
        problem = "--remove requires the names of the skills to remove."
    elif doing in (["frozen"], ["adopt"]) and chooses:
        problem = (
            f"--{doing[0]} covers all skills in the lock file and takes no names or other choices."
        )
    elif doing == ["adopt"] and to is not None:
        problem = "--adopt records agents' folders and can't be combined with --to."
    elif agent and not chooses:
        problem = CHOOSE
    if problem is not None:
        raise click.UsageError(problem)


def _act(
    session: Session,
    target: "InstallTarget",
    how: "InstallOptions",
    doing: Sequence[str],
    given: Mapping[str, Any],
    *,
    is_named: bool,
    may_ask: bool,
    shown: "list[SecurityFinding]",
) -> "Sequence[InstallResult]":
    """Carry out the request, and return the result for each skill.

    The security findings that are printed are added to ``shown``.
    """
    from registry.install import pull as pulling

    core, names = session.registry.core, given["names"]
    is_check = "check" in doing
    may_ask = may_ask and is_terminal(session)
    known = [one.name for one in session.registry.sources(counted=False)] if may_ask else []
    with waiting(session.console, "comparing" if is_check else "pulling") as end:
        if "remove" in doing:
            return pulling.remove(core, target, [*pulling.folders_of(target, names)], how)
        if "adopt" in doing:
            from registry.install.adopt import adopt

            return adopt(core, target, how)
        if "frozen" in doing:
            return pulling.restore_from_lock(core, target, how)
        if is_check:
            return _checked(session, target, given)
        chosen = None
        if is_named or not names or given["personality"] is not None:
            choose = partial(_choose, session, end) if may_ask else None
            chosen = chosen_skills(
                session, target=target, dry_run=how.dry_run, choose=choose, **given
            )
    is_new = how.adopt or not pulling.is_locked(target) or any(":" in name for name in names)
    if not is_named and (chosen is not None or (names and is_new)):
        raise click.UsageError(WHERE)
    folders = pulling.folders_of(target, names) if names and chosen is None else None
    asks = bool(chosen) and may_ask and not how.dry_run
    coming = pulling.skills_to_update(core, target, folders) if chosen is None else chosen
    try:
        shown += report_dangers(session, target, coming, asks=asks)
    except click.Abort:
        report_declined(session, coming, known)
        raise click.exceptions.Exit(Status.FAILED) from None
    with SyncProgress(session.console) as progress:
        how = replace(how, progress=progress)
        if chosen is not None:
            return pulling.pull(core, chosen, target, how)
        return pulling.update(core, target, folders, how)


def _choose(
    session: Session, begin: "Callable[[], None]", offered: "Sequence[Skill]"
) -> "list[Skill]":
    """Ask which skills at an address to install; call ``begin`` before the question."""
    begin()
    lines = [f"{escape.line(one.name)}: {escape.prose(one.description)}" for one in offered]
    width = session.console.width - len(str(len(lines))) - 2
    shown = [fit(line, width, ellipsis=session.console.ellipsis) for line in lines]
    return [offered[place] for place in ask_which(session, shown)]


def _list_offered(session: Session, names: Sequence[str], *, yes: bool) -> None:
    """Print the skills that addresses offer, without installing them or adding sources."""
    from registry.install.imports import offered_at

    _check_paths(names)
    if not names or not all(map(session.registry.is_address, names)):
        raise click.UsageError(
            "--list requires an ADDRESS. To list registered skills, run: skill-registry list"
        )
    confirm_names(session, names, yes=yes)
    with waiting(session.console, "fetching"):
        found = [one for name in names for one in offered_at(session.registry.core, name)]
    emit(session, found, OFFERED, name=lambda one: one.name)
    held = [one.name for one in found if one.quarantined]
    if held and not session.as_json:
        are, have = ("is", "it has") if len(held) == 1 else ("are", "they have")
        session.console.note(
            f"{formatting.count(len(held), 'skill')} {are} quarantined, because {have} security "
            f"errors: {some_refs(held)}. To see and trust them, run: skill-registry sync "
            f"{quote(escape.line(names[0]))}, then 'skill-registry source trust' with the "
            "source's name."
        )


def _status(one: "OfferedSkill") -> str:
    if one.quarantined or not one.usable:
        return "quarantined" if one.quarantined else "invalid"
    return "warning" if one.warning else "ok"


def _checked(
    session: Session, target: "InstallTarget", given: Mapping[str, Any]
) -> "Sequence[InstallResult]":
    from registry.install import pull as pulling

    core, names = session.registry.core, given["names"]
    if names and not given["tags"] and given["personality"] is None:
        with suppress(NotPulled, LockMissing):  # otherwise, compare with the registered skills
            return pulling.check(core, None, target, pulling.folders_of(target, names))
    chosen = chosen_skills(session, target=target, dry_run=True, **given)
    if chosen is None and not pulling.is_locked(target):
        report_newer_tags(session, session.registry.own_sources())
        pulling.check_locked(target)
    return pulling.check(core, chosen, target)


DONE: Final = frozenset({"added", "updated", "unchanged", "removed"})


OFFERED: Final[Sequence[Column["OfferedSkill"]]] = (
    Column("SKILL", lambda one: one.name, style="bold", cut="middle"),
    Column(
        "STATUS",
        _status,
        only="table",
        style=formatting.STATUS_STYLES,
        when=lambda seen: seen != {"ok"},
    ),
    Column("DESCRIPTION", lambda one: one.description, prose=True, flexible=True),
    Column("STATUS", _status, only="plain"),
)


def _state(one: "InstallResult") -> str:
    """Return the word for a state in the output.

    The JSON has the state's own name in `InstallResult`.
    """
    from registry.install.plan import ADOPTED, EQUAL, FOREIGN

    named = {EQUAL: "unmanaged", FOREIGN: "unmanaged", ADOPTED: "adopted"}.get(one.reason or "")
    return named or formatting.INSTALL_STATES.get(one.state, one.state)


COLUMNS: Final[Sequence[Column["InstallResult"]]] = (
    Column("STATE", _state, cut="middle"),
    Column("SKILL", lambda one: one.ref, cut="middle"),
    Column("PINNED", lambda one: one.pin, only="table"),
    Column("FOLDER", lambda one: one.path, cut="start", drop=1, flexible=True),
)


def _shown(place: str) -> str:
    """Return the path of a global folder, with ``~`` for the home folder."""
    path, home = expand(place) or "", os.path.expanduser("~")
    return path.replace(home, "~", 1) if path.startswith(f"{home}/") else path


def _others(one: Agent) -> str:
    """Return the other folders that an agent reads."""
    personal = filter(None, map(_shown, one.personal_places))
    places = dict.fromkeys([*one.project_places, *personal])
    return ", ".join(place for place in places if place not in {one.project, _shown(one.personal)})


AGENT_COLUMNS: Final[Sequence[Column[Agent]]] = (
    Column("AGENT", lambda one: one.id),
    Column("NAME", lambda one: one.name, drop=2),
    Column("IN A PROJECT", lambda one: one.project, drop=1),
    Column("FOR ALL PROJECTS", lambda one: _shown(one.personal)),
    Column("ALSO READS", _others, only="table", flexible=True, drop=3),
)


@session_command(
    "skill-registry agents",
    "skill-registry pull haiku --agent codex",
    "skill-registry list --agent codex",
    starts_new=True,
)
@options.format_options
def agents_(session: Session) -> None:
    """List the supported agents and their skill folders.

    "pull NAME --agent AGENT" installs into the folder shown. Agents that are installed on this
    machine come first. Some agents also read other folders: --json lists them under "reads".
    """
    found = {one.id for one in installed_agents(os.getcwd())}
    every = sorted(agents().values(), key=lambda one: (one.id not in found, one.id))

    def to_record(one: Agent) -> dict[str, Any]:
        return {
            "agent": one.id,
            "name": one.name,
            "project": one.project,
            "global": one.personal or None,
            "reads": one.project_places + one.personal_places,
            "installed": one.id in found,
        }

    emit(session, every, AGENT_COLUMNS, to_record=to_record)
