"""What servers may send, where they may lead, and whom they are told of."""

import base64
import gzip
import ipaddress
import os
import socket
import struct
from io import BytesIO
from pathlib import Path

import pytest

from registry.errors import (
    RemoteInvalid,
    RemoteProblem,
    RemoteRefused,
    RemoteTooLarge,
    RemoteUnreachable,
)
from registry.remotes.address import place_of, redacted, resolved
from registry.remotes.http import HttpClient
from registry.remotes.snapshot import FetchLimits

LOGIN = "Basic " + base64.b64encode(b"ann:s3cret/@").decode()


@pytest.fixture
def fetch():
    """Return what lies at an address, asked for by the client of the first one."""

    def run(url, then=None, most=1 << 20, **bounds):
        client = HttpClient(url, FetchLimits(**bounds))
        into = BytesIO()
        client.get(client.url, into, most, {})
        if then is not None:
            into = BytesIO()
            client.get(then, into, most, {})
        return into.getvalue()

    return run


class TestPlainHttp:
    """It is for this machine only: others can read and change what goes by."""

    @pytest.mark.parametrize("host", ["site.example", "10.0.0.1", "[fd00::1]", "localhost.example"])
    def test_another_host_is_not_asked(self, fetch, monkeypatch, host):
        asked = []
        monkeypatch.setattr(socket, "getaddrinfo", lambda *args, **_: asked.append(args))
        with pytest.raises(RemoteInvalid, match="use https"):
            fetch(f"http://{host}/a")
        assert asked == []

    def test_a_redirect_or_an_index_leads_to_none(self, server, fetch):
        server.redirect("/a", "http://site.example/b")
        server.put("/c", b"")
        with pytest.raises(RemoteInvalid, match="use https"):
            fetch(f"{server.url}/a")
        with pytest.raises(RemoteInvalid, match="use https"):
            fetch(f"{server.url}/c", then="http://site.example/b")

    def test_a_localhost_that_is_another_machine_is_not_asked(
        self, make_server, monkeypatch, fetch, abroad
    ):
        server = make_server()
        abroad("localhost", "93.184.216.34", server)
        with pytest.raises(RemoteProblem):
            fetch("http://localhost/a")
        assert server.asked == []

    @pytest.mark.parametrize("kind", ["a site", "an archive", "git"])
    def test_the_command_refuses_each_kind(self, cli, kind):
        ending = {"a site": "", "an archive": "/x.zip", "git": "/x.git"}[kind]
        run = cli("sync", f"http://site.example{ending}")
        assert run.exit_code != 0
        assert "use https" in run.stderr


class TestRedirects:
    @pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
    def test_they_are_followed(self, server, fetch, status):
        server.redirect("/a", "b/c", status)
        server.put("/b/c", b"found")
        assert fetch(f"{server.url}/a") == b"found"

    def test_five_of_them_and_no_more(self, server, fetch):
        for number in range(7):
            server.redirect(f"/{number}", f"/{number + 1}")
        server.put("/6", b"found")
        assert fetch(f"{server.url}/1") == b"found"
        with pytest.raises(RemoteInvalid, match="redirects more than 5 times"):
            fetch(f"{server.url}/0")

    def test_a_circle_ends(self, server, fetch):
        server.redirect("/a", "/a")
        with pytest.raises(RemoteInvalid, match="redirects more than 5 times"):
            fetch(f"{server.url}/a")
        assert len(server.asked) == 6

    @pytest.mark.parametrize(
        "to",
        ["file:///etc/passwd", "ftp://127.0.0.1/x", "gopher://x", "http://[::1", "//:x"],
    )
    def test_to_anything_else_they_are_not(self, server, fetch, to):
        server.redirect("/a", to)
        with pytest.raises(RemoteInvalid):
            fetch(f"{server.url}/a")
        assert server.asked == ["/a"]

    def test_never_from_https_to_http(self):
        with pytest.raises(RemoteInvalid, match="from https to http"):
            resolved("https://h/a", "http://h/b")
        assert resolved("http://h/a", "https://h/b") == "https://h/b"


class TestPlacesOfOurs:
    LOCAL = ("127.0.0.1", "localhost", "[::1]", "0.0.0.0", "[::ffff:127.0.0.1]", "127.1.2.3")

    @pytest.mark.parametrize("host", LOCAL)
    def test_a_public_server_leads_to_none_on_this_machine(self, abroad, make_server, fetch, host):
        public, local = make_server(), make_server()
        local.put("/secret", b"secret")
        public.redirect("/a", f"https://{host}:{local.port}/secret")
        url = abroad("site.example", "93.184.216.34", public)
        with pytest.raises(RemoteInvalid, match="loopback address"):
            fetch(f"{url}/a")
        assert public.asked == ["/a"]
        assert local.asked == []

    @pytest.mark.parametrize(
        "address",
        [
            "169.254.169.254",
            "100.100.100.200",
            "10.0.0.1",
            "192.168.1.1",
            "172.16.0.1",
            "fd00:ec2::254",
            "fe80::1",
            "64:ff9b::7f00:1",
            "2002:7f00:1::",
            "224.0.0.1",
        ],
    )
    def test_nor_to_one_of_its_network(self, abroad, make_server, fetch, address):
        public, local = make_server(), make_server()
        local.put("/secret", b"secret")
        to = abroad("inside.example", address, local)
        public.redirect("/a", f"{to}/secret")
        url = abroad("site.example", "93.184.216.34", public)
        with pytest.raises(RemoteInvalid, match="which is not allowed"):
            fetch(f"{url}/a")
        assert local.asked == []
        assert fetch(f"{url}/a", private=True) == b"secret"

    def test_nor_by_an_address_that_an_index_names(self, abroad, make_server, fetch):
        public, local = make_server(), make_server()
        public.put("/", b"")
        url = abroad("site.example", "93.184.216.34", public)
        with pytest.raises(RemoteInvalid, match="loopback address"):
            fetch(url, then=f"https://127.0.0.1:{local.port}/secret")
        assert local.asked == []

    def test_a_name_that_means_something_else_the_second_time_leads_nowhere(
        self, abroad, make_server, fetch
    ):
        public, local = make_server(), make_server()
        url = abroad("site.example", "93.184.216.34", public)

        def answer(handler):
            abroad("site.example", "10.0.0.1", local)
            handler.send_response(302)
            handler.send_header("Location", "/again")
            handler.end_headers()

        public.routes["/a"] = answer
        with pytest.raises(RemoteInvalid, match="private address"):
            fetch(f"{url}/a")
        assert local.asked == []

    def test_a_server_on_this_machine_leads_to_others_on_it(self, make_server, fetch):
        one, other = make_server(), make_server()
        one.redirect("/a", f"http://localhost:{other.port}/b")
        other.put("/b", b"found")
        assert fetch(f"{one.url}/a") == b"found"

    def test_but_not_to_the_cloud_that_it_runs_in(self, server, fetch):
        server.redirect("/a", "https://169.254.169.254/latest/meta-data/")
        with pytest.raises(RemoteInvalid, match="link-local address"):
            fetch(f"{server.url}/a")

    @pytest.mark.parametrize(
        ("address", "place"),
        [
            ("93.184.216.34", "public"),
            ("2606:4700::1111", "public"),
            ("::1", "loopback"),
            ("::", "loopback"),
            ("169.254.0.1", "link-local"),
            ("10.1.1.1", "private"),
            ("::ffff:10.1.1.1", "private"),
            ("64:ff9b::a9fe:a9fe", "link-local"),
            ("2002:a00:1::", "private"),
            ("240.0.0.1", "private"),
            ("255.255.255.255", "private"),
            ("100.64.0.1", "private"),
            ("192.0.0.9", "private"),
            ("192.88.99.1", "private"),
            ("198.18.0.1", "private"),
            ("198.19.255.255", "private"),
            ("224.0.0.1", "private"),
            ("0.0.0.0", "loopback"),
            ("0.1.2.3", "loopback"),
            ("::ffff:8.8.8.8", "public"),
            ("::ffff:127.0.0.1", "loopback"),
            ("::ffff:0:127.0.0.1", "loopback"),
            ("::127.0.0.1", "loopback"),
            ("::8.8.8.8", "private"),
            ("64:ff9b::8.8.8.8", "public"),
            ("64:ff9b::127.0.0.1", "loopback"),
            ("64:ff9b:1::8.8.8.8", "private"),
            ("2002:7f00:1::", "private"),
            ("2002:808:808::", "private"),
            ("2001:0:808:808::f7f7:f7f7", "private"),
            ("2606:4700::200:5efe:127.0.0.1", "loopback"),
            ("2001:db8::1", "private"),
            ("fec0::1", "private"),
            ("fc00::1", "private"),
            ("fe80::1", "link-local"),
            ("fe80::1%eth0", "link-local"),
            ("2606:4700::1111%eth0", "link-local"),
            ("ff02::1", "private"),
        ],
    )
    def test_places(self, address, place):
        assert place_of(ipaddress.ip_address(address)) == place


@pytest.fixture
def netrc():
    """The user's file of passwords, with one for this machine."""
    file = Path(os.environ["HOME"], ".netrc")
    file.write_text("machine 127.0.0.1 login ann password s3cret/@\n")
    file.chmod(0o600)
    return file


class TestPasswords:
    def test_user_and_password_of_the_address_are_sent(self, server, fetch):
        server.put("/a", b"found")
        url = f"http://ann:s3cret%2F%40@127.0.0.1:{server.port}/a"
        assert fetch(url) == b"found"
        assert server.headers[0]["Authorization"] == LOGIN
        assert "ann" not in server.headers[0]["Host"]

    @pytest.mark.parametrize("named", [True, False])
    def test_those_of_the_netrc_file_are_sent(self, server, fetch, netrc, named, monkeypatch):
        if named:
            monkeypatch.setenv("NETRC", str(netrc.rename(netrc.with_name("mine"))))
        server.put("/a", b"found")
        fetch(f"{server.url}/a")
        assert server.headers[0]["Authorization"] == LOGIN

    def test_another_server_never_sees_those_of_the_netrc_file(self, make_server, fetch, netrc):
        netrc.write_text("machine localhost login ann password s3cret/@\n")
        one, other = make_server(), make_server()
        one.redirect("/a", f"http://localhost:{other.port}/b")
        other.put("/b", b"found")
        fetch(f"{one.url}/a")
        assert [one.get("Authorization") for one in (*one.headers, *other.headers)] == [None, None]

    @pytest.mark.parametrize(
        ("text", "mode"),
        [
            (b"machine 127.0.0.1 login", 0o600),
            (b"\xff\xfe machine", 0o600),
            (b"machine site.example login ann password pw\n", 0o644),
        ],
    )
    def test_a_netrc_file_without_a_password_for_the_host_stops_nobody(
        self, server, fetch, netrc, text, mode
    ):
        netrc.write_bytes(text)
        netrc.chmod(mode)
        server.put("/a", b"found")
        assert fetch(f"{server.url}/a") == b"found"
        assert "Authorization" not in server.headers[0]

    @pytest.mark.parametrize("mode", [0o644, 0o640, 0o604, 0o620])
    @pytest.mark.parametrize("named", [True, False])
    def test_a_netrc_file_that_others_can_read_or_change_is_refused(
        self, server, fetch, netrc, mode, named, monkeypatch
    ):
        if named:
            netrc = netrc.rename(netrc.with_name("mine"))
            monkeypatch.setenv("NETRC", str(netrc))
        netrc.chmod(mode)
        with pytest.raises(RemoteInvalid, match=f"chmod 600 {netrc}"):
            fetch(f"{server.url}/a")
        assert server.asked == []

    def test_a_netrc_file_of_another_user_is_refused(self, server, fetch, netrc, monkeypatch):
        me = os.geteuid()
        monkeypatch.setattr(os, "geteuid", lambda: me + 1)
        with pytest.raises(RemoteInvalid, match="other users can read or change"):
            fetch(f"{server.url}/a")
        assert server.asked == []

    def test_a_redirect_on_the_same_host_keeps_them(self, server, fetch):
        server.redirect("/a", "/b")
        server.put("/b", b"found")
        fetch(f"http://ann:s3cret%2F%40@127.0.0.1:{server.port}/a")
        assert [one.get("Authorization") for one in server.headers] == [LOGIN, LOGIN]

    @pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
    def test_another_server_never_sees_them(self, make_server, fetch, host):
        one, other = make_server(), make_server()
        one.redirect("/a", f"http://{host}:{other.port}/b")
        other.redirect("/b", f"{one.url}/c")
        one.put("/c", b"found")
        assert fetch(f"http://ann:s3cret%2F%40@127.0.0.1:{one.port}/a") == b"found"
        assert [one.get("Authorization") for one in one.headers] == [LOGIN, LOGIN]
        assert len(other.headers) == 1
        assert "s3cret" not in str(other.headers)
        assert "Authorization" not in other.headers[0]

    def test_those_of_strangers_are_not_sent(self, server, fetch):
        server.redirect("/a", f"http://eve:pw@127.0.0.1:{server.port}/b")
        server.put("/b", b"found")
        fetch(f"{server.url}/a")
        assert all("Authorization" not in headers for headers in server.headers)

    @pytest.mark.parametrize(
        "url",
        [
            "http://ann:s3cret@127.0.0.1:1/x?token=s3cret#s3cret",
            "http://ann:s3cret@nosuch.invalid/x",
            "http://s3cret@127.0.0.1:1/",
            "http://ann:s3cret/with@127.0.0.1:1/",
            "http://ann:s3cret@[::1/",
            "ftp://ann:s3cret@127.0.0.1/",
            "http://ann:s3cret@/",
        ],
    )
    def test_no_error_tells_them(self, fetch, url):
        with pytest.raises(RemoteProblem) as caught:
            fetch(url)
        assert "s3cret" not in f"{caught.value!s} {caught.value.facts!r}"
        assert "s3cret" not in redacted(url)


class TestWhatIsSent:
    def test_a_server_that_is_not_there_is_unreachable(self, fetch, make_server):
        with pytest.raises(RemoteUnreachable, match="refused"):
            fetch("http://127.0.0.1:1/")
        with pytest.raises(RemoteUnreachable, match="the host is unknown"):
            fetch("https://nosuch.invalid/")

    @pytest.mark.parametrize("drip", ["head", "headers", "body", "pause", "continue", "nothing"])
    def test_a_server_that_only_drips_is_left(self, server, fetch, drip):
        def answer(handler):
            start = {
                "head": b"HTTP/1.1 200 O",
                "headers": b"HTTP/1.1 200 OK\r\nX: ",
                "body": b"HTTP/1.1 200 OK\r\n\r\n",
                "pause": b"HTTP/1.1 200 OK\r\n\r\n",
                "continue": b"",
                "nothing": b"",
            }[drip]
            handler.wfile.write(start)
            more = b"HTTP/1.1 100 Go on\r\n\r\n" if drip == "continue" else b"x"
            while not server.ended.wait(0.01):
                if drip not in {"pause", "nothing"}:
                    handler.wfile.write(more)

        server.routes["/a"] = answer
        try:
            with pytest.raises(RemoteUnreachable, match=r"took more than 0\.3 seconds"):
                fetch(f"{server.url}/a", seconds=0.3)
        finally:
            server.ended.set()

    @pytest.mark.parametrize("start", [b"", b"HTTP/1.1 200 OK\r\n\r\n"], ids=["head", "body"])
    def test_a_server_that_is_too_slow_is_left_long_before_the_time_is_up(
        self, server, fetch, start
    ):
        def answer(handler):
            handler.wfile.write(start)
            while not server.ended.wait(0.01):
                handler.wfile.write(b"H")

        server.routes["/a"] = answer
        try:
            with pytest.raises(RemoteUnreachable) as caught:
                fetch(f"{server.url}/a", seconds=600, patience=0.3, slowest=1 << 20)
        finally:
            server.ended.set()
        assert "took more than" not in str(caught.value)

    @pytest.mark.parametrize("length", ["10", "4"])
    def test_a_body_of_another_length_than_said_is_refused(self, server, fetch, length):
        server.put("/a", b"12345", Content_Length=length)
        if length == "4":  # what comes after it belongs to nobody
            assert fetch(f"{server.url}/a") == b"1234"
        else:
            with pytest.raises(RemoteUnreachable, match="broke off"):
                fetch(f"{server.url}/a")

    def test_a_connection_that_is_reset_is_no_end(self, server, fetch):
        def answer(handler):
            handler.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nsome")
            handler.wfile.flush()
            linger = struct.pack("ii", 1, 0)
            handler.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
            handler.connection.close()

        server.routes["/a"] = answer
        with pytest.raises(RemoteUnreachable, match="broke off"):
            fetch(f"{server.url}/a")

    def test_a_chunk_that_is_missing_is_no_end(self, server, fetch):
        def answer(handler):
            handler.wfile.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nsome")

        server.routes["/a"] = answer
        with pytest.raises(RemoteUnreachable, match="broke off"):
            fetch(f"{server.url}/a")

    def test_an_encoding_that_unpacks_is_not_taken(self, server, fetch):
        server.put("/a", gzip.compress(bytes(10_000_000)), Content_Encoding="gzip")
        with pytest.raises(RemoteInvalid, match="encoding"):
            fetch(f"{server.url}/a")
        assert server.headers[0]["Accept-Encoding"] == "identity"

    @pytest.mark.parametrize(
        "answer",
        [b"SSH-2.0-OpenSSH\r\n", b"\0" * 100, b"HTTP/1.1 abc\r\n\r\n", b"x" * 200_000,
         b"HTTP/1.1 200 OK\r\n" + b"A: b\r\n" * 1000 + b"\r\n"],
        ids=["ssh", "zeros", "no status", "no line", "a thousand headers"],
    )  # fmt: skip
    def test_what_is_no_http_is_refused(self, server, fetch, answer):
        server.routes["/a"] = lambda handler: handler.wfile.write(answer)
        with pytest.raises(RemoteProblem):
            fetch(f"{server.url}/a")

    def test_more_than_is_asked_for_is_not_taken(self, server, fetch):
        server.put("/said", bytes(11))
        server.routes["/unsaid"] = lambda handler: handler.wfile.write(
            b"HTTP/1.0 200 OK\r\n\r\n" + bytes(11)
        )
        for path in ("/said", "/unsaid"):
            assert fetch(f"{server.url}{path}", most=11) == bytes(11)
            with pytest.raises(RemoteTooLarge, match="and 10 are taken"):
                fetch(f"{server.url}{path}", most=10)

    def test_all_of_it_together_is_bounded(self, server, fetch):
        server.put("/a", bytes(600))
        with pytest.raises(RemoteTooLarge, match="are taken"):
            fetch(f"{server.url}/a", then=f"{server.url}/a", bytes=1000)
        server.routes["/b"] = lambda handler: handler.wfile.write(
            b"HTTP/1.0 200 OK\r\n\r\n" + bytes(2000)
        )
        with pytest.raises(RemoteTooLarge, match="together"):
            fetch(f"{server.url}/b", bytes=1000)

    def test_a_busy_server_is_asked_again(self, server, fetch):
        def answer(handler):
            busy = len(server.asked) < 3
            handler.send_response(429 if busy else 200)
            handler.send_header("Retry-After", "0")
            handler.end_headers()
            handler.wfile.write(b"found")

        server.routes["/a"] = answer
        assert fetch(f"{server.url}/a") == b"found"
        assert len(server.asked) == 3

    @pytest.mark.parametrize("after", ["1000", "Fri, 31 Dec 9999 23:59:59 GMT"])
    def test_but_not_waited_for_longer_than_allowed(self, server, fetch, after):
        server.put("/a", b"", 429, Retry_After=after)
        with pytest.raises(RemoteUnreachable, match="busy and asks to wait"):
            fetch(f"{server.url}/a", seconds=10)
        assert len(server.asked) == 1

    def test_nor_for_ever(self, server, fetch):
        server.put("/a", b"", 503, Retry_After="0")
        with pytest.raises(RemoteUnreachable, match="HTTP status 503"):
            fetch(f"{server.url}/a")
        assert len(server.asked) == 3

    @pytest.mark.parametrize(
        "body",
        [b"[" * 100_000, b"\xff\xfe{}", b"<html>", b"", b"9" * 10_000, b'{"a":'],
        ids=["deep", "not UTF-8", "a page", "empty", "a number", "cut"],
    )
    def test_what_is_no_json_is_refused(self, server, body):
        server.put("/a", body)
        with pytest.raises(RemoteInvalid, match="not JSON"):
            HttpClient(server.url, FetchLimits()).json(f"{server.url}/a")

    def test_signs_in_an_address_are_sent_as_they_have_to_be(self, server, fetch):
        server.put("/%C3%BC%20b", b"found")
        assert fetch(f"{server.url}/\u00fc b") == b"found"
        server.redirect("/c", "/\u00fc b".encode().decode("latin-1"))
        with pytest.raises(RemoteRefused):
            fetch(f"{server.url}/c\r\nX: y")


class TestProxies:
    def test_plain_http_never_goes_through_one(self, make_server, fetch, netrc, monkeypatch):
        proxy, server = make_server(), make_server()
        server.put("/a", b"found")
        for name in ("http_proxy", "all_proxy", "https_proxy"):
            monkeypatch.setenv(name, proxy.url)
        assert fetch(f"{server.url}/a") == b"found"
        assert proxy.asked == []

    def test_through_one_no_address_of_ours_is_named_either(
        self, abroad, make_server, fetch, monkeypatch
    ):
        proxy, site = make_server(), make_server()
        url = abroad("site.example", "93.184.216.34", site)
        site.redirect("/a", "https://169.254.169.254/")
        with pytest.raises(RemoteInvalid, match="link-local"):
            fetch(f"{url}/a")
        monkeypatch.setenv("https_proxy", proxy.url)
        client = HttpClient("https://nosuch.invalid/a", FetchLimits(public=True))
        with pytest.raises(RemoteInvalid, match="link-local"):
            client.get("https://169.254.169.254/", BytesIO(), 10, {})
        assert proxy.asked == []

    def test_https_goes_through_a_tunnel(self, server, fetch, monkeypatch):
        monkeypatch.setenv("https_proxy", server.url)
        with pytest.raises(RemoteUnreachable, match="Tunnel connection failed"):
            fetch("https://nosuch.invalid/a")


class TestCertificates:
    @pytest.fixture
    def secure(self, make_server, speak_tls):
        """A server whose connections are TLS, once it is asked."""
        server = make_server()
        speak_tls(server)
        return server

    def test_a_certificate_that_nobody_vouches_for_is_refused(self, secure, fetch):
        secure.put("/a", b"found")
        with pytest.raises(RemoteUnreachable, match="certificate can't be trusted"):
            fetch(f"https://localhost:{secure.port}/a")
        assert secure.asked == []

    def test_one_that_is_trusted_is_taken_for_its_own_name_only(self, secure, fetch, trusted):
        secure.put("/a", b"found")
        assert fetch(f"https://localhost:{secure.port}/a") == b"found"
        with pytest.raises(RemoteUnreachable, match="certificate can't be trusted"):
            fetch(f"https://127.0.0.1:{secure.port}/a")


def test_the_client_says_who_it_is(server, fetch):
    server.put("/a", b"")
    fetch(f"{server.url}/a")
    assert server.headers[0]["User-Agent"] == "skill-registry"
