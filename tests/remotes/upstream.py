"""A repository of somebody else's, and what serves it: a path, HTTP with a password, ssh."""

import base64
import gzip
import hashlib
import json
import os
import shutil
import subprocess
import threading
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from registry.api import SkillRegistry
from registry.settings import data_folder

WHEN = 1_700_000_000
"""When the first commit is made (14 November 2023); each one is a day after the one before."""

DAY = 86_400

PLAIN_GIT = {
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_NOSYSTEM": "1",
    **{f"GIT_{who}_NAME": "Somebody" for who in ("AUTHOR", "COMMITTER")},
    **{f"GIT_{who}_EMAIL": "somebody@example.com" for who in ("AUTHOR", "COMMITTER")},
}

UNTIDY = "[gc]\n\tauto = 0\n[maintenance]\n\tauto = false\n[receive]\n\tautogc = false\n"
"""Settings of a repository that lives for a test: no commit starts a process to tidy it up."""


def document(name: str, description: str = "Does one thing well.", body: str = "# How\n") -> str:
    """Return a SKILL.md."""
    return f"---\nname: {name}\ndescription: {description}\n---\n\n{body}"


class Upstream:
    """A repository that others commit to (``work``), and the bare clone that is served.

    They share what they store, so that a commit is published by writing down its name.
    """

    def __init__(self, base: Path, made: "Upstream | None" = None) -> None:
        """Make an empty one in a folder, or a copy of one that was made."""
        self.work = base / "work"
        self.bare = base / "team" / "skills.git"
        self.commits = 0 if made is None else made.commits
        if made is not None:
            shutil.copytree(made.work.parent, base, symlinks=True)
            return
        for folder, *options in ((self.work,), (self.bare, "--bare")):
            folder.mkdir(parents=True)
            self.git("init", "-q", "-b", "main", "--template=", *options, at=folder)
            settings = folder / "config" if options else folder / ".git" / "config"
            with settings.open("a") as file:
                file.write(UNTIDY)
        shutil.rmtree(self.work / ".git" / "objects")
        (self.work / ".git" / "objects").symlink_to("../../team/skills.git/objects")

    @property
    def url(self) -> str:
        return f"file://{self.bare}"

    def git(self, *arguments: str, at: Path | None = None, given: bytes = b"", **env: str) -> str:
        """Run git in a repository, by default the one that is worked in."""
        done = subprocess.run(
            ["git", "-c", "core.hooksPath=/dev/null", *arguments],
            cwd=at or self.work,
            input=given,
            capture_output=True,
            check=False,
            env={**os.environ, **PLAIN_GIT, **env},
        )
        assert done.returncode == 0, done.stderr.decode()
        return done.stdout.decode(errors="surrogateescape").strip()

    def write(self, path: str, text: str | bytes, mode: int = 0o644) -> None:
        file = self.work / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(text if isinstance(text, bytes) else text.encode())
        file.chmod(mode)

    def skill(self, folder: str, **facts: str) -> None:
        self.write(f"{folder}/SKILL.md", document(os.path.basename(folder), **facts))

    def commit(self, branch: str = "main") -> str:
        """Commit and publish what lies in the working folder; return the commit."""
        when = f"@{WHEN + self.commits * DAY} +0000"
        self.commits += 1
        self.git("add", "--all")
        dates = {"GIT_AUTHOR_DATE": when, "GIT_COMMITTER_DATE": when}
        self.git("commit", "-q", "--allow-empty", "-m", f"Change {self.commits}", **dates)
        return self.publish(branch)

    def head(self) -> str:
        """Return the commit that was made last where others work."""
        return (self.work / ".git" / "refs" / "heads" / "main").read_text().strip()

    def publish(self, branch: str = "main") -> str:
        """Let a branch of what is served be the commit that was made last; return it."""
        name = self.bare / "refs" / "heads" / branch
        name.parent.mkdir(exist_ok=True)
        name.write_text(f"{self.head()}\n")
        return self.head()

    def blob(self, data: bytes) -> str:
        """Store bytes in the repository that is served, and return their id."""
        return self._store("blob", data)

    def _store(self, kind: str, data: bytes) -> str:
        """Store an object as it is: git would refuse some, and starts once for each."""
        whole = f"{kind} {len(data)}\0".encode() + data
        name = hashlib.sha1(whole, usedforsecurity=False).hexdigest()
        file = self.bare / "objects" / name[:2] / name[2:]
        file.parent.mkdir(exist_ok=True)
        file.write_bytes(zlib.compress(whole, 1))
        return name

    def tree(self, *entries: tuple[str, str, str, str | bytes]) -> str:
        """Store a tree of any entries (mode, type, id, name), and return its id."""
        raw = b""
        for mode, _kind, found, named in entries:
            name = named if isinstance(named, bytes) else os.fsencode(named)
            raw += mode.lstrip("0").encode() + b" " + name + b"\0" + bytes.fromhex(found)
        return self._store("tree", raw)

    def point(self, tree: str, *, at: int | str | None = None) -> str:
        """Let the branch of the repository that is served be one commit of a tree."""
        when = WHEN if at is None else at
        lines = f"tree {tree}\nauthor S <s@e> {when} +0000\ncommitter S <s@e> {when} +0000\n\nx\n"
        commit = self._store("commit", lines.encode())
        self.git("update-ref", "refs/heads/main", commit, at=self.bare)
        return commit


def checkout_of(registry: SkillRegistry, name: str | None = None) -> Path:
    """Return the folder of the checkout of a source, by default of the only one."""
    (path,) = [one.path for one in registry.sources() if name in {None, one.name}]
    return Path(path).parent


def files_of(folder: Path) -> dict[str, bytes]:
    """Return what lies in a folder, links as what they say."""
    return {
        str(one.relative_to(folder)): os.fsencode(os.readlink(one))
        if one.is_symlink()
        else one.read_bytes()
        for one in sorted(folder.rglob("*"))
        if one.is_symlink() or one.is_file()
    }


def edit_json(file: Path, **facts: object) -> None:
    file.write_text(json.dumps({**json.loads(file.read_text()), **facts}))


def all_checkouts() -> list[Path]:
    folder = data_folder() / "checkouts"
    return sorted(folder.iterdir()) if folder.is_dir() else []


class GitServer:
    """Smart HTTP by ``git http-backend``, behind a password where there is one.

    ``requests``: what was asked for. ``answer``: what answers in its place, given the handler;
    False: the usual answer goes out. ``cut``: after so many bytes of an answer the line is cut.
    """

    def __init__(self, root: Path, password: str | None = None) -> None:
        self.root, self.password = root, password
        self.requests: list[str] = []
        self.answer: Callable[[BaseHTTPRequestHandler], bool] | None = None
        self.cut: int | None = None
        self.was_cut = False
        owner = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_: object) -> None:
                pass

            def do_GET(self) -> None:
                owner.serve(self)

            do_POST = do_GET

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.server.block_on_close = False
        self.thread = threading.Thread(target=partial(self.server.serve_forever, 0.02))
        self.thread.start()

    @property
    def base(self) -> str:
        return f"http://127.0.0.1:{self.server.server_port}"

    @property
    def url(self) -> str:
        return f"{self.base}/skills.git"

    @property
    def header(self) -> str:
        told = base64.b64encode(f"reader:{self.password}".encode()).decode()
        return f"Authorization: Basic {told}"

    def stop(self) -> None:
        if self.thread.is_alive():
            self.server.shutdown()
            self.thread.join()
            self.server.server_close()

    def serve(self, handler: BaseHTTPRequestHandler) -> None:
        self.requests.append(f"{handler.command} {handler.path}")
        handler.close_connection = True
        if self.password and handler.headers.get("Authorization") != self.header.partition(" ")[2]:
            handler.send_response(401)
            handler.send_header("WWW-Authenticate", 'Basic realm="skills"')
            handler.send_header("Content-Length", "0")
            handler.end_headers()
            return
        if self.answer is not None and self.answer(handler):
            return
        path, _, query = handler.path.partition("?")
        done = subprocess.run(
            ["git", "http-backend"],
            input=_body(handler),
            capture_output=True,
            check=True,
            env={
                **os.environ,
                **PLAIN_GIT,
                "GIT_PROJECT_ROOT": str(self.root),
                "GIT_HTTP_EXPORT_ALL": "1",
                "REQUEST_METHOD": handler.command,
                "PATH_INFO": path,
                "QUERY_STRING": query,
                "CONTENT_TYPE": handler.headers.get("Content-Type", ""),
                "GIT_PROTOCOL": handler.headers.get("Git-Protocol", ""),
                "REMOTE_ADDR": "127.0.0.1",
                "GIT_CONFIG_COUNT": "1",
                "GIT_CONFIG_KEY_0": "uploadpack.allowFilter",
                "GIT_CONFIG_VALUE_0": "true",
            },
        )
        head, _, body = done.stdout.partition(b"\r\n\r\n")
        fields = dict(line.split(": ", 1) for line in head.decode().split("\r\n"))
        handler.send_response(int(fields.pop("Status", "200").split()[0]))
        for name, value in fields.items():
            handler.send_header(name, value)
        handler.send_header("Content-Length", str(len(body)))
        handler.end_headers()
        if self.cut is not None and len(body) > self.cut:
            handler.wfile.write(body[: self.cut])
            self.was_cut = True
            return
        handler.wfile.write(body)


def _body(handler: BaseHTTPRequestHandler) -> bytes:
    """Return what was sent, unpacked."""
    body = b""
    if handler.headers.get("Transfer-Encoding") == "chunked":
        while size := int(handler.rfile.readline(), 16):
            body += handler.rfile.read(size)
            handler.rfile.readline()
        handler.rfile.readline()
    else:
        body = handler.rfile.read(int(handler.headers.get("Content-Length", 0)))
    packed = handler.headers.get("Content-Encoding") == "gzip"
    return gzip.decompress(body) if packed else body


@contextmanager
def git_settings(patch: pytest.MonkeyPatch, settings: Mapping[str, str]) -> Iterator[None]:
    """Let git have settings of the user's, by the environment."""
    with patch.context() as inner:
        inner.setenv("GIT_CONFIG_COUNT", str(len(settings)))
        for number, (key, value) in enumerate(settings.items()):
            inner.setenv(f"GIT_CONFIG_KEY_{number}", key)
            inner.setenv(f"GIT_CONFIG_VALUE_{number}", value)
        yield
