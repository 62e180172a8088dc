"""The list of skills for a system prompt: XML in the reference library's format, or Markdown."""

import html
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal, TypeAlias

from registry.catalog.visibility.decisions import decisions
from registry.catalog.visibility.decisions import personality as personality_of
from registry.catalog.visibility.rules import Decision
from registry.core import Core
from registry.db.read.listing import CatalogEntry, entries
from registry.db.read.skills import unusual_documents
from registry.disk.paths import join
from registry.model import SCOPES, Skill

Style: TypeAlias = Literal["xml", "markdown"]

MIN_DESCRIPTION: Final = 40
"""Minimum length of a shortened description, in characters.

If the catalogue is still too long, skills are left out.
"""

_NOT_IN_XML: Final = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")

_DISTURBING: Final = re.compile(
    "[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069]"
)
"""Control characters, line breaks and direction marks.

No normal path contains them, and they can mislead a reader.
"""


@dataclass(frozen=True, slots=True)
class PromptText:
    """The catalogue as text, and the refs of the skills that were shortened or left out.

    The text also states how many skills were shortened or left out. ``decisions`` explains for each
    skill whether the personality sees it; it is empty without a personality.
    """

    text: str
    shown: tuple[str, ...] = ()
    shortened: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()
    decisions: tuple[tuple[Skill, Decision], ...] = ()


def prompt(
    core: Core,
    personality: str | None = None,
    *,
    style: Style = "xml",
    max_chars: int | None = None,
    environ: Mapping[str, str] = os.environ,
) -> PromptText:
    """Return the catalogue for models with a personality; if it is None, for all models.

    Raises `PersonalityNotFound`.
    """
    reader = core.reader
    if personality is None:
        return render_prompt(entries(reader), style, max_chars)
    named = personality_of(core.settings, personality)
    with reader.snapshot():
        decided = [(skill, choice) for _, skill, choice in decisions(reader, named, environ)]
        unusual = unusual_documents(reader)
    seen = [_seen(skill, unusual) for skill, decision in decided if decision.visible]
    return replace(render_prompt(seen, style, max_chars), decisions=tuple(decided))


def _seen(skill: Skill, unusual: Mapping[tuple[str, str], str]) -> CatalogEntry:
    document = unusual.get((skill.source, skill.folder), "SKILL.md")
    location = join(skill.path, document)
    return CatalogEntry(skill.ref, skill.name, skill.description, skill.scope, location)


def render_prompt(
    entries: Sequence[CatalogEntry], style: Style = "xml", max_chars: int | None = None
) -> PromptText:
    """Return the catalogue in at most ``max_chars`` characters; empty if there are no skills.

    If the catalogue is too long, all descriptions are first cut to the same length. If this isn't
    enough, skills are left out: the scopes of lowest precedence first, and in each scope the last
    skills first. A line in the text reports this. If there isn't enough space for that line, the
    text is empty. The XML has the format of the reference library.
    """
    if not entries:
        return PromptText("")
    whole = _join([_entry(entry, style) for entry in entries], style)
    if max_chars is None or len(whole) <= max_chars:
        return PromptText(whole, shown=_refs(entries))
    longest_note = _note(len(entries), len(entries), len(entries), max_chars, style)
    room = max_chars - len(_join([longest_note], style))
    kept = _kept(entries, style, room)
    shown = [entry for index, entry in enumerate(entries) if index in kept]
    left_out = [entry for index, entry in enumerate(entries) if index not in kept]
    cap = _cap(shown, style, room)
    shortened = [entry for entry in shown if _shorten(entry.description, cap) != entry.description]
    note = _note(len(left_out), len(shortened), len(entries), max_chars, style)
    text = _join([*(_entry(entry, style, cap) for entry in shown), note], style)
    if len(text) > max_chars:
        # if there is no space for the line about left-out skills, there is none for a skill
        text = ""
    return PromptText(text, _refs(shown), _refs(shortened), _refs(left_out))


def _kept(entries: Sequence[CatalogEntry], style: Style, room: int) -> frozenset[int]:
    """Return the indexes of the entries that fit if all descriptions have the minimum length."""
    kept = set()
    for index in sorted(range(len(entries)), key=lambda i: SCOPES.index(entries[i].scope)):
        room -= _size(entries[index], style, MIN_DESCRIPTION)
        if room < 0:
            break
        kept.add(index)
    return frozenset(kept)


def _cap(entries: Sequence[CatalogEntry], style: Style, room: int) -> int:
    """Return the maximum length of descriptions with which all entries fit."""
    low, high = (
        MIN_DESCRIPTION,
        max((len(entry.description) for entry in entries), default=MIN_DESCRIPTION),
    )
    while low < high:
        middle = (low + high + 1) // 2
        if sum(_size(entry, style, middle) for entry in entries) <= room:
            low = middle
        else:
            high = middle - 1
    return low


def _size(entry: CatalogEntry, style: Style, cap: int) -> int:
    return len(_entry(entry, style, cap)) + 1


def _entry(entry: CatalogEntry, style: Style, cap: int | None = None) -> str:
    description = entry.description if cap is None else _shorten(entry.description, cap)
    if style == "markdown":
        return (
            f"- **{_place(entry.ref)}**: {' '.join(description.split())} ({_place(entry.location)})"
        )
    return (
        f"<skill>\n<name>\n{_xml(entry.name)}\n</name>\n"
        f"<description>\n{_xml(description)}\n</description>\n"
        f"<location>\n{_location(_place(entry.location))}\n</location>\n</skill>"
    )


def _join(parts: Sequence[str], style: Style) -> str:
    if style == "markdown":
        return "\n".join(["## Available skills\n", *parts])
    return "\n".join(["<available_skills>", *parts, "</available_skills>"])


def _note(left_out: int, shortened: int, total: int, limit: int, style: Style) -> str:
    facts = []
    if left_out:
        facts.append(f"{left_out} of {total} skills are left out")
    if shortened:
        facts.append(f"{shortened} descriptions are shortened")
    text = f"{', '.join(facts)}: this catalogue holds at most {limit} characters"
    return f"<!-- {text} -->" if style == "xml" else f"\n({text})"


def _shorten(text: str, cap: int) -> str:
    """Cut ``text`` after a word, with an ellipsis, to at most ``cap`` characters."""
    if len(text) <= cap:
        return text
    text = " ".join(text.split())
    if len(text) <= cap:
        return text
    cut = text[: cap - 1]
    if not text[cap - 1].isspace():
        space = cut.rfind(" ")
        if space >= len(cut) // 2:  # otherwise there is no suitable space at which to cut
            cut = cut[:space]
    return cut.rstrip(" ,;:") + "\u2026"


def _xml(text: str) -> str:
    return _fit_for_xml(html.escape(text))


def _fit_for_xml(text: str) -> str:
    # XML can contain all printable characters, and isprintable() is faster than the expression.
    return text if text.isprintable() else _NOT_IN_XML.sub("\ufffd", text)


def _location(path: str) -> str:
    """Return a path as the reference library writes it; if it may contain a tag, escape it.

    Otherwise the name of a folder, which another person chose, could end the XML element.
    """
    return _xml(path) if "<" in path else _fit_for_xml(path)


def _place(text: str) -> str:
    if text.isprintable():
        return text
    return _DISTURBING.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


def _refs(entries: Sequence[CatalogEntry]) -> tuple[str, ...]:
    return tuple([entry.ref for entry in entries])
