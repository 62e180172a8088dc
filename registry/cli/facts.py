"""Draw facts about one thing: a label and a value a line; in a pipe with a tab between."""

from collections.abc import Iterable, Iterator

from registry.cli import escape
from registry.cli.console import Console


def draw_facts(console: Console, facts: Iterable[tuple[str, str]]) -> Iterator[str]:
    """Yield the lines."""
    rows = list(facts)
    if not console.is_terminal:
        for label, value in rows:
            yield f"{label.lower()}\t{escape.line(value)}"
        return
    width = max(len(label) for label, _ in rows)
    for label, value in rows:
        yield f"{console.style(f'{label:{width}}', 'dim')}  {escape.line(value)}"
