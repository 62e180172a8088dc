"""Words that a sentence is built of and that say nothing about what is looked for.

Of the languages that skills and questions are written in most. Not among them are
those that name something of the craft: "go", "ai", "ci", "nas", "man".
"""

import re
from typing import Final

ENGLISH: Final = frozenset(
    """a about again all also always am an and another any anybody anyone anything are as ask at
    aren away back be because been before being but by can could couldn d did didn do does doesn
    doing don each either else ever every everybody everyone everything few find for forever from
    get gets getting give had hadn has hasn have haven having he her here him his how however i if
    in instead into is isn it its itself just keep kind know let like ll look looking lot m make
    makes making many may maybe me might more most much must my myself need needs never no nobody
    none nor not nothing now of off often ok okay on once one ones only or other others our out over
    own please put quite re really s said same say see shall she should shouldn show since skill
    skills so some somebody someone something sometimes somewhere still such sure t take takes tell
    than that the their them then there these they thing things think this those though through to
    too try trying under until up upon us use used uses using ve very via want wants was wasn way we
    well went were weren what whatever when where whether which while who whole whom whose why will
    with within without won would wouldn yet you your yours""".split()
)

OTHERS: Final = frozenset(
    # German
    """aber alle als am auch auf aus bei beim bekomme bin bis bitte brauche da damit dann das dass
    dein deine dem den denn der deren des dich dir doch durch ein eine einem einen einer eines er
    es etwas euch für gegen habe haben hat hier ich ihm ihn ihr ihre im immer ist jede jeder kann
    kannst kein keine können machen mein meine meinem meinen meiner mich mir mit möchte muss nach
    nicht noch nur ob oder ohne schon sehr sein seine sich sie sind soll über um und uns unser
    unsere unter vom von vor wann warum weil welche welcher wenn werden wie wieder will wir wird
    wo zu zum zur zwischen"""
    # French
    """ alors au aucun aussi aux avec avoir ce ces cet cette chez comme comment dans de depuis des
    donc du elle elles en encore entre est et être faire fait faut il ils je l la le les leur leurs
    lui ma mais mes moi mon ne nos notre nous où par pas peut plus pour pourquoi puis qu quand que
    quel quelle qui quoi sa sans ses si son sont sous suis ta te tes ton tous tout toute toutes très
    tu un une vers veux voici vos votre vous"""
    # Spanish, Portuguese
    """ al algo ante antes aquí así como con contra cual cuál cuando cuándo cómo da das de del
    desde dónde e el él ella ellas ellos en entre era es esa ese eso esta está están este esto
    estos fue hacer hacia han hasta hay la las le les lo los mas más mi mis muy necesito nos o
    otra otro para pero por porque puede puedo que qué quiero se ser si sí sin sobre son soy su
    sus también te tengo tiene todo todos tu tus un una uno y ya yo
    ao aos até com ela ele eles em essa esse estou eu fazer foi isso isto já mais mas me meu
    meus minha minhas muito na não no nos ou os para pela pelas pelo pelos pode posso preciso
    qual quais quando quem quero seu seus são só sua suas também tem tenho ter um uma umas uns
    você vocês"""
    # Italian
    """ agli alla alle anche che chi col come cosa così da dalla degli dei del della delle di dove e
    gli ho i il la le lo loro ma mi mia mie miei mio nel nella nelle noi non ogni per perché più può
    quale quando quanto quella quello questa questo se sei si sono su sulla sul sull suo tra tutti
    tutto un una uno vorrei"""
    # Russian
    """ а без бы был была было быть в вам вас ваш весь во вот все всё вы где да для до его ее её
    ей если есть ещё же за и из или им их к как какой когда который кто ли мне мой может можно мой
    моя моё мои мы на над надо нам нас наш не нет ни но ну нужно о об он она они оно от по под при
    с сделать со так такой там то тот ту ты у уже хочу чего чей чем что чтобы эта эти это этот
    я""".split()
)

FUNCTION_WORDS: Final = ENGLISH | OTHERS

FUNCTION_CHARACTERS: Final = re.compile("[的了吗呢吧啊呀嘛们我你您他她它这那哪么のをはがにでとへ]+")
"""Characters of Chinese, and particles of Japanese, at which a run of text is cut."""
