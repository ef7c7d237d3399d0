"""A BERT as a TF Hub encoder: a SavedModel that others can fine-tune.

Its interface is that of the encoders published by TensorFlow ("Common
SavedModel APIs for text tasks" in TensorFlow's documentation), and beside it
the signatures of the modules that the 2018 release had on the Hub. Who loads it
needs TensorFlow and nothing of this project.
"""

import re
from collections.abc import Iterable
from typing import Any, NamedTuple

import tensorflow as tf
from absl import logging

from official_bert import files
from official_bert.checkpoints import loading, run_directory, tf1
from official_bert.config import BertConfig
from official_bert.export import saved_model
from official_bert.hub import modules
from official_bert.modeling.layers import StepContext, gather_positions
from official_bert.modeling.pretraining_model import PretrainingModel

# Which of a checkpoint's weights a module has.
_ENCODER = "bert/"
_MASKED_LM = "cls/predictions/"

_INPUTS = ("input_word_ids", "input_mask", "input_type_ids")

Tensors = dict[str, Any]


class Exported(NamedTuple):
    """What was written.

    Attributes:
        num_bytes: The size of all files.
        num_weights: How many numbers there are in the encoder.
        has_masked_lm: Whether the module has `mlm`.
        left_out: Names of what else the checkpoint has, moments aside.
    """

    num_bytes: int
    num_weights: int
    has_masked_lm: bool
    left_out: list[str]


def export(
    config: BertConfig,
    init_checkpoint: str,
    vocab_file: str,
    export_path: str,
    *,
    do_lower_case: bool,
) -> Exported:
    """Writes a module: all of it, or nothing under that name.

    Loaded with `tf.saved_model.load` or `hub.load`, it is called with a dict of
    int32 Tensors [B, S]: `input_word_ids`, `input_mask`, `input_type_ids`, and
    with `training`, which is False if not given. It returns a dict:
    `pooled_output` and `default`, [B, H]; `sequence_output`, [B, S, H];
    `encoder_outputs`, a list of one such for each layer. `mlm`, which is there
    if the checkpoint has the head, takes `masked_lm_positions` [B, P] as well
    and returns `mlm_logits` [B, P, V] in place of `default`. In training,
    dropout differs from call to call.

    Args:
        config: Of the model.
        init_checkpoint: A TF1 checkpoint, or a run's folder, whose newest is
            meant; heads other than that for masked LM are left out.
        vocab_file: The vocabulary; it becomes part of the module.
        export_path: Folder for the module; what stands there is replaced.
        do_lower_case: Whether the model wants text lower-cased.

    Raises:
        InputError: The checkpoint does not fit the config, or the disk is full.
    """
    prefix = run_directory.resolve(init_checkpoint)
    stored = tf1.open_reader(prefix).get_variable_to_shape_map()
    has_masked_lm = any(name.startswith(_MASKED_LM) for name in stored)
    model = PretrainingModel(config)
    wanted = (_ENCODER, _MASKED_LM) if has_masked_lm else (_ENCODER,)
    weights = [
        weight
        for weight in model.trainable_variables
        if weight.path.startswith(wanted)
    ]
    loading.load(
        loading.by_name(weights), init_checkpoint, may_skip=loading.NOT_BERT
    )
    logging.info("Loaded %s", prefix)
    module, signatures = _make_module(
        model, vocab_file, do_lower_case, has_masked_lm
    )
    logging.info("Writing %s", export_path)
    with files.replacing_directory(export_path) as folder:
        texts = {modules.CONFIG: config.to_json_string()}
        saved_model.save(module, folder, signatures, texts)
    return Exported(
        files.directory_size(export_path),
        model.bert.count_params(),
        has_masked_lm,
        sorted(
            name
            for name in stored
            if not name.startswith(wanted)
            and not re.search(loading.OPTIMIZER_STATE, name)
        ),
    )


class _Calls(NamedTuple):
    """What a module can be asked.

    Attributes:
        model: With its weights.
        info: What has `vocab_file` and `do_lower_case`.
    """

    model: PretrainingModel
    info: Any

    def encode(self, inputs: Tensors, training: bool = False) -> Tensors:
        """The module itself."""
        output = self.model.bert(
            inputs["input_word_ids"],
            inputs["input_mask"],
            inputs["input_type_ids"],
            training=StepContext(_draw_anew) if training else False,
        )
        return {
            "default": output.pooled_output,
            "pooled_output": output.pooled_output,
            "sequence_output": output.sequence_output,
            "encoder_outputs": output.encoder_outputs,
        }

    def guess_masked(self, inputs: Tensors, training: bool = False) -> Tensors:
        """`mlm`."""
        outputs = self.encode(inputs, training)
        del outputs["default"]  # It is not in those that are published.
        outputs["mlm_logits"] = self.model.masked_lm(
            gather_positions(
                outputs["sequence_output"], inputs["masked_lm_positions"]
            ),
            tf.convert_to_tensor(self.model.bert.embeddings.word_embeddings),
        )
        return outputs

    def tokens(self, input_ids: Any, input_mask: Any, segment_ids: Any) -> Any:
        """The signature of 2018."""
        output = self.model.bert(input_ids, input_mask, segment_ids)
        return {
            "pooled_output": output.pooled_output,
            "sequence_output": output.sequence_output,
        }

    def tokenization_info(self) -> Tensors:
        """The signature of 2018."""
        return {
            "vocab_file": self.info.vocab_file.asset_path,
            "do_lower_case": self.info.do_lower_case,
        }


def _draw_anew(site: int, shape: Any) -> Any:
    """Returns random bits for dropout, others at every call and site."""
    bits = tf.random.uniform(shape, maxval=2**16, dtype=tf.int32)
    return tf.cast(bits, tf.uint16)


def _make_module(
    model: PretrainingModel,
    vocab_file: str,
    do_lower_case: bool,
    has_masked_lm: bool,
) -> tuple[Any, dict[str, Any]]:
    """Returns what to save of a model with its weights, and its signatures."""
    weights = [weight.value for weight in model.bert.trainable_variables]
    module = _trainable(weights)
    module.vocab_file = tf.saved_model.Asset(vocab_file)
    module.do_lower_case = tf.Variable(do_lower_case, trainable=False)
    calls = _Calls(model, module)
    module.__call__ = _traced(calls.encode, _INPUTS)
    if has_masked_lm:
        head = model.masked_lm.trainable_variables
        module.mlm = _trainable([*weights, *(weight.value for weight in head)])
        module.mlm.__call__ = _traced(
            calls.guess_masked, (*_INPUTS, "masked_lm_positions")
        )
    ids = [_ids(name) for name in ("input_ids", "input_mask", "segment_ids")]
    signatures = {
        "tokens": tf.function(
            calls.tokens, input_signature=ids, autograph=False
        ),
        "tokenization_info": tf.function(
            calls.tokenization_info, input_signature=[], autograph=False
        ),
    }
    return module, signatures


def _trainable(weights: list[tf.Variable]) -> Any:
    """Returns something to save whose weights are found by who loads it."""
    # A tf.Module would lose its `variables`.
    saved = tf.train.Checkpoint()
    saved.variables = list(weights)
    saved.trainable_variables = list(weights)
    saved.regularization_losses = []
    return saved


def _traced(call: Any, names: Iterable[str]) -> Any:
    """Returns a function of a dict of ids, for training and without."""
    function = tf.function(call, autograph=False)
    inputs = {name: _ids(name) for name in names}
    for training in (False, True):
        function.get_concrete_function(inputs, training=training)
    return function


def _ids(name: str) -> tf.TensorSpec:
    return tf.TensorSpec([None, None], tf.int32, name=name)
