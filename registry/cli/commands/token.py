"""`skill-registry token`."""

import re
from collections.abc import Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Final

import click

from registry.cli import escape, options
from registry.cli.group import Group, session_command
from registry.cli.listing import Column, emit
from registry.cli.session import Session

if TYPE_CHECKING:
    from registry.changes.tokens import Token

_LENGTH: Final = re.compile(r"([1-9][0-9]{0,4})([hdw])")
_UNITS: Final = {"h": "hours", "d": "days", "w": "weeks"}


def _length(text: str) -> timedelta | None:
    """Read a length of time such as ``90d``; None: ``never``."""
    if text == "never":
        return None
    found = _LENGTH.fullmatch(text)
    if found is None:
        raise ValueError(f"{text!r} is no length such as 12h, 90d or 8w, nor 'never'.")
    return timedelta(**{_UNITS[found[2]]: int(found[1])})


@click.group(
    cls=Group,
    examples=("skill-registry token create anna --read", "skill-registry token list"),
)
def command() -> None:
    """Let others into the web catalogue, or no longer."""


@session_command(
    "skill-registry token create anna --read",
    "skill-registry token create ci --read --source team --expires 30d",
    "skill-registry token create agent --write --personality coder",
    group=command,
    starts_new=True,
)
@click.argument("name")
@click.option("--read", "may_read", is_flag=True, help="It may read.")
@click.option("--write", is_flag=True, help="It may change skills, too, over /mcp.")
@options.personality_option
@options.source_option(help="It shows this source alone.")
@click.option(
    "--expires",
    metavar="LENGTH",
    type=options.Parsed("length", _length),
    default="90d",
    show_default=True,
    help="For how long it is valid: 12h, 90d, 8w, or never.",
)
def create(
    session: Session,
    *,
    name: str,
    may_read: bool,
    write: bool,
    personality: str | None,
    source: str | None,
    expires: timedelta | None,
) -> None:
    """Make a token and print it, this once.

    It is sent as a bearer token, or pasted into the page that asks for it. The database keeps no
    more than its hash.
    """
    if may_read == write:
        raise click.UsageError("Give --read or --write.")
    token, shown = session.registry.tokens().create(
        name, write=write, personality=personality, source=source, lasts=expires
    )
    session.console.write([shown])
    until = f"valid until {token.expires_at}" if token.expires_at else "valid until it is revoked"
    session.console.note(f"It is shown this once; {until}.")


@session_command("skill-registry token list", group=command)
@options.format_options
def list_(session: Session) -> None:
    """List the tokens that were made, and when each was used last."""
    found = session.registry.tokens().list()
    emit(session, found, COLUMNS, name=lambda one: one.name, nothing="There is no token.")


@session_command("skill-registry token revoke anna", group=command)
@click.argument("name", metavar="NAME|NUMBER")
def revoke(session: Session, *, name: str) -> None:
    """Take a token away; who shows it is turned away from now on."""
    token = session.registry.tokens().revoke(name)
    session.console.note(f"Revoked {escape.line(token.name)} ({token.number}).")


COLUMNS: "Sequence[Column[Token]]" = (
    Column("NUMBER", lambda one: one.number),
    Column("NAME", lambda one: one.name),
    Column("MAY", lambda one: "write" if one.write else "read"),
    Column("PERSONALITY", lambda one: one.personality or ""),
    Column("SOURCE", lambda one: one.source or ""),
    Column("EXPIRES", lambda one: one.expires_at or "never"),
    Column("USED", lambda one: one.used_at or "never"),
)
