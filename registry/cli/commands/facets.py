"""`skill-registry tags`, `kinds` and `categories`."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import click

from registry.cli import options
from registry.cli.group import session_command
from registry.cli.listing import Column, emit
from registry.cli.session import Session

if TYPE_CHECKING:
    from registry.api import SkillRegistry
    from registry.db.read.listing import Facet


def _counting(
    what: str,
    count: "Callable[[SkillRegistry], Sequence[Facet]]",
    examples: Sequence[str],
    about: str,
) -> click.Command:
    """Make the command that counts skills by ``what``."""
    columns: Sequence[Column[Facet]] = (
        Column(what.upper(), lambda facet: facet.value),
        Column("SKILLS", lambda facet: facet.count, right=True),
    )

    @session_command(*examples, help=f"Count the skills of each {what}.\n\n{about}")
    @options.format_options
    def command(session: Session) -> None:
        emit(
            session,
            count(session.registry),
            columns,
            to_record=lambda facet: {what: facet.value, "count": facet.count},
            nothing=f"No skill has a {what}.",
        )

    return command


tags = _counting(
    "tag",
    lambda registry: registry.tags(),
    ("skill-registry tags", "skill-registry tags --format names | head -20"),
    "The most frequent come first. In a pipe each line is a tag, a tab and the count.",
)
kinds = _counting(
    "kind",
    lambda registry: registry.kinds(),
    ("skill-registry kinds", "skill-registry list --kind workflow"),
    "A skill says what kind it is in its front matter; many say nothing and are not counted here.",
)
categories = _counting(
    "category",
    lambda registry: registry.categories(),
    ("skill-registry categories", "skill-registry list --category documents"),
    "A skill says its category in its front matter; else it is the folder that groups it.",
)
