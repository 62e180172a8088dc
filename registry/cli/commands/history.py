"""`skill-registry history` and `skill-registry diff`."""

from collections.abc import Sequence
from shlex import quote
from typing import TYPE_CHECKING, Final

import click

from registry.cli import completion, escape, formatting, options
from registry.cli.group import session_command
from registry.cli.listing import Column, emit
from registry.cli.progress import waiting
from registry.cli.session import Session
from registry.text import quoted

if TYPE_CHECKING:
    from registry.db.read.history import Gone, Revision


@session_command(
    "skill-registry history code-review",
    "skill-registry show code-review --revision 1",
    "skill-registry restore code-review --revision 1",
)
@click.argument("name", shell_complete=completion.names)
@click.option("--who", is_flag=True, help="Say who brought each about.")
@options.format_options
def history(session: Session, *, name: str, who: bool) -> None:
    """List what a skill was like: each content that the registry has seen.

    The newest comes first. A revision is kept until "db prune", also its supporting files, unless
    the setting "store_files: false" says otherwise. Of a skill that is gone the name that it had
    will do. With --who: the role (a server's word), and the host, tool and client as they said.
    """
    from registry.changes.history import History

    found = History.of(session.registry.core, name)
    emit(session, found.revisions, [*COLUMNS, *WHO] if who else COLUMNS)
    if not found.revisions:
        session.console.note("No content of it was ever kept; 'skill-registry why' says why not.")
    if found.gone is not None:
        session.console.note(escape.text(_where(found.gone, name)))


@session_command(
    "skill-registry diff code-review        # what the last change did",
    "skill-registry diff code-review 1      # between revision 1 and now",
    "skill-registry diff code-review 1 2",
    "skill-registry diff code-review --upstream",
)
@click.argument("name", shell_complete=completion.names)
@click.argument("old", metavar="[R1]", type=click.IntRange(min=1), required=False)
@click.argument("new", metavar="[R2]", type=click.IntRange(min=1), required=False)
@click.option("--upstream", is_flag=True, help="Compare it with what it comes from.")
def diff(session: Session, *, name: str, old: int | None, new: int | None, upstream: bool) -> None:
    """Show what is different between two revisions of a skill, in all its files.

    With --upstream: what the next sync would bring to a skill of a remote source; of a skill of
    your own, what is different in the skill of its name in a remote source. Lines with "-" are
    here, those with "+" are upstream.
    """
    console = session.console
    if upstream and old is not None:
        raise click.UsageError("--upstream goes without revisions.")
    if upstream:
        with waiting(console, "asking"):
            text = session.registry.diff_upstream(name)
    else:
        text = session.registry.diff(name, old, new)
    if not text:
        console.note("Nothing is different.")
    elif console.is_terminal:
        console.write(console.paint_diff(line) for line in text.splitlines())
    else:
        console.write_bytes(text.encode("utf-8", "backslashreplace"))


def _where(gone: "Gone", asked: str) -> str:
    """Say where a skill was that is gone, and how it comes back by what was ``asked`` for."""
    name = quoted(gone.name)
    place = f" It was in {quoted(gone.place)}." if gone.place else ""
    if gone.trash is not None:
        told = f"{name} is in the trash (deleted {gone.since})."
    elif gone.since:
        told = f"{name} is gone since {gone.since}.{place}"
    else:
        told = f"{name} is not on disk any more.{place}"
    return f"{told} 'skill-registry restore {quote(asked)}' brings it back."


def _state(one: "Revision") -> str:
    told = ("current" if one.current else "", "" if one.complete else "incomplete")
    return " ".join(filter(None, told))


def _commit(one: "Revision") -> str | None:
    return formatting.commit(one.origin.commit) if one.origin and one.origin.commit else None


COLUMNS: Final[Sequence[Column["Revision"]]] = (
    Column("REVISION", lambda one: str(one.number), right=True),
    Column("SEEN", lambda one: one.seen_at, time=True),
    Column("FILES", lambda one: str(len(one.files)), right=True),
    Column("BYTES", lambda one: f"{sum(file.size for file in one.files):,}", right=True),
    Column("STATE", _state),
    Column("COMMIT", _commit, only="table", drop=2),
    Column("TREE HASH", lambda one: one.tree_hash, drop=1),
)

WHO: Final[Sequence[Column["Revision"]]] = (
    Column("ROLE", lambda one: one.role or "-"),
    Column("HOST", lambda one: one.host or "-"),
    Column("TOOL", lambda one: one.tool or "-"),
    Column("CLIENT", lambda one: one.client or "-"),
)
