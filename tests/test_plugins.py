"""A package teaches the registry a dialect of front matter, where the settings ask for it."""

import json
import os
import sys

import pytest

from registry.api import SkillRegistry
from registry.errors import DialectNotFound, DialectUnusable, SettingsProblem
from registry.settings import Settings, load_settings, parse_settings
from tests.conftest import REPOSITORY, interpreted, write_skill

ACME = """
def read(front_matter, folder):
    if front_matter.get("format") != "acme/1":
        return None
    about = front_matter.pop("about")  # what is given is the dialect's own
    return {
        "description": about["purpose"],
        "tags": about["topics"],
        "kind": "workflow",
        "version": 7,
        "created": "2026-01-15",
        "required_tools": ["bash"],
        "disable-model-invocation": about.get("internal") == "yes",
        "license": "MIT",
    }
"""
FRONT = "format: acme/1\nabout: {purpose: Weighs parcels., topics: [mail, Weight]}\n"


@pytest.fixture
def install(tmp_path, monkeypatch):
    """Put a package with dialects where packages are found, as an installer would."""
    site = tmp_path / "site"
    site.mkdir()
    monkeypatch.syspath_prepend(str(site))
    modules = []

    def make(code=ACME, package="acme_skills", **dialects):
        (site / f"{package}.py").write_text(code)
        info = site / f"{package}-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
        lines = [f"{name} = {value}" for name, value in dialects.items()]
        (info / "entry_points.txt").write_text("\n".join(["[skill_registry.dialects]", *lines]))
        modules.append(package)
        return site

    yield make
    for name in modules:
        sys.modules.pop(name, None)


@pytest.fixture
def parcel(root):
    """A skill that says everything in a dialect, and has no text to take a description from."""
    folder = root / "parcel"
    folder.mkdir()
    (folder / "SKILL.md").write_text(f"---\n{FRONT}---\n")
    return folder


@pytest.fixture
def opened(database):
    """Open the registry with dialects."""
    registries = []

    def make(*names):
        registries.append(SkillRegistry.open(database, settings=Settings(dialects=names)))
        return registries[-1]

    yield make
    for registry in registries:
        registry.close()


def codes(registry):
    return {finding.code for finding in registry.get("parcel").diagnostics}


def test_what_a_dialect_reads_is_found_like_any_skills(install, parcel, opened, root):
    install(acme="acme_skills:read")
    registry = opened("acme")
    assert registry.sync(str(root)).added == ("parcel",)
    skill = registry.get("parcel")
    assert (skill.name, skill.description) == ("parcel", "Weighs parcels.")
    assert (skill.tags, skill.kind, skill.version) == (("mail", "weight"), "workflow", "7")
    assert (skill.created_at, skill.required_tools) == ("2026-01-15T00:00:00Z", ("bash",))
    assert skill.license == "MIT"
    assert skill.front_matter["about"]["topics"] == ["mail", "Weight"]  # the file's own is shown
    assert [hit.ref for hit in registry.search("weighs")] == ["parcel"]
    assert [one.ref for one in registry.list(tags=["weight"])] == ["parcel"]
    (told,) = [finding for finding in skill.diagnostics if finding.code == "dialect-read"]
    assert (told.severity, told.category) == ("info", "format")
    assert "`acme`" in told.message
    assert {one.code for (found,) in [registry.check()] for one in found.findings} == codes(
        registry
    )


def test_an_installed_dialect_does_nothing_unasked(install, parcel, opened, root):
    site = install("raise SystemExit('it was imported')", acme="acme_skills:read")
    registry = opened()
    registry.sync(str(root))
    assert registry.list().total == 0
    assert codes(registry) == {"name-missing", "description-missing"}
    assert "acme_skills" not in sys.modules
    assert site.exists()


def test_what_the_file_says_in_our_terms_counts(install, parcel, opened, root):
    install(acme="acme_skills:read")
    (parcel / "SKILL.md").write_text(f"---\nName: Scales\ntags: [own]\n{FRONT}---\n")
    registry = opened("acme")
    registry.sync(str(root))
    skill = registry.get("Scales")
    assert (skill.tags, skill.description) == (("own",), "Weighs parcels.")


def test_a_skill_of_a_dialect_is_changed_and_read_back_with_it(install, parcel, opened, root):
    install(acme="acme_skills:read")
    registry = opened("acme")
    registry.sync(str(root))
    changed = registry.update("parcel", tags=["new"], body="How to weigh.\n")
    assert (changed.tags, changed.description) == (("new",), "Weighs parcels.")
    assert registry.update("parcel", description="Weighs all.").description == "Weighs all."
    assert "format: acme/1" in registry.read("parcel")
    document = parcel / "SKILL.md"
    document.write_text(document.read_text().replace("description: Weighs all.\n", ""))
    assert registry.get("parcel").description == "Weighs parcels."  # read anew, with the dialect


def test_the_first_dialect_that_knows_it_counts_and_others_are_left_alone(
    install, parcel, opened, root
):
    code = (
        "def none(front_matter, folder): return None\n"
        "def one(front_matter, folder): return {'description': f'One of {folder}.'}\n"
        "def two(front_matter, folder): return {'description': 'Two.', 'tags': ['two']}\n"
    )
    install(code, none="acme_skills:none", one="acme_skills:one", two="acme_skills:two")
    registry = opened("none", "one", "two")
    registry.sync(str(root))
    skill = registry.get("parcel")
    assert (skill.description, skill.tags) == ("One of parcel.", ())


def test_with_other_dialects_or_another_version_of_one_the_next_sync_reads_all_again(
    install, parcel, opened, root, settled
):
    site = install(acme="acme_skills:read")

    def found(*names):
        with opened(*names) as registry:
            registry.sync(str(root))
            newest = "SELECT max(id) FROM skills"
            version = registry.core.reader.rows(newest)
            assert registry.sync().unchanged == 1
            assert registry.core.reader.rows(newest) == version  # it was not read once more
            return [skill.description for skill in registry.list()]

    assert found() == []
    assert found("acme") == ["Weighs parcels."]
    assert found() == []
    assert found("acme") == ["Weighs parcels."]
    (site / "acme_skills.py").write_text(ACME.replace('about["purpose"]', '"Newer."'))
    sys.modules.pop("acme_skills")
    assert found("acme") == ["Weighs parcels."]
    sys.modules.pop("acme_skills", None)
    (site / "acme_skills-1.0.dist-info" / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: acme_skills\nVersion: 1.1\n"
    )
    assert found("acme") == ["Newer."]


RETURNED = {
    "an error": ("1 / 0", "ZeroDivisionError: division by zero"),
    "an error that can't be said": ("raise_(Mute())", "Mute: <exception str() failed>"),
    "no mapping": ("['description']", "a list in the place of a mapping"),
    "a key that is no text": ("{1: 'a'}", "a int as a key"),
    "an object": ("{'description': object()}", "it returned a object"),
    "too much": ("{'description': 'x' * 70_000}", "more than 65,536 characters"),
    "too many": ("{str(number): [] for number in range(40_000)}", "more than 65,536 characters"),
    "what holds itself": ("ring()", "more than 16 levels"),
    "a number without end": ("{'version': 10 ** 5000}", "ValueError"),
}
HEAD = """
class Mute(Exception):
    def __str__(self): raise RuntimeError
def raise_(error): raise error
def ring():
    made = {}
    made["ring"] = made
    return made
"""


@pytest.mark.parametrize(("returned", "told"), RETURNED.values(), ids=RETURNED)
def test_what_a_dialect_does_wrong_is_a_finding_of_that_skill(
    install, parcel, opened, root, returned, told
):
    code = (
        f"{HEAD}\ndef read(front_matter, folder):\n    if folder == 'parcel': return {returned}\n"
    )
    install(code, acme="acme_skills:read")
    write_skill(root / "other")
    registry = opened("acme")
    registry.sync(str(root))
    (failed,) = [one for one in registry.get("parcel").diagnostics if one.code == "dialect-failed"]
    assert failed.severity == "warning"
    assert failed.message.startswith("the dialect `acme` failed: ")
    assert told in failed.message
    assert "description-missing" in codes(registry)  # it is what it would be without the dialect
    assert [skill.ref for skill in registry.list()] == ["other"]


def test_values_of_a_dialect_are_checked_like_those_of_a_file(install, parcel, opened, root):
    code = (
        "import datetime\n"
        "def read(front_matter, folder): return {\n"
        "    'description': 'Weighs\\x00 parcels\\ud800.\\x1b[31m', 'tags': {'a': 'b'},\n"
        "    'created': datetime.date(2026, 2, 3), 'hidden': False, 'name': None,\n"
        "    'disable-model-invocation': True, 'category': 'x' * 300,\n"
        "}\n"
    )
    install(code, acme="acme_skills:read")
    registry = opened("acme")
    registry.sync(str(root))
    skill = registry.get("parcel")
    assert skill.description == "Weighs parcels\N{REPLACEMENT CHARACTER}.[31m"
    assert (skill.tags, skill.created_at) == ((), "2026-02-03T00:00:00Z")
    assert {"value-shape", "control-characters"} <= codes(registry)
    assert registry.stats().hidden == 1
    (shape,) = [one for one in skill.diagnostics if one.code == "value-shape"]
    assert shape.message.endswith("(by the dialect `acme`)")


def test_a_name_that_no_package_has_is_refused_with_the_nearest(install, opened, root, parcel):
    install(acme="acme_skills:read")
    for call in (
        lambda registry: registry.sync(str(root)),
        lambda registry: registry.sync(),
        lambda registry: registry.add_source(str(root)),
        lambda registry: registry.check([str(root)]),
    ):
        registry = opened("acm")
        with pytest.raises(DialectNotFound, match="Did you mean 'acme'") as caught:
            call(registry)
        assert caught.value.known == ["acme"]
    assert registry.list().total == 0
    with pytest.raises(DialectNotFound, match=r"^No dialect named 'other'.* Installed: acme\.$"):
        opened("other").sync()


def test_a_change_is_not_begun_where_a_dialect_is_missing(install, opened, root, parcel):
    install(acme="acme_skills:read")
    with opened("acme") as registry:
        registry.sync(str(root))
    before = (parcel / "SKILL.md").read_bytes()
    registry = opened("gone")
    assert registry.list()[0].ref == "parcel"  # what only reads needs none
    with pytest.raises(DialectNotFound):
        registry.update("parcel", description="Other.")
    with pytest.raises(DialectNotFound):
        registry.delete("parcel")
    assert (parcel / "SKILL.md").read_bytes() == before
    assert registry.core.reader.rows("SELECT count(*) FROM journal") == [(0,)]


@pytest.mark.parametrize(
    ("code", "told"),
    [
        ("1 / 0", "ZeroDivisionError: division by zero"),
        ("read = 'text'", "acme_skills:read is no function"),
        ("", "AttributeError: module 'acme_skills' has no attribute 'read'"),
    ],
)
def test_a_dialect_that_cannot_be_loaded_is_named(install, opened, code, told):
    install(code, acme="acme_skills:read")
    with pytest.raises(DialectUnusable) as caught:
        opened("acme").sync()
    assert (caught.value.name, caught.value.reason) == ("acme", told)


def test_one_name_of_two_packages_is_nobodys(install, opened):
    install(acme="acme_skills:read")
    install(package="acme_imitated", acme="acme_imitated:read")
    with pytest.raises(DialectUnusable, match="offered twice: acme_imitated:read, acme_skills:rea"):
        opened("acme").sync()


def test_the_settings_take_names_in_their_order(tmp_path):
    file = tmp_path / "settings.yaml"
    file.write_text("dialects: [zeta, acme]\n")
    assert load_settings(file).dialects == ("zeta", "acme")
    assert parse_settings({"dialects": None}, "x").dialects == ()
    for wrong in ("acme", [1], {"acme": True}):
        with pytest.raises(SettingsProblem, match="dialects must be a list of names"):
            parse_settings({"dialects": wrong}, "x")


SCRIPT = """
import sys
from registry import Settings, SkillRegistry
with SkillRegistry.open(sys.argv[1], settings=Settings(dialects=("acme",))) as registry:
    registry.list(); registry.search("parcel"); registry.get("parcel")
print([name for name in ("importlib.metadata", "acme_skills", "yaml") if name in sys.modules])
"""


@pytest.mark.file
def test_who_only_reads_loads_no_dialect(install, opened, parcel, root, database, settled):
    site = install(acme="acme_skills:read")
    os.utime(parcel / "SKILL.md", (1_700_000_000, 1_700_000_000))
    with opened("acme") as registry:
        registry.sync(str(root))
    run = interpreted("-c", SCRIPT, database, PYTHONPATH=f"{REPOSITORY}:{site}")
    assert (run.stdout, run.stderr) == ("[]\n", "")


@pytest.mark.file
def test_the_command_line_has_dialects_from_its_settings(install, parcel, root, database, tmp_path):
    site = install(acme="acme_skills:read")
    settings = tmp_path / "settings.yaml"

    def run(*arguments, dialects):
        settings.write_text(f"dialects: {json.dumps(dialects)}\n")
        command = "-m", "registry", "--db", database, "--config", settings
        return interpreted(*command, *arguments, PYTHONPATH=f"{REPOSITORY}:{site}")

    assert run("sync", str(root), dialects=["acme"]).returncode == 0
    (listed,) = json.loads(run("list", "--json", dialects=["acme"]).stdout)
    assert listed["description"] == "Weighs parcels."
    refused = run("sync", dialects=["acne"])
    assert refused.returncode == 1
    assert refused.stderr == (
        "Error: No dialect named 'acne' is installed. Did you mean 'acme'? "
        "Install the package that has it, or take it out of the settings: dialects.\n"
    )
