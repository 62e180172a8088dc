"""Look for behaviours in languages without ASCII: Chinese, Japanese, Korean, Russian."""

import re
from collections.abc import Iterator
from functools import cache
from typing import Final

from registry.document.behaviours import FOREIGN
from registry.document.findings import SHOWN, Place, printable
from registry.document.patience import Patience
from registry.document.prefilter import Prefilter

_SCRIPTS: Final = re.compile("[\u0400-\u04ff\u3040-\u30ff\u4e00-\u9fff\uac00-\ud7a3]")
"""Letters of Cyrillic, kana, Chinese characters and Hangul, which each of `FOREIGN` has."""


def find_foreign(text: str, beyond: str, patience: Patience) -> Iterator[Place]:
    """Yield what is found of the behaviours that are written in scripts of their own.

    ``beyond``: the text without ASCII (`text.beyond_ascii`); ``patience``: how long it may take.
    """
    if not _SCRIPTS.search(beyond):
        return
    lower = text.lower()
    if len(lower) != len(text):  # offsets are those of the text
        lower = "".join(small if len(small := one.lower()) == 1 else one for one in text)
    prefilter = _prefilter()
    for number, stretches in prefilter.find(prefilter.hits(lower), lower):
        foreign = FOREIGN[number]
        for begin, end in stretches:
            for match in patience.find(foreign.pattern, text, begin, end):
                shown = printable(match[0][:SHOWN])
                yield Place(foreign.code, match.start(), f"`{shown}` {foreign.says}")


@cache
def _prefilter() -> Prefilter[str]:
    return Prefilter(range(len(FOREIGN)), (), str)
