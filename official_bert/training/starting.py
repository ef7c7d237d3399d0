"""How a run starts: from its last checkpoint, another model's, or nothing."""

import os
from collections.abc import Mapping
from typing import Any

import keras
import tensorflow as tf
from absl import logging

from official_bert import files
from official_bert.checkpoints import loading, numbered
from official_bert.config import BertConfig
from official_bert.errors import InputError
from official_bert.options.training import TrainingOptions
from official_bert.training import distribution

_LOSS_SCALE = "^loss_scale/"

# Of a config; what is not named here may change from run to run.
_OF_A_MODEL = (
    "vocab_size",
    "hidden_size",
    "num_hidden_layers",
    "num_attention_heads",
    "intermediate_size",
    "hidden_act",
    "max_position_embeddings",
    "type_vocab_size",
    "is_left_to_right",
)


def set_seed(seed: int) -> None:
    """Seeds initial weights and, beside seeds of its own, the order of data."""
    # TensorFlow takes seeds modulo 2**31 - 1, and cannot shuffle by the number
    # of an epoch where that is 0.
    keras.utils.set_random_seed(seed if seed % (2**31 - 1) else 2**30)


def load_initial(
    model: Any,
    options: TrainingOptions,
    *,
    may_initialize: str = "",
    may_skip: str = "",
) -> None:
    """Loads `init_checkpoint` into the model of a run that begins.

    Args:
        model: Whose weights it has.
        options: Where it is.
        may_initialize: What it may lack, beside what the options allow.
        may_skip: What may go unused of it.
    """
    if options.init_checkpoint and not numbered.latest(options.output_dir):
        load_weights(
            model,
            options.init_checkpoint,
            either(options.may_initialize, may_initialize),
            either(options.may_skip, may_skip),
        )


def resume(
    state: Mapping[str, Any],
    options: TrainingOptions,
    strategy: tf.distribute.Strategy,
) -> numbered.Resume:
    """Loads the run's own checkpoint, if there is one, and sets its seed.

    Args:
        state: All that the checkpoint has.
        options: Where it is.
        strategy: Whose hosts must all start from the same.

    Returns:
        How to go on with the data.
    """
    found = numbered.Resume(options.seed, examples_seen=0)
    if prefix := numbered.latest(options.output_dir):
        # A run may go on in another precision.
        loading.load(
            state, prefix, may_initialize=_LOSS_SCALE, may_skip=_LOSS_SCALE
        )
        step = int(state["global_step"].numpy())
        logging.info("Going on from %s", prefix)
        found = numbered.read_resume(prefix) or numbered.Resume(
            options.seed, step * options.train_batch_size
        )
        if found.seed != options.seed:
            logging.warning(
                "--seed=%d has no effect: the run began with %d",
                options.seed,
                found.seed,
            )
    distribution.require_agreement(strategy, found.seed, state)
    # The order of examples depends on it, beside the seed it is given.
    set_seed(found.seed)
    return found


def load_for_evaluation(
    model: Any, options: TrainingOptions, *, may_skip: str = ""
) -> int:
    """Loads the best or newest checkpoint there is, or else `init_checkpoint`.

    Returns:
        How many steps it was trained for.
    """
    may_skip = either(options.may_skip, may_skip)
    if prefix := numbered.best_or_latest(options.output_dir):
        load_weights(model, prefix, options.may_initialize, may_skip)
        return numbered.trained_steps(prefix)
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
    path = config.config_of_other_direction(prefix)
    if path is not None:
        logging.warning(
            "%s says is_left_to_right=%s, and the model here has %s: it must "
            "learn to read anew. --left_to_right, or the config beside the "
            "checkpoint, makes them the same.",
            path,
            not config.is_left_to_right,
            config.is_left_to_right,
        )


def either(*patterns: str) -> str:
    """Returns a regular expression that matches what one of them does."""
    return "|".join(filter(None, patterns))


def require_same_model(options: TrainingOptions, config: BertConfig) -> None:
    """Compares with what was trained here, before anything is made for it."""
    path = os.path.join(options.output_dir, "bert_config.json")
    if not files.exists(path):
        return
    trained = BertConfig.from_json_file(path)
    for name in _OF_A_MODEL:
        before, now = getattr(trained, name), getattr(config, name)
        if before != now:
            raise InputError(
                f"{options.bert_config_file}: `{name}` must be {before!r}, as "
                f"in {path}. Received: {now!r}. Use another --output_dir for "
                "another model."
            )


def require_same_vocabulary(output_dir: str, vocab_file: str) -> None:
    """Compares with the pieces of what was trained in the output folder."""
    path = os.path.join(output_dir, "vocab.txt")
    if files.exists(path) and files.read_text(path) != files.read_text(
        vocab_file
    ):
        raise InputError(
            f"{vocab_file}: must be the vocabulary of the model that was "
            f"trained there, {path}. Received: another one. Use another "
            "--output_dir for another vocabulary."
        )
