"""What a later sync can do before it publishes, all at once, is done before others wait for it."""

import hashlib

import pytest

from registry.sync import apply
from tests.conftest import OLD, write_skill

pytestmark = pytest.mark.server

SKILLS = 9


@pytest.fixture
def library(numbered):
    return numbered(SKILLS)


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
