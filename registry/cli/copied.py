"""Say what became of the copies of a skill that was changed."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from shlex import quote
from typing import Final, Literal

import click

from registry.catalog.copies import copies_of, fate
from registry.catalog.resolve import resolve
from registry.cli import escape, words
from registry.cli.session import Session
from registry.errors import SkillNotFound

MAX_NAMED: Final = 10

option: Final = click.option(
    "--copies",
    is_flag=True,
    help="Also its copies: the same files under the same name in other places; all or none.",
)


@contextmanager
def told(
    session: Session, handle: str, verb: Literal["changes", "deletes"], *, copies: bool | None
) -> Iterator[None]:
    """Say on stderr which copies of a skill the change in the block left, and which it changed.

    ``copies``: whether it was to change them; None: it can't.
    """
    console, reader = session.console, session.registry.core.reader
    try:
        stored = resolve(reader, handle)
    except SkillNotFound:  # it is gone, and may come back
        yield
        return
    before = copies_of(reader, stored)
    yield
    found = fate(reader, stored, before)
    if found.changed:
        done = {"changes": "changed", "deletes": "deleted"}[verb]
        console.note(f"{_count(found.changed, 'is', 'are')} {done}, too: {named(found.changed)}")
    if found.left:
        text = _count(found.left, "is left as it was", "are left as they were")
        text += f": {named(found.left)}"
        them = "them" if found.left[1:] else "it"
        if verb == "deletes" and copies is False:
            text += f"; the same with --copies deletes {them}, too"
        console.note(text)
        if verb == "changes":
            if copies is False:
                again = "'skill-registry undo', then the same with --copies"
                console.note(f"To change {them}, too: {again}.")
            name = quote(escape.line(stored.skill.name))
            console.note(f"'skill-registry copies {name}' shows what differs.")


def _count(refs: tuple[str, ...], one: str, several: str) -> str:
    return f"{words.count(len(refs), 'copy', 'copies')} {several if refs[1:] else one}"


def named(refs: Sequence[str]) -> str:
    """Return refs as one text, of many the first."""
    named = ", ".join(map(escape.line, refs[:MAX_NAMED]))
    return named + (f" and {len(refs) - MAX_NAMED:,} more" if len(refs) > MAX_NAMED else "")
