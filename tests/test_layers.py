"""The packages of docs/contributing/architecture.md: imports downwards only, no circle of files."""

import ast
import functools

import pytest

from tests.conftest import REPOSITORY

PACKAGE = REPOSITORY / "registry"

ROOMS = [
    {"__main__"},
    {"cli"},
    {"web"},
    {"mcp"},
    {"__init__"},
    {"api"},
    {"toolsets"},
    {"publish"},
    {"install"},
    {"remotes"},
    {"changes"},
    {"catalog"},
    {"sync"},
    {"core"},
    {"db"},
    {"document", "disk"},
    {"settings"},
    {"errors"},
    {"model"},
    {"text"},
]
"""From the roof to the ground; those on one floor do not know each other."""


@functools.cache
def modules():
    """Return the files of the package by the names of their modules."""
    return {
        ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts).removesuffix(
            ".__init__"
        ): path
        for path in PACKAGE.rglob("*.py")
        if "_migrations" not in path.parts
    }


def room_of(name):
    return name.split(".")[1] if "." in name else "__init__"


def floor_of(name):
    return next(number for number, rooms in enumerate(ROOMS) if room_of(name) in rooms)


UNKNOWN = "not known before the program runs"


def named_imports(path):
    """Yield what a file imports, wherever it says so: at its top, in functions, for types only.

    A text handed to ``import_module`` is an import, too; anything else handed to it is `UNKNOWN`.
    """
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path} imports by a relative name"
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.Call):
            called = ast.unparse(node.func)
            if called.endswith(("import_module", "__import__")):
                given = node.args[0]
                yield given.value if isinstance(given, ast.Constant) else UNKNOWN


@functools.cache
def arrows():
    """Return the modules of the package that each of them imports."""
    known = modules()
    found = {}
    for name, path in known.items():
        targets = set(named_imports(path)) & known.keys()
        # `from registry.db import schema` needs the module, not what its package says of itself.
        targets = {one for one in targets if not any(o.startswith(f"{one}.") for o in targets)}
        found[name] = targets - {name}
    return found


def circle(found):
    """Return the names of a circle of imports in their order, if there is one."""
    done = set()

    def visit(name, trail):
        if name in trail:
            return [*trail[trail.index(name) :], name]
        if name in done:
            return None
        for other in sorted(found[name]):
            if ring := visit(other, [*trail, name]):
                return ring
        done.add(name)
        return None

    return next((ring for name in sorted(found) if (ring := visit(name, []))), None)


def test_every_room_has_its_floor():
    rooms = {room_of(name) for name in modules()}
    assert rooms <= set().union(*ROOMS)


@pytest.mark.parametrize("room", sorted({room_of(name) for name in modules()}))
def test_a_module_imports_only_what_lies_below_it(room):
    for name, other in ((one, other) for one in modules() for other in arrows()[one]):
        # Not the front door, which shows what the facade offers, and has the version.
        if room_of(name) != room or "registry" in {name, other}:
            continue
        same = room_of(name) == room_of(other)
        assert same or floor_of(other) > floor_of(name), f"{name} imports {other} above it"


def test_no_modules_import_each_other_in_a_circle():
    ring = circle(arrows())
    assert ring is None, " -> ".join(ring)


def test_a_circle_would_be_found_and_drawn():
    found = {"a": {"b"}, "b": {"c"}, "c": {"b"}}
    assert circle(found) == ["b", "c", "b"]


def test_imports_in_functions_for_types_and_by_text_are_read(tmp_path):
    file = tmp_path / "module.py"
    file.write_text(
        "from typing import TYPE_CHECKING\n"
        "if TYPE_CHECKING:\n    from registry.api import SkillRegistry\n"
        "def late():\n    import registry.cli\n    importlib.import_module('registry.mcp')\n"
    )
    assert {"registry.api", "registry.cli", "registry.mcp"} <= set(named_imports(file))


def test_only_the_command_line_imports_what_is_not_known_before():
    unknown = {name for name, path in modules().items() if UNKNOWN in set(named_imports(path))}
    assert unknown == {"registry.cli.app"}  # its own commands, each when it is asked for


def test_only_faces_know_the_facade():
    knowing = {name for name, others in arrows().items() if "registry.api" in others}
    assert {room_of(name) for name in knowing} <= {"__init__", "cli", "mcp", "web"}


def test_both_dialects_of_sql_have_files_of_the_same_names():
    sqlite, postgres = (
        {p.name for p in (PACKAGE / "db" / d).glob("*.py")} for d in ("sqlite", "postgres")
    )
    assert sqlite <= postgres  # a server needs more


SQL = ("SELECT ", "INSERT INTO ", "UPDATE ", "DELETE FROM ", "PRAGMA ")


def test_sql_stands_in_the_database_room_only():
    said = {
        (path.name, node.value[:40])
        for name, path in modules().items()
        if room_of(name) != "db"
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and node.value.lstrip().startswith(SQL)
    }
    assert said == set()
