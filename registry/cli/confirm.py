"""Ask the user to confirm: the one prompt of all commands."""

import sys
from collections.abc import Iterable

import click

from registry.cli import escape, words
from registry.cli.session import Session


def confirm(session: Session, question: str, *, yes: bool) -> None:
    """Ask on a terminal unless ``yes``; end the command with status 1 if the answer is no.

    ``question`` is escaped text. Without a terminal the user has to pass ``--yes``.
    """
    if yes:
        return
    session.console.flush()
    if not is_terminal(session):
        raise click.ClickException("Not a terminal; pass --yes to confirm.")
    click.confirm(question, abort=True, err=True)


def is_terminal(session: Session) -> bool:
    """Tell whether the user can be asked."""
    return session.console.err_is_terminal and sys.stdin.isatty()


def confirm_addresses(session: Session, targets: Iterable[str], *, yes: bool) -> None:
    """Show the full address of each ``owner/repo`` that is not a source yet, and ask for it.

    Raises as `registry.exchange.remote.sources.address_of`.
    """
    from registry.exchange.remote.sources import new_shorthand

    for target in targets:
        address = new_shorthand(session.registry.core, target)
        if address is not None:
            whole = words.address(address.url, address.ref, address.part, address.only)
            session.console.note(f"{escape.line(target)} means {escape.line(whole)}")
            confirm(session, "Fetch from this address?", yes=yes)
