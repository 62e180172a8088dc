"""What a power cut may leave of recorded calls: a local journaling file system, taken strictly.

- A **file**'s contents are what was written up to its last fsync or fdatasync. Of later writes and
  truncations any subset may have arrived, each write also in part (sectors, a beginning), or as the
  size alone, which reads as zeros. A mode, of a folder too, is durable only by fsync.
- A **name** is durable when its folder was synced since. That ext4 makes the name of a new file
  durable with the file itself is not counted on. Changes of names in one folder happen in their
  order, so a beginning of them arrives; different folders are independent of one another.
- A **rename** or an exchange of two names is one change of both folders: it arrives in both or in
  neither, and only after what happened in either before it.
- File systems that journal metadata in order (ext4, XFS, btrfs) leave only a part of these states,
  those where a beginning of all changes of names arrived: they are among what is tried, and are
  called *ordered*.

Not modelled: times, owners; sectors that can't be read; a disk that lies.
"""

import os
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final, NamedTuple, TypeAlias

from tests.powerloss.recorder import Call
from tests.powerloss.tree import File, Folder, Node, Tree

ROOT: Final = 0
SECTOR: Final = 512

KEPT: Final = 100
"""Contents of a file that are kept to be used again."""


Ranges: TypeAlias = tuple[tuple[int, int], ...]


class Write(NamedTuple):
    """A pending change of a file: of its contents, its size (no data) or its mode."""

    at: int
    kind: str
    number: int
    data: bytes = b""


class Part(NamedTuple):
    """Which write arrived, and of its data which bytes (None: all; the size in any case)."""

    write: Write
    ranges: Ranges | None = None


class Naming(NamedTuple):
    """A change of names: what each of the places, folder and name, stands for afterwards."""

    at: int
    places: tuple[tuple[int, str, int | None], ...]

    @property
    def folders(self) -> set[int]:
        return {folder for folder, _, _ in self.places}


class Sync(NamedTuple):
    """That a file or folder (None: everything) was made durable at a call."""

    at: int
    node: int | None
    kind: str


@dataclass
class Inode:
    """A file, folder or link; of a file what it held, and each write since then."""

    data: bytes = b""
    mode: int = 0
    entries: dict[str, int] | None = None
    target: str | None = None
    writes: list[Write] = field(default_factory=list)
    seen: dict[tuple[tuple[int, Ranges | None], ...], File] = field(default_factory=dict)

    def content(self, parts: tuple[Part, ...]) -> File:
        """Return the file with these writes done to it."""
        key = tuple((part.write.at, part.ranges) for part in parts)
        made = self.seen.get(key)
        if made is None:
            if len(self.seen) >= KEPT:
                self.seen.clear()
            made = self.seen[key] = self._content(parts)
        return made

    def _content(self, parts: Iterable[Part]) -> File:
        data, mode = bytearray(self.data), self.mode
        for (_, kind, number, new), ranges in parts:
            if kind == "chmod":
                mode = number
                continue
            size = number + len(new) if kind == "write" else number
            if len(data) < size:
                data += bytes(size - len(data))
            if kind == "truncate":
                del data[size:]
            for start, end in ((0, len(new)),) if ranges is None else ranges:
                data[number + start : number + end] = new[start:end]
        return File(bytes(data), mode)


class History:
    """Recorded calls, as changes of files and of names; ``start`` is all durable.

    ``without``: indices of calls that made something durable, as if they had not been made.
    """

    def __init__(
        self, base: str, start: Tree, calls: Sequence[Call], without: Collection[int] = ()
    ) -> None:
        self.calls = calls
        self.nodes: list[Inode] = [Inode(entries={})]
        self.namings: list[Naming] = []
        self.syncs: list[Sync] = []
        self.done: list[int] = []
        self.start = start
        self.base = os.path.realpath(base)
        for inner in sorted(start):
            self._add_initial(inner, start[inner])
        self._entries_at_start = [
            None if node.entries is None else dict(node.entries) for node in self.nodes
        ]
        for at, call in enumerate(calls):
            if at not in without:
                self._apply(at, call)

    def _add_initial(self, inner: str, node: Node) -> None:
        folder, name = self._find(os.path.join(self.base, inner))
        if isinstance(node, File):
            made = Inode(data=node.data, mode=node.mode)
        elif isinstance(node, Folder):
            made = Inode(mode=node.mode, entries={})
        else:
            made = Inode(target=node)
        self._entries(folder)[name] = self._new(made)

    def _new(self, node: Inode) -> int:
        self.nodes.append(node)
        return len(self.nodes) - 1

    def _entries(self, folder: int) -> dict[str, int]:
        entries = self.nodes[folder].entries
        assert entries is not None
        return entries

    def _find(self, path: str) -> tuple[int, str]:
        """Return the folder that a path lies in, as it was just then, and its name there."""
        *folders, name = os.path.relpath(path, self.base).split("/")
        at = ROOT
        for one in folders:
            at = self._entries(at)[one]
        return at, name

    def _node(self, path: str) -> int:
        if path == self.base:
            return ROOT
        folder, name = self._find(path)
        return self._entries(folder)[name]

    def _apply(self, at: int, call: Call) -> None:
        if call.kind in {"write", "truncate", "chmod"}:
            self.nodes[self._node(call.path)].writes.append(
                Write(at, call.kind, call.number, call.data)
            )
        elif call.kind in {"fsync", "fdatasync"}:
            self.syncs.append(Sync(at, self._node(call.path), call.kind))
        elif call.kind == "sync":
            self.syncs.append(Sync(at, None, call.kind))
        elif call.kind == "done":
            self.done.append(at)
        else:
            places = self._places(call)
            self.namings.append(Naming(at, places))
            for folder, name, node in places:
                _name(self._entries(folder), name, node)

    def _places(self, call: Call) -> tuple[tuple[int, str, int | None], ...]:
        folder, name = self._find(call.path)
        there = self._entries(folder).get(name)
        if call.kind in {"unlink", "rmdir"}:
            return ((folder, name, None),)
        if call.kind in {"rename", "exchange", "link"}:
            other, new_name = self._find(call.other)
            back = self._entries(other)[new_name] if call.kind == "exchange" else None
            moved = (other, new_name, there)
            return (moved,) if call.kind == "link" else ((folder, name, back), moved)
        made = Inode(mode=call.number)
        if call.kind == "mkdir":
            made = Inode(mode=call.number, entries={})
        elif call.kind == "symlink":
            made = Inode(target=os.fsdecode(call.data))
        return ((folder, name, self._new(made)),)

    @cached_property
    def needs(self) -> list[frozenset[int]]:
        """For each naming those that must have arrived for it to arrive, itself among them."""
        last: dict[int, int] = {}
        needs: list[frozenset[int]] = []
        for number, naming in enumerate(self.namings):
            before = [needs[last[folder]] for folder in naming.folders if folder in last]
            needs.append(frozenset({number}).union(*before))
            last.update(dict.fromkeys(naming.folders, number))
        return needs

    def pending(self, cut: int) -> "Pending":
        """Return what the calls up to ``cut`` (not included) left undecided."""
        data_since, mode_since = self._synced(cut)
        durable: set[int] = set()
        for number, naming in enumerate(self.namings):
            if any(naming.at < data_since.get(folder, 0) for folder in naming.folders):
                durable |= self.needs[number]
        names = tuple(number for number, one in enumerate(self.namings) if one.at < cut)
        kept: dict[int, tuple[Part, ...]] = {}
        open_: dict[int, tuple[Write, ...]] = {}
        for number, node in enumerate(self.nodes):
            for write in node.writes:
                since = mode_since if write.kind == "chmod" else data_since
                if write.at < since.get(number, 0):
                    kept[number] = (*kept.get(number, ()), Part(write))
                elif write.at < cut:
                    open_[number] = (*open_.get(number, ()), write)
        return Pending(frozenset(durable), names, kept, open_)

    def _synced(self, cut: int) -> tuple[dict[int, int], dict[int, int]]:
        """Return when each file or folder was synced last before ``cut``, data and mode."""
        data: dict[int, int] = {}
        mode: dict[int, int] = {}
        for at, node, kind in self.syncs:
            if at < cut:
                nodes = range(len(self.nodes)) if node is None else (node,)
                data.update(dict.fromkeys(nodes, at))
                if kind != "fdatasync":
                    mode.update(dict.fromkeys(nodes, at))
        return data, mode

    def tree(self, names: Iterable[int], data: Mapping[int, tuple[Part, ...]]) -> Tree:
        """Return what is on the disk when these changes of names and of files arrived."""
        entries = {
            number: dict(start)
            for number, start in enumerate(self._entries_at_start)
            if start is not None
        }
        for number in sorted(names):
            for folder, name, node in self.namings[number].places:
                _name(entries.setdefault(folder, {}), name, node)
        tree: Tree = {}
        self._fill(tree, "", ROOT, entries, data)
        return tree

    def _fill(
        self,
        tree: Tree,
        inner: str,
        folder: int,
        entries: Mapping[int, Mapping[str, int]],
        data: Mapping[int, tuple[Part, ...]],
    ) -> None:
        for name, number in entries.get(folder, {}).items():
            path, node = inner + name, self.nodes[number]
            if node.entries is not None:
                tree[path] = Folder(node.content(data.get(number, ())).mode)
                self._fill(tree, f"{path}/", number, entries, data)
            elif node.target is not None:
                tree[path] = node.target
            else:
                tree[path] = node.content(data.get(number, ()))


class Pending(NamedTuple):
    """At a cut: what has arrived for sure, and what may have.

    ``names``: of all changes of names so far; ``durable``: those that have arrived; ``kept`` and
    ``open``: by file the writes that have arrived, and that may have.
    """

    durable: frozenset[int]
    names: tuple[int, ...]
    kept: Mapping[int, tuple[Part, ...]]
    open: Mapping[int, tuple[Write, ...]]


def _name(entries: dict[str, int], name: str, node: int | None) -> None:
    if node is None:
        entries.pop(name, None)
    else:
        entries[name] = node
