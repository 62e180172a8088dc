"""Change several skills at once, and report what became of their copies."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from shlex import quote
from typing import Final, Literal, TypeVar

import click

from registry.catalog.copies import copies_of, fate
from registry.catalog.resolve import resolve
from registry.cli import escape, formatting, options
from registry.cli.hints import hint
from registry.cli.session import Session
from registry.errors import DatabaseProblem, RegistryError, SkillNotFound

K = TypeVar("K")
T = TypeVar("T")


def each(
    session: Session, names: Sequence[str], do: Callable[[str], T], *, copies: bool = False
) -> tuple[list[T], bool]:
    """Return what ``do`` made of each skill, and whether all went well.

    ``copies``: it does so to the skill's copies, too, so of several that are named one will do.
    With several, what fails is told on stderr and the rest goes on. Raises what resolving the names
    and, of a single skill, what ``do`` raises.
    """
    registry = session.registry
    handles = [options.named(registry, name) for name in names]
    if len(handles) == 1:
        return [do(handles[0])], True
    found = [registry.resolve(handle) for handle in handles]
    places: dict[object, str] = {}
    for skill in found:
        place = f"{skill.source}/{skill.folder}"
        is_copy = copies and skill.copies
        places.setdefault((skill.name, skill.tree_hash) if is_copy else place, place)
    return each_of(session, list(places.values()), do)


def each_of(session: Session, known: Sequence[K], do: Callable[[K], T]) -> tuple[list[T], bool]:
    """Return what ``do`` made of each of these, which are right, and whether all went well.

    With several, what fails is told on stderr and the rest goes on. Raises what ``do`` raises of a
    single one, and `DatabaseProblem`.
    """
    if len(known) == 1:
        return [do(known[0])], True
    done: list[T] = []
    for one in known:
        try:
            done.append(do(one))
        except DatabaseProblem:
            raise
        except RegistryError as error:
            session.console.error(f"{error} {hint(error)}".rstrip())
    return done, len(done) == len(known)


MAX_NAMED: Final = 10

copies_option: Final = click.option(
    "--copies",
    is_flag=True,
    help="Also its copies: the same files under the same name in other places; all or none.",
)


@contextmanager
def report_copies(
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
        console.note(
            f"{_count(found.changed, 'is', 'are')} {done}, too: {some_refs(found.changed)}"
        )
    if found.left:
        text = _count(found.left, "is left as it was", "are left as they were")
        text += f": {some_refs(found.left)}"
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
    return f"{formatting.count(len(refs), 'copy', 'copies')} {several if refs[1:] else one}"


def some_refs(refs: Sequence[str]) -> str:
    """Return refs as one text, of many the first."""
    shown = ", ".join(map(escape.line, refs[:MAX_NAMED]))
    return shown + (f" and {len(refs) - MAX_NAMED:,} more" if len(refs) > MAX_NAMED else "")
