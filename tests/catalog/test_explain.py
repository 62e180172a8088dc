"""Where a skill stands for a query, and what its description lacks."""

import pytest

from registry import SkillRegistry
from registry.errors import SkillNotFound
from registry.settings import GlobalIngest, Personality, Settings
from tests.conftest import write_skill


@pytest.fixture
def library(registry, root, skill):
    skill(
        "leaflet",
        description="Fold paper into booklets.",
        body="# Leaflet\n\nPrinting brochures on both sides, with margins.\n",
        extra="tags: [stationery]\n",
    )
    skill("brochure-maker", description="Print brochures and folding cards.")
    skill("press", description="Print anything.")
    skill("gardening", description="Water plants.")
    registry.sync(str(root))
    return registry


def placed(library, name, query, **more):
    (one,) = library.why_found(name, query, **more)
    return one


def parts(one):
    return {word.word: word.parts for word in one.words if word.said is None}


def test_the_place_is_that_of_the_search(library):
    query = "print brochures"
    names = [hit.name for hit in library.search(query)]
    assert names[0] == "brochure-maker"
    for place, name in enumerate(names, 1):
        one = placed(library, name, query)
        assert (one.place, one.total) == (place, len(names))


def test_words_are_found_by_their_stems_in_the_parts_that_have_them(library):
    one = placed(library, "leaflet", "leaflets stationery folded brochure xylophone")
    assert parts(one) == {
        "leaflets": ("name", "body"),
        "stationery": ("tags",),
        "folded": ("description",),
        "brochure": ("body",),
        "xylophone": (),
    }


def test_the_rarer_a_word_the_more_it_tells(library):
    words = {w.word: w.telling for w in placed(library, "press", "print plants zither").words}
    assert 0 < words["print"] < words["plants"] < words["zither"] <= 1


def test_phrases_are_asked_for_as_one(library):
    assert parts(placed(library, "leaflet", '"printing brochures"')) == {
        "printing brochures": ("body",)
    }
    assert parts(placed(library, "leaflet", '"brochures printing"')) == {"brochures printing": ()}


def test_what_to_write_begins_with_what_only_the_body_says(library):
    one = placed(library, "leaflet", "brochures with glitter margins")
    assert set(one.to_write[:2]) == {"brochures", "margins"}
    assert one.to_write[2:] == ("glitter",)


def test_a_skill_that_says_it_all_has_nothing_to_write(library):
    one = placed(library, "brochure-maker", "print brochures")
    assert one.to_write == ()
    assert one.confidence == 1.0
    assert one.ahead == ()


def test_what_comes_before_is_told_with_the_words_that_this_one_lacks(library):
    one = placed(library, "leaflet", "print brochures")
    assert [(a.ref, a.place, a.words) for a in one.ahead] == [
        ("brochure-maker", 1, ("brochures", "print")),
        ("press", 2, ("print",)),
    ]
    one = placed(library, "press", "print brochure maker")
    assert [(set(a.words), a.stronger) for a in one.ahead] == [({"brochure", "maker"}, ())]


def test_a_word_in_a_name_is_told_where_this_one_says_it_lower(library, root):
    write_skill(root / "watering", description="Keep plants alive with water.")
    library.sync(str(root))
    one = placed(library, "gardening", "watering")
    assert [(a.ref, a.words, a.stronger, a.named) for a in one.ahead] == [
        ("watering", (), ("watering",), True)
    ]


def test_at_most_five_are_told_that_come_before(library, root):
    for number in range(8):
        write_skill(root / f"easel-{number}", description=f"Easel of kind {number} for easels.")
    library.sync(str(root))
    one = placed(library, "gardening", "easel")
    assert one.place is None
    assert [a.place for a in one.ahead] == [1, 2, 3, 4, 5]


def test_a_skill_without_any_of_the_words_says_so(library):
    one = placed(library, "gardening", "brochures")
    assert one.place is None
    assert [reason.code for reason in one.reasons] == ["listed", "no-word"]


@pytest.mark.parametrize("query", ["", '"'])
def test_of_a_query_without_words_nothing_is_advised(library, query):
    told = placed(library, "gardening", query).reasons[-1]
    assert (told.code, told.message, told.fix) == ("no-word", "the query has no words", None)


def test_a_filter_that_leaves_it_out_is_named(library):
    one = placed(library, "press", "print", tags=["stationery"], kind=None)
    assert one.place is None
    assert [(r.code, r.message) for r in one.reasons if r.code != "listed"] == [
        ("filtered", "the filter tags leaves it out")
    ]
    assert placed(library, "leaflet", "fold", tags=["stationery"]).place == 1


def test_a_skill_that_another_hides_is_nowhere_and_says_by_what(registry, tmp_path):
    write_skill(tmp_path / "weak" / "press", description="Print on paper.", body="Another.")
    write_skill(tmp_path / "strong" / "press", description="Print.")
    registry.sync(str(tmp_path / "weak"), scope="community")
    registry.sync(str(tmp_path / "strong"), scope="project")
    strong, weak = registry.why_found("press", "print")
    assert (strong.place, weak.place) == (1, None)
    assert [reason.code for reason in weak.reasons] == ["shadowed"]
    assert parts(weak) == {"print": ("description",)}


def test_a_personality_that_does_not_see_it_is_told(database, root, skill, tmp_path):
    skill(
        "press",
        description="Print anything.",
    )
    nothing = Personality("coder", global_ingest=GlobalIngest(mode="none"))
    settings = Settings(personalities={"coder": nothing})
    with SkillRegistry.open(database, settings=settings, workdir=tmp_path) as registry:
        registry.sync(str(root), scope="team")
        assert placed(registry, "press", "print").place == 1
        one = placed(registry, "press", "print", personality="coder")
    assert (one.place, one.listed) == (None, False)
    assert one.reasons[-1].code == "personality"


def test_a_near_copy_stands_in_the_place_of_the_one_that_is_shown(library, root):
    said = "Lay out a brochure for two sides of paper, with margins."
    for name in ("twin-one", "twin-two"):
        write_skill(root / name, description=said, body=name)
    library.sync(str(root))
    hits = library.search("lay out a brochure")
    hit = next(hit for hit in hits if hit.alike)
    (other,) = hit.alike
    one = placed(library, other, "lay out a brochure")
    assert one.beside == hit.ref
    assert one.place == [h.ref for h in hits].index(hit.ref) + 1


def test_other_words_name_what_they_stand_for_and_foreign_ones_are_not_to_be_written(library, root):
    write_skill(root / "strips", description="Conceal names.", body="Redaction of contracts.")
    library.sync(str(root))
    one = placed(library, "strips", "black out names")
    assert {(w.word, w.said, w.parts) for w in one.words if w.said} == {
        ("redaction", "black out", ("body",))
    }
    one = placed(library, "strips", "namen schw\u00e4rzen")
    assert {(w.word, w.said) for w in one.words if w.said} >= {("redaction", "schwarzen")}
    assert "schw\u00e4rzen" not in one.to_write
    assert "redaction" in one.to_write


def test_text_without_spaces_is_explained_and_not_to_be_written(library, root):
    write_skill(root / "fenxi", description="\u6570\u636e\u5206\u6790\u5de5\u5177")
    library.sync(str(root))
    one = placed(library, "fenxi", "\u6570\u636e")
    assert parts(one)["\u6570\u636e"] == ("description",)
    assert placed(library, "press", "\u6570\u636e").place is None
    assert "\u6570\u636e" not in placed(library, "press", "\u6570\u636e").to_write


def test_nothing_asked_is_an_error(library):
    for query in ["", " ", '"', "\0", "\ud800", "{x} : y", "name:press", "*"]:
        assert placed(library, "press", query).query == query


def test_a_folder_that_is_not_stored_stands_nowhere(library, root, skill):
    folder = skill("new")
    one = placed(library, str(folder), "thing")
    assert (one.ref, one.place, one.words) == (None, None, ())
    assert one.reasons[0].code == "not-synced"
    with pytest.raises(SkillNotFound):
        library.why_found("nobody", "thing")
