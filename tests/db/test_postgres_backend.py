from collections.abc import Iterator
from contextlib import closing

import pytest

from registry.errors import DatabaseUnreachable
from tests.databases import Databases
from tests.db.backend_contract import NOW, BackendTests

pytestmark = pytest.mark.server


class TestPostgres(BackendTests):
    @pytest.fixture
    def address(self, request: pytest.FixtureRequest, databases: Databases) -> Iterator[str]:
        """Who asks for a ``backend`` would make the schema, and is given it ready-made."""
        is_made = "backend" in request.fixturenames
        url = databases.new() if is_made else databases.empty()
        yield url
        databases.give_back(url) if is_made else databases.drop(url)

    def test_counts_of_use_are_added_beside_a_writer_and_wake_no_reader(self, filled, connect):
        counted = [(1, 0, 0, NOW, None, None, "mine", name) for name in ("alpha", "beta")]
        before = filled.reader.version()
        other = connect()
        with closing(other.open_writer()) as writer, writer.transaction() as connection:
            connection.exec_driver_sql("SELECT 1")
            assert filled.add_usage(counted, 0) is True
            assert filled.reader.rows("SELECT sum(listed) FROM usage") == [(2,)]
            assert filled.reader.version() == before
        assert filled.reader.version() != before

    def test_a_stream_whose_server_ends_it_says_so(self, filled, connect):
        """The rows that have not come yet are still with the server."""
        with filled.reader.snapshot():
            rows = iter(filled.reader.stream("SELECT generate_series(1, 5000), pg_backend_pid()"))
            _, process = next(rows)
            assert connect().reader.rows(f"SELECT pg_terminate_backend({process}, 5000)") == [
                (True,)
            ]
            with pytest.raises(DatabaseUnreachable):
                list(rows)
        assert filled.reader.rows("SELECT 1") == [(1,)]

    def test_statistics_are_there_at_once(self, filled):
        """The server's own count comes minutes later."""
        writer = filled.open_writer()
        writer.update_statistics()
        counted = "SELECT CAST(reltuples AS INTEGER) FROM pg_class WHERE relname = 'skills'"
        assert filled.reader.rows(counted) == [(2,)]
