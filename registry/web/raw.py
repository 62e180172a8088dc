"""Bytes of strangers: a file as it is, a skill as an archive. Nothing of them runs here."""

import posixpath
from collections.abc import Mapping
from typing import Final
from urllib.parse import quote

from starlette.responses import Response

from registry.disk.files import digest
from registry.errors import FileNotFoundInSkill
from registry.install.content import content_of
from registry.install.export import zipped
from registry.web.answers import Visit, is_known
from registry.web.skill import bytes_of, located

POLICY: Final = "sandbox; default-src 'none'; style-src 'unsafe-inline'"
"""Of what a stranger wrote: it is of no origin, loads nothing and runs nothing."""

OCTETS: Final = "application/octet-stream"

IMAGES: Final = {
    ".png": "image/png",
    ".jpg": "image/jpeg",
    ".jpeg": "image/jpeg",
    ".gif": "image/gif",
    ".webp": "image/webp",
    ".avif": "image/avif",
    ".svg": "image/svg+xml",
}
RUN: Final = frozenset(
    ".htm .html .js .mht .mhtml .mjs .pdf .shtml .svg .svgz .swf .wasm .xht .xhtml .xml "
    ".xsl".split()
)
"""How the names of files end that a browser might run; they are saved, not shown."""


def raw(visit: Visit) -> Response:
    """Send a file of a skill."""
    current = visit.look.current(located(visit, "/raw/"))
    path = visit.request.query_params.get("path", "")
    detail = visit.look.detail(current)
    if all(file.path != path for file in detail.files):
        raise FileNotFoundInSkill(name=detail.ref, path=path)
    data = bytes_of(visit, current, detail, path)
    ending = posixpath.splitext(path)[1].lower()
    kind = IMAGES.get(ending) or ("text/plain; charset=utf-8" if _is_text(data) else OCTETS)
    shown = ending not in RUN and kind != OCTETS
    return sent(visit, data, kind, posixpath.basename(path), shown=shown)


def download(visit: Visit) -> Response:
    """Send a skill as an archive, in a folder of its name."""
    path = visit.request.scope["path"].removesuffix(".skill")
    ref = path.removeprefix("/download/")
    stored = visit.look.locate(f"{ref}." if ref.endswith("/") else ref)
    entries = content_of(visit.desk.registry.core, stored.skill)
    folder = posixpath.basename(stored.skill.name.rstrip("/")) or "skill"
    data = zipped(entries, "skill" if folder in {".", ".."} else folder)
    return sent(visit, data, "application/zip", f"{folder}.skill", shown=False)


def sent(
    visit: Visit,
    data: bytes,
    kind: str,
    name: str,
    *,
    shown: bool,
    headers: Mapping[str, str] | None = None,
) -> Response:
    """Return bytes of a stranger as a response that no browser runs."""
    tag = digest(data).removeprefix("sha256:")
    given = {
        "content-security-policy": POLICY,
        "content-disposition": f"{'inline' if shown else 'attachment'}; filename*=UTF-8''"
        + quote(name, safe="", errors="replace"),
        "cache-control": "private, no-cache",
        "etag": f'"{tag}"',
        **(headers or {}),
    }
    if is_known(visit.request, tag):
        return Response(status_code=304, headers=given)
    return Response(data, headers={**given, "content-type": kind})


def _is_text(data: bytes) -> bool:
    try:
        return "\0" not in data.decode()
    except UnicodeDecodeError:
        return False
