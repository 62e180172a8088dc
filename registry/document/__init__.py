"""Read, check and write SKILL.md files."""

from registry.document.codes import CODES
from registry.document.parse import FRONT_MATTER_BYTES, parse_document, parse_text

__all__ = ["CODES", "FRONT_MATTER_BYTES", "parse_document", "parse_text"]
