from contextlib import closing
from pathlib import Path

import pytest

from tests.db.backend_contract import NOW, BackendTests

pytestmark = pytest.mark.file


class TestSqlite(BackendTests):
    @pytest.fixture
    def address(self, tmp_path: Path) -> str:
        return str(tmp_path / "state" / "registry.db")

    @pytest.mark.parametrize("wait", [0, 0.05])
    def test_counts_of_use_are_not_added_while_somebody_writes(self, filled, connect, wait):
        counted = [(1, 0, 0, NOW, None, None, "mine", "alpha")]
        other = connect()
        with closing(other.open_writer()) as writer, writer.transaction():
            assert filled.add_usage(counted, wait) is False
        assert filled.reader.rows("SELECT count(*) FROM usage") == [(0,)]
        assert filled.add_usage(counted, wait) is True
