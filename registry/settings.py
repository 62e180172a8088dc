"""Settings: a YAML file, all keys optional, unknown ones refused with the nearest known."""

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Final, Literal, TypeAlias, get_args

from registry.errors import SettingsProblem

APPLICATION = "skill-registry"
SETTINGS_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class Limits:
    """What one skill may hold; ``depth`` counts folders from the source down to the skill's own."""

    document_bytes: int = 1 << 20
    files: int = 512
    skill_bytes: int = 16 << 20
    depth: int = 6


Mode: TypeAlias = Literal["capability", "tags", "explicit", "none"]
Unknown: TypeAlias = Literal["allow", "deny", "warn"]


@dataclass(frozen=True, slots=True)
class GlobalIngest:
    """Which skills of personal, community and bundled sources a personality lets in.

    ``allow`` and ``deny`` hold names and ``source/name``; tags are casefolded, as stored ones are.
    """

    mode: Mode = "capability"
    allow: frozenset[str] = frozenset()
    deny: frozenset[str] = frozenset()
    accept_tags: frozenset[str] = frozenset()
    reject_tags: frozenset[str] = frozenset()
    fallback_unknown: Unknown = "allow"


@dataclass(frozen=True, slots=True)
class Personality:
    """A named visibility policy: the tools it has, its team, and what it lets in."""

    name: str
    toolset: frozenset[str] = frozenset()
    team: str | None = None
    global_ingest: GlobalIngest = field(default_factory=GlobalIngest)


_PERSONALITY_KEYS: Final = ("toolset", "team", "skills")
_CHOICES: Final = {"mode": get_args(Mode), "fallback_unknown": get_args(Unknown)}


@dataclass(frozen=True, slots=True)
class Settings:
    """What the settings file says.

    ``usage``: whether to count what tools do with each skill; ``store_files``: whether to keep the
    bytes of supporting files in the database; ``host``: what this machine is called on a server
    that several share, by default its network name.
    """

    default_source: str | None = None
    usage: bool = True
    store_files: bool = True
    host: str | None = None
    limits: Limits = field(default_factory=Limits)
    personalities: Mapping[str, Personality] = field(default_factory=dict)


def default_database() -> Path:
    """Return where the registry lives unless told otherwise (the platform's data folder)."""
    from platformdirs import user_data_path

    return user_data_path(APPLICATION, appauthor=False) / "registry.db"


def default_settings_file() -> Path:
    """Return the settings file of the platform's configuration folder."""
    from platformdirs import user_config_path

    return user_config_path(APPLICATION, appauthor=False) / "config.yaml"


def load_settings(path: Path | None) -> Settings:
    """Read the settings of ``path``; None: the default file, where there is one.

    Raises `SettingsProblem` for a file that is missing although named, is no YAML mapping, or has
    an unknown key or a value of the wrong type.
    """
    named = path is not None
    path = path or default_settings_file()
    try:
        if path.stat().st_size > SETTINGS_BYTES:
            raise SettingsProblem(path=str(path), message="it is larger than 1 MiB")
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        if named:
            raise SettingsProblem(path=str(path), message="there is no such file") from None
        return Settings()
    except OSError as error:
        raise SettingsProblem(path=str(path), message=error.strerror or str(error)) from error
    except UnicodeDecodeError:
        raise SettingsProblem(path=str(path), message="it is not UTF-8 text") from None

    import yaml

    try:
        data = yaml.safe_load(text)
    except (yaml.YAMLError, RecursionError) as error:
        raise SettingsProblem(path=str(path), message=f"it is no valid YAML: {error}") from error
    return parse_settings(data, str(path))


def parse_settings(data: object, path: str) -> Settings:
    """Build `Settings` from the YAML value ``data``; ``path`` is named in errors."""
    values = _mapping(data, path, "the settings", _names(Settings))
    limits = _mapping(values.get("limits"), path, "limits", _names(Limits))
    for key, value in limits.items():
        if not isinstance(value, int) or isinstance(value, bool) or value < 1:
            message = f"limits.{key} must be a whole number of at least 1, not {value!r}"
            raise SettingsProblem(path=path, message=message)
    source = values.get("default_source")
    if source is not None and not isinstance(source, str):
        raise SettingsProblem(path=path, message="default_source must be a source's name")
    host = values.get("host")
    if host is not None and not (isinstance(host, str) and host.strip()):
        raise SettingsProblem(path=path, message="host must be a name for this machine")
    switches: dict[str, bool] = {}
    for key in ("usage", "store_files"):
        switch = values.get(key, True)
        if not isinstance(switch, bool):
            raise SettingsProblem(path=path, message=f"{key} must be true or false, not {switch!r}")
        switches[key] = switch
    personalities = values.get("personalities") or {}
    if not isinstance(personalities, Mapping):
        raise SettingsProblem(path=path, message="personalities must be a mapping of names")
    for name in personalities:
        if not isinstance(name, str) or not name.strip():
            message = f"a personality's name must be a text, not {name!r}"
            raise SettingsProblem(path=path, message=message)
    return Settings(
        default_source=source,
        host=host,
        **switches,
        limits=Limits(**limits),  # type: ignore[arg-type]  # checked above: all are int
        personalities={
            name: _personality(name, value, path) for name, value in personalities.items()
        },
    )


def _personality(name: str, data: object, path: str) -> Personality:
    where = f"personalities.{name}"
    values = _mapping(data, path, where, _PERSONALITY_KEYS)
    team = values.get("team")
    if team is not None and not isinstance(team, str):
        raise SettingsProblem(path=path, message=f"{where}.team must be a team source's name")
    skills = _mapping(values.get("skills"), path, f"{where}.skills", ("global_ingest",))
    where_ingest = f"{where}.skills.global_ingest"
    return Personality(
        name=name,
        toolset=_texts(values.get("toolset"), path, f"{where}.toolset"),
        team=team,
        global_ingest=_ingest(skills.get("global_ingest"), path, where_ingest),
    )


def _ingest(data: object, path: str, where: str) -> GlobalIngest:
    facts: dict[str, object] = {}
    for key, value in _mapping(data, path, where, _names(GlobalIngest)).items():
        if key in _CHOICES:
            if value is not None:
                facts[key] = _choice(value, path, f"{where}.{key}", _CHOICES[key])
            continue
        texts = _texts(value, path, f"{where}.{key}")
        if key.endswith("_tags"):
            texts = frozenset(" ".join(tag.casefold().split()) for tag in texts)
        facts[key] = texts
    return GlobalIngest(**facts)  # type: ignore[arg-type]  # checked above: each as its field says


def _choice(value: object, path: str, where: str, choices: Sequence[str]) -> str:
    if isinstance(value, str) and value in choices:
        return value
    hint = _nearest(value, choices)
    raise SettingsProblem(path=path, message=f"{where} can't be {value!r}: {hint}")


def _texts(data: object, path: str, where: str) -> frozenset[str]:
    if data is None:
        return frozenset()
    if not isinstance(data, list) or not all(isinstance(text, str) for text in data):
        raise SettingsProblem(path=path, message=f"{where} must be a list of names")
    return frozenset(data)


def _names(shape: type) -> Sequence[str]:
    return [entry.name for entry in fields(shape)]


def _nearest(word: object, known: Sequence[str]) -> str:
    near = difflib.get_close_matches(str(word), known, n=1, cutoff=0.5)
    return f"did you mean {near[0]!r}?" if near else f"known are {', '.join(known)}"


def _mapping(data: object, path: str, where: str, known: Sequence[str]) -> dict[str, object]:
    if data is None:
        return {}
    if not isinstance(data, Mapping):
        raise SettingsProblem(path=path, message=f"{where} must be a mapping of keys to values")
    for key in data:
        if key not in known:
            message = f"unknown key {key!r} in {where}: {_nearest(key, known)}"
            raise SettingsProblem(path=path, message=message)
    return {str(key): value for key, value in data.items()}
