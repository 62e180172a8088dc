"""What the tests of the databases share."""

import pytest

pytest.register_assert_rewrite("tests.db.backend_contract")
