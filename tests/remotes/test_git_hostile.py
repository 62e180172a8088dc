"""Repositories made by hand to do harm: nothing leaves the checkout, and what is said is clear."""

import os
import shutil
import stat

import pytest

from registry.errors import RemoteInvalid, RemoteProblem, RemoteTooLarge
from registry.remotes import git
from tests.remotes.upstream import all_checkouts, checkout_of, document, files_of

FILE, PROGRAM, LINK, FOLDER, MODULE = "100644", "100755", "120000", "40000", "160000"


class Maker:
    """Builds trees that git itself would not."""

    def __init__(self, upstream):
        self.upstream = upstream

    def blob(self, name, data=b"x", mode=FILE):
        return mode, "blob", self.upstream.blob(data), name

    def folder(self, name, *entries):
        return FOLDER, "tree", self.upstream.tree(*entries), name

    def skill(self, name, *more):
        return self.folder(name, self.blob("SKILL.md", document(name).encode()), *more)

    def publish(self, *entries):
        """Let the skills of the repository be these, beside a harmless one."""
        return self.upstream.point(
            self.upstream.tree(self.folder("skills", self.skill("alpha"), *entries))
        )


@pytest.fixture
def make(upstream):
    return Maker(upstream)


@pytest.fixture
def unharmed(registry, upstream, tmp_path):
    """See that what was there before is there after, and nothing beside it."""
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "mine.txt").write_text("mine")
    yield outside
    assert files_of(outside) == {"mine.txt": b"mine"}
    for home in all_checkouts():
        assert {one.name for one in home.iterdir()} <= {
            *("asked.json", "files.json", "lock", "manifest.json", "state", "tree"),
        }
        for one in (home / "tree").rglob("*"):
            assert stat.S_ISREG(one.lstat().st_mode) or stat.S_ISDIR(one.lstat().st_mode), one
    assert registry.database_info() is not None


EVIL_NAMES = [
    "..",
    ".",
    ".git",
    ".GIT",
    ".Git ",
    "git~1",
    "GIT~1",
    ".git::$INDEX_ALLOCATION",
    ".g\u200cit",
    "../../../outside/x",
    "/etc/cron.d/x",
    "a\\..\\b",
    "a\nb",
    "a\rb",
    "\x1b[31mred",
    "a\x7fb",
    "\x85",
    b"\xff\xfe",
    "x" * 300,
    "\u00e9" * 200,
    ".hg",
    ".svn",
    "a/../b",
    "node_modules",
    "CON",
    "aux.md",
    "LPT1 .txt",
    "a:b",
    "SKILL.md::$DATA",
    "notes.",
    "notes ",
    "\u202egpj.exe",
    "a\u200bb",
    "\ufeffx",
]


@pytest.mark.parametrize("kind", ["file", "folder", "skill"])
def test_paths_that_are_not_safe_are_left_out(registry, upstream, make, unharmed, kind):
    text = make.blob("SKILL.md", document("evil").encode())
    evil = {
        "file": lambda: [make.skill("evil", *map(make.blob, EVIL_NAMES))],
        "folder": lambda: [make.skill("evil", *(make.folder(one, text) for one in EVIL_NAMES))],
        "skill": lambda: [make.folder(name, text) for name in EVIL_NAMES],
    }[kind]()
    make.publish(*evil)
    report = registry.sync(upstream.url)
    assert report.complete
    assert "alpha" in [one.name for one in registry.list(all=True)]
    left = {"skills/alpha/SKILL.md"} | ({"skills/evil/SKILL.md"} if kind != "skill" else set())
    assert files_of(checkout_of(registry) / "tree").keys() == left
    (told,) = report.sources[0].fetched
    assert told.startswith(f"{len(EVIL_NAMES)} unsafe paths were left out: ")
    assert told.isprintable()
    assert told.endswith(", \u2026")


@pytest.mark.parametrize(
    "target",
    [
        "/etc/passwd",
        "../../../../outside/mine.txt",
        "..",
        ".",
        "loop",
        "SKILL.md",
        "/proc/self/fd/0",
    ],
)
def test_links_are_left_out(registry, upstream, make, unharmed, target):
    make.publish(make.skill("evil", make.blob("loop", target.encode(), LINK)))
    report = registry.sync(upstream.url)
    assert "1 link was left out: 'skills/evil/loop'" in report.sources[0].fetched
    assert files_of(checkout_of(registry) / "tree/skills/evil").keys() == {"SKILL.md"}


def test_where_links_are_all_that_there_is_no_skill_is_found_and_why_is_told(upstream, registry):
    shutil.rmtree(upstream.work / "skills")
    (upstream.work / "skills").symlink_to("../elsewhere/skills")
    upstream.commit()
    said = "it holds no skill, and 1 link was left out: 'skills'"
    with pytest.raises(RemoteInvalid, match=said):
        registry.sync(upstream.url)


def test_a_link_where_a_file_of_the_same_name_goes_leads_nowhere(
    registry, upstream, make, unharmed
):
    link = make.blob("x", str(unharmed).encode(), LINK)
    make.publish(make.skill("evil", link, make.folder("x", make.blob("mine.txt", b"evil"))))
    registry.sync(upstream.url)
    assert files_of(checkout_of(registry) / "tree/skills/evil")["x/mine.txt"] == b"evil"


@pytest.mark.parametrize("order", [0, 1])
def test_of_a_file_and_a_folder_of_one_name_the_first_is_taken(
    registry, upstream, make, unharmed, order
):
    both = make.blob("x"), make.folder("x", make.blob("y"))
    make.publish(make.skill("evil", *(both if order else reversed(both))))
    report = registry.sync(upstream.url)
    assert report.complete, report.sources
    assert files_of(checkout_of(registry) / "tree/skills/evil").keys() == {
        "SKILL.md",
        "x" if order else "x/y",
    }


def test_of_names_that_differ_in_case_alone_one_is_taken(registry, upstream, make, unharmed):
    make.publish(make.skill("evil", make.blob("Read.md", b"1"), make.blob("read.MD", b"2")))
    report = registry.sync(upstream.url)
    assert report.sources[0].fetched == ("1 unsafe path was left out: 'skills/evil/read.MD'",)
    assert len(files_of(checkout_of(registry) / "tree/skills/evil")) == 2


def test_submodules_are_left_out(registry, upstream, make, unharmed):
    module = MODULE, "commit", "1" * 40, "inner"
    says = b'[submodule "inner"]\n\tpath = skills/evil/inner\n\turl = ext::touch /tmp/x\n'
    make.publish(make.skill("evil", module, make.blob(".gitmodules", says)))
    report = registry.sync(upstream.url)
    assert report.sources[0].fetched == ("1 submodule was left out: 'skills/evil/inner'",)


def test_attributes_filters_and_pointers_change_no_byte(registry, upstream, make, unharmed):
    says = b"* filter=evil ident eol=crlf text working-tree-encoding=UTF-16 export-ignore\n"
    held = {
        ".gitattributes": says,
        "ident.txt": b"$Id$\n",
        "lines.txt": b"a\nb\r\nc\r",
        "big.bin": b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 9\n",
    }
    make.publish(make.skill("evil", *(make.blob(name, data) for name, data in held.items())))
    registry.sync(upstream.url)
    found = files_of(checkout_of(registry) / "tree/skills/evil")
    assert {name: found[name] for name in held} == held


def test_a_program_of_the_repository_never_runs(registry, upstream, make, unharmed, tmp_path):
    ran = tmp_path / "ran"
    act = f"touch {ran}"
    hooks = upstream.bare / "hooks"
    hooks.mkdir(exist_ok=True)
    for name in ("post-upload-pack", "pre-receive", "post-checkout", "reference-transaction"):
        (hooks / name).write_text(f"#!/bin/sh\n{act}\n")
        (hooks / name).chmod(0o755)
    upstream.git("config", "uploadpack.packObjectsHook", act, at=upstream.bare)
    upstream.git("config", "core.fsmonitor", act, at=upstream.bare)
    upstream.git("config", "core.sshCommand", act, at=upstream.bare)
    upstream.git("config", "core.alternateRefsCommand", act, at=upstream.bare)
    upstream.git("config", "remote.origin.uploadpack", act, at=upstream.bare)
    upstream.git("config", "remote.origin.promisor", "true", at=upstream.bare)
    upstream.git("config", "remote.origin.url", f"ext::{act}", at=upstream.bare)
    upstream.git("config", "extensions.partialClone", "origin", at=upstream.bare)
    missing = FILE, "blob", "2" * 40, "missing"
    make.publish(make.skill("evil", missing))
    assert not ran.exists()
    with pytest.raises(RemoteProblem):
        registry.sync(upstream.url)
    make.publish(make.skill("evil"))
    assert registry.sync(upstream.url).complete
    assert not ran.exists()


def test_a_folder_that_is_missing_upstream_is_not_taken_for_an_empty_one(
    registry, upstream, make, unharmed
):
    make.publish(make.skill("beta"))
    registry.sync(upstream.url)
    held = files_of(checkout_of(registry) / "tree")
    upstream.git("config", "uploadpack.allowAnySHA1InWant", "true", at=upstream.bare)
    make.publish((FOLDER, "tree", "3" * 40, "beta"))
    report = registry.sync()
    assert not report.complete
    assert report.removed == ()
    assert files_of(checkout_of(registry) / "tree") == held


def test_zeros_without_end_are_refused_before_they_are_written(
    registry, upstream, make, unharmed, bounded
):
    bounded(bytes=4 << 20)
    registry.sync(upstream.url)
    held = files_of(checkout_of(registry) / "tree")
    make.publish(make.skill("evil", make.blob("zeros", bytes(20 << 20))))
    report = registry.sync()
    assert report.sources[0].outcome == "refused"
    assert "more than 4194304 bytes" in report.sources[0].message
    assert files_of(checkout_of(registry) / "tree") == held


def test_a_pack_that_is_too_large_is_not_received(registry, upstream, make, unharmed, bounded):
    bounded(bytes=1 << 20)
    make.publish(make.skill("evil", make.blob("noise", os.urandom(3 << 20))))
    with pytest.raises(RemoteTooLarge):
        registry.sync(upstream.url)
    assert all_checkouts() == []


def test_trees_that_repeat_themselves_are_bounded(registry, upstream, make, unharmed, monkeypatch):
    monkeypatch.setattr(git, "MAX_LISTED", 5_000)
    entry = make.blob("f")
    for _ in range(10):  # ten to the power of ten files
        entry = make.folder("d", *((*entry[:3], f"{entry[3]}{number}") for number in range(10)))
    make.publish(make.skill("evil", entry))
    with pytest.raises(RemoteTooLarge, match="more than 5000 files"):
        registry.sync(upstream.url)


def test_trees_that_are_deeper_than_any_path_are_left_out_or_refused(
    registry, upstream, make, unharmed
):
    entry = make.blob("f")
    for _ in range(600):
        entry = make.folder("d", entry)
    make.publish(make.skill("evil", entry))
    try:
        report = registry.sync(upstream.url)
    except RemoteProblem:
        return
    (told,) = report.sources[0].fetched
    assert told.startswith("1 unsafe path was left out: 'skills/evil/d/d/")
    assert len(told) < 300


def test_many_empty_skills_are_bounded(registry, upstream, make, unharmed, bounded):
    bounded(files=4_000)
    empty = make.folder("x", make.blob("SKILL.md", b""))
    make.publish(*((*empty[:3], f"s{number:04}") for number in range(5_000)))
    with pytest.raises(RemoteTooLarge, match="more than 4000 files"):
        registry.sync(upstream.url)
    assert all_checkouts() == []


@pytest.mark.parametrize("what", ["link", "folder", "module", "binary", "empty", "huge"])
def test_a_document_that_is_none_harms_no_other_skill(registry, upstream, make, unharmed, what):
    evil = {
        "link": lambda: make.blob("SKILL.md", b"/etc/passwd", LINK),
        "folder": lambda: make.folder("SKILL.md", make.blob("x")),
        "module": lambda: (MODULE, "commit", "1" * 40, "SKILL.md"),
        "binary": lambda: make.blob("SKILL.md", b"\0\xff" * 1000),
        "empty": lambda: make.blob("SKILL.md", b""),
        "huge": lambda: make.blob("SKILL.md", b"---\nname: x\n---\n" + b"x" * (5 << 20)),
    }[what]()
    make.publish(make.folder("evil", evil))
    assert registry.sync(upstream.url).complete
    assert [one.name for one in registry.list()] == ["alpha"]


def test_a_repository_without_a_commit_is_refused(registry, upstream):
    upstream.git("update-ref", "-d", "refs/heads/main", at=upstream.bare)
    with pytest.raises(RemoteInvalid, match="it is empty"):
        registry.sync(upstream.url)
    assert all_checkouts() == []


def test_a_head_that_leads_nowhere_is_refused_and_a_branch_taken(registry, upstream):
    upstream.git("symbolic-ref", "HEAD", "refs/heads/gone", at=upstream.bare)
    with pytest.raises(RemoteInvalid, match="it is empty"):
        registry.sync(upstream.url)
    assert registry.sync(f"{upstream.url}#main").complete


def test_a_head_that_is_no_commit_is_refused(registry, upstream):
    blob = upstream.blob(b"no commit")
    upstream.git("tag", "blob", blob, at=upstream.bare)
    with pytest.raises(RemoteProblem):
        registry.sync(f"{upstream.url}#blob")
    assert all_checkouts() == []


def test_names_of_refs_that_mislead_are_not_taken_for_others(registry, upstream):
    right = upstream.head()
    upstream.skill("skills/evil")
    wrong = upstream.commit("x/main")
    for name in (
        "refs/heads/a/HEAD",
        "refs/tags/heads/main",
        "refs/heads/refs/heads/main",
        "refs/x/main",
    ):
        upstream.git("update-ref", name, wrong, at=upstream.bare)
    assert registry.sync(f"{upstream.url}#main").complete
    assert registry.sources()[0].remote.version == right
