"""Complete names in a shell from the catalogue; this never writes, and prints no errors."""

from collections.abc import Callable, Iterable
from contextlib import suppress
from itertools import islice
from typing import TYPE_CHECKING, Final

import click

from registry.cli.session import Session

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from registry.api import SkillRegistry
    from registry.db.read.listing import Facet

MAX_CANDIDATES: Final = 200
"""Maximum number of candidates for one completion."""

Completer = Callable[[click.Context, click.Parameter, str], "list[CompletionItem]"]


def _completer(
    candidates: "Callable[[SkillRegistry], Iterable[tuple[str, str]]]", *, folders: bool = False
) -> Completer:
    """Return a function that completes values, each with a description.

    If ``folders``, the shell also completes folders.
    """

    def complete(
        ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> "list[CompletionItem]":
        del param
        from click.shell_completion import CompletionItem

        found = []
        # A failed completion must not change the command line that the user is typing.
        with suppress(Exception), ctx.ensure_object(Session).registry as registry:
            # Skip values that the shell would split or the terminal would interpret.
            fitting = (
                pair
                for pair in candidates(registry)
                if pair[0].startswith(incomplete) and pair[0].isprintable()
            )
            for value, meaning in islice(fitting, MAX_CANDIDATES):
                short = " ".join(meaning.split())[:60]
                found.append(CompletionItem(value, help=short if short.isprintable() else None))
        if folders:
            found.append(CompletionItem(incomplete, type="dir"))
        return found

    return complete


def codes(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[str]:
    """Return completions for codes of findings."""
    from registry.catalog.check import all_codes

    return sorted(code for code in all_codes() if code.startswith(incomplete))


def _skills(registry: "SkillRegistry") -> Iterable[tuple[str, str]]:
    return ((skill.ref, skill.description) for skill in registry.list())


def _sources(registry: "SkillRegistry") -> Iterable[tuple[str, str]]:
    return ((source.name, source.path) for source in registry.sources())


def _counted(facets: "Iterable[Facet]") -> Iterable[tuple[str, str]]:
    return ((facet.value, str(facet.count)) for facet in facets)


names: Final = _completer(_skills)
names_or_paths: Final = _completer(_skills, folders=True)
tags: Final = _completer(lambda registry: _counted(registry.tags()))
kinds: Final = _completer(lambda registry: _counted(registry.kinds()))
categories: Final = _completer(lambda registry: _counted(registry.categories()))
sources: Final = _completer(_sources)
sources_or_folders: Final = _completer(_sources, folders=True)
personalities: Final = _completer(
    lambda registry: ((name, "personality") for name in registry.settings.personalities)
)
