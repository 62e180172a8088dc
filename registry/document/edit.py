"""Change fields of a SKILL.md without changing any other byte.

A changed field stays at its position in the file, in the dialect of the file. A new field is added
at the position that the registry normally uses. The result is parsed again. If this shows a change
of any other field, nothing is written, and `EditImpossible` gives the reason.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from dataclasses import fields as dataclass_fields
from typing import Any, Final

from registry.document import coerce
from registry.document.fields import (
    DESCRIPTION,
    KIND,
    NAME,
    PARAMETERS,
    TAGS,
    Fields,
    FieldValue,
    Path,
    Places,
)
from registry.document.front_matter_editor import EditImpossible, Front, newline_of
from registry.document.markdown import same_parameters
from registry.document.parse import parse_text
from registry.document.render import (
    is_template,
    prose_text,
    safe_text,
    with_description,
    with_parameters,
)
from registry.document.yaml_text import YamlReading, quoted, scalar, tag_text, tag_words, text_value
from registry.model import Document, JsonValue, Parameter

__all__ = ["EditImpossible", "edit_document"]

_MARK: Final = "\ufeff"
_PARAMETER_KEYS: Final = frozenset({"name", "type", "description", "required", "default"})
_LEFT_OUT: Final = frozenset({"text", "body", "body_line", "front_matter", "diagnostics"})
_PLACES: Final[Mapping[str, Places]] = {
    "name": NAME,
    "description": DESCRIPTION,
    "tags": TAGS,
    "kind": KIND,
}
_FIELDS: Final = tuple(
    field.name for field in dataclass_fields(Document) if field.name not in _LEFT_OUT
)


def edit_document(
    text: str,
    *,
    description: str | None = None,
    tags: Iterable[str] | None = None,
    kind: str | None = None,
    body: str | None = None,
    parameters: Sequence[Parameter] | None = None,
    name: str | None = None,
    folder_name: str | None = None,
) -> str:
    """Return the text of a SKILL.md with new values for the fields that are not None.

    ``body`` replaces all text after the front matter except the blank line. Empty tags remove all
    tags; an empty ``kind`` removes the kind. ``name`` is written only if the front matter has a
    name; otherwise the name of the folder is the skill's name. If front matter must be added,
    ``folder_name`` becomes the name in it. Fields that already have the new value are not changed.

    Raises `EditImpossible` if a change would damage the file.
    """
    mark, text = (_MARK, text[1:]) if text.startswith(_MARK) else ("", text)
    if "\0" in text:
        raise EditImpossible("the file has NUL characters; delete them first")
    before = document = _parse(text, folder_name)
    wanted: dict[str, object] = {}
    if body is not None:
        text = _with_body(text, document, body)
        document = _parse(text, folder_name)
    if parameters is not None and not same_parameters(document.parameters, parameters):
        text = _with_parameters(text, document, parameters)
        document = _parse(text, folder_name)
    if description is not None and (value := prose_text(description)) != document.description:
        text = _with_description(text, document, value, folder_name)
        wanted["description"] = value
        document = _parse(text, folder_name)
    if tags is not None and (words := tag_words(tags)) != document.tags:
        text = _with_tags(text, document, words, folder_name)
        wanted["tags"] = words
        document = _parse(text, folder_name)
    if kind is not None and (word := coerce.one_text(kind)) != document.kind:
        text = _with_kind(text, document, word or "", folder_name)
        wanted["kind"] = word
    places = _present(document, NAME) if name is not None and document.body != text else []
    if name is not None and places and name != document.name:
        text = Front(text, document).set_text(places[0].path, name)
        wanted["name"] = name
    _check(before, _parse(text, folder_name), wanted, body, parameters)
    return mark + text


def _with_body(text: str, document: Document, body: str) -> str:
    if body == document.body:
        return text
    if not text.endswith(document.body):
        raise EditImpossible("the body can't be separated from the front matter")
    newline = newline_of(text)
    front = text[: len(text) - len(document.body)]
    old = document.body
    gap = old[: len(old) - len(old.lstrip())] if old.strip() else newline
    gap = gap[: gap.rfind("\n") + 1] if "\n" in gap else ""
    new = body.replace("\r\n", "\n").lstrip("\n").replace("\n", newline)
    if new and not new.endswith(("\n", "\r")) and (not old.strip() or old.endswith(("\n", "\r"))):
        new += newline
    if front and not front.endswith(("\n", "\r")):
        front += newline
    return front + (gap + new if new.strip() or not front else "")


def _with_description(text: str, document: Document, value: str, folder: str | None) -> str:
    if not value:
        raise EditImpossible("a skill needs a description")
    newline = newline_of(text)
    if document.body == document.text:
        changed = with_description(text, value, newline) if is_template(text) else None
        if changed and _parse(changed, folder).description == value:
            return changed
        return _with_front(text, document, folder, value)
    front = Front(text, document)
    if places := _present(document, DESCRIPTION):
        changed = front.set_text(places[0].path, value)
    else:
        first = not _present(document, NAME)
        changed = front.add("description", text_value(value, newline=newline), first=first)
    # The sections of miniclaw's template must not repeat the old values.
    body = document.body
    if is_template(body) and changed.endswith(body):
        shown = safe_text(document.description).replace("\n", newline)
        if with_description(body, safe_text(document.description), newline) == body and shown:
            head = changed[: len(changed) - len(body)]
            return head + (with_description(body, safe_text(value), newline) or body)
    return changed


def _with_tags(text: str, document: Document, words: tuple[str, ...], folder: str | None) -> str:
    text = _with_front(text, document, folder)
    document = _parse(text, folder)
    places = _present(document, TAGS)
    if not places:
        return _added(text, document, "tags", quoted(tag_text(words)))
    main = next((place for place in places if place.filled), places[0])
    for place in places:
        present = coerce.unique(_tags_of(place.value))
        keep = words if place is main else tuple(word for word in present if word in words)
        if keep != present:
            text = Front(text, document).set_words(place.path, keep)
            document = _parse(text, folder)
    return text


def _tags_of(value: JsonValue) -> Iterable[str]:
    try:
        return tuple(coerce.tags(value))
    except coerce.UnknownShape:
        raise EditImpossible("the tags have an unknown format") from None


def _with_kind(text: str, document: Document, word: str, folder: str | None) -> str:
    text = _with_front(text, document, folder)
    document = _parse(text, folder)
    places = _present(document, KIND)
    filled = [place for place in places if place.filled]
    if not word:
        for place in filled:
            text = Front(text, document).set_text(place.path, "")
            document = _parse(text, folder)
        return text
    for place in filled or [place for place in places if place.path[-1].casefold() != "type"]:
        return Front(text, document).set_text(place.path, word)
    return _added(text, document, "kind", scalar(word, flow=True))


def _added(text: str, document: Document, key: str, value: str) -> str:
    """Return the document with a new key in `metadata`.

    If `metadata` is broken, at the top level.
    """
    front = Front(text, document)
    try:
        return front.add(key, value, below="metadata")
    except EditImpossible:
        return front.add(key, value)


def _with_parameters(text: str, document: Document, parameters: Sequence[Parameter]) -> str:
    newline = newline_of(text)
    if document.body != document.text:
        for place in _present(document, PARAMETERS):
            if place.value:
                front = Front(text, document)
                return _front_parameters(front, place.path, place.value, parameters)
    if not text.endswith(document.body):
        raise EditImpossible("the body can't be separated from the front matter")
    try:
        body = with_parameters(document.body or newline, parameters, newline)
    except ValueError as error:
        raise EditImpossible(str(error)) from None
    return text[: len(text) - len(document.body)] + body


def _front_parameters(
    front: Front, path: Path, value: JsonValue, parameters: Sequence[Parameter]
) -> str:
    items = value if isinstance(value, Sequence) and not isinstance(value, str) else [None]
    if any(not isinstance(item, Mapping) or set(item) - _PARAMETER_KEYS for item in items):
        raise EditImpossible("`parameters` says more than would be kept; change it by hand")
    rows = [
        {key: value for key, value in asdict(one).items() if value is not None}
        for one in parameters
    ]
    for row in rows:
        if not row["description"]:
            del row["description"]
    lines = [
        f"{'  ' if number else '- '}{key}: {_yaml(item)}"
        for row in rows
        for number, (key, item) in enumerate(row.items())
    ]
    pairs = (", ".join(f"{key}: {_yaml(item)}" for key, item in row.items()) for row in rows)
    return front.set_source(path, lines, f"[{', '.join(f'{{{pair}}}' for pair in pairs)}]")


def _yaml(value: JsonValue) -> str:
    """Return ``value`` as YAML on one line."""
    if isinstance(value, str):
        return scalar(value, flow=True)
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{quoted(key)}: {_yaml(item)}' for key, item in value.items())}}}"
    if isinstance(value, Sequence):
        return f"[{', '.join(map(_yaml, value))}]"
    return json.dumps(value)


def _with_front(
    text: str, document: Document, folder: str | None, description: str | None = None
) -> str:
    """Return the document with front matter; add front matter if it has none."""
    if document.body != document.text:
        return text
    newline = newline_of(text)
    lines = ["---"]
    if name := document.name or folder:
        lines.append(f"name: {scalar(name)}")
    shown = text_value(description or document.description, newline=newline)
    gap = "" if not text or text.startswith(("\n", "\r")) else newline
    return newline.join([*lines, f"description: {shown}", "---", ""]) + gap + text


def _present(document: Document, where: Places) -> list[FieldValue]:
    """Return the values (even empty) of the keys at ``where`` that exist in the front matter."""
    return list(Fields(YamlReading(dict(document.front_matter))).present(where))


def _without(document: Document, fields: Iterable[Places]) -> dict[str, Any]:
    """Return front matter without the values of ``fields``, and without an empty `metadata`."""
    result: dict[str, Any] = dict(document.front_matter)
    for found in [found for where in fields for found in _present(document, where)]:
        inner = result
        for key in found.path[:-1]:
            below = inner[key]
            inner[key] = inner = dict(below) if isinstance(below, Mapping) else {}
        inner.pop(found.path[-1], None)
    return {key: value for key, value in result.items() if value or key.casefold() != "metadata"}


def _parse(text: str, folder: str | None) -> Document:
    return parse_text(text, folder_name=folder or "")


def _check(
    before: Document,
    after: Document,
    wanted: Mapping[str, object],
    body: str | None,
    parameters: Sequence[Parameter] | None,
) -> None:
    """Raise `EditImpossible` unless the result has exactly the requested changes."""
    for field, value in wanted.items():
        if getattr(after, field) != value:
            raise EditImpossible(f"the new {field} {coerce.not_read_back(field, value)}")
    if parameters is not None and not same_parameters(after.parameters, parameters):
        raise EditImpossible("the new parameters would not be read back as given")
    asked = [_PLACES[field] for field in wanted]
    if before.body == before.text and after.body != after.text:
        asked += [DESCRIPTION, NAME]  # The edit also added front matter, which has these fields.
    if parameters is not None:
        asked.append(PARAMETERS)
    if _without(before, asked) != _without(after, asked):
        raise EditImpossible("another key of the front matter would change as well")
    changed = {*wanted, *(() if parameters is None else ("parameters",))}
    if body is None:
        _check_others(before, after, changed)
    elif parameters is None and after.body.split() != body.split():
        raise EditImpossible("the new body would not be read back as given")
    if before.usable and not after.usable:
        raise EditImpossible(f"the skill would become invalid: {after.diagnostics[0].message}")


def _check_others(before: Document, after: Document, changed: set[str]) -> None:
    """Raise `EditImpossible` if the edit changed a field that isn't in ``changed``."""
    for field in _FIELDS:
        if field not in changed and getattr(after, field) != getattr(before, field):
            raise EditImpossible(f"the {field} would change as well")
    follows = "parameters" in changed or ("description" in changed and is_template(before.body))
    if not follows and after.body.strip() != before.body.strip():
        raise EditImpossible("the body would change as well")
