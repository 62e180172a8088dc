"""Change several skills with one command, and report the copies of these skills."""

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
    """Call ``do`` with each skill; return the results, and whether all calls succeeded.

    Before the first call, all names must resolve. With ``copies``, ``do`` also changes copies, so
    it is called only once for all copies of a skill. For several skills, this prints errors on
    stderr and continues with the next skill. For a single skill, it raises the error.
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
    """Call ``do`` with each item; return the results, and whether all calls succeeded.

    For several items, this prints errors on stderr and continues with the next item. For a single
    item, it raises the error. A `DatabaseProblem` is always raised.
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
            arguments = [click.get_current_context().info_name or "", str(one)]
            session.console.error(f"{error} {hint(error, arguments)}".rstrip())
    return done, len(done) == len(known)


copies_option: Final = click.option(
    "--copies",
    is_flag=True,
    help=("Include its copies: the same files under the same name in other places. All or none."),
)


@contextmanager
def report_copies(
    session: Session,
    handle: str,
    verb: Literal["changes", "deletes", "renames"],
    *,
    copies: bool | None,
) -> Iterator[None]:
    """After the block, print on stderr which copies of a skill changed and which did not.

    ``copies`` tells whether the user asked to change copies. ``copies`` is None if the command
    can't change copies.
    """
    console, reader = session.console, session.registry.core.reader
    try:
        stored = resolve(reader, handle)
    except SkillNotFound:  # the folder is missing, but `restore` may write it again
        yield
        return
    before = copies_of(reader, stored)
    yield
    # The checkout of a remote source is read-only, so copies in it never change, even with
    # --copies.
    found = fate(reader, stored, [one for one in before if not one.remote])
    if found.changed:
        done = "deleted" if verb == "deletes" else "changed"
        console.note(f"{_copies(found.changed)} also {done}: {formatting.some_refs(found.changed)}")
    if found.left:
        text = f"{_copies(found.left)} unchanged: {formatting.some_refs(found.left)}"
        them = "them" if found.left[1:] else "it"
        console.note(text)
        if copies is False:
            again = "'skill-registry undo', then repeat the command with --copies"
            console.note(f"To {verb.removesuffix('s')} {them} as well: {again}.")
        if verb == "changes":
            name = quote(escape.line(stored.skill.name))
            console.note(f"To compare the copies, run: skill-registry copies {name}")


def _copies(refs: Sequence[str]) -> str:
    return f"{formatting.count(len(refs), 'copy', 'copies')} {'are' if refs[1:] else 'is'}"
