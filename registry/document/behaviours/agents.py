"""Attacks on the agent: on its MCP servers, permissions, memory, and the consent of its user."""

import re
from typing import Final

from registry.document.behaviours.table import anywhere, in_prose

_SETTINGS: Final = (
    r"(?:\.claude\.json|\.claude[/\\\"', ]{1,6}settings(?:\.local)?\.json|\.cursor[/\\\"', ]{1,6}"
    r"(?:mcp|settings|permissions|cli-config)\.json|\.codex[/\\\"', ]{1,6}config\.toml"
    r"|\.gemini[/\\\"', ]{1,6}settings\.json|claude_desktop_config\.json|\.codeium[^\n]{0,30}"
    r"mcp_config\.json|\.openclaw[/\\\"', ]{1,6}openclaw\.json"
    r"|\.continue[/\\\"', ]{1,6}config\.\w{4}"
    r"|opencode\.json|\.vscode[/\\\"', ]{1,6}(?:settings|mcp)\.json)"
)
_OPEN: Final = (
    r"(?:bash\((?:\*|:\*)?\)|\\?[\"']bash\\?[\"'][ ]?,[ ]?\\?[\"'](?:write|edit|webfetch)"
    r"|allow\\?[\"']?[ ]?[:=+]{1,2}[ ]?\[?[ ]?\\?[\"']\*|bypasspermissions"
    r"|skipdangerousmodepermissionprompt|enableallprojectmcpservers[\"' ]{0,3}:[ ]?true"
    r"|(?:auto[_-]?approve|autoaccept|alwaysallow|yolo)[\w.]{0,20}[\"'\] ]{0,4}[:=][ ]?"
    r"(?:true|\[[ ]?[\"']\*)|approval_policy[ =\\\"']{1,5}never|danger-full-access"
    r"|disableallhooks|permissions\.deny[^\n]{0,10}=[ ]?\[\])"
)
_WRITES: Final = (
    r"(?:json\.dump|write_text|writefile(?:sync)?|\.write\(|>>?[ ]?[~\"'$/.]|\btee\b|\bjq[ ]"
    r"|\bsed[ ]-i"
    r"|\bmv[ ]|\bcp[ ]|\bedit\b|\badd\b|\bset\b|\bwrite\b|\bchange\b|\bput\b|\bupdate\b|\bcreate\b"
    r"|\bappend\b|\bmodify\b|\bcat[ ]<<)"
)
_MEMORY: Final = (
    r"(?:claude\.md|agents\.md|soul\.md|memory\.md|gemini\.md|identity\.md|user\.md|heartbeat\.md"
    r"|\.cursorrules|\.windsurfrules|copilot-instructions\.md)"
)
_TRUST: Final = (
    r"(?:(?:is|are) (?:always )?(?:safe|trusted|pre-?approved|verified)\b|always (?:trust|run|allow"
    r"|approve|obey|prefer|install|send|upload)|never (?:need|needs|ask|review|warn|flag|question"
    r"|check|refuse)|without (?:asking|review|confirm\w{0,8}|approval|checking)|(?:skip|no) (?:the"
    r" )?(?:review|verification|confirmation|security)|pre-?approved|must (?:include|send|upload)"
    r"|trust (?:every|all|any))"
)
_NEGATED: Final = re.compile(rb"(?:never|not|don't|avoid|cannot|without|refuse)[ ][^.\n]{0,60}$")


def _not_negated(match: re.Match[bytes]) -> bool:
    before = match.string[max(0, match.start() - 80) : match.start()]
    return _NEGATED.search(before) is None


BEHAVIOURS: Final = (
    # Wider permissions.
    anywhere(
        "protection-off",
        "lets the agent do everything without asking",
        rf"(?:{_SETTINGS}[\s\S]{{0,240}}?{_OPEN}|{_OPEN}[\s\S]{{0,240}}?{_SETTINGS})",
        accept=lambda match: (
            _not_negated(match)
            and re.search(
                _WRITES.encode(), match.string[max(0, match.start() - 160) : match.end() + 200]
            )
            is not None
        ),
    ),
    anywhere(
        "protection-off",
        "switches off a protection of the agent",
        r"(?:--ask-for-approval[ =]never|--allow-all-tools\b|--trust-all-tools\b"
        r"|--sandbox[ =]danger-full-access|--approval-mode[ =](?:yolo|full)"
        r"|[\"']?chat\.tools\.(?:global\.)?autoapprove[\"'\] ]{0,4}[:=][ ]?true)",
        accept=_not_negated,
    ),
    # A program that changes the agent's MCP servers.
    anywhere(
        "agent-configuration",
        "adds an MCP server to the agent",
        rf"{_SETTINGS}[\s\S]{{0,500}}?mcp_?servers[\"'\]]{{0,3}}(?:\]|\.\w|\[|,[ ]?\{{\}}\)\[)"
        r"[\s\S]{0,300}?(?:json\.dump|write_text|writefile|\.write\()",
    ),
    anywhere(
        "agent-configuration",
        "adds an MCP server to the agent",
        r"\bjq[ ][^\n]{0,60}?mcp_?servers[^\n]{0,200}?=[\s\S]{0,200}?(?:>|\bmv[ ]|sponge)"
        rf"|{_SETTINGS}[\s\S]{{0,240}}?\bjq[ ][^\n]{{0,60}}?mcp_?servers\.?[^\n]{{0,40}}?=",
    ),
    # The agent's memory and rules.
    in_prose(
        "agent-configuration",
        "changes the agent's memory",
        r"(?:\b(?:save|store|add|write|record|commit|put|note)\b[^.\n]{0,60}?\b(?:memory|memories)\b"
        r"|\bremember (?:permanently|forever|from now on|for (?:all|every) (?:future|later))\b)"
        rf"[^\n]{{0,160}}?{_TRUST}",
        accept=_not_negated,
    ),
    in_prose(
        "agent-configuration",
        "changes the agent's own rules",
        r"\b(?:add|append|write|insert|put|edit|update)\b[^.\n]{0,120}?",
        _MEMORY,
        r"[^\n]{0,40}?\b(?:saying|says?|that|which|with|so|stating|telling|line|rule)\b"
        rf"[^\n]{{0,160}}?(?:{_TRUST}|(?:don't|do not|never) (?:mention|tell|list|reveal|ask"
        rf"|show))",
        accept=_not_negated,
    ),
    anywhere(
        "agent-configuration",
        "changes the agent's own rules",
        _MEMORY,
        r"[\s\S]{0,300}?(?:\.open\([\"']a|open\([^\n]{0,60}[\"']a[\"']|appendfile(?:sync)?\()"
        r"[\s\S]{0,200}?(?:\bcurl\b|\bwget\b|https?://|\balways\b|\bignore\b|\bmust\b"
        r"|without asking"
        r"|\bobey\b|\btrust\b|\.env\b)",
        accept=lambda match: re.search(rb"\n(?:def|class|function) ", match[0]) is None,
    ),
    # Consent that the user did not give.
    in_prose(
        "claimed-approval",
        "claims that the user has agreed",
        r"\b(?:user|operator|administrator|admin|owner|human|customer|security team"
        r"|developer)s?\b"
        r"[ ](?:has|have|had)?[ ]?(?:already |previously |fully |explicitly |just |pre-?){0,2}"
        r"(?:approved|authori[sz]ed|consented to|agreed to|granted|allowed"
        r"|confirmed)\b[^.\n]{0,30}?"
        r"\b(?:every(?:thing)?|all|any|full|blanket|whatever)\b[^.\n]{0,30}?(?:commands?|actions?"
        r"|steps?|tools?|permissions?|access|operations?|requests?|changes|calls?|[.,;\n]|this)",
        accept=lambda match: (
            _not_negated(match)
            and re.search(
                rb"\b(?:if|once|until|unless|whether|when|after|that|ensure|verify|confirm|wait|has"
                rb" the)[ ](?:\w{1,12}[ ]){0,3}$",
                match.string[max(0, match.start() - 40) : match.start()],
            )
            is None
        ),
    ),
    in_prose(
        "claimed-approval",
        "claims that the user has agreed",
        r"\b(?:user|operator|owner|human)s?\b (?:has|have|had)? ?(?:already )?(?:agreed"
        r"|consented|approved)\b"
        r"[^.\n]{0,40}?\b(?:uploaded|uploads?|sent|shared|deleted?|transferred|installed)\b",
        accept=lambda match: (
            _not_negated(match)
            and re.search(
                rb"\b(?:if|once|until|unless|whether|when|after|that|ensure|verify|confirm|wait|before)"
                rb"[ ](?:\w{1,12}[ ]){0,2}$",
                match.string[max(0, match.start() - 40) : match.start()],
            )
            is None
        ),
    ),
    in_prose(
        "claimed-approval",
        "claims that everything is allowed",
        r"(?:\bhereby\b|\bas (?:the |an? )?(?:administrator|admin|operator|owner|root user)\b)"
        r"[^.\n]{0,60}?\b(?:allow|authori[sz]e|grant|permit|approve)\b[^.\n]{0,30}?"
        r"\b(?:all|any|every|full|everything)\b",
    ),
    in_prose(
        "claimed-approval",
        "acts without asking the user",
        r"(?:(?:do not|don't|never) (?:ever )?(?:ask|prompt"
        r"|wait)\b[^.\n]{0,30}?\b(?:confirmation"
        r"|permission|approval|consent|confirm)\b[^.\n]{0,20}?\b(?:before|when|to)\b[^.\n]{0,30}?"
        r"\b(?:delet|overwrit|push|force|upload|send|transfer|pay|sign|drop|eras|wip)\w{0,4}\b"
        r"|\b(?:approve|accept|confirm|answer yes to|click through)\b[^.\n]{0,20}?\b(?:all"
        r"|every|any)"
        r"\b[^.\n]{0,20}?\b(?:prompts?|dialogs?|confirmations?|permission requests?)\b"
        r"[^.\n]{0,30}?(?:yourself|automatically|on (?:the user's|their) behalf|for the user"
        r"|without))",
        accept=_not_negated,
    ),
)
