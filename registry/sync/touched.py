"""From paths that file events name to what has to be looked at again, and no more than that."""

import os
from collections.abc import Iterable, Sequence
from typing import Final

from registry.db.interface import Reader
from registry.db.read.skills import has_below, innermost
from registry.disk.paths import ROOT, is_below, is_ignored
from registry.model import DOCUMENT_NAMES, Source

MAX_SKILLS: Final = 20
"""More skills than this are seen to by one walk of their source."""


def by_source(paths: Iterable[str], sources: Sequence[Source]) -> dict[str, list[str]]:
    """Return the paths by the name of the source they lie in, the innermost where sources nest.

    Paths in folders that are passed over are left out.
    """
    found: dict[str, list[str]] = {}
    for path in paths:
        holding = [source for source in sources if is_below(path, source.path)]
        if holding:
            source = max(holding, key=lambda one: len(one.path))
            folders = os.path.relpath(os.path.dirname(path), source.path).split(os.sep)
            if not any(is_ignored(folder) for folder in folders):
                found.setdefault(source.name, []).append(path)
    return found


def touched_skills(reader: Reader, source: Source, paths: Sequence[str]) -> list[str] | None:
    """Return the folders of the skills whose own files were touched, none else.

    None: a skill may have come, gone or moved, so that the whole source has to be walked.
    """
    folders: dict[str, None] = {}
    for path in paths:
        below = os.path.relpath(path, source.path)
        folder = innermost(reader, source.id, below)
        if folder is None or _may_be_more(reader, source, folder, path, below):
            return None
        folders[folder] = None
        if len(folders) > MAX_SKILLS:
            return None
    return list(folders)


def _may_be_more(reader: Reader, source: Source, folder: str, path: str, below: str) -> bool:
    """Tell whether the event may be about another skill than the one in ``folder``."""
    name = os.path.basename(path)
    inside = os.path.dirname(below) or ROOT
    if os.path.isdir(path) or os.path.islink(path) or (name in DOCUMENT_NAMES and inside != folder):
        return True
    if name in DOCUMENT_NAMES and not os.path.lexists(path):
        return True
    # What is gone may have been a folder with skills in it.
    return not os.path.lexists(path) and has_below(reader, source.id, below)
