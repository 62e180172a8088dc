"""The project's own English: the banned idioms become no more frequent."""

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import REPOSITORY

RECORDED = {"registry": 4, "docs": 0}
"""How many idioms each place has: four are stop words of the search. Never raise a number."""

START = r"(?:^|(?<=[.;:] ))"
IDIOMS = {
    "name the person or thing": rf"{START}(?:Who|What) (?!to |the skill )\w+ [^?]*?(?=[.,;](?![^.?]*\?))|\bwhoever\b",
    "begin with the subject": rf"{START}(?:Of (?:a|an|the|two|several|each|its|those)"
    r"|One (?:that|which|whose|of which)|That (?:which|there)|Those (?:that|which|who)) ",
    "`where` is for places; write `if`": r"\bwhere (?:nothing|something|none|several|fewer"
    r"|there (?:is|are)|it (?:is|can|has)|they (?:are|can|have)|not)\b",
    "prints, reports, records": r"\btold\b|\btells of\b|\bis said\b|\bsa(?:ys?|id) so\b",
    "is not a": r"(?<!there )(?<!There )\b(?:is|are|was|were) no (?!longer|more|other)\w+",
    "is in, is on": r"\b(?:lies|stands|stood)\b(?! for\b)",
    "only": r"(?<!left )(?<!leave )(?<!leaves )\balone\b",
    "`also` before the verb": r", too(?=[.,;:)]|$)",
    "again; in another place; since": r"\b(?:anew|elsewhere|by now|whence|hitherto|therein)\b",
    "must, will, can, is available": r"\b(?:is|are|was|were)(?: not)? to be\b|\bto be had\b",
    "no user; another process": r"\b(?:no|some|any|every)body\b",
    "fix; undo": r"\bmend(?:s|ed|ing)?\b|\b(?:takes?|taken|took) back\b",
}
"""Patterns of English that has to be decoded, each by its plain replacement."""

_CODE = re.compile(r"\b(?:SELECT|INSERT|UPDATE|FROM|WHERE)\b|\(\?[:=!<]|\\b")
"""SQL and regular expressions, which are not English."""


def of_python(source: str) -> Iterator[tuple[int, str]]:
    """Yield docstrings, messages and comments with their lines."""
    inner: set[ast.AST] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.JoinedStr):
            parts = [part for part in node.values if isinstance(part, ast.Constant)]
            inner.update(parts)
            yield node.lineno, "X".join(str(part.value) for part in parts)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in inner:
            yield node.lineno, node.value
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string.lstrip("#: ")


def of_page(source: str) -> Iterator[tuple[int, str]]:
    """Yield paragraphs, list items and cells of a Markdown page with their lines."""
    line = 1
    for part in re.split(r"(\n\s*\n|\n(?=\s*(?:[-*|]|\d+\.) )|(?<=\S) \| )", source):
        yield line, part.strip("|-* \n")
        line += part.count("\n")


def idioms(path: Path) -> Iterator[str]:
    """Yield each banned idiom in a file, with its place and its plain replacement."""
    source = path.read_text(encoding="utf-8")
    texts = of_python(source) if path.suffix == ".py" else of_page(source)
    for line, text in texts:
        if len(text.split()) < 3 or _CODE.search(text):
            continue
        flat = re.sub(r"`[^`]+`", "X", " ".join(text.split()))
        for better, pattern in IDIOMS.items():
            for match in re.finditer(pattern, flat):
                place = f"{path.name}:{line}"
                yield f"{place}: “{match[0][:60]}” (better: {better})"


REGISTRY = [
    path for end in ("*.py", "*.html", "rules.tsv") for path in (REPOSITORY / "registry").rglob(end)
]
DOCS = [*(REPOSITORY / "docs").rglob("*.md"), *REPOSITORY.glob("*.md")]


@pytest.mark.file
@pytest.mark.parametrize(("place", "files"), [("registry", REGISTRY), ("docs", DOCS)])
def test_banned_idioms_become_no_more_frequent(place, files):
    found = [one for path in sorted(files) for one in idioms(path)]
    assert len(found) <= RECORDED[place], "\n".join(["Rewrite one of these:", *found])


def test_a_banned_idiom_is_found_in_code_and_on_a_page(tmp_path):
    code, page = tmp_path / "a.py", tmp_path / "a.md"
    code.write_text('x = f"the skill {1} lies in a folder"  # nobody writes so, too\n')
    page.write_text("# A page\n\n- Of a skill, only the name is read.\n- It is not a list.\n")
    assert [one.partition(" ")[0] for path in (code, page) for one in idioms(path)] == [
        *("a.py:1:",) * 3,
        "a.md:3:",
    ]
