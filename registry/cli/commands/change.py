"""`skill-registry create`, `update` and `rename`."""

from collections.abc import Sequence
from typing import Any, Final

import click

from registry.cli import completion, escape, options
from registry.cli.batch import copies_option, each, report_copies
from registry.cli.group import session_command
from registry.cli.listing import skill_line
from registry.cli.session import Session, Status
from registry.model import Parameter, SkillDetail
from registry.text import tag_key
from registry.toolsets.schemas import TYPES


def _parameter(text: str) -> Parameter:
    """Read a parameter, NAME[?][:TYPE[:TEXT]]; ? after its name makes it optional."""
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
    click.option("--kind", metavar="KIND", help="Its kind, such as workflow or reference."),
    click.option(
        "--body",
        metavar="FILE|-",
        type=click.File("r", encoding="utf-8"),
        help="The Markdown below the front matter, from a file or from standard input.",
    ),
    click.option(
        "--param",
        "parameters",
        metavar="NAME[?][:TYPE[:TEXT]]",
        type=options.Parsed("parameter", _parameter),
        multiple=True,
        help="A parameter (repeatable); ? makes it optional, TYPE is string by default.",
    ),
)


@session_command(
    'skill-registry create release-notes --description "Write release notes from commits."',
    "skill-registry create weather --description ... --tag web --param city:string:Where",
    "skill-registry create notes --description ... --body notes.md --source personal",
)
@click.argument("name")
@click.option(
    "--description", metavar="TEXT", required=True, help="What it does and when to use it."
)
@field_options
@options.home_option
@options.json_option
def create(session: Session, /, *, name: str, body: Any, **given: Any) -> None:
    """Create a skill, on disk and in the registry at once.

    NAME has lower-case letters, digits and hyphens, and becomes the name of the folder.
    """
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
@click.option("--description", metavar="TEXT", help="What it does and when to use it.")
@field_options
@options.tag_option("--add-tag", "added", help="A tag to add to those it has (repeatable).")
@options.tag_option("--remove-tag", "removed", help="A tag to take from it (repeatable).")
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
    """Change skills and leave every other byte as it was.

    What is given replaces what was there: --tag names all tags, --param all parameters. A skill
    that was edited by hand since the last sync is left alone. Of several none is touched unless all
    names are known. Copies of a skill stay as they are, and are named, unless --copies is given.
    """
    if copies and force:
        raise click.UsageError("--copies and --force exclude each other.")
    fields = {key: value for key, value in given.items() if value not in (None, ())}
    if not (body or added or removed or fields):
        raise click.UsageError("Say what to change.")
    if given["tags"] and (added or removed):
        raise click.UsageError("--tag names all tags; --add-tag and --remove-tag go without it.")
    if names[1:] and (if_hash or body or fields.keys() & {"description", "parameters"}):
        raise click.UsageError(
            "Of several skills only tags and kind can be changed at once: --if-hash, "
            "--description, --body and --param go with a single NAME."
        )
    registry, text = session.registry, _text(body)

    def change(name: str) -> SkillDetail:
        base = if_hash
        if added or removed:
            # As the last sync saw it: an edit made by hand since then must stop the change.
            known = registry.get(name) if force else registry.resolve(name)
            fields["tags"] = _edited(known.tags, added, removed)
            base = base or known.content_hash
        with report_copies(session, name, "changes", copies=copies):
            return registry.update(
                name, body=text, if_hash=base, force=force, copies=copies, **fields
            )

    changed, is_complete = each(session, names, change, copies=copies)
    lines = (line for one in changed for line in skill_line("Updated", one))
    session.answer(changed if names[1:] else changed[0], lines)
    if not is_complete:
        raise click.exceptions.Exit(Status.FAILED)


@session_command(
    "skill-registry rename release-notes changelog",
    "skill-registry rename team/pdf pdf-forms",
)
@click.argument("name", metavar="NAME", shell_complete=completion.names)
@click.argument("new_name", metavar="NEW")
@click.option("--if-hash", metavar="HASH", help="Only if its content hash is this one.")
@options.json_option
def rename(session: Session, /, *, name: str, new_name: str, if_hash: str | None) -> None:
    """Rename a skill, in its SKILL.md and on disk at once.

    The folder gets the new name. The history stays, and "undo" gives the old name back. Copies of
    the skill keep their name.
    """
    handle = options.named(session.registry, name)
    renamed = session.registry.rename(handle, new_name, if_hash=if_hash)
    session.answer(renamed, skill_line(f"Renamed {escape.line(handle)} to", renamed))


def _edited(tags: Sequence[str], added: Sequence[str], removed: Sequence[str]) -> list[str]:
    """Return the tags with some more and some less, compared as they are stored."""
    gone = set(map(tag_key, removed))
    return list(dict.fromkeys(tag for tag in (*tags, *map(tag_key, added)) if tag not in gone))


def _text(body: Any) -> str | None:
    if body is None:
        return None
    try:
        return str(body.read())
    except UnicodeDecodeError as error:
        raise click.UsageError(f"The body is not UTF-8 text: {error.reason}.") from error
