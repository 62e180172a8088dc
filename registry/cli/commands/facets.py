"""`skill-registry tags`, `kinds` and `categories`."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from registry.cli import options
from registry.cli.group import Command
from registry.cli.listing import Column, emit
from registry.cli.session import Session

if TYPE_CHECKING:
    from registry.db.queries.listing import Facet


@click.command(
    cls=Command,
    examples=("skill-registry tags", "skill-registry tags --format names | head -20"),
)
@options.format_options
@click.pass_obj
def tags(session: Session, *, style: str | None) -> None:
    """Count the skills of each tag.

    The most frequent come first. In a pipe each line is a tag, a tab and the count.
    """
    _print(session, style, session.registry.tags(), "tag")


@click.command(
    cls=Command, examples=("skill-registry kinds", "skill-registry list --kind workflow")
)
@options.format_options
@click.pass_obj
def kinds(session: Session, *, style: str | None) -> None:
    """Count the skills of each kind.

    A skill says what kind it is in its front matter; many say nothing and are not counted here.
    """
    _print(session, style, session.registry.kinds(), "kind")


@click.command(
    cls=Command,
    examples=("skill-registry categories", "skill-registry list --category documents"),
)
@options.format_options
@click.pass_obj
def categories(session: Session, *, style: str | None) -> None:
    """Count the skills of each category.

    A skill says its category in its front matter; else it is the folder that groups it.
    """
    _print(session, style, session.registry.categories(), "category")


def _print(session: Session, style: str | None, facets: "Sequence[Facet]", what: str) -> None:
    columns: Sequence[Column[Facet]] = (
        Column(what.upper(), lambda facet: facet.value),
        Column("SKILLS", lambda facet: facet.count, right=True),
    )
    emit(
        session.console,
        style,
        facets,
        columns,
        to_record=lambda facet: {what: facet.value, "count": facet.count},
    )
    if not facets:
        session.console.note(f"No skill has a {what}.")
