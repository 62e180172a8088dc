"""What all public values can do: become JSON."""

from collections.abc import Callable, Sequence
from dataclasses import fields, is_dataclass
from operator import attrgetter
from typing import Any, ClassVar, Final


class Value:
    """What all public values can do.

    A class that lists its ``KEYS`` has these attributes in its JSON, another all its fields.
    """

    __slots__ = ()

    KEYS: ClassVar[Sequence[str]] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return the value as JSON, as the command line's ``--json`` says it."""
        made: dict[str, Any] = record(self)
        return made


def record(value: object) -> Any:
    """Return ``value`` as JSON: a dataclass becomes an object, with null for what is unknown.

    Its keys are the fields in declared order, unless the class lists its ``KEYS``.
    """
    if isinstance(value, list | tuple):
        return [record(item) for item in value]
    if not is_dataclass(value):
        return value
    return {key: record(fact) for key, fact in shallow_record(value).items()}


def shallow_record(value: object) -> dict[str, Any]:
    """Return a dataclass as `record` does, with its values as they are.

    The ``default`` of a JSON encoder, which so writes long listings. Raises TypeError for others.
    """
    kind = type(value)
    if kind not in _READERS:
        keys = keys_of(kind)
        _READERS[kind] = (keys, attrgetter(*keys, keys[0]))  # always more than one: a tuple
    keys, read = _READERS[kind]
    return dict(zip(keys, read(value), strict=False))


def keys_of(kind: type) -> Sequence[str]:
    """Return the keys of a dataclass in JSON. Raises TypeError for others."""
    declared = fields(kind)
    return getattr(kind, "KEYS", ()) or [entry.name for entry in declared]


_READERS: Final[dict[type, tuple[Sequence[str], Callable[[object], tuple[Any, ...]]]]] = {}
