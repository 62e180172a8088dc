"""A package teaches the registry another kind of source, where the settings ask for it."""

import sys

import pytest

from registry.api import SkillRegistry
from registry.errors import RemoteInvalid, RemoteUnreachable, SourceKindUnusable
from registry.settings import Settings, parse_settings

SHELF = '''
import json
from pathlib import Path

def fetch(url, into, known):
    """Skills of a file: {"version": ..., "skills": {folder: text}}."""
    said = json.loads(Path(url).read_text())
    if said["version"] == known:
        return None
    for folder, text in said["skills"].items():
        (into / folder).mkdir(parents=True)
        (into / folder / "SKILL.md").write_text(text)
    return said["version"]

def wicked(url, into, known):
    (into / "link").symlink_to("/etc")
    (into / "a").mkdir()
    (into / "a" / "SKILL.md").write_text("---\\nname: a\\ndescription: Does a thing.\\n---\\nBody")
    (into / "a" / "passwd").symlink_to("/etc/passwd")
    (into / "a" / ".git").mkdir()
    (into / "a" / ".git" / "config").write_text("x")
    return "1"

def broken(url, into, known):
    raise KeyError("nothing")

def away(url, into, known):
    raise ConnectionError("no route")

def nameless(url, into, known):
    return 7

number = 3
'''
TEXT = "---\nname: {name}\ndescription: Does {name} well.\n---\nBody of {name}.\n"
KINDS = ("shelf", "wicked", "broken", "away", "nameless", "number")


@pytest.fixture
def site(tmp_path, monkeypatch):
    """A package with kinds of sources, where packages are found."""
    site = tmp_path / "site"
    info = site / "shelf_skills-1.0.dist-info"
    info.mkdir(parents=True)
    (site / "shelf_skills.py").write_text(SHELF)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: shelf-skills\nVersion: 1.0\n")
    functions = {name: name for name in KINDS} | {"shelf": "fetch"}
    lines = [f"{name} = shelf_skills:{function}" for name, function in functions.items()]
    (info / "entry_points.txt").write_text("\n".join(["[skill_registry.sources]", *lines]))
    monkeypatch.syspath_prepend(str(site))
    yield site
    sys.modules.pop("shelf_skills", None)


@pytest.fixture
def library(database, site):
    with SkillRegistry.open(database, settings=Settings(source_kinds=KINDS)) as registry:
        yield registry


@pytest.fixture
def shelf(tmp_path):
    """Write the file that the kind `shelf` reads."""
    path = tmp_path / "shelf.json"

    def write(version, *names):
        import json

        skills = {f"of/{name}": TEXT.format(name=name) for name in names}
        path.write_text(json.dumps({"version": version, "skills": skills}))
        return f"shelf:{path}"

    return write


def test_its_skills_are_listed_and_tell_where_they_come_from(library, shelf):
    address = shelf("v1", "alpha", "beta")
    report = library.sync(address, name="books")
    assert report.added == ("alpha", "beta")
    origin = library.get("alpha").origin
    assert (origin.url, origin.commit, origin.path) == (address.partition(":")[2], "v1", "of/alpha")
    (source,) = library.sources()
    assert (source.remote.kind, source.scope) == ("shelf", "community")


def test_only_a_new_version_changes_anything(library, shelf):
    library.sync(shelf("v1", "alpha", "beta"))
    assert library.sync().unchanged == 2
    shelf("v1", "gamma")
    assert library.sync().unchanged == 2
    shelf("v2", "alpha", "gamma")
    report = library.sync()
    assert (report.added, report.removed, report.unchanged) == (("gamma",), ("beta",), 1)


def test_what_it_writes_is_read_as_a_strangers(library, tmp_path):
    report = library.sync("wicked:anything")
    assert report.added == ("a",)
    assert [file.path for file in library.get("a").files] == ["SKILL.md"]
    assert any("not a plain file" in text for text in report.sources[0].fetched)


@pytest.mark.parametrize(
    ("address", "error", "said"),
    [
        ("broken:x", RemoteInvalid, "KeyError: 'nothing'"),
        ("away:x", RemoteUnreachable, "ConnectionError: no route"),
        ("nameless:x", RemoteInvalid, "returned no version"),
        ("number:x", SourceKindUnusable, "is not a function"),
    ],
)
def test_what_a_package_does_wrong_is_said_and_leaves_nothing(library, address, error, said):
    with pytest.raises(error, match=said):
        library.sync(address)
    assert library.sources() == []


def test_a_kind_counts_only_where_the_settings_name_it(database, site, shelf):
    address = shelf("v1", "alpha")
    with SkillRegistry.open(database, settings=Settings(source_kinds=("shelf",))) as registry:
        registry.sync(address)
    with SkillRegistry.open(database, settings=Settings()) as registry:
        (part,) = registry.sync().sources
        assert part.outcome == "refused"
        assert "source_kinds" in part.message
        assert registry.get("alpha").status == "ok"


def test_a_kind_that_no_package_offers_is_told_with_the_nearest(database, site):
    settings = parse_settings({"source_kinds": ["shelv"]}, "settings")
    with (
        SkillRegistry.open(database, settings=settings) as registry,
        pytest.raises(SourceKindUnusable, match="did you mean shelf"),
    ):
        registry.sync("shelv:x")
