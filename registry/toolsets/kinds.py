"""What a method is given: paths as texts, lists that are lists; and in words what was wrong."""

import inspect
import os
from collections.abc import Callable, Collection, Mapping
from dataclasses import fields, is_dataclass
from functools import wraps
from itertools import chain
from types import FunctionType, UnionType
from typing import Any, Final, Literal, TypeVar, Union, get_args, get_origin

from registry.core import UNEXPECTED
from registry.errors import RegistryError, UsageProblem
from registry.text import is_encodable

MOST: Final = 1 << 63
"""No number is as large."""

C = TypeVar("C")


def explaining(facade: type[C]) -> type[C]:
    """Let the methods of a class with a ``core`` say what was wrong with what they were given.

    What no method expects is a value of a wrong kind: an argument's (`UsageProblem`), or one in a
    damaged database (`DatabaseProblem`). Neither is looked for before something fails, but for what
    would not fail: text is a list of letters. Paths become text.
    """
    for name, method in list(vars(facade).items()):
        if inspect.isfunction(method) and not name.startswith("_") and name != "close":
            setattr(facade, name, _explaining(method))
    return facade


def _explaining(method: FunctionType) -> Callable[..., Any]:
    code = method.__code__
    positions = code.co_varnames[1 : code.co_argcount]
    lists = {name for name, kind in method.__annotations__.items() if _is_list(kind)}

    @wraps(method)
    def call(registry: Any, *arguments: Any, **named: Any) -> Any:
        registry.core.check_open()
        for name, given in chain(zip(positions, arguments, strict=False), named.items()):
            if name in lists and isinstance(given, str | bytes | os.PathLike):
                raise UsageProblem(message=f"{name} must be a list, not {_words(given)}")
        arguments = tuple(map(_as_text, arguments))
        named = {name: _as_text(value) for name, value in named.items()}
        try:
            return method(registry, *arguments, **named)
        except RegistryError:
            raise
        except UNEXPECTED as error:
            message = misuse(method, (registry, *arguments), named)
            problem = UsageProblem(message=message) if message else registry.core.damage()
            if problem is None:
                raise
            raise problem from error

    return call


def _is_list(annotation: Any) -> bool:
    """Tell whether lists are expected, and no text."""
    kinds = get_args(annotation) if get_origin(annotation) in {Union, UnionType} else [annotation]
    return str not in kinds and any(
        inspect.isclass(origin := get_origin(kind))
        and issubclass(origin, Collection)
        and not issubclass(origin, Mapping)
        for kind in kinds
    )


def _as_text(value: Any) -> Any:
    """Return paths as text, also those in a list."""
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if isinstance(value, list | tuple) and any(isinstance(one, os.PathLike) for one in value):
        return [os.fspath(one) if isinstance(one, os.PathLike) else one for one in value]
    return value


def misuse(method: Callable[..., Any], given: tuple[Any, ...], named: dict[str, Any]) -> str | None:
    """Return what is wrong with the arguments of a call, by the method's annotations, or None."""
    signature = inspect.signature(method)
    try:
        bound = signature.bind(*given, **named).arguments
    except TypeError:
        return None  # it was called wrongly, whatever it was given
    for name, value in bound.items():
        parameter = signature.parameters[name]
        values = value if parameter.kind is parameter.VAR_POSITIONAL else [value]
        for one in values:
            if not _fits(one, parameter.annotation):
                return f"{name} can't be {_words(one)}"
    return None


def _fits(value: Any, kind: Any) -> bool:
    origin, inner = get_origin(kind), get_args(kind)
    if origin in {Union, UnionType}:
        fits = any(_fits(value, one) for one in inner)
    elif origin is Literal:
        fits = any(value is one or value == one for one in inner)
    elif kind is None or kind is type(None):
        fits = value is None
    elif kind is str:
        fits = isinstance(value, str) and is_encodable(value)
    elif kind is int:
        fits = isinstance(value, int) and -MOST <= value < MOST
    elif inspect.isclass(origin) and issubclass(origin, Mapping):
        fits = isinstance(value, Mapping) and all(
            _fits(key, inner[0]) and _fits(one, inner[1]) for key, one in value.items()
        )
    elif inspect.isclass(origin) and issubclass(origin, Collection):
        whole = isinstance(value, Collection) and not isinstance(value, str | bytes)
        fits = whole and all(_fits(one, inner[0]) for one in value)
    elif kind is Any or kind is inspect.Parameter.empty or not inspect.isclass(kind):
        fits = True  # a name of a kind that is only imported for types
    elif is_dataclass(kind) and isinstance(value, kind):
        fits = all(_fits(getattr(value, one.name), one.type) for one in fields(kind))
    else:
        fits = isinstance(value, kind)
    return fits


def _words(value: Any) -> str:
    if isinstance(value, str):
        return ascii(value[:100])
    if isinstance(value, float) or (isinstance(value, int) and -MOST <= value < MOST):
        return str(value)
    return "so large a number" if isinstance(value, int) else f"a {type(value).__name__}"
