"""The page that asks for a token; all that a stranger is shown."""

from starlette.responses import Response

from registry.web.rendering import environment


def sign_in(problem: str) -> Response:
    """Return the page; ``problem`` is what was wrong with the last try."""
    html = environment().get_template("sign_in.html").render(problem=problem)
    return Response(html, 401, {"cache-control": "no-store"}, media_type="text/html; charset=utf-8")
