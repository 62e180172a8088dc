"""`skill-registry proposal`."""

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import click

from registry.cli import escape, options
from registry.cli.findings import draw_findings
from registry.cli.group import Group, session_command
from registry.cli.listing import Column, emit
from registry.cli.progress import waiting
from registry.cli.prompts import confirm
from registry.cli.session import Session

if TYPE_CHECKING:
    from registry.db.read.proposals import Proposal
    from registry.publish.client import Publisher, SentProposal

_ID: Final = re.compile("[0-9a-f]{1,32}")

reason_option: Final = click.option(
    "--reason", metavar="TEXT", help="Why; it is recorded with the decision."
)

to_option: Final = click.option(
    "--to", "url", metavar="URL", help="The address of the server that has the proposal."
)
"""The option for a proposal of a server. The token is looked up as for ``publish --to``."""


@click.group(
    cls=Group,
    examples=("skill-registry proposal list", "skill-registry proposal show 3f2a91c07b5d"),
)
def command() -> None:
    """Review proposals: changes that wait for approval in sources under review.

    To put a source under review, run: skill-registry source update NAME --review required
    """


@session_command(
    "skill-registry proposal list",
    "skill-registry proposal list --all --json",
    "skill-registry proposal list --to https://skills.example.org",
    group=command,
)
@click.option("--all", "every", is_flag=True, help="Also list decided proposals.")
@click.option(
    "--to",
    "url",
    metavar="URL",
    help="List the proposals at this server instead: your own, and those that you may decide on.",
)
@options.format_options
def list_(session: Session, *, every: bool, url: str | None) -> None:
    """List the proposals that wait for review, the oldest first.

    With --to, your own proposals are listed in all states, with the reason of the decision. The
    token is looked up as for "publish --to".

    In a pipe each line is an id, the kind of change, the skill, the source, the author, the time,
    the state and the reason.
    """
    if url is not None:
        server = _server(session, url)
        with waiting(session.console, "asking"):
            found = server.proposals(every=every)
    else:
        from registry.publish.proposals import listed

        found = listed(session.registry.core, None if every else "pending")
    nothing = "No proposals wait for review."
    if url is None:
        nothing += " To list the proposals at a server, add --to URL."
    emit(session, found, COLUMNS, name=lambda one: one.id, nothing=nothing)


@session_command(
    "skill-registry proposal show 3f2a91c07b5d",
    "skill-registry proposal show 3f2a91c07b5d --to https://skills.example.org",
    group=command,
)
@click.argument("number", metavar="ID")
@to_option
@options.json_option
def show(session: Session, *, number: str, url: str | None) -> None:
    """Show a proposal: its author, the decision, the findings of the check, and the diff."""
    shown = _asked(session, _checked(number), url)
    if session.as_json:
        from registry.model import record

        findings = [record(each) for each in shown.findings]
        session.console.json({**record(shown.proposal), "findings": findings, "diff": shown.diff})
        return
    _show(session, shown)


def _server(session: Session, url: str) -> "Publisher":
    from registry.publish.client import Publisher

    session.starts_new = True  # this machine needs no database
    return Publisher(session.registry.core, url)


def _asked(session: Session, number: str, url: str | None) -> "SentProposal":
    """Return a proposal of this registry or of a server, with its findings and its diff."""
    if url is not None:
        server = _server(session, url)
        with waiting(session.console, "asking"):
            return server.proposal(number)
    from registry.publish import proposals
    from registry.publish.client import SentProposal

    core = session.registry.core
    proposals.finish_approvals(core)
    one = proposals.get(core, number)
    wanted = proposals.proposed_package(core, one)
    findings = [] if wanted is None else list(wanted.findings)
    return SentProposal(one, findings, proposals.diff(core, one))


def _show(session: Session, shown: "SentProposal") -> None:
    console, one = session.console, shown.proposal
    facts = (
        ("Proposal", one.id),
        ("Change", f"{one.kind} {one.skill} in {one.source}"),
        ("Author", one.author),
        ("Proposed", one.created_at),
        ("Tree hash", one.tree_hash),
        ("Replaces", one.base or "nothing"),
        ("State", one.state),
        ("Decided", f"{one.decided_at} by {one.decided_by}" if one.decided_by else None),
        ("Reason", one.reason),
    )
    console.write(f"{name:10} {escape.line(text)}" for name, text in facts if text is not None)
    warned = [each for each in shown.findings if each.severity != "info" or session.verbose]
    console.write(draw_findings(console, warned, console.width))
    console.write(map(console.paint_diff, shown.diff.splitlines()))


@session_command(
    "skill-registry proposal approve 3f2a91c07b5d",
    'skill-registry proposal approve 3f2a91c07b5d --reason "Looks good." --yes',
    "skill-registry proposal approve 3f2a91c07b5d --to https://skills.example.org",
    group=command,
)
@click.argument("number", metavar="ID")
@to_option
@reason_option
@click.option("--own", is_flag=True, help="Approve your own proposal. Only an admin can do this.")
@options.yes_option
@options.json_option
def approve(
    session: Session, *, number: str, url: str | None, reason: str | None, own: bool, yes: bool
) -> None:
    """Approve a proposal, so that its change is made.

    The command shows the proposal and asks. It accepts exactly the files that it showed, instead of
    the version on which they are based; if the skill has changed since, nothing is done. On a
    server, a role needs the right that "db grant ROLE --approve" gives. If the source is on another
    machine, the next sync there makes the change. With --to, the token needs the right to approve.
    """
    if url is not None and own:
        raise click.UsageError("--own and --to can't be combined.")
    done = _decide(session, "approve", number, url, reason, own=own, yes=yes)
    rest = "; its owner's next sync makes the change" if done.state == "approved" else ""
    session.answer(done, [f"Approved the {_request(done)}{rest}"])


@session_command(
    'skill-registry proposal reject 3f2a91c07b5d --reason "Too broad."',
    "skill-registry proposal reject 3f2a91c07b5d --to https://skills.example.org",
    group=command,
)
@click.argument("number", metavar="ID")
@to_option
@reason_option
@options.yes_option
@options.json_option
def reject(
    session: Session, *, number: str, url: str | None, reason: str | None, yes: bool
) -> None:
    """Reject a proposal. Nothing is changed, and the proposal stays in the list with --all."""
    done = _decide(session, "reject", number, url, reason, own=False, yes=yes)
    session.answer(done, [f"Rejected the {_request(done)}"])


def _decide(
    session: Session,
    decision: str,
    number: str,
    url: str | None,
    reason: str | None,
    *,
    own: bool,
    yes: bool,
) -> "Proposal":
    """Show a proposal before its approval, ask, and return it after the decision."""
    from registry.publish import proposals

    if url is None:
        proposals.check_approver(session.registry.core)
    shown = _asked(session, _checked(number), url)
    one = shown.proposal
    if not yes and decision == "approve":
        _show(session, shown)
    confirm(session, f"{decision.capitalize()} the {_request(one)}?", yes=yes)
    if url is not None:
        server = _server(session, url)
        with waiting(session.console, "sending"):
            return server.decide(one, decision, reason)
    core = session.registry.core
    by = proposals.local_person(core)
    if decision == "reject":
        return proposals.reject(core, one.id, by, reason)
    return proposals.approve(core, one.id, one.tree_hash, by, reason=reason, own=own)


def _request(one: "Proposal") -> str:
    return escape.line(f"request to {one.kind} {one.skill}")


def _checked(number: str) -> str:
    if _ID.fullmatch(number) is None:
        raise click.UsageError(f"{number!r} is not the id of a proposal.")
    return number


COLUMNS: "Sequence[Column[Proposal]]" = (
    Column("ID", lambda one: one.id, style="bold"),
    Column("CHANGE", lambda one: one.kind),
    Column("SKILL", lambda one: one.skill),
    Column("SOURCE", lambda one: one.source, drop=3),
    Column("AUTHOR", lambda one: one.author, drop=1),
    Column("PROPOSED", lambda one: one.created_at, time=True, drop=2),
    Column("STATE", lambda one: one.state),
    Column("REASON", lambda one: one.reason, prose=True, flexible=True, min_width=12, when=any),
)
