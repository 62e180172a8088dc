"""Explain whether a skill is listed, and give the reasons (the operation `why`)."""

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

from registry.catalog.resolve import not_found, trust_command
from registry.catalog.visibility.decisions import decisions
from registry.catalog.visibility.decisions import personality as personality_of
from registry.core import Core
from registry.db.read import labels, skills
from registry.db.read.findings import links_known
from registry.db.read.skills import StoredSkill
from registry.db.read.sources import list_sources
from registry.disk.beneath import GONE, PASS, Folder, reason_of
from registry.disk.links import LINK_KNOWN, Leads, finding, follow, is_dangling, known, real_path
from registry.disk.paths import is_below, is_ignored, is_safe_relative, join, storable
from registry.disk.walk import DEPTH_SEEN, PATH_SEEN, is_long, unreadable
from registry.model import DOCUMENT_NAMES, Diagnostic, Skill, Source
from registry.settings import Personality
from registry.sync.reading import is_same
from registry.sync.sources import find, is_here, own_sources, walk_of
from registry.text import is_path

MAX_LINKS: Final = 50
"""Maximum number of links that are checked for one skill."""


class LinkTo(NamedTuple):
    """Another path to a skill, and the link in this path: the path itself or a parent folder."""

    path: str
    link: str

    @property
    def notice(self) -> Diagnostic:
        """Return the notice that the skill can also be reached by this path."""
        return Diagnostic("link-known", "info", f"also in {self.path}, by a link")


def links_to(core: Core, stored: StoredSkill) -> list[LinkTo]:
    """Return the links in this machine's sources that lead to a skill's folder, sorted by path.

    The last syncs recorded these links; this function checks them on disk.
    """
    if not is_here(core, stored.host, stored.root):
        return []
    document = join(stored.path, stored.document or DOCUMENT_NAMES[0])
    places = [document, stored.path]
    # Another program may have written the root of this source, so it may be any path. Stop at the
    # top folder.
    while (above := os.path.dirname(places[-1])) != places[-1] and is_below(above, stored.root):
        places.append(above)
    messages = {known(storable(place)).message: place for place in places}
    found = {
        link  # because a source can be inside another source
        for root, folder, message in links_known(core.reader, core.host, list(messages), MAX_LINKS)
        if is_here(core, core.host, root) and is_safe_relative(folder)
        for link in _checked(stored.path, join(root, folder), messages[message])
    }
    return sorted(found)


def _checked(skill: str, path: str, target: str) -> Iterator[LinkTo]:
    """Yield the link at ``path`` if it leads to ``target``.

    ``target`` is the skill's folder, one of its parent folders, or the SKILL.md.
    """
    if is_below(target, skill) and target != skill:  # the link leads to the skill file itself
        for name in DOCUMENT_NAMES:
            link = join(path, name)
            if os.path.islink(link) and real_path(link) == target:
                yield LinkTo(path, link)
    elif os.path.islink(path) and real_path(path) == target:
        below = os.path.relpath(skill, target)
        yield LinkTo(join(path, below), path)


NO_DOCUMENT: Final = Diagnostic(
    "no-document", "error", "the folder holds no SKILL.md", fix="add a SKILL.md, then sync"
)

GUARDED: Final = frozenset({"missing", "empty", "shrunk"})
"""Results of a sync that did not find skills of a source on disk, but kept them in the registry."""


@dataclass(frozen=True, slots=True)
class Explanation:
    """Whether a skill or folder is listed, and why; ``ref`` is None if the skill is not stored."""

    ref: str | None
    path: str
    listed: bool
    reasons: tuple[Diagnostic, ...]
    skill: Skill | None = None


def explain(core: Core, subject: str) -> list[Explanation]:
    """Explain a name, ref or path; see `SkillRegistry.why`."""
    path = os.path.abspath(os.path.expanduser(subject.replace("\0", "\ufffd")))
    if not os.path.lexists(path):
        subject = subject.rstrip(os.sep) or subject
    named = skills.same_name(core.reader, subject)
    if named:
        return [explained(core, one) for one in named]
    if os.sep not in subject and subject not in {".", ".."} and not os.path.lexists(path):
        raise not_found(core.reader, subject)
    found = _path(core, path)
    if found.ref is None and not is_path(subject) and not os.path.lexists(path):
        error = not_found(core.reader, subject)  # the user may have mistyped a ref
        source, _, _ = subject.partition(os.sep)
        if error.facts.get("similar") or any(
            source == one.name for one in list_sources(core.reader, counted=False)
        ):
            raise error
    return [found]


def explained(core: Core, stored: StoredSkill) -> Explanation:
    """Explain a stored skill."""
    skill = stored.skill
    reasons = list(_state(core, stored))
    return Explanation(skill.ref, skill.path, stored.is_visible, tuple(reasons), skill)


def judged(
    core: Core, found: Sequence[Explanation], personality: str | None
) -> Sequence[Explanation]:
    """Return explanations that include the decisions of a personality.

    If the personality hides a team source's skill, the skills that it shadows become visible.
    Raises `PersonalityNotFound`.
    """
    if personality is None:
        return found
    chosen = personality_of(core.settings, personality)
    return [_judged(core, one, chosen) for one in found]


def _judged(core: Core, explanation: Explanation, personality: Personality) -> Explanation:
    skill = explanation.skill
    if skill is None:
        return explanation
    for _, one, choice in decisions(core.reader, personality, name=skill.name):
        if (one.source, one.folder) == (skill.source, skill.folder):
            said = f"{choice.reason} (rule {choice.rule})"
            reason = Diagnostic("personality", "info", f"{personality.name} sees it: {said}")
            if not choice.visible:
                message = f"{personality.name} does not see it: {said}"
                fix = f"see personalities.{personality.name} in the settings"
                reason = Diagnostic("personality", "warning", message, fix=fix)
            others = [r for r in explanation.reasons if r.code not in {"shadowed", "listed"}]
            return replace(explanation, listed=choice.visible, reasons=(*others, reason))
    return explanation


def _state(core: Core, stored: StoredSkill) -> Iterator[Diagnostic]:
    reader, skill = core.reader, stored.skill
    findings = skills.findings(reader, stored.id)
    yield from (f for f in findings if f.category == "security" and f.severity != "info")
    if not is_here(core, stored.host, stored.root):
        message = f"its folder is on {stored.host}; here it is read from the database"
        yield Diagnostic("elsewhere", "info", message)
    else:
        walk = walk_of(core, stored.root)
        found = walk.one(stored.folder)
        lost = [notice.diagnostic for notice in walk.notices if notice.lost]
        if lost:
            yield from lost
        elif found is None:
            fix = "run: skill-registry sync"
            if find(core, skill.source).last_result in GUARDED:
                fix = f"if that is right, run: skill-registry sync {skill.source} --allow-prune"
            yield Diagnostic("gone", "warning", "the folder is gone since the last sync", fix=fix)
        elif not is_same(stored.fingerprint, found):
            message = "the folder changed since the last sync"
            yield Diagnostic("changed", "info", message, fix="run: skill-registry sync")
    if skill.status == "no_document":
        yield _link_of(core, stored.root, stored.folder) or NO_DOCUMENT
    elif skill.status == "invalid":
        yield from (f for f in findings if f.category == "format" and f.severity == "error")
    elif not stored.is_visible:
        yield _unseen(core, stored)
    elif stored.hidden:
        message = "it is listed for people; its own front matter hides it from models"
        fix = "remove disable-model-invocation from the front matter"
        yield Diagnostic("hidden", "info", message, fix=fix)
    else:
        has_errors = any(f.category == "security" and f.severity == "error" for f in findings)
        yield _listed(core, stored, has_errors=has_errors)
    yield from (link.notice for link in links_to(core, stored))


def _listed(core: Core, stored: StoredSkill, *, has_errors: bool) -> Diagnostic:
    """Return why a skill is listed; the reasons name its copies and other skills with its name.

    ``has_errors`` tells whether the skill has security errors.
    """
    skill = stored.skill
    others = [one for one in skills.visible_refs(core.reader, skill.name) if one != skill.ref]
    if others:
        named = ", ".join(others)
        message = f"it is listed, but {named} {'have' if others[1:] else 'has'} the same name"
        which = {ref.partition("/")[0] for ref in (skill.ref, *others)}
        every = list_sources(core.reader, counted=False)
        if len({(one.scope, one.priority) for one in every if one.name in which}) == 1:
            because = "because their sources have the same scope and priority"
            message = f"it and {named} are listed, {because}"
        fix = f"ask for it as {skill.ref}, or raise its source's priority to list only this one"
        return Diagnostic("ambiguous", "info", message, fix=fix)
    same = f"; the same files are in {', '.join(skill.copies)}" if skill.copies else ""
    message = "in the registry, nothing shadows or hides it"
    if has_errors and stored.remote:
        message = "it is listed, because 'source trust' accepted its security errors"
    elif has_errors:
        message = "it is listed, because only skills of remote sources are quarantined"
    return Diagnostic("listed", "info", f"{message}{same}")


def _unseen(core: Core, stored: StoredSkill) -> Diagnostic:
    if stored.quarantined:
        message = "agents don't see it: it is from a remote source and has security errors"
        way = trust_command(stored.skill.source, stored.skill.ref)
        fix = f"read the errors, then run: {way}"
        return Diagnostic("held", "warning", message, fix=fix)
    if stored.yanked:
        known = labels.versions(core.reader, stored.uid)
        yanked = next((one for one in known if one.current and one.state == "yanked"), None)
        reason = f" ({yanked.label}: {yanked.reason})" if yanked else ""
        message = (
            f"its files are a yanked version{reason}: listings, searches and new installs omit it"
        )
        versions = f"skill-registry version list {stored.skill.ref}"
        fix = f"edit it, or undo the yank; to see its versions, run: {versions}"
        return Diagnostic("yanked", "warning", message, fix=fix)
    return _shadowed(core, stored) if stored.within else _of_project(core, stored)


def _of_project(core: Core, stored: StoredSkill) -> Diagnostic:
    message = f"it belongs to the project {stored.project}; it is seen there"
    fix = None
    if stored.host != core.host:
        message = f"it belongs to the project {stored.project} on {stored.host}; it is seen there"
    elif not is_here(core, stored.host, stored.root):
        fix = f"if the source is yours, run: skill-registry source adopt {stored.skill.source}"
    return Diagnostic("project", "info", message, fix=fix)


def _shadowed(core: Core, stored: StoredSkill) -> Diagnostic:
    skill = stored.skill
    for one in skills.same_name(core.reader, skill.name):
        if one.is_visible and one.is_copy_of(stored):
            message = f"{one.skill.ref} is an installed copy of it"
            if one.skill.tree_hash == skill.tree_hash:
                return Diagnostic("copy", "info", f"{message}, and is listed instead: {one.path}")
            message = f"{message} in another version, and is listed instead: {one.path}"
            fix = "to update the copy, run: skill-registry pull (or pull --global)"
            return Diagnostic("shadowed", "warning", message, fix=fix)
    visible = skills.visible_refs(core.reader, skill.name)
    if listed := sorted(set(visible) & set(skill.copies)):
        message = f"it is a copy: its files are the same as those of {listed[0]}, which is listed"
        return Diagnostic("copy", "info", message)
    message = f"a skill of the same name in a stronger source shadows it: {', '.join(visible)}"
    fix = (
        "to list this one, rename one of them, or change the sources' scope or priority; scope and "
        "priority don't change what an agent loads from its own folders"
    )
    return Diagnostic("shadowed", "warning", message, fix=fix)


def _path(core: Core, path: str) -> Explanation:
    if os.path.basename(path) in DOCUMENT_NAMES:
        path = os.path.dirname(path)
    known = own_sources(core)
    if is_dangling(path):
        link = follow(path, None, [source.path for source in known])
        found = finding(link, None, fatal=False)
        return Explanation(None, path, listed=False, reasons=(found,))
    real = real_path(path)
    holding = [source for source in known if is_below(real, source.path)]
    if not holding:
        is_linked = any(is_below(path, source.path) for source in known)
        return Explanation(None, path, listed=False, reasons=(_no_source(path, is_linked),))
    source = max(holding, key=lambda one: len(one.path))
    folder = os.path.relpath(real, source.path)
    stored = skills.by_place(core.reader, source.id, storable(folder))
    if stored is not None:
        told = explained(core, stored)
        if real == path:
            return told
        here = Diagnostic("link-known", "info", f"it is a link; the skill is listed as {real}")
        others = [one for one in told.reasons if one != LinkTo(path, path).notice]
        return replace(told, path=path, reasons=(here, *others))
    return Explanation(None, path, listed=False, reasons=(_unstored(core, source, folder),))


def _no_source(path: str, is_linked: bool) -> Diagnostic:
    if not os.path.lexists(path):
        return Diagnostic("missing", "error", "there is no such file or folder")
    if is_linked:
        link = follow(path, None, ())
        where = f"to {link.target}" if link.leads is Leads.OUTSIDE else "nowhere"
        message = f"the link leads {where}, which is not in any source"
        return Diagnostic("link-outside", "error", message, fix="register its target")
    fix = f"run: skill-registry sync {path}"
    return Diagnostic("not-in-source", "error", "it is not in a registered source", fix=fix)


def _unstored(core: Core, source: Source, folder: str) -> Diagnostic:
    try:
        with Folder.passing(source.path) as root, root.folder(folder, PASS) as home:
            has_document = any(home.holds(name) for name in DOCUMENT_NAMES)
    except OSError as error:
        if error.errno in GONE:
            return Diagnostic("missing", "error", "there is no such folder")
        return unreadable(reason_of(error), None, "error")
    ignored = [part for part in folder.split(os.sep) if is_ignored(part)]
    if ignored:
        message = f"folders named {ignored[0]} are not searched"
        return Diagnostic("ignored", "error", message, fix="move the skill to another folder")
    if not has_document:
        return _without_document(core, source, folder)
    if folder.count(os.sep) + 1 > DEPTH_SEEN or is_long(folder):
        limits = f"{DEPTH_SEEN} folders or {PATH_SEEN} bytes"
        return Diagnostic("too-deep", "error", f"its path is longer than {limits}")
    fix = f"run: skill-registry sync {source.name}"
    added = Diagnostic("not-synced", "error", "it was added since the last sync", fix=fix)
    return _link_of(core, source.path, folder) or added


def _without_document(core: Core, source: Source, folder: str) -> Diagnostic:
    # A sync never stores folders below this depth.
    seen = os.sep.join(folder.split(os.sep)[: DEPTH_SEEN + 2])
    outer = skills.innermost(core.reader, source.id, seen)
    if outer is not None:
        message = f"it belongs to the skill in {join(source.path, outer)}"
        return Diagnostic("part-of-skill", "info", message)
    return NO_DOCUMENT


def _link_of(core: Core, root: str, folder: str) -> Diagnostic | None:
    """Return the notice about a skill file in ``folder`` that is a link to another skill's file."""
    walk = walk_of(core, root)
    walk.one(folder)
    here = (one.diagnostic for one in walk.notices if one.folder == folder)
    return next((one for one in here if one.code == LINK_KNOWN), None)
