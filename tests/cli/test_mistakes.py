"""Slips of the command line, and what a stranger is told about them."""

import json
import re

import pytest

from tests.conftest import write_skill


@pytest.mark.file
@pytest.mark.parametrize("how", ["option", "variable"])
@pytest.mark.parametrize(
    "command",
    [["list"], ["search", "x"], ["show", "x"], ["stats"], ["source", "list"], ["db", "check"]],
    ids=" ".join,
)
def test_a_named_database_that_is_not_there_is_no_empty_registry(newcomer, tmp_path, how, command):
    typo = str(tmp_path / "typo.db")
    if how == "option":
        ran = newcomer("--db", typo, *command)
    else:
        ran = newcomer(*command, env={"SKILL_REGISTRY_DB": typo})
    assert (ran.exit_code, ran.stdout) == (3, "")
    assert f"There is no database at {typo}." in ran.stderr
    assert "skill-registry sync FOLDER" in ran.stderr
    assert not (tmp_path / "typo.db").exists()


@pytest.mark.file
def test_a_sync_makes_the_named_database(newcomer, root, skill, tmp_path):
    skill("alpha")
    made = str(tmp_path / "new" / "made.db")
    assert newcomer("--db", made, "sync", str(root)).exit_code == 0
    assert newcomer("--db", made, "list", "--format", "names").stdout == "alpha\n"


@pytest.mark.reads
@pytest.mark.parametrize("folder", ["/no/such/folder", "./nowhere", "~/nowhere", "../nowhere"])
@pytest.mark.parametrize("command", ["check", "show"])
def test_a_path_that_leads_nowhere_is_not_taken_for_a_name(library, cli, command, folder):
    ran = cli(command, folder)
    assert (ran.exit_code, ran.stdout) == (1, "")
    assert "There is no folder" in ran.stderr
    assert "No skill named" not in ran.stderr


@pytest.mark.parametrize("name", ["fresh", "mine/fresh", "PATH"])
def test_a_skill_that_was_not_synced_yet_is_said_to_be_there(library, cli, name):
    folder = write_skill(library / "fresh")
    ran = cli("history", str(folder) if name == "PATH" else name)
    assert ran.exit_code == 1
    assert f"{folder} exists, but it is not synced yet; run: skill-registry sync mine" in ran.stderr


def test_a_skill_in_a_folder_that_is_no_source_is_said_to_be_there(library, cli, tmp_path):
    folder = write_skill(tmp_path / "elsewhere" / "fresh")
    ran = cli("history", str(folder))
    assert f"{folder} exists, but it is not in a registered source" in ran.stderr
    assert f"skill-registry sync {folder}" in ran.stderr


@pytest.mark.reads
@pytest.mark.parametrize(
    "form", ["{0}/haiku", "{0}/haiku/", "{0}/haiku/SKILL.md", "./skills/haiku"]
)
def test_a_skill_is_shown_by_the_path_of_its_folder(library, cli, monkeypatch, form):
    monkeypatch.chdir(library.parent)
    (library.parent / "skills").is_dir() or (library.parent / "skills").symlink_to(library)
    ran = cli("show", form.format(library), "--json")
    assert ran.exit_code == 0, ran.stderr
    assert json.loads(ran.stdout)["ref"] == "haiku"


def test_a_ref_wins_over_a_folder_of_the_same_name_here(library, cli, tmp_path, monkeypatch):
    write_skill(tmp_path / "work" / "mine" / "haiku", description="Another one.")
    monkeypatch.chdir(tmp_path / "work")
    assert cli("show", "mine/haiku", "--path").stdout == f"{library / 'haiku'}\n"


def test_a_backup_to_a_folder_asks_for_a_file_in_it(library, cli, tmp_path):
    (tmp_path / "backups").mkdir()
    ran = cli("db", "backup", str(tmp_path / "backups"))
    assert (ran.exit_code, ran.stdout) == (2, "")
    assert f"{tmp_path}/backups is a folder: name a file in it" in ran.stderr
    assert "remove" not in ran.stderr
    assert (tmp_path / "backups").is_dir()


def test_a_backup_that_cannot_be_written_says_why(library, cli, tmp_path):
    ran = cli("db", "backup", str(tmp_path / "no" / "such" / "copy.db"))
    assert ran.exit_code == 3
    assert (
        f"{tmp_path}/no/such/copy.db can't be written: there is no folder {tmp_path}/no/such"
        in (ran.stderr)
    )


@pytest.mark.file
def test_a_database_in_a_place_that_is_no_folder_says_so(newcomer, root, tmp_path):
    (tmp_path / "file").write_text("")
    ran = newcomer("--db", str(tmp_path / "file" / "my.db"), "sync", str(root))
    assert ran.exit_code == 3
    assert "unable to open" not in ran.stderr


def test_delete_accepts_yes_instead_of_suggesting_another_option(library, cli):
    assert cli("delete", "haiku", "--yes").exit_code == 0
    assert cli("restore", "haiku").exit_code == 0


@pytest.mark.parametrize(
    ("typed", "told"),
    [
        ("remove", "'delete'"),
        ("uninstall", "'pull --remove' NAME"),
        ("which", "'show --path' NAME"),
        ("lock", "'pull'"),
        ("updates", "'pull --check'"),
        ("status", "'pull --check'"),
        ("upgrade", "'pull' for installed skills"),
        ("view", "'show'"),
        ("install", "'pull'"),
        ("add", "'source add'"),
        ("new", "'create'"),
        ("help", "'--help'"),
        ("info", "'show'"),
        ("cat", "'show'"),
        ("update-all", "'sync'"),
        ("refresh", "'sync'"),
        ("init", "'sync FOLDER'"),
        ("validate", "'check'"),
        ("fix", "'check --fix'"),
        ("duplicates", "'copies'"),
        ("usage", "'stats'"),
        ("log", "'history'"),
        ("versions", "'version list'"),
        ("tag", "'version add'"),
        ("yank", "'version yank'"),
        ("rollback", "'undo', or 'restore' NAME@LABEL"),
        ("compare", "'diff' A B"),
        ("review", "'proposal list'"),
        ("approve", "'proposal approve'"),
        ("push", "'publish' FOLDER"),
        ("zip", "'export' NAME FILE.zip"),
        ("undelete", "'restore'"),
        ("backup", "'db backup'"),
        ("discover", "'source discover'"),
        ("server", "'serve' or 'mcp'"),
        ("audit", "'history --since' 7d for changes of skills, 'db audit'"),
        ("changes", "'history --since' 7d"),
        ("users", "'db grants' or 'token list'"),
    ],
    ids=lambda text: text.strip("'"),
)
def test_a_word_of_other_programs_is_told_ours(newcomer, typed, told):
    ran = newcomer(typed, "something")
    assert (ran.exit_code, ran.stdout) == (2, "")
    last = ran.stderr.splitlines()[-1]
    assert last.startswith(f"Error: There is no command '{typed}'. Did you mean {told}")


def test_a_setting_of_a_source_is_changed_with_update(newcomer):
    assert "Did you mean 'source update'?" in newcomer("source", "set", "mine").stderr


@pytest.mark.reads
@pytest.mark.parametrize("command", [["list"], ["why", "haiku"]], ids=" ".join)
@pytest.mark.parametrize("word", ["all", "*"])
def test_all_agents_where_one_is_asked_for_are_listed_by_a_command(library, cli, command, word):
    ran = cli(*command, "--agent", word)
    assert (ran.exit_code, ran.stdout) == (2, "")
    assert "--agent requires one agent. To list them, run: skill-registry agents" in ran.stderr


@pytest.mark.parametrize(
    ("group", "typed", "told"),
    [
        ("source", "delete", "'source remove'"),
        ("proposal", "diff", "'proposal show' ID"),
        ("proposal", "accept", "'proposal approve' ID"),
        ("trash", "clear", "'trash empty'"),
        ("trash", "restore", "'restore'"),
        ("db", "migrate", "'db upgrade'"),
        ("version", "create", "'version add' NAME LABEL"),
        ("version", "restore", "'restore' NAME@LABEL"),
        ("version", "delete", "'version yank' NAME@LABEL"),
    ],
)
def test_a_word_inside_a_group_is_told_ours(newcomer, group, typed, told):
    ran = newcomer(group, typed)
    assert ran.exit_code == 2
    assert f"Did you mean {told}" in ran.stderr


def test_a_label_after_a_published_skill_names_the_command_for_versions(newcomer):
    ran = newcomer("publish", "haiku", "1.0")
    assert ran.exit_code == 2
    assert "Did you mean 'version add' NAME LABEL to name a version?" in ran.stderr


def test_an_update_without_options_names_the_command_for_new_versions(library, cli):
    ran = cli("update", "haiku")
    assert ran.exit_code == 2
    assert "To get new versions of installed skills, run: skill-registry pull" in ran.stderr


def test_y_is_short_for_yes(library, cli):
    cli("delete", "haiku")
    assert cli("undo", "-y").stdout == "Undone: delete haiku\n"


@pytest.mark.reads
def test_quarantined_is_no_status_and_names_the_way_to_list_what_is(library, cli):
    ran = cli("list", "--status", "quarantined")
    assert ran.exit_code == 2
    assert "To list quarantined skills, use --all --format table." in ran.stderr


def test_a_diff_of_a_name_of_two_skills_names_the_command_that_compares_them(library, cli, skill):
    skill("other/haiku", description="Another one.")
    cli("sync")
    ran = cli("diff", "haiku")
    assert ran.exit_code == 1
    told = re.search(r"^To compare .* run: skill-registry (diff .*)$", ran.stderr, re.MULTILINE)
    assert told is not None
    assert "Another one." in cli(*told[1].split()).stdout


@pytest.mark.parametrize("there", [True, False])
def test_a_check_of_a_folder_into_which_nothing_was_pulled_fails(library, cli, tmp_path, there):
    place = tmp_path / "pulled"
    if there:
        place.mkdir()
    ran = cli("pull", "--check", "--to", str(place))
    assert (ran.exit_code, ran.stdout) == (1, "")
    assert f"No lock file at {place}/skills.lock.json" in ran.stderr
    assert cli("pull", "haiku", "--to", str(place)).exit_code == 0
    assert cli("pull", "--check", "--to", str(place)).exit_code == 0


@pytest.mark.parametrize(
    "command", [["sync"], ["sync", "--dry-run"], ["source", "add"]], ids=" ".join
)
@pytest.mark.parametrize("place", ["/", "~", "~/..", "~/."])
def test_a_home_folder_is_no_source(newcomer, command, place):
    ran = newcomer(*command, place)
    assert (ran.exit_code, ran.stdout) == (1, "")
    assert "name a folder below it" in ran.stderr
    assert newcomer("source", "list", "--format", "names").stdout == ""


def test_a_folder_in_the_home_folder_is_a_source(newcomer, tmp_path):
    write_skill(tmp_path / "home" / ".claude" / "skills" / "alpha")
    assert newcomer("sync", "~/.claude/skills").exit_code == 0


class TestNesting:
    """A source inside another takes over the skills that lie in it."""

    @pytest.fixture
    def team(self, cli, tmp_path):
        for folder in ("one", "below/two", "below/three"):
            write_skill(tmp_path / "team" / folder)
        cli("sync", str(tmp_path / "team"))
        return tmp_path / "team"

    @pytest.mark.parametrize("command", [["sync"], ["source", "add"]], ids=" ".join)
    def test_a_source_inside_another_says_whose_skills_it_takes(self, cli, team, command):
        ran = cli(*command, str(team / "below"))
        assert "inside the source team" in ran.stderr
        assert "the new source takes over 2 skills" in ran.stderr
        assert "and team keeps 1." in ran.stderr
        cli("sync")
        counts = {
            one["name"]: one["skills"] for one in json.loads(cli("source", "list", "--json").stdout)
        }
        assert counts == {"team": 1, "below": 2}

    def test_a_source_around_another_says_what_stays(self, cli, tmp_path):
        write_skill(tmp_path / "team" / "below" / "two")
        cli("sync", str(tmp_path / "team" / "below"))
        ran = cli("sync", str(tmp_path / "team"))
        assert "contains the source below, which keeps its 1 skill." in ran.stderr

    def test_a_source_beside_another_says_nothing(self, cli, team, tmp_path):
        write_skill(tmp_path / "team-two" / "four")
        assert cli("sync", str(tmp_path / "team-two")).stderr == ""
        assert cli("sync", str(team)).stderr == ""


@pytest.mark.reads
@pytest.mark.parametrize("command", [["list"], ["search", "haiku"]], ids=" ".join)
@pytest.mark.parametrize(
    ("option", "told"),
    [
        (["--tag", "form"], "No skill has the tag 'form'; nearest: 'forms'."),
        (["--tag", "FORM s"], "No skill has the tag 'FORM s'; nearest: 'forms'."),
        (["--any-tag", "pdfs", "--tag", "pdf"], "No skill has the tag 'pdfs'; nearest: 'pdf'."),
        (["--tag", "xyzzy"], "No skill has the tag 'xyzzy'."),
        (["--kind", "workflows"], "No skill has the kind 'workflows'; nearest: 'workflow'."),
        (["--category", "doc"], "No skill has the category 'doc'; nearest: 'documents'."),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_a_value_that_no_skill_has_is_told_with_the_nearest(library, cli, command, option, told):
    ran = cli(*command, *option)
    assert (ran.exit_code, ran.stdout, ran.stderr) == (0, "", f"{told}\n")


@pytest.mark.parametrize("command", ["show", "history", "restore"])
def test_a_link_that_stood_for_a_skill_is_named_as_one(cli, tmp_path, command):
    home, links = tmp_path / "my" / "agents", tmp_path / "my" / "claude"
    write_skill(home / "alpha")
    write_skill(links / "beta")
    (links / "alpha").symlink_to(home / "alpha")
    for folder in (links, home):
        cli("sync", str(folder))
    told = cli(command, "claude/alpha")
    assert told.exit_code == 1
    assert f"{links / 'alpha'} is a link to the skill 'alpha'." in told.stderr
    assert "restore" not in told.stderr


@pytest.mark.reads
@pytest.mark.parametrize("command", ["show", "history", "diff", "copies", "why"])
@pytest.mark.parametrize("handle", ["haiku", "lib/haiku"])
def test_a_slash_that_completion_added_to_a_name_changes_nothing(library, cli, command, handle):
    name = handle.replace("lib", "mine")
    plain, slashed = cli(command, name), cli(command, f"{name}/")
    assert (slashed.exit_code, slashed.stdout) == (plain.exit_code, plain.stdout)
    assert slashed.exit_code == 0
    near = cli("show", "hiaku/")
    assert near.exit_code == 1
    assert near.stderr == "Error: No skill named 'hiaku'. Did you mean 'haiku'?\n"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("defalt_source: x\n", "unknown key 'defalt_source' in the settings: did you mean "),
        ("limits: {depth: 0}\n", "limits.depth must be a whole number of at least 1, not 0."),
        ("one: 1\nlist: [\n", "it is not valid YAML, line 3: expected the node content, but"),
        ("a: \b\n", "it is not valid YAML: unacceptable character #x0008"),
    ],
)
def test_what_is_wrong_with_the_settings_is_one_sentence(cli, tmp_path, text, told):
    settings = tmp_path / "config.yaml"
    settings.write_text(text, encoding="utf-8")
    result = cli("--config", str(settings), "list")
    assert result.exit_code == 2
    assert result.stderr.startswith(f"Error: The settings file {settings} can't be used: {told}")
    assert result.stderr.count("\n") == 1
    assert not result.stderr.endswith("?.\n")


@pytest.mark.parametrize(
    ("alias", "command"),
    [
        (("ls",), ("list",)),
        (("find", "haiku"), ("search", "haiku")),
        (("source", "ls"), ("source", "list")),
        (("trash", "ls"), ("trash", "list")),
        (("outdated",), ("pull", "--check")),
    ],
    ids=" ".join,
)
def test_an_alias_does_the_same_as_the_command(library, cli, alias, command):
    ran, expected = cli(*alias), cli(*command)
    assert (ran.exit_code, ran.stdout, ran.stderr) == (
        expected.exit_code,
        expected.stdout,
        expected.stderr,
    )


def test_rm_deletes_a_skill_and_removes_a_source(library, cli):
    assert cli("rm", "haiku").exit_code == 0
    assert not (library / "haiku").exists()
    assert cli("source", "rm", "mine").exit_code == 0


def test_a_prefix_that_is_nearly_one_of_an_address_is_told(library, cli):
    for command in ("sync githb:foo/bar", "pull githb:foo/bar -a codex"):
        refused = cli(*command.split())
        assert refused.exit_code == 1
        assert "the prefix 'githb' is unknown; did you mean github?" in refused.stderr


def test_a_revision_that_is_the_current_one_is_not_said_to_be_restored(library, cli):
    done = cli("restore", "haiku", "--revision", "1")
    assert done.exit_code == 0
    assert done.stdout.startswith("Nothing to restore in haiku: ")


@pytest.mark.reads
@pytest.mark.parametrize(
    ("typed", "told"),
    [
        ("list --source mine --source other", "--source can't be repeated."),
        ("list --source=mine --scope personal --source mine", "--source can't be repeated."),
        ("search forms --source mine --source other", "--source can't be repeated."),
        ("source update mine --scope project --scope shared", "--scope can't be repeated."),
        ("list --config one --config two", "--config can't be repeated."),
        ("show haiku --raw --path", "--raw and --path can't be combined."),
        ("pull haiku -a codex --link --copy", "--link and --copy can't be combined."),
    ],
)
def test_an_option_of_which_one_would_be_lost_is_refused(library, cli, typed, told):
    ran = cli(*typed.split())
    assert (ran.exit_code, ran.stdout) == (2, "")
    assert ran.stderr.endswith(f"Error: {told}\n")


@pytest.mark.reads
def test_a_global_option_replaces_the_one_of_an_alias(library, cli, tmp_path):
    ran = cli("--db", str(tmp_path / "typo.db"), "list")
    assert ran.exit_code == 3


@pytest.mark.reads
def test_a_flag_may_be_repeated_and_so_may_an_option_that_takes_several_values(library, cli):
    ran = cli("list", "--all", "--all", "--tag", "pdf", "--tag", "forms", "--format", "names")
    assert (ran.exit_code, ran.stdout) == (0, "pdf-forms\n")


@pytest.mark.reads
@pytest.mark.parametrize(
    ("typed", "told"),
    [
        ("mine/hiaku", "No skill named 'mine/hiaku'. Did you mean 'haiku'?"),
        ("mien/haiku", "No skill named 'mien/haiku'. Did you mean 'haiku'?"),
        ("mine/xyzzy", "No skill named 'mine/xyzzy'."),
        ("./mine/hiaku", None),
        ("nowhere/xyzzy", None),
    ],
)
def test_why_takes_a_mistyped_ref_for_a_ref_and_not_for_a_path(library, cli, typed, told):
    ran = cli("why", typed)
    if told is None:
        assert (ran.exit_code, "there is no such file or folder" in ran.stdout) == (0, True)
    else:
        assert (ran.exit_code, ran.stdout) == (1, "")
        assert f"Error: {told}" in ran.stderr


@pytest.mark.reads
def test_the_help_of_a_backup_says_how_to_restore_it(cli):
    text = " ".join(cli("db", "backup", "--help").stdout.split())
    assert "db restore FILE" in text
    assert "skill-registry db copy FILE URL" in text


@pytest.mark.parametrize("option", ["--out", "--output", "--dir", "--to", "-o"])
def test_other_words_for_the_folder_of_an_export_name_the_option(library, cli, option):
    ran = cli("export", "haiku", option, "there")
    assert ran.exit_code == 2
    assert f"No such option '{option}'. Did you mean NAME FILE.zip for one skill" in ran.stderr
    assert "--well-known DIR for a web site" in ran.stderr
    assert "No such option '--tagz'. (Did you mean" in cli("list", "--tagz", "x").stderr


@pytest.mark.parametrize(
    ("command", "option", "meant"),
    [
        (["sync"], "--pin", "ADDRESS#v2, or 'source update' NAME --ref v2 for a source?"),
        (["source", "add"], "--ref", "ADDRESS#v2, or 'source update' NAME --ref v2"),
        (["pull"], "--branch", "ADDRESS#v2, or 'source update' NAME --ref v2"),
        (["source", "update"], "--pin", "--ref?"),
        (["list"], "--since", "--updated-since, as in: list --updated-since 7d"),
        (["db", "restore"], "--force", "--overwrite?"),
    ],
)
def test_other_words_for_an_option_name_the_option(cli, command, option, meant):
    ran = cli(*command, "github:owner/repo", option, "v2")
    assert ran.exit_code == 2
    assert f"No such option '{option}'. Did you mean {meant}" in ran.stderr


@pytest.mark.parametrize(
    ("word", "meant"),
    [
        ("agents", "'agents', or 'list --agent' NAME"),
        ("sources", "'source list'"),
        ("tags", "'tags'?"),
        ("haiku", "'search' WORD"),
    ],
)
def test_an_argument_of_list_names_the_command_that_was_meant(library, cli, word, meant):
    ran = cli("list", word)
    assert ran.exit_code == 2
    assert f"'list' takes no argument '{word}'. Did you mean {meant}" in ran.stderr


@pytest.mark.parametrize(
    ("typed", "told"),
    [
        ("why haiku tea", "'tea' is one argument too many: 'why' takes NAME|PATH. Example: "),
        ("rename haiku tea cup", "'cup' is one argument too many: 'rename' takes NAME NEW."),
        ("undo haiku", "'undo' takes no argument 'haiku'. Example: skill-registry undo\n"),
    ],
)
def test_an_argument_too_many_names_what_the_command_takes(library, cli, typed, told):
    ran = cli(*typed.split())
    assert ran.exit_code == 2
    assert f"Error: {told}" in ran.stderr


def test_what_to_import_of_an_exported_web_site_is_said(library, cli, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (library / "haiku" / "notes.md").write_text("More.\n")
    cli("sync")
    assert cli("export", "haiku", "--well-known", str(tmp_path / "public")).exit_code == 0
    refused = cli("import", "public", "--all")
    assert "'public' can't be used: it is a folder, not an archive." in refused.stderr
    way = refused.stderr.rpartition("run: skill-registry ")[2].split()
    assert way == ["import", str(tmp_path / "public/.well-known/agent-skills/haiku.tar.gz")]
    assert cli("delete", "haiku").exit_code == 0
    assert cli(*way).exit_code == 0


@pytest.mark.parametrize("what", ["one", "one/SKILL.md", "site"])
def test_how_to_import_a_folder_or_a_single_file_is_said(library, cli, tmp_path, monkeypatch, what):
    monkeypatch.chdir(tmp_path)
    write_skill(tmp_path / "one")
    write_skill(tmp_path / "site/.well-known/agent-skills/one")
    refused = cli("import", what)
    assert refused.exit_code == 1
    known, copied = (
        refused.stderr.rstrip()
        .split("To register it, run: ")[1]
        .split(". To copy it into a source of your own, run: ")
    )
    assert copied.endswith(" --source NAME")
    assert cli(*copied.replace("NAME", "mine").split()[1:]).exit_code == 0
    assert (library / "one" / "SKILL.md").exists()
    assert cli("delete", "one").exit_code == 0
    assert cli(*known.split()[1:]).exit_code == 0
    assert cli("show", "one").exit_code == 0


def test_publish_takes_the_name_of_a_skill_and_says_if_there_is_none(library, cli, tmp_path):
    cli("sync", str(write_skill(tmp_path / "team" / "ode").parent), "--name", "team")
    assert cli("publish", "haiku", "--source", "team").exit_code == 0
    assert (tmp_path / "team" / "haiku" / "SKILL.md").exists()
    near = cli("publish", "haikus", "--source", "team")
    assert near.stderr.startswith("Error: No skill named 'haikus'. Did you mean 'haiku'?")
    for named in (["--source", "team"], ["--to", "http://127.0.0.1:1"]):
        unknown = cli("publish", "xyzzy.zip", *named)
        assert unknown.exit_code == 1
        told = "'xyzzy.zip' is not a folder, an archive or the name of a skill."
        assert unknown.stderr == f"Error: {told}\n"


@pytest.mark.parametrize("command", ["deprecate", "yank"])
def test_a_version_without_a_label_names_the_labels_or_how_to_add_one(library, cli, command):
    add = "To add one, run: skill-registry version add haiku LABEL\n"
    for more in ([], ["--reason", "old"]):
        none = cli("version", command, "haiku", *more)
        assert none.exit_code == 2
        assert (
            none.stderr == f"Error: Name a version of the skill as NAME@LABEL; it has none. {add}"
        )
    cli("version", "add", "haiku", "1.0")
    assert "has no version '2.0'; it has 1.0." in cli("version", command, "haiku@2.0").stderr
    some = cli("version", command, "haiku", "--reason", "old")
    assert some.exit_code == 2
    assert "Name a version of the skill as NAME@LABEL; it has 1.0." in some.stderr
    missing = cli("version", command, "haiku@1.0")
    assert missing.exit_code == 2
    assert "Missing --reason TEXT; users of the version read it." in missing.stderr


def test_a_folder_that_is_no_skill_is_to_be_registered_not_imported(library, cli, tmp_path):
    write_skill(tmp_path / "many" / "one")
    told = cli("import", str(tmp_path / "many")).stderr
    assert f"To register the folder, run: skill-registry sync {tmp_path}/many\n" in told


def test_a_backup_onto_a_file_names_the_option_that_replaces_it(library, cli, tmp_path):
    copy = str(tmp_path / "copy.db")
    assert cli("db", "backup", copy).exit_code == 0
    refused = cli("db", "backup", copy)
    assert refused.exit_code == 2
    told = f"{copy} exists already. Choose another name. To replace it, add --overwrite.\n"
    assert refused.stderr.endswith(told)
    assert cli("db", "backup", copy, "--overwrite").exit_code == 0


def test_the_style_of_schemas_is_suggested_for_a_format(cli):
    refused = cli("tools", "schema", "--format", "openai")
    assert refused.exit_code == 2
    assert "Did you mean --style openai, anthropic or mcp?" in refused.stderr


def test_the_refusal_to_create_over_a_folder_without_a_skill_file_names_the_file(library, cli):
    (library / "empty").mkdir()
    cli("sync")
    refused = cli("create", "empty", "--description", "New.").stderr
    assert f"write {library}/empty/SKILL.md and then run: skill-registry sync" in refused
    (library / "empty" / "SKILL.md").write_text("---\nname: empty\ndescription: Yes.\n---\n")
    cli("sync")
    assert "Yes." in cli("show", "empty").stdout


def test_a_delete_that_leaves_an_ambiguous_name_does_not_call_it_one_skill(cli, tmp_path):
    for number, source in enumerate(("one", "two", "three")):
        write_skill(tmp_path / source / "same", description=f"Number {number}.")
        cli("sync", str(tmp_path / source))
    done = cli("delete", "one/same")
    assert done.exit_code == 0
    assert "now refers to" not in done.stderr
