"""How calls reach a contract: as JSON text, with nulls, from an event loop, and only to read."""

import asyncio
import json
import threading

import pytest

from registry.toolsets.base import Context, Toolset
from registry.toolsets.open import TOOLSETS, tools_of
from registry.toolsets.schemas import STYLES, Tool

WRITES = {"native": "create_skill", "miniclaw": "create_skill"}


@pytest.fixture
def library(registry, root, skill):
    skill("haiku", description="Write a haiku.", extra="tags: [writing]\n")
    skill("review", description="Review a change.")
    registry.sync(str(root), name="mine")
    return root


@pytest.fixture
def native(registry, library):
    return registry.toolset("native")


class TestReadOnly:
    @pytest.mark.parametrize("name", TOOLSETS)
    def test_only_tools_that_read_are_offered(self, registry, library, name):
        toolset = registry.toolset(name, read_only=True)
        reading = [tool.name for tool in tools_of(name) if tool.read_only]
        assert [tool.name for tool in toolset.tools()] == reading
        for style in STYLES:
            assert len(toolset.schemas(style)) == len(reading)

    @pytest.mark.parametrize("name", WRITES)
    def test_a_tool_that_writes_is_answered_as_one_that_there_is_not(self, registry, library, name):
        toolset = registry.toolset(name, read_only=True)
        sent = {"name": "made", "description": "D.", "implementation": "# I"}
        if name == "native":
            del sent["implementation"]
        before = sorted(path.name for path in library.iterdir())
        for arguments in (sent, json.dumps(sent), {}):
            answer = toolset.call(WRITES[name], arguments)
            text = json.dumps(answer)
            assert "create_skill" in text
            assert answer == {
                **toolset.call("nothing", arguments),
                "error": json.loads(
                    json.dumps(toolset.call("nothing", arguments)["error"]).replace(
                        "nothing", WRITES[name]
                    )
                ),
            }
            assert "delete_skill" not in text
        assert sorted(path.name for path in library.iterdir()) == before
        assert registry.toolset(name).call(WRITES[name], sent).get("success", True) is True


class TestText:
    def test_arguments_may_be_the_text_of_a_json_object(self, native):
        for arguments in ({"name": "haiku"}, '{"name": "haiku"}', ' {"name":"haiku"}\n'):
            assert native.call("read_skill", arguments)["skill"]["ref"] == "haiku"

    @pytest.mark.parametrize("nothing", [None, "", " ", "null"])
    def test_nothing_at_all_is_an_object_without_keys_to_every_contract(
        self, registry, library, nothing
    ):
        for name in TOOLSETS:
            toolset = registry.toolset(name)
            for tool in toolset.tools():
                assert toolset.call(tool.name, nothing) == toolset.call(tool.name, {})

    def test_what_is_no_json_object_gets_the_contracts_own_error(self, registry, library):
        for text in ["{", "name=haiku", '"haiku"', "[" * 100_000, "9" * 10_000]:
            for name, tool in [
                ("native", "read_skill"),
                ("basic", "get_skill"),
                ("miniclaw", "read_skill"),
                ("ethos", "skill_view"),
                ("wave", "Skill"),
            ]:
                toolset = registry.toolset(name)
                answer, other = toolset.call(tool, text), toolset.call(tool, [])
                assert answer.keys() == other.keys()
                if name == "native":
                    assert answer["error"]["code"] == "invalid_arguments"
                    assert other["error"]["code"] == "invalid_arguments"
                else:
                    assert answer == other

    def test_what_is_nested_too_deeply_to_be_repeated_is_an_error_like_any_other(
        self, registry, library
    ):
        deep = {}
        for _ in range(5_000):
            deep = {"name": deep, "skill_name": "haiku"}
        for name in TOOLSETS:
            toolset = registry.toolset(name)
            for tool in toolset.tools():
                assert isinstance(toolset.call(tool.name, {"name": deep, "skill_name": deep}), dict)

    def test_it_says_that_it_is_no_json(self, native):
        assert native.call("read_skill", "{")["error"]["message"] == (
            "the arguments are not a JSON object"
        )


class TestNothingGiven:
    """LlamaIndex, and every strict mode, send each parameter."""

    @pytest.mark.parametrize("tool", ["list_skills", "search_skills", "read_skill", "sync_skills"])
    def test_null_is_as_good_as_leaving_it_out(self, native, tool):
        needed = {"list_skills": {}, "sync_skills": {}, "search_skills": {"query": "haiku"}}
        sent = needed.get(tool, {"name": "haiku"})
        schema = next(one for one in native.tools() if one.name == tool).parameters
        everything = {**dict.fromkeys(schema["properties"]), **sent}
        assert len(everything) > len(sent)
        assert native.call(tool, everything) == native.call(tool, sent)

    def test_an_empty_text_is_no_filter_and_no_source(self, native):
        keys = ("kind", "category", "scope", "source", "created_since", "updated_until", "tags")
        for key in keys:
            assert native.call("list_skills", {key: ""})["total"] == 2, key
        assert native.call("search_skills", {"query": "haiku", "source": ""})["total"] == 1
        made = native.call("create_skill", {"name": "made", "description": "D.", "source": ""})
        assert made["skill"]["source"] == "mine"
        native.call("delete_skill", {"name": "made"})
        assert "skill" in native.call("restore_skill", {"name": "made", "source": ""})

    def test_elsewhere_an_empty_text_is_what_it_says(self, native):
        answer = native.call("update_skill", {"name": "haiku", "description": ""})
        assert answer["error"]["code"] != "invalid_arguments"
        stale = native.call("update_skill", {"name": "haiku", "body": "x", "if_hash": ""})
        assert stale["error"]["code"] == "skill_changed_on_disk"

    def test_null_changes_no_field(self, registry, native):
        fields = dict.fromkeys(("description", "body", "tags", "kind", "files", "if_hash"))
        before = registry.read("haiku")
        native.call("update_skill", {"name": "haiku", **fields})
        assert registry.read("haiku") == before

    def test_null_for_what_is_required_is_an_error(self, native):
        assert native.call("read_skill", {"name": None})["error"]["code"] == "invalid_arguments"

    def test_null_for_what_there_is_not_is_an_error(self, native):
        error = native.call("list_skills", {"lmit": None})["error"]
        assert "unknown argument 'lmit'" in error["message"]

    def test_a_file_is_still_removed_by_null(self, native, library):
        files = {"a.txt": "a", "b.txt": "b"}
        assert "skill" in native.call("update_skill", {"name": "haiku", "files": files})
        native.call("update_skill", {"name": "haiku", "files": {"a.txt": None}})
        assert not (library / "haiku" / "a.txt").exists()
        assert (library / "haiku" / "b.txt").read_text() == "b"

    def test_miniclaws_optional_arguments_may_be_null_as_well(self, registry, library):
        entry = {"name": "city", "type": None, "description": None, "required": None}
        for parameters in (None, [entry]):
            name = "one" if parameters is None else "two"
            answer = registry.toolset("miniclaw").call(
                "create_skill",
                {
                    "name": name,
                    "description": "D.",
                    "implementation": "# I",
                    "parameters": parameters,
                },
            )
            assert answer["success"], answer


class TestPairs:
    """Strict modes know no object with any keys: files are a list there."""

    def test_files_may_be_a_list_of_paths_and_contents(self, native, library):
        files = [{"path": "a.txt", "content": "a"}, {"path": "b/c.txt", "content": "c"}]
        made = native.call("create_skill", {"name": "new", "description": "D.", "files": files})
        assert "skill" in made
        assert (library / "new" / "b" / "c.txt").read_text() == "c"
        native.call("update_skill", {"name": "new", "files": [{"path": "a.txt", "content": None}]})
        assert not (library / "new" / "a.txt").exists()

    def test_any_other_list_is_an_error(self, native, library):
        for files in [
            ["a.txt"],
            [{"path": "a.txt"}],
            [{"path": 1, "content": "x"}],
            [{"path": "a", "content": "x", "mode": 1}],
            [{"path": "a", "content": "x"}, {"path": "a", "content": "y"}],
            [{"path": ["a"], "content": "x"}],
        ]:
            answer = native.call(
                "create_skill", {"name": "new", "description": "D.", "files": files}
            )
            assert answer["error"]["code"] == "invalid_arguments"
            assert not (library / "new").exists()


class TestUnknown:
    @pytest.mark.parametrize(
        ("tool", "sent", "message"),
        [
            ("list_skills", {"lmit": 5}, "unknown argument 'lmit': did you mean 'limit'?"),
            ("read_skill", {"nme": "haiku"}, "unknown argument 'nme': did you mean 'name'?"),
            ("read_skill", {"zzzz": 1}, "known are name, offset, max_chars"),
            (
                "create_skill",
                {"name": "a", "description": "D.", "parameters": [{"name": "a", "typ": "x"}]},
                "parameters.0: unknown argument 'typ': did you mean 'type'?",
            ),
        ],
    )
    def test_it_is_named_with_the_nearest_that_there_is(self, native, tool, sent, message):
        error = native.call(tool, sent)["error"]
        assert error["code"] == "invalid_arguments"
        assert message in error["message"]

    def test_a_name_of_any_length_or_kind_makes_a_short_answer(self, native):
        for name in ("x" * 100_000, "\ud800", "\x1b[31m", ""):
            message = native.call("list_skills", {name: 1})["error"]["message"]
            assert len(message.encode()) < 2_000


class Held(Toolset):
    """A toolset whose one tool waits until it is let go."""

    name = "held"

    def __init__(self, context):
        super().__init__(context, [Tool("wait", "Waits.", {"type": "object", "properties": {}})])
        self.begun, self.free = threading.Event(), threading.Event()
        self.answer = None

    def _unknown(self, tool):
        raise AssertionError(tool)

    def _run(self, tool, arguments):
        self.begun.set()
        self.answer = {"free": self.free.wait(60), **arguments}
        return self.answer


class TestFromAnEventLoop:
    def test_the_loop_goes_on_while_a_tool_works(self, registry):
        held = Held(Context(registry.core))

        async def main():
            call = asyncio.create_task(held.acall("wait", '{"a": 1}'))
            assert await asyncio.to_thread(held.begun.wait, 60)
            assert not call.done()
            held.free.set()
            return await call

        assert asyncio.run(main()) == {"free": True, "a": 1}

    def test_a_call_whose_task_is_cancelled_runs_to_its_end(self, registry):
        held = Held(Context(registry.core))

        async def main():
            call = asyncio.create_task(held.acall("wait", {}))
            assert await asyncio.to_thread(held.begun.wait, 60)
            call.cancel()
            with pytest.raises(asyncio.CancelledError):
                await call
            assert held.answer is None
            held.free.set()

        asyncio.run(main())  # which waits for its threads
        assert held.answer == {"free": True}

    @pytest.mark.both
    def test_many_at_once_get_the_answers_of_one(self, registry, library):
        toolset = registry.toolset("native")

        async def main():
            return await asyncio.gather(
                *(toolset.acall("read_skill", {"name": "haiku"}) for _ in range(20))
            )

        assert {json.dumps(one) for one in asyncio.run(main())} == {
            json.dumps(toolset.call("read_skill", {"name": "haiku"}))
        }
