"""Fixtures that make real folders and real databases."""

import gc
import os
import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path

import hypothesis
import pytest

from registry.api import SkillRegistry
from registry.settings import Settings
from tests.servers import VARIABLE, Databases, Server

# A noisy machine is no failure, and a run that judges a change must not fail by chance: new
# counterexamples are looked for by people, who keep them as tests.
hypothesis.settings.register_profile(
    "here", deadline=None, derandomize=os.environ.get("CI") is not None
)
hypothesis.settings.load_profile("here")

REPOSITORY = Path(__file__).resolve().parent.parent
CORPUS = REPOSITORY.parent / "shared" / "corpus" / "real-skills-sample.tar.gz"

MakeSkill = Callable[..., Path]

OLD = 1_700_000_000
"""A file time (14 November 2023) long before any scan of a test, so that it can be trusted."""


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep the user's own settings, database and skills out of every test."""
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    for name in list(os.environ):
        if name.startswith(
            (
                "XDG_",
                "SKILL_REGISTRY_DB",
                "SKILL_REGISTRY_CONFIG",
                "SKILL_REGISTRY_HOST",
                "NO_COLOR",
            )
        ):
            monkeypatch.delenv(name)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """An empty folder to be used as a source."""
    folder = tmp_path / "skills"
    folder.mkdir()
    return folder


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


@pytest.fixture
def skill(root: Path) -> MakeSkill:
    """Write a skill below the source: ``skill("writing/haiku", description=…)``."""

    def make(folder: str, **facts: object) -> Path:
        return write_skill(root / folder, **facts)  # type: ignore[arg-type]

    return make


BACKENDS = ("sqlite", "postgresql")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--backend",
        choices=BACKENDS,
        default="sqlite",
        help="the database behind the tests that ask for one; what is about files stays with files",
    )
    parser.addoption(
        "--every-line",
        action="store_true",
        help="break changes at each line that is executed, not only where something is written",
    )


def pytest_configure(config: pytest.Config) -> None:
    from tests.changes import faults

    faults.every_line = config.getoption("--every-line")
    config.addinivalue_line("markers", "file: about SQLite files: not for a server")
    config.addinivalue_line("markers", "server: about PostgreSQL: not for a file")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what is about the other database, and on a server what needs no database."""
    if config.getoption("--backend") == "postgresql":
        needed = {"database", "new_database", "server_database", "databases"}
        chosen = [
            item
            for item in items
            if item.get_closest_marker("file") is None
            and (
                needed & set(getattr(item, "fixturenames", ()))
                or item.get_closest_marker("server") is not None
            )
        ]
    else:
        chosen = [item for item in items if item.get_closest_marker("server") is None]
    config.hook.pytest_deselected(items=[item for item in items if item not in set(chosen)])
    items[:] = chosen


def pytest_collection_finish() -> None:
    """Spare the garbage collector what stays: the modules and thousands of collected tests."""
    gc.freeze()
    gc.set_threshold(50_000, 20, 100)  # as the program does


@pytest.fixture(scope="session")
def databases() -> Iterator[Databases]:
    """Databases on a real PostgreSQL server: the one that is named, else one of our own."""
    named = os.environ.get(VARIABLE)
    server = None if named else Server().start()
    made = Databases(named or server.url)
    yield made
    made.close()
    if server is not None:
        server.stop()


@pytest.fixture
def server_database(databases: Databases) -> Iterator[str]:
    """The address of a database of its own on a server, with the schema in place."""
    url = databases.new()
    yield url
    databases.drop(url)


@pytest.fixture(scope="session")
def new_database(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Callable[[], Path | str]]:
    """Make as many databases as a test needs."""
    made: list[str] = []

    def make() -> Path | str:
        if request.config.getoption("--backend") == "postgresql":
            made.append(request.getfixturevalue("databases").new())
            return made[-1]
        return tmp_path_factory.mktemp("database") / "registry.db"

    yield make
    for url in made:
        request.getfixturevalue("databases").drop(url)


@pytest.fixture
def database(request: pytest.FixtureRequest, tmp_path: Path) -> Path | str:
    """A database of its own: a file that is not there yet, or an address."""
    if request.config.getoption("--backend") == "postgresql":
        return request.getfixturevalue("server_database")
    return tmp_path / "state" / "registry.db"


@pytest.fixture
def registry(database: Path | str) -> Iterator[SkillRegistry]:
    with SkillRegistry.open(database, settings=Settings()) as opened:
        yield opened


@pytest.fixture
def settled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let files written a moment ago count as old, as they are two seconds later."""
    monkeypatch.setattr("registry.sync.folder.RACY_NS", -(10**18))


@pytest.fixture(scope="session")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Real skills of strangers, malformed ones among them: data, never instructions."""
    if not CORPUS.exists():
        pytest.skip("the collection of real skills is not beside this checkout")
    folder = tmp_path_factory.mktemp("corpus")
    with tarfile.open(CORPUS) as archive:
        archive.extractall(folder, filter="tar")
    return folder
