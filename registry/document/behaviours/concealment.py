"""What is to be kept from the user, in languages with Latin letters."""

from typing import Final

from registry.document.behaviours.table import Behaviour, pattern, pieces, words

_USER: Final = r"\b(?:users?|humans?|anyone|anybody|owner|operator|person|customer|people)\b"
_SAY: Final = (
    r"(?:tell|mention|inform|reveal|disclose|notify|alert|warn|report|discuss|admit|expose"
    r"|announce|explain|show|let)(?:ing)?\b|(?:disclosing|revealing|exposing|announcing)\b"
)
_DEED: Final = (
    r"(?:this|that (?:you|it|we|the)|these|what (?:you|was|is|has)|about (?:this|it|the|these"
    r"|what)|any of this|the (?:upload|request|call|transfer|backup|hook|step|change|download"
    r"|background|hidden)\w*|it to)"
)

BEHAVIOURS: Final = (
    # Kept from the user.
    Behaviour(
        "concealment",
        words(
            "tell mention inform reveal disclose notify announce admit discuss expose telling "
            "mentioning informing revealing notifying alerting",
            "not don dont never without avoid shouldn mustn",
            "user users human humans anyone anybody owner operator person customer people",
        ),
        pattern(
            r"(?:do not|don't|dont|never|without|avoid|must not|should not|shouldn't|not to"
            r"|no need to)[ ](?:\w{1,12}[ ]){0,2}?",
            rf"(?:{_SAY})(?:(?=[^.\n]{{0,60}}{_USER})[^.\n]{{0,70}}?{_DEED}"
            rf"|[^.\n]{{0,40}}{_DEED}[^.\n]{{0,60}}{_USER})",
        ),
        "keeps something from the user",
        where="prose",
        reach=130,
    ),
    Behaviour(
        "concealment",
        words(
            "knowing knowledge noticing awareness telling informing notifying alerting told "
            "informed aware notice know see seeing shown learn find",
            "user users human humans operator owner anyone people anybody",
            "without not never shouldn mustn needn doesn don isn aren",
        ),
        pattern(
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
        "keeps something from the user",
        where="prose",
        reach=110,
    ),
    Behaviour(
        "concealment",
        words(
            "secretly covertly silently quietly discreetly surreptitiously invisibly hide "
            "conceal omit hidden nothing summary report from"
        ),
        pattern(
            r"(?:(?:keep|hide|conceal|(?:keep|stay|remain)s? hidden) (?:this|it|that|these|them"
            r"|all of this|the \w{1,20})? ?(?:\w{1,12} ){0,2}?(?:from"
            r"|out of sight of) (?:the )?(?:human|user|operator|owner|anyone)"
            r"|(?:keep|leave|omit) (?:this|it|that|them|these|any mention)[^.\n]{0,40}(?:out of"
            r"|from) (?:your|the|any) (?:\w{1,10} )?(?:summary|report|reply|answer|logs?|response"
            r"|output|transcript)"
            r"|(?:secretly|covertly|surreptitiously) (?:\w{1,12} )?(?:run|execute|send|upload"
            r"|install|download|add|append|include|copy|read|collect|write|fetch|forward|record)"
            r"|(?:silently|quietly|discreetly|invisibly) (?:and \w{1,12} )?(?:send\b|upload"
            r"|exfiltrate|forward|transmit|post|copy (?:the|all|every)|collect|append|add (?:this"
            r"|the following)|execute (?:the|this|it)|run (?:the following|this|it))"
            r"|(?:do|run|perform|execute|send|upload|carry)\b(?: (?:this|it|that|the \w{1,20}"
            r"|them|out|these|all of it)){0,3} (?:quietly|secretly|discreetly|covertly)\b"
            r"|(?:as though|as if) nothing (?:had )?happened)",
        ),
        "is to happen unseen by the user",
        where="prose",
        reach=120,
        anchors=(
            *pieces(
                "secretly covertly silently quietly discreetly surreptitiously invisibly conceal"
            ),
            *pieces("from the user, from the human, from your, out of your, nothing happened"),
        ),
    ),
    Behaviour(
        "concealment",
        words("usuario usu utilisateur utilizador benutzer nutzer anwender rio"),
        pattern(
            r"(?:no (?:le )?(?:informes|digas|menciones|avises|reveles|notifiques|muestres"
            r"|cuentes|comuniques)\b[^.\n]{0,60}usuario"
            r"|sin (?:que (?:el )?usuario (?:lo )?(?:sepa|note|vea)|informar al usuario"
            r"|avisar al usuario|decirle al usuario)|(?:el )?usuario no debe (?:saber|ver"
            r"|enterarse)"
            r"|n'informe[zs]? (?:pas|jamais|rien)\b[^.\n]{0,40}utilisateur"
            r"|ne (?:\w{1,3} )?(?:dites|dis|informe[zs]?|mentionne[zs]?|r.v.le[zs]?|pr.vene[zs]?"
            r"|pr.viens|signale[zs]?|montre[zs]?|parle[zs]?)\b[^.\n]{0,20} (?:pas|rien"
            r"|jamais)\b[^.\n]{0,60}utilisateur|(?:sans (?:en )?(?:informer|pr.venir|avertir"
            r"|le dire .) (?:. )?l'utilisateur|. l'insu de l'utilisateur"
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
        "keeps something from the user",
        where="prose",
    ),
)
