"""The command line: parse, call one operation of `SkillRegistry`, render its value."""

from collections.abc import Sequence
from typing import NoReturn

PROGRAM = "skill-registry"


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run the command line and exit with its status."""
    from registry.cli.app import root

    root.main(arguments, prog_name=PROGRAM)
