"""`skill-registry config` and `completion`."""

import json
import os
import platform
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any, Final, NamedTuple

import click
from click.core import ParameterSource

from registry.cli import PROGRAM, escape, options
from registry.cli.app import COMPLETION_VARIABLE
from registry.cli.group import session_command
from registry.cli.listing import Column, emit
from registry.cli.session import Session
from registry.text import masked

DEFAULT: Final = "default"


class Setting(NamedTuple):
    """A setting: its current value, and the origin of the value."""

    name: str
    value: Any
    origin: str


COLUMNS: Final[Sequence[Column[Setting]]] = (
    Column("SETTING", lambda one: one.name),
    Column("VALUE", lambda one: _text(one.value), max_width=1000, cut="start"),
    Column("FROM", lambda one: one.origin, max_width=1000, cut="start"),
)


@session_command(
    "skill-registry config",
    "skill-registry config --json | jq '.[] | select(.origin != \"default\")'",
    starts_new=True,
)
@options.format_options
def config(session: Session) -> None:
    """Print the current settings, and where each one is set.

    A value comes from an option, an environment variable, the settings file or the default. The
    database is not opened. Passwords and tokens are not printed. "serve", "mcp" and "sync --watch"
    read the settings only when they start: restart them after a change.
    """
    found = [*_global(session), *_of_file(session)]
    emit(session, found, COLUMNS, to_record=lambda one: one._asdict())
    file = _settings_file(session)
    if session.is_for_people and not file.exists():
        made = escape.line(str(file))
        session.console.note(f"To change settings, create this YAML file: {made}")


def _settings_file(session: Session) -> Path:
    """Return the path of the settings file, whether it exists or not."""
    from registry.settings import default_settings_file

    path = session.config or default_settings_file()
    return Path(os.path.abspath(os.path.expanduser(path)))


def _global(session: Session) -> Iterator[Setting]:
    """Yield the settings from options and environment variables."""
    from registry.db.open import open_backend

    settings = session.settings
    with closing(open_backend(session.db, settings)) as backend:
        yield Setting("database", backend.path, _origin("db"))
    file = _settings_file(session)
    yield Setting("settings_file", str(file) if file.exists() else None, _origin("config"))
    variable = "SKILL_REGISTRY_TOKEN"
    is_set = bool(os.environ.get(variable))
    yield Setting("token", "set" if is_set else None, _variable(variable) if is_set else DEFAULT)


def _of_file(session: Session) -> Iterator[Setting]:
    """Yield the settings from the settings file."""
    from registry.settings import default_settings_file, settings_data

    path = Path(os.path.expanduser(session.config)) if session.config else None
    data, settings = settings_data(path), session.settings
    place = str(path or default_settings_file())

    def origin(*keys: str) -> str:
        value: object = data
        for key in keys:
            value = value.get(key) if isinstance(value, Mapping) else None
        return DEFAULT if value is None else f"file {place}"

    for one in fields(settings):
        value = getattr(settings, one.name)
        if one.name == "limits":
            for key, limit in asdict(value).items():
                yield Setting(f"limits.{key}", limit, origin("limits", key))
        elif one.name == "host":
            variable = "SKILL_REGISTRY_HOST"
            named = os.environ.get(variable)
            where = _variable(variable) if named else origin("host")
            yield Setting("host", named or value or platform.node() or "localhost", where)
        elif one.name == "tokens":
            yield Setting("tokens", dict.fromkeys(value, "set"), origin("tokens"))
        else:
            yield Setting(one.name, _shown(value), origin(one.name))


def _shown(value: Any) -> Any:
    """Return a value in its JSON form, without passwords.

    For personalities, this is only their names.
    """
    if isinstance(value, Mapping):
        if all(isinstance(one, str) for one in value.values()):
            return {key: masked(one) for key, one in value.items()}
        return sorted(value)
    return list(value) if isinstance(value, tuple) else value


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    return "-" if value in (None, [], {}) else json.dumps(value, ensure_ascii=False)


def _origin(option: str) -> str:
    """Return the origin of a global option's value.

    The option may be before or after the command.
    """
    context: click.Context | None = click.get_current_context()
    while context is not None:
        source = context.get_parameter_source(option)
        if source is ParameterSource.COMMANDLINE:
            return f"option --{option}"
        if source is ParameterSource.ENVIRONMENT:
            return _variable(f"SKILL_REGISTRY_{option.upper()}")
        context = context.parent
    return DEFAULT


def _variable(name: str) -> str:
    return f"environment variable {name}"


@session_command(
    'eval "$(skill-registry completion bash)"     # in ~/.bashrc',
    'eval "$(skill-registry completion zsh)"      # in ~/.zshrc',
    "skill-registry completion fish | source      # in ~/.config/fish/config.fish",
)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(session: Session, *, shell: str) -> None:
    """Print a shell script that completes commands and names.

    Load it in your shell's start-up file. The tab key then completes commands, options, and the
    names of skills, tags, kinds and sources.
    """
    from click.shell_completion import get_completion_class

    kind = get_completion_class(shell)
    assert kind is not None  # noqa: S101  # Click only accepts the three shells of the argument
    # Don't call Click's `source()`, because it first runs bash to check its version. Only the
    # script is needed here.
    root = click.get_current_context().find_root().command
    script = kind(root, {}, PROGRAM, COMPLETION_VARIABLE)
    text = script.source_template % script.source_vars()
    session.console.write([text.strip()])
