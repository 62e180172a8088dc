import os

import pytest

from registry.errors import SkillNotFound
from tests.conftest import OLD, write_skill


def reasons(registry, subject):
    (explanation,) = registry.why(str(subject))
    return explanation.listed, [reason.code for reason in explanation.reasons]


def test_a_listed_skill_is_listed(registry, root, skill):
    skill("alpha")
    registry.sync(str(root))
    assert reasons(registry, "alpha") == (True, ["listed"])
    assert reasons(registry, root / "alpha") == (True, ["listed"])
    assert reasons(registry, root / "alpha" / "SKILL.md") == (True, ["listed"])


def test_a_shadowed_skill_names_what_hides_it(registry, tmp_path):
    write_skill(tmp_path / "weak" / "alpha", body="Another way.")
    write_skill(tmp_path / "strong" / "alpha")
    registry.sync(str(tmp_path / "weak"), scope="community")
    registry.sync(str(tmp_path / "strong"), scope="project")
    assert reasons(registry, tmp_path / "weak" / "alpha") == (False, ["shadowed"])
    assert [e.listed for e in registry.why("alpha")] == [True, False]


def test_an_invalid_skill_is_explained_by_its_error_and_fix(registry, root, skill):
    skill("alpha", description="", body="")
    registry.sync(str(root))
    (explanation,) = registry.why("alpha")
    assert explanation.reasons[0].severity == "error"
    assert explanation.reasons[0].fix


def test_a_folder_whose_name_is_no_utf8_is_told_to_be_renamed(registry, root):
    folder = os.fsencode(root) + b"/caf\xe9"
    os.makedirs(folder)
    with open(folder + b"/SKILL.md", "w") as file:
        file.write("---\nname: cafe\ndescription: A test.\n---\nText.\n")
    registry.sync(str(root))
    assert reasons(registry, "caf\\xe9") == (False, ["path-not-utf8"])
    assert reasons(registry, os.fsdecode(folder)) == (False, ["path-not-utf8"])
    assert [one.code for one in registry.get("caf\\xe9").diagnostics] == ["path-not-utf8"]


def test_a_skill_file_that_is_a_link_to_another_names_that_one(registry, root, skill):
    skill("alpha")
    for folder in ("beta", "deeper/beta"):
        (root / folder).mkdir(parents=True)
        (root / folder / "SKILL.md").symlink_to(root / "alpha" / "SKILL.md")
    registry.sync(str(root))
    for folder in ("beta", "deeper/beta"):
        (explanation,) = registry.why(str(root / folder))
        (reason,) = explanation.reasons
        assert (explanation.listed, reason.code) == (False, "link-known")
        assert f"{root.resolve()}/alpha/SKILL.md" in reason.message


def test_a_skill_too_deep_says_so(registry, root, skill):
    folders = "/".join(map(str, range(15)))
    skill(f"{folders}/fits")
    skill(f"{folders}/more/deep")
    registry.sync(str(root))
    assert reasons(registry, "fits") == (True, ["listed"])
    assert reasons(registry, "deep") == (False, ["too-deep"])


def test_a_skill_hidden_from_models_is_listed_with_a_note(registry, root, skill):
    skill("alpha", extra="disable-model-invocation: true\n")
    registry.sync(str(root))
    assert reasons(registry, "alpha") == (True, ["hidden"])


def test_a_changed_or_new_or_removed_skill_asks_for_a_sync(registry, root, skill):
    folder = skill("alpha")
    skill("beta")
    registry.sync(str(root))
    write_skill(folder, description="Edited.", age=OLD + 3)
    assert reasons(registry, "alpha")[1] == ["changed", "listed"]
    skill("gamma")
    assert reasons(registry, root / "gamma") == (False, ["not-synced"])
    (root / "beta").rename(root.parent / "away")
    assert reasons(registry, "beta")[1] == ["gone", "listed"]


def test_places_that_hold_no_listed_skill_are_explained(registry, root, skill, tmp_path):
    folder = skill("alpha")
    (folder / "scripts").mkdir()
    (root / "empty").mkdir()
    write_skill(root / ".git" / "x")
    registry.sync(str(root))
    assert reasons(registry, tmp_path) == (False, ["not-in-source"])
    assert reasons(registry, root / "nowhere") == (False, ["missing"])
    assert reasons(registry, root / "empty") == (False, ["no-document"])
    assert reasons(registry, root / ".git" / "x") == (False, ["ignored"])
    assert reasons(registry, folder / "scripts") == (False, ["part-of-skill"])


def test_a_link_is_explained_by_where_it_leads(registry, root, skill, tmp_path):
    skill("alpha")
    (root / "agent").mkdir()
    (root / "agent" / "alpha").symlink_to("../alpha")
    write_skill(tmp_path / "outside" / "beta")
    (root / "beta").symlink_to(tmp_path / "outside" / "beta")
    registry.sync(str(root))
    assert reasons(registry, root / "agent" / "alpha") == (True, ["link-known", "listed"])
    assert reasons(registry, root / "beta") == (False, ["link-outside"])


def test_a_link_that_two_nested_sources_recorded_is_named_once(registry, root, skill, tmp_path):
    skill("alpha")
    inner = tmp_path / "outer" / "inner"
    inner.mkdir(parents=True)
    (inner / "alpha").symlink_to(root / "alpha")
    write_skill(inner / "beta")
    for folder in (root, tmp_path / "outer", inner):
        registry.sync(str(folder))
    (explained,) = registry.why("alpha")
    assert [one.code for one in explained.reasons].count("link-known") == 1


def test_an_unknown_name_is_not_found(registry):
    with pytest.raises(SkillNotFound):
        registry.why("nothing-of-the-kind")


def test_a_skill_is_not_named_among_those_that_share_its_name(registry, tmp_path):
    for source in ("one", "two", "three"):
        write_skill(tmp_path / source / "alpha", description=source)
        registry.sync(str(tmp_path / source))
    told = {one.ref: one.reasons[-1].message for one in registry.why("alpha")}
    assert told["one/alpha"] == (
        "it and two/alpha, three/alpha are listed, because their sources have the same scope and "
        "priority"
    )
