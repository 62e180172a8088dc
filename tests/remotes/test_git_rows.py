"""What a row of the database says of a checkout is a hint: nothing foreign is written or removed."""

import os

import pytest
from sqlalchemy import text

from registry.errors import RegistryError
from registry.settings import data_folder
from tests.remotes.upstream import Upstream, all_checkouts, checkout_of, files_of


def say(registry, name="team", **facts):
    """Let the row of a source say something else, as whoever may write the database can."""
    told = ", ".join(f"{key} = :{key}" for key in facts)
    with registry.core.writer.transaction() as connection:
        connection.execute(
            text(f"UPDATE sources SET {told} WHERE name = :name"), {**facts, "name": name}
        )


@pytest.fixture
def evil(tmp_path):
    made = Upstream(tmp_path / "evil")
    made.skill("skills/evil", description="Does harm.")
    made.commit()
    return made


@pytest.fixture
def outside(tmp_path):
    folder = tmp_path / "outside"
    (folder / "tree").mkdir(parents=True)
    (folder / "tree" / "mine.txt").write_text("mine")
    return folder


def test_a_row_with_another_address_is_refused(registry, upstream, evil):
    registry.sync(upstream.url)
    held = files_of(checkout_of(registry))
    say(registry, url=evil.url)
    report = registry.sync()
    assert report.sources[0].outcome == "refused"
    assert "the checkout of another source" in report.sources[0].message
    assert files_of(checkout_of(registry)) == held


def test_a_row_that_is_pinned_to_what_a_stranger_offers_is_refused(registry, upstream):
    registry.sync(upstream.url)
    held = files_of(checkout_of(registry))
    upstream.skill("skills/evil")
    commit = upstream.commit("proposed")
    upstream.git("update-ref", "-d", "refs/heads/proposed", at=upstream.bare)
    upstream.git("update-ref", "refs/pull/1/head", commit, at=upstream.bare)
    for pin in (commit, "refs/pull/1/head"):
        say(registry, pin=pin)
        assert registry.sync().sources[0].outcome == "refused"
        assert files_of(checkout_of(registry)) == held
    say(registry, pin=None)
    registry.update_source("team", ref=commit)  # by the user it may be
    assert "evil" in [one.name for one in registry.list()]


@pytest.mark.parametrize("place", ["other", "outside", "/etc", "..", ".", "tree", "", "../../x"])
def test_a_row_with_another_folder_writes_and_removes_nothing_there(
    registry, upstream, evil, outside, place
):
    registry.sync(upstream.url)
    registry.sync(evil.url, name="other")
    above = data_folder() / "checkouts"
    path = {
        "other": str(checkout_of(registry, "other") / "tree"),
        "outside": str(outside / "tree"),
        "/etc": "/etc",
    }.get(place, f"{above}/{place}/tree")
    held = files_of(outside), files_of(data_folder() / "checkouts"), sorted(os.listdir("/etc"))
    if place == "other":
        say(registry, "other", path=f"{path}-gone")
    upstream.skill("skills/alpha", description="Newer.")
    upstream.commit()
    say(registry, path=path)
    report = registry.sync("team")
    assert report.sources[0].outcome in {"refused", "missing", "empty"}
    with pytest.raises(RegistryError):
        registry.update_source("team", ref="main")
    registry.remove_source("team")
    now = files_of(outside), files_of(data_folder() / "checkouts"), sorted(os.listdir("/etc"))
    assert now == held


ORDERS = [
    "ext::touch {mark}",
    "--upload-pack=touch {mark}",
    "-u touch {mark};",
    "ssh://-oProxyCommand=touch%20{mark}/x",
    "file:///x --upload-pack=touch\n{mark}",
    "http://example.com/x.git",
    "\0",
    "x" * 5000,
    "https://[",
]


def test_a_row_with_an_address_that_is_an_order_is_refused(registry, upstream, tmp_path):
    registry.sync(upstream.url)
    for home in all_checkouts():  # nor where nothing says what it is a checkout of
        (home / "asked.json").unlink()
    mark = tmp_path / "mark"
    for url in ORDERS:
        say(registry, url=url.format(mark=mark))
        report = registry.sync()
        assert report.sources[0].outcome in {"refused", "offline"}, url
        assert not mark.exists(), url
        (asked,) = registry.sources_asked(registry.sources())
        assert asked.remote.behind is None, url
        assert not mark.exists(), url


def test_a_row_of_a_kind_that_there_is_not_is_refused(registry, upstream):
    registry.sync(upstream.url)
    for kind in ("evil", "os", "", "git\0"):
        say(registry, kind=kind)
        assert registry.sync().sources[0].outcome == "refused"


def test_a_row_with_a_part_elsewhere_is_refused(registry, upstream):
    registry.sync(upstream.url)
    (checkout_of(registry) / "asked.json").unlink()
    (checkout_of(registry) / "manifest.json").unlink()
    for part in ("..", "/etc", "a/../../..", "\x1b"):
        say(registry, part=part)
        assert registry.sync().sources[0].outcome == "refused", part


def test_a_checkout_that_others_may_write_is_refused(registry, upstream):
    registry.sync(upstream.url)
    checkout_of(registry).chmod(0o777)
    report = registry.sync()
    assert report.sources[0].outcome == "refused"
    assert "others may open it" in report.sources[0].message


@pytest.mark.parametrize("part", ["tree", "state", "home"])
def test_a_link_in_the_place_of_a_checkout_is_refused(registry, upstream, outside, part):
    registry.sync(upstream.url)
    home = checkout_of(registry)
    place = home if part == "home" else home / part
    place.rename(place.with_name("away"))
    place.symlink_to(outside)
    held = files_of(outside)
    assert registry.sync().sources[0].outcome != "ok"
    registry.remove_source("team")
    assert files_of(outside) == held
