"""A first import that is published in parts: what is seen of all others before it is shown."""

from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import update

from registry.api import SkillRegistry
from registry.db.schema import skills, sources
from registry.db.visibility import IMPORTING, RESOLVING
from registry.db.write.names import refresh_names
from registry.db.write.sources import begin_resolving, finish_importing, shared_names
from registry.settings import Settings
from tests.conftest import write_skill

NAMES = "review", "deploy", "test", "notes"
SOURCES = (
    ("mine", "personal", "review deploy test notes"),
    ("yours", "personal", "review deploy notes"),
    ("team", "team", "review test notes"),
    ("project", "project", "deploy test"),
)
SEEN = """
SELECT s.id FROM skills s JOIN sources src ON src.id = s.source_id WHERE src.enabled = 1
AND s.live = 1 AND s.shadowed = 0 AND s.status IN ('ok', 'warning') AND s.held = 0 ORDER BY s.id
"""
KNOWN = "SELECT id, ref, bare, shadowed, copies FROM skills WHERE live = 1 ORDER BY id"


pytestmark = pytest.mark.server


@pytest.fixture
def library(server_database, tmp_path):
    """Copies, others of the same name, twins in one source: of each some."""
    registry = SkillRegistry.open(server_database, settings=Settings(), workdir=tmp_path)
    for source, scope, names in SOURCES:
        for name in names.split():
            same = (name, source) != ("notes", "team") and name != "deploy"
            write_skill(tmp_path / source / name, description="Same." if same else f"Of {source}.")
        write_skill(tmp_path / source / "twin", name="review", description="Same.")
        registry.sync(str(tmp_path / source), name=source, scope=scope)
    with registry:
        yield registry


def seen_without_the_hidden(library):
    """Return what would be seen if sources that are not shown yet were not there."""
    with library.core.writer.transaction() as connection:
        back = connection.begin_nested()
        hidden = sources.c.enabled.in_([IMPORTING, RESOLVING])
        connection.execute(update(sources).where(hidden).values(enabled=0))
        refresh_names(connection, None)
        found = connection.exec_driver_sql(SEEN).all()
        back.rollback()
    return [tuple(row) for row in found]


def afresh(library):
    """Work all out anew, and return what is known then."""
    with library.core.writer.transaction() as connection:
        refresh_names(connection, None)
    return library.core.reader.rows(KNOWN)


class Arrivals:
    """Sources that arrive, join in parts and are shown, in any order, while others change skills."""

    def __init__(self, library):
        self.library, self.transaction = library, library.core.writer.transaction
        self.ids = [number for (number,) in library.core.reader.rows("SELECT id FROM sources")]
        self.steps = dict.fromkeys(self.ids, 0)
        self.left = {}
        with self.transaction() as connection:
            connection.execute(update(sources).values(enabled=IMPORTING))
            connection.execute(update(skills).values(held=0))
            refresh_names(connection, None)

    def go_on(self, source):
        with self.transaction() as connection:
            if self.steps[source] == 0:
                assert begin_resolving(connection, [source]) == [source]
                self.left[source] = shared_names(connection, [source])
                self.steps[source] = 1
            elif self.left[source]:
                refresh_names(connection, [self.left[source].pop()])
            else:
                finish_importing(connection, [source])
                self.steps[source] = 2

    def change(self, name):
        """Let somebody hold back, or no longer, a skill of a name that is seen."""
        with self.transaction() as connection:
            shown = sources.select().with_only_columns(sources.c.id).where(sources.c.enabled == 1)
            which = skills.c.name == name, skills.c.source_id.in_(shown)
            connection.execute(update(skills).where(*which).values(held=1 - skills.c.held))
            refresh_names(connection, [name])

    @property
    def under_way(self):
        return [source for source, step in self.steps.items() if step < 2]


@settings(
    max_examples=15,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(seed=st.integers(0, 1 << 32))
def test_what_joins_hides_nothing_before_it_is_shown_and_all_is_right_then(library, seed):
    # How many steps there are depends on what the server holds, so it can't be drawn beforehand.
    chance = Random(seed)
    arrivals = Arrivals(library)
    while arrivals.under_way:
        what = chance.choice([*arrivals.under_way, *NAMES])
        if isinstance(what, str):
            arrivals.change(what)
        else:
            arrivals.go_on(what)
        assert library.core.reader.rows(SEEN) == seen_without_the_hidden(library)
    known = library.core.reader.rows(KNOWN)
    assert known == afresh(library)


def test_what_is_about_to_be_shown_has_its_refs_and_copies_already(library):
    arrivals = Arrivals(library)
    last = arrivals.ids[0]  # by its rank in the middle
    for source in arrivals.ids[1:]:
        while source in arrivals.under_way:
            arrivals.go_on(source)
    arrivals.go_on(last)
    while arrivals.left[last]:
        arrivals.go_on(last)
    named = "SELECT id, ref, copies FROM skills ORDER BY id"
    before = library.core.reader.rows(named)
    arrivals.go_on(last)
    assert arrivals.under_way == []
    assert library.core.reader.rows(named) == before
