"""What a stranger is shown: the page that asks for a token, and that of who is turned away."""

from collections.abc import Mapping
from typing import Any

from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse, Response

from registry.web.rendering import render

HTML = "text/html"


def sign_in(problem: str, wanted: str) -> Response:
    """Return the page that asks for a token.

    ``problem`` is what was wrong with the last try, ``wanted`` the address to go on to.
    """
    facts = {"problem": problem, "wanted": wanted}
    return _page("sign_in.html", facts, 401, {"cache-control": "no-store"})


def refused(asked: Headers, status: int, text: str, headers: Mapping[str, str]) -> Response:
    """Return the answer to who is turned away before anything else; for `Guard`."""
    if HTML in asked.get("accept", ""):
        return _page("refused.html", {"problem": text}, status, headers)
    return PlainTextResponse(f"{text}.\n", status, headers)


def _page(name: str, facts: Mapping[str, Any], status: int, headers: Mapping[str, str]) -> Response:
    return Response(render(name, facts), status, headers, media_type=f"{HTML}; charset=utf-8")
