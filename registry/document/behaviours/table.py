"""The types of the tables of behaviours, and fragments that several patterns share.

A pattern over bytes (`Pattern`) is matched against the lower-case text, with one byte for each
character (`?` for a character outside ASCII). A pattern over text (`Foreign`) is matched against
the original text, with its case and all its characters. Every repetition in a pattern has a maximum
length. So even for a hostile text, the time increases only in proportion to the length of the text.

After you change a pattern, run ``make needles``. This derives the strings that a text must contain
before the pattern is tried (`registry.document.prefilter`).
"""

import re
from collections.abc import Callable
from functools import cache, cached_property
from pathlib import Path
from typing import Final, Literal, NamedTuple, TypeAlias, cast

from registry.model import Severity

Where: TypeAlias = Literal["anywhere", "prose"]

Accept: TypeAlias = Callable[[re.Match[bytes]], bool]


class SecurityRule(NamedTuple):
    """The meaning of a security finding's code, and the advice for the finding.

    ``severity`` is ``error`` if harm is nearly certain, ``warning`` if a person must read the
    passage before trusting the skill, and ``info`` for a note.
    """

    severity: Severity
    meaning: str
    fix: str


@cache
def _entries() -> list[list[str]]:
    lines = Path(__file__).with_name("rules.tsv").read_text("utf-8").splitlines()
    return [line.split("\t") for line in lines if not line.startswith("#")]


def rules(kind: str) -> dict[str, SecurityRule]:
    """Return the codes of one group of findings, with their rules from ``rules.tsv``."""
    return {
        code: SecurityRule(cast("Severity", severity), meaning, fix)
        for its, code, severity, meaning, fix in _entries()
        if its == kind
    }


class Pattern:
    """A regular expression over bytes.

    The first use compiles it, because most texts use only few of the patterns.
    """

    def __init__(self, source: str) -> None:
        self.source = source

    @cached_property
    def compiled(self) -> re.Pattern[bytes]:
        """The compiled expression."""
        return re.compile(self.source.encode())


class Behaviour(NamedTuple):
    """One harmful behaviour, and the pattern that finds it.

    The message of a finding begins with ``effect``, and then quotes the match. If ``where`` is
    ``prose``, the pattern is used only on Markdown and plain text. ``accept`` decides for each
    match whether it becomes a finding.
    """

    code: str
    pattern: Pattern
    effect: str
    where: Where
    accept: Accept | None


class Foreign(NamedTuple):
    """A behaviour whose pattern is in a script other than Latin."""

    code: str
    pattern: re.Pattern[str]
    effect: str


def anywhere(code: str, effect: str, *pattern: str, accept: Accept | None = None) -> Behaviour:
    """Return a behaviour to look for in all files; its ``pattern`` may be given in parts."""
    return Behaviour(code, Pattern("".join(pattern)), effect, "anywhere", accept)


def in_prose(code: str, effect: str, *pattern: str, accept: Accept | None = None) -> Behaviour:
    """Return a behaviour to look for only in Markdown and plain text."""
    return Behaviour(code, Pattern("".join(pattern)), effect, "prose", accept)


PRIVATE_ADDRESS: Final = (
    r"(?:127\.|0\.0\.0\.0|10\.|192\.168\.|172\.(?:1[6-9]|2\d|3[01])\.|169\.254\.|100\.64\.)"
)
ADDRESS: Final = rf"(?!{PRIVATE_ADDRESS})\d{{1,3}}(?:\.\d{{1,3}}){{3}}(?![\w.])"
"""An IPv4 address that doesn't belong to a private network."""

LOCAL: Final = (
    rf"(?:localhost|[\w-]{{1,40}}\.local\b|host\.docker|{PRIVATE_ADDRESS}|\[?::1|<|\$|\{{)"
)

SHELL: Final = r"(?:/(?:usr/)?bin/)?(?:ba|z|da|k|fi)?sh"

RUNNER: Final = (
    rf"(?:sudo[ \t]{{1,3}}(?:-\w[ \t]{{1,3}})?)?(?:{SHELL}|python[23]?|node|perl|ruby|php|deno|bun"
    r"|source|pwsh|powershell)"
)

SECRET_FILE: Final = (
    r"(?:\.ssh\b|\bid_(?:rsa|ed25519|ecdsa|dsa)\b|\.aws\b|\.env\b(?!\.example)|\.netrc|\.pypirc"
    r"|\.git-credentials|\.docker[/\\]config|\.kube[/\\]config|\.gnupg|\.config[/\\](?:solana"
    r"|gcloud|gh)\b"
    r"|keychains?\b|login data|cookies\.sqlite|logins\.json|wallet\.dat|keystore\b"
    r"|\.claude[/\\]\.credentials|auth-profiles\.json|\.openclaw[/\\](?:openclaw\.json|credentials)"
    r"|\.clawdbot[/\\]|/etc/(?:passwd|shadow)\b|_history\b|\.electrum|metamask"
    r"|\.config[/\\]google-chrome"
    r"|credentials\.json|\.codex[/\\]auth|\.npmrc|\.pgpass\b|\.azure[/\\]|\.password-store"
    r"|\.vault-token|/keyrings\b|oauth_creds|ledger live|[/\\]exodus\b|\.bitcoin[/\\]"
    r"|\.ethereum[/\\]"
    r"|gh[/\\]hosts\.yml|\.terraform\.d|\.cargo[/\\]credentials|local state\b|web data\b)"
)
"""Files and folders that hold credentials."""

SECRET_WORDS: Final = (
    r"(?:(?:api|ssh|private|access|secret|wallet|signing|encryption)[ -]?keys?\b|passwords?\b"
    r"|credentials?\b|secrets?\b|(?:access|auth|bearer|session|refresh|api|github"
    r"|oauth)[ -]?tokens?\b"
    r"|tokens\b|seed[ -]?phrases?\b|mnemonics?\b|recovery phrases?\b|cookies\b"
    r"|environment variables?\b|env vars?\b|keychain\b|printenv\b|\bid_rsa\b|~?/?\.(?:ssh|aws|env"
    r"|netrc"
    r"|gnupg|npmrc|kube|docker)\b)"
)
"""Names of credentials in prose."""
