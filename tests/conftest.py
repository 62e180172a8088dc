"""Fixtures that make real folders, and libraries of what is in them."""

import os
import signal
import subprocess
import sys
import tarfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from zlib import crc32

import pytest

from registry.api import SkillRegistry
from registry.disk import beneath
from registry.disk.agents import VARIABLES
from registry.model import DOCUMENT_NAMES
from registry.settings import Settings, parse_settings

pytest_plugins = ("tests.collecting", "tests.backends")

REPOSITORY = Path(__file__).resolve().parent.parent
CORPUS = REPOSITORY.parent / "shared" / "corpus" / "real-skills-sample.tar.gz"

MakeSkill = Callable[..., Path]

OLD = 1_700_000_000
"""A file time (14 November 2023) long before any scan of a test, so that it can be trusted."""


def interpreted(*arguments: object, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run an interpreter that really starts; return how it ended and what it printed."""
    return subprocess.run(
        [sys.executable, *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **variables},
        cwd=REPOSITORY,
    )


def hearing_interrupts() -> None:
    """Let a process of a test be interrupted, though the tests themselves may run in the background.

    For ``preexec_fn``: what ignores SIGINT is what the shell starts with ``&``.
    """
    signal.signal(signal.SIGINT, signal.SIG_DFL)


@pytest.fixture(autouse=True)
def _home(tmp_path: Path) -> Iterator[None]:
    """Keep the user's own settings, key, database and skills out of every test.

    Not by the test's own ``monkeypatch``: what that undoes in the middle of a test is not this.
    """
    home = tmp_path / "home"
    home.mkdir()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOME", str(home))
        for name in list(os.environ):
            if name.startswith(
                (
                    "XDG_",
                    "SKILL_REGISTRY_DB",
                    "SKILL_REGISTRY_CONFIG",
                    "SKILL_REGISTRY_HOST",
                    "NO_COLOR",
                    *VARIABLES,
                )
            ):
                patch.delenv(name)
        yield


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """An empty folder to be used as a source."""
    folder = tmp_path / "skills"
    folder.mkdir()
    return folder


@pytest.fixture
def mine(registry: SkillRegistry, root: Path) -> SkillRegistry:
    """A registry with a source of one's own, and no skill in it."""
    registry.sync(str(root), name="mine")
    return registry


@pytest.fixture
def filled(registry: SkillRegistry, root: Path) -> SkillRegistry:
    """A registry of two skills."""
    for name in ("alpha", "beta"):
        write_skill(root / name)
    registry.sync(str(root), name="mine")
    return registry


def write_skill(
    folder: Path,
    *,
    name: str | None = None,
    description: str = "Does one thing well.",
    body: str = "# How\n\nStep by step.\n",
    extra: str = "",
    age: int | None = OLD,
) -> Path:
    """Write a skill's folder; its files are old unless ``age`` is None."""
    folder.mkdir(parents=True, exist_ok=True)
    document = folder / "SKILL.md"
    front = f"name: {folder.name if name is None else name}\ndescription: {description}\n{extra}"
    document.write_text(f"---\n{front}---\n\n{body}", encoding="utf-8")
    if age is not None:
        os.utime(document, (age, age))
    return folder


def edit_without_a_trace(document: Path, before: bytes, after: bytes) -> None:
    """Replace as many bytes of a file in place; its size and times stay."""
    facts = document.stat()
    with document.open("r+b") as file:
        text = file.read().replace(before, after)
        file.seek(0)
        file.write(text)
    os.utime(document, ns=(facts.st_atime_ns, facts.st_mtime_ns))


@pytest.fixture
def skill(root: Path) -> MakeSkill:
    """Write a skill below the source: ``skill("writing/haiku", description=…)``."""

    def make(folder: str, **facts: object) -> Path:
        return write_skill(root / folder, **facts)  # type: ignore[arg-type]

    return make


@dataclass(frozen=True)
class Kept:
    """A library that the tests of a module only read: its database and its source."""

    database: Path | str
    root: Path


def only_reads(request: pytest.FixtureRequest) -> bool:
    """Tell whether what its module keeps will do for a test: it is marked and writes no skill."""
    asked = set(request.fixturenames)
    return (
        request.node.get_closest_marker("reads") is not None
        and bool({"library", "hostile", "wide_library"} & asked)
        and not {"registry", "root", "skill"} & asked
    )


def keep_library(
    database: Path | str, folder: Path, fill: Callable[[Path], None], name: str = "mine"
) -> Kept:
    """Make a library to be kept; its files count as old, as they are two seconds later."""
    root = folder / "skills"
    root.mkdir()
    fill(root)
    with (
        pytest.MonkeyPatch.context() as patch,
        SkillRegistry.open(database, settings=Settings()) as registry,
    ):
        patch.setattr("registry.sync.reading.RACY_NS", -(10**18))
        registry.sync(str(root), name=name)
    return Kept(database, root)


def adopt_all(database: Path | str) -> None:
    """Let the home of a test remember what was added to a server from another test's."""
    with SkillRegistry.open(database, settings=Settings()) as registry:
        for source in registry.sources(counted=False):
            registry.adopt_source(source.name)


@pytest.fixture
def database(request: pytest.FixtureRequest, tmp_path: Path) -> Path | str:
    """A database of its own: a file that is not there yet, or an address; or the module's."""
    if only_reads(request):
        kept: Kept = request.getfixturevalue("kept")
        if request.config.getoption("--backend") == "postgresql":
            adopt_all(kept.database)
        return kept.database
    if request.config.getoption("--backend") == "postgresql":
        return request.getfixturevalue("server_database")
    return tmp_path / "state" / "registry.db"


@pytest.fixture
def registry(database: Path | str, tmp_path: Path) -> Iterator[SkillRegistry]:
    """An open registry, seen from the test's own folder: its projects are here."""
    with SkillRegistry.open(database, settings=Settings(), workdir=tmp_path) as opened:
        yield opened


def open_with(database: Path | str, **settings: object) -> SkillRegistry:
    """Open a registry with settings as a file has them."""
    return SkillRegistry.open(database, settings=parse_settings(settings, "config.yaml"))


@pytest.fixture(params=["openat2", "walk"])
def opening(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Once by the system's own call, once without it, a handle for each part of a path."""
    if request.param == "walk":
        monkeypatch.setattr(beneath, "openat2", lambda: None)
    elif beneath.openat2() is None:
        pytest.skip("this system has no openat2")
    return request.param


@pytest.fixture
def settled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let files written a moment ago count as old, as they are two seconds later."""
    monkeypatch.setattr("registry.sync.reading.RACY_NS", -(10**18))


@pytest.fixture(scope="session")
def corpus(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Real skills of strangers, malformed ones among them: data, never instructions.

    A twelfth of them, always the same ones; all of them with ``--all-skills``.
    """
    if not CORPUS.exists():
        pytest.skip("the collection of real skills is not beside this checkout")
    folder = tmp_path_factory.mktemp("corpus")
    with tarfile.open(CORPUS) as archive:
        members = archive.getmembers()
        if not request.config.getoption("--all-skills"):
            members = [*a_twelfth(members)]
        archive.extractall(folder, members, filter="tar")
    return folder


def a_twelfth(members: list[tarfile.TarInfo]) -> Iterator[tarfile.TarInfo]:
    """Yield a twelfth of the skills of an archive whole, and all that belongs to none."""
    skills = {
        os.path.dirname(one.name)
        for one in members
        if os.path.basename(one.name).lower() in {name.lower() for name in DOCUMENT_NAMES}
    }
    for one in members:
        place = one.name
        while place and place not in skills:
            place = os.path.dirname(place)
        if not place or crc32(os.fsencode(place)) % 12 == 0:
            yield one
