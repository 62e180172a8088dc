"""What a user's environment, or who runs the server, sets for connections changes nothing stored."""

import os

import pytest

from registry.api import SkillRegistry
from registry.settings import Settings
from tests.conftest import write_skill
from tests.program import run

pytestmark = pytest.mark.server


@pytest.mark.parametrize(
    "setting",
    [
        {"PGCLIENTENCODING": "LATIN1"},
        {"PGCLIENTENCODING": "SQL_ASCII"},
        {"PGOPTIONS": "-c standard_conforming_strings=off"},
        {"PGOPTIONS": "-c bytea_output=escape"},
    ],
    ids=lambda setting: next(iter(setting.values())).removeprefix("-c ").lower(),
)
def test_texts_and_bytes_are_stored_and_read_as_they_are(server_database, root, setting):
    environ = {**os.environ, **setting, "SKILL_REGISTRY_HOST": "odd"}
    content = b"\x00\\ \xff \\x41\n'\xc3\xa9"
    folder = write_skill(root / "pdf", description="Füllt Formulare aus, 表格.")
    (folder / "data").write_bytes(content)

    def command(*arguments):
        return run(["--db", server_database, *arguments], environ=environ)

    for ran in (
        command("sync", str(root), "--name", "mine"),
        command("update", "pdf", "--tag", "é"),
    ):
        assert (ran.status, ran.err) == (0, "")
    assert "Füllt Formulare aus, 表格." in command("list").out
    with SkillRegistry.open(server_database, settings=Settings(host="other")) as reader:
        assert reader.read_file("pdf", "data") == content
        assert reader.check_database() == []
        assert [one.number for one in reader.history("pdf")] == [2, 1]
        assert "表格".encode() in reader.read_revision("pdf", 1)
