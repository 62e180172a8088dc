"""`skill-registry create` and `skill-registry update`."""

from typing import Any, Final

import click

from registry.cli import complete, options
from registry.cli.group import session_command
from registry.cli.listing import skill_line
from registry.cli.session import Session
from registry.model import Parameter
from registry.toolsets.base import TYPES


class ParameterType(click.ParamType[Parameter]):
    """A parameter written as NAME[?][:TYPE[:DESCRIPTION]]."""

    name = "parameter"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> Parameter:
        """Read a parameter; ? after its name makes it optional."""
        if isinstance(value, Parameter):
            return value
        name, _, rest = str(value).partition(":")
        kind, _, about = rest.partition(":")
        kind = kind.strip() or "string"
        if kind not in TYPES:
            self.fail(f"{kind!r} is not a type; choose one of {', '.join(TYPES)}.", param, ctx)
        needed = not name.endswith("?")
        name = name.removesuffix("?").strip()
        if not name:
            self.fail("a parameter needs a name: NAME[?][:TYPE[:DESCRIPTION]].", param, ctx)
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
        type=ParameterType(),
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
def create(session: Session, /, *, name: str, body: Any, as_json: bool, **given: Any) -> None:
    """Create a skill, on disk and in the registry at once.

    NAME has lower-case letters, digits and hyphens, and becomes the name of the folder.
    """
    made = session.registry.create(name, body=_text(body) or "", **given)
    session.console.answer(made, skill_line("Created", made), as_json=as_json)


@session_command(
    'skill-registry update release-notes --description "Write notes for a release."',
    "skill-registry update release-notes --tag git --tag writing",
    "skill-registry show notes --json | jq -r .content_hash   # for --if-hash",
)
@click.argument("name", shell_complete=complete.names)
@click.option("--description", metavar="TEXT", help="What it does and when to use it.")
@field_options
@options.guard_options
@options.json_option
def update(
    session: Session,
    /,
    *,
    name: str,
    body: Any,
    if_hash: str | None,
    force: bool,
    as_json: bool,
    **given: Any,
) -> None:
    """Change a skill and leave every other byte as it was.

    What is given replaces what was there: --tag names all tags, --param all parameters. A skill
    that was edited by hand since the last sync is left alone.
    """
    if not (body or any(given.values())):
        raise click.UsageError("Say what to change.")
    name = options.named(session.registry, name)
    fields = {key: value for key, value in given.items() if value != ()}
    changed = session.registry.update(
        name, body=_text(body), if_hash=if_hash, force=force, **fields
    )
    session.console.answer(changed, skill_line("Updated", changed), as_json=as_json)


def _text(body: Any) -> str | None:
    if body is None:
        return None
    try:
        return str(body.read())
    except UnicodeDecodeError as error:
        raise click.UsageError(f"The body is not UTF-8 text: {error.reason}.") from error
