"""`skill-registry check --fix`: show what would be different, ask, and do it."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import click

from registry.cli import escape, formatting
from registry.cli.hints import hint
from registry.cli.progress import waiting
from registry.cli.prompts import confirm
from registry.cli.session import Console, Session, Status
from registry.errors import DatabaseProblem, RegistryError

if TYPE_CHECKING:
    from registry.changes.fix import Fix


def mend(
    session: Session,
    targets: Sequence[str],
    select: Sequence[str],
    ignore: Sequence[str],
    *,
    dry_run: bool,
    yes: bool,
) -> None:
    """Print the diffs, on a terminal ask, and mend; exit with 1 where a file can't be changed.

    With the format ``json`` what is mended is printed as objects that hold the diffs.
    """
    console, registry = session.console, session.registry
    with waiting(console, "checking"):
        found = registry.fixes(targets, select=select, ignore=ignore)
    _show(session, found)
    if dry_run:
        return
    skills = formatting.count(len(found), "skill")
    if not found:
        console.note("Nothing to mend.")
        return
    confirm(session, f"Mend {skills}?", yes=yes)
    failed = 0
    for one in found:
        try:
            registry.fix(one)
        except DatabaseProblem:
            raise
        except RegistryError as error:
            failed += 1
            console.error(f"{error} {hint(error)}".rstrip())
    console.note(f"Mended {formatting.count(len(found) - failed, 'skill')}.")
    if failed:
        raise click.exceptions.Exit(Status.FAILED)


def _show(session: Session, found: "Sequence[Fix]") -> None:
    console = session.console
    if session.style in {"json", "jsonl"}:
        from registry.cli.listing import emit

        emit(session, found, ())
    elif session.style == "names":
        console.write(escape.line(one.path) for one in found)
    elif console.is_terminal:
        console.page(list(_painted(console, found)))
    else:
        console.write_bytes("".join(one.diff for one in found).encode("utf-8", "backslashreplace"))


def _painted(console: Console, found: "Sequence[Fix]") -> Iterator[str]:
    for one in found:
        # A line's end is a part of what is different.
        yield from (console.paint_diff(line) for line in one.diff.removesuffix("\n").split("\n"))
