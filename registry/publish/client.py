"""Publish to a registry at an address, and review its proposals: find the token, send, read."""

import json
import os
import subprocess
from collections.abc import Mapping
from typing import Any, Final, NamedTuple
from urllib.parse import quote, urlencode

from registry.core import Core
from registry.db.read.proposals import Proposal
from registry.errors import RemoteInvalid, RemoteRefused, UsageProblem
from registry.install.content import FileContent
from registry.install.export import zipped
from registry.model import SEVERITIES, Diagnostic, Severity
from registry.publish.packages import Package
from registry.remotes.address import origin_of, split
from registry.remotes.http import HOME, OK, TOKEN, HttpClient, is_token, own_token, password_at
from registry.remotes.snapshot import FetchLimits

GIT_SECONDS: Final = 30.0

UNAUTHORIZED: Final = 401
TOO_LARGE: Final = 413

SEE_OTHER: Final = 303
"""The HTTP status after a decision; its address is the page of the proposal."""

Reply = tuple[int, Any]
"""The HTTP status and the JSON value of an answer: an object, or a list of proposals."""


class SentProposal(NamedTuple):
    """A proposal that a server sent, with the findings of the check and the diff."""

    proposal: Proposal
    findings: list[Diagnostic]
    diff: str


class Publisher:
    """Sends packages to one registry, and reviews its proposals. ``url`` is its address.

    Raises `RemoteInvalid` for an invalid address, such as plain http to another machine.
    """

    def __init__(self, core: Core, url: str) -> None:
        # The client sends only the token that `token_for` returns.
        self._client = HttpClient(url, FetchLimits(anonymous=True))
        self._base = self._client.url.rstrip("/")
        if split(url).username is not None:
            message = f"a token in an address is visible to other programs; set {TOKEN} instead"
            raise UsageProblem(message=message)
        self._token = token_for(core, self._base)

    def send(
        self, wanted: Package, *, source: str | None, if_match: str | None, dry_run: bool
    ) -> Reply:
        """Send a package, and return the answer. Raises `RemoteProblem` if there is no answer."""
        query = {"source": source, "dry-run": "1" if dry_run else None}
        given = urlencode({key: one for key, one in query.items() if one is not None})
        url = (
            f"{self._base}/api/skills/{quote(wanted.folder, safe='')}{'?' if given else ''}{given}"
        )
        entries = [
            FileContent(path, data, path in wanted.executable)
            for path, data in wanted.files.items()
        ]
        headers = {"Content-Type": "application/zip"}
        if if_match is not None:
            headers["If-Match"] = f'"{if_match}"'
        return self._reply("PUT", url, zipped(entries), headers, dict)

    def proposals(self, *, every: bool) -> list[Proposal]:
        """Return the proposals that wait for the user's decision, and all of the user's own.

        If ``every``, also return the decided proposals of others. Raises `RemoteProblem`.
        """
        url = f"{self._base}/proposals.json{'?all=1' if every else ''}"
        found = self._answered("GET", url, b"", {}, list)
        return [_proposal(one) for one in found if isinstance(one, dict)]

    def proposal(self, number: str) -> SentProposal:
        """Return a proposal with its findings and its diff. Raises `RemoteProblem`."""
        found = self._answered("GET", f"{self._base}/proposals/{number}.json", b"", {}, dict)
        findings = found.get("findings")
        told = [finding_of(one) for one in findings or () if isinstance(one, dict)]
        return SentProposal(_proposal(found), told, str(found.get("diff") or ""))

    def decide(self, one: Proposal, decision: str, reason: str | None) -> Proposal:
        """Approve or reject exactly the files of a proposal, and return it after the decision.

        ``decision`` is approve or reject. Raises `RemoteProblem` if the server refuses it.
        """
        form = {"decision": decision, "tree_hash": one.tree_hash, "reason": reason or ""}
        kind = {"Content-Type": "application/x-www-form-urlencoded"}
        url = f"{self._base}/proposals/{one.id}.json"
        self._answered("POST", url, urlencode(form).encode(), kind, dict)
        return self.proposal(one.id).proposal

    def _answered(
        self, method: str, url: str, body: bytes, more: Mapping[str, str], kind: type
    ) -> Any:
        """Return the JSON value of an answer; raise `RemoteInvalid` if the server refuses."""
        status, found = self._reply(method, url, body, more, kind)
        if status not in {OK, SEE_OTHER}:
            error = found.get("error")
            refused = RemoteRefused(url=url, status=status)
            if isinstance(error, dict):
                refused.add_note(str(error.get("message")))
            raise refused
        return found

    def _reply(
        self, method: str, url: str, body: bytes, more: Mapping[str, str], kind: type
    ) -> Reply:
        headers = {"Authorization": f"Bearer {self._token}", "Accept": "application/json", **more}
        answer, said = self._client.send(method, url, body, headers)
        if answer.status == SEE_OTHER:
            return answer.status, {}
        if answer.status == UNAUTHORIZED:
            error = RemoteRefused(url=url, status=answer.status)
            error.add_note(
                f"The server doesn't accept the token from {TOKEN}, the setting tokens, git's "
                "credentials or ~/.netrc: it is revoked, expired or wrong. Ask for a new one."
            )
            raise error
        sent_as = answer.headers.get_content_type()
        if answer.status == TOO_LARGE and sent_as != "application/json":
            reason = (
                f"the server, or a proxy before it, refuses {len(body):,} bytes (HTTP status 413); "
                "in nginx, raise client_max_body_size"
            )
            raise RemoteInvalid(url=url, reason=reason)
        kinds = kind if answer.status == OK else dict
        return answer.status, _read(url, sent_as, said, kinds)


def _proposal(facts: Mapping[str, Any]) -> Proposal:
    """Return a proposal that a server sent."""
    known = {key: None if (one := facts.get(key)) is None else str(one) for key in Proposal.KEYS}
    return Proposal(**known, source_id=0, folder="", uid=None, token=None)  # type: ignore[arg-type]


def finding_of(facts: Mapping[str, Any]) -> Diagnostic:
    """Return a finding that a server sent."""
    severity: Severity = next(
        (one for one in SEVERITIES if one == facts.get("severity")), "warning"
    )
    texts = [facts.get(key) for key in ("fix", "path")]
    line = facts.get("line")
    return Diagnostic(
        str(facts.get("code")),
        severity,
        str(facts.get("message")),
        line if isinstance(line, int) else None,
        *(None if one is None else str(one) for one in texts),
    )


def _read(url: str, kind: str, body: bytes, wanted: type) -> Any:
    try:
        found = json.loads(body) if kind == "application/json" else None
    except (ValueError, RecursionError):
        found = None
    if isinstance(found, wanted):
        return found
    if kind == "text/plain":
        message = body[:500].decode("utf-8", "replace").strip()
        return {"error": {"code": "refused", "message": message}}
    raise RemoteInvalid(url=url, reason="it does not answer as a skill-registry server")


def token_for(core: Core, url: str) -> str:
    """Return the token for a registry.

    It comes from the environment, the settings, git's credentials or ``~/.netrc``, in this order.
    If the environment names the registry of its token, the token counts only there. Raises
    `UsageProblem` if there is none.
    """
    parts = split(url)
    origin = origin_of(parts)
    known: Mapping[str, str] = core.settings.tokens
    token = own_token(url) if os.environ.get(HOME) else os.environ.get(TOKEN)
    token = token or next(
        (one for place, one in known.items() if origin_of(split(place)) == origin), None
    )
    token = token or _of_git(url) or password_at(parts)
    if not token:
        host = parts.hostname or "HOST"
        message = (
            f"there is no token for {url}: set {TOKEN}, or put this line into ~/.netrc, and run "
            f"'chmod 600 ~/.netrc': machine {host} login git password TOKEN"
        )
        raise UsageProblem(message=message)
    if not is_token(token):
        raise UsageProblem(message=f"the token for {url} has characters that no token has")
    return token


def _of_git(url: str) -> str | None:
    """Return the password that git has stored for an address, without asking the user."""
    parts = split(url)
    asked = f"protocol={parts.scheme}\nhost={parts.netloc}\n\n"
    environ = {**os.environ, "GIT_TERMINAL_PROMPT": "0", "GCM_INTERACTIVE": "never"}
    command = ["git", "-c", "core.askPass=", "credential", "fill"]
    for name in ("GIT_ASKPASS", "SSH_ASKPASS"):
        environ[name] = ""
    try:
        done = subprocess.run(  # noqa: S603  # the address is input, not an argument
            command,
            input=asked,
            capture_output=True,
            text=True,
            timeout=GIT_SECONDS,
            env=environ,
            check=False,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    found = dict(line.partition("=")[::2] for line in done.stdout.splitlines())
    return found.get("password") if done.returncode == 0 else None
