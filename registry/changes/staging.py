"""Lay the new content of a change down beside the source, durably, before anything is published."""

import os
from collections.abc import Mapping

from registry.disk.atomic import sync_folder, write_file


def write_tree(tree: str, files: Mapping[str, tuple[bytes, int]]) -> None:
    """Write files (relative path: content, mode) below ``tree``, replacing what is there."""
    for path, (data, mode) in files.items():
        target = f"{tree}/{path}"
        os.makedirs(os.path.dirname(target), exist_ok=True)
        write_file(target, data, mode)


def sync_tree(tree: str) -> None:
    """Make the names of all folders of ``tree`` durable, bottom-up, and its own name last."""
    for folder, _, _ in os.walk(tree, topdown=False):
        sync_folder(folder)
    sync_folder(os.path.dirname(tree))
