"""The page of a skill: what it says, its files, findings, copies, usage, and how to get it."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from shlex import quote
from typing import Any, Final

from registry.catalog.reading import CurrentSkill, read_bytes, read_file
from registry.db.read.skills import StoredSkill
from registry.disk.agents import agents
from registry.disk.files import digest
from registry.errors import FileNotFoundInSkill, FileTooLarge, RegistryError
from registry.model import SkillDetail
from registry.model.values import record
from registry.web import addresses, markdown, outside
from registry.web.answers import Told, Visit, refusal
from registry.web.highlight import numbered

SHOWN_FILES: Final = 200
"""Files that are listed on a page; all are in its JSON."""

SHOWN_COPIES: Final = 200
"""Skills of a group that are looked at, the newest."""

SHOWN_TEXT: Final = 400_000
"""Characters of a file that are shown on a page; all are in its raw view."""

SHOWN_LINES: Final = 20_000
"""Lines of a file that are shown on a page."""

IMAGES: Final = (".png", ".jpg", ".jpeg", ".gif", ".webp")
MARKDOWN: Final = (".md", ".markdown")

AGENTS: Final = "claude-code codex cursor gemini-cli github-copilot opencode".split()
"""Those whose lines stand on the page; ``pull`` knows many more."""


def ref_in(visit: Visit, prefix: str) -> str:
    """Return the ref that a path asks for behind a prefix."""
    return addresses.ref_of(visit.path.removeprefix(prefix))


def located(visit: Visit, prefix: str) -> StoredSkill:
    """Return the skill that a path asks for; raises as `Browse.locate`."""
    stored: StoredSkill = visit.look.locate(ref_in(visit, prefix))
    return stored


def skill(visit: Visit) -> Told:
    """Say everything of a skill."""
    look = visit.look
    current = look.current(located(visit, "/skills/"))
    stored, detail = current.stored, look.detail(current)
    (why,) = _explained(visit, [look.why(stored)])
    usage = look.usage_of(stored)
    origin = getattr(detail, "origin", None)
    if origin is not None and not visit.visitor.is_local and outside.is_place(origin.url):
        origin = None
    revisions = visit.desk.registry.history(stored.place)
    is_offered = detail.status in {"ok", "warning"} and not stored.held
    install = list(install_lines(detail.ref, visit.base)) if is_offered else []
    return Told(
        "skill.html",
        lambda: {
            "title": detail.name,
            "skill": detail,
            "copies": detail.copies,
            "body": None if detail.body is None else as_html(visit, detail.body, detail),
            "front": list(front_matter(detail.front_matter)),
            "files": detail.files[:SHOWN_FILES],
            "more_files": len(detail.files) - SHOWN_FILES,
            "bytes": sum(file.size for file in detail.files),
            "findings": detail.diagnostics,
            "reasons": why.reasons,
            "listed": why.listed,
            "usage": usage,
            "origin": record(origin),
            "revisions": revisions,
            "is_offered": is_offered,
            "install": install,
            "mcp": mcp_snippet(visit.base),
        },
        lambda: {
            **detail.to_dict(),
            "origin": record(origin),
            "listed": why.listed,
            "reasons": record(why.reasons),
            "usage": record(usage),
            "install": install,
            "revisions": [
                {"number": one.number, "seen_at": one.seen_at, "tree_hash": one.tree_hash}
                for one in revisions
            ],
        },
    )


def _explained(visit: Visit, found: Sequence[Any]) -> Sequence[Any]:
    if visit.visitor.is_local:
        return found
    sources = visit.desk.registry.sources()
    return [outside.explained(one, sources) for one in found]


def as_html(visit: Visit, text: str, detail: SkillDetail, folder: str = "") -> str | None:
    """Return Markdown of a skill as safe HTML; as `markdown.rendered`, and kept."""
    paths = sorted(file.path for file in detail.files)
    key = _digest("md", detail.ref, folder, *paths, text)
    return visit.desk.texts.of(key, lambda: markdown.rendered(text, detail.ref, paths, folder))


def _digest(*texts: str) -> str:
    return digest("\0".join(texts).encode("utf-8", "surrogatepass"))


def front_matter(given: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the keys of a front matter with their values as text."""
    for key, value in given.items():
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        yield str(key), text


def install_lines(ref: str, base: str) -> Iterator[Mapping[str, str]]:
    """Yield for some agents their names and the command that puts a skill where they look.

    None where a terminal might take the ref for something else than it looks like.
    """
    if ref.isprintable():
        name = f"-- {quote(ref)}" if ref.startswith("-") else quote(ref)
        for agent in AGENTS:
            known = agents()[agent]
            command = f"skill-registry pull --global --agent {agent} {name}"
            yield {"agent": known.name, "command": command}
        command = f"npx skills add {base}/s/{addresses.of_ref(ref)}"
        yield {"agent": "The skills CLI", "command": command}


def mcp_snippet(base: str) -> str:
    """Return what an MCP client's configuration says of this server."""
    entry = {"mcpServers": {"skills": {"type": "http", "url": f"{base}/mcp"}}}
    return json.dumps(entry, indent=2)


def file(visit: Visit) -> Told:
    """Show a file of a skill."""
    current = visit.look.current(located(visit, "/files/"))
    path = visit.request.query_params.get("path", "")
    detail = visit.look.detail(current)
    listed = next((one for one in detail.files if one.path == path), None)
    if listed is None:
        raise FileNotFoundInSkill(name=detail.ref, path=path)
    data = bytes_of(visit, current, detail, path)
    try:
        text: str | None = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = None
    if text is not None and ("\0" in text or len(text) > SHOWN_TEXT):
        text = None
    return Told(
        "file.html",
        lambda: {
            "title": f"{path} · {detail.name}",
            "skill": detail,
            "file": listed,
            "is_image": path.lower().endswith(IMAGES),
            **_shown(visit, detail, path, text),
        },
        lambda: {**record(listed), "ref": detail.ref, "text": text},
    )


def _shown(visit: Visit, detail: SkillDetail, path: str, text: str | None) -> dict[str, str | None]:
    """Return the text of a file as HTML: its ``source``, and if it is Markdown ``rendered``."""
    if text is None or text.count("\n") > SHOWN_LINES:
        return {"source": None, "rendered": None}
    folder, _, name = path.rpartition("/")
    is_rendered = name.lower().endswith(MARKDOWN) and path not in _documents(detail)
    return {
        "source": visit.desk.texts.of(_digest("lines", name, text), lambda: numbered(text, name)),
        "rendered": as_html(visit, text, detail, folder) if is_rendered else None,
    }


def bytes_of(visit: Visit, current: CurrentSkill, detail: SkillDetail, path: str) -> bytes:
    """Return the bytes of a file that a skill lists; raises as `SkillRegistry.read_file`."""
    registry, place = visit.desk.registry, current.stored.place
    if path in _documents(detail):
        return read_bytes(registry.core, current)
    try:
        return read_file(registry.core, current, path)
    except FileTooLarge:  # to be read at once by a model; the database may have it all the same
        now = next((one.number for one in registry.history(place) if one.current), None)
        if now is None:
            raise
        return registry.read_revision(place, now, path)


def _documents(detail: SkillDetail) -> Sequence[str]:
    return [detail.location.removeprefix(f"{detail.path}/")]


def near(visit: Visit) -> Told:
    """Say what is a copy of a skill, or nearly one under another name."""
    stored = located(visit, "/copies/")
    groups = visit.kept(("copies", stored.place), lambda: _copies(visit, stored))
    return Told(
        "copies.html",
        lambda: {
            "title": f"Copies of {stored.skill.name}",
            "skill": stored.skill,
            "groups": groups,
        },
        lambda: {"ref": stored.skill.ref, "copies": record(groups)},
    )


def _copies(visit: Visit, stored: StoredSkill) -> list[Any]:
    found = visit.look.copies(stored)
    return [replace(group, skills=group.skills[:SHOWN_COPIES]) for group in found]


def why(visit: Visit) -> Told:
    """Say why a skill is, or isn't, listed; of folders only to the user of this machine."""
    subject = visit.request.query_params.get("q", "")[:4096]
    personality = visit.request.query_params.get("personality") or None
    registry, visitor = visit.desk.registry, visit.visitor
    found: Sequence[Any] = ()
    problem = None
    if subject:
        try:
            if visitor.is_local:
                found = registry.why(subject, personality)
            else:
                found = _explained(visit, visit.look.explain(subject, personality))
        except RegistryError as error:
            problem = str(refusal(error, visit).record()["error"]["message"])
    return Told(
        "why.html",
        lambda: {
            "title": "Why is it not shown?",
            "subject": subject,
            "found": found,
            "problem": problem,
            "personality": personality,
            "personalities": sorted(registry.settings.personalities) if visit.look.is_whole else (),
        },
        lambda: {"subject": subject, "explanations": record(list(found)), "problem": problem},
    )
