"""All skills in turn, and filters as keywords."""

from dataclasses import fields

import pytest

from registry.catalog import listing
from registry.db.read.listing import FilterArguments, Filters
from registry.errors import SourceNotFound, UsageProblem
from tests.conftest import write_skill

STEP = 3
NUMBER = 11


@pytest.fixture
def filled(registry, root, monkeypatch):
    """Eleven skills in four steps; some of one time, one name in two folders, two kinds."""
    monkeypatch.setattr(listing, "STEP", STEP)
    for number in range(NUMBER):
        write_skill(
            root / f"skill-{number:02}",
            name="twin" if number in {4, 5} else None,
            extra=f"created_at: 2024-0{number % 3 + 1}-01\ntags: [{'even' if number % 2 == 0 else 'odd'}]\n",
            age=1_700_000_000 + number // 4 * 1000,
        )
    registry.sync(str(root))
    return registry


def test_all_in_turn_are_those_of_a_listing_in_its_order(filled):
    for sort in ["name", "created", "updated"]:
        for reverse in [False, True]:
            for wanted in [{}, {"tags": ["odd"]}, {"all": True}, {"created_since": "2024-02-01"}]:
                listed = filled.list(Filters(**wanted), sort=sort, reverse=reverse)
                assert len(listed) > STEP
                assert list(filled.iter(sort=sort, reverse=reverse, **wanted)) == list(listed)
                assert list(filled.iter(Filters(**wanted), sort=sort, reverse=reverse)) == list(
                    listed
                )


@pytest.mark.parametrize("reverse", [False, True])
def test_what_is_deleted_or_added_meanwhile_moves_nothing(filled, root, reverse):
    places = [(skill.source, skill.folder) for skill in filled.iter(reverse=reverse)]
    going = filled.iter(reverse=reverse)
    seen = [next(going) for _ in range(STEP)]
    for skill in seen:
        filled.delete(f"{skill.source}/{skill.folder}")
    write_skill(root / ("aaa" if not reverse else "zzz"))  # before all that was seen
    write_skill(root / ("zzz" if not reverse else "aaa"))  # behind all that there is
    filled.sync()
    rest = [(skill.source, skill.folder) for skill in going]
    assert rest[:-1] == places[STEP:]
    assert rest[-1][1] == ("zzz" if not reverse else "aaa")


def test_what_is_wrong_is_said_before_the_first_is_asked_for(filled):
    with pytest.raises(UsageProblem, match="sort"):
        filled.iter(sort="nosuch")
    with pytest.raises(SourceNotFound):
        filled.iter(source="nosuch")


def test_a_registry_that_is_closed_meanwhile_says_so(filled):
    going = filled.iter()
    next(going)
    filled.close()
    with pytest.raises(UsageProblem, match="closed"):
        list(going)


def test_each_filter_is_a_keyword_too():
    assert [one.name for one in fields(Filters)] == list(FilterArguments.__annotations__)


def test_keywords_filter_as_the_value_does(filled):
    odd = Filters(tags=["odd"])
    assert filled.list(tags=["odd"]) == filled.list(odd)
    assert 0 < filled.list(tags=["odd"]).total < NUMBER
    assert filled.search("step", tags=["odd"]) == filled.search("step", odd)
    assert 0 < filled.search("step", tags=["odd"]).total < filled.search("step").total


@pytest.mark.parametrize("name", ["list", "iter", "search"])
def test_filters_given_in_both_ways_or_unknown_ones_are_refused(filled, name):
    def ask(*filters, **wanted):
        return getattr(filled, name)(*(["step"] if name == "search" else []), *filters, **wanted)

    with pytest.raises(UsageProblem, match="tags"):
        ask(Filters(), tags=["odd"])
    with pytest.raises(UsageProblem, match="tagged"):
        ask(tagged=["odd"])
    with pytest.raises(UsageProblem, match="tags must be a list"):
        ask(tags="odd")


def test_a_page_of_hits_is_a_sequence_with_its_total(filled):
    page = filled.search("step", limit=2, offset=1)
    assert (len(page), page.total) == (2, filled.search("step").total)
    assert page[0] == filled.search("step")[1]
    assert [hit.name for hit in page[:1]] == [page.items[0].name]
