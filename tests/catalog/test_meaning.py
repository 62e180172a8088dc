"""Search by meaning, with the extra ``semantic`` and a small model that the tests make."""

import json
import subprocess
import sys

import pytest

from registry.api import SkillRegistry
from registry.catalog.search import find, meaning
from registry.db.read.listing import Filters
from registry.db.read.search import ids_named
from registry.errors import SettingsProblem, UsageProblem
from registry.settings import Settings, parse_settings
from tests.conftest import write_skill

np = pytest.importorskip("numpy", reason="the group 'semantic' is not installed")
onnx = pytest.importorskip("onnx", reason="the group 'semantic' is not installed")
pytest.importorskip("onnxruntime", reason="the group 'semantic' is not installed")
tokenizers = pytest.importorskip("tokenizers", reason="the group 'semantic' is not installed")

MEANINGS = [["vehicle", "wobblecar"], ["repair", "glorpify"], ["meal", "zimzam"]]
"""Words with the same vector; no table of synonyms has the second of each pair."""

SIZE = len(MEANINGS) + 1
SKILLS = {
    "engine-care": "Repair a vehicle",
    "evening-cook": "Plan a meal",
    **{f"other-{n}": f"Nothing about number {n}" for n in range(20)},
}


def make_model(folder, prompts=None):
    """Write a model in the layout of Hugging Face: each known word has the vector of its meaning."""
    every = [word for words in MEANINGS for word in words]
    known = {"[UNK]": 0, **{word: place for place, word in enumerate(every, 1)}}
    coder = tokenizers.Tokenizer(tokenizers.models.WordLevel(known, unk_token="[UNK]"))
    coder.normalizer = tokenizers.normalizers.Lowercase()
    coder.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    (folder / "onnx").mkdir(parents=True)
    (folder / "1_Pooling").mkdir()
    coder.save(str(folder / "tokenizer.json"))
    table = np.zeros((len(known), SIZE), np.float32)
    table[0, -1] = 0.01  # an unknown word says hardly anything
    for place, words in enumerate(MEANINGS):
        for word in words:
            table[known[word], place] = 1
    helper, kinds = onnx.helper, onnx.TensorProto
    graph = helper.make_graph(
        [helper.make_node("Gather", ["table", "input_ids"], ["last_hidden_state"])],
        "model",
        [helper.make_tensor_value_info("input_ids", kinds.INT64, ["batch", "length"])],
        [
            helper.make_tensor_value_info(
                "last_hidden_state", kinds.FLOAT, ["batch", "length", SIZE]
            )
        ],
        [onnx.numpy_helper.from_array(table, "table")],
    )
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    onnx.save(made, str(folder / "onnx" / "model.onnx"))
    pooling = {"pooling_mode_mean_tokens": True, "pooling_mode_cls_token": False}
    (folder / "1_Pooling" / "config.json").write_text(json.dumps(pooling))
    if prompts:
        (folder / "config_sentence_transformers.json").write_text(json.dumps({"prompts": prompts}))
    return folder


@pytest.fixture
def root(tmp_path):
    for name, description in SKILLS.items():
        write_skill(tmp_path / "skills" / name, description=description)
    return tmp_path / "skills"


@pytest.fixture
def place(new_database):
    return new_database()


def opened(place, folder=None):
    return SkillRegistry.open(place, settings=Settings(semantic=folder and str(folder)))


def names(found):
    return [hit.name for hit in found]


def test_a_query_finds_a_skill_that_has_none_of_its_words(place, root, tmp_path):
    model = make_model(tmp_path / "model")
    with opened(place) as registry:
        registry.sync(root)
        assert names(registry.search("glorpify my wobblecar")) == []
    with opened(place, model) as registry:
        registry.sync()
        assert names(registry.search("glorpify my wobblecar"))[0] == "engine-care"
        assert names(registry.search("zimzam"))[0] == "evening-cook"


def test_the_name_that_was_typed_stays_first(place, root, tmp_path):
    with opened(place, make_model(tmp_path / "model")) as registry:
        write_skill(root / "zimzam", description="An unrelated text")
        registry.sync(root)
        assert names(registry.search("zimzam"))[0] == "zimzam"


def test_a_changed_skill_gets_a_new_vector_at_the_next_sync(place, root, tmp_path):
    with opened(place, make_model(tmp_path / "model")) as registry:
        registry.sync(root)
        write_skill(root / "engine-care", description="Plan every meal")
        registry.sync()
        assert "engine-care" not in names(registry.search("wobblecar"))[:1]
        assert set(names(registry.search("zimzam"))[:2]) == {"engine-care", "evening-cook"}


def test_another_model_replaces_the_vectors(place, root, tmp_path):
    with opened(place, make_model(tmp_path / "one")) as registry:
        registry.sync(root)
    other = make_model(tmp_path / "two", prompts={"query": "wobblecar "})
    with opened(place, other) as registry:
        assert names(registry.search("what is this")) == []
        registry.sync()
        assert names(registry.search("what is this"))[0] == "engine-care"


def test_filters_and_views_hide_skills_with_a_near_meaning(place, root, tmp_path):
    with opened(place, make_model(tmp_path / "model")) as registry:
        registry.sync(root)
        assert names(registry.search("wobblecar"))[0] == "engine-care"
        assert names(registry.search("wobblecar", tags=["none"])) == []
        reader = registry.core.reader
        shown = ids_named(reader, "evening-cook", ("1 = 1", []))()
        found = find.search(reader, ["wobblecar"], Filters(ids=frozenset(shown)))
        assert "engine-care" not in [hit.name for hit in found]


def test_an_interrupted_computation_goes_on_at_the_next_sync(
    place, root, tmp_path, monkeypatch, caplog
):
    def interrupted(*_):
        raise KeyboardInterrupt

    with opened(place, make_model(tmp_path / "model")) as registry:
        with monkeypatch.context() as patch:
            patch.setattr(meaning, "_store", interrupted)
            assert len(registry.sync(root).added) == len(SKILLS)
        assert "the next sync computes the other vectors" in caplog.text
        assert names(registry.search("wobblecar")) == []
        registry.sync()
        assert names(registry.search("wobblecar"))[0] == "engine-care"


def test_a_model_that_can_not_be_loaded_is_named_and_words_still_find(
    place, root, tmp_path, caplog
):
    broken = make_model(tmp_path / "model")
    (broken / "onnx" / "model.onnx").write_bytes(b"no model")
    with opened(place, broken) as registry:
        registry.sync(root)
        assert names(registry.search("vehicle")) == ["engine-care"]
    assert f"no model can be loaded from {broken}" in caplog.text


def test_a_model_without_vectors_is_refused(tmp_path):
    folder = make_model(tmp_path / "model")
    made = onnx.load(str(folder / "onnx" / "model.onnx"))
    # A number for each token instead of a vector.
    made.graph.node[0].op_type = "Cast"
    made.graph.node[0].input[:] = ["input_ids"]
    made.graph.node[0].attribute.append(onnx.helper.make_attribute("to", onnx.TensorProto.FLOAT))
    made.graph.output[0].CopyFrom(
        onnx.helper.make_tensor_value_info("last_hidden_state", onnx.TensorProto.FLOAT, ["b", "n"])
    )
    del made.graph.initializer[:]
    onnx.save(made, str(folder / "onnx" / "model.onnx"))
    with pytest.raises(UsageProblem, match="its output last_hidden_state is not a vector"):
        meaning.Model(str(folder))


def test_without_the_setting_nothing_of_the_extra_is_imported(place, root):
    with opened(place) as registry:
        registry.sync(root)
    code = (
        "import sys; from registry import SkillRegistry, Settings\n"
        "with SkillRegistry.open(sys.argv[1], settings=Settings()) as registry:\n"
        "    registry.sync(); registry.search('vehicle')\n"
        "print({'numpy', 'onnxruntime', 'tokenizers'} & set(sys.modules))"
    )
    told = subprocess.run(
        [sys.executable, "-c", code, place], capture_output=True, text=True, check=True
    )
    assert told.stdout.strip() == "set()"


def test_the_setting_is_a_folder():
    assert parse_settings({"semantic": "~/model"}, "file").semantic == "~/model"
    with pytest.raises(SettingsProblem, match="semantic must be the folder of a model"):
        parse_settings({"semantic": ["a"]}, "file")
