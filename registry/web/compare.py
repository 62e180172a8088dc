"""Pages about several chosen skills: compare them side by side, or install all of them."""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Final, NamedTuple

from registry.catalog.reading import CurrentSkill
from registry.db.read.signs import Signs
from registry.db.read.skills import StoredSkill
from registry.errors import UsageProblem
from registry.model import SkillDetail, record
from registry.web.answers import PageContent, Visit
from registry.web.diffs import ComparedFile, Room, diffs
from registry.web.rendering import size
from registry.web.skill_pages import (
    bytes_of,
    in_git,
    is_for_this_machine,
    login,
    pull_lines,
    pull_name,
)

MOST: Final = 3
"""Maximum number of skills to compare on a page."""

TOGETHER: Final = 50
"""Maximum number of skills to install with one command."""


class Compared(NamedTuple):
    """One of the compared skills."""

    current: CurrentSkill
    detail: SkillDetail
    signs: Signs


def chosen_refs(visit: Visit, most: int) -> list[str]:
    """Return the chosen refs. Raises `UsageProblem` if there are too few or too many."""
    refs = list(dict.fromkeys(filter(None, visit.request.query_params.getlist("ref"))))
    if len(refs) > most:
        raise UsageProblem(message=f"choose at most {most} skills, not {len(refs)}")
    return refs


def side_by_side(visit: Visit) -> PageContent:
    """Compare two or three skills side by side."""
    refs = chosen_refs(visit, MOST)
    if len(refs) == 1:
        raise UsageProblem(message=f"choose 2 or {MOST} skills to compare")
    view = visit.view
    some = [_compared(visit, ref) for ref in refs]
    pairs = list(_pairs(visit, some))
    return PageContent(
        "compare.html",
        lambda: {
            "title": f"Compare {', '.join(refs)}" if refs else "Compare",
            "skills": [one.detail for one in some],
            "rows": list(_rows(some)),
            "pairs": pairs,
            "signs": view.signs([one.detail for one in some]),
        },
        lambda: {
            "skills": [one.detail.to_dict() for one in some],
            "diffs": [
                {"old": pair["old"], "new": pair["new"], "files": record(pair["diffs"])}
                for pair in pairs
            ],
        },
    )


def _compared(visit: Visit, ref: str) -> Compared:
    view = visit.view
    current = view.current(view.locate(ref))
    skill = current.stored.skill
    signs = view.signs([skill]).get((skill.source, skill.folder), Signs())
    return Compared(current, view.detail(current), signs)


def _rows(some: Sequence[Compared]) -> Iterator[tuple[str, list[Any]]]:
    """Yield facts that differ, or that help users choose: a title, and a value for each skill."""
    details = [one.detail for one in some]
    for title, key in (
        ("Description", "description"),
        ("Source", "source"),
        ("Scope", "scope"),
        ("Version", "version"),
        ("Licence", "license"),
        ("Author", "author"),
        ("Needs", "compatibility"),
    ):
        values = [getattr(one, key) for one in details]
        if any(values):
            yield title, values
    yield "Tags", [", ".join(one.tags) for one in details]
    yield "Created", [one.created_at[:10] for one in details]
    yield "Updated", [one.updated_at[:10] for one in details]
    yield "Files", [f"{len(one.files):,}" for one in details]
    yield "Size", [size(sum(file.size for file in one.files)) for one in details]
    yield "Security errors", [f"{one.signs.errors:,}" for one in some]
    yield "Security warnings", [f"{one.signs.warnings:,}" for one in some]
    yield "Read by tools", [f"{one.signs.read:,}" for one in some]


def _pairs(visit: Visit, some: Sequence[Compared]) -> Iterator[Mapping[str, Any]]:
    """Yield the differences between the first skill and each other skill, file by file."""
    room = Room()
    sides = [(one.detail.ref, _files(visit, one)) for one in some]
    for ref, files in sides[1:]:
        old, was = sides[0]
        yield {"old": old, "new": ref, "diffs": list(diffs(was, files, room, (old, ref)))}


def _files(visit: Visit, one: Compared) -> Mapping[str, ComparedFile]:
    return {
        file.path: (file.hash, partial(bytes_of, visit, one.current, one.detail, file.path))
        for file in one.detail.files
    }


def together(visit: Visit) -> PageContent:
    """Show one command that installs all chosen skills."""
    refs = chosen_refs(visit, TOGETHER)
    view = visit.view
    skills = [view.locate(ref) for ref in refs]
    names = [_pull_name(visit, one) if one.is_usable else None for one in skills]
    usable = [one.skill for one, name in zip(skills, names, strict=True) if name]
    others = [one.skill for one, name in zip(skills, names, strict=True) if not name]
    signs = view.signs(usable)
    lines = list(pull_lines(visit, [*filter(None, names)]))
    return PageContent(
        "together.html",
        lambda: {
            "title": "Install together",
            "skills": usable,
            "others": others,
            "signs": signs,
            "errors": sum(one.errors for one in signs.values()),
            "warnings": sum(one.warnings for one in signs.values()),
            "install": lines,
            "login": login(visit),
        },
        lambda: {
            "skills": [one.to_dict() for one in usable],
            "not_offered": [one.ref for one in others],
            "install": lines,
        },
    )


def _pull_name(visit: Visit, stored: StoredSkill) -> str | None:
    needs_git = not is_for_this_machine(visit) and visit.view.why(stored).listed
    return pull_name(visit, stored.skill.ref, in_git(visit, stored) if needs_git else None)
