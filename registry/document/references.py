"""Check the files that a skill's body points at ("File references" of the specification)."""

import posixpath
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final
from urllib.parse import unquote

from registry.document.findings import Rule, shorten
from registry.model import DOCUMENT_NAMES, Diagnostic, Document, SkillFile

__all__ = ["REFERENCE_CODES", "check_references"]

FOLDERS: Final = ("scripts", "references", "assets")
"""The folders that the specification names for supporting files."""

MOST_FINDINGS: Final = 10
"""Findings of one code about one body; what lies beyond is counted in the last."""

REFERENCE_CODES: Final[Mapping[str, Rule]] = {
    "reference-missing": Rule("warning", "the body points at a file that the skill does not have"),
    "reference-outside": Rule("warning", "the body points at a file outside the skill's folder"),
    "reference-deep": Rule("info", "the body points at a file more than one folder down"),
}

_FENCE = re.compile(r"^ {0,3}(?P<mark>`{3,}|~{3,})", re.MULTILINE)
# `[text](target "title")`; the target may stand in angle brackets. Bounded, so that a long run of
# brackets costs no more than its length.
_LINK = re.compile(r"\]\([ \t]{0,3}(?:<([^<>\n]{1,300})>|([^\s()<>]{1,300}))(?=\)|[ \t]+[\"'(])")
_PATH = re.compile(
    r"(?<![\w./~}\])>$%*-])((?:\.{1,2}/){0,8}(?:scripts|references|assets)/[\w./-]{1,200})"
)
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:|[#/~\\]")
_PLACEHOLDER = re.compile(r"[<>{}$*|\"]|\.\.\.|\u2026|^path/to/", re.IGNORECASE)
_SUFFIX = re.compile(r"\.[A-Za-z][A-Za-z0-9]{0,7}")


def check_references(document: Document, files: Sequence[SkillFile]) -> Iterator[Diagnostic]:
    """Yield findings about relative links and paths in the body, each target once.

    Fenced blocks are examples more often than references, so only the text between them counts;
    absolute paths, URLs and placeholders point elsewhere on purpose.
    """
    body = document.body
    linked = "](" in body
    named = any(f"{folder}/" in body for folder in FOLDERS)
    if not (linked or named):
        return
    targets: dict[str, int] = {}
    for start, part in _outside_fences(body):
        if linked:
            for match in _LINK.finditer(part):
                target = _link_target(match[1] or match[2])
                if target and not _in_code(part, match.start()):
                    targets.setdefault(target, start + match.start())
        if named:
            for match in _PATH.finditer(part):
                target = posixpath.normpath(match[1].rstrip("./-"))
                if _SUFFIX.fullmatch(posixpath.splitext(target)[1]):
                    targets.setdefault(target, start + match.start())
    if targets:
        yield from _judge(document, targets, files)


def _judge(
    document: Document, targets: Mapping[str, int], files: Sequence[SkillFile]
) -> Iterator[Diagnostic]:
    known = _paths(files)
    counts = dict.fromkeys(REFERENCE_CODES, 0)
    for target, offset in targets.items():
        shown = shorten(target)
        if target.startswith("../"):
            code, message = "reference-outside", f"`{shown}` lies outside the skill's folder"
            fix = "copy the file into the skill, where every client can read it"
        elif target not in known:
            code, message = "reference-missing", f"`{shown}` is not among the skill's files"
            fix = "add the file, or correct the path (it counts from the skill's folder)"
        elif target.count("/") > 1:
            code, message = "reference-deep", f"`{shown}` is more than one folder down"
            fix = "keep what the body points at directly below " + ", ".join(FOLDERS)
        else:
            continue
        counts[code] += 1
        if counts[code] <= MOST_FINDINGS:
            line = document.body_line + document.body.count("\n", 0, offset)
            yield Diagnostic(code, REFERENCE_CODES[code].severity, message, line, fix)
    for code, count in counts.items():
        if count > MOST_FINDINGS:
            message = f"{count - MOST_FINDINGS} more: {REFERENCE_CODES[code].meaning}"
            yield Diagnostic(code, REFERENCE_CODES[code].severity, message)


def _link_target(target: str) -> str | None:
    """Return the normal form of a link's target where it names a file by a relative path."""
    if _SCHEME.match(target) or _PLACEHOLDER.search(target):
        return None
    target = unquote(target.partition("#")[0].partition("?")[0])
    if "/" not in target and not _SUFFIX.fullmatch(posixpath.splitext(target)[1]):
        return None
    return posixpath.normpath(target)


def _paths(files: Sequence[SkillFile]) -> frozenset[str]:
    """Return all files and folders of the skill, itself included."""
    known = {".", *DOCUMENT_NAMES}
    for file in files:
        path = file.path
        while path and path not in known:
            known.add(path)
            path = path.rpartition("/")[0]
    return frozenset(known)


def _outside_fences(body: str) -> Iterator[tuple[int, str]]:
    """Yield (offset, text) of the parts of ``body`` that are no fenced code block."""
    start = 0
    mark = ""
    for match in _FENCE.finditer(body):
        if not mark:
            yield start, body[start : match.start()]
            mark = match["mark"]
        elif match["mark"].startswith(mark) and _blank_after(body, match.end()):
            start, mark = match.end(), ""
    if not mark:
        yield start, body[start:]


def _blank_after(body: str, offset: int) -> bool:
    end = body.find("\n", offset)
    return not body[offset : end if end >= 0 else None].strip()


def _in_code(part: str, offset: int) -> bool:
    """Tell whether an odd number of backticks stands before ``offset`` on its line."""
    return part.count("`", part.rfind("\n", 0, offset) + 1, offset) % 2 == 1
