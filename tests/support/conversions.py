"""Small random models as released in 2018, and their outputs."""

import json
import pathlib
from typing import Any

import numpy as np

import convert_checkpoint
from official_bert.checkpoints import loading, tf1, weights
from official_bert.config import BertConfig
from official_bert.modeling import finetuning_models as finetuning
from official_bert.modeling.encoder import Bert
from official_bert.modeling.pretraining_model import PretrainingModel
from official_bert.options import ConvertCheckpoint
from support.transformers_process import INPUTS, SIZES

VOCAB = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *"abcdefghijklmnopqrs"]

HEADS = {head.name: head for head in weights.HEADS}


CLASSIFIERS = [h.name for h in HEADS.values() if h.scopes == ("output_",)]


def convert(**flags: Any) -> None:
    """Runs the command."""
    options = {
        key: value if isinstance(value, bool) else str(value)
        for key, value in flags.items()
        if value is not None
    }
    convert_checkpoint.main(ConvertCheckpoint(**options))


def to_tf1(folder: pathlib.Path, name: str = "b", **flags: Any) -> pathlib.Path:
    """Converts a directory to TF1, into another one beside it."""
    output = folder.parent / name
    convert(input=folder, output=output, to="tf1", **flags)
    return output


def to_hf(
    folder: pathlib.Path, head: str = "", name: str = "hf", **flags: Any
) -> pathlib.Path:
    """Converts a directory to Hugging Face's files, into another beside it.

    `head` is given to the command only if the names of weights do not tell it.
    """
    if head in CLASSIFIERS:
        flags = {"head": head, **flags}
    output = folder.parent / name
    convert(input=folder, output=output, to="huggingface", **flags)
    return output


def assert_equal_files(
    one: pathlib.Path, other: pathlib.Path, *names: str
) -> None:
    """Compares files of two directories byte by byte."""
    for name in names:
        assert (one / name).read_bytes() == (other / name).read_bytes(), name


def read_json(path: pathlib.Path) -> Any:
    """Returns the content of a JSON file."""
    return json.loads(path.read_text())


def released(
    folder: pathlib.Path, head: str, num_classes: int = 3, **config: Any
) -> dict[str, np.ndarray]:
    """Writes a random model with optimizer state; returns its weights."""
    folder.mkdir(exist_ok=True)
    sizes = BertConfig(**{**SIZES, **config})
    random = np.random.default_rng(5)
    every = weights.shapes(sizes, num_classes)
    arrays = {
        name: random.normal(0.0, 0.4, every[name]).astype(np.float32)
        for name in weights.names_of_model(every, HEADS[head])
    }
    moments = {f"{name}/adam_m": array for name, array in arrays.items()}
    stored = {**arrays, **moments, "global_step": np.array(7, np.int64)}
    tf1.write(str(folder / "bert_model.ckpt"), stored)
    (folder / "bert_config.json").write_text(sizes.to_json_string())
    (folder / "vocab.txt").write_text("\n".join(VOCAB) + "\n")
    return arrays


def arrays_of(folder: pathlib.Path) -> dict[str, np.ndarray]:
    """Returns all arrays of the checkpoint in a directory."""
    prefix = str(folder / "bert_model.ckpt")
    reader = tf1.open_reader(prefix)
    return {
        name: tf1.read_array(reader, prefix, name)
        for name in reader.get_variable_to_shape_map()
    }


def assert_same(found: dict[str, np.ndarray], wanted: dict[str, np.ndarray]):
    """Compares names and values bit for bit."""
    assert sorted(found) == sorted(wanted)
    for name, array in wanted.items():
        assert found[name].dtype == array.dtype
        np.testing.assert_array_equal(found[name], array)


def batch() -> dict[str, np.ndarray]:
    """Returns the inputs of transformers under our names; P is S."""
    ids = np.array(INPUTS["input_ids"], np.int32)
    positions = np.tile(np.arange(ids.shape[1], dtype=np.int32), (len(ids), 1))
    return {
        "input_ids": ids,
        "input_mask": np.array(INPUTS["attention_mask"], np.int32),
        "segment_ids": np.array(INPUTS["token_type_ids"], np.int32),
        "masked_lm_positions": positions,
    }


def outputs(folder: pathlib.Path, head: str) -> dict[str, np.ndarray]:
    """Returns the outputs of our model under the names of transformers."""
    config = BertConfig.from_json_file(str(folder / "bert_config.json"))
    inputs = batch()
    if head in ("pretraining", "masked_lm", "next_sentence"):
        model = PretrainingModel(config)
        _load(model, folder, "^cls/")
        masked_lm, next_sentence = model(inputs)
        return {
            "pretraining": {
                "prediction_logits": masked_lm,
                "seq_relationship_logits": next_sentence,
            },
            "masked_lm": {"logits": masked_lm},
            "next_sentence": {"logits": next_sentence},
        }[head]
    if head == "encoder":
        bert = Bert(config)
        bert.build()
        _load(bert, folder)
        found = bert(
            inputs["input_ids"], inputs["input_mask"], inputs["segment_ids"]
        )
        return {
            "last_hidden_state": found.sequence_output,
            "pooler_output": found.pooled_output,
        }
    if head == "multiple_choice":
        model = finetuning.ChoiceClassifier(config)
        inputs = {name: ids[:, None] for name, ids in inputs.items()}
    elif head == "question_answering":
        model = finetuning.SpanModel(config)
    elif head == "token_classification":
        model = finetuning.TokenClassifier(config, 3)
    else:
        model = finetuning.SequenceClassifier(config, 3)
    _load(model, folder)
    logits = np.asarray(model(inputs))
    if head == "question_answering":
        return {"start_logits": logits[..., 0], "end_logits": logits[..., 1]}
    return {"logits": logits}


def _load(model: Any, folder: pathlib.Path, may_initialize: str = "") -> None:
    loading.load(
        loading.by_name(model.trainable_variables),
        str(folder / "bert_model.ckpt"),
        may_initialize=may_initialize,
        may_skip=loading.OPTIMIZER_STATE,
    )


def change_json(path: pathlib.Path, **changes: Any) -> None:
    """Changes a JSON file; None removes a key."""
    given = {**read_json(path), **changes}
    kept = {key: value for key, value in given.items() if value is not None}
    path.write_text(json.dumps(kept))
