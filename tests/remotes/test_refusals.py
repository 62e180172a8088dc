"""What people are told to do where a server refuses."""

import pytest

from tests.cli.conftest import run


@pytest.mark.parametrize(
    ("status", "words"),
    [(401, "into ~/.netrc"), (403, "fetched by git"), (404, "Check the address")],
)
def test_a_refusal_says_what_to_do_next(server, database, status, words):
    server.put("/all.zip", b"", status)
    said = run("--db", str(database), "source", "add", f"{server.url}/all.zip")
    assert said.exit_code == 1
    assert f"HTTP status {status}" in said.stderr
    assert words in said.stderr
