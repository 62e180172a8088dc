"""Check the files that a skill's body points at ("File references" of the specification)."""

import posixpath
import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from typing import Final
from urllib.parse import unquote

from registry.document.findings import Rule, printable
from registry.document.markdown import code_spans
from registry.model import DOCUMENT_NAMES, Diagnostic, Document, SkillFile

FOLDERS: Final = ("scripts", "references", "assets")
"""The folders that the specification names for supporting files."""

MAX_FINDINGS: Final = 10
"""Findings of one code about one body; what lies beyond is counted in the last."""

REFERENCE_CODES: Final[Mapping[str, Rule]] = {
    "reference-missing": Rule("warning", "the body points at a file that the skill does not have"),
    "reference-outside": Rule("warning", "the body points at a file outside the skill's folder"),
    "reference-deep": Rule("info", "the body points at a file more than one folder down"),
}

# `[text](target "title")`; the target may stand in angle brackets. Bounded, so that a long run of
# brackets costs no more than its length.
_LINK = re.compile(r"\]\([ \t]{0,3}(?:<([^<>\n]{1,300})>|([^\s()<>]{1,300}))(?=\)|[ \t]+[\"'(])")
_TAIL = re.compile(r"[\w./-]{1,200}", re.ASCII)
# What stands before a path that begins elsewhere: `src/scripts/`, `~/scripts/`, `$HOME/scripts/`.
_ELSEWHERE: Final = frozenset("_/.~}])>$%*#-")
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:|[#/~\\]")
_PLACEHOLDER = re.compile(r"[<>{}$*|\"]|\.\.\.|\u2026|^path/to/", re.IGNORECASE)
_SUFFIX = re.compile(r"\.[A-Za-z][A-Za-z0-9]{0,7}")


def check_references(document: Document, files: Sequence[SkillFile]) -> Iterator[Diagnostic]:
    """Yield findings about relative links and paths in the body, each target once.

    Fenced blocks are examples more often than references, so only what stands outside of them
    counts; absolute paths, URLs and placeholders point elsewhere on purpose.
    """
    body = document.body
    found = [*_links(body), *_named_paths(body)]
    if not found:
        return
    code = [edge for span in code_spans(body, nested=True) for edge in span]
    targets: dict[str, int] = {}
    for offset, target in found:
        if bisect_right(code, offset) % 2 == 0:
            targets[target] = min(offset, targets.get(target, offset))
    if targets:
        yield from _judge(document, targets, files)


def _links(body: str) -> Iterator[tuple[int, str]]:
    """Yield (offset, target) of the Markdown links that name a file by a relative path."""
    if "](" not in body:
        return
    ticks = counted = 0  # backticks of the line up to ``counted``: an odd number opens code
    for match in _LINK.finditer(body):
        offset = match.start()
        line = body.rfind("\n", counted, offset)
        ticks = body.count("`", max(line, counted), offset) + (ticks if line < 0 else 0)
        counted = offset
        target = match[1] or match[2]
        if _SCHEME.match(target) or _PLACEHOLDER.search(target):
            continue
        target = unquote(target.partition("#")[0].partition("?")[0])
        if "/" not in target and not _is_file(target):
            continue
        if ticks % 2 == 0:
            yield offset, posixpath.normpath(target)


def _named_paths(body: str) -> Iterator[tuple[int, str]]:
    """Yield (offset, path) of the files that the text names below `FOLDERS`."""
    for folder in FOLDERS:
        offset = body.find(f"{folder}/")
        while offset >= 0:
            start = offset
            while body.endswith("./", 0, start):
                start -= 3 if body.endswith("../", 0, start) else 2
            match = _TAIL.match(body, offset)
            end = match.end() if match else offset + 1
            before = body[start - 1 : start] if start else " "
            if before not in _ELSEWHERE and not (before.isascii() and before.isalnum()):
                path = body[start:end].rstrip("./-")
                if _is_file(path):
                    yield start, posixpath.normpath(path)
            offset = body.find(f"{folder}/", end)


def _is_file(path: str) -> bool:
    return bool(_SUFFIX.fullmatch(posixpath.splitext(path)[1]))


def _judge(
    document: Document, targets: Mapping[str, int], files: Sequence[SkillFile]
) -> Iterator[Diagnostic]:
    known = _paths(files)
    counts = dict.fromkeys(REFERENCE_CODES, 0)
    for target, offset in targets.items():
        shown = printable(target)
        if target.startswith("../"):
            code, message = "reference-outside", f"`{shown}` lies outside the skill's folder"
            fix = "copy the file into the skill, where every client can read it, and name the copy"
        elif target not in known:
            code, message = "reference-missing", f"`{shown}` is not among the skill's files"
            fix = "add the file, or correct the path (it counts from the skill's folder)"
        elif target.count("/") > 1:
            code, message = "reference-deep", f"`{shown}` is more than one folder down"
            fix = "keep what the body points at directly below " + ", ".join(FOLDERS)
        else:
            continue
        counts[code] += 1
        if counts[code] <= MAX_FINDINGS:
            line = document.body_line + document.body.count("\n", 0, offset)
            yield Diagnostic(code, REFERENCE_CODES[code].severity, message, line, fix)
    for code, count in counts.items():
        if count > MAX_FINDINGS:
            message = f"{count - MAX_FINDINGS} more: {REFERENCE_CODES[code].meaning}"
            yield Diagnostic(code, REFERENCE_CODES[code].severity, message)


def _paths(files: Sequence[SkillFile]) -> frozenset[str]:
    """Return all files and folders of the skill, itself included."""
    known = {".", *DOCUMENT_NAMES}
    for file in files:
        path = file.path
        while path and path not in known:
            known.add(path)
            path = path.rpartition("/")[0]
    return frozenset(known)
