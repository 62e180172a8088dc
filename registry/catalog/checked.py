"""What a check found, of any number of skills: kept small, and unpacked skill by skill."""

import json
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import ClassVar, Final, NamedTuple, overload

from registry.model import Diagnostic, Value

_FIELDS: Final = attrgetter("code", "severity", "message", "line", "fix", "path")


@dataclass(frozen=True, slots=True)
class Checked(Value):
    """The findings about one skill, the worst first; ``path`` is its folder.

    ``root`` is the folder from which it was reached by handles; empty where nothing was read.
    """

    KEYS: ClassVar = ("name", "path", "findings")

    name: str
    path: str
    findings: Sequence[Diagnostic]
    root: str = ""


class _Packed(NamedTuple):
    name: str
    path: str
    root: str
    findings: bytes


class Checks(Sequence[Checked]):
    """Skills that were checked, by name. Each is made anew when it is asked for.

    Of a hundred thousand skills there are a million findings, most of which say nearly the same.
    """

    def __init__(self, checked: Iterable[Checked]) -> None:
        self._packed = sorted(map(_pack, checked))

    def __len__(self) -> int:
        return len(self._packed)

    @overload
    def __getitem__(self, index: int) -> Checked: ...
    @overload
    def __getitem__(self, index: slice) -> list[Checked]: ...
    def __getitem__(self, index: int | slice) -> Checked | list[Checked]:
        if isinstance(index, slice):
            return list(map(_unpack, self._packed[index]))
        return _unpack(self._packed[index])


def _pack(one: Checked) -> _Packed:
    findings = zlib.compress(json.dumps(list(map(_FIELDS, one.findings))).encode(), 1)
    return _Packed(one.name, one.path, one.root, findings)


def _unpack(one: _Packed) -> Checked:
    findings = [Diagnostic(*facts) for facts in json.loads(zlib.decompress(one.findings).decode())]
    return Checked(one.name, one.path, findings, one.root)
