"""`skill-registry import` and `skill-registry export`."""

from typing import Any

import click

from registry.cli import escape, formatting, options
from registry.cli.commands.pull import CHOOSE, choosing_options, chosen_skills, confirm_names
from registry.cli.findings import report_security
from registry.cli.group import session_command
from registry.cli.listing import skill_line
from registry.cli.progress import waiting
from registry.cli.prompts import confirm_addresses
from registry.cli.session import Session, Status


@session_command(
    "skill-registry import code-review.skill",
    "skill-registry import ~/Downloads/skill.zip --source personal --name code-review",
    "skill-registry import repository.tar.gz --skill code-review",
    "skill-registry import https://example.com/skills.zip --all",
)
@click.argument("file", metavar="FILE|ADDRESS")
@click.option(
    "--skill", "skills", metavar="NAME", multiple=True, help="One of several skills; repeatable."
)
@click.option("--all", "every", is_flag=True, help="All skills that there are.")
@options.home_option
@click.option("--name", metavar="NAME", help="The name of its folder: by default the skill's own.")
@click.option("--trust", is_flag=True, help="Take skills with security errors, too.")
@options.yes_fetch_option
@options.json_option
def import_(session: Session, /, *, file: str, yes: bool, **given: Any) -> None:
    """Bring in skills from an archive or an address.

    They become copies of your own. FILE is a .skill, .zip or .tar.gz with one skill at its top, or
    the archive of a repository with many; ADDRESS is what "source add --help" lists. Paths that
    lead out of it, links, and more than a skill may hold are refused, and nothing is left of them.
    So are skills with security errors, until you have looked at them and say --trust.
    "sync ADDRESS" is the way to skills that stay in line with where they come from.
    """
    if given["skills"] and given["every"]:
        raise click.UsageError("--skill and --all exclude each other.")
    confirm_addresses(session, [file], yes=yes)
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
    "skill-registry export --all --well-known ./public",
    "skill-registry export --tag git --well-known ./public --json",
)
@choosing_options
@click.option(
    "--well-known",
    "to",
    metavar="DIR",
    help="The root of a web site: the index becomes .well-known/agent-skills/index.json in it.  "
    "[required]",
)
@options.yes_fetch_option
@options.json_option
def export(session: Session, /, *, to: str | None, yes: bool, **choice: Any) -> None:
    """Publish skills for discovery: an index and its artifacts.

    Writes the index of the discovery RFC 0.2.0, a SKILL.md or an archive for each skill, and their
    digests; the same skills give the same bytes. Skills whose names the specification does not
    allow are left out.

    Exit status: 1 where a skill can't be had, whole.
    """
    if to is None:
        raise click.UsageError(
            "Name the root of a web site with --well-known DIR. To copy skills into a folder, run: "
            "skill-registry pull NAME --to DIR"
        )
    confirm_names(session, choice["names"], yes=yes)
    wanted = chosen_skills(session, **choice)
    if wanted is None:
        raise click.UsageError(CHOOSE)
    with waiting(session.console, "exporting"):
        done = session.registry.export(wanted, to)
    held = formatting.count(len(done.skills), "skill")
    session.answer(done, [f"Exported {held}: {escape.line(done.path)}"])
    for ref, reason in done.left_out:
        session.console.note(f"Left out {escape.line(ref)}: {escape.text(reason)}.")
    if done.failed:
        raise click.exceptions.Exit(Status.FAILED)
