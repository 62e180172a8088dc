"""`skill-registry sync`."""

import os
import shlex
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, NoReturn

import click

from registry.cli import completion, escape, formatting, options
from registry.cli.commands.source import of_others
from registry.cli.findings import finding_line, report_security
from registry.cli.group import session_command
from registry.cli.prompts import confirm_addresses
from registry.cli.session import Console, Session, Status, Style
from registry.cli.source_hints import report_nesting, report_project
from registry.disk.links import LINK_KNOWN, real_path
from registry.disk.paths import join
from registry.errors import AddressInvalid, RegistryError, SourceInvalid, SourceNotFound
from registry.model import SCOPES
from registry.sync.installed import listed_in_locks

if TYPE_CHECKING:
    from registry.model import Source
    from registry.sync.report import SourceReport, SyncReport

MAX_SHOWN: Final = 20
"""Maximum number of lines for each type of change without --verbose."""
MAX_NAMED: Final = 5
"""Maximum number of quarantined skills that a message names."""


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
    _report_sources(session, report, hints=not session.as_json)
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


def draw_report(console: Console, report: "SyncReport", limit: int | None) -> Iterator[str]:
    """Yield the summary, and at most ``limit`` lines for each type of change."""
    arrow = "\u2192" if console.is_unicode else ">"
    moved = [f"{move.ref} ({move.before} {arrow} {move.after})" for move in report.moved]
    changes: Sequence[tuple[str, Style, Sequence[str]]] = (
        ("+", "green", report.added),
        ("~", "yellow", report.updated),
        (arrow, "cyan", moved),
        ("-", "red", report.removed),
    )
    for marker, style, refs in changes:
        mark = console.style(marker, style)
        yield from (f"{mark} {escape.line(ref)}" for ref in refs[:limit])
        if limit is not None and len(refs) > limit:
            yield f"{mark} and {len(refs) - limit:,} more"
    yield summary(report)


def summary(report: "SyncReport") -> str:
    """Return one line with the number of changes of each type."""
    counts = {kind: len(getattr(report, kind)) for kind in ("added", "updated", "moved", "removed")}
    counts |= {"unchanged": report.unchanged, "invalid": report.invalid}
    numbers = ", ".join(f"{number:,} {what}" for what, number in counts.items())
    dry = "Dry run, nothing changed: " if report.dry_run else ""
    return f"{dry}{numbers} ({report.seconds:.1f} s)"


def _report_sources(session: Session, report: "SyncReport", *, hints: bool) -> None:
    _report_fetched(session, report)
    console = session.console
    printed = _report_suspicious(session, report)
    if not hints:
        return
    _report_links(session, report)
    notices = [
        finding_line(notice, f"{part.path}/{folder}")
        for part in report.sources
        for folder, notice in part.notices
        if session.verbose or notice.severity != "info"
    ]
    if notices and session.verbose:
        for line in notices:
            console.note(line)
    elif notices:
        places = formatting.count(len(notices), "link or folder", "links or folders")
        console.note(
            f"{places} in the sources can't be read. To see which and why, run: "
            "skill-registry sync --verbose"
        )
    found = _report_findings(session, report, printed)
    if report.invalid:
        reasons = "" if found else ". To see the reasons, run: skill-registry check"
        console.note(
            f"To list the invalid skills, run: skill-registry list --status invalid{reasons}"
        )


def _report_fetched(session: Session, report: "SyncReport") -> None:
    """Print why sources were not synced, and what was found in fetched files."""
    from registry.sync.plan import WITHDRAWN

    console = session.console
    for part in report.sources:
        if part.outcome != "ok":
            console.note(_held(part), "yellow")
            if (part.message or "").startswith("Internal error") and not session.verbose:
                console.note("Please report it with the output of the same command with --verbose.")
        for text in part.fetched:
            console.note(f"{escape.line(part.name)}: {escape.prose(text)}.")
    if any(WITHDRAWN in text for part in report.sources for text in part.fetched):
        note = "To see whether a withdrawn version is installed, run: skill-registry pull --check"
        console.note(note, "yellow")


def _report_findings(session: Session, report: "SyncReport", printed: int) -> bool:
    """Print the number of errors and warnings in new and changed skills.

    Returns False if all of these findings are already ``printed``. After a large sync, the findings
    of the whole sources are counted.
    """
    from registry.db.read.findings import MAX_REFS, count_findings

    changed = [*report.added, *report.updated]
    if not changed or report.dry_run:
        return False
    condition, values = "s.live = 1 AND src.name IN ({})", [one.name for one in report.sources]
    condition = condition.format(", ".join("?" * len(values)))
    if len(changed) <= MAX_REFS:
        condition += f" AND s.ref IN ({', '.join('?' * len(changed))})"
        values += changed
    of = Counter[str]()
    for one in count_findings(session.registry.core.reader, (condition, values)):
        of[one.severity] += one.findings
    numbers = [formatting.count(of[one], one) for one in ("error", "warning") if of[one]]
    total = of["error"] + of["warning"]
    if total <= printed:
        return False
    way = f"To see {'it' if total == 1 else 'them'}, run: skill-registry check"
    session.console.note(f"Found {formatting.listed(numbers)}. {way}")
    return True


def _report_links(session: Session, report: "SyncReport") -> None:
    """If links lead to skills in a folder that isn't a source, print that folder.

    Links that a lock file lists are not counted: `pull` made them.
    """
    found = {
        join(real_path(part.path), folder): one.fix
        for part in report.sources
        for folder, one in part.notices
        if one.code == LINK_KNOWN and one.fix
    }
    pulled = listed_in_locks(found) if found else ()
    unread = Counter(fix for path, fix in found.items() if path not in pulled)
    for fix, count in sorted(unread.items()):
        links = formatting.count(count, "link")
        session.console.note(f"{links} to skills outside all sources. To read them, {fix}")


def _report_suspicious(session: Session, report: "SyncReport") -> int:
    """Print the security findings of new or quarantined skills, and return their number.

    For local sources, print only errors.
    """
    from registry.db.read.findings import security_findings

    if not (report.added or report.updated):
        return 0
    console, new, printed = session.console, {*report.added, *report.updated}, 0
    for part in report.sources:
        is_own = part.remote is None
        found = security_findings(session.registry.core.reader, part.name, new if is_own else None)
        shown = [one for one in found if one.ref in new and (one.severity == "error" or not is_own)]
        limit = None if session.verbose else MAX_SHOWN
        printed += len(shown[:limit])
        for one in shown[:limit]:
            report_security(console, one.ref, one)
        if limit is not None and len(shown) > limit:
            console.note(
                f"and {len(shown) - limit:,} more; to list them, run: skill-registry check"
            )
        if is_own:
            if shown:
                console.note(
                    "Skills in your own folders are not quarantined: agents see them.", "yellow"
                )
            continue
        held = sorted({one.ref for one in found if one.quarantined})
        if held:
            name = escape.line(part.name)
            are = "is" if len(held) == 1 else "are"
            console.note(
                (
                    f"{formatting.count(len(held), 'skill')} of {name} with security errors "
                    f"{are} quarantined "
                    f"({', '.join(map(escape.line, held[:MAX_NAMED]))}"
                    f"{', …' if len(held) > MAX_NAMED else ''}). "
                    "To see the errors and trust the skills, run: skill-registry source "
                    f"trust {shlex.quote(name)}"
                ),
                "yellow",
            )
    return printed


def _held(part: "SourceReport") -> str:
    name = escape.line(part.name)
    why = escape.prose(part.message or part.outcome)
    if part.outcome in {"offline", "refused"}:
        return f"{name} was not fetched and keeps its skills: {why}"
    kept = (
        f"its {formatting.count(part.kept, 'skill')} {'stays' if part.kept == 1 else 'stay'} listed"
        if part.kept
        else "nothing was read"
    )
    text = f"{name}: {why} ({escape.line(part.path)}); {kept}."
    if part.outcome == "unreadable":
        return f"{text} Make it readable, then sync again."
    if not part.kept:
        gone = f"skill-registry source remove {shlex.quote(name)}"
        return f"{text} If the folder won't come back, run: {gone}"
    source, path = shlex.quote(name), shlex.quote(escape.line(part.path))
    if part.remote is None:
        make = f"mkdir -p {path} && " if part.outcome == "missing" else ""
        text += (
            "\nIf the folder is at another place now, run: skill-registry source update "
            f"{source} --folder DIR\n"
            f"To write the skills to disk again, run: {make}skill-registry restore --source "
            f"{source} --missing\n"
        )
    else:
        text += " "
    again = f"skill-registry sync {source} --allow-prune"
    return f"{text}To remove the missing skills from the registry, run: {again}"
