"""Messages about a sync: its changes, sources that were not synced, and findings."""

import shlex
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from registry.cli import escape, formatting
from registry.cli.findings import finding_line, report_security
from registry.cli.session import Console, Session, Style
from registry.disk.links import LINK_KNOWN, real_path
from registry.disk.paths import join
from registry.sync.installed import listed_in_locks

if TYPE_CHECKING:
    from registry.sync.report import SourceReport, SyncReport

MAX_SHOWN: Final = 20
"""Maximum number of lines for each type of change without --verbose."""
MAX_NAMED: Final = 5
"""Maximum number of quarantined skills that a message names."""


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


def report_sources(session: Session, report: "SyncReport", *, hints: bool) -> None:
    """Print which sources were not synced and why, and what was found in new and changed skills.

    If ``hints``, print also the commands that show more.
    """
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
            end = "" if "run: " in text else "."  # users copy the command
            console.note(f"{escape.line(part.name)}: {escape.prose(text)}{end}")
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
