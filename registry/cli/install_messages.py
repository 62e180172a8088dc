"""Messages about installed skills: reasons, replaced edits, and helpful commands."""

import os
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import islice
from shlex import quote
from typing import TYPE_CHECKING, Final, NamedTuple

from registry.cli import escape, formatting
from registry.cli.findings import report_security
from registry.cli.formatting import some_refs
from registry.cli.listing import Column, draw_table
from registry.cli.prompts import confirm
from registry.cli.session import Console, Session
from registry.errors import RegistryError, SkillHeld

if TYPE_CHECKING:
    from registry.db.read.findings import SecurityFinding
    from registry.install.lockfile import LockEntry
    from registry.install.targets import InstallResult, InstallTarget
    from registry.model import Skill

_TELLING: Final = {
    "behind": "is outdated",
    "edited": "was edited after it was installed",
    "failed": "was not installed",
    "gone": "is not installed",
    "updated": "replaced your edits",
    "removed": "was removed with your edits",
}
_PLANNING: Final = {
    **_TELLING,
    "updated": "would replace your edits",
    "removed": "would be removed with your edits",
}
_STAYS: Final = "is still installed"


class SkillNotes(NamedTuple):
    """What to print about single skills; ``lines`` has the lines of each result, by its id.

    ``foreign`` are folders that no pull created. ``staying`` are skills that stay installed
    although they can't be installed now.
    """

    lines: "Mapping[int, Sequence[str]]"
    foreign: "Sequence[InstallResult]"
    staying: "Sequence[InstallResult]"

    def draw(
        self,
        columns: "Sequence[Column[InstallResult]]",
        console: Console,
        items: "Iterable[InstallResult]",
    ) -> Iterator[str]:
        """Yield the lines of a table, and below each skill its notes."""
        rows = draw_table(console, columns, items)
        yield from islice(rows, 1)
        for one, row in zip(items, rows, strict=True):
            yield row
            for line in self.lines.get(id(one), ()):
                yield console.style(f"  {line}", "yellow")


def notes_of(
    session: Session,
    target: "InstallTarget",
    done: "Sequence[InstallResult]",
    bring: str,
    *,
    dry_run: bool,
) -> SkillNotes:
    """Return which skills did not change or lost edits, with reasons, and facts about versions.

    ``bring`` is the command that installs skills, without their names.
    """
    from registry.install.lockfile import read_lock
    from registry.install.plan import EQUAL, KEPT

    edited = [one for one in done if one.state == "edited" and one.reason != EQUAL]
    told = [one for one in done if one.reason == KEPT or (one.reason and one.state in _TELLING)]
    locked = read_lock(target.path) if told else {}
    verbs = _PLANNING if dry_run else _TELLING
    foreign = [one for one in edited if os.path.basename(one.path) not in locked]
    installed = [one for one in done if _is_installed(session, one, locked)]
    staying = [one for one in installed if _stays(session, one, locked)]
    messages = {
        **{
            one.path: "was not installed: 'pull' did not create the existing folder"
            for one in foreign
        },
        **{one.path: "was not updated" for one in installed},
        **{one.path: _STAYS for one in staying},
    }
    lines: dict[int, list[str]] = {id(one): [] for one in done}
    for one in told:
        message = messages.get(one.path, verbs.get(one.state, ""))
        lines[id(one)].append(_reason(session, one, bring, message))
    for one in done:
        lines[id(one)] += _versions(one, bring)
    return SkillNotes(lines, foreign, staying)


def explain(
    session: Session,
    target: "InstallTarget",
    done: "Sequence[InstallResult]",
    doing: Sequence[str],
    notes: SkillNotes,
    *,
    again: str,
    overwrite: str = "--theirs",
) -> None:
    """Print on stderr what to do about all skills that did not change or lost edits.

    ``again`` is the command that updates the installed skills. ``overwrite`` is the option that
    overwrites edits.
    """
    from registry.install.plan import EQUAL

    edited = [one for one in done if one.state == "edited" and one.reason != EQUAL]
    if staying := notes.staying:
        names = " ".join(map(_folder, staying))
        them = "it" if len(staying) == 1 else "them"
        session.console.note(f"To remove {them}, run: {again} --remove {names}")
    _report_updates(session, target, done, again)
    if "check" in doing:
        if any(one.state == "behind" and one.reason is None for one in done):
            session.console.note(f"To update the outdated skills, run: {again}")
        return
    if ours := " ".join(_folder(one) for one in edited if one not in notes.foreign):
        is_removal = "remove" in doing
        how = "remove the skills anyway" if is_removal else "overwrite them"
        options = "--remove --force" if is_removal else overwrite
        session.console.note(f"Your edits are kept. To {how}, run: {again} {options} {ours}")
    if notes.foreign:
        session.console.note("To overwrite folders that 'pull' did not create, add --force.")


def _versions(one: "InstallResult", bring: str) -> Iterator[str]:
    """Yield whether an installed version is deprecated or yanked, and a newer one than the pin."""
    ref = escape.line(one.ref)
    if one.warning:
        way = f" To list its versions, run: skill-registry version list {quote(ref)}"
        is_enough = one.newer is not None or one.warning.endswith(" instead.")
        yield f"{ref}: {escape.line(one.warning)}{'' if is_enough else way}"
    if one.newer:
        pull = f"{bring} {quote(escape.line(f'{one.ref}@{one.newer}'))}"
        yield (
            f"{ref} is pinned to {escape.line(one.pin or '')}; {escape.line(one.newer)} is "
            f"available. To install it, run: {pull}"
        )


def _report_updates(
    session: Session, target: "InstallTarget", done: "Sequence[InstallResult]", again: str
) -> None:
    """Print how to see the available updates, and how to record an update merged by hand."""
    from registry.install.plan import BEHIND_TOO

    outdated = [one for one in done if one.state == "behind" or BEHIND_TOO in (one.reason or "")]
    if outdated:
        shown = _named(target, outdated[0]) if len(outdated) == 1 else "NAME"
        session.console.note(f"To see the changes, run: skill-registry diff {shown} --upstream")
    if unmerged := [one for one in outdated if BEHIND_TOO in (one.reason or "")]:
        names = " ".join(map(_folder, unmerged))
        session.console.note(f"After you merged an update by hand, run: {again} --keep {names}")


def _folder(one: "InstallResult") -> str:
    """Return the name of a skill's folder, quoted for a command."""
    return quote(escape.line(os.path.basename(one.path)))


def _is_installed(
    session: Session, one: "InstallResult", locked: "Mapping[str, LockEntry]"
) -> bool:
    """Tell whether a skill that can't be installed now is already installed."""
    from registry.install.provenance import owner

    entry = locked.get(os.path.basename(one.path))
    if entry is None or not os.path.lexists(one.path) or one.state not in {"failed", "gone"}:
        return False
    skill = owner(session.registry.core, entry)
    return one.state == "gone" or (skill is not None and skill.ref == one.ref)


def _stays(session: Session, one: "InstallResult", locked: "Mapping[str, LockEntry]") -> bool:
    """Tell whether exactly the installed files are quarantined, or the skill is removed."""
    from registry.install.provenance import owner

    entry = locked[os.path.basename(one.path)]
    skill = owner(session.registry.core, entry)
    is_outdated = skill is not None and skill.tree_hash != entry.tree_hash
    return one.state == "gone" or (bool(_way_out(session, one.ref)) and not is_outdated)


def _reason(session: Session, one: "InstallResult", bring: str, message: str) -> str:
    """Return why a skill did not change or which edits were lost, and a helpful command.

    For ``bring``, see `explain`. ``message`` is the result for the skill.
    """
    from registry.install.plan import EQUAL, FOREIGN, KEPT, QUARANTINED
    from registry.install.provenance import ALREADY_THERE, UNLESS_FORCED

    way = _way_out(session, one.ref) if one.state in {"failed", "behind"} else ""
    is_held = one.state == "failed" and message == _STAYS
    told = QUARANTINED if is_held else one.reason or ""
    ref, reason = escape.line(one.ref), escape.text(told).rstrip(".")
    if told in {EQUAL, FOREIGN, KEPT}:
        message = "was not changed"
    if told.endswith(UNLESS_FORCED):
        return f"{ref} {escape.text(told)}"
    if told == EQUAL:
        way = f"To take it over, run: {bring} --adopt {quote(ref)}"
    if told.startswith(ALREADY_THERE) and (others := _namesakes(session, one.ref)):
        refs = [other.ref for other in others]
        which = f" ({some_refs(refs)})" if refs[1:] else ""
        first = quote(escape.line(refs[0]))
        way = f"To install another skill with the same name{which}, run: {bring} {first}"
        own = session.registry.get(one.ref)
        if same := next((other for other in others if other.tree_hash == own.tree_hash), None):
            same_ref = escape.line(same.ref)
            way = f"To take it over as a copy of {same_ref}, run: {bring} --adopt {quote(same_ref)}"
    # no full stop after a command, so that users can copy it
    end = "" if "run: " in reason.rpartition(". ")[2] else "."
    return f"{ref} {message}: {reason}{end} {way}".rstrip()


def report_origins(
    session: Session,
    target: "InstallTarget",
    done: "Sequence[InstallResult]",
    shown: "Collection[SecurityFinding]" = (),
    *,
    may_be_first: bool = False,
) -> None:
    """Print the source, or address and commit, of each installed skill; then print other folders.

    If a name looks like the name of another skill, print a warning. The caller has already printed
    the security findings ``shown``. If ``may_be_first`` and the lock file of a git checkout lists
    no other skills, advise the user to commit it.
    """
    from registry.catalog.resolve import imitated, look_alikes
    from registry.install.lockfile import NAME, read_lock

    new = [os.path.basename(one.path) for one in done if one.state in {"added", "updated"}]
    locked = read_lock(target.path) if new else {}
    entries = [locked[folder] for folder in new if folder in locked]
    by_origin: dict[str, list[str]] = {}
    for entry in entries:
        by_origin.setdefault(_origin(entry), []).append(entry.name)
    for origin, names in by_origin.items():
        session.console.note(f"From {origin}: {some_refs(names)}")
    if entries:
        lock = escape.line(os.path.join(target.path, NAME))
        session.console.note(f"{_elsewhere(target, locked, new)}Recorded in {lock}")
        is_checkout = os.path.exists(os.path.join(target.path, ".git"))
        if may_be_first and is_checkout and len(locked) == len(entries):
            way = "skill-registry pull --frozen"
            session.console.note(f"Commit it; a clone gets the same skills with: {way}")
    _report_security(session, entries, shown)
    alike = look_alikes(session.registry.core.reader) if entries else {}
    for entry in entries:
        if others := imitated(alike, entry.name):
            text = f"{escape.line(entry.name)} looks like another skill: {some_refs(others)}"
            session.console.note(text, "yellow")


def _report_security(
    session: Session, entries: "Sequence[LockEntry]", shown: "Collection[SecurityFinding]"
) -> None:
    """Print the security findings of installed skills that are not in ``shown``."""
    for source in dict.fromkeys(entry.source for entry in entries):
        names = {entry.tree_hash: entry.name for entry in entries if entry.source == source}
        for name, finding in _security_of(session, source, names):
            if finding not in shown:
                report_security(session.console, name, finding)


def _security_of(
    session: Session, source: str, names: "Mapping[str, str]"
) -> "Iterator[tuple[str, SecurityFinding]]":
    """Yield the security findings in skills of a source.

    ``names`` maps tree hashes to these skills' names.
    """
    from registry.db.read.findings import security_findings

    for one in security_findings(session.registry.core.reader, source):
        if (name := names.get(one.tree_hash or "")) is not None:
            yield name, one


def report_dangers(
    session: Session, target: "InstallTarget", skills: "Sequence[Skill]", *, asks: bool
) -> "Sequence[SecurityFinding]":
    """Print the security findings of skills before they are installed, and return the findings.

    Skills that are already installed with the same files are left out. If ``asks``, ask the user
    whether to install own skills with security errors, and skills of remote sources with security
    warnings. There is no question about errors of remote sources: the user has trusted these
    files, or `pull` refuses the skill because it is quarantined.
    """
    from registry.install.lockfile import read_lock

    installed = {entry.tree_hash for entry in read_lock(target.path).values()}
    new = [one for one in skills if one.tree_hash and one.tree_hash not in installed]
    shown: list[SecurityFinding] = []
    dangerous: dict[str, dict[str, None]] = {"errors": {}, "warnings": {}}
    remote = {one.name for one in session.registry.sources(counted=False) if one.remote}
    for source in dict.fromkeys(one.source for one in new):
        names = {one.tree_hash or "": one.name for one in new if one.source == source}
        found = list(_security_of(session, source, names))
        errors = dict.fromkeys(name for name, one in found if one.severity == "error")
        for name, finding in found:
            report_security(session.console, name, finding)
            shown.append(finding)
            if source in remote and finding.severity == "warning" and name not in errors:
                dangerous["warnings"][name] = None
        if source not in remote:
            dangerous["errors"] |= errors
    if asks and any(dangerous.values()):
        told = [
            f"{some_refs(list(names))} {'has' if len(names) == 1 else 'have'} security {kind}."
            for kind, names in dangerous.items()
            if names
        ]
        them = "it" if sum(map(len, dangerous.values())) == 1 else "them"
        confirm(session, f"{' '.join(told)} Install {them} anyway?", yes=False)
    return shown


def report_declined(session: Session, skills: "Sequence[Skill]", known: Collection[str]) -> None:
    """Print that nothing was installed, and remove the skills' sources that this command added.

    ``known`` are the names of the sources before the command.
    """
    from registry.remotes.sources import remove_added

    added = remove_added(session.registry.core, (one.source for one in skills), known)
    session.console.note(f"Nothing was installed{' or registered' if added else ''}.")


def _elsewhere(
    target: "InstallTarget", locked: "Mapping[str, LockEntry]", folders: Sequence[str]
) -> str:
    """Return a sentence that names the folders of skills that are missing from the table."""
    named: dict[str, dict[str, None]] = {}
    for folder in folders:
        if folder in locked:
            entry = locked[folder]
            for one in target.install_paths(entry.agents, entry.mode, folder)[1:]:
                named.setdefault("Linked" if one.is_link else "Copied", {})[one.named] = None
    return "".join(
        f"{how} into {', '.join(map(escape.line, paths))}. " for how, paths in sorted(named.items())
    )


def _origin(entry: "LockEntry") -> str:
    if entry.origin is None or not entry.origin["url"]:
        return f"the source {escape.line(entry.source)}"
    place = escape.line(formatting.address(entry.origin["url"], entry.origin["ref"]))
    commit = entry.origin["commit"]
    return f"{place} at {formatting.commit(commit)}" if commit else place


def _named(target: "InstallTarget", one: "InstallResult") -> str:
    """Return how a command can name an installed skill: by its ref, otherwise by its path.

    In the skill's project, the ref is enough.
    """
    from registry.install.targets import InstallTarget

    with suppress(OSError):  # the current folder may have been removed
        if target == InstallTarget.project(os.getcwd()):
            return quote(escape.line(one.ref))
    return quote(escape.line(one.path))


def _way_out(session: Session, ref: str) -> str:
    """Return the command that trusts a skill if it is quarantined, else ""."""
    from registry.catalog.resolve import resolve
    from registry.cli.hints import hint

    with suppress(RegistryError):
        stored = resolve(session.registry.core.reader, ref)
        return hint(SkillHeld(ref, stored.skill.source)) if stored.quarantined else ""
    return ""


def _namesakes(session: Session, ref: str) -> "list[Skill]":
    """Return the other installable skills with the same name."""
    from registry.catalog.resolve import resolve
    from registry.db.read.skills import same_name

    reader = session.registry.core.reader
    known = same_name(reader, resolve(reader, ref).skill.name)
    usable = [one.skill for one in known if one.is_usable and not one.quarantined]
    return [one for one in usable if one.ref != ref]


def report_pulled(session: Session, since: str) -> None:
    """Print how to remove skills that were installed since a time (UTC) and have no undo record."""
    from registry.install.lockfile import NAME, pulled_at
    from registry.install.pull_records import remembered_pulls
    from registry.install.targets import InstallTarget

    known = {one.folder for one in remembered_pulls(session.registry.core)}
    with suppress(OSError):  # the current folder may have been removed, and with it the project
        for target in (InstallTarget.project(os.getcwd()), InstallTarget.everywhere()):
            last = pulled_at(target.path)
            if last is not None and last >= since and target.path not in known:
                how = "pull --global" if target.is_global else "pull"
                lock = escape.line(os.path.join(target.path, NAME))
                session.console.note(
                    f"The skills in {lock} stay: undo has no record of how they were installed. "
                    f"To remove one, run: skill-registry {how} --remove NAME"
                )


def report_fetched(
    session: Session,
    target: "InstallTarget",
    done: "Sequence[InstallResult]",
    *,
    asks: bool,
) -> None:
    """Print for each remote source the version with which installed skills were compared.

    A check doesn't fetch, so the remote source may have a newer version. If ``asks``, ask the
    sources that are pinned to a tag for newer tags. The hint to fetch comes after the skills that
    are already outdated.
    """
    from registry.install.lockfile import read_lock
    from registry.install.provenance import Provenance
    from registry.remotes.address import normalize_url
    from registry.remotes.sources import newer_tags

    is_behind = any(one.state == "behind" for one in done)
    locked = read_lock(target.path)
    elsewhere = Provenance(session.registry.core).locked_elsewhere(target, locked)
    folders = {os.path.basename(one.path) for one in done} - elsewhere.keys()
    origins = [entry.origin for name, entry in locked.items() if name in folders and entry.origin]
    urls = {normalize_url(origin["url"] or "") for origin in origins}
    sources = [
        (one, one.remote)
        for one in (session.registry.sources(counted=False) if urls else ())
        if one.remote and one.remote.version and normalize_url(one.remote.url) in urls
    ]
    asked = newer_tags([one for one, _ in sources]) if asks else [None] * len(sources)
    local = session.console.is_terminal
    for (source, remote), newer in zip(sources, asked, strict=True):
        fetched = formatting.moment(remote.fetched_at, local=local)
        compared = f"{escape.line(source.name)} at {formatting.commit(remote.version or '')}"
        way = _way_forward(source.name, remote.ref, newer, is_behind=is_behind)
        session.console.note(f"Compared with {compared}, fetched on {fetched}.{way}")


def _way_forward(
    name: str, ref: str | None, newer: Sequence[str] | None, *, is_behind: bool
) -> str:
    """Return sentences about the pin ``ref`` of a source, and how to get newer versions.

    ``newer`` are the newer tags; None if the source was not asked, or didn't answer.
    """
    from registry.remotes.git import COMMIT
    from registry.remotes.tags import prefix_of
    from registry.sync.report import newer_notice

    if ref is not None and newer:
        return escape.line(f" It is {newer_notice(name, ref, newer)}")
    if is_behind:
        return ""
    is_tag = prefix_of(ref) is not None
    if ref is None or not (is_tag or COMMIT.fullmatch(ref)):
        return f" To fetch newer versions, run: skill-registry sync {quote(escape.line(name))}"
    pinned = f" It is pinned to {escape.line(ref)}"
    if is_tag and newer is None:
        return f"{pinned}. To see newer tags, run: skill-registry source list --remote"
    return f"{pinned}, and has no newer tag." if is_tag else f"{pinned}."


def report_still_read(
    session: Session,
    target: "InstallTarget",
    done: "Sequence[InstallResult]",
    agents: Sequence[str],
) -> None:
    """Print the other folders in which agents still find a skill that was removed for them."""
    from registry.disk.agents import expand, find_agent

    for result in done if agents else ():
        folder = os.path.basename(result.path)
        for one in map(find_agent, agents):
            places = [] if target.is_global else one.project_places
            places += filter(None, map(expand, one.personal_places))
            found = [os.path.join(target.path, place, folder) for place in places]
            if left := [escape.line(path) for path in dict.fromkeys(found) if os.path.isdir(path)]:
                text = f"{one.name} still has {escape.line(folder)}, because it also reads: "
                session.console.note(text + ", ".join(left), "yellow")


def report_namesakes(
    session: Session, done: "Sequence[InstallResult]", named: Sequence[str], bring: str
) -> None:
    """Print how to install another skill of the same name instead of an installed one.

    ``named`` are the names that the user typed. For ``bring``, see `explain`.
    """
    for one in done:
        if one.state == "added" and one.ref in named and "/" not in one.ref:
            others = [escape.line(other.ref) for other in _namesakes(session, one.ref)]
            if others:
                way = f"{bring} --force {quote(others[0])}"
                same = f"Another skill has the same name: {some_refs(others)}."
                session.console.note(f"{same} To install it instead, run: {way}", "yellow")


def report_unloaded(
    session: Session,
    target: "InstallTarget",
    done: "Sequence[InstallResult]",
    agents: Sequence[str],
) -> None:
    """Print which other skill of the same name an agent loads instead of an installed skill."""
    from registry.disk.agents import find_agent
    from registry.install.inventory import seen_by, told_of_namesakes

    folders = {os.path.basename(one.path) for one in done if one.state in {"added", "updated"}}
    for agent in map(find_agent, agents if folders and not target.is_global else ()):
        seen = seen_by(session.registry.core, agent, target)
        ours = {one.name for one in seen if os.path.basename(one.place) in folders}
        for text, first in told_of_namesakes(agent, seen):
            if first is not None and first.where == "global" and first.name in ours:
                way = f"skill-registry why {quote(escape.line(first.name))} --agent {agent.id}"
                session.console.note(f"{escape.line(text)} To see more, run: {way}", "yellow")


def report_locked_elsewhere(
    session: Session, target: "InstallTarget", done: "Sequence[InstallResult]"
) -> None:
    """Print which locked versions stay although this machine's source is pinned to another ref."""
    from registry.install.lockfile import read_lock
    from registry.install.provenance import Provenance

    provenance = Provenance(session.registry.core)
    messages = provenance.locked_elsewhere(target, read_lock(target.path))
    folders = [os.path.basename(one.path) for one in done]
    for text in dict.fromkeys(messages[one] for one in folders if one in messages):
        session.console.note(escape.line(text), "yellow")


def report_strange(
    session: Session, target: "InstallTarget", done: "Sequence[InstallResult]"
) -> None:
    """Print the addresses of installed skills for which no current version is known."""
    from registry.install.provenance import strange_addresses

    failed = {os.path.basename(one.path) for one in done if one.state == "failed"}
    for address in strange_addresses(session.registry.core, target, failed):
        session.console.note(
            f"{escape.line(address)} is not a source here, so its skills were only compared "
            "with the lock file. To check for newer versions, run: skill-registry sync "
            f"{quote(escape.line(address))}"
        )
