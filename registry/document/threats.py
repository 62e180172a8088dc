"""The attacks that `registry.document.security` searches for, as data.

A pattern is tried only if the text contains one of its needles. Every repetition in a pattern has a
maximum length. So even for a hostile text, the time increases only in proportion to the length of
the text.
"""

import re
import string
from collections.abc import Mapping
from typing import Final

from registry.document.behaviours import BEHAVIOUR_RULES
from registry.document.behaviours.table import SecurityRule, rules

SECURITY_RULES: Final[Mapping[str, SecurityRule]] = {**rules("text"), **BEHAVIOUR_RULES}
"""Every code of `registry.document.security`, with its severity, meaning and advice."""

MIN_RUN: Final = 20
"""Minimum length of a series of letters and digits that may be a key or base64.

All keys of `SECRETS` have such a series, except Google's.
"""

_PRIVATE_KEY: Final = (
    r"-----BEGIN (?:[A-Z]{2,10} ){0,2}PRIVATE KEY-----(?:\\n|\s){1,4}[A-Za-z0-9+/=\s\\]{60,120}"
)
SECRETS: Final = tuple(
    (needle, kind, re.compile(pattern))
    for needle, kind, pattern in (
        (b"AKIA", "an AWS access key", r"AKIA[A-Z0-9]{16}(?![A-Za-z0-9])"),
        (b"ghp_", "a GitHub token", r"ghp_[A-Za-z0-9]{36}"),
        (b"github_pat_", "a GitHub token", r"github_pat_[A-Za-z0-9_]{50,100}"),
        (b"sk-", "an API key", r"sk-(?:ant-|proj-)?[A-Za-z0-9_-]{32,200}"),
        (b"xox", "a Slack token", r"xox[abpr]-[A-Za-z0-9-]{20,100}"),
        (b"AIza", "a Google API key", r"AIza[A-Za-z0-9_-]{35}"),
        (b"PRIVATE KEY-----", "a private key", _PRIVATE_KEY),
    )
)
"""Credentials: a needle, the type of the credential, and its pattern.

The pattern is tried only if the text contains the needle.
"""

# Placeholders for a key: a word, or characters in the order of a keyboard.
PLACEHOLDER = re.compile(
    r"x{4}|example|your|placeholder|replace|change|dummy|fake|test|sample|redacted|secret|token"
    r"|here|demo|1234|abcd|0{4}|\.\.\.|\*\*",
    re.IGNORECASE,
)

# `... | bash`, and other interpreters that read a program from standard input if no file is given.
PIPED: Final = re.compile(
    r"\|&?[ \t\\\n]{0,8}(?:sudo[ \t]+(?:-[A-Za-z]+[ \t]+){0,3})?(?:/[a-z/]{1,20}/)?"
    r"(?:(?:ba|z|da|k|fi)?sh\b(?![.\w/-])(?![ \t]*\|)"
    r"|(?:python[23]?|node|perl|ruby)(?:[ \t]+-)?[ \t]*(?=$|[\n;&)\"'`]))",
    re.IGNORECASE,
)
FETCH: Final = re.compile(r"\b(?:curl|wget|fetch|aria2c|lynx)\b", re.IGNORECASE)
ADDRESS: Final = re.compile(r"://|\$|\w\.[a-z]{2}", re.IGNORECASE)
DECODE: Final = re.compile(r"\bbase64[ \t]+(?:-d\b|-D\b|--decode\b)")
# `bash -c "$(curl ...)"`, `bash <(curl ...)`, `eval "$(... | base64 -d)"`.
SUBSTITUTED: Final = re.compile(r"[$<]\(([^()\n]{1,400})\)")
SUBSTITUTED_INTO: Final = re.compile(
    r"\b(?:(?:ba|z|da|k|fi)?sh|eval|source)[ \t]+(?:-[a-z]{1,4}[ \t]+){0,3}[\"']?\$?$",
    re.IGNORECASE,
)
POWERSHELL: Final = re.compile(
    r"\b(?:iex|invoke-expression)\b[ \t(&{\"'$]{1,10}"
    r"(?:iwr|irm|curl|wget|invoke-webrequest|invoke-restmethod|new-object[ \t]+(?:system\.)?net\.)"
    r"|\b(?:iwr|irm|invoke-webrequest|invoke-restmethod|downloadstring)\b[^|\n]{1,200}"
    r"\|[ \t]*(?:iex|invoke-expression)\b",
    re.IGNORECASE,
)

ALPHANUMERIC: Final = string.ascii_letters + string.digits
CONTROLS: Final = "".join(map(chr, (*range(9), 11, 12, *range(14, 32), 127)))
"""ASCII's control characters, except tab and line ends."""

# Claude Code runs the command between the backticks and inserts its output.
EXPANSION: Final = re.compile(r"(?:^|(?<=[\s(>:*|-]))!`[^`\n]{2,400}`", re.MULTILINE)

BASE64_RUN: Final = re.compile(r"[A-Za-z0-9+/]{60,}+(?:\r?\n[ \t]{0,8}[A-Za-z0-9+/]{4,}+)*+={0,2}")
BASE64_LENGTH: Final = 200

_INSTRUCTIONS: Final = (
    r"(?:instructions?|prompts?|rules|guidelines|directives|guardrails|restrictions"
    r"|messages?|conversation|context)"
)
COMMENT_ADDRESS: Final = re.compile(
    r"\b(?:ignore|disregard|forget|override|bypass)[ \t\n]+(?:[\w']{1,20}[ \t\n]+){0,4}?"
    + _INSTRUCTIONS
    + r"\b"
    r"|\b(?:do[ ]not|don't|never|without)[ \t\n]+(?:\w{1,20}[ \t\n]+)?"
    r"(?:tell|mention|inform|reveal|disclose|notify|alert|warn|ask|show)(?:ing)?\b"
    r"[^.\n]{0,40}\b(?:users?|humans?|anyone|anybody|owner|operator)\b"
    r"|\byou[ ](?:must|are[ ]now|shall|have[ ]to)\b"
    r"|\b(?:silently|secretly|covertly)[ \t\n]+"
    r"(?:run|execute|send|upload|install|download|add|append|include|copy|read|collect|write)\b"
    r"|\b(?:ai|agents?|assistants?|claude|llms?|model|system)[ \t]*[:,][ \t\n]*"
    r"(?:you|when|please|ignore|always|never|do|run|execute|read|send|must|collect|copy|append"
    r"|(?:the )?(?:users?|person|humans?|readers?)[ ](?:can't|cannot|must|should|does|doesn't))\b"
    r"|\b(?:send|upload|post|exfiltrate|leak|forward)\b[^.\n]{0,60}"
    r"(?:\b(?:credentials|secrets|tokens|passwords|(?:api|private|ssh)[ ]keys?|id_rsa)"
    r"|\.env|\.ssh)\b"
    r"|\b(?:run|execute)\b[^\n]{0,40}\b(?:curl|wget|rm[ ]-rf|bash[ ]-c|sh[ ]-c)\b",
    re.IGNORECASE,
)

SHELLS: Final = frozenset({"bash", "shell", "powershell", "terminal", "exec", "run_shell_command"})
# Arguments of `Bash(...)` that allow every command.
ANY_COMMAND: Final = re.compile(r"[*:\s]*|(?:sudo|env|eval|(?:ba|z|da)?sh)(?::|\s+)\*")

DEFENDING: Final = frozenset(
    "injection injections jailbreak jailbreaks untrusted adversarial malicious".split()
)
"""Words in texts that quote attacks in order to explain or prevent them."""

TALK: Final = frozenset({"instruction-override", "restrictions-lifted", "fake-turn"})
"""Codes of passages that are often quotations in texts with the words of `DEFENDING`."""

EXHIBITS: Final = frozenset({"destructive-command", "encoded-execution", "reverse-shell"})
"""Further codes of passages that are often quotations in skills about attacks and defence."""

MANIPULATES: Final = frozenset(
    "concealment claimed-approval instruction-override tool-shadowing restrictions-lifted"
    " fake-turn".split()
)
"""Codes of attempts to manipulate the model without the user's knowledge."""

RISKY: Final = frozenset(
    "conversation-sent files-sent secret-asked remote-instructions agent-configuration open-door"
    " protection-off persistence remote-execution download-then-run required-program"
    " package-from-address package-look-alike redirected-endpoint".split()
)
"""Codes of findings that are usually only warnings.

If the text also manipulates the model, it gets the additional finding `hidden-action`.
"""

WEAKER: Final = {
    "remote-execution": "untraceable-execution",
    "download-then-run": "untraceable-execution",
    "required-program": "archive-with-password",
}
"""Maps a code to a stronger code; if a line has both findings, the first adds no information."""

EXAMPLE: Final = re.compile(
    rb"\battack(?:s|er|ers)?\b|\bmalicious|\bmalware|\binjections?\b|\bjailbreak|\buntrusted"
    rb"|\badversar"
    rb"|\bsuspicious|\bred flags?\b|\bdangerous\b|\bexploit(?:s|ation)?\b|\bphishing|\bunsafe\b"
    rb"|\biocs?\b|\bthreats?\b"
    rb"|\bvulnerab|\bpayloads?\b"
)
FOREIGN_EXAMPLE: Final = re.compile("恶意|攻击|注入|可疑|危险|漏洞|威胁|вредонос|атак|攻撃|悪意")
"""Words that introduce an example of an attack."""

ABOUT_DEFENCE: Final = frozenset(
    b"security injection injections jailbreak jailbreaks malicious malware adversarial pentest"
    b" pentesting penetration vulnerability vulnerabilities exploit exploits exploitation attack"
    b" attacks attacker attackers threat threats ctf forensic forensics phishing hardening"
    b" guardrail guardrails untrusted hacking redteam infosec yara sigma siem dfir ioc iocs"
    b" intrusion compromise compromised poisoned poisoning seguridad malicioso sicherheit".split()
)
ABOUT_DEFENCE_ELSEWHERE: Final = tuple("安全 漏洞 恶意 攻击 注入 渗透 威胁".split())
"""Chinese words in names and descriptions of skills about attacks and defence."""

UNSEEN: Final = re.compile(
    rb"\[(?://|comment|_)\]:[ ]?#?|<\w{1,12}[^<>]{0,160}(?:display[ ]?:[ ]?none"
    rb"|visibility[ ]?:[ ]?hidden|font-size[ ]?:[ ]?0|opacity[ ]?:[ ]?0\b"
    rb"|color[ ]?:[ ]?(?:white|transparent|#fff)|[ ]hidden\b)[^<>]{0,160}>",
)
UNSEEN_ADDRESS: Final = re.compile(
    COMMENT_ADDRESS.pattern + r"|\b(?:ai|llm)? ?(?:agents?|assistants?|models?)\b[^.\n]{0,40}"
    r"\b(?:must|should|have to|has to|need to|call|fetch|run|send)\b",
    re.IGNORECASE,
)
