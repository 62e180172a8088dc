"""`skill-registry import` and `skill-registry export`."""

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import click

from registry.cli import escape, formatting, options
from registry.cli.commands.pull import CHOOSE, choosing_options, chosen_skills, confirm_names
from registry.cli.findings import report_security
from registry.cli.group import session_command
from registry.cli.listing import skill_line
from registry.cli.progress import waiting
from registry.cli.prompts import confirm_addresses, home
from registry.cli.session import Session, Status
from registry.errors import ExportRefused

if TYPE_CHECKING:
    from registry.install.export import Export
    from registry.publish.git.export import GitExport


@session_command(
    "skill-registry import code-review.skill",
    "skill-registry import ~/Downloads/skill.zip --source mine --name code-review",
    "skill-registry import repository.tar.gz --skill code-review",
    "skill-registry import https://example.com/skills.zip --all",
)
@click.argument("file", metavar="FILE|ADDRESS")
@click.option(
    "--skill", "skills", metavar="NAME", multiple=True, help="Import only this skill (repeatable)."
)
@click.option("--all", "every", is_flag=True, help="Import all skills.")
@options.home_option
@click.option(
    "--name", metavar="NAME", help="The name of the new folder (default: the skill's name)."
)
@click.option("--trust", is_flag=True, help="Import skills with security errors as well.")
@options.yes_fetch(
    help=(
        "Skip the confirmation before fetching owner/repo from GitHub. Skills with security "
        "errors still require --trust."
    )
)
@options.json_option
def import_(session: Session, /, *, file: str, yes: bool, **given: Any) -> None:
    """Copy skills from an archive or an address into your own source.

    FILE is a .skill, .zip or .tar.gz with one skill at its top, or the archive of a repository with
    many skills; "source add --help" lists the forms of ADDRESS. An archive is refused completely if
    it has links, paths that lead out of it, or more files or bytes than a skill may have. Skills
    with security errors are refused until you give --trust. If you want skills that follow their
    remote source, use "sync ADDRESS" instead.
    """
    if given["skills"] and given["every"]:
        raise click.UsageError("--skill and --all can't be combined.")
    confirm_addresses(session, [file], yes=yes)
    given["source"] = home(session, given["source"])
    with waiting(session.console, "importing"):
        made = session.registry.import_skills(file, **given)
    lines = [line for one in made for line in skill_line("Imported", one)]
    several = bool(given["skills"] or given["every"])
    session.answer(list(made) if several else made[0], lines)
    for one in made:
        for finding in one.diagnostics:
            if finding.category == "security" and finding.severity != "info":
                report_security(session.console, one.ref, finding)


@session_command(
    "skill-registry export code-review          # code-review.zip, for a colleague",
    "skill-registry export code-review ~/Desktop/review.zip",
    "skill-registry export --all --well-known ./public",
    "skill-registry export --tag git --well-known ./public --json",
    "skill-registry export --all --git ./skills.git",
)
@choosing_options
@click.option(
    "--well-known",
    "to",
    metavar="DIR",
    help=(
        "The root of the web site. The index is written to "
        ".well-known/agent-skills/index.json below it."
    ),
)
@click.option(
    "--git",
    "repository",
    metavar="DIR",
    help="A folder for a bare git repository, from which agents' own clients install.",
)
@click.option("--force", is_flag=True, help="Replace the zip file if it exists.")
@options.yes_fetch(
    help="Skip the confirmation before owner/repo is fetched from GitHub and registered."
)
@options.json_option
def export(
    session: Session,
    /,
    *,
    to: str | None,
    repository: str | None,
    force: bool,
    yes: bool,
    **choice: Any,
) -> None:
    """Export a skill to a zip file, or skills for a web site or git.

    "export NAME FILE.zip" writes the files of a skill into a zip file (or FILE.skill), in a folder
    with the skill's name. Without FILE.zip, it is NAME.zip in the current folder. "import FILE.zip"
    reads it.

    With --well-known the command writes the index of the discovery RFC 0.2.0, and a SKILL.md or an
    archive for each skill with its digest. Skills whose names the specification does not allow are
    left out.

    With --git it writes the repository that "serve" offers at /git/catalogue.git: a marketplace
    with one plugin for each skill. Give --all, one --tag or one NAME.

    The same skills always give the same bytes, and the same commit.

    Exit status: 1 if a skill can't be exported completely.
    """
    if to is not None and repository is not None:
        raise click.UsageError("--well-known and --git can't be combined.")
    if repository is not None and not force:
        made = _export_git(session, repository, **choice)
        _report(session, made, is_complete=not made.left_out)
    elif to is not None and not force:
        confirm_names(session, choice["names"], yes=yes)
        wanted = chosen_skills(session, **choice)
        if wanted is None:
            raise click.UsageError(CHOOSE)
        with waiting(session.console, "exporting"):
            done = session.registry.export(wanted, to)
        _report(session, done, is_complete=not done.failed)
    else:
        _export_zip(session, to or repository, force=force, **choice)


def _report(session: Session, done: "Export | GitExport", *, is_complete: bool) -> None:
    held = formatting.count(len(done.skills), "skill")
    session.answer(done, [f"Exported {held}: {escape.line(done.path)}"])
    for ref, reason in done.left_out:
        session.console.note(f"Left out {escape.line(ref)}: {escape.text(reason).rstrip('.')}.")
    if not is_complete:
        raise click.exceptions.Exit(Status.FAILED)


ZIPS: Final = (".zip", ".skill")


def _is_file(name: str) -> bool:
    """Tell whether an argument is the zip file of an export."""
    return name.lower().endswith(ZIPS)


def _export_zip(
    session: Session, other: str | None, *, force: bool, names: Sequence[str], **more: Any
) -> None:
    name, *files = names or [""]
    is_wide = any(more.values())
    if not (force or any(map(_is_file, names))) and (
        is_wide or len(names) != 1 or session.registry.is_address(name)
    ):
        raise click.UsageError(
            "Missing FILE.zip, --well-known DIR (the root of a web site) or --git DIR. To install "
            "skills into a folder, run: skill-registry pull NAME --to DIR"
        )
    is_clear = not files[1:] and all(map(_is_file, files)) and (files or not _is_file(name))
    if other is not None or is_wide or not is_clear:
        raise click.UsageError("A zip file holds one skill: skill-registry export NAME FILE.zip")
    name = options.named(session.registry, name)
    file = files[0] if files else None
    try:
        done = session.registry.export_zip(name, file, overwrite=force)
    except ExportRefused as error:
        if os.path.isfile(error.facts["path"]) and not force:
            error.add_note("To replace it, add --force. Or name another FILE.zip.")
        raise
    session.answer(done, [f"Exported {escape.line(done.ref)}: {escape.line(done.path)}"])


def _export_git(
    session: Session,
    to: str,
    *,
    names: Sequence[str],
    tags: Sequence[str],
    every: bool,
    personality: str | None,
) -> "GitExport":
    ways = [*(("skill", name) for name in names), *(("tag", tag) for tag in tags)]
    if every:
        ways.append(("catalogue", "") if personality is None else ("personality", personality))
    if len(ways) != 1:
        raise click.UsageError("--git requires --all, one --tag or one NAME.")
    with waiting(session.console, "exporting"):
        return session.registry.export_git(to, *ways[0], personality=personality)
