"""`skill-registry show`, `history` and `diff`."""

import os
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import replace
from shlex import quote
from typing import TYPE_CHECKING, Any, Final

import click

from registry.cli import completion, escape, formatting, options
from registry.cli.findings import draw_findings
from registry.cli.formatting import wrap
from registry.cli.group import session_command
from registry.cli.hints import installed_copies, trusting
from registry.cli.listing import Column, emit
from registry.cli.progress import waiting
from registry.cli.session import Console, Session
from registry.cli.source_hints import report_newer_tags
from registry.model import BY_REMOTE, Origin, Parameter, SkillDetail, SkillFile, Source, record
from registry.text import quoted

if TYPE_CHECKING:
    from registry.catalog.why import LinkTo
    from registry.db.read.history import Revision, Tombstone
    from registry.db.read.recent import RecentChange


MAX_FILES: Final = 12
LABEL: Final = 12
_WHOLE: Final = frozenset({"Ref", "Status", "Folder", "Linked at", "Installed", "Origin"})
MAX_TEXT_WIDTH: Final = 100
"""Maximum width of text, in columns; longer lines are hard to read."""


def draw_skill(
    session: Session, skill: SkillDetail, source: Source | None, links: "Sequence[LinkTo]"
) -> Iterator[str]:
    """Yield the lines that ``show`` prints about a skill; ``source`` is the source of the skill."""
    console = session.console
    width = min(console.width, MAX_TEXT_WIDTH)
    yield console.style(escape.line(skill.name), "bold")
    yield from wrap(escape.prose(skill.description), width)
    yield ""
    for label, value in _facts(session, skill, source, links):
        if value:
            # Never wrap values that users copy, such as paths.
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
    session: Session, skill: SkillDetail, source: Source | None, links: "Sequence[LinkTo]"
) -> Iterator[tuple[str, str | None]]:
    console = session.console
    state = formatting.state(skill.status)
    style = formatting.STATUS_STYLES.get(state)
    if skill.quarantined:
        from registry.catalog.resolve import trust_command

        trust = trust_command(escape.line(skill.source), escape.line(skill.ref))
        state, style = "quarantined", formatting.STATUS_STYLES.get("quarantined")
        state += f" (hidden from agents; to trust it, run: {trust})"
    elif withdrawn := [one for one in skill.versions if one.state == "yanked"]:
        state, style = "yanked", formatting.STATUS_STYLES["yanked"]
        ref = shlex.quote(escape.line(f"{skill.ref}@{withdrawn[0].label}"))
        if withdrawn[0].history[-1].tool == BY_REMOTE:
            state += " (its source withdrew it; newer versions come with the next sync)"
        else:
            state += f" (to offer it again, run: skill-registry version yank {ref} --undo)"
    elif source is not None and source.remote is not None:
        state += _trusted(session, skill)
    if skill.shadowed:
        state += f", shadowed (to see by what, run: skill-registry why {escape.line(skill.ref)})"
    yield "Ref", escape.line(skill.ref)
    yield "Source", f"{escape.line(skill.source)} ({escape.line(skill.scope)})"
    is_copy = source is not None and source.remote is None
    yield "Origin", _origin(skill.origin, is_copy=is_copy)
    yield "Status", console.style(escape.line(state), style)
    yield "Also in", ", ".join(map(escape.line, skill.copies))
    for link in links:
        yield "Linked at", escape.line(link.path)
    for path, way in installed_copies(skill) if skill.quarantined else ():
        removed = f"agents still see this copy; to remove it, run: {way}"
        yield "Installed", f"{escape.line(path)} ({removed})"
    yield "Kind", _one(skill.kind)
    yield "Category", _one(skill.category)
    yield "Tags", ", ".join(map(escape.line, skill.tags))
    yield "Host", _one(source.host if source else None)
    yield "Folder", escape.line(skill.path)
    if skill.version not in {one.label for one in skill.versions}:
        yield "Version", _one(skill.version)
    for version in skill.versions:
        yield "Version", _one((version.warning or version.label).removeprefix("Version "))
    yield "Author", _one(skill.author)
    yield "License", _one(skill.license)
    yield "Created", _when(console, skill.created_at)
    yield "Updated", _when(console, skill.updated_at)
    yield "Works with", _one(skill.compatibility)
    yield "Needs tools", ", ".join(map(escape.line, skill.required_tools))


def _trusted(session: Session, skill: SkillDetail) -> str:
    """Return a note if a skill with security errors was trusted, with the time if it is known."""
    from registry.db.read.access import trusted_at
    from registry.sync.reading import security_errors

    if not security_errors(skill.diagnostics):
        return ""
    when = trusted_at(session.registry.core.reader, f"{skill.source}/{skill.folder}")
    return ", trusted" + (f" {_when(session.console, when)}" if when else "")


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


@session_command(
    "skill-registry show pdf-forms",
    "skill-registry show ~/.claude/skills/pdf-forms",
    "skill-registry show pdf-forms --json | jq .front_matter",
    "skill-registry show pdf-forms --raw > SKILL.md",
    'cd "$(skill-registry show pdf-forms --path)"',
)
@click.argument(
    "names", metavar="NAME...", nargs=-1, required=True, shell_complete=completion.names
)
@click.option(
    "--raw",
    "part",
    flag_value="raw",
    help="Print the SKILL.md unchanged, byte for byte.",
)
@click.option("--files", "part", flag_value="files", help="List the skill's files.")
@click.option("--path", "part", flag_value="path", help="Print the path of the skill's folder.")
@click.option(
    "--revision",
    metavar="R",
    type=click.IntRange(min=1),
    help='Print the SKILL.md of revision R; "history" lists the revisions.',
)
@options.personality_option
@options.json_option
def show(
    session: Session,
    *,
    names: tuple[str, ...],
    part: str | None,
    revision: int | None,
    personality: str | None,
) -> None:
    """Show one skill, or several.

    NAME is a skill's name or ref, as printed by "list", or the path of its folder. The files are
    read from disk now; if you edited them, the registry stores the new files and prints a note. On
    a terminal the Markdown is rendered, and long output goes through $PAGER.
    Control characters are always printed as escapes, also with --raw and --path. With several
    skills, --json prints an array.
    """
    console, registry = session.console, session.registry
    if revision is not None and len(names) > 1:
        raise click.UsageError("--revision requires a single NAME.")
    found = [options.named(registry, name) for name in names]
    if personality is not None:
        view = options.view_of(registry, personality)
        found = [view.locate(name).stored.place for name in found]
    if revision is not None:
        _write(console, registry.read_revision(found[0], revision))
    elif part == "raw":
        for name in found:
            _write(console, registry.read_bytes(name))
    else:
        skills = [_current(session, name) for name in found]
        if part == "path":
            for skill in skills:
                _write(console, os.fsencode(skill.path) + b"\n")
        elif part == "files":
            files = [file for skill in skills for file in skill.files]
            emit(session, files, FILES)
        elif session.as_json:
            lines = [
                record(
                    replace(skill, diagnostics=(*skill.diagnostics, *(one.notice for one in links)))
                )
                for skill, links in _linked(session, skills)
            ]
            console.json(lines if names[1:] else lines[0])
        else:
            console.page(_pages(session, skills))


def _current(session: Session, name: str) -> SkillDetail:
    """Return all details of a skill, and tell the user if the registry has stored an edit."""
    from registry.catalog.reading import current_detail, located

    core = session.registry.core
    current = located(core, name)
    if current.is_edited and current.version is None:
        ref = escape.line(current.stored.skill.ref)
        session.console.note(
            f"{ref} was edited on disk since the last sync. The registry has stored the new files. "
            f"To see the changes, run: skill-registry diff {quote(ref)}"
        )
    return current_detail(core, current)


def _pages(session: Session, skills: Sequence[SkillDetail]) -> Iterator[str]:
    sources = {one.name: one for one in session.registry.sources(counted=False)}
    for index, (skill, links) in enumerate(_linked(session, skills)):
        if index:
            yield ""
        yield from draw_skill(session, skill, sources.get(skill.source), links)


def _linked(
    session: Session, skills: Sequence[SkillDetail]
) -> "Iterator[tuple[SkillDetail, Sequence[LinkTo]]]":
    """Yield each skill with the links to it."""
    for skill in skills:
        yield skill, session.registry.links(f"{skill.source}/{skill.folder}")


def _revision_or_name(text: str) -> int | str:
    """Parse a revision number (from 1), or return the text as the name of a skill."""
    if not text.lstrip("-").isdecimal():
        return text
    if int(text) < 1:
        raise ValueError(f"{text} is not a revision: the first is 1")
    return int(text)


_REVISION_OR_NAME: Final = options.Parsed("revision or name", _revision_or_name)


def _write(console: Console, data: bytes) -> None:
    if console.is_terminal:
        text = data.decode("utf-8", "backslashreplace")
        console.write([escape.text(text.removesuffix("\n"))])
    else:
        console.write_bytes(data)


@session_command(
    "skill-registry history --since 7d        # what changed in all skills, and who did it",
    "skill-registry history code-review",
    "skill-registry show code-review --revision 1",
    "skill-registry restore code-review --revision 1",
)
@click.argument("name", required=False, metavar="[NAME]", shell_complete=completion.names)
@click.option("--who", is_flag=True, help="Also print the role, tool and client of each change.")
@options.since_option
@options.last_option(help="List the last N changes.")
@options.format_options
def history(
    session: Session, *, name: str | None, who: bool, since: str | None, limit: int
) -> None:
    """List the revisions of a skill, or without NAME the changes of all skills.

    The newest comes first. Revisions and their files are kept until "db prune"; with the setting
    "store_files: false" only SKILL.md is kept. A removed skill is found by its last name. With
    --who the list has the role, as the server reports it, and the host, tool and client, as they
    report themselves. If earlier files come back, their revision has its number again, and the next
    new revision skips a number.

    Without NAME, each line is a time, who made the change, added, changed or removed, and the
    skill. The author is a client or person, the role on a server, or "local" for commands and edits
    by hand on this machine; the author of a removal is not recorded. A sync records a change when
    it finds it. A skill that gets earlier files again, for example by "undo", adds no line. For
    yanked versions, and for changes to sources, rights and tokens, see "db audit".
    """
    from registry.changes.history import History

    if name is None:
        _list_changes(session, who=who, since=since, limit=limit)
        return
    found = History.of(session.registry.core, name)
    shown = [one for one in found.revisions if one.seen_at >= (since or "")][:limit]
    emit(session, shown, [*COLUMNS, *WHO] if who else COLUMNS)
    if not found.revisions:
        session.console.note(
            "No revision of it was stored. To see why, run: skill-registry why NAME"
        )
    if session.is_for_people:
        for one in found.revisions[1:]:
            if one.current:
                session.console.note(f"The skill has the files of revision {one.number} again.")
    if found.gone is not None:
        session.console.note(escape.text(_where(found.gone, name)))
    elif found.revisions[1:] and session.console.is_terminal and session.is_for_people:
        way = f"skill-registry restore {quote(escape.line(name))} --revision N"
        session.console.note(f"To go back, run: {way}", "dim")


def _list_changes(session: Session, *, who: bool, since: str | None, limit: int) -> None:
    """Print the last changes of all skills."""
    from registry.catalog.browse import Browse
    from registry.db.read.access import audit_records
    from registry.db.read.recent import ChangeFilters

    wanted = ChangeFilters(since=since)
    found = Browse(session.registry.core).recent(wanted, limit=limit + 1)
    nothing = "No skill changed since then." if since else "No change of a skill is recorded."
    columns = [*CHANGES, *MADE_WITH] if who else CHANGES
    emit(session, found[:limit], columns, name=lambda one: one.ref, nothing=nothing)
    if len(found) > limit and not session.as_json:
        session.console.note(f"These are the last {limit:,}. To list more, add --limit N.")
    if session.is_for_people and audit_records(session.registry.core.reader, 1, since=since or ""):
        way = "skill-registry db audit" + (f" --since {quote(since)}" if since else "")
        session.console.note(
            f"To list yanked versions, and changes to sources, rights and tokens, run: {way}", "dim"
        )


@session_command(
    "skill-registry diff code-review        # the last change",
    "skill-registry diff code-review 1      # from revision 1 to now",
    "skill-registry diff code-review 1 2",
    "skill-registry diff agents/pdf claude/pdf   # two skills",
    "skill-registry diff code-review --upstream",
)
@click.argument("name", shell_complete=completion.names)
@click.argument("old", metavar="[R1|OTHER]", type=_REVISION_OR_NAME, required=False)
@click.argument("new", metavar="[R2]", type=click.IntRange(min=1), required=False)
@click.option("--upstream", is_flag=True, help="Compare the skill with its remote source.")
def diff(
    session: Session, *, name: str, old: int | str | None, new: int | None, upstream: bool
) -> None:
    """Compare two revisions of a skill, or two skills, with all their files.

    If the second argument is not a number, it is the name, ref or folder of the other skill.

    With --upstream, the skill is compared with a remote source: an installed skill with what "pull"
    would write, a skill of a remote source with what the next sync would fetch, your own skill with
    the remote skill of the same name. An installed skill is searched in this project, then in your
    home folder; NAME can also be its folder. Lines with "-" are yours, lines with "+" are from
    upstream.
    """
    from registry.cli.hints import naming_both
    from registry.install.upstream import diff_upstream

    console, quarantined, fetch, remote = session.console, None, None, None
    if upstream and old is not None:
        raise click.UsageError("--upstream can't be combined with revisions or another skill.")
    if isinstance(old, str) and new is not None:
        raise click.UsageError(f"Two revisions are numbers; {old!r} is not a number.")
    if upstream:
        with waiting(console, "asking"):
            text, quarantined, fetch, remote = diff_upstream(session.registry.core, name)
    elif isinstance(old, str):
        registry = session.registry
        text = registry.compare(options.named(registry, name), options.named(registry, old))
    else:
        with naming_both():
            text = session.registry.diff(name, old, new)
    if quarantined is not None:
        text = escape.text(text)
        console.note(f"The upstream version is quarantined. {trusting(quarantined)}", "yellow")
    if not text:
        console.note("No differences.")
        if remote is not None:
            known = session.registry.sources(counted=False)
            report_newer_tags(session, [one for one in known if one.name == remote])
    elif console.is_terminal:
        console.write(console.paint_diff(line) for line in text.splitlines())
    else:
        console.write_bytes(text.encode("utf-8", "backslashreplace"))
    if text and fetch is not None:
        sync = f"skill-registry sync {quote(escape.line(fetch))}"
        console.note(f"Upstream is newer than the last sync. To fetch it, run: {sync}")


def _where(gone: "Tombstone", asked: str) -> str:
    """Return where a removed skill was, and the command that restores ``asked``."""
    name = quoted(gone.name)
    place = f" It was in {quoted(gone.place)}." if gone.place else ""
    if gone.trash is not None:
        message = f"{name} is in the trash (deleted {gone.since})."
    elif gone.since:
        message = f"{name} has been gone since {gone.since}.{place}"
    else:
        message = f"{name} is no longer on disk.{place}"
    return f"{message} To restore it, run: skill-registry restore {quote(asked)}"


def _state(one: "Revision") -> str:
    states = ("current" if one.current else "", "" if one.complete else "incomplete")
    return " ".join(filter(None, states))


def _versions(one: "Revision") -> str:
    return ", ".join(
        version.label if version.state == "active" else f"{version.label} ({version.state})"
        for version in one.versions
    )


def _commit(one: "Revision") -> str | None:
    return formatting.commit(one.origin.commit) if one.origin and one.origin.commit else None


COLUMNS: Final[Sequence[Column["Revision"]]] = (
    Column("REVISION", lambda one: str(one.number), right=True),
    Column("SEEN", lambda one: one.seen_at, time=True),
    Column("FILES", lambda one: str(len(one.files)), right=True),
    Column("BYTES", lambda one: f"{sum(file.size for file in one.files):,}", right=True),
    Column("STATE", _state),
    Column("VERSION", _versions, only="table"),
    Column("COMMIT", _commit, only="table", drop=6),
    Column("TREE HASH", lambda one: one.tree_hash, drop=5),
)


def _maker(fact: str, drop: int) -> Column[Any]:
    """Return the column of a fact about who made a change; it has a hyphen for an unknown fact."""
    return Column(fact.upper(), lambda one: getattr(one, fact) or "-", drop=drop)


_ROLE, _HOST, _TOOL, _CLIENT = map(_maker, ("role", "host", "tool", "client"), (3, 4, 2, 1))
WHO: Final[Sequence[Column["Revision"]]] = (_ROLE, _HOST, _TOOL, _CLIENT)


def _author(one: "RecentChange") -> str:
    """Return who made a change; on a server, the role that wrote it comes last.

    Without a server, a change without a client was made on this machine: by a command, or by hand.
    The author of a removal isn't recorded.
    """
    if one.kind == "removed":
        return ""
    if one.client and one.role:
        return f"{one.client} ({one.role})"
    return one.client or one.role or formatting.LOCAL


CHANGES: Final[Sequence[Column["RecentChange"]]] = (
    Column("WHEN", lambda one: one.at, time=True),
    Column("WHO", _author, only="table"),
    Column("WHO", lambda one: _author(one) or "-", only="plain"),
    Column("WHAT", lambda one: one.kind),
    Column("SKILL", lambda one: one.ref, style="bold", cut="middle", flexible=True, min_width=16),
)

MADE_WITH: Final[Sequence[Column["RecentChange"]]] = (_ROLE, _TOOL, _maker("client", 4))
