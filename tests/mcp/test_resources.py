"""Skills as resources, and by the extension for skills (SEP-2640)."""

import base64
import hashlib
from typing import Literal

import mcp_types as types
import pytest

pytestmark = pytest.mark.reads

EXTENSION = "io.modelcontextprotocol/skills"


class ListSkills(types.Request[types.PaginatedRequestParams, Literal["skills/list"]]):
    method: Literal["skills/list"] = "skills/list"


class SkillParams(types.RequestParams):
    uri: str


class GetSkill(types.Request[SkillParams, Literal["skills/get"]]):
    method: Literal["skills/get"] = "skills/get"


class DirectoryParams(types.PaginatedRequestParams):
    uri: str


class ReadDirectory(types.Request[DirectoryParams, Literal["resources/directory/read"]]):
    method: Literal["resources/directory/read"] = "resources/directory/read"


class Children(types.Result):
    resources: list
    nextCursor: str | None = None
    resultType: str


class Listed(types.Result):
    skills: list
    nextCursor: str | None = None
    ttlMs: int
    cacheScope: str
    resultType: str


class Got(types.Result):
    skill: dict
    ttlMs: int
    cacheScope: str
    resultType: str


async def listed(client):
    params = types.PaginatedRequestParams()
    return await client.session.send_request(ListSkills(params=params), Listed)


async def got(client, uri):
    params = SkillParams(uri=uri)
    return await client.session.send_request(GetSkill(params=params), Got)


async def children(client, uri, cursor=None):
    params = DirectoryParams(uri=uri, cursor=cursor)
    return await client.session.send_request(ReadDirectory(params=params), Children)


async def bytes_at(client, uri):
    (part,) = (await client.read_resource(uri)).contents
    return base64.b64decode(part.blob) if hasattr(part, "blob") else part.text.encode()


def test_every_skill_that_models_see_is_a_resource(talk, library, mode):
    async def conversation(client):
        found = {one.name: one for one in (await client.list_resources()).resources}
        assert "secret" not in found
        assert "broken" not in found
        assert len(found) == 11
        assert str(found["pdf-forms"].uri) == "skill://mine/pdf-forms/SKILL.md"
        assert str(found["inner"].uri) == "skill://mine/outer/inner/SKILL.md"
        other = str(found["other-name"].uri)
        assert other == "skill://mine/folder-of-another-name/%40/other-name/SKILL.md"
        for resource in found.values():
            data = await bytes_at(client, str(resource.uri))
            assert len(data) == resource.size

    talk(conversation, ("http", mode))


def test_supporting_files_are_read_as_text_or_bytes(talk, library, mode):
    async def conversation(client):
        base = "skill://mine/pdf-forms"
        assert await bytes_at(client, f"{base}/scripts/fill.py") == b"print(1)\n"
        assert await bytes_at(client, f"{base}/logo.png") == bytes(range(256))

    talk(conversation, ("http", mode))


@pytest.mark.parametrize(
    "uri",
    [
        "skill://mine/nothing/SKILL.md",
        "skill://mine/pdf-forms/nothing.txt",
        "skill://mine/pdf-forms/../skill-0/SKILL.md",
        "skill://mine/pdf-forms/..%2fskill-0%2fSKILL.md",
        "skill://mine/secret/SKILL.md",
        "skill://mine/broken/SKILL.md",
        "skill://nowhere/pdf-forms/SKILL.md",
        "skill://mine/",
        "skill://",
        "file:///etc/passwd",
        "skill://mine/" + "a/" * 500 + "SKILL.md",
    ],
)
def test_what_is_not_served_is_invalid_and_tells_no_path(talk, library, uri):
    async def conversation(client):
        with pytest.raises(Exception, match="No resource") as caught:
            await client.read_resource(uri)
        assert str(library) not in str(caught.value)
        assert caught.value.error.code == -32602
        assert caught.value.error.data == {"uri": uri}

    talk(conversation)


def test_a_template_is_completed(talk, library):
    async def conversation(client):
        (template,) = (await client.list_resource_templates()).resource_templates
        ref = types.ResourceTemplateReference(uri=template.uri_template)
        sources = await client.complete(ref, {"name": "source", "value": "m"})
        assert sources.completion.values == ["mine"]
        paths = await client.complete(
            ref, {"name": "path", "value": "pdf"}, context_arguments={"source": "mine"}
        )
        assert paths.completion.values == ["pdf-forms/SKILL.md"]

    talk(conversation)


def test_the_extension_lists_skills_with_front_matter_and_a_complete_manifest(talk, library, mode):
    async def conversation(client):
        found = await listed(client)
        assert (found.resultType, found.cacheScope) == ("complete", "private")
        assert found.ttlMs == 0
        skills = {one["uri"]: one for one in found.skills}
        assert len(skills) == 11
        for uri, one in skills.items():
            assert uri.split("/")[-2] == one["frontmatter"]["name"]
            assert uri in {file["uri"] for file in one["resources"]}
            for file in one["resources"]:
                data = await bytes_at(client, file["uri"])
                assert file["size"] == len(data)
                assert file["digest"] == f"sha256:{hashlib.sha256(data).hexdigest()}"
        assert skills["skill://mine/typed/SKILL.md"]["frontmatter"]["metadata"] == {
            "version": "1.10",
            "when": "2026-01-02",
            "on": "yes",
            "n": "3",
        }
        files = [f["uri"] for f in skills["skill://mine/outer/SKILL.md"]["resources"]]
        assert files == ["skill://mine/outer/SKILL.md", "skill://mine/outer/inner/SKILL.md"]
        one = await got(client, "skill://mine/pdf-forms/SKILL.md")
        assert one.skill == skills["skill://mine/pdf-forms/SKILL.md"]
        assert one.resultType == "complete"

    talk(conversation, ("http", mode))


def test_the_extension_refuses_what_it_does_not_know(talk, library):
    async def conversation(client):
        for uri in ("skill://mine/nothing/SKILL.md", "skill://mine/pdf-forms/logo.png", "x"):
            with pytest.raises(Exception, match="No skill") as caught:
                await got(client, uri)
            assert caught.value.error.code == -32602
            assert caught.value.error.data == {"uri": uri}

    talk(conversation)


def test_a_skill_that_the_extension_cannot_carry_is_left_out_there_only(
    talk, registry, library, skill
):
    skill("Not_Allowed")
    skill("repaired", description="with: a colon")
    registry.sync()

    async def conversation(client):
        uris = {one["uri"].split("/")[-2] for one in (await listed(client)).skills}
        assert not uris & {"Not_Allowed", "repaired"}
        names = {one.name for one in (await client.list_resources()).resources}
        assert {"Not_Allowed", "repaired"} <= names

    talk(conversation)


def test_many_skills_come_in_pages(talk, registry, library, skill):
    for number in range(230):
        skill(f"many-{number:03}")
    registry.sync()

    async def conversation(client):
        seen, cursor = [], None
        while True:
            page = await client.list_resources(cursor=cursor)
            seen += [str(one.uri) for one in page.resources]
            cursor = page.next_cursor
            if cursor is None:
                break
        assert len(seen) == len(set(seen)) == 241
        with pytest.raises(Exception, match="Unknown cursor"):
            await client.list_resources(cursor="nonsense")

    talk(conversation)


def test_a_folder_of_a_skill_is_read_child_by_child(talk, library, mode):
    async def conversation(client):
        base = "skill://mine/pdf-forms"
        found = {one["name"]: one for one in (await children(client, base)).resources}
        assert list(found) == ["pdf-forms", "logo.png", "scripts"]
        assert found["pdf-forms"] == {
            "uri": f"{base}/SKILL.md",
            "name": "pdf-forms",
            "description": "Fill PDF forms.",
            "mimeType": "text/markdown",
            "size": found["pdf-forms"]["size"],
        }
        assert found["logo.png"] == {
            "uri": f"{base}/logo.png",
            "name": "logo.png",
            "mimeType": "image/png",
            "size": 256,
        }
        scripts = {"uri": f"{base}/scripts", "name": "scripts", "mimeType": "inode/directory"}
        assert found["scripts"] == scripts
        (script,) = (await children(client, scripts["uri"])).resources
        assert script["uri"] == f"{base}/scripts/fill.py"
        assert await bytes_at(client, script["uri"]) == b"print(1)\n"

    talk(conversation, ("http", mode))


def test_all_that_a_manifest_has_is_found_from_folder_to_folder(talk, library):
    async def below(client, uri):
        found = set()
        for one in (await children(client, uri)).resources:
            is_folder = one["mimeType"] == "inode/directory"
            found |= await below(client, one["uri"]) if is_folder else {one["uri"]}
        return found

    async def conversation(client):
        skills = (await listed(client)).skills
        assert len(skills) == 11
        for skill in skills:
            uri = skill["uri"].removesuffix("/SKILL.md")
            files = {file["uri"] for file in skill["resources"]}
            assert await below(client, uri) == files

    talk(conversation)


@pytest.mark.parametrize(
    "uri",
    [
        "skill://mine/pdf-forms/SKILL.md",
        "skill://mine/pdf-forms/scripts/fill.py",
        "skill://mine/pdf-forms/",
        "skill://mine/pdf-forms/scripts/",
        "skill://mine/pdf-forms//scripts",
        "skill://mine/pdf-forms/..",
        "skill://mine/pdf-forms/../skill-0",
        "skill://mine/pdf-forms/nothing",
        "skill://mine/pdf-forms/script",
        "skill://mine/secret",
        "skill://mine/broken",
        "skill://mine/folder-of-another-name",
        "skill://mine",
        "skill://",
        "",
        "file:///etc",
    ],
)
def test_what_is_no_folder_of_a_skill_is_invalid(talk, library, uri):
    async def conversation(client):
        with pytest.raises(Exception, match="No directory") as caught:
            await children(client, uri)
        assert caught.value.error.code == -32602
        assert caught.value.error.data == {"uri": uri}

    talk(conversation)


def test_a_folder_with_many_files_is_read_page_by_page(talk, registry, root, library):
    folder = root / "pdf-forms" / "many"
    folder.mkdir()
    for number in range(150):
        (folder / f"{number:03} %.txt").write_text("x")
    registry.sync()

    async def conversation(client):
        uri = "skill://mine/pdf-forms/many"
        first = await children(client, uri)
        assert (len(first.resources), first.nextCursor) == (100, "100")
        second = await children(client, uri, first.nextCursor)
        assert (len(second.resources), second.nextCursor) == (50, None)
        names = [one["name"] for one in (*first.resources, *second.resources)]
        assert names == sorted(path.name for path in folder.iterdir())
        assert await bytes_at(client, second.resources[-1]["uri"]) == b"x"
        for cursor in ("-1", "x"):
            with pytest.raises(Exception, match="Unknown cursor"):
                await children(client, uri, cursor)

    talk(conversation, ("http", "auto"))


def test_the_extension_says_that_it_reads_folders(talk, library, way):
    async def conversation(client):
        assert client.server_capabilities.extensions[EXTENSION] == {"directoryRead": True}

    talk(conversation, way)
