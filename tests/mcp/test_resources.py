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
        with pytest.raises(Exception, match="There is no resource") as caught:
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
            with pytest.raises(Exception, match="There is no skill") as caught:
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
