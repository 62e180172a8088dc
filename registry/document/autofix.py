"""Make the repairs of a SKILL.md that need no judgement.

After the repairs, all YAML readers read the same values from the file. A repair has the code of the
finding that it removes. After each repair, the file is parsed again. If the repair changed a value
and not only its spelling, the repair is dropped. A second run changes nothing.
"""

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import fields as dataclass_fields
from typing import Final, NamedTuple, TypeAlias

from registry.document import coerce
from registry.document.fields import NAME, TAGS, Fields, FieldValue
from registry.document.findings import Rule, printable
from registry.document.front_matter_editor import EditImpossible, Front, newline_of
from registry.document.frontmatter import LINE, Split, split
from registry.document.names import check_new_name
from registry.document.parse import parse_document, parse_text
from registry.document.repair import Patch, patches
from registry.document.yaml_text import YamlReading, YamlRefused
from registry.model import Diagnostic, Document, JsonValue

MARK: Final = b"\xef\xbb\xbf"

CHECK_ONLY_RULES: Final[Mapping[str, Rule]] = {
    "line-ends-mixed": Rule("info", "some lines end with CR LF, other lines end with LF"),
    "front-matter-spaces": Rule("info", "a `---` line ends with spaces"),
    "tags-spelling": Rule("info", "the tags in the file differ in spelling from the stored tags"),
}
"""Findings that only `check` reports; other readers accept files with these problems."""

FIXABLE: Final = frozenset(
    "byte-order-mark name-characters name-differs-from-folder name-upper-case yaml-block-text "
    "yaml-brackets yaml-colon yaml-escape yaml-indentation yaml-list yaml-quotes "
    "yaml-special-character yaml-stray-line yaml-surrogates".split()
) | set(CHECK_ONLY_RULES)
"""Codes of findings that `autofix` can repair, at least in some cases."""

_LONE_LF: Final = re.compile(r"(?<!\r)\n")
_BLANK: Final = " \t\u00a0\u3000"
_SPACES: Final = re.compile(rf"---[{_BLANK}]+(?=[\r\n]|\Z)")
_BLANKS: Final = tuple(character.encode() for character in _BLANK)
_WORDS: Final = re.compile(r"[a-z0-9]+(?:[ _-]+[a-z0-9]+)*")
_BETWEEN: Final = re.compile(r"[ _-]+")
_MAX_APART: Final = 32
"""Maximum number of repairs to try one by one, if all repairs together fail."""

_LEFT_OUT: Final = frozenset({"text", "body", "body_line", "diagnostics"})
_FIELDS: Final = tuple(
    field.name for field in dataclass_fields(Document) if field.name not in _LEFT_OUT
)

IsWanted: TypeAlias = Callable[[str], bool]


class Autofix(NamedTuple):
    """The bytes of a repaired skill file, and the codes of the findings that were repaired."""

    data: bytes
    codes: tuple[str, ...]


class _Step(NamedTuple):
    """A changed SKILL.md to try, and the names of the fields whose values may change.

    If ``repairs``, the parser must report fewer findings about the new file than about the old
    file.
    """

    code: str
    text: str
    differs: frozenset[str] = frozenset()
    repairs: bool = False


def untidy(data: bytes, document: Document) -> Iterator[Diagnostic]:
    """Yield the findings of `CHECK_ONLY_RULES` about a skill file.

    ``document`` is the parsed file.
    """
    if b"\r\n" in data and (fewer := _fewer_ends(document.text)):
        line = 1 + document.text[: fewer[0]].count("\n")
        message = f"{fewer[1]} of the lines have a different line end than the others"
        yield _tidy(
            "line-ends-mixed", message, line, "save the file with the same line ends throughout"
        )
    parts = split(document.text)
    if parts.fenced and (spaces := _delimiters(document.text, parts)):
        message = "spaces follow `---`, so some parsers don't recognize it"
        line = 1 + document.text.count("\n", 0, spaces[0].start())
        yield _tidy("front-matter-spaces", message, line, "delete the spaces")
    yield from untidy_tags(document.front_matter, document.tags)


def untidy_tags(
    front_matter: Mapping[str, JsonValue], tags: Collection[str]
) -> Iterator[Diagnostic]:
    """Yield the findings about how the tags in a front matter are written.

    ``tags`` are the parsed tags.
    """
    for value, words in _misspelt(front_matter, tags):
        shown = printable(", ".join(words), 60)
        message = f"`{'.'.join(value.path)}` is read as `{shown}`"
        yield _tidy("tags-spelling", message, value.line, f"write `{shown}`")


def is_perhaps_untidy(data: bytes) -> bool:
    """Tell from the bytes whether `untidy` may find something, apart from findings about tags."""
    if b"\r" in data or b"\0" in data:
        return True
    _, *rulers = (b"\n" + data.removeprefix(MARK)).split(b"\n---")
    return any(rest.startswith(_BLANKS) for rest in rulers)


def autofix(data: bytes, *, folder_name: str, wanted: IsWanted) -> Autofix | None:
    """Return SKILL.md with the ``wanted`` findings (codes) repaired; None if nothing changes.

    Binary and invalid files are not changed. A file with a lone CR is not changed either, because
    readers disagree whether a CR ends a line.
    """
    document = parse_document(data, folder_name=folder_name)
    if not document.usable or b"\0" in data or data.count(b"\r") > data.count(b"\r\n"):
        return None
    mark, codes = b"", []
    if data.startswith(MARK):
        mark = MARK
        if wanted("byte-order-mark"):
            mark = b""
            codes.append("byte-order-mark")
    for steps in (_line_ends, _closer, _valid_yaml, _tags, _name):
        for step in steps(document, folder_name, wanted):
            changed = parse_text(step.text, folder_name=folder_name)
            if changed.text != document.text and _says_the_same(document, changed, step):
                document = changed
                codes += step.code.split()
                break
    return Autofix(mark + document.text.encode(), tuple(dict.fromkeys(codes))) if codes else None


def _says_the_same(before: Document, after: Document, step: _Step) -> bool:
    """Tell whether a repaired document has the same values as before.

    If ``step.repairs``, it must also have fewer findings.
    """
    for name in _FIELDS:
        if name not in step.differs and getattr(before, name) != getattr(after, name):
            return False
    bodies = [one.body.replace("\r\n", "\n") for one in (before, after)]
    if step.repairs and len(after.diagnostics) >= len(before.diagnostics):
        return False
    return after.usable and bodies[0] == bodies[1]


def _line_ends(document: Document, _: str, wanted: IsWanted) -> Iterator[_Step]:
    text = document.text
    if wanted("line-ends-mixed") and _fewer_ends(text):
        lines = text.replace("\r\n", "\n")
        many = text.count("\r\n") * 2 > text.count("\n")
        yield _Step("line-ends-mixed", lines.replace("\n", "\r\n") if many else lines)


def _fewer_ends(text: str) -> tuple[int, int] | None:
    """Return the first line end of the rarer type (LF or CR LF), and how often this type occurs.

    Return None if all line ends have the same type, or if there is a lone CR.
    """
    long = text.count("\r\n")
    short = text.count("\n") - long
    if not long or not short or text.count("\r") > long:
        return None
    if long > short:
        lone = _LONE_LF.search(text)
        return (lone.start() if lone else 0), short
    return text.index("\r\n"), long


def _closer(document: Document, _: str, wanted: IsWanted) -> Iterator[_Step]:
    parts = split(document.text)
    if not (wanted("front-matter-spaces") and _is_own(parts, document)):
        return
    text = document.text
    for spaces in reversed(_delimiters(text, parts)):
        text = text[: spaces.start() + 3] + text[spaces.end() :]
    if text != document.text:
        yield _Step("front-matter-spaces", text)


def _delimiters(text: str, parts: Split) -> list[re.Match[str]]:
    """Return the `---` lines around the front matter that have spaces at their ends."""
    front = parts.front or ""
    end = text.find(front, 3) if front else LINE.match(text).end()  # type: ignore[union-attr]
    found = (_SPACES.match(text), _SPACES.match(text, end + len(front)))
    return [match for match in found if match]


def _is_own(parts: Split, document: Document) -> bool:
    """Tell whether a document was parsed from these parts, and the parts have both `---` lines."""
    same = (parts.body, parts.body_line) == (document.body, document.body_line)
    return parts.fenced and same


def _valid_yaml(document: Document, _: str, wanted: IsWanted) -> Iterator[_Step]:
    """Yield the document with all broken values repaired, then with only some of them repaired.

    The second result has each repair that keeps the values, added one after another.
    """
    if not any(found.code.startswith("yaml-") for found in document.diagnostics):
        return
    parts = split(document.text)
    if not _is_own(parts, document):
        return
    try:
        told = patches(parts.front or "", parts.front_line)
    except YamlRefused:
        return
    found = [one for one in told if one.code in FIXABLE and wanted(one.code)]
    if not found:
        return
    yield _patched(document.text, found)
    if len(found) == 1 or len(found) > _MAX_APART:
        return
    good: list[Patch] = []
    for patch in found:
        step = _patched(document.text, [*good, patch])
        changed = parse_text(step.text, folder_name=document.name)
        if _says_the_same(document, changed, step):
            good.append(patch)
    if good:
        yield _patched(document.text, good)


def _patched(text: str, chosen: Sequence[Patch]) -> _Step:
    lines, newline = LINE.findall(text), newline_of(text)
    for patch in reversed(chosen):
        first, last = patch.line - 1, patch.line - 2 + patch.rows
        end = lines[last][len(lines[last].rstrip("\r\n")) :]
        new = lines[first][: patch.keep] + patch.text.replace("\n", newline) + end
        lines[first : last + 1] = [new]
    codes = " ".join(dict.fromkeys(patch.code for patch in chosen))
    return _Step(codes, "".join(lines), repairs=True)


def _tags(document: Document, _: str, wanted: IsWanted) -> Iterator[_Step]:
    if not wanted("tags-spelling"):
        return
    text, now = document.text, document
    for value, words in _misspelt(document.front_matter, document.tags):
        try:
            text = Front(text, now).set_words(value.path, words, spelled=True)
        except EditImpossible:
            continue
        now = parse_text(text, folder_name=document.name)
    if text != document.text:
        yield _Step("tags-spelling", text, frozenset({"front_matter"}))


def _misspelt(
    front_matter: Mapping[str, JsonValue], tags: Collection[str]
) -> Iterator[tuple[FieldValue, tuple[str, ...]]]:
    """Yield the values with tags in an unusual spelling, each with the usual spelling.

    Letter case stays, because some readers print tags as written. A person must correct tags that
    the parser ignored or did not understand.
    """
    for value in Fields(YamlReading(dict(front_matter))).values(TAGS):
        try:
            found: dict[str, str] = {}
            for word in coerce.written_tags(value.value):
                found.setdefault(word.casefold(), word)
        except coerce.UnknownShape:
            continue
        words = tuple(found.values())
        if isinstance(value.value, str):
            listed = value.value.strip().startswith("[")
            same = listed or [word.strip() for word in value.value.split(",")] == list(words)
        else:
            same = list(value.value or ()) == list(words)  # type: ignore[arg-type]
        if words and not same and tags and found.keys() <= set(tags):
            yield value, words


def _name(document: Document, folder_name: str, wanted: IsWanted) -> Iterator[_Step]:
    """Set the name to the folder's name if both differ only in case, spaces and underscores."""
    codes = {"name-differs-from-folder"}
    name = document.name
    if name.lower() != name:
        codes.add("name-upper-case")
    if _BETWEEN.sub("-", name) != name:
        codes.add("name-characters")
    plain = name.lower()
    written = next(Fields(YamlReading(dict(document.front_matter))).present(NAME), None)
    if (
        name == folder_name
        or not any(map(wanted, codes))
        or not _WORDS.fullmatch(plain)
        or _BETWEEN.sub("-", plain) != folder_name
        or check_new_name(folder_name) is not None
        or written is None
        or written.path != ("name",)
    ):
        return
    try:
        text = Front(document.text, document).set_text(("name",), folder_name)
    except EditImpossible:
        return
    yield _Step(" ".join(sorted(codes)), text, frozenset({"name", "front_matter"}))


def _tidy(code: str, message: str, line: int | None, fix: str) -> Diagnostic:
    return Diagnostic(code, CHECK_ONLY_RULES[code].severity, message, line, fix)
