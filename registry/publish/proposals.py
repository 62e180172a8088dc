"""Proposals: changes of sources under review, which wait in the database for approval.

A proposal never changes. An approval accepts exactly the files with the proposal's tree hash. They
replace exactly the version on which the proposal is based. The approval is recorded first, and then
carried out as an ordinary change. After a crash, or if the source is on another machine, an
approval may be recorded but not carried out. `finish_approvals` then finishes it.
"""

import os
import pwd
import secrets
from collections.abc import Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from typing import Final, NoReturn

from registry.catalog.reading import CurrentSkill
from registry.changes import trash
from registry.changes.create import create_files
from registry.changes.review import Intent
from registry.changes.state import StateFolder
from registry.changes.trashed import Trashed, list_trash
from registry.changes.update import move
from registry.core import Core
from registry.db.audit_context import audit_context, current_context
from registry.db.read.history import latest_tombstone
from registry.db.read.proposals import (
    APPLIED,
    APPROVED,
    PENDING,
    REJECTED,
    Proposal,
    archive_of,
    count_pending,
    current_role,
    find_proposal,
    list_proposals,
    may_approve,
    same_proposal,
)
from registry.db.read.skills import StoredSkill, by_place, select
from registry.db.read.skills import files as stored_files
from registry.disk.atomic import Place
from registry.disk.files import digest, open_home, read_inside
from registry.disk.paths import called_on_disk, join
from registry.disk.swap import TREE
from registry.document.parse import parse_document
from registry.errors import (
    ApproverNeeded,
    ChangeRefused,
    ContentDamaged,
    DatabaseProblem,
    HashOutdated,
    ProposalDecided,
    ProposalNotFound,
    ProposalOwn,
    RegistryError,
    SkillChangedOnDisk,
    SkillExists,
    SkillMissing,
    SkillProposed,
    UsageProblem,
)
from registry.install.content import FileContent, local_content
from registry.install.export import zipped
from registry.install.imports import unpacked
from registry.model import DOCUMENT_NAMES, Skill, Source
from registry.publish.packages import Package, differences, package, replace_files, shortened
from registry.sync.sources import check_admin, find, is_ours
from registry.text import utc_now

MAX_PENDING: Final = 100
"""Maximum number of proposals of one author that wait for review in one source."""

MAX_REASON: Final = 2000
"""Maximum length of the reason of a decision, in characters."""

PACKING: Final = 1 << 20
"""Additional size of an archive for names and headers, in bytes."""


@dataclass(frozen=True, slots=True)
class Person:
    """A user who proposes or decides: the name, and the number of the user's token, if any."""

    name: str
    token: str | None = None

    def wrote(self, one: Proposal) -> bool:
        """Tell whether this person is the author of a proposal."""
        if self.token is not None and self.token == one.token:
            return True
        return self.name.casefold() == one.author.casefold()


def local_person(core: Core) -> Person:
    """Return the user of the command line.

    On a server, this is the role. Otherwise it is the user of this machine.
    """
    if core.host and not core.reader.empty:
        return Person(current_role(core.reader))
    uid = os.geteuid()
    with suppress(KeyError):
        return Person(pwd.getpwuid(uid).pw_name)
    return Person(f"user {uid}")


def _author(core: Core) -> Person:
    """Return the author of a change that a tool or a request is making.

    If an agent on this machine makes the change, its author isn't the agent's user. So this user
    may approve the change.
    """
    who = current_context()
    if who.person is not None:
        return Person(who.person, who.token)
    user = local_person(core).name
    return Person(user if who.tool == "publish" else f"agent of {user}")


def propose(core: Core, source: Source, intent: Intent) -> NoReturn:
    """Store a change as a proposal, and raise `SkillProposed`.

    If the author has already proposed the same change, store nothing; the exception has the id of
    the existing proposal. Raises `ChangeRefused` if too many proposals of the author wait, and the
    errors of `publishing.package`.
    """
    author = _author(core)
    if not is_ours(core, source):
        raise ChangeRefused(path=source.path, reason="the source is not on this machine")
    base = None if intent.base is None else intent.base.skill.tree_hash
    name, archive = intent.name, None
    if intent.kind == "delete":
        hashed = base or ""
    else:
        files, executable = _files(core, intent)
        wanted = package(core, files, executable, name=os.path.basename(intent.folder))
        name, hashed, archive = wanted.name, wanted.tree_hash, zipped(_entries(wanted))
    known = same_proposal(core.reader, source.id, name, intent.kind, hashed, author.name)
    if known is None:
        if count_pending(core.reader, source.id, author.name) >= MAX_PENDING:
            reason = f"{MAX_PENDING} proposals of {author.name} wait for review"
            raise ChangeRefused(path=source.path, reason=reason)
        known = _add(core, source, intent, author, name, hashed, base, archive)
    raise SkillProposed(kind=intent.kind, name=name, source=source.name, id=known)


def _add(
    core: Core,
    source: Source,
    intent: Intent,
    author: Person,
    name: str,
    hashed: str,
    base: str | None,
    archive: bytes | None,
) -> str:
    from registry.db.write.proposals import add_proposal

    number = secrets.token_hex(6)
    with core.writer.transaction(quiet=True) as connection:
        add_proposal(
            connection,
            id=number,
            source_id=source.id,
            kind=intent.kind,
            name=name,
            folder=intent.folder,
            uid=intent.uid,
            base=base,
            tree_hash=hashed,
            author=author.name,
            token=author.token,
            created_at=utc_now(),
            archive=archive,
        )
    return number


def _entries(wanted: Package) -> list[FileContent]:
    return [
        FileContent(path, data, path in wanted.executable) for path, data in wanted.files.items()
    ]


def _files(core: Core, intent: Intent) -> tuple[dict[str, bytes], frozenset[str]]:
    """Return the files of a skill after a change (bytes by path), and the executable paths."""
    if intent.trashed is not None:
        return _trashed_files(core, intent.trashed)
    files: dict[str, bytes] = {}
    runs: set[str] = set()
    if intent.base is not None:
        files, runs = files_on_disk(core, intent.base)
    for path, data in intent.edits.items():
        if data is None:
            files.pop(path, None)
        else:
            files[path] = data
    for path, is_executable in intent.executable.items():
        (runs.add if is_executable else runs.discard)(path)
    return files, frozenset(runs & files.keys())


def files_on_disk(core: Core, stored: StoredSkill) -> tuple[dict[str, bytes], set[str]]:
    """Return a skill's files on disk (bytes by path) and the executable paths.

    Raises `SkillChangedOnDisk` if they aren't the stored files, `SkillInaccessible`,
    `FileTooLarge`.
    """
    files: dict[str, bytes] = {}
    known, left = stored_files(core.reader, stored.id), core.settings.limits.skill_bytes
    with open_home(stored.root, stored.folder) as home:
        for file in known:
            data = read_inside(home, called_on_disk(file.path), left, stored.root).data
            if digest(data) != file.hash:
                raise SkillChangedOnDisk(name=stored.skill.ref, path=stored.path)
            left -= len(data)
            files[file.path] = data
    return files, {file.path for file in known if file.executable}


def _trashed_files(core: Core, trashed: Trashed) -> tuple[dict[str, bytes], frozenset[str]]:
    state = StateFolder.open(find(core, trashed.source).path)
    with ExitStack() as stack:
        if state is None:
            raise ChangeRefused(path=trashed.path, reason="it is no longer in the trash")
        stack.enter_context(state)
        kept = stack.enter_context(state.trash.folder(trashed.id))
        entries = local_content(core, Place(kept, TREE))
    files = {one.path: one.data for one in entries}
    return files, frozenset(one.path for one in entries if one.executable)


def listed(core: Core, state: str | None = PENDING, token: str | None = None) -> list[Proposal]:
    """Return the proposals in a state (None: all) that this user may see, the oldest first.

    If ``token`` is given, also return the proposals of this token in other states.
    """
    finish_approvals(core)
    return list_proposals(core.reader, state=state, token=token)


def get(core: Core, number: str) -> Proposal:
    """Return the proposal with this id. Raises `ProposalNotFound`."""
    found = find_proposal(core.reader, number)
    if found is None:
        raise ProposalNotFound(id=number)
    return found


def proposed_package(core: Core, one: Proposal) -> Package | None:
    """Unpack and check the files of a proposal again, and return them; None for a deletion.

    Also returns None if the proposal was decided and `prune` has removed its files. Raises
    `ContentDamaged` if the stored files don't have its tree hash.
    """
    if one.kind == "delete":
        return None
    data = archive_of(core.reader, one.id, core.settings.limits.skill_bytes + PACKING)
    if data is None and one.state in {APPLIED, REJECTED}:
        return None
    if data is None:
        raise ContentDamaged(path=f"proposal {one.id}")
    files, executable = unpacked(data, f"the proposal {one.id}", core.settings.limits)
    found = package(core, files, executable, name=os.path.basename(one.folder))
    if (found.tree_hash, found.name) != (one.tree_hash, one.skill):
        raise ContentDamaged(path=f"proposal {one.id}")
    return found


def diff(core: Core, one: Proposal) -> str:
    """Return a unified diff from the skill's current files to the files of a proposal.

    Raises the errors of `proposed_package`.
    """
    wanted, before = proposed_package(core, one), {}
    with suppress(RegistryError, OSError):
        stored = current(core, one)
        before = {} if stored is None else files_on_disk(core, stored)[0]
    after: Mapping[str, bytes] = {} if wanted is None else wanted.files
    return shortened(differences(before, after))


def current(core: Core, one: Proposal) -> StoredSkill | None:
    """Return the skill that a proposal changes, with its files on disk; None if it doesn't exist.

    Raises `SkillInaccessible`.
    """
    if one.uid is not None and one.kind != "create":
        found = select(core.reader, "s.uid = ? AND s.source_id = ?", one.uid, one.source_id)
        stored = found[0] if found else None
    else:
        stored = by_place(core.reader, one.source_id, one.folder)
    if stored is None or stored.skill.status == "no_document":
        return None
    with suppress(SkillMissing):
        now = CurrentSkill.of_stored(core, stored).stored
        return now if now.uid == stored.uid else None
    return None


def check_approver(core: Core) -> None:
    """Raise `ApproverNeeded` if this role of a server may not decide on proposals."""
    if core.host and not may_approve(core.reader):
        raise ApproverNeeded(path=core.backend.path)


def approve(
    core: Core,
    number: str,
    tree_hash: str,
    by: Person,
    *,
    reason: str | None = None,
    own: bool = False,
) -> Proposal:
    """Approve exactly the files with this tree hash, make the change, and return the proposal.

    If the source is on another machine, the next sync by its owner makes the change. With ``own``,
    an admin lets a person approve their own proposal. Raises `HashOutdated` if ``tree_hash`` isn't
    the proposal's tree hash, or if the skill has changed since the proposal. Also raises
    `ProposalNotFound`, `ProposalDecided`, `ProposalOwn`, `ContentDamaged`, and the errors of the
    change.
    """
    one = _pending(core, number)
    if own:
        check_admin(core)
    elif by.wrote(one):
        raise ProposalOwn(id=number)
    if tree_hash != one.tree_hash:
        raise HashOutdated(name=one.skill, tree_hash=one.tree_hash)
    proposed_package(core, one)
    source = find(core, one.source)
    is_here = is_ours(core, source)
    if is_here:
        _check_base(core, one)
    _decide(core, one, APPROVED, by, reason)
    if is_here:
        _apply(core, get(core, number), source)
    return get(core, number)


def reject(core: Core, number: str, by: Person, reason: str | None = None) -> Proposal:
    """Reject a proposal and return it; authors may withdraw their own proposals.

    Raises `ProposalNotFound`, `ProposalDecided`.
    """
    one = _pending(core, number)
    _decide(core, one, REJECTED, by, reason)
    return get(core, number)


def _pending(core: Core, number: str) -> Proposal:
    one = get(core, number)
    if one.state != PENDING:
        raise ProposalDecided(id=number, state=one.state)
    return one


def _decide(core: Core, one: Proposal, state: str, by: Person, reason: str | None) -> None:
    from registry.db.write.proposals import set_state

    reason = None if reason is None else reason.strip() or None
    if reason is not None and len(reason) > MAX_REASON:
        raise UsageProblem(message=f"a reason has at most {MAX_REASON} characters")
    with core.writer.transaction(quiet=True) as connection:
        decision = {"by": by.name, "at": utc_now(), "reason": reason}
        if not set_state(connection, one.id, PENDING, state, **decision):
            raise ProposalDecided(id=one.id, state="decided")


def _set(core: Core, one: Proposal, state: str) -> None:
    from registry.db.write.proposals import set_state

    with core.writer.transaction(quiet=True) as connection:
        set_state(connection, one.id, APPROVED, state)


def _check_base(core: Core, one: Proposal) -> StoredSkill | None:
    """Return the skill that a proposal changes, if it has not changed since the proposal.

    Raises `HashOutdated` if the skill has changed. Raises `SkillExists` if the proposal would
    create a skill that exists already.
    """
    now = current(core, one)
    if one.base is None and now is not None:
        raise SkillExists(name=one.skill, path=now.place)
    if (None if now is None else now.skill.tree_hash) != one.base:
        raise HashOutdated(name=one.skill, tree_hash=None if now is None else now.skill.tree_hash)
    return now


def _apply(core: Core, one: Proposal, source: Source) -> None:
    """Make the change of an approved proposal.

    If this fails, the proposal waits for review again.
    """
    try:
        who = f"{one.author}, approved by {one.decided_by}"
        with audit_context("proposal approve", who, command=""):
            _change(core, one, source)
    except DatabaseProblem:
        raise  # `finish_approvals` makes the change when the database is available again
    except (RegistryError, OSError):
        if not _is_made(core, one):
            _set(core, one, PENDING)
            raise
    _set(core, one, APPLIED)


def _change(core: Core, one: Proposal, source: Source) -> None:
    now = _check_base(core, one)
    wanted = proposed_package(core, one)
    if wanted is None:
        if now is not None:
            trash.delete(core, now)
    elif now is None:
        _create(core, one, source, wanted)
    elif one.kind == "rename":
        files, runs = files_on_disk(core, now)
        edits: dict[str, bytes | None] = {
            path: data for path, data in wanted.files.items() if files.get(path) != data
        }
        if files.keys() != wanted.files.keys() or runs != wanted.executable:
            raise HashOutdated(name=one.skill, tree_hash=now.skill.tree_hash)
        move(core, now, one.folder, edits)
    else:
        replace_files(core, now, wanted.files, wanted.executable)


def _create(core: Core, one: Proposal, source: Source, wanted: Package) -> None:
    place = one.folder, wanted.name, wanted.files, wanted.executable
    if one.uid is None:
        create_files(core, source, *place)
        return
    for trashed in list_trash(core):
        if trashed.uid == one.uid and trashed.folder == one.folder:
            files, runs = _trashed_files(core, trashed)
            if (files, runs) == (wanted.files, wanted.executable):
                trash.restore(core, trashed)
                return
    tombstone = latest_tombstone(core.reader, one.uid, {source.name})
    # otherwise the history belongs to another skill
    is_gone = tombstone is not None and tombstone.uid == one.uid
    if tombstone is None or not is_gone:
        create_files(core, source, *place)
    else:
        create_files(core, source, *place, uid=one.uid, created_at=tombstone.created_at)


def preview(core: Core, number: str) -> Skill:
    """Return the skill that a proposal would create or change, in the form of listings."""
    one = get(core, number)
    source, wanted = find(core, one.source), proposed_package(core, one)
    files = {} if wanted is None else wanted.files
    document = next((files[name] for name in DOCUMENT_NAMES if name in files), b"")
    parsed = parse_document(document, folder_name=os.path.basename(one.folder))
    return Skill(
        ref=one.skill,
        name=one.skill,
        description=parsed.description,
        kind=parsed.kind,
        category=parsed.category,
        tags=parsed.tags,
        scope=source.scope,
        source=one.source,
        folder=one.folder,
        path=join(source.path, one.folder),
        version=parsed.version,
        license=parsed.license,
        author=parsed.author,
        created_at=one.created_at,
        updated_at=one.created_at,
        content_hash=digest(document),
        tree_hash=one.tree_hash,
        status="ok",
        shadowed=False,
        copies=(),
        origin=None,
    )


def _is_made(core: Core, one: Proposal) -> bool:
    """Tell whether the change of a proposal is on disk."""
    if one.kind == "delete":
        return current(core, one) is None
    stored = by_place(core.reader, one.source_id, one.folder)
    if stored is None:
        return False
    with suppress(RegistryError):
        return CurrentSkill.of_stored(core, stored).stored.skill.tree_hash == one.tree_hash
    return False


def finish_approvals(core: Core) -> None:
    """Make the remaining changes of approved proposals in this user's sources.

    If a change fails because the skill changed, its proposal waits for review again.
    """
    if core.reader.empty or not core.backend.writable:
        return
    for one in list_proposals(core.reader, state=APPROVED):
        with suppress(RegistryError, OSError):
            source = find(core, one.source)
            if not is_ours(core, source):
                continue
            if _is_made(core, one):
                _set(core, one, APPLIED)
            else:
                _apply(core, one, source)
