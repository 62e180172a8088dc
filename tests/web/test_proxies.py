"""The catalogue behind a real nginx and a real Caddy, by the blocks that docs/how-to/run-behind-nginx-or-caddy.md shows."""

import os
import re
import shutil
import socket
import ssl
import subprocess
import time
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests import program
from tests.program import REPOSITORY
from tests.web.test_command import ask, certificate, environment, served

__all__ = ["certificate", "environment"]

PUBLIC = "https://skills.example.org"
STOCK = "location / { proxy_pass http://127.0.0.1:8765; }"
PATHS = ("/", "/index.json", "/why.json?q=/etc", "/sources.json", "/api/v1/skills", "/mcp")


def documented(language):
    """Return the block of the page in a language."""
    page = Path(REPOSITORY) / "docs" / "how-to" / "run-behind-nginx-or-caddy.md"
    text = page.read_text()
    (block,) = re.findall(rf"^```{language}\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    return block


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@contextmanager
def running(command, port, **settings):
    """Run a proxy until the block ends; wait until it takes connections."""
    process = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        **settings,
    )
    try:
        for _ in range(3000):
            assert process.poll() is None, process.stdout.read().decode()
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    break
            time.sleep(0.01)
        else:
            pytest.fail("the proxy does not listen")
        yield port
    finally:
        process.terminate()
        process.communicate(timeout=30)


def nginx(tmp_path, block, port):
    """Run nginx with one server block."""
    if shutil.which("nginx") is None:
        pytest.skip("there is no nginx here")
    kinds = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    kept = "".join(f"{kind}_temp_path {tmp_path}/{kind};\n" for kind in kinds)
    user = "user root;" if os.geteuid() == 0 else ""
    (tmp_path / "nginx.conf").write_text(
        f"{user} daemon off; pid {tmp_path}/nginx.pid; error_log stderr; worker_processes 1;\n"
        f"events {{}}\nhttp {{ access_log off;\n{kept}{block}\n}}\n"
    )
    return running(["nginx", "-p", str(tmp_path), "-c", str(tmp_path / "nginx.conf")], port)


def caddy(tmp_path, block, port):
    """Run Caddy with one site."""
    if shutil.which("caddy") is None:
        pytest.skip("there is no Caddy here")
    (tmp_path / "Caddyfile").write_text(
        f"{{\n admin off\n auto_https off\n default_sni skills.example.org\n}}\n{block}"
    )
    home = {"HOME": str(tmp_path), "XDG_DATA_HOME": str(tmp_path), "XDG_CONFIG_HOME": str(tmp_path)}
    command = ["caddy", "run", "--config", str(tmp_path / "Caddyfile"), "--adapter", "caddyfile"]
    return running(command, port, env={**os.environ, **home})


def documented_nginx(tmp_path, upstream, certificate):
    port, block = free_port(), documented("nginx")
    cert, key = certificate
    for old, new in [
        ("listen 443", f"listen 127.0.0.1:{port}"),
        ("/etc/ssl/skills.example.org.pem", cert),
        ("/etc/ssl/skills.example.org.key", key),
        ("127.0.0.1:8765", f"127.0.0.1:{upstream}"),
    ]:
        assert old in block
        block = block.replace(old, new)
    return nginx(tmp_path, block, port)


def documented_caddy(tmp_path, upstream, certificate):
    port, block = free_port(), documented("caddy")
    cert, key = certificate
    for old, new in [
        ("skills.example.org {\n", f"https://skills.example.org:{port} {{\n    tls {cert} {key}\n"),
        ("127.0.0.1:8765", f"127.0.0.1:{upstream}"),
    ]:
        assert old in block
        block = block.replace(old, new)
    return caddy(tmp_path, block, port)


@pytest.mark.parametrize("proxy", [documented_nginx, documented_caddy])
def test_behind_the_documented_proxy_nobody_is_let_in_without_a_token(
    environment, library, tmp_path, certificate, proxy
):
    made = program.run(["token", "create", "anna", "--read"], environ=environment)
    tls = ssl.create_default_context(cafile=certificate[0])
    tls.check_hostname = False
    with (
        served(environment, "--public-url", PUBLIC) as (upstream, _, _),
        proxy(tmp_path, upstream, certificate) as port,
    ):
        given = {"tls": tls, "Host": "skills.example.org"}
        for path in PATHS:
            assert ask(port, path, **given)[0].status == 401, path
        answer, text = ask(port, "/index.json", Authorization=f"Bearer {made.out.strip()}", **given)
        assert (answer.status, "letters-0" in text) == (200, True)
        form = {"Content-Type": "application/x-www-form-urlencoded", "Origin": PUBLIC}
        body = f"token={made.out.strip()}"
        entered, _ = ask(port, "/login", method="POST", body=body, **form, **given)
        assert (entered.status, entered.headers["location"]) == (303, "/")
        assert "Secure" in entered.headers["set-cookie"]


def test_a_stock_nginx_opens_nothing(environment, library, tmp_path):
    port = free_port()
    for more in ((), ("--public-url", PUBLIC)):
        with served(environment, *more) as (upstream, _, _):
            location = STOCK.replace("8765", str(upstream))
            block = f"server {{ listen 127.0.0.1:{port}; {location} }}"
            with nginx(tmp_path, block, port):
                for path in PATHS:
                    assert ask(port, path)[0].status == 401, path
                assert ask(port, "/healthz")[0].status == 200


def test_behind_a_path_of_nginx_a_user_signs_in_and_finds_all_links_there(
    environment, library, tmp_path
):
    made = program.run(["token", "create", "anna", "--read"], environ=environment)
    port, public = free_port(), "http://skills.example.org/team"
    with served(environment, "--public-url", public) as (upstream, _, _):
        page = (Path(REPOSITORY) / "docs" / "how-to" / "run-behind-nginx-or-caddy.md").read_text()
        (location,) = re.findall(
            r"^    location /skills/ .*?^    }$", page, re.DOTALL | re.MULTILINE
        )
        location = location.replace("/skills/", "/team/").replace("8765", str(upstream))
        block = f"server {{ listen 127.0.0.1:{port}; {location} }}"
        with nginx(tmp_path, block, port):
            given = {"Host": "skills.example.org"}
            assert ask(port, "/team/", **given)[0].status == 401
            token = {"Authorization": f"Bearer {made.out.strip()}"}
            answer, text = ask(port, "/team/", **token, **given)
            assert (answer.status, 'href="/team/skills/letters-0"' in text) == (200, True)
            form = {
                "Content-Type": "application/x-www-form-urlencoded",
                "Origin": "http://skills.example.org",
            }
            body = f"token={made.out.strip()}&wanted=/stats"
            entered, _ = ask(port, "/team/login", method="POST", body=body, **form, **given)
            assert (entered.status, entered.headers["location"]) == (303, "/team/stats")
            assert "Path=/team/" in entered.headers["set-cookie"]


def test_it_warns_at_its_start_that_forwarding_the_port_publishes_the_catalogue(
    environment, library
):
    with served(environment) as (_, process, said):
        process.terminate()
        process.join(60)
        warned = said.read()
        assert "publishes the catalogue" in warned
        assert "--public-url" in warned
    with served(environment, "--public-url", PUBLIC) as (port, process, said):
        process.terminate()
        process.join(60)
        told = said.read()
        assert "publishes" not in told
        assert f"Listening on http://127.0.0.1:{port}\n" in told
