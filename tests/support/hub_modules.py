"""TF Hub modules for tests: ours, one by others, and one in the TF1 format."""

import pathlib

import numpy as np
import tensorflow as tf

from official_bert.checkpoints import tf1
from official_bert.export import tfhub_encoder
from official_bert.modeling.pretraining_model import PretrainingModel
from support import recorded

INPUTS = ("input_word_ids", "input_mask", "input_type_ids")

CONFIG = recorded.RELU_CONFIG
SEED = 102
VOCAB = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "good", "bad", "cat"]


def write_files(
    directory,
    config=CONFIG,
    seed=SEED,
    vocab=VOCAB,
    without="-",
    has_moments=False,
):
    """Writes checkpoint, config and vocabulary; returns the model."""
    model = PretrainingModel(config)
    recorded.set_weights(model.trainable_variables, seed)
    arrays = {
        weight.path: weight.numpy()
        for weight in model.trainable_variables
        if not weight.path.startswith(without)
    }
    if has_moments:  # As training leaves them.
        moments = [f"{path}/adam_{m}" for path in arrays for m in "mv"]
        arrays.update({name: arrays[name[:-7]] for name in moments})
    arrays["global_step"] = np.int64(9)
    tf1.write(str(directory / "bert_model.ckpt"), arrays)
    (directory / "vocab.txt").write_text("\n".join(vocab) + "\n")
    (directory / "bert_config.json").write_text(config.to_json_string())
    return model


def export(directory, config=CONFIG):
    """Writes the module of the files in a directory; returns its path
    and what `tfhub_encoder.export` returned."""
    written = tfhub_encoder.export(
        config,
        str(directory / "bert_model.ckpt"),
        str(directory / "vocab.txt"),
        str(directory / "module"),
        do_lower_case=True,
    )
    return str(directory / "module"), written


def inputs(ids, mask=None, segments=None):
    """Returns the inputs of a module."""
    ids = tf.constant(ids)
    given = (
        ids,
        tf.ones_like(ids) if mask is None else tf.constant(mask),
        tf.zeros_like(ids) if segments is None else tf.constant(segments),
    )
    return dict(zip(INPUTS, given, strict=True))


class Bag(tf.train.Checkpoint):
    """A module by others: embeddings, a layer, two weights of one name."""

    def __init__(self, vocab_file, vocab_size, size=8):
        super().__init__()
        random = np.random.RandomState(3)
        shapes = {"table/w": (vocab_size, size), "dense/w": (size, size)}
        self.variables = [
            tf.Variable(
                random.normal(size=shape) * 0.1, name=name, dtype=tf.float32
            )
            for name, shape in [*shapes.items(), ("dense/w", (1, size))]
        ]
        self.trainable_variables = list(self.variables)
        self.vocab_file = tf.saved_model.Asset(vocab_file)
        self.do_lower_case = tf.Variable(True, trainable=False)

    @tf.function
    def __call__(self, inputs, training=False):
        table, kernel, bias = self.variables
        words = tf.gather(table, inputs["input_word_ids"])
        words *= tf.cast(inputs["input_mask"], tf.float32)[..., None]
        sequence = tf.tanh(words @ kernel + bias)
        pooled = tf.reduce_sum(words, axis=1) @ kernel
        return {"sequence_output": sequence, "pooled_output": pooled}


def write_another(directory, vocab):
    """Writes a module that is not one of ours; returns its directory."""
    (directory / "vocab.txt").write_text("\n".join(vocab) + "\n")
    module = Bag(str(directory / "vocab.txt"), len(vocab))
    specs = {name: tf.TensorSpec([None, None], tf.int32) for name in INPUTS}
    for training in (False, True):
        module.__call__.get_concrete_function(specs, training=training)
    tf.saved_model.save(module, str(directory / "another"))
    return str(directory / "another")


def write_old(directory, vocab, size=8):
    """Writes a module in the TF1 Hub format; returns its directory."""
    v1 = tf.compat.v1
    (directory / "vocab.txt").write_text("\n".join(vocab) + "\n")
    path = str(directory / "old")
    with v1.Graph().as_default(), v1.Session() as session:
        names = ("input_ids", "input_mask", "segment_ids")
        given = {n: v1.placeholder(tf.int32, [None, None], n) for n in names}
        random = np.random.RandomState(3)
        table = v1.get_variable(
            "bert/table",
            initializer=random.normal(size=[len(vocab), size]).astype("f4"),
            use_resource=True,
        )
        words = tf.gather(table, given["input_ids"])
        words *= tf.cast(given["input_mask"], tf.float32)[..., None]
        asset = tf.constant(str(directory / "vocab.txt"))
        v1.add_to_collection(v1.GraphKeys.ASSET_FILEPATHS, asset)
        build, info = (
            v1.saved_model.build_signature_def,
            v1.saved_model.build_tensor_info,
        )
        outputs = {
            "pooled_output": tf.reduce_sum(words, axis=1),
            "sequence_output": words,
        }
        about = {
            "vocab_file": tf.identity(asset),
            "do_lower_case": tf.constant(True),
        }
        signatures = {
            "tokens": build(
                {name: info(tensor) for name, tensor in given.items()},
                {name: info(tensor) for name, tensor in outputs.items()},
            ),
            "tokenization_info": build(
                {}, {name: info(tensor) for name, tensor in about.items()}
            ),
        }
        session.run(v1.global_variables_initializer())
        builder = v1.saved_model.Builder(path)
        builder.add_meta_graph_and_variables(
            session,
            [],
            signature_def_map=signatures,
            assets_collection=v1.get_collection(v1.GraphKeys.ASSET_FILEPATHS),
        )
        builder.save()
    (pathlib.Path(path) / "tfhub_module.pb").write_bytes(b"\x08\x03")
    return path
