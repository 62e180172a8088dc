"""The stack has no cycles: a module imports only what lies below it."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parent.parent / "registry"

LAYERS = [
    {
        "model",
        "errors",
        "settings",
        "text",
        "times",
        "sqlite",
        "postgres",
        "locks",
        "mounts",
        "wording",
        "__init__",
    },
    {"document"},
    {"catalog", "store", "disk"},
    {"backend"},
    {"sync", "changes", "visibility"},
    {
        "service",
        "lifecycle",
        "authoring",
        "changing",
        "prompt",
        "reading",
        "findings",
        "explain",
        "roots",
        "syncing",
        "usage",
        "records",
        "toolset",
        "watching",
        "history",
        "exchange",
        "readable",
        "touched",
    },
    {"tools"},
    {"mcp"},
    {"cli", "__main__"},
]
NEIGHBOURS = {"catalog", "store", "disk"}


def rooms():
    return {
        path: path.relative_to(PACKAGE).parts[0].removesuffix(".py")
        for path in PACKAGE.rglob("*.py")
    }


def level(room):
    return next(number for number, layer in enumerate(LAYERS) if room in layer)


def imported(path):
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        names = []
        if isinstance(node, ast.ImportFrom) and node.module:
            names = (
                [node.module]
                if node.module != "registry"
                else [f"registry.{a.name}" for a in node.names]
            )
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        yield from (name.split(".")[1] for name in names if name.startswith("registry."))


def test_every_module_has_its_place_in_the_stack():
    assert set(rooms().values()) <= set().union(*LAYERS)


@pytest.mark.parametrize("path", sorted(rooms()), ids=lambda path: str(path.relative_to(PACKAGE)))
def test_a_module_imports_only_what_lies_below_it(path):
    room = rooms()[path]
    if room == "__init__":
        return  # the front door shows what the service offers
    for other in imported(path):
        if other == "__version__":
            continue
        assert level(other) <= level(room), f"{path.name} imports {other}, which lies above it"
        if room in NEIGHBOURS and other in NEIGHBOURS:
            assert room == other, f"{path.name} imports its neighbour {other}"


HEAVY = ["sqlalchemy", "alembic", "rich", "mcp", "yaml"]
SCRIPT = """
import sys
from registry import SkillRegistry
with SkillRegistry.open(sys.argv[1]) as registry:
    registry.list(); registry.search("alpha"); registry.get("alpha"); registry.tags()
    registry.stats(); registry.sources(); registry.why("alpha")
    report = registry.sync()
assert report.unchanged == 1
print([name for name in sys.argv[2:] if name in sys.modules])
"""


@pytest.mark.file
def test_reading_and_an_idle_sync_import_nothing_heavy(registry, root, skill, database, settled):
    skill("alpha")
    registry.sync(str(root))
    run = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(database), *HEAVY],
        capture_output=True,
        text=True,
        check=True,
        cwd=PACKAGE.parent,
    )
    assert run.stdout.strip() == "[]"


def test_no_file_grows_past_what_one_person_can_hold_in_mind():
    long = {
        str(p): n for p in rooms() if (n := len(p.read_text(encoding="utf-8").splitlines())) > 330
    }
    assert long == {}
