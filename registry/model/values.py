"""What all public values can do: become JSON, and tell a web framework what JSON that is."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from functools import cache
from operator import attrgetter
from types import MappingProxyType
from typing import Any, ClassVar, Final, get_args, get_origin, get_type_hints


class Value:
    """What all public values can do.

    A class that lists its ``KEYS`` has these attributes in its JSON, another all its fields.
    ``JSON_TYPES`` are the types of those that are something else there than in Python.
    """

    __slots__ = ()

    KEYS: ClassVar[Sequence[str]] = ()
    JSON_TYPES: ClassVar[Mapping[str, Any]] = MappingProxyType({})

    def to_dict(self) -> dict[str, Any]:
        """Return the value as JSON, as the command line's ``--json`` says it."""
        made: dict[str, Any] = record(self)
        return made

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: Any) -> Any:
        """Let pydantic, and so FastAPI, write the value as `to_dict` does, and say so in schemas.

        It calls this where it is installed; what it reads are the fields, as of any dataclass.
        """
        from pydantic_core import core_schema

        schema = handler(source)
        kind: Any = cls
        told = handler.resolve_ref_schema(handler.generate_schema(_json_type(kind)))
        # Without a name of its own, so that the schema has the value's.
        unnamed = {key: part for key, part in told.items() if key != "ref"}
        handler.resolve_ref_schema(schema)["serialization"] = (
            core_schema.plain_serializer_function_ser_schema(cls.to_dict, return_schema=unnamed)
        )
        return schema


@cache
def _json_type(kind: type[Any]) -> Any:
    """Return the type of what ``to_dict`` makes of such values; always one, which has one name."""
    from typing_extensions import TypedDict  # pydantic has it, and takes no other

    keys = {key: _in_json(_type_of(kind, key)) for key in keys_of(kind)}
    return TypedDict(kind.__name__, {**keys, **kind.JSON_TYPES})  # type: ignore[operator]


def _type_of(kind: type[Any], key: str) -> Any:
    attribute = getattr(kind, key, None)
    if isinstance(attribute, property):
        return get_type_hints(attribute.fget)["return"]
    return get_type_hints(kind)[key]


def _in_json(hint: Any) -> Any:
    if get_origin(hint) in {tuple, Sequence}:
        return list[_in_json(get_args(hint)[0])]  # type: ignore[misc]
    is_value = isinstance(hint, type) and issubclass(hint, Value)
    return _json_type(hint) if is_value else hint


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
