"""What a person reads in a value that is not YAML."""

import re
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

_BLOCK: Final = re.compile(r"([|>])[+-]?[1-9]?[+-]?(?:[ \t]+|(?=[^\s\d+-])|\Z)")
_LISTLIKE: Final = re.compile(r"(?:[-*+\u2022]|\d{1,3}[.)\u3001]|[(\uff08]\d{1,3}[)\uff09])\s?")
_PAIR: Final = re.compile(
    r"(?<!\\)((?:\\\\)*)\\u([dD][89abAB][0-9a-fA-F]{2})\\u([dD][c-fC-F][0-9a-fA-F]{2})"
)
_HALF: Final = re.compile(r"(?<!\\)((?:\\\\)*)\\u[dD][89a-fA-F][0-9a-fA-F]{2}")
_BAD_ESCAPE: Final = re.compile(
    r"\\(?:\\|[\"/abefnrtv0 N_LP\t\n]|x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8})|(\\)"
)
_TABS: Final = re.compile(r"^[ \t]*\t[ \t]*", re.MULTILINE)
_OPEN_LIST: Final = re.compile(r"\[[^\[\]{}]*")
_UNESCAPE: Final = re.compile(r"\\([\"\\/nt])")
_PLAIN_ESCAPES: Final = {"n": "\n", "t": "\t"}


class Text(NamedTuple):
    """A value as text, and what was wrong with it."""

    value: str
    code: str
    message: str
    fix: str


def in_quotes(text: str, what: str = "the value") -> str:
    """Say how to quote ``text`` so that it is read as it is."""
    if '"' not in text and "\\" not in text:
        return f"put {what} in double quotes"
    if "'" not in text:
        return f"put {what} in single quotes"
    return f'put {what} in double quotes, with a backslash before each `"` and `\\` inside'


def closed(text: str, head: str, rest: Sequence[str]) -> Iterator[Text]:
    """Yield a broken entry with the bracket closed that begins its list, where that is open."""
    if _OPEN_LIST.fullmatch("\n".join((head, *rest))):
        message = "the list is not closed"
        yield Text(
            text.rstrip() + "]\n", "yaml-brackets", message, "put a `]` behind the last item"
        )


def untangle(original: str) -> Iterator[Text]:
    """Yield a broken entry with its escapes corrected, one kind after the other, then its tabs."""
    text = _PAIR.sub(_join, original)
    message = "a character is written as two JSON escapes, which is not YAML"
    yield Text(text, "yaml-surrogates", message, "write the character itself")
    text = _BAD_ESCAPE.sub(lambda match: "\\\\" if match[1] else match[0], text)
    message = "double quotes hold a backslash that starts no escape"
    yield Text(text, "yaml-escape", message, "use single quotes, or double the backslash")
    text = _HALF.sub("\\1\N{REPLACEMENT CHARACTER}", text)
    message = "half of a character is written as a JSON escape; it is read as U+FFFD"
    yield Text(text, "yaml-surrogate-lone", message, "write the character itself")
    text = _TABS.sub(lambda tabs: tabs[0].replace("\t", "  "), original)
    yield Text(text, "yaml-indentation", "the lines are indented by tabs", "indent by two spaces")


def plain_text(head: str, rest: Sequence[str]) -> Text:
    """Return what a person reads in ``head``, the text behind the colon, and the lines below it."""
    if block := _BLOCK.match(head):
        return _block_text(head[block.end() :], block[1], rest)
    value = fold([head, *rest])
    fix = in_quotes(value)
    if head[:1] in ('"', "'"):
        value = _unquote(head, rest)
        fix = in_quotes(value)
        code, message = "yaml-quotes", "the quotes do not enclose the whole value"
        fix += ", once around all of it"
    elif head[:1] in ("[", "{"):
        code = "yaml-brackets"
        message = "the value begins with a bracket but is not a YAML list or mapping"
        if head[0] == "{" and ":" in head:
            fix = f"correct its brackets and quotes, or {fix}"
    elif ": " in value or head.endswith(":"):
        code, message = "yaml-colon", "a colon and a space stand in a value without quotes"
    elif head and not (head[0].isalnum() or ord(head[0]) > 127):  # noqa: PLR2004 - not ASCII
        code = "yaml-special-character"
        message = f"the value begins with `{head[0]}`, which has a meaning in YAML"
    else:
        code, message = "yaml-stray-line", "lines of the value are not YAML where they stand"
        fix = "indent them by two spaces below `|`"
    return Text(value, code, message, fix)


def _block_text(first: str, mark: str, rest: Sequence[str]) -> Text:
    """Return a text introduced by ``mark``, of which ``first`` stands on the same line."""
    rows = [first, *rest] if first else list(rest)
    value = "\n".join(row.strip() for row in rows).strip() if mark == "|" else fold(rows)
    if not first:
        message = f"the text below `{mark}` is not indented"
        return Text(value, "yaml-indentation", message, "indent it by two spaces")
    fix = f"move the text to the next line, indented, or remove the `{mark}`"
    return Text(value, "yaml-block-text", f"text stands on the line of `{mark}`", fix)


def fold(lines: Sequence[str]) -> str:
    """Join ``lines`` as YAML folds text, but keep the breaks of Markdown lists and hard breaks."""
    text = ""
    hard = True
    for line in lines:
        row = line.strip()
        if not row:
            text += "" if hard else "\n"
            hard = True
            continue
        text += ("" if not text else "\n") if hard or _LISTLIKE.match(row) else " "
        text += row
        hard = line.endswith("  ")
    return text.strip()


def _unquote(head: str, rest: Sequence[str]) -> str:
    mark = head[0]
    first = head[1:]
    if rest and first.endswith(mark) and not first.endswith("\\" + mark):
        # A closed text, and more below it: a person reads on.
        text = fold([first[:-1], *rest])
    else:
        text = fold([head, *rest])
        if len(text) > 1 and text[-1] == mark and not _closes_early(text):
            text = text[1:-1]
        elif mark not in text[1:]:
            text = text[1:]
    if mark == "'":
        return text.replace("''", "'").strip()
    return _UNESCAPE.sub(lambda match: _PLAIN_ESCAPES.get(match[1], match[1]), text).strip()


def _closes_early(text: str) -> bool:
    """Tell whether the second quote closes the first: in `"a" or "b"`, not in `"say "hi" to"`."""
    mark = text[0]
    second = text.find(mark, 1)
    return second < len(text) - 1 and text[second - 1] != " " and not text[second + 1].isalnum()


def _join(match: re.Match[str]) -> str:
    high, low = int(match[2], 16), int(match[3], 16)
    return match[1] + chr(0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00))
