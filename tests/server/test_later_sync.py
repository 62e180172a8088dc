"""What a later sync can do before it publishes, all at once, is done before others wait for it."""

import hashlib

import psycopg
import pytest

from registry.db.write import skills
from registry.sync import apply
from tests.conftest import OLD, write_skill
from tests.server.numbered import numbered

pytestmark = pytest.mark.server

SKILLS = 9


@pytest.fixture
def library(server_database, root):
    with numbered(server_database, root, SKILLS) as registry:
        yield registry


def edit(root):
    for number in range(SKILLS - 2):
        write_skill(root / f"one-{number}", description=f"Changed {number}.", age=OLD + 9)
    for number in range(SKILLS - 2, SKILLS):
        (root / f"one-{number}" / "SKILL.md").unlink()
        (root / f"one-{number}").rmdir()


def test_the_documents_of_what_leaves_are_kept_before_others_wait(library, root, monkeypatch):
    documents = [one.read_bytes() for one in sorted(root.glob("*/SKILL.md"))]
    left = {f"sha256:{hashlib.sha256(one).hexdigest()}" for one in documents}
    edit(root)
    monkeypatch.setattr(apply, "FEW", 1)
    monkeypatch.setattr(apply, "PART", 4)
    real, kept = apply.publish, []

    def publish(connection, *what):
        rows = library.core.reader.rows("SELECT hash FROM contents")
        kept.append({one for (one,) in rows})
        return real(connection, *what)

    monkeypatch.setattr(apply, "publish", publish)
    report = library.sync(allow_prune=True)
    assert (len(report.updated), len(report.removed)) == (SKILLS - 2, 2)
    assert len(kept) == 1
    assert len(left) == SKILLS
    assert left <= kept[0]
    assert library.check_database() == []


def test_what_stands_in_a_folder_is_looked_up_without_going_over_the_source(
    library, server_database
):
    """A server that has not counted its rows takes any index that looks as good as the best."""
    ids = [one for (one,) in library.core.reader.rows("SELECT id FROM skills")]
    asked = f"EXPLAIN (ANALYZE, FORMAT JSON) {skills._STAGED.format(in_array='= ANY(%s)')}"
    with psycopg.connect(server_database.replace("+psycopg", "")) as connection:
        connection.execute("DROP INDEX uq_skills_live_folder")
        connection.execute("SET LOCAL enable_seqscan = off")
        (plan,) = connection.execute(asked, [ids]).fetchone()
        connection.rollback()
    found = [one for one in nodes(plan[0]["Plan"]) if one.get("Alias") == "h"]
    assert [one["Actual Loops"] for one in found] == [SKILLS]
    assert [one.get("Rows Removed by Filter", 0) for one in found] == [0]


def nodes(plan):
    yield plan
    for one in plan.get("Plans", ()):
        yield from nodes(one)
