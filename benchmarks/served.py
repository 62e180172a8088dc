"""The server that is measured: the tests' own, or the one that they are told of."""

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tests.databases import Databases
from tests.servers import VARIABLE, Server


@contextmanager
def server() -> Iterator[Databases]:
    """Give the server, with its usual settings; one of our own ends with the block."""
    named = os.environ.get(VARIABLE)
    own = None if named else Server(durable=True).start()
    try:
        with closing(Databases(named or own.url)) as databases:
            yield databases
    finally:
        if own is not None:
            own.stop()


def print_report(report: Callable[[str, int, float], Iterator[str]], *given: Any) -> None:
    """Print the lines of a report about a new database of the server, and drop it."""
    with server() as databases:
        url = databases.new()
        for line in report(url, *given):
            print(line, flush=True)
        databases.drop(url)
