"""Pre-training: masked LM and next sentence, trained and evaluated.

Or what stands in their place: sentence order, or the next piece of a model that
reads from left to right.
"""

import functools
from typing import Any

import numpy as np
import tensorflow as tf

from official_bert import files
from official_bert.checkpoints import loading
from official_bert.config import BertConfig
from official_bert.inputs import (
    datasets,
    records,
    schemas,
)
from official_bert.inputs.records import RecordFiles
from official_bert.modeling.pretraining_model import PretrainingModel
from official_bert.optimization.schedules import LinearWarmupDecay
from official_bert.options import RunPretraining
from official_bert.tokenization import load_vocab
from official_bert.training import (
    computing,
    distribution,
    loop,
    means,
    output_folder,
    reporting,
    starting,
)
from official_bert.training.objectives import PretrainingObjective
from official_bert.training.plan import Plan
from official_bert.training.step import train_step


def run(options: RunPretraining) -> None:
    """Trains, evaluates, or both, as `options` say.

    Raises:
        InputError: Records, checkpoint, model and options do not fit.
    """
    with output_folder.held(options):
        _run(options)


def _run(options: RunPretraining) -> None:
    config = options.model_config()
    assert config.vocab_size is not None  # Reading the file made sure of it.
    _check_vocabulary(options, config)
    starting.require_same_model(options, config)
    strategy = distribution.choose(options)
    if options.do_train:
        distribution.require_divisible(
            options.train_batch_size,
            strategy,
            "train_batch_size",
            options.gradient_accumulation_steps,
        )
    if options.do_eval:
        distribution.require_divisible(
            options.eval_batch_size, strategy, "eval_batch_size"
        )
    data = RecordFiles(
        records.without_empty(files.expand(options.input_file)),
        _schema(options),
    )
    records.check_files(data, config.vocab_size)
    files.make_directory(options.output_dir)
    starting.set_seed(options.seed)
    with computing.scope(options, strategy):
        model = PretrainingModel(config)
    computing.set_recomputing(model, options)
    try:
        if options.do_train:
            step = train(model, data, options, strategy)
        else:
            step = starting.load_for_evaluation(model, options)
            _leave_notes(options, config, strategy)
        if options.do_eval:
            evaluate(model, data, options, strategy, step)
    except (
        tf.errors.DataLossError,
        tf.errors.InvalidArgumentError,
        UnicodeDecodeError,  # Its message quotes such a record.
    ):
        # TensorFlow does not say which record it was; look, and say so.
        records.check_all_records(data, config.vocab_size)
        raise


def _schema(options: RunPretraining) -> schemas.Schema:
    sizes = (options.max_seq_length, options.max_predictions_per_seq)
    if options.pack_sequences:
        return schemas.packed_schema(*sizes, options.max_sequences_per_row)
    return schemas.pretraining_schema(*sizes)


def _check_vocabulary(options: RunPretraining, config: BertConfig) -> None:
    if options.vocab_file:
        vocab = load_vocab(options.vocab_file)
        config.require_vocabulary(vocab, options.vocab_file)
        starting.require_same_vocabulary(options.output_dir, options.vocab_file)


def _leave_notes(
    options: RunPretraining,
    config: BertConfig,
    strategy: tf.distribute.Strategy,
) -> None:
    """Leaves options, and what is trained, where the checkpoints are."""
    if not distribution.is_chief(strategy):
        return
    texts = {"bert_config.json": config.to_json_string()}
    if options.vocab_file:
        texts["vocab.txt"] = files.read_text(options.vocab_file)
    output_folder.leave_notes(options.output_dir, options, texts)


def train(
    model: PretrainingModel,
    data: RecordFiles,
    options: RunPretraining,
    strategy: tf.distribute.Strategy,
) -> int:
    """Trains from the output folder's last checkpoint, or from the start.

    Args:
        model: Made in the strategy's scope.
        data: The records.
        options: Of the run.
        strategy: Which devices to use.

    Returns:
        The step reached.
    """
    schedule = LinearWarmupDecay(
        peak=options.learning_rate,
        num_train_steps=options.num_train_steps,
        num_warmup_steps=options.num_warmup_steps,
    )
    with strategy.scope():
        optimizer = computing.make_optimizer(
            options, _learning_variables(model, options), schedule
        )
    computation = computing.make_computation(options, strategy)
    weights = loading.by_name(model.trainable_variables)
    state = {**weights, **optimizer.state(), **computation.state()}
    starting.load_initial(model, options)
    resumed = starting.resume(state, options, strategy)
    _leave_notes(options, model.config, strategy)
    plan = Plan.make(
        options,
        options.num_train_steps,
        int(optimizer.step.numpy()),
        resumed,
        strategy,
    )
    batches = datasets.training_batches(
        data,
        options.train_batch_size,
        seed=plan.seed,
        start=plan.first_example,
    )
    step = functools.partial(
        train_step,
        model,
        _objective(model.config, options),
        optimizer,
        seed=plan.seed,
        computation=computation,
    )
    batches = _as_read(batches, model.config)
    loop.train(step, batches, state, plan, strategy)
    return int(optimizer.step.numpy())


def evaluate(
    model: PretrainingModel,
    data: RecordFiles,
    options: RunPretraining,
    strategy: tf.distribute.Strategy,
    global_step: int,
) -> dict[str, Any]:
    """Measures the model on records and writes `eval_results.txt`.

    Args:
        model: Made in the strategy's scope.
        data: The records.
        options: Of the run.
        strategy: Which devices to use.
        global_step: How long the model was trained, for the results.

    Returns:
        What it wrote: accuracies and losses as float32, as in 2018; from left
        to right also the perplexity of a piece.
    """
    batches = datasets.evaluation_batches(
        data, options.eval_batch_size, options.max_eval_steps
    )
    found = means.over(
        model,
        _objective(model.config, options),
        _as_read(batches, model.config),
        strategy,
        options.max_eval_steps,
    )
    results = {"global_step": global_step, **found}
    if model.config.is_left_to_right:
        results["lm_perplexity"] = np.exp(found["lm_loss"])
    if distribution.is_chief(strategy):
        reporting.write_lines(options.output_dir, results)
    return results


def _objective(
    config: BertConfig, options: RunPretraining
) -> PretrainingObjective:
    """Returns what the model is to learn, under names of its own."""
    return PretrainingObjective(
        pieces="lm" if config.is_left_to_right else "masked_lm",
        pairs=_PAIR_TASKS[options.nsp],
    )


_PAIR_TASKS = {"next": "next_sentence", "sop": "sentence_order", "none": None}


def _learning_variables(
    model: PretrainingModel, options: RunPretraining
) -> list[Any]:
    """Returns the weights that the losses depend on.

    The others stay what they were, and stay in the checkpoints, so that these
    are those of any BERT.
    """
    learns_pairs = _PAIR_TASKS[options.nsp] is not None
    return [
        weight
        for weight in model.trainable_variables
        if learns_pairs
        or not weight.path.startswith(("bert/pooler/", "cls/seq_relationship/"))
    ]


def _as_read(batches: tf.data.Dataset, config: BertConfig) -> tf.data.Dataset:
    """Returns batches for a model that reads in its direction, and can."""

    def as_read(batch: dict[str, Any]) -> dict[str, Any]:
        # On CPUs alone, and without XLA, looking them up would complain.
        for name in ("input_ids", "masked_lm_ids"):
            tf.debugging.assert_non_negative(batch[name])
            tf.debugging.assert_less(batch[name], config.vocab_size)
        if config.is_left_to_right:
            return datasets.to_next_tokens(batch)
        return batch

    return batches.map(as_read, num_parallel_calls=tf.data.AUTOTUNE)
