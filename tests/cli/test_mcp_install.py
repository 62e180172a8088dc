"""`mcp install`: a server more in a client's file, and every other byte as it was."""

import json
import os
import pty
import subprocess
import sys
import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from registry.cli.commands import mcp
from registry.cli.commands.mcp import CLIENTS, Unclear
from tests.cli.conftest import REPOSITORY

ENTRY = {"command": "skill-registry", "args": ["mcp"]}
CLAUDE = CLIENTS["claude"]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (
            '{"mcpServers": {}}',
            '{"mcpServers": {\n  "skills": {\n    "command": "skill-registry",\n    "args": [\n      "mcp"\n    ]\n  }\n}}',
        ),
        (
            '{\n\t"a" : 1 ,\n\t"mcpServers":{\n\t\t"x": {"command": "y"}\n\t}\n}\n',
            '{\n\t"a" : 1 ,\n\t"mcpServers":{\n\t\t"x": {"command": "y"},\n\t\t"skills": {\n\t\t\t"command": "skill-registry",\n\t\t\t"args": [\n\t\t\t\t"mcp"\n\t\t\t]\n\t\t}\n\t}\n}\n',
        ),
        (
            '{"big": 1.50, "s": "\\u00e9"}',
            '{"big": 1.50, "s": "\\u00e9", "mcpServers": {"skills": {"command": "skill-registry", "args": ["mcp"]}}}',
        ),
        (
            '{\r\n  "a": 1\r\n}\r\n',
            '{\r\n  "a": 1,\r\n  "mcpServers": {\r\n    "skills": {\r\n      "command": "skill-registry",\r\n      "args": [\r\n        "mcp"\r\n      ]\r\n    }\r\n  }\r\n}\r\n',
        ),
        (
            '{"mcpServers": {"skills": {"command": "old"}, "z": {}}}',
            '{"mcpServers": {"skills": {"command": "skill-registry", "args": ["mcp"]}, "z": {}}}',
        ),
    ],
    ids=["empty table", "tabs", "one line", "CRLF", "another entry"],
)
def test_all_else_in_json_stays_byte_for_byte(before, after):
    assert CLAUDE.added(before, ENTRY) == after
    assert CLAUDE.added(after, ENTRY) == after


keys = st.text(max_size=8)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=3),
    max_leaves=8,
)


@given(
    st.dictionaries(keys, values, max_size=4),
    st.none() | st.dictionaries(keys | st.just("skills"), values, max_size=3),
    st.sampled_from([None, 1, 2, "\t"]),
    st.booleans(),
)
def test_any_json_keeps_what_it_said(data, servers, indent, ascii_only):
    if servers is not None:
        data |= {"mcpServers": servers}
    text = json.dumps(data, indent=indent, ensure_ascii=ascii_only)
    expected = data | {"mcpServers": (servers or {}) | {"skills": ENTRY}}
    assert json.loads(CLAUDE.added(text, ENTRY)) == expected


@pytest.mark.parametrize(
    "text",
    [
        '{\n  // mine\n  "mcpServers": {}\n}',
        '{"mcpServers": {},}',
        "[]",
        '{"mcpServers": []}',
        '{"mcpServers": {}, "a": 1, "mcpServers": 2}',
        "\ufeff{}",
    ],
    ids=["comment", "comma", "array", "no table", "twice", "BOM"],
)
def test_what_cannot_be_edited_safely_is_refused(text):
    with pytest.raises(Unclear):
        CLAUDE.added(text, ENTRY)


def test_toml_gets_a_table_at_its_end():
    codex = CLIENTS["codex"]
    before = '# mine\nmodel = "x"\n\n[mcp_servers.other]\ncommand = "y"\n'
    after = codex.added(before, ENTRY)
    assert after.startswith(before)
    assert tomllib.loads(after)["mcp_servers"] == {"other": {"command": "y"}, "skills": ENTRY}
    assert codex.added(after, ENTRY) == after
    for text in ("mcp_servers = {}\n", "[mcp_servers.skills]\ncommand = 'z'\n", "not toml"):
        with pytest.raises(Unclear):
            codex.added(text, ENTRY)


@pytest.fixture
def home(tmp_path):
    return tmp_path / "home"


@pytest.mark.parametrize("client", list(CLIENTS))
def test_a_file_that_is_not_there_is_made_with_the_server_in_it(cli, home, database, client):
    ran = cli("mcp", "install", "--client", client, "--read-only", "--yes")
    assert ran.exit_code == 0, ran.stderr
    path = home / CLIENTS[client].user
    text = path.read_text()
    data = tomllib.loads(text) if path.suffix == ".toml" else json.loads(text)
    entry = data[CLIENTS[client].table]["skills"]
    assert os.path.basename(entry["command"]) == "skill-registry"
    assert entry["args"] == ["--db", str(database), "mcp", "--read-only"]
    assert path.stat().st_mode & 0o777 == 0o600
    again = cli("mcp", "install", "--client", client, "--read-only", "--yes")
    assert (again.exit_code, again.stdout) == (0, "")
    assert "already has the server" in again.stderr


def test_what_was_there_is_kept_beside_it_and_as_open_as_it_was(newcomer, home):
    path, copy = home / ".claude.json", home / ".claude.json.bak"
    path.write_text('{"secret": "token"}\n')
    path.chmod(0o640)
    ran = newcomer("mcp", "install", "--client", "claude", "--yes")
    assert json.loads(path.read_text())["secret"] == "token"
    assert copy.read_text() == '{"secret": "token"}\n'
    assert [one.stat().st_mode & 0o777 for one in (path, copy)] == [0o640] * 2
    assert "mcpServers" in ran.stdout
    newcomer("mcp", "install", "--client", "claude", "--read-only", "--yes")
    assert copy.read_text() == '{"secret": "token"}\n'
    assert (home / ".claude.json.bak1").exists()


def test_what_other_servers_are_given_is_not_shown(newcomer, home):
    path = home / ".cursor" / "mcp.json"
    path.parent.mkdir()
    path.write_text(json.dumps({"mcpServers": {"x": {"env": {"KEY": "hidden"}}}}, indent=2))
    ran = newcomer("mcp", "install", "--client", "cursor", "--yes")
    assert "skills" in ran.stdout
    assert "hidden" not in ran.output


def test_nothing_is_written_unasked(newcomer, home):
    ran = newcomer("mcp", "install", "--client", "cursor")
    assert ran.exit_code == 1
    assert '"mcpServers"' in ran.stdout
    assert "--yes" in ran.stderr
    assert not (home / ".cursor").exists()


@pytest.mark.parametrize("verb", ["install", "uninstall"])
def test_several_clients_are_changed_after_one_question(newcomer, home, verb):
    clients = ("--client", "claude", "--client", "cursor", "--client", "claude-code")
    paths = [home / ".claude.json", home / ".cursor" / "mcp.json"]
    if verb == "uninstall":
        assert newcomer("mcp", "install", *clients, "--yes").exit_code == 0
    before = [path.exists() and path.read_text() for path in paths]
    asked = newcomer("mcp", verb, *clients)
    assert asked.exit_code == 1
    assert asked.stderr == "Error: Not a terminal; pass --yes to confirm.\n"
    assert all(asked.stdout.count(str(path)) for path in paths)
    assert [path.exists() and path.read_text() for path in paths] == before
    ran = newcomer("mcp", verb, *clients, "--yes")
    assert ran.exit_code == 0
    assert ran.stderr.count("Wrote ") == 2
    assert ["skills" in path.read_text() for path in paths] == [verb == "install"] * 2


def test_a_client_whose_file_cannot_be_edited_does_not_stop_the_others(newcomer, home):
    (home / ".claude.json").write_text("{ // mine\n}")
    ran = newcomer("mcp", "install", "--client", "claude", "--client", "cursor", "--yes")
    assert ran.exit_code == 1
    assert ".claude.json was not changed" in ran.stderr
    assert "skills" in (home / ".cursor" / "mcp.json").read_text()


def test_a_file_with_comments_is_left_alone_and_the_snippet_is_printed(newcomer, home):
    path = home / ".cursor" / "mcp.json"
    path.parent.mkdir()
    path.write_text('{ // mine\n "mcpServers": {}}')
    ran = newcomer("mcp", "install", "--client", "cursor", "--yes")
    assert ran.exit_code == 1
    assert "was not changed: it is not plain JSON" in ran.stderr
    assert json.loads(ran.stdout)["mcpServers"]["skills"]["args"] == ["mcp"]
    assert path.read_text() == '{ // mine\n "mcpServers": {}}'


def test_a_link_in_the_home_folder_is_followed_and_stays(newcomer, home, tmp_path):
    (tmp_path / "dotfiles.json").write_text("{}")
    (home / ".claude.json").symlink_to(tmp_path / "dotfiles.json")
    assert newcomer("mcp", "install", "--client", "claude", "--yes").exit_code == 0
    assert (home / ".claude.json").is_symlink()
    assert "skills" in (tmp_path / "dotfiles.json").read_text()


@pytest.mark.parametrize("part", [".cursor", ".cursor/mcp.json"])
def test_a_link_in_a_project_which_a_stranger_may_have_made_is_not_followed(
    newcomer, home, tmp_path, monkeypatch, part
):
    project, theirs = tmp_path / "project", home / "theirs"
    project.mkdir()
    if part.endswith(".json"):
        theirs.write_text("{}")
        (project / ".cursor").mkdir()
    else:
        theirs.mkdir()
        (theirs / "mcp.json").write_text("{}")
    (project / part).symlink_to(theirs)
    monkeypatch.chdir(project)
    ran = newcomer("mcp", "install", "--client", "cursor", "--project", "--yes")
    assert ran.exit_code == 1
    assert "it is a link to" in ran.stderr
    assert (theirs / "mcp.json" if theirs.is_dir() else theirs).read_text() == "{}"


def test_a_projects_file_holds_no_path_of_this_machine(newcomer, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert newcomer("mcp", "install", "--client", "vscode", "--project", "--yes").exit_code == 0
    made = json.loads((tmp_path / ".vscode" / "mcp.json").read_text())
    assert made == {"servers": {"skills": {"type": "stdio", **ENTRY}}}


def test_a_change_meanwhile_is_not_lost(home):
    path = home / ".claude.json"
    path.write_text('{"theirs": 1}')
    with pytest.raises(Unclear, match="in the meantime"):
        mcp._write(str(path), "{}", "{...}", project=False)
    assert path.read_text() == '{"theirs": 1}'
    assert os.listdir(home) == [".claude.json"]


def test_a_person_who_starts_the_server_on_a_terminal_is_told_what_it_is(database):
    ours, theirs = pty.openpty()
    server = subprocess.Popen(
        [sys.executable, "-m", "registry", "--db", str(database), "mcp", "--no-watch"],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        cwd=REPOSITORY,
    )
    os.close(theirs)
    printed = b""
    try:
        while b"Ctrl-C ends it" not in printed:
            printed += os.read(ours, 65536)
    finally:
        server.kill()
        server.wait()
        os.close(ours)
    assert b"This server expects an MCP client" in printed
    assert b"skill-registry mcp install --client NAME" in printed


def test_claude_code_is_known_by_its_agents_name(cli, home):
    assert cli("mcp", "install", "--client", "claude-code", "--yes").exit_code == 0
    assert "skill-registry" in (home / ".claude.json").read_text()


TOML = '[mcp_servers.skills]\ncommand = "skill-registry"\nargs = ["mcp"]\n'


@pytest.mark.parametrize(
    "before",
    [
        '{"mcpServers": {"x": {"command": "y"}}}',
        '{\n\t"a" : 1 ,\n\t"mcpServers":{\n\t\t"x": {"command": "y"}\n\t}\n}\n',
        '{\r\n  "mcpServers": {\r\n    "x": {}\r\n  },\r\n  "big": 1.50, "s": "\\u00e9"\r\n}\r\n',
        '{"mcpServers": {}}',
    ],
    ids=["one line", "tabs", "CRLF", "empty table"],
)
def test_what_an_uninstall_leaves_is_what_was_there_before(before):
    after = CLAUDE.added(before, ENTRY)
    assert after != before
    assert CLAUDE.removed(after) == before
    assert CLAUDE.removed(before) == before


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (f'{{"mcpServers": {{"skills": {json.dumps(ENTRY)}, "z": {{}}}}}}', '{"z": {}}'),
        (
            f'{{"mcpServers": {{"a": 1, "skills": {json.dumps(ENTRY)} , "z": {{}}}}}}',
            '{"a": 1 , "z": {}}',
        ),
        (f'{{"mcpServers": {{ "skills": {json.dumps(ENTRY)}\n}}}}', "{}"),
    ],
    ids=["first", "between", "alone"],
)
def test_an_entry_goes_with_one_comma_wherever_it_is(before, after):
    assert CLAUDE.removed(before) == f'{{"mcpServers": {after}}}'


@given(
    st.dictionaries(keys, values, max_size=4),
    st.dictionaries(keys, values, max_size=3),
    st.dictionaries(keys, values, max_size=3),
    st.sampled_from([None, 1, 2, "\t"]),
)
def test_any_json_keeps_the_rest_after_an_uninstall(data, first, last, indent):
    rest = {key: value for key, value in (first | last).items() if key != "skills"}
    text = json.dumps(data | {"mcpServers": first | {"skills": ENTRY} | last}, indent=indent)
    if "skills" in last:  # then it is not the entry of this program
        return
    assert json.loads(CLAUDE.removed(text)) == data | {"mcpServers": rest}


@pytest.mark.parametrize(
    "before", ["", 'model = "x"\n', '# mine\n\n[mcp_servers.o]\ncommand = "y"\n']
)
@pytest.mark.parametrize("later", ["", "\n# theirs\n[mcp_servers.z]\nargs = []\n"])
def test_toml_loses_the_table_and_nothing_else(before, later):
    codex = CLIENTS["codex"]
    after = codex.added(before, ENTRY)
    assert codex.removed(after + later) == before + later
    assert codex.removed(before) == before


@pytest.mark.parametrize(
    ("client", "text", "why"),
    [
        ("claude", '{"mcpServers": {"skills": {"command": "npx", "args": ["other"]}}}', "not from"),
        ("claude", '{"mcpServers": {"skills": 1}}', "not from"),
        (
            "claude",
            '{"mcpServers": {"skills": {"command": "skill-registry", "args": 5}}}',
            "not from",
        ),
        ("claude", '{ // mine\n "mcpServers": {}}', "not plain JSON"),
        ("claude", '{"mcpServers": {}, "a": 1, "mcpServers": 2}', "expected content"),
        ("codex", '[mcp_servers.skills]\ncommand = "npx"\n', "not from"),
        (
            "codex",
            'mcp_servers = {skills = {command = "skill-registry", args = ["mcp"]}}\n',
            "form",
        ),
        ("codex", f'{TOML}[mcp_servers.skills.env]\nA = "b"\n', "form"),
        ("codex", "not toml", "not valid TOML"),
    ],
)
def test_an_entry_that_cannot_be_taken_out_safely_stays(newcomer, home, client, text, why):
    path = home / CLIENTS[client].user
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    ran = newcomer("mcp", "uninstall", "--client", client, "--yes")
    assert ran.exit_code == 1
    assert why in ran.stderr
    assert "Remove the server 'skills' by hand" in ran.stderr
    assert path.read_text() == text


@pytest.mark.parametrize("client", list(CLIENTS))
def test_an_uninstall_is_shown_and_asked_and_keeps_a_backup(cli, home, client):
    path = home / CLIENTS[client].user
    absent = cli("mcp", "uninstall", "--client", client)
    assert (absent.exit_code, absent.stdout) == (0, "")
    assert f"{path} does not have the server." in absent.stderr
    cli("mcp", "install", "--client", client, "--yes")
    installed = path.read_text()
    asked = cli("mcp", "uninstall", "--client", client)
    assert asked.exit_code == 1
    assert "--yes" in asked.stderr
    assert path.read_text() == installed
    ran = cli("mcp", "uninstall", "--client", client, "--yes")
    assert ran.exit_code == 0
    assert "skill-registry" in ran.stdout
    assert f"Wrote {path}; the backup is {path}.bak. Restart the client." in ran.stderr
    assert "skill-registry" not in path.read_text()
    assert (path.parent / f"{path.name}.bak").read_text() == installed
    cli("mcp", "install", "--client", client, "--yes")
    assert path.read_text() == installed


def test_an_uninstall_in_a_project_changes_its_file_only(newcomer, home, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    newcomer("mcp", "install", "--client", "cursor", "--yes")
    newcomer("mcp", "install", "--client", "cursor", "--project", "--yes")
    ran = newcomer("mcp", "uninstall", "--client", "cursor", "--project", "--yes")
    assert ran.exit_code == 0
    assert json.loads((tmp_path / ".cursor" / "mcp.json").read_text()) == {"mcpServers": {}}
    assert "skills" in (home / ".cursor" / "mcp.json").read_text()
