from collections.abc import Iterator

import pytest

from tests.db.backend_contract import BackendTests
from tests.servers import Databases

pytestmark = pytest.mark.server


class TestPostgres(BackendTests):
    @pytest.fixture
    def address(self, databases: Databases) -> Iterator[str]:
        url = databases.empty()
        yield url
        databases.drop(url)

    def test_statistics_are_there_at_once(self, filled):
        """The server's own count comes minutes later."""
        writer = filled.open_writer()
        writer.update_statistics()
        counted = "SELECT CAST(reltuples AS INTEGER) FROM pg_class WHERE relname = 'skills'"
        assert filled.reader.rows(counted) == [(2,)]
