"""The prompts that skills ship: which files hold them, in which shapes, and what they find."""

import json
import os

import pytest

from registry.catalog.evals import MAX_PROMPTS, NotPrompts, is_prompt_file, read_prompts
from registry.errors import SkillNotFound, SourceNotFound
from tests.conftest import OLD, write_skill


def said(name, text):
    data = text if isinstance(text, bytes) else text.encode()
    return [(one.text, one.wanted) for one in read_prompts(name, data)]


def in_json(value):
    return said("evals/evals.json", json.dumps(value))


SHAPES = {
    "skill-creator's": {"skill_name": "x", "evals": [{"id": 1, "prompt": "Fold it", "files": []}]},
    "a list of queries": [{"query": "Fold it", "expected_behavior": "folds"}],
    "a list of triggers": [{"trigger": "Fold it", "expected_behavior": "folds"}],
    "a list of texts": ["Fold it"],
    "one case": {"name": "x", "query": "Fold it", "skills": ["x"]},
    "one case with settings": {"name": "x", "execution": {"prompt": "Fold it", "max_turns": 3}},
    "cases with a polarity": {"test_cases": [{"utterance": "Fold it", "polarity": "positive"}]},
    "lists by polarity": {"shouldTrigger": ["Fold it"], "shouldNotTrigger": []},
    "spaces around it": [{"prompt": "\n Fold it \n"}],
    "what is no prompt beside it": {"evals": [{"prompt": "Fold it"}, {"id": 2}, 7, None, [["x"]]]},
}


@pytest.mark.parametrize("shape", SHAPES)
def test_prompts_are_read_in_every_shape_that_is_known(shape):
    assert in_json(SHAPES[shape]) == [("Fold it", True)]


@pytest.mark.parametrize(
    "value",
    [
        [{"query": "Bake it", "should_trigger": False}],
        [{"query": "Bake it", "should_trigger": "no"}],
        {"shouldNotTrigger": ["Bake it"]},
        {"negative": [{"input": "Bake it", "expected": "IGNORE"}]},
        {"test_cases": [{"utterance": "Bake it", "polarity": "negative"}]},
    ],
)
def test_prompts_for_others_are_told_from_those_for_the_skill(value):
    assert in_json(value) == [("Bake it", False)]


def test_other_formats_say_the_same():
    assert said("evals/a.jsonl", '{"prompt": "Fold it"}\n\n"Cut it"\n') == [
        ("Fold it", True),
        ("Cut it", True),
    ]
    table = 'prompt,expected_skill,should_trigger\n"Fold, and cut",x,true\nBake it,x,false\n'
    assert said("tests/trigger-prompts.csv", table) == [("Fold, and cut", True), ("Bake it", False)]
    text = "- query: Fold it\n- query: Bake it\n  should_trigger: false\n"
    assert said("evals/triggers.yaml", text) == [("Fold it", True), ("Bake it", False)]
    assert said("evals/evals.json", b'\xef\xbb\xbf["Fold it"]') == [("Fold it", True)]


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("evals/evals.json", "{"),
        ("evals/evals.json", "[" * 200_000),
        ("evals/evals.json", b"\xff\xfe"),
        ("evals/evals.json", "{}"),
        ("evals/evals.json", "1" * 5000),
        ("evals/evals.json", '{"evals": {"evals": {"evals": [{"prompt": "x"}]}}}'),
        ("evals/a.jsonl", '{"prompt": "x"}\n{'),
        ("evals/a.csv", "number\n1\n"),
        ("evals/a.csv", "prompt\n" + '"' + "x" * 200_000),
        ("evals/a.yaml", "a: [1"),
        ("evals/a.yaml", "a: &a [x]\nprompts: *a\n"),
        ("evals/a.yaml", "[" * 50 + "]" * 50),
        ("evals/a.yaml", "!!python/object/apply:os.system [x]"),
    ],
)
def test_what_cannot_be_read_is_told_and_no_more(name, data):
    with pytest.raises(NotPrompts) as told:
        said(name, data)
    assert str(told.value)


@pytest.mark.parametrize(
    ("name", "text", "reason"),
    [
        ("evals.json", "[" * 100_000, "it is not JSON: nested too deeply"),
        ("triggers.yaml", "a: [\n", "in line 2, column 1"),
    ],
)
def test_what_is_wrong_is_said_in_words_about_the_file(name, text, reason):
    with pytest.raises(NotPrompts) as told:
        said(name, text)
    assert reason in str(told.value)
    assert "string" not in str(told.value)


def test_files_of_prompts_are_known_by_their_names():
    yes = (
        "evals/evals.json evals/cases.yaml eval/a.csv evals.json EVALS.json trigger-eval.json "
        "tests/test-triggers.json tests/trigger-prompts.csv evals/trigger_eval_set.jsonl"
    )
    no = (
        "evals/README.md evals/results/a.json rag_eval_report.json evals/eval_results.json "
        "src/evals/a.json retrieval/a.json evals/run.py evals trigger.js SKILL.md"
    )
    assert [one for one in yes.split() if not is_prompt_file(one)] == []
    assert [one for one in no.split() if is_prompt_file(one)] == []


def ship(folder, prompts, name="evals/evals.json"):
    file = folder / name
    file.parent.mkdir(exist_ok=True)
    file.write_text(prompts if isinstance(prompts, str) else json.dumps(prompts))
    os.utime(file, (OLD, OLD))


@pytest.fixture
def library(registry, root, skill):
    ship(
        skill("leaflet", description="Fold paper into booklets."),
        [
            {"query": "fold paper into a booklet"},
            {"query": "print brochures"},
            {"query": "xylophone"},
            {"query": "water plants", "should_trigger": False},
            {"query": "fold a booklet of paper", "should_trigger": False},
        ],
    )
    ship(skill("press", description="Print brochures."), ["print brochures"])
    ship(skill("gardening", description="Water plants."), "{", "evals.json")
    skill("silent", description="Says nothing of itself.")
    registry.sync(str(root))
    return registry


def test_each_prompt_is_asked_and_counted_for_its_skill(library):
    found = library.evaluate()
    scores = {one.ref: one.score for one in found.skills}
    assert list(scores) == ["leaflet", "press"]
    leaflet = scores["leaflet"]
    assert (leaflet.prompts, leaflet.hit_at_1, leaflet.hit_at_5) == (3, 1, 1)
    assert (leaflet.negatives, leaflet.false_alarms) == (2, 1)
    assert [(one.ref, one.wins) for one in leaflet.competitors] == [("press", 1)]
    assert (found.total.prompts, found.total.hit_at_1, found.total.hit_at_5) == (4, 2, 2)


def test_each_answer_says_where_the_skill_stood_and_what_came_first(library):
    told = {one.prompt: one for one in library.evaluate().skills[0].answers}
    fold = told["fold paper into a booklet"]
    assert (fold.place, fold.first, fold.passed, fold.confidence) == (1, "leaflet", True, 1.0)
    brochures = told["print brochures"]
    assert (brochures.place, brochures.first, brochures.passed) == (None, "press", False)
    nothing = told["xylophone"]
    assert (nothing.place, nothing.first, nothing.passed) == (None, None, False)
    assert told["water plants"].passed
    assert not told["fold a booklet of paper"].passed


@pytest.mark.both
def test_a_skill_that_is_first_for_another_s_prompt_but_does_not_fit_is_no_false_alarm(
    library, root
):
    said = "fold clothes like quantum zithers"
    ship(root / "silent", [{"query": said, "should_trigger": False}])
    ship(root / "leaflet", [{"query": said, "should_trigger": False}])
    library.sync(str(root))
    (answer,) = library.evaluate(["leaflet"]).skills[0].answers
    assert answer.place == 1
    assert answer.passed


def test_the_place_is_that_of_a_search(library, root):
    for number in range(30):
        write_skill(root / f"fold-{number % 9}-{number}", description="Fold paper cranes quickly.")
    ship(write_skill(root / "paper", description="About paper."), ["fold paper", "paper cranes"])
    library.sync(str(root))
    checked = 0
    for one in library.evaluate().skills:
        for answer in one.answers:
            hits = library.search(answer.prompt, limit=100)
            holders = [one.ref in (hit.ref, *hit.alike) for hit in hits]
            assert answer.place == (holders.index(True) + 1 if any(holders) else None)
            assert answer.first == (hits[0].ref if hits else None)
            checked += answer.place is not None and answer.place > 1
    assert checked


@pytest.mark.both
def test_a_near_copy_in_the_place_of_a_skill_counts_for_it(library, root):
    about = "Knit a scarf of wool for somebody whose neck is cold."
    for name in ("knit-a", "knit-b"):
        folder = write_skill(root / name, description=about, body=name)
        ship(folder, ["knit a scarf"])
    library.sync(str(root))
    assert {
        one.ref: one.score.hit_at_1 for one in library.evaluate(["knit-a", "knit-b"]).skills
    } == {
        "knit-a": 1,
        "knit-b": 1,
    }
    assert len(library.search("knit a scarf")) == 1


@pytest.mark.both
def test_what_came_first_is_what_a_search_shows(library, root, tmp_path):
    about = "Knit a scarf of wool for somebody whose neck is cold."
    strong = tmp_path / "strong"
    write_skill(strong / "hat", description=about, body="Wool.")
    write_skill(root / "knit-scarf", description=about, body="Wool, too.")
    ship(root / "silent", ["knit scarf"])
    library.sync(str(strong), name="strong", scope="project")
    library.sync(str(root))
    (hit,) = library.search("knit scarf")
    assert (hit.ref, hit.alike) == ("hat", ("knit-scarf",))
    (answer,) = library.evaluate(["silent"]).skills[0].answers
    assert answer.first == "hat"


def test_a_file_that_cannot_be_read_is_told_and_the_others_are_asked(library):
    found = library.evaluate()
    assert [(one.ref, one.path) for one in found.problems] == [("gardening", "evals.json")]
    assert "JSON" in found.problems[0].reason
    assert len(found.skills) == 2


def test_a_link_that_leads_out_of_the_skill_is_not_read(library, root, tmp_path):
    secret = tmp_path / "secret.json"
    secret.write_text('["a secret prompt"]')
    folder = write_skill(root / "linked", description="Follows links.")
    ship(folder, ["follows links"])
    library.sync(str(root))
    (folder / "evals" / "evals.json").unlink()
    (folder / "evals" / "evals.json").symlink_to(secret)
    found = library.evaluate()
    assert "linked" not in [one.ref for one in found.skills]
    assert "secret prompt" not in json.dumps(found.to_dict())


def test_more_prompts_than_are_asked_are_told(library, root):
    ship(root / "silent", [f"silent {number}" for number in range(MAX_PROMPTS + 5)])
    found = library.evaluate(["silent"])
    assert found.total.prompts == MAX_PROMPTS
    (problem,) = found.problems
    assert f"{MAX_PROMPTS + 5}" in problem.reason


@pytest.mark.both
def test_the_prompts_of_a_copy_that_is_not_listed_count_where_the_listed_one_stands(
    registry, tmp_path
):
    for source in ("strong", "weak"):
        folder = write_skill(tmp_path / source / "leaflet", description="Fold paper.")
        ship(folder, ["fold paper"])
        registry.sync(str(tmp_path / source), name=source)
    hidden = next(one for one in registry.list(all=True) if one.shadowed)
    assert registry.evaluate([hidden.ref]).total.hit_at_1 == 1
    assert [one.ref for one in registry.evaluate().skills] == ["leaflet"]


@pytest.mark.both
def test_names_and_a_source_narrow_what_is_asked(library, root, tmp_path):
    assert [one.ref for one in library.evaluate(["press"]).skills] == ["press"]
    other = tmp_path / "other"
    ship(write_skill(other / "stamps", description="Collect stamps."), ["collect stamps"])
    library.sync(str(other), name="other")
    assert [one.ref for one in library.evaluate(source="other").skills] == ["stamps"]
    with pytest.raises(SkillNotFound):
        library.evaluate(["nobody"])
    with pytest.raises(SourceNotFound):
        library.evaluate(source="nowhere")


def test_prompts_of_a_named_skill_are_those_on_disk_now(library, root):
    ship(root / "press", ["print brochures", "print posters"])
    os.utime(root / "press" / "evals" / "evals.json", (OLD + 5, OLD + 5))
    assert library.evaluate(["press"]).total.prompts == 2
