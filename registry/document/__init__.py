"""Read, check and write SKILL.md files.

Internal, as `registry` says: what is here may change with any version.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from registry.document.codes import CODES
    from registry.document.parse import FRONT_MATTER_BYTES, parse_document, parse_text

__all__ = ["CODES", "FRONT_MATTER_BYTES", "parse_document", "parse_text"]


def __getattr__(name: str) -> object:
    """Load the parser when it is asked for: a listing that only reads dates does without."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from registry.document import codes, parse

    return getattr(codes if name == "CODES" else parse, name)
