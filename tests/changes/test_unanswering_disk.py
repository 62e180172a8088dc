"""What a change says and keeps when the disk stops answering right after the rename."""

import errno
import os

import pytest

from registry.api import SkillRegistry
from registry.catalog.resolve import resolve
from registry.changes import commit, finish
from registry.changes.create import create_files
from registry.changes.update import update_files
from registry.errors import ChangePending, ChangeRefused
from registry.settings import Settings
from tests.changes.faults import NEW, OLD
from tests.changes.planted import rows
from tests.conftest import write_skill
from tests.refusing import refuse

BETA = NEW.replace(b"alpha", b"beta")


@pytest.fixture
def alpha(registry, root):
    folder = write_skill(root / "alpha")
    (folder / "SKILL.md").write_bytes(OLD)
    registry.sync(str(root), name="mine")
    return folder


@pytest.fixture
def source(registry, alpha):
    return registry.sources()[0]


def failing_on(monkeypatch, function, path, *, module=os):
    """Let a call fail for what is at a path, whether it is named by that or is an open folder."""
    real = getattr(module, function)

    def at(where):
        if isinstance(where, int):
            return os.readlink(f"/proc/self/fd/{where}")
        return os.fspath(getattr(where, "path", where))

    def fail(where, *arguments, **named):
        if at(where) == os.fspath(path):
            raise OSError(errno.EIO, os.strerror(errno.EIO), os.fspath(path))
        return real(where, *arguments, **named)

    monkeypatch.setattr(module, function, fail)


EIO = OSError(errno.EIO, os.strerror(errno.EIO))


def unreadable_folder(monkeypatch, root):
    return refuse(monkeypatch, root / "beta", EIO, "scandir")


def unreadable_document(monkeypatch, root):
    return refuse(monkeypatch, root / "beta" / "SKILL.md", EIO, "open")


@pytest.mark.parametrize("break_it", [unreadable_folder, unreadable_document])
def test_a_created_folder_that_can_not_be_read_stays_in_the_journal(
    registry, root, source, database, monkeypatch, break_it
):
    with monkeypatch.context() as patch:
        real = finish.store_result

        def store_result(*arguments):
            break_it(patch, root)
            real(*arguments)

        patch.setattr(finish, "store_result", store_result)
        with pytest.raises(ChangePending, match="Input/output error"):
            create_files(registry.core, source, "beta", "beta", {"SKILL.md": BETA})
        assert rows(registry) == 1
    with SkillRegistry.open(database, settings=Settings()) as again:
        assert again.get("beta").description == "New."
        assert rows(again) == 0


def test_an_updated_document_that_can_not_be_read_buries_nothing(
    registry, alpha, database, monkeypatch
):
    with monkeypatch.context() as patch:
        real = finish.store_result

        def store_result(*arguments):
            refuse(patch, alpha, EIO, "scandir")
            real(*arguments)

        patch.setattr(finish, "store_result", store_result)
        with pytest.raises(ChangePending):
            update_files(registry.core, resolve(registry.core.reader, "alpha"), {"SKILL.md": NEW})
        assert registry.core.reader.rows("SELECT count(*) FROM skills WHERE live = 1") == [(1,)]
    with SkillRegistry.open(database, settings=Settings()) as again:
        assert again.get("alpha").description == "New."
        assert rows(again) == 0


@pytest.mark.both
def test_a_rename_that_the_disk_does_not_confirm_is_not_called_undone(
    registry, root, source, monkeypatch
):
    failing_on(monkeypatch, "sync_folder", root, module=commit)
    with pytest.raises(ChangePending, match="Input/output error"):
        create_files(registry.core, source, "beta", "beta", {"SKILL.md": BETA})
    assert registry.get("beta").description == "New."


@pytest.mark.both
def test_a_disk_that_fails_while_unfinished_changes_are_ended_is_a_refusal(
    registry, alpha, monkeypatch
):
    refuse(monkeypatch, root_of(alpha) / "ops", EIO, "scandir")
    with pytest.raises(ChangeRefused, match="Input/output error"):
        registry.delete("alpha")


def root_of(alpha):
    return alpha.parent.parent / f".{alpha.parent.name}.skill-registry"
