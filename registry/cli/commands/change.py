"""`skill-registry create`, `update`, `rename` and `edit`."""

import os
import shlex
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import click

from registry.cli import completion, escape, options
from registry.cli.batch import copies_option, each, report_copies
from registry.cli.findings import draw_findings
from registry.cli.group import session_command
from registry.cli.hints import naming_what_helps
from registry.cli.listing import skill_line
from registry.cli.prompts import home
from registry.cli.session import Console, Session, Status
from registry.errors import ChangeRefused
from registry.model import Parameter, SkillDetail
from registry.text import tag_key
from registry.toolsets.schemas import TYPES


def _parameter(text: str) -> Parameter:
    """Parse a parameter, NAME[?][:TYPE[:TEXT]]; a "?" after the name makes it optional."""
    name, _, rest = text.partition(":")
    kind, _, about = rest.partition(":")
    kind = kind.strip() or "string"
    if kind not in TYPES:
        raise ValueError(f"{kind!r} is not a type; choose one of {', '.join(TYPES)}.")
    needed = not name.endswith("?")
    name = name.removesuffix("?").strip()
    if not name:
        raise ValueError("a parameter needs a name: NAME[?][:TYPE[:TEXT]].")
    return Parameter(name, kind, about.strip(), needed)


field_options: Final = options.stack(
    click.option("--tag", "tags", metavar="TAG", multiple=True, help="A tag (repeatable)."),
    click.option("--kind", metavar="KIND", help="The kind, such as workflow or reference."),
    click.option(
        "--body",
        metavar="FILE|-",
        type=click.File("r", encoding="utf-8"),
        help="Read the Markdown below the front matter from FILE, or from standard input (-).",
    ),
    click.option(
        "--param",
        "parameters",
        metavar="NAME[?][:TYPE[:TEXT]]",
        type=options.Parsed("parameter", _parameter),
        multiple=True,
        help="A parameter (repeatable). ? makes it optional; TYPE defaults to string.",
    ),
)


@session_command(
    'skill-registry create release-notes --description "Write release notes from commits."',
    "skill-registry create weather --description ... --tag web --param city:string:Where",
    "skill-registry create notes --description ... --body notes.md --source mine",
)
@click.argument("name")
@click.option(
    "--description", metavar="TEXT", required=True, help="What the skill does and when to use it."
)
@field_options
@options.home_option
@options.json_option
def create(session: Session, /, *, name: str, body: Any, **given: Any) -> None:
    """Create a skill on disk and in the registry.

    NAME may have lower-case letters, digits and hyphens; it is also the folder's name.
    """
    given["source"] = home(session, given["source"])
    made = session.registry.create(name, body=_text(body) or "", **given)
    session.answer(made, skill_line("Created", made))


@session_command(
    'skill-registry update release-notes --description "Write notes for a release."',
    "skill-registry update release-notes --tag git --tag writing",
    "skill-registry update haiku limerick --add-tag poetry --remove-tag draft",
    "skill-registry show notes --json | jq -r .content_hash   # for --if-hash",
)
@click.argument(
    "names", metavar="NAME...", nargs=-1, required=True, shell_complete=completion.names
)
@click.option("--description", metavar="TEXT", help="What the skill does and when to use it.")
@field_options
@options.tag_option("--add-tag", "added", help="Add a tag (repeatable).")
@options.tag_option("--remove-tag", "removed", help="Remove a tag (repeatable).")
@copies_option
@options.guard_options
@options.json_option
def update(
    session: Session,
    /,
    *,
    names: tuple[str, ...],
    body: Any,
    added: tuple[str, ...],
    removed: tuple[str, ...],
    copies: bool,
    if_hash: str | None,
    force: bool,
    **given: Any,
) -> None:
    """Change the metadata, parameters or body of skills.

    Only the given fields change; every other byte stays. --tag replaces all tags, and --param all
    parameters. A skill that was edited by hand since the last sync is not changed without --force.
    If you name several skills, none changes unless all names are found. Copies of a skill don't
    change without --copies; they are listed.
    """
    if copies and force:
        raise click.UsageError("--copies and --force can't be combined.")
    fields = {key: value for key, value in given.items() if value not in (None, ())}
    if not (body or added or removed or fields):
        raise click.UsageError(
            "Nothing to change: give at least one option, such as --description or --add-tag. "
            "To get new versions of installed skills, run: skill-registry pull"
        )
    if given["tags"] and (added or removed):
        raise click.UsageError(
            "--tag replaces all tags; it can't be combined with --add-tag or --remove-tag."
        )
    if names[1:] and (if_hash or body or fields.keys() & {"description", "parameters"}):
        raise click.UsageError(
            "With several skills, only the tags and the kind can be changed; --if-hash, "
            "--description, --body and --param require a single NAME."
        )
    registry, text = session.registry, _text(body)
    unchanged: set[str] = set()

    def change(name: str) -> SkillDetail:
        base = if_hash
        # Resolve the version from the last sync. If the user edits the skill after this, the change
        # fails.
        known = registry.get(name) if force else registry.resolve(name)
        if added or removed:
            fields["tags"] = _edited(known.tags, added, removed)
            base = base or known.content_hash
        with report_copies(session, name, "changes", copies=copies):
            now = registry.update(
                name, body=text, if_hash=base, force=force, copies=copies, **fields
            )
        if now.tree_hash == known.tree_hash:
            unchanged.add(now.path)
        return now

    def done(one: SkillDetail) -> list[str]:
        return skill_line("Unchanged" if one.path in unchanged else "Updated", one)

    changed, is_complete = each(session, names, change, copies=copies)
    lines = (line for one in changed for line in done(one))
    session.answer(changed if names[1:] else changed[0], lines)
    if not is_complete:
        raise click.exceptions.Exit(Status.FAILED)


@session_command(
    "skill-registry rename release-notes changelog",
    "skill-registry rename team/pdf pdf-forms",
)
@click.argument("name", metavar="NAME", shell_complete=completion.names)
@click.argument("new_name", metavar="NEW")
@click.option(
    "--if-hash", metavar="HASH", help="Proceed only if the skill still has this content hash."
)
@options.json_option
def rename(session: Session, /, *, name: str, new_name: str, if_hash: str | None) -> None:
    """Rename a skill: its folder and the name in its SKILL.md.

    The history stays, and "undo" restores the old name. Copies of the skill keep their name.
    """
    handle = options.named(session.registry, name)
    with (
        naming_what_helps(session.registry, handle, new_name),
        report_copies(session, handle, "renames", copies=None),
    ):
        before = session.registry.resolve(handle).name
        renamed = session.registry.rename(handle, new_name, if_hash=if_hash)
    session.answer(renamed, skill_line(f"Renamed {escape.line(before)} to", renamed))


def _edited(tags: Sequence[str], added: Sequence[str], removed: Sequence[str]) -> list[str]:
    """Return the tags after additions and removals; tags are compared in their stored form."""
    gone = set(map(tag_key, removed))
    return list(dict.fromkeys(tag for tag in (*tags, *map(tag_key, added)) if tag not in gone))


def _text(body: Any) -> str | None:
    if body is None:
        return None
    try:
        return str(body.read())
    except UnicodeDecodeError as error:
        raise click.UsageError(f"The body is not UTF-8 text: {error.reason}.") from error


@session_command(
    "skill-registry edit release-notes",
    "EDITOR=nano skill-registry edit release-notes",
    "VISUAL='code --wait' skill-registry edit ~/.claude/skills/release-notes",
)
@click.argument("name", shell_complete=completion.names)
def edit(session: Session, *, name: str) -> None:
    """Open a skill's SKILL.md in your editor, then sync and check it.

    The editor is $VISUAL, else $EDITOR. The command then prints the edit as a diff, and the
    findings about the edited file. "undo" restores the earlier version.

    Exit status: 1 if the editor failed, or if the skill is no longer usable.
    """
    from registry.catalog.resolve import resolve
    from registry.changes.finish import record_edit

    console, registry = session.console, session.registry
    editor = _editor(os.environ)
    if not editor:
        raise click.ClickException(
            "No editor is set. Set VISUAL or EDITOR, such as: EDITOR=nano skill-registry edit "
            f"{shlex.quote(name)}"
        )
    skill = registry.get(options.named(registry, name))
    path, place = _writable(session, skill), f"{skill.source}/{skill.folder}"
    before, stored = registry.read_bytes(place), resolve(registry.core.reader, place)
    console.note(f"Editing {escape.line(path)}")
    with report_copies(session, place, "changes", copies=None):
        try:
            # The editor's exit status.
            status = subprocess.run([*editor, path], check=False).returncode  # noqa: S603
        except OSError as error:
            problem = f"The editor {editor[0]!r} can't be started: {error.strerror}."
            raise click.ClickException(problem) from error
        now = registry.get(place)
    after = registry.read_bytes(place)
    record_edit(registry.core, stored, resolve(registry.core.reader, place))
    if before == after:
        console.note("Nothing changed.")
    else:
        console.write(_report(session, now, before, after, place))
    if status:
        console.error(f"The editor ended with status {status}.")
    if status or now.status not in {"ok", "warning"}:
        raise click.exceptions.Exit(Status.FAILED)


def _editor(environ: Mapping[str, str]) -> list[str]:
    given = environ.get("VISUAL") or environ.get("EDITOR") or ""
    try:
        return shlex.split(given)
    except ValueError as error:
        raise click.UsageError(f"The editor {given!r} is not a command: {error}.") from error


def _writable(session: Session, skill: SkillDetail) -> str:
    """Return the path of the file to edit. Raises `ChangeRefused`, `SourceElsewhere`."""
    from registry.sync.sources import check_ours, check_writable, find

    source = find(session.registry.core, skill.source)
    check_ours(session.registry.core, source)
    check_writable(source)
    path = os.path.realpath(skill.location)
    if os.path.isdir(path):
        raise ChangeRefused(path=path, reason="it has no SKILL.md")
    if not os.access(path, os.W_OK):
        raise ChangeRefused(path=path, reason="it is read-only; install a copy and edit that")
    return path


def _report(
    session: Session, skill: SkillDetail, before: bytes, after: bytes, place: str
) -> Iterator[str]:
    console = session.console
    yield from _diff(console, before, after)
    found = [one for checked in session.registry.check([place]) for one in checked.findings]
    shown = [one for one in found if session.verbose or one.severity != "info"]
    state = "checked" if shown else "no findings"
    yield f"{console.style(escape.line(skill.ref), 'bold')}: {state}"
    yield from draw_findings(console, shown, console.width)


def _diff(console: Console, before: bytes, after: bytes) -> Iterator[str]:
    from difflib import unified_diff

    old, new = (data.decode("utf-8", "backslashreplace").splitlines() for data in (before, after))
    for line in unified_diff(old, new, "before", "after", lineterm=""):
        yield console.paint_diff(line)
