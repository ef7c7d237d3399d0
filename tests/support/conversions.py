"""Small random models in the released format, their conversion and outputs."""

import json
import pathlib

import numpy as np

from official_bert.commands import convert_checkpoint
from official_bert.config import BertConfig
from official_bert.modeling import finetuning_models as finetuning
from official_bert.modeling.encoder import Bert
from official_bert.modeling.pretraining_model import PretrainingModel
from official_bert.options import ConvertCheckpoint
from official_bert.sources import formats, heads, loading, weight_names
from official_bert.sources.formats.tf1 import checkpoint as tf1
from official_bert.sources.formats.tf1 import weights as tf1_weights
from support import SPECIAL, recorded, write_vocab
from support.run_outputs import read_json
from tools.golden.transformers_process import INPUTS, SIZES

VOCAB = [*SPECIAL, *"abcdefghijklmnopqrs"]
HEADS = heads.KINDS
FORMATS = [row.name for row in formats.FORMATS.values() if row.is_output]
CLASSIFIERS = [h.name for h in HEADS.values() if h.scopes == ("output_",)]

# Head -> our model, and what transformers calls its outputs.
MODELS = {
    "encoder": (Bert, ["last_hidden_state", "pooler_output"]),
    "pretraining": (
        PretrainingModel,
        ["prediction_logits", "seq_relationship_logits"],
    ),
    "masked_lm": (PretrainingModel, ["logits", None]),
    "next_sentence": (PretrainingModel, [None, "logits"]),
    "sequence_classification": (finetuning.SequenceClassifier, ["logits"]),
    "multiple_choice": (finetuning.ChoiceClassifier, ["logits"]),
    "token_classification": (finetuning.TokenClassifier, ["logits"]),
    "question_answering": (
        finetuning.SpanModel,
        ["start_logits", "end_logits"],
    ),
}


def convert(**flags):
    """Runs the command and returns `--output`."""
    options = {
        key: value if isinstance(value, int) else str(value)
        for key, value in flags.items()
        if value is not None
    }
    convert_checkpoint.main(ConvertCheckpoint(**options))
    return pathlib.Path(options["output"])


def to_tf1(folder, name="b", **flags):
    """Converts a directory to TF1, into another one beside it."""
    return convert(input=folder, output=folder.parent / name, to="tf1", **flags)


def to_hf(folder, head="", name="hf", **flags):
    """Converts a directory to Hugging Face's files, into another beside it.

    `head` is passed to the command only if the names of weights do not show it.
    """
    flags |= {"head": head} if head in CLASSIFIERS else {}
    output = folder.parent / name
    return convert(input=folder, output=output, to="huggingface", **flags)


def assert_equal_files(one, other, *names):
    """Compares files of two directories byte by byte."""
    for name in names:
        assert (one / name).read_bytes() == (other / name).read_bytes(), name


def released(folder, head, num_classes=3, **config):
    """Writes a random model with optimizer state; returns its weights."""
    folder.mkdir(exist_ok=True)
    sizes = BertConfig(**{**SIZES, **config})
    random = np.random.default_rng(5)
    shapes = weight_names.shapes(sizes, num_classes)
    arrays = {
        name: random.normal(0.0, 0.4, shapes[name]).astype(np.float32)
        for name in weight_names.names_of_model(shapes, HEADS[head])
    }
    moments = {f"{name}/adam_m": array for name, array in arrays.items()}
    stored = {**arrays, **moments, "global_step": np.array(7, np.int64)}
    tf1.write(str(folder / "bert_model.ckpt"), stored)
    (folder / "bert_config.json").write_text(sizes.to_json_string())
    write_vocab(folder, VOCAB)
    return arrays


def arrays_of(folder):
    """Returns all arrays of the checkpoint in a directory."""
    arrays = tf1_weights.open_arrays(str(folder))
    return {name: arrays.read_stored(name) for name in arrays.shapes}


def assert_arrays(folder, expected):
    """Compares the names and values of a checkpoint bit for bit."""
    found = arrays_of(folder)
    assert sorted(found) == sorted(expected)
    for name, array in expected.items():
        assert found[name].dtype == array.dtype
        np.testing.assert_array_equal(found[name], array)


def batch():
    """Returns the inputs of transformers under our names; P is S."""
    ids = np.array(INPUTS["input_ids"], np.int32)
    positions = np.tile(np.arange(ids.shape[1], dtype=np.int32), (len(ids), 1))
    return {
        "input_ids": ids,
        "input_mask": np.array(INPUTS["attention_mask"], np.int32),
        "segment_ids": np.array(INPUTS["token_type_ids"], np.int32),
        "masked_lm_positions": positions,
    }


def outputs(folder, head):
    """Returns the outputs of our model under the names of transformers."""
    model_class, names = MODELS[head]
    num_classes = [3] if head.startswith(("sequence", "token")) else []
    model = model_class(recorded.read_config(folder), *num_classes)
    if head == "encoder":
        model.build()
    loading.load(
        tf1.by_name(model.trainable_variables),
        str(folder / "bert_model.ckpt"),
        may_initialize="^cls/(predictions|seq_relationship)/",
        may_skip=tf1.OPTIMIZER_STATE,
    )
    inputs = batch()
    if head == "multiple_choice":
        inputs = {name: ids[:, None] for name, ids in inputs.items()}
    if head == "encoder":
        found = model(*list(inputs.values())[:3])
        found = found.sequence_output, found.pooled_output
    else:
        found = model(inputs)
    if head == "question_answering":
        found = np.moveaxis(found, -1, 0)
    if len(names) == 1:
        found = [found]
    pairs = zip(names, found, strict=True)
    return {name: np.asarray(values) for name, values in pairs if name}


def change_json(path, **changes):
    """Changes a JSON file; None removes a key."""
    content = {**read_json(path), **changes}
    kept = {key: value for key, value in content.items() if value is not None}
    path.write_text(json.dumps(kept))
