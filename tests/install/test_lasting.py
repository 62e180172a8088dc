"""What is pulled and published reaches the disk, in the modes and words that were promised."""

import errno
import json
import os
import sys
from types import SimpleNamespace
from unittest.mock import Mock

import pytest

from registry.disk import atomic, swap
from registry.disk.locks import FolderLock
from registry.errors import ExportRefused, PullRefused
from registry.install import lockfile, plan, staging
from registry.sync import installed
from tests.conftest import write_skill


@pytest.fixture
def library(registry, root):
    folder = write_skill(root / "alpha", description="Caf\u00e9 \u2014 one.")
    (folder / "run").write_text("#!/bin/sh\n")
    (folder / "run").chmod(0o700)
    write_skill(root / "caf\u00e9")
    registry.sync(str(root), name="mine")
    return registry


@pytest.fixture
def to(tmp_path):
    return tmp_path / "to"


def pull(registry, to, *names, **more):
    skills = [registry.resolve(name) for name in names]
    return [one.state for one in registry.pull(skills, str(to), **more)]


@pytest.fixture
def steps(monkeypatch):
    """Note in which order contents and names are made durable, below a folder."""
    noted, real = [], SimpleNamespace(fsync=os.fsync)

    def fsync(descriptor):
        noted.append(f"fsync {os.readlink(f'/proc/self/fd/{descriptor}')}")
        real.fsync(descriptor)

    def exchange(one, other):
        noted.append(f"exchange {other.path}")
        return swap_exchange(one, other)

    def rename_new(old, new):
        noted.append(f"rename {new.path}")
        return swap_rename(old, new)

    def replace(old, new):
        noted.append(f"rename {new.path}")
        return swap_replace(old, new)

    swap_exchange, swap_rename = swap.exchange, swap.rename_new
    swap_replace = swap.replace
    monkeypatch.setattr(os, "fsync", fsync)
    monkeypatch.setattr(swap, "replace", replace)
    monkeypatch.setattr(swap, "exchange", exchange)
    monkeypatch.setattr(swap, "rename_new", rename_new)

    def since(folder, kind=""):
        """Return the steps below a folder, without the names that are made by chance."""
        found = []
        for step in noted:
            doing, path = step.split(" ", 1)
            if path == str(folder) or path.startswith(f"{folder}/"):
                parts = os.path.relpath(path, folder).split("/")
                if parts[0].startswith(staging.PREFIX):
                    parts[0] = "room"
                found.append(f"{doing} {'/'.join(parts)}")
        noted.clear()
        return found

    return since


@pytest.mark.skipif(sys.platform != "linux", reason="asks /proc what is written")
def test_what_is_pulled_is_on_the_disk_before_it_is_seen_and_before_it_is_locked(
    library, to, steps
):
    assert pull(library, to, "alpha") == ["added"]
    begun = ["fsync room/places.json", "fsync room", "fsync ."]
    staged = [
        *begun,
        "fsync room/tree/SKILL.md",
        "fsync room/tree/run",
        "fsync room/tree",
        "fsync room",
        "fsync room/note.json",
        "fsync room",
        "fsync .",
        "fsync room/entry.json",
        "fsync room",
    ]
    cleared = ["fsync room", "fsync ."]
    locked = ["fsync .", "fsync room", "rename skills.lock.json", "fsync .", *cleared]
    assert steps(to) == [*staged, "rename alpha", *locked]
    library.update("alpha", description="Two.")
    steps(to)
    assert pull(library, to, "alpha") == ["updated"]
    assert steps(to) == [*staged, "exchange alpha", *locked]


@pytest.mark.skipif(sys.platform != "linux", reason="asks /proc what is written")
def test_what_is_published_is_on_the_disk_before_the_index_names_it(library, to, steps):
    library.export([library.resolve("alpha")], str(to))
    home = to / ".well-known" / "agent-skills"
    assert steps(home) == [
        "fsync room",
        "rename alpha.tar.gz",
        "fsync .",
        "fsync room",
        "rename index.json",
        "fsync .",
    ]


def test_pulled_files_can_be_read_by_all_and_executed_where_they_could_be(library, to):
    pull(library, to, "alpha")
    modes = {path.name: path.stat().st_mode & 0o777 for path in (to / "alpha").iterdir()}
    assert modes == {"SKILL.md": 0o644, "run": 0o755}


def test_the_lock_file_is_the_same_text_for_every_program_that_writes_it(library, to):
    pull(library, to, "caf\u00e9")
    text = (to / "skills.lock.json").read_text("utf-8")
    assert text.startswith('{\n  "skills": {\n    "caf\u00e9": {\n')
    assert text.endswith('\n  "version": 3\n}\n')
    in_order = json.dumps(json.loads(text), indent=2, ensure_ascii=False, sort_keys=True)
    assert text == in_order + "\n"


def test_a_lock_file_that_holds_something_else_is_named_with_the_reason(library, to):
    pull(library, to, "alpha")
    lock = to / "skills.lock.json"
    good = json.loads(lock.read_text())
    good["skills"]["alpha"]["files"]["run"] = 5
    lock.write_text(json.dumps(good))
    with pytest.raises(lockfile.LockFileInvalid, match="must be text"):
        pull(library, to, "alpha")
    lock.write_text("{}")
    with pytest.raises(lockfile.LockFileInvalid, match="the key 'version' is missing"):
        pull(library, to, "alpha")


def test_a_lock_file_has_one_limit_of_size_for_pull_and_sync(library, to, monkeypatch):
    pull(library, to, "alpha")
    folder = os.path.realpath(to / "alpha")
    assert installed.lock_of(folder) == os.path.dirname(folder)
    monkeypatch.setattr(installed, "MAX_BYTES", 100)
    assert installed.lock_of(folder) is None
    with pytest.raises(lockfile.LockFileInvalid, match="100 are allowed"):
        pull(library, to, "alpha")


@pytest.mark.parametrize(
    ("code", "works"), [(errno.ENOLCK, True), (errno.ENOTSUP, True), (errno.EACCES, False)]
)
def test_where_folders_can_not_be_locked_it_works_without_and_other_errors_are_told(
    library, to, monkeypatch, code, works
):
    def refuse(*_):
        raise OSError(code, os.strerror(code), str(to))

    monkeypatch.setattr(FolderLock, "acquire", refuse)
    if works:
        assert pull(library, to, "alpha") == ["added"]
        return
    with pytest.raises(PullRefused) as caught:
        pull(library, to, "alpha")
    assert caught.value.facts == {"path": str(to), "reason": "Permission denied"}


def failures(to):
    """Yield what fails, and the path and the words by which it is told."""
    for failing, *expected in (
        (OSError(errno.EIO, "Input/output error", "/a/place"), "/a/place", "Input/output error"),
        (OSError("odd"), str(to), "odd"),
    ):
        yield Mock(side_effect=failing), tuple(expected)


def test_what_fails_is_named_with_its_own_path_and_in_words(library, to, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    with pytest.raises(PullRefused) as caught:
        pull(library, tmp_path / "file" / "below", "alpha")
    assert caught.value.facts["reason"] == "Not a directory"
    with pytest.raises(ExportRefused) as refused:
        library.export([library.resolve("alpha")], str(tmp_path / "file"))
    assert refused.value.facts["path"] == str(tmp_path / "file")
    assert refused.value.facts["reason"] == "Not a directory"
    for fail, expected in failures(to):
        monkeypatch.setattr(staging, "stage_files", fail)
        monkeypatch.setattr("registry.install.export.replace_file", fail)
        with pytest.raises(PullRefused) as caught:
            pull(library, to, "alpha")
        assert tuple(caught.value.facts.values()) == expected
        with pytest.raises(ExportRefused) as refused:
            library.export([library.resolve("alpha")], str(to))
        home = str(to / ".well-known" / "agent-skills")
        assert tuple(refused.value.facts.values()) == (
            expected[0].replace(str(to), home),
            expected[1],
        )


def test_a_check_that_fails_is_named_with_its_own_path(library, to, monkeypatch):
    pull(library, to, "alpha")
    for fail, expected in failures(to):
        monkeypatch.setattr(plan, "digest_of", fail)
        with pytest.raises(PullRefused) as caught:
            library.check_pulled(str(to))
        assert tuple(caught.value.facts.values()) == expected


def test_what_is_in_the_making_is_cleared_up_batch_by_batch(library, to, monkeypatch):
    monkeypatch.setattr(plan, "BATCH", 1)
    seen, real = [], plan.content_of

    def content_of(core, skill):
        seen.append(sorted(path.name for path in to.iterdir()))
        return real(core, skill)

    monkeypatch.setattr(plan, "content_of", content_of)
    assert pull(library, to, "alpha", "caf\u00e9") == ["added", "added"]
    assert seen == [[], ["alpha", "skills.lock.json"]]


def test_an_index_keeps_its_text_readable_and_what_was_no_index_is_replaced(library, to):
    home = to / ".well-known" / "agent-skills"
    home.mkdir(parents=True)
    (home / "index.json").write_text("[[[")
    library.export([library.resolve("alpha")], str(to))
    text = (home / "index.json").read_text("utf-8")
    assert "Caf\u00e9 \u2014 one." in text
    assert text == json.dumps(json.loads(text), indent=2, ensure_ascii=False) + "\n"
    (home / "alpha.tar.gz.d").mkdir()
    library.export([], str(to))
    assert sorted(os.listdir(home)) == ["alpha.tar.gz.d", "index.json"]


def test_interrupted_between_two_renames_the_old_folder_is_back(library, to, monkeypatch):
    monkeypatch.setattr(atomic, "renameat2", lambda: None)
    pull(library, to, "alpha")
    old = (to / "alpha" / "SKILL.md").read_bytes()
    library.update("alpha", description="Two.")
    calls, real = [], swap.rename_new

    def rename_new(staged, target):
        calls.append(target)
        if len(calls) == 2:
            raise KeyboardInterrupt
        real(staged, target)

    monkeypatch.setattr(swap, "rename_new", rename_new)
    with pytest.raises(KeyboardInterrupt):
        pull(library, to, "alpha")
    assert (to / "alpha" / "SKILL.md").read_bytes() == old
    assert sorted(os.listdir(to)) == ["alpha", "skills.lock.json"]
