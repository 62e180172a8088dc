"""Commands with which agents' own clients install skills from the registry's git repositories.

`make clients` runs each of these clients, and writes the table in
docs/how-to/install-with-an-agents-own-client.md.
"""

from collections.abc import Iterator
from shlex import quote
from typing import Final, NamedTuple

CATALOGUE: Final = "catalogue"
"""The path of the repository of all skills, below ``/git/`` and without ``.git``."""


class Client(NamedTuple):
    """A client; ``add`` installs all skills of a repository, or registers the repository.

    ``install`` then installs one skill. ``install`` is empty if the client needs only ``add``.
    """

    name: str
    add: str
    install: str = ""


CLIENTS: Final = (
    Client(
        "Claude Code",
        "claude plugin marketplace add {url}",
        "claude plugin install {name}@{marketplace}",
    ),
    Client("Codex", "codex plugin marketplace add {url}", "codex plugin add {name}@{marketplace}"),
    Client(
        "GitHub Copilot CLI",
        "copilot plugin marketplace add {url}",
        "copilot plugin install {name}@{marketplace}",
    ),
    Client("Gemini CLI", "", "gemini skills install {url} --path plugins/{name}/skills"),
    Client("npx skills", "npx skills add {url}"),
    Client("openskills", "npx openskills install {url}"),
)


def repository_url(base: str, path: str = CATALOGUE) -> str:
    """Return the address of a repository. ``path`` is as in the URL, such as ``source/mine``."""
    return f"{base}/git/{path}.git"


def lines(url: str, name: str = "", marketplace: str = "") -> Iterator[tuple[str, str]]:
    """Yield the name of each client, with its command for a repository.

    ``name`` is the name of the entry of the skill to install, and ``marketplace`` is the name of
    the marketplace with this entry. Without a name, clients that can install only one skill are
    left out.
    """
    for client in CLIENTS:
        parts = [client.add, client.install if name else ""]
        command = " && ".join(filter(None, parts))
        if command:
            yield client.name, command.format(url=quote(url), name=name, marketplace=marketplace)
