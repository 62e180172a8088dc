"""The catalogue at an address of its own, and what asks it over real HTTP."""

import html
import http.client
import json
import os
import re
import shlex
import shutil
import socket
import threading
from contextlib import contextmanager
from dataclasses import dataclass
from html.parser import HTMLParser
from urllib.parse import urlencode

import pytest

pytest.importorskip("nh3", reason="the extra web is not installed")
pytest.importorskip("jinja2", reason="the extra web is not installed")

import uvicorn

from registry.mcp.http import ClientLimits, bounded
from registry.web.app import Address, guarded
from registry.web.mcp import McpMount
from registry.web.state import AppState
from tests.conftest import OLD, write_skill
from tests.program import INITIALIZE

LETTER = "# Letters\n\n" + "".join(
    f"{step}. {word} the {part} of the letter, and read it aloud once.\n"
    for step, (word, part) in enumerate(
        [(w, p) for w in ("Draft", "Shorten", "Check") for p in ("opening", "offer", "close")], 1
    )
)
"""So long that three that begin otherwise are nearly the same."""

CODE = "def total(numbers):\n    return sum(numbers)\n"
IMAGE = b"\x89PNG\r\n\x1a\n" + bytes(24)


def fill(root):
    """Write a small catalogue: categories, kinds, tags, files, a copy, something broken."""
    for number in range(3):
        write_skill(
            root / "office" / f"letters-{number}",
            description=f"Writes letters to customers in the tone that the house keeps, no. {number}.",
            extra="tags: [office, mail]\nkind: workflow\n",
            body=LETTER,
        )
    folder = write_skill(
        root / "data" / "sums",
        name="sums",
        description="Adds up the columns of a table.",
        extra="tags: [data]\nkind: reference\nversion: 1.2.0\nlicense: MIT\n",
        body="# Sums\n\nSee [the script](scripts/sum.py) and ![a picture](logo.png).\n\n"
        "| a | b |\n|---|---|\n| 1 | 2 |\n\n```python\nx = 1\n```\n",
    )
    (folder / "scripts").mkdir()
    (folder / "scripts" / "sum.py").write_text(CODE)
    (folder / "logo.png").write_bytes(IMAGE)
    for path in (folder / "scripts" / "sum.py", folder / "logo.png"):
        os.utime(path, (OLD, OLD))
    (root / "broken").mkdir()
    (root / "broken" / "SKILL.md").write_text("---\nname: broken\n")


WIDE, NARROW = (1200, 900), (360, 740)


@dataclass(frozen=True)
class Answer:
    """What came back."""

    status: int
    headers: http.client.HTTPMessage
    body: bytes

    @property
    def text(self):
        return self.body.decode()

    @property
    def json(self):
        return json.loads(self.body)

    @property
    def page(self):
        return Page.of(self.text)


def commands(answer):
    """Return the lines of a page that are there to be copied."""
    found = re.findall(r'<div class="command"><code[^>]*>(.*?)</code>', answer.text, re.DOTALL)
    return [html.unescape(re.sub(r"</?span>", "", one)) for one in found]


def pull_line(registry, names, agent="claude-code"):
    """Return the command that a page on this machine offers."""
    program = shlex.join(["skill-registry", "--db", registry.path])
    return f"{program} pull --global --agent {agent} {names}"


class Page(HTMLParser):
    """A page as a browser takes it apart: its elements, and the text between them."""

    def __init__(self):
        super().__init__()
        self.elements, self.words = [], []

    @classmethod
    def of(cls, text):
        page = cls()
        page.feed(text)
        page.close()
        return page

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))

    def handle_data(self, data):
        self.words.append(data)

    @property
    def text(self):
        return " ".join(" ".join(self.words).split())

    @property
    def links(self):
        return [given["href"] for tag, given in self.elements if tag == "a" and given.get("href")]

    def names(self):
        """Return where the results of a search lead."""
        return [
            given["href"].removeprefix("/skills/")
            for tag, given in self.elements
            if tag == "a" and given.get("class") == "name"
        ]


class Site:
    """A catalogue that is served."""

    def __init__(self, port, state=None):
        self.port = port
        self.state = state
        self.base = f"http://127.0.0.1:{port}"

    def ask(self, path, method="GET", body=None, query=None, address="127.0.0.1", **headers):
        given = {name.replace("_", "-"): value for name, value in headers.items()}
        connection = http.client.HTTPConnection(
            "127.0.0.1", self.port, timeout=30, source_address=(address, 0)
        )
        path = path.partition("#")[0]
        url = f"{path}?{urlencode(query, doseq=True)}" if query else path
        connection.request(method, url, body, given)
        answer = connection.getresponse()
        found = Answer(answer.status, answer.headers, answer.read())
        connection.close()
        return found

    def get(self, path, /, **query):
        """Return the answer to a request that is expected to be done."""
        answer = self.ask(path, query=query)
        assert answer.status == 200, answer.text
        return answer


def post_mcp(ask, method, params, **headers):
    """Return the answer to what is said by MCP; ``ask``: what asks the site."""
    kinds = {"Content_Type": "application/json", "Accept": "application/json, text/event-stream"}
    asked = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    return ask("/mcp", "POST", json.dumps(asked), **kinds, **headers)


def greet_mcp(ask):
    """Return the answer to the first words, and the headers of what comes then."""
    begun = post_mcp(ask, "initialize", INITIALIZE["params"])
    return begun, {"Mcp_Session_Id": begun.headers["mcp-session-id"]} if begun else {}


@contextmanager
def serving(
    registry, *, trusted=None, mcp=False, watch=False, host="127.0.0.1", public=None, bounds=None
):
    """Serve a registry on a free port, in a thread."""
    bounds = bounds or ClientLimits()
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        port = listening.getsockname()[1]
        state = AppState(registry, public)
        door = McpMount(registry, bounds, watch=watch) if mcp else None
        app = guarded(state, Address(host, port, public), door, trusted)
        config = uvicorn.Config(
            app,
            log_config=None,
            lifespan="on",
            ws="none",
            proxy_headers=False,
            http=bounded(bounds),
        )
        server = uvicorn.Server(config)
        begun = threading.Event()
        startup = server.startup

        async def started(sockets=None):
            await startup(sockets)
            begun.set()

        server.startup = started
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        assert begun.wait(30)
        try:
            yield Site(port, state)
        finally:
            if door is not None:
                door.stop_listening()
            server.should_exit = True
            thread.join(30)
            assert not thread.is_alive()


def find_chromium():
    """Return a Chromium on the PATH: rather one without windows, whose pages take half the time."""
    names = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
    return next(filter(None, map(shutil.which, names)), None)


@pytest.fixture(scope="module")
def chromium():
    """A real browser: needs the dependency group ``browser`` and a Chromium on the PATH."""
    sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    program = find_chromium()
    if program is None:
        pytest.skip("there is no Chromium here")
    with sync_api.sync_playwright() as running:
        alone = "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"  # nobody is asked
        browser = running.chromium.launch(executable_path=program, args=["--no-sandbox", alone])
        yield browser
        browser.close()


@pytest.fixture
def library(root, registry):
    """A small catalogue, synced."""
    fill(root)
    registry.sync(str(root), name="mine")
    return root


@pytest.fixture
def site(registry, library):
    """The small catalogue, served to who is on this machine."""
    with serving(registry) as served:
        yield served


def fits(page):
    """Assert that nobody has to scroll sideways."""
    width = page.evaluate("[document.documentElement.scrollWidth, innerWidth]")
    assert width[0] <= width[1], page.url


@pytest.fixture
def tab(chromium):
    """Open tabs; what they complain of, or ask of anybody else, fails the test at its end."""
    opened, wrong = [], []

    def make(size=WIDE, **settings):
        context = chromium.new_context(
            viewport=dict(zip(("width", "height"), size, strict=True)), **settings
        )
        page = context.new_page()
        page.on("console", lambda said: wrong.append(said.text) if said.type == "error" else None)
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on("dialog", lambda dialog: (wrong.append(dialog.message), dialog.dismiss()))
        page.on("request", lambda asked: wrong.append(asked.url) if far(asked.url) else None)
        opened.append(context)
        return page

    yield make
    for context in opened:
        context.close()
    assert wrong == []


def far(url):
    return not url.startswith(("http://127.0.0.1:", "data:", "blob:"))


def rewrite(library, old="Adds up", new="Sums up"):
    """Edit the skill sums."""
    document = library / "data" / "sums" / "SKILL.md"
    document.write_text(document.read_text().replace(old, new))


@pytest.fixture
def changed(registry, library):
    """The folder of the small catalogue after something changed in it."""
    rewrite(library)
    registry.sync()
    return library


@pytest.fixture
def lively(site, changed):
    """The small catalogue after something changed in it."""
    return site
