"""What a visitor copies from a page works on a machine that knows nothing of the catalogue."""

import shlex

import pytest

from tests.conftest import write_skill
from tests.people import Person
from tests.web.conftest import commands, pull_line, serving

PUBLIC = "https://skills.example.org"


@pytest.fixture
def visitor(tmp_path):
    """Somebody at another machine."""
    return Person(tmp_path / "visitor")


@pytest.fixture
def token(registry, library):
    return registry.tokens().create("anna")[1]


def typed(line):
    """Return a copied line without the name of the program."""
    program, rest = line.split(" ", 1)
    assert program == "skill-registry"
    return rest


def log_in(visitor, line, token):
    """Follow the page: put its line with the token into the file of passwords."""
    file = visitor.path("~/.netrc")
    file.write_text(line.replace("skills.example.org", "127.0.0.1").replace("YOUR-TOKEN", token))
    file.chmod(0o600)


@pytest.mark.parametrize("path", ["", "/team/skills"])
def test_a_copied_command_installs_a_skill_on_another_machine(registry, token, visitor, path):
    bearer = {"Authorization": f"Bearer {token}"}
    with serving(registry, public=f"{PUBLIC}{path}") as site:
        answer = site.ask(f"{path}/skills/sums", **bearer)
        first, *others = commands(answer)
        place = f"{PUBLIC}{path}/git/skill/mine/data/sums.git"
        assert first == f"skill-registry pull --global --agent claude-code {place}"
        assert "machine skills.example.org login git password YOUR-TOKEN" in others
        # No name leads there in a test.
        line = typed(first).replace(PUBLIC, site.base)
        refused = visitor.fails(line).err
        assert "put this line into ~/.netrc" in refused
        assert "machine 127.0.0.1 login" in refused
        assert "the password is your token" in refused
        log_in(visitor, next(one for one in others if one.startswith("machine")), token)
        visitor.types(line)
    assert "Adds up" in visitor.path("~/.claude/skills/sums/SKILL.md").read_text()
    assert visitor.path("~/.claude/skills/sums/scripts/sum.py").exists()


def test_one_copied_command_installs_all_chosen_skills_on_another_machine(
    registry, token, visitor, tmp_path
):
    write_skill(tmp_path / "other" / "sums", description="Sums otherwise.")
    registry.sync(str(tmp_path / "other"), name="other")
    bearer = {"Authorization": f"Bearer {token}"}
    with serving(registry, public=PUBLIC) as site:
        answer = site.ask("/install?ref=letters-0&ref=other/sums&ref=mine/broken", **bearer)
        lines = commands(answer)
        assert lines[0].endswith(
            " ".join(
                f"{PUBLIC}/git/skill/{one}.git" for one in ("mine/office/letters-0", "other/sums")
            )
        )
        assert "machine skills.example.org login git password YOUR-TOKEN" in lines
        assert "not listed: <a" in answer.text
        log_in(visitor, lines[-1], token)
        visitor.types(typed(lines[0]).replace(PUBLIC, site.base))
    assert "Sums otherwise." in visitor.path("~/.claude/skills/sums/SKILL.md").read_text()
    assert visitor.path("~/.claude/skills/letters-0/SKILL.md").exists()


def test_the_command_of_a_version_installs_that_version_on_another_machine(
    registry, token, visitor, library
):
    registry.add_version("sums", "1.0")
    document = library / "data" / "sums" / "SKILL.md"
    document.write_text(document.read_text().replace("Adds up", "Sums up"))
    registry.sync()
    with serving(registry, public=PUBLIC) as site:
        (first, *_) = commands(site.ask("/skills/sums@1.0", Authorization=f"Bearer {token}"))
        place = shlex.quote(f"{PUBLIC}/git/skill/mine/data/sums.git#sums/1.0")
        assert first == f"skill-registry pull --global --agent claude-code {place}"
        log_in(visitor, "machine 127.0.0.1 login git password YOUR-TOKEN", token)
        visitor.types(typed(first).replace(PUBLIC, site.base))
    assert "Adds up" in visitor.path("~/.claude/skills/sums/SKILL.md").read_text()


def test_a_page_of_this_machine_names_the_database(registry, library):
    for public in (None, "http://localhost:9"):
        with serving(registry, public=public) as site:
            answer = site.get("/skills/sums")
            assert commands(answer)[0] == pull_line(registry, "sums")
            assert "netrc" not in answer.text


def test_the_address_of_a_server_is_synced_with_the_token_from_the_file_of_passwords(
    registry, token, visitor
):
    with serving(registry, public=PUBLIC) as site:
        visitor.variables["SKILL_REGISTRY_TOKEN"] = token  # only for `publish --to`
        refused = visitor.fails(f"sync {site.base}").err
        assert "machine 127.0.0.1 login" in refused
        assert "the password is your token" in refused
        assert registry.tokens().list()[0].used_at is None
        log_in(visitor, "machine 127.0.0.1 login git password YOUR-TOKEN", token)
        assert "4 added" in visitor.types(f"sync {site.base} --name team").out
        assert "sums" in visitor.types("list").out


def test_a_password_is_not_enough_to_change_something_or_for_pages(registry, token):
    from base64 import b64encode

    basic = {"Authorization": f"Basic {b64encode(f'x:{token}'.encode()).decode()}"}
    with serving(registry, mcp=True, public=PUBLIC) as site:
        assert site.ask("/.well-known/agent-skills/index.json", **basic).status == 200
        assert site.ask("/artifacts/sums/skill.tar.gz", **basic).status == 200
        for path in ("/", "/index.json", "/mcp", "/proposals", "/api/v1/skills", "/skills/sums"):
            assert site.ask(path, **basic).status == 401, path
            assert site.ask(path, "POST", b"{}", **basic).status == 401, path
        assert site.ask("/artifacts/sums/skill.tar.gz", "POST", b"", **basic).status == 405
