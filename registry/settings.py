"""Settings: a YAML file, all keys optional, unknown ones refused with the nearest known."""

import difflib
import os
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path

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


@dataclass(frozen=True, slots=True)
class Settings:
    """What the settings file says."""

    default_source: str | None = None
    limits: Limits = field(default_factory=Limits)
    personalities: Mapping[str, object] = field(default_factory=dict)


def default_database(environ: Mapping[str, str] = os.environ) -> Path:
    """Return where the registry lives unless told otherwise (the platform's data folder)."""
    del environ  # platformdirs reads the process environment itself
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
    values = _mapping(data, path, "the settings", Settings)
    limits = _mapping(values.get("limits"), path, "limits", Limits)
    for key, value in limits.items():
        if not isinstance(value, int) or isinstance(value, bool) or value < 1:
            message = f"limits.{key} must be a whole number of at least 1, not {value!r}"
            raise SettingsProblem(path=path, message=message)
    source = values.get("default_source")
    if source is not None and not isinstance(source, str):
        raise SettingsProblem(path=path, message="default_source must be a source's name")
    personalities = values.get("personalities") or {}
    if not isinstance(personalities, Mapping):
        raise SettingsProblem(path=path, message="personalities must be a mapping of names")
    return Settings(
        default_source=source,
        limits=Limits(**limits),  # type: ignore[arg-type]  # checked above: all are int
        personalities=personalities,
    )


def _mapping(data: object, path: str, where: str, shape: type) -> dict[str, object]:
    if data is None:
        return {}
    if not isinstance(data, Mapping):
        raise SettingsProblem(path=path, message=f"{where} must be a mapping of keys to values")
    known = [entry.name for entry in fields(shape)]
    for key in data:
        if key not in known:
            near = difflib.get_close_matches(str(key), known, n=1, cutoff=0.5)
            hint = f"did you mean {near[0]!r}?" if near else f"known are {', '.join(known)}"
            raise SettingsProblem(path=path, message=f"unknown key {key!r} in {where}: {hint}")
    return {str(key): value for key, value in data.items()}
