"""Draw one skill for people to read."""

import shlex
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from registry.cli import escape, formatting
from registry.cli.findings import draw_findings
from registry.cli.formatting import wrap
from registry.cli.listing import Column
from registry.cli.session import Console
from registry.model import Origin, Parameter, SkillDetail, SkillFile, Source

if TYPE_CHECKING:
    from registry.catalog.links import LinkTo

MAX_FILES: Final = 12
LABEL: Final = 12
_WHOLE: Final = frozenset({"Ref", "Status", "Folder", "Linked at", "Origin"})
MAX_TEXT_WIDTH: Final = 100
"""Longer lines are hard to read, however wide the terminal is."""


def draw_skill(
    console: Console, skill: SkillDetail, source: Source | None, links: "Sequence[LinkTo]"
) -> Iterator[str]:
    """Yield the lines of the view; ``source`` is the source of the skill."""
    width = min(console.width, MAX_TEXT_WIDTH)
    yield console.style(escape.line(skill.name), "bold")
    yield from wrap(escape.prose(skill.description), width)
    yield ""
    for label, value in _facts(console, skill, source, links):
        if value:
            # What may be copied is never broken.
            lines = [value] if label in _WHOLE else list(wrap(value, width - LABEL))
            yield f"{console.style(f'{label:{LABEL - 1}}', 'dim')} {lines[0]}"
            for line in lines[1:]:
                yield " " * LABEL + line
    for parameter in skill.parameters:
        yield from _parameter(parameter, width)
    if skill.files:
        yield ""
        total = formatting.size(sum(file.size for file in skill.files))
        yield console.style(f"{formatting.count(len(skill.files), 'file')}, {total}", "dim")
        for file in skill.files[:MAX_FILES]:
            yield f"  {escape.line(file.path)}"
        if len(skill.files) > MAX_FILES:
            yield f"  and {len(skill.files) - MAX_FILES:,} more (--files lists them)"
    if skill.diagnostics:
        yield ""
        yield console.style(formatting.count(len(skill.diagnostics), "finding"), "dim")
        yield from draw_findings(console, skill.diagnostics, width)
    if skill.body and skill.body.strip():
        yield ""
        yield console.style("-" * min(width, 40), "dim")
        body = skill.body.strip("\r\n")
        yield from _body(console, body, width) if console.is_terminal else [escape.text(body)]


def _body(console: Console, body: str, width: int) -> Iterator[str]:
    from registry.cli.markdown import render

    return render(console, body, width)


def _facts(
    console: Console, skill: SkillDetail, source: Source | None, links: "Sequence[LinkTo]"
) -> Iterator[tuple[str, str | None]]:
    state = formatting.state(skill.status)
    style = formatting.STATUS_STYLES.get(state)
    if skill.shadowed:
        state += f", shadowed ('skill-registry why {escape.line(skill.ref)}' says by what)"
    if skill.quarantined:
        trust = f"skill-registry source trust {shlex.quote(escape.line(skill.source))}"
        state += f", quarantined (agents don't see it until you run: {trust})"
    yield "Ref", escape.line(skill.ref)
    yield "Source", f"{escape.line(skill.source)} ({escape.line(skill.scope)})"
    is_copy = source is not None and source.remote is None
    yield "Origin", _origin(skill.origin, is_copy=is_copy)
    yield "Status", console.style(escape.line(state), style)
    yield "Also in", ", ".join(map(escape.line, skill.copies))
    for link in links:
        yield "Linked at", escape.line(link.path)
    yield "Kind", _one(skill.kind)
    yield "Category", _one(skill.category)
    yield "Tags", ", ".join(map(escape.line, skill.tags))
    yield "Host", _one(source.host if source else None)
    yield "Folder", escape.line(skill.path)
    yield "Version", _one(skill.version)
    yield "Author", _one(skill.author)
    yield "License", _one(skill.license)
    yield "Created", _when(console, skill.created_at)
    yield "Updated", _when(console, skill.updated_at)
    yield "Works with", _one(skill.compatibility)
    yield "Needs tools", ", ".join(map(escape.line, skill.required_tools))


def _origin(origin: Origin | None, *, is_copy: bool) -> str | None:
    if origin is None:
        return None
    copy = " (installed copy)" if is_copy else ""
    at = f" at {formatting.commit(origin.commit)}" if origin.commit else ""
    return escape.line(f"{formatting.address(origin.url, origin.ref)}{at}, {origin.path}{copy}")


def _when(console: Console, stamp: str) -> str:
    return escape.line(formatting.moment(stamp, local=console.is_terminal))


def _one(value: str | None) -> str | None:
    return escape.prose(value) if value else None


def _parameter(parameter: Parameter, width: int) -> Iterator[str]:
    need = "required" if parameter.required else "optional"
    about = f"{parameter.name} ({parameter.type}, {need}): {parameter.description}"
    for index, line in enumerate(wrap(escape.prose(about), width - LABEL)):
        yield f"{'' if index else 'Parameter':{LABEL}}{line}"


FILES: Final[Sequence[Column[SkillFile]]] = (
    Column("FILE", lambda file: file.path, max_width=1000, cut="middle"),
    Column("SIZE", lambda file: formatting.size(file.size), only="table", right=True, drop=1),
    Column("SIZE", lambda file: str(file.size), only="plain"),
    Column("", lambda file: "executable" if file.executable else "", only="table", drop=2),
)
