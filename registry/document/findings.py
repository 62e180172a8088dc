"""The codes of the parser's findings, and functions that quote text in messages."""

import re
from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from registry.model import Diagnostic, Document, Severity
from registry.text import shorten

NEAR: Final = 300
"""Number of characters around a match that count as its context."""

SHOWN: Final = 160
"""Maximum number of characters of a match that a message shows."""

_KEY = re.compile(r"""["']?([^\s"'#\-][^:"']*?)["']?\s*:(?:\s|$)""")


class Rule(NamedTuple):
    """The severity and the meaning of a finding's code.

    The program generates the documentation of the codes from these rules.
    """

    severity: Severity
    meaning: str


class Passage(NamedTuple):
    """A suspicious passage: its code, its offset in the text, and the matched text.

    ``quoted`` means that the text is probably an example of an attack.
    """

    code: str
    offset: int
    what: str
    quoted: bool = False


def printable(text: str, limit: int = 80) -> str:
    """Return ``text`` as one printable line of at most ``limit`` characters.

    Messages quote skills. So characters that control a terminal, and invisible characters, become
    escapes.
    """
    text = shorten(text, limit)
    if not text.isprintable():
        text = "".join(c if c.isprintable() else ascii(c)[1:-1] for c in " ".join(text.split()))
    return shorten(text, limit)


def join_some(items: Iterable[str]) -> str:
    """Return the first five of ``items``, each shortened, and how many more there are."""
    texts = list(items)
    shown = ", ".join(printable(item, 40) for item in texts[:5])
    return f"{shown} and {len(texts) - 5} more" if texts[5:] else shown


def key_lines(document: Document) -> Mapping[str, int]:
    """Return a map from each top-level key of the front matter to its line in the file."""
    lines: dict[str, int] = {}
    head = document.text.split("\n", document.body_line - 1)[: document.body_line - 1]
    for number, line in enumerate(head, 1):
        if match := _KEY.match(line):
            lines.setdefault(match[1], number)
    return lines


PARSER_RULES: Final[Mapping[str, Rule]] = {
    # Problems of the whole file.
    "empty": Rule("error", "the file has no text"),
    "not-utf8": Rule("error", "the file is not UTF-8"),
    "not-text": Rule(
        "error", "the file is UTF-16 or not a text file, because it contains too many NUL bytes"
    ),
    "nul-characters": Rule("warning", "the file has NUL characters, which were left out"),
    "byte-order-mark": Rule("info", "the file begins with a byte order mark"),
    # Problems of the beginning and the end of the front matter.
    "front-matter-missing": Rule("warning", "there is no front matter"),
    "front-matter-empty": Rule("warning", "the front matter has no keys"),
    "front-matter-late": Rule("warning", "the front matter does not begin on the first line"),
    "front-matter-fenced": Rule("warning", "the front matter is inside a code fence"),
    "front-matter-not-opened": Rule("warning", "the front matter has no opening `---` line"),
    "front-matter-not-closed": Rule("warning", "the front matter has no closing `---` line"),
    "front-matter-too-large": Rule("error", "the front matter is larger than 64 KiB"),
    # Problems that make a skill invalid.
    "yaml-alias": Rule("error", "a YAML alias (`*name`) repeats a value; aliases are not allowed"),
    "yaml-tag": Rule("error", "a value has a custom YAML tag (`!name`)"),
    "yaml-depth": Rule("error", "lists or mappings are nested too deeply"),
    # Invalid YAML that was repaired.
    "yaml-duplicate-key": Rule("warning", "a key occurs twice; the first value is used"),
    "yaml-block-text": Rule("warning", "a block of text begins on the same line as `|` or `>`"),
    "yaml-colon": Rule("warning", "a value without quotes contains a colon and a space"),
    "yaml-special-character": Rule(
        "warning", "a value begins with a character that has a special meaning in YAML"
    ),
    "yaml-quotes": Rule("warning", "quotes don't enclose the whole value"),
    "yaml-escape": Rule("warning", "a value in double quotes has an unknown backslash escape"),
    "yaml-surrogates": Rule("warning", "a character is written as two JSON escapes"),
    "yaml-surrogate-lone": Rule("warning", "a JSON escape contains only half of a character"),
    "yaml-brackets": Rule("warning", "a value begins with a bracket but is not a list"),
    "yaml-indentation": Rule("warning", "the indentation of lines is wrong, or uses tabs"),
    "yaml-list": Rule("warning", "a list is not valid YAML"),
    "yaml-stray-line": Rule("warning", "a line does not have the form `key: value`"),
    "yaml-key-without-colon": Rule("warning", "a key has no colon"),
    "yaml-too-many-keys": Rule(
        "warning", "the YAML is not valid, and has too many keys to repair it"
    ),
    "control-characters": Rule("warning", "a value contains control characters, which are ignored"),
    # Problems of keys and values.
    "name-missing": Rule(
        "warning", "there is no `name`; the name of the folder or the title is used"
    ),
    "description-from-body": Rule(
        "warning", "there is no `description`; the first words of the body are used"
    ),
    "description-placeholder": Rule(
        "info", "the `description` is a placeholder; the first words of the body are used"
    ),
    "description-missing": Rule(
        "error", "there is no `description`, and no body whose first words could replace it"
    ),
    "value-shape": Rule(
        "warning", "a value has the wrong type, such as a list instead of text, and is ignored"
    ),
    "date-unreadable": Rule("info", "a date can't be read"),
    "tags-over-limit": Rule(
        "warning", "there are too many tags, or a tag is too long; only a part is stored"
    ),
}
"""All codes of `parse_document`. The documentation is generated from this table."""


def finding(code: str, message: str, line: int | None, fix: str) -> Diagnostic:
    """Return the `Diagnostic` for ``code`` at ``line`` of the skill file; the first line is 1."""
    return Diagnostic(code, PARSER_RULES[code].severity, message, line, fix)
