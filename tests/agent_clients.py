"""Run agents' own clients against the git remote, and write the table of what they can do.

    python -m tests.agent_clients        # `make clients` does this

The clients come from npm and PyPI, and are installed below .bench/clients. Each one gets a home
folder of its own, and a token only in ~/.netrc. The commands are those that the page of a skill
shows (`registry.publish.git.clients`).
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from registry import SkillRegistry
from registry.publish.git.clients import lines, repository_url
from tests.conftest import write_skill
from tests.web.conftest import serving

REPOSITORY = Path(__file__).resolve().parent.parent
HOME = REPOSITORY / ".bench" / "clients" / "agents"
PAGE = REPOSITORY / "docs" / "how-to" / "install-with-an-agents-own-client.md"
PLACE = re.compile(r"(?<=<!-- clients -->\n).*?(?=<!-- /clients -->)", re.DOTALL)
NODE = "node@22"
MARKETPLACE = "skill-registry"
FIRST, SECOND = "The first text.", "The second text."

Run = Callable[..., str]


@dataclass(frozen=True)
class Client:
    """A client that installs from git.

    ``extra`` are options that answer its questions. Installed skills are in ``folder`` of its home.
    ``pin`` is the form of an address with a tag; ``only_changed`` tells whether an update writes only
    the skills that changed.
    """

    name: str
    package: str
    folder: str
    extra: str = ""
    update: tuple[str, ...] = ()
    pin: str = ""
    only_changed: bool = True
    environ: Mapping[str, str] = field(default_factory=dict)


CLIENTS = (
    Client(
        "npx skills",
        "skills@1.7.4",
        "project",
        " --agent claude-code --yes",
        ("skills update --project --yes",),
        "{url}#alpha/1.0",
    ),
    Client(
        "openskills",
        "openskills@1.5.0",
        "project/.claude/skills",
        " --yes",
        ("openskills update",),
        only_changed=False,
    ),
    Client(
        "Claude Code",
        "@anthropic-ai/claude-code@2.1.197",
        ".claude/plugins/cache",
        update=(
            f"claude plugin marketplace update {MARKETPLACE}",
            f"claude plugin update alpha@{MARKETPLACE}",
            f"claude plugin update beta@{MARKETPLACE}",
        ),
        pin="{url}#alpha/1.0",
    ),
    Client(
        "Codex",
        "@openai/codex@0.171.0",
        ".codex/plugins/cache",
        update=(f"codex plugin marketplace upgrade {MARKETPLACE}",),
        pin="{url} --ref alpha/1.0",
        only_changed=False,
    ),
    Client(
        "GitHub Copilot CLI",
        "@github/copilot@1.0.102",
        ".copilot/installed-plugins",
        update=(
            f"copilot plugin marketplace update {MARKETPLACE}",
            f"copilot plugin update alpha@{MARKETPLACE}",
        ),
        pin="{url}#alpha/1.0",
    ),
    Client("Gemini CLI", "@google/gemini-cli@0.61.0", ".gemini/skills", " --consent"),
)
OTHERS = {
    "apm": "apm-cli==0.35.0",
    "opencode": "opencode-ai@1.18.33",
    "clawhub": "clawhub@0.23.3",
}
"""Clients that need a file, or that don't use git."""

PACKAGES = {one.name: one.package for one in CLIENTS} | OTHERS
STEPS = ("login with a token", "update", "writes only what changed", "pin a version")


def install() -> None:
    """Install all clients."""
    HOME.mkdir(parents=True, exist_ok=True)
    if shutil.which("npm") is not None:
        found = [one for one in PACKAGES.values() if "==" not in one]
        command = ["npm", "install", "--prefix", str(HOME), "--silent", "--no-fund", "--no-audit"]
        subprocess.run([*command, NODE, *found], check=True)
    for one in PACKAGES.values():
        if "==" in one and not (HOME / "python" / "ready").exists():
            subprocess.run([sys.executable, "-m", "venv", str(HOME / "python")], check=True)
            pip = [str(HOME / "python/bin/python"), "-m", "pip", "install", "--quiet", one]
            subprocess.run(pip, check=True)
            (HOME / "python" / "ready").touch()


def is_installed(name: str) -> bool:
    """Tell whether `install` installed a client."""
    package = PACKAGES[name]
    if "==" in package:
        return (HOME / "python" / "ready").exists()
    return (HOME / "node_modules" / package.rpartition("@")[0]).exists()


def runner(home: Path, environ: Mapping[str, str] | None = None) -> Run:
    """Return a function that runs a command in a new home, and returns its output."""
    (home / "project" / ".claude").mkdir(parents=True)
    given = {
        "PATH": f"{HOME}/node_modules/.bin:{HOME}/python/bin:{os.environ['PATH']}",
        "HOME": str(home),
        "TMPDIR": str(home),
        "CI": "1",
        "NO_COLOR": "1",
        "GIT_TERMINAL_PROMPT": "0",
        "DISABLE_TELEMETRY": "1",
        "DO_NOT_TRACK": "1",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "CLAWHUB_DISABLE_TELEMETRY": "1",
        **(environ or {}),
    }

    def run(command: str) -> str:
        ran = subprocess.run(
            ["sh", "-c", command.replace("npx ", "")],
            cwd=home / "project",
            env=given,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=600,
        )
        assert ran.returncode == 0, f"{command}\n{ran.stdout[-3000:]}\n{ran.stderr[-3000:]}"
        return ran.stdout

    return run


def library(folder: Path) -> SkillRegistry:
    """Return a registry with two skills, of which the first has the version 1.0."""
    for name in ("alpha", "beta"):
        skill = write_skill(folder / "skills" / name, body=f"{FIRST}\n")
        (skill / "run.sh").write_text("#!/bin/sh\n")
        (skill / "run.sh").chmod(0o755)
    registry = SkillRegistry.open(folder / "skills.db", workdir=folder)
    registry.sync(str(folder / "skills"), name="mine")
    registry.add_version("alpha", "1.0")
    return registry


def change(registry: SkillRegistry, folder: Path) -> None:
    """Change the first skill."""
    write_skill(folder / "skills" / "alpha", body=f"{SECOND}\n")
    registry.sync()


def installed(folder: Path, name: str) -> dict[str, tuple[int, str, bool]]:
    """Return the installed files of a skill: when each was written, its text, its executable bit."""
    return {
        str(path): (path.stat().st_mtime_ns, path.read_text(), bool(path.stat().st_mode & 0o100))
        for path in folder.rglob("*")
        if path.is_file() and name in path.parts and path.name in {"SKILL.md", "run.sh"}
    }


def has(folder: Path, name: str, text: str) -> bool:
    """Tell whether a skill is installed with a text and with its program."""
    files = installed(folder, name)
    is_there = any(text in found for _, found, _ in files.values())
    return is_there and any(
        path.endswith("run.sh") and runs for path, (_, _, runs) in files.items()
    )


def commands(client: Client, url: str, name: str, marketplace: str) -> str:
    """Return the command that the page of a skill shows for a client, with its answers."""
    (found,) = (said for called, said in lines(url, name, marketplace) if called == client.name)
    return found + client.extra


def tried(client: Client, folder: Path) -> dict[str, str]:
    """Return what a client can do, by `STEPS`."""
    registry = library(folder)
    _, token = registry.tokens().create("guest")

    def at_home(name: str) -> tuple[Path, Run]:
        home = folder / name
        run = runner(home, client.environ)
        (home / ".netrc").write_text(f"machine 127.0.0.1 login git password {token}\n")
        (home / ".netrc").chmod(0o600)
        return home / client.folder, run

    with registry, serving(registry, host="0.0.0.0") as site:
        found = dict.fromkeys(STEPS, "no")
        into, run = at_home("one")
        for name in ("alpha", "beta"):
            command = commands(client, repository_url(site.base), name, MARKETPLACE)
            if not has(into, name, FIRST):
                run(command if name == "alpha" else command.rpartition(" && ")[2])
            assert has(into, name, FIRST), (name, installed(into, name))
        found[STEPS[0]] = "yes"
        other = installed(into, "beta")
        change(registry, folder)
        for command in client.update:
            run(command)
        if client.update:
            assert has(into, "alpha", SECOND), installed(into, "alpha")
            found[STEPS[1]] = "yes"
            found[STEPS[2]] = "yes" if installed(into, "beta") == other else "no"
        if client.pin:
            into, run = at_home("two")
            url = repository_url(site.base, "skill/mine/alpha")
            command = commands(client, url, "alpha", "skill-alpha")
            run(command.replace(url, client.pin.format(url=url), 1))
            assert has(into, "alpha", FIRST), installed(into, "alpha")
            found[STEPS[3]] = "yes"
    return found


def tried_apm(folder: Path) -> dict[str, str]:
    """Return what apm can do with a file that names the folders of plugins."""
    registry = library(folder)
    _, token = registry.tokens().create("guest")

    def at_home(name: str, *dependencies: str) -> tuple[Path, Run]:
        run = runner(folder / name)
        (folder / name / ".netrc").write_text(f"machine 127.0.0.1 login git password {token}\n")
        text = "name: mine\nversion: 1.0.0\ndependencies:\n  apm:\n" + "".join(dependencies)
        (folder / name / "project" / "apm.yml").write_text(text)
        return folder / name / "project" / ".claude" / "skills", run

    def dependency(url: str, name: str, more: str = "") -> str:
        return f"    - git: {url}\n      path: plugins/{name}\n      allow_insecure: true\n{more}"

    options = "--allow-insecure --target claude"
    with registry, serving(registry, host="0.0.0.0") as site:
        url = repository_url(site.base)
        into, run = at_home("one", *(dependency(url, name) for name in ("alpha", "beta")))
        run(f"apm install {options}")
        assert has(into, "alpha", FIRST)
        assert has(into, "beta", FIRST)
        other = installed(into, "beta")
        change(registry, folder)
        run(f"apm install --update {options}")
        assert has(into, "alpha", SECOND), installed(into, "alpha")
        is_same = installed(into, "beta") == other
        url = repository_url(site.base, "skill/alpha")
        into, run = at_home("two", dependency(url, "alpha", "      ref: alpha/1.0\n"))
        run(f"apm install {options}")
        assert has(into, "alpha", FIRST), installed(into, "alpha")
    return dict(zip(STEPS, ("yes", "yes", "yes" if is_same else "no", "yes"), strict=True))


def tried_opencode(folder: Path) -> dict[str, str]:
    """Return what opencode can do. It sends no token, so the server is open."""
    with library(folder) as registry, serving(registry) as site:
        run = runner(folder / "one")
        settings = {"skills": {"urls": [f"{site.base}/.well-known/skills/"]}}
        (folder / "one" / "project" / "opencode.json").write_text(json.dumps(settings))
        listed = {one["name"]: one for one in json.loads(run("opencode debug skill"))}
        assert FIRST in listed["alpha"]["content"]
        other = Path(listed["beta"]["location"])
        before = other.stat()
        change(registry, folder)
        listed = {one["name"]: one for one in json.loads(run("opencode debug skill"))}
        assert SECOND in listed["alpha"]["content"]
        is_same = other.exists() and other.stat().st_mtime_ns == before.st_mtime_ns
    return dict(zip(STEPS, ("no", "yes", "yes" if is_same else "no", "no"), strict=True))


def tried_clawhub(folder: Path) -> dict[str, str]:
    """Return what ClawHub's client can do."""
    registry = library(folder)
    _, token = registry.tokens().create("guest")
    with registry, serving(registry, host="0.0.0.0") as site:
        run = runner(folder / "one")
        to = f"clawhub --no-input --registry {site.base}"
        run(f"{to} login --token {token} --no-browser")
        for name in ("alpha", "beta"):
            run(f"{to} install {name}")
        into = folder / "one" / "project"
        other = installed(into, "beta")
        assert any(FIRST in text for _, text, _ in other.values())
        change(registry, folder)
        run(f"{to} update --all")
        assert any(SECOND in text for _, text, _ in installed(into, "alpha").values())
        is_same = installed(into, "beta") == other
        into = folder / "two" / "project"
        run = runner(folder / "two")
        run(f"{to} login --token {token} --no-browser")
        run(f"{to} install alpha --version 0.0.1")
        assert any(FIRST in text for _, text, _ in installed(into, "alpha").values())
    return dict(zip(STEPS, ("yes", "yes", "yes" if is_same else "no", "yes"), strict=True))


TRIALS: dict[str, Callable[[Path], dict[str, str]]] = {
    **{one.name: lambda folder, one=one: tried(one, folder) for one in CLIENTS},
    "apm": tried_apm,
    "opencode": tried_opencode,
    "clawhub": tried_clawhub,
}

EXPECTED = {
    **{
        one.name: {
            STEPS[0]: "yes",
            STEPS[1]: "yes" if one.update else "no",
            STEPS[2]: "yes" if one.update and one.only_changed else "no",
            STEPS[3]: "yes" if one.pin else "no",
        }
        for one in CLIENTS
    },
    "apm": dict(zip(STEPS, ("yes", "yes", "yes", "yes"), strict=True)),
    "opencode": dict(zip(STEPS, ("no", "yes", "yes", "no"), strict=True)),
    "clawhub": dict(zip(STEPS, ("yes", "yes", "yes", "yes"), strict=True)),
}


def say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def table(names: list[str]) -> str:
    rows = []
    for name in names:
        if not is_installed(name):
            say(f"{name}: not installed, because there is no npm")
            continue
        with tempfile.TemporaryDirectory(prefix="skill-registry-") as folder:
            try:
                found = TRIALS[name](Path(folder))
            except AssertionError as error:
                say(f"{name}: {error}")
                found = dict.fromkeys(STEPS, "failed")
        package, _, version = re.sub("==", "@", PACKAGES[name]).rpartition("@")
        rows.append(f"| {name} (`{package}` {version}) | {' | '.join(found.values())} |")
        say(rows[-1])
    return "\n".join([f"| client | {' | '.join(STEPS)} |", f"|---{'|---' * len(STEPS)}|", *rows])


def main() -> None:
    chosen = sys.argv[1:]
    if not chosen:
        install()
    made = table(chosen or list(TRIALS))
    if not chosen and all(map(is_installed, TRIALS)):
        page = PAGE.read_text(encoding="utf-8")
        changed, number = PLACE.subn(lambda _: f"\n{made}\n\n", page)
        assert number == 1, f"{PAGE} has lost the place of the table"
        PAGE.write_text(changed, encoding="utf-8")


if __name__ == "__main__":
    main()
