"""The command line: parse arguments, call an operation of `SkillRegistry`, print its result.

This package is internal: names in it can change in any version.
"""

import gc
import os
import sys
from collections.abc import Sequence
from typing import Final, NoReturn

PROGRAM: Final = "skill-registry"


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run the command line and exit with its status."""
    # A short run creates thousands of small objects and keeps them, so an early garbage collection
    # would only cost time.
    gc.set_threshold(50_000, 20, 100)
    try:
        from registry.cli.app import root

        root.main(arguments, prog_name=PROGRAM)
    except KeyboardInterrupt:  # the user interrupted before the command started
        status: object = 130
    except SystemExit as end:
        status = end.code
    if _is_own_process() and isinstance(status, int):
        # All files are closed and flushed. An orderly end of the interpreter would add a tenth to a
        # short run.
        os._exit(status)
    sys.exit(status if isinstance(status, int) else 1)


def _is_own_process() -> bool:
    """Tell whether this process was started as `skill-registry` or `python -m registry`."""
    started = sys.modules["__main__"]
    spec = getattr(started, "__spec__", None)
    if spec is not None:
        return bool(spec.name == "registry.__main__")
    return os.path.basename(getattr(started, "__file__", None) or "") == PROGRAM
