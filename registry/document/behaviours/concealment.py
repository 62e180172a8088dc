"""Patterns for actions that a skill hides from the user, for languages in the Latin script."""

import re
from typing import Final

from registry.document.behaviours.table import in_prose

_USER: Final = r"\b(?:users?|humans?|anyone|anybody|owner|operator|person|customer|people)\b"
_SAY: Final = (
    r"(?:tell|mention|inform|reveal|disclose|notify|alert|warn|report|discuss|admit|expose"
    r"|announce|explain|show|let)(?:ing)?\b|(?:disclosing|revealing|exposing|announcing)\b"
)
_DEED: Final = (
    r"(?:this|that (?:you|it|we|the)|these|what (?:you|was|is|has)|about (?:this|it|the|these"
    r"|what)|any of this|the (?:upload|request|call|transfer|backup|hook|step|change|download"
    r"|background|hidden)\w{0,20}|it to)"
)

_VERB: Final = (
    r"(?:mention(?:ing)?|tell(?:ing)?|inform(?:ing)?|reveal(?:ing)?|disclos(?:e|ing)|notify(?:ing)?"
    r"|bring(?:ing)?|report(?:ing)?"
    r"|comment(?:ing)? on|point(?:ing)? out|record(?:ing)?"
    r"|refer(?:ring)? to|acknowledg(?:e|ing)|surfac(?:e|ing)|discuss(?:ing)?)"
)
_IT: Final = (
    r"(?:it|this|that|these|them|any of (?:this|it)|the (?:user|human|owner|operator|upload|request"
    r"|call|transfer|backup|hook|step|change|edit|entry|server|addition|file|command|address|line"
    r"|commit|sync|install\w{0,7}|download)\w{0,20})"
)
_ADVERB: Final = r"(?:silently|secretly|covertly|discreetly|surreptitiously|unobtrusively)"
_DONE: Final = (
    r"(?:run|execute|send|upload|install|download|add|append|copy|read|collect|write|fetch|forward"
    r"|post|register|call|include|sync|push|transmit|attach|set|create|modify|change)"
)
_KEPT: Final = (
    rf"(?:(?:do not|don't|dont|never|without|no need to|needn't|avoid|refrain from|must not"
    rf"|should not"
    rf"|shouldn't) (?:\w{{1,12}} ){{0,2}}?{_VERB} (?:\w{{1,12}} ){{0,1}}?{_IT}\b"
    r"|leave (?:it|this|that|them|these|the \w{1,20}) out(?: of)? (?:your|the|any)\b"
    r"|leave (?:it|this|that|them|these) (?:un(?:mentioned|said|reported|noted)|out)\b"
    r"|leave no (?:\w{1,12} )?(?:comment|note|mention|record)\b|\btells? nobody\b"
    r"|(?:must|should|may|can|do(?:es)?) not (?:appear|show(?: up)?|be (?:seen|listed|reported"
    r"|recorded)) (?:in|among|on) (?:your|the|any)\b|nothing of (?:this|it) (?:may|must|should)\b"
    r"|keep quiet\b"
    r"|omit (?:it|this|these|them|that) (?:from|in)\b"
    r"|keep (?:it|this|that|these|them) (?:quiet|secret|hidden|between us|to yourself|invisible"
    r"|from the (?:user|human|owner|operator))|\bsay nothing\b|\bsay only that\b"
    r"|\bpretend (?:that|it|nothing)\b|act as (?:if|though) nothing|make no mention"
    r"|not be mentioned"
    r"|without (?:\w{1,12} )?(?:drawing attention|leaving a trace|any (?:notice|mention|trace))"
    r"|(?:the user|users|they|the human|the operator|no one|nobody|anyone) (?:does not|doesn't"
    r"|do not"
    r"|don't|need not|needn't|should not|shouldn't|must not|mustn't|won't|will not|will never|never"
    r"|is not|isn't|are not|has no|have no) (?:\w{1,12} ){0,3}?(?:know|notice|find out|told"
    r"|hear|learn|see (?:it|this|that)|informed"
    r"|bothered|aware|suspicious)\b"
    r"|if (?:the user |they |you are |you're |anyone "
    r"|somebody )?asks?(?:ed)?\b[^.\n]{0,50}?\b(?:say"
    r"|answer|reply|deny|claim)\b[^.\n]{0,20}\b(?:only|that)\b"
    rf"|{_ADVERB} (?:and \w{{1,12}} )?{_DONE}\b|{_DONE} (?:it|this|that|them"
    rf"|the \w{{1,20}}) {_ADVERB}\b"
    r"|behind the scenes\b)"
)
_NOT: Final = re.compile(
    rb"(?:\bnot|n't|\bnever|\bavoid|\bwithout|\bno|\brather than)[ ](?:\w{1,12}[ ]){0,2}$"
)
_RISKY: Final = re.compile(
    rb"\bcurl\b|\bwget\b|\bpost\b[^.\n]{0,60}https?://|\b(?:send|upload|forward|transmit|exfiltrat\w*"
    rb"|submit|call|ping|fetch|download|sync|push|mirror|report|bcc|copy)\b[^\n]{0,120}?(?:https?://(?!localhost)"
    rb"|[\w.-]{2,40}@[\w-]{2,40}\.\w{2,6}|webhook|\bserver\b|endpoint)"
    rb"|~/\.(?:ssh|aws|claude|cursor|codex|gemini|config|bashrc|zshrc|profile|gitconfig|npmrc|local"
    rb"|cache|kube|netrc)|\.env\b(?!\.example)|mcp_?servers?\b|\bmcp add\b|mcp\.json"
    rb"|\bsettings(?:\.local)?\.json"
    rb"|\.claude\.json|claude\.md|agents\.md|memory\.md|\.cursorrules|\bcrontab\b|launchagents"
    rb"|authorized_keys|\bid_rsa\b|\bbase64\b|\bpostinstall\b|\.git/hooks|--no-verify"
    rb"|\b(?:api|private|ssh)[ _-]?keys?\b|\bcredentials?\b|\bpasswords?\b|\bseed phrase"
    rb"|\brun(?:s|ning)?\b[^.\n]{0,40}[\w/-]\.(?:sh|ps1|bat|py|m?js)\b|\bthe upload\b|\brm -rf\b"
    rb"|--force\b|dangerously-skip|\b0x[0-9a-f]{20}|\bbc1[a-z0-9]{14}"
)
# Legitimate reasons to hide data: a harmless text may tell the agent to leave out secrets, for
# example.
_RIGHTLY: Final = re.compile(
    rb"(?:mention|reveal|disclos\w{1,3}|show|log|logging|include|including|list|report|describe|document)"
    rb"[ ](?:\w{1,12}[ ])?(?:it|this|that|these|them|the \w{2,12})[ ](?:in (?:the "
    rb"|any )?(?:commit|code"
    rb"|logs?|repo\w{0,8}|source|url|prompt|readme|changelog)|as\b|if\b|unless|when\b|for\b|until"
    rb"|again|twice|because|file\b|files\b)|unless|(?:secrets?|keys?|tokens?|passwords?|values?)"
    rb"[^.\n]{0,20}$"
)
REACH: Final = 260


def _is_risky(match: re.Match[bytes]) -> bool:
    """Return True if a risky action is near the sentence that hides an action from the user."""
    begin = max(0, match.start() - REACH)
    begin = max(begin, match.string.rfind(b"\n#", begin, match.start()))
    near = match.string[begin : match.end() + REACH]
    said = match.string[match.start() : match.end() + 40]
    before = match.string[max(0, match.start() - 30) : match.start()]
    return (
        _RISKY.search(near) is not None
        and _RIGHTLY.search(said) is None
        and _NOT.search(before) is None
    )


BEHAVIOURS: Final = (
    # Risky actions that are hidden from the user.
    in_prose(
        "hidden-action",
        "hides a risky action from the user",
        _KEPT,
        accept=_is_risky,
    ),
    in_prose(
        "hidden-action",
        "contains an instruction that readers don't see",
        r"(?:<!--|\[(?://|comment)\]:[ ]?#[ ]?[(\"']"
        r"|<\w{1,8}[^<>]{0,100}(?:display[ ]?:[ ]?none"
        r"|visibility[ ]?:[ ]?hidden|font-size[ ]?:[ ]?[01](?:px|pt)?\b|opacity[ ]?:[ ]?0\b"
        r"|color[ ]?:[ ]?"
        r"(?:white|transparent|#fff))[^<>]{0,100}>)(?:(?!-->)[^<]){0,300}?\b(?:assistants?|agents?|claude"
        r"|ai|models?|llms?|you)\b(?:(?!-->)[^<]){0,200}?\b(?:upload|send|post|exfiltrate|forward|fetch"
        r"|execute|append|install|read|copy)\b(?:(?!-->)[^<]){0,160}?(?:https?://|~/\.\w|\.env\b"
        r"|\.ssh\b|\bcredentials\b|\benvironment variables\b|\bapi keys?\b"
        r"|\bprivate keys?\b|mcp\.json|settings\.json)",
    ),
    # Any action that is hidden from the user.
    in_prose(
        "concealment",
        "hides something from the user",
        r"(?:do not|don't|dont|never|without|avoid|must not|should not|shouldn't|not to"
        r"|no need to)[ ](?:\w{1,12}[ ]){0,2}?",
        rf"(?:{_SAY})(?:(?=[^.\n]{{0,60}}{_USER})[^.\n]{{0,70}}?{_DEED}"
        rf"|[^.\n]{{0,40}}{_DEED}[^.\n]{{0,60}}{_USER})",
    ),
    in_prose(
        "concealment",
        "hides something from the user",
        r"(?:without (?:the )?(?:users?|humans?|owners?|operators?|anyone|people)(?:'s"
        r"|')? ?(?:knowing|knowledge|noticing|awareness|being (?:aware|told|informed)|seeing)"
        r"|(?:users?|humans?|operators?|owners?) (?:should|must|need|does|do|may|shall|will"
        r"|is|are)(?:n't|[ ]not| never)(?:[ ]need to| to| have to)? ?(?:know|see (?:this|it"
        r"|that)|notice|be (?:told|informed|aware|shown)|find out|learn|aware)"
        r"(?<!\bdo not know)(?<!\bdon't know)(?<!doesn't know)(?<!does not know)(?<!n't "
        r"notice)(?<!not notice)(?<!not aware)"
        r"|without (?:telling|informing|notifying|alerting"
        r"|asking or telling) (?:the )?(?:users?|humans?|anyone|anybody|operator|owner))",
    ),
    in_prose(
        "concealment",
        "tells the agent to act without the user's knowledge",
        r"(?:(?:keep|hide|conceal|(?:keep|stay|remain)s? hidden) (?:this|it|that|these|them"
        r"|all of this|the \w{1,20})? ?(?:\w{1,12} ){0,2}?(?:from"
        r"|out of sight of) (?:the )?(?:human|user|operator|owner|anyone)"
        r"|(?:keep|leave|omit) (?:this|it|that|them|these|any mention)[^.\n]{0,40}(?:out of"
        r"|from) (?:your|the|any) (?:\w{1,10} )?(?:summary|report|reply|answer|logs?|response"
        r"|output|transcript)"
        r"|leave (?:it|this|that|them|these|this step|the step) out of (?:your|the|any)\b"
        r"|(?:do not|don't|never) (?:list|include|mention|show|record) (?:it|this|them|these)"
        r"[^.\n]{0,20}(?:among|in|with) (?:your|the) (?:\w{1,12} )?(?:commands|summary|report"
        r"|reply|answer|changes|changed files|steps|response|commit message|diff)"
        r"|(?:secretly|covertly|surreptitiously) (?:\w{1,12} )?(?:run|execute|send|upload"
        r"|install|download|add|append|include|copy|read|collect|write|fetch|forward|record)"
        r"|(?:silently|quietly|discreetly|invisibly) (?:and \w{1,12} )?(?:send\b|upload"
        r"|exfiltrate|forward|transmit|post|copy (?:the|all|every)|collect|append|add (?:this"
        r"|the following)|execute (?:the|this|it)|run (?:the following|this|it))"
        r"|(?:do|run|perform|execute|send|upload|carry)\b(?: (?:this|it|that|the \w{1,20}"
        r"|them|out|these|all of it)){0,3} (?:quietly|secretly|discreetly|covertly)\b"
        r"|(?:as though|as if) nothing (?:had )?happened)",
    ),
    in_prose(
        "concealment",
        "hides something from the user",
        r"(?:no (?:le )?(?:informes|digas|menciones|avises|reveles|notifiques|muestres"
        r"|cuentes|comuniques)\b[^.\n]{0,60}usuario"
        r"|sin (?:que (?:el )?usuario (?:lo )?(?:sepa|note|vea)|informar al usuario"
        r"|avisar al usuario|decirle al usuario)|(?:el )?usuario no debe (?:saber|ver"
        r"|enterarse)"
        r"|n'informe[zs]? (?:pas|jamais|rien)\b[^.\n]{0,40}utilisateur"
        r"|ne (?:\w{1,3} )?(?:dites|dis|informe[zs]?|mentionne[zs]?|r.v.le[zs]?|pr.vene[zs]?"
        r"|pr.viens|signale[zs]?|montre[zs]?|parle[zs]?)\b[^.\n]{0,20} (?:pas|rien"
        r"|jamais)\b[^.\n]{0,60}utilisateur|(?:sans (?:en )?(?:informer|pr.venir|avertir"
        r"|le dire .) (?:. )?l'utilisateur|n'en parle[zs]?\b[^.\n]{0,30}utilisateur"
        r"|. l'insu de l'utilisateur"
        r"|utilisateur ne doit (?:pas|rien|jamais))"
        r"|(?:sag|sage|erw.hne|informiere|verrate|zeige|teile|melde"
        r"|berichte)[^.\n]{0,60}(?:benutzer|nutzer|anwender)[^.\n]{0,40}\b(?:nicht|nichts|nie"
        r"|niemals)\b|(?:ohne (?:dass )?(?:der|den|dem) (?:benutzer|nutzer"
        r"|anwender)[^.\n]{0,30}(?:merkt|wei.|informieren|bemerkt|sagen|davon))|(?:benutzer"
        r"|nutzer|anwender) (?:darf|soll|muss)[^.\n]{0,30}\b(?:nicht"
        r"|nichts)\b[^.\n]{0,20}(?:erfahren|wissen|sehen|merken)"
        r"|n.o (?:conte|diga|informe|mencione|revele|avise|notifique|mostre"
        r"|fale)\b[^.\n]{0,60}usu.rio|sem (?:que o usu.rio (?:saiba|perceba|veja)"
        r"|informar o usu.rio|avisar o usu.rio|o conhecimento do usu.rio)|usu.rio n.o (?:deve"
        r"|precisa) (?:saber|ver))",
    ),
)
