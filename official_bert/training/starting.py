"""How a run starts: from its last checkpoint, another model's, or nothing."""

import os
from collections.abc import Mapping
from typing import Any

import tensorflow as tf
from absl import logging

from official_bert import files, json_files
from official_bert.checkpoints import loading, numbered
from official_bert.config import BertConfig
from official_bert.errors import InputError
from official_bert.options.training import Training

_LOSS_SCALE = "^loss_scale/"


def restore(
    model: Any,
    state: Mapping[str, Any],
    options: Training,
    *,
    may_initialize: str = "",
    may_skip: str = "",
) -> numbered.Resume:
    """Loads what there is to start from.

    Args:
        model: Whose weights `init_checkpoint` has.
        state: All that a run's own checkpoint has.
        options: Where they are.
        may_initialize: What `init_checkpoint` may lack, beside what the options
            allow.
        may_skip: What may go unused of it.

    Returns:
        How to go on with the data.
    """
    prefix = numbered.latest(options.output_dir)
    if prefix:
        # A run may go on in another precision.
        loading.load(
            state, prefix, may_initialize=_LOSS_SCALE, may_skip=_LOSS_SCALE
        )
        step = int(state["global_step"].numpy())
        logging.info("Going on from %s", prefix)
        return numbered.read_resume(prefix) or numbered.Resume(
            options.seed, step * options.train_batch_size
        )
    if options.init_checkpoint:
        load_weights(
            model,
            options.init_checkpoint,
            either(options.may_initialize, may_initialize),
            either(options.may_skip, may_skip),
        )
    return numbered.Resume(options.seed, examples_seen=0)


def load_for_evaluation(
    model: Any, options: Training, *, may_skip: str = ""
) -> int:
    """Loads the best or newest checkpoint there is, or else `init_checkpoint`.

    Returns:
        How many steps it was trained for.
    """
    may_skip = either(options.may_skip, may_skip)
    if prefix := numbered.best_or_latest(options.output_dir):
        load_weights(model, prefix, options.may_initialize, may_skip)
        return int(tf.train.load_variable(prefix, "global_step"))
    if options.init_checkpoint:
        load_weights(
            model, options.init_checkpoint, options.may_initialize, may_skip
        )
        return 0
    raise InputError(
        "Without --do_train, a model is needed. Received: an --output_dir "
        "without checkpoints, and no --init_checkpoint. Give one, or "
        "--do_train."
    )


def load_weights(
    model: Any, prefix: str, may_initialize: str, may_skip: str
) -> None:
    """Loads weights, not the moments that may lie beside them."""
    made_anew = loading.load(
        loading.by_name(model.trainable_variables),
        prefix,
        may_initialize=may_initialize,
        may_skip=either(loading.OPTIMIZER_STATE, may_skip),
    )
    logging.info("Loaded %s", prefix)
    if made_anew:
        logging.warning("Made anew: %s", ", ".join(made_anew))
    _warn_of_other_direction(model.config, prefix)


def _warn_of_other_direction(config: BertConfig, prefix: str) -> None:
    """Compares with the config beside a checkpoint; one may want it so."""
    folder = prefix if files.exists(prefix) else os.path.dirname(prefix)
    path = os.path.join(folder, "bert_config.json")
    if not files.exists(path):
        return
    before = json_files.read_object(path).get("is_left_to_right", False)
    if before != config.is_left_to_right:
        logging.warning(
            "%s says is_left_to_right=%s, and the model here has %s: it must "
            "learn to read anew. --left_to_right, or the config beside the "
            "checkpoint, makes them the same.",
            path,
            before,
            config.is_left_to_right,
        )


def either(*patterns: str) -> str:
    """Returns a regular expression that matches what one of them does."""
    return "|".join(filter(None, patterns))


def require_same_model(options: Training, config: BertConfig) -> None:
    """Compares with what was trained here, as far as weights would not tell."""
    path = os.path.join(options.output_dir, "bert_config.json")
    if not files.exists(path):
        return
    trained = BertConfig.from_json_file(path)
    for name in ("num_attention_heads", "hidden_act", "is_left_to_right"):
        before, now = getattr(trained, name), getattr(config, name)
        if before != now:
            raise InputError(
                f"{options.bert_config_file}: `{name}` must be {before!r}, as "
                f"in {path}. Received: {now!r}. Use another --output_dir for "
                "another model."
            )
