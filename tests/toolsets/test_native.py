"""The registry's own tools: typed, paged, limited, and safe to change with."""

import base64
import json
import os
import shutil

import jsonschema
import pytest

from registry.api import SkillRegistry
from registry.db.read.listing import Filters
from registry.settings import parse_settings
from registry.toolsets.native import TOOLS
from tests.conftest import write_skill

RESULTS = {tool.name: jsonschema.Draft202012Validator(tool.result) for tool in TOOLS}


@pytest.fixture
def call(registry):
    def run(tool, arguments=None, *, limits=None, **more):
        answer = registry.toolset("native", **(limits or {})).call(
            tool, {**(arguments or {}), **more}
        )
        RESULTS[tool].validate(answer)
        json.dumps(answer, ensure_ascii=False).encode()
        return answer

    return run


@pytest.fixture
def code(call):
    return lambda *rest, **more: call(*rest, **more)["error"]["code"]


@pytest.fixture
def library(registry, root, skill):
    for number in range(25):
        tags = "[even]" if number % 2 == 0 else "[odd]"
        skill(f"skill-{number:02}", description=f"Number {number}.", extra=f"tags: {tags}\n")
    folder = skill("pdf-forms", description="Fill PDF forms.", body="# Forms\n\nUse the script.\n")
    (folder / "scripts").mkdir()
    (folder / "scripts" / "fill.py").write_text("print('f\u00fcr')\n" * 10)
    (folder / "logo.png").write_bytes(bytes(range(256)))
    skill("secret", extra="disable-model-invocation: true\n")
    registry.sync(str(root), name="mine")
    return root


@pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: tool.name)
def test_every_argument_is_described(tool):
    for name, about in tool.parameters["properties"].items():
        assert about.get("description"), name


class TestListing:
    def test_pages_give_every_skill_once_with_the_true_total(self, call, library):
        seen, offset = [], 0
        while offset is not None:
            page = call("list_skills", limit=7, offset=offset)
            assert page["total"] == 26
            seen += [skill["ref"] for skill in page["skills"]]
            offset = page["next_offset"]
        assert seen == sorted(seen)
        assert len(set(seen)) == 26

    def test_filters_come_before_the_page(self, call, library):
        page = call("list_skills", tags=["even"], limit=5)
        assert (len(page["skills"]), page["total"], page["next_offset"]) == (5, 13, 5)
        assert call("list_skills", created_since="1d")["total"] == 0
        assert call("list_skills", source="mine", sort="updated", reverse=True)["total"] == 26

    def test_what_hides_itself_from_models_is_not_listed_found_or_read(self, call, code, library):
        assert "secret" not in {s["ref"] for s in call("list_skills", limit=100)["skills"]}
        assert call("search_skills", query="secret")["total"] == 0
        assert code("read_skill", name="secret") == "skill_not_visible"

    def test_a_wrong_date_is_said(self, call, library):
        error = call("list_skills", created_since="soon")["error"]
        assert error["code"] == "usage"
        assert "created_since" in error["message"]


class TestSearching:
    def test_the_best_comes_first_with_score_and_snippet(self, call, library):
        found = call("search_skills", query="fill pdf forms")
        best = found["skills"][0]
        assert best["ref"] == "pdf-forms"
        assert best["score"] > 0
        assert "PDF" in best["snippet"] or "Forms" in best["snippet"]

    def test_nothing_typed_is_an_error(self, call, library):
        for query in ("", '"', "AND (", "\0", "x" * 5000):
            assert "skills" in call("search_skills", query=query)


class TestReading:
    def test_a_skill_comes_with_its_instructions_and_files(self, call, library):
        answer = call("read_skill", name="pdf-forms")
        assert answer["body"] == "\n# Forms\n\nUse the script.\n"
        paths = [file["path"] for file in answer["skill"]["files"]]
        assert paths == ["SKILL.md", "logo.png", "scripts/fill.py"]
        assert answer["next_offset"] is None

    def test_a_long_body_comes_in_pieces(self, call, registry, library):
        write_skill(library / "long", body="\u00e9" * 250)
        registry.sync()
        pieces, offset = "", 0
        while offset is not None:
            answer = call("read_skill", name="long", offset=offset, max_chars=100)
            pieces += answer["body"]
            offset = answer["next_offset"]
        assert pieces.strip() == "\u00e9" * 250

    def test_an_edit_on_disk_is_read_at_once(self, call, library):
        write_skill(library / "skill-00", body="Edited.\n")
        assert "Edited." in call("read_skill", name="skill-00")["body"]

    def test_files_are_read_one_at_a_time_as_text_or_base64(self, call, library):
        text = call("read_skill_file", name="pdf-forms", path="scripts/fill.py")
        assert (text["encoding"], text["content"]) == ("utf-8", "print('f\u00fcr')\n" * 10)
        data, offset = b"", 0
        while offset is not None:
            piece = call(
                "read_skill_file", name="pdf-forms", path="logo.png", offset=offset, max_chars=100
            )
            assert piece["encoding"] == "base64"
            data += base64.b64decode(piece["content"])
            offset = piece["next_offset"]
        assert data == bytes(range(256))

    def test_a_folder_without_a_document_says_so(self, call, library):
        (library / "skill-01" / "SKILL.md").unlink()
        assert call("read_skill", name="skill-01")["error"] == {
            "code": "skill_invalid",
            "message": (
                "The skill 'skill-01' can't be used:\n  the folder holds no SKILL.md "
                "(fix: add a SKILL.md to the folder)"
            ),
        }

    def test_what_a_broken_skill_that_hides_itself_says_is_not_told(self, code, registry, library):
        quiet = "disable-model-invocation: true\n"
        write_skill(library / "broken", description="", body="", extra=quiet)
        registry.sync()
        assert code("read_skill", name="broken") == "skill_not_visible"

    def test_paths_out_of_the_skill_are_refused(self, code, library):
        for path in ["../skill-00/SKILL.md", "/etc/passwd", "a\\b", "..", "x\0y"]:
            assert code("read_skill_file", name="pdf-forms", path=path) == "outside_skill"

    def test_links_out_of_the_skill_are_refused(self, code, registry, library):
        os.symlink("/etc/passwd", library / "skill-01" / "passwd")
        assert code("read_skill_file", name="skill-01", path="passwd") in {
            "outside_skill",
            "skill_invalid",
        }

    def test_errors_name_what_helps_and_tools_rather_than_commands(self, call, library):
        unknown = call("read_skill", name="pdf-form")["error"]
        assert unknown["code"] == "skill_not_found"
        assert "'pdf-forms'" in unknown["message"]
        for answer in (
            call("read_skill", name="zzz"),
            call("read_skill_file", name="pdf-forms", path="nothing"),
            call("restore_skill", name="nothing"),
            call("create_skill", name="pdf-forms", description="Again."),
        ):
            assert "skill-registry" not in answer["error"]["message"], answer


class TestChanging:
    def test_a_created_skill_is_on_disk_with_all_it_was_given(self, call, registry, library):
        parameters = [{"name": "city", "type": "string", "required": True}]
        made = call(
            "create_skill",
            name="new-one",
            description="A new one.",
            body="# New\n",
            tags=["a", "b"],
            kind="workflow",
            parameters=parameters,
            files={"notes/a.txt": "\u00e9"},
        )["skill"]
        assert (made["tags"], made["kind"]) == (["a", "b"], "workflow")
        assert (library / "new-one" / "notes" / "a.txt").read_text(encoding="utf-8") == "\u00e9"
        assert registry.get("new-one").parameters[0].name == "city"

    def test_an_update_with_a_stale_hash_is_refused_and_changes_nothing(self, call, code, library):
        old = call("read_skill", name="skill-00")["skill"]["content_hash"]
        new = call("update_skill", name="skill-00", description="Two.", if_hash=old)["skill"]
        before = (library / "skill-00" / "SKILL.md").read_bytes()
        assert code("update_skill", name="skill-00", description="Three.", if_hash=old) == (
            "skill_changed_on_disk"
        )
        assert code("delete_skill", name="skill-00", if_hash=old) == "skill_changed_on_disk"
        assert (library / "skill-00" / "SKILL.md").read_bytes() == before
        assert "deleted" in call("delete_skill", name="skill-00", if_hash=new["content_hash"])

    def test_an_edit_by_hand_is_never_overwritten_or_deleted(self, code, library):
        document = library / "skill-00" / "SKILL.md"
        document.write_text(document.read_text() + "By hand.\n")
        assert code("update_skill", name="skill-00", description="Two.") == "skill_changed_on_disk"
        assert code("delete_skill", name="skill-00") == "skill_changed_on_disk"
        assert document.read_text().endswith("By hand.\n")

    def test_files_are_written_and_removed_and_everything_else_stays(self, call, library):
        before = (library / "pdf-forms" / "SKILL.md").read_bytes()
        call("update_skill", name="pdf-forms", files={"logo.png": None, "new.txt": "x"})
        assert (library / "pdf-forms" / "SKILL.md").read_bytes() == before
        assert not (library / "pdf-forms" / "logo.png").exists()
        assert (library / "pdf-forms" / "new.txt").read_text() == "x"

    def test_what_was_deleted_is_restored_byte_for_byte(self, call, code, library):
        folder = library / "pdf-forms"
        before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
        trashed = call("delete_skill", name="pdf-forms")["deleted"]
        assert not folder.exists()
        assert code("read_skill", name="pdf-forms") == "skill_not_found"
        assert call("restore_skill", name=trashed["trash_id"])["skill"]["ref"] == "pdf-forms"
        assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before

    def test_what_is_in_the_trash_or_gone_is_named_and_comes_back(self, call, registry, library):
        call("delete_skill", name="pdf-forms")
        shutil.rmtree(library / "skill-00")
        registry.sync()
        for name, words in (
            ("pdf-forms", "is in the trash (deleted 20"),
            ("skill-00", "has been gone"),
        ):
            for tool in ("read_skill", "update_skill", "delete_skill"):
                more = {"description": "x"} if tool == "update_skill" else {}
                error = call(tool, name=name, **more)["error"]
                assert error["code"] == "skill_not_found"
                assert f"'{name}' {words}" in error["message"]
                assert "restore_skill" in error["message"]
                assert "skill-registry " not in error["message"]
            assert call("restore_skill", name=name)["skill"]["ref"] == name
            assert call("read_skill", name=name)["skill"]["ref"] == name

    def test_what_is_gone_from_a_source_that_is_not_seen_is_not_told(
        self, registry, library, tmp_path
    ):
        write_skill(tmp_path / "other" / "private")
        write_skill(tmp_path / "other" / "second")
        registry.sync(str(tmp_path / "other"), name="other")
        shutil.rmtree(tmp_path / "other" / "private")
        registry.sync()
        mine, other = (registry.toolset("native", source=name) for name in ("mine", "other"))
        told = mine.call("read_skill", {"name": "private"})["error"]["message"]
        assert told.startswith("No skill named 'private'.")
        assert mine.call("restore_skill", {"name": "private"})["error"]["code"] == "skill_not_found"
        assert (
            "has been gone since"
            in other.call("read_skill", {"name": "private"})["error"]["message"]
        )
        assert other.call("restore_skill", {"name": "private"})["skill"]["source"] == "other"

    def test_what_is_there_is_said_to_be_unless_it_is_hidden(self, call, registry, library):
        assert (
            "exists and is not in the trash"
            in call("restore_skill", name="pdf-forms")["error"]["message"]
        )
        write_skill(library / "secret", extra="disable-model-invocation: true\n")
        registry.sync()
        asked = ("restore_skill", "read_skill")
        told, read = (call(tool, name="secret")["error"]["message"] for tool in asked)
        assert told == read
        assert "exists" not in told

    def test_a_sync_says_what_edits_by_hand_changed(self, call, library):
        write_skill(library / "by-hand")
        assert call("sync_skills", dry_run=True)["added"] == ["mine/by-hand"]
        done = call("sync_skills", sources=["mine"])
        assert (done["added"], done["complete"], done["problems"]) == (["by-hand"], True, [])

    def test_a_tool_registers_no_folder_of_the_host(self, code, library, tmp_path):
        assert code("sync_skills", sources=[str(tmp_path)]) == "source_not_found"

    def test_names_that_no_skill_can_have_are_refused(self, code, library):
        for name in ["../x", "CON", "", "a b", "A", "x" * 65, "\u202eabc"]:
            assert code("create_skill", name=name, description="D.") == "invalid_name"


class TestLimits:
    @pytest.fixture
    def registry(self, database):
        settings = parse_settings(
            {
                "personalities": {
                    "odd": {"skills": {"global_ingest": {"mode": "tags", "accept_tags": ["odd"]}}}
                }
            },
            "config.yaml",
        )
        with SkillRegistry.open(database, settings=settings) as opened:
            yield opened

    def test_a_personality_limits_lists_searches_and_reads_alike(self, call, code, library):
        limits = {"personality": "odd"}
        assert call("list_skills", limits=limits)["total"] == 12
        found = call("search_skills", query="number", limits=limits, limit=3)
        assert (found["total"], found["next_offset"]) == (12, 3)
        assert "body" in call("read_skill", name="skill-01", limits=limits)
        assert code("read_skill", name="skill-02", limits=limits) == "skill_not_found"
        assert code("update_skill", name="skill-02", description="x", limits=limits) == (
            "skill_not_found"
        )

    def test_a_toolset_of_one_source_lists_reads_and_writes_only_that(
        self, call, code, registry, library, tmp_path
    ):
        write_skill(tmp_path / "other" / "theirs")
        registry.sync(str(tmp_path / "other"), name="other", scope="team")
        limits = {"source": "mine"}
        assert call("list_skills", limits=limits)["total"] == 26
        assert call("list_skills", limits=limits, source="other")["total"] == 0
        assert code("read_skill", name="theirs", limits=limits) == "skill_not_found"
        assert code("delete_skill", name="other/theirs", limits=limits) == "skill_not_found"
        made = call("create_skill", name="fresh", description="D.", limits=limits)["skill"]
        assert made["source"] == "mine"
        assert code("create_skill", name="x", description="D.", source="other", limits=limits) == (
            "source_not_found"
        )
        assert code("sync_skills", sources=["other"], limits=limits) == "source_not_found"

    def test_a_toolset_of_one_scope_shows_only_that(self, call, code, registry, library, tmp_path):
        write_skill(tmp_path / "other" / "theirs")
        registry.sync(str(tmp_path / "other"), name="other", scope="team")
        limits = {"scope": "team"}
        assert [s["ref"] for s in call("list_skills", limits=limits)["skills"]] == ["theirs"]
        assert code("read_skill", name="pdf-forms", limits=limits) == "skill_not_found"

    def test_skills_of_other_projects_are_not_shown(self, call, registry, tmp_path):
        for project in ("one", "two"):
            write_skill(tmp_path / project / "skills" / f"of-{project}")
            registry.sync(str(tmp_path / project / "skills"), name=project, scope="project")
        limits = {"workdir": str(tmp_path / "one")}
        assert [s["ref"] for s in call("list_skills", limits=limits)["skills"]] == ["of-one"]


class TestWhatLiesOutside:
    """A toolset that is limited speaks of nothing that its limits leave out."""

    OUTSIDE = "classified"

    @pytest.fixture
    def registry(self, database):
        ingest = {"mode": "explicit", "allow": ["shown"]}
        settings = parse_settings(
            {
                "personalities": {
                    "few": {"team": "ours", "skills": {"global_ingest": ingest}},
                    "tags": {"team": "ours", "skills": {"global_ingest": {"mode": "tags"}}},
                }
            },
            "config.yaml",
        )
        with SkillRegistry.open(database, settings=settings) as opened:
            yield opened

    @pytest.fixture
    def homes(self, registry, tmp_path):
        scopes = {"mine": "personal", "ours": "team", self.OUTSIDE: "team"}
        for name, scope in scopes.items():
            skill = "shown" if name == "mine" else f"of-{name}"
            write_skill(tmp_path / "homes" / name / skill)
            registry.sync(str(tmp_path / "homes" / name), name=name, scope=scope)
        write_skill(tmp_path / "homes" / self.OUTSIDE / "classified-two")
        (tmp_path / "homes" / self.OUTSIDE / "of-classified" / "SKILL.md").unlink()
        return tmp_path / "homes"

    @pytest.mark.parametrize(
        "limits",
        [
            {"source": "mine"},
            {"scope": "personal"},
            {"personality": "few"},
            {"personality": "tags"},
            {"scope": "project"},
        ],
        ids=str,
    )
    def test_no_answer_names_a_source_or_skill_outside(self, call, registry, homes, limits):
        name = self.OUTSIDE
        asked = [
            ("sync_skills", {"dry_run": True}),
            ("sync_skills", {}),
            ("sync_skills", {"sources": ["nowhere"]}),
            ("sync_skills", {"sources": [name]}),
            ("create_skill", {"name": "new", "description": "D.", "source": "nowhere"}),
            ("create_skill", {"name": "new", "description": "D.", "source": name}),
            ("create_skill", {"name": "newer", "description": "D."}),
            ("restore_skill", {"name": "of-classified"}),
            ("restore_skill", {"name": "of-classified", "source": name}),
            ("read_skill", {"name": "of-classified"}),
            ("read_skill", {"name": "of-classifie"}),
            ("read_skill_file", {"name": "of-classified", "path": "x"}),
            ("update_skill", {"name": "of-classified", "description": "D."}),
            ("delete_skill", {"name": "of-classified"}),
            ("list_skills", {"source": name}),
            ("search_skills", {"query": "classified"}),
        ]
        for tool, sent in asked:
            answer = json.dumps(call(tool, limits=limits, **sent))
            for value in ("of-classified", "of-classifie", name):  # what was sent may be repeated
                if value in str(sent):
                    answer = answer.replace(f"'{value}'", "")
            assert name not in answer, (tool, sent, answer)
        # The source outside was not synced either: its missing skill is still known.
        assert registry.resolve("of-classified").source == name

    def test_what_is_seen_is_synced_and_told(self, call, registry, homes):
        write_skill(homes / "ours" / "new")
        write_skill(homes / "mine" / "unseen")
        done = call("sync_skills", limits={"personality": "few"})
        assert done["added"] == ["new"]
        assert registry.resolve("unseen").source == "mine"

    def test_a_deleted_skill_comes_back_only_to_who_may_see_its_source(
        self, call, code, registry, homes
    ):
        registry.sync(self.OUTSIDE, allow_prune=True)
        registry.delete("classified-two")
        limits = {"scope": "personal"}
        assert code("restore_skill", name="classified-two", limits=limits) == "skill_not_found"
        assert call("restore_skill", name="classified-two")["skill"]["source"] == self.OUTSIDE

    def test_where_several_sources_could_be_meant_only_those_seen_are_named(self, call, homes):
        limits = {"personality": "tags"}
        error = call("create_skill", name="x", description="D.", limits=limits)["error"]
        assert error["code"] == "source_unclear"
        assert "'ours' or 'mine'" in error["message"]


def test_wrong_arguments_are_named(call, library):
    for tool, arguments, words in [
        ("list_skills", {"limit": 0}, "limit"),
        ("list_skills", {"limit": 201}, "limit"),
        ("list_skills", {"offset": -1}, "offset"),
        ("list_skills", {"unknown": 1}, "unknown"),
        ("search_skills", {}, "query"),
        ("read_skill", {"name": 5}, "name"),
        ("update_skill", {"name": "a", "files": {"x": 5}}, "files.x"),
        ("create_skill", {"name": "a", "description": "D.", "parameters": [{}]}, "parameters.0"),
    ]:
        error = call(tool, arguments)["error"]
        assert error["code"] == "invalid_arguments"
        assert words in error["message"]


class TestCopies:
    @pytest.fixture
    def registry(self, registry, tmp_path):
        for name in ("one", "three", "two"):
            write_skill(tmp_path / name / "pdf")
            registry.sync(str(tmp_path / name), name=name)
        return registry

    def descriptions(self, registry):
        return {one.source: one.description for one in registry.list(Filters(all=True))}

    def test_what_became_of_them_is_told(self, registry):
        native = registry.toolset("native")
        answer = native.call("update_skill", {"name": "pdf", "description": "N.", "copies": True})
        assert answer["copies"] == {"changed": ["three/pdf", "two/pdf"], "left": []}
        assert set(self.descriptions(registry).values()) == {"N."}
        answer = native.call("delete_skill", {"name": "one/pdf"})
        assert answer["copies"]["changed"] == []
        assert len(answer["copies"]["left"]) == 2

    def test_a_toolset_of_one_source_knows_and_changes_no_others(self, registry):
        native = registry.toolset("native", source="one")
        answer = native.call("update_skill", {"name": "pdf", "description": "N.", "copies": True})
        assert answer["copies"] == {"changed": [], "left": []}
        assert self.descriptions(registry)["one"] == "N."
        assert "N." not in {self.descriptions(registry)[name] for name in ("two", "three")}
