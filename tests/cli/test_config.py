"""The settings in force are printed with where they come from, and without secrets."""

import json

import pytest


@pytest.fixture
def settings(newcomer):
    """Return the settings that a command prints, by their names."""

    def run(*options, **environ):
        ran = newcomer("config", "--json", *options, env=environ)
        assert ran.exit_code == 0, ran.output
        return {one["name"]: (one["value"], one["origin"]) for one in json.loads(ran.stdout)}

    return run


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "settings.yaml"
    path.write_text(
        "default_source: mine\nusage: true\nlimits: {depth: 3}\nhost: desk\n"
        "hosts: {gl: 'https://ann:s3cret@git.example.com/'}\n"
        "personalities: {coder: {toolset: [bash]}}\n"
    )
    return str(path)


def test_what_nobody_set_is_a_default(settings, tmp_path):
    found = settings()
    assert {origin for _, origin in found.values()} == {"default"}
    database = tmp_path / "home/.local/share/skill-registry/registry.db"
    assert found["database"][0] == str(database)
    assert not database.exists()
    assert found["limits.files"][0] == 512
    assert found["settings_file"][0] is None


def test_each_value_has_the_place_that_it_comes_from(settings, file, tmp_path):
    found = settings("--config", file, "--db", str(tmp_path / "x.db"))
    assert found["database"] == (str(tmp_path / "x.db"), "option --db")
    assert found["settings_file"] == (file, "option --config")
    for name, value in {
        "default_source": "mine",
        "usage": True,
        "limits.depth": 3,
        "host": "desk",
        "personalities": ["coder"],
    }.items():
        assert found[name] == (value, f"file {file}")
    assert found["limits.files"] == (512, "default")
    found = settings(
        SKILL_REGISTRY_CONFIG=file,
        SKILL_REGISTRY_DB=str(tmp_path / "y.db"),
        SKILL_REGISTRY_HOST="box",
    )
    assert found["database"] == (
        str(tmp_path / "y.db"),
        "environment variable SKILL_REGISTRY_DB",
    )
    assert found["settings_file"] == (file, "environment variable SKILL_REGISTRY_CONFIG")
    assert found["host"] == ("box", "environment variable SKILL_REGISTRY_HOST")
    assert settings("--db", "z.db", SKILL_REGISTRY_DB="y.db")["database"][1] == "option --db"


def test_no_password_or_token_is_printed(newcomer, file):
    address = "postgresql+psycopg://ann:hush1@server/skills?password=hush2"
    options = ("--config", file, "--db", address)
    environ = {"SKILL_REGISTRY_TOKEN": "hush3"}
    for style in ("table", "json", "jsonl", "names"):
        ran = newcomer("config", *options, "--format", style, env=environ)
        assert ran.exit_code == 0
        assert "hush" not in ran.output
        assert "s3cret" not in ran.output
    told = newcomer("config", *options, env=environ).stdout.splitlines()
    assert "token\tset\tenvironment variable SKILL_REGISTRY_TOKEN" in told
    assert "database\tpostgresql+psycopg://ann@server/skills\toption --db" in told


def test_settings_that_can_not_be_read_are_an_error(newcomer, tmp_path):
    ran = newcomer("config", "--config", str(tmp_path / "nothing.yaml"))
    assert ran.exit_code == 2
    assert "no such file" in ran.stderr


def test_who_has_several_sources_learns_where_to_choose_one(newcomer, tmp_path):
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        assert newcomer("sync", str(tmp_path / name)).exit_code == 0
    refused = newcomer("create", "haiku", "--description", "Writes a haiku.")
    assert refused.exit_code == 1
    assert "put 'default_source: NAME' into the settings file, which" in refused.stderr
    assert "names: skill-registry config" in refused.stderr
    for name in ("one", "two"):
        way = f"skill-registry create haiku --description 'Writes a haiku.' --source {name}\n"
        assert way in refused.stderr
    file = tmp_path / "home/.config/skill-registry/config.yaml"
    printed = newcomer("config")
    assert printed.stderr == f"To change settings, create this YAML file: {file}\n"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("default_source: two\n")
    assert newcomer("create", "haiku", "--description", "Writes a haiku.").exit_code == 0
    assert newcomer("config").stderr == ""
    assert (tmp_path / "two/haiku/SKILL.md").exists()


def test_on_a_terminal_the_program_asks_to_which_source_to_write(cli, tmp_path, terminal):
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        assert cli("sync", str(tmp_path / name)).exit_code == 0
    new = ("create", "haiku", "--description", "Writes a haiku.")
    asked = terminal(*new, typed=b"3\n2\n").stdout.decode()
    assert "1  one\n2  two\nWhich source? Its number: " in asked
    assert "Created haiku" in asked
    assert (tmp_path / "two/haiku/SKILL.md").exists()
    packed = str(tmp_path / "haiku.zip")
    assert cli("export", "haiku", packed).exit_code == 0
    assert "Imported" in terminal("import", packed, typed=b"1\n").stdout.decode()
    assert (tmp_path / "one/haiku/SKILL.md").exists()
    refused = cli("import", packed)
    assert f"skill-registry import {packed} --source two\n" in refused.stderr
