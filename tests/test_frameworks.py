"""Our tools in the frameworks themselves, without a network and without a model."""

import asyncio
import importlib.util
import json
import os
import re
import subprocess
import sys

import pytest

from registry.toolsets.open import TOOLSETS
from tests.conftest import REPOSITORY
from tests.pages import script_of, told

PACKAGES = ("agents", "fastapi", "langchain_core", "pydantic_ai", "pyright")
MISSING = [name for name in PACKAGES if importlib.util.find_spec(name) is None]

pytestmark = [
    pytest.mark.file,
    pytest.mark.skipif(
        bool(MISSING), reason=f"needs the dependency group 'frameworks': no {', '.join(MISSING)}"
    ),
]

PAGE = REPOSITORY / "docs" / "how-to" / "use-with-frameworks.md"


def test_the_page_prints_what_it_says(tmp_path, monkeypatch, capsys):
    """In this process: the other tests import the frameworks, too, which takes seconds."""
    assert len(told(PAGE)) > 8
    monkeypatch.chdir(tmp_path)
    exec(compile(script_of(PAGE), PAGE.name, "exec"), {"__name__": "__main__"})
    assert capsys.readouterr().out.splitlines() == told(PAGE)


@pytest.fixture
def settings_of_mypy(request, tmp_path):
    """Ours; but what it would be told of the frameworks takes it half a minute to find out."""
    ours = REPOSITORY / "pyproject.toml"
    if request.config.getoption("--every-step"):
        return ours
    unread = ["agents.*", "langchain_core.*", "openai.*", "pydantic_ai.*"]
    alone = tmp_path / "pyproject.toml"
    alone.write_text(
        f"{ours.read_text()}\n"
        f'[[tool.mypy.overrides]]\nmodule = {json.dumps(unread)}\nfollow_imports = "skip"\n'
    )
    return alone


def test_the_types_of_the_page_are_right(request, tmp_path, settings_of_mypy):
    """As mypy sees them, which takes the frameworks on trust; ``--every-step``: and pyright."""
    page = tmp_path / "frameworks.py"
    script = script_of(PAGE)
    # Who finds nothing wrong with this has not looked.
    page.write_text(f"{script}number: int = registry.get('haiku').name\n")
    checkers = [("mypy", "--config-file", str(settings_of_mypy))]
    if request.config.getoption("--every-step"):
        checkers.append(("pyright", "--pythonpath", sys.executable))
    for checker in checkers:
        done = subprocess.run(
            [sys.executable, "-m", *checker, str(page)],
            capture_output=True,
            text=True,
            check=False,
            cwd=REPOSITORY,
            env={**os.environ, "MYPYPATH": str(REPOSITORY), "PYTHONPATH": str(REPOSITORY)},
        )
        found = re.findall(r"frameworks\.py:(\d+).* error", done.stdout)
        assert found == [str(script.count("\n") + 1)], done.stdout + done.stderr


@pytest.fixture
def library(registry, root, skill):
    skill("haiku", description="Write a haiku.")
    registry.sync(str(root), name="mine")
    return registry


@pytest.mark.parametrize("name", TOOLSETS)
def test_strict_schemas_are_taken_as_they_are(library, name):
    from agents import FunctionTool
    from langchain_core.tools import StructuredTool
    from langchain_core.utils.function_calling import convert_to_openai_tool

    async def nothing(*_: object, **__: object) -> str:
        return ""

    for entry in library.toolset(name).schemas("openai", strict=True):
        function = entry["function"]
        parameters = json.loads(json.dumps(function["parameters"]))
        openai = FunctionTool(
            name=function["name"],
            description=function["description"],
            params_json_schema=function["parameters"],
            on_invoke_tool=nothing,
        )
        assert openai.strict_json_schema
        assert openai.params_json_schema == parameters
        langchain = StructuredTool(
            name=function["name"],
            description=function["description"],
            args_schema=function["parameters"],
            coroutine=nothing,
        )
        assert convert_to_openai_tool(langchain, strict=True) == entry


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("name", TOOLSETS)
def test_a_model_that_makes_up_arguments_by_the_schemas_has_them_all_understood(
    library, name, strict
):
    from pydantic_ai import Agent, Tool
    from pydantic_ai.models.test import TestModel

    toolset = library.toolset(name)
    answers = {}

    def tool(entry):
        async def run(**arguments):
            answers[entry["name"]] = answer = await toolset.acall(entry["name"], arguments)
            return answer

        return Tool.from_schema(run, entry["name"], entry["description"], entry["input_schema"])

    entries = toolset.schemas("anthropic", strict=strict)
    # One after the other: what is made up is one name for all.
    for entry in entries:
        asyncio.run(Agent(TestModel(), tools=[tool(entry)]).run("Try it."))
    assert answers.keys() == {entry["name"] for entry in entries}
    # What no schema of these kinds says: bounds, in strict modes, and that one of two is needed.
    unsaid = ("minimum",) if strict else ("Give query or queries",)
    for answer in answers.values():
        told = json.dumps(answer)
        assert "invalid_arguments" not in told or any(words in told for words in unsaid)


def test_an_agent_of_the_openai_sdk_reads_a_skill_and_hears_of_its_mistakes(library):
    from agents import Agent, FunctionTool, Model, ModelResponse, RunConfig, Runner, Usage
    from openai.types.responses import (
        ResponseFunctionToolCall,
        ResponseOutputMessage,
        ResponseOutputText,
    )

    toolset = library.toolset("native")
    asked = ['{"name": "haikus", "offset": null, "max_chars": null}', "{", '{"name": "haiku"}']
    heard = []

    class Scripted(Model):
        async def get_response(self, *_, input, **__):  # noqa: A002  # as the SDK calls it
            heard.extend(one["output"] for one in input[-1:] if "output" in one)
            if len(heard) < len(asked):
                call = ResponseFunctionToolCall(
                    type="function_call",
                    call_id=str(len(heard)),
                    name="read_skill",
                    arguments=asked[len(heard)],
                )
                return ModelResponse(output=[call], usage=Usage(), response_id=None)
            said = ResponseOutputText(type="output_text", text="Done.", annotations=[])
            message = ResponseOutputMessage(
                id="1", type="message", role="assistant", status="completed", content=[said]
            )
            return ModelResponse(output=[message], usage=Usage(), response_id=None)

        def stream_response(self, *_, **__):
            raise NotImplementedError

    def tool(function):
        async def run(_context, arguments):
            return json.dumps(await toolset.acall(function["name"], arguments))

        return FunctionTool(
            name=function["name"],
            description=function["description"],
            params_json_schema=function["parameters"],
            on_invoke_tool=run,
        )

    tools = [tool(entry["function"]) for entry in toolset.schemas("openai", strict=True)]
    agent = Agent(name="helper", model=Scripted(), tools=tools)
    quiet = RunConfig(tracing_disabled=True)
    assert asyncio.run(Runner.run(agent, "Read it.", run_config=quiet)).final_output == "Done."
    codes = [json.loads(one).get("error", {}).get("code") for one in heard]
    assert codes == ["skill_not_found", "invalid_arguments", None]
    assert json.loads(heard[-1])["skill"]["ref"] == "haiku"
