"""Exports BERT as a TF Hub encoder: a SavedModel that can be fine-tuned.

The module has the interface of the encoders that TensorFlow publishes ("Common
SavedModel APIs for text tasks" in TensorFlow's documentation), and the
signatures of the original implementation's modules. It can be loaded with
TensorFlow alone.
"""

import re
from collections.abc import Iterable
from typing import Any, NamedTuple

import tensorflow as tf
from absl import logging

from official_bert import hub
from official_bert.export import saved_model
from official_bert.modeling import layers
from official_bert.modeling.encoder import Bert
from official_bert.modeling.pretraining_model import PretrainingModel
from official_bert.sources import loading
from official_bert.sources.formats.tf1 import checkpoint as tf1
from official_bert.sources.heads import MASKED_LM
from official_bert.sources.pretrained import ModelFiles

Tensors = dict[str, Any]


class Exported(NamedTuple):
    """The contents of an exported module."""

    num_weights: int  # Number of parameters of the encoder.
    has_masked_lm: bool  # Whether the module has `mlm`.
    left_out: list[str]  # Names of the other weights in the checkpoint.


def export(model_files: ModelFiles, export_path: str) -> Exported:
    """Writes a module; an interrupted export changes nothing.

    Loaded with `tf.saved_model.load` or `hub.load`, it is called with a dict of
    int32 Tensors [B, S], `input_word_ids`, `input_mask` and `input_type_ids`,
    and with `training` (default: False). It returns a dict: `pooled_output` and
    `default`, [B, H]; `sequence_output`, [B, S, H]; `encoder_outputs`, a list
    of one [B, S, H] for each layer. If the checkpoint has the masked-LM head,
    `mlm` also takes `masked_lm_positions` [B, P] and returns `mlm_logits`
    [B, P, V] in place of `default`. In training, dropout differs at every call.

    The vocabulary becomes part of the module. Raises `InputError` if the
    checkpoint does not fit the config, or the module cannot be written.
    """
    config = model_files.config
    with layers.to_be_loaded():
        model = PretrainingModel(config)
    used = ("bert/", MASKED_LM)
    weights = tf1.by_name(
        w for w in model.trainable_variables if w.path.startswith(used)
    )
    loaded = loading.load(
        weights,
        model_files.init_checkpoint,
        may_initialize=f"^{MASKED_LM}",
        may_skip=tf1.NOT_BERT,
    )
    logging.info(f"Loaded {loaded.source}")
    has_masked_lm = not loaded.initialized
    module = _make_module(model, has_masked_lm)
    module.vocab_file = tf.saved_model.Asset(model_files.vocab_file)
    module.do_lower_case = tf.Variable(
        model_files.settings.is_uncased, trainable=False
    )
    logging.info(f"Writing {export_path}")
    signatures = _signatures(model.bert, module)
    extra_files = {
        hub.CONFIG: config.to_json_string().encode(),
        **saved_model.tokenizer_config(model_files.tokenizer),
    }
    saved_model.write(module, export_path, signatures, extra_files)
    left_out = [
        name
        for name in loading.open_arrays(loaded.source).shapes
        if not name.startswith(used if has_masked_lm else "bert/")
        and not re.search(tf1.OPTIMIZER_STATE, name)
    ]
    return Exported(model.bert.count_params(), has_masked_lm, sorted(left_out))


def _make_module(model: PretrainingModel, has_masked_lm: bool) -> Any:
    """Returns the module, with `mlm` if there is a masked-LM head."""

    def encode(inputs: Tensors, training: bool = False) -> Tensors:
        output = model.bert(
            *(inputs[name] for name in hub.INPUTS),
            training=layers.StepContext(_random_bits) if training else False,
        )
        return {
            "default": output.pooled_output,
            "pooled_output": output.pooled_output,
            "sequence_output": output.sequence_output,
            "encoder_outputs": output.encoder_outputs,
        }

    def predict_masked(inputs: Tensors, training: bool = False) -> Tensors:
        outputs = encode(inputs, training)
        del outputs["default"]  # The published modules do not have it here.
        positions = inputs["masked_lm_positions"]
        x = layers.gather_positions(outputs["sequence_output"], positions)
        words = tf.convert_to_tensor(model.bert.embeddings.word_embeddings)
        outputs["mlm_logits"] = model.masked_lm(x, words)
        return outputs

    weights = model.bert.trainable_variables
    module = _trainable(encode, hub.INPUTS, weights)
    if has_masked_lm:
        names = (*hub.INPUTS, "masked_lm_positions")
        weights = [*weights, *model.masked_lm.trainable_variables]
        module.mlm = _trainable(predict_masked, names, weights)
    return module


def _random_bits(site: int, x: Any) -> Any:
    """Returns bits for dropout that differ at every call and site."""
    bits = tf.random.uniform(tf.shape(x), maxval=2**16, dtype=tf.int32)
    return tf.cast(bits, tf.uint16)


def _trainable(
    call: Any, input_names: Iterable[str], weights: Iterable[Any]
) -> Any:
    """Returns a callable to save, which still has its weights when loaded."""
    saved = saved_model.callable_object(call)
    saved.variables = [weight.value for weight in weights]
    saved.trainable_variables = [weight.value for weight in weights]
    saved.regularization_losses = []
    inputs = {name: _ids(name) for name in input_names}
    for training in (False, True):
        saved.__call__.get_concrete_function(inputs, training=training)
    return saved


def _signatures(bert: Bert, module: Any) -> dict[str, Any]:
    """Returns the signatures of the original implementation's modules."""

    def tokens(input_ids: Any, input_mask: Any, segment_ids: Any) -> Tensors:
        output = bert(input_ids, input_mask, segment_ids)
        return {
            "pooled_output": output.pooled_output,
            "sequence_output": output.sequence_output,
        }

    def tokenization_info() -> Tensors:
        return {
            "vocab_file": module.vocab_file.asset_path,
            "do_lower_case": module.do_lower_case,
        }

    ids = [_ids(name) for name in hub.INPUTS.values()]
    return {
        "tokens": saved_model.signature(tokens, *ids),
        "tokenization_info": saved_model.signature(tokenization_info),
    }


def _ids(name: str) -> tf.TensorSpec:
    return tf.TensorSpec([None, None], tf.int32, name=name)
