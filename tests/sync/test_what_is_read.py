"""A sync reads what may have changed, keeps what it read, and leaves nothing behind."""

import os

import pytest

from registry.api import SkillRegistry
from registry.db.read.findings import notice_digest
from registry.disk.files import digest
from registry.errors import FileChanging
from registry.settings import Limits, Settings
from registry.sync import apply, reading
from registry.sync.reading import signed
from tests.conftest import OLD, write_skill


@pytest.fixture
def alpha(registry, root, skill):
    """A skill with a supporting file, synced."""
    folder = skill("alpha")
    (folder / "notes.md").write_text("one")
    registry.sync(str(root), name="mine")
    return folder


@pytest.fixture
def reads(monkeypatch):
    """Note which files are read; those in ``reads.failing`` can't be."""

    class Reads(list):
        def __init__(self):
            super().__init__()
            self.failing = {}

        def taken(self):
            taken = sorted(self)
            self.clear()
            return taken

    noted, real = Reads(), reading.read_inside

    def read(home, path, *more):
        name = os.path.basename(path)
        if name in noted.failing:
            raise noted.failing[name]
        noted.append(name)
        return real(home, path, *more)

    monkeypatch.setattr(reading, "read_inside", read)
    return noted


def stored(registry, content):
    """Tell whether these bytes are in the database."""
    sql = "SELECT count(*) FROM contents WHERE hash = ?"
    return registry.core.reader.rows(sql, (digest(content),)) == [(1,)]


@pytest.mark.usefixtures("settled")
class TestRead:
    def test_nothing_is_read_where_nothing_changed_unless_all_is_verified(
        self, registry, alpha, reads
    ):
        registry.sync()
        assert reads.taken() == []
        registry.sync(verify=True)
        assert reads.taken() == ["SKILL.md", "notes.md"]

    def test_only_the_document_and_what_changed_are_read(self, registry, alpha, reads):
        (alpha / "more.md").write_text("two")
        assert registry.sync().updated == ("alpha",)
        assert reads.taken() == ["SKILL.md", "SKILL.md", "more.md", "more.md"]

    def test_a_touched_file_is_read_once_and_believed_from_then_on(self, registry, alpha, reads):
        os.utime(alpha / "notes.md", (OLD + 9, OLD + 9))
        assert registry.sync().unchanged == 1
        assert "notes.md" in reads.taken()
        assert registry.sync().unchanged == 1
        assert reads.taken() == []

    def test_a_touched_skill_that_vanishes_disturbs_nothing(self, registry, alpha, monkeypatch):
        monkeypatch.setattr("registry.sync.plan.MAX_CACHED_SCANS", 0)
        os.utime(alpha / "notes.md", (OLD + 9, OLD + 9))

        def vanish(doing, *_):
            if doing == "publishing":
                alpha.rename(alpha.with_name(".gone.skill-registry"))

        assert registry.sync(progress=vanish).unchanged == 1

    def test_who_may_execute_counts_only_for_the_owner(self, registry, alpha):
        (alpha / "notes.md").chmod(0o645)
        assert registry.sync().unchanged == 1
        (alpha / "notes.md").chmod(0o744)
        assert registry.sync().updated == ("alpha",)

    def test_a_skill_that_got_a_link_is_changed_though_its_files_are_not(self, registry, alpha):
        (alpha / "dead").symlink_to("nowhere")
        assert registry.sync().updated == ("alpha",)
        os.utime(alpha / "notes.md", (OLD + 9, OLD + 9))
        assert registry.sync().updated == ()


class TestUnreadable:
    def test_a_document_that_changes_too_often_keeps_its_skill_as_it_was(
        self, registry, alpha, reads
    ):
        reads.failing["SKILL.md"] = FileChanging(path="SKILL.md")
        write_skill(alpha, description="Half written.", age=OLD + 5)
        report = registry.sync()
        assert (report.updated, report.unchanged, report.invalid) == ((), 1, 0)
        assert registry.list()[0].description == "Does one thing well."
        reads.failing.clear()
        assert registry.sync().updated == ("alpha",)

    @pytest.mark.both
    def test_a_new_skill_that_can_not_be_read_yet_is_listed_as_such_and_read_later(
        self, registry, root, reads
    ):
        (root / "later").mkdir()
        registry.sync(str(root))
        reads.failing["SKILL.md"] = FileChanging(path="SKILL.md")
        write_skill(root / "later")
        assert registry.sync().invalid == 1
        reads.failing.clear()
        assert registry.sync().updated == ("later",)
        assert registry.list()[0].status == "ok"

    def test_a_document_that_grew_over_the_limit_is_not_served_as_it_was(
        self, database, root, skill
    ):
        skill("alpha")
        with SkillRegistry.open(
            database, settings=Settings(limits=Limits(document_bytes=200))
        ) as registry:
            registry.sync(str(root))
            skill("alpha", body="x" * 200)
            report = registry.sync()
            assert (report.updated, report.invalid) == (("alpha",), 1)
            assert [one.code for one in registry.get("alpha").diagnostics] == ["document-too-large"]
            report = registry.sync()
            assert (report.unchanged, report.invalid) == (1, 1)


class TestKept:
    @pytest.mark.both
    def test_the_bytes_of_what_is_synced_are_kept_unless_that_is_switched_off(
        self, registry, alpha, database
    ):
        assert stored(registry, b"one")
        with SkillRegistry.open(database, settings=Settings(store_files=False)) as other:
            (alpha / "notes.md").write_text("not kept")
            assert other.sync().updated == ("alpha",)
            (alpha / "more.md").write_text("nor this")
            assert other.get("alpha").status == "ok"
            assert other.sync(verify=True).unchanged == 1
        assert not stored(registry, b"not kept")
        assert not stored(registry, b"nor this")
        registry.sync(verify=True)
        assert stored(registry, b"not kept")
        assert stored(registry, b"nor this")

    def test_an_edit_that_is_noticed_by_reading_is_kept_too(self, registry, alpha):
        (alpha / "notes.md").write_text("seen first by a reader")
        registry.get("alpha")
        assert stored(registry, b"seen first by a reader")

    def test_the_document_is_kept_as_text_and_as_bytes_only_where_text_is_not_all(
        self, registry, alpha, skill
    ):
        plain = (alpha / "SKILL.md").read_bytes()
        marked = b"\xef\xbb\xbf" + plain.replace(b"alpha", b"marked")
        (skill("marked") / "SKILL.md").write_bytes(marked)
        registry.sync()
        assert stored(registry, marked)
        assert not stored(registry, plain)
        assert registry.read_bytes("marked") == marked

    def test_an_inode_of_64_bits_fits_into_the_database(self):
        assert [signed(inode) for inode in (5, (1 << 64) - 1)] == [5, -1]


class TestLeftBehind:
    def dead(self, registry):
        return registry.core.reader.rows("SELECT count(*) FROM skills WHERE live = 0")[0][0]

    @pytest.mark.both
    def test_versions_that_were_replaced_or_removed_do_not_stay(self, registry, alpha, root, skill):
        skill("beta")
        registry.sync()
        write_skill(alpha, description="Changed.", age=OLD + 5)
        (root / "beta" / "SKILL.md").unlink()
        (root / "beta").rmdir()
        assert len(registry.sync().removed) == 1
        assert self.dead(registry) == 0

    def test_what_interrupted_syncs_leave_does_not_grow(self, registry, alpha, skill):
        for number in range(3):
            skill(f"more-{number}")

        def interrupt(doing, *_):
            if doing == "publishing":
                raise KeyboardInterrupt

        for _ in range(2):
            with pytest.raises(KeyboardInterrupt):
                registry.sync(progress=interrupt)
            assert self.dead(registry) == 3
        assert len(registry.sync().added) == 3
        assert self.dead(registry) == 0


def test_progress_counts_up_batch_by_batch_to_all(registry, root, skill, monkeypatch):
    monkeypatch.setattr(apply, "BATCH", 2)
    for number in range(5):
        skill(f"skill-{number}")
    seen = []
    report = registry.sync(str(root), name="mine", progress=lambda *told: seen.append(told))
    assert len(report.added) == 5
    assert [told for told in seen if told[0] != "scanning mine"] == [
        ("importing", 2, 5),
        ("importing", 4, 5),
        ("importing", 5, 5),
        ("publishing", 5, 5),
    ]
    seen.clear()
    for number in range(3):
        os.utime(root / f"skill-{number}" / "SKILL.md", (OLD + 9, OLD + 9))
    registry.sync(progress=lambda *told: seen.append(told))
    assert [told for told in seen if told[0] == "reading mine"][:1] == [("reading mine", 0, 5)]


def test_a_batch_ends_where_it_holds_enough(registry, root, skill, monkeypatch):
    monkeypatch.setattr(apply, "BATCH_CHARACTERS", 1000)
    for number in range(2):
        skill(f"text-{number}", body="x" * 600)
    for number in range(2):
        (skill(f"file-{number}") / "data").write_bytes(os.urandom(600))
    seen = []
    registry.sync(str(root), name="mine", progress=lambda *told: seen.append(told))
    assert [done for doing, done, _ in seen if doing == "importing"] == [2, 4]


@pytest.mark.both
def test_the_notices_of_each_source_are_its_own(registry, tmp_path):
    for name in ("one", "other"):
        (tmp_path / name).mkdir()
        (tmp_path / name / f"dead-{name}").symlink_to("nowhere")
    report = registry.sync(str(tmp_path / "one"), str(tmp_path / "other"))
    told = {one.name: [folder for folder, _ in one.notices] for one in report.sources}
    assert told == {"one": ["dead-one"], "other": ["dead-other"]}
    (tmp_path / "other" / "dead-other").unlink()
    (tmp_path / "other" / "dead-new").symlink_to("nowhere")
    registry.sync("other")
    ids = {source.name: source.id for source in registry.sources()}
    reader = registry.core.reader
    assert notice_digest(reader, ids["one"]) == [("dead-one", "link-broken")]
    assert notice_digest(reader, ids["other"]) == [("dead-new", "link-broken")]
