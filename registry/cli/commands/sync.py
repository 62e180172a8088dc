"""`skill-registry sync`."""

import os
import shlex
from collections.abc import Collection, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NoReturn

import click

from registry.cli import completion, escape, formatting, options
from registry.cli.commands.source import of_others
from registry.cli.group import session_command
from registry.cli.prompts import confirm_addresses
from registry.cli.session import Console, Session, Status
from registry.cli.source_hints import report_nesting, report_project
from registry.cli.sync_messages import MAX_SHOWN, draw_report, report_sources
from registry.errors import AddressInvalid, RegistryError, SourceInvalid, SourceNotFound
from registry.model import SCOPES

if TYPE_CHECKING:
    from registry.model import Source
    from registry.sync.report import SyncReport


@session_command(
    "skill-registry sync                        # all sources",
    "skill-registry sync ~/.claude/skills       # a folder; registered if it is new",
    "skill-registry sync ~/work/skills --scope team --name work",
    "skill-registry sync --dry-run --json | jq .removed",
    "skill-registry sync github:owner/repo      # a repository; fetched first",
    "skill-registry sync --watch                # sync on every change until Ctrl-C",
    starts_new=True,
)
@click.argument(
    "targets", nargs=-1, metavar="[TARGET]...", shell_complete=completion.sources_or_folders
)
@click.option(
    "--scope",
    type=click.Choice(SCOPES),
    help="The scope of a new source (default: personal; community for an address).",
)
@click.option("--name", metavar="NAME", help="The name of a new source.")
@click.option("--dry-run", is_flag=True, help="Print the changes without making them.")
@click.option(
    "--verify",
    is_flag=True,
    help="Re-read all files; repair stored content whose hash differs.",
)
@click.option(
    "--allow-prune",
    is_flag=True,
    help=(
        "Remove the skills of a source that is gone, empty, or lost more than half of its skills."
    ),
)
@options.yes_fetch_option
@click.option("--wait", is_flag=True, help="Wait if another sync is running.")
@click.option("--watch", is_flag=True, help="Keep running, and sync on every change in a source.")
@options.json_option
def command(
    session: Session, /, *, targets: tuple[str, ...], watch: bool, yes: bool, **given: Any
) -> None:
    """Sync the registry with its sources: folders and remote addresses.

    TARGET is a source, a folder or an address ("source add --help" lists the forms); without one,
    all sources are synced. A new folder or address is registered as a source. If you give the short
    form owner/repo, the full address is shown for you to confirm. A skill that can't be read is
    kept and marked invalid. A source that can't be fetched keeps its skills. A source that is gone,
    empty, or lost more than half of its skills also keeps them, unless you give --allow-prune.

    Exit status: 1 if a source could not be synced.
    """
    if watch and given["dry_run"]:
        raise click.UsageError("--watch and --dry-run can't be combined.")
    from registry.cli.progress import SyncProgress
    from registry.sync.sources import own_sources

    console, registry = session.console, session.registry
    known = registry.sources(counted=False)
    is_for_all = not targets and not (given["scope"] or given["name"])
    if is_for_all and not own_sources(registry.core, known):
        _fail_for_want_of_sources(session, known)
    confirm_addresses(session, targets, yes=yes or given["dry_run"])
    report_nesting(session, targets)
    before = {one.path for one in known}
    try:
        with SyncProgress(console) as progress:
            report = registry.sync(*targets, progress=progress, **given)
    except KeyboardInterrupt:
        console.note("Interrupted: nothing changed; the registry lists the same skills as before.")
        raise click.exceptions.Exit(Status.INTERRUPTED) from None
    except (AddressInvalid, SourceInvalid, SourceNotFound) as error:
        if targets[1:]:
            error.add_note(_nothing_synced(error, targets, given["scope"]))
        raise
    limit = None if session.verbose else MAX_SHOWN
    session.answer(report.to_dict(), draw_report(console, report, limit))
    _report_remotes(console, report, before)
    if given["scope"] is None:
        report_project(session, targets, before)
    _report_empty(console, report, before)
    report_sources(session, report, hints=not session.as_json)
    if not targets:
        _report_unadopted(session, known)
    if watch:
        _watch(session)
        return
    if not report.complete:
        raise click.exceptions.Exit(Status.FAILED)


def _nothing_synced(error: RegistryError, targets: Sequence[str], scope: str | None) -> str:
    """Return a command that syncs the targets, except the target that caused the error."""
    facts = {one for one in error.facts.values() if isinstance(one, str)}
    others = [one for one in targets if not facts & {one, os.path.abspath(os.path.expanduser(one))}]
    way = ["skill-registry", "sync", *(["--scope", scope] if scope else []), *others]
    how = f" To sync the others, run: {shlex.join(way)}" if others else ""
    return f"Nothing was synced.{how}"


def _fail_for_want_of_sources(session: Session, known: "Sequence[Source]") -> NoReturn:
    none = "No sources are registered yet."
    if unadopted := _report_unadopted(session, known):
        if any(one.own for one in unadopted):  # another message already tells the user what to do
            raise click.exceptions.Exit(Status.FAILED)
        none = "None of this machine's sources is yours."
    elif known:
        none = "All sources are on other machines and are synced there."
    raise click.ClickException(
        f"{none} To register a folder, run: skill-registry sync FOLDER\n"
        "To find the skill folders of agents on this machine, run: skill-registry source "
        "discover"
    )


def _report_remotes(console: Console, report: "SyncReport", before: Collection[str]) -> None:
    """Print the remote sources that are new (not in ``before``) or that a dry run did not query."""
    remotes = [(one.name, one.path, one.remote) for one in report.sources if one.remote is not None]
    for name, path, remote in remotes:
        if path not in before:
            place = escape.line(formatting.address(remote.url, remote.ref))
            console.note(f"{escape.line(name)}: a new source, fetched from {place}.")
    if report.dry_run and remotes:
        some = ", ".join(escape.line(name) for name, _, _ in remotes)
        console.note(f"Not checked for updates (dry run): {some}.")


def _report_empty(console: Console, report: "SyncReport", before: Collection[str]) -> None:
    """Print the new sources (not in ``before``) that contain no skills."""
    for part in () if report.dry_run else report.sources:
        if part.path not in before and part.outcome == "ok" and not part.skills:
            console.note(
                f"No skills were found in {escape.line(part.path)}. If this is the wrong folder, "
                f"run: skill-registry source remove {shlex.quote(escape.line(part.name))}"
            )


def _report_unadopted(session: Session, known: "Sequence[Source]") -> "Sequence[Source]":
    """Print the skipped sources that have the name of this host, and return them.

    They are skipped because this user neither added nor adopted them.
    """
    from registry.sync.sources import unadopted_sources

    unadopted = unadopted_sources(session.registry.core, known)
    if not unadopted:
        return unadopted
    from registry.db.adopted import address_of, former_addresses

    backend, note = session.registry.core.backend, session.console.note
    former, moved = former_addresses(backend), dict[str, list[str]]()
    for source in unadopted:
        name = escape.line(source.name)
        if not source.own:
            continue
        if source.path in former:
            moved.setdefault(former[source.path], []).append(name)
        else:
            note(
                (
                    f"{name}: not synced, because another user or machine added it under "
                    f"this host's name ({escape.line(source.path)}). To sync it, run: "
                    f"skill-registry source adopt {shlex.quote(name)}"
                ),
                "yellow",
            )
    if others := [one for one in unadopted if not one.own]:
        note(of_others(others), "yellow")
    for address, names in moved.items():
        them = "them" if names[1:] else "it"
        note(
            (
                f"Not synced: {formatting.listed(names)}. You added {them} when the registry's "
                f"address was {escape.line(address)}; now it is "
                f"{escape.line(address_of(backend.identity))}.\n"
                "If both are the same registry, run: skill-registry source adopt "
                f"{shlex.join(names)}"
            ),
            "yellow",
        )
    return unadopted


def _watch(session: Session) -> None:
    """Sync all sources until the user interrupts, and print the changes of each sync."""
    console = session.console
    unwritable: list[OSError] = []

    def show(report: "SyncReport") -> None:
        try:
            if session.as_json:
                console.write(console.json_lines([report.to_dict()]), json_text=True)
            else:
                console.write(draw_report(console, report, None if session.verbose else MAX_SHOWN))
            console.flush()
        except OSError as error:  # the program that reads the pipe has closed it
            unwritable.append(error)
            watching.stop()

    held = formatting.count(len(session.registry.own_sources()), "source")
    console.note(f"Watching {held}; Ctrl-C ends it.")
    with suppress(KeyboardInterrupt), session.registry.watch(show) as watching:
        watching.join()
    if unwritable:
        raise unwritable[0]
