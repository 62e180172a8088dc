"""URLs of the catalogue's pages, and refs from URLs.

If the public URL has a path, such as ``https://example.org/skills``, all addresses start with this
path.
"""

from contextvars import ContextVar
from typing import Final
from urllib.parse import quote, urlencode

from registry.disk.paths import ROOT

JSON: Final = ".json"

BELOW: Final[ContextVar[str]] = ContextVar("below", default="")
"""The path of the public URL, without a final slash, while the server answers a request."""

_DOTS: Final = {".", ".."}


def at(path: str) -> str:
    """Return the address of a path in the catalogue; the path starts with a slash."""
    return f"{BELOW.get()}{path}"


def of_ref(ref: str) -> str:
    """Return a ref as the end of a URL's path that can't be mistaken for the address of JSON.

    Browsers remove a dot at the end of a path. Browsers also interpret two dots between slashes as
    the parent folder, even if the dots are percent-encoded. Percent-encoded slashes prevent this.
    """
    if ref.endswith(f"/{ROOT}"):
        ref = ref[: -len(ROOT)]
    path = _quoted(ref)
    return f"{path.removesuffix(JSON)}%2Ejson" if path.endswith(JSON) else path


def ref_of(path: str) -> str:
    """Return the ref for the end of a URL's path, which is already percent-decoded."""
    return f"{path}{ROOT}" if path.endswith("/") else path


def skill(ref: str) -> str:
    """Return the address of a skill's page."""
    return at(f"/skills/{of_ref(ref)}")


def file(ref: str, path: str) -> str:
    """Return the address of the page that shows a file of a skill."""
    return at(f"/files/{of_ref(ref)}?{_query(path=path)}")


def raw(ref: str, path: str) -> str:
    """Return the address of the bytes of a skill's file."""
    return at(f"/raw/{of_ref(ref)}?{_query(path=path)}")


def history(ref: str, **query: str | int) -> str:
    """Return the address of a skill's history."""
    return at(f"/history/{of_ref(ref)}") + (f"?{_query(**query)}" if query else "")


def download(ref: str) -> str:
    """Return the address from which a skill can be downloaded as an archive."""
    return at(f"/download/{of_ref(ref)}.skill")


def facet(name: str, value: str) -> str:
    """Return the address of the page that lists the skills with this value of a facet."""
    return at(f"/?{_query(**{name: value})}")


def as_json(path: str, query: str = "") -> str:
    """Return the address of the JSON form of a page."""
    kind, slash, ref = path[1:].partition("/")
    base = f"/{kind or 'index'}{slash}{_quoted(ref)}"
    return at(f"{base}{JSON}") + (f"?{query}" if query else "")


def _quoted(path: str) -> str:
    is_plain = _DOTS.isdisjoint(path.split("/"))
    return quote(path, safe="/" if is_plain else "", errors="replace")


def _query(**given: str | int) -> str:
    return urlencode(given, errors="replace")
