"""Prompts: ask for a confirmation, or for choices from a list."""

import sys
from collections.abc import Iterable, Sequence

import click

from registry.cli import escape, formatting
from registry.cli.session import Session


def confirm(session: Session, question: str, *, yes: bool) -> None:
    """Ask on a terminal unless ``yes``; if the user answers no, end the command with status 1.

    ``question`` is escaped text. Without a terminal, the user must pass ``--yes``.
    """
    if yes:
        return
    session.console.flush()
    if not is_terminal(session):
        raise click.ClickException("Not a terminal; pass --yes to confirm.")
    click.confirm(question, abort=True, err=True)


def choose(session: Session, lines: Sequence[str]) -> list[int]:
    """Ask on a terminal which of the ``lines`` (escaped text) to choose; return their indexes."""
    _number(session, lines)
    question = "Which skills? Numbers and ranges (1 3-5), or all"
    chosen: list[int] = click.prompt(
        question, err=True, value_proc=lambda text: places(text, len(lines))
    )
    return chosen


def _number(session: Session, lines: Sequence[str]) -> None:
    """Print the lines, each with its number."""
    session.console.flush()
    for number, line in enumerate(lines, 1):
        session.console.note(f"{number:>{len(str(len(lines)))}}  {line}")


def home(session: Session, source: str | None) -> str | None:
    """Return the source to write to; on a terminal, ask if several are possible and none is named.

    None means that the registry chooses the source, or raises an error.
    """
    from registry.errors import RegistryError, SourceUnclear
    from registry.sync.sources import target_source

    if source is not None or session.as_json or not is_terminal(session):
        return source
    try:
        target_source(session.registry.core, None)
    except SourceUnclear as error:
        if known := error.facts["known"]:
            _number(session, [escape.line(one) for one in known])
            number = click.IntRange(1, len(known))
            return str(known[click.prompt("Which source? Its number", err=True, type=number) - 1])
    except RegistryError:
        pass  # the command reports it
    return None


def places(text: str, count: int) -> list[int]:
    """Convert numbers (from 1), ranges of numbers or ``all`` to indexes from 0.

    Raises click.BadParameter.
    """
    if text.strip().casefold() == "all":
        return list(range(count))
    found: list[int] = []
    for part in text.replace(",", " ").split():
        first, is_range, last = part.partition("-")
        ends = [first, last] if is_range else [first, first]
        if not all(end.isdecimal() for end in ends):
            raise click.BadParameter(f"{escape.line(part)} is not a number or a range.")
        begin, end = map(int, ends)
        if not 1 <= begin <= end <= count:
            raise click.BadParameter(f"{escape.line(part)} is not within 1 to {count}.")
        found += range(begin - 1, end)
    return list(dict.fromkeys(found))


def is_terminal(session: Session) -> bool:
    """Tell whether the program can ask the user."""
    return session.console.err_is_terminal and sys.stdin.isatty()


def confirm_addresses(session: Session, targets: Iterable[str], *, yes: bool) -> None:
    """Before a new ``owner/repo`` is fetched, show its full address and ask the user.

    Raises the errors of `registry.remotes.sources.address_of`.
    """
    from registry.remotes.sources import new_shorthand

    for target in targets:
        address = new_shorthand(session.registry.core, target)
        if address is not None:
            whole = formatting.address(address.url, address.ref, address.part, address.only)
            session.console.note(f"{escape.line(target)} means {escape.line(whole)}")
            confirm(session, "Fetch from this address?", yes=yes)
