"""`skill-registry publish`."""

import os
import shlex
from collections.abc import Iterable
from typing import Final

import click

from registry.cli import completion, escape, options
from registry.cli.findings import draw_findings
from registry.cli.group import session_command
from registry.cli.progress import waiting
from registry.cli.prompts import confirm
from registry.cli.session import Session
from registry.errors import SkillNotFound
from registry.model import Diagnostic
from registry.text import quoted

DONE: Final = {
    "created": "Published",
    "updated": "Published",
    "unchanged": "Unchanged",
    "proposed": "Proposed",
}
REHEARSED: Final = {
    "created": "Would create",
    "updated": "Would replace",
    "unchanged": "Unchanged",
    "proposed": "Would propose",
}
CONFLICT: Final = 428
SUCCESS: Final = range(200, 300)


@session_command(
    "skill-registry publish ./release-notes --source team",
    "skill-registry publish release-notes.skill --to https://skills.example.org",
    "skill-registry publish ./release-notes --to https://skills.example.org --dry-run",
    starts_new=True,
)
@click.argument("target", metavar="FOLDER|ARCHIVE|NAME")
@click.option("--to", "url", metavar="URL", help="The address of a registry that others serve.")
@click.option(
    "--source",
    metavar="NAME",
    shell_complete=completion.sources,
    help="The source to publish into, on this machine or, with --to, on the server.",
)
@click.option("--name", metavar="NAME", help="The name of the skill's folder, if it is created.")
@click.option("--trust", is_flag=True, help="Publish a skill with security errors as well.")
@click.option("--dry-run", is_flag=True, help="Check everything, but change nothing.")
@options.yes_option
@options.json_option
def command(
    session: Session,
    *,
    target: str,
    url: str | None,
    source: str | None,
    name: str | None,
    trust: bool,
    dry_run: bool,
    yes: bool,
) -> None:
    """Send a skill to a registry: to a server, or into a source on this machine.

    NAME is a skill of this registry, if there is no folder or archive of that name.

    The skill is checked first. If it replaces a version, the command shows the diff and asks; it
    then replaces exactly that version, or nothing. In a source under review, the skill becomes a
    proposal that another person approves. To give the version a label, write it into the front
    matter (metadata: version: '2.0').

    For --to, the token is read from SKILL_REGISTRY_TOKEN, the setting "tokens", git's credential
    store or ~/.netrc. To create a token, run on the server: skill-registry token create NAME
    --publish
    """
    if url is None and source is None:
        raise click.UsageError("Give --to URL, or --source NAME for a source on this machine.")
    target = _place(session, target)
    if url is not None:
        if trust or name is not None:
            option = "--trust" if trust else "--name"
            raise click.UsageError(f"{option} and --to can't be combined.")
        _send(session, url, target, source, dry_run=dry_run, yes=yes)
        return
    from registry.publish import publishing
    from registry.publish.packages import read_package
    from registry.sync.sources import find

    core = session.registry.core
    planned = publishing.plan(core, read_package(core, target, name), find(core, source or ""))
    publishing.check(planned, planned.replaces, trust=trust)
    if planned.outcome == "updated":
        _show_diff(session, publishing.diff(core, planned))
        if not dry_run:
            confirm(session, f"Replace {escape.line(planned.package.name)}?", yes=yes)
    done = publishing.publish(core, planned, planned.replaces, trust=trust, dry_run=dry_run)
    _answer(
        session,
        done.outcome,
        done.ref,
        done.proposal,
        done,
        done.findings,
        dry_run=dry_run,
        version=planned.package.version,
    )


def _place(session: Session, target: str) -> str:
    """Return the path that a target means: its own, or the folder of the skill of that name."""
    if os.path.lexists(os.path.expanduser(target)):
        return target
    from registry.catalog.resolve import resolve

    try:
        return resolve(session.registry.core.reader, target).path
    except SkillNotFound as error:
        if error.facts["similar"] or type(error) is not SkillNotFound:
            raise
        told = f"{quoted(target)} is not a folder, an archive or the name of a skill."
        raise click.ClickException(told) from error


def _send(
    session: Session,
    url: str,
    target: str,
    source: str | None,
    *,
    dry_run: bool,
    yes: bool,
) -> None:
    from registry.publish.client import Publisher, finding_of
    from registry.publish.packages import read_package

    core = session.registry.core
    wanted = read_package(core, target)
    publisher = Publisher(core, url)
    with waiting(session.console, "sending"):
        status, reply = publisher.send(wanted, source=source, if_match=None, dry_run=True)
    replaced = None
    if status == CONFLICT:
        replaced = str(reply.get("tree_hash"))
        _show_diff(session, str(reply.get("diff", "")))
        if not dry_run:
            confirm(session, f"Replace {escape.line(wanted.name)} at {escape.line(url)}?", yes=yes)
        with waiting(session.console, "sending"):
            status, reply = publisher.send(
                wanted, source=source, if_match=replaced, dry_run=dry_run
            )
    elif status in SUCCESS and not dry_run:
        with waiting(session.console, "sending"):
            status, reply = publisher.send(wanted, source=source, if_match=None, dry_run=False)
    findings = [finding_of(one) for one in reply.get("findings", ()) if isinstance(one, dict)]
    if status not in SUCCESS:
        found = reply.get("error")
        error = found if isinstance(found, dict) else {}
        message = str(error.get("message") or "")
        if error.get("code") in _NAMING_SOURCE:
            message = message.replace(
                "ame a source with ?source=NAME", "ame a source with --source NAME"
            )
        for line in draw_findings(session.console, findings, session.console.width):
            session.console.note(line)
        raise click.ClickException(f"{message or 'The server refused the skill.'} ({status})")
    outcome, ref = str(reply.get("outcome")), str(reply.get("ref"))
    number = reply.get("proposal")
    _answer(
        session,
        outcome,
        ref,
        number,
        reply,
        findings,
        dry_run=dry_run,
        url=url.rstrip("/"),
        version=wanted.version,
    )
    if number and not dry_run and not session.as_json:
        session.console.note(
            "To see the decision and its reason, run: skill-registry proposal show "
            f"{number} --to {shlex.quote(escape.line(url))}"
        )


_NAMING_SOURCE: Final = {"source_unclear", "name_taken"}
"""The codes of a server's errors that name its parameter ``source``."""


def _show_diff(session: Session, text: str) -> None:
    if not session.as_json:
        session.console.write(map(session.console.paint_diff, text.splitlines()))


def _answer(
    session: Session,
    outcome: str,
    ref: str,
    proposal: object,
    value: object,
    findings: Iterable[Diagnostic],
    *,
    dry_run: bool,
    version: str | None,
    url: str | None = None,
) -> None:
    console = session.console
    warned = [one for one in findings if one.severity != "info" or session.verbose]
    for line in draw_findings(console, warned, console.width):
        console.note(line)
    said = (REHEARSED if dry_run else DONE).get(outcome, outcome)
    rest = f"; it waits for review as proposal {proposal}" if proposal else ""
    rest += f": {url}/proposals/{proposal}" if proposal and url else ""
    label = f"version {version}" if version else "no version"
    session.answer(value, [escape.line(f"{said} {ref} ({label}){rest}")])
    if version is None and not session.as_json:
        console.note(
            "To give it a version, write this into the front matter of its SKILL.md, then publish "
            "again:\nmetadata:\n  version: '1.0'"
        )
