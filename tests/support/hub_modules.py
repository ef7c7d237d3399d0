"""TF Hub modules for tests: ours, one by others, and one in the TF1 format."""

import pathlib

import numpy as np
import tensorflow as tf

from official_bert.export import tfhub_encoder
from official_bert.modeling.pretraining_model import PretrainingModel
from official_bert.sources.formats.tf1 import checkpoint as tf1
from official_bert.sources.pretrained import ModelFiles
from support import SPECIAL, recorded, write_vocab

INPUTS = ("input_word_ids", "input_mask", "input_type_ids")

CONFIG = recorded.RELU_CONFIG
SEED = 102
VOCAB = [*SPECIAL, "good", "bad", "cat"]


def write_files(
    directory, config=CONFIG, seed=SEED, vocab=VOCAB, without="-", others=()
):
    """Writes checkpoint, config and vocabulary; returns the model.

    Weights whose names start with `without` are left out. `others` are the
    names of further variables.
    """
    model = recorded.assign(PretrainingModel(config), seed)
    arrays = {
        weight.path: weight.numpy()
        for weight in model.trainable_variables
        if not weight.path.startswith(without)
    }
    arrays |= {name: np.ones(2, np.float32) for name in others}
    tf1.write(str(directory / "bert_model.ckpt"), arrays)
    write_vocab(directory, vocab)
    (directory / "bert_config.json").write_text(config.to_json_string())
    return model


def export(directory, checkpoint="bert_model.ckpt"):
    """Exports the files in a directory; returns the module's path and summary.

    If `checkpoint` is empty, the directory is a run directory.
    """
    names = ("bert_config.json", "vocab.txt", checkpoint)
    files = ModelFiles(*(str(directory / name) for name in names), True)
    path = str(directory / "module")
    return path, tfhub_encoder.export(files, path)


def inputs(ids, mask=None, segments=None):
    """Returns the inputs of a module."""
    ids = tf.constant(ids)
    given = (
        ids,
        tf.ones_like(ids) if mask is None else tf.constant(mask),
        tf.zeros_like(ids) if segments is None else tf.constant(segments),
    )
    return dict(zip(INPUTS, given, strict=True))


def _embed(table, ids, mask):
    return tf.gather(table, ids) * tf.cast(mask, tf.float32)[..., None]


def _random(*shape):
    return np.random.RandomState(3).normal(size=shape).astype("f4")


def write_another(directory, vocab, size=8):
    """Writes a module that is not one of ours; returns its directory.

    It has embeddings, a dense layer, and two weights of the same name.
    """
    module = tf.train.Checkpoint()
    module.variables = [
        tf.Variable(_random(*shape) * 0.1, name=name)
        for name, *shape in [
            ("table/w", len(vocab), size),
            ("dense/w", size, size),
            ("dense/w", 1, size),
        ]
    ]
    module.trainable_variables = list(module.variables)
    module.vocab_file = tf.saved_model.Asset(write_vocab(directory, vocab))
    module.do_lower_case = tf.Variable(True, trainable=False)

    def call(inputs, training=False):
        table, kernel, bias = module.variables
        words = _embed(table, inputs["input_word_ids"], inputs["input_mask"])
        return {
            "sequence_output": tf.tanh(words @ kernel + bias),
            "pooled_output": tf.reduce_sum(words, axis=1) @ kernel,
        }

    module.__call__ = tf.function(call)
    specs = {name: tf.TensorSpec([None, None], tf.int32) for name in INPUTS}
    for training in (False, True):
        module.__call__.get_concrete_function(specs, training=training)
    tf.saved_model.save(module, str(directory / "another"))
    return str(directory / "another")


def write_old(directory, vocab, size=8, has_mlm=False):
    """Writes a module in the TF1 Hub format; returns its directory.

    With `has_mlm`, it has a weight that `tokens` does not read, like those that
    only the signature `mlm` of the original modules reads.
    """
    v1 = tf.compat.v1
    vocab_file = write_vocab(directory, vocab)
    path = str(directory / "old")

    def signature(inputs, outputs):
        info = v1.saved_model.build_tensor_info
        return v1.saved_model.build_signature_def(
            *({n: info(t) for n, t in d.items()} for d in (inputs, outputs))
        )

    with v1.Graph().as_default(), v1.Session() as session:
        names = ("input_ids", "input_mask", "segment_ids")
        given = {n: v1.placeholder(tf.int32, [None, None], n) for n in names}
        table = v1.get_variable(
            "bert/table",
            initializer=_random(len(vocab), size),
            use_resource=True,
        )
        if has_mlm:
            bias = _random(2)
            v1.get_variable("cls/bias", initializer=bias, use_resource=True)
        words = _embed(table, given["input_ids"], given["input_mask"])
        outputs = {
            "pooled_output": tf.reduce_sum(words, axis=1),
            "sequence_output": words,
        }
        asset = tf.constant(vocab_file)
        v1.add_to_collection(v1.GraphKeys.ASSET_FILEPATHS, asset)
        about = {
            "vocab_file": tf.identity(asset),
            "do_lower_case": tf.constant(True),
        }
        session.run(v1.global_variables_initializer())
        builder = v1.saved_model.Builder(path)
        builder.add_meta_graph_and_variables(
            session,
            [],
            signature_def_map={
                "tokens": signature(given, outputs),
                "tokenization_info": signature({}, about),
            },
            assets_collection=v1.get_collection(v1.GraphKeys.ASSET_FILEPATHS),
        )
        builder.save()
    (pathlib.Path(path) / "tfhub_module.pb").write_bytes(b"\x08\x03")
    return path
