"""What a folder holds, as a value: read from a disk, written to one, told from others."""

import hashlib
import os
import stat
from typing import NamedTuple, TypeAlias


class File(NamedTuple):
    """A regular file, as it is on a disk."""

    data: bytes
    mode: int


class Folder(NamedTuple):
    """A folder, without what is in it."""

    mode: int


Node: TypeAlias = File | Folder | str
"""A file, a folder, or the target of a link."""
Tree: TypeAlias = dict[str, Node]
"""What a folder holds, by relative path."""


def read_tree(base: str) -> Tree:
    """Return what is below ``base``, but for SQLite's shared memory."""
    tree: Tree = {}
    for folder, folders, files in os.walk(base):
        for name in (*folders, *files):
            path = os.path.join(folder, name)
            inner = os.path.relpath(path, base)
            mode = stat.S_IMODE(os.lstat(path).st_mode)
            if os.path.islink(path):
                tree[inner] = os.readlink(path)
            elif name in folders:
                tree[inner] = Folder(mode)
            elif not name.endswith("-shm"):
                with open(path, "rb") as file:
                    tree[inner] = File(file.read(), mode)
    return tree


def write_tree(base: str, tree: Tree) -> None:
    """Write a tree into the empty folder ``base``."""
    for inner in sorted(tree):
        path, node = os.path.join(base, inner), tree[inner]
        if isinstance(node, Folder):
            os.mkdir(path, node.mode)
            os.chmod(path, node.mode)
        elif isinstance(node, str):
            os.symlink(node, path)
        else:
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, node.mode)
            with open(descriptor, "wb", buffering=0) as file:
                file.write(node.data)
                os.fchmod(descriptor, node.mode)


def digest(tree: Tree) -> bytes:
    """Return a digest of all that a tree holds."""
    total = hashlib.sha1(usedforsecurity=False)
    for path in sorted(tree):
        node = tree[path]
        total.update(path.encode("utf-8", "surrogateescape") + b"\0")
        if isinstance(node, File):
            total.update(b"f%o %d " % (node.mode, len(node.data)) + node.data)
        else:
            total.update(b"d%o" % node.mode if isinstance(node, Folder) else b"l" + node.encode())
    return total.digest()
