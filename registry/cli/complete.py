"""Complete names in a shell from the catalogue: read-only, and silent when anything goes wrong."""

from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import TYPE_CHECKING, Final

import click

from registry.cli.session import Session

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from registry.api import SkillRegistry

MOST: Final = 200
"""More candidates than this help nobody."""

Completer = Callable[[click.Context, click.Parameter, str], "list[CompletionItem]"]


def _completer(
    candidates: "Callable[[SkillRegistry], Iterable[tuple[str, str]]]", *, folders: bool = False
) -> Completer:
    """Make a completer of (value, what it is); ``folders``: a folder will do too."""

    def complete(
        ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> "list[CompletionItem]":
        del param
        from click.shell_completion import CompletionItem

        found = []
        # A completion that fails must not disturb what is being typed.
        with suppress(Exception), ctx.ensure_object(Session).registry as registry:
            for value, meaning in candidates(registry):
                # What a shell would split or a terminal obey can't be completed.
                if value.startswith(incomplete) and value.isprintable():
                    meaning = " ".join(meaning.split())[:60]  # noqa: PLW2901  # the same, in short
                    found.append(
                        CompletionItem(value, help=meaning if meaning.isprintable() else None)
                    )
                    if len(found) == MOST:
                        break
        if folders:
            found.append(CompletionItem(incomplete, type="dir"))
        return found

    return complete


names: Final = _completer(lambda registry: ((s.ref, s.description) for s in registry.list()))
names_or_paths: Final = _completer(
    lambda registry: ((s.ref, s.description) for s in registry.list()), folders=True
)
tags: Final = _completer(lambda registry: ((f.value, f"{f.count}") for f in registry.tags()))
kinds: Final = _completer(lambda registry: ((f.value, f"{f.count}") for f in registry.kinds()))
categories: Final = _completer(
    lambda registry: ((f.value, f"{f.count}") for f in registry.categories())
)
sources: Final = _completer(lambda registry: ((s.name, s.path) for s in registry.sources()))
sources_or_folders: Final = _completer(
    lambda registry: ((s.name, s.path) for s in registry.sources()), folders=True
)
personalities: Final = _completer(
    lambda registry: ((name, "personality") for name in registry.settings.personalities)
)
