"""history, diff, show --revision, restore --revision and db prune, as people call them."""

import json
import shlex
import shutil

import pytest

from tests.conftest import write_skill


@pytest.mark.both
def test_what_a_skill_was_like_is_listed_shown_compared_and_brought_back(cli, library):
    cli("update", "haiku", "--description", "Write a haiku in three lines.")
    listed = json.loads(cli("history", "haiku", "--json").stdout)
    assert [(one["number"], one["current"]) for one in listed] == [(2, True), (1, False)]
    assert cli("history", "haiku").stdout.splitlines()[0].split("\t")[::4] == ["2", "current"]
    assert "Write a haiku about anything." in cli("show", "haiku", "--revision", "1").stdout
    told = cli("diff", "haiku").stdout
    assert "-description: Write a haiku about anything.\n" in told
    assert "+description: Write a haiku in three lines.\n" in told
    assert cli("restore", "haiku", "--revision", "1").stdout.startswith("Restored haiku")
    assert "Write a haiku about anything." in (library / "haiku" / "SKILL.md").read_text()
    assert cli("db", "prune", "--keep", "0").stdout == "Removed 1 revision and 1 stored file.\n"
    assert cli("diff", "haiku").output == "No differences.\n"


def test_a_revision_that_is_not_there_is_named(cli, library):
    result = cli("show", "haiku", "--revision", "5")
    assert result.exit_code == 1
    assert "has no revision 5; it has 1" in result.output
    assert cli("restore", "haiku", "--revision", "1", "--source", "mine").exit_code == 2


def test_of_a_folder_that_never_had_a_content_the_history_says_so(cli, library):
    (library / "bare").mkdir()
    cli("sync")
    told = cli("history", "bare")
    assert (told.exit_code, told.stdout) == (0, "")
    assert told.stderr.startswith("No revision of it was stored. To see why, run:")
    assert "the folder holds no SKILL.md" in cli("diff", "bare").stderr


def test_a_diff_on_a_terminal_is_painted(terminal, cli, library):
    cli("update", "haiku", "--description", "Three lines.")
    assert "\x1b[32m+description: Three lines.\x1b[0m" in terminal("diff", "haiku").out


def lose(cli, library, name="haiku"):
    """Remove a skill's folder by hand, and let a sync find it gone."""
    shutil.rmtree(library / name)
    assert cli("sync").exit_code == 0


@pytest.mark.both
def test_without_a_name_the_changes_of_all_skills_are_listed_the_newest_first(cli, library):
    cli("update", "haiku", "--description", "Write a haiku in three lines.")
    lose(cli, library, "review")
    found = json.loads(cli("history", "--json").stdout)
    changes = [(one["kind"], one["name"], one["revision"]) for one in found]
    assert {("changed", "haiku", 2), ("removed", "review", None)} < set(changes)
    assert [kind for kind, *_ in changes].count("added") == len(changes) - 2
    assert [one["at"] for one in found] == sorted((one["at"] for one in found), reverse=True)
    lines = [line.split("\t") for line in cli("history").stdout.splitlines()]
    assert [(what, ref) for _, _, what, ref in lines] == [
        (one["kind"], one["ref"]) for one in found
    ]
    assert cli("history", "--format", "names").stdout.split() == [one["ref"] for one in found]
    (line,) = [line for line in cli("history", "--who").stdout.splitlines() if "changed" in line]
    assert line.split("\t")[5:] == ["update", "-"]
    role = next(one["role"] for one in found if one["kind"] == "added")
    assert {(who, what) for _, who, what, _ in lines} == {
        ("-", "removed"),
        *((role or "local", what) for what in ("added", "changed")),
    }


def test_the_changes_since_a_time_are_listed_at_most_as_many_as_wanted(cli, library):
    cli("update", "haiku", "--description", "Write a haiku in three lines.")
    some = cli("history", "--limit", "1")
    assert len(some.stdout.splitlines()) == 1
    assert some.stderr.startswith("These are the last 1. To list more, add --limit N.\n")
    everything = cli("history", "--since", "7d")
    assert everything.stdout == cli("history").stdout
    told = "To list yanked versions, and changes to sources, rights and tokens, run: "
    assert everything.stderr.startswith(told)
    audit = everything.stderr.removeprefix(told).split()[1:]
    assert "source added" in cli(*audit).stdout
    none = cli("history", "--since", "2999-01-01")
    assert (none.exit_code, none.stdout, none.stderr) == (0, "", "No skill changed since then.\n")
    assert cli("history", "haiku", "--since", "2999-01-01").stdout == ""
    assert len(cli("history", "haiku", "--since", "7d", "--limit", "1").stdout.splitlines()) == 1


@pytest.mark.both
def test_what_was_removed_by_hand_is_named_listed_compared_and_brought_back(cli, library):
    before = (library / "haiku" / "SKILL.md").read_bytes()
    cli("update", "haiku", "--description", "Three lines.")
    lose(cli, library)
    for ask in ("show", "why", "update --kind x", "delete"):
        command, *rest = ask.split()
        told = cli(command, "haiku", *rest)
        assert told.exit_code == 1
        assert "'haiku' has been gone since 20" in told.stderr
        assert (
            "It was in 'mine/haiku'. To restore it, run: skill-registry restore haiku"
            in told.stderr
        )
    listed = cli("history", "haiku", "--json")
    assert [one["number"] for one in json.loads(listed.stdout)] == [2, 1]
    assert "'haiku' has been gone since 20" in listed.stderr
    assert cli("show", "haiku", "--revision", "1").stdout_bytes == before
    assert "+description: Three lines.\n" in cli("diff", "haiku").stdout
    assert cli("restore", "haiku").stdout.startswith("Restored haiku")
    assert "Three lines." in (library / "haiku" / "SKILL.md").read_text()


def test_a_removed_skill_that_no_sync_missed_yet_comes_back(cli, library):
    shutil.rmtree(library / "haiku")
    told = cli("show", "haiku")
    assert told.exit_code == 1
    assert "skill-registry restore" in told.stderr
    assert "no longer on disk" in cli("history", "haiku").stderr
    assert cli("restore", "haiku").exit_code == 0
    assert cli("show", "haiku").exit_code == 0


def test_several_are_restored_and_none_unless_all_can_be(cli, library):
    cli("delete", "haiku", "review")
    lose(cli, library, "pdf-forms")
    refused = cli("restore", "haiku", "nothing")
    assert refused.exit_code == 1
    assert "The trash has no skill 'nothing'" in refused.stderr
    assert not (library / "haiku").exists()
    back = cli("restore", "haiku", "review", "pdf-forms", "haiku", "--json")
    assert [one["ref"] for one in json.loads(back.stdout)] == ["haiku", "review", "pdf-forms"]
    assert cli("restore", "haiku", "review", "--revision", "1").exit_code == 2


def test_all_missing_skills_of_a_source_are_written_to_disk_again(cli, library):
    before = {one: (library / one / "SKILL.md").read_bytes() for one in ("haiku", "review")}
    shutil.rmtree(library / "haiku")
    shutil.rmtree(library / "review")
    kept = (library / "pdf-forms" / "SKILL.md").read_bytes()
    back = cli("restore", "--source", "mine", "--missing")
    assert back.exit_code == 0, back.stderr
    assert back.stdout.count("Restored ") == 2
    assert "of mine exist on disk and didn't change." in back.stderr
    assert {one: (library / one / "SKILL.md").read_bytes() for one in before} == before
    assert (library / "pdf-forms" / "SKILL.md").read_bytes() == kept
    assert (
        "No folder of a skill is missing." in cli("restore", "--source", "mine", "--missing").stderr
    )
    undone = cli("undo", "--yes")
    assert undone.exit_code == 0
    assert not (library / "haiku").exists()
    assert not (library / "review").exists()


def test_missing_skills_are_not_written_into_a_missing_folder(cli, library):
    shutil.rmtree(library)
    told = cli("sync").stderr
    path = shlex.quote(str(library))
    moved = "at another place now, run: skill-registry source update mine --folder DIR\n"
    write = f"mkdir -p {path} && skill-registry restore --source mine --missing\n"
    prune = "run: skill-registry sync mine --allow-prune"
    assert -1 < told.find(moved) < told.find(write) < told.find(prune)
    refused = cli("restore", "--source", "mine", "--missing")
    assert refused.exit_code == 1
    assert f"mkdir -p {path}" in refused.stderr
    library.mkdir()
    assert cli("restore", "--source", "mine", "--missing").exit_code == 0
    assert (library / "haiku" / "SKILL.md").exists()


@pytest.mark.parametrize(
    "more", [(), ("haiku", "--source", "mine"), ("--source", "mine", "--copies")], ids=" ".join
)
def test_only_one_source_is_restored_with_missing(cli, library, more):
    refused = cli("restore", "--missing", *more)
    assert refused.exit_code == 2
    assert "--missing requires --source" in refused.stderr


def test_a_number_after_a_name_is_explained_as_a_revision(cli, library):
    refused = cli("restore", "haiku", "1")
    assert refused.exit_code == 2
    assert "'1' is not a skill. To go back to revision 1, run: " in refused.stderr
    assert "skill-registry restore haiku --revision 1\n" in refused.stderr


def test_on_a_terminal_the_history_names_the_command_that_goes_back(cli, library, terminal):
    way = "To go back, run: skill-registry restore haiku --revision N"
    assert way not in terminal("history", "haiku").stdout.decode()
    cli("update", "haiku", "--description", "Three lines.")
    assert way in terminal("history", "haiku").stdout.decode()
    assert way not in cli("history", "haiku").stderr


def test_after_an_undo_the_history_names_the_revision_that_is_current_again(cli, library):
    cli("update", "haiku", "--description", "Three lines.")
    assert cli("history", "haiku").stderr == ""
    cli("undo", "--yes")
    told = "The skill has the files of revision 1 again.\n"
    assert cli("history", "haiku").stderr == told
    assert cli("history", "haiku", "--json").stderr == ""


@pytest.mark.parametrize(
    "ask", ["show haiku", "why haiku", "update haiku --kind x", "delete haiku", "show mine/haiku"]
)
def test_a_skill_in_the_trash_is_named_as_such(cli, library, ask):
    cli("delete", "haiku")
    told = cli(*ask.split())
    assert told.exit_code == 1
    assert "haiku' is in the trash (deleted 20" in told.stderr
    assert f"To restore it, run: skill-registry restore {ask.split()[1]}" in told.stderr
    listed = cli("history", "haiku").stderr
    assert "'haiku' is in the trash (deleted 20" in listed
    assert "To restore it, run: skill-registry restore haiku" in listed


def test_a_skill_in_the_trash_is_named_by_a_new_database_too(cli, newcomer, library, tmp_path):
    cli("delete", "haiku")
    new = ("--db", str(tmp_path / "new.db"))
    newcomer(*new, "sync", str(library))
    told = newcomer(*new, "show", "haiku")
    assert told.exit_code == 1
    assert "A skill of that name is in the trash (deleted 20" in told.stderr
    number = told.stderr.split("skill-registry restore ")[1].split()[0]
    assert newcomer(*new, "restore", number).exit_code == 0


@pytest.mark.both
def test_the_last_change_is_shown_and_taken_back(cli, library):
    before = (library / "haiku" / "SKILL.md").read_text()
    cli("update", "haiku", "--description", "Three lines.")
    asked = cli("undo")
    assert asked.exit_code == 1
    assert "Not a terminal; pass --yes to confirm." in asked.stderr
    assert "Three lines." in (library / "haiku" / "SKILL.md").read_text()
    done = cli("undo", "--yes")
    assert (done.exit_code, done.stdout) == (0, "Undone: update haiku\n")
    assert "Undo update: 'haiku' gets its earlier version (mine/haiku, 20" in done.stderr
    assert "-description: Three lines.\n" in done.stderr
    assert (library / "haiku" / "SKILL.md").read_text() == before
    nothing = cli("undo", "--yes")
    assert (nothing.exit_code, "nothing to undo" in nothing.stderr) == (1, True)


@pytest.mark.parametrize(
    ("change", "words", "there"),
    [
        (["create", "new", "--description", "x"], "moves to the trash", ("new", False)),
        (["delete", "haiku"], "comes back from the trash", ("haiku", True)),
    ],
)
def test_what_is_taken_back_is_said_before_and_told_as_json(cli, library, change, words, there):
    cli(*change)
    done = cli("undo", "--yes", "--json")
    assert words in done.stderr
    told = json.loads(done.stdout)
    assert (told["kind"], told["name"], told["source"]) == (change[0], change[1], "mine")
    assert (library / there[0]).exists() is there[1]


def test_a_change_is_not_taken_back_over_an_edit(cli, library):
    cli("update", "haiku", "--description", "Three lines.")
    document = library / "haiku" / "SKILL.md"
    document.write_text(document.read_text() + "By hand.\n")
    refused = cli("undo", "--yes")
    assert refused.exit_code == 1
    assert "Can't undo the update of 'haiku': it was changed since" in refused.stderr
    assert (
        "To restore that version, run: skill-registry restore mine/haiku --revision 1"
        in refused.stderr
    )
    assert (
        "To skip this command and see the one before it, run: skill-registry undo --skip"
        in refused.stderr
    )
    assert document.read_text().endswith("By hand.\n")
    assert cli("restore", "mine/haiku", "--revision", "1").exit_code == 0
    assert "By hand." not in document.read_text()


def test_a_change_is_skipped_and_the_one_before_it_is_shown(cli, library):
    cli("create", "new", "--description", "x")
    cli("update", "haiku", "--description", "Three lines.")
    skipped = cli("undo", "--skip")
    assert (skipped.exit_code, skipped.stdout) == (0, "Skipped: update haiku\n")
    assert "Next to undo: create new (mine/new, 20" in skipped.stderr
    assert "Three lines." in (library / "haiku" / "SKILL.md").read_text()
    last = cli("undo", "--skip", "--json")
    assert json.loads(last.stdout)["kind"] == "create"
    assert "There is nothing to undo." in last.stderr
    assert (library / "new").exists()
    assert cli("undo", "--skip").exit_code == 1


def test_what_can_never_be_taken_back_is_said_in_one_line(cli, library):
    cli("update", "haiku", "--description", "Three lines.")
    cli("create", "new", "--description", "x")
    cli("delete", "new")
    cli("trash", "empty", "--yes")
    done = cli("undo", "--yes")
    assert (done.exit_code, done.stdout) == (0, "Undone: update haiku\n")
    assert "Can't undo the delete of 'new'" in done.stderr
    assert cli("undo", "--yes").stderr == "Error: There is nothing to undo.\n"


@pytest.fixture
def copies(cli, library, tmp_path):
    """Three copies of the haiku skill."""
    folders = [library / "haiku", tmp_path / "b" / "haiku", tmp_path / "c" / "haiku"]
    for folder in folders[1:]:
        shutil.copytree(folders[0], folder)
        assert cli("sync", str(folder.parent)).exit_code == 0
    return folders


def test_one_undo_takes_back_a_change_of_copies(cli, copies):
    cli("update", "mine/haiku", "--description", "Three lines.", "--copies")
    done = cli("undo", "--yes")
    assert done.stdout == "Undone: update haiku and 2 copies of it\n"
    assert "Undo update: 'haiku' gets its earlier version (mine/haiku, 20" in done.stderr
    assert "with 2 copies of it: " in done.stderr
    assert all("Three lines." not in (one / "SKILL.md").read_text() for one in copies)
    assert cli("undo", "--yes").exit_code == 1


def test_copies_that_were_deleted_together_are_restored_together_or_by_name(cli, copies):
    cli("delete", "mine/haiku", "--copies")
    back = cli("restore", "haiku", "--copies", "--json")
    assert [one["source"] for one in json.loads(back.stdout)][-1] == "mine"
    assert all(one.exists() for one in copies)
    assert cli("undo", "--yes").stdout == "Undone: restore haiku and 2 copies of it\n"
    assert not any(one.exists() for one in copies)
    sources = [one["name"] for one in json.loads(cli("source", "list", "--json").stdout)]
    assert len(sources) == 3
    named = ["haiku", *(f"{one}/haiku" for one in sources if one != "mine")]
    assert cli("restore", *named).exit_code == 0
    assert all(one.exists() for one in copies)


def test_none_of_several_is_restored_where_the_place_of_one_is_taken(cli, library):
    cli("delete", "haiku", "review")
    (library / "review").mkdir()
    refused = cli("restore", "haiku", "review")
    assert refused.exit_code == 1
    assert "A skill 'review' already exists" in refused.stderr
    assert not (library / "haiku").exists()


def test_none_of_several_is_restored_where_one_is_not_kept_whole(cli, library):
    lose(cli, library, "haiku")
    lose(cli, library, "review")
    (library / "review").write_text("a file")
    assert cli("restore", "haiku", "review").exit_code == 1
    assert not (library / "haiku").exists()
    (library / "review").unlink()
    assert cli("restore", "haiku", "review", "mine/haiku").exit_code == 0


def test_restoring_what_is_there_points_to_its_history(cli, library):
    told = cli("restore", "haiku")
    assert told.exit_code == 1
    assert "'haiku' exists and is not in the trash." in told.stderr
    assert "To restore one, run: skill-registry restore haiku --revision N" in told.stderr


def test_the_folder_to_make_is_named(cli, library):
    cli("delete", "haiku")
    shutil.rmtree(library)
    assert f"create it: mkdir -p {library}" in cli("restore", "haiku").stderr


def test_undo_asks_on_a_terminal(terminal, cli, library):
    cli("create", "new", "--description", "x")
    asked = terminal("undo", typed=b"n\n")
    assert "moves to the trash" in asked.out
    assert "Undo this? [y/N]" in asked.out
    assert (library / "new").exists()
    assert "Undone: create new" in terminal("undo", typed=b"y\n").out
    assert not (library / "new").exists()


def test_in_a_narrow_terminal_the_list_of_changes_still_tells_who_and_what(library, cli, terminal):
    write_skill(library / ("a-very-long-name-of-a-skill-" * 2).strip("-"))
    cli("sync")
    cli("update", "haiku", "--description", "Writes haiku. Use it for poems.")
    shown = terminal("history", "--who", columns=60, NO_COLOR="1").out
    assert "changed  haiku" in shown
    assert "update" in shown
    shown = terminal("history", "haiku", "--who", columns=60, NO_COLOR="1").out
    assert "update" in shown
