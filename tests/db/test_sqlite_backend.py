from pathlib import Path

import pytest

from tests.db.backend_contract import BackendTests

pytestmark = pytest.mark.file


class TestSqlite(BackendTests):
    @pytest.fixture
    def address(self, tmp_path: Path) -> str:
        return str(tmp_path / "state" / "registry.db")
