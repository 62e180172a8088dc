"""URLs of the catalogue's pages, and refs from URLs."""

from typing import Final
from urllib.parse import quote, urlencode

from registry.disk.paths import ROOT

JSON: Final = ".json"

_DOTS: Final = {".", ".."}


def of_ref(ref: str) -> str:
    """Return a ref as the end of a URL's path that can't be mistaken for the address of JSON.

    Browsers remove a dot at the end of a path. They read two dots between slashes as the parent
    folder, even if the dots are quoted. Quoted slashes prevent this.
    """
    if ref.endswith(f"/{ROOT}"):
        ref = ref[: -len(ROOT)]
    path = _quoted(ref)
    return f"{path.removesuffix(JSON)}%2Ejson" if path.endswith(JSON) else path


def ref_of(path: str) -> str:
    """Return the ref for the end of a URL's path.

    ``path`` is already unquoted.
    """
    return f"{path}{ROOT}" if path.endswith("/") else path


def skill(ref: str) -> str:
    """Return the address of a skill's page."""
    return f"/skills/{of_ref(ref)}"


def file(ref: str, path: str) -> str:
    """Return the address of the page that shows a file of a skill."""
    return f"/files/{of_ref(ref)}?{_query(path=path)}"


def raw(ref: str, path: str) -> str:
    """Return the address of the bytes of a skill's file."""
    return f"/raw/{of_ref(ref)}?{_query(path=path)}"


def history(ref: str, **query: str | int) -> str:
    """Return the address of a skill's history."""
    return f"/history/{of_ref(ref)}" + (f"?{_query(**query)}" if query else "")


def download(ref: str) -> str:
    """Return the address from which a skill can be downloaded as an archive."""
    return f"/download/{of_ref(ref)}.skill"


def facet(name: str, value: str) -> str:
    """Return the address of the page that lists the skills with a facet value."""
    return f"/?{_query(**{name: value})}"


def as_json(path: str, query: str = "") -> str:
    """Return the address of the JSON form of a page."""
    kind, slash, ref = path[1:].partition("/")
    base = f"/{kind or 'index'}{slash}{_quoted(ref)}"
    return f"{base}{JSON}" + (f"?{query}" if query else "")


def _quoted(path: str) -> str:
    is_plain = _DOTS.isdisjoint(path.split("/"))
    return quote(path, safe="/" if is_plain else "", errors="replace")


def _query(**given: str | int) -> str:
    return urlencode(given, errors="replace")
