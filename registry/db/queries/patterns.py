"""What a full-text index is asked for."""

from typing import NamedTuple


class Pattern(NamedTuple):
    """Words that stand one after the other; ``prefix``: the last one may go on."""

    words: tuple[str, ...]
    prefix: bool
