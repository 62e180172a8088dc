"""What a team's writer does that meets what it does not see: it is told in words, and no more."""

import pytest

from registry.errors import SourceExists
from tests.conftest import write_skill

pytestmark = pytest.mark.server


@pytest.fixture
def world(world):
    world.add("bianca", "write")
    world.add("rosa", "write", "red")
    return world


@pytest.fixture
def rosa(world, tmp_path):
    """One who does not see the source "plans", which is the blue team's."""
    write_skill(tmp_path / "bianca" / "plans" / "plan")
    bianca = world.open("bianca")
    bianca.add_source(str(tmp_path / "bianca" / "plans"))
    bianca.update_source("plans", team="blue")
    bianca.sync()
    return world.open("rosa")


def test_a_name_that_an_unseen_source_has_is_taken(rosa, tmp_path):
    write_skill(tmp_path / "rosa" / "mine" / "own")
    folder = str(tmp_path / "rosa" / "mine")
    for attempt in (
        lambda: rosa.add_source(folder, name="plans"),
        lambda: rosa.update_source(rosa.add_source(folder).name, new_name="plans"),
    ):
        with pytest.raises(SourceExists) as refused:
            attempt()
        assert str(refused.value) == "A source 'plans' already exists; give it another name."
    assert [source.name for source in rosa.sources()] == ["mine"]


def test_a_folder_that_is_called_as_an_unseen_source_gets_a_name_of_its_own(rosa, tmp_path):
    write_skill(tmp_path / "rosa" / "plans" / "own")
    assert rosa.sync(str(tmp_path / "rosa" / "plans")).added == ("own",)
    assert [source.name for source in rosa.sources()] == ["rosa-plans"]
