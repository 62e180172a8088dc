"""Run real MCP clients against a real server, and write the table in docs/reference/mcp.md.

    python benchmarks/clients/run.py

Each Python client is installed into an environment of its own below .bench/clients, so that what
they require does not clash; those for Node come from npm, where there is one.
"""

import contextlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parent.parent.parent
HERE = Path(__file__).resolve().parent
KEPT = REPOSITORY / ".bench" / "clients"
PAGE = REPOSITORY / "docs" / "reference" / "mcp.md"
PLACE = re.compile(r"(?<=<!-- clients -->\n).*?(?=<!-- /clients -->)", re.DOTALL)

PYTHON = {
    "mcp": "mcp",
    "fastmcp": "fastmcp",
    "langchain-mcp-adapters": "langchain-mcp-adapters",
    "mcp-use": "mcp-use",
    "openai-agents": "openai-agents",
    "pydantic-ai-slim": "pydantic-ai-slim[mcp]",
    "llama-index-tools-mcp": "llama-index-tools-mcp",
}
NODE = ("@modelcontextprotocol/sdk", "@modelcontextprotocol/inspector")

SKILLS = {"pdf-forms": "Fill PDF forms.", "haiku": "Write a haiku."}


def python_of(name: str) -> Path:
    """Return the interpreter that has a client; it is installed once."""
    home = KEPT / name
    python = home / "bin" / "python"
    if not (home / "ready").exists():
        subprocess.run([sys.executable, "-m", "venv", "--clear", str(home)], check=True)
        command = [str(python), "-m", "pip", "install", "--quiet", PYTHON[name]]
        subprocess.run([*command, "--disable-pip-version-check"], check=True)
        (home / "ready").touch()
    return python


def node() -> Path | None:
    """Return the folder that has the clients for Node; None: there is no npm."""
    if shutil.which("npm") is None:
        return None
    home = KEPT / "node"
    if not (home / "ready").exists():
        home.mkdir(parents=True, exist_ok=True)
        (home / "package.json").write_text('{"private": true}')
        # The Inspector needs a newer Node than many machines have; npm chooses by what it runs on.
        for packages in (("node@22",), NODE):
            command = ["npm", "install", "--silent", "--no-fund", "--no-audit", *packages]
            subprocess.run(command, check=True, cwd=home, env=with_node(home))
        (home / "ready").touch()
    return home


def with_node(home: Path) -> dict[str, str]:
    return {**os.environ, "PATH": f"{home}/node_modules/.bin:{os.environ['PATH']}"}


@contextlib.contextmanager
def served(folder: Path) -> Iterator[tuple[str, str]]:
    """Yield two targets with the same skills: the command of a server, and the URL of another."""
    for name, description in SKILLS.items():
        (folder / "skills" / name).mkdir(parents=True)
        text = f"---\nname: {name}\ndescription: {description}\n---\n\n# Forms\n"
        (folder / "skills" / name / "SKILL.md").write_text(text)
    environ = {"HOME": str(folder), "PATH": os.environ["PATH"]}
    arguments = ["-m", "registry", "--db", str(folder / "skills.db")]
    sync = [sys.executable, *arguments, "sync", str(folder / "skills"), "--name", "mine"]
    subprocess.run(sync, check=True, capture_output=True, env=environ)
    arguments.append("mcp")
    command = {"command": sys.executable, "args": arguments, "env": environ}
    http = [sys.executable, *arguments, "--http", "127.0.0.1:18432"]
    with subprocess.Popen(http, env=environ, stderr=subprocess.PIPE, text=True) as server:
        assert server.stderr is not None
        line = server.stderr.readline()
        assert "http://127.0.0.1:18432/mcp" in line, line
        try:
            yield json.dumps(command), "http://127.0.0.1:18432/mcp"
        finally:
            server.terminate()


def tried(command: list[str], home: Path, environ: dict[str, str]) -> dict[str, str]:
    done = subprocess.run(
        command, capture_output=True, text=True, cwd=home, env=environ, timeout=300, check=False
    )
    if done.returncode or not done.stdout.strip():
        return {"connect": f"no: {done.stderr.strip().splitlines()[-1:]}"}
    found: dict[str, str] = json.loads(done.stdout.splitlines()[-1])
    return found


def clients() -> Iterator[tuple[str, list[str], Path, dict[str, str]]]:
    """Yield each client with its version, the command that runs it, and where."""
    script = str(HERE / "adapters.py")
    for name in PYTHON:
        python = str(python_of(name))
        version = f"import importlib.metadata as m; print(m.version({name!r}))"
        told = subprocess.run([python, "-c", version], capture_output=True, text=True, check=True)
        yield f"{name} {told.stdout.strip()}", [python, script, name], KEPT, dict(os.environ)
    home = node()
    if home is None:
        return
    versions = [
        json.loads((home / "node_modules" / name / "package.json").read_text())["version"]
        for name in NODE
    ]
    environ = with_node(home)
    yield (
        f"{NODE[0]} {versions[0]} (Node)",
        ["node", str(HERE / "node_sdk.mjs")],
        home,
        environ,
    )
    inspector = [sys.executable, script, "inspector"]
    yield f"{NODE[1]} {versions[1]} (its CLI)", inspector, home, environ


def cell(over: list[str]) -> str:
    """Return what came of a step over stdio and over HTTP."""
    told = [one.replace("|", "\\|").replace("\n", " ") for one in over]
    if told[0].endswith(" ms"):
        return " / ".join(told)
    return told[0] if told[0] == told[1] else f"stdio: {told[0]}; HTTP: {told[1]}"


def table() -> str:
    rows = []
    steps: list[str] = []
    for number, (name, command, home, environ) in enumerate(clients()):
        with tempfile.TemporaryDirectory() as folder, served(Path(folder)) as targets:
            results = [
                tried([*command, target, f"new-{number}-{way}"], home, environ)
                for way, target in enumerate(targets)
            ]
        steps = steps or list(results[0])
        cells = [
            cell([one.get(step, "no: it stopped before") for one in results]) for step in steps
        ]
        rows.append(f"| {name} | {' | '.join(cells)} |")
        print(rows[-1])
    head = f"| client | {' | '.join(steps)} |"
    return "\n".join([head, "|---" * (len(steps) + 1) + "|", *rows]) + "\n"


def main() -> None:
    page = PAGE.read_text(encoding="utf-8")
    made = table()
    changed, number = PLACE.subn(lambda _: f"\n{made}\n", page)
    assert number == 1, "docs/reference/mcp.md has lost the place of the table"
    PAGE.write_text(changed, encoding="utf-8")


if __name__ == "__main__":
    main()
