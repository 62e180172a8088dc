"""A lock file is a stranger's: its addresses reach no private host, and get no password."""

import json
import os
import shlex
from pathlib import Path

import pytest

from registry.api import SkillRegistry
from registry.errors import LockNotMet
from registry.install.lockfile import read_lock
from registry.install.pull import restore_from_lock
from registry.install.targets import InstallTarget
from registry.remotes import http
from registry.settings import Settings
from tests.remotes.conftest import document
from tests.remotes.packed import zipped

ANN = (
    "machine site.example login ann password s3cret\nmachine 127.0.0.1 login ann password s3cret\n"
)


@pytest.fixture(autouse=True)
def _netrc():
    file = Path(os.environ["HOME"], ".netrc")
    file.write_text(ANN)
    file.chmod(0o600)


@pytest.fixture
def fresh(tmp_path):
    """A registry that knows nothing."""
    with SkillRegistry.open(tmp_path / "fresh.db", settings=Settings()) as registry:
        yield registry


@pytest.fixture
def lock(registry, server, tmp_path):
    """Make a project whose lock names a skill at an address: ``lock(url)``."""
    server.put("/made.zip", zipped({"alpha/SKILL.md": document("alpha")}))
    chosen = registry.skills_at(f"{server.url}/made.zip", every=True)
    project = tmp_path / "project"
    project.mkdir()
    registry.pull(chosen, str(project))
    found = json.loads((project / "skills.lock.json").read_text())
    (project / "alpha" / "SKILL.md").unlink()
    (project / "alpha").rmdir()
    server.asked.clear()
    server.headers.clear()

    def write(url):
        found["skills"]["alpha"]["origin"]["url"] = url
        (project / "skills.lock.json").write_text(json.dumps(found))
        return project

    return write


class TestPrivateHosts:
    @pytest.mark.parametrize(
        "address",
        [
            "http://127.0.0.1:{port}/made.zip",
            "http://localhost:{port}/made.zip",
            "http://[::1]:{port}/made.zip",
            "https://127.0.0.1:{port}/made.zip",
            "https://0.0.0.0:{port}/made.zip",
            "https://[::ffff:127.0.0.1]:{port}/made.zip",
            "https://127.0.0.1:{port}/x.git",
            "http://127.0.0.1:{port}/x.git",
            "http://127.0.0.1:{port}",
            "https://10.0.0.1/made.zip",
            "https://169.254.169.254/x.git",
            "ssh://git@127.0.0.1:{port}/x.git",
            "git://127.0.0.1:{port}/x.git",
            "git@localhost:x.git",
            "file:///etc",
        ],
    )
    def test_no_request_leaves_and_the_command_that_allows_it_is_shown(
        self, fresh, server, lock, address
    ):
        address = address.format(port=server.port)
        project = lock(address)
        with pytest.raises(LockNotMet) as caught:
            restore_from_lock(fresh.core, InstallTarget.folder(str(project)))
        command = f"skill-registry sync {shlex.quote(address)}"
        assert "only a lock file names it" in str(caught.value)
        assert command in str(caught.value)
        (told,) = fresh.update_pulled(str(project))
        assert told.state in {"failed", "missing"}
        assert server.asked == []

    def test_a_file_here_is_not_read(self, fresh, lock, tmp_path):
        (tmp_path / "own.zip").write_bytes(zipped({"alpha/SKILL.md": document("alpha")}))
        for url in (str(tmp_path / "own.zip"), (tmp_path / "own.zip").as_uri()):
            with pytest.raises(LockNotMet, match="only a lock file names it"):
                restore_from_lock(fresh.core, InstallTarget.folder(str(lock(url))))

    def test_a_host_that_is_private_the_second_time_is_not_asked(
        self, fresh, make_server, lock, abroad
    ):
        site, inside = make_server(), make_server()
        url = abroad("site.example", "93.184.216.34", site)

        def answer(handler):
            abroad("site.example", "10.0.0.1", inside)
            handler.send_response(302)
            handler.send_header("Location", "/again.zip")
            handler.end_headers()

        site.routes["/made.zip"] = answer
        with pytest.raises(LockNotMet, match="private address"):
            restore_from_lock(fresh.core, InstallTarget.folder(str(lock(f"{url}/made.zip"))))
        assert site.asked == ["/made.zip"]
        assert inside.asked == []

    def test_an_address_that_is_a_source_of_the_user_is_asked(self, fresh, server, lock):
        project = lock(f"{server.url}/made.zip")
        server.put("/made.zip", zipped({"SKILL.md": document("other"), "x": b""}))
        fresh.sync(f"{server.url}/made.zip")
        server.put("/made.zip", zipped({"alpha/SKILL.md": document("alpha")}))
        restore_from_lock(fresh.core, InstallTarget.folder(str(project)))
        assert (project / "alpha" / "SKILL.md").read_bytes() == document("alpha")
        assert read_lock(str(project))


class TestPublicHosts:
    @pytest.fixture
    def site(self, make_server, abroad):
        site = make_server()
        site.put("/made.zip", zipped({"alpha/SKILL.md": document("alpha")}))
        site.put("/other.zip", zipped({"beta/SKILL.md": document("beta")}))
        site.home = abroad("site.example", "93.184.216.34", site)
        return site

    def test_they_get_no_password(self, fresh, lock, site):
        project = lock(f"{site.home}/made.zip")
        restore_from_lock(fresh.core, InstallTarget.folder(str(project)))
        assert (project / "alpha" / "SKILL.md").exists()
        assert site.asked
        assert not any("Authorization" in one for one in site.headers)

    def test_unless_a_source_of_the_user_has_the_same_host(self, fresh, lock, site):
        fresh.sync(f"{site.home}/other.zip")
        site.headers.clear()
        restore_from_lock(fresh.core, InstallTarget.folder(str(lock(f"{site.home}/made.zip"))))
        assert all("Authorization" in one for one in site.headers)
        assert site.headers

    def test_git_reaches_only_the_address_that_was_checked_and_gets_no_password(
        self, fresh, lock, upstream, serve_git, abroad, make_server, certificate, monkeypatch
    ):
        server = serve_git(upstream.bare.parent, password="s3cret")
        decoy = make_server()
        abroad("site.example", "127.0.0.1", decoy)
        sent = []

        def note(handler):
            sent.append(handler.headers.get("Authorization"))
            return False

        server.answer = note
        server.password = None
        server.server.socket = decoy.tls.wrap_socket(server.server.socket, server_side=True)
        monkeypatch.setenv("GIT_SSL_CAINFO", str(certificate / "cert.pem"))
        monkeypatch.setattr(http, "place_of", lambda _address: "public")
        url = f"https://site.example:{server.server.server_port}/skills.git"
        with pytest.raises(LockNotMet):
            restore_from_lock(fresh.core, InstallTarget.folder(str(lock(url))))
        assert sent
        assert set(sent) == {None}
