"""Who is shown what, by which face of the catalogue: each token at each of them."""

import http.client
import re
from datetime import timedelta
from urllib.parse import quote
from xml.etree import ElementTree as ET

import pytest

from registry import Settings, SkillRegistry
from registry.settings import GlobalIngest, Personality
from tests.conftest import REPOSITORY, write_skill
from tests.web.conftest import greet_mcp, post_mcp, serving

CODER = Personality(
    "coder", global_ingest=GlobalIngest(mode="tags", accept_tags=frozenset({"code"}))
)
PLACES = {"alpha": "mine", "beta": "mine", "gamma": "other", "delta": "other"}
CODE = {"alpha", "gamma"}

ALL, REFUSED = set(PLACES), None
SEEN = {
    "no token": REFUSED,
    "created with `--read`": ALL,
    "created with `--write`": ALL,
    "limited to a source": {"alpha", "beta"},
    "limited to a personality": CODE,
    "limited to both": {"alpha"},
    "expired, revoked or unknown": REFUSED,
}
"""What who comes with a token is shown, whatever it asks."""


class Guest:
    """Somebody with a token, or without; each of its methods asks one face.

    It returns the skills that were shown, by name; None: it was refused.
    """

    def __init__(self, site, *tokens):
        self._site = site
        self._headers = {"Authorization": f"Bearer {tokens[0]}"} if tokens else {}
        self.tools = set()

    def _ask(self, path, method="GET", body=None, **headers):
        answer = self._site.ask(path, method, body, **self._headers, **headers)
        if answer.status == http.client.UNAUTHORIZED:
            assert not any(name.encode() in answer.body for name in PLACES)
            return None
        return answer

    def _of_each(self, path, content):
        """Ask for something of each skill: it is there, or nobody knows it."""
        found = set()
        for name, source in PLACES.items():
            answers = [self._ask(path.format(ref)) for ref in (name, quote(f"{source}/{name}"))]
            if None in answers:
                assert answers == [None, None]
                return None
            statuses = {answer.status for answer in answers}
            assert len(statuses) == 1
            if statuses == {200}:
                assert all(content(name) in answer.body for answer in answers)
                found.add(name)
            else:
                assert statuses == {404}
        return found

    def pages(self):
        answers = [self._ask(path, Accept="text/html") for path in ("/", "/?q=number", "/changes")]
        if None in answers:
            assert answers == [None] * 3
            return None
        shown = [{name for name in PLACES if name in answer.text} for answer in answers]
        assert shown == shown[:1] * 3
        each = self._of_each("/skills/{}", str.encode)
        assert each == shown[0]
        return each

    def json(self):
        answers = [self._ask(f"/{name}.json") for name in ("index", "skills")]
        if None in answers:
            return None if answers == [None, None] else "half"
        listed = [
            {one["name"] for one in told} for told in (answers[0].json["skills"], answers[1].json)
        ]
        assert listed[0] == listed[1] == self._of_each("/history/{}.json", str.encode)
        return listed[0]

    def feed(self):
        answer = self._ask("/changes.atom")
        if answer is None:
            return None
        titles = [
            one.text for one in ET.fromstring(answer.body).iter() if one.tag.endswith("title")
        ]
        return {title.partition(":")[0] for title in titles[1:]}

    def files(self):
        return self._of_each("/raw/{}?path=SKILL.md", str.encode)

    def downloads(self):
        return self._of_each("/download/{}.skill", str.encode)

    def clawhub(self):
        answer = self._ask("/api/v1/skills")
        if answer is None:
            return self._ask("/api/v1/download?slug=alpha")
        found = {one["slug"] for one in answer.json["items"]}
        for name in PLACES:
            for path in (f"skills/{name}", f"download?slug={name}", f"resolve?slug={name}&hash=0"):
                assert self._ask(f"/api/v1/{path}").status == (200 if name in found else 404)
        return found

    def discovery(self):
        answer = self._ask("/.well-known/agent-skills/index.json")
        if answer is None:
            return self._ask("/s/mine/.well-known/agent-skills/index.json")
        found = {one["name"]: one["url"] for one in answer.json["skills"]}
        for name in PLACES:
            url = f"/artifacts/{name}/SKILL.md"
            assert found.get(name, url) == url
            assert self._ask(url).status == (200 if name in found else 404)
        return set(found)

    def openapi(self):
        answer = self._ask("/openapi.json")
        return None if answer is None else "open"

    def mcp_tools(self):
        call = self._session()
        if call is None:
            return None
        self.tools = {tool["name"] for tool in call("tools/list")["tools"]}
        told = call("tools/call", name="list_skills", arguments={})["structuredContent"]
        listed = {one["name"] for one in told["skills"]}
        for name in PLACES:
            read = call("tools/call", name="read_skill", arguments={"name": name})
            assert bool(read.get("isError")) == (name not in listed)
        return listed

    def mcp_resources(self):
        call = self._session()
        if call is None:
            return None
        uris = [one["uri"] for one in call("resources/list")["resources"]]
        found = {name for name in PLACES if any(f"/{name}/SKILL.md" in uri for uri in uris)}
        for name, source in PLACES.items():
            uri = f"skill://{source}/{name}/SKILL.md"
            read = call("resources/read", uri=uri)
            assert (read is not None) == (name in found), name
        return found

    def _session(self):
        begun, session = greet_mcp(self._ask)
        if begun is None:
            return None
        return lambda method, **params: post_mcp(self._ask, method, params, **session).json.get(
            "result"
        )


FACES = {
    "pages": Guest.pages,
    "JSON": Guest.json,
    "feed": Guest.feed,
    "files": Guest.files,
    "downloads": Guest.downloads,
    "ClawHub's API": Guest.clawhub,
    "discovery": Guest.discovery,
    "MCP's tools": Guest.mcp_tools,
    "MCP's resources": Guest.mcp_resources,
    "/openapi.json": Guest.openapi,
}


@pytest.fixture
def registry(database, tmp_path):
    pytest.importorskip("mcp", reason="the extra mcp is not installed")
    for name, source in PLACES.items():
        tags = "tags: [code]\n" if name in CODE else "tags: [prose]\n"
        write_skill(tmp_path / source / name, description=f"Number {name}.", extra=tags)
    settings = Settings(personalities={"coder": CODER})
    with SkillRegistry.open(database, settings=settings, workdir=tmp_path) as opened:
        for source in ("mine", "other"):
            opened.sync(str(tmp_path / source), name=source)
        yield opened


@pytest.fixture
def tokens(registry):
    """The tokens of each kind."""
    made = registry.tokens()
    shown = {
        "no token": [()],
        "created with `--read`": [made.create("r")[1:]],
        "created with `--write`": [made.create("w", write=True)[1:]],
        "limited to a source": [made.create("s", source="mine", write=True)[1:]],
        "limited to a personality": [made.create("p", personality="coder")[1:]],
        "limited to both": [made.create("b", source="mine", personality="coder")[1:]],
    }
    over = made.create("over", lasts=timedelta(seconds=-1))[1:]
    revoked, known = made.create("revoked")
    made.revoke(revoked.number)
    shown["expired, revoked or unknown"] = [over, (known,), ("skr_" + "x" * 43,)]
    return shown


# By both ways in which a token narrows what is asked of the database.
NARROWED = {"limited to a source": pytest.mark.both, "limited to both": pytest.mark.both}


@pytest.mark.parametrize("kind", [pytest.param(one, marks=NARROWED.get(one, ())) for one in SEEN])
def test_each_face_shows_what_the_token_is_for(registry, tokens, kind):
    expected = SEEN[kind]
    with serving(registry, host="0.0.0.0", mcp=True) as site:
        for token in tokens[kind]:
            guest = Guest(site, *token)
            shown = {face: ask(guest) for face, ask in FACES.items()}
            is_open = shown.pop("/openapi.json")
            assert is_open == (None if expected is REFUSED else "open")
            assert shown == dict.fromkeys(shown, expected)
            if expected is not REFUSED:
                writes = kind in {"created with `--write`", "limited to a source"}
                assert ("delete_skill" in guest.tools) == writes
                assert ("create_skill" in guest.tools) == writes


def test_on_this_machine_all_is_shown_and_nothing_changed_without_a_token(registry, tokens):
    with serving(registry, mcp=True) as site:
        guest = Guest(site)
        for face, ask in FACES.items():
            assert ask(guest) == ("open" if face == "/openapi.json" else ALL), face
        assert "delete_skill" not in guest.tools
        narrowed = Guest(site, *tokens["limited to a source"][0])
        assert narrowed.json() == narrowed.mcp_tools() == SEEN["limited to a source"]
        assert Guest(site, *tokens["expired, revoked or unknown"][0]).json() is REFUSED


@pytest.mark.file
def test_the_page_says_the_same():
    page = (REPOSITORY / "docs" / "reference" / "http.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| ([^|]+) \| ([^|]+) \| ([^|]+) \|$", page, re.MULTILINE)
    told = {kind: (shown, changes) for kind, shown, changes in rows}
    assert SEEN.keys() <= told.keys()
    for kind, seen in SEEN.items():
        assert (told[kind][0] == "nothing; the answer is 401") == (seen is REFUSED)
        assert (told[kind][0] == "all skills") == (seen == ALL)
        assert told[kind][1].startswith("yes") == (kind == "created with `--write`")
