"""What a database can hold of what it is asked with."""

from collections.abc import Sequence
from typing import Final

MAX_INTEGER: Final = (1 << 63) - 1
"""The largest number that a database holds."""


def storable(parameters: Sequence[object]) -> list[object]:
    """Replace what no stored value holds, so that it just finds nothing.

    Such are surrogates and NUL in a text, and numbers of more than 64 bits.
    """
    return [
        value.encode("utf-8", "replace").decode().replace("\0", "\ufffd")
        if isinstance(value, str)
        else min(max(value, -MAX_INTEGER - 1), MAX_INTEGER)
        if isinstance(value, int)
        else value
        for value in parameters
    ]
