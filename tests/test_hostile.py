"""Bad input is normal input: each gives its diagnostic, and nothing else suffers."""

import os
from secrets import token_urlsafe

import pytest

from registry.db.read.listing import Filters
from registry.errors import SkillInvalid
from tests.conftest import write_skill

BOMB = "a: &a [x,x,x,x,x,x,x,x,x]\n" + "".join(
    f"{chr(98 + n)}: &{chr(98 + n)} [{','.join(['*' + chr(97 + n)] * 9)}]\n" for n in range(8)
)


def document(folder, data):
    folder.mkdir()
    (folder / "SKILL.md").write_bytes(data)


def trap(root):
    """Make one of each and return the codes expected for it."""
    document(root / "latin", b"---\nname: caf\xe9\ndescription: x\n---\n")
    with (root / "latin").joinpath("more.md").open("w") as file:
        file.write("fine")
    (root / "huge").mkdir()
    with (root / "huge" / "SKILL.md").open("wb") as file:
        file.write(b"---\nname: huge\ndescription: big\n---\n")
        file.truncate(50 << 20)
    document(root / "bomb", f"---\nname: bomb\ndescription: x\n{BOMB}---\n".encode())
    document(root / "deep", b"---\nname: deep\ndescription: x\nx: " + b"[" * 20_000 + b"\n---\n")
    (root / "passwd").mkdir()
    (root / "passwd" / "SKILL.md").symlink_to("/etc/passwd")
    (root / "pipe").mkdir()
    os.mkfifo(root / "pipe" / "SKILL.md")
    (root / "loop").mkdir()
    (root / "loop" / "SKILL.md").symlink_to("SKILL.md")
    (root / "circle").symlink_to(".")
    document(root / "nul", b"---\nname: nul\ndescription: a\0b\n---\n")
    document(root / "empty", b"")
    document(
        root / "tagged",
        b"---\nname: tagged\ndescription: !!python/object/apply:os.system [ls]\n---\n",
    )
    return {
        "latin": "not-utf8",
        "huge": "document-too-large",
        "bomb": "yaml-alias",
        "deep": None,
        "passwd": "link-outside",
        "pipe": "special-file",
        "loop": "link-loop",
        "empty": None,
        "tagged": None,
    }


def test_each_trap_is_named_and_the_good_skill_beside_them_is_listed(registry, root, skill):
    skill("good")
    expected = trap(root)
    registry.sync(str(root))
    assert "good" in [entry.name for entry in registry.list()]
    invalid = {entry.folder for entry in registry.list(Filters(status="invalid"))}
    assert set(expected) - {"deep"} <= invalid
    for folder, code in expected.items():
        (explanation,) = registry.why(str(root / folder))
        codes = [reason.code for reason in explanation.reasons]
        assert codes, folder
        if code is not None:
            assert code in codes
    assert registry.check_database() == []


def test_a_linked_skill_outside_every_source_is_kept_as_invalid(registry, root, tmp_path):
    write_skill(tmp_path / "elsewhere" / "real")
    (root / "real").symlink_to(tmp_path / "elsewhere" / "real")
    (root / "x").mkdir()
    registry.sync(str(root))
    assert [skill.status for skill in registry.list(Filters(all=True))] == ["invalid"]
    assert registry.sync().unchanged == 1
    with pytest.raises(SkillInvalid):
        registry.read("real")


def test_the_traps_are_checked_without_a_registry_too(registry, root):
    expected = trap(root)
    checked = {os.path.basename(result.path): result for result in registry.check([str(root)])}
    assert set(expected) <= set(checked)
    assert not os.path.exists(registry.path)


def test_a_huge_document_is_not_read(registry, root, monkeypatch):
    (root / "huge").mkdir()
    with (root / "huge" / "SKILL.md").open("wb") as file:
        file.truncate(2 << 30)

    def no_reading(*_):
        raise AssertionError("read")

    monkeypatch.setattr("os.read", no_reading)
    assert registry.sync(str(root)).invalid == 1


def test_a_name_with_escape_codes_reaches_no_terminal(registry, root):
    write_skill(root / "x", name='"\\e[31mred\\u202eevil"')
    registry.sync(str(root))
    (listed,) = registry.list(Filters(all=True))
    assert "\x1b" not in listed.name


@pytest.mark.parametrize(
    "name", ["CON", "..", "a" * 10_000, "\u202eevil", "a/b", "-rf", "%s%n", "{x}"]
)
def test_any_name_can_be_listed_and_read_by_its_ref(registry, root, name):
    write_skill(root / "x", name=f'"{name}"')
    registry.sync(str(root))
    (listed,) = registry.list(Filters(all=True))
    assert registry.get(listed.ref).folder == "x"


def test_folders_that_differ_only_by_case_are_both_kept(registry, root, skill):
    skill("alpha")
    skill("ALPHA")
    assert len(registry.sync(str(root)).added) == 2
    assert registry.sync().unchanged == 2


def test_a_folder_that_vanishes_while_it_is_read_disturbs_nothing(
    registry, root, skill, monkeypatch
):
    import shutil

    from registry.sync import apply

    skill("alpha")
    skill("beta")
    real = apply.read_new

    def vanish(task, recent):
        assert "alpha" in {found.folder for found in task.folders}
        shutil.rmtree(root / "alpha")
        return real(task, recent)

    monkeypatch.setattr(apply, "read_new", vanish)
    report = registry.sync(str(root))
    assert "beta" in report.added
    monkeypatch.undo()
    report = registry.sync(allow_prune=True)
    assert [skill.name for skill in registry.list(Filters(all=True))] == ["beta"]


def test_a_file_that_keeps_changing_keeps_its_old_row(registry, root, skill, monkeypatch):
    folder = skill("alpha", description="Before.")
    registry.sync(str(root))
    write_skill(folder, description="After.", age=1_700_000_300)
    real = os.read

    def meddle(descriptor, size):
        data = real(descriptor, size)
        os.utime(folder / "SKILL.md", ns=(1, len(calls)))
        calls.append(size)
        return data

    calls = []
    monkeypatch.setattr("os.read", meddle)
    registry.sync()
    monkeypatch.undo()
    assert registry.list()[0].description == "Before."
    assert registry.sync().updated == ("alpha",)


@pytest.mark.parametrize(
    "extra",
    [
        f"name: {token_urlsafe(3000)}\n",
        f"kind: {token_urlsafe(3000)}\n",
        f"category: {token_urlsafe(3000)}\n",
        f"metadata: {{category: {token_urlsafe(3000)}}}\n",
        f"tags: [{token_urlsafe(3000)}]\n",
        f"version: {token_urlsafe(3000)}\n",
    ],
    ids=["name", "kind", "category", "metadata", "tags", "version"],
)
def test_a_value_that_no_index_holds_disturbs_no_other_skill(registry, root, skill, extra):
    skill("alpha")
    write_skill(root / "beta")
    (root / "beta" / "SKILL.md").write_text(f"---\ndescription: Long.\n{extra}---\n")
    assert registry.sync(str(root), name="mine").complete
    beta = registry.resolve("beta")
    assert len(f"{beta.category}{beta.kind}") < 300
    assert registry.read("beta").endswith(f"{extra}---\n")
    assert registry.list(kind="x").total == registry.list(category="x").total == 0


def test_a_path_that_no_index_holds_disturbs_no_other_skill(registry, root, skill):
    skill("alpha")
    long = root
    for _ in range(14):
        long /= token_urlsafe(180)
    long.mkdir(parents=True)
    (long / "SKILL.md").write_text("---\nname: far\ndescription: Far.\n---\n")
    report = registry.sync(str(root), name="mine")
    assert report.added == ("alpha",)
    ((_, notice),) = report.sources[0].notices
    assert (notice.code, "more than 700 bytes" in notice.message) == ("too-deep", True)
    (explained,) = registry.why(str(long))
    assert [one.code for one in explained.reasons] == ["too-deep"]
