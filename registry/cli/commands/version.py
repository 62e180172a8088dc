"""`skill-registry version`."""

import shlex
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from registry.cli import completion, escape, options
from registry.cli.group import Group, session_command
from registry.cli.listing import Column, emit
from registry.cli.session import Session, Style
from registry.errors import RegistryError, SkillNotFound
from registry.model import SkillVersion

if TYPE_CHECKING:
    from registry.model import VersionState

F = TypeVar("F", bound=Callable[..., Any])

STYLES: Final[Mapping[str, Style]] = {"deprecated": "yellow", "yanked": "red"}

ELSEWHERE: Final = (
    "If you publish the skill to a server, write the label into its front matter (metadata: "
    "version: '2.0'), and publish it."
)


@click.group(
    "version",
    cls=Group,
    examples=(
        "skill-registry version add code-review 1.2",
        "skill-registry version list code-review",
        "skill-registry show code-review@1.2",
        "skill-registry pull code-review@1.2 --agent claude-code",
        'skill-registry version yank code-review@1.1 --reason "sends files away"',
    ),
)
def command() -> None:
    """Name versions of a skill, and deprecate or withdraw them.

    A version is a label for the files that a skill has now. It never changes. A sync creates the
    version that the front matter names, if the skill has no version with this label. NAME@LABEL
    means a version in show, diff, pull and export, and in the tools. To see the version of the
    program, run: skill-registry --version

    A label has up to 64 letters, digits, ".", "_", "+" and "-", and begins with a letter or digit.
    """


@session_command(
    "skill-registry version add code-review 1.2",
    group=command,
)
@click.argument("name", shell_complete=completion.names)
@click.argument("label")
@options.json_option
def add(session: Session, *, name: str, label: str) -> None:
    """Give the current files of a skill a label.

    If these files have the label already, nothing changes. If other files have it, choose another
    label: a version never changes.
    """
    try:
        made = session.registry.add_version(options.named(session.registry, name), label)
    except SkillNotFound as error:
        if type(error) is SkillNotFound and not error.facts["similar"]:
            error.add_note(ELSEWHERE)
        raise
    session.answer(made, [f"{escape.line(name)}@{escape.line(made.label)} is {made.tree_hash}"])


@session_command(
    "skill-registry version list code-review",
    "skill-registry version list code-review --json",
    group=command,
)
@click.argument("name", shell_complete=completion.names)
@options.format_options
def list_(session: Session, *, name: str) -> None:
    """List the versions of a skill, the newest first.

    The versions are ordered by SemVer if all labels follow it, else by PEP 440 if all follow that,
    else by time. --json also lists all changes of the state of each version.
    """
    from registry.catalog.resolve import resolve
    from registry.db.read.labels import versions

    reader = session.registry.core.reader
    stored = resolve(reader, options.named(session.registry, name))
    found = versions(reader, stored.uid)
    emit(session, found, COLUMNS, name=lambda one: one.label, nothing="It has no versions.")
    if stored.remote and not session.as_json:
        session.console.note(
            f"The source {escape.line(stored.skill.source)} may have more versions, which no "
            "sync has seen. To install one, run: skill-registry pull "
            f"{shlex.quote(escape.line(stored.skill.ref))}@LABEL --agent AGENT"
        )


def _state_options(verb: str) -> Callable[[F], F]:
    return options.stack(
        click.argument("version", metavar="NAME@LABEL"),
        click.option("--reason", metavar="TEXT", help="Why; users of the version read it."),
        click.option("--replacement", metavar="REF", help="The version or skill to use instead."),
        click.option("--undo", is_flag=True, help=f"Undo a former {verb}."),
        options.as_admin_option,
        options.json_option,
    )


@session_command(
    'skill-registry version deprecate pdf@1.1 --reason "old style" --replacement pdf@1.2',
    "skill-registry version deprecate pdf@1.1 --undo",
    group=command,
)
@_state_options("deprecate")
def deprecate(session: Session, **given: Any) -> None:
    """Mark a version as deprecated.

    It stays available. It is shown with the reason and the replacement, and "pull" warns.
    """
    _change(session, "deprecated", **given)


@session_command(
    'skill-registry version yank code-review@1.1 --reason "sends files away"',
    "skill-registry version yank code-review@1.1 --undo",
    group=command,
)
@_state_options("yank")
def yank(session: Session, **given: Any) -> None:
    """Withdraw a version.

    Listings, searches, tools and new pulls leave it out. A lock file that names it still gets it,
    with a warning. If the skill has these files now, the whole skill is left out; only the owner of
    its source still finds it, with show and list --all. The version before does not come back by
    itself.
    """
    _change(session, "yanked", **given)


def _change(
    session: Session,
    state: "VersionState",
    *,
    version: str,
    reason: str | None,
    replacement: str | None,
    undo: bool,
    as_admin: bool,
) -> None:
    registry = session.registry
    if undo:
        if reason is not None or replacement is not None:
            raise click.UsageError("--undo can't be combined with --reason or --replacement.")
        changed = registry.reactivate_version(version, as_admin=as_admin)
    else:
        change = registry.yank_version if state == "yanked" else registry.deprecate_version
        changed = change(version, reason or "", replacement=replacement, as_admin=as_admin)
    session.answer(changed, [f"{escape.line(version)} is {changed.state}."])
    _report_remote(session, version)
    if state == "yanked" and not undo and changed.current:
        name = version.rpartition("@")[0]
        # An admin doesn't see a yanked skill of another role, and can't restore its files.
        labels = () if as_admin else registry.versions(name)
        before = next((one for one in labels if one.state != "yanked"), None)
        restored = before and shlex.quote(escape.line(f"{name}@{before.label}"))
        back = f"To go back to the version before, run: skill-registry restore {restored}\n"
        session.console.note(
            f"These are the current files of {escape.line(name)}, so listings, searches, tools and "
            "new installs leave out the skill. You still see it in: skill-registry list --all\n"
            f"{back if before else ''}To offer it again, edit it, or run: "
            f"skill-registry version yank {shlex.quote(escape.line(version))} --undo"
        )


def _report_remote(session: Session, version: str) -> None:
    """Print that a change of a version from a remote source counts only in this registry."""
    name = version.rpartition("@")[0]
    with suppress(RegistryError):  # the role may not see the skill
        source = session.registry.resolve(name).source
        known = session.registry.sources(counted=False)
        remote = next(one.remote for one in known if one.name == source)
        if remote is not None:
            shown, url = escape.line(name), escape.line(remote.url)
            session.console.note(
                f"This is only in this registry: {shown} comes from {url}. To change it for "
                "all users, the owner of the skill must run this command there.",
                "yellow",
            )


COLUMNS: Final[Sequence[Column[SkillVersion]]] = (
    Column("VERSION", lambda one: one.label),
    Column("CREATED", lambda one: one.created_at, time=True),
    Column("STATE", lambda one: one.state, style=STYLES),
    Column("CURRENT", lambda one: "current" if one.current else ""),
    Column("REASON", lambda one: one.reason, flexible=True),
    Column("REPLACEMENT", lambda one: one.replacement, drop=1),
    Column("BY", lambda one: one.author, drop=2),
    Column("TREE HASH", lambda one: one.tree_hash, drop=3),
)
