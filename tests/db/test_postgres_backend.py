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
