"""Do one thing to several skills: all names must be right before the first is touched."""

from collections.abc import Callable, Sequence
from typing import TypeVar

from registry.cli import options
from registry.cli.hints import hint
from registry.cli.session import Session
from registry.errors import DatabaseProblem, RegistryError

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
