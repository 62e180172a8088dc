"""`skill-registry serve` and `token`, as processes of their own."""

import http.client
import json
import os
import re
import shlex
import signal
import socket
import ssl
import subprocess
import sys
import time
from contextlib import contextmanager

import pytest

from tests import program
from tests.program import REPOSITORY


@pytest.fixture
def environment(database, tmp_path):
    return program.environment(database, tmp_path / "home")


@contextmanager
def served(environment, *arguments):
    """Serve on a free port; yield it, the process, and the lines that it said."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    process, said = program.serve(["serve", "--port", str(port), *arguments], environment)
    with said:
        try:
            yield port, process, said
        finally:
            process.terminate()
            process.join(20)
            process.kill()


def ask(port, path, *, tls=None, method="GET", body=None, **headers):
    given = {name.replace("_", "-"): value for name, value in headers.items()}
    if tls is None:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    else:
        connection = http.client.HTTPSConnection("127.0.0.1", port, timeout=30, context=tls)
    connection.request(method, path, body, given)
    answer = connection.getresponse()
    text = answer.read().decode()
    connection.close()
    return answer, text


def test_it_serves_until_a_signal_ends_it_and_says_nothing_of_itself(environment, library):
    with served(environment) as (port, process, said):
        answer, text = ask(port, "/index.json")
        assert json.loads(text)["total"] == 4
        assert "server" not in answer.headers
        os.kill(process.pid, signal.SIGTERM)
        process.join(60)
        assert process.exitcode == 0
        assert "Traceback" not in said.read()


@pytest.mark.both
def test_what_changes_on_disk_is_shown_while_it_serves(environment, library, skill):
    with served(environment) as (port, _, _):
        skill("later", description="Came later.")
        for _ in range(600):
            time.sleep(0.1)  # nothing tells who only asks
            _, text = ask(port, "/index.json?q=later")
            if json.loads(text)["total"]:
                break
        else:
            pytest.fail("nothing was noticed")


@pytest.mark.both
def test_what_another_process_fills_an_empty_registry_with_is_shown(environment, root, skill):
    skill("first")
    with served(environment) as (port, _, _):
        assert json.loads(ask(port, "/index.json")[1])["total"] == 0
        assert program.run(["sync", str(root)], environ=environment).status == 0
        assert json.loads(ask(port, "/index.json")[1])["total"] == 1


def test_mcp_is_served_beside_the_pages_and_changes_need_a_token(environment, library):
    made = program.run(["token", "create", "agent", "--write"], environ=environment)
    token = made.out.strip()
    kinds = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}

    def tools(port, **more):
        answer, text = ask(
            port, "/mcp", method="POST", body=json.dumps(program.INITIALIZE), **kinds, **more
        )
        assert answer.status == 200, text
        session = {"Mcp-Session-Id": answer.headers["mcp-session-id"]}
        listing = json.dumps({"jsonrpc": "2.0", "id": 2, "method": "tools/list"})
        answer, text = ask(port, "/mcp", method="POST", body=listing, **kinds, **session, **more)
        return {tool["name"] for tool in json.loads(text)["result"]["tools"]}

    with served(environment) as (port, _, _):
        assert "read_skill" in tools(port)
        assert "delete_skill" not in tools(port)
        assert "delete_skill" in tools(port, Authorization=f"Bearer {token}")
        answer, _ = ask(port, "/mcp", method="POST", body="{}", **kinds, Host="evil.example")
        assert answer.status == 421


def test_the_pull_line_of_a_page_does_what_it_says(environment, library, tmp_path):
    with served(environment) as (port, _, _):
        _, text = ask(port, "/skills/sums")
    (line, *_) = re.findall(
        r"skill-registry (--db [^<]+ pull [^<]+)", re.sub(r"</?span>", "", text)
    )
    for home in ("home", "another"):
        place = tmp_path / home
        place.mkdir(exist_ok=True)
        own = {"HOME": str(place), "SKILL_REGISTRY_DB": str(place / "own.db")}
        ran = program.run(shlex.split(line), environ={**environment, **own}, cwd=tmp_path)
        assert ran.status == 0, ran.err
        assert (place / ".claude" / "skills" / "sums" / "SKILL.md").exists()


def test_elsewhere_it_needs_a_token_first(environment, library):
    refused = program.run(["serve", "--host", "0.0.0.0", "--port", "1"], environ=environment)
    assert refused.status != 0
    assert "token create" in refused.err
    assert "Traceback" not in refused.err


def test_a_token_is_shown_once_listed_and_revoked(environment, library):
    made = program.run(
        ["token", "create", "anna", "--read", "--source", "mine", "--expires", "30d"],
        environ=environment,
    )
    token = made.out.strip()
    assert token.startswith("skr_")
    listed = program.run(["token", "list", "--json"], environ=environment)
    (one,) = json.loads(listed.out)
    assert (one["name"], one["source"], one["write"]) == ("anna", "mine", False)
    assert one["expires_at"] is not None
    assert token not in listed.out
    for wrong in (["--read", "--write"], [], ["--read", "--expires", "soon"]):
        assert program.run(["token", "create", "x", *wrong], environ=environment).status == 2
    ended = program.run(["token", "revoke", "anna"], environ=environment)
    assert ended.status == 0
    assert json.loads(program.run(["token", "list", "--json"], environ=environment).out) == []


@pytest.fixture
def certificate(tmp_path):
    pair = [str(tmp_path / name) for name in ("cert.pem", "key.pem")]
    try:
        subprocess.run(
            [
                *("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt"),
                *("ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-subj", "/CN=localhost"),
                *("-addext", "subjectAltName=IP:127.0.0.1", "-keyout", pair[1], "-out", pair[0]),
            ],
            check=True,
            capture_output=True,
        )
    except FileNotFoundError:
        pytest.skip("openssl is not here to make a certificate")
    return pair


def test_it_serves_https_with_a_certificate(environment, library, certificate):
    cert, key = certificate
    with served(environment, "--tls-cert", cert, "--tls-key", key) as (port, _, _):
        tls = ssl.create_default_context(cafile=cert)
        answer, text = ask(port, "/skills/sums.json", tls=tls)
        assert (answer.status, json.loads(text)["ref"]) == (200, "sums")


@pytest.mark.parametrize(
    "arguments",
    [
        ["--trust-header", "X-User"],
        ["--from", "10.0.0.0/8"],
        ["--trust-header", "X", "--from", "nowhere"],
        ["--tls-cert", "x"],
        ["--public-url", "skills.example.org"],
        ["--public-url", "https://example.org?q=1"],
        ["--personality", "coder"],
        ["--port", "0"],
    ],
)
def test_options_that_need_each_other_are_asked_for(environment, library, arguments):
    ran = program.run(["serve", *arguments], environ=environment)
    assert ran.status == 2
    assert "Traceback" not in ran.err


def test_a_personality_that_there_is_not_is_said_before_anybody_comes(environment, library):
    trusted = ["--trust-header", "X-User", "--from", "10.0.0.0/8", "--personality", "nobody"]
    ran = program.run(["serve", *trusted], environ=environment)
    assert (ran.status, "nobody" in ran.err) == (1, True)


def test_without_the_extra_it_says_what_to_install(environment, library, tmp_path):
    (tmp_path / "hidden" / "jinja2").mkdir(parents=True)
    (tmp_path / "hidden" / "jinja2" / "__init__.py").write_text(
        "raise ModuleNotFoundError('No module named jinja2', name='jinja2')\n"
    )
    path = f"{tmp_path / 'hidden'}{os.pathsep}{REPOSITORY}"
    ran = subprocess.run(
        [sys.executable, "-m", "registry", "serve"],
        env={**environment, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 1
    assert "pip install '.[web]'" in ran.stderr
    assert "Traceback" not in ran.stderr


def test_a_public_url_of_this_machine_is_said_to_require_no_token(environment, library):
    with served(environment, "--public-url", "http://127.0.0.1:18767") as (port, _, said):
        assert ask(port, "/index.json")[0].status == 200
        lines = [said.readline() for _ in range(3)]
    assert "Requests from this machine need no token." in "".join(lines)
    assert "--public-url does not change that, because http://127.0.0.1:18767 is" in lines[-1]


def test_on_other_addresses_each_request_needs_a_token_and_that_is_said(environment, library):
    made = program.run(["token", "create", "anna", "--read"], environ=environment)
    with served(environment, "--host", "0.0.0.0") as (port, _, said):  # the case
        assert said.readline() == "Every request needs a token, also from this machine.\n"
        assert ask(port, "/index.json")[0].status == 401
        assert ask(port, "/index.json", authorization=f"Bearer {made.out.strip()}")[0].status == 200


def told_at_the_start(environment, *arguments):
    program.run(["token", "create", "anna", "--read"], environ=environment)
    with served(environment, *arguments) as (_, process, said):
        process.terminate()
        process.join(60)
        return said.read()


@pytest.mark.parametrize(
    "arguments", [["--host", "0.0.0.0"], ["--public-url", "http://skills.example.org"]]
)
def test_plain_http_for_other_machines_is_warned_of(environment, library, arguments):
    said = told_at_the_start(environment, *arguments)
    assert "Tokens and skills travel unencrypted" in said
    assert "Use --tls-cert and --tls-key, or a proxy with HTTPS and --public-url https://" in said


def test_https_and_this_machine_need_no_such_warning(environment, library, certificate):
    cert, key = certificate
    public = ["--public-url", "https://skills.example.org"]
    for arguments in (
        [],
        public,
        ["--host", "0.0.0.0", *public],
        ["--host", "0.0.0.0", "--tls-cert", cert, "--tls-key", key],
    ):
        assert "unencrypted" not in told_at_the_start(environment, *arguments), arguments


def test_a_port_in_use_is_named_with_the_option_that_gives_another(environment, library):
    with socket.socket() as busy:
        busy.bind(("127.0.0.1", 0))
        busy.listen()
        port = busy.getsockname()[1]
        ran = program.run(["serve", "--port", str(port)], environ=environment)
    assert ran.status != 0
    assert f"127.0.0.1:{port}" in ran.err
    assert "another program uses this port" in ran.err
    assert "--port" in ran.err
    assert "Errno" not in ran.err


def test_in_a_restored_backup_the_list_of_tokens_explains_that_they_are_not_valid(
    environment, library, tmp_path
):
    for name in ("anna", "bob"):
        program.run(["token", "create", name, "--read"], environ=environment)
    assert "not valid" not in program.run(["token", "list"], environ=environment).err
    backup = str(tmp_path / "backup.db")
    assert program.run(["db", "backup", backup], environ=environment).status == 0
    ran = program.run(["--db", backup, "token", "list"], environ=environment)
    assert (ran.status, ran.out) == (0, "")
    assert "2 tokens in this database are not valid here" in ran.err
    assert "run: skill-registry token create NAME --read" in ran.err
