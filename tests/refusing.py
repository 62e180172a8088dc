"""Let the system refuse to open, list or look at a place, however a call names it."""

import os
from collections.abc import Callable
from typing import Any

import pytest

from registry.disk import beneath


def meant(path: Any, dir_fd: int | None = None) -> str:
    """Return the absolute path that a system call is about."""
    if isinstance(path, int):
        return os.readlink(f"/proc/self/fd/{path}")
    if dir_fd is not None and not os.path.isabs(path):
        path = os.path.join(os.readlink(f"/proc/self/fd/{dir_fd}"), path)
    return os.path.normpath(os.path.abspath(path))


def refuse(
    patch: pytest.MonkeyPatch,
    place: str | os.PathLike[str],
    error: OSError,
    *calls: str,
    when: Callable[[int], bool] = lambda _number: True,
) -> list[str]:
    """Let ``calls`` (functions of `os`) on ``place`` fail; return those that did, as they come.

    ``when`` is given how many calls there were, this one included.
    """
    refused: list[str] = []
    asked: list[str] = []
    target = os.path.realpath(place)

    def wrap(name: str) -> Callable[..., Any]:
        real = getattr(os, name)

        def call(path: Any, *rest: Any, **more: Any) -> Any:
            if meant(path, more.get("dir_fd")) == target:
                asked.append(name)
                if when(len(asked)):
                    refused.append(name)
                    raise error
            return real(path, *rest, **more)

        return call

    # So that every part of a path is opened where it can be refused.
    patch.setattr(beneath, "openat2", lambda: None)
    for name in calls:
        patch.setattr(os, name, wrap(name))
    return refused
