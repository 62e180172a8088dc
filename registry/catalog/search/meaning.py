"""Find skills by the meaning of a query, with a model for sentence vectors (extra ``semantic``).

The setting ``semantic`` is the folder of a model in the layout of Hugging Face: ``tokenizer.json``,
``model.onnx`` or ``onnx/model.onnx``, and optionally ``1_Pooling/config.json``,
``sentence_bert_config.json`` and ``config_sentence_transformers.json``. After each sync, `store`
computes the vector of each new name and description. A search compares the vector of the query with
all of them.
"""

import json
import logging
from collections.abc import Callable, Sequence
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from registry.core import Core
from registry.db.interface import Condition, Reader
from registry.db.read.search import heads_of, ids_meeting, vectors, without_vector
from registry.errors import UsageProblem

if TYPE_CHECKING:
    from numpy import ndarray

    Array: TypeAlias = ndarray[Any, Any]

MAX_TOKENS: Final = 128
"""Maximum number of tokens of a text that the model reads; nearly all descriptions are shorter."""

OUTPUTS: Final = ("sentence_embedding", "last_hidden_state", "token_embeddings")
"""Names of a model's output, the preferred name first.

Without such a name, its first output is used.
"""

BATCH: Final = 32
STORED: Final = 512
"""Number of texts that the model gets in one call, and of vectors that one transaction stores."""

KEY: Final = 8
"""Number of bytes that identify the model, at the start of a stored vector."""

SHARE: Final = 10
"""At most one of ``SHARE`` skills counts as similar to a query.

In a small catalogue, most skills have nothing in common with the query.
"""

_MORE: Final = 4
"""Number of similar skills to look up for each needed skill, because filters exclude some."""

_OF_TOKENS: Final = 3
"""Number of dimensions of a model's result, if it has a vector for each token."""

_TINY: Final = 1e-9
_ROWS: Final = 8192
"""Number of vectors to compare in one step."""


class Model:
    """A model for sentence vectors. Raises `UsageProblem` if it can't be loaded."""

    def __init__(self, folder: str) -> None:
        place = Path(folder).expanduser()
        try:
            from onnxruntime import InferenceSession, SessionOptions
            from tokenizers import Tokenizer
        except ImportError as error:
            reason = f"install skill-registry[semantic] ({error.name} is missing)"
            raise UsageProblem(message=f"the setting 'semantic' is not used: {reason}") from error
        try:
            names = (place / "model.onnx", place / "onnx" / "model.onnx")
            network = next((one for one in names if one.is_file()), names[0])
            self._tokenizer = Tokenizer.from_file(str(place / "tokenizer.json"))
            pooling = _json(place / "1_Pooling" / "config.json")
            told = _json(place / "sentence_bert_config.json").get("max_seq_length")
            self._is_first = pooling.get("pooling_mode_cls_token") is True
            prompts = _json(place / "config_sentence_transformers.json").get("prompts") or {}
            self._prompts = {key: one for key, one in prompts.items() if isinstance(one, str)}
            most = min(MAX_TOKENS, told) if isinstance(told, int) and told > 0 else MAX_TOKENS
            self._tokenizer.enable_truncation(most)
            self._tokenizer.enable_padding()
            options = SessionOptions()
            # Otherwise the model's threads use the processor while they wait.
            options.add_session_config_entry("session.intra_op.allow_spinning", "0")
            self._session = InferenceSession(str(network), options, ["CPUExecutionProvider"])
            self._inputs = {one.name for one in self._session.get_inputs()}
            outputs = [one.name for one in self._session.get_outputs()]
            self._output = next((one for one in OUTPUTS if one in outputs), outputs[0])
            facts = [
                self._tokenizer.to_str(),
                network.stat().st_size,
                self._prompts,
                self._is_first,
            ]
            if self._vectors(["a"]).shape != self._vectors(["a longer text"]).shape:
                raise ValueError(f"its output {self._output} is not a vector")  # noqa: TRY301
        except Exception as error:  # the libraries raise errors of many types
            message = f"the setting 'semantic' is not used: no model can be loaded from {place}"
            raise UsageProblem(
                message=f"{message}: {str(error) or type(error).__name__}"
            ) from error
        self.key = sha256(json.dumps(facts).encode()).digest()[:KEY]

    def queries(self, texts: Sequence[str]) -> "Array":
        """Return the vectors of queries, one in each row; each vector has the length 1."""
        return self._vectors([self._prompts.get("query", "") + one for one in texts])

    def skills(self, texts: Sequence[str]) -> "Array":
        """Return the vectors of names and descriptions, in the form of `queries`."""
        prompt = self._prompts.get("document") or self._prompts.get("passage") or ""
        return self._vectors([prompt + one for one in texts])

    def _vectors(self, texts: Sequence[str]) -> "Array":
        import numpy as np

        coded = self._tokenizer.encode_batch(list(texts))
        given = {
            "input_ids": [one.ids for one in coded],
            "attention_mask": [one.attention_mask for one in coded],
            "token_type_ids": [one.type_ids for one in coded],
        }
        feed = {
            name: np.array(rows, np.int64) for name, rows in given.items() if name in self._inputs
        }
        found = np.asarray(self._session.run([self._output], feed)[0], np.float32)
        if found.ndim == _OF_TOKENS:
            mask = np.array(given["attention_mask"], np.float32)[:, :, None]
            found = (
                found[:, 0]
                if self._is_first
                else (found * mask).sum(1) / np.maximum(mask.sum(1), 1)
            )
        lengths: Array = np.linalg.norm(found, axis=1, keepdims=True)
        return np.divide(found, np.maximum(lengths, _TINY))


def _json(path: Path) -> dict[str, Any]:
    found = json.loads(path.read_text("utf-8")) if path.is_file() else {}
    return found if isinstance(found, dict) else {}


@lru_cache(maxsize=1)
def _model(folder: str) -> Model | None:
    """Return the model in a folder; if it can't be loaded, warn and return None."""
    try:
        return Model(folder)
    except UsageProblem as problem:
        logging.getLogger("registry").warning("%s", problem)
        return None


def nearest(
    reader: Reader,
    queries: Sequence[str],
    condition: Condition,
    most: int,
    among: frozenset[int] | None = None,
) -> list[list[int]]:
    """Return for each query the skills with the most similar meaning, the most similar first.

    The result has at most ``most`` skills, which meet the condition. If ``among`` is given, the
    result has only skills of this view. If the setting ``semantic`` isn't used, the result is
    empty.
    """
    model = _model(reader.semantic) if reader.semantic else None
    if model is None:
        return [[] for _ in queries]
    import numpy as np

    def load(reader: Reader) -> "tuple[list[int], Array]":
        rows = vectors(reader, model.key)
        size = model.queries([""]).shape[1] + KEY
        kept = [(one, data) for one, data in rows if len(data) == size]
        table = np.frombuffer(b"".join(data for _, data in kept), np.int8).reshape(-1, size)
        return [one for one, _ in kept], table[:, KEY:]

    ids, table = reader.remembered(f"vectors {model.key.hex()}", load)
    if among is not None:
        shown = [at for at, one in enumerate(ids) if one in among]
        ids, table = [ids[at] for at in shown], table[shown]
    if not ids:
        return [[] for _ in queries]
    asked = model.queries(queries).T
    parts = (table[at : at + _ROWS].astype(np.float32) for at in range(0, len(ids), _ROWS))
    near = np.concatenate([one @ asked / np.linalg.norm(one, axis=1)[:, None] for one in parts])
    best = np.argsort(-near, axis=0)[: max(1, min(most * _MORE, len(ids) // SHARE))].T
    shown_ids = ids_meeting(reader, [ids[at] for at in set(best.flat)], condition)
    return [[one for at in some if (one := ids[at]) in shown_ids][:most] for some in best]


def store(core: Core, progress: Callable[[str, int, int | None], None] | None = None) -> None:
    """Compute and store the missing vectors of skills, if the setting ``semantic`` is used.

    If the model can't be loaded, or the user interrupts this function, it prints a warning. The
    changes of the sync are stored already. The next sync computes the vectors that are still
    missing.
    """
    if not core.settings.semantic:
        return
    try:
        model = Model(core.settings.semantic)
        left = without_vector(core.reader, model.key)
        for start in range(0, len(left), STORED):
            if progress is not None:
                progress("computing vectors", start, len(left))
            _store(core, model, left[start : start + STORED])
    except UsageProblem as problem:
        core.warn(str(problem))
    except KeyboardInterrupt:
        core.warn("Interrupted: the next sync computes the other vectors.")


def _store(core: Core, model: Model, ids: Sequence[int]) -> None:
    import numpy as np

    from registry.db.write.skills import store_vectors

    # Sort the texts by length, because texts of similar length need little padding.
    heads = sorted(heads_of(core.reader, ids)().items(), key=lambda one: len(one[1]))
    rows: list[tuple[bytes, int]] = []
    for at in range(0, len(heads), BATCH):
        some = heads[at : at + BATCH]
        made = model.skills([head for _, head in some])
        made *= 127 / np.maximum(np.abs(made).max(axis=1, keepdims=True), _TINY)
        whole = np.rint(made).astype(np.int8)
        rows += [(model.key + it.tobytes(), one) for (one, _), it in zip(some, whole, strict=True)]
    with core.writer.transaction() as connection:
        store_vectors(connection, rows)
