"""A change made while a sync reads wins: the sync has staged what the disk was like before it."""

import os
import shutil

import pytest

from registry.api import SkillRegistry
from registry.db.read.findings import notice_digest
from registry.db.read.skills import files_and_findings, fingerprints
from registry.settings import Settings
from tests.conftest import OLD, write_skill


@pytest.fixture
def sync_while(filled, database):
    """Sync, and make a change of another process when all is staged and nothing is published."""

    def run(change):
        done = []

        def progress(doing, _done, _total):
            if doing == "publishing":
                with SkillRegistry.open(database, settings=Settings()) as other:
                    done.append(change(other))

        report = filled.sync(progress=progress)
        assert len(done) == 1
        assert filled.check_database() == []
        assert filled.core.reader.rows("SELECT count(*) FROM skills WHERE live = 0") == [(0,)]
        return report

    return run


def described(registry):
    return {skill.folder: skill.description for skill in registry.list()}


def test_a_change_made_while_a_sync_reads_wins(filled, root, sync_while):
    write_skill(root / "alpha", description="By hand.", age=OLD + 5)
    write_skill(root / "beta", description="By hand.", age=OLD + 5)
    report = sync_while(lambda other: other.update("alpha", description="Later.", force=True))
    assert described(filled) == {"alpha": "Later.", "beta": "By hand."}
    assert report.updated == ("beta",)
    assert filled.sync().unchanged == 2


def test_a_skill_deleted_while_a_sync_reads_stays_deleted(filled, root, sync_while):
    write_skill(root / "alpha", description="By hand.", age=OLD + 5)
    report = sync_while(lambda other: other.delete("alpha", force=True))
    assert described(filled) == {"beta": "Does one thing well."}
    assert report.updated == ()
    assert filled.restore("alpha").description == "By hand."


def test_a_skill_created_while_a_sync_reads_is_there_once_and_new(filled, root, skill, sync_while):
    skill("gamma", description="By hand.")

    def create(other):
        shutil.rmtree(root / "gamma")
        other.create("gamma", description="Created.")

    report = sync_while(create)
    assert described(filled)["gamma"] == "Created."
    assert (report.added, len(filled.list())) == ((), 3)


def test_a_place_taken_while_a_moved_skill_is_read_stays_taken(filled, root, sync_while):
    (root / "alpha").rename(root / "gamma")

    def create(other):
        shutil.rmtree(root / "gamma")
        other.create("gamma", description="Created.")

    report = sync_while(create)
    assert described(filled) == {"beta": "Does one thing well.", "gamma": "Created."}
    assert report.moved == ()


def test_skills_that_change_places_do_so_in_one_sync(filled, root):
    """Each folder has a live version while the new one of it is published."""
    (root / "alpha").rename(root / "gamma")
    (root / "beta").rename(root / "alpha")
    filled.sync()
    assert {skill.name: skill.folder for skill in filled.list()} == {
        "alpha": "gamma",
        "beta": "alpha",
    }
    assert filled.check_database() == []


def test_findings_of_one_source_are_replaced_and_those_of_another_stay(registry, tmp_path):
    for name in ("one", "two"):
        write_skill(tmp_path / name / name)
        (tmp_path / name / "dead").symlink_to("nowhere")
        registry.sync(str(tmp_path / name), name=name)
    one, two = (source.id for source in registry.sources())
    broken = [("dead", "link-broken")]
    reader = registry.core.reader
    assert (notice_digest(reader, one), notice_digest(reader, two)) == (broken, broken)
    (tmp_path / "one" / "dead").unlink()
    registry.sync("one")
    assert (notice_digest(reader, one), notice_digest(reader, two)) == ([], broken)
    (tmp_path / "one" / "gone").symlink_to("nowhere")
    registry.sync("one")
    assert notice_digest(reader, one) == [("gone", "link-broken")]
    assert notice_digest(reader, two) == broken


def test_files_that_were_only_touched_are_known_by_their_new_times(filled, root):
    reader, document = filled.core.reader, root / "alpha" / "SKILL.md"
    (known,) = (one for one in fingerprints(reader, filled.sources()[0].id) if "alpha" in one)
    os.utime(document, (OLD + 77, OLD + 77))
    assert filled.sync().unchanged == 2
    (now,) = (one for one in fingerprints(reader, filled.sources()[0].id) if "alpha" in one)
    assert (now.id, now.fingerprint != known.fingerprint) == (known.id, True)
    facts, _ = files_and_findings(reader, [now.id])[now.id][0]["SKILL.md"]
    stat = document.stat()
    assert facts == (stat.st_mode, stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns, stat.st_ino)
    beta = next(one for one in fingerprints(reader, filled.sources()[0].id) if "beta" in one)
    assert files_and_findings(reader, [beta.id])[beta.id][0]["SKILL.md"][0][2] == OLD * 10**9
