"""Differences between two versions of a file, for people and programs."""

import difflib
from collections.abc import Iterator


def difference(path: str, was: bytes, now: bytes, before: str, after: str) -> Iterator[str]:
    """Yield the lines of a unified diff of one file.

    ``was`` and ``now`` are the two versions; ``before`` and ``after`` are the names that the diff
    shows for them.
    """
    try:
        old, new = [data.decode().splitlines(keepends=True) for data in (was, now)]
    except UnicodeDecodeError:
        yield f"Binary files {path} of {before} and {after} differ\n"
        return
    for line in difflib.unified_diff(old, new, f"{path} ({before})", f"{path} ({after})"):
        yield line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n"
