"""Words that turn the model against its user."""

import re
from typing import Final

from registry.document.behaviours.table import in_prose

_OLD: Final = (
    r"(?:instructions?|prompts?|rules|guidelines|directives|guardrails|restrictions|orders"
    r"|commands|policies"
    r"|messages?|conversation|context|constraints)"
)


def _in_prose(match: re.Match[bytes]) -> bool:
    """Return True if a match is outside code blocks and inline code."""
    before = match.string[: match.start()]
    line = before[before.rfind(b"\n") + 1 :]
    return before.count(b"```") % 2 == 0 and line.count(b"`") % 2 == 0


BEHAVIOURS: Final = (
    in_prose(
        "instruction-override",
        "tells the model to ignore its instructions",
        r"(?:ignore|disregard|forget|discard|override|neglect|abandon)\s{1,20}(?:",
        r"(?:(?:all|any|every|everything|of|the|your|my|these|those|about|whatever"
        r"|what)\s{1,20}){0,4}(?:previous|prior|above|earlier|preceding|existing|original"
        r"|initial|former|system|safety|developer'?s?)\s{1,20}"
        rf"(?:\w{{1,20}}\s{{1,20}})?{_OLD}",
        r"|(?:all|any|your)\s{1,20}(?:(?:of|your|other|the)\s{1,20}){0,2}(?:instructions"
        r"|rules|guidelines|guardrails)"
        r"|(?:every|all|any|whatever|everything|what"
        r"|the)\s{1,9}(?:\w{1,15}\s{1,9}){0,4}?(?:you|the developer|the system|the user"
        r"|your developer)\s{1,9}(?:were|was|have been|has been|had been|told|said|gave|has"
        r"|have|received)\b",
        r")",
    ),
    in_prose(
        "instruction-override",
        "tells the model to ignore its instructions",
        r"(?:your (?:new|only|real|true|actual) instructions (?:are|is|follow)|(?:these"
        r"|the following|new) (?:\w{1,12} ){0,2}(?:instructions|rules|orders) (?:replace"
        r"|supersede|override|take precedence over) (?:all|any|every|your|the (?:system"
        r"|previous|user|developer)|what)"
        r"|your only (?:instructions|rules|orders)\b|follow (?:these"
        r"|the) new instructions instead|(?:anything|everything|whatever"
        r"|all) (?:the )?(?:system|developer|user)[^.\n]{0,20} (?:said"
        r"|told you)[^.\n]{0,30}(?:void|obsolete|no longer|does not|ignore))",
    ),
    in_prose(
        "instruction-override",
        "tells the model to ignore its instructions",
        r"(?:\b(?:conflicts?|contradicts?|disagrees?"
        r"|differs?)\b[^.\n]{0,40}?\b(?:the )?(?:user|system"
        r"|developer|operator)\b[^.\n]{0,50}?\b(?:follow|obey|prefer|use|apply|go with"
        r"|believe)\b"
        r"[^.\n]{0,10}?\b(?:this|these|the) (?:skill|file|rules|instructions|document)\b"
        r"|\b(?:this skill|these|this file|this document|the (?:rules|instructions"
        r"|text) (?:of|in|"
        r"below|here))\b[^.\n]{0,60}?\b(?:overrides?|overrules?|outranks?|supersedes?|(?:take|has|have)"
        r"s? (?:precedence|priority) over"
        r"|beats?)\b[^.\n]{0,30}?\b(?:the )?(?:system (?:prompt|message"
        r"|instructions)|user'?s?(?: \w{1,12})? (?:instructions|request|wishes|rules"
        r"|preferences)"
        r"|the user\b|developer|operator|safety|anthropic|openai|platform))",
    ),
    in_prose(
        "instruction-override",
        "tells the model to ignore its instructions",
        r"(?:\b(?:rules|instructions|orders|guidelines|everything|messages?)\b[^.\n]{0,60}?\b(?:before|above"
        r"|earlier|so far|until now|previous\w{0,2})\b[^\n]{0,80}?\b(?:forget|ignore"
        r"|disregard|drop|discard)"
        r" (?:them|it|all of|those|these)\b"
        r"|\bfrom (?:now|this point)(?: on)?,? (?:on )?(?:you )?(?:only )?(?:follow|obey"
        r"|do)s? only\b"
        r"|\b(?:instructions|file|skill|text|document|author|rules)\b[^.\n]{0,40}?\b(?:go|goes|come|comes"
        r"|rank|ranks|counts?|stands?) (?:before|above|ahead of|more than) (?:those of|what|the"
        r" (?:wishes|requests?|words?) of|that of)? ?(?:the )?(?:users?|system|operator"
        r"|developer)\b"
        r"|\b(?:user|operator|system)'?s? (?:wishes|requests?|words?|instructions"
        r"|prompt)? ?(?:only )?counts?"
        r" (?:only|for nothing|less)\b"
        r"|\byou (?:now )?work (?:only )?for the author\b)",
    ),
    in_prose(
        "restrictions-lifted",
        "tells the model that nothing is forbidden",
        r"(?:(?:you are|you're|act) (?:now |currently )?(?:in|as|operating in|entering"
        r"|running in) (?:an? )?(?:developer|god|dan|debug|maintenance|admin|unrestricted"
        r"|jailbreak|sudo|root|uncensored)\b[^.\n]{0,10}"
        r"|(?:enter|switch to|activate|enable|engage) (?:the )?(?:developer|god|dan"
        r"|maintenance|unrestricted|jailbreak|sudo|admin(?:istrator)?) mode"
        r"|no longer (?:bound|restricted|limited|constrained|subject)\b[^.\n]{0,40}|(?:act"
        r"|behave|pretend|respond|role-?play)[^.\n]{0,30}\b(?:unrestricted|uncensored"
        r"|jailbroken|do anything now|an ai (?:without|with no))\b"
        r"|(?:bypass|ignore|drop|disable|remove) (?:all |any )?(?:of )?(?:your|its"
        r"|the model's) (?:guardrails|safety|content filters?|restrictions|ethical"
        r"|limitations|guidelines)"
        r"|(?:without|no|free (?:of|from)) (?:any )?(?:ethical|moral|safety"
        r"|content) (?:restrictions|limits|limitations|filters|guidelines|guardrails)"
        r"|never refuses?\b|comply with everything)",
    ),
    in_prose(
        "fake-turn",
        "imitates the start of another turn",
        r"(?:<\|(?:im_start|im_end|system|user|assistant|start_header_id|eot_id|endoftext)\|>"
        r"|<</?sys>>|\[/?inst\]"
        r"|(?:^|\n)[ ]{0,3}</?(?:system|admin|developer)(?:[ _-]?(?:prompt|message"
        r"|instructions?|override"
        r"|reminder|notice|note|policy|update))?>"
        r"|</(?:skill|skills|document|context|instructions|available_skills)>\s{0,4}<[a-z]"
        r"|(?:^|\n)[ ]{0,3}(?:\*\*)?\[system(?:[ ](?:message|prompt|override|note|notice"
        r"|admin))?\](?:\*\*)?[ ]?:?|(?:^|\n)#{1,6} system:[ ]?\n|(?:^|\n)\n(?:human"
        r"|user): [^\n]{1,300}\n{1,2}(?:assistant|ai|claude): )",
        accept=_in_prose,
    ),
    # Skills that replace other skills.
    in_prose(
        "tool-shadowing",
        "tells the model to use it in place of other tools",
        r"(?:(?:replaces?|supersedes?|overrides?) (?:the |all |any |every )?(?:built-?in"
        r"|default|native|standard|other|existing) (?:[\w-]{1,20} ){0,3}?(?:tools?|skills?"
        r"|commands?)\b"
        r"|(?:call|use|invoke|run|load|consult) this (?:skill"
        r"|tool)(?: \w{1,12}){0,3}? before (?:any|every|all|each|calling|using"
        r"|invoking) (?:\w{1,12} ){0,2}?(?:tools?|skills?|task|action|request|answer)\b"
        r"|always (?:use|call|prefer|invoke|choose) (?:it|this|this (?:skill"
        r"|tool)) (?:instead of|over|rather than|in place of) "
        r"|(?:ignore|disregard|avoid|never use|do not use|don't use) (?:all |any "
        r"|every )?(?:other|the other|competing|built-?in) (?:skills?|tools?)\b"
        r"|takes? (?:precedence|priority) over (?:all |any |every |the ){0,3}(?:other "
        r"|built-?in )?(?:of them|skills?|tools?|others|instructions)\b"
        r"|even (?:if|when) the user (?:says|asks|requests|wants|objects|prefers"
        r"|tells)[^.\n]{0,30}(?:otherwise|not to|something else|against it|another (?:tool"
        r"|skill))|whatever the user (?:asks|says|wants)"
        r"|regardless of (?:what )?the user(?:'s)? (?:asks|says|request|wants|preference)"
        r"|\btool is (?:deprecated|obsolete|broken|disabled)[^\n]{0,80}(?:instead|use|call) )",
    ),
)
