"""What the tests of toolsets share."""

import os
from collections.abc import Callable

import pytest


@pytest.fixture
def deny(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], list[str]]:
    """Refuse permission to open files of a name; return those that were refused, as they are."""

    def refuse(name: str) -> list[str]:
        refused: list[str] = []
        real = os.open

        def call(asked, *rest, **named):  # type: ignore[no-untyped-def]
            if os.path.basename(os.fspath(asked)) == name:
                refused.append(os.fspath(asked))
                raise PermissionError(13, "Permission denied", asked)
            return real(asked, *rest, **named)

        monkeypatch.setattr(os, "open", call)
        return refused

    return refuse
