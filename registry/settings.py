"""Settings: a YAML file in which all keys are optional.

For an unknown key, the error names a similar key.
"""

import os
import stat
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, is_dataclass
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias, TypeVar, get_args, get_origin, get_type_hints

from registry.errors import SettingsProblem
from registry.text import tag_key

APPLICATION = "skill-registry"
SETTINGS_BYTES = 1 << 20

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of one skill.

    ``depth`` is the number of folders from the source to the skill's folder. ``document_bytes`` and
    ``skill_bytes`` are in bytes.
    """

    document_bytes: int = 1 << 20
    files: int = 512
    skill_bytes: int = 16 << 20
    depth: int = 16


Names: TypeAlias = frozenset[str]
Mode: TypeAlias = Literal["capability", "tags", "explicit", "none"]
Unknown: TypeAlias = Literal["allow", "deny", "warn"]


@dataclass(frozen=True, slots=True)
class GlobalIngest:
    """Which skills of personal, community and bundled sources a personality sees.

    ``allow`` and ``deny`` contain skills as ``name`` or ``source/name``. Tags are casefolded, as
    stored tags are.
    """

    mode: Mode = "capability"
    allow: Names = frozenset()
    deny: Names = frozenset()
    accept_tags: Names = frozenset()
    reject_tags: Names = frozenset()
    fallback_unknown: Unknown = "allow"


@dataclass(frozen=True, slots=True)
class Personality:
    """A named visibility policy: its tools, its team source, and the skills that it sees."""

    name: str
    toolset: Names = frozenset()
    team: str | None = None
    global_ingest: GlobalIngest = field(default_factory=GlobalIngest)


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings.

    ``usage`` counts how often tools use each skill. ``store_files`` stores the bytes of supporting
    files in the database. ``host`` is the name of this machine on a shared server, by default its
    network name. ``tool_description_chars`` is the maximum length of a tool's description that
    lists the available skills, in characters. ``strict`` uses, in MCP's ``skills/list``, only the
    front matter types that strict clients accept. ``source_kinds`` has the enabled kinds of remote
    sources that packages add (`remotes.kinds`). ``hosts`` has short names for the address before
    ``owner/repo``. ``tokens`` has the tokens with which to publish, by the URL of the registry.
    ``semantic`` is the folder of a model for sentence vectors (`catalog.search.meaning`).
    """

    default_source: str | None = None
    usage: bool = True
    store_files: bool = True
    host: str | None = None
    tool_description_chars: int = 15_000
    strict: bool = True
    source_kinds: tuple[str, ...] = ()
    hosts: Mapping[str, str] = field(default_factory=dict)
    tokens: Mapping[str, str] = field(default_factory=dict)
    semantic: str | None = None
    limits: Limits = field(default_factory=Limits)
    personalities: Mapping[str, Personality] = field(default_factory=dict)


def data_folder() -> Path:
    """Return the folder of this user's own data (the platform's data folder)."""
    from platformdirs import user_data_path

    return user_data_path(APPLICATION, appauthor=False)


def cache_folder() -> Path:
    """Return the folder for data that can be fetched again (the platform's cache folder)."""
    from platformdirs import user_cache_path

    return user_cache_path(APPLICATION, appauthor=False)


def default_database() -> Path:
    """Return the default path of the database."""
    return data_folder() / "registry.db"


def default_settings_file() -> Path:
    """Return the path of the settings file in the platform's configuration folder."""
    from platformdirs import user_config_path

    return user_config_path(APPLICATION, appauthor=False) / "config.yaml"


def load_settings(path: Path | None) -> Settings:
    """Read the settings from ``path``.

    Without ``path``, the default file is read if it exists. Raises `SettingsProblem` if a file at a
    given path is missing, if a file isn't a YAML mapping, or if it has an unknown key or a value of
    a wrong type.
    """
    return parse_settings(settings_data(path), str(path or default_settings_file()))


def settings_data(path: Path | None) -> object:
    """Return the YAML value of a settings file without checking it.

    Returns None if the default file doesn't exist or is empty. Raises `SettingsProblem`.
    """
    place = path or default_settings_file()
    try:
        with open(os.open(place, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
            mode = os.fstat(file.fileno()).st_mode
            if stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode):  # to read this file could block forever
                raise SettingsProblem(path=str(place), message="it is not a regular file")
            data = file.read(SETTINGS_BYTES + 1)
        if len(data) > SETTINGS_BYTES:
            raise SettingsProblem(path=str(place), message="it is larger than 1 MiB")
        text = data.decode()
    except FileNotFoundError:
        if path is None:
            return None
        raise SettingsProblem(path=str(place), message="there is no such file") from None
    except OSError as error:
        raise SettingsProblem(path=str(place), message=error.strerror or str(error)) from error
    except UnicodeDecodeError:
        raise SettingsProblem(path=str(place), message="it is not UTF-8 text") from None
    return _value_of(text, str(place))


def _value_of(text: str, path: str) -> object:
    """Return the value of a YAML text. Raises `SettingsProblem`, for example for a repeated key."""
    import yaml

    class Loader(yaml.SafeLoader):
        def compose_mapping_node(self, anchor: Any) -> yaml.MappingNode:
            node = super().compose_mapping_node(anchor)
            keys = set()
            for key, _ in node.value:
                if key.id == "scalar" and key.value in keys:
                    # Otherwise YAML would silently ignore the first value with all its rules.
                    message = f"line {key.start_mark.line + 1}: the key {key.value!r} is repeated"
                    raise SettingsProblem(path=path, message=message)
                keys.add(str(key.value))
            return node

    try:
        return yaml.load(text, Loader)  # noqa: S506  # a safe loader
    except (yaml.YAMLError, RecursionError, ValueError) as error:  # ValueError: an invalid date
        mark = getattr(error, "problem_mark", None)
        where = "" if mark is None else f", line {mark.line + 1}"
        said = getattr(error, "problem", None) or str(error).partition("\n")[0]
        raise SettingsProblem(path=path, message=f"it is not valid YAML{where}: {said}") from error


def parse_settings(data: object, path: str) -> Settings:
    """Convert the YAML value ``data`` to `Settings`; errors contain ``path``."""
    try:
        return _read(Settings, data, "")
    except ValueError as error:
        raise SettingsProblem(path=path, message=str(error)) from None


@dataclass(frozen=True, slots=True)
class _Skills:
    """The keys of a personality's ``skills`` in the settings file."""

    global_ingest: GlobalIngest = field(default_factory=GlobalIngest)


@dataclass(frozen=True, slots=True)
class _Entry:
    """A personality in the settings file."""

    toolset: Names = frozenset()
    team: str | None = None
    skills: _Skills = field(default_factory=_Skills)


def _are_texts(values: Iterable[object]) -> bool:
    return all(isinstance(one, str) for one in values)


_KINDS: Final[Mapping[object, tuple[Callable[[Any], bool], str]]] = {
    bool: (lambda value: isinstance(value, bool), "true or false, not {!r}"),
    int: (lambda value: type(value) is int and value > 0, "a whole number of at least 1, not {!r}"),
    Names: (lambda value: isinstance(value, list) and _are_texts(value), "a list of names"),
    tuple[str, ...]: (
        lambda value: isinstance(value, list) and _are_texts(value),
        "a list of names",
    ),
    "hosts": (
        lambda value: isinstance(value, Mapping) and _are_texts((*value, *value.values())),
        "a mapping of short names to addresses such as https://git.example.com/",
    ),
    "tokens": (
        lambda value: isinstance(value, Mapping) and _are_texts((*value, *value.values())),
        "a mapping of URLs of registries to tokens",
    ),
    "default_source": (lambda value: _are_texts([value]), "a source's name"),
    "semantic": (lambda value: _are_texts([value]), "the folder of a model"),
    "host": (lambda value: _are_texts([value]) and value.strip() != "", "a name for this machine"),
    "team": (lambda value: _are_texts([value]), "the name of a source of scope team"),
}
"""For each type or special key: a check of its values, and a description of valid values."""


def _read(shape: type[T], data: object, where: str) -> T:
    """Read a mapping into a dataclass, by the types of its fields; null means the default.

    Raises ValueError for an invalid key or value. The message describes the problem and its
    position ``where``.
    """
    if data is not None and not isinstance(data, Mapping):
        raise ValueError(f"{where or 'the settings'} must be a mapping of keys to values")
    kinds = get_type_hints(shape)
    facts = {}
    for key, value in (data or {}).items():
        if key not in kinds:
            hint = _nearest(key, list(kinds))
            raise ValueError(f"unknown key {key!r} in {where or 'the settings'}: {hint}")
        if value is not None or kinds[key] in {bool, int}:
            facts[key] = _value(kinds[key], value, key, f"{where}.{key}".lstrip("."))
    return shape(**facts)


def _value(kind: Any, value: Any, key: str, where: str) -> object:
    """Check that a value has the type ``kind``, and return the value.

    Raises ValueError if it has another type.
    """
    if is_dataclass(kind):
        return _read(kind, value, where)  # type: ignore[arg-type]  # it is a class
    if key == "personalities":
        return _personalities(value)
    if get_origin(kind) is Literal:
        if value not in get_args(kind):
            raise ValueError(f"{where} can't be {value!r}: {_nearest(value, get_args(kind))}")
        return value
    is_right, wanted = _KINDS.get(kind) or _KINDS[key]
    if not is_right(value):
        raise ValueError(f"{where} must be {wanted.format(value)}")
    if key.endswith("_tags"):
        return frozenset(map(tag_key, value))
    if isinstance(value, list):
        return frozenset(value) if kind == Names else tuple(value)
    return value


def _personalities(data: object) -> Mapping[str, Personality]:
    if data and not isinstance(data, Mapping):
        raise ValueError("personalities must map each name to its rules")
    found = {}
    for name, value in data.items() if isinstance(data, Mapping) else ():
        if not isinstance(name, str) or not name.strip():
            raise ValueError(f"a personality's name must be a text, not {name!r}")
        entry = _read(_Entry, value, f"personalities.{name}")
        found[name] = Personality(name, entry.toolset, entry.team, entry.skills.global_ingest)
    return found


def _nearest(word: object, known: Sequence[str]) -> str:
    from difflib import get_close_matches

    near = get_close_matches(str(word), known, n=1, cutoff=0.5)
    return f"did you mean {near[0]!r}?" if near else f"known are {', '.join(known)}"
