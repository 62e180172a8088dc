"""Fixtures that make real folders and real databases."""

import gc
import os
import secrets
import signal
import tarfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from zlib import crc32

import hypothesis
import pytest
from sqlalchemy import Dialect, Engine, create_engine, event

from registry.api import SkillRegistry
from registry.db.postgres import writer as postgres_writer
from registry.db.sqlite import upgrade
from registry.db.sqlite import writer as sqlite_writer
from registry.disk.agents import VARIABLES
from registry.model import DOCUMENT_NAMES
from registry.settings import Settings
from tests.databases import Databases
from tests.on_a_server import is_for_a_server, may_be_for_a_server
from tests.servers import VARIABLE, Server

# A noisy machine is no failure, and a run that judges a change must not fail by chance: new
# counterexamples are looked for by people, who keep them as tests.
hypothesis.settings.register_profile(
    "here", deadline=None, derandomize=os.environ.get("CI") is not None, max_examples=30
)
hypothesis.settings.register_profile("long", deadline=None, max_examples=200)
hypothesis.settings.load_profile("here")


def hearing_interrupts() -> None:
    """Let a process of a test be interrupted, though the tests themselves may run in the background.

    For ``preexec_fn``: what ignores SIGINT is what the shell starts with ``&``.
    """
    signal.signal(signal.SIGINT, signal.SIG_DFL)


REPOSITORY = Path(__file__).resolve().parent.parent
CORPUS = REPOSITORY.parent / "shared" / "corpus" / "real-skills-sample.tar.gz"

MakeSkill = Callable[..., Path]

OLD = 1_700_000_000
"""A file time (14 November 2023) long before any scan of a test, so that it can be trusted."""


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
    parser.addoption(
        "--every-step",
        action="store_true",
        help="try each step, attack, page and request, not a part of them that is always the same",
    )
    parser.addoption(
        "--all-skills",
        action="store_true",
        help="take all of the collection of real skills, not a sixth that is always the same",
    )


def pytest_configure(config: pytest.Config) -> None:
    # What lasts longer than a test, and is made before `_home`, is to be nobody's, either.
    for name in [name for name in os.environ if name.startswith("XDG_")]:
        del os.environ[name]
    use_the_programs_thresholds()  # of the garbage collector, for the collecting of tests, too
    from tests.changes import faults

    if config.getoption("--every-step"):
        hypothesis.settings.load_profile("long")
    faults.every_line = config.getoption("--every-line")
    faults.every_step = config.getoption("--every-step")
    config.addinivalue_line("markers", "file: about SQLite files: not for a server")
    config.addinivalue_line("markers", "server: about PostgreSQL: not for a file")
    config.addinivalue_line(
        "markers", "reads: only reads its library, which is made once for the module"
    )
    config.addinivalue_line(
        "markers",
        "both: asked of a server as well, on behalf of its file; see tests/on_a_server.py",
    )


LONG = """
test_faults.py test_attacks.py test_looks.py test_power_cuts.py test_kills.py test_chaos.py
test_clawhub.py test_browser.py test_frameworks.py test_git_sync.py test_git_hostile.py
test_git_kept.py test_install_killed.py test_edit.py test_damaged.py test_projects.py test_many.py
test_teams.py test_owners.py test_pooled.py test_pull.py test_corpus.py test_exchanged_links.py
test_processes.py test_forks.py
""".split()
"""Files that take long, the longest first: they begin, and all workers end at the same time."""


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Import no file for a server that has no test for it, as most have none."""
    if config.getoption("--backend") == "sqlite" or may_be_for_a_server(collection_path):
        return None
    return True


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what is about the other database, and on a server what says nothing about it."""
    on_a_server = config.getoption("--backend") == "postgresql"
    chosen, others = [], []
    for item in items:
        fits = is_for_a_server(item) if on_a_server else not item.get_closest_marker("server")
        (chosen if fits else others).append(item)
    config.hook.pytest_deselected(items=others)
    places = {name: place for place, name in enumerate(LONG)}
    items[:] = sorted(chosen, key=lambda item: places.get(item.path.name, len(LONG)))


def pytest_collection_finish() -> None:
    """Spare the garbage collector what stays: the modules and thousands of collected tests."""
    gc.freeze()


def use_the_programs_thresholds() -> None:
    gc.set_threshold(50_000, 20, 100)


@pytest.fixture(scope="session")
def databases() -> Iterator[Databases]:
    """Databases on a real PostgreSQL server: the one that is named, else one of our own."""
    named = os.environ.get(VARIABLE)
    server = None if named else Server().start()
    made = Databases(named or server.url)
    with made.connections.lent():
        yield made
    if server is None:
        made.remove()
    made.close()
    if server is not None:
        server.stop()


@pytest.fixture
def new_connections(databases: Databases) -> Iterator[None]:
    """No connection of the test's was another's, and each ends when it is closed."""
    with databases.connections.unused():
        yield


@pytest.fixture
def server_database(databases: Databases) -> Iterator[str]:
    """The address of a database of its own on a server, with the schema in place."""
    url = databases.new()
    yield url
    databases.give_back(url)


@pytest.fixture(scope="session")
def new_database(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Callable[[], Path | str]]:
    """Make as many databases as a test needs."""
    made: list[str] = []
    on_a_server = request.config.getoption("--backend") == "postgresql"
    databases = request.getfixturevalue("databases") if on_a_server else None

    def make() -> Path | str:
        if databases is not None:
            made.append(databases.new())
            return made[-1]
        return tmp_path_factory.mktemp("database") / "registry.db"

    yield make
    for url in made:
        databases.drop(url)


@pytest.fixture(scope="session")
def lent_database(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Callable[[], AbstractContextManager[Path | str]]:
    """Lend one database after the other: for a test of many examples."""
    on_a_server = request.config.getoption("--backend") == "postgresql"
    databases = request.getfixturevalue("databases") if on_a_server else None

    @contextmanager
    def lend() -> Iterator[Path | str]:
        if databases is None:
            yield tmp_path_factory.mktemp("database") / "registry.db"
        else:
            url = databases.new()
            yield url
            databases.give_back(url)

    return lend


@pytest.fixture(autouse=True, scope="session")
def _compiled_once() -> Iterator[None]:
    """Let the engines of all databases of a kind share what they compiled.

    The program has one engine, which compiles a statement once; a test has a new one each time.
    """
    dialects: dict[str, Dialect] = {}
    compiled: dict[Any, Any] = {}  # the keys tell dialects apart

    def create(url: str, **options: Any) -> Engine:
        engine = create_engine(url, **options)
        if url in dialects:
            engine.dialect = dialects[url]
        else:  # after its own first look at what it is connected to
            event.listen(engine, "connect", lambda *_: dialects.setdefault(url, engine.dialect))
        engine.update_execution_options(compiled_cache=compiled)
        return engine

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sqlite_writer, "create_engine", create)
        patch.setattr(postgres_writer, "create_engine", create)
        yield


@pytest.fixture(scope="session")
def _migrated(_compiled_once: None, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file with the schema in place."""
    made = tmp_path_factory.mktemp("migrated") / "registry.db"
    upgrade.ensure_current(str(made))
    return made


@pytest.fixture(autouse=True, scope="session")
def _ready_made(_migrated: Path) -> Iterator[None]:
    """Let a new database be a copy of one that was migrated: the same, without the migrations."""
    ensure, content = upgrade.ensure_current, _migrated.read_bytes()
    # Tests of the making itself import the function, and so have the real one.

    def copy(path: str) -> None:
        if not os.path.exists(path):
            with suppress(OSError):  # told by what comes then
                os.makedirs(os.path.dirname(path), exist_ok=True)
                draft = f"{path}.{secrets.token_hex(4)}"
                Path(draft).write_bytes(content)
                with suppress(FileExistsError):  # another thread was faster
                    os.link(draft, path)
                os.unlink(draft)
        ensure(path)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(upgrade, "ensure_current", copy)
        yield


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
        patch.setattr("registry.sync.fingerprint.RACY_NS", -(10**18))
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


@pytest.fixture
def settled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let files written a moment ago count as old, as they are two seconds later."""
    monkeypatch.setattr("registry.sync.fingerprint.RACY_NS", -(10**18))


@pytest.fixture(scope="session")
def corpus(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Real skills of strangers, malformed ones among them: data, never instructions.

    A sixth of them, always the same ones; all of them with ``--all-skills``.
    """
    if not CORPUS.exists():
        pytest.skip("the collection of real skills is not beside this checkout")
    folder = tmp_path_factory.mktemp("corpus")
    with tarfile.open(CORPUS) as archive:
        members = archive.getmembers()
        if not request.config.getoption("--all-skills"):
            members = [*a_sixth(members)]
        archive.extractall(folder, members, filter="tar")
    return folder


def a_sixth(members: list[tarfile.TarInfo]) -> Iterator[tarfile.TarInfo]:
    """Yield a sixth of the skills of an archive whole, and all that belongs to none."""
    skills = {
        os.path.dirname(one.name)
        for one in members
        if os.path.basename(one.name).lower() in {name.lower() for name in DOCUMENT_NAMES}
    }
    for one in members:
        place = one.name
        while place and place not in skills:
            place = os.path.dirname(place)
        if not place or crc32(os.fsencode(place)) % 6 == 0:
            yield one
