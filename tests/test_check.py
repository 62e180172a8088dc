import pytest

from registry.errors import FolderMissing, SkillNotFound, SourceInvalid
from tests.conftest import OLD, write_skill


def codes(checked):
    return {finding.code for finding in checked.findings}


@pytest.mark.file
def test_a_folder_is_checked_without_being_registered(registry, root, skill, database):
    skill("alpha")
    skill("Bad_Name", description="x" * 2000)
    checked = {one.name: codes(one) for one in registry.check([str(root)])}
    assert checked["alpha"] == set()
    assert {"description-too-long", "name-characters"} <= checked["Bad_Name"]
    assert not database.exists()


def test_a_skill_is_checked_by_name_by_folder_and_by_file(registry, root, skill):
    folder = skill("alpha", extra="surprise: 1\n")
    skill("beta")
    registry.sync(str(root))
    for target in ("alpha", str(folder), str(folder / "SKILL.md")):
        (checked,) = registry.check([target])
        assert (checked.name, codes(checked)) == ("alpha", {"key-unknown"})


def test_without_targets_everything_registered_is_checked_as_it_is_now(registry, root, skill):
    skill("alpha")
    skill("beta")
    registry.sync(str(root))
    write_skill(root / "beta", description="", body="", age=OLD + 9)
    checked = {one.name: codes(one) for one in registry.check()}
    assert checked["alpha"] == set()
    assert "description-missing" in checked["beta"]


def test_a_name_that_imitates_that_of_another_source_is_pointed_out(registry, tmp_path):
    write_skill(tmp_path / "one" / "deploy")
    write_skill(tmp_path / "two" / "x", name="\uff44eploy")
    registry.sync(str(tmp_path / "one"), name="one")
    registry.sync(str(tmp_path / "two"), name="two")
    found = {one.path.rsplit("/", 2)[1]: codes(one) for one in registry.check()}
    assert "name-look-alike" in found["one"]
    assert "name-look-alike" in found["two"]


@pytest.mark.parametrize("name", ["d\u0435ploy", "dep1oy", "DEPL\u039fY", "d\u00e9plo\u200by"])
def test_a_name_that_looks_like_that_of_another_source_is_pointed_out(registry, tmp_path, name):
    for source, known in (("one", "deploy"), ("two", name), ("three", "deploy-x")):
        write_skill(tmp_path / source / "x", name=known)
        registry.sync(str(tmp_path / source), name=source)
    alike = {
        one.path.rsplit("/", 2)[1]
        for one in registry.check()
        for finding in one.findings
        if finding.code == "name-look-alike" and finding.category == "security"
    }
    assert alike == {"one", "two"}


def test_what_is_neither_a_skill_nor_a_folder_is_refused(registry, tmp_path):
    with pytest.raises(SkillNotFound):
        registry.check(["nothing"])
    with pytest.raises(FolderMissing):
        registry.check([str(tmp_path / "nowhere")])


def test_a_missing_folder_and_a_dead_link_are_findings_not_failures(registry, root, skill):
    skill("alpha")
    (root / "dead").symlink_to("nowhere")
    assert {one.name: codes(one) for one in registry.check([str(root)])}["dead"] == {"link-broken"}


def test_each_finding_is_told_once(registry, root):
    (root / "alpha").mkdir()
    (root / "alpha" / "SKILL.md").write_text("# Alpha\n\nWhat it does.\n")
    (checked,) = registry.check([str(root)])
    told = [finding.code for finding in checked.findings]
    assert len(told) == len(set(told))


def test_a_folder_without_any_skill_is_an_error_where_it_was_asked_for(registry, root, skill):
    (root / "blank" / "assets").mkdir(parents=True)
    (root / "notes").mkdir()
    (root / "notes" / "README.md").write_text("No skill.")
    for folder in ("blank", "notes"):
        (checked,) = registry.check([str(root / folder)])
        assert (checked.name, checked.path) == (folder, str(root / folder))
        (finding,) = checked.findings
        assert (finding.code, finding.severity) == ("no-document", "error")
    skill("alpha")
    registry.sync(str(root), name="mine")
    assert [one.name for one in registry.check([str(root)])] == ["alpha"]
    assert [one.name for one in registry.check()] == ["alpha"]


def test_a_skill_or_source_that_lost_its_documents_is_an_error_where_it_is_named(
    registry, root, skill
):
    folder = skill("alpha")
    registry.sync(str(root), name="mine")
    (folder / "SKILL.md").unlink()
    for target, path in (("alpha", folder), ("mine", root)):
        (checked,) = registry.check([target])
        assert (checked.path, codes(checked)) == (str(path), {"no-document"})
    assert registry.check() == []


@pytest.mark.parametrize("name", ["SKILL.MD", "Skill.md"])
def test_a_document_that_the_reference_validator_does_not_find_is_a_warning(
    registry, root, skill, name
):
    folder = skill("alpha")
    (folder / "SKILL.md").rename(folder / name)
    (checked,) = registry.check([str(folder)])
    (finding,) = checked.findings
    assert (finding.code, finding.severity, finding.path) == ("document-case", "warning", name)


@pytest.mark.parametrize("name", ["SKILL.md", "skill.md"])
def test_a_document_that_it_finds_is_none(registry, root, skill, name):
    folder = skill("alpha")
    (folder / "SKILL.md").rename(folder / name)
    (checked,) = registry.check([str(folder)])
    assert "document-case" not in codes(checked)


def test_a_source_that_is_missing_is_a_finding_and_the_others_are_checked(registry, tmp_path):
    for name in ("one", "two"):
        write_skill(tmp_path / name / f"in-{name}")
        registry.sync(str(tmp_path / name), name=name)
    (tmp_path / "one").rename(tmp_path / "away")
    checked = {one.name: [finding.code for finding in one.findings] for one in registry.check()}
    assert checked == {"one": ["source-unreadable"], "in-two": []}
    with pytest.raises(SourceInvalid):
        registry.check(["one"])
