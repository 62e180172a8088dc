"""Templates and static files, the functions that templates use, and error pages."""

import hashlib
import re
from collections.abc import Iterable, Mapping
from functools import cache
from importlib import resources
from typing import Any, Final

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape
from starlette.datastructures import Headers
from starlette.responses import JSONResponse, PlainTextResponse, Response

from registry import __version__
from registry.model import Diagnostic
from registry.web import addresses

STATIC: Final = {
    "catalogue.css": "text/css; charset=utf-8",
    "catalogue.js": "text/javascript; charset=utf-8",
    "theme.js": "text/javascript; charset=utf-8",
    "htmx.min.js": "text/javascript; charset=utf-8",
    "icon.svg": "image/svg+xml",
}

_WORD: Final = re.compile(r"\w+")
_UNSPACED: Final = re.compile(
    r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u2e80-\ud7af\uf900-\ufaff]"
)
"""Matches letters of scripts without spaces between words."""

_UNITS: Final = ("bytes", "KB", "MB", "GB", "TB")


def is_place(text: object) -> bool:
    """Tell whether a text is a path on this machine: an absolute path, or a ``file:`` URL."""
    return isinstance(text, str) and (text.startswith(("/", "~", "\\", "file:")) or ":\\" in text)


def render(template: str, facts: Mapping[str, Any]) -> str:
    """Return a page as HTML."""
    return environment().get_template(template).render(**facts)


@cache
def environment() -> Environment:
    """Return the template environment, which escapes all values."""
    made = Environment(
        loader=PackageLoader("registry.web", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        auto_reload=False,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters.update(day=day, size=size, number=number, isolated=isolated, marked=marked)
    made.filters.update(
        grouped=grouped, counted=counted, facet_name=facet_name, said=said, clock=clock, adds=adds
    )
    made.tests.update(place=is_place)
    made.globals.update(
        to=addresses, static=lambda name: addresses.at(static_url(name)), version=__version__
    )
    return made


@cache
def static(name: str) -> bytes:
    """Return a static file."""
    return (resources.files("registry.web") / "static" / name).read_bytes()


@cache
def static_url(name: str) -> str:
    """Return the address of a static file, with a hash of its content."""
    return f"/static/{name}?v={hashlib.sha256(static(name)).hexdigest()[:12]}"


def day(time: str | None, unknown: str = "\N{EN DASH}") -> Markup:
    """Return the day of a time as an HTML ``time`` element.

    Users see its text, and programs read its attribute. For files without a time, some archives and
    disks store 1970 or 1980, so times before 2000 are not shown.
    """
    if not time or time < "2000":
        return escape(unknown)
    return Markup(f'<time datetime="{escape(time)}">{escape(time[:10])}</time>')  # noqa: S704


def clock(time: str) -> Markup:
    """Return the hour and minute of a time, in UTC, as an HTML ``time`` element."""
    shown = f"{escape(time[11:16])} UTC"
    return Markup(f'<time class="n" datetime="{escape(time)}">{shown}</time>')  # noqa: S704


def size(count: int) -> str:
    """Return a number of bytes in a readable unit."""
    amount, place = float(count), 0
    while amount >= 1000 and place < len(_UNITS) - 1:  # noqa: PLR2004
        amount, place = amount / 1000, place + 1
    digits = 0 if not place or amount >= 10 else 1  # noqa: PLR2004
    return f"{amount:.{digits}f} {_UNITS[place]}"


def number(count: int) -> str:
    """Return a number with thousands separators."""
    return f"{count:,}"


def counted(count: int, noun: str) -> str:
    """Return a number with its noun: "1 skill", "2 skills"."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


SECURITY_NAMES: Final = {
    "error": "errors",
    "warning": "warnings only",
    "none": "no errors or warnings",
}
"""Names of the values of the filter by security."""


def facet_name(value: str, key: str) -> Markup:
    """Return the value of a facet in the form for users."""
    if key == "security":
        return isolated(SECURITY_NAMES.get(value, value))
    # for a path, its end is the most informative part
    if key == "category" and value.count("/") > 1:
        value = "…/" + "/".join(value.split("/")[-2:])
    broken = re.sub(r"([/_])", r"\1<wbr>", str(escape(value)))
    return Markup(f"<bdi>{broken}</bdi>")  # noqa: S704


def said(text: str) -> Markup:
    """Return a message with the text between backticks as code."""
    parts = text.split("`")
    if len(parts) % 2 == 0:
        return escape(text)
    shown = [f"<code>{escape(one)}</code>" if i % 2 else escape(one) for i, one in enumerate(parts)]
    return Markup("".join(shown))  # noqa: S704


def named(name: str, ref: str, source: str) -> str:
    """Return a title for a skill, with what distinguishes it from other skills of the same name."""
    return f"{name} · {ref if ref != name else source}"


def grouped(findings: Iterable[Diagnostic]) -> list[tuple[Diagnostic, list[Diagnostic]]]:
    """Group equal findings; for each group, return its first finding and all its findings.

    Findings are equal if their code, severity, message and fix are equal.
    """
    found: dict[tuple[object, ...], list[Diagnostic]] = {}
    for one in findings:
        found.setdefault((one.code, one.severity, one.message, one.fix), []).append(one)
    return [(some[0], some) for some in found.values()]


def isolated(text: object) -> Markup:
    """Return untrusted text in a ``bdi`` element, which isolates right-to-left text."""
    return Markup(f"<bdi>{escape(text)}</bdi>")  # noqa: S704


def marked(text: str, query: str) -> Markup:
    """Return a text in which the words of a query are marked."""
    words = {word.casefold() for word in query.split() if len(word) > 1}
    if not words:
        return escape(text)
    inner = sorted(filter(_UNSPACED.search, words), key=len, reverse=True)
    if inner:
        pieces = re.split(f"({'|'.join(map(re.escape, inner[:20]))})", text, flags=re.IGNORECASE)
        shown = [
            f"<mark>{escape(one)}</mark>" if at % 2 else escape(one)
            for at, one in enumerate(pieces)
        ]
        return Markup("".join(shown))  # noqa: S704
    parts, end = [], 0
    for found in _WORD.finditer(text):
        if found[0].casefold() in words:
            parts.append(f"{escape(text[end : found.start()])}<mark>{escape(found[0])}</mark>")
            end = found.end()
    return Markup("".join([*parts, escape(text[end:])]))  # noqa: S704


def adds(snippet: str, shown: str, query: str) -> bool:
    """Tell whether a snippet has a word of the query that the shown text doesn't have.

    If the shown text has no word of the query, the result is True for every snippet.
    """
    words = {word.casefold() for word in query.split() if len(word) > 1}
    known = {word for word in words if word in shown.casefold()}
    found = {word for word in words if word in snippet.casefold()}
    return bool(snippet) and (not known or bool(found - known))


HTML = "text/html"


def sign_in(problem: str, wanted: str) -> Response:
    """Return the page that asks for a token.

    ``problem`` is the error of the last sign-in, and ``wanted`` is the page to open after the
    sign-in.
    """
    facts = {"problem": problem, "wanted": wanted}
    return _page("sign_in.html", facts, 401, {"cache-control": "no-store"})


def wants_json(headers: Headers) -> bool:
    """Tell whether a client asks for JSON, and not for a page."""
    accepted = headers.get("accept", "")
    return "application/json" in accepted and HTML not in accepted


def refused(
    request_headers: Headers,
    status: int,
    text: str,
    headers: Mapping[str, str],
    code: str = "refused",
    *,
    as_json: bool = False,
) -> Response:
    """Return the response to a request that is refused before its page is known.

    ``text`` is a sentence without its full stop. If ``as_json``, the requested address is an
    address of JSON.
    """
    if HTML in request_headers.get("accept", ""):
        return _page("refused.html", {"problem": text}, status, headers)
    if as_json or wants_json(request_headers):
        error = {"code": code, "message": f"{text}.", "choices": []}
        return JSONResponse({"error": error}, status, headers)
    return PlainTextResponse(f"{text}.\n", status, headers)


def _page(name: str, facts: Mapping[str, Any], status: int, headers: Mapping[str, str]) -> Response:
    return Response(render(name, facts), status, headers, media_type=f"{HTML}; charset=utf-8")
