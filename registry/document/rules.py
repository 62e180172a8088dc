"""All rules of the Agent Skills specification; a broken rule gives a diagnostic."""

import posixpath
import re
import unicodedata
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple
from urllib.parse import unquote

from registry.document import labels
from registry.document.findings import Rule, join_some, key_lines, printable
from registry.document.markdown import code_spans
from registry.model import DOCUMENT_NAMES, Diagnostic, Document, JsonValue, SkillFile

NAME_LENGTH: Final = 64
"""Maximum number of characters of a name (https://agentskills.io/specification, `name`)."""

_STRICT_NAME: Final = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")
_NOT_IN_A_SLUG: Final = re.compile(r"[^a-z0-9]+")


def same_name(name: str, folder: str) -> str:
    """Return the advice how to make the name and the folder's name equal.

    The advice proposes a name that the specification allows.
    """
    rename, write = f"rename the folder to `{name}`", f"write `name: {folder}`"
    match is_strict(name), is_strict(folder):
        case True, True:
            return f"{rename}, or {write}"
        case True, False:
            return rename
        case False, True:
            return write
    slug = slug_of(name, folder)
    return f"rename the folder to `{slug}`, and write `name: {slug}`"


def is_strict(name: str) -> bool:
    """Tell whether the reference validator, and all clients, accept a name."""
    return _STRICT_NAME.fullmatch(name) is not None and len(name) <= NAME_LENGTH


def spelling(name: str, folder: str) -> Iterator[tuple[str, str, str]]:
    """Yield each rule of the specification that a name breaks: code, message and fix."""
    if is_strict(name):
        return
    shown = printable(name)
    slug = folder if is_strict(folder) else slug_of(name, folder)
    write = f"write `name: {slug}`"
    if len(name) > NAME_LENGTH:
        message = f"the name `{shown}` has {len(name)} characters, {NAME_LENGTH} are allowed"
        yield "name-too-long", message, f"shorten it to {NAME_LENGTH} characters"
    if name != name.lower():
        yield "name-upper-case", f"the name `{shown}` has upper-case letters", write
    if name[0] == "-" or name[-1] == "-":
        message = f"the name `{shown}` begins or ends with a hyphen"
        yield "name-hyphen-edge", message, write
    if "--" in name:
        message = f"the name `{shown}` has two hyphens in a row"
        yield "name-hyphen-double", message, write
    strange = sorted({char for char in name if not (char.isalnum() or char == "-")})
    if strange:
        message = f"the name `{shown}` has other characters than letters, digits and hyphens: "
        yield "name-characters", message + join_some(map(_visible, strange)), write
    foreign = sorted({char for char in name if char.isalnum() and not char.isascii()})
    if foreign:
        message = f"the name `{shown}` has letters that other clients refuse: "
        fix = "write the name with a-z, 0-9 and hyphens; you can keep the title in the body"
        yield "name-not-ascii", message + join_some(foreign), fix


def slug_of(name: str, otherwise: str = "") -> str:
    """Return the most similar name that the specification allows (NFKC first, without accents).

    If no letter is left, use ``otherwise`` in place of the name.
    """
    for text in (name, otherwise):
        plain = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode()
        slug = _NOT_IN_A_SLUG.sub("-", plain.lower()).strip("-")[:NAME_LENGTH].rstrip("-")
        if slug:
            return slug
    return "my-skill"


def _visible(char: str) -> str:
    if char == " ":
        return "a space"
    return f"`{char}`" if char.isprintable() and char != "`" else f"U+{ord(char):04X}"


FOLDERS: Final = ("scripts", "references", "assets")
"""The folders that the specification names for supporting files."""

MAX_FINDINGS: Final = 10
"""Maximum number of findings about a body with the same code.

The last of them reports the number of further findings.
"""

REFERENCE_RULES: Final[Mapping[str, Rule]] = {
    "reference-missing": Rule(
        "warning", "the body refers to a file that is not in the skill's folder"
    ),
    "reference-outside": Rule("warning", "the body refers to a file outside the skill's folder"),
    "reference-deep": Rule(
        "info", "the body refers to a file more than one folder level below the skill's folder"
    ),
}

# `[text](target "title")`, with or without angle brackets around the target. The lengths have
# limits, so that a long series of brackets takes linear time.
_LINK = re.compile(r"\]\([ \t]{0,3}(?:<([^<>\n]{1,300})>|([^\s()<>]{1,300}))(?=\)|[ \t]+[\"'(])")
_TAIL = re.compile(r"[\w./-]{1,200}", re.ASCII)
# If one of these characters comes before a path, the path is outside the skill: `src/scripts/`,
# `~/scripts/`, `$HOME/scripts/`.
_ELSEWHERE: Final = frozenset("_/.~}])>$%*#-")
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:|[#/~\\]")
_PLACEHOLDER = re.compile(r"[<>{}$*|\"]|\.\.\.|\u2026|^path/to/", re.IGNORECASE)
_SUFFIX = re.compile(r"\.[A-Za-z][A-Za-z0-9]{0,7}")


def check_references(document: Document, files: Sequence[SkillFile]) -> Iterator[Diagnostic]:
    """Yield findings about relative links and paths in the body, one for each target.

    Fenced blocks are not checked, because they usually contain examples. Absolute paths, URLs and
    placeholders are accepted, because their authors mean files outside the skill.
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
    """Yield the offset and the target of each Markdown link with a relative path to a file."""
    if "](" not in body:
        return
    # The number of backticks between the start of the line and the offset ``counted``. If it is
    # odd, the link is in code.
    ticks = counted = 0
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
    """Yield the offset and the path of each file in `FOLDERS` that the text mentions."""
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
    counts = dict.fromkeys(REFERENCE_RULES, 0)
    for target, offset in targets.items():
        shown = printable(target)
        if target.startswith("../"):
            code, message = "reference-outside", f"`{shown}` is outside the skill's folder"
            fix = "copy the file into the skill's folder, and refer to the copy"
        elif target not in known:
            code, message = "reference-missing", f"`{shown}` is not among the skill's files"
            fix = "add the file, or correct the path (relative to the skill's folder)"
        elif target.count("/") > 1:
            code, message = "reference-deep", f"`{shown}` is more than one folder down"
            fix = "move the file directly into scripts/, references/ or assets/"
        else:
            continue
        counts[code] += 1
        if counts[code] <= MAX_FINDINGS:
            line = document.body_line + document.body.count("\n", 0, offset)
            yield Diagnostic(code, REFERENCE_RULES[code].severity, message, line, fix)
    for code, count in counts.items():
        if count > MAX_FINDINGS:
            message = f"{count - MAX_FINDINGS} more: {REFERENCE_RULES[code].meaning}"
            yield Diagnostic(code, REFERENCE_RULES[code].severity, message)


def _paths(files: Sequence[SkillFile]) -> frozenset[str]:
    """Return all files and folders of the skill, including its own folder."""
    known = {".", *DOCUMENT_NAMES}
    for file in files:
        path = file.path
        while path and path not in known:
            known.add(path)
            path = path.rpartition("/")[0]
    return frozenset(known)


# The limits of the fields in https://agentskills.io/specification.
DESCRIPTION_LENGTH: Final = 1024
COMPATIBILITY_LENGTH: Final = 500
BODY_LINES: Final = 500  # "Keep your main SKILL.md under 500 lines"
BODY_TOKENS: Final = 5000  # "Instructions (< 5000 tokens recommended)"

BYTES_PER_TOKEN: Final = 4  # a common estimate for English; almost correct for CJK text in UTF-8

MAX_KEYS: Final = 10
"""Maximum number of unknown keys that get separate findings.

One more finding names all other keys.
"""

FIELDS: Final = ("name", "description", "license", "compatibility", "metadata", "allowed-tools")
"""The top-level keys of the specification, in its order."""

CLIENT_FIELDS: Final = frozenset(
    "agent argument-hint arguments context disable-model-invocation disallowed-tools effort hooks "
    "model paths shell user-invocable when_to_use".split()
)
"""Keys that Claude Code reads only at the top level."""

KNOWN_TO_VALIDATORS: Final = frozenset({"SKILL.md", "skill.md"})
"""Names of the skill file that the reference validator finds."""

RESERVED_WORDS: Final = ("anthropic", "claude")
"""Words that Anthropic's API doesn't accept in a skill's name.

The open specification accepts them.
"""

FORMAT_RULES: Final[Mapping[str, Rule]] = {
    "document-case": Rule(
        "warning", "the name of the skill file is neither `SKILL.md` nor `skill.md`"
    ),
    "name-missing": Rule("warning", "there is no `name`"),
    "name-not-text": Rule("warning", "`name` is a list or a mapping"),
    "name-too-long": Rule("warning", f"`name` is longer than {NAME_LENGTH} characters"),
    "name-upper-case": Rule("warning", "`name` has upper-case letters"),
    "name-hyphen-edge": Rule("warning", "`name` begins or ends with a hyphen"),
    "name-hyphen-double": Rule("warning", "`name` has two hyphens in a row"),
    "name-characters": Rule(
        "warning", "`name` contains characters other than letters, digits and hyphens"
    ),
    "name-not-ascii": Rule("warning", "`name` contains letters that some clients refuse"),
    "name-differs-from-folder": Rule("warning", "`name` and the name of the folder differ"),
    "name-reserved-word": Rule("info", "`name` contains a word that some services refuse"),
    "description-missing": Rule("warning", "there is no `description`"),
    "description-not-text": Rule("warning", "`description` is a list or a mapping"),
    "description-too-long": Rule(
        "warning", f"`description` is longer than {DESCRIPTION_LENGTH} characters"
    ),
    "license-not-text": Rule("warning", "`license` is a list or a mapping"),
    "compatibility-empty": Rule("warning", "`compatibility` has no value"),
    "compatibility-not-text": Rule("warning", "`compatibility` is a list or a mapping"),
    "compatibility-too-long": Rule(
        "warning", f"`compatibility` is longer than {COMPATIBILITY_LENGTH} characters"
    ),
    "metadata-not-mapping": Rule("warning", "`metadata` is not a mapping of keys to values"),
    "metadata-not-text": Rule("warning", "a value below `metadata` is not text"),
    "allowed-tools-not-text": Rule("warning", "`allowed-tools` is not a single string"),
    "allowed-tools-commas": Rule("info", "the tools in `allowed-tools` are separated by commas"),
    "key-spelling": Rule("warning", "a key is not spelled as in the specification"),
    "key-unknown": Rule("warning", "a top-level key is not in the specification"),
    "version-format": Rule("info", "`version` can't be the label of a version"),
    "body-too-many-lines": Rule("info", f"the body has more than {BODY_LINES} lines"),
    "body-too-many-tokens": Rule("info", f"the body has more than about {BODY_TOKENS} tokens"),
    **REFERENCE_RULES,
}
"""Every code of this module, with its severity and meaning."""

REPORTED_BY_PARSER: Final[Mapping[str, frozenset[str]]] = {
    "name-missing": frozenset({"empty", "name-missing"}),
    "description-missing": frozenset({"empty", "description-missing", "description-from-body"}),
}
"""Codes of findings that may repeat a finding of the parser, each with the parser's codes.

If the parser has reported one of these codes, the finding is left out.
"""

_PARENTHESES = re.compile(r"\([^()]*\)")


class _Field(NamedTuple):
    """A value of the front matter, and the key that has the value."""

    key: str | None
    value: JsonValue


def check_specification(
    document: Document, *, folder_name: str, files: Sequence[SkillFile]
) -> Iterator[Diagnostic]:
    """Yield each rule of the Agent Skills specification that ``document`` breaks.

    ``files`` are the skill's files, with or without the skill file.
    """
    front = document.front_matter
    fields = {field: _Field(field, front[field]) for field in FIELDS if field in front}
    others = [key for key in front if key not in fields]
    spelled = {}
    for key in others:
        field = key.lower().replace("_", "-").replace(" ", "-")
        if field in FIELDS and field not in fields:
            spelled[key] = field
            fields[field] = _Field(key, front[key])
    missing = _Field(None, None)
    licence = "write the name of the licence, or the name of the licence file"
    found = [
        *_keys(others, spelled),
        *_name(fields.get("name", missing), folder_name),
        *_description(fields.get("description", missing)),
        *_not_text("license", fields.get("license", missing), licence),
        *(_compatibility(fields["compatibility"]) if "compatibility" in fields else ()),
        *_metadata(fields.get("metadata", missing)),
        *_allowed_tools(fields.get("allowed-tools", missing)),
        *_version(document.version, others),
    ]
    said = {finding.code for finding in document.diagnostics}
    found = [
        finding for finding in found if said.isdisjoint(REPORTED_BY_PARSER.get(finding.code, ()))
    ]
    if found:
        lines = key_lines(document)
        for finding in found:
            yield finding.diagnostic(lines)
    yield from _spelling(files)
    yield from _body(document)
    yield from check_references(document, files)


class _Finding(NamedTuple):
    """A problem with ``key``; the line of the key isn't known yet."""

    code: str
    key: str | None
    message: str
    fix: str

    def diagnostic(self, lines: Mapping[str, int]) -> Diagnostic:
        line = None if self.key is None else lines.get(self.key)
        return Diagnostic(self.code, FORMAT_RULES[self.code].severity, self.message, line, self.fix)


def _keys(others: Sequence[str], spelled: Mapping[str, str]) -> Iterator[_Finding]:
    for key, field in spelled.items():
        how = "in lower case" if key.lower() == field else "like this"
        message = f"`{printable(key)}` is not how the specification spells `{field}`"
        yield _Finding("key-spelling", key, message, f"write `{field}` {how}")
    unknown = [key for key in others if key not in spelled]
    for key in unknown[:MAX_KEYS]:
        message = f"`{printable(key)}` is not a key of the specification"
        fix = f"move it below `metadata` as text, or remove it (known keys: {', '.join(FIELDS)})"
        if key in CLIENT_FIELDS:
            fix = "keep it if the skill is for Claude Code; strict clients refuse the file"
        yield _Finding("key-unknown", key, message, fix)
    if rest := unknown[MAX_KEYS:]:
        message = f"{len(rest)} more keys are not in the specification: {join_some(rest)}"
        yield _Finding("key-unknown", rest[0], message, "move them below `metadata` as text")


def _name(field: _Field, folder_name: str) -> Iterator[_Finding]:
    key, name = field
    folder = unicodedata.normalize("NFKC", folder_name)
    if _is_blank(name):
        fix = f"add `name: {slug_of(folder)}`, and give the folder the same name"
        yield _Finding("name-missing", key, "the skill has no `name`", fix)
        return
    if not isinstance(name, str):
        yield from _not_text("name", field, f"write `name: {slug_of(folder)}`")
        return
    name = unicodedata.normalize("NFKC", name.strip())  # the reference validator does the same
    for code, said, fix in spelling(name, folder):
        yield _Finding(code, key, said, fix)
    shown = printable(name)
    if name != folder:
        message = f"the name `{shown}` is not the folder's name, `{printable(folder)}`"
        yield _Finding("name-differs-from-folder", key, message, same_name(name, folder))
    for word in RESERVED_WORDS:
        if word in name.lower():
            message = f"the name `{shown}` has the word `{word}`, which services may reserve"
            fix = f"choose a name without `{word}` if you mean to upload the skill"
            yield _Finding("name-reserved-word", key, message, fix)


def _description(field: _Field) -> Iterator[_Finding]:
    if _is_blank(field.value):
        fix = "add `description:` with what the skill does and when to use it"
        yield _Finding("description-missing", field.key, "the skill has no `description`", fix)
    fix = "write one text that explains what the skill does and when to use it"
    yield from _not_text("description", field, fix)
    fix = "write only what the skill does and when to use it; move the rest into the body"
    yield from _too_long("description", field, DESCRIPTION_LENGTH, fix)


def _compatibility(field: _Field) -> Iterator[_Finding]:
    if _is_blank(field.value):
        message, fix = "`compatibility` is empty", "remove the key, or write what the skill needs"
        yield _Finding("compatibility-empty", field.key, message, fix)
    fix = "write what the skill needs as one text, e.g. `Requires git and network access`"
    yield from _not_text("compatibility", field, fix)
    fix = "name only the requirements; move the rest into the body"
    yield from _too_long("compatibility", field, COMPATIBILITY_LENGTH, fix)


def _is_blank(value: JsonValue) -> bool:
    return value is None or (isinstance(value, str) and not value.strip())


def _not_text(name: str, field: _Field, fix: str) -> Iterator[_Finding]:
    if field.value is not None and not isinstance(field.value, str):
        message = f"`{name}` must be text, not a list or a mapping"
        yield _Finding(f"{name}-not-text", field.key, message, fix)


def _too_long(name: str, field: _Field, limit: int, fix: str) -> Iterator[_Finding]:
    if isinstance(field.value, str) and len(field.value) > limit:
        message = f"`{name}` has {len(field.value)} characters, {limit} are allowed"
        yield _Finding(f"{name}-too-long", field.key, message, fix)


def _metadata(field: _Field) -> Iterator[_Finding]:
    key, metadata = field
    if metadata is None:
        return  # the mapping is empty
    if not isinstance(metadata, Mapping):
        message = "`metadata` must be a mapping of keys to texts"
        fix = 'write one `key: "value"` per line below `metadata:`'
        yield _Finding("metadata-not-mapping", key, message, fix)
        return
    bad = [name for name, value in metadata.items() if not isinstance(value, str)]
    if bad:
        message = f"below `metadata` every value must be text; these are not: {join_some(bad)}"
        first = printable(bad[0], 30)
        fix = f'write each value as one text, e.g. `{first}: "one, two"`'
        if isinstance(metadata[bad[0]], Mapping):
            fix = f"write each value as one text, e.g. its JSON in quotes: `{first}: '{{...}}'`"
        yield _Finding("metadata-not-text", key, message, fix)


def _allowed_tools(field: _Field) -> Iterator[_Finding]:
    key, tools = field
    if tools is None:
        return
    if not isinstance(tools, str):
        message = "`allowed-tools` must be one text with spaces between the tools"
        fix = "write e.g. `allowed-tools: Read Grep Bash(git:*)`"
        if isinstance(tools, Sequence) and tools and all(isinstance(tool, str) for tool in tools):
            fix = f"write `allowed-tools: {printable(' '.join(map(str, tools)))}`"
        yield _Finding("allowed-tools-not-text", key, message, fix)
    elif "," in tools and "," in _PARENTHESES.sub("", tools):
        message = f"`allowed-tools` has commas, the specification has spaces: `{printable(tools)}`"
        yield _Finding("allowed-tools-commas", key, message, "put spaces in place of the commas")


def _version(version: str | None, keys: Sequence[str]) -> Iterator[_Finding]:
    if version is not None and not labels.is_label(version):
        message = f"`{printable(version, 40)}` is not recorded as a version: {labels.RULE}"
        key = "version" if "version" in keys else None
        yield _Finding("version-format", key, message, "write e.g. `1.2.0`")


def _spelling(files: Sequence[SkillFile]) -> Iterator[Diagnostic]:
    names = [file.path for file in files if file.path in DOCUMENT_NAMES]
    if names and KNOWN_TO_VALIDATORS.isdisjoint(names):
        message = f"the skill file is called {names[0]}: other clients look for SKILL.md"
        severity = FORMAT_RULES["document-case"].severity
        fix = "rename the file to SKILL.md"
        yield Diagnostic("document-case", severity, message, fix=fix, path=names[0])


def _body(document: Document) -> Iterator[Diagnostic]:
    body = document.body
    lines = body.count("\n") + (not body.endswith("\n"))
    if lines > BODY_LINES:
        message = f"the body has {lines} lines; under {BODY_LINES} are advised"
        yield _advice("body-too-many-lines", message, document.body_line + BODY_LINES)
    if len(body) <= BODY_TOKENS:
        return  # even if each character has four bytes, the text is short enough
    size = len(body) if body.isascii() else len(body.encode("utf-8", "surrogatepass"))
    tokens = size // BYTES_PER_TOKEN
    if tokens > BODY_TOKENS:
        message = f"the body has about {tokens} tokens; under {BODY_TOKENS} are advised"
        yield _advice("body-too-many-tokens", message, document.body_line)


def _advice(code: str, message: str, line: int) -> Diagnostic:
    fix = "move details into files in references/, which agents read only if necessary"
    return Diagnostic(code, FORMAT_RULES[code].severity, message, line, fix)
