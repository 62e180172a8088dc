"""Who is let in, and what every answer says to a browser."""

import ipaddress
import re
import socket
from urllib.parse import urlencode

import pytest

from registry import SkillRegistry
from registry.mcp.http import MAX_BYTES
from registry.settings import GlobalIngest, Personality, Settings
from registry.web.app import Address
from registry.web.auth import COOKIE, Trusted
from registry.web.openapi import PATHS
from tests.cli.conftest import run
from tests.web.conftest import serving

PROXY = Trusted("X-User", [ipaddress.ip_network("127.0.0.0/8")])


def test_a_name_that_was_rebound_to_this_machine_is_turned_away(site):
    assert site.ask("/", Host="evil.example").status == 421
    assert site.ask("/", Host=f"evil.example:{site.port}").status == 421
    assert site.ask("/", Host=f"localhost:{site.port}").status == 200
    assert site.ask("/skills.json", Origin="http://evil.example").status == 403
    assert site.ask("/skills.json", Origin="null").status == 403


SIGNS = (
    *("Via", "Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto"),
    *("X-Forwarded-User", "X-FORWARDED-anything", "X-Real-IP", "X-Client-IP", "X-Remote-User"),
    *("CF-Connecting-IP", "cf-ray", "True-Client-IP", "Tailscale-User-Login", "Fly-Client-IP"),
    *("Fastly-Client-IP", "X-Original-URI", "X-Envoy-External-Address", "X-Amzn-Trace-Id"),
)
"""Headers that proxies, tunnels and content networks add."""

ANSWERS = (
    *("/", "/index.json", "/skills.json", "/skills/sums", "/files/sums?path=SKILL.md"),
    *("/why?q=/etc", "/sources.json", "/openapi.json", "/changes.atom", "/nothing", "/healthzz"),
    *("/raw/sums?path=SKILL.md", "/download/sums.skill", "/api/v1/skills", "/api/v1/search?q=sums"),
    *("/.well-known/clawhub.json", "/.well-known/agent-skills/index.json", "/mcp", "/static"),
    *("/artifacts/sums/skill.tar.gz", "/s/sums/.well-known/agent-skills/index.json"),
)
"""Addresses of each kind of answer; none is for strangers."""


@pytest.mark.parametrize("sign", SIGNS)
def test_a_request_with_a_header_of_a_proxy_needs_a_token(site, sign):
    assert site.ask("/index.json").status == 200
    answer = site.ask("/index.json", **{sign: "192.0.2.1"})
    assert answer.status == 401
    assert b"letters" not in answer.body


def test_every_kind_of_answer_needs_a_token_behind_a_proxy(registry, library):
    with serving(registry, mcp=True) as site:
        for path in ANSWERS:
            assert site.ask(path, Via="1.1 proxy").status == 401, path
            assert site.ask(path).status != 401, path


def test_a_request_by_http_1_0_needs_a_token_as_a_stock_proxy_sends_it(site):
    def status(line):
        with socket.create_connection(("127.0.0.1", site.port), timeout=30) as connection:
            host = f"Host: 127.0.0.1:{site.port}\r\nConnection: close\r\n\r\n"
            connection.sendall(f"{line}\r\n{host}".encode())
            return connection.makefile("rb").readline().split()[1]

    assert status("GET /index.json HTTP/1.1") == b"200"
    assert status("GET /index.json HTTP/1.0") == b"401"
    assert status("GET /healthz HTTP/1.0") == b"200"


@pytest.mark.parametrize("host", [None, "skills.example.org"])
def test_with_a_public_url_every_request_needs_a_token(registry, tokens, host):
    _, shown = tokens.create("anna")
    given = {"Host": host} if host else {}
    with serving(registry, mcp=True, public="https://skills.example.org") as site:
        for path in ANSWERS:
            assert site.ask(path, **given).status == 401, path
            assert site.ask(path, Authorization=f"Bearer {shown}", **given).status != 401, path
        for path in ("/healthz", "/robots.txt", "/static/catalogue.css"):
            assert site.ask(path, **given).status == 200, path
    with serving(registry, public="http://127.0.0.1:9") as site:
        assert site.ask("/index.json").status == 200


def test_every_answer_keeps_browsers_from_running_what_is_not_ours(site):
    for path in [
        "/",
        "/skills/sums",
        "/skills/nope",
        "/?sort=x",
        "/index.json",
        "/raw/sums?path=SKILL.md",
    ]:
        headers = site.ask(path).headers
        policy = headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe-eval" not in policy
        assert "script-src 'unsafe-inline'" not in policy
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "same-origin"
        assert headers["cross-origin-resource-policy"] == "same-origin"
    assert site.ask("/", Host="evil.example").headers["x-content-type-options"] == "nosniff"


def test_no_page_has_a_script_or_a_style_in_it(site):
    for path in ["/", "/?q=sums", "/skills/sums", "/history/sums", "/stats"]:
        answer = site.get(path)
        for tag, given in answer.page.elements:
            assert tag != "style"
            assert "style" not in given
            assert not any(name.startswith("on") for name in given)
            assert tag != "script" or given["src"].startswith("/static/")
        assert not re.search(r"<script[^>]*>[^<]", answer.text)


def test_it_says_that_it_lives_without_a_token_and_nothing_else(site):
    assert site.ask("/healthz", X_Forwarded_For="192.0.2.1").text == "ok\n"
    for method in ("POST", "PUT", "DELETE", "PATCH"):
        assert site.ask("/skills/sums", method).status == 405


def test_a_request_that_is_too_large_is_turned_away(site):
    answer = site.ask("/login", "POST", b"x" * (MAX_BYTES + 1))
    assert answer.status == 413
    assert site.ask("/healthz").status == 200


INVALID = "This token is unknown or no longer valid.\n"


@pytest.fixture
def tokens(registry, library):
    return registry.tokens()


@pytest.mark.both
def test_a_token_lets_in_and_one_that_is_revoked_or_over_does_not(registry, tokens):
    token, shown = tokens.create("anna")
    with serving(registry, host="0.0.0.0") as site:
        assert site.ask("/").text == "This request needs a token.\n"
        wrong = site.ask("/", Authorization=f"Bearer {shown}x")
        assert (wrong.status, wrong.text) == (401, INVALID)
        assert wrong.headers["www-authenticate"] == 'Bearer error="invalid_token"'
        assert site.ask("/index.json", Authorization=f"Basic {shown}").status == 401
        answer = site.ask("/index.json", Authorization=f"Bearer {shown}")
        assert answer.json["total"] == 4
        assert answer.headers["vary"] == "Accept-Encoding, Authorization, Cookie"
        assert tokens.list()[0].used_at is not None
        tokens.revoke(token.number)
        assert site.ask("/", Authorization=f"Bearer {shown}").text == INVALID


def test_a_browser_signs_in_with_a_token_and_out_again(registry, tokens):
    _, shown = tokens.create("anna")
    with serving(registry, host="0.0.0.0") as site:
        page = site.ask("/", Accept="text/html")
        assert page.status == 401
        assert "Paste your token" in page.text
        assert "sums" not in page.text
        form = {"Content-Type": "application/x-www-form-urlencoded"}
        assert site.ask("/login", "POST", "token=skr_wrong", **form).status == 401
        assert site.ask("/login", "POST", "token=" + "x" * 40_000, **form).status == 401
        foreign = site.ask("/login", "POST", f"token={shown}", Origin="http://evil.example", **form)
        assert foreign.status == 403
        entered = site.ask("/login", "POST", f"token={shown}", **form)
        assert (entered.status, entered.headers["location"]) == (303, "/")
        cookie = entered.headers["set-cookie"]
        assert "HttpOnly" in cookie
        assert "SameSite=lax" in cookie
        answer = site.ask("/", Cookie=cookie.partition(";")[0])
        assert "Sign out" in answer.page.text
        assert "anna" in answer.page.text
        left = site.ask("/logout", "POST")
        assert f'{COOKIE}=""' in left.headers["set-cookie"]


def test_who_signs_in_goes_on_to_the_page_that_was_asked_for(registry, tokens):
    _, shown = tokens.create("anna")
    form = {"Content-Type": "application/x-www-form-urlencoded"}

    def wanted(page):
        (field,) = [given for tag, given in page.elements if given.get("name") == "wanted"]
        return field["value"]

    with serving(registry, host="0.0.0.0") as site:
        link = "/files/mine%2Fsums?path=scripts%2Fsum.py&x=%22%C3%A9"
        page = site.ask(link, Accept="text/html").page
        assert wanted(page) == link
        body = urlencode({"token": "skr_wrong", "wanted": wanted(page)})
        again = site.ask("/login", "POST", body, **form)
        assert wanted(again.page) == link
        body = urlencode({"token": shown, "wanted": wanted(again.page)})
        assert site.ask("/login", "POST", body, **form).headers["location"] == link
        for other in ["//evil.example", "/\\evil.example", "https://evil.example", "/\t/evil", ""]:
            body = urlencode({"token": shown, "wanted": other})
            assert site.ask("/login", "POST", body, **form).headers["location"] == "/"
        assert wanted(site.ask("/login", Accept="text/html").page) == "/"


def test_over_tls_the_cookie_is_never_sent_in_the_clear(registry, tokens):
    _, shown = tokens.create("anna")
    with serving(registry, public="https://skills.example.org") as site:
        form = {"Content-Type": "application/x-www-form-urlencoded"}
        entered = site.ask("/login", "POST", f"token={shown}", **form)
        assert "Secure" in entered.headers["set-cookie"]
        cookie = entered.headers["set-cookie"].partition(";")[0]
        assert site.ask("/", Host="skills.example.org", Cookie=cookie).status == 200


@pytest.mark.both
def test_a_token_of_a_source_shows_nothing_else(registry, tokens, tmp_path):
    from tests.conftest import write_skill

    write_skill(tmp_path / "other" / "hidden", description="Not for everybody.")
    write_skill(tmp_path / "other" / "sums", description="Other sums.", body="# Other\n")
    registry.sync(str(tmp_path / "other"), name="other")
    _, shown = tokens.create("anna", source="mine")
    with serving(registry, host="0.0.0.0") as site:

        def ask(path):
            return site.ask(path, Authorization=f"Bearer {shown}")

        for path, *_ in PATHS:
            answer = ask(path.replace("{ref}", "mine/sums").replace("{name}", "x"))
            assert b"hidden" not in answer.body.replace(b"hidden by", b""), path
            assert b"Other sums" not in answer.body, path
        assert ask("/index.json").json["total"] == 4
        assert ask("/index.json?source=other").json["total"] == 0
        assert ask("/skills.json?all=1").text.count('"ref"') == 5
        assert ask("/skills/sums.json").json["source"] == "mine"
        for place in ("skills", "history", "copies"):
            assert ask(f"/{place}/other/hidden").status == 404
        for place in ("files", "raw"):
            assert ask(f"/{place}/other/hidden?path=SKILL.md").status == 404
            assert ask(f"/{place}/hidden?path=SKILL.md").status == 404
        assert ask("/download/hidden.skill").status == 404
        assert [one["name"] for one in ask("/sources.json").json["sources"]] == ["mine"]
        assert "path" not in ask("/sources.json").json["sources"][0]


def test_a_token_of_what_is_no_more_lets_nobody_in_and_names_nothing_else(
    registry, tokens, monkeypatch, library, database
):
    _, shown = tokens.create("anna", source="mine")
    given = {"Authorization": f"Bearer {shown}"}
    monkeypatch.chdir(library.parent)
    with serving(registry, mcp=True) as site:
        assert site.ask("/", **given).status == 200
        registry.update_source("mine", new_name=library.name)
        for path in ("/", "/index.json", "/skills.json", "/api/v1/skills", "/mcp"):
            told = site.ask(path, **given)
            assert (told.status, library.name in told.text) == (401, False), path
        registry.update_source(library.name, new_name="mine")
        assert site.ask("/index.json", **given).json["total"] == 4
        assert site.ask("/mcp", **given).status == 406  # let in, but it was no request
    settings = Settings(personalities={"coder": Personality("coder")})
    with SkillRegistry.open(database, settings=settings) as before:
        _, shown = before.tokens().create("ben", personality="coder")
    with serving(registry) as site:
        assert site.ask("/", Authorization=f"Bearer {shown}").status == 401


@pytest.mark.both
@pytest.mark.parametrize("narrowed", [{"source": "mine"}, {"personality": "coder"}])
def test_of_copies_that_a_token_does_not_show_nothing_is_said(database, tmp_path, narrowed):
    from tests.conftest import write_skill

    for name in ("mine", "yonder"):
        write_skill(tmp_path / name / "twin", description="Twins.", extra="tags: [t]\n")
    coder = Personality(name="coder", team="mine", global_ingest=GlobalIngest(mode="none"))
    settings = Settings(personalities={"coder": coder})
    with SkillRegistry.open(database, settings=settings, upgrade=True) as registry:
        registry.sync(str(tmp_path / "mine"), name="mine", scope="team")
        registry.sync(str(tmp_path / "yonder"), name="yonder")
        _, shown = registry.tokens().create("anna", **narrowed)
        with serving(registry) as site:
            for path in ("/index", "/skills", "/skills/twin", "/copies/twin"):
                asked = f"{path}.json"
                assert "yonder/twin" in site.get(asked).text, path
                told = site.ask(asked, Authorization=f"Bearer {shown}").text
                assert "twin" in told, path
                assert "yonder" not in told, path
            for path in ("/index.json?q=twins", "/why.json?q=twin", "/?tag=t", "/"):
                told = site.ask(path, Authorization=f"Bearer {shown}").text
                assert "twin" in told, path
                assert "yonder" not in told, path
                assert "also in" not in told, path


def test_a_personality_that_the_server_does_not_know_yet_is_named_in_its_log(
    registry, library, database, caplog
):
    settings = Settings(personalities={"finance": Personality(name="finance")})
    with SkillRegistry.open(database, settings=settings) as later:
        token, shown = later.tokens().create("finbot", personality="finance")
    with serving(registry, host="0.0.0.0") as site:
        for _ in range(2):
            assert site.ask("/", Authorization=f"Bearer {shown}").text == INVALID
    (told,) = [one.getMessage() for one in caplog.records if "is refused" in one.getMessage()]
    assert f"The token finbot ({token.number}) is refused: No personality named 'finance'" in told
    assert "reads the settings only when it starts" in told


def test_a_new_token_with_a_personality_names_the_restart_that_a_server_needs(database, tmp_path):
    config = tmp_path / "config.yaml"
    config.write_text("personalities: {finance: {}}\n")
    given = ("--db", str(database), "--config", str(config))
    made = run(*given, "token", "create", "finbot", "--read", "--personality", "finance")
    assert made.exit_code == 0, made.output
    assert "If you have added finance since then, restart 'skill-registry serve'." in made.stderr


def test_who_a_trusted_proxy_names_is_let_in_and_nobody_else(registry, library):
    with serving(registry, trusted=PROXY) as site:
        assert site.ask("/index.json").status == 401
        answer = site.ask("/", X_User="anna")
        assert answer.status == 200
        assert "anna" in answer.page.text
    far = Trusted("X-User", [ipaddress.ip_network("10.0.0.0/8")])
    with serving(registry, trusted=far) as site:
        assert site.ask("/index.json", X_User="anna").status == 401


def test_a_token_counts_more_than_the_word_of_a_proxy_and_another_scheme_for_nothing(
    registry, tokens
):
    """A proxy that asks for a password hands on what it was told, as most do unless told not to."""
    _, shown = tokens.create("ci", source="mine")
    with serving(registry, trusted=PROXY) as site:
        assert "anna" in site.ask("/", X_User="anna", Authorization="Basic eDp5").page.text
        assert "ci" in site.ask("/", X_User="anna", Authorization=f"Bearer {shown}").page.text
        assert site.ask("/", X_User="anna", Authorization="Bearer skr_wrong").status == 401
    with serving(registry) as site:
        assert site.ask("/", Authorization="Basic eDp5").status == 401
        cookie = f"{COOKIE}={shown}"
        assert "ci" in site.ask("/", Cookie=cookie, Authorization="Basic eDp5").page.text


def test_a_browser_signs_in_through_a_proxy_that_calls_us_by_our_own_name(registry, tokens):
    _, shown = tokens.create("anna")
    form = {"Content-Type": "application/x-www-form-urlencoded", "X-Forwarded-For": "192.0.2.1"}
    with serving(registry, public="https://skills.example.org") as site:

        def login(origin):
            return site.ask("/login", "POST", f"token={shown}", Origin=origin, **form).status

        assert login("https://skills.example.org") == 303
        assert login("http://skills.example.org") == 403
        assert login("https://evil.example.org") == 403


@pytest.mark.parametrize(
    ("address", "hosts"),
    [
        (Address(), ["127.0.0.1:8765", "localhost:8765", "[::1]:8765"]),
        (Address("0.0.0.0"), None),
        (Address("192.0.2.1", 80), ["192.0.2.1:80", "192.0.2.1"]),
        (Address("192.0.2.1", 443), ["192.0.2.1:443"]),
        (
            Address(public="https://skills.example.org"),
            ["127.0.0.1:8765", "localhost:8765", "[::1]:8765", "skills.example.org"],
        ),
    ],
)
def test_what_the_host_of_a_request_may_be(address, hosts):
    assert address.hosts == hosts


def test_the_description_of_the_api_names_what_answers(site):
    described = site.get("/openapi.json").json
    assert described["openapi"] == "3.1.0"
    for path in described["paths"]:
        asked = path.replace("{ref}", "sums").replace("{name}", "nobody")
        answer = site.ask(asked, query={"path": "SKILL.md"} if "/files/" in path else None)
        expected = 404 if "nobody" in asked else 200
        assert (answer.status, answer.headers["content-type"]) == (expected, "application/json")


def test_an_error_is_json_for_a_program_that_accepts_it_and_a_page_for_a_browser(registry, tokens):
    _, shown = tokens.create("anna")
    bearer = {"Authorization": f"Bearer {shown}"}
    asked = [
        ("/skills/nope", "GET", bearer, 404, "skill_not_found"),
        ("/nowhere", "GET", bearer, 404, "page_not_found"),
        ("/tags", "DELETE", bearer, 405, "method_not_allowed"),
        ("/skills/sums", "POST", bearer, 405, "method_not_allowed"),
        ("/skills/sums", "GET", {}, 401, "token_needed"),
        ("/git/catalogue.git/info/refs", "GET", {}, 401, "token_needed"),
        ("/proposals/abc", "POST", {}, 401, "token_needed"),
    ]
    with serving(registry, host="0.0.0.0") as site:
        for path, method, given, status, code in asked:
            answer = site.ask(path, method, Accept="application/json", **given)
            assert (answer.status, answer.json["error"]["code"]) == (status, code), path
            page = site.ask(path, method, Accept="text/html,*/*;q=0.8", **given)
            assert page.status == status, path
            assert page.headers["content-type"] == "text/html; charset=utf-8", path
            if status == 405:
                assert "GET" in answer.headers["allow"]
                assert "GET" in page.headers["allow"]
        assert site.ask("/skills/sums", "POST", **bearer).text.startswith("This address does not")
        assert site.ask("/index.json").json["error"]["message"] == "This request needs a token."
