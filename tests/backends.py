"""Fixtures that make real databases: SQLite files, and databases of a PostgreSQL server."""

import os
import secrets
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Dialect, Engine, create_engine, event

from registry.db.postgres import writer as postgres_writer
from registry.db.sqlite import writer
from registry.db.sqlite import writer as sqlite_writer
from tests.databases import Databases
from tests.servers import VARIABLE, Server


@pytest.fixture(scope="session")
def databases() -> Iterator[Databases]:
    """Databases on a real PostgreSQL server: the one that is named, else one of our own."""
    named = os.environ.get(VARIABLE)
    server = None if named else Server().start()
    made = Databases(named or server.url)
    yield made
    if server is None:
        made.remove()
    made.close()
    if server is not None:
        server.stop()


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
    writer.ensure_current(str(made))
    return made


@pytest.fixture(autouse=True, scope="session")
def _ready_made(_migrated: Path) -> Iterator[None]:
    """Let a new database be a copy of one that was migrated: the same, without the migrations."""
    ensure, content = writer.ensure_current, _migrated.read_bytes()
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
        patch.setattr(writer, "ensure_current", copy)
        yield
